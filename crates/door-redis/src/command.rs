//! The table of commands: name, arity, flags, keys, documentation, function. COMMAND, ACL categories and statistics come from it.

use std::collections::HashMap;
use std::sync::LazyLock;

use engine::Unit;

use crate::commands::{acl, bitmap, connection, expire, generic, server, string};
use crate::errors;
use crate::reply::Reply;
use crate::session::Session;

/// A request being run: its arguments, and where the reply goes.
pub struct Call<'c> {
    pub args: &'c [&'c [u8]],
    pub db: u8,
    pub reply: Reply<'c>,
    pub command: &'static Command,
}

pub type Result = std::result::Result<(), engine::Error>;

/// How a command runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// Sees keys. May run several times; what it wrote to the reply before is taken back.
    Read(fn(&mut Unit<'_>, &mut Call<'_>) -> Result),
    /// Changes keys, all of them or none.
    Write(fn(&mut Unit<'_>, &mut Call<'_>) -> Result),
    /// Works on the session or the server.
    Session(fn(&mut Session, &mut Call<'_>) -> Result),
}

/// Where the keys stand among the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    None,
    /// First, last (negative: from the end), step.
    Range(usize, i32, usize),
    /// MOVE: the key in two databases.
    Move,
    /// COPY: source here, target here or in the database named by an option.
    Copied,
    /// Everything: the command must be alone.
    All,
}

/// Flags and ACL categories, by bits; the names are Redis's.
pub mod flag {
    pub const WRITE: u32 = 1;
    pub const READONLY: u32 = 1 << 1;
    pub const DENYOOM: u32 = 1 << 2;
    pub const ADMIN: u32 = 1 << 3;
    pub const NOSCRIPT: u32 = 1 << 4;
    pub const LOADING: u32 = 1 << 5;
    pub const STALE: u32 = 1 << 6;
    pub const FAST: u32 = 1 << 7;
    pub const NO_AUTH: u32 = 1 << 8;
    pub const NO_MULTI: u32 = 1 << 9;
    pub const SKIP_MONITOR: u32 = 1 << 10;
    pub const SKIP_SLOWLOG: u32 = 1 << 11;
    pub const BLOCKING: u32 = 1 << 12;
    pub const ALLOW_BUSY: u32 = 1 << 13;
    pub const NO_ASYNC_LOADING: u32 = 1 << 14;
    /// Runs inside MULTI at once instead of being queued.
    pub const NOW: u32 = 1 << 30;

    pub const NAMES: [(u32, &str); 15] = [
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (NOSCRIPT, "noscript"),
        (BLOCKING, "blocking"),
        (LOADING, "loading"),
        (STALE, "stale"),
        (SKIP_MONITOR, "skip_monitor"),
        (SKIP_SLOWLOG, "skip_slowlog"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (NO_MULTI, "no_multi"),
        (ALLOW_BUSY, "allow_busy"),
        (NO_ASYNC_LOADING, "no_async_loading"),
    ];
}

pub struct Command {
    pub name: &'static str,
    /// Number of arguments, the name included; negative: at least.
    pub arity: i32,
    pub flags: u32,
    pub keys: Keys,
    pub group: &'static str,
    pub since: &'static str,
    pub complexity: &'static str,
    pub summary: &'static str,
    pub run: Run,
}

impl Command {
    pub fn is(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    pub fn takes(&self, count: usize) -> bool {
        takes(self.arity, count)
    }

    /// Position of the command in the table.
    pub fn index(&'static self) -> usize {
        // The table is one slice, so the distance of the addresses is the index.
        let start = COMMANDS.as_ptr() as usize;
        (std::ptr::from_ref(self) as usize - start) / size_of::<Command>()
    }

    /// ACL categories without the `@`, from flags and group.
    pub fn categories(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let group = match self.group {
            "generic" => "keyspace",
            "transactions" => "transaction",
            "server" => "",
            other => other,
        };
        if self.is(flag::WRITE) {
            names.push("write");
        }
        if self.is(flag::READONLY) && !matches!(self.name, "ping" | "echo") {
            names.push("read");
        }
        if !group.is_empty() {
            names.push(group);
        }
        if self.is(flag::ADMIN) {
            names.extend(["admin", "dangerous"]);
        } else if matches!(self.name, "keys" | "flushdb" | "flushall" | "swapdb" | "info" | "role" | "debug") {
            names.push("dangerous");
        }
        if self.is(flag::BLOCKING) {
            names.push("blocking");
        }
        names.push(if self.is(flag::FAST) { "fast" } else { "slow" });
        names
    }

    /// Databases and keys that a request names; None if it needs all of them.
    pub fn keys_of<'a>(&self, db: u8, args: &[&'a [u8]]) -> Option<Vec<(u8, &'a [u8])>> {
        Some(match self.keys {
            Keys::None => Vec::new(),
            Keys::All => return None,
            Keys::Range(first, last, step) => {
                let last = if last < 0 { args.len() as i32 + last } else { last.min(args.len() as i32 - 1) };
                (first..=last.max(0) as usize)
                    .step_by(step)
                    .filter_map(|at| args.get(at))
                    .map(|key| (db, *key))
                    .collect()
            }
            Keys::Move => {
                let mut keys = vec![(db, args[1])];
                keys.extend(generic::database(args[2]).map(|to| (to, args[1])));
                keys
            }
            Keys::Copied => {
                let named = args.windows(2).skip(3).find(|pair| pair[0].eq_ignore_ascii_case(b"db"));
                let to = named.and_then(|pair| generic::database(pair[1])).unwrap_or(db);
                vec![(db, args[1]), (to, args[2])]
            }
        })
    }
}

