//! Beluga and Redis side by side: GET, SET, pipelines, large values, many connections.

use std::io;
use std::time::Duration;

use super::{Findings, Goal, profile};
use crate::cases::{self, Arena, Case, Turns};
use crate::measure::median;
use crate::process;
use crate::server::{Launch, Server, Side};
use crate::setup::Setup;
use crate::svg::{Chart, Panel};
use crate::table::Table;

type Measured = Vec<(Case, Turns)>;

pub fn run(setup: &Setup) -> io::Result<Findings> {
    let mut profiles = profile::table();
    let (mut goals, mut measured) = small_values(setup, &mut profiles)?;
    let large = large_values(setup, &mut profiles)?;
    goals.extend(large.goals);
    measured.extend(large.measured);
    let charts = vec![("cases-throughput", throughput(&measured)), ("cases-cpu", processor(&measured))];
    let errors = errors(&measured);
    Ok(Findings { goals, tables: vec![("profiles", profiles), ("cases", table(&measured))], charts, errors })
}

/// Prints the figures of the cases whose name contains `only`. Returns the number of failed requests.
pub fn figures(setup: &Setup, only: &str) -> io::Result<(Table, f64)> {
    let chosen: Vec<Case> = cases::SMALL.into_iter().filter(|case| case.name.contains(only)).collect();
    let mut measured = Measured::new();
    if !chosen.is_empty() {
        measured.extend(play(setup, &open_small(setup)?, &chosen)?);
    }
    if cases::SET_16K.name.contains(only) {
        measured.extend(large_values(setup, &mut profile::table())?.measured);
    }
    Ok((table(&measured), errors(&measured)))
}

fn errors(measured: &Measured) -> f64 {
    measured.iter().map(|(_, turns)| turns.errors()).sum()
}

fn small_values(setup: &Setup, profiles: &mut Table) -> io::Result<(Vec<Goal>, Measured)> {
    let arena = open_small(setup)?;
    let measured = play(setup, &arena, &cases::SMALL)?;
    let goals = speed_goals(&measured);
    for case in cases::SMALL {
        profile_if_missed(setup, &arena, &case, &goals, profiles)?;
    }
    Ok((goals, measured))
}

fn open_small(setup: &Setup) -> io::Result<Arena> {
    let arena = Arena::open(&setup.sides, &setup.place, "small", &Launch::default())?;
    arena.fill(|server| cases::GET.shape(server, &setup.effort))?;
    Ok(arena)
}

/// All cases in every round, so that a noisy minute hits all of them alike.
fn play(setup: &Setup, arena: &Arena, chosen: &[Case]) -> io::Result<Measured> {
    let effort = &setup.effort;
    let mut measured: Measured = chosen.iter().map(|case| (*case, Turns::default())).collect();
    for round in 0..effort.rounds {
        for (case, turns) in &mut measured {
            eprintln!("  round {}: {}", round + 1, case.name);
            arena.round(round, turns, |server| case.shape(server, effort))?;
        }
    }
    Ok(measured)
}

/// A missed goal is on the page with a profile of the server.
fn profile_if_missed(setup: &Setup, arena: &Arena, case: &Case, goals: &[Goal], into: &mut Table) -> io::Result<()> {
    let missed = goals.iter().any(|goal| !goal.met && goal.case == case.name);
    match arena.server(Side::Beluga) {
        Some(server) if missed && !setup.quick => {
            profile::add(into, case.name, &setup.place, server, &case.shape(server, &setup.effort))
        }
        _ => Ok(()),
    }
}

struct Large {
    measured: Measured,
    goals: Vec<Goal>,
}

fn large_values(setup: &Setup, profiles: &mut Table) -> io::Result<Large> {
    let (effort, case) = (&setup.effort, cases::SET_16K);
    let mut arena = Arena::open(&setup.sides, &setup.place, "large", &Launch::default())?;
    let probe = setup.probe_file((1 << 30) / effort.shrink)?;
    arena.fill(|server| case.shape(server, effort))?;
    let before = arena.server(Side::Beluga).map(|server| process::usage(server.pid()));
    let (mut turns, mut disk) = (Turns::default(), Vec::new());
    for round in 0..effort.rounds {
        eprintln!("  round {}: {}", round + 1, case.name);
        disk.push(probe.sequential_write(effort.turn.min(Duration::from_secs(2)))?);
        arena.round(round, &mut turns, |server| case.shape(server, effort))?;
    }
    let mut goals = vec![bandwidth_goal(&case, &turns, median(disk))];
    if let (Some(before), Some(server)) = (before, arena.take(Side::Beluga)) {
        let written = server.stop()?.since(before).written_bytes;
        goals.push(written_goal(&case, &turns, written as f64));
        arena.servers.push(Server::start(Side::Beluga, &setup.place, "large", &Launch::default())?);
    }
    profile_if_missed(setup, &arena, &case, &goals, profiles)?;
    Ok(Large { measured: vec![(case, turns)], goals })
}

/// Counted until after the last checkpoint, so that no dirty page is left uncounted.
fn written_goal(case: &Case, turns: &Turns, written: f64) -> Goal {
    let user = turns.operations(Side::Beluga) * case.value_bytes as f64;
    let detail = format!(
        "{:.2} GB written for {:.2} GB of values, until after the checkpoint of an orderly stop",
        written / 1e9,
        user / 1e9
    );
    Goal::at_most(case.name, "written bytes ≤ 2.3 × user bytes", 2.3, written / user, detail)
}

