//! Dates and times.
//!
//! `Date`, `Time` and `DateTime` are readings of a wall clock and compare field by field. They can hold what no calendar has: zero dates, months and days
//! of 0, and with a permissive dialect 31 February. A `Timestamp` is an instant, in UTC. Only a `Zone` converts between the two.

mod arithmetic;
pub mod calendar;
mod interval;
mod since_2000;
mod span;
mod text;
mod zone;

pub use arithmetic::Rounding;
pub use calendar::{WeekMode, day_number, days_in_month, from_day_number};
pub use interval::Interval;
pub use span::Span;
pub use zone::Zone;

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Bits that hold the microseconds of a day.
const MICROS_BITS: u32 = 37;
const _: () = assert!(MICROS_PER_DAY <= 1 << MICROS_BITS);

/// Year, month, day. Each may be zero; `is_real` tells whether the day exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

/// A length of time or a time of day: -838:59:59.999999 to 838:59:59.999999, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

/// A date and the microseconds since its midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DateTime {
    pub date: Date,
    micros: MicrosOfDay,
}

/// Less than a day. Two fields of 32 bits, so that a `DateTime` takes 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
struct MicrosOfDay {
    seconds: u32,
    micros: u32,
}

/// An instant: microseconds since 1970 in UTC. Zero stands for the zero date, which as an instant would be lost otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Date {
    pub const ZERO: Date = Date { year: 0, month: 0, day: 0 };

    pub fn new(year: u16, month: u8, day: u8) -> Date {
        Date { year, month, day }
    }

    pub fn is_zero(self) -> bool {
        self == Date::ZERO
    }

    /// True where the month or the day is zero: the date of a whole year or month, or the zero date.
    pub fn has_zero_part(self) -> bool {
        self.month == 0 || self.day == 0
    }

    /// Returns the form of rows and keys, which orders as dates do: year, 4 bits of month, 5 bits of day.
    pub fn to_bits(self) -> u32 {
        u32::from(self.year) << 9 | u32::from(self.month) << 5 | u32::from(self.day)
    }

    pub fn from_bits(bits: u32) -> Date {
        Date::new((bits >> 9) as u16, (bits >> 5 & 15) as u8, (bits & 31) as u8)
    }

    /// Returns the digits as a number: 20261121.
    pub fn number(self) -> i64 {
        i64::from(self.year) * 10_000 + i64::from(self.month) * 100 + i64::from(self.day)
    }
}

impl Time {
    pub const MAX: Time = Time((838 * 3600 + 59 * 60 + 59) * MICROS_PER_SECOND);

    /// Clamps to the range.
    pub fn from_micros(micros: i64) -> Time {
        Time(micros.clamp(-Time::MAX.0, Time::MAX.0))
    }

    /// `None` outside the range.
    pub fn checked(micros: i64) -> Option<Time> {
        (micros.abs() <= Time::MAX.0).then_some(Time(micros))
    }

    pub fn micros(self) -> i64 {
        self.0
    }

    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Returns hours, minutes, seconds and microseconds, without the sign.
    pub fn parts(self) -> (u32, u32, u32, u32) {
        let micros = self.0.unsigned_abs();
        let seconds = micros / 1_000_000;
        ((seconds / 3600) as u32, (seconds / 60 % 60) as u32, (seconds % 60) as u32, (micros % 1_000_000) as u32)
    }

    /// Returns the digits as a number, 123456 for 12:34:56, without the fraction.
    pub fn number(self) -> i64 {
        let (hours, minutes, seconds, _) = self.parts();
        let number = i64::from(hours) * 10_000 + i64::from(minutes) * 100 + i64::from(seconds);
        if self.is_negative() { -number } else { number }
    }
}

impl DateTime {
    pub const ZERO: DateTime = DateTime { date: Date::ZERO, micros: MicrosOfDay { seconds: 0, micros: 0 } };

    /// `micros` counts from midnight. Panics for a day or more.
    pub fn new(date: Date, micros: i64) -> DateTime {
        assert!((0..MICROS_PER_DAY).contains(&micros));
        let seconds = (micros / MICROS_PER_SECOND) as u32;
        DateTime { date, micros: MicrosOfDay { seconds, micros: (micros % MICROS_PER_SECOND) as u32 } }
    }

    pub fn at(date: Date, hour: u32, minute: u32, second: u32, micros: u32) -> DateTime {
        let seconds = i64::from(hour * 3600 + minute * 60 + second);
        DateTime::new(date, seconds * MICROS_PER_SECOND + i64::from(micros))
    }

    /// Returns the form of rows and keys, which orders as readings do: the date's bits, then 37 bits of microseconds, of which a day has fewer.
    pub fn to_bits(self) -> u64 {
        u64::from(self.date.to_bits()) << MICROS_BITS | self.micros_of_day() as u64
    }

    /// `None` for bits with more microseconds than a day has: they come from disk.
    pub fn from_bits(bits: u64) -> Option<DateTime> {
        let micros = (bits & ((1 << MICROS_BITS) - 1)) as i64;
        (micros < MICROS_PER_DAY).then(|| DateTime::new(Date::from_bits((bits >> MICROS_BITS) as u32), micros))
    }

    pub fn micros_of_day(self) -> i64 {
        i64::from(self.micros.seconds) * MICROS_PER_SECOND + i64::from(self.micros.micros)
    }

    pub fn time(self) -> Time {
        Time(self.micros_of_day())
    }

    pub fn is_zero(self) -> bool {
        self == DateTime::ZERO
    }

    /// Returns hour, minute, second and microsecond.
    pub fn clock(self) -> (u32, u32, u32, u32) {
        self.time().parts()
    }

    /// Returns the digits as a number, 20261121123456, without the fraction.
    pub fn number(self) -> i64 {
        self.date.number() * 1_000_000 + self.time().number()
    }
}

impl From<Date> for DateTime {
    fn from(date: Date) -> DateTime {
        DateTime { date, micros: MicrosOfDay::default() }
    }
}

impl Timestamp {
    pub const ZERO: Timestamp = Timestamp(0);

    pub fn now() -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |since| since.as_micros() as i64))
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests;
