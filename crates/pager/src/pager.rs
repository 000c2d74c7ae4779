//! The pager as a whole.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use os::Folder;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};
use stdx::watermark::Watermark;

use crate::buffer_pool::BufferPool;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::frame;
use crate::page::{Lsn, NO_PAGE};
use crate::reader_pool::ReaderPool;
use crate::space_map::Space;
use crate::undo_scope;
use crate::wal::read::RecoveryTarget;
use crate::wal::stream::Wal;
use crate::write_batch::BatchWriter;

pub static FRAME_WAIT: stdx::wait::Reason = stdx::wait::Reason::new("free_frame");

/// Sizes in bytes. The caller divides the memory setting among frames, ring and the rest.
#[derive(Clone, Debug)]
pub struct Options {
    pub frame_bytes: u64,
    /// A power of two.
    pub ring_bytes: usize,
    pub segment_bytes: u64,
    /// Recovery reads about this much log at most: beyond it, old changes are written out and a checkpoint is made.
    pub checkpoint_distance: u64,
    pub background: Background,
    pub recovery_target: RecoveryTarget,
    /// No checkpoint before a hook is set: its owner knows of things that recovery must see again.
    pub checkpoint_needs_hook: bool,
    /// Simulation: what another thread does in between.
    pub interleave: Option<InterleaveHook>,
}

/// Called after every mini-transaction, while its caller still holds what it holds: there another thread could have flushed, cleaned or made a checkpoint, and
/// with `Background::Manual` this is how a simulation does it. It must not enter itself.
#[derive(Clone)]
pub struct InterleaveHook(pub Arc<dyn Fn(&Pager) + Send + Sync>);

impl std::fmt::Debug for InterleaveHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InterleaveHook")
    }
}

/// Who flushes and cleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// A flusher and a cleaner thread, asleep while idle.
    Threads,
    /// Nobody: the caller steps (`flush_once`, `clean_ahead`, `checkpoint`), and a thread that would wait does the work itself. For simulation.
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
            checkpoint_needs_hook: false,
            interleave: None,
        }
    }
}

