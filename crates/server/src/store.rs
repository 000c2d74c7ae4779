//! The data folder of a server: locking it, opening the engine in it, and what each failure means to the operator.

use std::cell::Cell;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Engine, Error, Options, Recovering};
use os::{RealClock, RealFolder};

use crate::exit::{Exit, Failure};
use crate::log;
use crate::memory;
use crate::settings::{Name, Settings};

/// Interval at which a long recovery reports its progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Interval at which the end of a rollback is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Which part of the WAL recovery applies: all of it, or up to a point at which a backup is restored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until {
    pub lsn: Option<u64>,
    /// In milliseconds since 1970.
    pub wall_ms: Option<u64>,
}

/// Locks the folder `data` (SV-4). Creates it first if `create` is set.
pub fn folder(path: &Path, create: bool) -> Result<Arc<RealFolder>, Failure> {
    let shown = path.display();
    let opened = RealFolder::open(path, create).map_err(|e| {
        let what = match e.kind() {
            // Commands that name a folder never create it. The server's folder comes from --data.
            std::io::ErrorKind::NotFound if !create => format!("the folder {shown} does not exist"),
            _ => format!("data: folder {shown} cannot be used: {e}; choose another with --data"),
        };
        Failure::new(Exit::Create, what)
    })?;
    opened.lock().map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new(
            Exit::Busy,
            format!("data: folder {shown} is {e}; stop it, or choose another folder with --data"),
        ),
        _ => Failure::new(
            Exit::Create,
            format!("data: folder {shown} cannot be written: {e}; choose another with --data"),
        ),
    })?;
    Ok(opened)
}

/// Opens the engine. A long recovery reports its progress. `segment_bytes` is the size of WAL files created from now on.
pub fn open(
    settings: &Settings,
    folder: Arc<RealFolder>,
    until: Until,
    segment_bytes: u64,
) -> Result<Arc<Engine>, Failure> {
    let shares = memory::divide(settings.number(Name::Memory), settings.number(Name::LogBuffer))
        .map_err(|e| Failure::new(Exit::Config, e))?;
    if !shares.log_buffer_bytes.is_power_of_two() {
        return Err(Failure::new(Exit::Config, "log_buffer: expected a power of two, such as 8mb"));
    }
    let mut options = Options { random: random()?, ..Options::default() };
    options.versions_max = shares.versions_bytes();
    options.lock_partitions = settings.number(Name::LockPartitions) as usize;
    options.pager.frame_bytes = shares.frame_bytes;
    options.pager.ring_bytes = shares.log_buffer_bytes as usize;
    options.pager.segment_bytes = segment_bytes;
    options.pager.recovery_bytes = shares.recovery_bytes();
    options.pager.checkpoint_distance = settings.number(Name::CheckpointDistance);
    options.pager.recovery_target.lsn = until.lsn;
    options.pager.recovery_target.wall_ms = until.wall_ms;
    let path = folder.path().display().to_string();
    let begin = Instant::now();
    // Counted from the first record of the WAL. After a clean stop there is one record, however long the folder took to open.
    let told: Cell<Option<Instant>> = Cell::new(None);
    let opened = Engine::open_with(options, folder, Arc::new(RealClock::new()), &|done| {
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
    let engine = opened.map_err(|e| failure(&path, e))?;
    let opened = engine.opened();
    for (page, what) in &opened.pager.damaged {
        log::error("damaged page", &[("page", page), ("what", what)]);
    }
    log::info(
        "data opened",
        &[
            ("folder", &path),
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
pub fn failure(path: &str, error: Error) -> Failure {
    let exit = match &error {
        Error::Corrupt { .. } | Error::Format(_) => Exit::Data,
        Error::DiskFull | Error::Io(_) => Exit::Io,
        _ => Exit::Internal,
    };
    let way_out = match &error {
        Error::Corrupt { .. } => "; `beluga check` lists all damage, `beluga restore` restores a backup",
        Error::DiskFull => "; free some space on its disk",
        _ => "",
    };
    Failure::new(exit, format!("data: folder {path}: {error}{way_out}"))
}

fn random() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    os::entropy(&mut bytes)
        .map_err(|e| Failure::new(Exit::Io, format!("the operating system provides no random numbers: {e}")))?;
    Ok(u64::from_le_bytes(bytes))
}
