//! Statements that leave rather than wait for a page: the door has the page brought, serves others, and resumes the statement.
//!
//! Hard part: a statement that is resumed begins its plan anew, so it may leave only while nothing has come of it: no row is out, none is changed (`Transaction::reach` sees to the second), and its plan
//! can be begun again (`plan::again`). What was done before the plan ran stays done: gates are passed, the transaction has its snapshot, the statement is counted.

use std::sync::Arc;

use engine::rows::Reach;

use crate::error::{self, Result, SqlError};
use crate::session::run::{Compiled, More};
use crate::session::{Outcome, Session};

/// A statement leaves no more often: then it waits. A page may go again before its reader is back, and one that reads much would begin too often.
const LEAVES_MAX: u8 = 6;

/// What is known of a statement that may leave, or has left.
#[derive(Default)]
pub(super) struct Leaving {
    /// The door has said that the next statement may.
    pub is_allowed: bool,
    /// How often it still may.
    left: u8,
    pub away: Option<Arc<Compiled>>,
}

impl Session {
    /// The next statement may answer `Outcome::Away`.
    pub fn allow_leaving(&mut self) {
        self.leaving.is_allowed = true;
    }

    /// Has the pages brought that the statement is away for; `then` is called when it can be resumed, in this thread or another.
    pub fn fetch(&mut self, then: Box<dyn FnOnce() + Send>) {
        let pages = self.host().txn.as_mut().map(|txn| txn.take_absent()).unwrap_or_default();
        self.db.engine().rows().fetch(&pages, then);
    }

    /// Goes on with the statement that answered `Outcome::Away`.
    pub fn resume(&mut self) -> Result<Outcome> {
        let Some(compiled) = self.leaving.away.take() else { return Err(error::QUERY_INTERRUPTED.bare()) };
        self.ctx.warnings.clear();
        match self.perform(&compiled, &mut |_, _| Ok(None)) {
            Ok(outcome) => Ok(self.told(outcome)),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// A statement begins whose plan is at hand.
    pub(super) fn may_leave(&mut self, compiled: &Compiled) {
        let is_allowed = std::mem::take(&mut self.leaving.is_allowed);
        self.leaving.left = if is_allowed && compiled.may_begin_again { LEAVES_MAX } else { 0 };
    }

    /// Runs the plan of a statement that is otherwise under way.
    pub(super) fn perform(&mut self, compiled: &Arc<Compiled>, more: More<'_>) -> Result<Outcome> {
        let may_leave = self.leaving.left > 0;
        let reads = self.handle.counts.reads();
        if may_leave {
            let host = self.host();
            host.txn()?.reach(Reach::Memory);
            host.numbers.are_kept = true;
        }
        let outcome = self.run_plan(compiled, more);
        if may_leave && let Some(txn) = &mut self.host().txn {
            txn.reach(Reach::Disk);
        }
        match outcome {
            Err(error) if is_absent(&error) => {
                self.leaving.left -= 1;
                self.handle.counts.unread(reads);
                self.host().numbers.begin_again();
                self.leaving.away = Some(compiled.clone());
                Ok(Outcome::Away)
            }
            outcome => outcome,
        }
    }
}

/// A page is not in memory: said only between a plan and `perform`.
fn is_absent(error: &SqlError) -> bool {
    error::PAGE_ABSENT.is(error)
}
