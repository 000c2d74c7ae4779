//! The state that expressions read and change while they are evaluated: parameters, outer rows, the clock, warnings, and how the statement is interrupted.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Instant;

use datum::temporal::{Timestamp, Zone};
use datum::{Fault, Result};

use crate::batch::Row;
use crate::value::Value;

/// The session's side of `Expr::eval`. One lives as long as its session; the caller renews what a statement changes.
pub struct EvalContext {
    /// When the statement began: what NOW() answers.
    pub now: Timestamp,
    pub zone: Zone,
    /// Errors of single rows become warnings (INSERT IGNORE and its like).
    pub ignore: bool,
    /// The statement changes rows: strict modes turn bad conversions into errors.
    pub changes_rows: bool,
    /// Rows that were found count as affected, changed or not: what CLIENT_FOUND_ROWS asks for.
    pub counts_found: bool,
    pub warnings: Warnings,
    /// Values of `Expr::Parameter`.
    pub parameters: Vec<Value>,
    /// The rows around the subquery that runs, outermost first: values of `Expr::Outer`.
    pub outer: Vec<Row>,
    /// `auto_increment_increment` and `auto_increment_offset`: the numbers that AUTO_INCREMENT takes.
    pub auto_step: (u64, u64),
    /// Asked by what takes long, which ends with error 1317 if it says so.
    pub killed: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// Asked by what waits: the wait ends if it says so.
    pub interrupted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    pub sleeps: Sleeps,
    /// SLEEP() sleeps no longer than this; and the time has come for it to wake.
    pub deadline: Option<Instant>,
    pub has_woken: bool,
    /// A strict mode of the session: bad data in a statement that changes rows is an error.
    pub strict: bool,
    /// A column that numbers its rows takes the next number for a given 0 too, as for NULL.
    pub zero_takes_number: bool,
    /// State of code whose types the context does not know: of each dialect's functions, of the executor's caches.
    slots: Vec<(TypeId, Box<dyn Any + Send>)>,
    /// The executor's state: `exec::host` alone knows its type, for the executor lies above expressions.
    pub host: Option<Box<dyn Any + Send>>,
}

/// The SLEEPs of a statement that is suspended instead of keeping a thread, and restarted when the time has passed. Evaluation is deterministic in such a
/// statement, so its nth SLEEP is the same in every run.
#[derive(Debug, Default)]
pub struct Sleeps {
    pub suspends: bool,
    /// Results of those that are over.
    over: Vec<i64>,
    /// How many were evaluated in this run.
    seen: usize,
    /// The end of the one under way; None inside: there is no end.
    until: Option<Option<Instant>>,
}

impl Sleeps {
    /// The statement is run, again perhaps.
    pub fn begin_run(&mut self, suspends: bool) {
        (self.suspends, self.seen) = (suspends, 0);
    }

    /// The statement has ended.
    pub fn clear(&mut self) {
        *self = Sleeps::default();
    }

    /// The end of the SLEEP for which the statement is suspended.
    pub fn until(&self) -> Option<Option<Instant>> {
        self.until
    }

    /// The result of the next SLEEP, if it is over.
    pub fn next_result(&mut self) -> Option<i64> {
        self.seen += 1;
        self.over.get(self.seen - 1).copied()
    }

    /// The end of the SLEEP under way, which begins now if it has not begun in an earlier run.
    pub fn end(&mut self, end: Option<Instant>) -> Option<Instant> {
        *self.until.get_or_insert(end)
    }

    /// Sets the time at which the statement is resumed, for a wait that is attempted again and again.
    pub fn resume_at(&mut self, at: Option<Instant>) {
        self.until = Some(at);
    }

    pub fn finish(&mut self, result: i64) {
        self.until = None;
        self.over.push(result);
    }
}

impl EvalContext {
    pub fn new() -> EvalContext {
        EvalContext {
            now: Timestamp::now(),
            zone: Zone::utc(),
            ignore: false,
            changes_rows: false,
            counts_found: false,
            warnings: Warnings::default(),
            parameters: Vec::new(),
            outer: Vec::new(),
            auto_step: (1, 1),
            killed: None,
            interrupted: None,
            sleeps: Sleeps::default(),
            deadline: None,
            has_woken: false,
            strict: true,
            zero_takes_number: true,
            slots: Vec::new(),
            host: None,
        }
    }

