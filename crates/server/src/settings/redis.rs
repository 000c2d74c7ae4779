//! The settings under the names and in the forms of Redis' CONFIG. The texts of its errors are the door's.

use super::Settings;
use super::list::{Redis, list};
use super::value::{Kind, Unit, Value};

#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    Unknown(String),
    /// The setting takes effect at a start only.
    Fixed(String),
    /// The name, and what is expected.
    Bad(String, String),
}

impl Settings {
    /// Names and values, first of Redis, then our own.
    pub fn redis_all(&self) -> Vec<(&'static str, String)> {
        let mut all: Vec<(&'static str, String)> = Vec::new();
        for (at, setting) in list().iter().enumerate() {
            let value = self.read(at).0;
            if let Some((name, form)) = setting.redis {
                all.push((name, written(form, &setting.kind, &value)));
            }
        }
        for (at, setting) in list().iter().enumerate() {
            if all.iter().all(|(name, _)| *name != setting.name) {
                all.push((setting.name, written(Redis::AsIs, &setting.kind, &self.read(at).0)));
            }
        }
        all
    }

    /// All of the changes or none.
    pub fn redis_set(&self, changes: &[(&str, &str)]) -> Result<(), Refused> {
        let mut checked = Vec::new();
        for (name, text) in changes {
            let lower = name.to_ascii_lowercase();
            let found = list().iter().enumerate().find_map(|(at, s)| match s.redis {
                Some((alias, form)) if alias == lower => Some((at, form)),
                _ if s.name == lower => Some((at, Redis::AsIs)),
                _ => None,
            });
            let Some((at, form)) = found else { return Err(Refused::Unknown(name.to_string())) };
            let setting = &list()[at];
            if !setting.dynamic {
                return Err(Refused::Fixed(name.to_string()));
            }
            let value = read(form, &setting.kind, text).map_err(|expected| Refused::Bad(name.to_string(), expected))?;
            checked.push((at, value));
        }
        checked.into_iter().for_each(|(at, value)| self.change(at, value));
        Ok(())
    }
}

fn written(form: Redis, kind: &Kind, value: &Value) -> String {
    match (form, value) {
        (Redis::YesNo, Value::Number(n)) => if *n == 0 { "no" } else { "yes" }.to_string(),
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
