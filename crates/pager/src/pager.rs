//! The pager: the shared state of the storage layer, its options, admission of writes, and the signals between writers and the cleaner.
//!
//! Other files add the operations: `access`, `mtr`, `space`, `clean`, `checkpoint`, ... This one imports none of them, only the types of the state. Hard
//! part: a thread that finds no clean frame waits for the cleaner, and the cleaner itself may need a frame when it grows the data file; so it cleans
//! instead of waiting for itself.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use os::Folder;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};
use stdx::watermark::Watermark;

use crate::buffer_pool::BufferPool;
use crate::capture::Loss;
use crate::error::{Error, Result};
use crate::frame;
use crate::page::{Lsn, NO_PAGE};
use crate::reader_pool::ReaderPool;
use crate::root::{Root, RootRecord};
use crate::space_map::Space;
use crate::undo_scope;
use crate::wal::log_store::LogStore;
use crate::wal::read::RecoveryTarget;
use crate::wal::stream::Wal;
use crate::write_batch::BatchWriter;

pub static FRAME_WAIT: stdx::wait::Reason = stdx::wait::Reason::new("free_frame");

/// Options of the pager; sizes in bytes. The caller divides the memory setting among the buffer pool, the WAL ring and the rest.
#[derive(Clone, Debug)]
pub struct Options {
    pub frame_bytes: u64,
    /// A power of two.
    pub ring_bytes: usize,
    pub segment_bytes: u64,
    /// About the most WAL that recovery has to read: beyond it, old changes are written out and a checkpoint is made.
    pub checkpoint_distance: u64,
    pub background: Background,
    pub recovery_target: RecoveryTarget,
    /// Memory of the WAL records that recovery applies together. The more it is compared with `frame_bytes`, the fewer pages are read and written twice.
    pub recovery_bytes: u64,
    /// Opens a database also if the copy into it has not been completed: to complete it (`Pager::complete`).
    pub opens_incomplete: bool,
    /// Makes no checkpoint before a hook is set: its owner knows of records that recovery must see again.
    pub checkpoint_needs_hook: bool,
    /// For simulation: runs what another thread would do between two mini-transactions.
    pub interleave: Option<InterleaveHook>,
}

/// Called after every mini-transaction, while its caller still holds its latches and locks. Another thread could have flushed, cleaned or made a checkpoint
/// at that moment; with `Background::Manual` a simulation does so here. It must not re-enter itself.
#[derive(Clone)]
pub struct InterleaveHook(pub Arc<dyn Fn(&Pager) + Send + Sync>);

impl std::fmt::Debug for InterleaveHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InterleaveHook")
    }
}

/// Which threads flush and clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// A flusher thread and a cleaner thread, asleep while idle.
    Threads,
    /// None. The caller steps (`flush_once`, `clean_ahead`, `checkpoint`), and a thread that would wait does the work itself. For simulation.
    Manual,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            frame_bytes: 256 << 20,
            ring_bytes: 8 << 20,
            segment_bytes: 64 << 20,
            checkpoint_distance: 1 << 30,
            background: Background::Threads,
            recovery_target: RecoveryTarget::default(),
            recovery_bytes: 32 << 20,
            opens_incomplete: false,
            checkpoint_needs_hook: false,
            interleave: None,
        }
    }
}

/// Why a snapshot was given up.
pub(crate) const DISK_IS_FULL: &str = "the disk is full";