    /// Returns the state of type `T`, made by `Default` when it is first asked for: a table's expressions are bound by the dialect of its maker, so a function
    /// may run in a session of another dialect.
    pub fn slot_mut<T: Any + Default + Send>(&mut self) -> &mut T {
        let known = self.slots.iter().position(|(ty, _)| *ty == TypeId::of::<T>());
        let at = known.unwrap_or_else(|| {
            self.slots.push((TypeId::of::<T>(), Box::<T>::default()));
            self.slots.len() - 1
        });
        self.slots[at].1.downcast_mut().unwrap_or_else(|| unreachable!("the slot has the type of its box"))
    }

    /// Leaves a state of type `T` in the place of an older one.
    pub fn put_slot<T: Any + Send>(&mut self, state: T) {
        let state = (TypeId::of::<T>(), Box::new(state) as Box<dyn Any + Send>);
        match self.slots.iter_mut().find(|(ty, _)| *ty == state.0) {
            Some(known) => *known = state,
            None => self.slots.push(state),
        }
    }

    /// Returns the state of type `T`, or `None` if nobody has left or asked for one.
    pub fn slot<T: Any>(&self) -> Option<&T> {
        self.slots.iter().find(|(ty, _)| *ty == TypeId::of::<T>()).and_then(|(_, state)| state.downcast_ref())
    }

    pub fn check_killed(&self) -> Result<()> {
        if !stdx::wait::check_for_interrupts() {
            return Err(Fault::TooManyComputations);
        }
        match &self.killed {
            Some(is_killed) if is_killed() => Err(Fault::Interrupted),
            _ => Ok(()),
        }
    }

    /// The same for a wait, which ends for other reasons too.
    pub fn check_wait(&self) -> Result<()> {
        match &self.interrupted {
            Some(is_interrupted) if is_interrupted() => Err(Fault::Interrupted),
            _ => self.check_killed(),
        }
    }

    /// Bad data in a statement that changes rows under a strict mode is an error.
    pub fn is_strict(&self) -> bool {
        self.changes_rows && !self.ignore && self.strict
    }

    pub fn warn(&mut self, error: impl Into<Fault>) {
        self.warnings.push(Level::Warning, error);
    }

    /// Returns the error where the statement is strict; elsewhere it becomes a warning.
    pub fn complain<E: Into<Fault>>(&mut self, error: E) -> std::result::Result<(), E> {
        if self.is_strict() {
            return Err(error);
        }
        self.warn(error);
        Ok(())
    }
}

impl Default for EvalContext {
    fn default() -> EvalContext {
        EvalContext::new()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Note,
    Warning,
    Error,
}

/// The diagnostics of a statement. The first `max_count` are kept, all are counted.
#[derive(Debug)]
pub struct Warnings {
    kept: Vec<(Level, Fault)>,
    count: u64,
    pub max_count: usize,
    /// False drops notes, as `sql_notes` asks for.
    pub keeps_notes: bool,
}

impl Default for Warnings {
    fn default() -> Warnings {
        Warnings { kept: Vec::new(), count: 0, max_count: 1024, keeps_notes: true }
    }
}

impl Warnings {
    pub fn push(&mut self, level: Level, error: impl Into<Fault>) {
        if level == Level::Note && !self.keeps_notes {
            return;
        }
        self.count += 1;
        if self.kept.len() < self.max_count {
            self.kept.push((level, error.into()));
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Level, Fault)> {
        self.kept.iter()
    }

    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Forgets all but the first `count`.
    pub fn truncate(&mut self, count: u64) {
        self.kept.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        self.count = self.count.min(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counter(u32);

    #[test]
    fn a_dialect_finds_the_state_that_it_left() {
        let mut ctx = EvalContext::new();
        assert!(ctx.slot::<Counter>().is_none());
        ctx.slot_mut::<String>().push_str("another dialect's");
        ctx.slot_mut::<Counter>().0 += 1;
        ctx.slot_mut::<Counter>().0 += 1;
        assert_eq!(ctx.slot::<Counter>().map(|counter| counter.0), Some(2));
        assert_eq!(ctx.slot::<String>().map(String::len), Some(17));
    }
}
