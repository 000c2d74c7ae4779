//! Errors of the protocol itself. `query` has the errors of statements.

use query::error::{Code, SqlError};

const fn code(name: &'static str, code: u16, sqlstate: &'static str, format: &'static str) -> Code {
    Code { name, code, sqlstate, format }
}

/// The digest is unknown: the client sends the request again with its text.
pub const CACHE_MISS: Code = code("XRPC_CACHE_MISS", 8000, "HY000", "Nothing is known by this digest.");
pub const XRPC: Code = code("XRPC", 8001, "HY000", "{}");
pub const KILLED: Code = code("XRPC_KILLED", 8001, "70100", "The session was killed.");
pub const QUEUE_FULL: Code = code(
    "XRPC_QUEUE_FULL",
    8001,
    "70100",
    "More than {} requests wait in the session; polarx_rpc_max_queued_messages allows more.",
);
pub const NO_SESSION: Code = code("XRPC_NO_SESSION", 8001, "HY000", "Session not found.");
pub const DUPLICATE_SESSION: Code = code("XRPC_DUPLICATE_SESSION", 8001, "HY000", "There is such a session already.");
pub const TOO_MANY_SESSIONS: Code =
    code("XRPC_TOO_MANY_SESSIONS", 1040, "08004", "Too many sessions; xrpc_sessions_max allows {}.");
pub const FRAME_TOO_LARGE: Code =
    code("NET_PACKET_TOO_LARGE", 1153, "S1000", "A frame is longer than polarx_rpc_max_allowed_packet, {} bytes.");
pub const NOT_LOGGED_IN: Code = code("XRPC_NOT_LOGGED_IN", 1045, "28000", "Nobody has logged in on this connection.");
pub const ACCESS_DENIED: Code =
    code("ACCESS_DENIED_ERROR", 1045, "HY000", "Access denied for user '{}'@'{}' (using password: {})");
pub const TOO_MANY_LOGINS: Code = code(
    "ACCESS_DENIED_ERROR",
    1045,
    "HY000",
    "Access denied: many logins from this address have failed, and many wait already; try again later",
);
pub const SECURE_TRANSPORT: Code = code(
    "SECURE_TRANSPORT_REQUIRED",
    3159,
    "HY000",
    "Connections using insecure transport are prohibited while xrpc_require_secure_transport is on.",
);
pub const NOT_ALLOWED_HOST: Code = code(
    "HOST_NOT_PRIVILEGED",
    1130,
    "HY000",
    "Host '{}' is not allowed to connect to this Beluga server while the account `default` needs no password; give it one with the setting redis_password, or turn xrpc_protected_mode off if nobody else can reach this port",
);

/// The error for parts of the protocol that are not served.
pub fn not_served(what: &str) -> SqlError {
    XRPC.with(&[&format!("This server does not serve {what}.")])
}
