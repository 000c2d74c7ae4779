//! An engine on a simulated disk and clock, without a thread of its own.
//!
//! What the background threads of a server do, the history does as steps; and between any two mini-transactions, in the middle of a unit or of recovery's
//! undo, a turn may be drawn in which the log is flushed, pages are cleaned or a checkpoint is made (`pager::InterleaveHook`). So the interleavings of a server's
//! threads that matter for a crash are here, in one thread, and the same for the same seed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use engine::{DEFAULT_ACCOUNT, Engine, Error, Found, KeySet, Lsn};
use os::{Folder, SimClock, SimFolder};
use pager::{Background, InterleaveHook, Pager, RecoveryTarget};
use stdx::prng::Prng;

use crate::model::Model;
use crate::op::{DATABASES, Name};
use crate::tables;

pub const START_MS: u64 = 1_700_000_000_000;

/// How an engine is opened; all of it follows from a seed.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Frames of the pool: with few of them, pages are written and evicted in the middle of units.
    pub frames: u64,
    /// Of the log; with few, the ring fills up in the middle of units.
    pub ring_bytes: usize,
    /// A turn is drawn after one mini-transaction in so many; 0: never.
    pub turn_one_in: u64,
    pub seed: u64,
}

impl Machine {
    pub fn draw(prng: &mut Prng) -> Machine {
        let pick = |prng: &mut Prng, from: [u64; 4]| from[prng.below(4) as usize];
        Machine {
            frames: pick(prng, [64, 96, 128, 512]),
            ring_bytes: pick(prng, [256 << 10, 256 << 10, 512 << 10, 1 << 20]) as usize,
            turn_one_in: pick(prng, [0, 3, 12, 60]),
            seed: prng.next_u64(),
        }
    }

    fn options(&self, turns: &Arc<Turns>, until: RecoveryTarget) -> engine::Options {
        let turns = turns.clone();
        let pager = pager::Options {
            frame_bytes: self.frames * engine::PAGE_BYTES as u64,
            ring_bytes: self.ring_bytes,
            segment_bytes: 2 << 20,
            checkpoint_distance: 4 << 20,
            background: Background::Manual,
            recovery_target: until,
            interleave: Some(InterleaveHook(Arc::new(move |pager| turns.take(pager)))),
            ..pager::Options::default()
        };
        // With little memory for them, steps of transactions go to files soon.
        let versions_max = [0, 1 << 10, 8 << 10, 64 << 10][(self.seed % 4) as usize];
        engine::Options { pager, random: 7, versions_max, ..Default::default() }
    }
}

/// What other threads do between two mini-transactions.
pub struct Turns {
    prng: Mutex<Prng>,
    one_in: u64,
    /// A turn is being taken, or a step that is itself what a background thread does.
    busy: AtomicBool,
}

impl Turns {
    fn take(&self, pager: &Pager) {
        if self.one_in == 0 || self.busy.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut prng = self.prng.lock().expect("no turn panics");
        let draw = if prng.below(self.one_in) == 0 { prng.below(8) } else { u64::MAX };
        drop(prng);
        // A background thread keeps an error to itself and tries again later; if the log is dead, the next step finds out.
        let _ = match draw {
            0..4 => pager.flush_once().map(drop),
            4..6 => pager.clean_ahead().map(drop),
            6 => pager.checkpoint().map(drop),
            7 => pager.clean_until(pager.durable().get()).map(drop),
            _ => Ok(()),
        };
        self.busy.store(false, Ordering::Relaxed);
    }
}

pub struct World {
    pub folder: Arc<SimFolder>,
    pub clock: Arc<SimClock>,
    pub engine: Arc<Engine>,
    pub machine: Machine,
    turns: Arc<Turns>,
}

impl World {
    pub fn open(
        folder: Arc<SimFolder>,
        clock: Arc<SimClock>,
        machine: Machine,
        until: RecoveryTarget,
    ) -> Result<World, Error> {
        let turns = Arc::new(Turns {
            prng: Mutex::new(Prng::new(machine.seed)),
            one_in: machine.turn_one_in,
            busy: AtomicBool::new(false),
        });
        let engine = Engine::open(machine.options(&turns, until), folder.clone() as Arc<dyn Folder>, clock.clone())?;
        // Where a server would stop, here only the simulated one stops.
        engine.pager().set_failure_hook(Box::new(|error| panic!("the simulated process stops: {error}")));
        Ok(World { folder, clock, engine, machine, turns })
    }

    /// Runs what a background thread does: no turn is taken within it.
    pub fn undisturbed<R>(&self, f: impl FnOnce() -> R) -> R {
        self.turns.busy.store(true, Ordering::Relaxed);
        let result = f();
        self.turns.busy.store(false, Ordering::Relaxed);
        result
    }

    /// The machine has crashed, or the process would have stopped.
    pub fn is_dead(&self) -> bool {
        self.folder.has_crashed() || self.engine.pager().is_dead()
    }

    pub fn get(&self, name: &Name) -> Result<(Option<Vec<u8>>, Lsn), Error> {
        let mut out = Vec::new();
        let got = self.engine.keyspace().get(name.0, &name.1, &mut out, |_, _| {})?;
        match got.found {
            Found::Missing => Ok((None, got.gate)),
            Found::Value => Ok((Some(out), got.gate)),
            Found::WrongType(kind) => Err(Error::Invalid(format!("a key of kind {kind:?} that nobody has made"))),
        }
    }

    /// Everything that clients can see.
    pub fn read(&self) -> Result<Model, Error> {
        let mut model = Model::default();
        for db in 0..DATABASES {
            for key in self.scan(db)? {
                let name = (db, key);
                let value = self.get(&name)?.0;
                let entry = self
                    .engine
                    .keyspace()
                    .read::<_, Error>(KeySet::Keys(&[(db, &name.1)]), |unit| unit.peek(db, &name.1))?
                    .0;
                let (Some(value), Some(entry)) = (value, entry) else {
                    let key = String::from_utf8_lossy(&name.1).into_owned();
                    return Err(Error::Invalid(format!("SCAN of database {db} shows '{key}', which is not there")));
                };
                model.databases[usize::from(db)].insert(name.1, (Arc::new(value), entry.expire_at_ms));
            }
        }
        for account in self.engine.accounts().list() {
            if account.name != DEFAULT_ACCOUNT {
                model.accounts.insert(account.name.clone(), account.rules.clone());
            }
        }
        let rows = self.engine.rows();
        let mut txn = rows.begin(engine::rows::Isolation::RepeatableRead);
        model.tables = tables::read(&mut txn)?;
        Ok(model)
    }

    fn scan(&self, db: u8) -> Result<Vec<Vec<u8>>, Error> {
        let (mut keys, mut cursor) = (Vec::new(), 0);
        loop {
            let read = self.engine.keyspace().read::<_, Error>(KeySet::Keys(&[]), |unit| {
                let mut page = Vec::new();
                let next = unit.scan(db, cursor, 50, |key, _| page.push(key.to_vec()))?;
                Ok((next, page))
            });
            let ((next, page), _) = read?;
            keys.extend(page);
            cursor = next;
            if cursor == 0 {
                return Ok(keys);
            }
        }
    }

    /// What the structural checker says; empty is good.
    pub fn problems(&self) -> Result<Vec<String>, Error> {
        Ok(self.engine.check()?.problems)
    }

    /// Runs the background until it has nothing to do.
    pub fn settle(&self) -> Result<(), Error> {
        while self.engine.background_once(64)?.more {}
        Ok(())
    }
}
