//! `beluga check`, `beluga backup` and `beluga restore`: operations on a whole data folder.

use std::path::Path;
use std::sync::Arc;

use engine::Engine;
use os::{Folder, RealFolder};
use sql_mysql::Database;

use crate::control;
use crate::exit::{Exit, Failure, say};
use crate::log;
use crate::settings::load::Arguments;
use crate::settings::{Name, Settings};
use crate::store::{self, Until};

/// Options of an engine that is opened only to check or to copy: it writes little WAL, possibly to a disk that is nearly full.
const BRIEF_SEGMENT_BYTES: u64 = 1 << 20;

/// Checks everything in a folder that no server uses. Recovery brings the folder up to date first, as at any start.
pub fn check(settings: &Settings, path: &str) -> Result<(), Failure> {
    let engine = open(settings, path, Until::default())?;
    engine.stop_background();
    let report = engine.check().map_err(|e| store::failure(path, e))?;
    let mut problems = report.problems;
    let tables = check_tables(&engine, &mut problems);
    problems
        .extend(engine.opened().pager.damaged.iter().map(|(page, what)| format!("page {page} of file 'data': {what}")));
    engine.close().map_err(|e| store::failure(path, e))?;
    let mut text = format!(
        "{path}: {} keys, {} tables, {} rows, {} index entries, {} elements, {} tree pages, {} value pages, {} expiry entries, {} purge entries\n",
        report.keys,
        tables.tables,
        tables.rows,
        tables.entries,
        report.elements,
        report.tree_pages,
        report.value_pages,
        report.expiry_entries,
        report.queued
    );
    tables.notes.iter().chain(&problems).for_each(|line| text += &format!("{line}\n"));
    if problems.is_empty() {
        say(&(text + "no damage found\n"));
        return Ok(());
    }
    say(&text);
    let way_out = "restore a backup with `beluga restore`";
    Err(Failure::new(Exit::Data, format!("data: folder {path}: {} problems, listed above; {way_out}", problems.len())))
}

/// Copies the database in `--from` to `--to`: through its server if one is running, otherwise directly. With `--renew`, brings the WAL of an earlier copy up to
/// date.
pub fn backup(settings: &Settings, arguments: &Arguments) -> Result<(), Failure> {
    let (from, to) = (required(arguments, "from")?, required(arguments, "to")?);
    let to = std::path::absolute(to).map_err(|e| Failure::new(Exit::Create, format!("--to: {e}")))?;
    let renew = arguments.has("renew");
    let request = request(&to, renew)?;
    let done = match control::ask(Path::new(from), &request, &mut |text| say(&format!("{text}\n"))) {
        Some(done) => done.map_err(|e| Failure::new(Exit::Io, format!("--to: {e}")))?,
        None => {
            if !Path::new(from).join("data").exists() {
                return Err(Failure::new(Exit::Usage, format!("--from: {from} is not a data folder")));
            }
            let engine = open(settings, from, Until::default())?;
            let done = serve(&engine, &request, &mut |text| say(&format!("{text}\n")));
            engine.close().map_err(|e| store::failure(from, e))?;
            done.map_err(|e| Failure::new(Exit::Io, format!("--to: {e}")))?
        }
    };
    say(&format!("{done}\n"));
    Ok(())
}

fn request(to: &Path, renew: bool) -> Result<String, Failure> {
    let to = to.to_str().filter(|t| !t.contains('\n'));
    let to = to.ok_or_else(|| Failure::new(Exit::Usage, "--to: the name of the folder must be text of one line"))?;
    Ok(format!("{} {to}", if renew { "renew" } else { "backup" }))
}

