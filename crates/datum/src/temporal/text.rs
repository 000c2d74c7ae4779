//! Dates and times as text: `2026-11-21 12:34:56.789`. A precision (`{:.3}`) is the number of fractional digits, 0 to 6, cut and not rounded.

use std::fmt::{self, Display};

use super::{Date, DateTime, Time};

impl Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn fraction(f: &mut fmt::Formatter<'_>, micros: u32) -> fmt::Result {
    match f.precision().unwrap_or(0).min(6) {
        0 => Ok(()),
        digits => write!(f, ".{:0digits$}", micros / 10u32.pow(6 - digits as u32)),
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds, micros) = self.parts();
        let sign = if self.is_negative() { "-" } else { "" };
        write!(f, "{sign}{hours:02}:{minutes:02}:{seconds:02}")?;
        fraction(f, micros)
    }
}

impl Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds, micros) = self.clock();
        write!(f, "{} {hours:02}:{minutes:02}:{seconds:02}", self.date)?;
        fraction(f, micros)
    }
}
