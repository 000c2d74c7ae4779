//! One thread of the load: an epoll loop over its connections.
//!
//! The hard part is low cost (BE-4): one `recv` and one `send` per turn of a connection, one clock reading per turn (the
//! moment the replies were in the buffer), one input buffer per thread, no allocation once the buffers have grown.
//!
//! In rounds (the default): edge-triggered, a wait returns all connections that have replies, a turn takes all replies
//! that have come. One by one (`--one-by-one`): level-triggered, a wait returns one connection, a turn takes one reply.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::io::Errno;

use super::keys::Walk;
use super::reply::{Malformed, Parser, Reply};
use super::request::{PING, Requests};
use super::{Kind, Pattern, Report, Shape, Traffic, Until};
use crate::machine;
use stdx::prng::Prng;

const INPUT_BYTES: usize = 128 * 1024;
/// A connection writes no further requests into its buffer while this many bytes wait to be sent.
const OUTPUT_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;
/// A request of this age, while no bytes arrive at all, has lost its reply.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Worker {
    epoll: OwnedFd,
    one_by_one: bool,
    connections: Vec<Connection>,
    /// Connections that will still send or receive.
    busy: usize,
    plan: Plan,
    deadline: Option<u64>,
    /// Open loop: nanoseconds between two requests of this thread.
    interval: Option<f64>,
    cores: Option<Vec<usize>>,
    report: Report,
}

/// State that all connections of a thread share for writing requests.
struct Plan {
    requests: Arc<Requests>,
    traffic: Traffic,
    pipeline: usize,
    value_bytes: usize,
    random: Prng,
}

struct Connection {
    stream: TcpStream,
    parser: Parser,
    /// Requests without a reply, oldest first: the time from which the latency counts (BE-1), and the kind.
    sent: VecDeque<(u64, Kind)>,
    output: Vec<u8>,
    output_at: usize,
    sets: Walk,
    gets: Walk,
    /// Position within the ratio's cycle of sets and gets.
    turn: u32,
    left: u64,
    /// Open loop: when each request that could not be sent yet was due.
    due: VecDeque<u64>,
    /// One by one: the socket had no room, and the thread waits for some.
    waits_for_room: bool,
    done: bool,
}

