//! Rows of the group server.

use crate::command::flag::{
    ADMIN, ALLOW_BUSY, FAST, LOADING, NO_ASYNC_LOADING, NO_MULTI, NOSCRIPT, READONLY, STALE, WRITE,
};
use crate::command::keys::at;
use crate::command::{Command, KeyScope, category, row};

pub const ROWS: &[Command] = &[
    row("acl", -2, 0, 0),
    row("acl|cat", -2, NOSCRIPT | LOADING | STALE, 0),
    row("acl|deluser", -3, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|dryrun", -4, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|genpass", -2, NOSCRIPT | LOADING | STALE, 0),
    row("acl|getuser", 3, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|help", 2, LOADING | STALE, 0),
    row("acl|list", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|load", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|log", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|save", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|setuser", -3, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|users", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("acl|whoami", 2, NOSCRIPT | LOADING | STALE, 0),
    row("bgrewriteaof", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, 0),
    row("bgsave", -1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, 0),
    row("command", -1, LOADING | STALE, category::CONNECTION).tips(&["nondeterministic_output_order"]),
    row("command|count", 2, LOADING | STALE, category::CONNECTION),
    row("command|docs", -2, LOADING | STALE, category::CONNECTION).tips(&["nondeterministic_output_order"]),
    row("command|getkeys", -4, LOADING | STALE, category::CONNECTION),
    row("command|getkeysandflags", -4, LOADING | STALE, category::CONNECTION),
    row("command|help", 2, LOADING | STALE, category::CONNECTION),
    row("command|info", -2, LOADING | STALE, category::CONNECTION).tips(&["nondeterministic_output_order"]),
    row("command|list", -2, LOADING | STALE, category::CONNECTION).tips(&["nondeterministic_output_order"]),
    row("config", -2, 0, 0),
    row("config|get", -3, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("config|help", 2, LOADING | STALE, 0),
    row("config|resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("config|rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("config|set", -4, ADMIN | NOSCRIPT | LOADING | STALE, 0)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row("dbsize", 1, READONLY | FAST, category::KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    row("debug", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("flushall", -1, WRITE, category::KEYSPACE | category::DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .scope(KeyScope::Everything),
    row("flushdb", -1, WRITE, category::KEYSPACE | category::DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .scope(KeyScope::Everything),
    row("info", -1, LOADING | STALE, category::DANGEROUS).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("lastsave", 1, LOADING | STALE | FAST, category::ADMIN | category::DANGEROUS)
        .tips(&["nondeterministic_output"]),
    row("latency", -2, 0, 0),
    row("latency|doctor", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|graph", 3, ADMIN | NOSCRIPT | LOADING | STALE, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|help", 2, LOADING | STALE, 0),
    row("latency|histogram", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|history", 3, ADMIN | NOSCRIPT | LOADING | STALE, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|latest", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|reset", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row("lolwut", -1, READONLY | FAST, 0),
    row("memory", -2, 0, 0),
    row("memory|doctor", 2, 0, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("memory|help", 2, LOADING | STALE, 0),
    row("memory|malloc-stats", 2, 0, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("memory|purge", 2, 0, 0).tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    row("memory|stats", 2, 0, 0).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("memory|usage", -3, READONLY, 0).keys(&[at(2, "RO")]),
    row("monitor", 1, ADMIN | NOSCRIPT | LOADING | STALE, 0),
    row("psync", -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, 0),
    row("replconf", -1, ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY, 0),
    row("replicaof", 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING, 0),
    row("role", 1, NOSCRIPT | LOADING | STALE | FAST, category::ADMIN | category::DANGEROUS),
    row("save", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, 0),
    row("shutdown", -1, ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY, 0),
    row("slaveof", 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING, 0),
    row("slowlog", -2, 0, 0),
    row("slowlog|get", -2, ADMIN | LOADING | STALE, 0).tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    row("slowlog|help", 2, LOADING | STALE, 0),
    row("slowlog|len", 2, ADMIN | LOADING | STALE, 0).tips(&[
        "request_policy:all_nodes",
        "response_policy:agg_sum",
        "nondeterministic_output",
    ]),
    row("slowlog|reset", 2, ADMIN | LOADING | STALE, 0)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row("swapdb", 3, WRITE | FAST, category::KEYSPACE | category::DANGEROUS).scope(KeyScope::Everything),
    row("sync", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, 0),
    row("time", 1, LOADING | STALE | FAST, 0).tips(&["nondeterministic_output"]),
];
