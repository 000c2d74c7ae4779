//! The table of commands, by group. To add one: a row here, its function in `commands/`, its words in `docs.txt`.

use crate::command::Command;

mod bitmap;
mod connection;
mod generic;
mod server;
mod string;
mod transactions;
pub mod unserved;

const GROUPS: [&[Command]; 6] =
    [string::ROWS, bitmap::ROWS, generic::ROWS, connection::ROWS, transactions::ROWS, server::ROWS];

/// Every row, subcommands right behind their container.
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
