//! Errors of the connection itself, with MySQL's texts. `query` has the errors of statements.

use query::error::Code;

const fn code(name: &'static str, code: u16, sqlstate: &'static str, format: &'static str) -> Code {
    Code { name, code, sqlstate, format }
}

pub const BAD_HANDSHAKE: Code = code("BAD_HANDSHAKE", 1043, "08S01", "Bad handshake");
pub const PACKET_TOO_LARGE: Code = query::error::NET_PACKET_TOO_LARGE;
pub const OUT_OF_RESOURCES: Code = code(
    "OUT_OF_RESOURCES",
    1041,
    "HY000",
    "Out of memory; check if mysqld or some other process uses all available memory; if not, you may have to use 'ulimit' to allow mysqld to use more memory or you can add more swap space",
);
pub const OUT_OF_ORDER: Code = code("NET_PACKETS_OUT_OF_ORDER", 1156, "08S01", "Got packets out of order");
pub const UNCOMPRESS: Code = code("NET_UNCOMPRESS_ERROR", 1157, "08S01", "Couldn't uncompress communication packet");
pub const COMPRESSION_ALGORITHM: Code =
    code("WRONG_COMPRESSION_ALGORITHM_CLIENT", 3922, "HY000", "Invalid compression algorithm '{}'.");
pub const COMPRESSION_LEVEL: Code =
    code("WRONG_COMPRESSION_LEVEL_CLIENT", 3923, "HY000", "Invalid zstd compression level for algorithm '{}'.");
pub const TOO_MANY_STATEMENTS: Code = code(
    "MAX_PREPARED_STMT_COUNT_REACHED",
    1461,
    "42000",
    "Can't create more than max_prepared_stmt_count statements (current value: {})",
);
pub const MALFORMED: Code = code("MALFORMED_PACKET", 1835, "HY000", "Malformed communication packet.");
pub const NO_OPEN_CURSOR: Code =
    code("STMT_HAS_NO_OPEN_CURSOR", 1421, "HY000", "The statement ({}) has no open cursor.");
pub const SECURE_TRANSPORT: Code = code(
    "SECURE_TRANSPORT_REQUIRED",
    3159,
    "HY000",
    "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
);
pub const TOO_MANY_LOGINS: Code = code(
    "ACCESS_DENIED_ERROR",
    1045,
    "28000",
    "Access denied for user '{}'@'{}': many logins from there have failed, and many wait already; try again later",
);
pub const IDLE: Code = code(
    "CLIENT_INTERACTION_TIMEOUT",
    4031,
    "HY000",
    "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.",
);
pub const NOT_ALLOWED_HOST: Code = code(
    "HOST_NOT_PRIVILEGED",
    1130,
    "HY000",
    "Host '{}' is not allowed to connect to this Beluga server while the account `default` needs no password; give it one with the setting redis_password, or turn mysql_protected_mode off if nobody else can reach this port",
);
