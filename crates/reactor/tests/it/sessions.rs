//! Many sessions on one connection: each in its order, none waiting for another, replies that wait for the WAL, slow readers, endings.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use reactor::{Call, Connection, Door, Flow, Io, ListenOptions, Pool, Pushed, Reply, SessionQueue, Settings};
use stdx::watermark::Watermark;

static LOCK: stdx::wait::Reason = stdx::wait::Reason::bounded("test_lock");

/// Requests that may wait in one session.
const QUEUE_MAX: usize = 100;
const CHUNK: usize = 64 << 10;

/// A door of lines `SESSION WORD ARGUMENT`: `echo N`, `where MICROSECONDS` (of work; answers the thread), `hold LSN`, `block`, `spin`, `free`, `big CHUNKS`, `park`, `wake`, `end`, `panic`.
/// Answers begin with the session.
#[derive(Default)]
struct Many {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    blocked: Mutex<usize>,
    free: Mutex<bool>,
    condvar: Condvar,
    /// Calls that have been served.
    served: AtomicUsize,
    chunks: AtomicUsize,
    dropped: AtomicUsize,
}

/// The state of a session.
struct One {
    number: u32,
    shared: Arc<Shared>,
    inside: bool,
    chunks_left: usize,
}

impl Drop for One {
    fn drop(&mut self) {
        self.shared.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn serve(one: &mut One, call: Call<String>, reply: &mut Reply<'_>) {
    assert!(!std::mem::replace(&mut one.inside, true), "two threads in one session");
    match call {
        Call::Request(line) => {
            let (word, argument) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                "hold" => reply.hold_until_durable(argument.parse().unwrap()),
                "block" => {
                    *one.shared.blocked.lock().unwrap() += 1;
                    let Some(_waiting) = stdx::wait::try_announce(&LOCK) else {
                        one.inside = false;
                        return writeln!(reply.out(), "{} refused", one.number).unwrap();
                    };
                    let mut free = one.shared.free.lock().unwrap();
                    while !*free {
                        free = one.shared.condvar.wait(free).unwrap();
                    }
                }
                // The wait is not announced: the pool does not know that the thread is unavailable.
                "spin" => {
                    while !*one.shared.free.lock().unwrap() {
                        std::thread::yield_now();
                    }
                }
                "where" => {
                    let until = Instant::now() + Duration::from_micros(argument.parse().unwrap());
                    while Instant::now() < until {}
                    writeln!(reply.out(), "{} {:?}", one.number, std::thread::current().id()).unwrap();
                    one.inside = false;
                    return;
                }
                "free" => {
                    *one.shared.free.lock().unwrap() = true;
                    one.shared.condvar.notify_all();
                }
                "big" => {
                    one.chunks_left = argument.parse().unwrap();
                    send_chunks(one, reply);
                }
                "park" => reply.park(),
                "panic" => panic!("requested by the test"),
                _ => {}
            }
            if one.chunks_left == 0 {
                writeln!(reply.out(), "{} {line}", one.number).unwrap();
            }
        }
        Call::Resume => {
            send_chunks(one, reply);
            if one.chunks_left == 0 {
                writeln!(reply.out(), "{} done", one.number).unwrap();
            }
        }
    }
    one.inside = false;
    one.shared.served.fetch_add(1, Ordering::SeqCst);
}

/// Sends chunks as long as the peer takes them, then pauses.
fn send_chunks(one: &mut One, reply: &mut Reply<'_>) {
    while one.chunks_left > 0 {
        reply.out().resize(CHUNK, b'x');
        one.chunks_left -= 1;
        one.shared.chunks.fetch_add(1, Ordering::SeqCst);
        if !reply.send() && one.chunks_left > 0 {
            return reply.pause();
        }
    }
}

impl Door for Many {
    type Session = HashMap<u32, SessionQueue<One, String>>;

    fn open(&self, _: &Arc<Connection>) -> Result<Self::Session, Vec<u8>> {
        Ok(HashMap::new())
    }

