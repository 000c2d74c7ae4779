//! The texts of COMMAND DOCS, parsed from `docs.txt` at first use.
//!
//! An entry starts at the margin with the command's name, its group and the version that introduced it. The summary is the next line. Below `arguments` each
//! line is a kind, a name and flags; deeper indented lines belong to the line above.

use std::collections::HashMap;
use std::sync::LazyLock;

#[derive(Debug, Default)]
pub struct Doc {
    pub group: &'static str,
    pub since: &'static str,
    pub summary: String,
    pub complexity: Option<&'static str>,
    pub flags: Vec<&'static str>,
    /// The version since which it is deprecated, and the replacement.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Version and change.
    pub history: Vec<(&'static str, &'static str)>,
    pub arguments: Vec<Argument>,
}

#[derive(Debug, Default)]
pub struct Argument {
    pub kind: &'static str,
    pub name: &'static str,
    /// Index of the key spec of the command that it belongs to.
    pub key_spec: Option<i64>,
    pub token: Option<&'static str>,
    pub since: Option<&'static str>,
    pub deprecated: Option<&'static str>,
    /// `optional`, `multiple`, `multiple_token`.
    pub flags: Vec<&'static str>,
    pub arguments: Vec<Argument>,
}

/// Returns the entry of a command.
pub fn of(name: &str) -> &'static Doc {
    static ALL: LazyLock<HashMap<&'static str, Doc>> = LazyLock::new(|| parse(include_str!("docs.txt")));
    ALL.get(name).expect("a test compares the names with the table")
}

fn parse(text: &'static str) -> HashMap<&'static str, Doc> {
    let entries = text.split("\n\n").filter(|entry| !entry.is_empty());
    entries.map(|entry| parse_entry(entry).unwrap_or_else(|| panic!("docs.txt: {entry}"))).collect()
}

fn parse_entry(entry: &'static str) -> Option<(&'static str, Doc)> {
    let mut lines = entry.lines();
    let mut head = lines.next()?.split(' ');
    let name = head.next()?;
    let mut doc = Doc { group: head.next()?, since: head.next()?, ..Doc::default() };
    // Written as `\s`, because editors remove a space at the end of a line.
    doc.summary = lines.next()?.strip_prefix("  ")?.replace("\\s", " ");
    while let Some(line) = lines.next() {
        let (word, rest) = line.strip_prefix("  ")?.split_once(' ').unwrap_or((&line[2..], ""));
        match word {
            "complexity" => doc.complexity = Some(rest),
            "flags" => doc.flags = rest.split(' ').collect(),
            "deprecated" => doc.deprecated = Some(rest.split_once(' ')?),
            "history" => doc.history.push(rest.split_once(' ')?),
            "arguments" => {
                let rest: Vec<&str> = lines.by_ref().collect();
                doc.arguments = parse_arguments(&rest)?;
            }
            _ => return None,
        }
    }
    Some((name, doc))
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Parses the first line as an argument, and the deeper lines behind it as its own arguments.
fn parse_arguments(lines: &[&'static str]) -> Option<Vec<Argument>> {
    let mut arguments = Vec::new();
    let mut rest = lines;
    while let [line, behind @ ..] = rest {
        let inside = behind.iter().take_while(|other| depth(other) > depth(line)).count();
        let mut argument = parse_argument(line)?;
        argument.arguments = parse_arguments(&behind[..inside])?;
        arguments.push(argument);
        rest = &behind[inside..];
    }
    Some(arguments)
}

fn parse_argument(line: &'static str) -> Option<Argument> {
    let mut words = line.trim_start().split(' ');
    let mut argument = Argument { kind: words.next()?, name: words.next()?, ..Argument::default() };
    for word in words {
        match word.split_once('=') {
            Some(("spec", number)) => argument.key_spec = Some(number.parse().ok()?),
            Some(("token", token)) => argument.token = Some(token),
            Some(("since", version)) => argument.since = Some(version),
            Some(("deprecated", version)) => argument.deprecated = Some(version),
            Some(_) => return None,
            None => argument.flags.push(word),
        }
    }
    Some(argument)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::COMMANDS;

    #[test]
    fn there_is_one_entry_for_each_command() {
        let mut entries: Vec<&str> = parse(include_str!("docs.txt")).into_keys().collect();
        let mut table: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        entries.sort_unstable();
        table.sort_unstable();
        assert_eq!(entries, table);
    }

    #[test]
    fn what_stands_further_in_belongs_to_what_is_above() {
        let set = of("set");
        let names: Vec<&str> = set.arguments.iter().map(|argument| argument.name).collect();
        assert_eq!(names, ["key", "value", "condition", "get", "expiration"]);
        let inside: Vec<Option<&str>> = set.arguments[2].arguments.iter().map(|argument| argument.token).collect();
        assert_eq!(inside, [Some("NX"), Some("XX")]);
        assert_eq!((set.arguments[2].since, set.arguments[2].flags.as_slice()), (Some("2.6.12"), &["optional"][..]));
        assert!(parse_entry("a string 1.0.0\n  Text\n  nonsense 1").is_none());
    }

    #[test]
    fn key_arguments_name_a_spec_of_the_row() {
        fn check(command: &crate::command::Command, arguments: &[Argument]) {
            for argument in arguments {
                if let Some(spec) = argument.key_spec {
                    assert!((spec as usize) < command.keys.len(), "{}", command.name);
                }
                check(command, &argument.arguments);
            }
        }
        COMMANDS.iter().for_each(|command| check(command, &of(command.name).arguments));
    }
}
