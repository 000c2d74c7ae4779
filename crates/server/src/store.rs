//! The data of a server: locking its folder or getting its lease, opening the engine, and what each failure means to the operator.

use std::cell::Cell;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{CopyOptions, CopyTarget, DATA_FILE, DOUBLE_WRITE_FILE, Engine, Error, Options, Recovering};
use os::{Folder, RealClock, RealFolder};

use crate::exit::{Exit, Failure};
use crate::log;
use crate::machine;
use crate::memory;
use crate::settings::{Name, Settings};
use crate::shared::{self, Leased, Patience};

/// Interval at which a long recovery reports its progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Interval at which the end of a rollback is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Size of a WAL segment in shared storage. All openings must agree on it, and an object should stay small, so it is no setting.
const SHARED_SEGMENT_BYTES: u64 = 16 << 20;

/// Threads that read and write the pages of a copy, each with a buffer of 4 MiB.
const COPY_THREADS: usize = 4;

/// Which part of the WAL recovery applies: all of it, or up to a point at which a backup is restored; and whether a restore has prepared the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until {
    pub lsn: Option<u64>,
    /// In milliseconds since 1970.
    pub wall_ms: Option<u64>,
    /// The data was prepared by a copy, and is to be completed.
    pub is_prepared: bool,
}

/// Locks the folder that the setting `name` names (SV-4). Creates it first if `create` is set.
fn folder(name: &str, path: &Path, create: bool) -> Result<Arc<RealFolder>, Failure> {
    let shown = path.display();
    let opened = RealFolder::open(path, create).map_err(|e| {
        let what = match e.kind() {
            // Commands that name a folder never create it. The server's folder comes from --data.
            std::io::ErrorKind::NotFound if !create => format!("the folder {shown} does not exist"),
            _ => format!("{name}: folder {shown} cannot be used: {e}; choose another with --{name}"),
        };
        Failure::new(Exit::Create, what)
    })?;
    opened.lock().map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new(
            Exit::Busy,
            format!("{name}: folder {shown} is {e}; stop it, or choose another folder with --{name}"),
        ),
        _ => Failure::new(
            Exit::Create,
            format!("{name}: folder {shown} cannot be written: {e}; choose another with --{name}"),
        ),
    })?;
    Ok(opened)
}

/// Returns the folder on this machine that belongs to the data: the data folder itself, or `scratch` if the data is in shared storage.
pub fn local_folder(settings: &Settings, data: &str) -> Result<PathBuf, Failure> {
    let is_shared = shared::address(settings, data)?.is_some();
    Ok(PathBuf::from(if is_shared { settings.text(Name::Scratch) } else { data.to_owned() }))
}

/// The data of a server, held by this process alone: a locked folder, or a lease and a locked folder for what is local.
pub struct Held {
    shown: String,
    folder: Arc<RealFolder>,
    pub leased: Option<Leased>,
}

impl Held {
    /// Locks the folder, and gets the lease if `data` is in shared storage. `None` if the caller's patience has ended before. A data folder is created if `create` is set.
    pub fn acquire(
        settings: &Settings,
        data: &str,
        create: bool,
        patience: Patience<'_>,
    ) -> Result<Option<Held>, Failure> {
        let Some(address) = shared::address(settings, data)? else {
            let folder = folder("data", Path::new(data), create)?;
            return Ok(Some(Held { shown: format!("folder {data}"), folder, leased: None }));
        };
        let path = local_folder(settings, data)?;
        let folder = folder("scratch", &path, true)?;
        if path.join(DATA_FILE).exists() {
            let what =
                format!("scratch: the folder {} holds a database; choose another with --scratch", path.display());
            return Err(Failure::new(Exit::Config, what));
        }
        let leased = Leased::acquire(&address, create, patience)?;
        Ok(leased.map(|leased| Held { shown: address.to_string(), folder, leased: Some(leased) }))
    }

