//! MySQL's numbers for a column: type codes and flags. Both SQL doors send them in column metadata.

use crate::types::{Column, Kind, MysqlType as _};

/// Type codes of columns and parameters.
pub mod code {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const BOOL: u8 = 244;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    /// The two codes before this one are MEDIUM_BLOB and LONG_BLOB.
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
}

/// Flags of a column.
pub mod flag {
    pub const NOT_NULL: u16 = 1;
    pub const PRIMARY_KEY: u16 = 1 << 1;
    pub const UNIQUE_KEY: u16 = 1 << 2;
    pub const MULTIPLE_KEY: u16 = 1 << 3;
    pub const BLOB: u16 = 1 << 4;
    pub const UNSIGNED: u16 = 1 << 5;
    pub const ZEROFILL: u16 = 1 << 6;
    pub const BINARY: u16 = 1 << 7;
    pub const ENUM: u16 = 1 << 8;
    pub const AUTO_INCREMENT: u16 = 1 << 9;
    pub const TIMESTAMP: u16 = 1 << 10;
    pub const SET: u16 = 1 << 11;
    pub const NO_DEFAULT_VALUE: u16 = 1 << 12;
    pub const ON_UPDATE_NOW: u16 = 1 << 13;
    pub const PART_KEY: u16 = 1 << 14;
}

/// Returns the type code of a column in a table. ENUM and SET have codes of their own, and VARCHAR is 15; MySQL's protocol sends all of these as strings.
pub fn type_code(kind: Kind) -> u8 {
    match kind {
        Kind::Null => code::NULL,
        Kind::TinyInt => code::TINY,
        Kind::SmallInt => code::SHORT,
        Kind::MediumInt => code::INT24,
        Kind::Int => code::LONG,
        Kind::BigInt => code::LONGLONG,
        Kind::Decimal => code::NEWDECIMAL,
        Kind::Float => code::FLOAT,
        Kind::Double => code::DOUBLE,
        Kind::Bit => code::BIT,
        Kind::Char | Kind::Binary => code::STRING,
        Kind::VarChar | Kind::VarBinary => code::VARCHAR,
        Kind::Enum => code::ENUM,
        Kind::Set => code::SET,
        Kind::TinyText
        | Kind::Text
        | Kind::MediumText
        | Kind::LongText
        | Kind::TinyBlob
        | Kind::Blob
        | Kind::MediumBlob
        | Kind::LongBlob => code::BLOB,
        Kind::Date => code::DATE,
        Kind::Time => code::TIME,
        Kind::DateTime => code::DATETIME,
        Kind::Timestamp => code::TIMESTAMP,
        Kind::Year => code::YEAR,
        Kind::Json => code::JSON,
    }
}

/// Returns the flags that both protocols send alike. BLOB, UNSIGNED, BINARY, TIMESTAMP and PART_KEY differ and are added by the door.
pub fn common_flags(column: &Column) -> u16 {
    let (ty, of) = (&column.ty, column.flags);
    set_bits([
        (!ty.nullable, flag::NOT_NULL),
        (of.primary_key, flag::PRIMARY_KEY),
        (of.unique_key, flag::UNIQUE_KEY),
        (of.multiple_key, flag::MULTIPLE_KEY),
        (ty.has_zerofill() || ty.kind() == Kind::Year, flag::ZEROFILL),
        (ty.kind() == Kind::Enum, flag::ENUM),
        (of.auto_increment, flag::AUTO_INCREMENT),
        (ty.kind() == Kind::Set, flag::SET),
        (of.no_default, flag::NO_DEFAULT_VALUE),
        (of.on_update_now, flag::ON_UPDATE_NOW),
    ])
}

/// Returns the bits whose condition holds.
pub fn set_bits<const N: usize>(bits: [(bool, u16); N]) -> u16 {
    bits.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, bit)| all | bit)
}
