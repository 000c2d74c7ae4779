//! Opens engines on a simulated disk, stepped by hand.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::rows::Transaction;
use engine::{Engine, Error, Expire, Found, KeySet, KeyTransaction, LevelSizes, Lsn, Options};
use os::{Folder, SimClock, SimFolder};
use pager::Background;

pub const START_MS: u64 = 1_700_000_000_000;

pub fn options() -> Options {
    let pager = pager::Options {
        frame_bytes: 512 * 4096,
        ring_bytes: 4 << 20,
        segment_bytes: 8 << 20,
        checkpoint_distance: 32 << 20,
        background: Background::Manual,
        ..pager::Options::default()
    };
    // Small buckets, so that a few members split and join them.
    Options { pager, random: 7, level_sizes: LevelSizes { elements: 12, buckets: 4 }, ..Options::default() }
}

/// Options with a hook that flushes the WAL after each of the first `left` mini-transactions, and then no more.
pub fn flushed(left: &Arc<AtomicU64>) -> Options {
    let left = left.clone();
    let turn = move |pager: &pager::Pager| {
        let more = left.load(Ordering::Relaxed);
        if more > 0 {
            left.store(more - 1, Ordering::Relaxed);
            while pager.flush_once().expect("the log device works") {}
        }
    };
    let mut options = options();
    options.pager.interleave = Some(pager::InterleaveHook(Arc::new(turn)));
    options
}

/// Runs a change so often that the WAL ends behind each of its mini-transactions once, or behind every `step`th. The state after the crash is consistent, and
/// either the one before the change or the one after it.
pub fn cut_anywhere<S: PartialEq>(
    step: usize,
    before: impl Fn(&World),
    change: impl Fn(&World),
    state: impl Fn(&World) -> S,
) {
    for records in (0..).step_by(step) {
        let left = Arc::new(AtomicU64::new(0));
        let world = World::with(SimFolder::new(1), Arc::new(SimClock::new(START_MS)), flushed(&left)).unwrap();
        before(&world);
        world.flush();
        let old = state(&world);
        left.store(records, Ordering::Relaxed);
        change(&world);
        let is_whole = left.load(Ordering::Relaxed) > 0;
        let new = state(&world);
        world.check();
        let world = world.crash();
        world.check();
        let found = state(&world);
        assert!(found == old || found == new, "cut behind record {records}");
        world.settle();
        world.check();
        assert!(state(&world) == found, "settled, cut behind record {records}");
        if is_whole {
            assert!(records > 3 && found == new, "{records}");
            return;
        }
    }
}

pub struct World {
    pub folder: Arc<SimFolder>,
    pub clock: Arc<SimClock>,
    pub engine: Arc<Engine>,
}

impl World {
    pub fn new(seed: u64) -> World {
        World::on(SimFolder::new(seed), Arc::new(SimClock::new(START_MS))).expect("an empty folder opens")
    }

    pub fn on(folder: Arc<SimFolder>, clock: Arc<SimClock>) -> Result<World, Error> {
        World::with(folder, clock, options())
    }

    pub fn with(folder: Arc<SimFolder>, clock: Arc<SimClock>, options: Options) -> Result<World, Error> {
        let engine = Engine::open(options, folder.clone() as Arc<dyn Folder>, clock.clone())?;
        Ok(World { folder, clock, engine })
    }

    /// Closes and opens again.
    pub fn reopen(self) -> World {
        let World { folder, clock, engine } = self;
        engine.close().expect("closing works");
        drop(engine);
        World::on(folder, clock).expect("it opens again")
    }

    /// Loses what was not durable and opens again.
    pub fn crash(self) -> World {
        self.crash_with(options())
    }

    pub fn crash_with(self, options: Options) -> World {
        let World { folder, clock, engine } = self;
        let after = folder.crash();
        drop(engine);
        World::with(after, clock, options).expect("it recovers")
    }

    pub fn flush(&self) {
        while self.engine.pager().flush_once().expect("the log device works") {}
    }

    /// Runs the background until it has nothing to do, in steps as its thread makes them.
    pub fn settle(&self) {
        while self.engine.background_once(256).expect("the background works").more {}
    }

    /// Does what threads of the server do beside the transactions: by the number one of three things, or nothing.
    pub fn go_about(&self, which: u64) -> Result<(), Error> {
        match which {
            0 => while self.engine.pager().flush_once()? {},
            1 => drop(self.engine.background_once(8)?),
            2 => drop(self.engine.pager().checkpoint()?),
            _ => {}
        }
        Ok(())
    }

    pub fn check(&self) {
        let report = self.engine.check().expect("everything can be read");
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
    }

