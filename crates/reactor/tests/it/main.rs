//! The pool over real sockets: bytes cut anywhere, gates in order, growth and shrinking, limits, endings.

mod sessions;
mod tls;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use reactor::{Connection, Door, Fetch, Flow, Handle, Io, ListenOptions, Next, Pool, Received, Settings};
use stdx::watermark::Watermark;

/// A door of lines: `echo TEXT`, `gate N`, `block` (waits, announced, until released), `big N`, `sleep` (parks), `processors` (how many the thread may run on), `quit`, `panic`.
#[derive(Default)]
struct Lines {
    open: AtomicUsize,
    closed: AtomicUsize,
    blocked: Mutex<usize>,
    released: Mutex<bool>,
    bell: Condvar,
    handles: Mutex<Vec<Handle>>,
    /// To be called when what late requests need is there.
    away: Away,
    /// How often somebody looked ahead at what a session has received.
    looked: AtomicUsize,
    /// How many requests have begun to spin.
    spinning: AtomicUsize,
}

type Away = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

static BLOCK: stdx::wait::Reason = stdx::wait::Reason::new("test_block");

struct Session {
    parked: bool,
}

impl Lines {
    fn run(&self, session: &mut Session, line: &str, io: &mut Io<'_>) -> Flow {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "gate" => io.hold_until_durable(rest.parse().unwrap()),
            "block" => {
                *self.blocked.lock().unwrap() += 1;
                let _waiting = stdx::wait::announce(&BLOCK);
                let mut released = self.released.lock().unwrap();
                while !*released {
                    released = self.bell.wait(released).unwrap();
                }
            }
            "spin" => {
                self.spinning.fetch_add(1, Ordering::SeqCst);
                let until = Instant::now() + Duration::from_millis(rest.parse().unwrap());
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
            "compute" => {
                let until = Instant::now() + Duration::from_millis(rest.parse().unwrap());
                while Instant::now() < until && !*self.released.lock().unwrap() {
                    if !stdx::wait::check_for_interrupts() {
                        io.out().extend_from_slice(b"ended\n");
                        return Flow::Continue;
                    }
                }
            }
            "big" => {
                let count: usize = rest.parse().unwrap();
                let end = io.out().len() + count;
                io.out().resize(end, b'x');
                io.out().push(b'\n');
                return Flow::Continue;
            }
            "sleep" => {
                session.parked = true;
                io.park();
                return Flow::Continue;
            }
            "processors" => {
                io.out().extend_from_slice(format!("{}\n", os::cpu::allowed().len()).as_bytes());
                return Flow::Continue;
            }
            "quit" => {
                io.out().extend_from_slice(b"bye\n");
                return Flow::Close;
            }
            "panic" => panic!("asked for"),
            _ => {}
        }
        io.out().extend_from_slice(line.as_bytes());
        io.out().push(b'\n');
        Flow::Continue
    }
}

impl Door for Lines {
    type Session = Session;

    fn open(&self, connection: &Arc<Connection>) -> Result<Session, Vec<u8>> {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.handles.lock().unwrap().push(connection.handle());
        Ok(Session { parked: false })
    }

    fn serve(&self, session: &mut Session, io: &mut Io<'_>) -> Flow {
        if std::mem::take(&mut session.parked) {
            io.out().extend_from_slice(b"woken\n");
        }
        loop {
            let input = io.input();
            if let Some(size) = input.strip_prefix(b"data ") {
                let Some(end) = size.iter().position(|byte| *byte == b'\n') else { return Flow::Continue };
                let count: usize = std::str::from_utf8(&size[..end]).unwrap().parse().unwrap();
                let whole = 5 + end + 1 + count;
                if input.len() < whole {
                    io.expect(whole);
                    return Flow::Continue;
                }
                let sum: u64 = input[whole - count..whole].iter().map(|byte| u64::from(*byte)).sum();
                io.out().extend_from_slice(format!("sum {sum}\n").as_bytes());
                io.consume(whole);
                continue;
            }
            let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Flow::Continue };
            if io.is_full() {
                io.pause();
                return Flow::Continue;
            }
            let line = std::str::from_utf8(&input[..end]).unwrap().to_owned();
            io.consume(end + 1);
            let flow = self.run(session, &line, io);
            if flow != Flow::Continue || session.parked {
                return flow;
            }
        }
    }

    /// What begins with "late" needs something that comes when the test says so.
    fn look_ahead(&self, arrived: &mut [Received<'_, Session>]) -> Option<Fetch> {
        let mut any = false;
        self.looked.fetch_add(arrived.len(), Ordering::SeqCst);
        for arrived in arrived {
            arrived.is_deferred = arrived.input.starts_with(b"late");
            any |= arrived.is_deferred;
        }
        any.then(|| -> Fetch {
            let away = self.away.clone();
            Box::new(move |thens| away.lock().unwrap().extend(thens))
        })
    }

    fn close(&self, _: Session) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }

    fn refuse(&self) -> Vec<u8> {
        b"too many\n".to_vec()
    }
}

