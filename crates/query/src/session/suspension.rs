//! Suspension of statements that would wait: the door's thread serves others, and resumes the statement after the wait.
//!
//! ```text
//!   run ─► suspended ─► register(wake) ─► (parked, no thread) ─► wake ─► is the wait over? ─► run again, or suspended again
//!                                           page read · sleep over · row free or timed out · lock granted · deadlock · cancel · client gone · server stops
//! ```
//! Hard part: a resumed statement restarts its plan; one that waits for the lock of a table, which comes before the plan, is restarted as a whole by its dialect. QU-33: a statement suspends only before it has had an effect: no row is sent, none is changed (the transaction checks that), and its plan is restartable
//! (`plan::restartable`) or does nothing but sleep. Effects before the plan ran stay: metadata locks are held, the transaction has its snapshot.
//!
//! A row-lock wait keeps its place in the lock queue while the statement is suspended, and its timeout counts from the first wait. Completed sleeps keep their results (`nodes::context::Sleeps`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Engine;
use engine::rows::ReadMode;

use crate::exec::host::Host;
use crate::nodes::context::EvalContext;
use crate::session::interrupts::{Interrupts, Wake};
use crate::session::metadata_locks::MetadataLocks;
use crate::session::statement::BoundStatement;

/// The number of suspensions for pages before the statement blocks instead. A page may be evicted before the statement resumes, and a plan that reads much would restart too often.
const PAGE_SUSPENSIONS_MAX: u8 = 6;

/// Longer texts are kept while their statements are suspended only if there is memory for it.
const TEXT_ANYWAY: usize = 64 << 10;
/// The memory of a text and of the syntax tree that a dialect may keep with it, per byte.
const TEXT_SHARE: usize = 64;

/// Returns whether a suspended statement may keep its text. Otherwise it waits with its thread.
pub fn may_be_kept(text: &str) -> bool {
    text.len() <= TEXT_ANYWAY || stdx::memory::claim(text.len().saturating_mul(TEXT_SHARE)).is_ok()
}

/// The suspension state of a session's current statement.
pub struct Suspension<L> {
    /// The caller permits the next statement to suspend.
    pub is_allowed: bool,
    /// The plan is restartable.
    restarts: bool,
    /// The suspensions for pages that remain.
    pages_left: u8,
    /// A sleep may suspend the statement.
    sleeps: bool,
    suspended: Option<Suspended<L>>,
    /// The statement has been suspended, so it may have a waker.
    has_suspended: bool,
}

struct Suspended<L> {
    /// `None`: it waits for the lock of a table, and has yet to take its plan.
    statement: Option<Arc<BoundStatement<L>>>,
    awaits: Awaits,
}

/// The sources of wake-ups of a suspended statement, besides time.
pub struct WakeSources<'s> {
    pub interrupts: &'s Interrupts,
    pub locks: &'s MetadataLocks,
    pub engine: &'s Engine,
}

/// The event for which a statement is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    Pages,
    /// The end of a sleep, or the next attempt to take an advisory lock. `None`: it has no end, and only an interrupt ends it.
    Time(Option<Instant>),
    /// A row lock, until its timeout.
    Row(Instant),
    /// The lock of a table, until its timeout.
    Table(Instant),
}

/// The latest time at which a suspended statement is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// When its pages have been read.
    Soon,
    /// After this duration at the latest. An event may wake it before; if the client is gone, the statement need not be resumed.
    Within(Duration),
}

impl<L> Default for Suspension<L> {
    fn default() -> Suspension<L> {
        Suspension {
            is_allowed: false,
            restarts: false,
            pages_left: 0,
            sleeps: false,
            suspended: None,
            has_suspended: false,
        }
    }
}

impl<L> Suspension<L> {
    /// Sets the state for a statement that has its plan.
    pub fn prepare(&mut self, statement: &BoundStatement<L>) {
        let is_allowed = std::mem::take(&mut self.is_allowed);
        self.restarts = is_allowed && statement.is_restartable;
        self.pages_left = if self.restarts { PAGE_SUSPENSIONS_MAX } else { 0 };
        self.sleeps = is_allowed && statement.only_sleeps;
    }

    /// Returns whether the prepared statement may suspend rather than block.
    pub fn is_possible(&self) -> bool {
        self.restarts || self.sleeps
    }

    /// Lets the plan that is about to run suspend. The transaction is open.
    pub fn begin_run(&self, ctx: &mut EvalContext) -> datum::Result<()> {
        let (restarts, sleeps) = (self.restarts, self.sleeps);
        let host = crate::exec::host::host(ctx);
        let txn = host.txn()?;
        txn.set_read_mode(if self.pages_left > 0 { ReadMode::CachedOnly } else { ReadMode::MayRead });
        txn.suspend_for_rows(restarts);
        host.numbers.are_kept = restarts;
        ctx.sleeps.begin_run(sleeps);
        Ok(())
    }

