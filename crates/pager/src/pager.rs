//! The pager as a whole: opening, background threads, checkpoint, closing.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use os::{Clock, Device, Folder, Open};
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};
use stdx::watermark::Watermark;

use crate::clean::{self, Cleaner};
use crate::control::Control;
use crate::doublewrite::DoubleWrite;
use crate::error::{Error, Result};
use crate::fetch::{self, Fetcher};
use crate::page::{Lsn, PAGE_BYTES};
use crate::pool::Pool;
use crate::recovery::{Recovery, RecoveryReport};
use crate::space::{self, Space};
use crate::wal::flush::{Log, LogOptions};
use crate::wal::read::{RecoveryTarget, segments};
use crate::wal::record::{Observer, RedoTable};
use crate::wal::segment::Segments;
use crate::wal::{FIRST_LSN, segment};

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

type CheckpointHook = Box<dyn Fn() -> Lsn + Send + Sync>;
type FailureHook = Box<dyn Fn(&Error) + Send + Sync>;

pub struct Pager {
    pub(crate) pool: Pool,
    pub(crate) space: Space,
    pub(crate) cleaner: Mutex<Cleaner>,
    pub(crate) pages_written: stdx::counter::Counter,
    log: OnceLock<Log>,
    control: Mutex<Control>,
    folder: Arc<dyn Folder>,
    options: Options,
    checkpoint_hook: OnceLock<CheckpointHook>,
    failure_hook: OnceLock<FailureHook>,
    /// Position of the last checkpoint.
    checkpoint_lsn: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    /// Segments from here on must stay, because a backup reads them.
    pinned_lsn: Mutex<Vec<Lsn>>,
    /// The disk had no room when room was last sought.
    full: AtomicBool,
    stop: AtomicBool,
    bell: (Mutex<bool>, Condvar),
    /// Who sought a frame has rung, and the cleaner has not begun with it yet.
    rung: AtomicBool,
    /// Moves whenever the cleaner has cleaned something.
    cleaned: (Mutex<u64>, Condvar),
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    pub(crate) fetcher: Fetcher,
}

/// A pager ready for use.
pub struct Opened {
    pub pager: Arc<Pager>,
    /// The folder was empty.
    pub created: bool,
    pub recovered: RecoveryReport,
}

impl Pager {
    /// Opens the data folder, making it if it is empty, and brings every page up to the end of the log.
    ///
    /// `observer` sees every record from the last checkpoint on. `random` names a new database.
    pub fn open(
        folder: Arc<dyn Folder>,
        clock: Arc<dyn Clock>,
        options: Options,
        redo: RedoTable,
        observer: &mut dyn Observer,
        random: u64,
        progress: &dyn Fn(&RecoveryReport),
    ) -> Result<Opened> {
        let name = crate::DATA_FILE;
        let data = folder.open(name, Open::Create).map_err(|error| Error::io(format!("opening '{name}'"), error))?;
        let found = Control::read(data.as_ref())?;
        // A birth that a crash cut short, before there was a log that could hold anything, is begun again.
        let created = match found {
            None => true,
            Some(control) => control.checkpoint == FIRST_LSN && segments(folder.as_ref(), control.database)?.is_empty(),
        };
        let mut control = match found {
            Some(control) => control,
            None => Self::create(folder.as_ref(), data.as_ref(), random)?,
        };
        let mut double_write = DoubleWrite::new(clean::open_double_write(folder.as_ref())?, control.database);
        let repaired = if created { Vec::new() } else { double_write.repair(data.as_ref())? };
        double_write.clear()?;
        let frames = (options.frame_bytes / PAGE_BYTES as u64).max(64) as usize;
        let pager = Pager {
            pool: Pool::new(frames, data)?,
            space: Space::default(),
            cleaner: Mutex::new(Cleaner::new(double_write)),
            pages_written: Default::default(),
            log: OnceLock::new(),
            control: Mutex::new(control),
            folder: folder.clone(),
            checkpoint_hook: OnceLock::new(),
            failure_hook: OnceLock::new(),
            checkpoint_lsn: AtomicU64::new(control.checkpoint),
            checkpoints: AtomicU64::new(0),
            pinned_lsn: Mutex::new(Vec::new()),
            full: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            bell: (Mutex::new(false), Condvar::new()),
            rung: AtomicBool::new(false),
            cleaned: (Mutex::new(0), Condvar::new()),
            threads: Mutex::new(Vec::new()),
            fetcher: Fetcher::default(),
            options: options.clone(),
        };
        let mut recovery = Recovery {
            pager: &pager,
            redo: &redo,
            observer,
            progress,
            report: RecoveryReport { repaired, ..RecoveryReport::default() },
        };
        let (start, used) = if created {
            recovery.report.to = FIRST_LSN;
            (FIRST_LSN, Vec::new())
        } else {
            let end = recovery.run(&folder, control.database, control.checkpoint, options.recovery_target)?;
            (end.lsn, end.used)
        };
        let recovered = recovery.report;
        if recovered.to < control.consistent {
            return Err(Error::Format(format!(
                "the copy is consistent from log position {} on, but its log was read only up to {}: choose a later time or position",
                control.consistent, recovered.to
            )));
        }
        // A new boot number before anything is logged: it is the epoch that tells new chunks from the torn tail.
        control.boot += 1;
        control.write(pager.pool.data.as_ref())?;
        *pager.control.lock() = control;
        let (size, distance) = (options.segment_bytes, options.checkpoint_distance);
        let segments = Segments::new(folder, control.database, size, distance, used)?;
        let log_options = LogOptions {
            ring_bytes: options.ring_bytes,
            start,
            epoch: control.boot,
            database: control.database,
            threaded: options.background == Background::Threads,
        };
        let log = Log::open(&log_options, segments, clock)?;
        assert!(pager.log.set(log).is_ok());
        let pager = Arc::new(pager);
        if options.background == Background::Threads {
            pager.start_threads();
        }
        if created {
            pager.create_space()?
        } else {
            pager.open_space()?
        }
        Ok(Opened { pager, created, recovered })
    }

