//! `beluga copy` and `beluga restore`: a database written into another place, a folder or shared storage.
//!
//! Both places are held to the end (SV-7). Hard part: no command that is interrupted may leave something that looks like a database. The target says that it is incomplete until the last step (PG-36), so a server refuses it;
//! the command is run again with `--overwrite`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::{Engine, PAGE_BYTES, PreparedCopy, StorageError, copy_backup};
use os::{Folder, RealFolder};

use crate::copy::{hold, open, required};
use crate::exit::{Exit, Failure, say};
use crate::log;
use crate::settings::load::Arguments;
use crate::settings::{Name, Settings};
use crate::shared::{self, Patience};
use crate::store::{Held, Until};

/// Interval at which a long copy reports its progress, unless ten percent are done before.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// Pages that are named in a message.
const PAGES_SHOWN: usize = 10;

/// Prints the progress of a copy.
struct ProgressLines {
    begin: Instant,
    /// Tens of percent and the moment of the last line.
    told: Mutex<(u64, Instant)>,
}

fn rate(bytes: u64, begin: Instant) -> String {
    format!("{:.1} MB/s", bytes as f64 / 1e6 / begin.elapsed().as_secs_f64().max(1e-6))
}

impl ProgressLines {
    fn new() -> ProgressLines {
        let begin = Instant::now();
        ProgressLines { begin, told: Mutex::new((0, begin)) }
    }

    fn tell(&self, done: u64, whole: u64) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let tens = done * 10 / whole.max(1);
        if tens <= told.0 && told.1.elapsed() < PROGRESS_EVERY {
            return;
        }
        *told = (tens.max(told.0), Instant::now());
        let page = PAGE_BYTES as u64;
        say(&format!(
            "{} % of {whole} bytes ({} of {} pages), {}\n",
            done * 100 / whole.max(1),
            done / page,
            whole / page,
            rate(done, self.begin)
        ));
    }
}

/// Copies the database `--from` to `--to`; nobody may serve either.
pub fn copy(settings: &Settings, arguments: &Arguments) -> Result<(), Failure> {
    let (from, to) = (required(arguments, "from")?, required(arguments, "to")?);
    if from == to {
        return Err(Failure::new(Exit::Usage, format!("--to: {to} is the database that is copied")));
    }
    if shared::address(settings, from)?.is_none() && !Path::new(from).join(engine::DATA_FILE).exists() {
        return Err(Failure::new(Exit::Usage, format!("--from: {from} is not a data folder")));
    }
    let source = hold(settings, from)?;
    let target = source.acquire_target(settings, to)?;
    let options = target.copy_options(settings, arguments.has("overwrite"))?;
    let progress = ProgressLines::new();
    let engine = open(settings, &source)?;
    engine.stop_background();
    // What recovery has changed is written, so that little of the WAL remains to be copied.
    let copied = engine.pager().checkpoint_all().and_then(|_| {
        let tell = |done, whole| progress.tell(done, whole);
        engine.pager().copy(&target.copy_target(), options, &tell)
    });
    let copied = copied.map_err(|error| failed("copy", &target, error));
    let copied = copied.and_then(|copied| check_suspects(&engine, &copied, from).map(|()| copied));
    let sizes = copied.as_ref().map(|copied| (copied.page_bytes, copied.wal_bytes));
    let sizes = sizes.map_err(|_| ()).unwrap_or_default();
    let done = copied.and_then(|copied| copied.finish().map_err(|error| target.failure(error.into())));
    let closed = engine.close().map_err(|error| source.failure(error));
    target.release();
    source.release();
    done?;
    closed?;
    let (begin, (pages, wal)) = (progress.begin, sizes);
    log::info("copy done", &[("from", &from), ("to", &to), ("bytes", &(pages + wal))]);
    say(&format!(
        "{to}: {} bytes copied, {} pages and {wal} bytes of WAL; {:.1} s, {}\n",
        pages + wal,
        pages / PAGE_BYTES as u64,
        begin.elapsed().as_secs_f64(),
        rate(pages + wal, begin)
    ));
    Ok(())
}

/// Converts an error of a copy into `target`.
fn failed(command: &str, target: &Held, error: StorageError) -> Failure {
    match error {
        StorageError::Format(what) => Failure::new(Exit::Create, format!("{command}: {}: {what}", target.shown())),
        error => target.failure(error.into()),
    }
}

/// Fails if pages of the source are damaged. Values of users may look like damaged pages, so everything is checked before that is said.
fn check_suspects(engine: &Arc<Engine>, copied: &PreparedCopy, from: &str) -> Result<(), Failure> {
    if copied.suspects.is_empty() {
        return Ok(());
    }
    let problems = match engine.check() {
        Ok(report) => report.problems,
        Err(error) => vec![error.to_string()],
    };
    let Some(first) = problems.first() else { return Ok(()) };
    Err(Failure::new(
        Exit::Data,
        format!(
            "--from: {from} is damaged, and the copy is not completed: {} problems, first: {first}; pages with a wrong checksum: {}; `beluga check` lists all, `beluga restore` restores a backup",
            problems.len(),
            pages(copied)
        ),
    ))
}

/// Returns the suspects as a text.
fn pages(copied: &PreparedCopy) -> String {
    let shown: Vec<String> = copied.suspects.iter().take(PAGES_SHOWN).map(u64::to_string).collect();
    let more = if copied.suspects.len() > PAGES_SHOWN { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Creates the database `--to` from the backup `--from`, as of the end of its WAL or of an earlier point.
pub fn restore(settings: &Settings, arguments: &Arguments) -> Result<(), Failure> {
    let (from, to) = (required(arguments, "from")?, required(arguments, "to")?);
    shared::only_folder("from", from)?;
    let until = until(arguments)?;
    let source = RealFolder::open(Path::new(from), false)
        .map_err(|error| Failure::new(Exit::Create, format!("{from}: {error}")))?;
    let source: Arc<dyn Folder> = source;
    let held = Held::acquire(settings, to, true, Patience::WhileSilent)?.expect("it has the lease or fails");
    let options = held.copy_options(settings, arguments.has("overwrite"))?;
    let progress = ProgressLines::new();
    let tell = |done, whole| progress.tell(done, whole);
    let prepared =
        copy_backup(&source, &held.copy_target(), options, &tell).map_err(|error| failed("restore", &held, error))?;
    let until = Until { is_prepared: true, ..until };
    let engine = held.open(settings, until, settings.number(Name::LogSegment))?;
    let end = engine.opened().pager.to;
    engine.pager().complete().map_err(|error| held.failure(error.into()))?;
    engine.close().map_err(|error| held.failure(error))?;
    held.release();
    if !prepared.suspects.is_empty() {
        let which = pages(&prepared);
        log::warn("pages of the backup look damaged; `beluga check` tells", &[("from", &from), ("pages", &which)]);
    }
    say(&format!("{to}: restored to LSN {end}\n"));
    Ok(())
}

fn until(arguments: &Arguments) -> Result<Until, Failure> {
    let usage = |option: &str, expected: &str| Failure::new(Exit::Usage, format!("--{option}: expected {expected}"));
    let lsn = arguments.option("until-lsn").map(|t| t.parse().map_err(|_| usage("until-lsn", "an LSN, a number")));
    let wall_ms = arguments
        .option("until-time")
        .map(|t| log::parse_time(t).ok_or_else(|| usage("until-time", "a time like 2026-11-20T22:36:01Z")));
    Ok(Until { lsn: lsn.transpose()?, wall_ms: wall_ms.transpose()?, is_prepared: false })
}