    /// Opens the engine. A long recovery reports its progress. `segment_bytes` is the size of WAL files created from now on.
    pub fn open(&self, settings: &Settings, until: Until, segment_bytes: u64) -> Result<Arc<Engine>, Failure> {
        let Some(leased) = &self.leased else {
            return open(settings, &self.shown, until, segment_bytes, |options, progress| {
                Engine::open_with(options, self.folder.clone(), Arc::new(RealClock::new()), progress)
            });
        };
        open(settings, &self.shown, until, SHARED_SEGMENT_BYTES, |options, progress| {
            let storage = leased.storage(self.folder.clone());
            Engine::open_shared(options, storage, Arc::new(RealClock::new()), progress)
        })
    }

    /// Locks the folder that this data is copied to, or gets the lease of such a database in shared storage. Nobody may serve it.
    pub fn acquire_target(&self, settings: &Settings, to: &str) -> Result<Held, Failure> {
        let Some(address) = shared::address(settings, to)? else {
            return Ok(Held {
                shown: format!("folder {to}"),
                folder: folder("to", Path::new(to), true)?,
                leased: None,
            });
        };
        let leased = Leased::acquire(&address, true, Patience::WhileSilent)?;
        // A copy keeps no files on this machine, so there is no folder to lock.
        Ok(Held { shown: address.to_string(), folder: self.folder.clone(), leased })
    }

    /// Returns the storage for a copy into it.
    pub fn copy_target(&self) -> CopyTarget {
        match &self.leased {
            None => CopyTarget::Folder(self.folder.clone()),
            Some(leased) => CopyTarget::Shared(leased.storage(self.folder.clone())),
        }
    }

    /// Returns how to copy into it.
    pub fn copy_options(&self, settings: &Settings, overwrites: bool) -> Result<CopyOptions, Failure> {
        let segment_bytes =
            if self.leased.is_some() { SHARED_SEGMENT_BYTES } else { settings.number(Name::LogSegment) };
        Ok(CopyOptions { random: machine::random()?, segment_bytes, overwrites, threads: COPY_THREADS })
    }

    /// Returns whether the folder holds a backup: a database that nobody has served from it, since it has no file for double writes.
    pub fn is_backup(&self) -> Result<bool, Failure> {
        let names = self.folder.list().map_err(|e| self.failure_of_folder(&e))?;
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        Ok(has(DATA_FILE) && !has(DOUBLE_WRITE_FILE))
    }

    /// Lets a backup that was opened and closed in order be restored: its pages are whole without the file for double writes.
    pub fn remains_backup(&self) -> Result<(), Failure> {
        self.folder.remove(DOUBLE_WRITE_FILE).map_err(|e| self.failure_of_folder(&e))
    }