    fn create(folder: &dyn Folder, data: &dyn Device, random: u64) -> Result<Control> {
        let names = folder.list().map_err(|error| Error::io("listing the data folder", error))?;
        if names.iter().any(|name| segment::file_number(name).is_some()) && data.len() == 0 {
            return Err(Error::Format(
                "the data folder has log segments but no data file: restore a backup or choose an empty folder".into(),
            ));
        }
        data.grow(space::FIRST_BYTES).map_err(|error| Error::io("creating the data file", error))?;
        folder.sync().map_err(|error| Error::io("syncing the data folder", error))?;
        let mut control = Control { sequence: 0, database: random, checkpoint: FIRST_LSN, boot: 0, consistent: 0 };
        control.write(data)?;
        Ok(control)
    }

    pub(crate) fn log(&self) -> &Log {
        self.log.get().expect("open after recovery")
    }

    /// None while recovery runs: then every change is durable, for it came from the log.
    pub(crate) fn log_if_open(&self) -> Option<&Log> {
        self.log.get()
    }

    /// Everything at or below this position survives a crash.
    pub fn durable(&self) -> &Arc<Watermark> {
        &self.log().durable
    }

    /// The next position of the log.
    pub fn wal_head(&self) -> Lsn {
        self.log().head()
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
        let used =
            self.pool.used_frames().iter().filter(|frame| frame.pid.load(Ordering::Relaxed) != crate::page::NO_PAGE);
        let dirty = self.pool.used_frames().iter().filter(|frame| frame.oldest_change() != crate::frame::CLEAN);
        (self.pool.frames.len() as u64, used.count() as u64, dirty.count() as u64)
    }

    /// The moment after a mini-transaction.
    #[inline]
    pub(crate) fn between(&self) {
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
        if self.log().short_of_room() { self.make_room() } else { Ok(()) }
    }

    #[cold]
    fn make_room(&self) -> Result<()> {
        if crate::undo_reserve::is_undoing() {
            return Ok(());
        }
        let result = self.log().prepare();
        self.full.store(result.is_err(), Ordering::Relaxed);
        match result {
            Err(Error::DiskFull { .. }) => {
                // The cleaner looks for room by itself from now on; old segments may become free.
                self.ring();
                Err(Error::DiskFull { what: "the log" })
            }
            other => other,
        }
    }

