//! The shared state of the keyspace. The other files of this folder build on it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use os::Clock;
use pager::Lsn;
use stdx::prng::Prng;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Result;
use crate::keyspace::background_signal::{BATCHING_DELAY, BackgroundSignal, Progress};
use crate::keyspace::counts::Counts;
use crate::keyspace::cursors::Cursors;
use crate::keyspace::databases::Databases;
use crate::keyspace::effects::KeyEffects;
use crate::keyspace::encoding_limits::{EncodingLimits, LimitNumbers};
use crate::keyspace::key::DATABASES;
use crate::keyspace::key_events::KeyEvents;
use crate::keyspace::key_locks::KeyLocks;
use crate::keyspace::levels::LevelSizes;
use crate::keyspace::member_hash::MemberHash;
use crate::keyspace::stripes::LockStripes;
use crate::keyspace::waiters::Waiters;
use crate::keyspace::watch_registry::WatchRegistry;
use crate::keyspace::writer_number::WriterNumber;
use crate::keyspace::{counts, stripes};
use crate::rows::lock_table::LockTable;
use crate::store::wal::Counted;
use crate::store::{Store, first_id};

/// Separates the cursors' random numbers from the others of the same seed.
const CURSORS: u64 = 0x5ca9;

pub struct Keyspace {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stripes: LockStripes,
    /// Keys that transactions of SQL hold.
    pub(crate) key_locks: Arc<KeyLocks>,
    pub(crate) databases: Databases,
    pub(crate) counts: Counts,
    pub(crate) watched: WatchRegistry,
    pub(crate) waiters: Waiters,
    pub(crate) events: KeyEvents,
    pub(crate) effects: KeyEffects,
    pub(crate) cursors: Cursors,
    pub(crate) member_hash: MemberHash,
    pub(crate) level_sizes: LevelSizes,
    pub(crate) encoding_limits: Arc<EncodingLimits>,
    pub(crate) background: BackgroundSignal,
    pub(crate) prng: Mutex<Prng>,
    /// The random number of this start.
    random: u64,
    active_expire: AtomicBool,
    /// Staged databases exist (EN-81).
    pub(crate) is_staging: AtomicBool,
    /// The number of those who may write (EN-89).
    pub(crate) writer: WriterNumber,
    /// Until this time nothing expires in the background, in ms since 1970.
    expire_paused_until_ms: AtomicU64,
    /// Background work of the engine's other parts, which shares the thread. It is called with a number of records.
    pub(crate) others: OnceLock<Others>,
}

pub(crate) type Others = Box<dyn Fn(usize) -> Result<Progress> + Send + Sync>;

impl Keyspace {
    /// Creates a keyspace that must not be used before `settle`; only the checkpoint's hook may be.
    pub(crate) fn new(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        row_locks: LockTable,
        level_sizes: LevelSizes,
        seed: u64,
    ) -> Keyspace {
        let stripes = LockStripes::new();
        stripes.lock(stripes::ALL);
        let counts = Counts::new(store.pager.checkpoint_lsn());
        let key_locks = KeyLocks::new(store.records.clone(), row_locks, first_id(&store.pager));
        Keyspace {
            store,
            clock,
            stripes,
            key_locks: Arc::new(key_locks),
            databases: Databases::default(),
            counts,
            watched: WatchRegistry::new(),
            waiters: Waiters::new(),
            member_hash: MemberHash::default(),
            level_sizes,
            encoding_limits: Arc::new(EncodingLimits::new(LimitNumbers::default())),
            random: seed,
            events: KeyEvents::default(),
            effects: KeyEffects::default(),
            cursors: Cursors::new(Prng::new(seed ^ CURSORS).next_u64()),
            background: BackgroundSignal::default(),
            prng: Mutex::new(Prng::new(seed)),
            active_expire: AtomicBool::new(true),
            is_staging: AtomicBool::new(false),
            writer: WriterNumber::default(),
            expire_paused_until_ms: AtomicU64::new(0),
            others: OnceLock::new(),
        }
    }

