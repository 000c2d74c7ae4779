//! Suspension of the current statement, as the door sees it (`query::session::suspension` has the rules).
//!
//! ```text
//!   next_of, execute ─► Outcome::Suspended ─► when_ready(wake) ─► (parked, no thread) ─► wake ─► resume ─► outcome, or Suspended again
//! ```

use std::sync::Arc;

use query::exec::host::host;
use query::session::suspension::{Awaits, Ready, WakeSources, may_be_kept};
use syntax::postgres::tree::RawStatement;

use crate::error::{PgError, Result, state};
use crate::instance::handle::Wake;
use crate::session::facts::FactsOf as _;
use crate::session::portal::PortalState;
use crate::session::statement::Prepared;
use crate::session::{Outcome, Session};
use crate::value::Value;

/// A statement that waits for the lock of a table, and is run again from its beginning.
#[derive(Debug)]
pub(super) enum Restart {
    Raw(Box<RawStatement>, Arc<str>),
    Known(Arc<Prepared>, Vec<Value>),
    /// An Execute of a portal, with its most rows.
    Portal(String, u64),
}

/// The parts of the session that a run changes before it may be suspended for the lock of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BeforeRun {
    notices: usize,
    has_queried: bool,
    has_changed: bool,
}

impl Session {
    /// Permits the next statement to answer `Outcome::Suspended`.
    pub fn allow_suspension(&mut self) {
        self.suspension.is_allowed = true;
    }

    /// Registers `wake`, which is called in any thread when the suspended statement can be resumed. The caller also resumes it at the time returned.
    pub fn when_ready(&mut self, wake: Wake) -> Ready {
        let awaits = match self.suspension.awaits() {
            Some(Awaits::Time(_)) if self.host().advisory.is_waiting() => Some("advisory"),
            Some(Awaits::Time(_)) => Some("PgSleep"),
            Some(Awaits::Row(_)) => Some("transactionid"),
            Some(Awaits::Table(_)) => Some("relation"),
            Some(Awaits::Pages) => Some("DataFileRead"),
            None => None,
        };
        self.handle.change_status(|status| status.awaits = awaits);
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
        self.handle.change_status(|status| status.awaits = None);
        self.ctx.warnings.clear();
        let outcome = match (self.suspension.take(), self.suspended_for.take(), self.restart.take()) {
            (Some((Some(statement), _)), Some(delivery), _) => self.perform(&statement, delivery),
            (Some((None, _)), _, Some(restart)) => return self.run_again(restart),
            _ => Err(PgError::new(state::QUERY_CANCELED, "canceling statement due to user request")),
        };
        outcome.map_err(|error| self.fail_with(error))
    }

    /// Lets waits for locks of tables suspend the statement that begins, as long as it has changed nothing.
    pub(super) fn may_restart(&mut self, text: &str) {
        let notices = self.ctx.facts().notices.len();
        let (has_queried, has_changed) = (self.transaction.has_queried, self.transaction.has_changed);
        self.before_run = BeforeRun { notices, has_queried, has_changed };
        self.core.locks.suspend(self.suspension.is_allowed && may_be_kept(text));
    }

    /// Ends a run of a statement that `restart` describes, which may have been suspended for the lock of a table.
    pub(super) fn ran(
        &mut self,
        outcome: Result<Outcome>,
        restart: impl FnOnce(&mut Session) -> Restart,
    ) -> Result<Outcome> {
        self.core.locks.suspend(false);
        match (outcome, self.core.locks.suspended_until()) {
            (Err(error), Some(until)) if error.is_suspension() => {
                let BeforeRun { notices, has_queried, has_changed } = self.before_run;
                self.ctx.facts().notices.truncate(notices);
                (self.transaction.has_queried, self.transaction.has_changed) = (has_queried, has_changed);
                self.suspension.suspend_for_table(until);
                self.restart = Some(restart(self));
                Ok(Outcome::Suspended)
            }
            (Ok(outcome), _) => {
                // The restarted statement may not have come to the lock again.
                self.core.locks.end_suspension();
                Ok(outcome)
            }
            (Err(error), _) => Err(self.fail_with(error)),
        }
    }

    fn run_again(&mut self, restart: Restart) -> Result<Outcome> {
        self.suspension.is_allowed = true;
        self.may_restart("");
        match restart {
            Restart::Raw(raw, text) => {
                let outcome = self.run_raw(&raw, &text);
                self.ran(outcome, |_| Restart::Raw(raw, text))
            }
            Restart::Known(prepared, values) => {
                let outcome = self.run_known(&prepared, values.clone());
                self.ran(outcome, |_| Restart::Known(prepared, values))
            }
            Restart::Portal(name, rows_max) => {
                let outcome = self.execute_portal(&name, rows_max);
                self.ran(outcome, |session| session.restart_portal(&name, rows_max))
            }
        }
    }

    /// Makes a portal whose run is suspended ready to be run again.
    pub(super) fn restart_portal(&mut self, name: &str, rows_max: u64) -> Restart {
        let values = std::mem::take(&mut self.ctx.parameters);
        if let Some(portal) = self.portals.get_mut(name) {
            (portal.values, portal.state) = (values, PortalState::New);
        }
        Restart::Portal(name.to_owned(), rows_max)
    }

    /// Discards the suspended statement. Returns false if there is none.
    pub(super) fn forget_suspended(&mut self) -> bool {
        if self.suspended_for.is_none() && self.suspension.awaits().is_none() {
            self.core.locks.end_suspension();
            return false;
        }
        (self.suspended_for, self.restart, self.evaluated) = (None, None, None);
        let was_suspended = self.suspension.take().is_some();
        self.suspension.end(&self.handle, &self.core.locks, &mut self.ctx);
        was_suspended
    }
}
