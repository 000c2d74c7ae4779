//! ACL rules: what an account may run, and on which keys.

use crate::command::{COMMANDS, Command, flag};
use crate::glob;

/// Rules of an account in a form that is quick to ask.
#[derive(Clone, Debug)]
pub struct Permissions {
    commands: Vec<bool>,
    all_commands: bool,
    /// Patterns of keys, and whether they allow reading and writing.
    keys: Vec<(Vec<u8>, bool, bool)>,
    all_keys: bool,
}

impl Permissions {
    /// Reads rules as ACL SETUSER takes them, in order. The error names the rule.
    pub fn parse(rules: &str) -> Result<Permissions, String> {
        let mut permissions = Permissions {
            commands: vec![false; COMMANDS.len()],
            all_commands: false,
            keys: Vec::new(),
            all_keys: false,
        };
        for rule in rules.split_ascii_whitespace() {
            permissions.apply(rule).map_err(|what| format!("Error in ACL SETUSER modifier '{rule}': {what}"))?;
        }
        permissions.all_commands = permissions.commands.iter().all(|allowed| *allowed);
        Ok(permissions)
    }

    fn apply(&mut self, rule: &str) -> Result<(), &'static str> {
        match rule.to_ascii_lowercase().as_str() {
            "allcommands" | "+@all" => self.commands.fill(true),
            "nocommands" | "-@all" => self.commands.fill(false),
            "allkeys" | "~*" => self.all_keys = true,
            "resetkeys" => {
                self.all_keys = false;
                self.keys.clear();
            }
            // Channels have no commands yet; the rules are kept as they are.
            "allchannels" | "resetchannels" | "&*" => {}
            lower if lower.starts_with('&') => {}
            lower if lower.starts_with("+@") || lower.starts_with("-@") => {
                let (allow, category) = (lower.starts_with('+'), &lower[2..]);
                let mut known = CATEGORIES.contains(&category);
                for (allowed, command) in self.commands.iter_mut().zip(COMMANDS) {
                    if command.categories().contains(&category) {
                        *allowed = allow;
                        known = true;
                    }
                }
                return if known { Ok(()) } else { Err("Unknown command or category name in ACL") };
            }
            lower if lower.starts_with(['+', '-']) => {
                let command =
                    crate::command::find(&lower.as_bytes()[1..]).ok_or("Unknown command or category name in ACL")?;
                self.commands[command.index()] = lower.starts_with('+');
            }
            _ if rule.starts_with('~') => self.keys.push((rule.as_bytes()[1..].to_vec(), true, true)),
            _ if rule.starts_with('%') => return self.apply_selective(rule),
            _ => return Err("Syntax error"),
        }
        Ok(())
    }

    /// `%R~pattern`, `%W~pattern`, `%RW~pattern`.
    fn apply_selective(&mut self, rule: &str) -> Result<(), &'static str> {
        let (modes, pattern) = rule[1..].split_once('~').ok_or("Syntax error")?;
        let (mut read, mut write) = (false, false);
        for mode in modes.chars() {
            match mode.to_ascii_uppercase() {
                'R' => read = true,
                'W' => write = true,
                _ => return Err("Syntax error"),
            }
        }
        if !read && !write {
            return Err("Syntax error");
        }
        self.keys.push((pattern.as_bytes().to_vec(), read, write));
        Ok(())
    }

    /// Nothing needs to be asked.
    pub fn is_everything(&self) -> bool {
        self.all_commands && self.all_keys
    }

    pub fn may_run(&self, command: &'static Command) -> bool {
        // Getting in is never forbidden.
        self.all_commands || self.commands[command.index()] || command.is(flag::NO_AUTH)
    }

    pub fn may_use(&self, command: &Command, keys: Option<&[(u8, &[u8])]>) -> bool {
        if self.all_keys {
            return true;
        }
        let Some(keys) = keys else { return true };
        let write = command.is(flag::WRITE);
        keys.iter().all(|(_, key)| {
            self.keys.iter().any(|(pattern, may_read, may_write)| {
                (if write { *may_write } else { *may_read }) && glob::matches(pattern, key, false)
            })
        })
    }
}

/// Redis's categories; those without a command here are known all the same.
pub const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::find;

    #[test]
    fn rules_apply_in_order() {
        let permissions = Permissions::parse("~app:* %R~shared:* +@all -@dangerous -set +info").unwrap();
        let may = |name: &str| permissions.may_run(find(name.as_bytes()).unwrap());
        assert!(may("get") && !may("set") && !may("flushall") && may("info") && may("auth"));
        let uses = |name: &str, key: &[u8]| permissions.may_use(find(name.as_bytes()).unwrap(), Some(&[(0, key)]));
        assert!(
            uses("get", b"app:1") && uses("get", b"shared:1") && !uses("append", b"shared:1") && !uses("get", b"x")
        );
        assert!(Permissions::parse("~* &* +@all").unwrap().is_everything());
        assert!(Permissions::parse("+nothing").unwrap_err().contains("'+nothing'"));
    }
}
