//! The cost of an idle connection.

use std::io;
use std::time::Duration;

use super::{Findings, Goal};
use crate::control::Control;
use crate::machine;
use crate::process;
use crate::server::{Launch, Server, Side};
use crate::setup::Setup;

const CONNECTIONS: u64 = 10_000;

pub fn run(setup: &Setup) -> io::Result<Findings> {
    let count = CONNECTIONS / setup.effort.shrink;
    machine::allow_open_files(count + 200)?;
    let ours = idle(setup, Side::Beluga, count)?;
    let mut detail = format!("RSS {:.1} MiB more", ours.bytes * count as f64 / f64::from(1 << 20));
    detail += &format!(", CPU while idle {:.1} ms/s; each connection had sent one PING", ours.cpu_ms_per_second);
    if setup.sides.contains(&Side::RedisAlways) {
        let redis = idle(setup, Side::RedisAlways, count)?;
        detail += &format!("; Redis {:.2} KiB, {:.1} ms/s", redis.bytes / 1024.0, redis.cpu_ms_per_second);
    }
    let case = format!("{count} idle connections");
    let goals = vec![Goal::at_most(&case, "memory of a connection < 8 KiB (RSS)", 8.0, ours.bytes / 1024.0, detail)];
    Ok(Findings { goals, ..Findings::default() })
}

struct Idle {
    bytes: f64,
    cpu_ms_per_second: f64,
}

fn idle(setup: &Setup, side: Side, count: u64) -> io::Result<Idle> {
    const WATCHED: Duration = Duration::from_secs(2);
    let server = Server::start(side, &setup.place, "idle", &Launch::default())?;
    server.settle(Duration::from_secs(2));
    let before = process::rss_bytes(server.pid());
    let connections = (0..count)
        .map(|_| {
            let mut control = server.control()?;
            control.call(&["PING"]).map(|_| control.into_stream())
        })
        .collect::<io::Result<Vec<_>>>()?;
    server.settle(Duration::from_secs(2));
    let cpu_before = process::usage(server.pid());
    std::thread::sleep(WATCHED);
    let cpu = process::usage(server.pid()).since(cpu_before).cpu;
    let after = process::rss_bytes(server.pid());
    let mut control = Control::connect(server.address)?;
    control.call(&["PING"])?;
    drop(connections);
    let data = server.data().to_path_buf();
    drop(server);
    std::fs::remove_dir_all(data)?;
    Ok(Idle {
        bytes: after.saturating_sub(before) as f64 / count as f64,
        cpu_ms_per_second: cpu.as_secs_f64() * 1e3 / WATCHED.as_secs_f64(),
    })
}
