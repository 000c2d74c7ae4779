//! Suspension of statements that would wait: the door's thread serves others, and resumes the statement after the wait.
//!
//! ```text
//!   execute ─► Outcome::Suspended ─► when_ready(wake) ─► (parked, no thread) ─► wake ─► resume ─► outcome, or Away again
//!                                                     page read · SLEEP over · row free or timed out · KILL · client gone · server stops
//! ```
//! Hard part: a resumed statement restarts its plan. So it may be suspended only before it has had an effect: no row is
//! sent, none is changed (the transaction checks that), and its plan is restartable (`plan::restartable`). Effects before the
//! plan ran stay: metadata locks are held, the transaction has its snapshot, the statement is counted.
//!
//! A row-lock wait keeps its place in the lock queue while the statement is suspended, and its timeout counts from the
//! first wait. Completed SLEEPs keep their results (`scalar::context::Sleeps`).
//!
//! Keeps MY-8.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::rows::ReadMode;

use crate::error::{self, Result, SqlError};
use crate::instance::compiled::Compiled;
use crate::instance::handle::Wake;
use crate::session::run::More;
use crate::session::{Outcome, Session};

/// The number of suspensions for pages before the statement blocks instead. A page may be evicted before the statement
/// resumes, and a plan that reads much would restart too often.
const LEAVES_MAX: u8 = 6;

/// Suspension state of the current statement.
#[derive(Default)]
pub(super) struct Suspension {
    /// The door permits the next statement to suspend.
    pub is_allowed: bool,
    /// The plan is restartable.
    restarts: bool,
    /// Suspensions for pages that remain.
    left: u8,
    /// SLEEP may suspend the statement.
    sleeps: bool,
    away: Option<Away>,
}

/// A suspended statement.
struct Away {
    compiled: Arc<Compiled>,
    awaits: Awaits,
}

#[derive(Clone, Copy)]
enum Awaits {
    Pages,
    /// None: no deadline; KILL, disconnection or shutdown end it.
    Time(Option<Instant>),
    Row(Instant),
}

/// The latest time at which a suspended statement is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// When its pages have been read.
    Soon,
    /// After this duration at the latest. An event may wake it before; if the client is gone, the statement need not be
    /// resumed.
    Within(Duration),
}

impl Session {
    /// Permits the next statement to answer `Outcome::Suspended`.
    pub fn allow_suspension(&mut self) {
        self.suspension.is_allowed = true;
    }

