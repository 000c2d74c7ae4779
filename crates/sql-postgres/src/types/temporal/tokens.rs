//! The words of date and time texts, and of `extract` and its like. As many as ten letters of a word are significant.

/// Letters of a word that are compared.
const LETTERS_MAX: usize = 10;

/// A word of a date, a time or an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Reserved(Reserved),
    /// From 1.
    Month(i32),
    /// Sunday is 0.
    Weekday(i32),
    Am,
    Pm,
    Ad,
    Bc,
    /// `DST` behind a time zone.
    Summer,
    /// `T` before a time.
    TimeMark,
    Unit(TimeUnit),
    Ago,
    Ignored,
}

/// Words that stand for a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    Early,
    Late,
    Epoch,
    Now,
    Today,
    Tomorrow,
    Yesterday,
    /// `allballs`: midnight in UTC.
    Zulu,
}

/// The fields of `extract`, the units of intervals, the marks before numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    DayOfYear,
    IsoDayOfWeek,
    IsoYear,
    Julian,
    Zone,
    ZoneHour,
    ZoneMinute,
}

use Reserved::{Early, Epoch, Late, Now, Today, Tomorrow, Yesterday, Zulu};
use TimeUnit::{
    Century, Day, DayOfWeek, DayOfYear, Decade, Hour, IsoDayOfWeek, IsoYear, Julian, Microsecond, Millennium,
};
use TimeUnit::{Millisecond, Minute, Quarter, Second, Week, Year, Zone, ZoneHour, ZoneMinute};

/// Words of dates and times, in order.
#[rustfmt::skip]
const DATE_WORDS: &[(&str, Word)] = &[
    ("+infinity", Word::Reserved(Late)), ("-infinity", Word::Reserved(Early)), ("ad", Word::Ad), ("allballs", Word::Reserved(Zulu)),
    ("am", Word::Am), ("apr", Word::Month(4)), ("april", Word::Month(4)), ("at", Word::Ignored), ("aug", Word::Month(8)),
    ("august", Word::Month(8)), ("bc", Word::Bc), ("d", Word::Unit(Day)), ("dec", Word::Month(12)), ("december", Word::Month(12)),
    ("dow", Word::Unit(DayOfWeek)), ("doy", Word::Unit(DayOfYear)), ("dst", Word::Summer), ("epoch", Word::Reserved(Epoch)),
    ("feb", Word::Month(2)), ("february", Word::Month(2)), ("fri", Word::Weekday(5)), ("friday", Word::Weekday(5)),
    ("h", Word::Unit(Hour)), ("infinity", Word::Reserved(Late)), ("isodow", Word::Unit(IsoDayOfWeek)),
    ("isoyear", Word::Unit(IsoYear)), ("j", Word::Unit(Julian)), ("jan", Word::Month(1)), ("january", Word::Month(1)),
    ("jd", Word::Unit(Julian)), ("jul", Word::Month(7)), ("julian", Word::Unit(Julian)), ("july", Word::Month(7)),
    ("jun", Word::Month(6)), ("june", Word::Month(6)), ("m", Word::Unit(TimeUnit::Month)), ("mar", Word::Month(3)),
    ("march", Word::Month(3)), ("may", Word::Month(5)), ("mm", Word::Unit(Minute)), ("mon", Word::Weekday(1)),
    ("monday", Word::Weekday(1)), ("nov", Word::Month(11)), ("november", Word::Month(11)), ("now", Word::Reserved(Now)),
    ("oct", Word::Month(10)), ("october", Word::Month(10)), ("on", Word::Ignored), ("pm", Word::Pm), ("s", Word::Unit(Second)),
    ("sat", Word::Weekday(6)), ("saturday", Word::Weekday(6)), ("sep", Word::Month(9)), ("sept", Word::Month(9)),
    ("september", Word::Month(9)), ("sun", Word::Weekday(0)), ("sunday", Word::Weekday(0)), ("t", Word::TimeMark),
    ("thu", Word::Weekday(4)), ("thur", Word::Weekday(4)), ("thurs", Word::Weekday(4)), ("thursday", Word::Weekday(4)),
    ("today", Word::Reserved(Today)), ("tomorrow", Word::Reserved(Tomorrow)), ("tue", Word::Weekday(2)), ("tues", Word::Weekday(2)),
    ("tuesday", Word::Weekday(2)), ("wed", Word::Weekday(3)), ("wednesday", Word::Weekday(3)), ("weds", Word::Weekday(3)),
    ("y", Word::Unit(Year)), ("yesterday", Word::Reserved(Yesterday)),
];

