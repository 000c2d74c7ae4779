//! Errors of the connection itself, with MySQL's texts. `query` has the errors of statements.

use std::net::IpAddr;

use sql_mysql::error::{self, Code, SqlError};

pub const BAD_HANDSHAKE: Code = Code::new("BAD_HANDSHAKE", 1043, "08S01", "Bad handshake");
pub const PACKET_TOO_LARGE: Code = sql_mysql::error::NET_PACKET_TOO_LARGE;
pub const OUT_OF_RESOURCES: Code = Code::new(
    "OUT_OF_RESOURCES",
    1041,
    "HY000",
    "Out of memory; check if mysqld or some other process uses all available memory; if not, you may have to use 'ulimit' to allow mysqld to use more memory or you can add more swap space",
);
pub const OUT_OF_ORDER: Code = Code::new("NET_PACKETS_OUT_OF_ORDER", 1156, "08S01", "Got packets out of order");
pub const UNCOMPRESS: Code =
    Code::new("NET_UNCOMPRESS_ERROR", 1157, "08S01", "Couldn't uncompress communication packet");
pub const COMPRESSION_ALGORITHM: Code =
    Code::new("WRONG_COMPRESSION_ALGORITHM_CLIENT", 3922, "HY000", "Invalid compression algorithm '{}'.");
pub const COMPRESSION_LEVEL: Code =
    Code::new("WRONG_COMPRESSION_LEVEL_CLIENT", 3923, "HY000", "Invalid zstd compression level for algorithm '{}'.");
pub const TOO_MANY_STATEMENTS: Code = Code::new(
    "MAX_PREPARED_STMT_COUNT_REACHED",
    1461,
    "42000",
    "Can't create more than max_prepared_stmt_count statements (current value: {})",
);
pub const MALFORMED: Code = Code::new("MALFORMED_PACKET", 1835, "HY000", "Malformed communication packet.");
pub const NO_OPEN_CURSOR: Code =
    Code::new("STMT_HAS_NO_OPEN_CURSOR", 1421, "HY000", "The statement ({}) has no open cursor.");
pub const TOO_MANY_LOGINS: Code = Code::new(
    "ACCESS_DENIED_ERROR",
    1045,
    "28000",
    "Access denied for user '{}'@'{}': many logins from there have failed, and many wait already; try again later",
);
pub const IDLE: Code = Code::new(
    "CLIENT_INTERACTION_TIMEOUT",
    4031,
    "HY000",
    "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.",
);

/// The error of a client from another machine while the account `default` needs no password.
pub fn not_allowed_host(host: IpAddr) -> SqlError {
    error::HOST_NOT_PRIVILEGED.with(&[&host, &"mysql_protected_mode"])
}

/// The error of a client without TLS where it is required.
pub fn insecure_transport() -> SqlError {
    error::SECURE_TRANSPORT_REQUIRED.with(&[&"--require_secure_transport=ON"])
}
