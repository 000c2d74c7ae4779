//! The machine and this process: facts on which the figures depend, and the few settings that a measurement needs.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Processor time of this process, all threads.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Raises the soft limit of open files to `count`. The error says clearly that the hard limit forbids it.
pub fn allow_open_files(count: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < count) {
        let maximum = limit.maximum.unwrap_or(0);
        return Err(io::Error::other(format!("{count} open files needed, the hard limit is {maximum} (ulimit -Hn)")));
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}

/// The processors that the calling thread may use.
pub fn allowed_cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

pub fn pin_current_thread(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    Ok(sched_setaffinity(None, &set)?)
}

/// Busy processor time of the whole machine since boot, by core: everything but idle and waiting for the disk.
/// Time stolen by the host counts as busy, since no process here could use it.
pub fn busy_by_core() -> Vec<Duration> {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines().filter_map(busy_of_line).collect()
}

fn busy_of_line(line: &str) -> Option<Duration> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?.strip_prefix("cpu")?;
    if name.is_empty() {
        return None;
    }
    let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let busy = ticks.iter().take(8).sum::<u64>() - ticks.get(3)? - ticks.get(4)?;
    Some(ticks_to_time(busy))
}

pub fn ticks_to_time(ticks: u64) -> Duration {
    Duration::from_nanos(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// The lines at the top of every generated page.
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    pub virtual_machine: bool,
}

impl Machine {
    pub fn read() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_string())
        };
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kilobytes = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.trim().split(' ').next()?.parse::<u64>().ok());
        let uname = rustix::system::uname();
        Machine {
            cpu: field("model name").unwrap_or_else(|| "unknown".into()),
            cores: allowed_cores().len(),
            memory_bytes: kilobytes.unwrap_or(0) * 1024,
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            virtual_machine: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_leaves_out_idle_and_waiting() {
        let tick = ticks_to_time(1);
        assert_eq!(busy_of_line("cpu0 1 2 3 1000 2000 4 5 6 7 8"), Some(tick * 21));
        assert_eq!(busy_of_line("cpu 1 2 3 4 5 6 7 8"), None);
        assert_eq!(busy_of_line("intr 1 2 3"), None);
        assert!(!busy_by_core().is_empty());
    }

    #[test]
    fn own_cpu_time_grows_with_work() {
        let before = own_cpu();
        while own_cpu() - before < Duration::from_millis(2) {
            std::hint::black_box(own_cpu());
        }
    }
}