/// Subcommands of a container with their arity, as `Command::arity`. They are checked before a command is queued or run.
const SUBCOMMANDS: &[(&str, &[(&str, i32)])] = &[
    (
        "acl",
        &[
            ("cat", -2),
            ("deluser", -3),
            ("genpass", -2),
            ("getuser", 3),
            ("help", 2),
            ("list", 2),
            ("setuser", -3),
            ("users", 2),
            ("whoami", 2),
        ],
    ),
    (
        "client",
        &[
            ("getname", 2),
            ("getredir", 2),
            ("help", 2),
            ("id", 2),
            ("info", 2),
            ("kill", -3),
            ("list", -2),
            ("no-evict", 3),
            ("pause", -3),
            ("reply", 3),
            ("setname", 3),
            ("trackinginfo", 2),
            ("unblock", -3),
            ("unpause", 2),
        ],
    ),
    ("command", &[("count", 2), ("docs", -2), ("getkeys", -4), ("help", 2), ("info", -2), ("list", -2)]),
    ("config", &[("get", -3), ("help", 2), ("resetstat", 2), ("rewrite", 2), ("set", -4)]),
    ("latency", &[("doctor", 2), ("help", 2), ("history", 3), ("latest", 2), ("reset", -2)]),
    ("memory", &[("doctor", 2), ("help", 2), ("usage", -3)]),
    ("object", &[("encoding", 3), ("freq", 3), ("help", 2), ("idletime", 3), ("refcount", 3)]),
    ("slowlog", &[("get", -2), ("help", 2), ("len", 2), ("reset", 2)]),
];

/// What is wrong with the subcommand of a request, if anything is.
pub fn check_subcommand(command: &Command, args: &[&[u8]]) -> Option<String> {
    let (_, known) = SUBCOMMANDS.iter().find(|(name, _)| *name == command.name)?;
    let given = args.get(1)?;
    let Some((name, arity)) = known.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(given)) else {
        return Some(errors::unknown_subcommand(command.name, given));
    };
    (!takes(*arity, args.len())).then(|| errors::wrong_arity(&format!("{}|{name}", command.name)))
}

fn takes(arity: i32, count: usize) -> bool {
    if arity >= 0 { count == arity as usize } else { count >= arity.unsigned_abs() as usize }
}

/// Commands that store something besides keys. EXEC holds the locks of its keys, and must not wait for room in the log with them.
pub fn stores_beside_keys(command: &Command, args: &[&[u8]]) -> bool {
    let is = |at: usize, word: &str| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    match command.name {
        "acl" => is(1, "setuser") || is(1, "deluser"),
        "config" => is(1, "set") && (2..args.len()).any(|at| is(at, "requirepass")),
        _ => false,
    }
}

/// An argument as SLOWLOG may show it: passwords are left out.
pub fn shown<'a>(args: &[&'a [u8]], at: usize, arg: &&'a [u8]) -> &'a [u8] {
    let is = |at: usize, word: &str| args[at].eq_ignore_ascii_case(word.as_bytes());
    let secret = at > 0
        && (is(0, "auth")
            || is(0, "hello") && (1..at).any(|option| is(option, "auth") && at - option <= 2)
            || is(0, "acl") && is(1, "setuser") && at > 2
            || is(0, "config") && is(1, "set") && at > 2 && is(at - 1, "requirepass"));
    if secret { b"(redacted)" } else { arg }
}

