//! All automation that is more than a line of shell: `cargo xtask test`, `tidy`, `docs`, `soak`. Knows no crate of the product: it
//! reads their texts, and what `cargo metadata` and the built `beluga` say of themselves.
#![forbid(unsafe_code)]

mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  test   format, clippy, tests, clients, a minute of benchmarks, tidy; one summary at the end
  soak   the long tests, SOAK_MINUTES (60) in all
  tidy   what documents and sources promise: paths, arrows, circles, prose, licences ...; `tidy circle`: the checks of that name
  docs   write the generated parts of the documents anew
";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let done = match command.as_str() {
        "test" => test::run(test::ALL),
        "soak" => test::soak(),
        "tidy" => tidy::run(&std::env::args().nth(2).unwrap_or_default()),
        "docs" => tidy::generated::write(),
        _ => {
            print!("{HELP}");
            return ExitCode::from(64);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
