//! kill -9 with much log since the last checkpoint: how long until the first value is served again.

use std::io;
use std::time::{Duration, Instant};

use super::{Findings, Goal};
use crate::control::Answer;
use crate::load::{self, Range, Shape, Traffic, Until};
use crate::server::{Launch, Server, Side};
use crate::setup::Setup;

const LOG_BYTES: u64 = 1 << 30;
const VALUE_BYTES: usize = 128;
const CONNECTIONS: usize = 64;

pub fn run(setup: &Setup) -> io::Result<Findings> {
    let bytes = LOG_BYTES / setup.effort.shrink;
    let (ours, keys) = restart(setup, Side::Beluga, bytes)?;
    let redis = match setup.sides.contains(&Side::RedisAlways) {
        true => format!(
            "; Redis always needs {:.2} s for the same writes",
            restart(setup, Side::RedisAlways, bytes)?.0.as_secs_f64()
        ),
        false => String::new(),
    };
    let case = format!("restart after kill -9, {} MiB of log since the checkpoint", bytes >> 20);
    let detail = format!(
        "seconds from the start of the process to the first value, all {keys} keys there; the log is at least as long as the keys and values ({VALUE_BYTES} B each) written{redis}"
    );
    let goals = vec![Goal::at_most(&case, "serving within 10 s", 10.0, ours.as_secs_f64(), detail)];
    Ok(Findings { goals, ..Findings::default() })
}

/// Time to the first value, and how many keys there are.
fn restart(setup: &Setup, side: Side, bytes: u64) -> io::Result<(Duration, u64)> {
    // No checkpoint may come in between.
    let more = if side == Side::Beluga { vec!["--checkpoint-distance".into(), "64gb".into()] } else { Vec::new() };
    let launch = Launch { more, ..Launch::default() };
    let server = Server::start(side, &setup.place, "restart", &launch)?;
    let keys = Range { min: 1, max: (bytes / 4 / VALUE_BYTES as u64).max(1000) };
    let shape = Shape {
        connections: CONNECTIONS,
        threads: setup.effort.threads,
        pipeline: 32,
        traffic: Traffic::mix(1, 0),
        value_bytes: VALUE_BYTES,
        keys,
        until: Until::Requests(bytes / VALUE_BYTES as u64 / CONNECTIONS as u64),
        ..server.shape()
    };
    for shape in [shape.preload(), shape] {
        let report = load::run(&shape, || {})?;
        if report.error_count() > 0 {
            return Err(io::Error::other(format!("{}: {:?}", side.name(), report.errors)));
        }
    }
    let data = server.data().to_path_buf();
    server.kill()?;

    let start = Instant::now();
    let server = Server::start(side, &setup.place, "restart", &launch)?;
    let mut control = server.control()?;
    let first = control.call(&["GET", &keys.max.to_string()])?;
    let took = start.elapsed();
    let served = matches!(&first, Answer::Text(_));
    let count = control.call(&["DBSIZE"])?;
    drop(server);
    std::fs::remove_dir_all(data)?;
    if !served || count != Answer::Integer(keys.count() as i64) {
        return Err(io::Error::other(format!("{}: {first:?}, DBSIZE {count:?} of {}", side.name(), keys.count())));
    }
    Ok((took, keys.count()))
}
