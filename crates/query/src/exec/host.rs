//! The state of a running statement. It travels in `EvalContext::host`, so that subqueries within expressions reach it too.

use std::sync::Arc;
use std::time::Instant;

use datum::{Fault, Result};
use engine::Lsn;
use engine::rows::{Isolation, Transaction};
use stdx::memory;

use crate::exec::instance::Instance;
use crate::exec::instrumentation::Measures;
use crate::exec::memory::{Held, Sum};
use crate::exec::monitor::Monitor;
use crate::exec::spill::Spill;
use crate::nodes::assignment::Assignment;
use crate::nodes::context::EvalContext;

pub struct Host {
    pub instance: Arc<Instance>,
    pub monitor: Arc<dyn Monitor>,
    pub txn: Option<Transaction>,
    pub isolation: Isolation,
    /// A statement that changes rows looks for them, and changes none yet: what subqueries have answered holds for other rows too.
    pub gathers: bool,
    /// The durability LSN of values that were read outside the transaction.
    pub seen: Lsn,
    pub deadline: Option<Instant>,
    /// The SLEEP that a KILL or the deadline has ended is the whole statement, which answers all the same.
    pub answers_anyway: bool,
    pub foreign_key_checks: bool,
    /// Rounds that a recursive common table expression may take.
    pub recursion_max: u64,
    /// The rules by which values of the session's statements go into columns.
    pub assignment: &'static Assignment,
    /// SQL_CALC_FOUND_ROWS: what FOUND_ROWS() will say.
    pub found_rows: Option<u64>,
    /// Of AUTO_INCREMENT.
    pub numbers: Numbers,
    /// EXPLAIN ANALYZE: what each node does.
    pub measures: Option<Measures>,
    /// Bytes that sorts, groups and joins of a statement may hold, and do.
    pub memory_max: usize,
    memory: Sum,
    checks: u32,
}

/// Numbers that the statement has taken, as long as it may be dropped and begun anew: it gets the same again then, and none is missing in the table.
#[derive(Debug, Default)]
pub struct Numbers {
    pub are_kept: bool,
    taken: Vec<u64>,
    /// The number of those given in this run.
    given: usize,
}

impl Numbers {
    /// One that was taken in an earlier run.
    pub fn again(&mut self) -> Option<u64> {
        let number = self.taken.get(self.given).copied();
        self.given += usize::from(number.is_some());
        number
    }

    pub fn note(&mut self, number: u64) {
        if self.are_kept {
            self.taken.push(number);
            self.given = self.taken.len();
        }
    }

    /// The statement begins anew.
    pub fn begin_again(&mut self) {
        self.given = 0;
    }
}

/// Where all statements together hold too much, one makes room that holds more than such a part of what it may.
const MUCH: usize = 8;

impl Host {
    pub fn new(instance: Arc<Instance>, monitor: Arc<dyn Monitor>, assignment: &'static Assignment) -> Host {
        let memory_max = instance.spill().map_or(256 << 20, |spill| spill.memory_max);
        Host {
            instance,
            monitor,
            txn: None,
            isolation: Isolation::RepeatableRead,
            gathers: false,
            seen: 0,
            deadline: None,
            answers_anyway: false,
            foreign_key_checks: true,
            recursion_max: 1000,
            assignment,
            found_rows: None,
            numbers: Numbers::default(),
            measures: None,
            memory_max,
            memory: Sum::default(),
            checks: 0,
        }
    }

    /// Called by `exec::begin_statement`.
    pub(super) fn begin_statement(&mut self) {
        self.gathers = false;
        self.memory = self.sum();
        self.measures = None;
        self.numbers = Numbers::default();
        self.found_rows = None;
    }

    fn sum(&self) -> Sum {
        self.instance.spill().map_or_else(Sum::default, |spill| Sum::new(&spill.held))
    }

    pub fn txn(&mut self) -> Result<&mut Transaction> {
        self.txn.as_mut().ok_or_else(|| Fault::corrupt("a statement without a transaction"))
    }

    /// Ends the statement if it was killed, or has run too long.
    pub fn look_up(&mut self) -> Result<()> {
        if self.answers_anyway {
            return Ok(());
        }
        if self.monitor.is_cancelled() {
            return Err(Fault::Interrupted);
        }
        if !stdx::wait::check_for_interrupts() {
            return Err(Fault::TooManyComputations);
        }
        self.checks += 1;
        if self.checks.is_multiple_of(16) && self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Fault::StatementTimeout);
        }
        Ok(())
    }

    /// The same where more would be written to files before it is too much.
    pub fn count(&mut self, own: &mut Held, bytes: usize) -> Result<()> {
        match self.instance.spill() {
            Some(_) => {
                own.add(bytes, &self.memory);
                Ok(())
            }
            None => self.hold(own, bytes),
        }
    }

    /// Is memory short, and is it worth while to write out what `own` says that the caller holds?
    ///
    /// QU-15: what one statement may hold is what all may hold together, as far as those that hold much can make it so.
    pub fn must_spill(&self, own: &Held, more: usize) -> bool {
        let of_statement = self.memory.bytes() + more;
        let is_short = of_statement > self.memory_max
            || (self.memory.all() + more > self.memory_max && of_statement > self.memory_max / MUCH)
            || memory::available() < more as u64;
        is_short && self.is_much(own) && self.instance.spill().is_some()
    }

    /// Where memory is short, it is not for those who hold less.
    fn is_much(&self, own: &Held) -> bool {
        const LEAST: usize = 256 << 10;
        own.bytes() >= LEAST.min(self.memory_max / 4)
    }

    pub fn spill(&self) -> Result<Arc<Spill>> {
        self.instance.spill().cloned().ok_or_else(|| Fault::MemoryLimit { bytes: self.memory.bytes() as u64 })
    }

    /// So much more is held in memory of what finds the rest in files, or belongs to what is there already: others make room for it.
    pub fn hold_first(&mut self, own: &mut Held, bytes: usize) -> Result<()> {
        own.add(bytes, &self.memory);
        if own.bytes() > self.memory_max / 2 {
            return Err(Fault::MemoryLimit { bytes: self.memory.bytes() as u64 });
        }
        self.claim(bytes)
    }

    /// Of few bytes nobody asks whether they are left.
    fn claim(&self, bytes: usize) -> Result<()> {
        if bytes >= CLAIMED_MIN {
            drop(memory::claim(0)?);
        }
        Ok(())
    }

    /// So much more is held in memory, and cannot be elsewhere.
    pub fn hold(&mut self, own: &mut Held, bytes: usize) -> Result<()> {
        own.add(bytes, &self.memory);
        if self.memory.bytes() > self.memory_max && self.is_much(own) {
            return Err(Fault::MemoryLimit { bytes: self.memory.bytes() as u64 });
        }
        self.claim(bytes)
    }
}

const CLAIMED_MIN: usize = 16 << 10;

/// The host of a running statement.
pub fn host(ctx: &mut EvalContext) -> &mut Host {
    let host = ctx.host.as_mut().and_then(|host| host.downcast_mut::<Host>());
    host.unwrap_or_else(|| unreachable!("a session puts its host into the context once"))
}
