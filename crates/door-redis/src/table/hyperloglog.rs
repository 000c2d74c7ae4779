//! Rows of the group hyperloglog.

use crate::command::flag::{ADMIN, DENYOOM, FAST, MAY_REPLICATE, READONLY, WRITE};
use crate::command::keys::{at, range};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("pfadd", -2, WRITE | DENYOOM | FAST, category::HYPERLOGLOG).keys(&[at(1, "RW insert")]),
    row("pfcount", -2, READONLY | MAY_REPLICATE, category::HYPERLOGLOG).keys(&[range(1, -1, 1, "RW access")
        .noted("RW because it may change the internal representation of the key, and propagate to replicas")]),
    row("pfdebug", 3, WRITE | DENYOOM | ADMIN, category::HYPERLOGLOG).keys(&[at(2, "RW access")]),
    row("pfmerge", -2, WRITE | DENYOOM, category::HYPERLOGLOG)
        .keys(&[at(1, "RW access insert"), range(2, -1, 1, "RO access")]),
    row("pfselftest", 1, ADMIN, category::HYPERLOGLOG),
];
