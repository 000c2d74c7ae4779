//! The values that single settings take: words, encodings, date styles, time zones.

use crate::error::{PgError, Result, state};
use crate::settings::{Setting, invalid};
use crate::types::temporal::PgZone;

/// Returns the word of an enumeration, as the table writes it.
pub fn word(setting: &Setting, text: &str, values: &'static [&'static str]) -> Result<Box<str>> {
    if let Some(known) = values.iter().find(|known| known.eq_ignore_ascii_case(text)) {
        return Ok((*known).into());
    }
    // Enumerations with "on" and "off" take the other spellings of these too.
    let truth = match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => "on",
        "false" | "no" | "0" => "off",
        // The spelling that the list of values does not show.
        "debug" if setting.name == "client_min_messages" => "debug2",
        "info" if setting.name == "client_min_messages" => "info",
        _ => "",
    };
    if values.contains(&truth) || truth == "info" || truth == "debug2" {
        return Ok(truth.into());
    }
    Err(invalid(setting.name, text).hint(format!("Available values: {}.", values.join(", "))))
}

/// Returns the canonical form of a text.
pub fn text(setting: &Setting, text: &str) -> Result<Box<str>> {
    match setting.name {
        "client_encoding" => client_encoding(text).ok_or_else(|| invalid(setting.name, text)).map(Into::into),
        "DateStyle" => date_style(text).map(Into::into),
        "TimeZone" => match time_zone(text) {
            Some(zone) => Ok(zone.name().into()),
            None => Err(invalid(setting.name, text)),
        },
        "application_name" => Ok(printable(text).into()),
        "default_tablespace" if text.eq_ignore_ascii_case("pg_default") => Ok("".into()),
        "default_tablespace" if !text.is_empty() => {
            Err(invalid(setting.name, text).detail(format!("Tablespace \"{text}\" does not exist.")))
        }
        "default_table_access_method" if text != "heap" => {
            Err(invalid(setting.name, text).detail(format!("Table access method \"{text}\" does not exist.")))
        }
        "search_path" => match split_list(text) {
            Some(_) => Ok(text.into()),
            None => Err(invalid(setting.name, text).detail("List syntax is invalid.")),
        },
        _ => Ok(text.into()),
    }
}

/// Returns whether the value of a fixed setting says the same as its default.
pub fn is_case(setting: &Setting, value: &str) -> bool {
    // Without standbys these wait for the same.
    let waits = setting.name == "synchronous_commit" && matches!(value, "local" | "remote_write" | "remote_apply");
    // Locales that differ from C in nothing that is shown.
    let is_plain = setting.name.starts_with("lc_") && matches!(value, "POSIX" | "C.UTF-8" | "C.utf8" | "");
    value == setting.default || waits || is_plain
}

/// Letters outside ASCII are shown as their bytes.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            32..=126 => out.push(byte as char),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    // NAMEDATALEN.
    out.truncate(63);
    out
}

/// Returns the name of a client encoding that is served.
fn client_encoding(text: &str) -> Option<&'static str> {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" => Some("UTF8"),
        "sqlascii" => Some("SQL_ASCII"),
        _ => None,
    }
}

/// Returns a date style after the words of `text` have changed the default one.
fn date_style(text: &str) -> Result<String> {
    date_style_from("ISO, MDY", text)
}

/// Returns the date style that `text` makes of `current`: each part that it does not name stays.
pub fn date_style_from(current: &str, text: &str) -> Result<String> {
    let conflict = || invalid("DateStyle", text).detail("Conflicting \"datestyle\" specifications.");
    let (mut style, mut order) = (None::<&str>, None::<&str>);
    let words = split_list(text).ok_or_else(|| invalid("DateStyle", text).detail("List syntax is invalid."))?;
    for word in words {
        let lower = word.to_ascii_lowercase();
        let (place, value): (&mut Option<&str>, &str) = match lower.as_str() {
            "iso" => (&mut style, "ISO"),
            "sql" => (&mut style, "SQL"),
            lower if lower.starts_with("postgres") => (&mut style, "Postgres"),
            "german" => (&mut style, "German"),
            "ymd" => (&mut order, "YMD"),
            "dmy" => (&mut order, "DMY"),
            lower if lower.starts_with("euro") => (&mut order, "DMY"),
            "mdy" | "us" => (&mut order, "MDY"),
            lower if lower.starts_with("noneuro") => (&mut order, "MDY"),
            "default" => continue,
            _ => {
                let detail = format!("Unrecognized key word: \"{word}\".");
                return Err(invalid("DateStyle", text).detail(detail));
            }
        };
        if place.is_some_and(|known| known != value) {
            return Err(conflict());
        }
        *place = Some(value);
    }
    if style == Some("German") && order.is_none() {
        order = Some("DMY");
    }
    let (old_style, old_order) = current.split_once(", ").unwrap_or(("ISO", "MDY"));
    Ok(format!("{}, {}", style.unwrap_or(old_style), order.unwrap_or(old_order)))
}

