//! The engine as a whole: opening in the right order, closing.
//!
//! ```text
//!   pager redo, our observer looking on  ->  trees  ->  checkpoint hook  ->  undo of losers that changed keys or definitions  ->  map of databases, counts
//!     ->  losers that changed rows only become active transactions again  ->  accounts  ->  background: expiry, purge; undo of those losers
//! ```
//! The hook comes before the undo: a checkpoint in between must not pass the first record of a transaction that is still to be undone (E9).

use std::sync::Arc;
use std::time::Duration;

use os::{Clock, Folder};
use pager::{Background, Pager, RedoTable};
use stdx::hash::Seed;
use stdx::sync::{Condvar, Mutex};
use stdx::watermark::Watermark;

use crate::accounts::Accounts;
use crate::catalog::Settings;
use crate::check::{self, Report};
use crate::error::{Error, Result};
use crate::keyspace::{Keyspace, Others, Progress};
use crate::metrics::Metrics;
use crate::rows::Rows;
use crate::rows::lock::{LockTable, PARTITIONS};
use crate::txn::{Recovery, Store};

/// What is known about opening, for the log line at start.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The folder was empty.
    pub created: bool,
    pub pager: pager::RecoveryReport,
    /// Units and transactions that the crash had cut and that were taken back.
    pub undone: usize,
    /// Transactions that the crash had cut and that are taken back beside the service, and how many changes they have made.
    pub rolling_back: usize,
    pub rolling_back_changes: u64,
}

/// How the engine is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `pager.background` also decides whether the engine's own background is a thread or is stepped by hand.
    pub pager: pager::Options,
    /// Names a new database and seeds RANDOMKEY.
    pub random: u64,
    /// Memory for old versions of rows, in bytes; 0: 64 MiB. Beyond it they go to files.
    pub versions_max: u64,
    /// Partitions of the table of row locks; 0: 64.
    pub lock_partitions: usize,
}

/// How far a start has come.
#[derive(Clone, Copy, Debug)]
pub enum Recovering<'r> {
    /// The log is applied.
    Redo(&'r pager::RecoveryReport),
    /// What was not decided is taken back: so many of so many rows and keys.
    Undo { done: u64, of: u64 },
}

const VERSIONS_MAX: u64 = 64 << 20;

pub struct Engine {
    store: Arc<Store>,
    keyspace: Arc<Keyspace>,
    rows: Arc<Rows>,
    accounts: Accounts,
    settings: Settings,
    metrics: Arc<Metrics>,
    opened: Opened,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    undo: Arc<UndoThread>,
}

impl Engine {
    /// Opens a data folder, making it if it is empty. When this returns, everything acknowledged is there, and of what was not decided nothing is seen; its rows may be locked for a while.
    pub fn open(options: Options, folder: Arc<dyn Folder>, clock: Arc<dyn Clock>) -> Result<Arc<Engine>> {
        Self::open_with(options, folder, clock, &|_| {})
    }

    /// The same, telling how far recovery has come.
    pub fn open_with(
        options: Options,
        folder: Arc<dyn Folder>,
        clock: Arc<dyn Clock>,
        progress: &dyn Fn(Recovering<'_>),
    ) -> Result<Arc<Engine>> {
        let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
        let versions_max = if options.versions_max == 0 { VERSIONS_MAX } else { options.versions_max };
        let mut recovery = Recovery::new(folder.clone(), versions_max);
        let threaded = options.pager.background == Background::Threads;
        let opened = Pager::open(
            folder,
            clock.clone(),
            pager::Options { checkpoint_needs_hook: true, ..options.pager.clone() },
            redo,
            &mut recovery,
            options.random,
            &|done| progress(Recovering::Redo(done)),
        )?;
        if let Some(error) = recovery.damage.take() {
            return Err(error);
        }
        let metrics = Arc::new(Metrics::default());
        let store = Arc::new(Store::open(opened.pager.clone(), metrics.clone(), threaded)?);
        recovery.announce(&store);
        let partitions = if options.lock_partitions == 0 { PARTITIONS } else { options.lock_partitions };
        // Keys and rows are locked in one table.
        let locks = LockTable::new(versions_max, partitions);
        let keyspace = Arc::new(Keyspace::new(store.clone(), clock, locks, options.random));
        let hooked = Arc::downgrade(&keyspace);
        opened.pager.set_checkpoint_hook(Box::new(move || match hooked.upgrade() {
            Some(keyspace) => keyspace.cut(threaded),
            None => 0,
        }));
        let undone = recovery.undo_losers(&store, &|done, of| progress(Recovering::Undo { done, of }))?;
        keyspace.settle(&recovery)?;
        let rows = open_rows(&keyspace, versions_max, recovery.seed());
        rows.adopt(recovery.lost());
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

    /// Everything at or below this position of the log survives a crash.
    pub fn durable(&self) -> &Arc<Watermark> {
        self.store.pager.durable()
    }

    pub fn keyspace(&self) -> &Arc<Keyspace> {
        &self.keyspace
    }

    /// Maps of rows, for SQL.
    pub fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }

    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// One step of expiry, purge and undo by hand, of about so many records.
    pub fn background_once(&self, budget: usize) -> Result<Progress> {
        let has_more = self.undo_once(budget)?;
        let progress = self.keyspace.background_step(budget)?;
        Ok(if has_more { Progress { more: true, ..progress } } else { progress })
    }

    /// One step of undoing what the last crash has cut, by hand. True: there is more to undo.
    pub fn undo_once(&self, budget: usize) -> Result<bool> {
        self.rows.undo_step(budget)
    }

    /// Walks over everything and names what is wrong. Nothing else may be going on, the background included (`stop_background`).
    pub fn check(&self) -> Result<Report> {
        check::check(&self.store, &self.keyspace, &self.rows)
    }

    /// Ends the background, makes everything durable, writes all pages and a checkpoint. What is not undone by then the next opening undoes: the checkpoint does not pass it (E9).
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
            // A panic of the background has been printed; closing goes on.
            let _ = thread.join();
        }
    }
}

/// Rows share the keyspace's background thread.
fn open_rows(keyspace: &Arc<Keyspace>, versions_max: u64, seed: Seed) -> Arc<Rows> {
    let call = |how: fn(&Keyspace)| -> Box<dyn Fn() + Send + Sync> {
        let keyspace = Arc::downgrade(keyspace);
        Box::new(move || {
            if let Some(keyspace) = keyspace.upgrade() {
                how(&keyspace);
            }
        })
    };
    let rows = Arc::new(Rows::new(keyspace, versions_max, seed, call(Keyspace::ring), call(Keyspace::wake)));
    let work = rows.clone();
    let others: Others = Box::new(move |budget| work.background_step(budget));
    assert!(keyspace.others.set(others).is_ok(), "set once");
    rows
}

/// Undoes the losers of the last crash, and ends when that is done.
#[derive(Default)]
struct UndoThread {
    is_stopping: Mutex<bool>,
    bell: Condvar,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// Records of one step: a stop waits no longer than for these.
const UNDO_STEP: usize = 256;
/// How soon undo tries again what failed. A full disk is asked often: rows are locked for want of it.
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
                // The loser stays active and its rows locked: `Rows::rolling_back_error` says why.
                Err(_) => {
                    let stopping = self.is_stopping.lock();
                    if !*stopping {
                        drop(self.bell.wait_timeout(stopping, UNDO_PAUSE));
                    }
                }
            }
        }
    }

    fn stop(&self) {
        *self.is_stopping.lock() = true;
        self.bell.notify_all();
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
