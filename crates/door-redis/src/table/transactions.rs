//! Rows of the group transactions.

use crate::command::Run::Session;
use crate::command::flag::{ALLOW_BUSY, FAST, LOADING, NOSCRIPT, NOW, SKIP_SLOWLOG, STALE};
use crate::command::keys::range;
use crate::command::{Command, category, row};
use crate::commands::transaction;

pub const ROWS: &[Command] = &[
    row(
        "discard",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | NOW,
        category::TRANSACTION,
        Session(transaction::discard),
    ),
    row("exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG | NOW, category::TRANSACTION, Session(transaction::exec)),
    row(
        "multi",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | NOW,
        category::TRANSACTION,
        Session(transaction::multi),
    ),
    row(
        "unwatch",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        category::TRANSACTION,
        Session(transaction::unwatch),
    ),
    row(
        "watch",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | NOW,
        category::TRANSACTION,
        Session(transaction::watch),
    )
    .keys(&[range(1, -1, 1, "RO")]),
];
