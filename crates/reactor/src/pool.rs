//! The pool: groups, listeners, timers, background jobs, and how it all ends.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use stdx::sync::{Condvar, Mutex, RwLock};
use stdx::watermark::Watermark;

use crate::Counters;
use crate::connection::{Connection, DRAIN, KILL};
use crate::door::{AnyDoor, Door};
use crate::group::{Group, TOKEN_LISTENER, TOKEN_TIMER, Work};
use crate::mailbox::Task;
use crate::settings::{Live, Settings};
use crate::sys::{self, EventFd};
use crate::timer::{Alarm, Timers};
use crate::tls::{Tls, TlsConfig};

/// How long accept rests after an error that only time mends, such as a process without file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Connections of one listener that are refused at once when descriptors have run out; the others wait for the retry.
const REFUSED_AT_ONCE: usize = 64;

/// How a door listens.
#[derive(Clone, Debug, Default)]
pub struct ListenOptions {
    /// 0: the pool's limit alone.
    pub max_connections: usize,
    /// Connections speak TLS; who does not is told so in TLS' own words and closed.
    pub tls: Option<Arc<TlsConfig>>,
}

/// A door's open port.
pub struct Listener {
    pub local_addr: SocketAddr,
}

/// When a background job wants to run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once, after others had their turn.
    Again,
    After(Duration),
    /// When it is kicked.
    Sleep,
}

struct Entrance {
    door: Arc<dyn AnyDoor>,
    sockets: Vec<TcpListener>,
    max_connections: usize,
    tls: Option<Arc<TlsConfig>>,
}

pub(crate) struct PoolInner {
    pub groups: Arc<[Arc<Group>]>,
    pub timers: Arc<Timers>,
    pub stop: AtomicBool,
    pub threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    pub connections: AtomicUsize,
    pub watchdog: Watchdog,
    settings: Settings,
    live: Arc<Live>,
    counters: Arc<Counters>,
    entrances: RwLock<Vec<Entrance>>,
    next_id: AtomicU64,
    next_group: AtomicUsize,
    /// Held open so that it can be closed to accept one more connection and refuse it in the door's words (R16). None while even that one is lost.
    reserve: Mutex<Option<EventFd>>,
    /// A retry of accept is scheduled: there is one for the whole pool, however many listeners have failed.
    accept_retry: AtomicBool,
    on_exhausted: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The threads, the sockets, and everything between them.
pub struct Pool {
    inner: Arc<PoolInner>,
}

/// What a group's threads look after besides connections: reads that they have started, for instance.
pub struct EventSource {
    /// Becomes readable when there is something to do.
    pub fd: OwnedFd,
    /// Called by each thread of the group when it starts.
    pub enter: Box<dyn Fn() + Send + Sync>,
    /// Lets begin what sessions have asked for since the last time. Called by each thread at the end of a round, and before it waits inside one (R11).
    pub submit: Box<dyn Fn() + Send + Sync>,
    /// Does what there is to do, without waiting. Called by each thread before it looks at the queue and waits for events (R11).
    pub poll: Box<dyn Fn() + Send + Sync>,
}

impl Pool {
    /// Starts the threads. Replies are held back until `durable` has reached their gate. `source` is asked once for each group, by number.
    pub fn start(
        settings: &Settings,
        durable: Arc<Watermark>,
        source: &mut dyn FnMut(usize) -> Option<EventSource>,
    ) -> io::Result<Pool> {
        let processors = os::cpu::allowed();
        let settings = settings.resolve(processors.len());
        let (counters, live) = (Arc::new(Counters::default()), Arc::new(Live::of(&settings)));
        let groups: Arc<[Arc<Group>]> = (0..settings.epoll_groups)
            .map(|number| {
                let shared = (counters.clone(), live.clone());
                Group::new(settings.clone(), shared, durable.clone(), source(number)).map(Arc::new)
            })
            .collect::<io::Result<_>>()?;
        let timers = Arc::new(Timers::new()?);
        groups[0].epoll.add(&timers.fd, TOKEN_TIMER, false)?;
        let inner = Arc::new(PoolInner {
            groups,
            timers,
            stop: AtomicBool::new(false),
            threads: Mutex::default(),
            connections: AtomicUsize::new(0),
            watchdog: Watchdog::default(),
            counters,
            entrances: RwLock::default(),
            next_id: AtomicU64::new(1),
            next_group: AtomicUsize::new(0),
            reserve: Mutex::new(Some(EventFd::new()?)),
            accept_retry: AtomicBool::new(false),
            on_exhausted: OnceLock::new(),
            live,
            settings,
        });
        let weak: Vec<_> = inner.groups.iter().map(Arc::downgrade).collect();
        durable.listen(Box::new(move |_| {
            for group in weak.iter().filter_map(std::sync::Weak::upgrade) {
                group.on_durable();
            }
        }));
        let mut processors = processors.into_iter().cycle();
        for group in inner.groups.iter() {
            assert!(group.pool.set(Arc::downgrade(&inner)).is_ok());
            for _ in 0..inner.settings.epoll_threads_per_group {
                group.crew.join();
                group.spawn_base(processors.next().filter(|_| inner.settings.auto_cpu_affinity));
            }
        }
        let pool = Pool { inner };
        pool.start_watchdog();
        Ok(pool)
    }

