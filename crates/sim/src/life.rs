//! One life of a server: opened, at work, crashed; and the states that the next opening may find.
//!
//! After each key transaction the model is kept together with the durability LSN of its reply. A crash may take back the newest transactions. It must not
//! take back one whose LSN was durable, or whose value a read with a durable LSN has shown, and never half of one. So recovery must find one of the kept
//! models, not older than the last of those.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use engine::rows::{Isolation, Transaction};
use engine::{Account, Error, KeySet, Lsn};
use os::{Fault, Folder, SimClock, SimFolder};
use pager::RecoveryTarget;
use stdx::prng::Prng;

use crate::history::{Shape, Step, Victim, draw};
use crate::model::Model;
use crate::op::{Name, Op, bytes};
use crate::tables::{Ending, OPEN_TABLE, RowOp};
use crate::world::{Machine, World};

/// Steps between two full verifications.
const VERIFY_EVERY: usize = 16;

/// A violation, described in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub String);

/// Why a history does not continue with the next step.
enum Stop {
    /// The machine crashed, or the process stopped itself.
    Dead,
    Mismatch(String),
}

impl From<Mismatch> for Stop {
    fn from(mismatch: Mismatch) -> Stop {
        Stop::Mismatch(mismatch.0)
    }
}

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `f`. A panic is returned as its message and not printed.
fn catch<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_WATCHED.get() {
                LAST_PANIC.set(info.to_string().replace('\n', " "));
            } else {
                hook(info);
            }
        }));
    });
    let before = IS_WATCHED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    IS_WATCHED.set(before);
    result.map_err(|_| LAST_PANIC.take())
}

/// A crashed server, and the states that its next opening may find.
pub struct CrashedServer {
    pub folder: Arc<SimFolder>,
    pub clock: Arc<SimClock>,
    pub machine: Machine,
    pub possible: Vec<Model>,
    /// The next life begins after this many steps of undo, of a few rows each; `None`: after all of the undo and the background work.
    pub undo_steps: Option<u64>,
}

/// Rows per step of undo.
const UNDO_ROWS: usize = 3;

pub enum Opened {
    Alive(World, Model),
    /// The scheduled crash happened during the opening or its verification.
    Dead(CrashedServer),
}

impl CrashedServer {
    pub fn empty(folder: Arc<SimFolder>, clock: Arc<SimClock>, machine: Machine) -> CrashedServer {
        CrashedServer { folder, clock, machine, possible: vec![Model::default()], undo_steps: None }
    }

    /// Returns a copy, so that several futures can be tried.
    pub fn fork(&self, seed: u64) -> CrashedServer {
        let folder = self.folder.fork(seed);
        let (clock, possible) = (self.clock.clone(), self.possible.clone());
        CrashedServer { folder, clock, machine: self.machine, possible, undo_steps: self.undo_steps }
    }

    /// Opens the database and compares. With `crash_at`, the disk crashes at that I/O from now.
    pub fn open(self, crash_at: Option<u64>) -> Result<Opened, Mismatch> {
        if let Some(io) = crash_at {
            self.folder.crash_at_io(self.folder.io_count() + io);
        }
        let CrashedServer { folder, clock, machine, mut possible, undo_steps } = self;
        let result = catch(|| -> Result<(World, Model), Mismatch> {
            let stop = |what: &str, error: Error| Mismatch(format!("{what}: {error}"));
            let world = World::open(folder.clone(), clock.clone(), machine, RecoveryTarget::default())
                .map_err(|error| stop("opening fails", error))?;
            let opened = world.engine.opened();
            if !opened.pager.damaged.is_empty() {
                return Err(Mismatch(format!("SI-3: pages were lost: {:?}", opened.pager.damaged)));
            }
            let found = world.read().map_err(|error| stop("reading after recovery", error))?;
            // SI-1, SI-2: everything acknowledged is there, and nothing by half.
            if !possible.contains(&found) {
                return Err(Mismatch(differs(&found, &possible)));
            }
            possible = vec![found.clone()];
            let sound = |when: &str| {
                let problems = world.problems().map_err(|error| stop("checking after recovery", error))?;
                no_problems(problems).map_err(|what| Mismatch(format!("{when}: {what}")))
            };
            sound("after recovery")?;
            for _ in 0..undo_steps.unwrap_or(0) {
                world.engine.undo_once(UNDO_ROWS).map_err(|error| stop("undo after recovery", error))?;
                let seen = world.read().map_err(|error| stop("reading during the undo", error))?;
                if seen != found {
                    return Err(Mismatch(format!("SI-5: undo changed the visible state: {}", seen.difference(&found))));
                }
                sound("during the undo")?;
            }
            if undo_steps.is_some() {
                return Ok((world, found));
            }
            world.settle().map_err(|error| stop("background after recovery", error))?;
            sound("after recovery and background")?;
            let settled = world.read().map_err(|error| stop("reading after the background", error))?;
            if settled != found {
                return Err(Mismatch(format!(
                    "SI-3: the background work changed the visible state: {}",
                    settled.difference(&found)
                )));
            }
            Ok((world, found))
        });
        match result {
            // Results obtained after the crash are meaningless.
            _ if folder.has_crashed() => {
                Ok(Opened::Dead(CrashedServer { folder: folder.crash(), clock, machine, possible, undo_steps }))
            }
            Ok(Ok((world, model))) => Ok(Opened::Alive(world, model)),
            Ok(Err(mismatch)) => Err(mismatch),
            Err(panic) => Err(Mismatch(format!("opening: {panic}"))),
        }
    }
}

