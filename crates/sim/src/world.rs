//! An engine on a simulated disk and clock, without threads of its own.
//!
//! Steps of the history do the work of a server's background threads. Besides, between any two mini-transactions, in the middle of a transaction or of
//! recovery's undo, a turn may be drawn in which the WAL is flushed, pages are cleaned or a checkpoint is made (`pager::InterleaveHook`). So the
//! interleavings of a server's threads that matter for a crash happen in one thread, and are the same for the same seed.

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

/// How an engine is opened; drawn from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Frames of the buffer pool: with few, pages are written and evicted in the middle of transactions.
    pub frames: u64,
    /// Size of the WAL ring: a small one fills up in the middle of transactions.
    pub ring_bytes: usize,
    /// A turn is drawn after one of this many mini-transactions; 0: never.
    pub interleave_one_in: u64,
    pub seed: u64,
}

impl Machine {
    pub fn draw(prng: &mut Prng) -> Machine {
        let pick = |prng: &mut Prng, from: [u64; 4]| from[prng.below(4) as usize];
        Machine {
            frames: pick(prng, [64, 96, 128, 512]),
            ring_bytes: pick(prng, [256 << 10, 256 << 10, 512 << 10, 1 << 20]) as usize,
            interleave_one_in: pick(prng, [0, 3, 12, 60]),
            seed: prng.next_u64(),
        }
    }

    fn options(&self, interleaver: &Arc<Interleaver>, until: RecoveryTarget) -> engine::Options {
        let interleaver = interleaver.clone();
        let pager = pager::Options {
            frame_bytes: self.frames * engine::PAGE_BYTES as u64,
            ring_bytes: self.ring_bytes,
            segment_bytes: 2 << 20,
            checkpoint_distance: 4 << 20,
            background: Background::Manual,
            recovery_target: until,
            // From a few records to the whole WAL are applied together.
            recovery_bytes: [1 << 10, 32 << 10, 256 << 10, 32 << 20][(self.seed / 4 % 4) as usize],
            interleave: Some(InterleaveHook(Arc::new(move |pager| interleaver.take(pager)))),
            ..pager::Options::default()
        };
        // With little memory for them, row versions spill to files early.
        let versions_max = [0, 1 << 10, 8 << 10, 64 << 10][(self.seed % 4) as usize];
        engine::Options { pager, random: 7, versions_max, ..Default::default() }
    }
}

/// The work of other threads between two mini-transactions.
pub struct Interleaver {
    prng: Mutex<Prng>,
    one_in: u64,
    /// A turn is in progress, or a step that is itself background work.
    busy: AtomicBool,
}

impl Interleaver {
    fn take(&self, pager: &Pager) {
        if self.one_in == 0 || self.busy.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut prng = self.prng.lock().expect("no turn panics");
        let draw = if prng.below(self.one_in) == 0 { prng.below(8) } else { u64::MAX };
        drop(prng);
        // A background thread ignores an error and retries later; if the WAL is dead, the next step detects it.
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
    interleaver: Arc<Interleaver>,
}

impl World {
    pub fn open(
        folder: Arc<SimFolder>,
        clock: Arc<SimClock>,
        machine: Machine,
        until: RecoveryTarget,
    ) -> Result<World, Error> {
        let interleaver = Arc::new(Interleaver {
            prng: Mutex::new(Prng::new(machine.seed)),
            one_in: machine.interleave_one_in,
            busy: AtomicBool::new(false),
        });
        let engine =
            Engine::open(machine.options(&interleaver, until), folder.clone() as Arc<dyn Folder>, clock.clone())?;
        // Where a server would stop, only the simulated process stops.
        engine.pager().set_failure_hook(Box::new(|error| panic!("the simulated process stops: {error}")));
        Ok(World { folder, clock, engine, machine, interleaver })
    }

    /// Runs background work: no turn is taken within it.
    pub fn undisturbed<R>(&self, f: impl FnOnce() -> R) -> R {
        self.interleaver.busy.store(true, Ordering::Relaxed);
        let result = f();
        self.interleaver.busy.store(false, Ordering::Relaxed);
        result
    }

    /// Returns true if the machine has crashed, or the process would have stopped.
    pub fn is_dead(&self) -> bool {
        self.folder.has_crashed() || self.engine.pager().is_dead()
    }

    pub fn get(&self, name: &Name) -> Result<(Option<Vec<u8>>, Lsn), Error> {
        let mut out = Vec::new();
        let got = self.engine.keyspace().get(name.0, &name.1, &mut out, |_, _| {})?;
        match got.found {
            Found::Missing => Ok((None, got.durability_lsn)),
            Found::Value => Ok((Some(out), got.durability_lsn)),
            Found::WrongType(kind) => Err(Error::Invalid(format!("a key of kind {kind:?} that no step has made"))),
        }
    }

    /// Reads everything that clients can see.
    pub fn read(&self) -> Result<Model, Error> {
        let mut model = Model::default();
        for db in 0..DATABASES {
            for key in self.scan(db)? {
                let name = (db, key);
                let value = self.get(&name)?.0;
                let entry = self
                    .engine
                    .keyspace()
                    .read::<_, Error>(KeySet::Keys(&[(db, &name.1)]), |txn| txn.peek(db, &name.1))?
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
            let read = self.engine.keyspace().read::<_, Error>(KeySet::Keys(&[]), |txn| {
                let mut page = Vec::new();
                let next = txn.scan(db, cursor, 50, |key, _| page.push(key.to_vec()))?;
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

    /// Returns the problems that the structural checker finds.
    pub fn problems(&self) -> Result<Vec<String>, Error> {
        Ok(self.engine.check()?.problems)
    }

    /// Runs the background work until there is none left.
    pub fn settle(&self) -> Result<(), Error> {
        while self.engine.background_once(64)?.more {}
        Ok(())
    }
}