    pub fn get(&self, db: u8, key: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        let got = self.engine.keyspace().get(db, key, &mut out, |out, len| out.extend(format!("${len}:").bytes()));
        match got.expect("a read works").found {
            Found::Missing => {
                assert_eq!(out, b"before");
                None
            }
            Found::Value => {
                let value = out.split_off(b"before".len());
                let at = value.iter().position(|byte| *byte == b':').expect("framed") + 1;
                assert_eq!(value[..at], *format!("${}:", value.len() - at).as_bytes());
                Some(value[at..].to_vec())
            }
            Found::WrongType(kind) => panic!("a {kind:?}"),
        }
    }

    pub fn set(&self, db: u8, key: &[u8], value: &[u8]) -> Lsn {
        self.engine.keyspace().set(db, key, value, Expire::None).expect("a write works")
    }

    /// Runs a key transaction over some keys that changes several of them.
    pub fn write<R>(&self, keys: &[(u8, &[u8])], f: impl FnOnce(&mut KeyTransaction<'_>) -> Result<R, Error>) -> R {
        self.engine.keyspace().write(KeySet::Keys(keys), true, f).expect("a key transaction works").0
    }

    /// Runs a key transaction that changes one key.
    pub fn one<R>(&self, db: u8, key: &[u8], f: impl FnOnce(&mut KeyTransaction<'_>) -> Result<R, Error>) -> R {
        self.engine.keyspace().write(KeySet::Keys(&[(db, key)]), false, f).expect("a key transaction works").0
    }

    /// Runs a key transaction over all keys.
    pub fn all<R>(&self, f: impl FnOnce(&mut KeyTransaction<'_>) -> Result<R, Error>) -> R {
        self.engine.keyspace().write(KeySet::All, true, f).expect("a key transaction works").0
    }

    pub fn count(&self, db: u8) -> u64 {
        self.engine
            .keyspace()
            .read::<_, Error>(KeySet::Keys(&[]), |key_txn| key_txn.count(db))
            .expect("counting works")
            .0
    }

    /// Returns all keys found by SCAN, sorted.
    pub fn scan(&self, db: u8, count: usize) -> Vec<Vec<u8>> {
        let (mut keys, mut cursor) = (Vec::new(), 0);
        loop {
            let read = self.engine.keyspace().read::<_, Error>(KeySet::Keys(&[]), |key_txn| {
                let mut page = Vec::new();
                let next = key_txn.scan(db, cursor, count, |key, _| page.push(key.to_vec()))?;
                Ok((next, page))
            });
            let ((next, page), _) = read.expect("a scan works");
            keys.extend(page);
            cursor = next;
            if cursor == 0 {
                keys.sort();
                return keys;
            }
        }
    }

    pub fn ttl(&self, db: u8, key: &[u8]) -> Option<Option<u64>> {
        let entry =
            self.engine.keyspace().read::<_, Error>(KeySet::Keys(&[(db, key)]), |key_txn| key_txn.peek(db, key));
        entry.expect("a read works").0.map(|entry| entry.expire_at_ms)
    }
}

/// Waits until `is_reached` returns true; panics after a minute.
pub fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_reached() {
        assert!(Instant::now() < end, "not reached within a minute: {what}");
        std::thread::yield_now();
    }
}

/// Returns random bytes, so that a misplaced piece shows.
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut prng = stdx::prng::Prng::new(seed);
    let mut bytes = vec![0; len];
    prng.fill(&mut bytes);
    bytes
}

/// A sequence of changes of a world, with the state that must be found afterwards.
pub trait Story {
    fn play(&mut self, world: &World) -> Result<(), Error>;

    /// Drops open transactions although the disk is dead.
    fn bury(&mut self);

    /// Compares the world with what was committed. Commits up to `durable` must be there.
    fn verify(&self, world: &World, durable: u64);
}

/// Drops transactions whose disk is dead: they cannot even be rolled back.
pub fn bury_all(open: &mut Vec<Transaction>) {
    for txn in open.drain(..) {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(txn)));
    }
}

/// Plays until the power fails at the `io`-th I/O from now; it fails again after recovery. Each time the state is verified.
pub fn crash_at(world: World, story: &mut impl Story, io: u64, options: fn() -> Options) {
    world.engine.pager().set_failure_hook(Box::new(|error| panic!("stopped: {error}")));
    world.folder.crash_at_io(world.folder.io_count() + io);
    // It ends with an error, or the process stops itself.
    let _ = catch_unwind(AssertUnwindSafe(|| story.play(&world)));
    let durable = world.engine.durable().get();
    story.bury();
    let world = world.crash_with(options());
    story.verify(&world, durable);
    world.check();
    world.settle();
    world.check();
    let world = world.crash_with(options());
    story.verify(&world, durable);
    world.check();
}
