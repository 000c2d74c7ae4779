//! The description of a command: one row of the table.
//!
//! Dispatch, arity, keys and their locks, COMMAND, ACL categories and statistics all come from the rows in `table/` (DR-6). A container's subcommands have rows
//! of their own, directly behind it, named `container|name`. The remaining texts of COMMAND DOCS are in `docs.txt`, the functions in `functions.rs`.

use crate::number;

pub mod keys;
#[cfg(test)]
mod tests;
pub mod unserved;

pub use keys::KeySpec;

/// The keys that a command locks while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// The keys of its key specs, in the selected database.
    Keys,
    /// MOVE: the key in two databases.
    Moved,
    /// COPY: the source here, the target here or in the database named by an option.
    Copied,
    /// All keys: the command runs alone.
    Everything,
}

/// Flags of a command. The names and their order are Redis'.
pub mod flag {
    pub const WRITE: u32 = 1;
    pub const READONLY: u32 = 1 << 1;
    pub const DENYOOM: u32 = 1 << 2;
    pub const ADMIN: u32 = 1 << 3;
    pub const NOSCRIPT: u32 = 1 << 4;
    pub const LOADING: u32 = 1 << 5;
    pub const STALE: u32 = 1 << 6;
    pub const SKIP_SLOWLOG: u32 = 1 << 7;
    pub const FAST: u32 = 1 << 8;
    pub const NO_AUTH: u32 = 1 << 9;
    pub const ALLOW_BUSY: u32 = 1 << 10;
    pub const PUBSUB: u32 = 1 << 11;
    pub const MOVABLEKEYS: u32 = 1 << 12;
    pub const SKIP_MONITOR: u32 = 1 << 13;
    pub const NO_MANDATORY_KEYS: u32 = 1 << 14;
    /// May wait until a key has something for it.
    pub const BLOCKING: u32 = 1 << 15;
    pub const NO_ASYNC_LOADING: u32 = 1 << 16;
    pub const NO_MULTI: u32 = 1 << 17;
    pub const ASKING: u32 = 1 << 18;
    /// May change what followers have although it is no write, so a pause of writes holds it up. COMMAND does not show it, as in Redis.
    pub const MAY_REPLICATE: u32 = 1 << 19;
    /// Runs inside MULTI at once instead of being queued. COMMAND does not show it.
    pub const NOW: u32 = 1 << 30;

    pub const NAMES: &[(u32, &str)] = &[
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (PUBSUB, "pubsub"),
        (NOSCRIPT, "noscript"),
        (BLOCKING, "blocking"),
        (LOADING, "loading"),
        (STALE, "stale"),
        (SKIP_MONITOR, "skip_monitor"),
        (SKIP_SLOWLOG, "skip_slowlog"),
        (ASKING, "asking"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (NO_ASYNC_LOADING, "no_async_loading"),
        (NO_MULTI, "no_multi"),
        (MOVABLEKEYS, "movablekeys"),
        (ALLOW_BUSY, "allow_busy"),
    ];
}

/// ACL categories, including those that no served command has.
pub mod category {
    pub const KEYSPACE: u32 = 1;
    pub const READ: u32 = 1 << 1;
    pub const WRITE: u32 = 1 << 2;
    pub const SET: u32 = 1 << 3;
    pub const SORTEDSET: u32 = 1 << 4;
    pub const LIST: u32 = 1 << 5;
    pub const HASH: u32 = 1 << 6;
    pub const STRING: u32 = 1 << 7;
    pub const BITMAP: u32 = 1 << 8;
    pub const HYPERLOGLOG: u32 = 1 << 9;
    pub const GEO: u32 = 1 << 10;
    pub const STREAM: u32 = 1 << 11;
    pub const PUBSUB: u32 = 1 << 12;
    pub const ADMIN: u32 = 1 << 13;
    pub const FAST: u32 = 1 << 14;
    pub const SLOW: u32 = 1 << 15;
    pub const BLOCKING: u32 = 1 << 16;
    pub const DANGEROUS: u32 = 1 << 17;
    pub const CONNECTION: u32 = 1 << 18;
    pub const TRANSACTION: u32 = 1 << 19;
    pub const SCRIPTING: u32 = 1 << 20;

    /// The name of bit `i` is at index `i`.
    pub const NAMES: &[&str] = &[
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

    pub fn of_name(name: &[u8]) -> Option<u32> {
        NAMES.iter().position(|known| name.eq_ignore_ascii_case(known.as_bytes())).map(|place| 1 << place)
    }
}

#[derive(Clone, Copy)]
pub struct Command {
    /// In lower case. The name of a subcommand is `container|name`.
    pub name: &'static str,
    /// Number of arguments including the name. Negative: the minimum number.
    pub arity: i32,
    pub flags: u32,
    /// ACL categories beyond those that follow from the flags.
    pub own_categories: u32,
    pub keys: &'static [KeySpec],
    pub tips: &'static [&'static str],
    pub scope: KeyScope,
}

/// A row without keys and tips.
pub const fn row(name: &'static str, arity: i32, flags: u32, own_categories: u32) -> Command {
    Command { name, arity, flags, own_categories, keys: &[], tips: &[], scope: KeyScope::Keys }
}

impl Command {
    pub const fn keys(mut self, keys: &'static [KeySpec]) -> Command {
        self.keys = keys;
        self
    }

    pub const fn tips(mut self, tips: &'static [&'static str]) -> Command {
        self.tips = tips;
        self
    }

    pub const fn scope(mut self, scope: KeyScope) -> Command {
        self.scope = scope;
        self
    }

