//! Data four times as large as the memory setting: the disk must be the limit, and the process must keep to the setting.

use std::io;

use super::{Findings, Goal};
use crate::cases::{Arena, Turns};
use crate::load::{Range, Shape, Traffic, Until};
use crate::measure::median;
use crate::server::{Launch, Server, Side};
use crate::setup::Setup;

const VALUE_BYTES: usize = 1024;
const DEPTH: usize = 128;
const MEMORY_MIB: u64 = 512;
/// The least that the setting allows.
const MEMORY_MIB_MIN: u64 = 64;

pub fn run(setup: &Setup) -> io::Result<Findings> {
    let memory_mib = (MEMORY_MIB / setup.effort.shrink).max(MEMORY_MIB_MIN);
    let data_bytes = (4 * memory_mib) << 20;
    let shape = |server: &Server| Shape {
        connections: DEPTH,
        threads: setup.effort.threads,
        traffic: Traffic::mix(0, 1),
        value_bytes: VALUE_BYTES,
        keys: Range { min: 1, max: data_bytes / VALUE_BYTES as u64 },
        until: Until::Time(setup.effort.turn),
        ..server.shape()
    };
    let launch = Launch { memory_mib: Some(memory_mib), ..Launch::default() };
    let arena = Arena::open(&[Side::Beluga], &setup.place, "memory", &launch)?;
    arena.fill(shape)?;
    let probe = setup.probe_file(data_bytes)?;
    let (mut turns, mut disk) = (Turns::default(), Vec::new());
    for round in 0..setup.effort.rounds {
        disk.push(probe.random_read(DEPTH as u64, setup.effort.turn)?);
        arena.round(round, &mut turns, shape)?;
    }
    let (figures, disk) = (turns.median(Side::Beluga), median(disk));
    let case = format!("data 4 × memory ({memory_mib} MiB), uniform GET 1 KB, {DEPTH} connections");
    let detail = format!(
        "{:.0} GET/s (p99 {:.2} ms, server CPU {:.1} us/op, hits {:.1} %); the disk gives {disk:.0} random 4 KiB reads/s at depth {DEPTH}; a quarter of the data may be in memory",
        figures.operations_per_second,
        figures.p99_ms,
        figures.server_cpu_us,
        figures.hit_rate * 100.0,
    );
    let speed = figures.operations_per_second / disk;
    let goal = "GETs ≥ 0.7 × the disk's random 4 KiB reads at the same depth";
    let rss_mib = figures.rss_bytes / f64::from(1 << 20);
    let resident = rss_mib / memory_mib as f64;
    let goals = vec![
        Goal::at_least(&case, goal, 0.7, speed, detail),
        Goal::at_most(&case, "RSS ≤ 1.10 × `memory`", 1.1, resident, format!("RSS {rss_mib:.0} MiB under load")),
    ];
    Ok(Findings { goals, errors: turns.errors(), ..Findings::default() })
}
