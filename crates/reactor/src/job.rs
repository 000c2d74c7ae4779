//! Tasks and background jobs: work that belongs to no connection.

use std::sync::{Arc, Weak};
use std::time::Duration;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::mailbox::Task;
use crate::shared::Shared;
use crate::state::{Group, Work};

/// When a background job runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As soon as the work that is enqueued has run.
    Again,
    After(Duration),
    /// When it is kicked.
    Sleep,
}

/// Distributes tasks over the groups in turn.
pub(crate) struct TaskRunner {
    groups: Arc<[Arc<Group>]>,
    shared: Arc<Shared>,
    next_group: AtomicUsize,
}

impl TaskRunner {
    pub fn new(groups: Arc<[Arc<Group>]>, shared: Arc<Shared>) -> TaskRunner {
        TaskRunner { groups, shared, next_group: AtomicUsize::new(0) }
    }

    pub fn run(&self, task: Task) {
        let at = self.next_group.fetch_add(1, Ordering::Relaxed) % self.groups.len();
        self.groups[at].enqueue(std::iter::once(Work::Task(task)));
    }
}

/// The handle of a background job. Clones are the same job.
#[derive(Clone)]
pub struct Job(Arc<JobState>);

struct JobState {
    body: Mutex<Box<dyn FnMut() -> Next + Send>>,
    runner: Weak<TaskRunner>,
    /// A run is enqueued or in progress.
    is_queued: AtomicBool,
    is_kicked: AtomicBool,
    /// The number of runs so far. A timer that was set before the last run is ignored, so that kicks do not multiply timers.
    runs: AtomicU64,
}

impl Job {
    /// Makes a job that sleeps.
    pub(crate) fn new(runner: &Arc<TaskRunner>, body: Box<dyn FnMut() -> Next + Send>) -> Job {
        Job(Arc::new(JobState {
            body: Mutex::new(body),
            runner: Arc::downgrade(runner),
            is_queued: AtomicBool::new(false),
            is_kicked: AtomicBool::new(false),
            runs: AtomicU64::new(0),
        }))
    }

    /// Runs the job soon, also if it sleeps.
    pub fn kick(&self) {
        self.0.is_kicked.store(true, Ordering::SeqCst);
        if !self.0.is_queued.swap(true, Ordering::SeqCst) {
            self.enqueue();
        }
    }

    fn enqueue(&self) {
        let Some(runner) = self.0.runner.upgrade() else { return };
        let job = self.clone();
        runner.run(Box::new(move || job.run()));
    }

    fn run(&self) {
        self.0.is_kicked.store(false, Ordering::SeqCst);
        let run = self.0.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let next = (self.0.body.lock())();
        if next == Next::Again {
            return self.enqueue();
        }
        self.0.is_queued.store(false, Ordering::SeqCst);
        if self.0.is_kicked.load(Ordering::SeqCst) {
            return self.kick();
        }
        if let (Next::After(delay), Some(runner)) = (next, self.0.runner.upgrade()) {
            let job = Arc::downgrade(&self.0);
            runner.shared.timers.add(
                delay,
                Box::new(move || {
                    if let Some(job) = job.upgrade()
                        && job.runs.load(Ordering::SeqCst) == run
                    {
                        Job(job).kick();
                    }
                }),
            );
        }
    }
}
