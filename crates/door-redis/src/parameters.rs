//! The parameters of Redis' CONFIG for which the server has no setting.
//!
//! A host that has a setting of a parameter's name keeps it in its place, `notify-keyspace-events` and `client-output-buffer-limit` among them, whose notation the door knows.
//! Clients and test suites read and set them. Parameters that tune the internals of Redis are checked and remembered until the server stops. Nothing here
//! depends on them, except a few for ACL LOG and LATENCY. Parameters that would promise something Beluga does not do cannot be changed, and the error gives the
//! reason.

use std::collections::BTreeMap;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::host::Refused;
use crate::number;

mod encoding_limits;
pub mod event_flags;
mod list;
pub mod output_limits;
mod parameter;

use parameter::{Class, Kind, Parameter};

/// Changes that have been checked.
pub struct Checked(Vec<(&'static str, String)>);

const BUSY_THRESHOLD: &str = "busy-reply-threshold";

pub struct Parameters {
    set: Mutex<BTreeMap<&'static str, String>>,
    /// The value of `busy-reply-threshold`, which every script reads.
    busy_threshold_ms: AtomicU64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        let parameters = Parameters { set: Mutex::default(), busy_threshold_ms: AtomicU64::new(0) };
        parameters.busy_threshold_ms.store(parameters.number(BUSY_THRESHOLD), Ordering::Relaxed);
        parameters
    }
}

impl Parameters {
    /// Returns after how many milliseconds a script counts as busy; 0 for never.
    pub fn busy_threshold_ms(&self) -> u64 {
        self.busy_threshold_ms.load(Ordering::Relaxed)
    }

    /// Returns names and values of all parameters that are not among `known`.
    pub fn others(&self, known: &[(String, String)]) -> Vec<(String, String)> {
        let set = self.set.lock();
        let value =
            |parameter: &Parameter| set.get(parameter.kept_as()).map_or(parameter.default, String::as_str).to_owned();
        let is_known = |parameter: &&Parameter| known.iter().any(|(name, _)| name == parameter.name);
        list::LIST.iter().filter(|p| !is_known(p)).map(|p| (p.name.to_owned(), value(p))).collect()
    }

    /// Returns the value in force.
    pub fn text(&self, name: &str) -> String {
        let parameter = list::LIST.iter().find(|parameter| parameter.name == name).expect("the caller knows the list");
        self.set.lock().get(parameter.kept_as()).map_or(parameter.default, String::as_str).to_owned()
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Checks whether the changes are allowed. Changes nothing.
    pub fn check(&self, changes: &[(&str, &str)]) -> Result<Checked, Refused> {
        let mut checked = Vec::new();
        for (name, text) in changes {
            let lower = name.to_ascii_lowercase();
            let parameter = list::LIST.iter().find(|parameter| parameter.name == lower);
            let Some(parameter) = parameter else { return Err(Refused::Unknown((*name).to_owned())) };
            match parameter.class {
                Class::Immutable => return Err(Refused::Fixed((*name).to_owned())),
                // Setting a fixed parameter to its current value succeeds.
                Class::Fixed(_) if *text == parameter.default => {}
                Class::Fixed(reason) => {
                    return Err(Refused::Bad((*name).to_owned(), format!("can't be changed here: {reason}")));
                }
                Class::Remembered => match parameter.kind.read(text, &self.text(parameter.name)) {
                    Ok(value) => checked.push((parameter.kept_as(), value)),
                    Err(expected) => return Err(Refused::Bad((*name).to_owned(), expected)),
                },
            }
        }
        Ok(Checked(checked))
    }

    /// Returns the text of a setting of the server whose notation is the door's, after a change of the text `before`; None if it has another one.
    pub fn read_of_host(name: &str, text: &str, before: &str) -> Option<Result<String, Refused>> {
        let parameter = list::LIST.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name))?;
        let is_ours = matches!(parameter.kind, Kind::EventFlags | Kind::OutputLimits);
        let read = || parameter.kind.read(text, before).map_err(|expected| Refused::Bad(name.to_owned(), expected));
        is_ours.then(read)
    }

    pub fn apply(&self, Checked(changes): Checked) {
        let mut set = self.set.lock();
        set.extend(changes);
        if let Some(threshold) = set.get(BUSY_THRESHOLD).and_then(|text| text.parse().ok()) {
            self.busy_threshold_ms.store(threshold, Ordering::Relaxed);
        }
    }
}