/// Words of intervals, in order.
#[rustfmt::skip]
const INTERVAL_WORDS: &[(&str, Word)] = &[
    ("@", Word::Ignored), ("ago", Word::Ago), ("c", Word::Unit(Century)), ("cent", Word::Unit(Century)), ("centuries", Word::Unit(Century)),
    ("century", Word::Unit(Century)), ("d", Word::Unit(Day)), ("day", Word::Unit(Day)), ("days", Word::Unit(Day)), ("dec", Word::Unit(Decade)),
    ("decade", Word::Unit(Decade)), ("decades", Word::Unit(Decade)), ("decs", Word::Unit(Decade)), ("h", Word::Unit(Hour)),
    ("hour", Word::Unit(Hour)), ("hours", Word::Unit(Hour)), ("hr", Word::Unit(Hour)), ("hrs", Word::Unit(Hour)), ("m", Word::Unit(Minute)),
    ("microsecon", Word::Unit(Microsecond)), ("mil", Word::Unit(Millennium)), ("millennia", Word::Unit(Millennium)),
    ("millennium", Word::Unit(Millennium)), ("millisecon", Word::Unit(Millisecond)), ("mils", Word::Unit(Millennium)),
    ("min", Word::Unit(Minute)), ("mins", Word::Unit(Minute)), ("minute", Word::Unit(Minute)), ("minutes", Word::Unit(Minute)),
    ("mon", Word::Unit(TimeUnit::Month)), ("mons", Word::Unit(TimeUnit::Month)), ("month", Word::Unit(TimeUnit::Month)), ("months", Word::Unit(TimeUnit::Month)),
    ("ms", Word::Unit(Millisecond)), ("msec", Word::Unit(Millisecond)), ("msecond", Word::Unit(Millisecond)),
    ("mseconds", Word::Unit(Millisecond)), ("msecs", Word::Unit(Millisecond)), ("qtr", Word::Unit(Quarter)), ("quarter", Word::Unit(Quarter)),
    ("s", Word::Unit(Second)), ("sec", Word::Unit(Second)), ("second", Word::Unit(Second)), ("seconds", Word::Unit(Second)),
    ("secs", Word::Unit(Second)), ("timezone", Word::Unit(Zone)), ("timezone_h", Word::Unit(ZoneHour)), ("timezone_m", Word::Unit(ZoneMinute)),
    ("us", Word::Unit(Microsecond)), ("usec", Word::Unit(Microsecond)), ("usecond", Word::Unit(Microsecond)),
    ("useconds", Word::Unit(Microsecond)), ("usecs", Word::Unit(Microsecond)), ("w", Word::Unit(Week)), ("week", Word::Unit(Week)),
    ("weeks", Word::Unit(Week)), ("y", Word::Unit(Year)), ("year", Word::Unit(Year)), ("years", Word::Unit(Year)), ("yr", Word::Unit(Year)),
    ("yrs", Word::Unit(Year)),
];

/// Returns the meaning in a date or time of a word in lower case.
pub fn date_word(word: &str) -> Option<Word> {
    lookup(DATE_WORDS, word)
}

/// Returns the meaning in an interval of a word in lower case.
pub fn interval_word(word: &str) -> Option<Word> {
    lookup(INTERVAL_WORDS, word)
}

/// Returns the meaning of the first argument of `extract`, `date_part` and `date_trunc`, in lower case.
pub fn field_word(word: &str) -> Option<Word> {
    interval_word(word).or_else(|| date_word(word))
}

fn lookup(words: &[(&str, Word)], word: &str) -> Option<Word> {
    let significant = &word.as_bytes()[..word.len().min(LETTERS_MAX)];
    let at = words.binary_search_by(|(known, _)| known.as_bytes().cmp(significant)).ok()?;
    Some(words[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_order_and_short() {
        for words in [DATE_WORDS, INTERVAL_WORDS] {
            assert!(words.is_sorted_by(|a, b| a.0 < b.0));
            assert!(words.iter().all(|(word, _)| word.len() <= LETTERS_MAX));
        }
        assert_eq!(interval_word("microseconds"), Some(Word::Unit(Microsecond)));
    }
}
