//! One life of a server: opened, at work, dead; and what the next one must find.
//!
//! After each unit the model is remembered together with the unit's gate. A crash may take back the newest units, but never one whose gate was durable or
//! whose value was shown behind a durable gate, and never half of one: what recovery finds is one of the remembered models, at or behind the last of those.

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
use crate::tables::{BYSTANDER, Ending, RowOp};
use crate::world::{Machine, World};

/// Steps between two looks at everything.
const LOOK_EVERY: usize = 16;

/// What must never happen, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

/// Why a step is not followed by the next.
enum Stop {
    /// The crash, or the process stopped itself.
    Dead,
    Wrong(String),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Stop {
        Stop::Wrong(wrong.0)
    }
}

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `f`; a panic becomes its message and is not printed.
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

/// A server that is dead, and what may be found when it is opened again.
pub struct Left {
    pub folder: Arc<SimFolder>,
    pub clock: Arc<SimClock>,
    pub machine: Machine,
    pub possible: Vec<Model>,
    /// After so many steps of undo, of a few rows each, life begins amid it; None: when all of it and the background are over.
    pub lingers: Option<u64>,
}

/// Rows of such a step.
const FEW: usize = 3;

pub enum Opened {
    Alive(World, Model),
    /// The crash that was ordered came while opening, or while what was found was looked at.
    Dead(Left),
}

impl Left {
    pub fn empty(folder: Arc<SimFolder>, clock: Arc<SimClock>, machine: Machine) -> Left {
        Left { folder, clock, machine, possible: vec![Model::default()], lingers: None }
    }

    /// The same again, so that several futures can be tried.
    pub fn fork(&self, seed: u64) -> Left {
        let folder = self.folder.fork(seed);
        let (clock, possible) = (self.clock.clone(), self.possible.clone());
        Left { folder, clock, machine: self.machine, possible, lingers: self.lingers }
    }

    /// Opens and compares. `crash_at`: the disk dies at that operation from now.
    pub fn open(self, crash_at: Option<u64>) -> Result<Opened, Wrong> {
        if let Some(io) = crash_at {
            self.folder.crash_at_io(self.folder.io_count() + io);
        }
        let Left { folder, clock, machine, mut possible, lingers } = self;
        let result = catch(|| -> Result<(World, Model), Wrong> {
            let stop = |what: &str, error: Error| Wrong(format!("{what}: {error}"));
            let world = World::open(folder.clone(), clock.clone(), machine, RecoveryTarget::default())
                .map_err(|error| stop("it does not open", error))?;
            let opened = world.engine.opened();
            if !opened.pager.damaged.is_empty() {
                return Err(Wrong(format!("pages were lost: {:?}", opened.pager.damaged)));
            }
            let found = world.read().map_err(|error| stop("reading after recovery", error))?;
            if !possible.contains(&found) {
                return Err(Wrong(differs(&found, &possible)));
            }
            possible = vec![found.clone()];
            let sound = |when: &str| {
                let problems = world.problems().map_err(|error| stop("checking after recovery", error))?;
                few(problems).map_err(|what| Wrong(format!("{when}: {what}")))
            };
            sound("after recovery")?;
            for _ in 0..lingers.unwrap_or(0) {
                world.engine.undo_once(FEW).map_err(|error| stop("undo after recovery", error))?;
                let seen = world.read().map_err(|error| stop("reading amid the undo", error))?;
                if seen != found {
                    return Err(Wrong(format!("undo changed what is seen: {}", seen.difference(&found))));
                }
                sound("amid the undo")?;
            }
            if lingers.is_some() {
                return Ok((world, found));
            }
            world.settle().map_err(|error| stop("background after recovery", error))?;
            sound("after recovery and background")?;
            let settled = world.read().map_err(|error| stop("reading after the background", error))?;
            if settled != found {
                return Err(Wrong(format!("the background changed what is seen: {}", settled.difference(&found))));
            }
            Ok((world, found))
        });
        match result {
            // Whatever was said behind the crash says nothing.
            _ if folder.has_crashed() => {
                Ok(Opened::Dead(Left { folder: folder.crash(), clock, machine, possible, lingers }))
            }
            Ok(Ok((world, model))) => Ok(Opened::Alive(world, model)),
            Ok(Err(wrong)) => Err(wrong),
            Err(panic) => Err(Wrong(format!("opening: {panic}"))),
        }
    }
}

/// The first of the checker's complaints, if there are any.
fn few(problems: Vec<String>) -> Result<(), String> {
    let told: Vec<&str> = problems.iter().take(4).map(String::as_str).collect();
    if problems.is_empty() { Ok(()) } else { Err(format!("{} problems: {}", problems.len(), told.join("; "))) }
}

