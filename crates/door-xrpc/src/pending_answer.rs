//! What is left of an answer that could not be written at once: rows, or a suspended statement.

use std::sync::Arc;

use query::ResultSet;
use query::batch::Batch;
use reactor::Alarm;
use stdx::sync::atomic::AtomicBool;

use crate::encode::chunk::Chunk;
use crate::message::request::{ExecPlan, StmtExecute};

/// An answer under way.
pub enum PendingAnswer {
    PendingRows(Box<PendingRows>),
    /// That of a statement which has left for pages.
    Suspended(Suspended),
}

/// Rows under way.
pub struct PendingRows {
    pub result: ResultSet,
    /// Drawn, and sent up to there.
    pub batch: Batch,
    pub at: usize,
    pub chunk: Option<Chunk>,
    /// The client has been told that its leave is used up.
    pub has_asked: bool,
}

/// A statement that has left.
pub struct Suspended {
    pub begun_ns: u64,
    pub options: ExecOptions,
    /// Its wait may be over. It may be woken for something else, and would look in vain.
    pub is_ready: Arc<AtomicBool>,
    /// Resumes it when its wait takes too long.
    pub _alarm: Option<Alarm>,
}

/// What both kinds of request say of how they are run and answered.
#[derive(Clone, Copy)]
pub struct ExecOptions {
    pub is_compact: bool,
    pub is_chunked: bool,
    pub token: Option<i32>,
    pub capabilities: Option<u64>,
    /// What asks for another moment than now.
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
