//! Settings ("GUCs"): one table of names, types, bounds and contexts; the values of a session; and their text forms.
//!
//! A setting is obeyed, or it is fixed: it describes what is the case, and setting it to anything else is refused. Those of the planner (`planner`) are accepted without an effect. The values of a session follow its
//! transactions (`values`). Keeps PS-4.

pub mod check;
mod planner;
pub mod stored;
mod table;
pub mod unserved;
pub mod values;

use crate::error::{PgError, Result, state};
use crate::functions::temporal::values::short_double;

const COUNT: usize = table::SETTINGS.len() + planner::SETTINGS.len();

/// The settings that sessions see, by name without regard to case.
pub static SETTINGS: &[Setting] = &ALL;

const ALL: [Setting; COUNT] = {
    let mut all = [table::SETTINGS[0]; COUNT];
    let (mut at, mut other) = (0, 0);
    while at + other < COUNT {
        let is_of_planner = at == table::SETTINGS.len()
            || (other < planner::SETTINGS.len()
                && is_before(planner::SETTINGS[other].name.as_bytes(), table::SETTINGS[at].name.as_bytes()));
        if is_of_planner {
            all[at + other] = planner::SETTINGS[other];
            other += 1;
        } else {
            all[at + other] = table::SETTINGS[at];
            at += 1;
        }
    }
    all
};

const fn is_before(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() {
        let (a, b) = (one[at].to_ascii_lowercase(), other[at].to_ascii_lowercase());
        if a != b {
            return a < b;
        }
        at += 1;
    }
    one.len() < other.len()
}

/// A row of the table, and of `pg_settings`.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub name: &'static str,
    pub category: &'static str,
    pub description: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    /// In the form in which SHOW gives it, but for the unit.
    pub default: &'static str,
    pub context: Context,
    /// Changes are reported to the client (ParameterStatus).
    pub is_reported: bool,
    pub effect: Effect,
}

impl Setting {
    /// Returns whether SHOW ALL, `pg_settings` and RESET ALL leave it out.
    pub fn is_hidden(&self) -> bool {
        matches!(self.name, "is_superuser" | "role" | "session_authorization")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Bool,
    Integer {
        min: i64,
        max: i64,
    },
    Real {
        min: f64,
        max: f64,
    },
    Text,
    /// A list of names, each quoted where it must be.
    List,
    Enum(&'static [&'static str]),
}

/// The base unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    None,
    /// Pages of 8 kB, which is the size of PostgreSQL's.
    Blocks,
    Kb,
    Ms,
    S,
    Min,
}

/// The rights and moments at which a setting may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    Internal,
    Postmaster,
    Sighup,
    Backend,
    Superuser,
    User,
}

impl Context {
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::Backend => "superuser-backend",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Obeyed,
    /// The default is what is the case; no other value is accepted.
    Fixed,
    /// Any value of the type is accepted and shown, and none has an effect.
    Accepted,
}

impl Kind {
    /// The `vartype` of `pg_settings`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Integer { .. } => "integer",
            Kind::Real { .. } => "real",
            Kind::Text | Kind::List => "string",
            Kind::Enum(_) => "enum",
        }
    }
}