/// The command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    static INDEX: LazyLock<HashMap<&'static [u8], &'static Command>> =
        LazyLock::new(|| COMMANDS.iter().map(|command| (command.name.as_bytes(), command)).collect());
    let mut lower = [0; 24];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    INDEX.get(&*lower).copied()
}

use Keys::{All, Copied, Move, None as NoKeys, Range};
use Run::{Read, Session as Sess, Write};
use flag::*;

macro_rules! commands {
    ($($name:literal $arity:literal $flags:expr, $keys:expr, $group:literal $since:literal $complexity:literal $summary:literal $run:expr;)*) => {
        /// Every command that is served, by group.
        pub static COMMANDS: &[Command] = &[$(Command {
            name: $name, arity: $arity, flags: $flags, keys: $keys, group: $group, since: $since,
            complexity: $complexity, summary: $summary, run: $run,
        }),*];
    };
}

const W: u32 = WRITE;
const R: u32 = READONLY;
const F: u32 = FAST;
const D: u32 = DENYOOM;
const LS: u32 = LOADING | STALE;
const ONE: Keys = Range(1, 1, 1);
const MANY: Keys = Range(1, -1, 1);

commands! {
    "append" 3 W | D | F, ONE, "string" "2.0.0" "O(1). The amortized time complexity is O(1) assuming the appended value is small." "Append a value to a key" Write(string::append);
    "decr" 2 W | D | F, ONE, "string" "1.0.0" "O(1)" "Decrement the integer value of a key by one" Write(string::decr);
    "decrby" 3 W | D | F, ONE, "string" "1.0.0" "O(1)" "Decrement the integer value of a key by the given number" Write(string::decrby);
    "get" 2 R | F, ONE, "string" "1.0.0" "O(1)" "Get the value of a key" Read(string::get);
    "getdel" 2 W | F, ONE, "string" "6.2.0" "O(1)" "Get the value of a key and delete the key" Write(string::getdel);
    "getex" -2 W | F, ONE, "string" "6.2.0" "O(1)" "Get the value of a key and optionally set its expiration" Write(string::getex);
    "getrange" 4 R, ONE, "string" "2.4.0" "O(N) where N is the length of the returned string." "Get a substring of the string stored at a key" Read(string::getrange);
    "getset" 3 W | D | F, ONE, "string" "1.0.0" "O(1)" "Set the string value of a key and return its old value" Write(string::getset);
    "incr" 2 W | D | F, ONE, "string" "1.0.0" "O(1)" "Increment the integer value of a key by one" Write(string::incr);
    "incrby" 3 W | D | F, ONE, "string" "1.0.0" "O(1)" "Increment the integer value of a key by the given amount" Write(string::incrby);
    "incrbyfloat" 3 W | D | F, ONE, "string" "2.6.0" "O(1)" "Increment the float value of a key by the given amount" Write(string::incrbyfloat);
    "lcs" -3 R, Range(1, 2, 1), "string" "7.0.0" "O(N*M) where N and M are the lengths of s1 and s2, respectively" "Find longest common substring" Read(string::lcs);
    "mget" -2 R | F, MANY, "string" "1.0.0" "O(N) where N is the number of keys to retrieve." "Get the values of all the given keys" Read(string::mget);
    "mset" -3 W | D, Range(1, -1, 2), "string" "1.0.1" "O(N) where N is the number of keys to set." "Set multiple keys to multiple values" Write(string::mset);
    "msetnx" -3 W | D, Range(1, -1, 2), "string" "1.0.1" "O(N) where N is the number of keys to set." "Set multiple keys to multiple values, only if none of the keys exist" Write(string::msetnx);
    "psetex" 4 W | D, ONE, "string" "2.6.0" "O(1)" "Set the value and expiration in milliseconds of a key" Write(string::psetex);
    "set" -3 W | D, ONE, "string" "1.0.0" "O(1)" "Set the string value of a key" Write(string::set);
    "setex" 4 W | D, ONE, "string" "2.0.0" "O(1)" "Set the value and expiration of a key" Write(string::setex);
    "setnx" 3 W | D | F, ONE, "string" "1.0.0" "O(1)" "Set the value of a key, only if the key does not exist" Write(string::setnx);
    "setrange" 4 W | D, ONE, "string" "2.2.0" "O(1), not counting the time taken to copy the new string in place." "Overwrite part of a string at key starting at the specified offset" Write(string::setrange);
    "strlen" 2 R | F, ONE, "string" "2.2.0" "O(1)" "Get the length of the value stored in a key" Read(string::strlen);
    "substr" 4 R, ONE, "string" "1.0.0" "O(N) where N is the length of the returned string." "Get a substring of the string stored at a key" Read(string::getrange);

    "bitcount" -2 R, ONE, "bitmap" "2.6.0" "O(N)" "Count set bits in a string" Read(bitmap::bitcount);
    "bitfield" -2 W | D, ONE, "bitmap" "3.2.0" "O(1) for each subcommand specified" "Perform arbitrary bitfield integer operations on strings" Write(bitmap::bitfield);
    "bitfield_ro" -2 R | F, ONE, "bitmap" "6.0.0" "O(1) for each subcommand specified" "Perform arbitrary bitfield integer operations on strings. Read-only variant of BITFIELD" Read(bitmap::bitfield_ro);
    "bitop" -4 W | D, Range(2, -1, 1), "bitmap" "2.6.0" "O(N)" "Perform bitwise operations between strings" Write(bitmap::bitop);
    "bitpos" -3 R, ONE, "bitmap" "2.8.7" "O(N)" "Find first bit set or clear in a string" Read(bitmap::bitpos);
    "getbit" 3 R | F, ONE, "bitmap" "2.2.0" "O(1)" "Returns the bit value at offset in the string value stored at key" Read(bitmap::getbit);
    "setbit" 4 W | D, ONE, "bitmap" "2.2.0" "O(1)" "Sets or clears the bit at offset in the string value stored at key" Write(bitmap::setbit);

    "copy" -3 W | D, Copied, "generic" "6.2.0" "O(1) for strings" "Copy a key" Write(generic::copy);
    "del" -2 W, MANY, "generic" "1.0.0" "O(N) where N is the number of keys that will be removed." "Delete a key" Write(generic::del);
    "exists" -2 R | F, MANY, "generic" "1.0.0" "O(N) where N is the number of keys to check." "Determine if a key exists" Read(generic::exists);
    "expire" -3 W | F, ONE, "generic" "1.0.0" "O(1)" "Set a key's time to live in seconds" Write(expire::expire);
    "expireat" -3 W | F, ONE, "generic" "1.2.0" "O(1)" "Set the expiration for a key as a UNIX timestamp" Write(expire::expireat);
    "expiretime" 2 R | F, ONE, "generic" "7.0.0" "O(1)" "Get the expiration Unix timestamp for a key" Read(expire::expiretime);
    "keys" 2 R, All, "generic" "1.0.0" "O(N) with N being the number of keys in the database" "Find all keys matching the given pattern" Read(generic::keys);
    "move" 3 W | F, Move, "generic" "1.0.0" "O(1)" "Move a key to another database" Write(generic::move_key);
    "object" -2 R, Range(2, 2, 1), "generic" "2.2.3" "Depends on subcommand." "A container for object introspection commands" Read(generic::object);
    "persist" 2 W | F, ONE, "generic" "2.2.0" "O(1)" "Remove the expiration from a key" Write(expire::persist);
    "pexpire" -3 W | F, ONE, "generic" "2.6.0" "O(1)" "Set a key's time to live in milliseconds" Write(expire::pexpire);
    "pexpireat" -3 W | F, ONE, "generic" "2.6.0" "O(1)" "Set the expiration for a key as a UNIX timestamp specified in milliseconds" Write(expire::pexpireat);
    "pexpiretime" 2 R | F, ONE, "generic" "7.0.0" "O(1)" "Get the expiration Unix timestamp for a key in milliseconds" Read(expire::pexpiretime);
    "pttl" 2 R | F, ONE, "generic" "2.6.0" "O(1)" "Get the time to live for a key in milliseconds" Read(expire::pttl);
    "randomkey" 1 R, NoKeys, "generic" "1.0.0" "O(1)" "Return a random key from the keyspace" Read(generic::randomkey);
    "rename" 3 W, Range(1, 2, 1), "generic" "1.0.0" "O(1)" "Rename a key" Write(generic::rename);
    "renamenx" 3 W | F, Range(1, 2, 1), "generic" "1.0.0" "O(1)" "Rename a key, only if the new key does not exist" Write(generic::renamenx);
    "scan" -2 R, NoKeys, "generic" "2.8.0" "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0." "Incrementally iterate the keys space" Read(generic::scan);
    "touch" -2 R | F, MANY, "generic" "3.2.1" "O(N) where N is the number of keys that will be touched." "Alters the last access time of a key(s). Returns the number of existing keys specified" Read(generic::exists);
    "ttl" 2 R | F, ONE, "generic" "1.0.0" "O(1)" "Get the time to live for a key in seconds" Read(expire::ttl);
    "type" 2 R | F, ONE, "generic" "1.0.0" "O(1)" "Determine the type stored at key" Read(generic::type_of);
    "unlink" -2 W | F, MANY, "generic" "4.0.0" "O(1) for each key removed regardless of its size." "Delete a key asynchronously in another thread" Write(generic::del);
    "wait" 3 NOSCRIPT, NoKeys, "generic" "3.0.0" "O(1)" "Wait for the synchronous replication of all the write commands sent in the context of the current connection" Sess(server::wait);

    "auth" -2 NOSCRIPT | LS | F | NO_AUTH | ALLOW_BUSY, NoKeys, "connection" "1.0.0" "O(N) where N is the number of passwords defined for the user" "Authenticate to the server" Sess(connection::auth);
    "client" -2 NOSCRIPT | LS, NoKeys, "connection" "2.4.0" "Depends on subcommand." "A container for client connection commands" Sess(connection::client);
    "echo" 2 LS | F, NoKeys, "connection" "1.0.0" "O(1)" "Echo the given string" Sess(connection::echo);
    "hello" -1 NOSCRIPT | LS | F | NO_AUTH | ALLOW_BUSY, NoKeys, "connection" "6.0.0" "O(1)" "Handshake with Redis" Sess(connection::hello);
    "ping" -1 F, NoKeys, "connection" "1.0.0" "O(1)" "Ping the server" Sess(connection::ping);
    "quit" -1 NOSCRIPT | LS | F | NO_AUTH | ALLOW_BUSY | NOW, NoKeys, "connection" "1.0.0" "O(1)" "Close the connection" Sess(connection::quit);
    "reset" 1 NOSCRIPT | LS | F | NO_AUTH | ALLOW_BUSY | NOW, NoKeys, "connection" "6.2.0" "O(1)" "Reset the connection" Sess(connection::reset);
    "select" 2 LS | F, NoKeys, "connection" "1.0.0" "O(1)" "Change the selected database for the current connection" Sess(connection::select);

    "discard" 1 NOSCRIPT | LS | F | ALLOW_BUSY | NOW, NoKeys, "transactions" "2.0.0" "O(N), when N is the number of queued commands" "Discard all commands issued after MULTI" Sess(connection::discard);
    "exec" 1 NOSCRIPT | LS | NOW, NoKeys, "transactions" "1.2.0" "Depends on commands in the transaction" "Execute all commands issued after MULTI" Sess(connection::exec);
    "multi" 1 NOSCRIPT | LS | F | ALLOW_BUSY | NOW, NoKeys, "transactions" "1.2.0" "O(1)" "Mark the start of a transaction block" Sess(connection::multi);
    "unwatch" 1 NOSCRIPT | LS | F | ALLOW_BUSY, NoKeys, "transactions" "2.2.0" "O(1)" "Forget about all watched keys" Sess(connection::unwatch);
    "watch" -2 NOSCRIPT | LS | F | ALLOW_BUSY | NOW, MANY, "transactions" "2.2.0" "O(1) for every key." "Watch the given keys to determine execution of the MULTI/EXEC block" Sess(connection::watch);

    "acl" -2 ADMIN | NOSCRIPT | LS, NoKeys, "server" "6.0.0" "Depends on subcommand." "A container for Access List Control commands" Sess(acl::acl);
    "command" -1 LS, NoKeys, "server" "2.8.13" "O(N) where N is the total number of commands" "Get array of command details" Sess(server::command);
    "config" -2 ADMIN | NOSCRIPT | LS, NoKeys, "server" "2.0.0" "Depends on subcommand." "A container for server configuration commands" Sess(server::config);
    "dbsize" 1 R | F, NoKeys, "server" "1.0.0" "O(1)" "Return the number of keys in the selected database" Read(server::dbsize);
    "debug" -2 ADMIN | NOSCRIPT | LS, NoKeys, "server" "1.0.0" "Depends on subcommand." "A container for debugging commands" Sess(server::debug);
    "flushall" -1 W, All, "server" "1.0.0" "O(1)" "Remove all keys from all databases" Write(server::flushall);
    "flushdb" -1 W, All, "server" "1.0.0" "O(1)" "Remove all keys from the current database" Write(server::flushdb);
    "info" -1 LS, NoKeys, "server" "1.0.0" "O(1)" "Get information and statistics about the server" Sess(server::info);
    "latency" -2 ADMIN | NOSCRIPT | LS, NoKeys, "server" "2.8.13" "Depends on subcommand." "A container for latency diagnostics commands" Sess(server::latency);
    "lolwut" -1 R | F, NoKeys, "server" "5.0.0" "" "Display the version" Sess(server::lolwut);
    "memory" -2 R, Range(2, 2, 1), "server" "4.0.0" "Depends on subcommand." "A container for memory diagnostics commands" Read(generic::memory);
    "role" 1 NOSCRIPT | LS | F, NoKeys, "server" "2.8.12" "O(1)" "Return the role of the instance in the context of replication" Sess(server::role);
    "slowlog" -2 ADMIN | LS, NoKeys, "server" "2.2.12" "Depends on subcommand." "A container for slow log commands" Sess(server::slowlog);
    "swapdb" 3 W | F, All, "server" "4.0.0" "O(1)" "Swaps two Redis databases" Write(server::swapdb);
    "time" 1 LS | F, NoKeys, "server" "2.6.0" "O(1)" "Return the current server time" Sess(server::time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_in_any_case() {
        for (at, command) in COMMANDS.iter().enumerate() {
            let found = find(command.name.to_uppercase().as_bytes()).expect("in the index");
            assert!(std::ptr::eq(found, command), "{}", command.name);
            assert_eq!(found.index(), at);
        }
        assert!(find(b"nothing").is_none());
        assert!(find(&[b'x'; 100]).is_none());
    }

    #[test]
    fn the_document_lists_exactly_what_is_served() {
        let document = include_str!("../../../docs/protocols/redis.md");
        let served =
            document.split("## Served").nth(1).and_then(|rest| rest.split("Subcommands").next()).expect("a section");
        let rows = served.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
        let mut listed: Vec<String> = rows
            .filter(|(group, _)| *group != "Group")
            .flat_map(|(_, names)| names.trim_end_matches(" |").split(' ').map(str::to_lowercase).collect::<Vec<_>>())
            .collect();
        let mut table: Vec<String> = COMMANDS.iter().map(|command| command.name.to_owned()).collect();
        listed.sort();
        table.sort();
        assert_eq!(listed, table);
    }

    #[test]
    fn passwords_are_not_shown() {
        let shown = |text: &'static str| {
            let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
            let words = args.iter().enumerate().map(|(at, arg)| String::from_utf8_lossy(super::shown(&args, at, arg)));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("AUTH pw"), "AUTH (redacted)");
        assert_eq!(shown("hello 3 AUTH bob pw SETNAME x"), "hello 3 AUTH (redacted) (redacted) SETNAME x");
        assert_eq!(shown("ACL SETUSER bob on >pw"), "ACL SETUSER bob (redacted) (redacted)");
        assert_eq!(shown("config set hz 10 requirepass pw"), "config set hz 10 requirepass (redacted)");
        assert_eq!(shown("set auth x"), "set auth x");
    }

    #[test]
    fn keys_are_where_the_table_says() {
        let keys = |text: &'static str| {
            let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
            let keys = find(args[0]).unwrap().keys_of(3, &args);
            keys.map(|keys| {
                keys.iter()
                    .map(|(db, key)| format!("{db}:{}", String::from_utf8_lossy(key)))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        assert_eq!(keys("get a").unwrap(), "3:a");
        assert_eq!(keys("mset a 1 b 2").unwrap(), "3:a 3:b");
        assert_eq!(keys("bitop and d a b").unwrap(), "3:d 3:a 3:b");
        assert_eq!(keys("move a 5").unwrap(), "3:a 5:a");
        assert_eq!(keys("copy a b DB 7 REPLACE").unwrap(), "3:a 7:b");
        assert_eq!(keys("dbsize").unwrap(), "");
        assert!(keys("keys *").is_none());
    }
}
