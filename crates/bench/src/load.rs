//! The load generator: memtier's shapes against one RESP2 server, as little processor time per request as possible.
//!
//! Entry points: `Shape` describes the load, `run` runs it and returns a `Report`. `keys` chooses keys, `request` writes
//! requests, `reply` cuts replies, `worker` is one thread's epoll loop.
//!
//! Closed loop: a connection keeps up to `pipeline` requests outstanding and sends the next ones as replies come in; a
//! slow server gets fewer requests, so its percentiles flatter it. Open loop (`rate`): every request has a time at which
//! it is due, and its latency counts from there, whether or not it could be sent: no coordinated omission.
//!
//! A thread serves its connections in rounds: one wait for all that have replies, one receive and one send for all of a
//! connection's replies. One by one (`--one-by-one`) it serves a connection for one reply at a time, as clients do that
//! know nothing of each other: more system calls of client and server for a request, closer to what a user's clients cause.

mod keys;
mod reply;
mod report;
mod request;
mod worker;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use keys::{Pattern, Range};
pub use report::{Kind, Report};
pub use request::command;

use crate::control::Control;
use crate::machine;
use request::Requests;
use stdx::prng::Prng;
use worker::Worker;

#[derive(Clone, Debug)]
pub struct Shape {
    pub address: SocketAddr,
    /// As memtier: `password` or `user:password`.
    pub auth: Option<String>,
    /// In all, spread evenly over the threads.
    pub connections: usize,
    pub threads: usize,
    pub pipeline: usize,
    /// A wait, a receive and a send for each reply, instead of turns that take all that has come.
    pub one_by_one: bool,
    pub traffic: Traffic,
    pub value_bytes: usize,
    pub random_data: bool,
    pub keys: Range,
    pub prefix: String,
    pub until: Until,
    /// Requests per second in all; `None` is the closed loop.
    pub rate: Option<u64>,
    /// Processors the client's threads may use.
    pub cores: Option<Vec<usize>>,
    pub seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    Ping,
    Keys {
        sets: u32,
        gets: u32,
        set_pattern: Pattern,
        get_pattern: Pattern,
    },
    /// One command again and again; each `__rand_int__` in its words becomes a key number of twelve digits, as in redis-benchmark.
    Command {
        words: &'static [&'static str],
        pattern: Pattern,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    Time(Duration),
    /// Per connection, as memtier's `-n`.
    Requests(u64),
    /// Every connection walks its part of the keys once: a preload.
    EveryKeyOnce,
}

impl Shape {
    pub fn new(address: SocketAddr) -> Shape {
        Shape {
            address,
            auth: None,
            connections: 128,
            threads: 2,
            pipeline: 1,
            one_by_one: false,
            traffic: Traffic::mix(1, 10),
            value_bytes: 128,
            random_data: true,
            keys: Range { min: 1, max: 1_000_000 },
            prefix: String::new(),
            until: Until::Time(Duration::from_secs(10)),
            rate: None,
            cores: None,
            seed: 1,
        }
    }

    /// The same server and keys, each key written once.
    pub fn preload(&self) -> Shape {
        let connections = 16.min(self.keys.count() as usize);
        Shape {
            connections,
            threads: self.threads.min(connections),
            pipeline: (1 << 20) / (self.value_bytes + 64).max(1 << 13),
            one_by_one: false,
            traffic: Traffic::Keys { sets: 1, gets: 0, set_pattern: Pattern::Parallel, get_pattern: Pattern::Parallel },
            until: Until::EveryKeyOnce,
            rate: None,
            ..self.clone()
        }
    }

    /// Requests that connection number `index` may send.
    fn quota(&self, index: usize) -> u64 {
        match self.until {
            Until::Time(_) => u64::MAX,
            Until::Requests(count) => count,
            Until::EveryKeyOnce => self.keys.part(index as u64, self.connections as u64).map_or(0, |part| part.count()),
        }
    }
}

impl Traffic {
    pub fn mix(sets: u32, gets: u32) -> Traffic {
        Traffic::Keys { sets, gets, set_pattern: Pattern::Random, get_pattern: Pattern::Random }
    }
}

/// Connects, calls `ready` (the place to read the server's counters: accepting connections is not part of the figures),
/// plays the shape and returns when every request sent is answered or given up.
pub fn run(shape: &Shape, ready: impl FnOnce()) -> io::Result<Report> {
    machine::allow_open_files(shape.connections as u64 + 100)?;
    let mut random = Prng::new(shape.seed);
    let mut requests = Requests::new(&shape.prefix, shape.value_bytes, shape.random_data, &mut random);
    if let Traffic::Command { words, .. } = shape.traffic {
        requests.template = request::Template::new(words);
    }
    let requests = Arc::new(requests);
    let mut streams: Vec<Vec<(usize, TcpStream)>> = (0..shape.threads).map(|_| Vec::new()).collect();
    for index in 0..shape.connections {
        streams[index % shape.threads].push((index, connect(shape)?));
    }
    let workers = streams
        .into_iter()
        .map(|streams| Worker::new(shape, requests.clone(), streams, random.next_u64()))
        .collect::<io::Result<Vec<_>>>()?;

    ready();
    let cpu_before = machine::own_cpu();
    let start = Instant::now();
    let threads: Vec<_> = workers.into_iter().map(|worker| std::thread::spawn(move || worker.run(start))).collect();
    let mut report = Report::new();
    for thread in threads {
        report.merge(thread.join().expect("a load thread panicked")?);
    }
    report.client_cpu = machine::own_cpu() - cpu_before;
    Ok(report)
}

fn connect(shape: &Shape) -> io::Result<TcpStream> {
    let mut control = Control::connect(shape.address)?;
    if let Some(auth) = &shape.auth {
        match auth.split_once(':') {
            Some((user, password)) => control.call(&["AUTH", user, password])?,
            None => control.call(&["AUTH", auth])?,
        };
    }
    let stream = control.into_stream();
    stream.set_nonblocking(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