    fn start_watchdog(&self) {
        let inner = self.inner.clone();
        let body = move || inner.watchdog.run(&inner);
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(body).expect("a thread at start");
        self.inner.threads.lock().push(thread);
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Takes over what may change while the pool runs: events of a thread, times, pieces that are received, and for new connections what their sockets are told. The rest stays as it was.
    pub fn tune(&self, settings: &Settings) {
        self.inner.live.take(settings);
        // It may sleep for the time that there was.
        self.inner.watchdog.stir_always();
    }

    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    pub fn connection_count(&self) -> usize {
        self.inner.connections.load(Ordering::Relaxed)
    }

    /// Threads that exist, and how many of them wait inside a request.
    pub fn thread_counts(&self) -> (usize, usize) {
        let numbers = self.inner.groups.iter().map(|group| group.crew.numbers());
        numbers.fold((0, 0), |(total, stalled), numbers| (total + numbers.total, stalled + numbers.stalled))
    }

    /// All connections of all doors.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.inner.groups.iter().flat_map(|group| group.connections()).collect()
    }

    /// Registers a call for each batch of connections that is refused because the process has no file descriptor left. Calls come at most every
    /// `ACCEPT_RETRY`, from a pool thread. Later registrations are ignored.
    pub fn on_descriptors_exhausted(&self, call: Box<dyn Fn() + Send + Sync>) {
        let _ = self.inner.on_exhausted.set(call);
    }

    /// Opens a port for a door. Port 0 takes any free one.
    pub fn listen<D: Door>(&self, address: SocketAddr, door: Arc<D>, options: ListenOptions) -> io::Result<Listener> {
        let groups = &self.inner.groups;
        let first = sys::listen(address, self.inner.settings.tcp_listen_queue, groups.len() > 1)?;
        let local_addr = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..groups.len() {
            sockets.push(sys::listen(local_addr, self.inner.settings.tcp_listen_queue, true)?);
        }
        let mut entrances = self.inner.entrances.write();
        let number = entrances.len() as u64;
        entrances.push(Entrance { door, sockets, max_connections: options.max_connections, tls: options.tls });
        for (group, socket) in groups.iter().zip(&entrances[number as usize].sockets) {
            group.epoll.add(socket, TOKEN_LISTENER + number, false)?;
        }
        Ok(Listener { local_addr })
    }

    /// Runs `task` in some thread of the pool.
    pub fn task(&self, task: Task) {
        self.inner.task(task);
    }

    /// Runs `action` after `delay`, in the thread that handles timers: short things only.
    pub fn timer(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) {
        self.inner.timers.add(delay, action);
    }

    /// The same, cancelled when the alarm is dropped.
    pub fn alarm(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) -> Alarm {
        self.inner.timers.alarm(delay, action)
    }

    /// Runs `job` now and whenever it wants to go on. It should work for a millisecond or two at a time.
    pub fn background(&self, job: impl FnMut() -> Next + Send + 'static) -> Job {
        let job = Job(Arc::new(JobInner {
            body: Mutex::new(Box::new(job)),
            pool: Arc::downgrade(&self.inner),
            queued: AtomicBool::new(false),
            kicked: AtomicBool::new(false),
            runs: AtomicU64::new(0),
        }));
        job.kick();
        job
    }

    /// New connections are refused by the system from here on.
    pub fn stop_accepting(&self) {
        for entrance in self.inner.entrances.write().iter_mut() {
            // Closing the sockets takes them out of the epoll sets.
            entrance.sockets.clear();
        }
    }

