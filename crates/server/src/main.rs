//! `beluga`: reads its settings, opens the engine, starts the pool, opens the doors, and closes them in the reverse order.
#![forbid(unsafe_code)]

mod exit;
mod machine;
mod settings;

use std::process::ExitCode;

use exit::{Exit, Failure};
use machine::Machine;
use settings::{Arguments, Settings};

const HELP: &str = "\
Beluga, a durable database that speaks Redis.

  beluga settings [--NAME VALUE ...]           every setting with its value and where it comes from

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
        print!("{HELP}{}", settings::print::help());
        return Ok(());
    }
    if arguments.has("version") {
        println!("beluga {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let words: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["settings"] if arguments.has("markdown") => print!("{}", settings::print::markdown()),
        ["settings"] => print!("{}", settings::print::effective(&load(arguments)?)),
        [] => return Err(Failure::new(Exit::Usage, "no command; see beluga --help")),
        [word, ..] => return Err(Failure::new(Exit::Usage, format!("unknown command '{word}'; see beluga --help"))),
    }
    Ok(())
}

fn load(arguments: &Arguments) -> Result<Settings, Failure> {
    let (settings, warnings) = Settings::load(arguments, std::env::vars(), Machine::here())?;
    warnings.iter().for_each(|w| eprintln!("beluga: {w}"));
    Ok(settings)
}