    /// True while the last search for disk room failed.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) || self.log().is_stuck()
    }

    /// A write of the log has failed: the process is about to stop, or a simulation should.
    pub fn is_dead(&self) -> bool {
        self.log().is_dead()
    }

    /// Writes one batch of the log. False if everything was durable.
    pub fn flush_once(&self) -> Result<bool> {
        self.log().flush_once()
    }

    /// Blocks until `lsn` is durable.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.log().flush_to(lsn)
    }

    /// Makes the log shorter: recovery will start at the oldest change that is not on disk, or where the hook says.
    pub fn checkpoint(&self) -> Result<Lsn> {
        // The order matters: everything below `copied` has marked its pages before the frames are looked at (L2).
        let hook = match self.checkpoint_hook.get() {
            Some(hook) => hook(),
            None if self.options.checkpoint_needs_hook => return Ok(self.checkpoint_lsn()),
            None => Lsn::MAX,
        };
        let head = self.log().head();
        let copied = self.log().copied();
        let oldest = self.pool.used_frames().iter().map(|frame| frame.oldest_change()).min().unwrap_or(Lsn::MAX);
        let lsn = copied.min(hook).min(oldest);
        self.log().flush_to(head.max(lsn))?;
        let mut control = self.control.lock();
        if lsn > control.checkpoint {
            // What the disk does not say is not so: after a failed write the log is still needed from the old position on.
            let mut next = Control { checkpoint: lsn, ..*control };
            next.write(self.pool.data.as_ref())?;
            *control = next;
            self.checkpoint_lsn.store(lsn, Ordering::Relaxed);
            self.checkpoints.fetch_add(1, Ordering::Relaxed);
        }
        let keep = self.pinned_lsn.lock().iter().copied().min().unwrap_or(Lsn::MAX).min(control.checkpoint);
        drop(control);
        self.log().release(keep)?;
        Ok(lsn)
    }

    /// Writes all dirty pages and makes a checkpoint: the next opening has next to nothing to redo.
    pub fn checkpoint_all(&self) -> Result<Lsn> {
        for _ in 0..8 {
            let head = self.log().head();
            self.clean_until(head)?;
            if self.pool.used_frames().iter().all(|frame| frame.oldest_change() >= head) {
                break;
            }
        }
        self.checkpoint()
    }

    /// Keeps the log from `checkpoint_lsn` on until the pin is dropped.
    pub fn pin_wal(&self) -> WalPin<'_> {
        let control = self.control.lock();
        let lsn = control.checkpoint;
        self.pinned_lsn.lock().push(lsn);
        WalPin { pager: self, lsn }
    }

    /// No frame could be had: waits for the cleaner, or cleans.
    pub(crate) fn relieve(&self) -> Result<()> {
        // The cleaner itself needs frames when it makes the file grow: it must not wait for the cleaner.
        if self.log_if_open().is_none() || self.options.background == Background::Manual || IS_CLEANER.get() {
            self.clean_ahead()?;
            return Ok(());
        }
        let _waiting = stdx::wait::announce(&FRAME_WAIT);
        self.pool.lot.lanes().for_each(|lane| lane.poll_completions());
        let mut generation = self.cleaned.0.lock();
        self.ring();
        generation = self.cleaned.1.wait_timeout(generation, Duration::from_millis(100)).0;
        drop(generation);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// There are no background threads.
    pub(crate) fn is_stepped(&self) -> bool {
        self.options.background == Background::Manual
    }

    /// Wakes the cleaner.
    pub(crate) fn ring(&self) {
        *self.bell.0.lock() = true;
        self.bell.1.notify_one();
    }

    /// Wakes the cleaner unless it has been told and has not begun yet.
    pub(crate) fn ring_once(&self) {
        if !self.rung.load(Ordering::Relaxed) && !self.rung.swap(true, Ordering::Relaxed) {
            self.ring();
        }
    }

    /// Tells those who wait for a frame that there may be one.
    pub(crate) fn tell_cleaned(&self) {
        *self.cleaned.0.lock() += 1;
        self.cleaned.1.notify_all();
    }

    fn start_threads(self: &Arc<Self>) {
        let mut threads = self.threads.lock();
        let flusher = self.clone();
        let cleaner = self.clone();
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(body).expect("a thread at start")
        };
        threads.push(spawn("log-flusher", Box::new(move || flusher.run_flusher())));
        threads.push(spawn("page-cleaner", Box::new(move || cleaner.run_cleaner())));
        for _ in 0..fetch::READERS {
            let reader = self.clone();
            threads.push(spawn("page-reader", Box::new(move || reader.run_reader())));
        }
    }

    fn run_flusher(&self) {
        let watch = |durable: Lsn| {
            let far = Self::far(self.options.checkpoint_distance);
            if durable.saturating_sub(self.checkpoint_lsn()) > far || self.log().wants_segment() {
                self.ring();
            }
        };
        if let Err(error) = self.log().run(&self.stop, &watch) {
            self.fail(&error);
        }
    }

    /// A log of this length is made shorter, to about a quarter of the distance: rarely enough, for it means a look at every frame, and soon enough, for
    /// the log grows on meanwhile.
    fn far(distance: u64) -> u64 {
        distance / 8 * 5
    }

    /// The log device failed: what it holds is unknown, so nothing may be acknowledged any more.
    fn fail(&self, error: &Error) -> ! {
        self.fatal("the log cannot be written, stopping so that nothing unwritten is acknowledged", error)
    }

    /// Stops the process, because what is in memory can no longer be made right while what is in the log can.
    pub fn fatal(&self, what: &str, error: &Error) -> ! {
        if let Some(hook) = self.failure_hook.get() {
            hook(error);
        }
        eprintln!("beluga: {what}: {error}");
        std::process::abort();
    }

    fn run_cleaner(&self) {
        IS_CLEANER.set(true);
        let mut retry = None;
        while !self.stop.load(Ordering::Acquire) {
            self.wait_for_bell(retry);
            retry = match self.background_step() {
                Ok(()) => None,
                Err(error) => {
                    self.full.store(matches!(error, Error::DiskFull { .. }), Ordering::Relaxed);
                    Some(Duration::from_millis(200))
                }
            };
        }
    }

    fn wait_for_bell(&self, timeout: Option<Duration>) {
        let mut rung = self.bell.0.lock();
        while !*rung {
            match timeout {
                None => rung = self.bell.1.wait(rung),
                Some(timeout) => {
                    rung = self.bell.1.wait_timeout(rung, timeout).0;
                    break;
                }
            }
        }
        *rung = false;
    }

    /// One round of background work: a segment ahead, room ahead, frames for eviction, a shorter log.
    pub fn background_step(&self) -> Result<()> {
        self.rung.store(false, Ordering::Relaxed);
        while self.pool.wants_cleaning() && !self.stop.load(Ordering::Relaxed) {
            let cleaned = self.clean_ahead()?;
            self.tell_cleaned();
            if cleaned == 0 {
                break;
            }
        }
        let distance = self.options.checkpoint_distance;
        let durable = self.durable().get();
        if durable.saturating_sub(self.checkpoint_lsn()) > Self::far(distance) {
            self.clean_until(durable.saturating_sub(distance / 4))?;
            self.checkpoint()?;
        }
        let segment = self.log().prepare();
        if segment.is_err() {
            // A checkpoint may free old segments for reuse.
            self.checkpoint_all()?;
            self.log().prepare()?;
        }
        self.grow_ahead()?;
        self.full.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Makes everything durable, writes the dirty pages, makes a checkpoint and ends the background threads.
    pub fn close(&self) -> Result<()> {
        let result = self.checkpoint_all().map(drop);
        self.stop_threads();
        result
    }

    fn stop_threads(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.log().rouse();
        self.ring();
        self.stop_readers();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// Keeps log segments from being recycled.
pub struct WalPin<'p> {
    pager: &'p Pager,
    lsn: Lsn,
}

impl WalPin<'_> {
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }
}

impl Drop for WalPin<'_> {
    fn drop(&mut self) {
        let mut pins = self.pager.pinned_lsn.lock();
        let at = pins.iter().position(|lsn| *lsn == self.lsn).expect("pushed by pin_wal");
        pins.swap_remove(at);
    }
}
