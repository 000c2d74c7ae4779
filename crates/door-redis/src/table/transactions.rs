//! Rows of the group transactions.

use crate::command::flag::{ALLOW_BUSY, FAST, LOADING, NOSCRIPT, NOW, SKIP_SLOWLOG, STALE};
use crate::command::keys::range;
use crate::command::{Command, category, row};

pub const ROWS: &[Command] = &[
    row("discard", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | NOW, category::TRANSACTION),
    row("exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG | NOW, category::TRANSACTION),
    row("multi", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | NOW, category::TRANSACTION),
    row("unwatch", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, category::TRANSACTION),
    row("watch", -2, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | NOW, category::TRANSACTION)
        .keys(&[range(1, -1, 1, "RO")]),
];
