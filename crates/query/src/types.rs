//! The types of columns and expressions: MySQL 8.0's, and the description of a result column.
//!
//! A `Type` is flat: `kind` decides which of the other fields mean anything (the table at `Kind`). An expression's text carries its collation here
//! and nowhere else: a `Value::Text` alone does not know how to be compared.

use std::sync::Arc;

use datum::{Shape, Storage, Timestamp, Value};

pub use crate::collation::{Charset, CharsetName, Collation, CollationName};

/// The kinds, with what `length` and `scale` mean for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The type of a bare NULL.
    Null,
    /// Integers: `length` is the display width.
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    /// `length` is the precision (up to 65), `scale` the digits behind the point (up to 30).
    Decimal,
    /// `scale` is the digits shown behind the point, or `Type::FLOATING` where none were declared.
    Float,
    Double,
    /// `length` bits, 1 to 64; the value is a `Value::UInt`.
    Bit,
    /// `length` in characters.
    Char,
    VarChar,
    TinyText,
    Text,
    MediumText,
    LongText,
    /// `length` in bytes.
    Binary,
    VarBinary,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    /// The value is a `Value::UInt`: the number of the member from 1, 0 for the wrong value ''.
    Enum,
    /// The value is a `Value::UInt`: a bit for each member.
    Set,
    Date,
    /// `scale` is the digits of the second's fraction, 0 to 6.
    Time,
    DateTime,
    /// The value is a `Value::Timestamp`, in UTC.
    Timestamp,
    /// The value is a `Value::UInt`.
    Year,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub kind: Kind,
    pub length: u32,
    pub scale: u8,
    pub unsigned: bool,
    pub zerofill: bool,
    pub nullable: bool,
    /// Of character kinds, ENUM and SET; `Collation::Binary` elsewhere.
    pub collation: Collation,
    /// Of ENUM and SET.
    pub members: Option<Arc<[Box<str>]>>,
}

impl Type {
    /// `scale` of FLOAT and DOUBLE without declared digits.
    pub const FLOATING: u8 = 31;

    /// A nullable type of this kind with the kind's own length.
    pub fn new(kind: Kind) -> Type {
        let (length, scale) = kind.default_length();
        let collation = if kind.is_text() || kind == Kind::Json { Collation::DEFAULT } else { Collation::Binary };
        Type { kind, length, scale, unsigned: false, zerofill: false, nullable: true, collation, members: None }
    }

    pub fn null() -> Type {
        Type::new(Kind::Null)
    }

    /// The type of comparisons: BIGINT of one digit.
    pub fn boolean() -> Type {
        Type { length: 1, ..Type::new(Kind::BigInt) }
    }

    /// The type of computed whole numbers, one letter longer than a column's.
    pub fn integer() -> Type {
        Type { length: 21, ..Type::new(Kind::BigInt) }
    }

    pub fn unsigned() -> Type {
        Type { unsigned: true, ..Type::integer() }
    }

    pub fn double() -> Type {
        Type::new(Kind::Double)
    }

    pub fn decimal(precision: u32, scale: u8) -> Type {
        Type { length: precision, scale, ..Type::new(Kind::Decimal) }
    }

    pub fn text(length: u32, collation: Collation) -> Type {
        Type { length, collation, ..Type::new(Kind::VarChar) }
    }

    pub fn bytes(length: u32) -> Type {
        Type { length, ..Type::new(Kind::VarBinary) }
    }

    /// DATE, TIME, DATETIME or TIMESTAMP with these fractional digits.
    pub fn temporal(kind: Kind, scale: u8) -> Type {
        Type { scale, ..Type::new(kind) }
    }

    #[must_use]
    pub fn with_nullable(mut self, nullable: bool) -> Type {
        self.nullable = nullable;
        self
    }

    /// Returns whether the types differ in nothing but whether NULL is one of their values.
    pub fn is_same_but_null(&self, other: &Type) -> bool {
        let Type { kind, length, scale, unsigned, zerofill, nullable: _, collation, members } = other;
        self.kind == *kind
            && (self.length, self.scale, self.unsigned, self.zerofill) == (*length, *scale, *unsigned, *zerofill)
            && self.collation == *collation
            && self.members == *members
    }

    /// Returns the form of the type's values in rows and keys.
    #[inline]
    pub fn storage(&self) -> Storage {
        self.kind.storage(self.unsigned)
    }

    /// Returns the storage type with the collation, for the codecs.
    #[inline]
    pub fn shape(&self) -> Shape {
        Shape { storage: self.storage(), collation: self.collation }
    }

    /// Integers of this kind lie between these, both included. `None` for other kinds.
    pub fn integer_range(&self) -> Option<(i64, u64)> {
        let bits = match self.kind {
            Kind::TinyInt => 8,
            Kind::SmallInt => 16,
            Kind::MediumInt => 24,
            Kind::Int => 32,
            Kind::BigInt => 64,
            _ => return None,
        };
        Some(match self.unsigned {
            true => (0, u64::MAX >> (64 - bits)),
            false => (i64::MIN >> (64 - bits), (i64::MAX >> (64 - bits)) as u64),
        })
    }

