//! The kernel's figures for a server process: processor time, bytes written, memory.
//!
//! Children count as the server's own (BE-3) (Redis rewrites its log in one), alive or already waited for.

use std::fs;
use std::time::{Duration, Instant};

use crate::machine::ticks_to_time;

/// Counters that only grow.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// User and system time, in steps of one clock tick (10 ms).
    pub cpu: Duration,
    /// Bytes that the process caused to be sent to the disk (`write_bytes` of /proc/PID/io): pages made dirty, or
    /// direct writes. Additional writes of the file system (its journal) are not included.
    pub written_bytes: u64,
}

impl Usage {
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            cpu: self.cpu.saturating_sub(before.cpu),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

pub fn usage(pid: u32) -> Usage {
    let mut sum = Usage { cpu: cpu_of(pid), written_bytes: written_by(pid) };
    for child in children(pid) {
        sum.cpu += cpu_of(child);
        sum.written_bytes += written_by(child);
    }
    sum
}

/// Waits until the process is idle, no longer than `patience`.
pub fn settle(pid: u32, patience: Duration) {
    const STEP: Duration = Duration::from_millis(100);
    let start = Instant::now();
    let mut before = usage(pid);
    while start.elapsed() < patience {
        std::thread::sleep(STEP);
        let now = usage(pid);
        let since = now.since(before);
        // One tick of processor time in the step may be the timer's own.
        if since.cpu <= STEP / 10 && since.written_bytes == 0 {
            return;
        }
        before = now;
    }
}

pub fn rss_bytes(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Returns the proportional set size of the process and its children: a page that several share counts once in all.
pub fn pss_bytes(pid: u32) -> u64 {
    let of = |pid: u32| {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.split_whitespace().next()?.parse().ok());
        pss.unwrap_or(0) * 1024
    };
    of(pid) + children(pid).into_iter().map(of).sum::<u64>()
}

/// Ended, but not waited for yet (state Z), or gone.
pub fn is_dead(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('Z'))
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn cpu_of(pid: u32) -> Duration {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|stat| cpu_of_stat(&stat)).unwrap_or_default()
}

/// utime, stime, cutime and cstime: fields 14 to 17, counted behind the name, which may contain anything.
fn cpu_of_stat(stat: &str) -> Option<Duration> {
    let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(4).filter_map(|word| word.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks_to_time(ticks.iter().sum()))
}

fn written_by(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let field = |name| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    field("write_bytes:").saturating_sub(field("cancelled_write_bytes:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 4 0 100 1000 10";
        assert_eq!(cpu_of_stat(stat), Some(ticks_to_time(110)));
        assert_eq!(cpu_of_stat("7 (a"), None);
    }

    #[test]
    fn this_process_has_memory_and_its_counters_grow() {
        let pid = std::process::id();
        assert!(rss_bytes(pid) > 100_000);
        let before = usage(pid);
        while usage(pid).since(before).cpu < Duration::from_millis(20) {}
    }
}