struct Bench {
    pool: Pool,
    door: Arc<Lines>,
    durable: Arc<Watermark>,
    address: SocketAddr,
}

fn start(settings: Settings) -> Bench {
    let durable = Arc::new(Watermark::new(0));
    let pool = Pool::start(&settings, durable.clone(), &mut |_| None).unwrap();
    let door = Arc::new(Lines::default());
    let listener = pool.listen(([127, 0, 0, 1], 0).into(), door.clone(), ListenOptions::default()).unwrap();
    Bench { pool, door, durable, address: listener.local_addr }
}

impl Bench {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

fn say(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

fn hear(stream: &mut TcpStream, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

fn hears_nothing(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
    assert!(stream.read(&mut [0; 1]).is_err(), "nothing may come yet");
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn requests_cut_anywhere_are_answered_whole() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    let text = "one\ndata 10\n0123456789two\nthree\n";
    let answer = "one\nsum 525\ntwo\nthree\n";
    say(&mut stream, text);
    hear(&mut stream, answer);
    for cut in 1..text.len() {
        say(&mut stream, &text[..cut]);
        std::thread::sleep(Duration::from_micros(300));
        say(&mut stream, &text[cut..]);
        hear(&mut stream, answer);
    }
    for byte in text.bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    hear(&mut stream, answer);
    bench.pool.stop();
    assert_eq!(bench.door.open.load(Ordering::SeqCst), bench.door.closed.load(Ordering::SeqCst));
}

/// The last bytes and the end arrive as one event.
#[test]
fn who_says_all_at_once_and_ends_is_answered_and_let_go() {
    let settings = Settings { epoll_threads_per_group: 1, epoll_groups: 1, ..Settings::default() };
    let bench = start(settings);
    let mut busy = bench.connect();
    for round in 0..20 {
        let mut stream = bench.connect();
        if round % 2 == 0 {
            say(&mut stream, "hello\n");
            hear(&mut stream, "hello\n");
            say(&mut busy, "spin 10\n");
        }
        say(&mut stream, "last\n");
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).expect("the other side closes too");
        assert_eq!(heard, "last\n");
        if round % 2 == 0 {
            hear(&mut busy, "spin 10\n");
        }
    }
    bench.pool.stop();
}

#[test]
fn a_large_request_is_received_whole() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    let count = 30 << 20;
    say(&mut stream, &format!("data {count}\n"));
    stream.write_all(&vec![1; count]).unwrap();
    hear(&mut stream, &format!("sum {count}\n"));
    bench.pool.stop();
}

#[test]
fn replies_wait_for_their_gate_in_order_and_threads_do_not() {
    let bench = start(Settings::default());
    let mut gated: Vec<TcpStream> = (0..300)
        .map(|at| {
            let mut stream = bench.connect();
            say(&mut stream, &format!("gate {}\n", 10 + at % 3));
            stream
        })
        .collect();
    let mut free = bench.connect();
    say(&mut free, "hello\n");
    hear(&mut free, "hello\n");
    eventually("all are gated", || bench.pool.counters().replies_held.get() == 300);
    say(&mut gated[0], "later\n");
    hears_nothing(&mut gated[0]);
    bench.durable.advance(10);
    hear(&mut gated[0], "gate 10\nlater\n");
    hears_nothing(&mut gated[1]);
    bench.durable.advance(12);
    for (at, stream) in gated.iter_mut().enumerate().skip(1) {
        hear(stream, &format!("gate {}\n", 10 + at % 3));
    }
    bench.pool.stop();
}

#[test]
fn gates_race_with_the_watermark_and_none_is_forgotten() {
    let bench = start(Settings::default());
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let advancer = {
        let (durable, stop) = (bench.durable.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut at = 0;
            while !stop.load(Ordering::Relaxed) {
                at += 1;
                durable.advance(at);
                std::thread::sleep(Duration::from_micros(20));
            }
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut stream = bench.connect();
                for _ in 0..400 {
                    let line = format!("gate {}\n", bench.durable.get() + 2);
                    say(&mut stream, &line);
                    hear(&mut stream, &line);
                }
            });
        }
    });
    stop.store(true, Ordering::Relaxed);
    advancer.join().unwrap();
    bench.pool.stop();
}

