//! Rows of the group stream.

use crate::command::flag::{BLOCKING, DENYOOM, FAST, LOADING, MOVABLEKEYS, READONLY, STALE, WRITE};
use crate::command::keys::{at, streams};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("xack", -4, WRITE | FAST, category::STREAM).keys(&[at(1, "RW update")]),
    row("xadd", -5, WRITE | DENYOOM | FAST, category::STREAM)
        .keys(&[at(1, "RW update").noted("UPDATE instead of INSERT because of the optional trimming feature")])
        .tips(&["nondeterministic_output"]),
    row("xautoclaim", -6, WRITE | FAST, category::STREAM)
        .keys(&[at(1, "RW delete")])
        .tips(&["nondeterministic_output"]),
    row("xclaim", -6, WRITE | FAST, category::STREAM).keys(&[at(1, "RW update")]).tips(&["nondeterministic_output"]),
    row("xdel", -3, WRITE | FAST, category::STREAM).keys(&[at(1, "RW delete")]),
    row("xgroup", -2, 0, 0),
    row("xgroup|create", -5, WRITE | DENYOOM, category::STREAM).keys(&[at(2, "RW insert")]),
    row("xgroup|createconsumer", 5, WRITE | DENYOOM, category::STREAM).keys(&[at(2, "RW insert")]),
    row("xgroup|delconsumer", 5, WRITE, category::STREAM).keys(&[at(2, "RW delete")]),
    row("xgroup|destroy", 4, WRITE, category::STREAM).keys(&[at(2, "RW delete")]),
    row("xgroup|help", 2, LOADING | STALE, category::STREAM),
    row("xgroup|setid", -5, WRITE, category::STREAM).keys(&[at(2, "RW update")]),
    row("xinfo", -2, 0, 0),
    row("xinfo|consumers", 4, READONLY, category::STREAM)
        .keys(&[at(2, "RO access")])
        .tips(&["nondeterministic_output"]),
    row("xinfo|groups", 3, READONLY, category::STREAM).keys(&[at(2, "RO access")]),
    row("xinfo|help", 2, LOADING | STALE, category::STREAM),
    row("xinfo|stream", -3, READONLY, category::STREAM).keys(&[at(2, "RO access")]),
    row("xlen", 2, READONLY | FAST, category::STREAM).keys(&[at(1, "RO")]),
    row("xpending", -3, READONLY, category::STREAM).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("xrange", -4, READONLY, category::STREAM).keys(&[at(1, "RO access")]),
    row("xread", -4, READONLY | BLOCKING | MOVABLEKEYS, category::STREAM | category::BLOCKING)
        .keys(&[streams(1, "RO access")]),
    row("xreadgroup", -7, WRITE | BLOCKING | MOVABLEKEYS, category::STREAM | category::BLOCKING)
        .keys(&[streams(4, "RO access")]),
    row("xrevrange", -4, READONLY, category::STREAM).keys(&[at(1, "RO access")]),
    row("xsetid", -3, WRITE | DENYOOM | FAST, category::STREAM).keys(&[at(1, "RW update")]),
    row("xtrim", -4, WRITE, category::STREAM).keys(&[at(1, "RW delete")]).tips(&["nondeterministic_output"]),
];
