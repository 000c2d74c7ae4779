//! The kinds of values, and their notation: `512mb`, `10s`, `on`.
//!
//! Sizes follow Redis: `kb`, `mb`, `gb` are powers of 1024; `k`, `m`, `g` are powers of 1000. Internally a size is in bytes and a time in microseconds.

use std::fmt;
use std::ops::RangeInclusive;

use door_redis::{event_flags, output_limits};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;
pub const TIB: u64 = 1 << 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Text(String),
}

impl Value {
    pub fn number(&self) -> u64 {
        match self {
            Value::Number(n) => *n,
            Value::Text(text) => unreachable!("a setting of text was read as a number: {text}"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            Value::Number(n) => unreachable!("a setting of numbers was read as text: {n}"),
        }
    }
}

/// The unit of a bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

impl Unit {
    pub fn micros(self) -> u64 {
        match self {
            Unit::Microseconds => 1,
            Unit::Milliseconds => 1_000,
            Unit::Seconds => 1_000_000,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::Seconds => "s",
        }
    }
}

/// The value of a time that is `off`.
pub const OFF: u64 = u64::MAX;
const HOUR_US: u64 = 3_600_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Switch,
    Count(RangeInclusive<u64>),
    Bytes(RangeInclusive<u64>),
    /// The range is in the unit.
    Time(Unit, RangeInclusive<u64>),
    /// A time of at most an hour, or `off`, which is stored as `OFF`.
    TimeOrOff(Unit),
    OneOf(&'static [&'static str]),
    /// Letters of classes of events: Redis' `notify-keyspace-events`.
    EventFlags,
    /// Four words for each class of clients: Redis' `client-output-buffer-limit`.
    OutputLimits,
    Text,
    /// Text that is never shown.
    Secret,
}

impl Kind {
    /// Parses a value. The error is the text of `expected`.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let number = match self {
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                "on" | "yes" | "true" | "1" => Some(1),
                "off" | "no" | "false" | "0" => Some(0),
                _ => None,
            },
            Kind::Count(range) => text.parse().ok().filter(|n| range.contains(n)),
            Kind::Bytes(range) => scaled(text, bytes_of).filter(|n| range.contains(n)),
            Kind::Time(unit, range) => {
                let micros = scaled(text, |word| if word.is_empty() { Some(unit.micros()) } else { micros_of(word) });
                micros.filter(|n| (range.start() * unit.micros()..=range.end() * unit.micros()).contains(n))
            }
            Kind::TimeOrOff(_) if matches!(text.to_ascii_lowercase().as_str(), "off" | "no" | "-1") => Some(OFF),
            Kind::TimeOrOff(unit) => {
                return Kind::Time(*unit, 0..=HOUR_US / unit.micros()).parse(text).map_err(|_| self.expected());
            }
            Kind::OneOf(words) => {
                let word = words.iter().find(|w| w.eq_ignore_ascii_case(text));
                return word.map(|w| Value::Text(w.to_string())).ok_or_else(|| self.expected());
            }
            Kind::EventFlags => {
                return event_flags::changed(text).map(Value::Text).map_err(|_| self.expected());
            }
            Kind::OutputLimits => {
                let read = output_limits::changed(output_limits::DEFAULT, text);
                return read.map(Value::Text).map_err(|_| self.expected());
            }
            Kind::Text | Kind::Secret => return Ok(Value::Text(text.to_string())),
        };
        number.map(Value::Number).ok_or_else(|| self.expected())
    }

    /// Formats a value so that `parse` reads it back.
    pub fn print(&self, value: &Value) -> String {
        match (self, value) {
            (Kind::Switch, Value::Number(n)) => if *n == 0 { "off" } else { "on" }.to_string(),
            (Kind::Bytes(_), Value::Number(n)) => print_bytes(*n),
            (Kind::TimeOrOff(_), Value::Number(OFF)) => "off".to_string(),
            (Kind::Time(unit, _) | Kind::TimeOrOff(unit), Value::Number(n)) => print_time(*n, *unit),
            (Kind::Secret, Value::Text(text)) if !text.is_empty() => "(set)".to_string(),
            (_, Value::Number(n)) => n.to_string(),
            (_, Value::Text(text)) => text.clone(),
        }
    }

    /// Returns the text that completes "expected ...".
    pub fn expected(&self) -> String {
        match self {
            Kind::Switch => "on or off".into(),
            Kind::Count(range) if *range.end() == u64::MAX => format!("a number of at least {}", range.start()),
            Kind::Count(range) => format!("a number from {} to {}", range.start(), range.end()),
            Kind::Bytes(range) => {
                format!("a size like 512mb, from {} to {}", print_bytes(*range.start()), print_bytes(*range.end()))
            }
            Kind::Time(unit, range) => {
                let print = |n: &u64| print_time(n.saturating_mul(unit.micros()), *unit);
                format!(
                    "a time like 500ms or 10s, from {} to {} (a bare number is in {})",
                    print(range.start()),
                    print(range.end()),
                    unit.word()
                )
            }
            Kind::TimeOrOff(unit) => {
                format!("off, or a time like 10ms, up to 1 h (a bare number is in {})", unit.word())
            }
            Kind::OneOf(words) => format!("one of {}", words.join(", ")),
            Kind::EventFlags => "letters out of Ag$lshzxeKEtmdn".into(),
            Kind::OutputLimits => "normal, replica or pubsub, two sizes and a number of seconds".into(),
            Kind::Text | Kind::Secret => "text".into(),
        }
    }

    /// Returns the factor from a bare number to the internal unit.
    pub fn unit(&self) -> u64 {
        match self {
            Kind::Time(unit, _) | Kind::TimeOrOff(unit) => unit.micros(),
            _ => 1,
        }
    }

    /// Returns one word for `--help`.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::Switch => "switch",
            Kind::Count(_) => "number",
            Kind::Bytes(_) => "size",
            Kind::Time(..) | Kind::TimeOrOff(_) => "time",
            Kind::OneOf(_) => "choice",
            Kind::EventFlags | Kind::OutputLimits | Kind::Text => "text",
            Kind::Secret => "secret",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(n) => write!(f, "{n}"),
            Value::Text(text) => write!(f, "{text}"),
        }
    }
}