#[test]
fn blocked_requests_bring_threads_that_leave_again() {
    let settings = Settings {
        epoll_threads_per_group: 2,
        epoll_groups: 1,
        epoll_group_dynamic_threads_shrink_time: Duration::from_millis(50),
        ..Settings::default()
    };
    let bench = start(settings);
    let mut blocked: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = bench.connect();
            say(&mut stream, "block\n");
            stream
        })
        .collect();
    eventually("all block at once", || *bench.door.blocked.lock().unwrap() == 40);
    let mut other = bench.connect();
    say(&mut other, "still here\n");
    hear(&mut other, "still here\n");
    assert!(bench.pool.thread_counts().0 >= 41);
    *bench.door.released.lock().unwrap() = true;
    bench.door.bell.notify_all();
    for stream in &mut blocked {
        hear(stream, "block\n");
    }
    eventually("the pool shrinks", || {
        say(&mut other, "x\n");
        hear(&mut other, "x\n");
        bench.pool.thread_counts().0 == 2
    });
    bench.pool.stop();
}

impl Bench {
    fn settle(&self) -> u64 {
        let mut before = u64::MAX;
        loop {
            let now = self.pool.counters().wakeups.get();
            if now == before {
                return now;
            }
            before = now;
            std::thread::sleep(Duration::from_millis(700));
        }
    }
}

#[test]
fn silent_busy_threads_are_noticed_by_the_watchdog_and_an_idle_pool_sleeps() {
    let settings = Settings {
        epoll_threads_per_group: 1,
        epoll_groups: 1,
        epoll_group_thread_deadlock_check_interval: Duration::from_millis(20),
        ..Settings::default()
    };
    let bench = start(settings);
    let mut busy = bench.connect();
    say(&mut busy, "hello\n");
    hear(&mut busy, "hello\n");
    let mut other = bench.connect();
    say(&mut busy, "spin 3000\n");
    std::thread::sleep(Duration::from_millis(10));
    let started = Instant::now();
    say(&mut other, "quick\n");
    hear(&mut other, "quick\n");
    assert!(started.elapsed() < Duration::from_secs(2), "another thread serves meanwhile");
    hear(&mut busy, "spin 3000\n");
    let before = bench.settle();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(bench.pool.counters().wakeups.get(), before, "idle means no wake-ups");
    bench.pool.stop();
}

/// As many endless computations as a group may have threads, and more: the last ones end, and short requests are served all the time.
#[test]
fn computations_that_would_take_every_thread_end() {
    const MOST: usize = 4;
    let settings = Settings {
        epoll_threads_per_group: 1,
        epoll_groups: 1,
        epoll_group_threads_max: MOST,
        epoll_group_thread_deadlock_check_interval: Duration::from_secs(60),
        ..Settings::default()
    };
    let bench = start(settings);
    let mut other = bench.connect();
    let mut hostile: Vec<TcpStream> = (0..3 * MOST).map(|_| bench.connect()).collect();
    for stream in &mut hostile {
        say(stream, "compute 3600000\n");
        say(&mut other, "quick\n");
        hear(&mut other, "quick\n");
    }
    let ended = || bench.pool.counters().computations_ended.get() as usize;
    eventually("all but those that threads are left for have ended", || ended() == 2 * MOST + 1);
    for _ in 0..100 {
        say(&mut other, "quick\n");
        hear(&mut other, "quick\n");
    }
    assert_eq!(ended(), 2 * MOST + 1, "the others go on");
    *bench.door.released.lock().unwrap() = true;
    bench.pool.stop();
}

