//! The types of system tables' columns.

use crate::types::{Collation, Kind, Type, declared};

pub const LONG_TEXT: Type = declared(Kind::LongText, false, (u32::MAX, 0), Collation::Utf8BmpGeneralCi);
pub const NUMBER: Type = declared(Kind::BigInt, true, (21, 0), Collation::Binary);
pub const DATE_TIME: Type = declared(Kind::DateTime, false, (19, 0), Collation::Binary);
pub const TIME: Type = declared(Kind::Time, false, (10, 0), Collation::Binary);
/// A point in time, with milliseconds.
pub const MOMENT: Type = declared(Kind::Timestamp, false, (19, 3), Collation::Binary);

/// Returns the type of texts of at most `length` characters.
pub const fn chars(length: u32) -> Type {
    declared(Kind::VarChar, false, (length, 0), Collation::Utf8BmpGeneralCi)
}