/// Returns an error with the first of the checker's problems, if there are any.
fn no_problems(problems: Vec<String>) -> Result<(), String> {
    let first: Vec<&str> = problems.iter().take(4).map(String::as_str).collect();
    if problems.is_empty() { Ok(()) } else { Err(format!("{} problems: {}", problems.len(), first.join("; "))) }
}

fn differs(found: &Model, possible: &[Model]) -> String {
    let newest = possible.last().expect("never empty").difference(found);
    let oldest = possible.first().expect("never empty").difference(found);
    let count = possible.len();
    format!(
        "the state found is none of {count} possible ones. Newest possible / found: {newest}. Oldest possible / found: {oldest}"
    )
}

/// A backup of the running server.
struct TakenBackup {
    folder: Arc<SimFolder>,
    /// It can be opened at this position or later.
    to: Lsn,
}

/// A life in progress.
pub struct Life<'p> {
    world: World,
    shape: Shape,
    prng: &'p mut Prng,
    now: u64,
    /// The model after each key transaction, and the durability LSN of its reply.
    models: Vec<(Model, Lsn)>,
    /// The model after the transaction in progress: after a crash it may be there or not, as a whole.
    in_progress: Option<Model>,
    /// Durability LSNs of read replies, and the first model that shows the value read.
    reads: Vec<(Lsn, usize)>,
    is_full: bool,
    is_faulty: bool,
    backup_taken: Option<TakenBackup>,
    /// A transaction that stays open over several steps, and its statements.
    open_transaction: Option<(Transaction, Vec<RowOp>)>,
    /// The steps so far, for the report.
    pub trace: Vec<String>,
}

