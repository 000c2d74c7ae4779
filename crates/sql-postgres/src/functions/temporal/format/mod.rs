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
    Field(TemplateField),
    /// A printable ASCII character that is neither letter nor digit.
    Separator(&'a str),
    Space(&'a str),
    Text(&'a str),
}

#[derive(Clone, Copy, Debug)]
struct TemplateField {
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
    kind: KeywordKind,
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
enum KeywordKind {
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

const fn word(name: &'static str, kind: KeywordKind, is_digits: bool, convention: Convention) -> Keyword {
    Keyword { name, kind, is_digits, convention }
}

use Case::{Capital, Lower, Upper};
use Convention::{Any, Gregorian, IsoWeek};

/// Of those that begin alike the longest is first.
#[rustfmt::skip]
static KEYWORDS: &[Keyword] = &[
    word("A.D.", KeywordKind::Era(true, Upper), false, Any), word("A.M.", KeywordKind::Meridian(true, Upper), false, Any),
    word("AD", KeywordKind::Era(false, Upper), false, Any), word("AM", KeywordKind::Meridian(false, Upper), false, Any),
    word("B.C.", KeywordKind::Era(true, Upper), false, Any), word("BC", KeywordKind::Era(false, Upper), false, Any),
    word("CC", KeywordKind::Century, true, Any), word("DAY", KeywordKind::DayName(Upper), false, Any), word("DDD", KeywordKind::DayOfYear, true, Gregorian),
    word("DD", KeywordKind::DayOfMonth, true, Gregorian), word("DY", KeywordKind::DayShort(Upper), false, Any), word("Day", KeywordKind::DayName(Capital), false, Any),
    word("Dy", KeywordKind::DayShort(Capital), false, Any), word("D", KeywordKind::DayOfWeek, true, Gregorian), word("FF1", KeywordKind::Fraction(1), true, Any),
    word("FF2", KeywordKind::Fraction(2), true, Any), word("FF3", KeywordKind::Fraction(3), true, Any), word("FF4", KeywordKind::Fraction(4), true, Any),
    word("FF5", KeywordKind::Fraction(5), true, Any), word("FF6", KeywordKind::Fraction(6), true, Any), word("FX", KeywordKind::Exact, false, Any),
    word("HH24", KeywordKind::Hour24, true, Any), word("HH12", KeywordKind::Hour12, true, Any), word("HH", KeywordKind::Hour12, true, Any),
    word("IDDD", KeywordKind::IsoDayOfYear, true, IsoWeek), word("ID", KeywordKind::IsoDay, true, IsoWeek), word("IW", KeywordKind::IsoWeek, true, IsoWeek),
    word("IYYY", KeywordKind::IsoYear(4), true, IsoWeek), word("IYY", KeywordKind::IsoYear(3), true, IsoWeek), word("IY", KeywordKind::IsoYear(2), true, IsoWeek),
    word("I", KeywordKind::IsoYear(1), true, IsoWeek), word("J", KeywordKind::Julian, true, Any), word("MI", KeywordKind::Minute, true, Any),
    word("MM", KeywordKind::Month, true, Gregorian), word("MONTH", KeywordKind::MonthName(Upper), false, Gregorian),
    word("MON", KeywordKind::MonthShort(Upper), false, Gregorian), word("MS", KeywordKind::Millisecond, true, Any),
    word("Month", KeywordKind::MonthName(Capital), false, Gregorian), word("Mon", KeywordKind::MonthShort(Capital), false, Gregorian),
    word("OF", KeywordKind::Offset, false, Any), word("P.M.", KeywordKind::Meridian(true, Upper), false, Any), word("PM", KeywordKind::Meridian(false, Upper), false, Any),
    word("Q", KeywordKind::Quarter, true, Any), word("RM", KeywordKind::Roman(Upper), false, Gregorian), word("SSSSS", KeywordKind::SecondOfDay, true, Any),
    word("SSSS", KeywordKind::SecondOfDay, true, Any), word("SS", KeywordKind::Second, true, Any), word("TZH", KeywordKind::ZoneHour, false, Any),
    word("TZM", KeywordKind::ZoneMinute, true, Any), word("TZ", KeywordKind::Zone(Upper), false, Any), word("US", KeywordKind::Microsecond, true, Any),
    word("WW", KeywordKind::Week, true, Gregorian), word("W", KeywordKind::WeekOfMonth, true, Gregorian), word("Y,YYY", KeywordKind::YearWithComma, true, Gregorian),
    word("YYYY", KeywordKind::Year(4), true, Gregorian), word("YYY", KeywordKind::Year(3), true, Gregorian), word("YY", KeywordKind::Year(2), true, Gregorian),
    word("Y", KeywordKind::Year(1), true, Gregorian), word("a.d.", KeywordKind::Era(true, Lower), false, Any), word("a.m.", KeywordKind::Meridian(true, Lower), false, Any),
    word("ad", KeywordKind::Era(false, Lower), false, Any), word("am", KeywordKind::Meridian(false, Lower), false, Any),
    word("b.c.", KeywordKind::Era(true, Lower), false, Any), word("bc", KeywordKind::Era(false, Lower), false, Any), word("cc", KeywordKind::Century, true, Any),
    word("day", KeywordKind::DayName(Lower), false, Any), word("ddd", KeywordKind::DayOfYear, true, Gregorian), word("dd", KeywordKind::DayOfMonth, true, Gregorian),
    word("dy", KeywordKind::DayShort(Lower), false, Any), word("d", KeywordKind::DayOfWeek, true, Gregorian), word("ff1", KeywordKind::Fraction(1), true, Any),
    word("ff2", KeywordKind::Fraction(2), true, Any), word("ff3", KeywordKind::Fraction(3), true, Any), word("ff4", KeywordKind::Fraction(4), true, Any),
    word("ff5", KeywordKind::Fraction(5), true, Any), word("ff6", KeywordKind::Fraction(6), true, Any), word("fx", KeywordKind::Exact, false, Any),
    word("hh24", KeywordKind::Hour24, true, Any), word("hh12", KeywordKind::Hour12, true, Any), word("hh", KeywordKind::Hour12, true, Any),
    word("iddd", KeywordKind::IsoDayOfYear, true, IsoWeek), word("id", KeywordKind::IsoDay, true, IsoWeek), word("iw", KeywordKind::IsoWeek, true, IsoWeek),
    word("iyyy", KeywordKind::IsoYear(4), true, IsoWeek), word("iyy", KeywordKind::IsoYear(3), true, IsoWeek), word("iy", KeywordKind::IsoYear(2), true, IsoWeek),
    word("i", KeywordKind::IsoYear(1), true, IsoWeek), word("j", KeywordKind::Julian, true, Any), word("mi", KeywordKind::Minute, true, Any),
    word("mm", KeywordKind::Month, true, Gregorian), word("month", KeywordKind::MonthName(Lower), false, Gregorian),
    word("mon", KeywordKind::MonthShort(Lower), false, Gregorian), word("ms", KeywordKind::Millisecond, true, Any), word("of", KeywordKind::Offset, false, Any),
    word("p.m.", KeywordKind::Meridian(true, Lower), false, Any), word("pm", KeywordKind::Meridian(false, Lower), false, Any), word("q", KeywordKind::Quarter, true, Any),
    word("rm", KeywordKind::Roman(Lower), false, Gregorian), word("sssss", KeywordKind::SecondOfDay, true, Any), word("ssss", KeywordKind::SecondOfDay, true, Any),
    word("ss", KeywordKind::Second, true, Any), word("tzh", KeywordKind::ZoneHour, false, Any), word("tzm", KeywordKind::ZoneMinute, true, Any),
    word("tz", KeywordKind::Zone(Lower), false, Any), word("us", KeywordKind::Microsecond, true, Any), word("ww", KeywordKind::Week, true, Gregorian),
    word("w", KeywordKind::WeekOfMonth, true, Gregorian), word("y,yyy", KeywordKind::YearWithComma, true, Gregorian), word("yyyy", KeywordKind::Year(4), true, Gregorian),
    word("yyy", KeywordKind::Year(3), true, Gregorian), word("yy", KeywordKind::Year(2), true, Gregorian), word("y", KeywordKind::Year(1), true, Gregorian),
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
            nodes.push(Node::Field(TemplateField { key, fills, is_local, ordinal }));
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
