//! The pool: starts the groups, listens, runs timers, tasks and background jobs, and ends everything in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stdx::sync::atomic::Ordering;
use stdx::watermark::Watermark;

use crate::acceptor::{Acceptor, ListenOptions};
use crate::counters::Counters;
use crate::door::Door;
use crate::event_source::EventSource;
use crate::group::TOKEN_TIMER;
use crate::job::{Job, Next, TaskRunner};
use crate::mailbox::Task;
use crate::reply_gate::ReplyGate;
use crate::run_state::{DRAIN, KILL};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::{Connection, Group, Work};
use crate::timer::Alarm;
use crate::watchdog;

/// An open port of a door.
pub struct Listener {
    pub local_addr: SocketAddr,
}

/// The thread pool. `stop` ends it; a pool that is dropped only closes its ports.
pub struct Pool {
    groups: Arc<[Arc<Group>]>,
    shared: Arc<Shared>,
    acceptor: Arc<Acceptor>,
    tasks: Arc<TaskRunner>,
}

impl Pool {
    /// Starts the threads. Replies are held until `durable` has reached their durability LSN. `source` is called once per group, with its number.
    pub fn start(
        settings: &Settings,
        durable: Arc<Watermark>,
        source: &mut dyn FnMut(usize) -> Option<EventSource>,
    ) -> io::Result<Pool> {
        Pool::start_gated(settings, durable, None, source)
    }

    /// Does the same as `start`. Output leaves only while `gate` is open.
    pub fn start_gated(
        settings: &Settings,
        durable: Arc<Watermark>,
        gate: Option<ReplyGate>,
        source: &mut dyn FnMut(usize) -> Option<EventSource>,
    ) -> io::Result<Pool> {
        let processors = os::cpu::allowed();
        let shared = Arc::new(Shared::new(settings.resolve(processors.len()), durable, gate)?);
        let groups: Arc<[Arc<Group>]> = (0..shared.settings.epoll_groups)
            .map(|number| Group::new(number, shared.clone(), source(number)).map(Arc::new))
            .collect::<io::Result<_>>()?;
        groups[0].epoll.add(&shared.timers.fd, TOKEN_TIMER, false)?;
        let weak: Vec<_> = groups.iter().map(Arc::downgrade).collect();
        shared.durable.listen(Box::new(move |_| {
            for group in weak.iter().filter_map(std::sync::Weak::upgrade) {
                group.on_durable();
            }
        }));
        let pool = Pool {
            acceptor: Acceptor::new(groups.clone(), shared.clone())?,
            tasks: Arc::new(TaskRunner::new(groups.clone(), shared.clone())),
            groups,
            shared,
        };
        pool.spawn_threads(processors);
        Ok(pool)
    }

    fn spawn_threads(&self, processors: Vec<usize>) {
        let settings = &self.shared.settings;
        let mut processors = processors.into_iter().cycle();
        for group in self.groups.iter() {
            for _ in 0..settings.epoll_threads_per_group {
                group.workers.add_base();
                group.spawn_base(processors.next().filter(|_| settings.auto_cpu_affinity));
            }
        }
        let (groups, shared) = (self.groups.clone(), self.shared.clone());
        let body = move || watchdog::run(&groups, &shared);
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(body).expect("a thread at start");
        self.shared.threads.lock().push(thread);
    }

    /// Sends what the gate has held, if it is open now.
    pub fn release_held(&self) {
        self.groups.iter().for_each(|group| group.on_durable());
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Applies the settings that may change while the pool runs: events per thread, intervals, receive sizes, and socket options of new connections. The other settings stay as they are.
    pub fn tune(&self, settings: &Settings) {
        self.shared.live.store(settings);
        // The watchdog may sleep for the old interval.
        self.shared.watchdog.unpark();
    }

    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub fn connection_count(&self) -> usize {
        self.shared.connection_count.load(Ordering::Relaxed)
    }

    /// Returns the number of threads, and how many of them are in an announced wait.
    pub fn thread_counts(&self) -> (usize, usize) {
        let counts = self.groups.iter().map(|group| group.workers.counts());
        counts.fold((0, 0), |(total, stalled), counts| (total + counts.total, stalled + counts.stalled))
    }

    /// Returns all connections of all doors.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.groups.iter().flat_map(|group| group.connections()).collect()
    }

    /// Registers a function that is called for each batch of connections that is refused because the process has no file descriptor left. It is called from a pool thread, at most
    /// once per 100 ms and port. Later registrations are ignored.
    pub fn on_descriptors_exhausted(&self, call: Box<dyn Fn() + Send + Sync>) {
        self.acceptor.on_exhausted(call);
    }

    /// Opens a port for a door. Port 0 selects any free one.
    pub fn listen<D: Door>(&self, address: SocketAddr, door: Arc<D>, options: ListenOptions) -> io::Result<Listener> {
        Ok(Listener { local_addr: self.acceptor.listen(address, door, options)? })
    }

    /// Runs `task` in any thread of the pool.
    pub fn task(&self, task: Task) {
        self.tasks.run(task);
    }

    /// Runs `action` after `delay`, in the thread that handles timers. It must be short.
    pub fn timer(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) {
        self.shared.timers.add(delay, action);
    }

    /// Does the same as `timer`. Dropping the alarm cancels the timer.
    pub fn alarm(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) -> Alarm {
        self.shared.timers.alarm(delay, action)
    }

    /// Runs `job` now and whenever it wants to run again. One run should take a millisecond or two.
    pub fn background(&self, job: impl FnMut() -> Next + Send + 'static) -> Job {
        let job = Job::new(&self.tasks, Box::new(job));
        job.kick();
        job
    }

    /// Closes all ports. The system refuses new connections from now on.
    pub fn stop_accepting(&self) {
        self.acceptor.close();
    }

    /// Lets every connection finish the requests that it has begun, and close. Disconnects the rest after `timeout`. Returns true if there was no rest.
    pub fn drain(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        self.notify_all(DRAIN);
        while self.connection_count() > 0 {
            if Instant::now() >= deadline {
                self.notify_all(KILL);
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    fn notify_all(&self, bits: u32) {
        for group in self.groups.iter() {
            group.enqueue(group.connections().into_iter().map(|connection| Work::Events(connection, bits)));
        }
    }

    /// Ends all threads. Connections that are still open are closed without notice. When this returns, the sessions of all session queues have ended (RE-13).
    pub fn stop(&self) {
        self.stop_accepting();
        self.notify_all(KILL);
        let deadline = Instant::now() + Duration::from_secs(2);
        while self.connection_count() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.watchdog.unpark();
        loop {
            let threads = std::mem::take(&mut *self.shared.threads.lock());
            if threads.is_empty() {
                break;
            }
            for thread in threads {
                while !thread.is_finished() {
                    self.groups.iter().for_each(|group| group.wake_to_stop());
                    std::thread::sleep(Duration::from_millis(1));
                }
                let _ = thread.join();
            }
        }
        for connection in self.connections() {
            connection.abandon();
        }
        // The session queues of one group may schedule runs in another.
        while self.groups.iter().filter(|group| group.run_remaining_sessions()).count() > 0 {}
    }
}
