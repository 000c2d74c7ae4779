//! The commands: what a row of the table says, and how the row of a request is found.
//!
//! Everything comes from the one table (`table/`): dispatch, arity, keys and their locks, COMMAND, ACL categories, statistics. A container's
//! subcommands are rows of their own, right behind it, named `container|name`. What COMMAND DOCS tells besides stands in `docs.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use engine::KeyTransaction;

use crate::commands::generic;
use crate::errors;
use crate::reply::Reply;
use crate::session::Session;
use crate::spool::Spooling;

pub mod keys;
#[cfg(test)]
mod tests;

pub use crate::table::COMMANDS;
pub use keys::KeySpec;

/// A request being run: its arguments, and where the reply goes.
pub struct Call<'c> {
    pub args: &'c [&'c [u8]],
    pub db: u8,
    pub reply: Reply<'c>,
    pub command: &'static Command,
    pub spooling: &'c mut Spooling,
}

pub type Result = std::result::Result<(), engine::Error>;

/// How a command runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// Sees keys. May run several times; what it wrote to the reply before is taken back.
    Read(fn(&mut KeyTransaction<'_>, &mut Call<'_>) -> Result),
    /// Changes keys, all of them or none.
    Write(fn(&mut KeyTransaction<'_>, &mut Call<'_>) -> Result),
    /// Works on the session or the server.
    Session(fn(&mut Session, &mut Call<'_>) -> Result),
    /// Its subcommands run.
    Container,
}

/// Keys that a command holds while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of its key specs, in the selected database.
    Keys,
    /// MOVE: the key in two databases.
    Moved,
    /// COPY: source here, target here or in the database named by an option.
    Copied,
    /// Everything: the command must be alone.
    Everything,
}

/// Flags of a command; the names are Redis's, in its order.
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
    /// Runs inside MULTI at once instead of being queued. COMMAND does not tell.
    pub const NOW: u32 = 1 << 30;

    pub const NAMES: &[(u32, &str)] = &[
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (NOSCRIPT, "noscript"),
        (LOADING, "loading"),
        (STALE, "stale"),
        (SKIP_SLOWLOG, "skip_slowlog"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (ALLOW_BUSY, "allow_busy"),
    ];
}

/// ACL categories. Those without a command here are known all the same.
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

    /// The name of bit `i` stands at place `i`.
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
    /// Lower case; a subcommand's is `container|name`.
    pub name: &'static str,
    /// Number of arguments, the name included; negative: at least.
    pub arity: i32,
    pub flags: u32,
    /// ACL categories beyond those that follow from the flags.
    pub own_categories: u32,
    pub keys: &'static [KeySpec],
    pub tips: &'static [&'static str],
    pub reach: Reach,
    pub run: Run,
}

/// A row without keys and tips.
pub const fn row(name: &'static str, arity: i32, flags: u32, own_categories: u32, run: Run) -> Command {
    Command { name, arity, flags, own_categories, keys: &[], tips: &[], reach: Reach::Keys, run }
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

    pub const fn reach(mut self, reach: Reach) -> Command {
        self.reach = reach;
        self
    }

    pub fn is(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    pub fn takes(&self, count: usize) -> bool {
        if self.arity >= 0 { count == self.arity as usize } else { count >= self.arity.unsigned_abs() as usize }
    }

    /// Position of the row in the table: also that of its counters, and of its bit in an account's rights (D6).
    pub fn index(&'static self) -> usize {
        // The table is one slice, so the distance of the addresses is the index.
        let start = COMMANDS.as_ptr() as usize;
        (std::ptr::from_ref(self) as usize - start) / size_of::<Command>()
    }

    pub fn is_subcommand(&self) -> bool {
        self.name.contains('|')
    }

    /// The rows of its subcommands, which stand right behind it.
    pub fn subcommands(&'static self) -> &'static [Command] {
        let behind = &COMMANDS[self.index() + 1..];
        let inside =
            |row: &Command| row.name.strip_prefix(self.name).is_some_and(|rest| rest.as_bytes().first() == Some(&b'|'));
        let count = behind.iter().take_while(|row| inside(row)).count();
        &behind[..count]
    }

    fn subcommand(&'static self, name: &[u8]) -> Option<&'static Command> {
        let short = |row: &Command| &row.name.as_bytes()[self.name.len() + 1..];
        self.subcommands().iter().find(|row| name.eq_ignore_ascii_case(short(row)))
    }

    /// ACL categories: its own and those that follow from the flags.
    pub fn categories(&self) -> u32 {
        let implied = [
            (flag::WRITE, category::WRITE),
            (flag::READONLY, category::READ),
            (flag::ADMIN, category::ADMIN | category::DANGEROUS),
        ];
        let speed = if self.is(flag::FAST) { category::FAST } else { category::SLOW };
        implied
            .iter()
            .filter(|(flag, _)| self.is(*flag))
            .fold(self.own_categories | speed, |all, (_, categories)| all | categories)
    }

    /// Databases and keys that a request must hold; None if it needs all of them.
    pub fn keys_of<'a>(&self, db: u8, args: &[&'a [u8]]) -> Option<Vec<(u8, &'a [u8])>> {
        Some(match self.reach {
            Reach::Everything => return None,
            Reach::Keys => self.key_positions(args.len()).map(|at| (db, args[at])).collect(),
            Reach::Moved => {
                let mut keys = vec![(db, args[1])];
                keys.extend(generic::database(args[2]).map(|to| (to, args[1])));
                keys
            }
            Reach::Copied => {
                let named = args.windows(2).skip(3).find(|pair| pair[0].eq_ignore_ascii_case(b"db"));
                let to = named.and_then(|pair| generic::database(pair[1])).unwrap_or(db);
                vec![(db, args[1]), (to, args[2])]
            }
        })
    }
}

/// The row of a request, or the error text if there is none.
pub fn of_request(args: &[&[u8]]) -> std::result::Result<&'static Command, String> {
    let Some(command) = find(args[0]) else { return Err(errors::unknown_command(args)) };
    let Some(second) = args.get(1).filter(|_| command.is_container()) else { return Ok(command) };
    command.subcommand(second).ok_or_else(|| errors::unknown_subcommand(command.name, second))
}

impl Command {
    /// COMMAND runs by itself too.
    fn is_container(&self) -> bool {
        matches!(self.run, Run::Container) || self.name == "command"
    }
}

/// Commands that store something besides keys. EXEC holds the locks of its keys, and must not wait for room in the log with them.
pub fn stores_beside_keys(command: &Command, args: &[&[u8]]) -> bool {
    let is = |at: usize, word: &str| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    match command.name {
        "acl|setuser" | "acl|deluser" => true,
        "config|set" => (2..args.len()).any(|at| is(at, "requirepass")),
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

/// The top-level command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    static INDEX: LazyLock<HashMap<&'static [u8], &'static Command>> =
        LazyLock::new(|| top().map(|command| (command.name.as_bytes(), command)).collect());
    let mut lower = [0; 24];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    INDEX.get(&*lower).copied()
}

/// `get` or `config|get`, as ACL rules and COMMAND INFO spell them.
pub fn find_full(name: &[u8]) -> Option<&'static Command> {
    match name.iter().position(|byte| *byte == b'|') {
        None => find(name),
        Some(bar) => find(&name[..bar])?.subcommand(&name[bar + 1..]),
    }
}

/// All commands but the subcommands.
pub fn top() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|row| !row.is_subcommand())
}