impl Worker {
    pub fn new(
        shape: &Shape,
        requests: Arc<Requests>,
        streams: Vec<(usize, TcpStream)>,
        seed: u64,
    ) -> io::Result<Worker> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(streams.len());
        for (position, (index, stream)) in streams.into_iter().enumerate() {
            let interest = match shape.one_by_one {
                true => epoll::EventFlags::IN,
                false => epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET,
            };
            epoll::add(&epoll, &stream, epoll::EventData::new_u64(position as u64), interest)?;
            connections.push(Connection::new(shape, index, stream));
        }
        let deadline = match shape.until {
            Until::Time(duration) => Some(duration.as_nanos() as u64),
            _ => None,
        };
        // The thread's share of the rate is its share of the connections.
        let share = connections.len() as f64 / shape.connections as f64;
        let interval = shape.rate.map(|rate| 1e9 / (rate as f64 * share));
        let plan = Plan {
            requests,
            traffic: shape.traffic,
            pipeline: shape.pipeline,
            value_bytes: shape.value_bytes,
            random: Prng::new(seed),
        };
        let busy = connections.len();
        Ok(Worker {
            epoll,
            one_by_one: shape.one_by_one,
            connections,
            busy,
            plan,
            deadline,
            interval,
            cores: shape.cores.clone(),
            report: Report::new(),
        })
    }

    pub fn run(mut self, start: Instant) -> io::Result<Report> {
        if let Some(cores) = &self.cores {
            machine::pin_current_thread(cores)?;
        }
        let clock = || start.elapsed().as_nanos() as u64;
        let mut input = vec![0; INPUT_BYTES];
        let mut events = Vec::with_capacity(if self.one_by_one { 1 } else { EVENTS });
        let mut schedule = self.interval.map(|interval| Schedule { interval, next: 0.0, turn: 0 });
        let mut last_reply = 0;
        if schedule.is_none() {
            for position in 0..self.connections.len() {
                self.advance(position, clock());
            }
        }
        while self.busy > 0 {
            let now = clock();
            if let Some(schedule) = &mut schedule {
                self.release_due(schedule, now);
            }
            let timeout = timeout(now, self.deadline, schedule.as_ref());
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if events.is_empty() {
                let now = clock();
                if self.over(now) {
                    (0..self.connections.len()).for_each(|position| self.advance(position, now));
                }
                if self.stuck(now) {
                    self.give_up();
                    break;
                }
            }
            for event in &events {
                let (position, flags) = (event.data.u64() as usize, event.flags);
                let mut now = 0;
                if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                    let alive = self.receive(position, &mut input, || {
                        now = clock();
                        now
                    });
                    last_reply = last_reply.max(now);
                    if !alive {
                        continue;
                    }
                }
                let connection = &self.connections[position];
                if now != 0 || connection.output_at < connection.output.len() {
                    let now = if now == 0 { clock() } else { now };
                    self.advance(position, now);
                }
            }
        }
        self.report.elapsed = Duration::from_nanos(last_reply);
        Ok(self.report)
    }

    fn over(&self, now: u64) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    fn stuck(&self, now: u64) -> bool {
        let oldest =
            self.connections.iter().filter_map(|connection| connection.sent.front()).map(|(from, _)| *from).min();
        oldest.is_some_and(|from| now.saturating_sub(from) > PATIENCE.as_nanos() as u64)
    }

    /// Open loop: hands every request that is due by now to its connection.
    fn release_due(&mut self, schedule: &mut Schedule, now: u64) {
        let end = self.deadline.unwrap_or(u64::MAX);
        while (schedule.next as u64) <= now && (schedule.next as u64) < end {
            let position = schedule.turn % self.connections.len();
            schedule.turn += 1;
            let due = schedule.next as u64;
            schedule.next += schedule.interval;
            if !self.connections[position].done {
                self.connections[position].due.push_back(due);
                self.advance(position, now);
            }
        }
    }

    /// Sends what may be sent now, and notices when a connection has nothing left to do.
    fn advance(&mut self, position: usize, now: u64) {
        let connection = &mut self.connections[position];
        if connection.done {
            return;
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            connection.left = 0;
            // A request that was due and never sent counts as unanswered.
            if !connection.due.is_empty() {
                self.report.error("not sent before the time was over", connection.due.len() as u64);
                connection.due.clear();
            }
        }
        let open = self.interval.is_some();
        loop {
            connection.fill(&mut self.plan, now, open);
            match connection.flush(&mut self.report) {
                Ok(true) if connection.may_send(&self.plan, open) => {}
                Ok(_) => break,
                Err(error) => {
                    let text = format!("connection lost while sending: {error}");
                    return self.lose(position, &text);
                }
            }
        }
        let has_rest = connection.output_at < connection.output.len();
        if self.one_by_one && has_rest != connection.waits_for_room {
            let room = if has_rest { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
            let data = epoll::EventData::new_u64(position as u64);
            if let Err(error) = epoll::modify(&self.epoll, &connection.stream, data, epoll::EventFlags::IN | room) {
                return self.lose(position, &format!("connection lost while sending: {error}"));
            }
            connection.waits_for_room = has_rest;
        }
        if connection.left == 0 && connection.sent.is_empty() {
            self.finish(position);
        }
    }

    /// Reads all that has arrived, or one reply. `clock` is read once per piece; false when the connection is gone.
    fn receive(&mut self, position: usize, input: &mut [u8], mut clock: impl FnMut() -> u64) -> bool {
        loop {
            let connection = &mut self.connections[position];
            if connection.done && connection.sent.is_empty() {
                return false;
            }
            let wanted = match self.one_by_one {
                true => connection.reply_bytes(self.plan.value_bytes).min(input.len()),
                false => input.len(),
            };
            let count = match connection.stream.read(&mut input[..wanted]) {
                Ok(0) => {
                    self.lose(position, "connection closed by the server");
                    return false;
                }
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.lose(position, &format!("connection lost while receiving: {error}"));
                    return false;
                }
            };
            let now = clock();
            self.report.bytes_received += count as u64;
            self.report.receives += 1;
            if let Err(Malformed(text)) = connection.take(&input[..count], now, self.plan.value_bytes, &mut self.report)
            {
                self.lose(position, &format!("malformed reply: {text}"));
                return false;
            }
            // Edge-triggered: a short read means that the socket was drained, and later bytes raise a new edge.
            // Level-triggered: remaining bytes raise the next event.
            if count < input.len() || self.one_by_one {
                return true;
            }
        }
    }

    fn lose(&mut self, position: usize, text: &str) {
        let connection = &mut self.connections[position];
        if !connection.done {
            self.report.error(text, 1);
            self.report.error("no reply", connection.sent.len() as u64);
            connection.sent.clear();
            self.finish(position);
        }
    }

    /// Stops serving the connection; it raises no more events.
    fn finish(&mut self, position: usize) {
        let connection = &mut self.connections[position];
        connection.done = true;
        self.busy -= 1;
        let _ = epoll::delete(&self.epoll, &connection.stream);
    }

    fn give_up(&mut self) {
        for connection in self.connections.iter().filter(|connection| !connection.done) {
            self.report.error("no reply", connection.sent.len() as u64);
        }
    }
}

impl Connection {
    fn new(shape: &Shape, index: usize, stream: TcpStream) -> Connection {
        let walk = |pattern| Walk::new(pattern, shape.keys, index as u64, shape.connections as u64);
        let (set_pattern, get_pattern) = match shape.traffic {
            Traffic::Keys { set_pattern, get_pattern, .. } => (set_pattern, get_pattern),
            Traffic::Command { pattern, .. } => (pattern, pattern),
            Traffic::Ping => (Pattern::Random, Pattern::Random),
        };
        Connection {
            stream,
            parser: Parser::default(),
            sent: VecDeque::with_capacity(shape.pipeline),
            output: Vec::new(),
            output_at: 0,
            sets: walk(set_pattern),
            gets: walk(get_pattern),
            turn: 0,
            left: shape.quota(index),
            due: VecDeque::new(),
            waits_for_room: false,
            done: false,
        }
    }

