//! One run of redis-benchmark, and its words.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::measure::Figures;
use crate::process;
use crate::server::Server;

/// Its path: beside the server's program.
pub fn program(redis_server: &Path) -> PathBuf {
    redis_server.with_file_name("redis-benchmark")
}

pub struct Load {
    pub program: PathBuf,
    /// Its last arguments: `-t` and a test's name, or the words of a command.
    pub operation: Vec<&'static str>,
    pub connections: usize,
    pub pipeline: usize,
    pub threads: usize,
    pub keys: u64,
    pub value_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct BenchmarkResult {
    per_second: f64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

const FIRST_REQUESTS: u64 = 5_000;
const SETTLE_PATIENCE: Duration = Duration::from_secs(3);

impl Load {
    /// Requests that take about `turn`, found by runs that grow; `prepare` is called before each with its number of requests.
    pub fn requests_for(
        &self,
        server: &Server,
        turn: Duration,
        prepare: impl Fn(u64) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut requests = FIRST_REQUESTS;
        loop {
            prepare(requests)?;
            let told = self.run(server, requests)?;
            let wanted = (told.per_second * turn.as_secs_f64()).max(1.0);
            if requests as f64 >= wanted / 8.0 {
                return Ok(wanted as u64);
            }
            requests = (wanted / 4.0) as u64;
        }
    }

    pub fn measure(&self, server: &Server, requests: u64) -> io::Result<Figures> {
        server.settle(SETTLE_PATIENCE);
        let before = process::usage(server.pid());
        let told = self.run(server, requests)?;
        let rss = process::rss_bytes(server.pid());
        server.settle(SETTLE_PATIENCE);
        let spent = process::usage(server.pid()).since(before);
        Ok(Figures {
            operations: requests as f64,
            operations_per_second: told.per_second,
            mean_ms: told.mean_ms,
            p50_ms: told.p50_ms,
            p99_ms: told.p99_ms,
            max_ms: told.max_ms,
            server_cpu_us: spent.cpu.as_secs_f64() * 1e6 / requests as f64,
            written_bytes: spent.written_bytes as f64 / requests as f64,
            rss_bytes: rss as f64,
            ..Figures::default()
        })
    }

    fn run(&self, server: &Server, requests: u64) -> io::Result<BenchmarkResult> {
        let mut command = Command::new(&self.program);
        command.args(["-h", &server.address.ip().to_string(), "-p", &server.address.port().to_string(), "--csv"]);
        for (option, value) in [
            ("-c", self.connections as u64),
            ("-P", self.pipeline as u64),
            ("-n", requests),
            ("-r", self.keys),
            ("-d", self.value_bytes as u64),
        ] {
            command.args([option, &value.to_string()]);
        }
        if self.threads > 1 {
            command.args(["--threads", &self.threads.to_string()]);
        }
        command.args(&self.operation);
        let output = command.stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let told = if output.status.success() && !said.contains("Error from server") { parse(&said) } else { None };
        told.ok_or_else(|| {
            let complaint = String::from_utf8_lossy(&output.stderr);
            io::Error::other(format!("{command:?}: {} {}", said.trim(), complaint.trim()))
        })
    }
}

/// The last line of its CSV: name, requests per second, and mean, min, p50, p95, p99 and max in milliseconds.
fn parse(text: &str) -> Option<BenchmarkResult> {
    let line = text.lines().rfind(|line| line.starts_with('"'))?;
    // Names contain commas, and every field is in quotes.
    let fields: Vec<&str> = line.trim().trim_matches('"').split("\",\"").collect();
    let numbers: Vec<f64> = fields.iter().skip(1).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let [per_second, mean_ms, _, p50_ms, _, p99_ms, max_ms] = numbers[..] else { return None };
    Some(BenchmarkResult { per_second, mean_ms, p50_ms, p99_ms, max_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_csv_of_redis_benchmark_is_understood() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                    \"GET\",\"98039.22\",\"0.260\",\"0.088\",\"0.255\",\"0.327\",\"0.471\",\"0.719\"\n";
        let told = BenchmarkResult { per_second: 98039.22, mean_ms: 0.26, p50_ms: 0.255, p99_ms: 0.471, max_ms: 0.719 };
        assert_eq!(parse(text), Some(told));
        assert_eq!(parse(&text[..120]), None);
    }
}