impl Kind {
    /// Returns the value as CONFIG GET will show it, after the one before. The error is Redis'.
    fn read(self, text: &str, before: &str) -> Result<String, String> {
        match self {
            Kind::EventFlags => event_flags::changed(text),
            Kind::OutputLimits => output_limits::changed(before, text),
            Kind::Text => Ok(text.to_owned()),
            Kind::Percentiles => percentiles(text),
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                word @ ("yes" | "no") => Ok(word.to_owned()),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::Choice(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                Some(word) => Ok((*word).to_owned()),
                None => Err(format!("argument(s) must be one of the following: {}", words.join(", "))),
            },
            Kind::Number(low, high) => match number::parse(text.as_bytes()) {
                Some(number) if (low..=high).contains(&number) => Ok(number.to_string()),
                Some(_) => Err(format!("argument must be between {low} and {high} inclusive")),
                None => Err("argument couldn't be parsed into an integer".to_owned()),
            },
            Kind::Size(low) => match number::memory_size(text) {
                Some(number) if number >= low => Ok(number.to_string()),
                Some(_) => Err(format!("argument must be between {low} and {} inclusive", i64::MAX)),
                None => Err("argument must be a memory value".to_owned()),
            },
        }
    }
}

fn percentiles(text: &str) -> Result<String, String> {
    let mut shown = Vec::new();
    for word in text.split_ascii_whitespace() {
        match word.parse::<f64>() {
            Ok(number) if (0.0..=100.0).contains(&number) => shown.push(trimmed(number)),
            Ok(_) => {
                return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned());
            }
            Err(_) => return Err("Invalid latency-tracking-info-percentiles parameters".to_owned()),
        }
    }
    Ok(shown.join(" "))
}

/// Formats as Redis does: at most six decimals, without trailing zeros.
fn trimmed(number: f64) -> String {
    format!("{number:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(parameters: &Parameters, name: &str) -> String {
        let found = parameters.others(&[]).into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value).unwrap_or_default()
    }

    #[test]
    fn what_is_remembered_shows_under_both_names() {
        let parameters = Parameters::default();
        let checked = parameters.check(&[("hash-max-ziplist-value", "1kb"), ("HZ", "100")]);
        assert_eq!(get(&parameters, "hz"), "10", "a check changes nothing");
        parameters.apply(checked.unwrap_or_else(|refused| panic!("{refused:?}")));
        assert_eq!(get(&parameters, "hash-max-listpack-value"), "1024");
        assert_eq!(get(&parameters, "hash-max-ziplist-value"), "1024");
        assert_eq!(get(&parameters, "hz"), "100");
    }

    #[test]
    fn scripts_read_the_threshold_that_either_name_has_set() {
        let parameters = Parameters::default();
        assert_eq!(parameters.busy_threshold_ms(), 5000);
        for (name, value) in [("busy-reply-threshold", 0), ("lua-time-limit", 250)] {
            let text = value.to_string();
            let checked = parameters.check(&[(name, &text)]);
            parameters.apply(checked.unwrap_or_else(|refused| panic!("{refused:?}")));
            assert_eq!((parameters.busy_threshold_ms(), parameters.number(BUSY_THRESHOLD)), (value, value), "{name}");
        }
    }

    #[test]
    fn one_bad_change_refuses_all_with_the_words_of_redis() {
        let parameters = Parameters::default();
        let refusal = |changes: &[(&str, &str)]| parameters.check(changes).err();
        let bad = |name: &str, why: &str| Some(Refused::Bad(name.to_owned(), why.to_owned()));
        assert_eq!(refusal(&[("hz", "abc")]), bad("hz", "argument couldn't be parsed into an integer"));
        assert_eq!(refusal(&[("hz", "-1")]), bad("hz", "argument must be between 0 and 2147483647 inclusive"));
        assert_eq!(refusal(&[("activerehashing", "on")]), bad("activerehashing", "argument must be 'yes' or 'no'"));
        assert_eq!(refusal(&[("hz", "5"), ("nothing", "1")]), Some(Refused::Unknown("nothing".to_owned())));
        assert_eq!(refusal(&[("daemonize", "yes")]), Some(Refused::Fixed("daemonize".to_owned())));
        assert!(refusal(&[("maxmemory-policy", "allkeys-lru")]).is_some());
        assert!(refusal(&[("maxmemory-policy", "noeviction")]).is_none(), "it is so already");
    }

    #[test]
    fn percentiles_show_as_in_redis() {
        for (given, shown) in
            [("50.0 0.0 99.990 1e1 100", "50 0 99.99 10 100"), ("33.333333333 99.99999999", "33.333333 100")]
        {
            assert_eq!(percentiles(given).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn every_alias_has_its_parameter_and_every_default_is_allowed() {
        for parameter in list::LIST {
            assert!(list::LIST.iter().any(|other| other.name == parameter.kept_as()), "{}", parameter.name);
            assert_eq!(
                parameter.kind.read(parameter.default, parameter.default).as_deref(),
                Ok(parameter.default),
                "{}",
                parameter.name
            );
        }
    }
}
