//! kill -9 with a long WAL since the last checkpoint: the time until the first value is served again.

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
    let keys = Range { min: 1, max: (bytes / 4 / VALUE_BYTES as u64).max(1000) };
    let ours = restart(setup, Side::Beluga, keys, Amount::Log(bytes))?;
    let redis = match setup.sides.contains(&Side::RedisAlways) {
        true => {
            let redis = restart(setup, Side::RedisAlways, keys, Amount::Turns(ours.turns))?;
            format!("; Redis always needs {:.2} s for the same writes", redis.took.as_secs_f64())
        }
        false => String::new(),
    };
    let case = format!("restart after kill -9, {} MiB of log since the checkpoint", bytes >> 20);
    let detail = format!(
        "seconds from the start of the process to the first value, all {} keys ({VALUE_BYTES} B values) there; {} MiB of log since the checkpoint{redis}",
        keys.count(),
        ours.log_bytes >> 20,
    );
    let goals = vec![Goal::at_most(&case, "serving within 10 s", 10.0, ours.took.as_secs_f64(), detail)];
    Ok(Findings { goals, ..Findings::default() })
}

/// The amount written, besides every key once.
#[derive(Clone, Copy)]
enum Amount {
    /// Until the WAL since the checkpoint has this length.
    Log(u64),
    /// The number of turns that the other side needed.
    Turns(u64),
}

struct Restart {
    took: Duration,
    turns: u64,
    log_bytes: u64,
}

/// Writes, kills, starts again, and asks for a value.
fn restart(setup: &Setup, side: Side, keys: Range, amount: Amount) -> io::Result<Restart> {
    // No checkpoint may run in between.
    let more = if side == Side::Beluga { vec!["--checkpoint-distance".into(), "64gb".into()] } else { Vec::new() };
    let launch = Launch { more, ..Launch::default() };
    let server = Server::start(side, &setup.place, "restart", &launch)?;
    let turn = Shape {
        connections: CONNECTIONS,
        threads: setup.effort.threads,
        pipeline: 32,
        traffic: Traffic::mix(1, 0),
        value_bytes: VALUE_BYTES,
        keys,
        until: Until::Requests((keys.count() / 4 / CONNECTIONS as u64).max(1)),
        ..server.shape()
    };
    let write = |shape: &Shape| {
        let report = load::run(shape, || {})?;
        match report.error_count() {
            0 => Ok(()),
            _ => Err(io::Error::other(format!("{}: {:?}", side.name(), report.errors))),
        }
    };
    write(&turn.preload())?;
    let mut turns = 0;
    while match amount {
        Amount::Log(bytes) => log_since_checkpoint(&server)? < bytes,
        Amount::Turns(count) => turns < count,
    } {
        write(&turn)?;
        turns += 1;
    }
    let log_bytes = if side == Side::Beluga { log_since_checkpoint(&server)? } else { 0 };
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
    Ok(Restart { took, turns, log_bytes })
}

fn log_since_checkpoint(server: &Server) -> io::Result<u64> {
    let Answer::Text(info) = server.control()?.call(&["INFO", "all"])? else {
        return Err(io::Error::other("INFO answers no text"));
    };
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse::<u64>().ok())
            .ok_or_else(|| io::Error::other(format!("INFO has no {name}")))
    };
    Ok(field("log_durable_lsn")?.saturating_sub(field("log_checkpoint_lsn")?))
}
