//! Processors: which ones this process may use, how its threads are scheduled, and how much processor time it has used.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Returns the numbers of the processors that the calling thread may run on.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Binds the calling thread to `cpus`. Returns false if the kernel refuses.
pub fn pin(cpus: &[usize]) -> bool {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set).is_ok()
}

/// Schedules the calling thread as a batch thread (SCHED_BATCH): when it wakes it does not preempt a running thread but waits for its turn. On an idle processor it runs at once, as before.
/// Returns false if the kernel refuses.
pub fn set_batch_scheduling() -> bool {
    set_policy(libc::SCHED_BATCH)
}

/// Returns how long the calling thread has been ready to run and has waited for a processor, in all; `None` if the kernel does not say.
pub fn run_delay() -> Option<std::time::Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let delay_ns = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(std::time::Duration::from_nanos(delay_ns))
}

/// Restores the policy with which every thread begins (SCHED_OTHER): when the calling thread wakes, it may preempt a thread that has run for longer. Returns false if the kernel refuses.
pub fn set_normal_scheduling() -> bool {
    set_policy(libc::SCHED_OTHER)
}

fn set_policy(policy: libc::c_int) -> bool {
    if cfg!(miri) {
        return false;
    }
    // SAFETY: an all-zero parameter is valid, and it is the only one that these policies accept. The kernel reads it during the call.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, policy, &parameter) == 0
    }
}

/// Returns the processor that the calling thread runs on now.
pub fn current() -> usize {
    sched_getcpu()
}

/// Returns user and system time of the whole process in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The processor time of one thread, readable from other threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// Returns the clock of the calling thread.
    pub fn own() -> ThreadClock {
        let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: the thread is alive, because it is the caller. The clock is written to a local. If the kernel refuses, the local keeps the number of the caller's own clock.
        unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        ThreadClock(clock)
    }

    /// Returns the processor time of the thread in nanoseconds, or None if the thread has ended. The kernel may give the number of an ended thread to a new one; the clock is that thread's then.
    pub fn used_ns(self) -> Option<u64> {
        // SAFETY: OS-6: the kernel fills the timespec, or refuses the number of a thread that has ended.
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            let read = libc::clock_gettime(self.0, &mut time);
            (read == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
        }
    }
}

/// Processor time in nanoseconds, in user mode and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user_ns: u64,
    pub system_ns: u64,
}

/// Returns the processor time of the whole process.
pub fn process_time() -> CpuTime {
    usage(libc::RUSAGE_SELF)
}

/// Returns the processor time of child processes that have ended and were waited for.
pub fn children_time() -> CpuTime {
    usage(libc::RUSAGE_CHILDREN)
}

fn usage(target: libc::c_int) -> CpuTime {
    // SAFETY: an all-zero value is valid, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(target, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(not(miri))]
    fn the_clock_of_a_thread_counts_its_own_processor_time_alone() {
        let (sender, clock) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let clock = super::ThreadClock::own();
            while clock.used_ns().unwrap() < 20_000_000 {
                std::hint::spin_loop();
            }
            sender.send(clock).unwrap();
            stopped.recv().unwrap();
        });
        let clock = clock.recv().unwrap();
        let before = clock.used_ns().unwrap();
        assert!(before >= 20_000_000);
        let own = super::ThreadClock::own();
        while own.used_ns().unwrap() < 20_000_000 {}
        assert!(clock.used_ns().unwrap() < before + 10_000_000, "a waiting thread uses no processor time");
        stop.send(()).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_can_be_bound_to_one_of_its_processors() {
        let cpus = super::allowed();
        assert!(!cpus.is_empty());
        std::thread::spawn(move || {
            assert!(super::pin(&cpus[..1]));
            assert_eq!(super::allowed(), cpus[..1]);
        })
        .join()
        .unwrap();
    }

    #[test]
    #[cfg(not(miri))]
    fn the_scheduling_policy_can_be_changed_and_restored() {
        std::thread::spawn(|| {
            assert!(super::set_batch_scheduling());
            // SAFETY: the call passes no memory.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_BATCH);
            assert!(super::set_normal_scheduling());
            // SAFETY: the call passes no memory.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
