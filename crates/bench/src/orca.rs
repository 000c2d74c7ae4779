//! Plays the 48 rows of the reference table, scaled to one machine by one factor.
//!
//! `orca_table.csv` holds what was published for a cloud service on 16 cores: connections, value size, pipeline, mix, key
//! range, and its throughput and latency. Here the key range is divided by the scale and the number of requests becomes a
//! time limit; everything else stays. Rows that share connections and value size share their data, filled before.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::cases::{Arena, Turns};
use crate::load::{Range, Shape, Traffic, Until};
use crate::measure::median;
use crate::server::{Launch, Server, Side};
use crate::setup::Setup;
use crate::svg::{Chart, Panel};
use crate::table::{Cell, Table};

pub struct OrcaOptions {
    pub scale: u64,
    pub rounds: usize,
    pub turn: Duration,
}

/// One row of the reference table.
#[derive(Clone, Debug)]
struct ReferenceRow {
    connections: usize,
    value_bytes: usize,
    mode: String,
    mix: String,
    keys: Range,
    prefix: String,
    pipeline: usize,
    published_qps: f64,
    published_p99_ms: f64,
}

/// One row with its figures.
struct Played {
    row: ReferenceRow,
    turns: Turns,
    /// Median time of a durable 4 KiB write just before the turns.
    dsync_us: f64,
    /// PING on Beluga with the same connections and pipeline.
    ping_per_second: f64,
}

const REFERENCE: &str = include_str!("../orca_table.csv");
const KEYS_MIN: u64 = 1000;

/// True when no request of any row failed.
pub fn run(setup: &Setup, options: &OrcaOptions) -> io::Result<bool> {
    let rows = reference(options.scale);
    let mut played: Vec<Played> = Vec::new();
    let pings = pings(setup, options, &rows)?;
    let probe = setup.probe_file(64 << 20)?;
    for data in rows.chunk_by(|a, b| (a.connections, a.value_bytes) == (b.connections, b.value_bytes)) {
        if setup.quick && data[0].connections > 128 {
            continue;
        }
        eprintln!(
            "orca: {} connections, {} bytes, {} keys",
            data[0].connections, data[0].value_bytes, data[0].keys.max
        );
        let arena = Arena::open(&setup.sides, &setup.place, "orca", &Launch::default())?;
        arena.fill(|server| data[0].shape(server, setup, options))?;
        let mut figures: Vec<(Turns, Vec<f64>)> = data.iter().map(|_| Default::default()).collect();
        for round in 0..options.rounds {
            for (row, (turns, dsync)) in data.iter().zip(&mut figures) {
                dsync.push(probe.durable_write(Duration::from_millis(100))?.0.as_secs_f64() * 1e6);
                arena.round(round, turns, |server| row.shape(server, setup, options))?;
            }
        }
        played.extend(data.iter().zip(figures).map(|(row, (turns, dsync))| Played {
            row: row.clone(),
            turns,
            dsync_us: median(dsync),
            ping_per_second: pings.get(&(row.connections, row.pipeline)).copied().unwrap_or(0.0),
        }));
    }
    publish(setup, options, &played)?;
    Ok(played.iter().all(|played| played.turns.errors() == 0.0))
}

fn reference(scale: u64) -> Vec<ReferenceRow> {
    REFERENCE.lines().skip(1).map(|line| ReferenceRow::parse(line, scale)).collect()
}

impl ReferenceRow {
    fn parse(line: &str, scale: u64) -> ReferenceRow {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |index: usize| fields[index].parse::<f64>().expect("the reference table is part of the program");
        ReferenceRow {
            connections: number(0) as usize,
            value_bytes: number(1) as usize,
            mode: fields[2].into(),
            mix: fields[3].into(),
            keys: Range { min: number(5) as u64, max: (number(6) as u64 / scale).max(KEYS_MIN) },
            prefix: fields[7].into(),
            pipeline: number(8) as usize,
            published_qps: number(9),
            published_p99_ms: number(11),
        }
    }

