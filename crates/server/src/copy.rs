//! `beluga check` and `beluga backup`: operations on a whole database.

use std::path::Path;
use std::sync::Arc;

use engine::Engine;
use os::RealFolder;
use sql_mysql::Database;

use crate::control;
use crate::exit::{Exit, Failure, say};
use crate::log;
use crate::settings::load::Arguments;
use crate::settings::{Name, Settings};
use crate::shared::{self, Patience};
use crate::store::{self, Held, Until};

/// Options of an engine that is opened only to check or to copy: it writes little WAL, possibly to a disk that is nearly full.
const BRIEF_SEGMENT_BYTES: u64 = 1 << 20;

/// Checks everything in a folder that no server uses. Recovery brings the folder up to date first, as at any start.
pub fn check(settings: &Settings, path: &str) -> Result<(), Failure> {
    let held = hold(settings, path)?;
    let is_backup = held.is_backup()?;
    let engine = open(settings, &held)?;
    engine.stop_background();
    let checked = engine.check().map(|mut report| {
        let problems = &mut report.problems;
        let tables = check_tables(&engine, problems);
        let damaged = &engine.opened().pager.damaged;
        problems.extend(damaged.iter().map(|(page, what)| format!("page {page} of file 'data': {what}")));
        (report, tables)
    });
    // In order also after an error: a backup stays one.
    engine.close().map_err(|e| held.failure(e))?;
    if is_backup {
        held.remains_backup()?;
    }
    let (report, tables) = checked.map_err(|e| held.failure(e))?;
    let problems = report.problems;
    let shown = held.shown().to_owned();
    held.release();
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
    Err(Failure::new(Exit::Data, format!("data: {shown}: {} problems, listed above; {way_out}", problems.len())))
}

/// Copies the database in `--from` to `--to`: through its server if one is running, otherwise directly. With `--renew`, brings the WAL of an earlier copy up to
/// date.
pub fn backup(settings: &Settings, arguments: &Arguments) -> Result<(), Failure> {
    let (from, to) = (required(arguments, "from")?, required(arguments, "to")?);
    shared::only_folder("to", to)?;
    let to = std::path::absolute(to).map_err(|e| Failure::new(Exit::Create, format!("--to: {e}")))?;
    let renew = arguments.has("renew");
    let request = request(&to, renew)?;
    let local = store::local_folder(settings, from)?;
    let done = match control::ask(&local, &request, &mut |text| say(&format!("{text}\n"))) {
        Some(done) => done.map_err(|e| Failure::new(Exit::Io, format!("--to: {e}")))?,
        None => {
            if local == Path::new(from) && !local.join(engine::DATA_FILE).exists() {
                return Err(Failure::new(Exit::Usage, format!("--from: {from} is not a data folder")));
            }
            let held = hold(settings, from)?;
            let engine = open(settings, &held)?;
            let done = serve(&engine, &request, &mut |text| say(&format!("{text}\n")));
            engine.close().map_err(|e| held.failure(e))?;
            held.release();
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

/// Locks a folder that no server uses, or gets the lease of a shared database that no server uses.
pub fn hold(settings: &Settings, data: &str) -> Result<Held, Failure> {
    Ok(Held::acquire(settings, data, false, Patience::WhileSilent)?.expect("it has the lease or fails"))
}

pub fn open(settings: &Settings, held: &Held) -> Result<Arc<Engine>, Failure> {
    held.open(settings, Until::default(), settings.number(Name::LogSegment).min(BRIEF_SEGMENT_BYTES))
}

pub fn required<'a>(arguments: &'a Arguments, option: &str) -> Result<&'a str, Failure> {
    arguments
        .option(option)
        .ok_or_else(|| Failure::new(Exit::Usage, format!("--{option} DIR is missing; see beluga --help")))
}
