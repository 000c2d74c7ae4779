//! A command of the stream, copied out of the buffer.

use crate::command::Command;

/// A command of the stream.
pub struct Received {
    pub args: Vec<Vec<u8>>,
    pub db: u8,
    /// None for those that are not in the table, or have a wrong number of arguments.
    pub command: Option<&'static Command>,
    /// The offset in the stream at its end.
    pub end: u64,
    /// A transaction of the other server ends with it, or it is in none.
    pub ends_unit: bool,
}

/// Returns the name of a command, for a message.
pub fn name_of(args: &[Vec<u8>]) -> String {
    const MOST: usize = 40;
    let name = args.first().map_or(&[][..], |name| &name[..name.len().min(MOST)]);
    String::from_utf8_lossy(name).escape_debug().to_string()
}