    fn shape(&self, server: &Server, setup: &Setup, options: &OrcaOptions) -> Shape {
        Shape {
            connections: self.connections,
            threads: setup.effort.threads,
            pipeline: self.pipeline,
            traffic: match self.mix.as_str() {
                "write" => Traffic::mix(1, 0),
                "read" => Traffic::mix(0, 1),
                _ => Traffic::mix(1, 1),
            },
            value_bytes: self.value_bytes,
            keys: self.keys,
            prefix: self.prefix.clone(),
            until: Until::Time(options.turn),
            ..server.shape()
        }
    }

    fn name(&self) -> String {
        format!("{} {}", self.mode, self.mix)
    }
}

/// PING for each combination of connections and pipeline: the pool's throughput for requests without work.
fn pings(setup: &Setup, options: &OrcaOptions, rows: &[ReferenceRow]) -> io::Result<BTreeMap<(usize, usize), f64>> {
    let mut pings = BTreeMap::new();
    if !setup.sides.contains(&Side::Beluga) {
        return Ok(pings);
    }
    let arena = Arena::open(&[Side::Beluga], &setup.place, "ping", &Launch::default())?;
    for row in rows {
        let key = (row.connections, row.pipeline);
        if pings.contains_key(&key) {
            continue;
        }
        let mut turns = Turns::default();
        for round in 0..options.rounds {
            arena.round(round, &mut turns, |server| Shape {
                traffic: Traffic::Ping,
                ..row.shape(server, setup, options)
            })?;
        }
        pings.insert(key, turns.median(Side::Beluga).operations_per_second);
    }
    Ok(pings)
}

fn publish(setup: &Setup, options: &OrcaOptions, played: &[Played]) -> io::Result<()> {
    let (summary, figures) = (summary(played), figures(played));
    let mut page = String::from("# The 48 rows of the reference table\n\n");
    page += &setup.provenance("cargo run --release -p bench -- orca --out docs/bench")?;
    page += &format!(
        "Each row is a command of the reference table with its connections, value size, pipeline, mix and key prefix; the key range is divided by {}, \
         and a turn lasts {:.1} s instead of a number of requests. Every key exists before the first turn. {} rounds, alternating, medians.\n\
         The published figures come from a cloud service on 16 cores with a 64-core client, so only their shape can be compared; they are given per core.\n\
         Redis `everysec` may lose a second of acknowledged writes: shown, not ranked. PING is Beluga's own limit: the same pool and connections, no data. \
         dsync is the median of durable 4 KiB writes just before each turn.\n\n",
        options.scale,
        options.turn.as_secs_f64(),
        options.rounds,
    );
    page += &summary.markdown();
    let charts = [
        (
            "orca-throughput",
            chart(played, "Throughput", "operations per second", |turns, side| {
                turns.median(side).operations_per_second
            }),
        ),
        (
            "orca-cpu",
            chart(played, "Server processor time", "us per operation", |turns, side| turns.median(side).server_cpu_us),
        ),
        ("orca-p99", chart(played, "99th percentile of latency", "ms", |turns, side| turns.median(side).p99_ms)),
    ];
    for (name, _) in &charts {
        page += &format!("\n![{name}]({name}.svg)\n");
    }
    page += &format!("\n## All figures\n\n{}", figures.markdown());
    let charts: Vec<(&str, &Chart)> = charts.iter().map(|(name, chart)| (*name, chart)).collect();
    setup.publish("orca", &page, &[("orca", &figures)], &charts)
}

