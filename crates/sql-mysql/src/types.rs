//! MySQL's types: the kinds, and a kind's place in the core's `Type`.
//!
//! A type that MySQL declared has the number `TypeId(MYSQL | kind | unsigned)`. One that MySQL did not declare (the core's own, and those of tables made by another dialect) has the kind that holds all of its
//! values.

use datum::{Storage, Timestamp, Value};
use query::nodes::expr::Expr;

use crate::other_dialects::{MYSQL, opaque_name};
use crate::other_values::seen_type;

pub use crate::collation::{Charset, CharsetName, Collation, CollationName};
pub use query::types::{Column, ColumnFlags, Type, TypeId};

/// The kinds, with what `length` and `scale` mean for each. Their numbers are in files: new ones go to the end.
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

/// The kinds by their numbers.
const KINDS: [Kind; 30] = [
    Kind::Null,
    Kind::TinyInt,
    Kind::SmallInt,
    Kind::MediumInt,
    Kind::Int,
    Kind::BigInt,
    Kind::Decimal,
    Kind::Float,
    Kind::Double,
    Kind::Bit,
    Kind::Char,
    Kind::VarChar,
    Kind::TinyText,
    Kind::Text,
    Kind::MediumText,
    Kind::LongText,
    Kind::Binary,
    Kind::VarBinary,
    Kind::TinyBlob,
    Kind::Blob,
    Kind::MediumBlob,
    Kind::LongBlob,
    Kind::Enum,
    Kind::Set,
    Kind::Date,
    Kind::Time,
    Kind::DateTime,
    Kind::Timestamp,
    Kind::Year,
    Kind::Json,
];

/// The bit of UNSIGNED in a type's number.
const UNSIGNED: u32 = 1 << 8;
/// The attribute ZEROFILL.
const ZEROFILL: u8 = 1;
/// The attribute of an integer of another dialect's table whose values are 0 and 1.
pub const BOOLEAN: u8 = 2;
/// The attribute of a type that takes no values from MySQL (`other_tables`).
pub const UNASSIGNABLE: u8 = 4;
/// The type is a domain of another dialect, whose rows are not written here.
pub const CONSTRAINED: u8 = 8;

const fn type_id(kind: Kind, unsigned: bool) -> TypeId {
    match kind {
        Kind::Null => TypeId::NULL,
        kind => TypeId(MYSQL | kind as u32 | if unsigned { UNSIGNED } else { 0 }),
    }
}

/// Returns a nullable type for the tables of information_schema, which are constants.
pub const fn declared(kind: Kind, unsigned: bool, size: (u32, u8), collation: Collation) -> Type {
    Type::plain(kind.storage(unsigned), type_id(kind, unsigned), size, true, collation)
}

/// MySQL's view of a type.
pub trait MysqlType: Sized {
    /// `scale` of FLOAT and DOUBLE without declared digits.
    const FLOATING: u8 = 31;

    /// Returns a nullable type of this kind with the kind's own length.
    fn of_kind(kind: Kind) -> Type;

    /// Returns the type of computed whole numbers, one letter longer than a column's.
    fn integer() -> Type {
        Type { length: 21, ..Type::of_kind(Kind::BigInt) }
    }

    fn unsigned() -> Type {
        Type::integer().with_unsigned(true)
    }

    fn double() -> Type {
        Type::of_kind(Kind::Double)
    }

    fn decimal(precision: u32, scale: u8) -> Type {
        Type { length: precision, scale, ..Type::of_kind(Kind::Decimal) }
    }

    fn text(length: u32, collation: Collation) -> Type {
        Type { length, collation, ..Type::of_kind(Kind::VarChar) }
    }

    fn bytes(length: u32) -> Type {
        Type { length, ..Type::of_kind(Kind::VarBinary) }
    }

    /// Returns DATE, TIME, DATETIME or TIMESTAMP with these fractional digits.
    fn temporal(kind: Kind, scale: u8) -> Type {
        Type { scale, ..Type::of_kind(kind) }
    }