impl<'p> Life<'p> {
    pub fn new(world: World, model: Model, shape: Shape, prng: &'p mut Prng) -> Life<'p> {
        let now = os::Clock::wall_ms(world.clock.as_ref());
        let (models, trace) = (vec![(model, 0)], Vec::new());
        let (in_progress, reads, backup_taken, open_transaction) = (None, Vec::new(), None, None);
        let (is_full, is_faulty) = (false, false);
        Life {
            world,
            shape,
            prng,
            now,
            models,
            in_progress,
            reads,
            is_full,
            is_faulty,
            backup_taken,
            open_transaction,
            trace,
        }
    }

    /// Plays up to `steps` steps. The life ends with a power cut after them, or earlier.
    pub fn run(&mut self, steps: usize) -> Result<(), Mismatch> {
        for at in 0..steps {
            let step = draw(self.prng, self.now, &self.shape);
            self.trace.push(step.brief());
            let verifies = at % VERIFY_EVERY == VERIFY_EVERY - 1;
            match self.step(&step).and_then(|()| if verifies { self.guarded(Life::verify) } else { Ok(()) }) {
                Ok(()) => {}
                Err(Stop::Dead) => return Ok(()),
                Err(Stop::Mismatch(what)) => return Err(Mismatch(format!("{}: {what}", step.brief()))),
            }
        }
        Ok(())
    }

    /// Cuts the power. Durable changes must survive, others may.
    pub fn end(mut self) -> CrashedServer {
        if let Some(after) = self.in_progress.take() {
            self.models.push((after, Lsn::MAX));
        }
        let durable = self.world.engine.durable().get();
        let written = self.models.iter().rposition(|(_, lsn)| *lsn <= durable).expect("the first one");
        let shown = self.reads.iter().filter(|(lsn, _)| *lsn <= durable).map(|(_, at)| *at).max().unwrap_or(0);
        let possible = self.models[written.max(shown)..].iter().map(|(model, _)| model.at(self.now)).collect();
        let folder = self.world.folder.crash();
        folder.set_capacity(None);
        // The process is dead: its further actions do not count.
        let open_transaction = self.open_transaction.take();
        self.world.folder.crash_at_io(1);
        let _ = catch(|| drop(open_transaction));
        let undo_steps = self.undo_steps();
        CrashedServer { folder, clock: self.world.clock.clone(), machine: self.world.machine, possible, undo_steps }
    }

    /// Draws how the next life begins.
    fn undo_steps(&mut self) -> Option<u64> {
        self.shape.undo.then(|| self.prng.below(6))
    }

    pub fn ios(&self) -> u64 {
        self.world.folder.io_count()
    }

    fn last(&self) -> &Model {
        &self.models.last().expect("never empty").0
    }

    /// Runs `f` and interleaver a panic into the end of this life, into a violation, or into nothing if it was to be expected.
    fn guarded(&mut self, f: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        match catch(|| f(self)) {
            _ if self.world.is_dead() => Err(Stop::Dead),
            Ok(result) => result,
            Err(panic) if panic.contains("the simulated process") && (self.is_full || self.is_faulty) => {
                Err(Stop::Dead)
            }
            Err(panic) => Err(Stop::Mismatch(panic)),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        self.guarded(|life| match life.perform(step) {
            Ok(()) => {
                life.in_progress = None;
                Ok(())
            }
            Err(Outcome::Mismatch(what)) => Err(Stop::Mismatch(what)),
            Err(Outcome::Died) => Err(Stop::Dead),
            Err(Outcome::Refused(error)) => {
                let expected = match error {
                    Error::DiskFull => life.is_full,
                    Error::Io(_) => life.is_faulty,
                    // There is no other session: a loser has locked the row, or needs the table.
                    Error::LockTimeout => !life.world.engine.rows().rolling_back().is_empty(),
                    _ => false,
                };
                if life.world.is_dead() {
                    return Err(Stop::Dead);
                }
                if !expected {
                    return Err(Stop::Mismatch(error.to_string()));
                }
                // SI-7: a transaction that failed has changed nothing.
                life.in_progress = None;
                life.world.folder.clear_faults();
                life.is_faulty = false;
                life.verify()
            }
        })
    }

    /// Verifies that everything is as the model says and that the checker finds nothing.
    fn verify(&mut self) -> Result<(), Stop> {
        self.world.folder.clear_faults();
        self.is_faulty = false;
        let failed = |error: Error| Stop::Mismatch(format!("verification: {error}"));
        let (seen, expected) = (self.world.read().map_err(failed)?, self.last().at(self.now));
        if seen != expected {
            return Err(Stop::Mismatch(format!("expected / seen: {}", expected.difference(&seen))));
        }
        let problems = self.world.problems().map_err(failed)?;
        no_problems(problems).map_err(Stop::Mismatch)
    }

    fn perform(&mut self, step: &Step) -> Result<(), Outcome> {
        let engine = self.world.engine.clone();
        let pager = engine.pager();
        match step {
            Step::Set(name, value, expire) => {
                let after = self.after(&[Op::Put(name.clone(), value.clone(), *expire)]);
                self.in_progress = Some(after.clone());
                let lsn = engine.keyspace().set(name.0, &name.1, value, *expire)?;
                self.commit_model(after, lsn);
            }
            Step::Get(name) => self.get(name)?,
            Step::One(op) => self.key_transaction(std::slice::from_ref(op), matches!(op, Op::Rename(..)), false)?,
            Step::Several(ops) => self.key_transaction(ops, true, false)?,
            Step::RolledBack(ops) => self.key_transaction(ops, true, true)?,
            Step::Account(name, len) => {
                let mut account = Account::new(name);
                account.rules = bytes(*len, self.now).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
                let mut after = self.last().clone();
                after.accounts.insert(name.clone(), account.rules.clone());
                self.in_progress = Some(after.clone());
                let lsn = engine.accounts().put(account)?;
                self.commit_model(after, lsn);
            }
            Step::Forget(name) => {
                let mut after = self.last().clone();
                after.accounts.remove(name);
                self.in_progress = Some(after.clone());
                let (_, lsn) = engine.accounts().remove(&[name])?;
                self.commit_model(after, lsn);
            }
            Step::Tick(ms) => {
                self.now += ms;
                self.world.clock.set_ms(self.now);
            }
            Step::EngineBackground => drop(engine.background_once(8)?),
            Step::FlushLog => while pager.flush_once().map_err(Error::from)? {},
            Step::Clean => drop(self.world.undisturbed(|| pager.clean_ahead()).map_err(Error::from)?),
            Step::Checkpoint => drop(self.world.undisturbed(|| pager.checkpoint()).map_err(Error::from)?),
            Step::PagerBackground => self.world.undisturbed(|| pager.background_step()).map_err(Error::from)?,
            Step::Reopen => self.reopen()?,
            Step::Full(left) => {
                self.is_full = true;
                self.world.folder.set_capacity(Some(self.world.folder.used_bytes() + left));
            }
            Step::Room => {
                self.world.folder.set_capacity(None);
                self.world.undisturbed(|| pager.background_step()).map_err(Error::from)?;
                self.is_full = false;
            }
            Step::Read(victim, n) => self.fail(*victim, Fault::Read(*n)),
            Step::Write(victim, n) => self.fail(*victim, Fault::Write(*n)),
            Step::Sync(victim, n) => self.fail(*victim, Fault::Sync(*n)),
            Step::Backup => self.backup()?,
            Step::BackupLog => self.backup_log()?,
            Step::Rows(ops, _) if self.open_transaction.is_some() && ops.iter().any(|op| op.is_of(OPEN_TABLE)) => {}
            Step::Rows(ops, ending) => {
                let mut txn = self.begin();
                ops.iter().try_for_each(|op| op.run(&mut txn))?;
                self.end_rows(txn, ops, *ending)?;
            }
            Step::OpenTransaction(ops) => {
                let (mut txn, mut done) = self.open_transaction.take().unwrap_or_else(|| (self.begin(), Vec::new()));
                // After an error the transaction is rolled back as a whole.
                ops.iter().try_for_each(|op| op.run(&mut txn))?;
                done.extend_from_slice(ops);
                self.open_transaction = Some((txn, done));
            }
            Step::Undo(rows) => drop(engine.undo_once(*rows)?),
            Step::EndOpenTransaction(ending) => {
                if let Some((txn, ops)) = self.open_transaction.take() {
                    self.end_rows(txn, &ops, *ending)?;
                }
            }
        }
        Ok(())
    }

    fn after(&self, ops: &[Op]) -> Model {
        let mut after = self.last().clone();
        ops.iter().for_each(|op| after.apply(op, self.now));
        after
    }

    /// Keeps the model. A transaction that changed nothing may have an older LSN; the model before it still has to be waited for.
    fn commit_model(&mut self, after: Model, lsn: Lsn) {
        let before = self.models.last().expect("never empty").1;
        self.models.push((after, lsn.max(before)));
        self.in_progress = None;
    }

    fn key_transaction(&mut self, ops: &[Op], several: bool, roll_back: bool) -> Result<(), Outcome> {
        let names: Vec<Name> = ops.iter().flat_map(Op::names).collect();
        let keys: Vec<(u8, &[u8])> = names.iter().map(|(db, key)| (*db, key.as_slice())).collect();
        let locks = if ops.iter().any(Op::needs_all) { KeySet::All } else { KeySet::Keys(&keys) };
        let after = if roll_back { self.last().clone() } else { self.after(ops) };
        self.in_progress = Some(after.clone());
        let result = self.world.engine.keyspace().write::<(), Error>(locks, several, |txn| {
            ops.iter().try_for_each(|op| op.run(txn))?;
            if roll_back { Err(Error::Invalid("rolled back".into())) } else { Ok(()) }
        });
        match result {
            Ok(((), lsn)) => self.commit_model(after, lsn),
            Err(Error::Invalid(_)) if roll_back => self.in_progress = None,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn begin(&self) -> Transaction {
        let mut txn = self.world.engine.rows().begin(Isolation::RepeatableRead);
        txn.set_lock_wait(std::time::Duration::ZERO);
        txn
    }

    fn end_rows(&mut self, txn: Transaction, ops: &[RowOp], ending: Ending) -> Result<(), Outcome> {
        match ending {
            Ending::Commit => {
                let mut after = self.last().clone();
                ops.iter().for_each(|op| op.apply(&mut after.tables));
                self.in_progress = Some(after.clone());
                let lsn = txn.commit()?;
                self.commit_model(after, lsn);
            }
            Ending::Rollback => txn.rollback(),
            Ending::Forgotten => drop(txn),
        }
        Ok(())
    }

    fn get(&mut self, name: &Name) -> Result<(), Outcome> {
        let (found, lsn) = self.world.get(name)?;
        let shows = |model: &Model| model.live(name, self.now).map(|(value, _)| value.as_slice()) == found.as_deref();
        if !shows(self.last()) {
            let len = found.map(|value| value.len());
            return Err(Outcome::Mismatch(format!("a read shows {len:?} bytes that are not the last ones written")));
        }
        let others = self.models.iter().rposition(|(model, _)| !shows(model));
        self.reads.push((lsn, others.map_or(0, |at| at + 1)));
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), Outcome> {
        self.world.folder.clear_faults();
        self.world.folder.set_capacity(None);
        self.is_full = false;
        self.is_faulty = false;
        // A client that closes has ended its transactions.
        drop(self.open_transaction.take());
        self.world.undisturbed(|| self.world.engine.close())?;
        let (folder, clock, machine) = (self.world.folder.clone(), self.world.clock.clone(), self.world.machine);
        let possible = vec![self.last().at(self.now)];
        let undo_steps = self.undo_steps();
        match (CrashedServer { folder, clock, machine, possible, undo_steps }.open(None)) {
            Ok(Opened::Alive(world, _)) => {
                self.world = world;
                Ok(())
            }
            Ok(Opened::Dead(_)) => Err(Outcome::Died),
            Err(mismatch) => Err(Outcome::Mismatch(mismatch.0)),
        }
    }

    fn fail(&mut self, victim: Victim, fault: Fault) {
        let folder = &self.world.folder;
        let name = match victim {
            Victim::Data => Some(pager::DATA_FILE.to_owned()),
            Victim::DoubleWrite => Some(pager::DOUBLE_WRITE_FILE.to_owned()),
            Victim::Log => {
                let names = folder.list().unwrap_or_default();
                names.into_iter().filter(|name| name.starts_with("log-")).max()
            }
        };
        if let Some(name) = name {
            self.is_faulty = true;
            folder.fail(&name, fault);
        }
    }

    fn backup(&mut self) -> Result<(), Outcome> {
        let folder = SimFolder::new(self.prng.next_u64());
        let pager = self.world.engine.pager().clone();
        let backup = self.world.undisturbed(|| pager.backup(folder.as_ref(), &|_, _| {})).map_err(Error::from)?;
        let expected = self.last().at(self.now);
        self.verify_backup(&folder, RecoveryTarget::default(), &expected)?;
        self.backup_taken = Some(TakenBackup { folder, to: backup.to });
        Ok(())
    }

    /// Renews the backup's WAL, and opens the backup at some moment in between.
    fn backup_log(&mut self) -> Result<(), Outcome> {
        let Some(TakenBackup { folder, to }) = self.backup_taken.take() else { return Ok(()) };
        let pager = self.world.engine.pager().clone();
        let renewed = match self.world.undisturbed(|| pager.backup_log(folder.as_ref())) {
            Ok(renewed) => renewed,
            // The segment that this backup needs has been recycled.
            Err(pager::Error::Format(_)) => return Ok(()),
            Err(error) => return Err(Error::from(error).into()),
        };
        let lsns: Vec<Lsn> =
            self.models.iter().map(|(_, lsn)| *lsn).filter(|lsn| (to..=renewed.to).contains(lsn)).collect();
        if !lsns.is_empty() {
            let lsn = lsns[self.prng.below(lsns.len() as u64) as usize];
            // At a transaction's end, or just before it: then all of it is missing.
            let lsn = (lsn - 8 * self.prng.below(2)).max(to);
            let at = self.models.iter().rposition(|(_, kept)| *kept <= lsn).expect("the backup contains one");
            let expected = self.models[at].0.at(self.now);
            self.verify_backup(&folder, RecoveryTarget { lsn: Some(lsn), wall_ms: None }, &expected)?;
        }
        self.backup_taken = Some(TakenBackup { folder, to });
        Ok(())
    }

    /// SI-8: opens a backup after a power cut and compares it with the expected model.
    fn verify_backup(&mut self, backup: &SimFolder, until: RecoveryTarget, expected: &Model) -> Result<(), Outcome> {
        let machine = Machine { interleave_one_in: 0, ..self.world.machine };
        let failed = |error: Error| Outcome::Mismatch(format!("the backup, opened at {:?}: {error}", until.lsn));
        let world = World::open(backup.crash(), self.world.clock.clone(), machine, until).map_err(failed)?;
        let found = world.read().map_err(failed)?;
        if found != *expected {
            let what =
                format!("the backup, opened at {:?}: expected / found: {}", until.lsn, expected.difference(&found));
            return Err(Outcome::Mismatch(what));
        }
        let problems = world.problems().map_err(failed)?;
        no_problems(problems).map_err(|what| Outcome::Mismatch(format!("the backup: {what}")))
    }
}

/// How a step ends that is not done.
enum Outcome {
    Refused(Error),
    Died,
    Mismatch(String),
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        Outcome::Refused(error)
    }
}
