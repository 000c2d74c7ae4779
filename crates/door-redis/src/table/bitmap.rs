//! Rows of the group bitmap.

use crate::command::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::command::keys::{at, range};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("bitcount", -2, READONLY, category::BITMAP).keys(&[at(1, "RO access")]),
    row("bitfield", -2, WRITE | DENYOOM, category::BITMAP)
        .keys(&[at(1, "RW access update variable_flags")
            .noted("This command allows both access and modification of the key")]),
    row("bitfield_ro", -2, READONLY | FAST, category::BITMAP).keys(&[at(1, "RO access")]),
    row("bitop", -4, WRITE | DENYOOM, category::BITMAP).keys(&[at(2, "OW update"), range(3, -1, 1, "RO access")]),
    row("bitpos", -3, READONLY, category::BITMAP).keys(&[at(1, "RO access")]),
    row("getbit", 3, READONLY | FAST, category::BITMAP).keys(&[at(1, "RO access")]),
    row("setbit", 4, WRITE | DENYOOM, category::BITMAP).keys(&[at(1, "RW access update")]),
];
