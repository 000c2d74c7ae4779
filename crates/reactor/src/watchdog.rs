//! The watchdog: finds threads that are in one piece of work for long, and lets other threads take over their events. It sleeps while the pool is idle.

use std::sync::{Arc, Weak};
use std::time::Duration;

use stdx::parker::Depth;
use stdx::sync::atomic::Ordering;

use crate::progress::{Observation, Progress};
use crate::shared::Shared;
use crate::state::Group;
use crate::worker_pool::Replacement;

/// The interval of checks of a busy pool, unless the setting is shorter.
const INTERVAL: Duration = Duration::from_millis(5);
/// After this many checks of an idle pool the watchdog sleeps until a thread receives events. Between two requests of a single client it stays awake: waking it would cost that client a system call.
const IDLE_CHECKS: u32 = 100;

/// The thread of the watchdog. Returns when the pool stops.
pub(crate) fn run(groups: &[Arc<Group>], shared: &Shared) {
    let long = || shared.live.check_interval();
    let interval = || INTERVAL.min(long());
    let sleep_interval = || shared.watchdog.park_timeout(Depth::Light, interval(), || false);
    let mut observations: Vec<Vec<_>> = groups.iter().map(|_| Vec::new()).collect();
    // The threads are still being spawned.
    sleep_interval();
    let mut idle_checks = 0;
    while !shared.stop.load(Ordering::SeqCst) {
        let mut is_quiet = true;
        for (group, before) in groups.iter().zip(&mut observations) {
            let works = group.check_progress(before, long());
            is_quiet &= !works && group.is_idle();
        }
        idle_checks = if is_quiet { idle_checks + 1 } else { 0 };
        if idle_checks < IDLE_CHECKS {
            sleep_interval();
        } else {
            let has_work = || shared.stop.load(Ordering::SeqCst) || !groups.iter().all(|group| group.is_idle());
            shared.watchdog.park(Depth::Deep, has_work);
            idle_checks = 0;
        }
    }
}

impl Group {
    /// Finds the threads that have become stuck since the last check, and lets others take their places (RE-4, RE-5, RE-20). `before` holds the observations of the last check.
    /// Returns false if no thread works.
    fn check_progress(self: &Arc<Self>, before: &mut Vec<(Weak<Progress>, Observation)>, long: Duration) -> bool {
        let threads = self.progress.lock().clone();
        before.retain(|(known, _)| known.strong_count() > 0);
        for thread in &threads {
            if !before.iter().any(|(known, _)| known.as_ptr() == Arc::as_ptr(thread)) {
                before.push((Arc::downgrade(thread), Observation::new()));
            }
        }
        let mut works = false;
        for (thread, observation) in before {
            let Some(thread) = thread.upgrade() else { continue };
            if thread.check(observation, long) {
                match self.workers.stuck() {
                    Replacement::Spawn => self.spawn(),
                    Replacement::None => {}
                    Replacement::Impossible => {
                        self.shared.counters.computations_ended.add(1);
                        thread.end_work();
                    }
                }
                self.hand_over();
            }
            works |= observation.works();
        }
        works
    }
}
