//! The measurements of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Set = 0,
    Get = 1,
    Ping = 2,
    Command = 3,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Set, Kind::Get, Kind::Ping, Kind::Command];

    pub fn name(self) -> &'static str {
        ["SET", "GET", "PING", "command"][self as usize]
    }
}

pub struct Report {
    /// Answered requests by kind, in nanoseconds; errors excluded.
    latencies: [Histogram<u64>; Kind::ALL.len()],
    pub hits: u64,
    pub misses: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// System calls that have moved bytes.
    pub sends: u64,
    pub receives: u64,
    /// Errors by text, with their counts: error replies, wrong replies, lost connections, unanswered requests.
    pub errors: BTreeMap<String, u64>,
    /// From the first request to the last reply.
    pub elapsed: Duration,
    pub client_cpu: Duration,
}

const LATENCY_MAX: Duration = Duration::from_secs(600);
const ERROR_TEXTS_MAX: usize = 20;

impl Report {
    pub fn new() -> Report {
        // Two significant figures: 64 KiB a histogram, of which a run touches a few cache lines.
        let histogram = || Histogram::new_with_bounds(1, LATENCY_MAX.as_nanos() as u64, 2).expect("constant bounds");
        Report {
            latencies: std::array::from_fn(|_| histogram()),
            hits: 0,
            misses: 0,
            bytes_sent: 0,
            bytes_received: 0,
            sends: 0,
            receives: 0,
            errors: BTreeMap::new(),
            elapsed: Duration::ZERO,
            client_cpu: Duration::ZERO,
        }
    }

    pub fn record(&mut self, kind: Kind, nanoseconds: u64) {
        self.latencies[kind as usize].saturating_record(nanoseconds);
    }

    pub fn error(&mut self, text: &str, count: u64) {
        if let Some(seen) = self.errors.get_mut(text) {
            *seen += count;
        } else {
            let text = if self.errors.len() < ERROR_TEXTS_MAX { text } else { "other errors" };
            *self.errors.entry(text.into()).or_default() += count;
        }
    }

    /// Adds the part of another thread; `client_cpu` is the whole process's and set by the caller.
    pub fn merge(&mut self, other: Report) {
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            mine.add(theirs).expect("the same bounds");
        }
        self.hits += other.hits;
        self.misses += other.misses;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.sends += other.sends;
        self.receives += other.receives;
        for (text, count) in &other.errors {
            self.error(text, *count);
        }
        self.elapsed = self.elapsed.max(other.elapsed);
    }

    pub fn latency(&self, kind: Kind) -> &Histogram<u64> {
        &self.latencies[kind as usize]
    }

    /// All kinds in one.
    pub fn latency_all(&self) -> Histogram<u64> {
        let mut all = self.latencies[0].clone();
        for histogram in &self.latencies[1..] {
            all.add(histogram).expect("the same bounds");
        }
        all
    }

    /// Requests answered without an error.
    pub fn operations(&self) -> u64 {
        self.latencies.iter().map(|histogram| histogram.len()).sum()
    }

    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    pub fn operations_per_second(&self) -> f64 {
        self.operations() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub fn megabytes_per_second(&self) -> f64 {
        (self.bytes_sent + self.bytes_received) as f64 / 1e6 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Share of GETs that found a value.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }

    /// The report as `bench load` prints it.
    pub fn text(&self) -> String {
        let milliseconds = |ns: u64| ns as f64 / 1e6;
        let mut out = format!("{:<8}{:>12}{:>14}", "", "requests", "requests/s");
        for name in ["mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms"] {
            out += &format!("{name:>10}");
        }
        out.push('\n');
        let total = self.latency_all();
        let rows = Kind::ALL.iter().map(|kind| (kind.name(), self.latency(*kind))).chain([("all", &total)]);
        for (name, histogram) in rows.filter(|(_, histogram)| !histogram.is_empty()) {
            let per_second = histogram.len() as f64 / self.elapsed.as_secs_f64().max(1e-9);
            out += &format!("{name:<8}{:>12}{per_second:>14.0}{:>10.3}", histogram.len(), histogram.mean() / 1e6);
            for quantile in [0.5, 0.99, 0.999] {
                out += &format!("{:>10.3}", milliseconds(histogram.value_at_quantile(quantile)));
            }
            out += &format!("{:>10.3}\n", milliseconds(histogram.max()));
        }
        out += &format!(
            "{:.3} s, {:.1} MB/s sent, {:.1} MB/s received; for a request client CPU {:.3} us, {:.2} sends, {:.2} receives",
            self.elapsed.as_secs_f64(),
            self.bytes_sent as f64 / 1e6 / self.elapsed.as_secs_f64().max(1e-9),
            self.bytes_received as f64 / 1e6 / self.elapsed.as_secs_f64().max(1e-9),
            self.client_cpu.as_secs_f64() * 1e6 / self.operations().max(1) as f64,
            self.sends as f64 / self.operations().max(1) as f64,
            self.receives as f64 / self.operations().max(1) as f64,
        );
        if self.hits + self.misses > 0 {
            out += &format!(", GET hit rate {:.2} %", self.hit_rate() * 100.0);
        }
        out += &format!("\nerrors: {}\n", self.error_count());
        for (text, count) in &self.errors {
            out += &format!("  {count:>8} x {text}\n");
        }
        out
    }
}
