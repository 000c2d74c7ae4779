//! Suspension of the current statement, as doors see it (`query::session::suspension` has the rules; keeps MY-8).
//!
//! ```text
//!   execute ─► Outcome::Suspended ─► when_ready(wake) ─► (parked, no thread) ─► wake ─► resume ─► outcome, or Away again
//! ```

use std::sync::Arc;

use crate::error::{self, Result, SqlError};
use crate::instance::count::Count;
use crate::instance::handle::Wake;
use crate::instance::prepared::PreparedHandle;
use crate::instance::statement::BoundStatement;
use crate::session::run::More;
use crate::session::{Outcome, Session};
use crate::value::Value;
use query::exec::host::host;
use query::session::suspension::{Awaits, Ready, WakeSources, may_be_kept};

/// A statement that waits for the lock of a table, and is run again from its beginning.
#[derive(Debug)]
pub(super) enum Restart {
    Text(Box<str>),
    Prepared(PreparedHandle, Vec<Value>),
}

impl Session {
    /// Permits the next statement to answer `Outcome::Suspended`.
    pub fn allow_suspension(&mut self) {
        self.suspension.is_allowed = true;
    }

    /// Registers `wake`, which is called in any thread when the suspended statement can be resumed. The caller also
    /// resumes it at the time returned.
    pub fn when_ready(&mut self, wake: Wake) -> Ready {
        let state = match self.suspension.awaits() {
            Some(Awaits::Time(_)) if self.host().advisory.is_waiting() => Some("User lock"),
            Some(Awaits::Time(_)) => Some("User sleep"),
            Some(Awaits::Row(_)) => Some("Waiting for row lock"),
            Some(Awaits::Table(_)) => Some("Waiting for table metadata lock"),
            Some(Awaits::Pages) | None => None,
        };
        if let Some(state) = state {
            self.handle.show(|shown| shown.state = Some(state.to_owned()));
        }
        let deadline = self.ctx.deadline;
        let sources = WakeSources { interrupts: &self.handle, locks: &self.core.locks, engine: self.db.engine() };
        self.suspension.register(wake, &sources, host(&mut self.ctx), deadline)
    }

    /// Resumes the suspended statement if its wait is over; otherwise returns `Outcome::Suspended` again.
    pub fn resume(&mut self) -> Result<Outcome> {
        self.handle.resumed();
        let deadline = self.ctx.deadline;
        let is_suspended = self.suspension.awaits().is_some();
        let sources = WakeSources { interrupts: &self.handle, locks: &self.core.locks, engine: self.db.engine() };
        if is_suspended && !self.suspension.is_wait_over(&sources, host(&mut self.ctx), deadline) {
            return Ok(Outcome::Suspended);
        }
        let Some((statement, awaits)) = self.suspension.take() else { return Err(error::QUERY_INTERRUPTED.bare()) };
        self.handle.show(|shown| shown.state = None);
        self.ctx.warnings.clear();
        let Some(statement) = statement else { return self.restart() };
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
        self.restart = None;
        let was_suspended = self.suspension.take().is_some();
        self.suspension.end(&self.handle, &self.core.locks, &mut self.ctx);
        was_suspended
    }

    /// Lets waits for locks of tables suspend the statement that begins, as long as it has changed nothing.
    pub(super) fn may_restart(&mut self, text: &str) {
        self.core.locks.suspend(self.suspension.is_allowed && may_be_kept(text));
    }

    /// Ends a run of a statement that `restart` describes, which may have been suspended for the lock of a table.
    pub(super) fn ran(
        &mut self,
        outcome: Result<Outcome>,
        restart: impl FnOnce(&mut Session) -> Restart,
    ) -> Result<Outcome> {
        self.core.locks.suspend(false);
        self.is_restarted = false;
        match (outcome, self.core.locks.suspended_until()) {
            (Err(error), Some(until)) if is_suspended(&error) => {
                self.suspension.suspend_for_table(until);
                self.restart = Some(restart(self));
                Ok(Outcome::Suspended)
            }
            (Ok(outcome), _) => {
                // The restarted statement may not have come to the lock again.
                self.core.locks.end_suspension();
                Ok(self.told(outcome))
            }
            (Err(error), _) => Err(self.fail(error)),
        }
    }

    /// Runs the statement again that has waited for the lock of a table.
    fn restart(&mut self) -> Result<Outcome> {
        self.is_restarted = true;
        self.suspension.is_allowed = true;
        match self.restart.take() {
            None => Err(error::QUERY_INTERRUPTED.bare()),
            Some(Restart::Text(text)) => {
                self.may_restart(&text);
                let outcome = self.execute_text(&text);
                self.ran(outcome, |_| Restart::Text(text))
            }
            Some(Restart::Prepared(handle, parameters)) => {
                self.may_restart(handle.text());
                let outcome = self.execute_preparation(&handle.0, parameters);
                self.ran(outcome, |session| Restart::Prepared(handle, std::mem::take(&mut session.ctx.parameters)))
            }
        }
    }

    /// Counts what a statement counts before it may be suspended for the lock of a table, once.
    pub(super) fn count_once(&self, what: Count) {
        if !self.is_restarted {
            self.handle.counts.add(what);
        }
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
                self.suspension.end(&self.handle, &self.core.locks, &mut self.ctx);
                outcome
            }
        }
    }
}

/// The error exists only between a plan and `perform`.
fn is_suspended(error: &SqlError) -> bool {
    error::SUSPENDED.is(error)
}