/// Runs a backup in the server. Also used by the command if no server is running.
pub fn serve(engine: &Arc<Engine>, request: &str, tell: &mut dyn FnMut(&str)) -> Result<String, String> {
    let (word, to) = request.split_once(' ').ok_or("not a request")?;
    let create = match word {
        "backup" => true,
        "renew" => false,
        _ => return Err(format!("unknown request '{word}'")),
    };
    let target = RealFolder::open(Path::new(to), create).map_err(|e| format!("{to}: {e}"))?;
    log::info("backup begins", &[("to", &to), ("renew", &!create)]);
    let tell = std::cell::RefCell::new(tell);
    let percent = std::cell::Cell::new(0);
    let done = if create {
        engine.pager().backup(target.as_ref(), &|done, whole| {
            let now = done * 100 / whole.max(1);
            if now >= percent.get() + 10 {
                percent.set(now);
                (tell.borrow_mut())(&format!("{now} % of {whole} bytes"));
            }
        })
    } else {
        engine.pager().backup_log(target.as_ref())
    };
    let done = done.map_err(|e| format!("{to}: {e}"))?;
    log::info("backup done", &[("to", &to), ("lsn", &done.to), ("bytes", &done.bytes)]);
    Ok(format!(
        "{to}: {} bytes; it can be restored to LSN {} and to any later LSN that its WAL covers",
        done.bytes, done.to
    ))
}

/// Creates the data folder `--to` from the backup `--from`, as of the end of its WAL or of an earlier point.
pub fn restore(settings: &Settings, arguments: &Arguments) -> Result<(), Failure> {
    let (from, to) = (required(arguments, "from")?, required(arguments, "to")?);
    let until = until(arguments)?;
    let fail = |folder: &str, e: std::io::Error| Failure::new(Exit::Create, format!("{folder}: {e}"));
    let source = RealFolder::open(Path::new(from), false).map_err(|e| fail(from, e))?;
    let target = store::folder(Path::new(to), true)?;
    if !target.list().map_err(|e| fail(to, e))?.is_empty() {
        return Err(Failure::new(Exit::Create, format!("--to: folder {to} is not empty; choose a new one")));
    }
    for name in source.list().map_err(|e| fail(from, e))? {
        let path = source.path().join(&name);
        if path.is_file() {
            std::fs::copy(&path, target.path().join(&name)).map_err(|e| fail(&name, e))?;
        }
    }
    let engine = store::open(settings, target, until, settings.number(Name::LogSegment))?;
    let end = engine.opened().pager.to;
    engine.close().map_err(|e| store::failure(to, e))?;
    say(&format!("{to}: restored to LSN {end}\n"));
    Ok(())
}

fn until(arguments: &Arguments) -> Result<Until, Failure> {
    let usage = |option: &str, expected: &str| Failure::new(Exit::Usage, format!("--{option}: expected {expected}"));
    let lsn = arguments.option("until-lsn").map(|t| t.parse().map_err(|_| usage("until-lsn", "an LSN, a number")));
    let wall_ms = arguments
        .option("until-time")
        .map(|t| log::parse_time(t).ok_or_else(|| usage("until-time", "a time like 2026-11-20T22:36:01Z")));
    Ok(Until { lsn: lsn.transpose()?, wall_ms: wall_ms.transpose()? })
}

/// Checks that tables and their indexes agree. An error that stops the check is reported like any other problem.
fn check_tables(engine: &Arc<Engine>, problems: &mut Vec<String>) -> sql_mysql::check::Report {
    let report = Database::open(engine.clone()).and_then(|db| sql_mysql::check::check(&db));
    match report {
        Ok(mut report) => {
            problems.append(&mut report.problems);
            report
        }
        Err(error) => {
            problems.push(format!("tables: {error}"));
            sql_mysql::check::Report::default()
        }
    }
}

fn open(settings: &Settings, path: &str, until: Until) -> Result<Arc<Engine>, Failure> {
    let segment_bytes = settings.number(Name::LogSegment).min(BRIEF_SEGMENT_BYTES);
    store::open(settings, store::folder(Path::new(path), false)?, until, segment_bytes)
}

fn required<'a>(arguments: &'a Arguments, option: &str) -> Result<&'a str, Failure> {
    arguments
        .option(option)
        .ok_or_else(|| Failure::new(Exit::Usage, format!("--{option} DIR is missing; see beluga --help")))
}