#[test]
fn a_slow_reader_stops_nobody_and_is_cut_off() {
    let settings = Settings { net_write_timeout: Duration::from_millis(400), ..Settings::default() };
    let bench = start(settings);
    let mut slow = bench.connect();
    say(&mut slow, &"big 10000000\n".repeat(20));
    let mut other = bench.connect();
    for _ in 0..100 {
        say(&mut other, "quick\n");
        hear(&mut other, "quick\n");
    }
    eventually("the slow one is gone", || bench.pool.connection_count() == 1);
    bench.pool.stop();
}

/// Little enough waits to go out with the replies of others. When the slow one spoke again, that was tried again and again, and nobody else had a turn.
#[test]
fn a_slow_reader_of_small_replies_that_goes_on_asking_stops_nobody() {
    let bench = start(Settings { epoll_groups: 1, output_soft_bytes: 16 << 10, ..Settings::default() });
    let mut slow = bench.connect();
    say(&mut slow, &"big 30000\n".repeat(1000));
    eventually("it is blocked", || {
        let unsent = bench.pool.counters().unsent_bytes();
        std::thread::sleep(Duration::from_millis(50));
        unsent > 0 && bench.pool.counters().unsent_bytes() == unsent
    });
    for _ in 0..20 {
        say(&mut slow, "more\n");
        let mut other = bench.connect();
        say(&mut other, "quick\n");
        hear(&mut other, "quick\n");
    }
    hear_big(&mut slow, 1000, 30_000);
    hear(&mut slow, &"more\n".repeat(20));
    bench.pool.stop();
}

/// Reads the replies to so many requests for so many bytes.
fn hear_big(stream: &mut TcpStream, times: usize, count: usize) {
    let mut reply = vec![0; count + 1];
    for _ in 0..times {
        stream.read_exact(&mut reply).unwrap();
        assert!(reply[..count].iter().all(|byte| *byte == b'x') && reply[count] == b'\n');
    }
}

/// R10: 14 KB of requests ask for 200 MB of replies.
#[test]
fn a_client_that_reads_nothing_is_not_served_further() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    say(&mut stream, &"big 200000\n".repeat(1000));
    say(&mut stream, "last\n");
    eventually("it has begun", || bench.pool.counters().unsent_bytes() > 0);
    std::thread::sleep(Duration::from_millis(200));
    let unsent = bench.pool.connections()[0].pending().1;
    assert!(unsent > 0 && unsent <= (1 << 20) + 200_001, "{unsent}");
    hear_big(&mut stream, 1000, 200_000);
    hear(&mut stream, "last\n");
    eventually("nothing is owed", || bench.pool.counters().unsent_bytes() == 0);
    say(&mut stream, "after\n");
    hear(&mut stream, "after\n");
    bench.pool.stop();
}

/// R10: together they may owe a megabyte, and each one reply more.
#[test]
fn clients_that_read_nothing_share_what_they_may_keep_waiting() {
    let bench = start(Settings { output_total_bytes: 1 << 20, ..Settings::default() });
    let mut slow: Vec<TcpStream> = (0..16).map(|_| bench.connect()).collect();
    for stream in &mut slow {
        say(stream, &"big 200000\n".repeat(200));
        say(stream, "last\n");
    }
    eventually("they have begun", || bench.pool.counters().unsent_bytes() > 1 << 20);
    std::thread::sleep(Duration::from_millis(200));
    let unsent = bench.pool.counters().unsent_bytes();
    assert!(unsent <= (1 << 20) + (1 << 20) + 17 * 200_001, "{unsent}");
    let mut other = bench.connect();
    say(&mut other, &"quick\n".repeat(50));
    hear(&mut other, &"quick\n".repeat(50));
    // Small replies that wait for the log do not hold up the requests behind them.
    say(&mut other, &"gate 5\n".repeat(100));
    let port = other.local_addr().unwrap();
    let ours = bench.pool.connections().into_iter().find(|connection| connection.peer == port).unwrap();
    eventually("all have run", || ours.pending().1 == 700);
    bench.durable.advance(5);
    hear(&mut other, &"gate 5\n".repeat(100));
    for stream in &mut slow {
        hear_big(stream, 200, 200_000);
        hear(stream, "last\n");
    }
    drop(slow);
    eventually("nothing is owed", || bench.pool.counters().unsent_bytes() == 0);
    bench.pool.stop();
}