    /// As CREATE TABLE and information_schema's COLUMN_TYPE write it, without the collation.
    pub fn name(&self) -> String {
        let base = self.kind.name();
        let mut name = match self.kind {
            Kind::TinyInt if self.length == 1 && !self.unsigned => "tinyint(1)".to_owned(),
            _ if self.kind.is_integer() && self.zerofill => format!("{base}({})", self.length),
            Kind::Decimal => format!("{base}({},{})", self.length, self.scale),
            Kind::Float | Kind::Double if self.scale != Type::FLOATING => {
                format!("{base}({},{})", self.length, self.scale)
            }
            Kind::Bit | Kind::Char | Kind::VarChar | Kind::Binary | Kind::VarBinary => {
                format!("{base}({})", self.length)
            }
            Kind::Time | Kind::DateTime | Kind::Timestamp if self.scale > 0 => format!("{base}({})", self.scale),
            Kind::Enum | Kind::Set => {
                let members: Vec<String> =
                    self.members().iter().map(|m| format!("'{}'", m.replace('\'', "''"))).collect();
                format!("{base}({})", members.join(","))
            }
            _ => base.to_owned(),
        };
        if self.unsigned && (self.kind.is_number() || self.kind == Kind::Decimal) {
            name.push_str(" unsigned");
        }
        if self.zerofill {
            name.push_str(" zerofill");
        }
        name
    }

    pub fn members(&self) -> &[Box<str>] {
        self.members.as_deref().unwrap_or(&[])
    }

    pub fn charset(&self) -> Charset {
        self.collation.charset()
    }

    /// A string of bytes or characters (not JSON, ENUM or SET).
    pub fn is_string(&self) -> bool {
        self.kind.is_text() || self.kind.is_bytes()
    }

    /// The longest a value can be in bytes, where the kind bounds it.
    pub fn byte_length(&self) -> u32 {
        match self.kind {
            Kind::Char | Kind::VarChar => self.length.saturating_mul(self.charset().max_bytes()),
            _ => self.length,
        }
    }
}

impl Type {
    /// Returns whether it is the type of comparisons and logic.
    pub fn is_truth(&self) -> bool {
        *self == Type::boolean().with_nullable(self.nullable)
    }

    /// Returns the type that a value has by itself: of parameters, and of values that have lost their type.
    pub fn of(value: &Value) -> Type {
        match value {
            Value::Null => Type::null(),
            Value::Int(_) => Type::integer(),
            Value::UInt(_) => Type::unsigned(),
            Value::Decimal(decimal) => Type::decimal(decimal.digits().max(u32::from(decimal.scale())), decimal.scale()),
            Value::Float(_) => Type::new(Kind::Float),
            Value::Double(_) => Type::double(),
            Value::Text(text) => Type::text(text.len() as u32, Collation::DEFAULT),
            Value::Bytes(bytes) => Type::bytes(bytes.len() as u32),
            Value::Date(_) => Type::new(Kind::Date),
            Value::Time(time) => Type::temporal(Kind::Time, scale_of(time.micros())),
            Value::DateTime(at) => Type::temporal(Kind::DateTime, scale_of(at.micros_of_day())),
            Value::Timestamp(Timestamp(at)) => Type::temporal(Kind::Timestamp, scale_of(*at)),
            Value::Json(_) => Type::new(Kind::Json),
        }
    }
}

fn scale_of(micros: i64) -> u8 {
    if micros % datum::temporal::MICROS_PER_SECOND == 0 { 0 } else { 6 }
}

