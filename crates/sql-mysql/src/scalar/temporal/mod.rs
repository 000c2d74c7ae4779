//! Dates and times as MySQL reads and writes them. The values themselves, the calendar and the zones are in `datum::temporal`.

mod format;
mod interval;
mod locale;
mod parse;
mod zone;

pub use datum::temporal::*;
pub use format::{date_format, parse_by_format, time_format};
pub use interval::Unit;
pub use locale::{ENGLISH, Locale, locale};
pub use parse::{
    Parsed, Strictness, datetime_from_number, parse_datetime, parse_time, parse_whole_datetime, time_from_number,
};
pub use zone::{parse_zone, timestamp};

#[cfg(test)]
mod tests;
