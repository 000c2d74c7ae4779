//! The pool over real sockets: requests cut anywhere, replies that wait for the WAL, threads that are added and end, limits, endings.

mod gate;
mod messages;
mod sessions;
mod tls;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use reactor::{
    Broadcast, Connection, Door, Fetch, Flow, Handle, Io, ListenOptions, Next, Pool, Received, ReplyGate, Settings,
};
use stdx::watermark::Watermark;

/// A door of lines: `echo TEXT`, `hold LSN` (the reply waits for the WAL), `block` (an announced wait until released), `big N`, `sleep` (parks), `processors` (how many the thread may run on), `quit`, `panic`.
#[derive(Default)]
struct Lines {
    open: AtomicUsize,
    closed: AtomicUsize,
    blocked: Mutex<usize>,
    released: Mutex<bool>,
    condvar: Condvar,
    handles: Mutex<Vec<Handle>>,
    /// The callbacks of deferred requests, called when the test wants their pages to be there.
    deferred: Deferred,
    /// Sessions that `look_ahead` has seen.
    looked: AtomicUsize,
    /// A message that comes when a session pauses.
    at_pause: Mutex<Option<Arc<[u8]>>>,
    /// Requests that have begun to spin.
    spinning: AtomicUsize,
}

type Deferred = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

static BLOCK: stdx::wait::Reason = stdx::wait::Reason::new("test_block");

struct Session {
    parked: bool,
}