/// Parses a whole number followed by a unit.
fn scaled(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    number.checked_mul(factor(text[digits..].trim())?)
}

fn bytes_of(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" | "kib" => KIB,
        "m" => 1_000_000,
        "mb" | "mib" => MIB,
        "g" => 1_000_000_000,
        "gb" | "gib" => GIB,
        "t" => 1_000_000_000_000,
        "tb" | "tib" => TIB,
        _ => return None,
    })
}

fn micros_of(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "us" => 1,
        "ms" => 1_000,
        "s" | "sec" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    })
}

pub fn print_bytes(bytes: u64) -> String {
    for (factor, word) in [(TIB, "tb"), (GIB, "gb"), (MIB, "mb"), (KIB, "kb")] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{word}", bytes / factor);
        }
    }
    bytes.to_string()
}

/// Formats a time in seconds or milliseconds if it is a whole number of them.
fn print_time(micros: u64, unit: Unit) -> String {
    for (factor, word) in [(1_000_000, "s"), (1_000, "ms")] {
        if micros >= factor && micros.is_multiple_of(factor) {
            return format!("{}{word}", micros / factor);
        }
    }
    if micros == 0 { format!("0{}", unit.word()) } else { format!("{micros}us") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_redis() {
        let size = Kind::Bytes(0..=u64::MAX);
        for (text, bytes) in
            [("512mb", 512 << 20), ("1k", 1000), ("1kb", 1024), ("4 GiB", 4 << 30), ("17", 17), ("2TB", 2 << 40)]
        {
            assert_eq!(size.parse(text), Ok(Value::Number(bytes)), "{text}");
        }
        for text in ["", "mb", "1.5gb", "-1", "12 parsecs", "99999999999999tb"] {
            assert!(size.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bare_time_has_the_unit_of_its_setting() {
        let (ms, s) = (Kind::Time(Unit::Milliseconds, 1..=60_000), Kind::Time(Unit::Seconds, 0..=7200));
        assert_eq!(ms.parse("500"), Ok(Value::Number(500_000)));
        assert_eq!(ms.parse("10s"), Ok(Value::Number(10_000_000)));
        assert_eq!(s.parse("30"), Ok(Value::Number(30_000_000)));
        assert_eq!(s.parse("2min"), Ok(Value::Number(120_000_000)));
        assert!(ms.parse("0").unwrap_err().contains("from 1ms to 60s"));
        assert!(s.parse("3h").is_err());
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let kinds = [
            (Kind::Switch, vec![0, 1]),
            (Kind::Count(0..=u64::MAX), vec![0, 7, u64::MAX]),
            (Kind::Bytes(0..=u64::MAX), vec![0, 1, 1023, 1024, 3 << 20, 5 << 30, (5 << 30) + 1]),
            (Kind::Time(Unit::Microseconds, 0..=u64::MAX), vec![0, 1, 999, 1000, 10_000_000, 60_000_000]),
            (Kind::Time(Unit::Seconds, 0..=1 << 40), vec![0, 1_000_000, 7_200_000_000]),
            (Kind::TimeOrOff(Unit::Microseconds), vec![0, 10_000, OFF]),
        ];
        for (kind, numbers) in kinds {
            for n in numbers {
                let text = kind.print(&Value::Number(n));
                assert_eq!(kind.parse(&text), Ok(Value::Number(n)), "{kind:?} {text}");
            }
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(Kind::Secret.print(&Value::Text("hush".into())), "(set)");
        assert_eq!(Kind::Secret.print(&Value::Text(String::new())), "");
    }
}