    /// Lets every connection finish what it has begun and close; after `timeout` the rest is cut off. True if none had to be.
    pub fn drain(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        self.tell_all(DRAIN);
        while self.connection_count() > 0 {
            if Instant::now() >= until {
                self.tell_all(KILL);
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    fn tell_all(&self, bits: u32) {
        for group in self.inner.groups.iter() {
            group.enqueue(group.connections().into_iter().map(|connection| Work::Turn(connection, bits)));
        }
    }

    /// Ends all threads. Connections still open are closed without a word, and the sessions of all strands have ended when this returns (R13).
    pub fn stop(&self) {
        let inner = &self.inner;
        self.stop_accepting();
        self.tell_all(KILL);
        let until = Instant::now() + Duration::from_secs(2);
        while self.connection_count() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        inner.stop.store(true, Ordering::SeqCst);
        inner.watchdog.stir_always();
        loop {
            let threads = std::mem::take(&mut *inner.threads.lock());
            if threads.is_empty() {
                break;
            }
            for thread in threads {
                while !thread.is_finished() {
                    inner.groups.iter().for_each(|group| group.rouse());
                    std::thread::sleep(Duration::from_millis(1));
                }
                let _ = thread.join();
            }
        }
        for connection in self.connections() {
            connection.abandon();
        }
        // One group's strands may leave runs to another.
        while inner.groups.iter().filter(|group| group.finish()).count() > 0 {}
    }
}

impl PoolInner {
    fn task(&self, task: Task) {
        let at = self.next_group.fetch_add(1, Ordering::Relaxed) % self.groups.len();
        self.groups[at].enqueue(std::iter::once(Work::Task(task)));
    }

    /// Takes all waiting connections of a listener into `group`.
    pub fn accept(&self, group: &Arc<Group>, entrance: u64) {
        let at = self.groups.iter().position(|other| Arc::ptr_eq(other, group)).expect("one of ours");
        self.accept_at(at, entrance);
    }

    fn accept_at(&self, group: usize, entrance: u64) {
        let entrances = self.entrances.read();
        let Some(entrance) = entrances.get(entrance as usize) else { return };
        let Some(socket) = entrance.sockets.get(group) else { return };
        loop {
            match socket.accept() {
                Ok((stream, peer)) => self.admit(entrance, stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The peer gave up, or the call was interrupted: the next one.
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                Err(error) => {
                    if sys::is_out_of_descriptors(&error) {
                        self.refuse_waiting(entrance, socket);
                    }
                    // The edge is used up, so the backlog is examined again later.
                    self.retry_accept();
                    return;
                }
            }
        }
    }

    /// Refuses up to `REFUSED_AT_ONCE` connections of a listener's backlog in the door's words, one after another over the reserve descriptor (R16).
    fn refuse_waiting(&self, entrance: &Entrance, socket: &TcpListener) {
        let mut reserve = self.reserve.lock();
        let mut refused = 0;
        while refused < REFUSED_AT_ONCE {
            drop(reserve.take());
            let accepted = socket.accept();
            if let Ok((stream, _)) = &accepted {
                self.refuse(entrance, stream);
                refused += 1;
            }
            let is_over = accepted.is_err();
            drop(accepted);
            *reserve = EventFd::new().ok();
            if is_over || reserve.is_none() {
                break;
            }
        }
        drop(reserve);
        if let Some(call) = self.on_exhausted.get() {
            call();
        }
    }

    fn refuse(&self, entrance: &Entrance, stream: &std::net::TcpStream) {
        self.counters.refused.add(1);
        if entrance.tls.is_none() {
            let _ = sys::send(stream, &entrance.door.refuse());
        }
    }

    fn retry_accept(&self) {
        if self.accept_retry.swap(true, Ordering::SeqCst) {
            return;
        }
        // The pool outlives its timers, and a group leads to it.
        let group = self.groups[0].clone();
        self.timers.add(
            ACCEPT_RETRY,
            Box::new(move || {
                let Some(pool) = group.pool.get().and_then(std::sync::Weak::upgrade) else { return };
                pool.accept_retry.store(false, Ordering::SeqCst);
                let count = pool.entrances.read().len() as u64;
                for group in 0..pool.groups.len() {
                    (0..count).for_each(|entrance| pool.accept_at(group, entrance));
                }
            }),
        );
    }

    fn admit(&self, entrance: &Entrance, stream: std::net::TcpStream, peer: SocketAddr) {
        let limit = match entrance.max_connections {
            0 => self.settings.max_connections,
            own => own.min(self.settings.max_connections),
        };
        if self.connections.fetch_add(1, Ordering::SeqCst) >= limit {
            self.connections.fetch_sub(1, Ordering::SeqCst);
            self.refuse(entrance, &stream);
            return;
        }
        if self.adopt(entrance, stream, peer).is_none() {
            self.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Makes the connection, in the group that has fewest.
    fn adopt(&self, entrance: &Entrance, stream: std::net::TcpStream, peer: SocketAddr) -> Option<()> {
        stream.set_nonblocking(true).ok()?;
        let _ = stream.set_nodelay(true);
        let live = &self.live;
        let seconds = live.keep_alive.load(Ordering::Relaxed);
        if seconds > 0 {
            let _ = sys::keep_alive(&stream, seconds);
        }
        let _ = sys::set_buffers(&stream, live.recv_buf.load(Ordering::Relaxed), live.send_buf.load(Ordering::Relaxed));
        let local = stream.local_addr().ok()?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let home = (0..self.groups.len()).min_by_key(|at| self.groups[*at].population()).expect("there are groups");
        let place = (self.groups.clone(), home);
        let tls = entrance.tls.as_ref().map(Tls::new).transpose().ok()?.map(Box::new);
        let connection = Arc::new(Connection::new(id, stream, peer, local, entrance.door.clone(), tls, place));
        if !connection.start() {
            self.counters.refused.add(1);
            return None;
        }
        self.counters.accepted.add(1);
        if self.groups[home].adopt(&connection).is_err() {
            connection.abandon();
            return None;
        }
        connection.settle();
        Some(())
    }
}

/// A background job's handle.
#[derive(Clone)]
pub struct Job(Arc<JobInner>);

struct JobInner {
    body: Mutex<Box<dyn FnMut() -> Next + Send>>,
    pool: std::sync::Weak<PoolInner>,
    /// A run is in the queue or under way.
    queued: AtomicBool,
    kicked: AtomicBool,
    /// How often it has run: a timer set before the last run has nothing to say.
    runs: AtomicU64,
}

impl Job {
    /// Runs the job soon, also if it sleeps.
    pub fn kick(&self) {
        self.0.kicked.store(true, Ordering::SeqCst);
        if !self.0.queued.swap(true, Ordering::SeqCst) {
            self.enqueue();
        }
    }

    fn enqueue(&self) {
        let Some(pool) = self.0.pool.upgrade() else { return };
        let job = self.clone();
        pool.task(Box::new(move || job.run()));
    }

    fn run(&self) {
        self.0.kicked.store(false, Ordering::SeqCst);
        let run = self.0.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let next = (self.0.body.lock())();
        if next == Next::Again {
            return self.enqueue();
        }
        self.0.queued.store(false, Ordering::SeqCst);
        if self.0.kicked.load(Ordering::SeqCst) {
            return self.kick();
        }
        if let (Next::After(delay), Some(pool)) = (next, self.0.pool.upgrade()) {
            let job = Arc::downgrade(&self.0);
            pool.timers.add(
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

/// Looks now and then whether a thread is in one piece of work for long, and has others take over its events. Asleep while the pool is idle.
#[derive(Default)]
pub(crate) struct Watchdog {
    asleep: AtomicBool,
    bed: (Mutex<bool>, Condvar),
}

/// How often a busy pool is looked at, unless the long interval is shorter.
const LOOK: Duration = Duration::from_millis(5);
/// So many looks at an idle pool, and the watchdog sleeps until something happens.
const QUIET_LOOKS: u32 = 100;

impl Watchdog {
    /// Something happens in the pool.
    #[inline]
    pub fn stir(&self) {
        if self.asleep.load(Ordering::Relaxed) {
            self.stir_always();
        }
    }

    fn stir_always(&self) {
        *self.bed.0.lock() = true;
        self.bed.1.notify_one();
    }

    fn run(&self, pool: &PoolInner) {
        let long = || pool.live.check_interval();
        let interval = || LOOK.min(long());
        let mut seen: Vec<Vec<_>> = pool.groups.iter().map(|_| Vec::new()).collect();
        // The threads are only just being made.
        self.sleep(Some(interval()));
        let mut quiet_looks = 0;
        while !pool.stop.load(Ordering::SeqCst) {
            let mut quiet = true;
            for (group, before) in pool.groups.iter().zip(&mut seen) {
                let works = group.look_for_stuck(before, long());
                quiet &= !works && group.is_idle();
            }
            quiet_looks = if quiet { quiet_looks + 1 } else { 0 };
            // Between two requests of a lone client it stays awake: waking it costs that client a system call.
            self.sleep(if quiet_looks < QUIET_LOOKS { Some(interval()) } else { None });
            quiet_looks %= QUIET_LOOKS;
        }
    }

    fn sleep(&self, interval: Option<Duration>) {
        let mut stirred = self.bed.0.lock();
        match interval {
            Some(interval) => drop(self.bed.1.wait_timeout(stirred, interval)),
            None => {
                self.asleep.store(true, Ordering::SeqCst);
                while !*stirred {
                    stirred = self.bed.1.wait(stirred);
                }
                self.asleep.store(false, Ordering::SeqCst);
                *stirred = false;
            }
        }
    }
}
