//! Storage types: the closed set of forms that a value can have in rows, keys and memory.
//!
//! A dialect declares types: their names, display widths, limits, members. Code that every dialect shares matches on the storage type alone. So a
//! storage type fixes the variant of `Value`, the bytes of the row codec and the form of the key codec.

use crate::collation::Collation;
use crate::temporal::Span;

/// A form of values. Each variant names the `Value` variant that it stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// `Value::Int` where signed, `Value::UInt` where not; 1, 2, 4 or 8 bytes in a row.
    Int {
        bytes: u8,
        signed: bool,
    },
    /// `Value::Float`.
    Float4,
    /// `Value::Double`.
    Float8,
    Decimal,
    Text,
    Bytes,
    Date,
    /// A time of day or a length of time.
    Time,
    /// `Value::DateTime`: the reading of a wall clock, without a zone.
    Timestamp,
    /// `Value::Timestamp`: an instant.
    TimestampTz,
    Json,
    /// `Value::UInt`: the number of a member, from 1.
    Enum,
    /// `Value::UInt`: one bit for each member.
    Set,
    /// `Value::UInt`: up to 64 bits.
    Bit,
    /// `Value::Interval`: months, days and microseconds.
    Interval,
    /// `Value::Json` in the order of jsonb: by kind, then by size, then by parts.
    Jsonb,
    /// `Value::Array`, which knows the shape of its elements. The collation of the shape is that of the elements.
    Array,
    /// `Value::Record`, which knows its fields.
    Record,
    /// `Value::Bytes`: a key, by which alone the values compare, and what tells equal ones apart (`keyed`).
    Keyed,
}

/// A storage type with the collation of its texts: all that the codecs have to know of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub storage: Storage,
    /// `Collation::Binary` where the values are not texts.
    pub collation: Collation,
}

const _: () = assert!(size_of::<Shape>() <= 4);

impl Storage {
    /// The bytes that a value takes in the fixed part of a row. `None` for values of any length.
    pub fn fixed_width(self) -> Option<usize> {
        Some(match self {
            Storage::Int { bytes, .. } => usize::from(bytes),
            Storage::Enum => 2,
            Storage::Float4 | Storage::Date => 4,
            Storage::Float8
            | Storage::Bit
            | Storage::Set
            | Storage::Time
            | Storage::Timestamp
            | Storage::TimestampTz => 8,
            Storage::Interval => Span::BYTES,
            Storage::Decimal
            | Storage::Text
            | Storage::Bytes
            | Storage::Json
            | Storage::Jsonb
            | Storage::Array
            | Storage::Record
            | Storage::Keyed => return None,
        })
    }

    /// Every storage type, at the place of its number in files: new ones go to the end.
    const ALL: [Storage; 26] = [
        Storage::Int { bytes: 1, signed: true },
        Storage::Int { bytes: 1, signed: false },
        Storage::Int { bytes: 2, signed: true },
        Storage::Int { bytes: 2, signed: false },
        Storage::Int { bytes: 4, signed: true },
        Storage::Int { bytes: 4, signed: false },
        Storage::Int { bytes: 8, signed: true },
        Storage::Int { bytes: 8, signed: false },
        Storage::Float4,
        Storage::Float8,
        Storage::Decimal,
        Storage::Text,
        Storage::Bytes,
        Storage::Date,
        Storage::Time,
        Storage::Timestamp,
        Storage::TimestampTz,
        Storage::Json,
        Storage::Enum,
        Storage::Set,
        Storage::Bit,
        Storage::Interval,
        Storage::Jsonb,
        Storage::Array,
        Storage::Record,
        Storage::Keyed,
    ];

    /// Returns the number that stands for the storage type in files. It never changes.
    pub fn code(self) -> u8 {
        Storage::ALL.iter().position(|storage| *storage == self).unwrap_or_else(|| unreachable!("{self:?}")) as u8
    }

    /// Returns the storage type with that number in files.
    pub fn of_code(code: u8) -> Option<Storage> {
        Storage::ALL.get(usize::from(code)).copied()
    }

    /// True for the types whose values are strings of characters or bytes.
    pub fn is_string(self) -> bool {
        matches!(self, Storage::Text | Storage::Bytes)
    }
}

impl From<Storage> for Shape {
    /// Texts compare by their bytes.
    fn from(storage: Storage) -> Shape {
        Shape { storage, collation: Collation::Binary }
    }
}