#[test]
fn a_big_reply_arrives_whole() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    say(&mut stream, "big 50000000\nafter\n");
    let mut bytes = vec![0; 50_000_001];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes[..50_000_000].iter().all(|byte| *byte == b'x'));
    hear(&mut stream, "after\n");
    bench.pool.stop();
}

#[test]
fn sessions_park_and_wake_without_a_thread() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    say(&mut stream, "sleep\nhello\n");
    eventually("it sleeps", || bench.door.handles.lock().unwrap().len() == 1);
    hears_nothing(&mut stream);
    let handle = bench.door.handles.lock().unwrap()[0].clone();
    handle.wake();
    hear(&mut stream, "woken\nhello\n");
    handle.push(b"news\n");
    hear(&mut stream, "news\n");
    handle.kill();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    eventually("closed", || bench.door.closed.load(Ordering::SeqCst) == 1);
    handle.wake();
    bench.pool.stop();
}

#[test]
fn a_panic_costs_one_connection() {
    let bench = start(Settings::default());
    let (mut bad, mut good) = (bench.connect(), bench.connect());
    say(&mut bad, "panic\n");
    assert_eq!(bad.read(&mut [0; 1]).unwrap_or(0), 0);
    say(&mut good, "hello\n");
    hear(&mut good, "hello\n");
    assert_eq!(bench.pool.counters().panics.get(), 1);
    bench.pool.stop();
}

#[test]
fn the_limit_is_told_and_frees_up() {
    let bench = start(Settings { max_connections: 2, ..Settings::default() });
    let (mut first, _second) = (bench.connect(), bench.connect());
    say(&mut first, "hello\n");
    hear(&mut first, "hello\n");
    eventually("both are in", || bench.pool.connection_count() == 2);
    let mut third = bench.connect();
    hear(&mut third, "too many\n");
    say(&mut first, "quit\n");
    hear(&mut first, "bye\n");
    eventually("one is gone", || bench.pool.connection_count() == 1);
    let mut fourth = bench.connect();
    say(&mut fourth, "in\n");
    hear(&mut fourth, "in\n");
    bench.pool.stop();
}

#[test]
fn draining_lets_gated_replies_out() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    say(&mut stream, "gate 5\n");
    eventually("gated", || bench.pool.counters().replies_held.get() == 1);
    bench.pool.stop_accepting();
    assert!(TcpStream::connect(bench.address).is_err());
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| bench.pool.drain(Duration::from_secs(10)));
        std::thread::sleep(Duration::from_millis(30));
        bench.durable.advance(5);
        hear(&mut stream, "gate 5\n");
        assert!(drained.join().unwrap());
    });
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    bench.pool.stop();
}

#[test]
fn a_job_that_is_kicked_while_it_waits_has_one_timer_all_the_same() {
    let bench = start(Settings::default());
    let (runs, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let count = runs.clone();
    let job = bench.pool.background(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Next::After(Duration::from_millis(20))
    });
    for kicks in 1..=40 {
        job.kick();
        eventually("the run", || runs.load(Ordering::SeqCst) > kicks);
    }
    std::thread::sleep(Duration::from_millis(200));
    let (runs, most) = (runs.load(Ordering::SeqCst), 42 + start.elapsed().as_millis() as usize / 20);
    assert!(runs <= most, "{runs} runs, where the kicks and one timer make {most} at the most");
}

#[test]
fn timers_tasks_and_jobs_run() {
    let bench = start(Settings::default());
    let order = Arc::new(Mutex::new(Vec::new()));
    for delay in [30, 10, 20] {
        let order = order.clone();
        bench.pool.timer(Duration::from_millis(delay), Box::new(move || order.lock().unwrap().push(delay)));
    }
    eventually("three timers", || order.lock().unwrap().len() == 3);
    assert_eq!(*order.lock().unwrap(), [10, 20, 30]);
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let job = bench.pool.background(move || match count.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Next::Again,
        2 => Next::After(Duration::from_millis(5)),
        _ => Next::Sleep,
    });
    eventually("four runs", || runs.load(Ordering::SeqCst) == 4);
    job.kick();
    eventually("kicked", || runs.load(Ordering::SeqCst) == 5);
    bench.pool.stop();
}

