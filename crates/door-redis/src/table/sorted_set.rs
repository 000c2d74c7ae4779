//! Rows of the group sorted-set.

use crate::command::flag::{BLOCKING, DENYOOM, FAST, MOVABLEKEYS, NOSCRIPT, READONLY, WRITE};
use crate::command::keys::{at, counted, range};
use crate::command::{Command, category, row};

const BLOCKING_SET: u32 = category::SORTEDSET | category::BLOCKING;

pub const ROWS: &[Command] = &[
    row("bzmpop", -5, WRITE | BLOCKING | MOVABLEKEYS, BLOCKING_SET).keys(&[counted(2, "RW access delete")]),
    row("bzpopmax", -3, WRITE | NOSCRIPT | BLOCKING | FAST, BLOCKING_SET).keys(&[range(1, -2, 1, "RW access delete")]),
    row("bzpopmin", -3, WRITE | NOSCRIPT | BLOCKING | FAST, BLOCKING_SET).keys(&[range(1, -2, 1, "RW access delete")]),
    row("zadd", -4, WRITE | DENYOOM | FAST, category::SORTEDSET).keys(&[at(1, "RW update")]),
    row("zcard", 2, READONLY | FAST, category::SORTEDSET).keys(&[at(1, "RO")]),
    row("zcount", 4, READONLY | FAST, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zdiff", -3, READONLY | MOVABLEKEYS, category::SORTEDSET).keys(&[counted(1, "RO access")]),
    row("zdiffstore", -4, WRITE | DENYOOM | MOVABLEKEYS, category::SORTEDSET)
        .keys(&[at(1, "OW update"), counted(2, "RO access")]),
    row("zincrby", 4, WRITE | DENYOOM | FAST, category::SORTEDSET).keys(&[at(1, "RW access update")]),
    row("zinter", -3, READONLY | MOVABLEKEYS, category::SORTEDSET).keys(&[counted(1, "RO access")]),
    row("zintercard", -3, READONLY | MOVABLEKEYS, category::SORTEDSET).keys(&[counted(1, "RO access")]),
    row("zinterstore", -4, WRITE | DENYOOM | MOVABLEKEYS, category::SORTEDSET)
        .keys(&[at(1, "OW update"), counted(2, "RO access")]),
    row("zlexcount", 4, READONLY | FAST, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zmpop", -4, WRITE | MOVABLEKEYS, category::SORTEDSET).keys(&[counted(1, "RW access delete")]),
    row("zmscore", -3, READONLY | FAST, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zpopmax", -2, WRITE | FAST, category::SORTEDSET).keys(&[at(1, "RW access delete")]),
    row("zpopmin", -2, WRITE | FAST, category::SORTEDSET).keys(&[at(1, "RW access delete")]),
    row("zrandmember", -2, READONLY, category::SORTEDSET)
        .keys(&[at(1, "RO access")])
        .tips(&["nondeterministic_output"]),
    row("zrange", -4, READONLY, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zrangebylex", -4, READONLY, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zrangebyscore", -4, READONLY, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zrangestore", -5, WRITE | DENYOOM, category::SORTEDSET).keys(&[at(1, "OW update"), at(2, "RO access")]),
    row("zrank", 3, READONLY | FAST, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zrem", -3, WRITE | FAST, category::SORTEDSET).keys(&[at(1, "RW delete")]),
    row("zremrangebylex", 4, WRITE, category::SORTEDSET).keys(&[at(1, "RW delete")]),
    row("zremrangebyrank", 4, WRITE, category::SORTEDSET).keys(&[at(1, "RW delete")]),
    row("zremrangebyscore", 4, WRITE, category::SORTEDSET).keys(&[at(1, "RW delete")]),
    row("zrevrange", -4, READONLY, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zrevrangebylex", -4, READONLY, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zrevrangebyscore", -4, READONLY, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zrevrank", 3, READONLY | FAST, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zscan", -3, READONLY, category::SORTEDSET).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("zscore", 3, READONLY | FAST, category::SORTEDSET).keys(&[at(1, "RO access")]),
    row("zunion", -3, READONLY | MOVABLEKEYS, category::SORTEDSET).keys(&[counted(1, "RO access")]),
    row("zunionstore", -4, WRITE | DENYOOM | MOVABLEKEYS, category::SORTEDSET)
        .keys(&[at(1, "OW update"), counted(2, "RO access")]),
];
