//! Processors: which ones this process may use, and how much of them it has used.

/// Numbers of the processors that the calling thread may run on.
pub fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero set is valid, and the kernel writes at most its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        set
    };
    // SAFETY: the index stays below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Binds the calling thread to `cpus`. Best effort: false if the kernel refuses.
pub fn pin(cpus: &[usize]) -> bool {
    // SAFETY: an all-zero set is valid; indices beyond its size are left out.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

/// From now on the calling thread does not take the processor from one that works when it wakes, and waits for its turn. Where a processor is idle it runs at once as
/// before. Best effort: false if the kernel refuses.
pub fn set_batch_scheduling() -> bool {
    set_policy(libc::SCHED_BATCH)
}

/// The opposite, as every thread begins: when it wakes it may take the processor from one that has worked for longer.
pub fn set_normal_scheduling() -> bool {
    set_policy(libc::SCHED_OTHER)
}

fn set_policy(policy: libc::c_int) -> bool {
    if cfg!(miri) {
        return false;
    }
    // SAFETY: an all-zero parameter is valid, and the only one that these policies take.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, policy, &parameter) == 0
    }
}

/// The processor that the calling thread runs on now.
pub fn current() -> usize {
    // SAFETY: no memory is passed; it fails on no kernel that has epoll.
    unsafe { libc::sched_getcpu() }.try_into().unwrap_or(0)
}

/// User and system time of the whole process in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    // SAFETY: the kernel fills the timespec.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// The processor time of one thread, which others can read.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// Returns the clock of the calling thread.
    pub fn own() -> ThreadClock {
        let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: the thread lives, for it is the caller; the clock is written to a local. A refusal leaves the caller's own clock.
        unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        ThreadClock(clock)
    }

    /// Returns the nanoseconds that the thread has computed; None: it has ended. The number of an ended thread may be given to another one: then they are that one's.
    pub fn used_ns(self) -> Option<u64> {
        // SAFETY: the kernel fills the timespec, or refuses a clock whose thread has ended.
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            let read = libc::clock_gettime(self.0, &mut time);
            (read == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
        }
    }
}

/// Processor time in nanoseconds: user, system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user_ns: u64,
    pub system_ns: u64,
}

/// Of the whole process.
pub fn process_time() -> CpuTime {
    used(libc::RUSAGE_SELF)
}

/// Of the processes that it has started and seen end.
pub fn children_time() -> CpuTime {
    used(libc::RUSAGE_CHILDREN)
}

fn used(who: libc::c_int) -> CpuTime {
    // SAFETY: an all-zero value is valid, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(not(miri))]
    fn the_clock_of_a_thread_counts_what_it_computes_and_nothing_else() {
        let (tell, clock) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let clock = super::ThreadClock::own();
            while clock.used_ns().unwrap() < 20_000_000 {
                std::hint::spin_loop();
            }
            tell.send(clock).unwrap();
            stopped.recv().unwrap();
        });
        let clock = clock.recv().unwrap();
        let before = clock.used_ns().unwrap();
        assert!(before >= 20_000_000);
        let own = super::ThreadClock::own();
        while own.used_ns().unwrap() < 20_000_000 {}
        assert!(clock.used_ns().unwrap() < before + 10_000_000, "it waits meanwhile");
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
    fn a_thread_may_leave_others_the_processor() {
        std::thread::spawn(|| {
            assert!(super::set_batch_scheduling());
            // SAFETY: no memory is passed.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_BATCH);
            assert!(super::set_normal_scheduling());
            // SAFETY: no memory is passed.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
        })
        .join()
        .unwrap();
    }
}
