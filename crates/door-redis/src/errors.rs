//! Error texts. They are those of Redis 7.0.15 to the byte; the engine's errors are mapped to them.

pub const SYNTAX: &str = "ERR syntax error";
pub const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
pub const NOT_INT: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";
pub const OVERFLOW: &str = "ERR increment or decrement would overflow";
pub const NOT_FLOAT: &str = "ERR value is not a valid float";
pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub const MUST_BE_POSITIVE: &str = "ERR value is out of range, must be positive";
pub const NO_SUCH_KEY: &str = "ERR no such key";
pub const DB_INDEX: &str = "ERR DB index is out of range";
pub const BIT_OFFSET: &str = "ERR bit offset is not an integer or out of range";
pub const BIT_VALUE: &str = "ERR bit is not an integer or out of range";
pub const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
pub const EXEC_ABORT: &str = "EXECABORT Transaction discarded because of previous errors.";
pub const NO_AUTH: &str = "NOAUTH Authentication required.";
/// The answer to writes while another server is followed.
pub const READ_ONLY: &str = "READONLY You can't write against a read only replica.";
/// The end of a wait when another server begins to be followed.
pub const ROLE_CHANGED: &str =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
pub const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// Returns the reply for an error of the engine. The request has changed nothing (DR-2).
pub fn of_engine(error: &engine::Error) -> String {
    match error {
        engine::Error::DiskFull => {
            "MISCONF disk full: writes are refused until there is free space again; reads continue".to_owned()
        }
        engine::Error::TooLarge { .. } => TOO_LONG.to_owned(),
        // The command waited before it changed anything (DR-7).
        engine::Error::LockTimeout => {
            "LOCKED the key is locked by an SQL transaction that has not ended; nothing was changed".to_owned()
        }
        engine::Error::Busy(purpose) => busy(*purpose).to_owned(),
        engine::Error::OutOfMemory(full) => out_of_memory(*full),
        engine::Error::Following => READ_ONLY.to_owned(),
        engine::Error::ShuttingDown => "ERR the server is shutting down".to_owned(),
        other => format!("ERR {other}"),
    }
}

/// Returns the error of a command that waits for a key of a script (1: of a function) which takes long.
pub fn busy(purpose: u32) -> &'static str {
    if purpose == 0 {
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
    } else {
        "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
    }
}

/// The code that Redis uses when `maxmemory` stops a command.
pub fn out_of_memory(full: stdx::memory::Full) -> String {
    format!("OOM command not allowed: {full}")
}

/// Returns `invalid expire time in 'set' command`.
pub fn invalid_expire(command: &str) -> String {
    format!("ERR invalid expire time in '{command}' command")
}

pub fn wrong_arity(command: &str) -> String {
    format!("ERR wrong number of arguments for '{command}' command")
}

/// Redis quotes at most 128 bytes of a name, and arguments as long as the text stays below 128 bytes.
pub fn unknown_command(args: &[&[u8]]) -> String {
    let cut = |bytes: &[u8], most: usize| {
        let bytes = &bytes[..bytes.len().min(most)];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let mut shown = String::new();
    for arg in &args[1..] {
        if shown.len() >= 128 {
            break;
        }
        shown.push_str(&format!("'{}' ", cut(arg, 128 - shown.len())));
    }
    format!("ERR unknown command '{}', with args beginning with: {shown}", cut(args[0], 128))
}

pub fn unknown_subcommand(command: &str, sub: &[u8]) -> String {
    let sub = &sub[..sub.len().min(128)];
    format!("ERR unknown subcommand '{}'. Try {} HELP.", String::from_utf8_lossy(sub), command.to_uppercase())
}
