//! The state of a running statement. It is kept in `EvalContext::host`, so that subqueries within expressions reach it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use engine::Lsn;
use engine::rows::{Isolation, SeenMaps, Strength, Transaction};
use stdx::memory;

use crate::batch::Row;
use crate::catalog::table::Table;
use crate::exec::constraint_modes::Deferring;
use crate::exec::instance::Instance;
use crate::exec::instrumentation::Measures;
use crate::exec::memory::{Held, Sum};
use crate::exec::monitor::Monitor;
use crate::exec::spill::Spill;
use crate::nodes::assignment::Assignment;
use crate::nodes::context::EvalContext;
use crate::session::advisory_held::AdvisoryHeld;

pub struct Host {
    pub instance: Arc<Instance>,
    pub monitor: Arc<dyn Monitor>,
    pub txn: Option<Transaction>,
    pub isolation: Isolation,
    /// A change is still finding its rows, so cached results of subqueries stay valid.
    pub gathers: bool,
    /// The durability LSN of values that were read outside the transaction.
    pub seen: Lsn,
    pub deadline: Option<Instant>,
    /// The statement consists of a SLEEP, which returns a result when KILL or the deadline ends it.
    pub answers_anyway: bool,
    pub foreign_key_checks: bool,
    pub deferring: Deferring,
    /// Row locks tell keys from rows: a foreign key locks its parent's key alone, and a change that keeps the unique keys of a row lets such locks pass (QU-42).
    pub locks_keys: bool,
    /// A read fails that meets a table whose rows are newer than the snapshot. Otherwise it finds none (QU-63).
    pub refuses_unseen: bool,
    /// The most rounds of a recursive common table expression.
    pub recursion_max: u64,
    /// The rules by which values of the session's statements are assigned to columns.
    pub assignment: &'static Assignment,
    /// SQL_CALC_FOUND_ROWS: the result of FOUND_ROWS().
    pub found_rows: Option<u64>,
    /// The AUTO_INCREMENT numbers of the statement.
    pub numbers: Numbers,
    /// EXPLAIN ANALYZE: figures of each node.
    pub measures: Option<Measures>,
    /// The row that has violated a constraint of its table.
    pub failing_row: Option<(Arc<Table>, Row)>,
    /// The tables that a statement of several parts writes.
    pub written: Vec<Arc<Table>>,
    /// The session's advisory locks, which its functions take and release.
    pub advisory: AdvisoryHeld,
    /// The limit of the memory of sorts, groups and joins of the statement, and its use.
    pub memory_max: usize,
    memory: Sum,
    clock: ClockChecks,
}

/// Reads the clock for every sixteenth check of a statement that checks often, and for each check of one that takes long between two.
#[derive(Debug, Default)]
struct ClockChecks {
    /// The checks until the clock is read again, and how many there are between two readings.
    left: u32,
    stride: u32,
    last: Option<Instant>,
}

impl ClockChecks {
    const STRIDE_MAX: u32 = 15;
    /// Checks that are further apart are slow.
    const APART: Duration = Duration::from_millis(1);

    fn check(&mut self, deadline: Instant) -> Result<()> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(());
        }
        let now = Instant::now();
        let is_slow = self.last.replace(now).is_none_or(|last| now - last > Self::APART);
        self.stride = if is_slow { 0 } else { (2 * self.stride + 1).min(Self::STRIDE_MAX) };
        self.left = self.stride;
        if now > deadline { Err(Fault::StatementTimeout) } else { Ok(()) }
    }
}

/// The AUTO_INCREMENT numbers that a restartable statement has taken. After a restart it receives the same ones, so the
/// table has no gap.
#[derive(Debug, Default)]
pub struct Numbers {
    pub are_kept: bool,
    taken: Vec<u64>,
    /// How many were used in this run.
    given: usize,
}

impl Numbers {
    /// Returns the next number of an earlier run.
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

    /// Restarts the statement.
    pub fn restart(&mut self) {
        self.given = 0;
    }
}

/// The fraction of the limit above which a statement spills when all statements together exceed it.
const MUCH: usize = 8;

fn statement_memory(instance: &Instance) -> usize {
    instance.spill().map_or(256 << 20, |spill| spill.memory_max)
}

impl Host {
    pub fn new(instance: Arc<Instance>, monitor: Arc<dyn Monitor>, assignment: &'static Assignment) -> Host {
        let memory_max = statement_memory(&instance);
        Host {
            advisory: AdvisoryHeld::new(instance.clone()),
            instance,
            monitor,
            txn: None,
            isolation: Isolation::RepeatableRead,
            gathers: false,
            seen: 0,
            deadline: None,
            answers_anyway: false,
            foreign_key_checks: true,
            deferring: Deferring::default(),
            locks_keys: false,
            refuses_unseen: false,
            recursion_max: 1000,
            assignment,
            found_rows: None,
            numbers: Numbers::default(),
            measures: None,
            failing_row: None,
            written: Vec::new(),
            memory_max,
            memory: Sum::default(),
            clock: ClockChecks::default(),
        }
    }

