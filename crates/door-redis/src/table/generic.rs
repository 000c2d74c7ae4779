//! Rows of the group generic.

use crate::command::flag::{DENYOOM, FAST, LOADING, NOSCRIPT, READONLY, STALE, WRITE};
use crate::command::keys::{at, range};
use crate::command::{Command, KeyScope, category, row};

pub const ROWS: &[Command] = &[
    row("copy", -3, WRITE | DENYOOM, category::KEYSPACE)
        .keys(&[at(1, "RO access"), at(2, "OW update")])
        .scope(KeyScope::Copied),
    row("del", -2, WRITE, category::KEYSPACE)
        .keys(&[range(1, -1, 1, "RM delete")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("dump", 2, READONLY, category::KEYSPACE).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("exists", -2, READONLY | FAST, category::KEYSPACE)
        .keys(&[range(1, -1, 1, "RO")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("expire", -3, WRITE | FAST, category::KEYSPACE).keys(&[at(1, "RW update")]),
    row("expireat", -3, WRITE | FAST, category::KEYSPACE).keys(&[at(1, "RW update")]),
    row("expiretime", 2, READONLY | FAST, category::KEYSPACE).keys(&[at(1, "RO access")]),
    row("keys", 2, READONLY, category::KEYSPACE | category::DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .scope(KeyScope::Everything),
    row("move", 3, WRITE | FAST, category::KEYSPACE).keys(&[at(1, "RW access update")]).scope(KeyScope::Moved),
    row("object", -2, 0, 0),
    row("object|encoding", 3, READONLY, category::KEYSPACE).keys(&[at(2, "RO")]).tips(&["nondeterministic_output"]),
    row("object|freq", 3, READONLY, category::KEYSPACE).keys(&[at(2, "RO")]).tips(&["nondeterministic_output"]),
    row("object|help", 2, LOADING | STALE, category::KEYSPACE),
    row("object|idletime", 3, READONLY, category::KEYSPACE).keys(&[at(2, "RO")]).tips(&["nondeterministic_output"]),
    row("object|refcount", 3, READONLY, category::KEYSPACE).keys(&[at(2, "RO")]).tips(&["nondeterministic_output"]),
    row("persist", 2, WRITE | FAST, category::KEYSPACE).keys(&[at(1, "RW update")]),
    row("pexpire", -3, WRITE | FAST, category::KEYSPACE).keys(&[at(1, "RW update")]),
    row("pexpireat", -3, WRITE | FAST, category::KEYSPACE).keys(&[at(1, "RW update")]),
    row("pexpiretime", 2, READONLY | FAST, category::KEYSPACE).keys(&[at(1, "RO access")]),
    row("pttl", 2, READONLY | FAST, category::KEYSPACE).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("randomkey", 1, READONLY, category::KEYSPACE).tips(&["request_policy:all_shards", "nondeterministic_output"]),
    row("rename", 3, WRITE, category::KEYSPACE).keys(&[at(1, "RW access delete"), at(2, "OW update")]),
    row("renamenx", 3, WRITE | FAST, category::KEYSPACE).keys(&[at(1, "RW access delete"), at(2, "OW insert")]),
    row("restore", -4, WRITE | DENYOOM, category::KEYSPACE | category::DANGEROUS).keys(&[at(1, "OW update")]),
    row("scan", -2, READONLY, category::KEYSPACE).tips(&["nondeterministic_output", "request_policy:special"]),
    row("touch", -2, READONLY | FAST, category::KEYSPACE)
        .keys(&[range(1, -1, 1, "RO")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("ttl", 2, READONLY | FAST, category::KEYSPACE).keys(&[at(1, "RO access")]).tips(&["nondeterministic_output"]),
    row("type", 2, READONLY | FAST, category::KEYSPACE).keys(&[at(1, "RO")]),
    row("unlink", -2, WRITE | FAST, category::KEYSPACE)
        .keys(&[range(1, -1, 1, "RM delete")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("wait", 3, NOSCRIPT, category::CONNECTION).tips(&["request_policy:all_shards", "response_policy:agg_min"]),
];
