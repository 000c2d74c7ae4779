//! Rows of the group set.

use crate::command::flag::{DENYOOM, FAST, MOVABLEKEYS, READONLY, WRITE};
use crate::command::keys::{at, counted, range};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("sadd", -3, WRITE | DENYOOM | FAST, category::SET).keys(&[at(1, "RW insert")]),
    row("scard", 2, READONLY | FAST, category::SET).keys(&[at(1, "RO")]),
    row("sdiff", -2, READONLY, category::SET)
        .keys(&[range(1, -1, 1, "RO access")])
        .tips(&["nondeterministic_output_order"]),
    row("sdiffstore", -3, WRITE | DENYOOM, category::SET).keys(&[at(1, "OW update"), range(2, -1, 1, "RO access")]),
    row("sinter", -2, READONLY, category::SET)
        .keys(&[range(1, -1, 1, "RO access")])
        .tips(&["nondeterministic_output_order"]),
    row("sintercard", -3, READONLY | MOVABLEKEYS, category::SET).keys(&[counted(1, "RO access")]),
    row("sinterstore", -3, WRITE | DENYOOM, category::SET).keys(&[at(1, "RW update"), range(2, -1, 1, "RO access")]),
    row("sismember", 3, READONLY | FAST, category::SET).keys(&[at(1, "RO")]),
    row("smembers", 2, READONLY, category::SET).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output_order"]),
    row("smismember", -3, READONLY | FAST, category::SET).keys(&[at(1, "RO access")]),
    row("smove", 4, WRITE | FAST, category::SET).keys(&[at(1, "RW access delete"), at(2, "RW insert")]),
    row("spop", -2, WRITE | FAST, category::SET).keys(&[at(1, "RW access delete")]).tips(&["nondeterministic_output"]),
    row("srandmember", -2, READONLY, category::SET).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("srem", -3, WRITE | FAST, category::SET).keys(&[at(1, "RW delete")]),
    row("sscan", -3, READONLY, category::SET).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("sunion", -2, READONLY, category::SET)
        .keys(&[range(1, -1, 1, "RO access")])
        .tips(&["nondeterministic_output_order"]),
    row("sunionstore", -3, WRITE | DENYOOM, category::SET).keys(&[at(1, "OW update"), range(2, -1, 1, "RO access")]),
];
