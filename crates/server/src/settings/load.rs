//! Loads and checks settings from the command line, the environment and the file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lexopt::prelude::*;
use toml_edit::{DocumentMut, Item, TableLike, Value as Toml};

use super::list::{self, list};
use super::value::Kind;
use super::{Settings, Source};
use crate::exit::{Exit, Failure};
use crate::machine::Machine;

/// Options that are not settings: the name, and whether it takes a value.
const OPTIONS: &[(&str, bool)] = &[
    ("config", true),
    ("from", true),
    ("to", true),
    ("until-lsn", true),
    ("until-time", true),
    ("renew", false),
    ("overwrite", false),
    ("into", true),
    ("replace", false),
    ("markdown", false),
    ("help", false),
    ("version", false),
];

/// The parsed command line. Values are not checked yet.
#[derive(Debug, Default)]
pub struct Arguments {
    /// The arguments without dashes: the command and its operands.
    pub words: Vec<String>,
    options: BTreeMap<&'static str, String>,
    /// Settings: the index in the list, the flag as given, the value.
    flags: Vec<(usize, String, String)>,
}

impl Arguments {
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, Failure> {
        let usage = |e: lexopt::Error| Failure::new(Exit::Usage, format!("{e}; see beluga --help"));
        let mut parser = lexopt::Parser::from_args(arguments);
        let mut parsed = Arguments::default();
        while let Some(argument) = parser.next().map_err(usage)? {
            let name = match argument {
                Value(word) => {
                    parsed.words.push(word.string().map_err(usage)?);
                    continue;
                }
                Short('h') => "help".to_string(),
                Short('V') => "version".to_string(),
                Short(letter) => return Err(usage(Short(letter).unexpected())),
                Long(name) => name.to_string(),
            };
            if let Some((option, takes_value)) = OPTIONS.iter().find(|(o, _)| *o == name) {
                let value =
                    if *takes_value { parser.value().and_then(|v| v.string()).map_err(usage)? } else { String::new() };
                parsed.options.insert(option, value);
            } else if let Some(at) = list::find(without_loose_prefix(&name)) {
                let value = parser.value().and_then(|v| v.string());
                let value = value.map_err(|_| bad_value(&format!("--{name}"), at, None))?;
                parsed.flags.push((at, name, value));
            } else {
                return Err(unknown(&format!("--{name}"), &name, Exit::Usage));
            }
        }
        Ok(parsed)
    }

    pub fn option(&self, name: &str) -> Option<&str> {
        debug_assert!(OPTIONS.iter().any(|(o, _)| *o == name), "{name}");
        self.options.get(name).map(String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.option(name).is_some()
    }
}

impl Settings {
    /// Loads the settings of a start. Also returns warnings for the log.
    pub fn load(
        arguments: &Arguments,
        environment: impl IntoIterator<Item = (String, String)>,
        machine: Machine,
    ) -> Result<(Settings, Vec<String>), Failure> {
        let environment: BTreeMap<String, String> = environment.into_iter().collect();
        let mut settings = Settings::with_defaults(machine);
        let mut warnings = Vec::new();
        let file = arguments.option("config").or_else(|| environment.get("BELUGA_CONFIG").map(String::as_str));
        if let Some(file) = file {
            warnings = settings.read_file(Path::new(file))?;
            settings.file = Some(PathBuf::from(file));
        }
        let mut given = Given::default();
        for (variable, text) in &environment {
            let Some(name) = variable.strip_prefix("BELUGA_").filter(|n| *n != "CONFIG") else { continue };
            match list::find(name) {
                Some(at) => {
                    given.add(at, name, |name| format!("BELUGA_{}", name.to_ascii_uppercase()))?;
                    settings.take(at, text, Source::Environment, variable)?;
                }
                // Not an error: the variable may belong to another program.
                None => warnings.push(unknown(variable, name, Exit::Config).message),
            }
        }
        let mut given = Given::default();
        for (at, name, text) in &arguments.flags {
            let flag = |name: &str| format!("--{}", name.replace('_', "-"));
            given.add(*at, without_loose_prefix(name), flag)?;
            settings.take(*at, text, Source::Flag, &flag(name))?;
        }
        Ok((settings, warnings))
    }

    fn take(&self, at: usize, text: &str, source: Source, place: &str) -> Result<(), Failure> {
        let value = list()[at].kind.parse(text).map_err(|_| bad_value(place, at, Some(text)))?;
        self.write(at, value, source);
        Ok(())
    }

    /// Reads the settings file. Returns the unknown names with the prefix `loose_`, which as in MySQL are no errors.
    fn read_file(&self, path: &Path) -> Result<Vec<String>, Failure> {
        let file = path.display();
        let fail = |message: String| Failure::new(Exit::Config, format!("settings file {file}: {message}"));
        let text = std::fs::read_to_string(path)
            .map_err(|e| fail(format!("{e}; the name comes from --config or BELUGA_CONFIG")))?;
        let document: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| {
            let line = e.span().map_or(0, |s| text[..s.start.min(text.len())].lines().count().max(1));
            fail(format!("line {line}: {}", e.message()))
        })?;
        let (mut entries, mut warnings) = (Vec::new(), Vec::new());
        flatten("", document.as_table(), &mut entries);
        let mut given = Given::default();
        for (name, value) in entries {
            let place = format!("settings file {file}: {name}");
            let tight = without_loose_prefix(&name);
            let Some(at) = list::find(tight) else {
                let unknown = unknown(&place, tight, Exit::Config);
                if tight == name {
                    return Err(unknown);
                }
                warnings.push(unknown.message);
                continue;
            };
            given.add(at, tight, str::to_string).map_err(|both| fail(both.message))?;
            let text = value.ok_or_else(|| bad_value(&place, at, None))?;
            self.take(at, &text, Source::File, &place)?;
        }
        Ok(warnings)
    }

