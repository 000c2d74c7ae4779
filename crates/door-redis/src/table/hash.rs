//! Rows of the group hash.

use crate::command::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::command::keys::at;
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("hdel", -3, WRITE | FAST, category::HASH).keys(&[at(1, "RW delete")]),
    row("hexists", 3, READONLY | FAST, category::HASH).keys(&[at(1, "RO")]),
    row("hexpire", -6, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hexpireat", -6, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hexpiretime", -5, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hget", 3, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hgetall", 2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output_order"]),
    row("hincrby", 4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW access update")]),
    row("hincrbyfloat", 4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW access update")]),
    row("hkeys", 2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output_order"]),
    row("hlen", 2, READONLY | FAST, category::HASH).keys(&[at(1, "RO")]),
    row("hmget", -3, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hmset", -4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hpersist", -5, WRITE | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hpexpire", -6, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hpexpireat", -6, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hpexpiretime", -5, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hpttl", -5, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hrandfield", -2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("hscan", -3, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("hset", -4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW update")]),
    row("hsetnx", 4, WRITE | DENYOOM | FAST, category::HASH).keys(&[at(1, "RW insert")]),
    row("hstrlen", 3, READONLY | FAST, category::HASH).keys(&[at(1, "RO")]),
    row("httl", -5, READONLY | FAST, category::HASH).keys(&[at(1, "RO access")]),
    row("hvals", 2, READONLY, category::HASH).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output_order"]),
];
