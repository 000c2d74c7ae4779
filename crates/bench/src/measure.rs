//! One measurement: a shape played against a server, with what the server spent on it.
//!
//! Processor time and bytes are counted until the server is quiet again (bounded), so that work it puts off is paid by
//! the requests that caused it and does not disturb the next server's turn.

use std::io;
use std::time::Duration;

use crate::load::{self, Report, Shape};
use crate::machine;
use crate::process;
use crate::server::Server;

/// Figures of one turn, or the medians of several.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    pub operations: f64,
    pub operations_per_second: f64,
    pub megabytes_per_second: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
    pub server_cpu_us: f64,
    pub client_cpu_us: f64,
    /// Cores that the server, the client and everybody else kept busy while the load ran.
    pub server_cores: f64,
    pub client_cores: f64,
    pub other_cores: f64,
    pub written_bytes: f64,
    pub rss_bytes: f64,
    pub hit_rate: f64,
    pub errors: f64,
}

const FIELDS: usize = 17;
const SETTLE_PATIENCE: Duration = Duration::from_secs(3);

impl Figures {
    fn fields(&self) -> [f64; FIELDS] {
        [
            self.operations,
            self.operations_per_second,
            self.megabytes_per_second,
            self.mean_ms,
            self.p50_ms,
            self.p99_ms,
            self.p999_ms,
            self.max_ms,
            self.server_cpu_us,
            self.client_cpu_us,
            self.server_cores,
            self.client_cores,
            self.other_cores,
            self.written_bytes,
            self.rss_bytes,
            self.hit_rate,
            self.errors,
        ]
    }

    fn from_fields(f: [f64; FIELDS]) -> Figures {
        Figures {
            operations: f[0],
            operations_per_second: f[1],
            megabytes_per_second: f[2],
            mean_ms: f[3],
            p50_ms: f[4],
            p99_ms: f[5],
            p999_ms: f[6],
            max_ms: f[7],
            server_cpu_us: f[8],
            client_cpu_us: f[9],
            server_cores: f[10],
            client_cores: f[11],
            other_cores: f[12],
            written_bytes: f[13],
            rss_bytes: f[14],
            hit_rate: f[15],
            errors: f[16],
        }
    }

    /// Every figure's own median; errors are summed, since one bad turn spoils the row.
    pub fn median(turns: &[Figures]) -> Figures {
        let mut fields = [0.0; FIELDS];
        for (index, field) in fields.iter_mut().enumerate() {
            *field = median(turns.iter().map(|turn| turn.fields()[index]).collect());
        }
        Figures { errors: turns.iter().map(|turn| turn.errors).sum(), ..Figures::from_fields(fields) }
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

pub fn measure(server: &Server, shape: &Shape) -> io::Result<Figures> {
    let busy = || machine::busy_by_core().iter().sum::<Duration>();
    let (mut usage_before, mut busy_before) = (process::Usage::default(), Duration::ZERO);
    let report = load::run(shape, || {
        usage_before = process::usage(server.pid());
        busy_before = busy();
    })?;
    let under_load = process::usage(server.pid()).since(usage_before);
    let all_busy = busy().saturating_sub(busy_before);
    let rss = process::rss_bytes(server.pid());
    server.settle(SETTLE_PATIENCE);
    let spent = process::usage(server.pid()).since(usage_before);
    for (text, count) in &report.errors {
        eprintln!("  {}: {count} x {text}", server.side.name());
    }
    Ok(figures(&report, under_load, all_busy, spent, rss))
}

fn figures(report: &Report, under_load: process::Usage, busy: Duration, spent: process::Usage, rss: u64) -> Figures {
    let operations = report.operations().max(1) as f64;
    let seconds = report.elapsed.as_secs_f64().max(1e-9);
    let latency = report.latency_all();
    let quantile = |q| latency.value_at_quantile(q) as f64 / 1e6;
    let (server_cores, client_cores) =
        (under_load.cpu.as_secs_f64() / seconds, report.client_cpu.as_secs_f64() / seconds);
    Figures {
        operations: report.operations() as f64,
        operations_per_second: report.operations_per_second(),
        megabytes_per_second: report.megabytes_per_second(),
        mean_ms: latency.mean() / 1e6,
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        p999_ms: quantile(0.999),
        max_ms: latency.max() as f64 / 1e6,
        server_cpu_us: spent.cpu.as_secs_f64() * 1e6 / operations,
        client_cpu_us: report.client_cpu.as_secs_f64() * 1e6 / operations,
        server_cores,
        client_cores,
        other_cores: (busy.as_secs_f64() / seconds - server_cores - client_cores).max(0.0),
        written_bytes: spent.written_bytes as f64 / operations,
        rss_bytes: rss as f64,
        hit_rate: report.hit_rate(),
        errors: report.error_count() as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_taken_figure_by_figure() {
        let turn =
            |speed, p99, errors| Figures { operations_per_second: speed, p99_ms: p99, errors, ..Figures::default() };
        let figures = Figures::median(&[turn(10.0, 3.0, 0.0), turn(30.0, 1.0, 1.0), turn(20.0, 2.0, 1.0)]);
        assert_eq!((figures.operations_per_second, figures.p99_ms, figures.errors), (20.0, 2.0, 2.0));
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn no_figure_is_lost_on_the_way_through_the_list_of_fields() {
        let mut fields = [0.0; FIELDS];
        (0..FIELDS).for_each(|index| fields[index] = index as f64 + 1.0);
        assert_eq!(Figures::from_fields(fields).fields(), fields);
    }
}