fn bandwidth_goal(case: &Case, turns: &Turns, disk: f64) -> Goal {
    let user = turns.median(Side::Beluga).operations_per_second * case.value_bytes as f64;
    let redis = turns.median(Side::RedisAlways).operations_per_second * case.value_bytes as f64;
    let detail = format!(
        "{:.0} MB/s of values; the disk writes {:.0} MB/s in the same rounds; Redis always {:.0} MB/s",
        user / 1e6,
        disk / 1e6,
        redis / 1e6
    );
    Goal::at_least(case.name, "user bytes ≥ 0.4 × the disk's sequential write bandwidth", 0.4, user / disk, detail)
}

fn speed_goals(measured: &Measured) -> Vec<Goal> {
    let of = |name: &str| measured.iter().find(|(case, _)| case.name == name).map(|(_, turns)| turns);
    let turns = |case: &Case| of(case.name).expect("every case is measured");
    let (get, ping) = (turns(&cases::GET), turns(&cases::PING));
    let mut goals = vec![
        cpu_goal(&cases::GET, get, 0.65),
        throughput_goal(&cases::GET, get, 1.0),
        own_goal(&cases::GET, "throughput ≥ 0.80 × our PING", get, ping),
        cpu_goal(&cases::GET_PIPELINE, turns(&cases::GET_PIPELINE), 0.6),
        throughput_goal(&cases::GET_PIPELINE, turns(&cases::GET_PIPELINE), 1.3),
    ];
    for case in [&cases::SET, &cases::SET_512] {
        goals.push(throughput_goal(case, turns(case), 1.5));
        goals.push(tail_goal(case, turns(case)));
    }
    goals.push(throughput_goal(&cases::SET_PIPELINE, turns(&cases::SET_PIPELINE), 1.5));
    goals.push(own_goal(
        &cases::GET_4096,
        "throughput ≥ 0.80 × that with 128 connections",
        turns(&cases::GET_4096),
        turns(&cases::GET),
    ));
    goals
}

fn cpu_goal(case: &Case, turns: &Turns, limit: f64) -> Goal {
    let (ours, theirs) = (turns.median(Side::Beluga).server_cpu_us, turns.median(Side::RedisAlways).server_cpu_us);
    let detail = format!("{ours:.2} us against {theirs:.2} us");
    Goal::at_most(case.name, &format!("server CPU/op ≤ {limit:.2} × Redis"), limit, ours / theirs, detail)
}

fn throughput_goal(case: &Case, turns: &Turns, limit: f64) -> Goal {
    let speed = |side| turns.median(side).operations_per_second;
    let (ours, theirs) = (speed(Side::Beluga), speed(Side::RedisAlways));
    let detail = format!("{ours:.0} against {theirs:.0} per second");
    Goal::at_least(case.name, &format!("throughput ≥ {limit:.1} × Redis always"), limit, ours / theirs, detail)
}

fn tail_goal(case: &Case, turns: &Turns) -> Goal {
    let (ours, theirs) = (turns.median(Side::Beluga).p99_ms, turns.median(Side::RedisAlways).p99_ms);
    let detail = format!("{ours:.2} ms against {theirs:.2} ms");
    Goal::at_most(case.name, "p99 ≤ that of Redis always", 1.0, ours / theirs, detail)
}

fn own_goal(case: &Case, goal: &str, turns: &Turns, limit: &Turns) -> Goal {
    let speed = |turns: &Turns| turns.median(Side::Beluga).operations_per_second;
    let (figure, whole) = (speed(turns), speed(limit));
    Goal::at_least(case.name, goal, 0.8, figure / whole, format!("{figure:.0} against {whole:.0} per second"))
}

fn table(measured: &Measured) -> Table {
    let mut table = Table::new(&[
        "case",
        "server",
        "ops/s",
        "MB/s",
        "server CPU us/op",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "max ms",
        "client CPU us/op",
        "server cores",
        "client cores",
        "other cores",
        "written bytes/op",
        "RSS MiB",
        "errors",
    ]);
    for (case, turns) in measured {
        for side in turns.sides() {
            let f = turns.median(side);
            let mut row = vec![case.name.into(), side.name().into()];
            row.extend([f.operations_per_second, f.megabytes_per_second, f.server_cpu_us].map(Into::into));
            row.extend([f.p50_ms, f.p99_ms, f.p999_ms, f.max_ms, f.client_cpu_us].map(Into::into));
            row.extend([f.server_cores, f.client_cores, f.other_cores, f.written_bytes].map(Into::into));
            row.extend([f.rss_bytes / f64::from(1 << 20), f.errors].map(Into::into));
            table.row(row);
        }
    }
    table
}

fn throughput(measured: &Measured) -> Chart {
    chart(measured, "Throughput", "operations per second", |turns, side| turns.median(side).operations_per_second)
}

fn processor(measured: &Measured) -> Chart {
    chart(measured, "Server processor time", "us per operation", |turns, side| turns.median(side).server_cpu_us)
}

fn chart(measured: &Measured, title: &str, unit: &str, figure: impl Fn(&Turns, Side) -> f64) -> Chart {
    // One panel a case: their figures lie decades apart, and only the bars of one case are to be compared.
    let panels = measured.iter().map(|(case, turns)| {
        let values = Side::ALL.iter().map(|side| figure(turns, *side)).collect();
        Panel { title: case.name.into(), groups: vec![(String::new(), values)] }
    });
    Chart {
        title: title.into(),
        unit: unit.into(),
        series: Side::ALL.iter().map(|side| side.name().into()).collect(),
        panels: panels.collect(),
        logarithmic: false,
    }
}
