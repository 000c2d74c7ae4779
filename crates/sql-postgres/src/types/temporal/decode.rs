//! The second step of reading dates and times: fields are given meaning from left to right, each in the light of those before it.
//!
//! A mask records the parts of a date and time that are known. A field that gives a part twice is an error; a number is day, month, year or time by the parts that are missing and by the order of `DateStyle`.

use super::abbreviations::{self, Meaning};
use super::calendar::{Reading, days_in_month, julian_of_date};
use super::fields::{FieldKind, Fields, fraction, fraction_micros, leading_int};
use super::tokens::{Reserved, TimeUnit, Word, date_word};
use super::{DateOrder, DateTimeError, Decoded, IoContext, MICROS_PER_DAY, MICROS_PER_SECOND, PgZone};

/// Bits of the mask: the parts of a text that are known.
pub mod part {
    pub const MONTH: u32 = 1 << 1;
    pub const YEAR: u32 = 1 << 2;
    pub const DAY: u32 = 1 << 3;
    pub const ZONE: u32 = 1 << 5;
    /// The hour that `DST` adds.
    pub const SUMMER: u32 = 1 << 6;
    pub const MERIDIAN: u32 = 1 << 9;
    pub const HOUR: u32 = 1 << 10;
    pub const MINUTE: u32 = 1 << 11;
    pub const SECOND: u32 = 1 << 12;
    pub const MILLISECOND: u32 = 1 << 13;
    pub const MICROSECOND: u32 = 1 << 14;
    pub const DAY_OF_YEAR: u32 = 1 << 15;
    pub const WEEKDAY: u32 = 1 << 16;
    pub const ERA: u32 = 1 << 18;
    pub const WEEK: u32 = 1 << 24;
    pub const DECADE: u32 = 1 << 25;
    pub const CENTURY: u32 = 1 << 26;
    pub const MILLENNIUM: u32 = 1 << 27;
    pub const SUMMER_MARK: u32 = 1 << 28;
    /// All of them that seconds with a fraction give.
    pub const SECONDS: u32 = SECOND | MILLISECOND | MICROSECOND;
    pub const DATE: u32 = YEAR | MONTH | DAY;
    pub const TIME: u32 = HOUR | MINUTE | SECONDS;
}

const SECONDS_PER_HOUR: i32 = 3600;
/// The largest hour of an offset from UTC.
const ZONE_HOUR_MAX: i32 = 15;

/// A text's point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A reading, and the offset of its zone in seconds west of UTC.
    At(Reading, i32),
    Epoch,
    Early,
    Late,
}

/// Reads the fields of a date with or without a time.
pub fn decode_date_time(fields: &Fields, io: &IoContext) -> Decoded<Moment> {
    let mut decoder = DateTimeDecoder::new(fields, io);
    for at in 0..fields.count {
        decoder.date_time_field(at)?;
    }
    decoder.finish_date_time()
}

/// Reads the fields of a time. Returns it with its offset, in seconds west of UTC.
pub fn decode_time(fields: &Fields, io: &IoContext) -> Decoded<(Reading, i32)> {
    let mut decoder = DateTimeDecoder::new(fields, io);
    for at in 0..fields.count {
        decoder.time_field(at)?;
    }
    decoder.finish_time()
}

/// A time zone that is resolved once the date is known.
enum ZoneName {
    None,
    Zone(PgZone),
    Abbreviation(Box<str>, PgZone),
}

/// A field that says what the next number is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberMark {
    None,
    Julian,
    Time,
    /// Another unit. No field fits behind it.
    Other,
}

struct DateTimeDecoder<'a> {
    fields: &'a Fields,
    io: &'a IoContext,
    reading: Reading,
    mask: u32,
    moment: Option<Moment>,
    mark: NumberMark,
    is_pm: Option<bool>,
    has_text_month: bool,
    has_two_digits: bool,
    is_julian: bool,
    is_bc: bool,
    day_of_year: i32,
    /// Seconds west of UTC.
    west: i32,
    zone: ZoneName,
}