#[test]
fn many_connections_at_once() {
    let bench = start(Settings::default());
    let mut streams: Vec<TcpStream> = (0..1_000).map(|_| bench.connect()).collect();
    for round in 0..3 {
        for (at, stream) in streams.iter_mut().enumerate() {
            say(stream, &format!("{round} {at}\n"));
        }
        for (at, stream) in streams.iter_mut().enumerate() {
            hear(stream, &format!("{round} {at}\n"));
        }
    }
    drop(streams);
    eventually("all are gone", || bench.pool.connection_count() == 0);
    bench.pool.stop();
}

#[test]
fn replies_of_a_round_leave_before_a_request_of_it_waits() {
    let settings = Settings { epoll_threads_per_group: 1, epoll_groups: 1, ..Settings::default() };
    let bench = start(settings);
    let mut busy = bench.connect();
    let mut others: Vec<TcpStream> = (0..20).map(|_| bench.connect()).collect();
    for stream in &mut others {
        say(stream, "hello\n");
        hear(stream, "hello\n");
    }
    // While the only thread spins, the events of all the others come together: they make one round, and its tenth request waits.
    say(&mut busy, "spin 100\n");
    std::thread::sleep(Duration::from_millis(20));
    for (at, stream) in others.iter_mut().enumerate() {
        say(stream, if at == 10 { "block\n" } else { "now\n" });
    }
    hear(&mut busy, "spin 100\n");
    for (at, stream) in others.iter_mut().enumerate() {
        if at != 10 {
            hear(stream, "now\n");
        }
    }
    assert_eq!(*bench.door.blocked.lock().unwrap(), 1, "the tenth still waits");
    *bench.door.released.lock().unwrap() = true;
    bench.door.bell.notify_all();
    hear(&mut others[10], "block\n");
    bench.pool.stop();
}

#[test]
fn connections_move_to_where_their_packets_come_in_and_lose_nothing() {
    let processors = os::cpu::allowed();
    let settings = Settings { auto_cpu_affinity: true, ..Settings::default() };
    let bench = start(settings);
    std::thread::scope(|scope| {
        for client in 0..2 {
            let (bench, processors) = (&bench, &processors);
            scope.spawn(move || {
                let mut streams: Vec<TcpStream> = (0..8).map(|_| bench.connect()).collect();
                for round in 0..4 {
                    // Each time from another processor.
                    os::cpu::pin(&[processors[(client + round) % processors.len()]]);
                    for number in 0..400 {
                        let line = format!("{client} {round} {number}\n");
                        streams.iter_mut().for_each(|stream| say(stream, &line));
                        streams.iter_mut().for_each(|stream| hear(stream, &line));
                    }
                }
            });
        }
    });
    let moved = bench.pool.counters().migrated.get();
    assert!(moved > 0 || processors.len() == 1, "{moved} moves on {} processors", processors.len());
    bench.pool.stop();
    assert_eq!(bench.door.open.load(Ordering::SeqCst), bench.door.closed.load(Ordering::SeqCst));
}

/// Whichever of the threads is left when others need not wait any more: it has what a base thread has (R15).
#[test]
fn the_thread_that_stays_sits_where_the_first_one_sat() {
    let settings = Settings {
        epoll_groups: 1,
        epoll_threads_per_group: 1,
        epoll_group_dynamic_threads_shrink_time: Duration::from_millis(1),
        auto_cpu_affinity: true,
        ..Settings::default()
    };
    let bench = start(settings);
    let mut asking = bench.connect();
    for _ in 0..30 {
        let mut waiting = bench.connect();
        say(&mut waiting, "block\n");
        eventually("it waits", || *bench.door.blocked.lock().unwrap() == 1);
        say(&mut asking, "processors\n");
        hear(&mut asking, &format!("{}\n", os::cpu::allowed().len()));
        *bench.door.released.lock().unwrap() = true;
        bench.door.bell.notify_all();
        hear(&mut waiting, "block\n");
        eventually("one lies down and leaves", || {
            // An active one finds that it is too many when it has something to do.
            say(&mut asking, "echo\n");
            hear(&mut asking, "echo\n");
            bench.pool.thread_counts().0 == 1
        });
        // What it did before may have been without a seat.
        say(&mut asking, "echo\n");
        hear(&mut asking, "echo\n");
        say(&mut asking, "processors\n");
        hear(&mut asking, "1\n");
        *bench.door.released.lock().unwrap() = false;
        *bench.door.blocked.lock().unwrap() = 0;
    }
    bench.pool.stop();
}