thread_local! {
    static IS_CLEANER: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Marks the calling thread as the cleaner: it must not wait for the cleaner.
pub(crate) fn become_cleaner() {
    IS_CLEANER.set(true);
}

pub(crate) type CheckpointHook = Box<dyn Fn() -> Lsn + Send + Sync>;
pub(crate) type FailureHook = Box<dyn Fn(&Error) + Send + Sync>;

pub struct Pager {
    pub(crate) pool: BufferPool,
    pub(crate) space: Space,
    pub(crate) cleaner: Mutex<BatchWriter>,
    pub(crate) pages_written: stdx::counter::Counter,
    pub(crate) wal: OnceLock<Wal>,
    pub(crate) control: Mutex<Control>,
    pub(crate) folder: Arc<dyn Folder>,
    pub(crate) options: Options,
    pub(crate) checkpoint_hook: OnceLock<CheckpointHook>,
    pub(crate) failure_hook: OnceLock<FailureHook>,
    /// Position of the last checkpoint.
    pub(crate) checkpoint_lsn: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    /// Segments from here on must stay, because a backup reads them.
    pub(crate) pinned_lsn: Mutex<Vec<Lsn>>,
    /// The disk had no room when room was last sought.
    pub(crate) full: AtomicBool,
    pub(crate) stop: AtomicBool,
    pub(crate) cleaner_signal: (Mutex<bool>, Condvar),
    /// Who sought a frame has rung, and the cleaner has not begun with it yet.
    pub(crate) cleaner_woken: AtomicBool,
    /// Moves whenever the cleaner has cleaned something.
    pub(crate) cleaned: (Mutex<u64>, Condvar),
    pub(crate) threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    pub(crate) readers: ReaderPool,
}

impl Pager {
    pub(crate) fn wal(&self) -> &Wal {
        self.wal.get().expect("open after recovery")
    }

    /// None while recovery runs: then every change is durable, for it came from the log.
    pub(crate) fn wal_if_open(&self) -> Option<&Wal> {
        self.wal.get()
    }

    /// Everything at or below this position survives a crash.
    pub fn durable(&self) -> &Arc<Watermark> {
        &self.wal().durable
    }

    /// The next position of the log.
    pub fn wal_head(&self) -> Lsn {
        self.wal().head()
    }

    pub fn checkpoint_lsn(&self) -> Lsn {
        self.checkpoint_lsn.load(Ordering::Relaxed)
    }

    pub(crate) fn control_copy(&self) -> Control {
        *self.control.lock()
    }

    /// Random name of the database.
    pub fn database(&self) -> u64 {
        self.control.lock().database
    }

    /// Which opening of the database this is; no two have the same number.
    pub fn boot(&self) -> u64 {
        self.control.lock().boot
    }

    pub fn folder(&self) -> &Arc<dyn Folder> {
        &self.folder
    }

    /// Frames of the pool, and how many of them are dirty. Counts by looking at each: for reports, not for hot paths.
    pub fn frame_use(&self) -> (u64, u64, u64) {
        let used = self.pool.used_frames().iter().filter(|frame| frame.pid.load(Ordering::Relaxed) != NO_PAGE);
        let dirty = self.pool.used_frames().iter().filter(|frame| frame.oldest_change() != frame::CLEAN);
        (self.pool.frames.len() as u64, used.count() as u64, dirty.count() as u64)
    }

    /// The moment after a mini-transaction.
    #[inline]
    pub(crate) fn run_interleave_hook(&self) {
        if let Some(InterleaveHook(turn)) = &self.options.interleave {
            turn(self);
        }
    }

    /// Called by the engine's hook owner: what the checkpoint must not pass. The hook may append records; it returns the position where recovery has to
    /// begin at the latest for their sake.
    pub fn set_checkpoint_hook(&self, hook: CheckpointHook) {
        assert!(self.checkpoint_hook.set(hook).is_ok(), "one hook");
    }

    /// What to do when the log device fails; without a hook, the process aborts.
    pub fn set_failure_hook(&self, hook: FailureHook) {
        assert!(self.failure_hook.set(hook).is_ok(), "one hook");
    }

    /// To be called before a write latches anything: fails while the disk is full, and waits while the log has no prepared segment. Whoever takes something
    /// back (`enter_undo`) is let in: room for that is put aside.
    #[inline]
    pub fn admit(&self) -> Result<()> {
        if self.wal().is_short_of_space() { self.prepare_wal_segment() } else { Ok(()) }
    }

    #[cold]
    fn prepare_wal_segment(&self) -> Result<()> {
        if undo_scope::is_undoing() {
            return Ok(());
        }
        let result = self.wal().prepare();
        self.full.store(result.is_err(), Ordering::Relaxed);
        match result {
            Err(Error::DiskFull { .. }) => {
                // The cleaner looks for room by itself from now on; old segments may become free.
                self.wake_cleaner();
                Err(Error::DiskFull { what: "the log" })
            }
            other => other,
        }
    }

    /// True while the last search for disk room failed.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) || self.wal().is_out_of_space()
    }

    /// A write of the log has failed: the process is about to stop, or a simulation should.
    pub fn is_dead(&self) -> bool {
        self.wal().is_dead()
    }

    /// Writes one batch of the log. False if everything was durable.
    pub fn flush_once(&self) -> Result<bool> {
        self.wal().flush_once()
    }

    /// Blocks until `lsn` is durable.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.wal().flush_to(lsn)
    }

    /// No frame could be had: waits for the cleaner, or cleans.
    pub(crate) fn wait_for_free_frame(&self) -> Result<()> {
        // The cleaner itself needs frames when it makes the file grow: it must not wait for the cleaner.
        if self.wal_if_open().is_none() || self.options.background == Background::Manual || IS_CLEANER.get() {
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

    /// There are no background threads.
    pub(crate) fn is_manual(&self) -> bool {
        self.options.background == Background::Manual
    }

    /// Wakes the cleaner.
    pub(crate) fn wake_cleaner(&self) {
        *self.cleaner_signal.0.lock() = true;
        self.cleaner_signal.1.notify_one();
    }

    /// Wakes the cleaner unless it has been told and has not begun yet.
    pub(crate) fn wake_cleaner_once(&self) {
        if !self.cleaner_woken.load(Ordering::Relaxed) && !self.cleaner_woken.swap(true, Ordering::Relaxed) {
            self.wake_cleaner();
        }
    }

    /// Tells those who wait for a frame that there may be one.
    pub(crate) fn notify_cleaned(&self) {
        *self.cleaned.0.lock() += 1;
        self.cleaned.1.notify_all();
    }
}
