//! The cases of the table of goals that compare servers, and the alternating rounds that all comparisons use.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::load::{Pattern, Range, Shape, Traffic, Until};
use crate::measure::{Figures, measure};
use crate::server::{Launch, Place, Server, Side};

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub connections: usize,
    pub pipeline: usize,
    pub value_bytes: usize,
    pub traffic: Traffic,
}

const GETS: Traffic = uniform(0, 1);
const SETS: Traffic = uniform(1, 0);

const fn uniform(sets: u32, gets: u32) -> Traffic {
    Traffic::Keys { sets, gets, set_pattern: Pattern::Random, get_pattern: Pattern::Random }
}

const fn case(name: &'static str, traffic: Traffic, connections: usize, pipeline: usize, value_bytes: usize) -> Case {
    Case { name, connections, pipeline, value_bytes, traffic }
}

pub const PING: Case = case("PING, 128 connections", Traffic::Ping, 128, 1, 128);
pub const PING_PIPELINE: Case = case("PING, 128 connections, pipeline 32", Traffic::Ping, 128, 32, 128);
pub const GET: Case = case("GET 128 B, 128 connections", GETS, 128, 1, 128);
pub const GET_4096: Case = case("GET 128 B, 4,096 connections", GETS, 4096, 1, 128);
pub const GET_PIPELINE: Case = case("GET 128 B, 128 connections, pipeline 32", GETS, 128, 32, 128);
pub const SET: Case = case("SET 128 B, 128 connections", SETS, 128, 1, 128);
pub const SET_512: Case = case("SET 128 B, 512 connections", SETS, 512, 1, 128);
pub const SET_PIPELINE: Case = case("SET 128 B, 128 connections, pipeline 32", SETS, 128, 32, 128);
pub const SET_16K: Case = case("SET 16 KB, 128 connections", SETS, 128, 1, 16 * 1024);

/// The cases that share one set of data of 128 B values.
pub const SMALL: [Case; 8] = [PING, PING_PIPELINE, GET, GET_4096, GET_PIPELINE, SET, SET_512, SET_PIPELINE];

/// The length and number of turns, and the number of keys.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub rounds: usize,
    pub turn: Duration,
    pub threads: usize,
    /// Bytes of values in the key range of a case.
    pub data_bytes: u64,
    /// Divides the sizes of the parts that need much data: memory, log before a crash, idle connections.
    pub shrink: u64,
}

impl Effort {
    pub const FULL: Effort =
        Effort { rounds: 5, turn: Duration::from_secs(4), threads: 2, data_bytes: 128 << 20, shrink: 1 };
    pub const QUICK: Effort =
        Effort { rounds: 1, turn: Duration::from_millis(500), threads: 2, data_bytes: 8 << 20, shrink: 16 };

    /// As many keys as hold `data_bytes`; four times the data for large values, which would fit a cache otherwise.
    pub fn keys(&self, value_bytes: usize) -> Range {
        let data_bytes = if value_bytes > 4096 { self.data_bytes * 4 } else { self.data_bytes };
        Range { min: 1, max: (data_bytes / value_bytes as u64).max(1000) }
    }
}

impl Case {
    pub fn shape(&self, server: &Server, effort: &Effort) -> Shape {
        Shape {
            connections: self.connections,
            threads: effort.threads,
            pipeline: self.pipeline,
            traffic: self.traffic,
            value_bytes: self.value_bytes,
            keys: effort.keys(self.value_bytes),
            until: Until::Time(effort.turn),
            ..server.shape()
        }
    }
}

/// The figures of every turn, by side.
#[derive(Default)]
pub struct Turns(BTreeMap<Side, Vec<Figures>>);

impl Turns {
    /// Every figure's own median; zeros for a side that did not take part.
    pub fn median(&self, side: Side) -> Figures {
        self.0.get(&side).map_or(Figures::default(), |turns| Figures::median(turns))
    }

    pub fn sides(&self) -> impl Iterator<Item = Side> + '_ {
        self.0.keys().copied()
    }

    pub fn operations(&self, side: Side) -> f64 {
        self.0.get(&side).into_iter().flatten().map(|turn| turn.operations).sum()
    }

    pub fn errors(&self) -> f64 {
        self.0.values().flatten().map(|turn| turn.errors).sum()
    }
}

/// The servers of a comparison, all running at once. A server without load is idle.
pub struct Arena {
    pub servers: Vec<Server>,
}

impl Arena {
    pub fn open(sides: &[Side], place: &Place, name: &str, launch: &Launch) -> io::Result<Arena> {
        let servers = sides.iter().map(|side| Server::start(*side, place, name, launch)).collect::<io::Result<_>>()?;
        Ok(Arena { servers })
    }

    /// Writes every key of the shape once on every server.
    pub fn fill(&self, shape: impl Fn(&Server) -> Shape) -> io::Result<()> {
        for server in &self.servers {
            let report = crate::load::run(&shape(server).preload(), || {})?;
            if report.error_count() > 0 {
                let what = format!("{}: filling failed: {:?}", server.side.name(), report.errors);
                return Err(io::Error::other(what));
            }
            server.settle(Duration::from_secs(10));
        }
        Ok(())
    }

    /// Plays one shape on every server in turn; every second round goes the other way around.
    pub fn round(&self, round: usize, turns: &mut Turns, shape: impl Fn(&Server) -> Shape) -> io::Result<()> {
        let mut order: Vec<&Server> = self.servers.iter().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for server in order {
            let shape = Shape { seed: round as u64 + 1, ..shape(server) };
            turns.0.entry(server.side).or_default().push(measure(server, &shape)?);
        }
        Ok(())
    }

    pub fn server(&self, side: Side) -> Option<&Server> {
        self.servers.iter().find(|server| server.side == side)
    }

    /// Takes a server out, to stop it alone.
    pub fn take(&mut self, side: Side) -> Option<Server> {
        let position = self.servers.iter().position(|server| server.side == side)?;
        Some(self.servers.remove(position))
    }
}

impl Drop for Arena {
    /// The data of a comparison is of no use after it, and the next one needs the room.
    fn drop(&mut self) {
        for server in self.servers.drain(..) {
            let data = server.data().to_path_buf();
            drop(server);
            let _ = std::fs::remove_dir_all(data);
        }
    }
}
