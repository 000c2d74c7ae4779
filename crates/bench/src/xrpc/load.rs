//! The loop that drives every protocol: a few threads, each with an epoll of its own over its connections, one receive and one send a turn of a connection.
//!
//! A slot always has a request in flight: when its reply is complete, the next request is written. Measurement begins when every slot has had two replies, so that logins, sessions, caches and
//! prepared statements are not counted, and ends before connections are closed.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::epoll;
use rustix::io::Errno;

use super::speech::{Done, Speech};

/// A connection, ready for requests.
pub struct Lane {
    pub stream: TcpStream,
    pub speech: Box<dyn Speech>,
    pub slot_count: usize,
    /// Messages that precede the first request.
    pub opening: Vec<u8>,
}

/// The result of the measured time.
pub struct XrpcReport {
    pub operations: u64,
    pub wrong_count: u64,
    pub latency: Histogram<u64>,
    pub elapsed: Duration,
}

const COLD: u8 = 2;
const INPUT_BYTES: usize = 64 << 10;
const EVENTS: usize = 256;
/// For answers, and for the warm-up.
const PATIENCE: Duration = Duration::from_secs(30);
const NEVER: u64 = u64::MAX;

/// State shared by the threads.
struct Clock {
    start: Instant,
    cold_count: AtomicUsize,
    /// Nanoseconds from the start.
    from: AtomicU64,
    to: AtomicU64,
}

impl Clock {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// Runs the load for `turn`, after the warm-up. `mark` is called when the measured time begins and when it ends.
pub fn play(lanes: Vec<Lane>, threads: usize, turn: Duration, mut mark: impl FnMut()) -> io::Result<XrpcReport> {
    let slot_count: usize = lanes.iter().map(|lane| lane.slot_count).sum();
    let clock = Clock {
        start: Instant::now(),
        cold_count: AtomicUsize::new(slot_count),
        from: AtomicU64::new(NEVER),
        to: AtomicU64::new(NEVER),
    };
    let mut shares: Vec<Vec<Lane>> = (0..threads.min(lanes.len()).max(1)).map(|_| Vec::new()).collect();
    let share_count = shares.len();
    for (at, lane) in lanes.into_iter().enumerate() {
        shares[at % share_count].push(lane);
    }
    thread::scope(|scope| {
        let clock = &clock;
        let workers: Vec<_> =
            shares.into_iter().map(|lanes| scope.spawn(move || XrpcWorker::new(lanes)?.run(clock))).collect();
        let pause = || thread::sleep(Duration::from_millis(1));
        while clock.cold_count.load(Ordering::Relaxed) > 0 && workers.iter().all(|worker| !worker.is_finished()) {
            if clock.start.elapsed() > PATIENCE {
                clock.to.store(0, Ordering::Relaxed);
                return Err(io::Error::other("not every slot has had its answers"));
            }
            pause();
        }
        mark();
        let from = clock.now();
        clock.from.store(from, Ordering::Relaxed);
        thread::sleep(turn);
        let to = clock.now();
        clock.to.store(to, Ordering::Relaxed);
        mark();
        let elapsed = Duration::from_nanos(to - from);
        let mut report = XrpcReport { operations: 0, wrong_count: 0, latency: histogram()?, elapsed };
        for worker in workers {
            let part = worker.join().map_err(|_| io::Error::other("a thread of the load has panicked"))??;
            report.operations += part.operations;
            report.wrong_count += part.wrong_count;
            report.latency.add(&part.latency).map_err(io::Error::other)?;
        }
        Ok(report)
    })
}

fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, 120_000_000_000, 2).map_err(io::Error::other)
}

