//! Rows of the group generic.

use crate::command::flag::{ASKING, DENYOOM, FAST, LOADING, MOVABLEKEYS, NOSCRIPT, READONLY, STALE, WRITE};
use crate::command::keys::{at, found_by_sort, keyword, migrated, range, stored_by_sort};
use crate::command::{Command, KeyScope, category, row};

const SORTED: u32 = category::SET | category::SORTEDSET | category::LIST | category::DANGEROUS;
const BY_AND_GET: &str = "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort";

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
    row("migrate", -6, WRITE | MOVABLEKEYS, category::KEYSPACE | category::DANGEROUS)
        .keys(&[migrated(at(3, "RW access delete")), migrated(keyword("KEYS", 0, "RW access delete incomplete"))])
        .tips(&["nondeterministic_output"]),
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
    row("restore-asking", -4, WRITE | DENYOOM | ASKING, category::KEYSPACE | category::DANGEROUS)
        .keys(&[at(1, "OW update")]),
    row("scan", -2, READONLY, category::KEYSPACE).tips(&["nondeterministic_output", "request_policy:special"]),
    row("sort", -2, WRITE | DENYOOM | MOVABLEKEYS, SORTED).keys(&[
        at(1, "RO access"),
        found_by_sort("RO access").noted(BY_AND_GET),
        stored_by_sort("OW update").noted("For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array"),
    ]),
    row("sort_ro", -2, READONLY | MOVABLEKEYS, SORTED)
        .keys(&[at(1, "RO access"), found_by_sort("RO access").noted(BY_AND_GET)]),
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