    fn failure_of_folder(&self, error: &std::io::Error) -> Failure {
        Failure::new(Exit::Io, format!("data: {}: {error}", self.shown))
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Turns an error of the engine into the end of the program.
    pub fn failure(&self, error: Error) -> Failure {
        failure(&self.shown, error)
    }

    /// Lets others have the data. The engine must be closed.
    pub fn release(self) {
        if let Some(leased) = self.leased {
            leased.release();
        }
    }
}

/// Reports the progress of recovery.
type Progress<'p> = &'p dyn Fn(Recovering<'_>);

fn open(
    settings: &Settings,
    shown: &str,
    until: Until,
    segment_bytes: u64,
    open: impl FnOnce(Options, Progress<'_>) -> Result<Arc<Engine>, Error>,
) -> Result<Arc<Engine>, Failure> {
    let shares = memory::divide(settings.number(Name::Memory), settings.number(Name::LogBuffer))
        .map_err(|e| Failure::new(Exit::Config, e))?;
    if !shares.log_buffer_bytes.is_power_of_two() {
        return Err(Failure::new(Exit::Config, "log_buffer: expected a power of two, such as 8mb"));
    }
    let mut options = Options { random: machine::random()?, ..Options::default() };
    options.versions_max = shares.versions_bytes();
    options.lock_partitions = settings.number(Name::LockPartitions) as usize;
    options.pager.frame_bytes = shares.frame_bytes;
    options.pager.ring_bytes = shares.log_buffer_bytes as usize;
    options.pager.segment_bytes = segment_bytes;
    options.pager.recovery_bytes = shares.recovery_bytes();
    options.pager.checkpoint_distance = settings.number(Name::CheckpointDistance);
    options.pager.recovery_target.lsn = until.lsn;
    options.pager.recovery_target.wall_ms = until.wall_ms;
    options.pager.opens_incomplete = until.is_prepared;
    let begin = Instant::now();
    // Counted from the first record of the WAL. After a clean stop there is one record, however long the folder took to open.
    let told: Cell<Option<Instant>> = Cell::new(None);
    let opened = open(options, &|done| {
        let last = told.get().unwrap_or_else(Instant::now);
        let is_due = last.elapsed() >= PROGRESS_EVERY;
        told.set(Some(if is_due { Instant::now() } else { last }));
        if is_due {
            match done {
                Recovering::Redo(done) => {
                    log::warn("recovering", &[("from", &done.from), ("at", &done.to), ("records", &done.records)]);
                }
                Recovering::Undo { done, of } => {
                    log::warn("rolling back uncommitted transactions", &[("done", &done), ("of", &of)]);
                }
            }
        }
    });
    let engine = opened.map_err(|e| failure(shown, e))?;
    let opened = engine.opened();
    for (page, what) in &opened.pager.damaged {
        log::error("damaged page", &[("page", page), ("what", what)]);
    }
    log::info(
        "data opened",
        &[
            ("data", &shown),
            ("created", &opened.created),
            ("log_from", &opened.pager.from),
            ("log_to", &opened.pager.to),
            ("records", &opened.pager.records),
            ("applied", &opened.pager.applied),
            ("undone", &opened.undone),
            ("rolling_back", &opened.rolling_back),
            ("ms", &begin.elapsed().as_millis()),
        ],
    );
    Ok(engine)
}

/// Logs the progress of the rollback of transactions that a crash interrupted. Calls `over` when it is done.
pub fn log_rollback(engine: &Arc<Engine>, over: impl FnOnce() + Send + 'static) {
    let opened = engine.opened();
    if opened.rolling_back == 0 {
        return;
    }
    let (transactions, changes) = (opened.rolling_back, opened.rolling_back_changes);
    log::warn(
        "rolling back beside the service what was not committed; its rows are locked",
        &[("transactions", &transactions), ("changes", &changes)],
    );
    let engine = Arc::downgrade(engine);
    let body = move || {
        let (begin, mut told) = (Instant::now(), Instant::now());
        loop {
            std::thread::sleep(LOOK_EVERY);
            // The server has stopped. The next start continues the rollback.
            let Some(engine) = engine.upgrade() else { return };
            let left = engine.rows().rolling_back();
            if left.is_empty() {
                break;
            }
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                let to_do: u64 = left.iter().map(|loser| loser.changes - loser.done).sum();
                let mut fields: Vec<(&str, &dyn Display)> = Vec::new();
                let (count, done, error) = (left.len(), changes - to_do, engine.rows().rolling_back_error());
                fields.extend([("transactions", &count as _), ("done", &done as _), ("of", &changes as _)]);
                fields.extend(error.as_ref().map(|error| ("error", error as _)));
                log::warn("rolling back", &fields);
            }
        }
        let ms = begin.elapsed().as_millis();
        log::info("rolled back", &[("transactions", &transactions), ("changes", &changes), ("ms", &ms)]);
        over();
    };
    if let Err(error) = std::thread::Builder::new().name("rollback-log".into()).spawn(body) {
        log::warn("the progress of the rollback will not be logged", &[("error", &error)]);
    }
}

/// Converts an error of the engine to the end of the program.
fn failure(shown: &str, error: Error) -> Failure {
    let exit = match &error {
        Error::Corrupt { .. } | Error::Format(_) => Exit::Data,
        Error::DiskFull | Error::Io(_) => Exit::Io,
        Error::Fenced(_) => Exit::Fenced,
        _ => Exit::Internal,
    };
    let way_out = match &error {
        Error::Corrupt { .. } => "; `beluga check` lists all damage, `beluga restore` restores a backup",
        Error::DiskFull => "; free some space on its disk",
        _ => "",
    };
    Failure::new(exit, format!("data: {shown}: {error}{way_out}"))
}