    /// Writes the settings that were changed at run time into the settings file. Comments and the order of the file are preserved.
    pub fn rewrite(&self) -> Result<(), String> {
        let path = self.file.as_ref().ok_or("The server is running without a config file")?;
        let fail = |what: String| format!("{}: {what}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        let mut document: DocumentMut =
            text.parse().map_err(|e: toml_edit::TomlError| fail(e.message().to_string()))?;
        for (at, setting) in list().iter().enumerate() {
            let (value, source) = self.read(at);
            if source == Source::Command {
                let written: Toml = match (&value, &setting.kind) {
                    (super::Value::Text(text), _) => text.into(),
                    (super::Value::Number(n), Kind::Count(_)) => i64::try_from(*n).unwrap_or(i64::MAX).into(),
                    _ => setting.kind.print(&value).into(),
                };
                let table = document.as_table_mut();
                let in_file = setting.names().find(|name| holds(table, name)).unwrap_or(setting.name);
                put(table, in_file, written);
            }
        }
        // Written to a second file first, so that a crash leaves one of the two intact.
        let beside = path.with_extension("toml.new");
        let write = || {
            std::fs::write(&beside, document.to_string())?;
            // The file may hold passwords. Its permissions are the operator's choice.
            std::fs::set_permissions(&beside, std::fs::metadata(path)?.permissions())?;
            std::fs::File::open(&beside)?.sync_all()?;
            std::fs::rename(&beside, path)
        };
        write().map_err(|e| fail(e.to_string()))
    }
}

/// The names under which one source (the file, the environment or the command line) has given settings.
///
/// A source that overrides another may use the other name; one source must not give a setting under both, because neither is the later one.
#[derive(Default)]
struct Given(BTreeMap<usize, String>);

impl Given {
    /// Records that setting `at` was given as `name`. Fails if it was given under its other name before; `spell` writes a name as this source spells it.
    fn add(&mut self, at: usize, name: &str, spell: impl Fn(&str) -> String) -> Result<(), Failure> {
        let name = name.replace('-', "_").to_ascii_lowercase();
        if let Some(other) = self.0.get(&at).filter(|other| **other != name) {
            let message =
                format!("{} and {} are two names of one setting; give only one of them", spell(other), spell(&name));
            return Err(Failure::new(Exit::Config, message));
        }
        self.0.insert(at, name);
        Ok(())
    }
}

/// Flattens the file to full names: `[redis] port = 1` and `redis_port = 1` are the same. The text is None for a value that is neither a string, a number nor a
/// boolean.
fn flatten(prefix: &str, table: &dyn TableLike, entries: &mut Vec<(String, Option<String>)>) {
    for (key, item) in table.iter() {
        let name = if prefix.is_empty() { key.to_string() } else { format!("{prefix}_{key}") };
        match item {
            Item::Value(Toml::String(s)) => entries.push((name, Some(s.value().clone()))),
            Item::Value(Toml::Integer(n)) => entries.push((name, Some(n.value().to_string()))),
            Item::Value(Toml::Boolean(b)) => entries.push((name, Some(b.value().to_string()))),
            _ => match item.as_table_like() {
                Some(inner) => flatten(&name, inner, entries),
                None => entries.push((name, None)),
            },
        }
    }
}

/// Removes the prefix `loose_`, which in MySQL marks options that not every server knows.
fn without_loose_prefix(name: &str) -> &str {
    match name.get(..6) {
        Some(prefix) if prefix.eq_ignore_ascii_case("loose_") || prefix.eq_ignore_ascii_case("loose-") => &name[6..],
        _ => name,
    }
}

/// Returns whether the table has a value with this full name, directly or in an inner table.
fn holds(table: &dyn TableLike, name: &str) -> bool {
    let mut entries = Vec::new();
    flatten("", table, &mut entries);
    let plain = |key: &str| without_loose_prefix(&key.replace('-', "_").to_ascii_lowercase()) == name;
    entries.iter().any(|(key, _)| plain(key))
}

/// Changes a value in its place. A new value goes to the top of the file.
fn put(table: &mut dyn TableLike, name: &str, value: Toml) {
    let keys: Vec<String> = table.iter().map(|(key, _)| key.to_string()).collect();
    for key in keys {
        let plain = key.replace('-', "_").to_ascii_lowercase();
        let plain = without_loose_prefix(&plain).to_string();
        if plain == name {
            let item = table.get_mut(&key).expect("the key was just listed");
            let decor = item.as_value().map(|v| v.decor().clone());
            *item = toml_edit::value(value);
            if let (Some(value), Some(decor)) = (item.as_value_mut(), decor) {
                *value.decor_mut() = decor;
            }
            return;
        }
        let rest = name.strip_prefix(&plain).and_then(|r| r.strip_prefix('_'));
        if let (Some(rest), Some(inner)) = (rest, table.get_mut(&key).and_then(Item::as_table_like_mut)) {
            return put(inner, rest, value);
        }
    }
    table.insert(name, toml_edit::value(value));
}

fn unknown(place: &str, name: &str, exit: Exit) -> Failure {
    let hint = list::nearest(name).map_or(String::new(), |n| format!(" did you mean {n}?"));
    Failure::new(exit, format!("{place}: unknown setting;{hint} `beluga settings` lists all settings"))
}

fn bad_value(place: &str, at: usize, text: Option<&str>) -> Failure {
    let setting = &list()[at];
    let expected = setting.kind.expected();
    let came = match text {
        Some(_) if setting.kind == Kind::Secret => String::new(),
        Some(text) => format!(", not '{text}'"),
        None => String::new(),
    };
    Failure::new(Exit::Config, format!("{place}: expected {expected}{came}"))
}