    /// Registers `wake`, which is called in any thread when the suspended statement can be resumed. The caller also
    /// resumes it at the time returned.
    pub fn when_ready(&mut self, wake: Wake) -> Ready {
        let Some(awaits) = self.suspension.away.as_ref().map(|away| away.awaits) else {
            wake();
            return Ready::Soon;
        };
        let until = match awaits {
            Awaits::Pages => {
                let pages = self.host().txn.as_mut().map(|txn| txn.take_absent()).unwrap_or_default();
                self.db.engine().rows().fetch(&pages, Box::new(move || wake()));
                return Ready::Soon;
            }
            Awaits::Time(until) => {
                self.handle.show(|shown| shown.state = Some("User sleep".to_owned()));
                self.handle.suspend(wake);
                until
            }
            Awaits::Row(until) => {
                self.handle.show(|shown| shown.state = Some("Waiting for row lock".to_owned()));
                self.handle.suspend(wake.clone());
                if let Some(txn) = &self.host().txn {
                    txn.park(wake);
                }
                Some(until)
            }
        };
        let until = [until, self.ctx.deadline].into_iter().flatten().min();
        Ready::Within(until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now())))
    }

    /// Resumes the suspended statement if its wait is over; otherwise returns `Outcome::Suspended` again.
    pub fn resume(&mut self) -> Result<Outcome> {
        self.handle.resumed();
        if self.suspension.away.is_some() && !self.is_wait_over() {
            return Ok(Outcome::Suspended);
        }
        let Some(away) = self.suspension.away.take() else { return Err(error::QUERY_INTERRUPTED.bare()) };
        self.handle.show(|shown| shown.state = None);
        self.ctx.warnings.clear();
        self.host().answers_anyway = matches!(away.awaits, Awaits::Time(_));
        let outcome = self.perform(&away.compiled, &mut |_, _| Ok(None));
        self.host().answers_anyway = false;
        match outcome {
            Ok(outcome) => Ok(self.told(outcome)),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn is_wait_over(&mut self) -> bool {
        let now = Instant::now();
        let is_late = self.handle.is_interrupted() || self.ctx.deadline.is_some_and(|deadline| now >= deadline);
        let awaits = self.suspension.away.as_ref().map(|away| away.awaits);
        is_late
            || match awaits {
                None | Some(Awaits::Pages) => true,
                Some(Awaits::Time(until)) => until.is_some_and(|until| now >= until),
                Some(Awaits::Row(until)) => now >= until || self.host().txn.as_ref().is_none_or(|txn| txn.is_ready()),
            }
    }

    /// Discards the suspended statement. Returns false if there is none.
    pub(super) fn forget_suspended(&mut self) -> bool {
        let was_away = self.suspension.away.take().is_some();
        self.end_suspension();
        was_away
    }

    fn end_suspension(&mut self) {
        self.handle.resumed();
        self.ctx.sleeps.clear();
        if let Some(txn) = &mut self.host().txn {
            txn.end_suspension();
        }
    }

    /// Sets the suspension state for a statement that has its plan.
    pub(super) fn may_leave(&mut self, compiled: &Compiled) {
        let is_allowed = std::mem::take(&mut self.suspension.is_allowed);
        self.suspension.restarts = is_allowed && compiled.is_restartable;
        self.suspension.left = if self.suspension.restarts { LEAVES_MAX } else { 0 };
        self.suspension.sleeps = is_allowed && compiled.only_sleeps;
    }

    /// Runs the plan, and suspends the statement if the plan has to wait and may.
    pub(super) fn perform(&mut self, compiled: &Arc<Compiled>, more: More<'_>) -> Result<Outcome> {
        let Suspension { restarts, left, sleeps, .. } = self.suspension;
        if !restarts && !sleeps {
            return self.run_plan(compiled, more);
        }
        let reads = self.handle.counts.reads();
        let host = self.host();
        let txn = host.txn()?;
        txn.set_read_mode(if left > 0 { ReadMode::CachedOnly } else { ReadMode::MayRead });
        txn.suspend_for_rows(restarts);
        host.numbers.are_kept = restarts;
        self.ctx.sleeps.begin_run(sleeps);
        let outcome = self.run_plan(compiled, more);
        self.ctx.sleeps.suspends = false;
        if let Some(txn) = &mut self.host().txn {
            txn.set_read_mode(ReadMode::MayRead);
            txn.suspend_for_rows(false);
        }
        match outcome {
            Err(error) if is_suspended(&error) => {
                self.handle.counts.unread(reads);
                self.host().numbers.restart();
                let awaits = self.awaits();
                self.suspension.left -= u8::from(matches!(awaits, Awaits::Pages));
                self.suspension.away = Some(Away { compiled: compiled.clone(), awaits });
                Ok(Outcome::Suspended)
            }
            outcome => {
                self.end_suspension();
                outcome
            }
        }
    }

    /// Returns the wait that ended the plan.
    fn awaits(&mut self) -> Awaits {
        match (self.ctx.sleeps.until(), self.host().txn.as_ref().and_then(|txn| txn.suspended_until())) {
            (Some(until), _) => Awaits::Time(until),
            (None, Some(until)) => Awaits::Row(until),
            (None, None) => Awaits::Pages,
        }
    }
}

/// The error exists only between a plan and `perform`.
fn is_suspended(error: &SqlError) -> bool {
    error::SUSPENDED.is(error)
}
