//! The event log for people: one line per event, `key=value`, on standard error or appended to a file. It is not the WAL.
//!
//! An unwanted line costs one comparison of levels. Each line is written whole under a lock, so lines of one process never mix.

use std::fmt::{Display, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

const WORDS: [&str; 4] = ["error", "warn", "info", "debug"];

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);
/// None means standard error.
static FILE: Mutex<Option<File>> = Mutex::new(None);

/// Sets the level. `word` is a value of the setting `log_level`; any other value leaves the level as it is.
pub fn set_level(word: &str) {
    if let Some(level) = WORDS.iter().position(|w| *w == word) {
        LEVEL.store(level as u8, Ordering::Relaxed);
    }
}

/// Installs a panic hook that logs a panic as one line.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let what =
            payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let what = what.unwrap_or("no words");
        let place = panic.location().map_or(String::new(), ToString::to_string);
        let thread = std::thread::current().name().unwrap_or("").to_string();
        error("panic", &[("what", &what), ("place", &place), ("thread", &thread)]);
    }));
}

/// Directs all further lines to this file.
pub fn open(path: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    *FILE.lock().unwrap_or_else(|e| e.into_inner()) = Some(file);
    Ok(())
}

pub fn error(event: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Error, event, fields);
}

pub fn warn(event: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Warn, event, fields);
}

pub fn info(event: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Info, event, fields);
}

pub fn debug(event: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Debug, event, fields);
}

fn write(level: Level, event: &str, fields: &[(&str, &dyn Display)]) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = line(since.as_millis() as u64, level, event, fields);
    // A failure to write a log line has nowhere to be reported.
    let _ = match &mut *FILE.lock().unwrap_or_else(|e| e.into_inner()) {
        Some(file) => file.write_all(line.as_bytes()),
        None => std::io::stderr().write_all(line.as_bytes()),
    };
}

fn line(unix_ms: u64, level: Level, event: &str, fields: &[(&str, &dyn Display)]) -> String {
    let mut line = format!("{} level={} event={}", time_text(unix_ms), WORDS[level as usize], quoted(event));
    for (key, value) in fields {
        let _ = write!(line, " {key}={}", quoted(&value.to_string()));
    }
    line.push('\n');
    line
}

/// Quotes the value if its end would be ambiguous otherwise.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != '"' && c != '=');
    if plain { text.to_string() } else { format!("{text:?}") }
}

/// Rate limiter for log lines about a recurring problem.
pub struct Throttle {
    every: Duration,
    last: Mutex<Option<Instant>>,
}

impl Throttle {
    pub fn new(every: Duration) -> Throttle {
        Throttle { every, last: Mutex::new(None) }
    }

    /// Returns true for the first call, and then for the first call after each `every`.
    pub fn is_due(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        let is_due = last.is_none_or(|last| last.elapsed() >= self.every);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Formats `2026-11-20T22:36:01.123Z`.
pub fn time_text(unix_ms: u64) -> String {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = date(days);
    let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z", ms % 1000)
}

/// Returns year, month and day of a day counted from 1970. Years begin in March here, so that the leap day is the last day of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Parses `2026-11-20T22:36:01Z`, with or without fractions of a second, to milliseconds since 1970.
pub fn parse_time(text: &str) -> Option<u64> {
    let (date_part, time_part) = text.strip_suffix('Z')?.split_once('T')?;
    let mut ymd = date_part.splitn(3, '-').map(|p| p.parse::<u64>().ok());
    let (year, month, day) = (ymd.next()??, ymd.next()??, ymd.next()??);
    let (clock, fraction) = time_part.split_once('.').unwrap_or((time_part, "0"));
    let mut hms = clock.splitn(3, ':').map(|p| p.parse::<u64>().ok());
    let (h, m, s) = (hms.next()??, hms.next()??, hms.next()??);
    let ms = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    if !(1970..=9999).contains(&year) || h > 23 || m > 59 || s > 60 {
        return None;
    }
    // Searches for the day instead of computing it. This runs once, and with a single calendar formula only one can be wrong.
    let first = (year - 1970) * 365;
    let days = (first..first + 9000).find(|d| date(*d) == (year, month, day))?;
    Some(days * 86_400_000 + h * 3_600_000 + m * 60_000 + s * 1000 + ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_cut_at_spaces() {
        let line = line(
            0,
            Level::Warn,
            "listening",
            &[("door", &"redis"), ("why", &"no \"room\""), ("n", &7), ("empty", &"")],
        );
        assert_eq!(
            line,
            "1970-01-01T00:00:00.000Z level=warn event=listening door=redis why=\"no \\\"room\\\"\" n=7 empty=\"\"\n"
        );
    }

    #[test]
    fn a_throttle_lets_one_in_a_while_through() {
        let (never_again, always) = (Throttle::new(Duration::MAX), Throttle::new(Duration::ZERO));
        assert_eq!([never_again.is_due(), never_again.is_due(), never_again.is_due()], [true, false, false]);
        assert_eq!([always.is_due(), always.is_due()], [true, true]);
    }

    #[test]
    fn days_have_the_names_of_the_calendar() {
        for (ms, text) in [
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_795_214_161_123, "2026-11-20T22:36:01.123Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(time_text(ms), text);
            assert_eq!(parse_time(text), Some(ms));
        }
        assert_eq!(parse_time("2026-11-20T22:36:01Z"), Some(1_795_214_161_000));
        for bad in ["", "2026-11-20", "2026-02-30T00:00:00Z", "2026-11-20T25:00:00Z", "2026-11-20T22:36:01"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }
}