impl<'a> DateTimeDecoder<'a> {
    fn new(fields: &'a Fields, io: &'a IoContext) -> DateTimeDecoder<'a> {
        DateTimeDecoder {
            fields,
            io,
            reading: Reading::default(),
            mask: 0,
            moment: None,
            mark: NumberMark::None,
            is_pm: None,
            has_text_month: false,
            has_two_digits: false,
            is_julian: false,
            is_bc: false,
            day_of_year: 0,
            west: 0,
            zone: ZoneName::None,
        }
    }

    fn knows(&self, parts: u32) -> bool {
        self.mask & parts == parts
    }

    /// Records the parts that a field gave.
    fn add(&mut self, parts: u32) -> Decoded<()> {
        if self.mask & parts != 0 {
            return Err(DateTimeError::BadFormat);
        }
        self.mask |= parts;
        Ok(())
    }

    fn date_time_field(&mut self, at: usize) -> Decoded<()> {
        let text = self.fields.text(at);
        let parts = match self.fields.kind(at) {
            FieldKind::Date if self.mark == NumberMark::Julian => self.julian_with_zone(text)?,
            FieldKind::Date if self.mark != NumberMark::None || self.knows(part::MONTH | part::DAY) => {
                // A time zone with punctuation in its name, or digits of a time with an offset.
                if self.mark != NumberMark::None || text.starts_with(|c: char| c.is_ascii_digit()) {
                    if std::mem::replace(&mut self.mark, NumberMark::None) == NumberMark::Other {
                        return Err(DateTimeError::BadFormat);
                    }
                    self.time_with_zone(text, self.mask)?
                } else {
                    self.zone_name(text)?
                }
            }
            FieldKind::Date => self.date(text, self.mask)?,
            FieldKind::Time => {
                self.end_time_mark()?;
                let parts = self.time(text)?;
                if self.reading.clock_overflows() {
                    return Err(DateTimeError::FieldOverflow);
                }
                parts
            }
            FieldKind::Zone => {
                self.west = offset(text)?;
                part::ZONE
            }
            FieldKind::Number if self.mark != NumberMark::None => self.marked_number(text)?,
            FieldKind::Number => self.date_time_number(text)?,
            FieldKind::Text | FieldKind::Special => match self.word(text, true)? {
                Some(parts) => parts,
                None => return Ok(()),
            },
        };
        self.add(parts)
    }

    fn time_field(&mut self, at: usize) -> Decoded<()> {
        let (fields, text) = (self.fields, self.fields.text(at));
        let parts = match fields.kind(at) {
            FieldKind::Date => {
                let is_dated = fields.count >= 2
                    && (fields.kind(fields.count - 1) == FieldKind::Date || fields.kind(1) == FieldKind::Time);
                if at == 0 && is_dated {
                    self.date(text, self.mask)?
                } else if text.starts_with(|c: char| c.is_ascii_digit()) {
                    self.time_with_zone(text, self.mask | part::DATE)?
                } else {
                    self.zone_name(text)?
                }
            }
            FieldKind::Time => {
                self.end_time_mark()?;
                self.time(text)?
            }
            FieldKind::Zone => {
                self.west = offset(text)?;
                part::ZONE
            }
            FieldKind::Number if self.mark != NumberMark::None => self.marked_number(text)?,
            FieldKind::Number => {
                let point = text.find('.');
                match point {
                    Some(_) if at == 0 && fields.count >= 2 && fields.kind(fields.count - 1) == FieldKind::Date => {
                        self.date(text, self.mask)?
                    }
                    Some(point) if point > 2 => self.run_together(text, self.mask | part::DATE)?,
                    Some(_) => return Err(DateTimeError::BadFormat),
                    None if text.len() > 4 => self.run_together(text, self.mask | part::DATE)?,
                    None => self.number(text, false, self.mask | part::DATE)?,
                }
            }
            FieldKind::Text | FieldKind::Special => match self.word(text, false)? {
                Some(parts) => parts,
                None => return Ok(()),
            },
        };
        self.add(parts)
    }

    /// A time may follow the mark `T`.
    fn end_time_mark(&mut self) -> Decoded<()> {
        match std::mem::replace(&mut self.mark, NumberMark::None) {
            NumberMark::None | NumberMark::Time => Ok(()),
            NumberMark::Julian | NumberMark::Other => Err(DateTimeError::BadFormat),
        }
    }

    /// A Julian day with an offset behind it.
    fn julian_with_zone(&mut self, text: &str) -> Decoded<u32> {
        let (day, rest) = leading_int(text);
        let day = day.filter(|day| *day >= 0).ok_or(DateTimeError::FieldOverflow)?;
        self.reading.set_date(day.into());
        self.is_julian = true;
        self.west = offset(rest)?;
        self.mark = NumberMark::None;
        Ok(part::DATE | part::TIME | part::ZONE)
    }

    /// Digits of a time with an offset behind them.
    fn time_with_zone(&mut self, text: &str, mask: u32) -> Decoded<u32> {
        if self.knows(part::TIME) {
            return Err(DateTimeError::BadFormat);
        }
        let at = text.find('-').ok_or(DateTimeError::BadFormat)?;
        self.west = offset(&text[at..])?;
        Ok(self.run_together(&text[..at], mask)? | part::ZONE)
    }

    fn zone_name(&mut self, text: &str) -> Decoded<u32> {
        let zone = PgZone::named(text).ok_or_else(|| DateTimeError::UnknownZone(text.into()))?;
        self.zone = ZoneName::Zone(zone);
        Ok(part::ZONE)
    }

    /// A number behind a mark.
    fn marked_number(&mut self, text: &str) -> Decoded<u32> {
        let (number, rest) = leading_int(text);
        let number = number.ok_or(DateTimeError::FieldOverflow)?;
        if !rest.is_empty() && !rest.starts_with('.') {
            return Err(DateTimeError::BadFormat);
        }
        match std::mem::replace(&mut self.mark, NumberMark::None) {
            NumberMark::Julian => {
                if number < 0 {
                    return Err(DateTimeError::FieldOverflow);
                }
                self.reading.set_date(number.into());
                self.is_julian = true;
                if rest.is_empty() {
                    return Ok(part::DATE);
                }
                self.reading.set_clock((fraction(rest)? * MICROS_PER_DAY as f64) as i64);
                Ok(part::DATE | part::TIME)
            }
            NumberMark::Time => {
                let parts = self.run_together(text, self.mask | part::DATE)?;
                if parts == part::TIME { Ok(parts) } else { Err(DateTimeError::BadFormat) }
            }
            NumberMark::None | NumberMark::Other => Err(DateTimeError::BadFormat),
        }
    }

    fn date_time_number(&mut self, text: &str) -> Decoded<u32> {
        match text.find('.') {
            Some(_) if self.mask & part::DATE == 0 => self.date(text, self.mask),
            Some(point) if point > 2 => self.run_together(text, self.mask),
            // Six digits are a date or a time, unless both are known. Five are a year.
            _ if text.len() >= 6 && (self.mask & part::DATE == 0 || self.mask & part::TIME == 0) => {
                self.run_together(text, self.mask)
            }
            _ => self.number(text, self.has_text_month, self.mask),
        }
    }

    /// A word. `None`: it gives no part.
    fn word(&mut self, text: &str, is_date: bool) -> Decoded<Option<u32>> {
        match abbreviations::meaning(text) {
            Some(Meaning::Standard(seconds)) => {
                self.west = -seconds;
                return Ok(Some(part::ZONE));
            }
            Some(Meaning::Summer(seconds)) => {
                self.west = -seconds;
                return Ok(Some(part::ZONE | part::SUMMER));
            }
            Some(Meaning::Zone(name)) => {
                let zone = PgZone::named(name).ok_or(DateTimeError::BadFormat)?;
                self.zone = ZoneName::Abbreviation(text.into(), zone);
                return Ok(Some(part::ZONE | 1 << 7));
            }
            None => {}
        }
        let Some(word) = date_word(text) else {
            let zone = PgZone::named(text).ok_or(DateTimeError::BadFormat)?;
            self.zone = ZoneName::Zone(zone);
            return Ok(Some(part::ZONE));
        };
        let parts = match word {
            Word::Ignored => return Ok(None),
            Word::Reserved(word) if is_date => self.reserved(word),
            Word::Reserved(word) => self.reserved_time(word)?,
            Word::Month(month) if is_date => {
                let was_day = self.mask & part::MONTH != 0
                    && !self.has_text_month
                    && self.mask & part::DAY == 0
                    && (1..=31).contains(&self.reading.month);
                let parts = if was_day {
                    self.reading.day = self.reading.month;
                    part::DAY
                } else {
                    part::MONTH
                };
                self.has_text_month = true;
                self.reading.month = month;
                parts
            }
            Word::Weekday(_) if is_date => part::WEEKDAY,
            Word::Am | Word::Pm => {
                self.is_pm = Some(word == Word::Pm);
                part::MERIDIAN
            }
            Word::Ad | Word::Bc => {
                self.is_bc = word == Word::Bc;
                part::ERA
            }
            Word::Summer => {
                self.west -= SECONDS_PER_HOUR;
                part::SUMMER_MARK | part::SUMMER
            }
            Word::Unit(unit) => {
                self.begin_mark(if unit == TimeUnit::Julian { NumberMark::Julian } else { NumberMark::Other })?;
                0
            }
            Word::TimeMark => {
                if is_date && !self.knows(part::DATE) {
                    return Err(DateTimeError::BadFormat);
                }
                self.begin_mark(NumberMark::Time)?;
                0
            }
            Word::Month(_) | Word::Weekday(_) | Word::Ago => return Err(DateTimeError::BadFormat),
        };
        Ok(Some(parts))
    }

    fn begin_mark(&mut self, mark: NumberMark) -> Decoded<()> {
        if self.mark != NumberMark::None {
            return Err(DateTimeError::BadFormat);
        }
        self.mark = mark;
        Ok(())
    }

    fn reserved(&mut self, word: Reserved) -> u32 {
        let now = self.io.zone.reading_at(self.io.now);
        let day = |days| Reading::of_julian(now.julian() + days);
        match word {
            Reserved::Now => {
                self.reading = now;
                self.west = -self.io.zone.offset_at(self.io.now);
                return part::DATE | part::TIME | part::ZONE;
            }
            Reserved::Yesterday => self.set_date(day(-1)),
            Reserved::Today => self.set_date(day(0)),
            Reserved::Tomorrow => self.set_date(day(1)),
            Reserved::Zulu => {
                self.reading.set_clock(0);
                self.west = 0;
                return part::TIME | part::ZONE;
            }
            Reserved::Epoch => self.moment = Some(Moment::Epoch),
            Reserved::Early => self.moment = Some(Moment::Early),
            Reserved::Late => self.moment = Some(Moment::Late),
        }
        match self.moment {
            Some(_) => part::DATE | part::TIME | part::ZONE,
            None => part::DATE,
        }
    }

    fn set_date(&mut self, date: Reading) {
        (self.reading.year, self.reading.month, self.reading.day) = (date.year, date.month, date.day);
    }

    fn reserved_time(&mut self, word: Reserved) -> Decoded<u32> {
        match word {
            Reserved::Now => {
                self.reading = self.io.zone.reading_at(self.io.now);
                Ok(part::TIME)
            }
            Reserved::Zulu => {
                self.reading.set_clock(0);
                Ok(part::TIME | part::ZONE)
            }
            _ => Err(DateTimeError::BadFormat),
        }
    }

    /// A whole date with punctuation.
    fn date(&mut self, text: &str, mut mask: u32) -> Decoded<u32> {
        let mut list: [Option<&str>; 25] = [None; 25];
        let (mut count, mut rest) = (0, text);
        while !rest.is_empty() && count < list.len() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let Some(first) = rest.as_bytes().first() else { return Err(DateTimeError::BadFormat) };
            let is_digits = first.is_ascii_digit();
            let is_inside = |byte: u8| if is_digits { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
            let end = rest.bytes().position(|byte| !is_inside(byte)).unwrap_or(rest.len());
            list[count] = Some(&rest[..end]);
            count += 1;
            // The byte behind a field is a separator, whatever it is.
            rest = rest.get(end + 1..).unwrap_or("");
        }
        let (mut given, mut has_text_month) = (0, false);
        for item in &mut list[..count] {
            let Some(text) = *item else { continue };
            if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                continue;
            }
            let parts = match date_word(text) {
                Some(Word::Ignored) => continue,
                Some(Word::Month(month)) => {
                    self.reading.month = month;
                    has_text_month = true;
                    part::MONTH
                }
                Some(word @ (Word::Ad | Word::Bc)) => {
                    self.is_bc = word == Word::Bc;
                    part::ERA
                }
                _ => return Err(DateTimeError::BadFormat),
            };
            if mask & parts != 0 {
                return Err(DateTimeError::BadFormat);
            }
            (mask, given, *item) = (mask | parts, given | parts, None);
        }
        for text in list[..count].iter().flatten() {
            let parts = self.number(text, has_text_month, mask)?;
            if mask & parts != 0 {
                return Err(DateTimeError::BadFormat);
            }
            (mask, given) = (mask | parts, given | parts);
        }
        if mask & !(part::DAY_OF_YEAR | part::ZONE) == part::DATE { Ok(given) } else { Err(DateTimeError::BadFormat) }
    }

    /// A time with colons.
    fn time(&mut self, text: &str) -> Decoded<u32> {
        let clock = clock(text, false)?;
        self.reading.hour = clock.hour.try_into().map_err(|_| DateTimeError::FieldOverflow)?;
        (self.reading.minute, self.reading.second, self.reading.micros) = (clock.minute, clock.second, clock.micros);
        Ok(part::TIME)
    }

    /// A number by itself: a part of a date by the parts that are known, or a time.
    fn number(&mut self, text: &str, has_text_month: bool, mask: u32) -> Decoded<u32> {
        let (number, rest) = leading_int(text);
        let number = number.ok_or(DateTimeError::FieldOverflow)?;
        if rest.len() == text.len() {
            return Err(DateTimeError::BadFormat);
        }
        if rest.starts_with('.') {
            if text.len() - rest.len() > 2 {
                return self.run_together(text, mask | part::DATE);
            }
            self.reading.micros = fraction_micros(rest)?;
        } else if !rest.is_empty() {
            return Err(DateTimeError::BadFormat);
        }
        let length = text.len();
        if length == 3 && mask & part::DATE == part::YEAR && (1..=366).contains(&number) {
            self.day_of_year = number;
            return Ok(part::DAY_OF_YEAR | part::MONTH | part::DAY);
        }
        let is_year = length >= 3 || self.io.date_order == DateOrder::Ymd;
        const YEAR_MONTH: u32 = part::YEAR | part::MONTH;
        const MONTH_DAY: u32 = part::MONTH | part::DAY;
        let parts = match mask & part::DATE {
            0 if is_year => part::YEAR,
            0 if self.io.date_order == DateOrder::Dmy => part::DAY,
            0 => part::MONTH,
            part::YEAR => part::MONTH,
            part::MONTH if has_text_month && is_year => part::YEAR,
            part::MONTH => part::DAY,
            YEAR_MONTH => {
                if has_text_month && length >= 3 && self.has_two_digits {
                    // The year before it was the day.
                    self.reading.day = self.reading.year;
                    self.reading.year = number;
                    self.has_two_digits = false;
                    return Ok(part::DAY);
                }
                part::DAY
            }
            part::DAY => part::MONTH,
            MONTH_DAY => part::YEAR,
            part::DATE => return self.run_together(text, mask),
            _ => return Err(DateTimeError::BadFormat),
        };
        match parts {
            part::YEAR => {
                self.reading.year = number;
                self.has_two_digits = length <= 2;
            }
            part::MONTH => self.reading.month = number,
            _ => self.reading.day = number,
        }
        Ok(parts)
    }

    /// Digits of a date or time without punctuation: `yyyymmdd`, `hhmmss`, `hhmm`, of times with a fraction.
    fn run_together(&mut self, text: &str, mask: u32) -> Decoded<u32> {
        if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(DateTimeError::BadFormat);
        }
        let digits = match text.find('.') {
            Some(point) => {
                self.reading.micros = fraction_micros(&text[point..])?;
                &text[..point]
            }
            None if mask & part::DATE != part::DATE && text.len() >= 6 => {
                let (rest, day) = text.split_at(text.len() - 2);
                let (year, month) = rest.split_at(rest.len() - 2);
                (self.reading.day, self.reading.month) = (digits_of(day), digits_of(month));
                self.reading.year = digits_of(year);
                self.has_two_digits |= year.len() == 2;
                return Ok(part::DATE);
            }
            None => text,
        };
        if mask & part::TIME == part::TIME {
            return Err(DateTimeError::BadFormat);
        }
        match digits.len() {
            6 => {
                self.reading.second = digits_of(&digits[4..]);
                self.reading.minute = digits_of(&digits[2..4]);
                self.reading.hour = digits_of(&digits[..2]);
            }
            4 => {
                self.reading.second = 0;
                self.reading.minute = digits_of(&digits[2..]);
                self.reading.hour = digits_of(&digits[..2]);
            }
            _ => return Err(DateTimeError::BadFormat),
        }
        Ok(part::TIME)
    }

    /// Brings the year to its own century and era, and checks the date.
    fn validate_date(&mut self) -> Decoded<()> {
        let mask = self.mask;
        let checks = DateChecks {
            mask,
            is_julian: self.is_julian,
            has_two_digits: self.has_two_digits,
            is_bc: self.is_bc,
            day_of_year: self.day_of_year,
        };
        checks.apply(&mut self.reading)
    }

    fn apply_meridian(&mut self) -> Decoded<()> {
        match self.is_pm {
            Some(_) if self.reading.hour > 12 => return Err(DateTimeError::FieldOverflow),
            Some(false) if self.reading.hour == 12 => self.reading.hour = 0,
            Some(true) if self.reading.hour != 12 => self.reading.hour += 12,
            _ => {}
        }
        Ok(())
    }

    fn finish_date_time(mut self) -> Decoded<Moment> {
        if self.mark != NumberMark::None {
            return Err(DateTimeError::BadFormat);
        }
        if let Some(moment) = self.moment {
            return Ok(moment);
        }
        self.validate_date()?;
        self.apply_meridian()?;
        if !self.knows(part::DATE) {
            return Err(DateTimeError::BadFormat);
        }
        let has_mark = self.mask & part::SUMMER_MARK != 0;
        let east = match &self.zone {
            ZoneName::Zone(_) | ZoneName::Abbreviation(..) if has_mark => return Err(DateTimeError::BadFormat),
            ZoneName::Zone(zone) => zone.offset_of(&self.reading),
            ZoneName::Abbreviation(abbreviation, zone) => zone.abbreviated_offset_of(abbreviation, &self.reading),
            ZoneName::None if self.knows(part::ZONE) => -self.west,
            ZoneName::None if has_mark => return Err(DateTimeError::BadFormat),
            ZoneName::None => self.io.zone.offset_of(&self.reading),
        };
        Ok(Moment::At(self.reading, -east))
    }

    fn finish_time(mut self) -> Decoded<(Reading, i32)> {
        if self.mark != NumberMark::None {
            return Err(DateTimeError::BadFormat);
        }
        self.validate_date()?;
        self.apply_meridian()?;
        if self.reading.clock_overflows() {
            return Err(DateTimeError::FieldOverflow);
        }
        if !self.knows(part::TIME) {
            return Err(DateTimeError::BadFormat);
        }
        let has_mark = self.mask & part::SUMMER_MARK != 0;
        let east = match &self.zone {
            ZoneName::Zone(_) | ZoneName::Abbreviation(..) if has_mark => return Err(DateTimeError::BadFormat),
            ZoneName::Zone(zone) => match zone.constant_offset() {
                Some(east) => east,
                None if self.knows(part::DATE) => zone.offset_of(&self.reading),
                None => return Err(DateTimeError::BadFormat),
            },
            ZoneName::Abbreviation(abbreviation, zone) => {
                zone.abbreviated_offset_of(abbreviation, &self.dated_reading()?)
            }
            ZoneName::None if self.knows(part::ZONE) => -self.west,
            ZoneName::None if has_mark => return Err(DateTimeError::BadFormat),
            ZoneName::None => self.io.zone.offset_of(&self.dated_reading()?),
        };
        Ok((self.reading, -east))
    }

    /// The time on its own date, or today.
    fn dated_reading(&self) -> Decoded<Reading> {
        match self.mask & part::DATE {
            0 => {
                let now = self.io.zone.reading_at(self.io.now);
                Ok(Reading { year: now.year, month: now.month, day: now.day, ..self.reading })
            }
            part::DATE => Ok(self.reading),
            _ => Err(DateTimeError::BadFormat),
        }
    }
}

