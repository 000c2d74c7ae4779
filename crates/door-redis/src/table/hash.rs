//! Rows of the group hash.

use crate::command::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::command::keys::at;
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("hdel", -3, WRITE | FAST, category::HASH).keys(&[at(1, "RW delete")]),
    row("hexists", 3, READONLY | FAST, category::HASH).keys(&[at(1, "RO")]),
    row("hget", 3, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hgetall", 2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output_order"]),
    row("hincrby", 4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW access update")]),
    row("hincrbyfloat", 4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW access update")]),
    row("hkeys", 2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output_order"]),
    row("hlen", 2, READONLY | FAST, category::HASH).keys(&[at(1, "RO")]),
    row("hmget", -3, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hmset", -4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hrandfield", -2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("hscan", -3, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("hset", -4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hsetnx", 4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW insert")]),
    row("hstrlen", 3, READONLY | FAST, category::HASH).keys(&[at(1, "RO")]),
    row("hvals", 2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output_order"]),
];