    /// Returns the type that a value has by itself: of parameters, and of values that have lost their type.
    fn of(value: &Value) -> Type {
        match value {
            Value::Null => Type::null(),
            Value::Int(_) => Type::integer(),
            Value::UInt(_) => Type::unsigned(),
            Value::Decimal(decimal) => {
                Type::decimal(decimal.digits().max(u32::from(decimal.scale())), decimal.bounded_scale())
            }
            Value::Float(_) => Type::of_kind(Kind::Float),
            Value::Double(_) => Type::double(),
            Value::Text(text) => Type::text(text.len() as u32, Collation::DEFAULT),
            Value::Bytes(bytes) => Type::bytes(bytes.len() as u32),
            Value::Date(_) => Type::of_kind(Kind::Date),
            Value::Time(time) => Type::temporal(Kind::Time, scale_of(time.micros())),
            Value::DateTime(at) => Type::temporal(Kind::DateTime, scale_of(at.micros_of_day())),
            Value::Timestamp(Timestamp(at)) => Type::temporal(Kind::Timestamp, scale_of(*at)),
            Value::Interval(_) | Value::Array(_) | Value::Record(_) => {
                Type::text(value.to_string().len() as u32, Collation::DEFAULT)
            }
            Value::Json(_) => Type::of_kind(Kind::Json),
        }
    }

    fn kind(&self) -> Kind;

    /// Returns whether the type is a number declared UNSIGNED, or a whole number without a sign.
    fn is_unsigned(&self) -> bool;

    fn has_zerofill(&self) -> bool;

    /// Returns the same type as another kind. Length, scale and collation stay.
    #[must_use]
    fn with_kind(self, kind: Kind) -> Type;

    #[must_use]
    fn with_unsigned(self, unsigned: bool) -> Type;

    #[must_use]
    fn with_zerofill(self, zerofill: bool) -> Type;

    /// Integers of this kind lie between these, both included. `None` for other kinds.
    fn integer_range(&self) -> Option<(i64, u64)>;

    /// Returns the name that CREATE TABLE and information_schema's COLUMN_TYPE write, without the collation.
    fn name(&self) -> String;

    fn charset(&self) -> Charset;

    /// Returns whether values are strings of bytes or characters, ENUM and SET among them and JSON not.
    fn is_string(&self) -> bool;

    /// Returns the longest that a value can be in bytes, where the kind bounds it.
    fn byte_length(&self) -> u32;
}

impl MysqlType for Type {
    fn of_kind(kind: Kind) -> Type {
        let collation = if kind.is_text() || kind == Kind::Json { Collation::DEFAULT } else { Collation::Binary };
        declared(kind, false, kind.default_length(), collation)
    }

    #[inline]
    fn kind(&self) -> Kind {
        match self.id.0 & MYSQL != 0 {
            true => KINDS[(self.id.0 & 0xff) as usize],
            false => kind_of_storage(self),
        }
    }

    #[inline]
    fn is_unsigned(&self) -> bool {
        match self.id.0 & MYSQL != 0 {
            true => self.id.0 & UNSIGNED != 0,
            false => matches!(self.storage, Storage::Int { bytes: _, signed: false }),
        }
    }

    fn has_zerofill(&self) -> bool {
        self.id.0 & MYSQL != 0 && self.attributes & ZEROFILL != 0
    }

    fn with_kind(self, kind: Kind) -> Type {
        let unsigned = self.is_unsigned();
        Type { storage: kind.storage(unsigned), id: type_id(kind, unsigned), ..self }
    }

    fn with_unsigned(self, unsigned: bool) -> Type {
        let kind = self.kind();
        Type { storage: kind.storage(unsigned), id: type_id(kind, unsigned), ..self }
    }

    fn with_zerofill(self, zerofill: bool) -> Type {
        Type { attributes: if zerofill { ZEROFILL } else { 0 }, ..self }
    }

    fn integer_range(&self) -> Option<(i64, u64)> {
        let bits = match self.kind() {
            Kind::TinyInt if self.attributes & BOOLEAN != 0 => return Some((0, 1)),
            Kind::TinyInt => 8,
            Kind::SmallInt => 16,
            Kind::MediumInt => 24,
            Kind::Int => 32,
            Kind::BigInt => 64,
            _ => return None,
        };
        Some(match self.is_unsigned() {
            true => (0, u64::MAX >> (64 - bits)),
            false => (i64::MIN >> (64 - bits), (i64::MAX >> (64 - bits)) as u64),
        })
    }