/// The facts of a text by which its date is checked.
#[derive(Clone, Copy, Default)]
pub struct DateChecks {
    pub mask: u32,
    /// The year is complete already.
    pub is_julian: bool,
    pub has_two_digits: bool,
    pub is_bc: bool,
    pub day_of_year: i32,
}

impl DateChecks {
    pub fn apply(self, reading: &mut Reading) -> Decoded<()> {
        if self.mask & part::YEAR != 0 && !self.is_julian {
            match reading.year {
                year if self.is_bc => {
                    if year <= 0 {
                        return Err(DateTimeError::FieldOverflow);
                    }
                    reading.year = 1 - year;
                }
                year if self.has_two_digits => match year {
                    ..0 => return Err(DateTimeError::FieldOverflow),
                    0..70 => reading.year += 2000,
                    70..100 => reading.year += 1900,
                    _ => {}
                },
                ..=0 => return Err(DateTimeError::FieldOverflow),
                _ => {}
            }
        }
        if self.mask & part::DAY_OF_YEAR != 0 {
            let first = julian_of_date(reading.year.into(), 1, 1);
            reading.set_date(first + i64::from(self.day_of_year) - 1);
        }
        if self.mask & part::MONTH != 0 && !(1..=12).contains(&reading.month) {
            return Err(DateTimeError::MonthDayOverflow);
        }
        if self.mask & part::DAY != 0 && !(1..=31).contains(&reading.day) {
            return Err(DateTimeError::MonthDayOverflow);
        }
        let is_whole = self.mask & part::DATE == part::DATE;
        if is_whole && reading.day > days_in_month(reading.year, reading.month) {
            return Err(DateTimeError::FieldOverflow);
        }
        Ok(())
    }
}