    /// Sets the memory of a statement, at most that which the server's settings give it.
    pub fn limit_memory(&mut self, bytes: usize) {
        self.memory_max = bytes.min(statement_memory(&self.instance));
    }

    /// Called by `exec::begin_statement`.
    pub(super) fn begin_statement(&mut self) {
        self.gathers = false;
        // Usually the statement before holds nothing any more, and its sum serves again.
        if !self.instance.spill().is_some_and(|spill| self.memory.is_unused_part_of(&spill.held)) {
            self.memory = self.sum();
        }
        self.measures = None;
        self.failing_row = None;
        self.numbers = Numbers::default();
        self.found_rows = None;
    }

    /// Returns the strength with which a foreign key locks a parent, or finds a child.
    pub fn key_strength(&self) -> Strength {
        if self.locks_keys { Strength::KeyShared } else { Strength::Shared }
    }

    /// Returns the strength of a lock for a change of a row that may keep its key.
    pub fn change_strength(&self) -> Strength {
        if self.locks_keys { Strength::NoKeyExclusive } else { Strength::Exclusive }
    }

    fn sum(&self) -> Sum {
        self.instance.spill().map_or_else(Sum::default, |spill| Sum::new(&spill.held))
    }

    pub fn txn(&mut self) -> Result<&mut Transaction> {
        self.txn.as_mut().ok_or_else(|| Fault::corrupt("a statement without a transaction"))
    }

    /// Fails if the statement was killed or has exceeded its time limit.
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
        match self.deadline {
            Some(deadline) => self.clock.check(deadline),
            None => Ok(()),
        }
    }

    /// Counts bytes of an operator that spills before they become too many.
    pub fn count(&mut self, own: &mut Held, bytes: usize) -> Result<()> {
        match self.instance.spill() {
            Some(_) => {
                own.add(bytes, &self.memory);
                Ok(())
            }
            None => self.hold(own, bytes),
        }
    }

    /// Returns whether memory is short and spilling the caller's `own` bytes would help.
    ///
    /// QU-15: the limit of one statement is also that of all together, enforced upon the statements that hold much.
    pub fn must_spill(&self, own: &Held, more: usize) -> bool {
        let of_statement = self.memory.bytes() + more;
        let is_short = of_statement > self.memory_max
            || (self.memory.all() + more > self.memory_max && of_statement > self.memory_max / MUCH)
            || memory::available() < more as u64;
        is_short && self.is_much(own) && self.instance.spill().is_some()
    }

    /// Returns whether the holder has enough to be asked to spill.
    fn is_much(&self, own: &Held) -> bool {
        const LEAST: usize = 256 << 10;
        own.bytes() >= LEAST.min(self.memory_max / 4)
    }

    pub fn spill(&self) -> Result<Arc<Spill>> {
        self.instance.spill().cloned().ok_or_else(|| Fault::MemoryLimit { bytes: self.memory.bytes() as u64 })
    }

    /// Counts bytes that are needed to read spilled rows, or belong to what is there already; others must spill for
    /// them.
    pub fn hold_first(&mut self, own: &mut Held, bytes: usize) -> Result<()> {
        own.add(bytes, &self.memory);
        if own.bytes() > self.memory_max / 2 {
            return Err(Fault::MemoryLimit { bytes: self.memory.bytes() as u64 });
        }
        self.claim(bytes)
    }

    /// Small amounts are not checked against the process.
    fn claim(&self, bytes: usize) -> Result<()> {
        if bytes >= CLAIMED_MIN {
            drop(memory::claim(0)?);
        }
        Ok(())
    }

    /// Counts bytes that cannot be spilled.
    pub fn hold(&mut self, own: &mut Held, bytes: usize) -> Result<()> {
        own.add(bytes, &self.memory);
        if self.memory.bytes() > self.memory_max && self.is_much(own) {
            return Err(Fault::MemoryLimit { bytes: self.memory.bytes() as u64 });
        }
        self.claim(bytes)
    }
}

const CLAIMED_MIN: usize = 16 << 10;

/// Returns what tells the maps apart that the snapshot of the session's transaction sees; `None` if it sees all, or if there is none yet.
pub fn seen_maps(ctx: &EvalContext) -> Option<SeenMaps> {
    ctx.host.as_ref()?.downcast_ref::<Host>()?.txn.as_ref()?.seen_maps()
}

/// Returns the host of the running statement.
pub fn host(ctx: &mut EvalContext) -> &mut Host {
    let host = ctx.host.as_mut().and_then(|host| host.downcast_mut::<Host>());
    host.unwrap_or_else(|| unreachable!("a session puts its host into the context once"))
}
