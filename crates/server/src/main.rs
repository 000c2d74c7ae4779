//! `beluga`: reads the settings, opens the engine, starts the worker pool and opens the doors. It closes them in the reverse order.
#![forbid(unsafe_code)]

mod around;
mod control;
mod copy;
mod exit;
mod log;
mod machine;
mod memory;
mod metrics;
mod redis;
mod serve;
mod settings;
mod store;
mod tls;

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
Beluga, a durable database that speaks Redis, MySQL and XRPC.

  beluga [--SETTING VALUE ...]                   serve until SIGTERM
  beluga check DIR                               verify a data folder that no server has
  beluga backup --from DIR --to NEW [--renew]    copy the database in DIR while it is served, or while it is not;
                                                 with --renew bring the log of an earlier copy up to now
  beluga restore --from COPY --to NEW [--until-lsn N | --until-time 2026-11-20T22:36:01Z]
                                                 make a data folder from a copy, as of the end of its log or earlier
  beluga settings                                every setting with its value and where it comes from
  beluga counters                                what is counted and served at /metrics

  --config FILE     settings file (TOML); BELUGA_CONFIG names one too
  --help, --version

Settings, as flags; in the environment --log-level is BELUGA_LOG_LEVEL, in the file log_level:
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
        ["restore"] => copy::restore(&load(arguments)?, arguments),
        ["settings"] if arguments.has("markdown") => print(&settings::print::markdown()),
        ["settings"] => print(&settings::print::effective(&load(arguments)?)),
        ["counters"] => print(&metrics::markdown()),
        ["check"] => Err(Failure::new(Exit::Usage, "check: a folder is missing; usage: beluga check DIR")),
        [command @ ("backup" | "restore"), extra, ..] => Err(Failure::new(
            Exit::Usage,
            format!(
                "{command}: unexpected argument '{extra}'; name the folders with --from and --to, see beluga --help"
            ),
        )),
        [command @ ("serve" | "check" | "settings" | "counters"), .., extra] => {
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
    log::take_panics();
    warnings.iter().for_each(|w| log::warn("environment", &[("what", w)]));
    Ok(settings)
}