impl Kind {
    /// Returns the form of the kind's values in rows and keys. A bare NULL has that of a text, which any value can be shown as.
    #[inline]
    pub fn storage(self, unsigned: bool) -> Storage {
        let int = |bytes| Storage::Int { bytes, signed: !unsigned };
        match self {
            Kind::TinyInt => int(1),
            Kind::SmallInt => int(2),
            Kind::MediumInt | Kind::Int => int(4),
            Kind::BigInt => int(8),
            Kind::Decimal => Storage::Decimal,
            Kind::Float => Storage::Float4,
            Kind::Double => Storage::Float8,
            Kind::Bit => Storage::Bit,
            Kind::Null
            | Kind::Char
            | Kind::VarChar
            | Kind::TinyText
            | Kind::Text
            | Kind::MediumText
            | Kind::LongText => Storage::Text,
            Kind::Binary | Kind::VarBinary | Kind::TinyBlob | Kind::Blob | Kind::MediumBlob | Kind::LongBlob => {
                Storage::Bytes
            }
            Kind::Enum => Storage::Enum,
            Kind::Set => Storage::Set,
            Kind::Date => Storage::Date,
            Kind::Time => Storage::Time,
            Kind::DateTime => Storage::Timestamp,
            Kind::Timestamp => Storage::TimestampTz,
            Kind::Year => Storage::Int { bytes: 2, signed: false },
            Kind::Json => Storage::Json,
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(self, Kind::TinyInt | Kind::SmallInt | Kind::MediumInt | Kind::Int | Kind::BigInt)
    }

    /// Integer, DECIMAL, FLOAT, DOUBLE.
    pub fn is_number(self) -> bool {
        self.is_integer() || matches!(self, Kind::Decimal | Kind::Float | Kind::Double)
    }

    pub fn is_text(self) -> bool {
        matches!(
            self,
            Kind::Char
                | Kind::VarChar
                | Kind::TinyText
                | Kind::Text
                | Kind::MediumText
                | Kind::LongText
                | Kind::Enum
                | Kind::Set
        )
    }

    pub fn is_bytes(self) -> bool {
        matches!(self, Kind::Binary | Kind::VarBinary | Kind::TinyBlob | Kind::Blob | Kind::MediumBlob | Kind::LongBlob)
    }

    /// Has a date, a time of day or both.
    pub fn is_temporal(self) -> bool {
        matches!(self, Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp)
    }

    /// Kept apart from the row's fixed part by MySQL: no default, no key without a prefix.
    pub fn is_blob(self) -> bool {
        matches!(
            self,
            Kind::TinyText
                | Kind::Text
                | Kind::MediumText
                | Kind::LongText
                | Kind::TinyBlob
                | Kind::Blob
                | Kind::MediumBlob
                | Kind::LongBlob
                | Kind::Json
        )
    }

    /// As in information_schema's DATA_TYPE.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::TinyInt => "tinyint",
            Kind::SmallInt => "smallint",
            Kind::MediumInt => "mediumint",
            Kind::Int => "int",
            Kind::BigInt => "bigint",
            Kind::Decimal => "decimal",
            Kind::Float => "float",
            Kind::Double => "double",
            Kind::Bit => "bit",
            Kind::Char => "char",
            Kind::VarChar => "varchar",
            Kind::TinyText => "tinytext",
            Kind::Text => "text",
            Kind::MediumText => "mediumtext",
            Kind::LongText => "longtext",
            Kind::Binary => "binary",
            Kind::VarBinary => "varbinary",
            Kind::TinyBlob => "tinyblob",
            Kind::Blob => "blob",
            Kind::MediumBlob => "mediumblob",
            Kind::LongBlob => "longblob",
            Kind::Enum => "enum",
            Kind::Set => "set",
            Kind::Date => "date",
            Kind::Time => "time",
            Kind::DateTime => "datetime",
            Kind::Timestamp => "timestamp",
            Kind::Year => "year",
            Kind::Json => "json",
        }
    }

    /// `length` and `scale` of the kind where nothing is declared.
    pub fn default_length(self) -> (u32, u8) {
        match self {
            Kind::Null | Kind::Enum | Kind::Set => (0, 0),
            Kind::TinyInt => (4, 0),
            Kind::SmallInt => (6, 0),
            Kind::MediumInt => (9, 0),
            Kind::Int => (11, 0),
            Kind::BigInt => (20, 0),
            Kind::Decimal => (10, 0),
            Kind::Float => (12, Type::FLOATING),
            Kind::Double => (22, Type::FLOATING),
            Kind::Bit | Kind::Char | Kind::Binary | Kind::VarChar | Kind::VarBinary => (1, 0),
            Kind::TinyText | Kind::TinyBlob => (255, 0),
            Kind::Text | Kind::Blob => (65_535, 0),
            Kind::MediumText | Kind::MediumBlob => (16_777_215, 0),
            Kind::LongText | Kind::LongBlob | Kind::Json => (u32::MAX, 0),
            Kind::Date | Kind::Time => (10, 0),
            Kind::DateTime | Kind::Timestamp => (19, 0),
            Kind::Year => (4, 0),
        }
    }
}

/// The description of a result column for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub schema: String,
    /// The alias in the statement, and the table's own name.
    pub table: String,
    pub org_table: String,
    pub name: String,
    pub org_name: String,
    pub ty: Type,
    pub flags: ColumnFlags,
}

impl Column {
    /// A column that is no table's: an expression.
    pub fn computed(name: impl Into<String>, ty: Type) -> Column {
        Column {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: name.into(),
            org_name: String::new(),
            ty,
            flags: ColumnFlags::default(),
        }
    }
}

/// Properties of a result column beyond its type (NOT NULL, UNSIGNED and ZEROFILL are in the type).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnFlags {
    pub primary_key: bool,
    pub unique_key: bool,
    /// The first part of a key that is not unique.
    pub multiple_key: bool,
    pub auto_increment: bool,
    pub no_default: bool,
    pub on_update_now: bool,
    /// The default is the current time.
    pub default_now: bool,
    /// Part of a key, at whatever place.
    pub part_key: bool,
}
