//! The templates of `to_char`, `to_date` and `to_timestamp`.
//!
//! A template is parsed into [`Node`]s: fields with their modifiers, and characters between them. `show` writes them, `read` reads them.

mod read;
mod show;

pub use read::{to_date, to_timestamp};
pub use show::{interval_to_char, timestamp_to_char, timestamptz_to_char};

/// A field, or a character between fields.
#[derive(Clone, Copy, Debug)]
enum Node<'a> {
    Field(Field),
    /// A printable ASCII character that is neither letter nor digit.
    Separator(&'a str),
    Space(&'a str),
    Text(&'a str),
}

#[derive(Clone, Copy, Debug)]
struct Field {
    key: &'static Keyword,
    /// `FM`: without padding.
    fills: bool,
    /// `TM`: names of the locale.
    is_local: bool,
    /// `TH` or `th`.
    ordinal: Ordinal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ordinal {
    None,
    Upper,
    Lower,
}

/// A word of templates.
#[derive(Debug)]
struct Keyword {
    name: &'static str,
    kind: Kind,
    /// Its text is digits alone.
    is_digits: bool,
    convention: Convention,
}

/// The calendar that a field belongs to. One template has fields of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Convention {
    Any,
    Gregorian,
    IsoWeek,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Upper,
    Capital,
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// With points between the letters, and in lower case.
    Era(bool, Case),
    Meridian(bool, Case),
    Century,
    DayName(Case),
    DayShort(Case),
    DayOfYear,
    DayOfMonth,
    DayOfWeek,
    /// A fraction of a second with so many digits.
    Fraction(u8),
    Exact,
    Hour24,
    Hour12,
    IsoDayOfYear,
    IsoDay,
    IsoWeek,
    /// The last digits of the year, as many as four.
    IsoYear(u8),
    Julian,
    Minute,
    Month,
    MonthName(Case),
    MonthShort(Case),
    Millisecond,
    Offset,
    Quarter,
    Roman(Case),
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone(Case),
    Microsecond,
    Week,
    WeekOfMonth,
    YearWithComma,
    Year(u8),
}

const fn word(name: &'static str, kind: Kind, is_digits: bool, convention: Convention) -> Keyword {
    Keyword { name, kind, is_digits, convention }
}

use Case::{Capital, Lower, Upper};
use Convention::{Any, Gregorian, IsoWeek};

/// Of those that begin alike the longest is first.
#[rustfmt::skip]
static KEYWORDS: &[Keyword] = &[
    word("A.D.", Kind::Era(true, Upper), false, Any), word("A.M.", Kind::Meridian(true, Upper), false, Any),
    word("AD", Kind::Era(false, Upper), false, Any), word("AM", Kind::Meridian(false, Upper), false, Any),
    word("B.C.", Kind::Era(true, Upper), false, Any), word("BC", Kind::Era(false, Upper), false, Any),
    word("CC", Kind::Century, true, Any), word("DAY", Kind::DayName(Upper), false, Any), word("DDD", Kind::DayOfYear, true, Gregorian),
    word("DD", Kind::DayOfMonth, true, Gregorian), word("DY", Kind::DayShort(Upper), false, Any), word("Day", Kind::DayName(Capital), false, Any),
    word("Dy", Kind::DayShort(Capital), false, Any), word("D", Kind::DayOfWeek, true, Gregorian), word("FF1", Kind::Fraction(1), true, Any),
    word("FF2", Kind::Fraction(2), true, Any), word("FF3", Kind::Fraction(3), true, Any), word("FF4", Kind::Fraction(4), true, Any),
    word("FF5", Kind::Fraction(5), true, Any), word("FF6", Kind::Fraction(6), true, Any), word("FX", Kind::Exact, false, Any),
    word("HH24", Kind::Hour24, true, Any), word("HH12", Kind::Hour12, true, Any), word("HH", Kind::Hour12, true, Any),
    word("IDDD", Kind::IsoDayOfYear, true, IsoWeek), word("ID", Kind::IsoDay, true, IsoWeek), word("IW", Kind::IsoWeek, true, IsoWeek),
    word("IYYY", Kind::IsoYear(4), true, IsoWeek), word("IYY", Kind::IsoYear(3), true, IsoWeek), word("IY", Kind::IsoYear(2), true, IsoWeek),
    word("I", Kind::IsoYear(1), true, IsoWeek), word("J", Kind::Julian, true, Any), word("MI", Kind::Minute, true, Any),
    word("MM", Kind::Month, true, Gregorian), word("MONTH", Kind::MonthName(Upper), false, Gregorian),
    word("MON", Kind::MonthShort(Upper), false, Gregorian), word("MS", Kind::Millisecond, true, Any),
    word("Month", Kind::MonthName(Capital), false, Gregorian), word("Mon", Kind::MonthShort(Capital), false, Gregorian),
    word("OF", Kind::Offset, false, Any), word("P.M.", Kind::Meridian(true, Upper), false, Any), word("PM", Kind::Meridian(false, Upper), false, Any),
    word("Q", Kind::Quarter, true, Any), word("RM", Kind::Roman(Upper), false, Gregorian), word("SSSSS", Kind::SecondOfDay, true, Any),
    word("SSSS", Kind::SecondOfDay, true, Any), word("SS", Kind::Second, true, Any), word("TZH", Kind::ZoneHour, false, Any),
    word("TZM", Kind::ZoneMinute, true, Any), word("TZ", Kind::Zone(Upper), false, Any), word("US", Kind::Microsecond, true, Any),
    word("WW", Kind::Week, true, Gregorian), word("W", Kind::WeekOfMonth, true, Gregorian), word("Y,YYY", Kind::YearWithComma, true, Gregorian),
    word("YYYY", Kind::Year(4), true, Gregorian), word("YYY", Kind::Year(3), true, Gregorian), word("YY", Kind::Year(2), true, Gregorian),
    word("Y", Kind::Year(1), true, Gregorian), word("a.d.", Kind::Era(true, Lower), false, Any), word("a.m.", Kind::Meridian(true, Lower), false, Any),
    word("ad", Kind::Era(false, Lower), false, Any), word("am", Kind::Meridian(false, Lower), false, Any),
    word("b.c.", Kind::Era(true, Lower), false, Any), word("bc", Kind::Era(false, Lower), false, Any), word("cc", Kind::Century, true, Any),
    word("day", Kind::DayName(Lower), false, Any), word("ddd", Kind::DayOfYear, true, Gregorian), word("dd", Kind::DayOfMonth, true, Gregorian),
    word("dy", Kind::DayShort(Lower), false, Any), word("d", Kind::DayOfWeek, true, Gregorian), word("ff1", Kind::Fraction(1), true, Any),
    word("ff2", Kind::Fraction(2), true, Any), word("ff3", Kind::Fraction(3), true, Any), word("ff4", Kind::Fraction(4), true, Any),
    word("ff5", Kind::Fraction(5), true, Any), word("ff6", Kind::Fraction(6), true, Any), word("fx", Kind::Exact, false, Any),
    word("hh24", Kind::Hour24, true, Any), word("hh12", Kind::Hour12, true, Any), word("hh", Kind::Hour12, true, Any),
    word("iddd", Kind::IsoDayOfYear, true, IsoWeek), word("id", Kind::IsoDay, true, IsoWeek), word("iw", Kind::IsoWeek, true, IsoWeek),
    word("iyyy", Kind::IsoYear(4), true, IsoWeek), word("iyy", Kind::IsoYear(3), true, IsoWeek), word("iy", Kind::IsoYear(2), true, IsoWeek),
    word("i", Kind::IsoYear(1), true, IsoWeek), word("j", Kind::Julian, true, Any), word("mi", Kind::Minute, true, Any),
    word("mm", Kind::Month, true, Gregorian), word("month", Kind::MonthName(Lower), false, Gregorian),
    word("mon", Kind::MonthShort(Lower), false, Gregorian), word("ms", Kind::Millisecond, true, Any), word("of", Kind::Offset, false, Any),
    word("p.m.", Kind::Meridian(true, Lower), false, Any), word("pm", Kind::Meridian(false, Lower), false, Any), word("q", Kind::Quarter, true, Any),
    word("rm", Kind::Roman(Lower), false, Gregorian), word("sssss", Kind::SecondOfDay, true, Any), word("ssss", Kind::SecondOfDay, true, Any),
    word("ss", Kind::Second, true, Any), word("tzh", Kind::ZoneHour, false, Any), word("tzm", Kind::ZoneMinute, true, Any),
    word("tz", Kind::Zone(Lower), false, Any), word("us", Kind::Microsecond, true, Any), word("ww", Kind::Week, true, Gregorian),
    word("w", Kind::WeekOfMonth, true, Gregorian), word("y,yyy", Kind::YearWithComma, true, Gregorian), word("yyyy", Kind::Year(4), true, Gregorian),
    word("yyy", Kind::Year(3), true, Gregorian), word("yy", Kind::Year(2), true, Gregorian), word("y", Kind::Year(1), true, Gregorian),
];

const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_ascii_uppercase(),
        Case::Capital => text.to_string(),
        Case::Lower => text.to_ascii_lowercase(),
    }
}

