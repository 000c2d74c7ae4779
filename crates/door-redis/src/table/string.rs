//! Rows of the group string.

use crate::command::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::command::keys::{at, range};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("append", 3, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "RW insert")]),
    row("decr", 2, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "RW access update")]),
    row("decrby", 3, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "RW access update")]),
    row("get", 2, READONLY | FAST, category::STRING).keys(&[at(1, "RO access")]),
    row("getdel", 2, WRITE | FAST, category::STRING).keys(&[at(1, "RW access delete")]),
    row("getex", -2, WRITE | FAST, category::STRING)
        .keys(&[at(1, "RW access update").noted("RW and UPDATE because it changes the TTL")]),
    row("getrange", 4, READONLY, category::STRING).keys(&[at(1, "RO access")]),
    row("getset", 3, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "RW access update")]),
    row("incr", 2, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "RW access update")]),
    row("incrby", 3, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "RW access update")]),
    row("incrbyfloat", 3, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "RW access update")]),
    row("lcs", -3, READONLY, category::STRING).keys(&[range(1, 1, 1, "RO access")]),
    row("mget", -2, READONLY | FAST, category::STRING)
        .keys(&[range(1, -1, 1, "RO access")])
        .tips(&["request_policy:multi_shard"]),
    row("mset", -3, WRITE | DENYOOM, category::STRING)
        .keys(&[range(1, -1, 2, "OW update")])
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]),
    row("msetnx", -3, WRITE | DENYOOM, category::STRING)
        .keys(&[range(1, -1, 2, "OW insert")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"]),
    row("psetex", 4, WRITE | DENYOOM, category::STRING).keys(&[at(1, "OW update")]),
    row("set", -3, WRITE | DENYOOM, category::STRING)
        .keys(&[at(1, "RW access update variable_flags").noted("RW and ACCESS due to the optional `GET` argument")]),
    row("setex", 4, WRITE | DENYOOM, category::STRING).keys(&[at(1, "OW update")]),
    row("setnx", 3, WRITE | DENYOOM | FAST, category::STRING).keys(&[at(1, "OW insert")]),
    row("setrange", 4, WRITE | DENYOOM, category::STRING).keys(&[at(1, "RW update")]),
    row("strlen", 2, READONLY | FAST, category::STRING).keys(&[at(1, "RO")]),
    row("substr", 4, READONLY, category::STRING).keys(&[at(1, "RO access")]),
];
