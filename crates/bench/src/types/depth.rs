//! Commands on one collection of growing size: their cost has to grow with the logarithm.
//!
//! Beluga alone. One collection of each type grows from 10^3 elements to the largest size; at each size every command is played for a turn.

use std::io;

use super::play;
use crate::cases::Effort;
use crate::load::{Pattern, Range, Shape, Traffic, Until};
use crate::measure::{Figures, measure};
use crate::server::Server;
use crate::table::{Cell, Table};

type Words = &'static [&'static str];

/// A size, with the commands that name a place in the middle.
struct DepthSize {
    name: &'static str,
    count: u64,
    item: Words,
    ranks: Words,
}

const fn size(name: &'static str, count: u64, item: Words, ranks: Words) -> DepthSize {
    DepthSize { name, count, item, ranks }
}

const SIZES: [DepthSize; 5] = [
    size("10^3", 1_000, &["LINDEX", "depth:list", "500"], &["ZRANGE", "depth:zset", "500", "509"]),
    size("10^4", 10_000, &["LINDEX", "depth:list", "5000"], &["ZRANGE", "depth:zset", "5000", "5009"]),
    size("10^5", 100_000, &["LINDEX", "depth:list", "50000"], &["ZRANGE", "depth:zset", "50000", "50009"]),
    size("10^6", 1_000_000, &["LINDEX", "depth:list", "500000"], &["ZRANGE", "depth:zset", "500000", "500009"]),
    size("10^7", 10_000_000, &["LINDEX", "depth:list", "5000000"], &["ZRANGE", "depth:zset", "5000000", "5000009"]),
];

/// The commands that make the collections grow.
const FILLS: [Words; 5] = [
    &["HSET", "depth:hash", "field:__rand_int__", "xxx"],
    &["SADD", "depth:set", "member:__rand_int__"],
    &["ZADD", "depth:zset", "__rand_int__", "member:__rand_int__"],
    &["RPUSH", "depth:list", "item:__rand_int__"],
    &["XADD", "depth:stream", "__rand_int__-1", "field", "xxx"],
];

/// Commands that are the same at every size. Random numbers are below the size.
const COMMANDS: [Words; 7] = [
    &["HGET", "depth:hash", "field:__rand_int__"],
    &["SRANDMEMBER", "depth:set"],
    &["ZSCORE", "depth:zset", "member:__rand_int__"],
    &["ZRANK", "depth:zset", "member:__rand_int__"],
    &["ZRANGEBYSCORE", "depth:zset", "__rand_int__", "+inf", "LIMIT", "0", "10"],
    &["XRANGE", "depth:stream", "__rand_int__", "+", "COUNT", "10"],
    &["LINSERT", "depth:list", "AFTER", "item:000000000001", "xxx"],
];

/// Measures all sizes up to the largest.
pub fn run(server: &Server, effort: &Effort, largest: u64) -> io::Result<(Table, bool)> {
    let sizes: Vec<&DepthSize> = SIZES.iter().filter(|size| size.count <= largest).collect();
    let (mut columns, mut filled) = (Vec::new(), 0);
    for size in &sizes {
        for words in FILLS {
            eprintln!("types: {} to {}", words[1], size.name);
            // In order, as a stream's ids have to ascend.
            play(server, words, Range { min: filled + 1, max: size.count }, None, 1)?;
        }
        filled = size.count;
        server.settle(effort.turn * 10);
        let commands = COMMANDS.into_iter().chain([size.item, size.ranks]);
        columns.push(commands.map(|words| turn(server, words, effort, size.count)).collect::<io::Result<Vec<_>>>()?);
    }
    let names =
        COMMANDS.iter().map(|words| words[0]).chain(["LINDEX in the middle", "ZRANGE of 10 ranks in the middle"]);
    let head: Vec<&str> = ["command"].into_iter().chain(sizes.iter().map(|size| size.name)).collect();
    let (mut table, mut is_good) = (Table::new(&head), true);
    for (row, name) in names.enumerate() {
        let figures = columns.iter().map(|column| &column[row]);
        is_good &= figures.clone().all(|figures| figures.errors == 0.0);
        table.row(
            [name.into()].into_iter().chain(figures.map(|figures| Cell::Number(figures.server_cpu_us, 1))).collect(),
        );
    }
    Ok((table, is_good))
}

fn turn(server: &Server, words: Words, effort: &Effort, count: u64) -> io::Result<Figures> {
    let shape = Shape {
        connections: 8,
        threads: effort.threads,
        pipeline: 16,
        traffic: Traffic::Command { words, pattern: Pattern::Random },
        keys: Range { min: 1, max: count },
        until: Until::Time(effort.turn),
        ..server.shape()
    };
    measure(server, &shape)
}