impl Unit {
    /// The `unit` of `pg_settings`.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Blocks => Some("8kB"),
            Unit::Kb => Some("kB"),
            Unit::Ms => Some("ms"),
            Unit::S => Some("s"),
            Unit::Min => Some("min"),
        }
    }

    /// The units of a value, with the number of base units of each, the largest first.
    fn conversions(self) -> &'static [(&'static str, f64)] {
        const TIB: f64 = 1024.0 * 1024.0 * 1024.0;
        match self {
            Unit::None => &[],
            Unit::Blocks => {
                &[("TB", TIB / 8.0), ("GB", 131_072.0), ("MB", 128.0), ("kB", 0.125), ("B", 0.125 / 1024.0)]
            }
            Unit::Kb => &[("TB", TIB), ("GB", 1024.0 * 1024.0), ("MB", 1024.0), ("kB", 1.0), ("B", 1.0 / 1024.0)],
            Unit::Ms => {
                &[("d", 86_400_000.0), ("h", 3_600_000.0), ("min", 60_000.0), ("s", 1000.0), ("ms", 1.0), ("us", 0.001)]
            }
            Unit::S => &[("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 0.001), ("us", 1e-6)],
            Unit::Min => {
                &[("d", 1440.0), ("h", 60.0), ("min", 1.0), ("s", 1.0 / 60.0), ("ms", 1.0 / 60e3), ("us", 1.0 / 60e6)]
            }
        }
    }

    fn hint(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Blocks | Unit::Kb => {
                Some("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".")
            }
            Unit::Ms | Unit::S | Unit::Min => {
                Some("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")
            }
        }
    }
}

/// Returns the place of the setting of that name, in any case, in the table.
pub fn find(name: &str) -> Option<usize> {
    let name = match name {
        name if name.eq_ignore_ascii_case("timezone") => "TimeZone",
        name => name,
    };
    SETTINGS.binary_search_by(|setting| compare(setting.name, name)).ok()
}

/// Returns the place of a setting by its name as the table has it. Meant for constants: a name that the table lacks does not compile there.
pub const fn place(name: &str) -> usize {
    let mut at = 0;
    while !is_same(SETTINGS[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

fn compare(one: &str, other: &str) -> std::cmp::Ordering {
    let lower = |byte: u8| byte.to_ascii_lowercase();
    one.bytes().map(lower).cmp(other.bytes().map(lower))
}

/// Returns the error for a name that no setting has.
pub fn unknown(name: &str) -> PgError {
    if unserved::UNSERVED.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return PgError::new(
            state::FEATURE_NOT_SUPPORTED,
            format!("configuration parameter \"{name}\" is not supported"),
        );
    }
    PgError::new(state::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

/// Returns the error for a value that the setting does not take.
pub fn invalid(name: &str, value: &str) -> PgError {
    PgError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for parameter \"{name}\": \"{value}\""))
}

/// Reads a Boolean as PostgreSQL does: words or their beginnings, 1 and 0.
pub fn read_bool(text: &str) -> Option<bool> {
    let is_beginning = |word: &str, least: usize| {
        text.len() >= least && text.len() <= word.len() && word[..text.len()].eq_ignore_ascii_case(text)
    };
    if !text.is_ascii() {
        return None;
    }
    let is_true = is_beginning("true", 1) || is_beginning("yes", 1) || is_beginning("on", 2) || text == "1";
    let is_false = is_beginning("false", 1) || is_beginning("no", 1) || is_beginning("off", 2) || text == "0";
    (is_true || is_false).then_some(is_true)
}

/// Reads a number with an optional unit, and returns it in base units.
fn read_number(setting: &Setting, text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let is_part = |(at, c): &(usize, char)| {
        c.is_ascii_digit()
            || *c == '.'
            || (matches!(c, '+' | '-') && (*at == 0 || matches!(trimmed.as_bytes()[at - 1], b'e' | b'E')))
            || (matches!(c, 'e' | 'E') && trimmed[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    };
    let end = trimmed.char_indices().take_while(is_part).last().map_or(0, |(at, _)| at + 1);
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim_start());
    let number: f64 = match number.parse() {
        Ok(number) => number,
        Err(_) => match i64::from_str_radix(number.trim_start_matches("0x"), 16) {
            Ok(number) if number != 0 && trimmed.starts_with("0x") => number as f64,
            _ => return Err(invalid(setting.name, text)),
        },
    };
    if unit.is_empty() {
        return Ok(number);
    }
    match setting.unit.conversions().iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok(number * factor),
        None => {
            let error = invalid(setting.name, text);
            Err(setting.unit.hint().into_iter().fold(error, |error, hint| error.hint(hint)))
        }
    }
}

fn outside(setting: &Setting, value: String, min: String, max: String) -> PgError {
    let unit = setting.unit.name().map_or_else(String::new, |unit| format!(" {unit}"));
    let name = setting.name;
    PgError::new(
        state::INVALID_PARAMETER_VALUE,
        format!("{value}{unit} is outside the valid range for parameter \"{name}\" ({min} .. {max})"),
    )
}

/// Returns the canonical form of a value, in base units. An error for one that the setting does not take.
pub fn canonical(setting: &Setting, text: &str) -> Result<Box<str>> {
    let value: Box<str> = match setting.kind {
        Kind::Bool => match read_bool(text) {
            Some(true) => "on".into(),
            Some(false) => "off".into(),
            None => {
                let message = format!("parameter \"{}\" requires a Boolean value", setting.name);
                return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
            }
        },
        Kind::Integer { min, max } => {
            let number = read_number(setting, text)?.round_ties_even();
            if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number) {
                return Err(invalid(setting.name, text).hint("Value exceeds integer range."));
            }
            if !(min as f64..=max as f64).contains(&number) {
                return Err(outside(setting, number.to_string(), min.to_string(), max.to_string()));
            }
            (number as i64).to_string().into()
        }
        Kind::Real { min, max } => {
            let number = read_number(setting, text)?;
            if !(min..=max).contains(&number) {
                return Err(outside(setting, short_double(number), short_double(min), short_double(max)));
            }
            short_double(number).into()
        }
        Kind::Enum(values) => check::word(setting, text, values)?,
        Kind::Text | Kind::List => check::text(setting, text)?,
    };
    if setting.effect == Effect::Fixed && !check::is_case(setting, &value) {
        let message = format!("setting \"{}\" to \"{value}\" is not supported", setting.name);
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(value)
}

/// Returns the value as SHOW gives it: a number in the largest unit that divides it.
pub fn shown(setting: &Setting, value: &str) -> String {
    let Ok(number) = value.parse::<i64>() else { return value.to_owned() };
    if number <= 0 {
        return value.to_owned();
    }
    for (name, factor) in setting.unit.conversions() {
        let of_unit = number as f64 / factor;
        if of_unit.fract() == 0.0 {
            return format!("{of_unit:.0}{name}");
        }
    }
    value.to_owned()
}

/// Returns the error for a setting that SET may not change.
pub fn refusal(setting: &Setting) -> Option<PgError> {
    let reason = match setting.context {
        Context::Internal => "cannot be changed",
        Context::Postmaster => "cannot be changed without restarting the server",
        Context::Sighup => "cannot be changed now",
        Context::Backend => "cannot be set after connection start",
        Context::Superuser | Context::User => return None,
    };
    Some(PgError::new(state::CANT_CHANGE_RUNTIME_PARAM, format!("parameter \"{}\" {reason}", setting.name)))
}

/// Fails for a setting that only a superuser may change.
pub fn check_right(name: &str, is_super: bool) -> Result<()> {
    let is_guarded = find(name).is_some_and(|at| SETTINGS[at].context == Context::Superuser);
    match is_guarded && !is_super {
        false => Ok(()),
        true => {
            let message = format!("permission denied to set parameter \"{}\"", name.to_ascii_lowercase());
            Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, text: &str) -> Result<String> {
        let setting = &SETTINGS[find(name).unwrap_or_else(|| panic!("{name}"))];
        canonical(setting, text).map(|value| shown(setting, &value))
    }

    fn refused(name: &str, text: &str) -> (String, Option<Box<str>>) {
        let error = given(name, text).expect_err(text);
        (error.message, error.hint)
    }

    #[test]
    fn the_table_is_ordered_and_its_defaults_are_canonical() {
        assert!(SETTINGS.is_sorted_by(|one, other| compare(one.name, other.name).is_lt()));
        for setting in SETTINGS {
            assert_eq!(find(setting.name).map(|at| SETTINGS[at].name), Some(setting.name));
            assert_eq!(canonical(setting, setting.default).as_deref(), Ok(setting.default), "{}", setting.name);
        }
    }

    #[test]
    fn a_place_is_that_of_its_name() {
        for setting in SETTINGS {
            assert_eq!(SETTINGS[place(setting.name)].name, setting.name);
        }
    }

    #[test]
    fn numbers_take_units_and_are_shown_in_the_largest_that_fits() {
        for (text, shown) in [("5s", "5s"), ("90min", "90min"), ("1500us", "2ms"), ("1.6", "2ms"), ("0", "0")] {
            assert_eq!(given("statement_timeout", text).as_deref(), Ok(shown));
        }
        assert_eq!(given("WORK_MEM", "1GB").as_deref(), Ok("1GB"));
        assert_eq!(refused("statement_timeout", "abc").0, "invalid value for parameter \"statement_timeout\": \"abc\"");
        assert!(refused("statement_timeout", "5x").1.is_some_and(|hint| hint.starts_with("Valid units")));
        assert_eq!(refused("statement_timeout", "99999999999").1.as_deref(), Some("Value exceeds integer range."));
        assert_eq!(
            refused("work_mem", "1").0,
            "1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)"
        );
        assert_eq!(
            refused("extra_float_digits", "4").0,
            "4 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)"
        );
    }

    #[test]
    fn settings_of_the_planner_take_any_value_of_their_type() {
        assert_eq!(given("enable_seqscan", "of").as_deref(), Ok("off"));
        assert_eq!(given("jit_above_cost", "1000000").as_deref(), Ok("1e+06"));
        assert_eq!(given("effective_cache_size", "1GB").as_deref(), Ok("1GB"));
        assert_eq!(given("min_parallel_table_scan_size", "3").as_deref(), Ok("24kB"));
        assert_eq!(
            refused("random_page_cost", "-1").0,
            "-1 is outside the valid range for parameter \"random_page_cost\" (0 .. 1.79769e+308)"
        );
    }

    #[test]
    fn words_are_recognised_and_others_refused_with_the_list() {
        assert_eq!(given("bytea_output", "Escape").as_deref(), Ok("escape"));
        assert_eq!(refused("bytea_output", "foo").1.as_deref(), Some("Available values: escape, hex."));
        assert_eq!(refused("jit", "maybe").0, "parameter \"jit\" requires a Boolean value");
    }

    #[test]
    fn a_fixed_setting_takes_its_own_value_alone() {
        assert_eq!(given("standard_conforming_strings", "true").as_deref(), Ok("on"));
        let error = given("standard_conforming_strings", "off").unwrap_err();
        assert_eq!(error.state, "0A000");
        assert_eq!(given("synchronous_commit", "yes").as_deref(), Ok("on"));
        assert_eq!(given("synchronous_commit", "off").unwrap_err().state, "0A000");
    }
}
