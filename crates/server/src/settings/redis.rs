//! The settings under the names and in the notation of Redis' CONFIG. The error texts belong to the door.

use super::{Name, Settings};
use door_redis::Refused;

use super::list::{Redis, list};
use super::value::{Kind, OFF, Unit, Value};

/// Parameters of Redis that have a single possible value here: name, value, and the reason for that.
const FACTS: &[(&str, &str, &str)] = &[
    ("appendonly", "yes", "every write goes to the log, also without waiting for it (appendfsync no)"),
    ("save", "", "snapshots are made by SAVE and BGSAVE alone, since every acknowledged write is on disk already"),
    ("databases", "16", "there are 16 databases"),
    ("maxmemory-policy", "noeviction", "memory is a cache of the disk, nothing is removed to make room"),
];

/// Changes that were checked and can no longer fail.
#[derive(Debug, PartialEq, Eq)]
pub struct Checked(Vec<(usize, Value)>);

impl Checked {
    /// Returns the new text of a setting, if it is among the changes.
    pub fn text(&self, name: Name) -> Option<&str> {
        self.0.iter().find(|(at, _)| *at == name as usize).map(|(_, value)| value.text())
    }
}

impl Settings {
    /// Returns names and values, first under the names of Redis, then under ours.
    pub fn redis_all(&self) -> Vec<(&'static str, String)> {
        let mut all: Vec<(&'static str, String)> = Vec::new();
        for (at, setting) in list().iter().enumerate() {
            let value = self.read(at).0;
            if let Some((name, form)) = setting.redis {
                all.push((name, written(form, &setting.kind, &value)));
            }
        }
        all.extend(FACTS.iter().map(|(name, value, _)| (*name, value.to_string())));
        for (at, setting) in list().iter().enumerate() {
            for name in setting.names().filter(|name| all.iter().all(|(known, _)| known != name)).collect::<Vec<_>>() {
                all.push((name, written(Redis::AsIs, &setting.kind, &self.read(at).0)));
            }
        }
        all
    }

    /// Checks all changes. Changes nothing yet.
    pub fn redis_check(&self, changes: &[(&str, &str)]) -> Result<Checked, Refused> {
        let mut checked = Vec::new();
        for (name, text) in changes {
            let lower = name.to_ascii_lowercase();
            if let Some((_, fact, reason)) = FACTS.iter().find(|(fact, ..)| *fact == lower) {
                if text.eq_ignore_ascii_case(fact) {
                    continue;
                }
                return Err(Refused::Bad(name.to_string(), format!("can't be changed here: {reason}")));
            }
            let found = list().iter().enumerate().find_map(|(at, s)| match s.redis {
                Some((alias, form)) if alias == lower => Some((at, form)),
                _ if s.names().any(|known| known == lower) => Some((at, Redis::AsIs)),
                _ => None,
            });
            let Some((at, form)) = found else { return Err(Refused::Unknown(name.to_string())) };
            let setting = &list()[at];
            let value = read(form, &setting.kind, text);
            // Setting a fixed parameter to its current value succeeds.
            let is_same = value.as_ref().is_ok_and(|value| *value == self.read(at).0);
            if !setting.dynamic && !is_same {
                let why = format!(
                    "can't be changed while the server runs; it is the setting {}, which takes effect at the next start",
                    setting.name
                );
                return Err(Refused::Bad(name.to_string(), why));
            }
            let value =
                value.map_err(|expected| Refused::Bad(name.to_string(), format!("argument must be {expected}")))?;
            if !setting.dynamic {
                continue;
            }
            checked.push((at, value));
        }
        Ok(Checked(checked))
    }

    pub fn redis_apply(&self, checked: Checked) {
        checked.0.into_iter().for_each(|(at, value)| self.change(at, value));
    }
}

fn written(form: Redis, kind: &Kind, value: &Value) -> String {
    match (form, value) {
        (Redis::YesNo, Value::Number(n)) => if *n == 0 { "no" } else { "yes" }.to_string(),
        (Redis::Time(_), Value::Number(OFF)) => "-1".to_string(),
        (Redis::Time(unit), Value::Number(n)) => (n / unit.micros()).to_string(),
        (Redis::Bytes, Value::Number(n)) => n.to_string(),
        (_, Value::Text(text)) => text.clone(),
        (Redis::AsIs, value) => kind.print(value),
    }
}

fn read(form: Redis, kind: &Kind, text: &str) -> Result<Value, String> {
    let bare = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    match form {
        Redis::Time(unit) if bare => kind.parse(&format!("{text}{}", suffix(unit))),
        _ => kind.parse(text),
    }
}

fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Microseconds => "us",
        Unit::Milliseconds => "ms",
        Unit::Seconds => "s",
    }
}
