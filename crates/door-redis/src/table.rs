//! The table of commands by group, and lookups in it. To add a command: a row here, its function in `commands/` and in `functions.rs`, its texts in `docs.txt`.

use std::sync::LazyLock;

use crate::command::Command;
use crate::errors;

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod pubsub;
mod scripting;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;
mod transactions;

const GROUPS: [&[Command]; 16] = [
    string::ROWS,
    bitmap::ROWS,
    list::ROWS,
    hash::ROWS,
    set::ROWS,
    sorted_set::ROWS,
    geo::ROWS,
    hyperloglog::ROWS,
    stream::ROWS,
    generic::ROWS,
    connection::ROWS,
    transactions::ROWS,
    pubsub::ROWS,
    scripting::ROWS,
    server::ROWS,
    cluster::ROWS,
];

/// All rows. Subcommands are directly behind their container.
pub static COMMANDS: &[Command] = &ALL;

static ALL: [Command; COUNT] = joined();

const COUNT: usize = {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
};

const fn joined() -> [Command; COUNT] {
    let mut all = [GROUPS[0][0]; COUNT];
    let (mut at, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut row = 0;
        while row < GROUPS[group].len() {
            all[at] = GROUPS[group][row];
            (at, row) = (at + 1, row + 1);
        }
        group += 1;
    }
    all
}

impl Command {
    /// Returns the index of the row in the table, which is also the index of its counters and of its bit in an account's permissions (DR-6).
    pub fn index(&'static self) -> usize {
        // The table is one slice, so the distance of the addresses gives the index.
        let start = COMMANDS.as_ptr() as usize;
        (std::ptr::from_ref(self) as usize - start) / size_of::<Command>()
    }

    /// Returns the rows of the subcommands, which are directly behind this row.
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
}

/// Returns the row of a request, or the error text if there is none.
pub fn of_request(args: &[&[u8]]) -> std::result::Result<&'static Command, String> {
    let Some(command) = find(args[0]) else { return Err(errors::unknown_command(args)) };
    let Some(second) = args.get(1).filter(|_| !command.subcommands().is_empty()) else { return Ok(command) };
    command.subcommand(second).ok_or_else(|| errors::unknown_subcommand(command.name, second))
}

/// Finds a top-level command by name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    /// Each command at the first free place from its hash on.
    static INDEX: LazyLock<Vec<Option<&'static Command>>> = LazyLock::new(|| {
        let mut index = vec![None; INDEX_LEN];
        for command in top() {
            let free = probe(command.name.as_bytes()).find(|place| index[*place].is_none());
            index[free.expect("there are free places")] = Some(command);
        }
        index
    });
    let mut lower = [0; 24];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    probe(lower).map_while(|place| INDEX[place]).find(|command| command.name.as_bytes() == &*lower)
}

/// Places of the index of commands.
const INDEX_LEN: usize = 1024;
const _: () = assert!(COUNT * 3 < INDEX_LEN * 2, "there are free places, so a search ends");

/// Returns the places in which a command of this name may be, in order.
fn probe(name: &[u8]) -> impl Iterator<Item = usize> {
    let first = stdx::hash::hash(0, name) as usize;
    (0..INDEX_LEN).map(move |nth| first.wrapping_add(nth) % INDEX_LEN)
}

/// Finds `get` or `config|get`, as ACL rules and COMMAND INFO spell them.
pub fn find_full(name: &[u8]) -> Option<&'static Command> {
    match name.iter().position(|byte| *byte == b'|') {
        None => find(name),
        Some(bar) => find(&name[..bar])?.subcommand(&name[bar + 1..]),
    }
}

/// Returns all commands except subcommands.
pub fn top() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|row| !row.is_subcommand())
}
