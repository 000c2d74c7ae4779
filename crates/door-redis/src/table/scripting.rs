//! Rows of the group scripting.

use crate::command::flag::{
    ALLOW_BUSY, DENYOOM, LOADING, MAY_REPLICATE, MOVABLEKEYS, NO_MANDATORY_KEYS, NOSCRIPT, READONLY, SKIP_MONITOR,
    STALE, WRITE,
};
use crate::command::keys::{KeySpec, counted};
use crate::command::{Command, category, row};

const RUNS: u32 = NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS;
const WORST: KeySpec = counted(2, "RW access update")
    .noted("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE");
const WORST_RO: KeySpec =
    counted(2, "RO access").noted("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS");

const ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

pub const ROWS: &[Command] = &[
    row("eval", -3, RUNS | MAY_REPLICATE, category::SCRIPTING).keys(&[WORST]),
    row("eval_ro", -3, RUNS | READONLY, category::SCRIPTING).keys(&[WORST_RO]),
    row("evalsha", -3, RUNS | MAY_REPLICATE, category::SCRIPTING).keys(&[counted(2, "RW access update")]),
    row("evalsha_ro", -3, RUNS | READONLY, category::SCRIPTING).keys(&[counted(2, "RO access")]),
    row("fcall", -3, RUNS | MAY_REPLICATE, category::SCRIPTING).keys(&[WORST]),
    row("fcall_ro", -3, RUNS | READONLY, category::SCRIPTING).keys(&[WORST_RO]),
    row("function", -2, 0, 0),
    row("function|delete", 3, WRITE | NOSCRIPT, category::SCRIPTING).tips(ALL_SHARDS),
    row("function|dump", 2, NOSCRIPT, category::SCRIPTING),
    row("function|flush", -2, WRITE | NOSCRIPT, category::SCRIPTING).tips(ALL_SHARDS),
    row("function|help", 2, LOADING | STALE, category::SCRIPTING),
    row("function|kill", 2, NOSCRIPT | ALLOW_BUSY, category::SCRIPTING)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    row("function|list", -2, NOSCRIPT, category::SCRIPTING).tips(&["nondeterministic_output_order"]),
    row("function|load", -3, WRITE | DENYOOM | NOSCRIPT, category::SCRIPTING).tips(ALL_SHARDS),
    row("function|restore", -3, WRITE | DENYOOM | NOSCRIPT, category::SCRIPTING).tips(ALL_SHARDS),
    row("function|stats", 2, NOSCRIPT | ALLOW_BUSY, category::SCRIPTING).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("script", -2, 0, 0),
    row("script|debug", 3, NOSCRIPT, category::SCRIPTING),
    row("script|exists", -3, NOSCRIPT, category::SCRIPTING)
        .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"]),
    row("script|flush", -2, NOSCRIPT, category::SCRIPTING)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row("script|help", 2, LOADING | STALE, category::SCRIPTING),
    row("script|kill", 2, NOSCRIPT | ALLOW_BUSY, category::SCRIPTING)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    row("script|load", 3, NOSCRIPT | STALE, category::SCRIPTING)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
];