    pub fn is(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    pub fn takes(&self, count: usize) -> bool {
        if self.arity >= 0 { count == self.arity as usize } else { count >= self.arity.unsigned_abs() as usize }
    }

    pub fn is_subcommand(&self) -> bool {
        self.name.contains('|')
    }

    /// Returns the ACL categories: its own, and those that follow from the flags.
    pub fn categories(&self) -> u32 {
        let implied = [
            (flag::WRITE, category::WRITE),
            (flag::READONLY, category::READ),
            (flag::ADMIN, category::ADMIN | category::DANGEROUS),
        ];
        let speed = if self.is(flag::FAST) { category::FAST } else { category::SLOW };
        // As in Redis, scripts that only read are not among the commands that read.
        let is_script = self.own_categories & category::SCRIPTING != 0;
        implied
            .iter()
            .filter(|(flag, categories)| self.is(*flag) && !(is_script && *categories == category::READ))
            .fold(self.own_categories | speed, |all, (_, categories)| all | categories)
    }

    /// Returns the argument indexes of all keys, in the order of the specs.
    pub fn key_positions<'a>(&self, args: &'a [&'a [u8]]) -> impl Iterator<Item = usize> + use<'a> {
        self.keys.iter().filter(|spec| spec.names_keys()).flat_map(move |spec| spec.positions(args))
    }

    /// Returns the argument indexes of the channels that a user must be allowed to use, and whether they are patterns.
    pub fn channels(&self, count: usize) -> Option<(std::ops::Range<usize>, bool)> {
        if !self.is(flag::PUBSUB) {
            return None;
        }
        match self.name {
            "subscribe" | "ssubscribe" => Some((1..count, false)),
            "psubscribe" => Some((1..count, true)),
            "publish" | "spublish" => Some((1..2, false)),
            _ => None,
        }
    }

    /// Returns whether the command waits for another server, which must not happen under the locks of EXEC or of a script.
    pub fn asks_another_server(&self) -> bool {
        self.name == "migrate"
    }

    /// Returns whether followers may hear of what the command does.
    pub fn may_be_told(&self) -> bool {
        let is_other = || matches!(self.name, "exec" | "eval" | "evalsha" | "fcall" | "publish" | "spublish");
        self.is(flag::WRITE) || is_other() || self.name.starts_with("function|")
    }

    /// Returns whether Redis refuses the command to its replicas, among which it counts monitors.
    pub fn touches_keys_or_channels(&self) -> bool {
        self.is(flag::WRITE | flag::READONLY | flag::MAY_REPLICATE)
    }

    /// Returns first key, last key and step, as COMMAND shows them in addition to the specs. Keys that are counted or behind a word have no place in them.
    pub fn legacy_keys(&self) -> (i64, i64, i64) {
        let mut placed = self.keys.iter().filter(|spec| !spec.is_counted && !spec.is_unknown && spec.keyword.is_none());
        let Some(first) = placed.next() else { return (0, 0, 0) };
        match placed.next_back() {
            None => (first.first as i64, first.absolute_last(), first.step as i64),
            Some(last) => (first.first as i64, last.absolute_last(), 1),
        }
    }

    /// Returns the databases and keys that a request must lock, or None if it locks all keys.
    pub fn keys_of<'a>(&self, db: u8, args: &[&'a [u8]]) -> Option<Vec<(u8, &'a [u8])>> {
        Some(match self.scope {
            KeyScope::Everything => return None,
            KeyScope::Keys => self.key_positions(args).map(|at| (db, args[at])).collect(),
            KeyScope::Moved => {
                let mut keys = vec![(db, args[1])];
                keys.extend(number::database(args[2]).map(|to| (to, args[1])));
                keys
            }
            KeyScope::Copied => {
                let named = args.windows(2).skip(3).find(|pair| pair[0].eq_ignore_ascii_case(b"db"));
                let to = named.and_then(|pair| number::database(pair[1])).unwrap_or(db);
                vec![(db, args[1]), (to, args[2])]
            }
        })
    }
}

/// Returns whether a command stores something besides keys, or waits for another server. EXEC must not run it: EXEC holds the locks of its keys and must not wait
/// while it does.
pub fn is_barred_from_exec(command: &Command, args: &[&[u8]]) -> bool {
    let is = |at: usize, word: &str| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    match command.name {
        "acl|setuser" | "acl|deluser" => true,
        "function|load" | "function|delete" | "function|flush" | "function|restore" => true,
        "config|set" => (2..args.len()).any(|at| is(at, "requirepass")),
        // It takes all keys, and EXEC has some.
        "replicaof" | "slaveof" => true,
        _ => command.asks_another_server(),
    }
}

/// Returns an argument as SLOWLOG may show it. Passwords are replaced.
pub fn shown<'a>(args: &[&'a [u8]], at: usize, arg: &&'a [u8]) -> &'a [u8] {
    let is = |at: usize, word: &str| args[at].eq_ignore_ascii_case(word.as_bytes());
    let secret = at > 0
        && (is(0, "auth")
            || is(0, "hello") && (1..at).any(|option| is(option, "auth") && at - option <= 2)
            || is(0, "migrate")
                && at > 6
                && (is(at - 1, "auth") || is(at - 1, "auth2") || at > 7 && is(at - 2, "auth2"))
            || is(0, "acl") && is(1, "setuser") && at > 2
            || is(0, "config") && is(1, "set") && at > 2 && (is(at - 1, "requirepass") || is(at - 1, "masterauth")));
    if secret { b"(redacted)" } else { arg }
}
