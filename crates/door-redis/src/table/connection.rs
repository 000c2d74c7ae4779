//! Rows of the group connection.

use crate::command::flag::{ADMIN, ALLOW_BUSY, FAST, LOADING, NO_AUTH, NOSCRIPT, NOW, STALE};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("auth", -2, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, category::CONNECTION),
    row("client", -2, 0, 0),
    row("client|caching", 3, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|getname", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|getredir", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|help", 2, LOADING | STALE, category::CONNECTION),
    row("client|id", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|info", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION).tips(&["nondeterministic_output"]),
    row("client|kill", -3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|list", -2, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION).tips(&["nondeterministic_output"]),
    row("client|no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|pause", -3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|reply", 3, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|setname", 3, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|tracking", -3, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|trackinginfo", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("client|unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION),
    row("echo", 2, LOADING | STALE | FAST, category::CONNECTION),
    row("hello", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, category::CONNECTION),
    row("ping", -1, FAST, category::CONNECTION).tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    row("quit", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | NOW, category::CONNECTION),
    row("reset", 1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | NOW, category::CONNECTION),
    row("select", 2, LOADING | STALE | FAST, category::CONNECTION),
];