impl Lines {
    fn run(&self, session: &mut Session, line: &str, io: &mut Io<'_>) -> Flow {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "hold" => io.hold_until_durable(rest.parse().unwrap()),
            "block" => {
                *self.blocked.lock().unwrap() += 1;
                let _waiting = stdx::wait::announce(&BLOCK);
                let mut released = self.released.lock().unwrap();
                while !*released {
                    released = self.condvar.wait(released).unwrap();
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
            "panic" => panic!("requested by the test"),
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
                if let Some(message) = self.at_pause.lock().unwrap().take() {
                    Broadcast::default().put(io.connection(), &message, 0).expect("it is open");
                }
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

    /// Defers requests that begin with "late" until the test calls their callbacks.
    fn look_ahead(&self, arrived: &mut [Received<'_, Session>]) -> Option<Fetch> {
        let mut any = false;
        self.looked.fetch_add(arrived.len(), Ordering::SeqCst);
        for arrived in arrived {
            arrived.is_deferred = arrived.input.starts_with(b"late");
            any |= arrived.is_deferred;
        }
        any.then(|| -> Fetch {
            let deferred = self.deferred.clone();
            Box::new(move |callbacks| deferred.lock().unwrap().extend(callbacks))
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
    start_gated(settings, None)
}

fn start_gated(settings: Settings, gate: Option<ReplyGate>) -> Bench {
    let durable = Arc::new(Watermark::new(0));
    let pool = Pool::start_gated(&settings, durable.clone(), gate, &mut |_| None).unwrap();
    let door = Arc::new(Lines::default());
    let listener = pool.listen(([127, 0, 0, 1], 0).into(), door.clone(), ListenOptions::default()).unwrap();
    Bench { pool, door, durable, address: listener.local_addr }
}

impl Bench {
    /// The server's side of a client's connection.
    fn connection_of(&self, stream: &TcpStream) -> Arc<Connection> {
        let peer = stream.local_addr().unwrap();
        let of_peer = |connection: &Arc<Connection>| connection.peer == peer;
        self.pool.connections().into_iter().find(of_peer).expect("an open connection")
    }

    /// Waits until the connection holds `bytes` of output, and asserts that none of it has arrived.
    fn holds_output(&self, stream: &mut TcpStream, bytes: u64) {
        let connection = self.connection_of(stream);
        eventually("the output is held", || connection.pending().1 == bytes);
        has_nothing(stream);
    }

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

/// Asserts that no byte has arrived. The caller has waited for the state in which the reply is held.
fn has_nothing(stream: &mut TcpStream) {
    stream.set_nonblocking(true).unwrap();
    assert!(stream.peek(&mut [0; 1]).is_err(), "no reply may arrive yet");
    stream.set_nonblocking(false).unwrap();
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
        // The first text and the texts of the earlier cuts, then this part.
        let sent = (cut * text.len() + cut) as u64;
        eventually("the first part is received", || bench.pool.counters().bytes_in.get() == sent);
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

/// RE-2: the last bytes and the end of the stream arrive as one event.
#[test]
fn a_client_that_sends_all_at_once_and_ends_is_answered_and_closed() {
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
        stream.read_to_string(&mut heard).expect("the server closes too");
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
fn replies_wait_for_the_wal_in_order_and_threads_do_not() {
    let bench = start(Settings::default());
    let mut held: Vec<TcpStream> = (0..300)
        .map(|at| {
            let mut stream = bench.connect();
            say(&mut stream, &format!("hold {}\n", 10 + at % 3));
            stream
        })
        .collect();
    let mut free = bench.connect();
    say(&mut free, "hello\n");
    hear(&mut free, "hello\n");
    eventually("all are held", || bench.pool.counters().replies_held.get() == 300);
    say(&mut held[0], "later\n");
    bench.holds_output(&mut held[0], 14);
    bench.durable.advance(10);
    hear(&mut held[0], "hold 10\nlater\n");
    bench.holds_output(&mut held[1], 8);
    bench.durable.advance(12);
    for (at, stream) in held.iter_mut().enumerate().skip(1) {
        hear(stream, &format!("hold {}\n", 10 + at % 3));
    }
    bench.pool.stop();
}

#[test]
fn held_replies_race_with_the_watermark_and_none_is_lost() {
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
                    let line = format!("hold {}\n", bench.durable.get() + 2);
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
fn blocked_requests_add_threads_that_end_again() {
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
    bench.door.condvar.notify_all();
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
fn the_watchdog_finds_busy_threads_and_an_idle_pool_sleeps() {
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
    eventually("it spins", || bench.door.spinning.load(Ordering::SeqCst) == 1);
    let started = Instant::now();
    say(&mut other, "quick\n");
    hear(&mut other, "quick\n");
    assert!(started.elapsed() < Duration::from_secs(2), "another thread serves meanwhile");
    hear(&mut busy, "spin 3000\n");
    let before = bench.settle();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(bench.pool.counters().wakeups.get(), before, "an idle pool does not wake up");
    bench.pool.stop();
}

/// RE-20: more endless computations than a group may have threads. The last ones end, and short requests are served all the time.
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
    eventually("the computations beyond the threads end", || ended() == 2 * MOST + 1);
    for _ in 0..100 {
        say(&mut other, "quick\n");
        hear(&mut other, "quick\n");
    }
    assert_eq!(ended(), 2 * MOST + 1, "the other computations continue");
    *bench.door.released.lock().unwrap() = true;
    bench.pool.stop();
}

#[test]
fn a_slow_reader_delays_no_other_client_and_is_disconnected() {
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

/// The unsent output is small enough for the send batch. Earlier, further requests of the slow client made the pool retry that for ever, and no other client was served.
#[test]
fn a_slow_reader_that_sends_more_requests_delays_no_other_client() {
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

/// Reads the replies to `times` requests for `count` bytes.
fn hear_big(stream: &mut TcpStream, times: usize, count: usize) {
    let mut reply = vec![0; count + 1];
    for _ in 0..times {
        stream.read_exact(&mut reply).unwrap();
        assert!(reply[..count].iter().all(|byte| *byte == b'x') && reply[count] == b'\n');
    }
}

/// RE-10: 14 KB of requests ask for 200 MB of replies.
#[test]
fn a_client_that_reads_nothing_is_not_served_further() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    say(&mut stream, &"big 200000\n".repeat(1000));
    say(&mut stream, "last\n");
    eventually("it has reached the limit", || bench.pool.counters().unsent_bytes() > 1 << 20);
    let unsent = bench.pool.connections()[0].pending().1;
    assert!(unsent <= (1 << 20) + 200_001, "{unsent}");
    hear_big(&mut stream, 1000, 200_000);
    hear(&mut stream, "last\n");
    eventually("all output is sent", || bench.pool.counters().unsent_bytes() == 0);
    say(&mut stream, "after\n");
    hear(&mut stream, "after\n");
    bench.pool.stop();
}

/// RE-10: all connections together may have a megabyte of unsent output, and each connection one reply more.
#[test]
fn clients_that_read_nothing_share_the_limit_of_unsent_output() {
    let bench = start(Settings { output_total_bytes: 1 << 20, ..Settings::default() });
    let mut slow: Vec<TcpStream> = (0..16).map(|_| bench.connect()).collect();
    for stream in &mut slow {
        say(stream, &"big 200000\n".repeat(200));
        say(stream, "last\n");
    }
    eventually("they have reached the limit", || bench.pool.counters().unsent_bytes() > 1 << 20);
    let is_bounded = || bench.pool.counters().unsent_bytes() <= (1 << 20) + (1 << 20) + 17 * 200_001;
    assert!(is_bounded());
    let mut other = bench.connect();
    say(&mut other, &"quick\n".repeat(50));
    hear(&mut other, &"quick\n".repeat(50));
    // Small replies that wait for the WAL do not delay the requests behind them.
    say(&mut other, &"hold 5\n".repeat(100));
    bench.holds_output(&mut other, 700);
    bench.durable.advance(5);
    hear(&mut other, &"hold 5\n".repeat(100));
    assert!(is_bounded());
    for stream in &mut slow {
        hear_big(stream, 200, 200_000);
        hear(stream, "last\n");
    }
    drop(slow);
    eventually("all output is sent", || bench.pool.counters().unsent_bytes() == 0);
    bench.pool.stop();
}

/// RE-10: a reply of more than the 4 KiB that a connection may have in a crowd, small enough for the send batch, with a request behind it that is still in the socket.
#[test]
fn a_request_left_in_the_socket_is_served_when_the_batched_reply_has_left() {
    let bench = start(Settings { output_total_bytes: 1 << 10, ..Settings::default() });
    let mut slow = bench.connect();
    say(&mut slow, "big 50000000\n");
    let has_reached = || bench.pool.counters().unsent_bytes() > 1 << 20;
    eventually("the limit is reached", has_reached);
    let mut other = bench.connect();
    // One receive of a round takes all but the last request.
    let (reply, head) = ("big 20000\n", "data 32747\n");
    let first = format!("{head}{}{reply}", "0".repeat(32_747));
    assert_eq!(first.len(), 32 << 10);
    let sum = format!("sum {}\n", 32_747 * u64::from(b'0'));
    for _ in 0..50 {
        say(&mut other, &format!("{first}last\n"));
        hear(&mut other, &sum);
        hear_big(&mut other, 1, 20_000);
        hear(&mut other, "last\n");
    }
    assert!(has_reached());
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
    eventually("it is accepted", || bench.pool.connections().len() == 1);
    let connection = bench.connection_of(&stream);
    eventually("it is parked", || connection.pending().0 == "hello\n".len() as u64);
    has_nothing(&mut stream);
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
fn a_connection_beyond_the_limit_is_refused_until_another_closes() {
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
fn draining_sends_held_replies() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    say(&mut stream, "hold 5\n");
    eventually("held", || bench.pool.counters().replies_held.get() == 1);
    bench.pool.stop_accepting();
    assert!(TcpStream::connect(bench.address).is_err());
    let before = bench.pool.counters().wakeups.get();
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| bench.pool.drain(Duration::from_secs(10)));
        eventually("the drain has begun", || bench.pool.counters().wakeups.get() > before);
        bench.durable.advance(5);
        hear(&mut stream, "hold 5\n");
        assert!(drained.join().unwrap());
    });
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    bench.pool.stop();
}

#[test]
fn a_job_that_is_kicked_while_it_waits_keeps_one_timer() {
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
    // While the only thread spins, the events of all the others arrive together. They make one round, and its tenth request waits.
    say(&mut busy, "spin 100\n");
    eventually("it spins", || bench.door.spinning.load(Ordering::SeqCst) == 1);
    for (at, stream) in others.iter_mut().enumerate() {
        say(stream, if at == 10 { "block\n" } else { "now\n" });
    }
    hear(&mut busy, "spin 100\n");
    for (at, stream) in others.iter_mut().enumerate() {
        if at != 10 {
            hear(stream, "now\n");
        }
    }
    assert_eq!(*bench.door.blocked.lock().unwrap(), 1, "the tenth request still waits");
    *bench.door.released.lock().unwrap() = true;
    bench.door.condvar.notify_all();
    hear(&mut others[10], "block\n");
    bench.pool.stop();
}

#[test]
fn connections_migrate_to_the_processor_of_their_packets_and_lose_nothing() {
    let processors = os::cpu::allowed();
    let settings = Settings { auto_cpu_affinity: true, ..Settings::default() };
    let bench = start(settings);
    std::thread::scope(|scope| {
        for client in 0..2 {
            let (bench, processors) = (&bench, &processors);
            scope.spawn(move || {
                let mut streams: Vec<TcpStream> = (0..8).map(|_| bench.connect()).collect();
                for round in 0..4 {
                    // Each round sends from another processor.
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
    let migrated = bench.pool.counters().migrated.get();
    assert!(migrated > 0 || processors.len() == 1, "{migrated} migrations on {} processors", processors.len());
    bench.pool.stop();
    assert_eq!(bench.door.open.load(Ordering::SeqCst), bench.door.closed.load(Ordering::SeqCst));
}

/// RE-15: the thread that remains when a wait has ended has what a base thread has.
#[test]
fn the_thread_that_remains_has_the_worker_slot() {
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
        bench.door.condvar.notify_all();
        hear(&mut waiting, "block\n");
        eventually("one thread parks and ends", || {
            // A thread notices that it is surplus after it has worked.
            say(&mut asking, "echo\n");
            hear(&mut asking, "echo\n");
            bench.pool.thread_counts().0 == 1
        });
        // The previous request may have run before it took the slot.
        say(&mut asking, "echo\n");
        hear(&mut asking, "echo\n");
        say(&mut asking, "processors\n");
        hear(&mut asking, "1\n");
        *bench.door.released.lock().unwrap() = false;
        *bench.door.blocked.lock().unwrap() = 0;
    }
    bench.pool.stop();
}

/// RE-5: a thread that begins to wait sends its batch and gives back the requests that it has not served. Both connections take part in later rounds.
#[test]
fn the_members_of_a_round_with_a_waiting_request_take_part_in_later_rounds() {
    // Without the watchdog, which would let another thread take the three one by one.
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
    // The only thread is busy until the next three have arrived, in this order. They make one round.
    say(&mut streams[0], "spin 500\n");
    eventually("it spins", || bench.door.spinning.load(Ordering::SeqCst) == 1);
    for (at, line) in [(1, "first\n"), (2, "block\n"), (3, "last\n")] {
        say(&mut streams[at], line);
    }
    hear(&mut streams[1], "first\n");
    hear(&mut streams[3], "last\n");
    assert_eq!(*bench.door.blocked.lock().unwrap(), 1);
    assert_eq!(looked() - before, 5, "the last one is seen twice, because it was given back");
    for at in [1, 3] {
        say(&mut streams[at], "again\n");
        hear(&mut streams[at], "again\n");
    }
    assert_eq!(looked() - before, 7);
    *bench.door.released.lock().unwrap() = true;
    bench.door.condvar.notify_all();
    hear(&mut streams[2], "block\n");
    bench.pool.stop();
}

/// One thread that stays the only one: the watchdog would start a second one when the first has got no processor for long, and input that comes while the first one
/// runs the connection is served without a look ahead.
fn one_thread() -> Settings {
    Settings {
        epoll_threads_per_group: 1,
        epoll_groups: 1,
        epoll_group_thread_deadlock_check_interval: Duration::from_secs(60),
        ..Settings::default()
    }
}

#[test]
fn requests_that_come_while_their_connections_are_opened_pass_the_look_ahead() {
    let bench = start(one_thread());
    for _ in 0..100 {
        let mut streams: Vec<TcpStream> = (0..12).map(|_| bench.connect()).collect();
        streams.iter_mut().for_each(|stream| say(stream, "late\n"));
        let mut deferred = Vec::new();
        eventually("all are deferred", || {
            deferred.append(&mut bench.door.deferred.lock().unwrap());
            deferred.len() == streams.len()
        });
        deferred.into_iter().for_each(|callback| callback());
        streams.iter_mut().for_each(|stream| hear(stream, "late\n"));
    }
    bench.pool.stop();
}

#[test]
fn deferred_requests_are_served_when_their_pages_are_there_and_hold_no_thread() {
    let bench = start(one_thread());
    let mut streams: Vec<TcpStream> = (0..12).map(|_| bench.connect()).collect();
    for (at, stream) in streams.iter_mut().enumerate() {
        say(stream, if at % 3 == 0 { "late one\nand more\n" } else { "now\n" });
    }
    for (_, stream) in streams.iter_mut().enumerate().filter(|(at, _)| at % 3 != 0) {
        hear(stream, "now\n");
    }
    let callbacks = || std::mem::take(&mut *bench.door.deferred.lock().unwrap());
    let late = [0, 3, 6, 9];
    let mut first = Vec::new();
    // They may have come in several rounds.
    eventually("all are deferred", || {
        first.extend(callbacks());
        first.len() == late.len()
    });
    has_nothing(&mut streams[0]);
    // Further input of a deferred connection waits with it. A connection whose peer closes is closed when it comes back.
    say(&mut streams[3], "still more\n");
    streams[9].shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(bench.door.closed.load(Ordering::SeqCst), 0);
    for at in late {
        eventually("it comes back", || {
            first.extend(callbacks());
            first.drain(..).for_each(|callback| callback());
            at == 9 || streams[at].peek(&mut [0; 1]).is_ok()
        });
        if at != 9 {
            hear(&mut streams[at], "late one\nand more\n");
        }
    }
    hear(&mut streams[3], "still more\n");
    eventually("the connection without a peer is closed", || bench.door.closed.load(Ordering::SeqCst) == 1);
    assert_eq!(bench.pool.thread_counts(), (1, 0), "no thread has waited");
    bench.pool.stop();
    assert_eq!(bench.door.open.load(Ordering::SeqCst), bench.door.closed.load(Ordering::SeqCst));
}