    /// Makes waits block again after the plan has run.
    pub fn end_run(&self, ctx: &mut EvalContext) {
        ctx.sleeps.suspends = false;
        if let Some(txn) = &mut crate::exec::host::host(ctx).txn {
            txn.set_read_mode(ReadMode::MayRead);
            txn.suspend_for_rows(false);
        }
    }

    /// Suspends the statement, whose plan has ended with `Fault::Suspended`.
    pub fn suspend(&mut self, statement: &Arc<BoundStatement<L>>, ctx: &mut EvalContext) {
        let until = ctx.sleeps.until();
        let host = crate::exec::host::host(ctx);
        host.numbers.restart();
        let awaits = match (until, host.txn.as_ref().and_then(|txn| txn.suspended_until())) {
            (Some(until), _) => Awaits::Time(until),
            (None, Some(until)) => Awaits::Row(until),
            (None, None) => Awaits::Pages,
        };
        self.pages_left -= u8::from(awaits == Awaits::Pages);
        self.suspended = Some(Suspended { statement: Some(statement.clone()), awaits });
        self.has_suspended = true;
    }

    /// Suspends the statement, which has ended with `Fault::Suspended` because it waits for the lock of a table.
    pub fn suspend_for_table(&mut self, until: Instant) {
        self.suspended = Some(Suspended { statement: None, awaits: Awaits::Table(until) });
        self.has_suspended = true;
    }

    /// Returns the event for which a statement is suspended; `None` if none is.
    pub fn awaits(&self) -> Option<Awaits> {
        self.suspended.as_ref().map(|suspended| suspended.awaits)
    }

    /// Registers `wake` for the suspended statement. The caller also resumes it at the time returned. Without a suspended statement `wake` is called at once.
    pub fn register(&self, wake: Wake, sources: &WakeSources<'_>, host: &mut Host, deadline: Option<Instant>) -> Ready {
        let WakeSources { interrupts, locks, engine } = sources;
        let until = match self.awaits() {
            None => {
                wake();
                return Ready::Soon;
            }
            Some(Awaits::Pages) => {
                let pages = host.txn.as_mut().map(|txn| txn.take_absent()).unwrap_or_default();
                engine.rows().fetch(&pages, Box::new(move || wake()));
                return Ready::Soon;
            }
            Some(Awaits::Time(until)) => {
                interrupts.suspend(wake.clone());
                host.advisory.wake_when_over(wake);
                until
            }
            Some(Awaits::Table(until)) => {
                interrupts.suspend(wake.clone());
                locks.park(wake);
                Some(until)
            }
            Some(Awaits::Row(until)) => {
                interrupts.suspend(wake.clone());
                if let Some(txn) = &host.txn {
                    txn.park(wake);
                }
                Some(until)
            }
        };
        let until = [until, deadline].into_iter().flatten().min();
        Ready::Within(until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now())))
    }

    /// Returns whether the suspended statement must run again: its event has come, or it was interrupted, or it is late.
    pub fn is_wait_over(&self, sources: &WakeSources<'_>, host: &Host, deadline: Option<Instant>) -> bool {
        let now = Instant::now();
        sources.interrupts.is_interrupted()
            || deadline.is_some_and(|deadline| now >= deadline)
            || match self.awaits() {
                None | Some(Awaits::Pages) => true,
                Some(Awaits::Time(until)) => until.is_some_and(|until| now >= until) || host.advisory.is_over(),
                Some(Awaits::Table(until)) => now >= until || sources.locks.is_ready(),
                Some(Awaits::Row(until)) => now >= until || host.txn.as_ref().is_none_or(|txn| txn.is_ready()),
            }
    }

    /// Takes the suspended statement out, to be run again or forgotten.
    pub fn take(&mut self) -> Option<(Option<Arc<BoundStatement<L>>>, Awaits)> {
        self.suspended.take().map(|Suspended { statement, awaits }| (statement, awaits))
    }

    /// Drops all that a statement has kept which may have been suspended: its waker, its sleeps, its places in lock queues.
    pub fn end(&mut self, interrupts: &Interrupts, locks: &MetadataLocks, ctx: &mut EvalContext) {
        if std::mem::take(&mut self.has_suspended) {
            interrupts.resumed();
        }
        locks.end_suspension();
        ctx.sleeps.clear();
        let host = crate::exec::host::host(ctx);
        host.advisory.withdraw();
        if let Some(txn) = &mut host.txn {
            txn.end_suspension();
        }
    }
}
