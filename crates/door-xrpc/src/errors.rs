//! Errors of the protocol itself. `query` has the errors of statements.

use std::net::IpAddr;

use sql_mysql::error::{self, Code, SqlError};

/// The digest is unknown: the client sends the request again with its text.
pub const CACHE_MISS: Code = Code::new("XRPC_CACHE_MISS", 8000, "HY000", "Nothing is known by this digest.");
pub const XRPC: Code = Code::new("XRPC", 8001, "HY000", "{}");
pub const KILLED: Code = Code::new("XRPC_KILLED", 8001, "70100", "The session was killed.");
pub const QUEUE_FULL: Code = Code::new(
    "XRPC_QUEUE_FULL",
    8001,
    "70100",
    "More than {} requests wait in the session; polarx_rpc_max_queued_messages allows more.",
);
pub const NO_SESSION: Code = Code::new("XRPC_NO_SESSION", 8001, "HY000", "Session not found.");
pub const DUPLICATE_SESSION: Code =
    Code::new("XRPC_DUPLICATE_SESSION", 8001, "HY000", "There is such a session already.");
pub const TOO_MANY_SESSIONS: Code =
    Code::new("XRPC_TOO_MANY_SESSIONS", 1040, "08004", "Too many sessions; xrpc_sessions_max allows {}.");
pub const FRAME_TOO_LARGE: Code =
    Code::new("NET_PACKET_TOO_LARGE", 1153, "S1000", "A frame is longer than polarx_rpc_max_allowed_packet, {} bytes.");
pub const NOT_LOGGED_IN: Code =
    Code::new("XRPC_NOT_LOGGED_IN", 1045, "28000", "Nobody has logged in on this connection.");
pub const ACCESS_DENIED: Code =
    Code::new("ACCESS_DENIED_ERROR", 1045, "HY000", "Access denied for user '{}'@'{}' (using password: {})");
pub const TOO_MANY_LOGINS: Code = Code::new(
    "ACCESS_DENIED_ERROR",
    1045,
    "HY000",
    "Access denied: many logins from this address have failed, and many wait already; try again later",
);

/// The error for parts of the protocol that are not served.
pub fn not_served(what: &str) -> SqlError {
    XRPC.with(&[&format!("This server does not serve {what}.")])
}

/// The error of a client from another machine while the account `default` needs no password.
pub fn not_allowed_host(host: IpAddr) -> SqlError {
    error::HOST_NOT_PRIVILEGED.with(&[&host, &"xrpc_protected_mode"])
}

/// The error of a client without TLS where it is required.
pub fn insecure_transport() -> SqlError {
    error::SECURE_TRANSPORT_REQUIRED.with(&[&"xrpc_require_secure_transport is on"])
}
