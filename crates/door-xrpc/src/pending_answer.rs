//! The rest of an answer that could not be written at once: rows, or a suspended statement.

use std::sync::Arc;

use reactor::Alarm;
use sql_mysql::ResultSet;
use sql_mysql::batch::Batch;
use stdx::sync::atomic::AtomicBool;

use crate::encode::chunk::Chunk;
use crate::encode::column_frames::ColumnFrames;
use crate::message::request::{ExecPlan, StmtExecute};
use crate::plan_translation::PreparedPlan;
use crate::prepared_text::PreparedText;

/// The rest of an answer.
pub enum PendingAnswer {
    PendingRows(Box<PendingRows>),
    /// A statement suspended on a page miss.
    Suspended(Suspended),
}

/// The rest of a result.
pub struct PendingRows {
    pub result: ResultSet,
    /// The current batch, and the next row of it.
    pub batch: Batch,
    pub at: usize,
    pub chunk: Option<Chunk>,
    /// The client has been told that the tokens are used up.
    pub has_asked: bool,
}

/// A suspended statement.
pub struct Suspended {
    pub begun_ns: u64,
    pub options: ExecOptions,
    pub known: Known,
    /// The statement can be resumed. The session may also be woken for another reason, and would resume it in vain.
    pub is_ready: Arc<AtomicBool>,
    /// Resumes the statement when its wait takes too long.
    pub _alarm: Option<Alarm>,
}

/// The cached statement that an answer is for.
pub enum Known {
    Nothing,
    Text(Arc<PreparedText>),
    Plan(Arc<PreparedPlan>),
}

impl Known {
    /// Returns where the column metadata of its results is kept.
    pub fn columns(&self) -> Option<&ColumnFrames> {
        match self {
            Known::Nothing => None,
            Known::Text(known) => Some(&known.columns),
            Known::Plan(known) => Some(&known.columns),
        }
    }
}

/// The options that both kinds of request have.
#[derive(Clone, Copy)]
pub struct ExecOptions {
    pub is_compact: bool,
    pub is_chunked: bool,
    pub token: Option<i32>,
    pub capabilities: Option<u64>,
    /// The request asks for a snapshot or a commit with a number of the client.
    pub has_moment: bool,
}

impl ExecOptions {
    pub fn of_statement(request: &StmtExecute<'_>) -> ExecOptions {
        let numbers = [request.snapshot_seq, request.commit_seq];
        ExecOptions {
            is_compact: request.compact_metadata,
            is_chunked: request.chunk_result,
            token: request.token,
            capabilities: request.capabilities,
            has_moment: asks_for_moment(numbers, request.use_cts_transaction || request.query_via_flashback_area),
        }
    }

    pub fn of_plan(request: &ExecPlan<'_>) -> ExecOptions {
        let numbers = [request.snapshot_seq, request.commit_seq];
        ExecOptions {
            is_compact: request.compact_metadata,
            is_chunked: request.chunk_result,
            token: request.token,
            capabilities: request.capabilities,
            has_moment: asks_for_moment(numbers, request.use_cts_transaction || request.query_via_flashback_area),
        }
    }
}

fn asks_for_moment(numbers: [Option<u64>; 2], other: bool) -> bool {
    other || numbers.into_iter().flatten().any(|number| number != 0)
}
