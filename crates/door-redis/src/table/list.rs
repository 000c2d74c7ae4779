//! Rows of the group list.

use crate::command::flag::{BLOCKING, DENYOOM, FAST, MOVABLEKEYS, NOSCRIPT, READONLY, WRITE};
use crate::command::keys::{at, counted, range};
use crate::command::{Command, category, row};

const BLOCKING_LIST: u32 = category::LIST | category::BLOCKING;

pub const ROWS: &[Command] = &[
    row("blmove", 6, WRITE | DENYOOM | NOSCRIPT | BLOCKING, BLOCKING_LIST)
        .keys(&[at(1, "RW access delete"), at(2, "RW insert")]),
    row("blmpop", -5, WRITE | BLOCKING | MOVABLEKEYS, BLOCKING_LIST).keys(&[counted(2, "RW access delete")]),
    row("blpop", -3, WRITE | NOSCRIPT | BLOCKING, BLOCKING_LIST).keys(&[range(1, -2, 1, "RW access delete")]),
    row("brpop", -3, WRITE | NOSCRIPT | BLOCKING, BLOCKING_LIST).keys(&[range(1, -2, 1, "RW access delete")]),
    row("brpoplpush", 4, WRITE | DENYOOM | NOSCRIPT | BLOCKING, BLOCKING_LIST)
        .keys(&[at(1, "RW access delete"), at(2, "RW insert")]),
    row("lindex", 3, READONLY, category::LIST).keys(&[at(1, "RO access")]),
    row("linsert", 5, WRITE | DENYOOM, category::LIST).keys(&[at(1, "RW insert")]),
    row("llen", 2, READONLY | FAST, category::LIST).keys(&[at(1, "RO")]),
    row("lmove", 5, WRITE | DENYOOM, category::LIST).keys(&[at(1, "RW access delete"), at(2, "RW insert")]),
    row("lmpop", -4, WRITE | MOVABLEKEYS, category::LIST).keys(&[counted(1, "RW access delete")]),
    row("lpop", -2, WRITE | FAST, category::LIST).keys(&[at(1, "RW access delete")]),
    row("lpos", -3, READONLY, category::LIST).keys(&[at(1, "RO access")]),
    row("lpush", -3, WRITE | DENYOOM | FAST, category::LIST).keys(&[at(1, "RW insert")]),
    row("lpushx", -3, WRITE | DENYOOM | FAST, category::LIST).keys(&[at(1, "RW insert")]),
    row("lrange", 4, READONLY, category::LIST).keys(&[at(1, "RO access")]),
    row("lrem", 4, WRITE, category::LIST).keys(&[at(1, "RW delete")]),
    row("lset", 4, WRITE | DENYOOM, category::LIST).keys(&[at(1, "RW update")]),
    row("ltrim", 4, WRITE, category::LIST).keys(&[at(1, "RW delete")]),
    row("rpop", -2, WRITE | FAST, category::LIST).keys(&[at(1, "RW access delete")]),
    row("rpoplpush", 3, WRITE | DENYOOM, category::LIST).keys(&[at(1, "RW access delete"), at(2, "RW insert")]),
    row("rpush", -3, WRITE | DENYOOM | FAST, category::LIST).keys(&[at(1, "RW insert")]),
    row("rpushx", -3, WRITE | DENYOOM | FAST, category::LIST).keys(&[at(1, "RW insert")]),
];
