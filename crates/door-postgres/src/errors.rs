//! Errors of the connection itself, with PostgreSQL's texts where it has the error. `sql-postgres` has the errors of statements.

use sql_postgres::error::PgError;

pub const PROTOCOL_VIOLATION: &str = "08P01";
pub const ADMIN_SHUTDOWN: &str = "57P01";
const INVALID_AUTHORIZATION: &str = "28000";
const INVALID_PASSWORD: &str = "28P01";
const FEATURE_NOT_SUPPORTED: &str = "0A000";

pub fn protocol(message: impl Into<String>) -> PgError {
    PgError::new(PROTOCOL_VIOLATION, message)
}

pub fn insufficient_data() -> PgError {
    protocol("insufficient data left in message")
}

pub fn unsupported(message: impl Into<String>) -> PgError {
    PgError::new(FEATURE_NOT_SUPPORTED, message)
}

pub fn too_many_clients() -> PgError {
    PgError::new("53300", "sorry, too many clients already")
}

pub fn out_of_memory(bytes: usize) -> PgError {
    PgError::new("53200", "out of memory").detail(format!("Failed on request of size {bytes}."))
}

pub fn message_too_long(size: usize, max: usize) -> PgError {
    PgError::new("54000", format!("a message of {size} bytes is too long"))
        .hint(format!("Messages may have {max} bytes (setting postgres_message_max)."))
}

pub fn shutdown() -> PgError {
    PgError::new(ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

pub fn idle_in_transaction() -> PgError {
    PgError::new("25P03", "terminating connection due to idle-in-transaction timeout")
}

pub fn login_timeout() -> PgError {
    PgError::new("57014", "canceling authentication due to timeout")
}

pub fn wrong_password(role: &str) -> PgError {
    PgError::new(INVALID_PASSWORD, format!("password authentication failed for user \"{role}\""))
}

pub fn too_many_logins(role: &str) -> PgError {
    PgError::new(INVALID_AUTHORIZATION, format!("too many logins as \"{role}\" wait already"))
        .detail("Many logins from this address have failed.")
        .hint("Try again later.")
}

pub fn no_login(role: &str) -> PgError {
    PgError::new(INVALID_AUTHORIZATION, format!("role \"{role}\" is not permitted to log in"))
}

pub fn password_expired(role: &str) -> PgError {
    PgError::new(INVALID_PASSWORD, format!("the password of role \"{role}\" has expired"))
        .hint("Set another one: ALTER ROLE ... PASSWORD, or ALTER USER at the MySQL door.")
}

pub fn needs_tls(role: &str) -> PgError {
    PgError::new(INVALID_AUTHORIZATION, format!("role \"{role}\" is permitted to log in with TLS only"))
        .hint("Connect with sslmode=require.")
}

/// The error of a client without TLS where the setting requires it.
pub fn insecure_transport() -> PgError {
    PgError::new(INVALID_AUTHORIZATION, "connections without TLS are refused")
        .detail("The setting postgres_require_secure_transport is on.")
        .hint("Connect with sslmode=require.")
}

/// The error of a client from another machine while the account of `postgres` needs no password.
pub fn protected_mode() -> PgError {
    PgError::new(
        INVALID_AUTHORIZATION,
        "connections from other machines are refused while the role \"postgres\" has no password",
    )
    .hint("Set its password from the server's machine, or turn postgres_protected_mode off.")
}

/// The error of a client without TLS whose account has a password, but no SCRAM verifier of it.
pub fn no_verifier(role: &str) -> PgError {
    PgError::new(INVALID_AUTHORIZATION, format!("role \"{role}\" has no SCRAM-SHA-256 verifier"))
        .detail("Its password is kept in a form that can only be compared with the password itself, which is asked for with TLS alone.")
        .hint("Set the password again in plain text at any door, or connect with sslmode=require.")
}
