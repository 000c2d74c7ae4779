//! Rows of the group connection.

use crate::command::Run::{Container, Session};
use crate::command::flag::{ADMIN, ALLOW_BUSY, FAST, LOADING, NO_AUTH, NOSCRIPT, NOW, STALE};
use crate::command::{Command, category, row};
use crate::commands::{client, connection};

pub const ROWS: &[Command] = &[
    row(
        "auth",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        category::CONNECTION,
        Session(connection::auth),
    ),
    row("client", -2, 0, 0, Container),
    row("client|getname", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::getname)),
    row("client|getredir", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::getredir)),
    row("client|help", 2, LOADING | STALE, category::CONNECTION, Session(client::help)),
    row("client|id", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::id)),
    row("client|info", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::info))
        .tips(&["nondeterministic_output"]),
    row("client|kill", -3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::kill)),
    row("client|list", -2, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::list))
        .tips(&["nondeterministic_output"]),
    row("client|no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::no_evict)),
    row("client|pause", -3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::pause)),
    row("client|reply", 3, NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::reply)),
    row("client|setname", 3, NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::setname)),
    row("client|trackinginfo", 2, NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::trackinginfo)),
    row("client|unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::unblock)),
    row("client|unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE, category::CONNECTION, Session(client::unpause)),
    row("echo", 2, LOADING | STALE | FAST, category::CONNECTION, Session(connection::echo)),
    row(
        "hello",
        -1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        category::CONNECTION,
        Session(connection::hello),
    ),
    row("ping", -1, FAST, category::CONNECTION, Session(connection::ping))
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    row(
        "quit",
        -1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | NOW,
        category::CONNECTION,
        Session(connection::quit),
    ),
    row(
        "reset",
        1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | NOW,
        category::CONNECTION,
        Session(connection::reset),
    ),
    row("select", 2, LOADING | STALE | FAST, category::CONNECTION, Session(connection::select)),
];