thread_local! {
    static IS_CLEANER: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Marks the calling thread as the cleaner, which must not wait for the cleaner.
pub(crate) fn become_cleaner() {
    IS_CLEANER.set(true);
}

pub(crate) type CheckpointHook = Box<dyn Fn() -> Lsn + Send + Sync>;
pub(crate) type FailureHook = Box<dyn Fn(&Error) + Send + Sync>;

/// The storage layer of one open database. All operations take `&self` and may run on any thread.
pub struct Pager {
    pub(crate) pool: BufferPool,
    pub(crate) space: Space,
    pub(crate) cleaner: Mutex<BatchWriter>,
    pub(crate) pages_written: stdx::counter::Counter,
    pub(crate) wal: OnceLock<Wal>,
    /// The segments, for copies of them.
    pub(crate) log: OnceLock<Arc<dyn LogStore>>,
    pub(crate) root: Box<dyn Root>,
    /// The content of the root, which only this opening replaces.
    pub(crate) control: Mutex<RootRecord>,
    pub(crate) folder: Arc<dyn Folder>,
    pub(crate) options: Options,
    pub(crate) checkpoint_hook: OnceLock<CheckpointHook>,
    pub(crate) failure_hook: OnceLock<FailureHook>,
    /// Position of the last checkpoint.
    pub(crate) checkpoint_lsn: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    /// A checkpoint was requested and is not made yet.
    pub(crate) checkpoint_requested: AtomicBool,
    /// Positions from which a backup still reads the WAL; segments from there on must stay.
    pub(crate) pinned_lsn: Mutex<Vec<Lsn>>,
    /// The last search for disk space failed.
    pub(crate) full: AtomicBool,
    pub(crate) stop: AtomicBool,
    pub(crate) cleaner_signal: (Mutex<bool>, Condvar),
    /// The cleaner has been signalled by a search for a frame and has not started its round yet.
    pub(crate) cleaner_woken: AtomicBool,
    /// A thread cleans when it is signalled, and threads that need a frame wait for it.
    pub(crate) has_cleaner: AtomicBool,
    /// Incremented whenever the cleaner has cleaned something.
    pub(crate) cleaned: (Mutex<u64>, Condvar),
    pub(crate) threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    pub(crate) readers: ReaderPool,
}

impl Pager {
    pub(crate) fn wal(&self) -> &Wal {
        self.wal.get().expect("open after recovery")
    }

    pub(crate) fn log(&self) -> &dyn LogStore {
        self.log.get().expect("open after recovery").as_ref()
    }

    /// Returns the WAL, `None` while recovery runs. Then every change is durable, since it was read from the WAL.
    pub(crate) fn wal_if_open(&self) -> Option<&Wal> {
        self.wal.get()
    }

    /// Returns the watermark of durability: everything at or below its position survives a crash.
    pub fn durable(&self) -> &Arc<Watermark> {
        &self.wal().durable
    }

    /// Returns the end of the WAL: the position of the next append. A snapshot's is its instant.
    pub fn wal_head(&self) -> Lsn {
        self.wal.get().map_or_else(|| self.checkpoint_lsn(), Wal::head)
    }

    pub fn checkpoint_lsn(&self) -> Lsn {
        self.checkpoint_lsn.load(Ordering::Relaxed)
    }

    pub(crate) fn control_copy(&self) -> RootRecord {
        *self.control.lock()
    }

    /// Returns the random id of the database.
    pub fn database(&self) -> u64 {
        self.control.lock().database
    }

    /// Returns the boot number, which is unique per opening of the database.
    pub fn boot(&self) -> u64 {
        self.control.lock().boot
    }

    pub fn folder(&self) -> &Arc<dyn Folder> {
        &self.folder
    }

    /// Returns the number of frames, of those in use and of dirty ones. Reads every frame header: for reports, not for hot paths.
    pub fn frame_use(&self) -> (u64, u64, u64) {
        let used = self.pool.used_frames().iter().filter(|frame| frame.pid.load(Ordering::Relaxed) != NO_PAGE);
        let dirty = self.pool.used_frames().iter().filter(|frame| frame.oldest_change() != frame::CLEAN);
        (self.pool.frames.len() as u64, used.count() as u64, dirty.count() as u64)
    }

    /// Runs the interleave hook, if any, after a mini-transaction.
    #[inline]
    pub(crate) fn run_interleave_hook(&self) {
        if let Some(InterleaveHook(turn)) = &self.options.interleave {
            turn(self);
        }
    }

    /// Sets the hook that bounds checkpoints. It may append records, and returns the latest position where recovery may start for the engine's sake.
    pub fn set_checkpoint_hook(&self, hook: CheckpointHook) {
        assert!(self.checkpoint_hook.set(hook).is_ok(), "the checkpoint hook is set once");
    }

    /// Sets the hook that runs when the WAL device fails; after it, or without one, the process aborts.
    pub fn set_failure_hook(&self, hook: FailureHook) {
        assert!(self.failure_hook.set(hook).is_ok(), "the failure hook is set once");
    }

    /// Admits a write; called before it latches anything (PG-16). Fails while the disk is full, and waits while the WAL has no prepared segment. A
    /// thread inside `enter_undo` is always admitted: its space is reserved.
    #[inline]
    pub fn admit(&self) -> Result<()> {
        if self.wal().is_short_of_space() { self.prepare_wal_segment() } else { Ok(()) }
    }

    #[cold]
    fn prepare_wal_segment(&self) -> Result<()> {
        if undo_scope::is_undoing() {
            return Ok(());
        }
        let mut result = self.wal().prepare();
        if matches!(result, Err(Error::DiskFull { .. })) && self.end_snapshot(None, DISK_IS_FULL) {
            result = self.wal().prepare();
        }
        self.full.store(result.is_err(), Ordering::Relaxed);
        match result {
            Err(Error::DiskFull { .. }) => {
                // From now on the cleaner retries by itself; a checkpoint may free old segments.
                self.wake_cleaner();
                Err(Error::DiskFull { what: "the log" })
            }
            other => other,
        }
    }

    /// Ends the page snapshot, or that of `only`, and frees the pages that it holds back (PG-27). Its readers get an error with `why`. Returns false if there
    /// is none.
    pub(crate) fn end_snapshot(&self, only: Option<&Loss>, why: &str) -> bool {
        self.pool.capture.end(only, why, || self.space.bits.lock().release_held())
    }

    /// Returns true if the last search for disk space failed.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) || self.wal().is_out_of_space()
    }

    /// Returns true after a failed WAL write: the process is about to stop, and a simulation should.
    pub fn is_dead(&self) -> bool {
        self.wal().is_dead()
    }

    /// Writes one batch of the WAL. Returns false if everything was durable.
    pub fn flush_once(&self) -> Result<bool> {
        self.wal().flush_once()
    }

    /// Blocks until `lsn` is durable.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.wal().flush_to(lsn)
    }

    /// Waits for the cleaner after no frame was found, or cleans in this thread. `Err(Closed)` when the pager stops.
    pub(crate) fn wait_for_free_frame(&self) -> Result<()> {
        // The cleaner itself needs frames when it grows the file: it must not wait for itself.
        if !self.has_cleaner.load(Ordering::Acquire) || IS_CLEANER.get() {
            self.clean_ahead()?;
            return Ok(());
        }
        let _waiting = stdx::wait::announce(&FRAME_WAIT);
        self.pool.lot.poll_read_queues();
        let mut generation = self.cleaned.0.lock();
        self.wake_cleaner();
        generation = self.cleaned.1.wait_timeout(generation, Duration::from_millis(100)).0;
        drop(generation);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Returns true if there are no background threads.
    pub(crate) fn is_manual(&self) -> bool {
        self.options.background == Background::Manual
    }

    /// Wakes the cleaner.
    pub(crate) fn wake_cleaner(&self) {
        *self.cleaner_signal.0.lock() = true;
        self.cleaner_signal.1.notify_one();
    }

    /// Wakes the cleaner unless it has been signalled and has not started its round yet.
    pub(crate) fn wake_cleaner_once(&self) {
        if !self.cleaner_woken.load(Ordering::Relaxed) && !self.cleaner_woken.swap(true, Ordering::Relaxed) {
            self.wake_cleaner();
        }
    }

    /// Notifies the threads that wait for a clean frame.
    pub(crate) fn notify_cleaned(&self) {
        *self.cleaned.0.lock() += 1;
        self.cleaned.1.notify_all();
    }
}
