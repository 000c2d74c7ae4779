//! Rows of the group pubsub.

use crate::command::flag::{FAST, LOADING, MAY_REPLICATE, NOSCRIPT, PUBSUB, STALE};
use crate::command::keys::{at, range};
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, category::PUBSUB),
    row("publish", 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE, category::PUBSUB),
    row("pubsub", -2, 0, 0),
    row("pubsub|channels", -2, PUBSUB | LOADING | STALE, category::PUBSUB),
    row("pubsub|help", 2, LOADING | STALE, 0),
    row("pubsub|numpat", 2, PUBSUB | LOADING | STALE, category::PUBSUB),
    row("pubsub|numsub", -2, PUBSUB | LOADING | STALE, category::PUBSUB),
    row("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, category::PUBSUB),
    row("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, category::PUBSUB),
    row("punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, category::PUBSUB),
    row("spublish", 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE, category::PUBSUB).keys(&[at(1, "not_key")]),
    row("ssubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, category::PUBSUB).keys(&[range(1, -1, 1, "not_key")]),
    row("subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, category::PUBSUB),
    row("sunsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, category::PUBSUB).keys(&[range(1, -1, 1, "not_key")]),
    row("unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, category::PUBSUB),
];
