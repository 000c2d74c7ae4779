//! Types of columns and expressions, and the description of a result column.
//!
//! A `Type` has a storage type, by which the core works, and a number under which its dialect declared it. The core compares these numbers and stores them, and never looks into them: the dialect alone
//! knows names, limits and how a value is shown. A text's collation stands in its type and nowhere else: a `Value::Text` does not know how to be compared.

use std::sync::Arc;

use datum::{Shape, Storage};

pub use datum::Collation;

/// The number of a declared type. Each dialect has its own range of numbers, so a number names one type of one dialect.
///
/// Numbers below 16 belong to the core. Those from 16 to 2^31 - 1 are PostgreSQL's object identifiers of types, those from 2^31 on MySQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

impl TypeId {
    /// No dialect declared the type: each describes it by storage type, length and scale.
    pub const UNDECLARED: TypeId = TypeId(0);
    /// The type of a bare NULL.
    pub const NULL: TypeId = TypeId(1);
    /// The type of conditions.
    pub const TRUTH: TypeId = TypeId(2);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// The form of the values in memory, rows and keys.
    pub storage: Storage,
    pub id: TypeId,
    /// Bits of the dialect that change how a value is shown and not its meaning.
    pub attributes: u8,
    /// The declared length, in the dialect's unit.
    pub length: u32,
    /// Digits of a decimal's or a second's fraction. A decimal is rounded to them, unless they are `ANY_SCALE`.
    pub scale: u8,
    pub nullable: bool,
    /// Of texts and of members; `Collation::Binary` elsewhere.
    pub collation: Collation,
    /// The members of an enumeration or a set.
    pub members: Option<Arc<[Box<str>]>>,
}

impl Type {
    /// The scale of decimals of which each has its own.
    pub const ANY_SCALE: u8 = u8::MAX;

    /// Returns a type without members and attributes, also in constants.
    pub const fn plain(
        storage: Storage,
        id: TypeId,
        (length, scale): (u32, u8),
        nullable: bool,
        collation: Collation,
    ) -> Type {
        Type { storage, id, attributes: 0, length, scale, nullable, collation, members: None }
    }

    /// Returns a type that no dialect declared. Texts of it compare by their bytes.
    pub const fn undeclared(storage: Storage, size: (u32, u8), nullable: bool) -> Type {
        Type::plain(storage, TypeId::UNDECLARED, size, nullable, Collation::Binary)
    }

    /// Returns the type of a bare NULL. It is stored as a text, for any value can be shown as one.
    pub const fn null() -> Type {
        Type::plain(Storage::Text, TypeId::NULL, (0, 0), true, Collation::Binary)
    }

    /// Returns the type of conditions, whose values are 1, 0 and NULL.
    pub const fn truth() -> Type {
        Type::plain(Storage::Int { bytes: 8, signed: true }, TypeId::TRUTH, (1, 0), true, Collation::Binary)
    }

    #[must_use]
    pub fn with_nullable(mut self, nullable: bool) -> Type {
        self.nullable = nullable;
        self
    }

    /// Returns whether the type is that of conditions.
    pub fn is_truth(&self) -> bool {
        self.id == TypeId::TRUTH
    }

    /// Returns whether the types differ in nothing but whether NULL is one of their values.
    pub fn is_same_but_null(&self, other: &Type) -> bool {
        let Type { storage, id, attributes, length, scale, nullable: _, collation, members } = other;
        (self.storage, self.id, self.attributes) == (*storage, *id, *attributes)
            && (self.length, self.scale, self.collation) == (*length, *scale, *collation)
            && self.members == *members
    }

    /// Returns the storage type with the collation, for the codecs.
    #[inline]
    pub fn shape(&self) -> Shape {
        Shape { storage: self.storage, collation: self.collation }
    }

    pub fn members(&self) -> &[Box<str>] {
        self.members.as_deref().unwrap_or(&[])
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