fn differs(found: &Model, possible: &[Model]) -> String {
    let newest = possible.last().expect("never empty").difference(found);
    let oldest = possible.first().expect("never empty").difference(found);
    let count = possible.len();
    format!(
        "none of {count} possible states was found. Newest possible / found: {newest}. Oldest possible / found: {oldest}"
    )
}

/// A copy of the running server.
struct Copied {
    folder: Arc<SimFolder>,
    /// It can be opened from here on.
    to: Lsn,
}

/// A life under way.
pub struct Life<'p> {
    world: World,
    shape: Shape,
    prng: &'p mut Prng,
    now: u64,
    /// The model after each unit, and the gate of its answer.
    models: Vec<(Model, Lsn)>,
    /// The unit under way: if the crash cuts it off, it may be there or not, whole.
    doubt: Option<Model>,
    /// Gates of answers to reads, and the first model that shows what was read.
    reads: Vec<(Lsn, usize)>,
    is_full: bool,
    is_faulty: bool,
    copied: Option<Copied>,
    /// A transaction that stays open over steps, and what it has done.
    bystander: Option<(Transaction, Vec<RowOp>)>,
    /// What happened, for the report.
    pub trace: Vec<String>,
}

impl<'p> Life<'p> {
    pub fn new(world: World, model: Model, shape: Shape, prng: &'p mut Prng) -> Life<'p> {
        let now = os::Clock::wall_ms(world.clock.as_ref());
        let (models, trace) = (vec![(model, 0)], Vec::new());
        let (doubt, reads, copied, bystander) = (None, Vec::new(), None, None);
        let (is_full, is_faulty) = (false, false);
        Life { world, shape, prng, now, models, doubt, reads, is_full, is_faulty, copied, bystander, trace }
    }

    /// Plays so many steps; the life ends after them by a power cut, or before.
    pub fn run(&mut self, steps: usize) -> Result<(), Wrong> {
        for at in 0..steps {
            let step = draw(self.prng, self.now, &self.shape);
            self.trace.push(step.brief());
            let looks = at % LOOK_EVERY == LOOK_EVERY - 1;
            match self.step(&step).and_then(|()| if looks { self.guarded(Life::look) } else { Ok(()) }) {
                Ok(()) => {}
                Err(Stop::Dead) => return Ok(()),
                Err(Stop::Wrong(what)) => return Err(Wrong(format!("{}: {what}", step.brief()))),
            }
        }
        Ok(())
    }

    /// The power cut. What is durable must stay, the rest may.
    pub fn end(mut self) -> Left {
        if let Some(after) = self.doubt.take() {
            self.models.push((after, Lsn::MAX));
        }
        let durable = self.world.engine.durable().get();
        let written = self.models.iter().rposition(|(_, gate)| *gate <= durable).expect("the first one");
        let shown = self.reads.iter().filter(|(gate, _)| *gate <= durable).map(|(_, at)| *at).max().unwrap_or(0);
        let possible = self.models[written.max(shown)..].iter().map(|(model, _)| model.at(self.now)).collect();
        let folder = self.world.folder.crash();
        folder.set_capacity(None);
        // The process is dead: what it would still do counts no more.
        let bystander = self.bystander.take();
        self.world.folder.crash_at_io(1);
        let _ = catch(|| drop(bystander));
        let lingers = self.lingers();
        Left { folder, clock: self.world.clock.clone(), machine: self.world.machine, possible, lingers }
    }

    /// How the next life begins.
    fn lingers(&mut self) -> Option<u64> {
        self.shape.undo.then(|| self.prng.below(6))
    }

    pub fn ios(&self) -> u64 {
        self.world.folder.io_count()
    }

    fn last(&self) -> &Model {
        &self.models.last().expect("never empty").0
    }

    /// Turns what went wrong into the end of this life, into a violation, or into nothing if it was to be expected.
    fn guarded(&mut self, f: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        match catch(|| f(self)) {
            _ if self.world.is_dead() => Err(Stop::Dead),
            Ok(result) => result,
            Err(panic) if panic.contains("the simulated process") && (self.is_full || self.is_faulty) => {
                Err(Stop::Dead)
            }
            Err(panic) => Err(Stop::Wrong(panic)),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        self.guarded(|life| match life.perform(step) {
            Ok(()) => {
                life.doubt = None;
                Ok(())
            }
            Err(Outcome::Wrong(what)) => Err(Stop::Wrong(what)),
            Err(Outcome::Died) => Err(Stop::Dead),
            Err(Outcome::Refused(error)) => {
                let expected = match error {
                    Error::DiskFull => life.is_full,
                    Error::Io(_) => life.is_faulty,
                    // Nobody else is at work: a loser has the row, or needs the table.
                    Error::LockTimeout => !life.world.engine.rows().rolling_back().is_empty(),
                    _ => false,
                };
                if life.world.is_dead() {
                    return Err(Stop::Dead);
                }
                if !expected {
                    return Err(Stop::Wrong(error.to_string()));
                }
                // A unit that failed has changed nothing.
                life.doubt = None;
                life.world.folder.clear_faults();
                life.is_faulty = false;
                life.look()
            }
        })
    }

    /// Everything is as the model says, and sound.
    fn look(&mut self) -> Result<(), Stop> {
        self.world.folder.clear_faults();
        self.is_faulty = false;
        let failed = |error: Error| Stop::Wrong(format!("a look at everything: {error}"));
        let (seen, expected) = (self.world.read().map_err(failed)?, self.last().at(self.now));
        if seen != expected {
            return Err(Stop::Wrong(format!("expected / seen: {}", expected.difference(&seen))));
        }
        let problems = self.world.problems().map_err(failed)?;
        few(problems).map_err(Stop::Wrong)
    }

    fn perform(&mut self, step: &Step) -> Result<(), Outcome> {
        let engine = self.world.engine.clone();
        let pager = engine.pager();
        match step {
            Step::Set(name, value, expire) => {
                let after = self.after(&[Op::Put(name.clone(), value.clone(), *expire)]);
                self.doubt = Some(after.clone());
                let gate = engine.keyspace().set(name.0, &name.1, value, *expire)?;
                self.done(after, gate);
            }
            Step::Get(name) => self.get(name)?,
            Step::One(op) => self.unit(std::slice::from_ref(op), matches!(op, Op::Rename(..)), false)?,
            Step::Several(ops) => self.unit(ops, true, false)?,
            Step::RolledBack(ops) => self.unit(ops, true, true)?,
            Step::Account(name, len) => {
                let mut account = Account::new(name);
                account.rules = bytes(*len, self.now).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
                let mut after = self.last().clone();
                after.accounts.insert(name.clone(), account.rules.clone());
                self.doubt = Some(after.clone());
                let gate = engine.accounts().put(account)?;
                self.done(after, gate);
            }
            Step::Forget(name) => {
                let mut after = self.last().clone();
                after.accounts.remove(name);
                self.doubt = Some(after.clone());
                let (_, gate) = engine.accounts().remove(&[name])?;
                self.done(after, gate);
            }
            Step::Tick(ms) => {
                self.now += ms;
                self.world.clock.set_ms(self.now);
            }
            Step::Background => drop(engine.background_once(8)?),
            Step::FlushLog => while pager.flush_once().map_err(Error::from)? {},
            Step::Clean => drop(self.world.undisturbed(|| pager.clean_ahead()).map_err(Error::from)?),
            Step::Checkpoint => drop(self.world.undisturbed(|| pager.checkpoint()).map_err(Error::from)?),
            Step::Tend => self.world.undisturbed(|| pager.background_step()).map_err(Error::from)?,
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
            Step::Rows(ops, _) if self.bystander.is_some() && ops.iter().any(|op| op.is_of(BYSTANDER)) => {}
            Step::Rows(ops, ending) => {
                let mut txn = self.begin();
                ops.iter().try_for_each(|op| op.run(&mut txn))?;
                self.end_rows(txn, ops, *ending)?;
            }
            Step::Bystander(ops) => {
                let (mut txn, mut done) = self.bystander.take().unwrap_or_else(|| (self.begin(), Vec::new()));
                // After an error it is gone with all that it has done.
                ops.iter().try_for_each(|op| op.run(&mut txn))?;
                done.extend_from_slice(ops);
                self.bystander = Some((txn, done));
            }
            Step::Undo(rows) => drop(engine.undo_once(*rows)?),
            Step::BystanderEnds(ending) => {
                if let Some((txn, ops)) = self.bystander.take() {
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

    /// A unit that changed nothing may have nothing to wait for; the model before it still has.
    fn done(&mut self, after: Model, gate: Lsn) {
        let before = self.models.last().expect("never empty").1;
        self.models.push((after, gate.max(before)));
        self.doubt = None;
    }

    fn unit(&mut self, ops: &[Op], several: bool, roll_back: bool) -> Result<(), Outcome> {
        let names: Vec<Name> = ops.iter().flat_map(Op::names).collect();
        let keys: Vec<(u8, &[u8])> = names.iter().map(|(db, key)| (*db, key.as_slice())).collect();
        let locks = if ops.iter().any(Op::needs_all) { KeySet::All } else { KeySet::Keys(&keys) };
        let after = if roll_back { self.last().clone() } else { self.after(ops) };
        self.doubt = Some(after.clone());
        let result = self.world.engine.keyspace().write::<(), Error>(locks, several, |unit| {
            ops.iter().try_for_each(|op| op.run(unit))?;
            if roll_back { Err(Error::Invalid("rolled back".into())) } else { Ok(()) }
        });
        match result {
            Ok(((), gate)) => self.done(after, gate),
            Err(Error::Invalid(_)) if roll_back => self.doubt = None,
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
                self.doubt = Some(after.clone());
                let gate = txn.commit()?;
                self.done(after, gate);
            }
            Ending::Rollback => txn.rollback(),
            Ending::Forgotten => drop(txn),
        }
        Ok(())
    }

    fn get(&mut self, name: &Name) -> Result<(), Outcome> {
        let (found, gate) = self.world.get(name)?;
        let shows = |model: &Model| model.live(name, self.now).map(|(value, _)| value.as_slice()) == found.as_deref();
        if !shows(self.last()) {
            let len = found.map(|value| value.len());
            return Err(Outcome::Wrong(format!("a read shows {len:?} bytes that nobody wrote last")));
        }
        let others = self.models.iter().rposition(|(model, _)| !shows(model));
        self.reads.push((gate, others.map_or(0, |at| at + 1)));
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), Outcome> {
        self.world.folder.clear_faults();
        self.world.folder.set_capacity(None);
        self.is_full = false;
        self.is_faulty = false;
        // Who closes has ended his transactions.
        drop(self.bystander.take());
        self.world.undisturbed(|| self.world.engine.close())?;
        let (folder, clock, machine) = (self.world.folder.clone(), self.world.clock.clone(), self.world.machine);
        let possible = vec![self.last().at(self.now)];
        let lingers = self.lingers();
        match (Left { folder, clock, machine, possible, lingers }.open(None)) {
            Ok(Opened::Alive(world, _)) => {
                self.world = world;
                Ok(())
            }
            Ok(Opened::Dead(_)) => Err(Outcome::Died),
            Err(wrong) => Err(Outcome::Wrong(wrong.0)),
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
        self.opens(&folder, RecoveryTarget::default(), &expected)?;
        self.copied = Some(Copied { folder, to: backup.to });
        Ok(())
    }

    /// The copy's log is brought up to now, and the copy opened at some moment in between.
    fn backup_log(&mut self) -> Result<(), Outcome> {
        let Some(Copied { folder, to }) = self.copied.take() else { return Ok(()) };
        let pager = self.world.engine.pager().clone();
        let renewed = match self.world.undisturbed(|| pager.backup_log(folder.as_ref())) {
            Ok(renewed) => renewed,
            // The log has gone on too far for this copy.
            Err(pager::Error::Format(_)) => return Ok(()),
            Err(error) => return Err(Error::from(error).into()),
        };
        let gates: Vec<Lsn> =
            self.models.iter().map(|(_, gate)| *gate).filter(|gate| (to..=renewed.to).contains(gate)).collect();
        if !gates.is_empty() {
            let gate = gates[self.prng.below(gates.len() as u64) as usize];
            // At a unit's end, or just before it: then all of it is missing.
            let lsn = (gate - 8 * self.prng.below(2)).max(to);
            let at = self.models.iter().rposition(|(_, gate)| *gate <= lsn).expect("the copy has one");
            let expected = self.models[at].0.at(self.now);
            self.opens(&folder, RecoveryTarget { lsn: Some(lsn), wall_ms: None }, &expected)?;
        }
        self.copied = Some(Copied { folder, to });
        Ok(())
    }

    /// A copy survives a power cut, too, and is what it should be.
    fn opens(&mut self, copy: &SimFolder, until: RecoveryTarget, expected: &Model) -> Result<(), Outcome> {
        let machine = Machine { turn_one_in: 0, ..self.world.machine };
        let failed = |error: Error| Outcome::Wrong(format!("the copy, opened at {:?}: {error}", until.lsn));
        let world = World::open(copy.crash(), self.world.clock.clone(), machine, until).map_err(failed)?;
        let found = world.read().map_err(failed)?;
        if found != *expected {
            let what =
                format!("the copy, opened at {:?}: expected / found: {}", until.lsn, expected.difference(&found));
            return Err(Outcome::Wrong(what));
        }
        let problems = world.problems().map_err(failed)?;
        few(problems).map_err(|what| Outcome::Wrong(format!("the copy: {what}")))
    }
}

/// How a step ends that is not done.
enum Outcome {
    Refused(Error),
    Died,
    Wrong(String),
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        Outcome::Refused(error)
    }
}