/// A thread that begins to wait sends what it has put up and gives back what it has not served: both connections go on in rounds.
#[test]
fn whoever_stood_beside_a_request_that_waits_is_looked_at_like_others() {
    // No watchdog: it would let another thread take the three one by one.
    let settings = Settings {
        epoll_threads_per_group: 1,
        epoll_groups: 1,
        epoll_group_thread_deadlock_check_interval: Duration::from_secs(60),
        ..Settings::default()
    };
    let bench = start(settings);
    let mut streams: Vec<TcpStream> = (0..4).map(|_| bench.connect()).collect();
    for stream in &mut streams {
        say(stream, "hello\n");
        hear(stream, "hello\n");
    }
    let looked = || bench.door.looked.load(Ordering::SeqCst);
    let before = looked();
    // The only thread is busy until the next three have come, in this order: they make one round.
    say(&mut streams[0], "spin 500\n");
    eventually("it spins", || bench.door.spinning.load(Ordering::SeqCst) == 1);
    for (at, line) in [(1, "first\n"), (2, "block\n"), (3, "last\n")] {
        say(&mut streams[at], line);
    }
    hear(&mut streams[1], "first\n");
    hear(&mut streams[3], "last\n");
    assert_eq!(*bench.door.blocked.lock().unwrap(), 1);
    assert_eq!(looked() - before, 5, "the last one a second time, when it was given back");
    for at in [1, 3] {
        say(&mut streams[at], "again\n");
        hear(&mut streams[at], "again\n");
    }
    assert_eq!(looked() - before, 7);
    *bench.door.released.lock().unwrap() = true;
    bench.door.bell.notify_all();
    hear(&mut streams[2], "block\n");
    bench.pool.stop();
}

#[test]
fn requests_that_need_the_disk_are_served_when_it_has_answered_and_nobody_waits_for_them() {
    let settings = Settings { epoll_threads_per_group: 1, epoll_groups: 1, ..Settings::default() };
    let bench = start(settings);
    let mut streams: Vec<TcpStream> = (0..12).map(|_| bench.connect()).collect();
    for (at, stream) in streams.iter_mut().enumerate() {
        say(stream, if at % 3 == 0 { "late one\nand more\n" } else { "now\n" });
    }
    for (_, stream) in streams.iter_mut().enumerate().filter(|(at, _)| at % 3 != 0) {
        hear(stream, "now\n");
    }
    let away = || std::mem::take(&mut *bench.door.away.lock().unwrap());
    let mut first = Vec::new();
    let late = [0, 3, 6, 9];
    // They may have come in several rounds.
    eventually("all are away", || {
        first.extend(away());
        hears_nothing(&mut streams[0]);
        bench.pool.counters().batches.get() >= 8
    });
    // More for one that is away waits with it; one that goes away for good is closed when it is back.
    say(&mut streams[3], "still more\n");
    streams[9].shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(bench.door.closed.load(Ordering::SeqCst), 0);
    for at in late {
        eventually("it comes back", || {
            first.extend(away());
            first.drain(..).for_each(|then| then());
            at == 9 || streams[at].peek(&mut [0; 1]).is_ok()
        });
        if at != 9 {
            hear(&mut streams[at], "late one\nand more\n");
        }
    }
    hear(&mut streams[3], "still more\n");
    eventually("the one that left is closed", || bench.door.closed.load(Ordering::SeqCst) == 1);
    assert_eq!(bench.pool.thread_counts(), (1, 0), "no thread has waited");
    bench.pool.stop();
    assert_eq!(bench.door.open.load(Ordering::SeqCst), bench.door.closed.load(Ordering::SeqCst));
}
