//! The context in which one command runs, and how far its reply has come.

use std::sync::Arc;

use reactor::Io;
use sql_mysql::error::{Result, SqlError};

use crate::reply::Writer;
use crate::shared::Shared;

/// How far a command has come after one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The reply is complete; the command occupied this many bytes of the input.
    Done(usize),
    /// There is more to write.
    Running,
    /// The command occupied this many bytes of the input; what the client sends next belongs to it.
    AwaitsInput(usize),
    /// The connection is closed, or has to be.
    Close,
}

/// The result of a command's function: an error becomes the reply.
pub type CommandResult = Result<Progress>;

/// The connection's side of a running command: its output, its sequence number and the client's capabilities.
pub struct CommandContext<'t, 'io> {
    pub shared: &'t Arc<Shared>,
    pub sequence: &'t mut u8,
    pub capabilities: u32,
    pub io: &'t mut Io<'io>,
}

impl CommandContext<'_, '_> {
    pub fn writer(&mut self) -> Writer<'_> {
        Writer { out: self.io.out(), sequence: self.sequence, capabilities: self.capabilities }
    }

    /// Writes and counts an error packet.
    pub fn error(&mut self, error: &SqlError) {
        self.shared.stats.errors.add(1);
        self.writer().error(error);
    }

    /// Writes the error of a command that has failed.
    pub fn finish(&mut self, result: CommandResult, size: usize) -> Progress {
        result.unwrap_or_else(|error| {
            self.error(&error);
            Progress::Done(size)
        })
    }
}