    fn serve(&self, sessions: &mut Self::Session, io: &mut Io<'_>) -> Flow {
        let mut tasks = Vec::new();
        while let Some(end) = io.input().iter().position(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(&io.input()[..end]).unwrap();
            io.consume(end + 1);
            let (number, request) = line.split_once(' ').unwrap();
            let number: u32 = number.parse().unwrap();
            let queue = sessions.entry(number).or_insert_with(|| {
                let one = One { number, shared: self.shared.clone(), inside: false, chunks_left: 0 };
                SessionQueue::new(io.connection(), one, QUEUE_MAX, serve)
            });
            match request {
                "end" => {
                    queue.close();
                    continue;
                }
                "wake" => {
                    queue.wake();
                    continue;
                }
                _ => {}
            }
            match queue.push(request.to_string()) {
                Pushed::WasIdle => tasks.push(queue.task()),
                Pushed::Queued => {}
                Pushed::Full(_) => io.out().extend_from_slice(format!("{number} full\n").as_bytes()),
                Pushed::Closed(_) => io.out().extend_from_slice(format!("{number} closed\n").as_bytes()),
            }
        }
        io.connection().dispatch_sessions(&mut tasks);
        Flow::Continue
    }

    fn close(&self, sessions: Self::Session) {
        sessions.values().for_each(SessionQueue::close);
    }
}

struct Bench {
    pool: Pool,
    shared: Arc<Shared>,
    durable: Arc<Watermark>,
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

fn start(settings: Settings) -> Bench {
    let durable = Arc::new(Watermark::new(0));
    let pool = Pool::start(&settings, durable.clone(), &mut |_| None).unwrap();
    let door = Arc::new(Many::default());
    let shared = door.shared.clone();
    let listener = pool.listen(([127, 0, 0, 1], 0).into(), door, ListenOptions::default()).unwrap();
    let stream = TcpStream::connect(listener.local_addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap());
    Bench { pool, shared, durable, stream, lines }
}

impl Bench {
    fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    /// Waits until `count` calls have been served in all, and asserts that no further reply has arrived.
    fn has_nothing_after(&mut self, count: usize) {
        let shared = self.shared.clone();
        eventually("all calls are served", || shared.served.load(Ordering::SeqCst) == count);
        self.stream.set_nonblocking(true).unwrap();
        assert!(self.lines.fill_buf().is_err(), "no reply may arrive yet");
        self.stream.set_nonblocking(false).unwrap();
    }

