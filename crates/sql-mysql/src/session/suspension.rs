//! Suspension of the current statement, as doors see it (`query::session::suspension` has the rules; keeps MY-8).
//!
//! ```text
//!   execute ─► Outcome::Suspended ─► when_ready(wake) ─► (parked, no thread) ─► wake ─► resume ─► outcome, or Away again
//! ```

use std::sync::Arc;

use crate::error::{self, Result, SqlError};
use crate::instance::handle::Wake;
use crate::instance::statement::BoundStatement;
use crate::session::run::More;
use crate::session::{Outcome, Session};
use query::exec::host::host;
use query::session::suspension::{Awaits, Ready};

impl Session {
    /// Permits the next statement to answer `Outcome::Suspended`.
    pub fn allow_suspension(&mut self) {
        self.suspension.is_allowed = true;
    }

    /// Registers `wake`, which is called in any thread when the suspended statement can be resumed. The caller also
    /// resumes it at the time returned.
    pub fn when_ready(&mut self, wake: Wake) -> Ready {
        let state = match self.suspension.awaits() {
            Some(Awaits::Time(_)) => Some("User sleep"),
            Some(Awaits::Row(_)) => Some("Waiting for row lock"),
            Some(Awaits::Pages) | None => None,
        };
        if let Some(state) = state {
            self.handle.show(|shown| shown.state = Some(state.to_owned()));
        }
        let deadline = self.ctx.deadline;
        self.suspension.register(wake, &self.handle, self.db.engine(), host(&mut self.ctx), deadline)
    }

    /// Resumes the suspended statement if its wait is over; otherwise returns `Outcome::Suspended` again.
    pub fn resume(&mut self) -> Result<Outcome> {
        self.handle.resumed();
        let deadline = self.ctx.deadline;
        let is_suspended = self.suspension.awaits().is_some();
        if is_suspended && !self.suspension.is_wait_over(&self.handle, host(&mut self.ctx), deadline) {
            return Ok(Outcome::Suspended);
        }
        let Some((statement, awaits)) = self.suspension.take() else { return Err(error::QUERY_INTERRUPTED.bare()) };
        self.handle.show(|shown| shown.state = None);
        self.ctx.warnings.clear();
        self.host().answers_anyway = matches!(awaits, Awaits::Time(_));
        let outcome = self.perform(&statement, &mut |_, _| Ok(None));
        self.host().answers_anyway = false;
        match outcome {
            Ok(outcome) => Ok(self.told(outcome)),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Discards the suspended statement. Returns false if there is none.
    pub(super) fn forget_suspended(&mut self) -> bool {
        let was_suspended = self.suspension.take().is_some();
        self.suspension.end(&self.handle, &mut self.ctx);
        was_suspended
    }

    /// Runs the plan, and suspends the statement if the plan has to wait and may.
    pub(super) fn perform(&mut self, statement: &Arc<BoundStatement>, more: More<'_>) -> Result<Outcome> {
        if !self.suspension.is_possible() {
            return self.run_plan(statement, more);
        }
        let reads = self.handle.counts.reads();
        self.suspension.begin_run(&mut self.ctx)?;
        let outcome = self.run_plan(statement, more);
        self.suspension.end_run(&mut self.ctx);
        match outcome {
            Err(error) if is_suspended(&error) => {
                // The reads are repeated, so they are not counted twice.
                self.handle.counts.unread(reads);
                self.suspension.suspend(statement, &mut self.ctx);
                Ok(Outcome::Suspended)
            }
            outcome => {
                self.suspension.end(&self.handle, &mut self.ctx);
                outcome
            }
        }
    }
}

/// The error exists only between a plan and `perform`.
fn is_suspended(error: &SqlError) -> bool {
    error::SUSPENDED.is(error)
}
