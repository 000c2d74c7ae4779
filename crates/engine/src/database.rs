//! The engine as a whole: opening its parts in the right order, and closing them.
//!
//! ```text
//!   pager redo, observed by `Recovery`  ->  trees  ->  checkpoint hook  ->  undo of losers that changed keys or definitions  ->  map of databases, counts
//!     ->  losers that changed only rows become active transactions again  ->  accounts  ->  background: expiry, purge; undo of those losers
//! ```
//! The hook is set before the undo, because a checkpoint in between must not pass the first record of a transaction that is still to be undone (EN-9).

use std::sync::Arc;
use std::time::Duration;

use os::{Clock, Folder};
use pager::{Background, Pager, RedoTable, SharedStorage};
use stdx::hash::Seed;
use stdx::sync::{Condvar, Mutex};
use stdx::watermark::Watermark;

use crate::accounts::Accounts;
use crate::catalog::{Documents, Settings};
use crate::check;
use crate::check::Report;
use crate::error::{Error, Result};
use crate::keyspace::background_signal::Progress;
use crate::keyspace::levels::LevelSizes;
use crate::keyspace::state::{Keyspace, Others};
use crate::metrics::Metrics;
use crate::recovery::Recovery;
use crate::rows::lock_table::{LockTable, PARTITIONS};
use crate::rows::state::Rows;
use crate::store::Store;

/// CHECKPOINT of a client.
static CHECKPOINT: stdx::wait::Reason = stdx::wait::Reason::new("checkpoint");

/// A summary of the opening, for the log line at start.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The folder was empty.
    pub created: bool,
    pub pager: pager::RecoveryReport,
    /// Transactions that the crash interrupted and that were undone before the doors opened.
    pub undone: usize,
    /// Transactions that the crash interrupted and that are undone beside the service, and the number of their changes.
    pub rolling_back: usize,
    pub rolling_back_changes: u64,
}

/// Options of `Engine::open`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `pager.background` also decides whether the engine's own background work runs in a thread or is stepped by the caller.
    pub pager: pager::Options,
    /// Identifies a new database and seeds RANDOMKEY.
    pub random: u64,
    /// Memory for old versions of rows, in bytes; 0 means 64 MiB. Versions beyond it are written to files.
    pub versions_max: u64,
    /// Partitions of the lock table; 0 means 64.
    pub lock_partitions: usize,
    /// Sizes of the buckets over sorted sets and lists. Another opening may have others; `Engine::check` expects those of the present one.
    pub level_sizes: LevelSizes,
}

/// The progress of a start.
#[derive(Clone, Copy, Debug)]
pub enum Recovering<'r> {
    /// The WAL is being applied.
    Redo(&'r pager::RecoveryReport),
    /// Undecided transactions are being undone: `done` of `of` rows and keys.
    Undo { done: u64, of: u64 },
}

const VERSIONS_MAX: u64 = 64 << 20;

/// Where a database lies.
enum Place {
    Folder(Arc<dyn Folder>),
    Shared(SharedStorage),
}

pub struct Engine {
    store: Arc<Store>,
    keyspace: Arc<Keyspace>,
    rows: Arc<Rows>,
    accounts: Accounts,
    settings: Settings,
    documents: Documents,
    metrics: Arc<Metrics>,
    opened: Opened,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    undo: Arc<UndoThread>,
}

impl Engine {
    /// Opens a data folder, and creates the database if the folder is empty. On return, every acknowledged change is there and no undecided change is visible;
    /// rows of undecided transactions may be locked for a while.
    pub fn open(options: Options, folder: Arc<dyn Folder>, clock: Arc<dyn Clock>) -> Result<Arc<Engine>> {
        Self::open_with(options, folder, clock, &|_| {})
    }