    /// Waits until a session is paused because the peer takes nothing (RE-10).
    fn reach_output_limit(&self) {
        eventually("the output limit is reached", || self.pool.counters().unsent_bytes() > 1 << 20);
    }
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_of_thousands_of_sessions_on_a_connection_keeps_its_order() {
    const SESSIONS: u32 = 4_000;
    let mut bench = start(Settings::default());
    let mut next = vec![0; SESSIONS as usize];
    for round in 0..5 {
        let mut text = String::new();
        for request in 0..4 {
            (0..SESSIONS).for_each(|session| text += &format!("{session} echo {}\n", round * 4 + request));
        }
        let mut writer = bench.stream.try_clone().unwrap();
        let sender = std::thread::spawn(move || writer.write_all(text.as_bytes()).unwrap());
        for _ in 0..SESSIONS * 4 {
            let line = bench.hear();
            let mut words = line.split(' ');
            let session: usize = words.next().unwrap().parse().unwrap();
            assert_eq!(words.next(), Some("echo"));
            let number: u32 = words.next().unwrap().parse().unwrap();
            assert_eq!(number, next[session], "session {session}");
            next[session] += 1;
        }
        sender.join().unwrap();
    }
    bench.pool.stop();
    assert_eq!(bench.shared.dropped.load(Ordering::SeqCst), SESSIONS as usize);
}

#[test]
fn sessions_beyond_the_wait_slots_are_refused_and_the_base_threads_serve() {
    const SLOTS: usize = 3;
    let settings = Settings {
        epoll_threads_per_group: 1,
        epoll_groups: 1,
        epoll_group_threads_max: SLOTS + 1,
        ..Settings::default()
    };
    let mut bench = start(settings);
    (0..60).for_each(|session| bench.say(&format!("{session} block\n{session} echo after\n")));
    let mut heard: Vec<String> = (0..2 * (60 - SLOTS)).map(|_| bench.hear()).collect();
    heard.sort();
    heard.dedup();
    let refused: Vec<&str> = heard.iter().filter_map(|line| line.strip_suffix(" refused")).collect();
    assert_eq!((heard.len(), refused.len()), (2 * (60 - SLOTS), 60 - SLOTS), "{heard:?}");
    assert!(refused.iter().all(|session| heard.contains(&format!("{session} echo after"))));
    assert_eq!(bench.pool.counters().waits_refused.get(), 60 - SLOTS as u64);
    bench.say("1000 echo still here\n");
    assert_eq!(bench.hear(), "1000 echo still here");
    assert_eq!(bench.pool.thread_counts().1, SLOTS, "the others still wait");
    bench.say("1000 free\n");
    let mut heard: Vec<String> = (0..2 * SLOTS + 1).map(|_| bench.hear()).collect();
    heard.retain(|line| line.ends_with(" block"));
    assert_eq!(heard.len(), SLOTS, "{heard:?}");
    bench.pool.stop();
}

#[test]
fn a_session_that_computes_delays_those_behind_it_until_the_watchdog_finds_it() {
    let settings = Settings {
        epoll_threads_per_group: 1,
        epoll_groups: 1,
        epoll_group_thread_deadlock_check_interval: Duration::from_millis(20),
        ..Settings::default()
    };
    let mut bench = start(settings);
    // RE-14: all three come to one thread at once, and the one that frees the first is queued behind it.
    bench.say("1 spin\n2 echo beside\n3 free\n");
    let mut heard = [bench.hear(), bench.hear(), bench.hear()];
    heard.sort();
    assert_eq!(heard, ["1 spin", "2 echo beside", "3 free"]);
    bench.pool.stop();
}

#[test]
fn a_session_that_waits_for_the_wal_delays_itself_alone() {
    let mut bench = start(Settings::default());
    bench.say("1 hold 20\n1 echo second\n2 hold 10\n");
    bench.say("3 echo free\n");
    assert_eq!(bench.hear(), "3 echo free");
    bench.has_nothing_after(4);
    bench.durable.advance(10);
    assert_eq!(bench.hear(), "2 hold 10");
    bench.say("2 echo again\n");
    assert_eq!(bench.hear(), "2 echo again");
    bench.has_nothing_after(5);
    bench.durable.advance(20);
    assert_eq!(bench.hear(), "1 hold 20");
    assert_eq!(bench.hear(), "1 echo second");
    bench.pool.stop();
}

#[test]
fn held_replies_of_sessions_race_with_the_watermark_and_none_is_lost() {
    let mut bench = start(Settings::default());
    let durable = bench.durable.clone();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let advancer = {
        let stop = stop.clone();
        std::thread::spawn(move || {
            for at in 1.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                durable.advance(at);
                std::thread::sleep(Duration::from_micros(20));
            }
        })
    };
    for _ in 0..1_000 {
        let lsn = bench.durable.get() + 2;
        (0..8).for_each(|session| bench.say(&format!("{session} hold {lsn}\n")));
        let mut heard: Vec<String> = (0..8).map(|_| bench.hear()).collect();
        heard.sort();
        assert_eq!(heard, (0..8).map(|session| format!("{session} hold {lsn}")).collect::<Vec<_>>());
    }
    stop.store(true, Ordering::Relaxed);
    advancer.join().unwrap();
    bench.pool.stop();
}

/// RE-22. The machine may be busy, and then short runs take long now and then.
#[test]
fn short_runs_stay_with_their_connection_and_long_ones_are_shared() {
    const ROUNDS: usize = 200;
    let settings = Settings { epoll_threads_per_group: 1, epoll_groups: 2, ..Settings::default() };
    let mut bench = start(settings);
    // Returns the number of rounds whose two runs had different threads.
    let mut shared_rounds = |work: &str| {
        let is_shared = |_: &usize| {
            bench.say(&format!("1 where {work}\n2 where {work}\n"));
            let mut threads = [bench.hear(), bench.hear()].map(|line| line[1..].to_owned());
            threads.sort();
            threads[0] != threads[1]
        };
        (0..ROUNDS).filter(is_shared).count()
    };
    let short = shared_rounds("0");
    let long = shared_rounds("500");
    assert!(short < ROUNDS / 2 && long > ROUNDS / 2, "{short} and {long} rounds of {ROUNDS} were shared");
    bench.pool.stop();
}

#[test]
fn a_long_reply_waits_for_its_reader_without_a_thread() {
    const CHUNKS: usize = 400;
    let settings = Settings { epoll_threads_per_group: 1, epoll_groups: 1, ..Settings::default() };
    let mut bench = start(settings);
    bench.say(&format!("1 big {CHUNKS}\n"));
    bench.reach_output_limit();
    assert!(bench.shared.chunks.load(Ordering::SeqCst) < CHUNKS);
    // A busy machine may have started another thread meanwhile; it ends.
    eventually("the reply waits without a thread", || bench.pool.thread_counts() == (1, 0));
    let mut bytes = vec![0; CHUNK];
    for _ in 0..CHUNKS {
        bench.lines.read_exact(&mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == b'x'));
    }
    assert_eq!(bench.hear(), "1 done");
    bench.pool.stop();
}

#[test]
fn a_parked_session_continues_when_it_is_woken_and_not_before() {
    let mut bench = start(Settings::default());
    bench.say("1 park\n1 echo behind\n2 echo beside\n");
    let mut heard = [bench.hear(), bench.hear()];
    heard.sort();
    assert_eq!(heard, ["1 park", "2 echo beside"]);
    bench.has_nothing_after(2);
    bench.say("1 wake\n");
    assert_eq!([bench.hear(), bench.hear()], ["1 done", "1 echo behind"]);
    // A wake-up before the park counts.
    bench.say("1 wake\n1 park\n1 echo behind\n");
    assert_eq!([bench.hear(), bench.hear(), bench.hear()], ["1 park", "1 done", "1 echo behind"]);
    bench.pool.stop();
}

#[test]
fn a_parked_session_ends_with_its_connection_and_when_it_is_closed() {
    let mut bench = start(Settings::default());
    bench.say("1 park\n2 park\n");
    bench.hear();
    bench.hear();
    bench.say("1 end\n");
    let shared = bench.shared.clone();
    eventually("the closed session is dropped", || shared.dropped.load(Ordering::SeqCst) == 1);
    bench.stream.shutdown(std::net::Shutdown::Both).unwrap();
    eventually("the other is dropped too", || shared.dropped.load(Ordering::SeqCst) == 2);
    bench.pool.stop();
}

/// The wake-up comes before the session parks, while it parks, or afterwards. The session continues in each case.
#[test]
fn no_wake_up_of_a_session_that_parks_is_lost() {
    let mut bench = start(Settings::default());
    for _ in 0..3_000 {
        bench.say("1 park\n1 wake\n");
        assert_eq!([bench.hear(), bench.hear()], ["1 park", "1 done"]);
    }
    bench.pool.stop();
}

#[test]
fn a_session_queue_takes_at_most_its_limit_of_requests() {
    let mut bench = start(Settings::default());
    bench.say("1 block\n");
    eventually("it waits", || *bench.shared.blocked.lock().unwrap() == 1);
    (0..QUEUE_MAX).for_each(|number| bench.say(&format!("1 echo {number}\n")));
    bench.say("1 echo too many\n2 echo other\n");
    let mut heard = [bench.hear(), bench.hear()];
    heard.sort();
    assert_eq!(heard, ["1 full", "2 echo other"]);
    bench.say("3 free\n");
    let heard: Vec<String> =
        (0..QUEUE_MAX + 2).map(|_| bench.hear()).filter(|line| line.starts_with("1 echo")).collect();
    assert_eq!(heard, (0..QUEUE_MAX).map(|number| format!("1 echo {number}")).collect::<Vec<_>>());
    bench.pool.stop();
}

#[test]
fn a_closed_session_ends_after_its_current_request() {
    let mut bench = start(Settings::default());
    bench.say("1 block\n1 echo never\n");
    eventually("it waits", || *bench.shared.blocked.lock().unwrap() == 1);
    bench.say("1 end\n1 echo late\n2 end\n");
    assert_eq!(bench.hear(), "1 closed");
    eventually("an idle session ends at once", || bench.shared.dropped.load(Ordering::SeqCst) == 1);
    bench.say("3 free\n");
    let mut heard = [bench.hear(), bench.hear()];
    heard.sort();
    assert_eq!(heard, ["1 block", "3 free"]);
    eventually("the other ends after its request", || bench.shared.dropped.load(Ordering::SeqCst) == 2);
    bench.pool.stop();
}

#[test]
fn sessions_end_with_their_connection_even_if_they_wait_for_its_reader() {
    let mut bench = start(Settings::default());
    bench.say("1 big 400\n2 echo x\n");
    bench.reach_output_limit();
    let Bench { pool, shared, stream, lines, .. } = bench;
    // A shutdown for writing would not be enough: the client could still read, and the pool would wait for it.
    drop((stream, lines));
    eventually("both have ended", || shared.dropped.load(Ordering::SeqCst) == 2);
    pool.stop();
}

#[test]
fn no_session_outlives_the_pool() {
    for _ in 0..50 {
        let mut bench = start(Settings::default());
        (0..200).for_each(|session| {
            bench.say(&format!("{session} {}\n", if session % 2 == 0 { "park" } else { "echo x" }))
        });
        (0..200).for_each(|_| drop(bench.hear()));
        bench.pool.stop();
        assert_eq!(bench.shared.dropped.load(Ordering::SeqCst), 200);
    }
}

#[test]
fn a_panic_closes_its_own_connection_alone() {
    let mut bench = start(Settings::default());
    let address = bench.stream.peer_addr().unwrap();
    let mut other = TcpStream::connect(address).unwrap();
    bench.say("1 echo x\n1 panic\n");
    let mut rest = String::new();
    bench.lines.read_to_string(&mut rest).unwrap_or(0);
    assert!(rest.is_empty() || rest == "1 echo x\n", "{rest}");
    other.write_all(b"7 echo here\n").unwrap();
    let mut line = String::new();
    BufReader::new(&other).read_line(&mut line).unwrap();
    assert_eq!(line, "7 echo here\n");
    assert_eq!(bench.pool.counters().panics.get(), 1);
    bench.pool.stop();
}

#[test]
fn a_drained_connection_closes_after_the_replies_of_its_sessions() {
    let mut bench = start(Settings::default());
    bench.say("1 block\n2 hold 5\n");
    eventually("it waits", || *bench.shared.blocked.lock().unwrap() == 1);
    let (pool, shared, durable) = (&bench.pool, &bench.shared, &bench.durable);
    std::thread::scope(|scope| {
        let before = pool.counters().wakeups.get();
        scope.spawn(move || {
            eventually("the drain has begun", || pool.counters().wakeups.get() > before);
            *shared.free.lock().unwrap() = true;
            shared.condvar.notify_all();
            eventually("the blocked session has ended", || pool.thread_counts().1 == 0);
            durable.advance(5);
        });
        assert!(pool.drain(Duration::from_secs(20)));
    });
    let mut rest = String::new();
    bench.lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "1 block\n2 hold 5\n");
    bench.pool.stop();
}