struct XrpcConnection {
    lane: Lane,
    /// When the request of each slot was written.
    asked: Vec<u64>,
    /// Replies that a slot still needs before it is warm.
    cold: Vec<u8>,
    input: Vec<u8>,
    filled: usize,
    output: Vec<u8>,
    sent: usize,
    open_count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Received {
    Nothing,
    /// There may be more.
    Some,
    Last,
}

struct XrpcWorker {
    epoll: OwnedFd,
    connections: Vec<XrpcConnection>,
    operations: u64,
    wrong_count: u64,
    latency: Histogram<u64>,
}

impl XrpcWorker {
    fn new(lanes: Vec<Lane>) -> io::Result<XrpcWorker> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(lanes.len());
        for (at, mut lane) in lanes.into_iter().enumerate() {
            lane.stream.set_nonblocking(true)?;
            lane.stream.set_nodelay(true)?;
            let interest = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&epoll, &lane.stream, epoll::EventData::new_u64(at as u64), interest)?;
            let output = std::mem::take(&mut lane.opening);
            let (asked, cold) = (vec![0; lane.slot_count], vec![COLD; lane.slot_count]);
            let input = vec![0; if lane.slot_count == 1 { 1024 } else { INPUT_BYTES }];
            connections.push(XrpcConnection { lane, asked, cold, input, filled: 0, output, sent: 0, open_count: 0 });
        }
        Ok(XrpcWorker { epoll, connections, operations: 0, wrong_count: 0, latency: histogram()? })
    }

    fn run(mut self, clock: &Clock) -> io::Result<XrpcReport> {
        let now = clock.now();
        for connection in &mut self.connections {
            for slot in 0..connection.lane.slot_count {
                connection.ask(slot as u32, now);
            }
            connection.send()?;
        }
        let mut done = Vec::new();
        let mut events = Vec::with_capacity(EVENTS);
        let mut last = Instant::now();
        while self.connections.iter().any(|connection| connection.open_count > 0) {
            let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !events.is_empty() {
                last = Instant::now();
            } else if last.elapsed() > PATIENCE || clock.to.load(Ordering::Relaxed) == 0 {
                return Err(io::Error::other("a server has stopped to answer"));
            }
            for event in &events {
                self.turn(event.data.u64() as usize, clock, &mut done)?;
            }
        }
        let elapsed = Duration::ZERO;
        Ok(XrpcReport { operations: self.operations, wrong_count: self.wrong_count, latency: self.latency, elapsed })
    }

    /// Receives, writes the next request of every slot whose reply is complete, and sends.
    fn turn(&mut self, at: usize, clock: &Clock, done: &mut Vec<Done>) -> io::Result<()> {
        let connection = &mut self.connections[at];
        loop {
            let received = connection.receive(done)?;
            if received == Received::Nothing {
                return connection.send();
            }
            let now = clock.now();
            let is_over = now >= clock.to.load(Ordering::Relaxed);
            let is_measured = now >= clock.from.load(Ordering::Relaxed) && !is_over;
            let mut warmed = 0;
            for Done { slot, is_right } in done.drain(..) {
                let asked = connection.asked[slot as usize];
                self.wrong_count += u64::from(!is_right);
                if is_measured && is_right {
                    self.operations += 1;
                    self.latency.saturating_record(now - asked);
                }
                let cold = &mut connection.cold[slot as usize];
                if *cold > 0 {
                    *cold -= 1;
                    warmed += usize::from(*cold == 0);
                }
                connection.open_count -= 1;
                if !is_over {
                    connection.ask(slot, now);
                }
            }
            if warmed > 0 {
                clock.cold_count.fetch_sub(warmed, Ordering::Relaxed);
            }
            connection.send()?;
            // Edge-triggered: a short read means that the socket was drained, and later bytes raise a new edge.
            if received == Received::Last {
                return Ok(());
            }
        }
    }
}

impl XrpcConnection {
    fn ask(&mut self, slot: u32, now: u64) {
        self.lane.speech.ask(slot, &mut self.output);
        self.asked[slot as usize] = now;
        self.open_count += 1;
    }

    /// Handles one received piece.
    fn receive(&mut self, done: &mut Vec<Done>) -> io::Result<Received> {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.lane.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Received::Some),
            Err(error) => return Err(error),
        }
        let received = if self.filled < self.input.len() { Received::Last } else { Received::Some };
        let used = self.lane.speech.take(&self.input[..self.filled], done, &mut self.output)?;
        self.input.copy_within(used..self.filled, 0);
        self.filled -= used;
        Ok(received)
    }

    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.output.len() {
            match self.lane.stream.write(&self.output[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }
}
