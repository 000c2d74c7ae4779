//! The commands that are compared: redis-benchmark's default list, and those of larger and other types.
//!
//! In words and fills each `__rand_int__` is a number of twelve digits below `KEYS`, as in redis-benchmark with `-r`.

use super::CommandGoal;

pub struct Workload {
    /// redis-benchmark's name, where it has one.
    pub name: &'static str,
    pub words: &'static [&'static str],
    pub fill: Fill,
    pub goal: CommandGoal,
}

/// The commands that are played, without being counted, before a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    Nothing,
    /// Once on each server: `count` commands with the numbers from 1 on.
    Numbered {
        words: &'static [&'static str],
        count: u64,
    },
    /// Once on each server: `count` commands with random numbers of twelve digits.
    Random {
        words: &'static [&'static str],
        count: u64,
    },
    /// Before each turn, `elements` for each command: what the load takes away.
    Consumed {
        words: &'static [&'static str],
        elements: u64,
    },
}

/// The keys that random numbers choose among.
pub const KEYS: u64 = 100_000;
/// The channel of PUBLISH, and its subscribers.
pub const CHANNEL: &str = "bench:channel";
pub const SUBSCRIBERS: usize = 100;
/// Written by redis-benchmark's test of that name: an inline command is no array of words.
pub const INLINE: &str = "PING_INLINE";

const fn workload(name: &'static str, words: &'static [&'static str], fill: Fill, goal: CommandGoal) -> Workload {
    Workload { name, words, fill, goal }
}

const STRINGS: Fill = Fill::Numbered { words: &["SET", "key:__rand_int__", "xxx"], count: KEYS };
const LIST: Fill = Fill::Numbered { words: &["RPUSH", "bench:list", "xxx"], count: 1000 };
const POPPED: Fill =
    Fill::Consumed { words: &["RPUSH", "mylist", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x"], elements: 10 };
const fn range(name: &'static str, words: &'static [&'static str]) -> Workload {
    workload(name, words, LIST, CommandGoal::Large)
}

const MSET: [&str; 21] = {
    let mut words = ["xxx"; 21];
    words[0] = "MSET";
    let mut at = 1;
    while at < words.len() {
        words[at] = "key:__rand_int__";
        at += 2;
    }
    words
};

pub const WORKLOADS: [Workload; 30] = [
    workload(INLINE, &["PING"], Fill::Nothing, CommandGoal::Shown),
    workload("PING_MBULK", &["PING"], Fill::Nothing, CommandGoal::Shown),
    workload("SET", &["SET", "key:__rand_int__", "xxx"], STRINGS, CommandGoal::Write),
    workload("GET", &["GET", "key:__rand_int__"], STRINGS, CommandGoal::Read),
    workload("INCR", &["INCR", "counter:__rand_int__"], Fill::Nothing, CommandGoal::Write),
    workload("LPUSH", &["LPUSH", "mylist", "xxx"], Fill::Nothing, CommandGoal::Write),
    workload("RPUSH", &["RPUSH", "mylist", "xxx"], Fill::Nothing, CommandGoal::Write),
    workload("LPOP", &["LPOP", "mylist"], POPPED, CommandGoal::Write),
    workload("RPOP", &["RPOP", "mylist"], POPPED, CommandGoal::Write),
    workload("SADD", &["SADD", "myset", "element:__rand_int__"], Fill::Nothing, CommandGoal::Write),
    workload("HSET", &["HSET", "myhash", "element:__rand_int__", "xxx"], Fill::Nothing, CommandGoal::Write),
    workload(
        "SPOP",
        &["SPOP", "popped_set"],
        Fill::Consumed { words: &["SADD", "popped_set", "element:__rand_int__:__rand_int__"], elements: 1 },
        CommandGoal::Write,
    ),
    workload("ZADD", &["ZADD", "myzset", "__rand_int__", "element:__rand_int__"], Fill::Nothing, CommandGoal::Write),
    workload(
        "ZPOPMIN",
        &["ZPOPMIN", "popped_zset"],
        Fill::Consumed {
            words: &["ZADD", "popped_zset", "__rand_int__", "element:__rand_int__:__rand_int__"],
            elements: 1,
        },
        CommandGoal::Write,
    ),
    range("LRANGE_100", &["LRANGE", "bench:list", "0", "99"]),
    range("LRANGE_300", &["LRANGE", "bench:list", "0", "299"]),
    range("LRANGE_500", &["LRANGE", "bench:list", "0", "499"]),
    range("LRANGE_600", &["LRANGE", "bench:list", "0", "599"]),
    workload("MSET (10 keys)", &MSET, STRINGS, CommandGoal::Write),
    workload(
        "HGET (100,000 fields)",
        &["HGET", "bench:hash", "field:__rand_int__"],
        Fill::Numbered { words: &["HSET", "bench:hash", "field:__rand_int__", "xxx"], count: KEYS },
        CommandGoal::Read,
    ),
    workload(
        "HGETALL (100 fields)",
        &["HGETALL", "bench:hash100"],
        Fill::Numbered { words: &["HSET", "bench:hash100", "field:__rand_int__", "xxx"], count: 100 },
        CommandGoal::Large,
    ),
    workload(
        "SMEMBERS (100)",
        &["SMEMBERS", "bench:set100"],
        Fill::Numbered { words: &["SADD", "bench:set100", "member:__rand_int__"], count: 100 },
        CommandGoal::Large,
    ),
    workload(
        "ZRANGE 0 99 (1,000)",
        &["ZRANGE", "bench:zset", "0", "99"],
        Fill::Numbered { words: &["ZADD", "bench:zset", "__rand_int__", "member:__rand_int__"], count: 1000 },
        CommandGoal::Large,
    ),
    workload(
        "ZSCORE (1,000)",
        &["ZSCORE", "bench:zset", "member:000000000500"],
        Fill::Numbered { words: &["ZADD", "bench:zset", "__rand_int__", "member:__rand_int__"], count: 1000 },
        CommandGoal::Read,
    ),
    workload("XADD", &["XADD", "mystream", "*", "field", "xxx"], Fill::Nothing, CommandGoal::Write),
    workload(
        "XREADGROUP COUNT 1",
        &["XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", "bench:stream", ">"],
        Fill::Consumed { words: &["XADD", "bench:stream", "*", "field", "xxx"], elements: 1 },
        CommandGoal::Write,
    ),
    workload(
        "EVAL (a GET)",
        &["EVAL", "return redis.call('GET', KEYS[1])", "1", "key:__rand_int__"],
        STRINGS,
        CommandGoal::Script,
    ),
    workload("PUBLISH (100 subscribers)", &["PUBLISH", CHANNEL, "xxx"], Fill::Nothing, CommandGoal::Publish),
    workload("PFADD", &["PFADD", "hll", "element:__rand_int__"], Fill::Nothing, CommandGoal::Write),
    workload(
        "GEOSEARCH (100 of 10,000)",
        &["GEOSEARCH", "bench:geo", "FROMLONLAT", "13.5", "52.5", "BYRADIUS", "5", "km", "ASC"],
        Fill::Random {
            words: &["GEOADD", "bench:geo", "13.__rand_int__", "52.__rand_int__", "place:__rand_int__"],
            count: 10_000,
        },
        CommandGoal::Large,
    ),
];