fn parse(template: &str) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let (mut fills, mut is_local) = (false, false);
        if let Some(after) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            (fills, rest) = (true, after);
        } else if let Some(after) = rest.strip_prefix("TM").or_else(|| rest.strip_prefix("tm")) {
            (is_local, rest) = (true, after);
        }
        if let Some(key) = KEYWORDS.iter().find(|key| rest.starts_with(key.name)) {
            rest = &rest[key.name.len()..];
            let mut ordinal = Ordinal::None;
            if let Some(after) = rest.strip_prefix("TH") {
                (ordinal, rest) = (Ordinal::Upper, after);
            } else if let Some(after) = rest.strip_prefix("th") {
                (ordinal, rest) = (Ordinal::Lower, after);
            } else if let Some(after) = rest.strip_prefix("SP") {
                rest = after;
            }
            nodes.push(Node::Field(Field { key, fills, is_local, ordinal }));
        } else if let Some(quoted) = rest.strip_prefix('"') {
            rest = parse_quoted(quoted, &mut nodes);
        } else if !rest.is_empty() {
            rest = if rest.starts_with("\\\"") { &rest[1..] } else { rest };
            let (character, after) = split_character(rest);
            rest = after;
            nodes.push(match character.as_bytes() {
                [byte] if is_separator(*byte) => Node::Separator(character),
                [byte] if crate::types::temporal::is_space(*byte) => Node::Space(character),
                _ => Node::Text(character),
            });
        }
    }
    nodes
}

/// Reads a text up to its closing quotation mark. Returns what follows.
fn parse_quoted<'a>(mut rest: &'a str, nodes: &mut Vec<Node<'a>>) -> &'a str {
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('"') {
            return after;
        }
        if rest.starts_with('\\') && rest.len() > 1 {
            rest = &rest[1..];
        }
        let (character, after) = split_character(rest);
        nodes.push(Node::Text(character));
        rest = after;
    }
    rest
}

fn split_character(text: &str) -> (&str, &str) {
    text.split_at(text.chars().next().map_or(0, char::len_utf8))
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric()
}
