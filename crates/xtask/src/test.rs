//! Runs every kind of test as a step of its own, all of them even if one fails, and closes with one summary.
//!
//! A step's output goes to the screen, less the lines that only say that a test passed, and whole to target/test-logs/STEP.log. Counts come from the
//! lines that cargo prints (`test result: ...`) and from plain ones (`12 passed, 0 failed`). A step without such a line is one test. The summary repeats the
//! lines that name a failure, because a machine that keeps the end of the output only must still say what failed.

mod failures;
mod tally;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use failures::Failures;
use tally::Tally;

use crate::tidy::generated;
use crate::workspace::{Workspace, cargo};

pub struct Step {
    name: &'static str,
    /// `cargo` stands for the cargo that runs this.
    command: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// A step that hangs is ended, so that the others still run.
    minutes_max: u64,
}

const fn step(name: &'static str, command: &'static [&'static str], minutes_max: u64) -> Step {
    Step { name, command, environment: &[], minutes_max }
}

/// The loom models stand in modules named `model` or `models`; other tests cannot run under loom.
#[rustfmt::skip]
const MODELS: [&str; 16] = [
    "cargo", "test", "--package", "stdx", "--package", "pager", "--package", "btree", "--package", "engine", "--package", "reactor",
    "--lib", "--", "model::", "models::",
];

pub const ALL: &[Step] = &[
    step("format", &["cargo", "fmt", "--all", "--check"], 2),
    step("clippy", &["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], 20),
    step("cargo-test", &["cargo", "test", "--workspace", "--no-fail-fast"], 40),
    Step {
        name: "models",
        command: &MODELS,
        // Other flags, other target folder: the ordinary build stays as it is.
        environment: &[("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", "target/loom")],
        minutes_max: 20,
    },
    // With the tests, whose dependencies turn on features of libraries: of the server alone, cargo would build those and the SQL crates a second time.
    step("build", &["cargo", "build", "--workspace", "--bins", "--tests"], 20),
    step("clients", &["tests/clients/run.sh"], 40),
    step("ceph", &["scripts/ceph.sh", "test"], 10),
    // That every part of it runs; what it measures in a minute, beside other work, says little.
    step("bench", &["cargo", "run", "--package", "bench", "--", "goals", "--quick", "--out", "target/bench-smoke"], 10),
    step(
        "bench-xrpc",
        &[
            "cargo",
            "run",
            "--package",
            "bench",
            "--",
            "xrpc",
            "--quick",
            "--levels",
            "1,256",
            "--rows",
            "1000",
            "--out",
            "target/bench-smoke",
        ],
        10,
    ),
    step(
        "bench-clients",
        &[
            "cargo",
            "run",
            "--package",
            "bench",
            "--",
            "clients",
            "--quick",
            "--levels",
            "5x1",
            "--out",
            "target/bench-smoke",
        ],
        10,
    ),
    Step {
        name: "tidy",
        command: &["cargo", "run", "--quiet", "--package", "xtask", "--", "tidy"],
        environment: &[(generated::SERVER, "target/debug/beluga")],
        minutes_max: 10,
    },
];

/// As long as the client suites, from seeds that are drawn and printed.
const SIM: &str = "seconds=$((${SOAK_MINUTES:-60} * 60)) && \
    target/debug/sim canary && \
    target/debug/sim random --seconds $((seconds / 2)) && \
    target/debug/sim takeover --seconds $((seconds / 4)) && \
    target/debug/sim every --operations 25 --seconds $((seconds / 4))";

const SOAK: &[Step] = &[
    step("build", &["cargo", "build", "--workspace", "--all-targets"], 30),
    step("sim", &["sh", "-c", SIM], 12 * 60),
    step("soak", &["tests/clients/run.sh", "soak"], 24 * 60),
];

pub fn soak() -> Result<bool, String> {
    run(SOAK)
}

pub fn run(steps: &[Step]) -> Result<bool, String> {
    let root = Workspace::read()?.root;
    let logs = root.join("target/test-logs");
    std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let mut done = Vec::new();
    for step in steps {
        println!("== {}", step.name);
        let begin = Instant::now();
        let (tally, failures) = run_step(step, &root, &logs.join(format!("{}.log", step.name)))?;
        done.push(Outcome { step, tally, failures, took: begin.elapsed() });
    }
    Ok(summary(&done))
}

struct Outcome<'s> {
    step: &'s Step,
    tally: Tally,
    failures: Failures,
    took: Duration,
}

fn run_step(step: &Step, root: &Path, log: &Path) -> Result<(Tally, Failures), String> {
    let mut log = File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let program = if step.command[0] == "cargo" { cargo() } else { step.command[0] };
    // `timeout` ends the whole process group; the shell joins the two outputs in the order in which they are written.
    let mut child = Command::new("timeout")
        .args(["--kill-after=10", &format!("{}m", step.minutes_max)])
        .args(["sh", "-c", "exec \"$@\" 2>&1", "sh", program])
        .args(&step.command[1..])
        .envs(step.environment.iter().copied())
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", step.name))?;
    let (mut tally, mut failures) = (Tally::default(), Failures::default());
    let mut reader = BufReader::new(child.stdout.take().expect("the output is a pipe"));
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(|e| format!("{}: {e}", step.name))? > 0 {
        let _ = log.write_all(&line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        tally.read(text);
        failures.read(text);
        if !tally::is_noise(text) {
            println!("{text}");
        }
        line.clear();
    }
    let status = child.wait().map_err(|e| format!("{}: {e}", step.name))?;
    if status.code() == Some(124) {
        println!("ended after {} minutes", step.minutes_max);
    }
    Ok((tally.closed(status.success()), failures))
}

fn summary(done: &[Outcome]) -> bool {
    for Outcome { step, failures, .. } in done {
        failures.print(step.name);
    }
    println!("\n== summary");
    let mut total = Tally::default();
    for Outcome { step, tally, took, .. } in done {
        let failures = if tally.failed == 0 {
            String::new()
        } else {
            format!("  {} FAILED, see target/test-logs/{}.log", tally.failed, step.name)
        };
        println!("{:<12} {:>5} passed {:>6} s{failures}", step.name, tally.passed, took.as_secs());
        total.add(tally);
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    total.failed == 0
}