/// Returns the zone of a name of the tz database, of a POSIX rule, or of a number of hours east of UTC.
pub fn time_zone(text: &str) -> Option<PgZone> {
    let trimmed = text.trim();
    let fixed = |seconds: f64| (seconds.abs() < 168.0 * 3600.0).then(|| PgZone::fixed(seconds.round() as i32));
    if let Some((_, interval)) = trimmed.split_at_checked(8).filter(|(word, _)| word.eq_ignore_ascii_case("interval")) {
        return fixed(seconds_of(interval.trim().strip_prefix('\'')?.strip_suffix('\'')?)?);
    }
    match trimmed.parse::<f64>() {
        Ok(hours) => fixed(hours * 3600.0),
        Err(_) => PgZone::named(trimmed),
    }
}

/// Returns the value of TimeZone that SET TIME ZONE INTERVAL gives it.
pub fn zone_of_hours(hours: f64) -> String {
    let seconds = (hours * 3600.0).round() as i64;
    let (sign, rest) = (if seconds < 0 { "-" } else { "" }, seconds.unsigned_abs());
    format!("INTERVAL '{sign}{:02}:{:02}:{:02}'", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Reads an interval of hours, minutes and seconds.
fn seconds_of(text: &str) -> Option<f64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1.0, text), |digits| (-1.0, digits));
    let parts = digits.split(':').map(|part| part.parse::<u16>().ok()).collect::<Option<Vec<u16>>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    Some(sign * (f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0 + f64::from(seconds)))
}

/// Splits a list of names at its commas. Names without quotes are folded to lower case; `None` for bad syntax.
pub fn split_list(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let name;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut value = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '"') if chars.peek().is_some_and(|(_, c)| *c == '"') => {
                        chars.next();
                        value.push('"');
                    }
                    (at, '"') => break at + 1,
                    (_, c) => value.push(c),
                }
            };
            (name, rest) = (value, quoted[end..].trim_start());
        } else {
            let end = rest.find([',', ' ', '\t', '\n']).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            (name, rest) = (rest[..end].to_lowercase(), rest[end..].trim_start());
        }
        names.push(name);
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}

/// Returns the error for a time zone's interval that is none.
pub fn invalid_interval() -> PgError {
    PgError::new(state::INVALID_PARAMETER_VALUE, "invalid interval value for time zone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_styles_change_part_by_part() {
        let after = |current: &str, text: &str| date_style_from(current, text).map_err(|error| error.detail);
        assert_eq!(after("ISO, MDY", "german").as_deref(), Ok("German, DMY"));
        assert_eq!(after("German, DMY", "iso, dmy").as_deref(), Ok("ISO, DMY"));
        assert_eq!(after("ISO, DMY", "sql").as_deref(), Ok("SQL, DMY"));
        assert_eq!(after("SQL, DMY", "us").as_deref(), Ok("SQL, MDY"));
        assert_eq!(after("SQL, MDY", "european").as_deref(), Ok("SQL, DMY"));
        assert_eq!(after("ISO, MDY", "foo"), Err(Some("Unrecognized key word: \"foo\".".into())));
        assert_eq!(after("ISO, MDY", "iso, german"), Err(Some("Conflicting \"datestyle\" specifications.".into())));
    }

    #[test]
    fn zones_have_the_names_of_the_real_server() {
        let name = |text: &str| time_zone(text).map(|zone| zone.name().to_owned());
        assert_eq!(name("europe/berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(name("5").as_deref(), Some("<+05>-05"));
        assert_eq!(name("-3.5").as_deref(), Some("<-03:30>+03:30"));
        assert_eq!(name("<+02>-02").as_deref(), Some("<+02>-02"));
        assert_eq!(name("foo/bar"), None);
    }

    #[test]
    fn lists_are_split_at_commas_outside_quotes() {
        let names = |text: &str| split_list(text).map(|names| names.join("|"));
        assert_eq!(names("\"$user\", public").as_deref(), Some("$user|public"));
        assert_eq!(names("a,\"B c\" , D").as_deref(), Some("a|B c|d"));
        assert_eq!(names("\"a\"\"b\"").as_deref(), Some("a\"b"));
        assert_eq!(names("").as_deref(), Some(""));
        assert_eq!(names("a,,b"), None);
        assert_eq!(names("a,"), None);
    }
}
