//! The list of settings as text: `--help`, `beluga settings`, and the tables of docs/operating.md.

use std::fmt::Write as _;

use super::list::{Default, Setting, list};
use super::value::Kind;
use super::{Settings, Source};

/// Returns the names and types for `--help`, one line each.
pub fn help() -> String {
    let mut out = String::new();
    for (section, settings) in sections() {
        let _ = writeln!(out, "\n{section}:");
        for s in settings {
            let _ = writeln!(out, "  {:<44} {}", format!("{} <{}>", s.flag(), s.kind.word()), first_sentence(s.doc));
        }
    }
    out
}

/// Returns every setting with its value, its source and its description.
pub fn effective(settings: &Settings) -> String {
    let mut out = String::new();
    for (at, s) in list().iter().enumerate() {
        let (value, source) = settings.read(at);
        let from = match source {
            Source::Default => "default",
            Source::File => "file",
            Source::Environment => "environment",
            Source::Flag => "flag",
            Source::Command => "changed since the start",
        };
        let _ = writeln!(out, "{} = {}   ({from})", s.name, quoted(s, &s.kind.print(&value)));
        let _ = writeln!(out, "    {}", s.doc);
        let when = if s.dynamic { "may change while the server runs" } else { "read at the start" };
        let alias = s.alias.map_or(String::new(), |alias| format!("; also named {alias}"));
        let _ = writeln!(
            out,
            "    default {}; {}; {when}; {} in the environment{alias}\n",
            default_words(s),
            s.kind.expected(),
            s.variable()
        );
    }
    out
}

/// Returns the tables of docs/operating.md.
pub fn markdown() -> String {
    let mut out = String::new();
    for (section, settings) in sections() {
        let _ = writeln!(
            out,
            "### {section}\n\n| Setting | Default | Values | Running | In Redis | Alias | What it does |\n|---|---|---|---|---|---|---|"
        );
        for s in settings {
            let redis = s.redis.map_or("", |(name, _)| name);
            let alias = s.alias.map_or(String::new(), |alias| format!("`{alias}`"));
            let running = if s.dynamic { "yes" } else { "no" };
            let default = default_words(s);
            let _ = writeln!(
                out,
                "| `{}` | {default} | {} | {running} | {redis} | {alias} | {} |",
                s.name,
                s.kind.expected(),
                s.doc
            );
        }
        out.push('\n');
    }
    out
}

fn sections() -> Vec<(&'static str, Vec<&'static Setting>)> {
    let mut sections: Vec<(&str, Vec<&Setting>)> = Vec::new();
    for setting in list() {
        match sections.last_mut() {
            Some((name, settings)) if *name == setting.section => settings.push(setting),
            _ => sections.push((setting.section, vec![setting])),
        }
    }
    sections
}

fn default_words(s: &Setting) -> String {
    match &s.default {
        Default::Derived(_, words) => words.to_string(),
        Default::Fixed(value) => match s.kind.print(value) {
            empty if empty.is_empty() => "none".into(),
            text => text,
        },
    }
}

/// Formats a value as in the settings file.
fn quoted(s: &Setting, text: &str) -> String {
    if matches!(s.kind, Kind::Count(_)) { text.to_string() } else { format!("\"{text}\"") }
}

fn first_sentence(doc: &str) -> &str {
    doc.find(". ").map_or(doc, |end| &doc[..=end])
}