    /// Creates a keyspace on another store, which only reads it: its members are found by the same hash, and nobody else knows its stripes.
    pub(crate) fn on(&self, store: Arc<Store>) -> Keyspace {
        let keyspace = Keyspace::new(store, self.clock.clone(), LockTable::new(0, 1), self.level_sizes, self.random);
        keyspace.member_hash.copy(&self.member_hash);
        keyspace.stripes.unlock(stripes::ALL, 0);
        keyspace
    }

    /// Turns the removal of expired keys in the background on or off. While it is off, they stay on disk but are absent for every command.
    pub fn set_active_expire(&self, on: bool) {
        self.active_expire.store(on, Ordering::Relaxed);
        self.background.wake();
    }

    /// Pauses the removal of expired keys until `until_ms`, in ms since 1970; 0 ends the pause.
    pub fn pause_expire(&self, until_ms: u64) {
        self.expire_paused_until_ms.store(until_ms, Ordering::Relaxed);
        self.background.wake();
    }

    /// Returns why expired keys are not removed now: turned off (`Some(None)`), or paused for so many milliseconds more.
    pub(crate) fn expire_pause(&self) -> Option<Option<u64>> {
        // Nothing expires in staged databases, where a key may not be whole yet, nor while another server says what does (D32-2).
        let is_off = self.is_staging.load(Ordering::Relaxed) || self.writer.is_following();
        if !self.active_expire.load(Ordering::Relaxed) || is_off {
            return Some(None);
        }
        let left = self.expire_paused_until_ms.load(Ordering::Relaxed).saturating_sub(self.clock.wall_ms());
        (left > 0).then_some(Some(left))
    }

    /// Returns the limits of encodings, to read and to set.
    pub fn encoding_limits(&self) -> &Arc<EncodingLimits> {
        &self.encoding_limits
    }

    /// Returns the events of keys, to listen to.
    pub fn events(&self) -> &KeyEvents {
        &self.events
    }

    /// Returns whether somebody wants the names of changed keys.
    #[inline]
    pub(crate) fn needs_names(&self) -> bool {
        self.events.any() || self.effects.is_on()
    }

    /// Returns the effects of key transactions, to be recorded.
    pub fn effects(&self) -> &KeyEffects {
        &self.effects
    }

    /// Returns how often a thread slept until a stripe was released.
    pub fn lock_waits(&self) -> u64 {
        self.stripes.waits.get()
    }

    /// The checkpoint's hook (`counts::cut`).
    pub(crate) fn cut(&self, threaded: bool) -> Lsn {
        counts::cut(&self.counts, &self.stripes, &self.databases, &self.store, threaded)
    }

    /// Reads the map of databases and takes over the counts, after undo is done. From here on checkpoints cut the counts.
    pub(crate) fn settle(&self, counts: &HashMap<u32, Counted>, next_space: u32) -> Result<()> {
        self.databases.load(&self.store)?;
        self.databases.skip_to(next_space, &self.store)?;
        self.member_hash.load(&self.store)?;
        self.writer.load(&self.store)?;
        for db in 0..DATABASES {
            let counted = counts.get(&self.databases.space(db));
            self.counts.set(db, counted.copied().unwrap_or_default());
        }
        self.stripes.unlock(stripes::ALL, 0);
        Ok(())
    }

    /// Makes sure that members can be hashed. Must be called before the first element is written.
    pub(crate) fn ensure_member_hash(&self) -> Result<()> {
        self.member_hash.ensure(&self.store, self.random)
    }

    pub(crate) fn counted(&self, db: u8) -> Counted {
        self.counts.get(db)
    }

    pub(crate) fn database_of(&self, space: u32) -> Option<u8> {
        self.databases.database_of(space)
    }

    /// Tells the background thread about new work, to be done within 20 ms or so.
    pub(crate) fn wake_soon(&self) {
        self.background.due(self.clock.wall_ms() + BATCHING_DELAY.as_millis() as u64);
    }

    /// Tells the background thread about work to be done now.
    pub(crate) fn wake(&self) {
        self.background.wake();
    }

    pub(crate) fn stop_background(&self) {
        self.background.stop();
    }
}