    fn name(&self) -> String {
        if let Some(form) = seen_type(self) {
            return form.name();
        }
        if let Some(name) = opaque_name(self) {
            return name.into_owned();
        }
        let base = self.kind().name();
        let mut name = match self.kind() {
            Kind::TinyInt if self.length == 1 && !self.is_unsigned() => "tinyint(1)".to_owned(),
            _ if self.kind().is_integer() && self.has_zerofill() => format!("{base}({})", self.length),
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
        if self.is_unsigned() && (self.kind().is_number() || self.kind() == Kind::Decimal) {
            name.push_str(" unsigned");
        }
        if self.has_zerofill() {
            name.push_str(" zerofill");
        }
        name
    }

    fn charset(&self) -> Charset {
        self.collation.charset()
    }

    fn is_string(&self) -> bool {
        self.kind().is_text() || self.kind().is_bytes()
    }

    fn byte_length(&self) -> u32 {
        match self.kind() {
            Kind::Char | Kind::VarChar => self.length.saturating_mul(self.charset().max_bytes()),
            _ => self.length,
        }
    }
}

/// MySQL's view of an expression's type.
pub trait MysqlExpr: Sized {
    /// Returns a literal of a whole number. Its length has a place for the sign.
    fn integer(number: i64) -> Expr;

    fn kind(&self) -> Kind;

    /// Prepares the expression to go into a column: one of numbers, or of characters, takes all digits of a quotient.
    fn keep_digits(&mut self, column: &Type);
}

impl MysqlExpr for Expr {
    fn integer(number: i64) -> Expr {
        let length = number.unsigned_abs().max(1).ilog10() + 2;
        Expr::Literal(Value::Int(number), Type { length, nullable: false, ..Type::integer() })
    }

    fn kind(&self) -> Kind {
        self.carried().map_or(Kind::BigInt, Type::kind)
    }

    fn keep_digits(&mut self, column: &Type) {
        if column.kind().is_number() || column.kind().is_text() {
            self.keep_all_digits();
        }
    }
}

/// Returns the kind of a type that MySQL did not declare.
fn kind_of_storage(ty: &Type) -> Kind {
    if ty.id == TypeId::NULL {
        return Kind::Null;
    }
    match ty.storage {
        Storage::Int { bytes: 1, .. } => Kind::TinyInt,
        Storage::Int { bytes: 2, .. } => Kind::SmallInt,
        Storage::Int { bytes: 4, .. } => Kind::Int,
        Storage::Int { .. } => Kind::BigInt,
        Storage::Float4 => Kind::Float,
        Storage::Float8 => Kind::Double,
        Storage::Decimal => Kind::Decimal,
        Storage::Text if ty.length <= 16_383 => Kind::VarChar,
        Storage::Text => Kind::LongText,
        Storage::Bytes if ty.length <= 65_535 => Kind::VarBinary,
        Storage::Bytes => Kind::LongBlob,
        Storage::Date => Kind::Date,
        Storage::Time => Kind::Time,
        Storage::Timestamp => Kind::DateTime,
        Storage::TimestampTz => Kind::Timestamp,
        Storage::Json | Storage::Jsonb => Kind::Json,
        Storage::Enum => Kind::Enum,
        Storage::Set => Kind::Set,
        Storage::Bit => Kind::Bit,
        // Shown as a text; MySQL has no such values.
        Storage::Interval | Storage::Array | Storage::Record | Storage::Keyed => Kind::VarChar,
    }
}

fn scale_of(micros: i64) -> u8 {
    if micros % datum::temporal::MICROS_PER_SECOND == 0 { 0 } else { 6 }
}

impl Kind {
    /// Returns the form of the kind's values in rows and keys. A bare NULL has that of a text, which any value can be shown as.
    #[inline]
    pub const fn storage(self, unsigned: bool) -> Storage {
        const fn int(bytes: u8, unsigned: bool) -> Storage {
            Storage::Int { bytes, signed: !unsigned }
        }
        match self {
            Kind::TinyInt => int(1, unsigned),
            Kind::SmallInt => int(2, unsigned),
            Kind::MediumInt | Kind::Int => int(4, unsigned),
            Kind::BigInt => int(8, unsigned),
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
