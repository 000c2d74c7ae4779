//! Suspension of the current statement, as the door sees it (`query::session::suspension` has the rules).
//!
//! ```text
//!   next_of, execute ─► Outcome::Suspended ─► when_ready(wake) ─► (parked, no thread) ─► wake ─► resume ─► outcome, or Suspended again
//! ```

use query::exec::host::host;
use query::session::suspension::{Awaits, Ready};

use crate::error::{PgError, Result, state};
use crate::instance::handle::Wake;
use crate::session::{Outcome, Session};

impl Session {
    /// Permits the next statement to answer `Outcome::Suspended`.
    pub fn allow_suspension(&mut self) {
        self.suspension.is_allowed = true;
    }

    /// Registers `wake`, which is called in any thread when the suspended statement can be resumed. The caller also resumes it at the time returned.
    pub fn when_ready(&mut self, wake: Wake) -> Ready {
        let awaits = match self.suspension.awaits() {
            Some(Awaits::Time(_)) if self.host().advisory.attempt_at().is_some() => Some("advisory"),
            Some(Awaits::Time(_)) => Some("PgSleep"),
            Some(Awaits::Row(_)) => Some("transactionid"),
            Some(Awaits::Pages) => Some("DataFileRead"),
            None => None,
        };
        self.handle.change_status(|status| status.awaits = awaits);
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
        let (Some((statement, _)), Some(delivery)) = (self.suspension.take(), self.suspended_for.take()) else {
            let error = PgError::new(state::QUERY_CANCELED, "canceling statement due to user request");
            return Err(self.fail_with(error));
        };
        self.handle.change_status(|status| status.awaits = None);
        self.ctx.warnings.clear();
        match self.perform(&statement, delivery) {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(self.fail_with(error)),
        }
    }

    /// Discards the suspended statement. Returns false if there is none.
    pub(super) fn forget_suspended(&mut self) -> bool {
        if self.suspended_for.is_none() && self.suspension.awaits().is_none() {
            return false;
        }
        self.suspended_for = None;
        let was_suspended = self.suspension.take().is_some();
        self.suspension.end(&self.handle, &mut self.ctx);
        was_suspended
    }
}