/// A time with colons. The hours of an interval may be many.
pub struct Clock {
    pub hour: i64,
    pub minute: i32,
    pub second: i32,
    pub micros: i32,
}

impl Clock {
    pub fn micros(&self) -> Option<i64> {
        let rest = i64::from(self.minute) * 60 + i64::from(self.second);
        let micros = rest * MICROS_PER_SECOND + i64::from(self.micros);
        self.hour.checked_mul(3600 * MICROS_PER_SECOND)?.checked_add(micros)
    }
}

/// Reads a time with colons. `minutes_first`: two numbers are minutes and seconds, not hours and minutes.
pub fn clock(text: &str, minutes_first: bool) -> Decoded<Clock> {
    let (hour, rest) = super::fields::leading_integer(text);
    let hour = hour.ok_or(DateTimeError::FieldOverflow)?;
    let rest = rest.strip_prefix(':').ok_or(DateTimeError::BadFormat)?;
    let (minute, rest) = leading_int(rest);
    let minute = minute.ok_or(DateTimeError::FieldOverflow)?;
    let mut clock = Clock { hour, minute, second: 0, micros: 0 };
    let is_short = match rest.as_bytes().first() {
        None => minutes_first,
        Some(b'.') => {
            clock.micros = fraction_micros(rest)?;
            true
        }
        Some(b':') => {
            let (second, rest) = leading_int(&rest[1..]);
            clock.second = second.ok_or(DateTimeError::FieldOverflow)?;
            match rest.as_bytes().first() {
                None => {}
                Some(b'.') => clock.micros = fraction_micros(rest)?,
                Some(_) => return Err(DateTimeError::BadFormat),
            }
            false
        }
        Some(_) => return Err(DateTimeError::BadFormat),
    };
    if is_short {
        let minute = clock.hour.try_into().map_err(|_| DateTimeError::FieldOverflow)?;
        (clock.hour, clock.minute, clock.second) = (0, minute, clock.minute);
    }
    let is_clock = clock.hour >= 0
        && (0..=59).contains(&clock.minute)
        && (0..=60).contains(&clock.second)
        && (0..=1_000_000).contains(&clock.micros);
    if is_clock { Ok(clock) } else { Err(DateTimeError::FieldOverflow) }
}

/// Reads an offset from UTC with its sign, in seconds west.
pub fn offset(text: &str) -> Decoded<i32> {
    let sign = match text.as_bytes().first() {
        Some(b'+') => -1,
        Some(b'-') => 1,
        _ => return Err(DateTimeError::BadFormat),
    };
    let number = |text| {
        let (number, rest) = leading_int(text);
        number.map(|number| (number, rest)).ok_or(DateTimeError::ZoneOverflow)
    };
    let (mut hours, mut rest) = number(&text[1..])?;
    let (mut minutes, mut seconds) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minutes, rest) = number(after)?;
        if let Some(after) = rest.strip_prefix(':') {
            (seconds, rest) = number(after)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    let is_offset = (0..=ZONE_HOUR_MAX).contains(&hours) && (0..60).contains(&minutes) && (0..60).contains(&seconds);
    if !is_offset {
        return Err(DateTimeError::ZoneOverflow);
    }
    if !rest.is_empty() {
        return Err(DateTimeError::BadFormat);
    }
    Ok(sign * ((hours * 60 + minutes) * 60 + seconds))
}

/// The low 32 bits of a number.
fn digits_of(text: &str) -> i32 {
    super::fields::leading_integer(text).0.unwrap_or(i64::MAX) as i32
}
