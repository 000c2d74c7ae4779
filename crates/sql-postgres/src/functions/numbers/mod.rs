//! to_char and to_number of numbers.

mod format;
pub mod to_char;
pub mod to_number;