/// One line a row: Beluga against the durable Redis.
fn summary(played: &[Played]) -> Table {
    let mut table = Table::new(&[
        "connections",
        "value",
        "row",
        "Beluga ops/s",
        "× Redis always",
        "× Redis everysec",
        "CPU/op × Redis always",
        "p99 × Redis always",
        "share of PING",
        "ops/s per core",
        "published ops/s per core",
        "published p99 ms",
        "dsync us",
    ]);
    let cores = crate::machine::allowed_cores().len() as f64;
    for Played { row, turns, dsync_us, ping_per_second } in played {
        let (ours, always) = (turns.median(Side::Beluga), turns.median(Side::RedisAlways));
        let everysec = turns.median(Side::RedisEverysec);
        let ratio = |ours: f64, theirs: f64| match ours > 0.0 && theirs > 0.0 {
            true => Cell::Number(ours / theirs, 2),
            false => "-".into(),
        };
        let speed = ours.operations_per_second;
        table.row(vec![
            (row.connections as f64).into(),
            Cell::Number(row.value_bytes as f64, 0),
            row.name().into(),
            speed.into(),
            ratio(speed, always.operations_per_second),
            ratio(speed, everysec.operations_per_second),
            ratio(ours.server_cpu_us, always.server_cpu_us),
            ratio(ours.p99_ms, always.p99_ms),
            ratio(speed, *ping_per_second),
            (speed / cores).into(),
            (row.published_qps / 16.0).into(),
            row.published_p99_ms.into(),
            (*dsync_us).into(),
        ]);
    }
    table
}

fn figures(played: &[Played]) -> Table {
    let mut table = Table::new(&[
        "connections",
        "value",
        "row",
        "server",
        "ops/s",
        "MB/s",
        "mean ms",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "server CPU us/op",
        "client CPU us/op",
        "written bytes/op",
        "RSS MiB",
        "hit rate",
        "other cores",
        "dsync us",
        "errors",
    ]);
    for Played { row, turns, dsync_us, .. } in played {
        for side in turns.sides() {
            let f = turns.median(side);
            let mut cells = vec![
                (row.connections as f64).into(),
                Cell::Number(row.value_bytes as f64, 0),
                row.name().into(),
                side.name().into(),
            ];
            cells.extend([f.operations_per_second, f.megabytes_per_second, f.mean_ms].map(Cell::from));
            cells.extend([f.p50_ms, f.p99_ms, f.p999_ms, f.server_cpu_us, f.client_cpu_us].map(Cell::from));
            cells.extend([f.written_bytes, f.rss_bytes / f64::from(1 << 20)].map(Cell::from));
            cells.extend([f.hit_rate, f.other_cores, *dsync_us, f.errors].map(Cell::from));
            table.row(cells);
        }
    }
    table
}

/// One panel for each mode and mix; connections and value sizes along the bottom.
fn chart(played: &[Played], title: &str, unit: &str, figure: impl Fn(&Turns, Side) -> f64) -> Chart {
    let mut panels: Vec<Panel> = Vec::new();
    for Played { row, turns, .. } in played {
        let name = row.name();
        let values = Side::ALL.iter().map(|side| figure(turns, *side)).collect();
        let group = (format!("{}\n{}", size(row.value_bytes), row.connections), values);
        match panels.iter_mut().find(|panel| panel.title == name) {
            Some(panel) => panel.groups.push(group),
            None => panels.push(Panel { title: name, groups: vec![group] }),
        }
    }
    Chart {
        title: title.into(),
        unit: format!("{unit}; below: value size, connections"),
        series: Side::ALL.iter().map(|side| side.name().into()).collect(),
        panels,
        logarithmic: true,
    }
}

fn size(bytes: usize) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { format!("{} KB", bytes / 1024) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_48_rows_in_8_data_sets() {
        let rows = reference(500);
        assert_eq!(rows.len(), 48);
        let sets: Vec<_> =
            rows.chunk_by(|a, b| (a.connections, a.value_bytes) == (b.connections, b.value_bytes)).collect();
        assert_eq!(sets.len(), 8);
        // Rows of one data set must ask for the same keys, or their GETs would miss.
        assert!(sets.iter().all(|set| set.iter().all(|row| (row.keys, &row.prefix) == (set[0].keys, &set[0].prefix))));
        assert_eq!(rows[0].keys, Range { min: 1, max: 256_000 });
        assert_eq!((rows[6].prefix.as_str(), rows[4].pipeline, rows[4].published_qps), ("key_", 32, 1_598_605.28));
        assert_eq!(reference(u64::MAX)[0].keys.max, KEYS_MIN);
    }
}