    fn may_send(&self, plan: &Plan, open: bool) -> bool {
        self.left > 0 && self.sent.len() < plan.pipeline && (!open || !self.due.is_empty())
    }

    /// The length of the reply that comes next, if it is the right one.
    fn reply_bytes(&self, value_bytes: usize) -> usize {
        match self.sent.front() {
            Some((_, Kind::Set)) => b"+OK\r\n".len(),
            Some((_, Kind::Ping)) => b"+PONG\r\n".len(),
            Some((_, Kind::Get)) => "$\r\n\r\n".len() + value_bytes.max(1).ilog10() as usize + 1 + value_bytes,
            Some((_, Kind::Command)) | None => usize::MAX,
        }
    }

    /// Writes requests into the buffer until the pipeline or the buffer is full.
    fn fill(&mut self, plan: &mut Plan, now: u64, open: bool) {
        while self.may_send(plan, open) && self.output.len() - self.output_at < OUTPUT_BYTES {
            let counts_from = if open { self.due.pop_front().expect("checked by may_send") } else { now };
            let kind = self.next_kind(plan.traffic);
            match kind {
                Kind::Ping => self.output.extend_from_slice(PING),
                Kind::Set => {
                    let key = self.sets.step(&mut plan.random);
                    plan.requests.set(&mut self.output, key, &mut plan.random);
                }
                Kind::Get => {
                    let key = self.gets.step(&mut plan.random);
                    plan.requests.get(&mut self.output, key);
                }
                Kind::Command => {
                    let (keys, random) = (&mut self.sets, &mut plan.random);
                    // A walk through the keys has one number for each command.
                    let walked = (pattern_of(plan.traffic) != Pattern::Random).then(|| keys.step(random));
                    let number = || walked.unwrap_or_else(|| keys.step(random));
                    plan.requests.template.write(&mut self.output, number);
                }
            }
            self.sent.push_back((counts_from, kind));
            self.left -= 1;
        }
    }

    fn next_kind(&mut self, traffic: Traffic) -> Kind {
        let (sets, gets) = match traffic {
            Traffic::Keys { sets, gets, .. } => (sets, gets),
            Traffic::Command { .. } => return Kind::Command,
            Traffic::Ping => return Kind::Ping,
        };
        let kind = if self.turn < sets { Kind::Set } else { Kind::Get };
        self.turn = if self.turn + 1 == sets + gets { 0 } else { self.turn + 1 };
        kind
    }

    /// True when the buffer is empty, false when the socket takes no more for now.
    fn flush(&mut self, report: &mut Report) -> io::Result<bool> {
        while self.output_at < self.output.len() {
            match self.stream.write(&self.output[self.output_at..]) {
                Ok(count) => {
                    self.output_at += count;
                    report.bytes_sent += count as u64;
                    report.sends += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.output_at = 0;
        Ok(true)
    }

    /// Matches replies with requests, checks their type (BE-2) and records their latency.
    fn take(&mut self, piece: &[u8], now: u64, value_bytes: usize, report: &mut Report) -> Result<(), Malformed> {
        let sent = &mut self.sent;
        let mut unasked = false;
        self.parser.feed(piece, |reply| {
            let Some((from, kind)) = sent.pop_front() else {
                unasked = true;
                return;
            };
            let good = match (kind, reply) {
                (Kind::Set, Reply::Status(b"OK")) | (Kind::Ping, Reply::Status(b"PONG")) => true,
                (Kind::Command, reply) => !matches!(reply, Reply::Error(_)),
                (Kind::Get, Reply::Value { bytes }) if bytes == value_bytes => {
                    report.hits += 1;
                    true
                }
                (Kind::Get, Reply::Null) => {
                    report.misses += 1;
                    true
                }
                _ => false,
            };
            if good {
                report.record(kind, now.saturating_sub(from));
            } else if let Reply::Error(text) = reply {
                report.error(&String::from_utf8_lossy(text), 1);
            } else {
                report.error(&format!("wrong reply to {}: {reply:?}", kind.name()), 1);
            }
        })?;
        if unasked { Err(Malformed("a reply without a request".into())) } else { Ok(()) }
    }
}

/// Returns how the numbers of a command are chosen.
fn pattern_of(traffic: Traffic) -> Pattern {
    if let Traffic::Command { pattern, .. } = traffic { pattern } else { Pattern::Random }
}

/// Open loop: the thread's requests are due at even distances and go round its connections.
struct Schedule {
    interval: f64,
    next: f64,
    turn: usize,
}

fn timeout(now: u64, deadline: Option<u64>, schedule: Option<&Schedule>) -> Timespec {
    let mut until = now + 100_000_000;
    if deadline.is_none_or(|deadline| now < deadline) {
        until = until.min(deadline.unwrap_or(u64::MAX));
        until = until.min(schedule.map_or(u64::MAX, |schedule| schedule.next as u64));
    }
    let wait = until.saturating_sub(now);
    Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as i64 }
}
