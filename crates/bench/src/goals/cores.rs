//! One core to two cores, with the client's share taken out of the account.
//!
//! Method. Two servers run, one bound to the first core, one to the first two; they take turns.
//! With four cores or more the client is bound to the others, and throughputs are compared as they are.
//! With fewer the client must share, so each throughput is divided by the processor time available to the server:
//! - one core: the client is bound to the other core, and the throughput is divided by the share of its core that the
//!   server really used (if the client was too slow to fill it, that does not count against one core);
//! - two cores: the processor time of the client and of other programs is deducted from the two cores; the rest counts as the
//!   server's, idle or not, so time lost to waiting and locks counts against it.
//!
//! Both choices make the ratio smaller, never larger. The goal applies to the pipelined cases only: with one request at a
//! time, the client takes so much of the second core that even a server of one thread would seem to grow.

use std::io;

use super::{Findings, Goal};
use crate::cases::{self, Arena, Case, Turns};
use crate::load::Shape;
use crate::machine;
use crate::measure::Figures;
use crate::server::{Launch, Side};
use crate::setup::Setup;
use crate::table::Table;

/// Above this, other programs ran, and the calculation does not hold.
const OTHERS_MAX: f64 = 0.25;

const CASES: [Case; 3] = [cases::GET, cases::GET_PIPELINE, cases::SET_PIPELINE];

pub fn run(setup: &Setup) -> io::Result<Findings> {
    let cores = machine::allowed_cores();
    if cores.len() < 2 {
        return Err(io::Error::other("this machine has one core"));
    }
    let away = (cores.len() >= 4).then(|| cores[2..].to_vec());
    let launch_one = Launch { cores: Some(cores[..1].to_vec()), ..Launch::default() };
    let launch_two = Launch { cores: Some(cores[..2].to_vec()), port: Some(16424), ..Launch::default() };
    let one = Arena::open(&[Side::Beluga], &setup.place, "one-core", &launch_one)?;
    let two = Arena::open(&[Side::Beluga], &setup.place, "two-cores", &launch_two)?;
    let mut findings = Findings::default();
    let mut table = Table::new(&[
        "case",
        "cores",
        "ops/s",
        "server cores",
        "client cores",
        "other cores",
        "server CPU us/op",
        "ops/s of its cores",
    ]);
    for arena in [&one, &two] {
        arena.fill(|server| cases::GET.shape(server, &setup.effort))?;
    }
    for case in CASES {
        let (mut alone, mut both) = (Turns::default(), Turns::default());
        for round in 0..setup.effort.rounds {
            one.round(round, &mut alone, |server| Shape {
                threads: 1,
                cores: Some(away.clone().unwrap_or(cores[1..2].to_vec())),
                ..case.shape(server, &setup.effort)
            })?;
            two.round(round, &mut both, |server| Shape { cores: away.clone(), ..case.shape(server, &setup.effort) })?;
        }
        findings.errors += alone.errors() + both.errors();
        let (alone, both) = (alone.median(Side::Beluga), both.median(Side::Beluga));
        let (capacity_one, capacity_two) = match away {
            Some(_) => (alone.operations_per_second, both.operations_per_second),
            None => (of_one_core(&alone), of_two_cores(&both)),
        };
        for (cores, figures, capacity) in [(1.0, alone, capacity_one), (2.0, both, capacity_two)] {
            let mut row = vec![case.name.into(), cores.into()];
            row.extend([figures.operations_per_second, figures.server_cores, figures.client_cores].map(Into::into));
            row.extend([figures.other_cores, figures.server_cpu_us, capacity].map(Into::into));
            table.row(row);
        }
        if case.pipeline == 1 {
            continue;
        }
        let detail = format!(
            "{capacity_two:.0} against {capacity_one:.0} per second {}; CPU {:.2} against {:.2} us/op",
            if away.is_some() { "with the client elsewhere" } else { "after deducting the client" },
            both.server_cpu_us,
            alone.server_cpu_us,
        );
        let goal = "two cores ≥ 1.7 × one core";
        let mut verdict = Goal::at_least(case.name, goal, 1.7, capacity_two / capacity_one, detail);
        let others = alone.other_cores.max(both.other_cores);
        if away.is_none() && others > OTHERS_MAX {
            // Other programs' time is deducted too, but then the measurement is not of a server alone on its cores.
            verdict.met = false;
            verdict.detail += &format!("; does not count: others used {others:.2} cores");
        }
        findings.goals.push(verdict);
    }
    findings.tables.push(("cores", table));
    Ok(findings)
}

fn of_one_core(figures: &Figures) -> f64 {
    figures.operations_per_second / figures.server_cores.min(1.0)
}

fn of_two_cores(figures: &Figures) -> f64 {
    figures.operations_per_second * 2.0 / (2.0 - figures.client_cores - figures.other_cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_share_is_deducted_and_idle_time_is_not() {
        let figures = |speed, server, client| Figures {
            operations_per_second: speed,
            server_cores: server,
            client_cores: client,
            ..Figures::default()
        };
        assert_eq!(of_one_core(&figures(100.0, 0.5, 0.4)), 200.0);
        assert_eq!(of_two_cores(&figures(150.0, 1.5, 0.5)), 200.0);
        // Half a core idle: the server had 1.5 cores and used one.
        assert_eq!(of_two_cores(&figures(150.0, 1.0, 0.5)), 200.0);
    }
}