    /// Does the same and reports the progress of recovery.
    pub fn open_with(
        options: Options,
        folder: Arc<dyn Folder>,
        clock: Arc<dyn Clock>,
        progress: &dyn Fn(Recovering<'_>),
    ) -> Result<Arc<Engine>> {
        Self::open_at(options, Place::Folder(folder), clock, progress)
    }

    /// Opens a database in storage that several nodes reach, and creates it if there is none. From here on no earlier opening changes anything in it: its next
    /// write fails, which ends its WAL.
    pub fn open_shared(
        options: Options,
        shared: SharedStorage,
        clock: Arc<dyn Clock>,
        progress: &dyn Fn(Recovering<'_>),
    ) -> Result<Arc<Engine>> {
        Self::open_at(options, Place::Shared(shared), clock, progress)
    }

    fn open_at(
        options: Options,
        place: Place,
        clock: Arc<dyn Clock>,
        progress: &dyn Fn(Recovering<'_>),
    ) -> Result<Arc<Engine>> {
        let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
        let versions_max = if options.versions_max == 0 { VERSIONS_MAX } else { options.versions_max };
        let scratch = match &place {
            Place::Folder(folder) => folder.clone(),
            Place::Shared(shared) => shared.scratch.clone(),
        };
        let mut recovery = Recovery::new(scratch, versions_max);
        let threaded = options.pager.background == Background::Threads;
        let of_pager = pager::Options { checkpoint_needs_hook: true, ..options.pager.clone() };
        let (observer, random) = (&mut recovery, options.random);
        let redone = |done: &pager::RecoveryReport| progress(Recovering::Redo(done));
        let opened = match place {
            Place::Folder(folder) => Pager::open(folder, clock.clone(), of_pager, redo, observer, random, &redone),
            Place::Shared(shared) => {
                Pager::open_shared(&shared, clock.clone(), of_pager, redo, observer, random, &redone)
            }
        }?;
        if let Some(error) = recovery.damage.take() {
            return Err(error);
        }
        let metrics = Arc::new(Metrics::default());
        let store = Arc::new(Store::open(opened.pager.clone(), metrics.clone(), threaded)?);
        recovery.announce(&store);
        let partitions = if options.lock_partitions == 0 { PARTITIONS } else { options.lock_partitions };
        // Keys and rows share one lock table.
        let locks = LockTable::new(versions_max, partitions);
        let keyspace = Arc::new(Keyspace::new(store.clone(), clock, locks, options.level_sizes, options.random));
        let hooked = Arc::downgrade(&keyspace);
        opened.pager.set_checkpoint_hook(Box::new(move || match hooked.upgrade() {
            Some(keyspace) => keyspace.cut(threaded),
            None => 0,
        }));
        let undone = recovery.undo_losers(&store, &|done, of| progress(Recovering::Undo { done, of }))?;
        keyspace.settle(recovery.counts(), recovery.next_space())?;
        let rows = open_rows(&keyspace, versions_max, recovery.seed());
        rows.adopt(recovery.take_losers())?;
        drop(recovery);
        let rolling_back = rows.rolling_back();
        let accounts = Accounts::open(store.clone())?;
        let thread = threaded.then(|| keyspace.start_background());
        let undo = Arc::new(UndoThread::default());
        if threaded && !rolling_back.is_empty() {
            undo.start(rows.clone());
        }
        Ok(Arc::new(Engine {
            settings: Settings::new(store.clone()),
            documents: Documents::new(store.clone()),
            store,
            keyspace,
            rows,
            accounts,
            metrics,
            opened: Opened {
                created: opened.created,
                pager: opened.recovered,
                undone,
                rolling_back: rolling_back.len(),
                rolling_back_changes: rolling_back.iter().map(|loser| loser.changes).sum(),
            },
            thread: Mutex::new(thread),
            undo,
        }))
    }

    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    pub fn pager(&self) -> &Arc<Pager> {
        &self.store.pager
    }

    /// Returns the watermark up to which the WAL is durable.
    pub fn durable(&self) -> &Arc<Watermark> {
        self.store.pager.durable()
    }

    pub fn keyspace(&self) -> &Arc<Keyspace> {
        &self.keyspace
    }

    /// Returns the maps of rows, for SQL.
    pub fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }

    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Runs one step of expiry, purge and undo of about `budget` records.
    pub fn background_once(&self, budget: usize) -> Result<Progress> {
        let has_more = self.undo_once(budget)?;
        let progress = self.keyspace.background_step(budget)?;
        Ok(if has_more { Progress { more: true, ..progress } } else { progress })
    }

    /// Runs one step of the undo of the last crash's losers. Returns true if there is more to undo.
    pub fn undo_once(&self, budget: usize) -> Result<bool> {
        self.rows.undo_step(budget)
    }

    /// Checks every invariant that can be checked on disk. The caller makes sure that nothing else runs, the background included (`stop_background`).
    pub fn check(&self) -> Result<Report> {
        check::check(&self.store, &self.keyspace, &self.rows)
    }

    /// Writes all pages that are dirty now, and makes a checkpoint. The calling thread waits for the disk, as long as it takes to write the whole buffer pool.
    pub fn checkpoint(&self) -> Result<()> {
        let _waiting = stdx::wait::announce(&CHECKPOINT);
        self.store.pager.checkpoint_all()?;
        Ok(())
    }

    /// Stops the background work, makes everything durable, writes all pages and a checkpoint. The next opening undoes what is not undone by then: the
    /// checkpoint does not pass it (EN-9).
    pub fn close(&self) -> Result<()> {
        self.stop_background();
        self.store.pager.close()?;
        Ok(())
    }

    /// Ends the background threads for good.
    pub fn stop_background(&self) {
        self.undo.stop();
        self.keyspace.stop_background();
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the background thread has been printed; closing goes on.
            let _ = thread.join();
        }
    }
}

/// Creates the `Rows`, whose background work runs in the keyspace's background thread.
fn open_rows(keyspace: &Arc<Keyspace>, versions_max: u64, seed: Seed) -> Arc<Rows> {
    let call = |how: fn(&Keyspace)| -> Box<dyn Fn() + Send + Sync> {
        let keyspace = Arc::downgrade(keyspace);
        Box::new(move || {
            if let Some(keyspace) = keyspace.upgrade() {
                how(&keyspace);
            }
        })
    };
    let rows = Arc::new(Rows::new(keyspace, versions_max, seed, call(Keyspace::wake_soon), call(Keyspace::wake)));
    let work = rows.clone();
    let others: Others = Box::new(move |budget| work.background_step(budget));
    assert!(keyspace.others.set(others).is_ok(), "the other background work is set once");
    rows
}

/// The thread that undoes the losers of the last crash. It ends when they are undone.
#[derive(Default)]
struct UndoThread {
    is_stopping: Mutex<bool>,
    condvar: Condvar,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// Records per step. A stop waits no longer than for one step.
const UNDO_STEP: usize = 256;
/// Pause before a failed undo step is retried. It is short, since on a full disk rows stay locked until the undo succeeds.
const UNDO_PAUSE: Duration = Duration::from_millis(100);

impl UndoThread {
    fn start(self: &Arc<Self>, rows: Arc<Rows>) {
        let undo = self.clone();
        let thread = std::thread::Builder::new().name("undo".into());
        let thread = thread.spawn(move || undo.run(&rows)).expect("a thread at start");
        *self.thread.lock() = Some(thread);
    }

    fn run(&self, rows: &Rows) {
        while !*self.is_stopping.lock() {
            match rows.undo_step(UNDO_STEP) {
                Ok(true) => {}
                Ok(false) | Err(Error::ShuttingDown) => return,
                // The loser stays active and its rows stay locked: `Rows::rolling_back_error` says why.
                Err(_) => {
                    let stopping = self.is_stopping.lock();
                    if !*stopping {
                        drop(self.condvar.wait_timeout(stopping, UNDO_PAUSE));
                    }
                }
            }
        }
    }

    fn stop(&self) {
        *self.is_stopping.lock() = true;
        self.condvar.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_background();
    }
}
