//! The rest of a reply that could not be written at once. The command stays in the input until its reply is complete (DM-2).

use reactor::Alarm;
use sql_mysql::ResultSet;
use sql_mysql::batch::Batch;

use crate::large_row::LargeRowStream;
use crate::rows::RowWriter;

pub struct PendingReply {
    /// Bytes of the command in the input.
    pub size: usize,
    pub source: ReplySource,
    /// The statements behind the current one, and where they begin in their text.
    pub script: Option<(String, usize)>,
}

/// Where the rest of a reply comes from.
pub enum ReplySource {
    /// The result of a statement, and rows of it that have been fetched from the executor already.
    Rows { result: ResultSet, writer: RowWriter, pending_rows: Option<Box<PendingRows>> },
    /// This many rows of a cursor.
    Fetch { statement: u32, left: u32 },
    /// The next statement of the text.
    Statement,
    /// A statement that is suspended on a page miss and is resumed when the connection is woken.
    Suspended(Suspended),
}

/// A suspended statement.
pub struct Suspended {
    pub begun_ns: u64,
    /// For a prepared statement: its id, and the flags of its execution.
    pub prepared: Option<(u32, u8)>,
    /// Resumes the statement when its wait takes too long.
    pub alarm: Option<Alarm>,
}

/// Rows that have been fetched and not been sent, because one of them has a long value.
pub struct PendingRows {
    pub batch: Batch,
    /// The index of the next row.
    pub at: usize,
    /// The row that is being sent in pieces.
    pub large_row: Option<LargeRowStream>,
}
