//! `beluga`: reads the settings, opens the engine, starts the worker pool and opens the doors. It closes them in the reverse order.
#![forbid(unsafe_code)]

mod control;
mod copy;
mod exit;
mod hooks;
mod import;
mod log;
mod machine;
mod memory;
mod metrics;
mod redis;
mod serve;
mod settings;
mod shared;
mod stop;
mod store;
mod tls;
mod transfer;

/// `.cargo/config.toml` has the options of the allocator and their reasons.
#[cfg(all(target_env = "gnu", not(miri)))]
#[global_allocator]
static ALLOCATOR: stdx::memory::Counting<tikv_jemallocator::Jemalloc> =
    stdx::memory::Counting(tikv_jemallocator::Jemalloc);

use std::process::ExitCode;

use exit::{Exit, Failure, say};
use machine::Machine;
use settings::load::Arguments;
use settings::{Name, Settings};

const HELP: &str = "\
Beluga, a durable database that speaks Redis, MySQL, PostgreSQL and XRPC.

Usage:
  beluga [--SETTING VALUE ...]                   start the server; SIGTERM or Ctrl-C stops it
  beluga check DIR                               check a database that no server uses
  beluga backup --from DIR --to NEW [--renew]    make a backup of the database in DIR, with or without a running server,
                                                 in the folder NEW; --renew brings the WAL of an earlier backup up to date
  beluga restore --from BACKUP --to NEW [--until-lsn N | --until-time 2026-11-20T22:36:01Z] [--overwrite]
                                                 create a database from a backup, as of the end of its WAL or earlier
  beluga copy --from DIR --to NEW [--overwrite]  copy a database that no server uses to a place where none is. If copy or
                                                 restore are interrupted, NEW is refused by servers until the command
                                                 is run again with --overwrite, which replaces the part that is there
  beluga import FILE [--into DIR] [--replace]    load the keys and functions of an RDB file or an append-only file of
                                                 Redis (its folder, manifest or one file) into DIR (the setting data),
                                                 with or without a running server: all of them or none. The databases of
                                                 the file must be empty; --replace replaces them
  beluga settings                                list every setting with its value, source and description
  beluga counters                                list the counters that /metrics shows

DIR and NEW are folders, or databases in a Ceph cluster: rados:POOL/NAME. A backup is a folder.

Options:
  --config FILE      read settings from a TOML file; the environment variable BELUGA_CONFIG names one, too
  -h, --help         show this help
  -V, --version      show the version

Settings, as flags. The setting of --log-level is log_level in the file and BELUGA_LOG_LEVEL in the environment.
";

fn main() -> ExitCode {
    match Arguments::parse(std::env::args_os().skip(1)).and_then(|a| run(&a)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            failure.code()
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.has("help") {
        say(&format!("{HELP}{}", settings::print::help()));
        return Ok(());
    }
    if arguments.has("version") {
        say(&format!("beluga {}\n", env!("CARGO_PKG_VERSION")));
        return Ok(());
    }
    let words: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["serve"] => serve::run(load(arguments)?),
        ["check", folder] => copy::check(&load(arguments)?, folder),
        ["backup"] => copy::backup(&load(arguments)?, arguments),
        ["copy"] => transfer::copy(&load(arguments)?, arguments),
        ["restore"] => transfer::restore(&load(arguments)?, arguments),
        ["import", file] => import::run(load(arguments)?, arguments, file),
        ["settings"] if arguments.has("markdown") => print(&settings::print::markdown()),
        ["settings"] => print(&settings::print::effective(&load(arguments)?)),
        ["counters"] => print(&metrics::markdown()),
        ["import"] => Err(Failure::new(Exit::Usage, "import: a file is missing; usage: beluga import FILE")),
        ["check"] => Err(Failure::new(Exit::Usage, "check: a folder is missing; usage: beluga check DIR")),
        [command @ ("backup" | "copy" | "restore"), extra, ..] => Err(Failure::new(
            Exit::Usage,
            format!(
                "{command}: unexpected argument '{extra}'; name the folders with --from and --to, see beluga --help"
            ),
        )),
        [command @ ("serve" | "check" | "import" | "settings" | "counters"), .., extra] => {
            Err(Failure::new(Exit::Usage, format!("{command}: unexpected argument '{extra}'; see beluga --help")))
        }
        [word, ..] => Err(Failure::new(Exit::Usage, format!("unknown command '{word}'; see beluga --help"))),
    }
}

fn print(text: &str) -> Result<(), Failure> {
    say(text);
    Ok(())
}

/// Loads the settings and opens the log file that they name. Logs the warnings of the settings.
fn load(arguments: &Arguments) -> Result<Settings, Failure> {
    let (settings, warnings) = Settings::load(arguments, std::env::vars(), Machine::here())?;
    log::set_level(&settings.text(Name::LogLevel));
    let file = settings.text(Name::LogFile);
    if !file.is_empty() {
        let opened = log::open(file.as_ref());
        opened
            .map_err(|e| Failure::new(Exit::Create, format!("log_file: {file} cannot be opened for writing: {e}")))?;
    }
    log::log_panics();
    warnings.iter().for_each(|w| log::warn("environment", &[("what", w)]));
    Ok(settings)
}
