//! Commands that arrive together have the effects and the replies that they have one by one (DR-20).

use std::io::Write;

use stdx::prng::Prng;

use crate::{Client, Served};

const KEYS: u64 = 3;

/// Returns a random command over a few keys of all types, some of which it does not suit.
fn command(random: &mut Prng, nth: usize) -> Vec<String> {
    let kinds = ["str", "list", "hash", "set", "zset", "stream", "hll", "big"];
    let of = |random: &mut Prng, kind: usize| format!("{}{}", kinds[kind], random.below(KEYS));
    let kind = random.below(kinds.len() as u64) as usize;
    let key = of(random, kind);
    // One in sixteen commands gets a key of another type.
    let other = random.below(kinds.len() as u64) as usize;
    let key = if random.below(16) == 0 { of(random, other) } else { key };
    let small = random.below(12).to_string();
    let number = random.below(100).to_string();
    let member = format!("m{}", random.below(60));
    let long = "x".repeat(random.below(700) as usize);
    let id = format!("{}-1", nth + 1);
    let line: Vec<&str> = match (kind, random.below(14)) {
        (_, 0) => match random.below(12) {
            0 => vec!["DEL", &key],
            1 => vec!["UNLINK", &key, "list0"],
            2 => vec!["EXPIRE", &key, "1000"],
            3 => vec!["PERSIST", &key],
            4 => vec!["EXISTS", &key, "set1", &key],
            5 => vec!["TYPE", &key],
            6 => vec!["RENAME", &key, "list1"],
            7 => vec!["PEXPIRE", &key, "-1"],
            8 => vec!["COPY", &key, "hash1", "REPLACE"],
            9 => vec!["NOSUCH", &key],
            10 => vec!["GET", &key, "too", "many"],
            _ => vec!["SELECT", "99"],
        },
        (0, 1) => vec!["SET", &key, &number],
        (0, 2) => vec!["SET", &key, &long, "EX", "900"],
        (0, 3) => vec!["APPEND", &key, &member],
        (0, 4) => vec!["MSET", &key, "1", "str0", "2"],
        (0, 5) => vec!["GETDEL", &key],
        (0, 6) => vec!["SETRANGE", &key, &small, "yy"],
        (0, 7) => vec!["INCRBYFLOAT", &key, "0.5"],
        (0, 8) => vec!["GETSET", &key, &number],
        (0, 9) => vec!["GET", &key],
        (0, 10) => vec!["MSETNX", &key, "1", "str9", "2"],
        (0, _) => vec!["INCRBY", &key, &number],
        (1, 1) => vec!["RPOPLPUSH", &key, "list2"],
        (1, 2) => vec!["LPOP", &key, &small],
        (1, 3) => vec!["LLEN", &key],
        (1, 4) => vec!["LRANGE", &key, "0", "-1"],
        (1, 5) => vec!["LPUSH", &key, &long, &member],
        (1, 6) => vec!["RPUSHX", &key, &member],
        (1, 7) => vec!["LSET", &key, &small, &member],
        (1, 8) => vec!["LREM", &key, "0", &member],
        (1, 9) => vec!["RPOP", &key],
        (1, 10) => vec!["RPUSH", &key, &long, &long, &long],
        (1, _) => vec!["LPUSH", &key, &member, &number],
        (2, 1) => vec!["HDEL", &key, &member],
        (2, 2) => vec!["HINCRBY", &key, &member, &number],
        (2, 3) => vec!["HGET", &key, &member],
        (2, 4) => vec!["HSETNX", &key, &member, &number],
        (2, 5) => vec!["HSET", &key, &member, &long],
        (2, 6) => vec!["HMGET", &key, &member, "m1"],
        (2, 7) => vec!["HEXPIREAT", &key, "4000000000", "FIELDS", "1", &member],
        (2, 8) => vec!["HGETALL", &key],
        (2, _) => vec!["HSET", &key, &member, &number, "m1", &small],
        (3, 1) => vec!["SREM", &key, &member, "m1"],
        (3, 2) => vec!["SMOVE", &key, "set0", &member],
        (3, 3) => vec!["SISMEMBER", &key, &member],
        (3, 4) => vec!["SCARD", &key],
        (3, 5) => vec!["SPOP", &key, "1000"],
        (3, 6) => vec!["SMEMBERS", &key],
        (3, _) => vec!["SADD", &key, &member, &number],
        (4, 1) => vec!["ZREM", &key, &member],
        (4, 2) => vec!["ZINCRBY", &key, &number, &member],
        (4, 3) => vec!["ZPOPMIN", &key],
        (4, 4) => vec!["ZPOPMAX", &key, &small],
        (4, 5) => vec!["ZRANK", &key, &member],
        (4, 6) => vec!["ZSCORE", &key, &member],
        (4, 7) => vec!["ZADD", &key, "GT", "CH", &number, &member],
        (4, 8) => vec!["ZRANGE", &key, "0", "-1", "WITHSCORES"],
        (4, _) => vec!["ZADD", &key, &number, &member, &small, "m1"],
        (5, 1) => vec!["XDEL", &key, &id],
        (5, 2) => vec!["XLEN", &key],
        (5, 3) => vec!["XGROUP", "CREATE", &key, "g", "0"],
        (5, 4) => vec!["XREADGROUP", "GROUP", "g", "c", "COUNT", &small, "STREAMS", &key, ">"],
        (5, 5) => vec!["XACK", &key, "g", &id],
        (5, 6) => vec!["XTRIM", &key, "MAXLEN", "30"],
        (5, 7) => vec!["XRANGE", &key, "-", "+"],
        (5, _) => vec!["XADD", &key, &id, "field", &member],
        (6, 1) => vec!["PFCOUNT", &key],
        (6, _) => vec!["PFADD", &key, &member, &number],
        (_, 1) => vec!["SETRANGE", &key, "5000", &member],
        (_, 2) => vec!["STRLEN", &key],
        (_, 3) => vec!["SETBIT", &key, "70000", "1"],
        (_, 4) => vec!["GETRANGE", &key, "4990", "5010"],
        _ => vec!["APPEND", &key, &long],
    };
    line.into_iter().map(str::to_owned).collect()
}

fn encode(command: &[String]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", command.len());
    command.iter().for_each(|arg| request += &format!("${}\r\n{arg}\r\n", arg.len()));
    request.into_bytes()
}

fn state(client: &mut Client) -> Vec<(String, String, String)> {
    let kinds = ["str", "list", "hash", "set", "zset", "stream", "hll", "big"];
    let keys = kinds.iter().flat_map(|kind| (0..10).map(move |nth| format!("{kind}{nth}")));
    let mut all = Vec::new();
    for key in keys {
        let kind = client.call(&format!("TYPE {key}"));
        let expires = client.call(&format!("EXPIRETIME {key}")) != ":-1";
        // A dumped stream has the times of its deliveries.
        let is_stream = kind == "+stream";
        let held = client.call(&if is_stream { format!("XRANGE {key} - +") } else { format!("DUMP {key}") });
        let pending = if is_stream { client.call(&format!("XPENDING {key} g")) } else { String::new() };
        all.push((key.clone(), format!("{kind} {expires} {pending}"), held));
    }
    all.push(("size".into(), String::new(), client.call("DBSIZE")));
    all
}

/// Both conversations are of one server, in two databases, so that sets have one order.
#[test]
fn pipelines_have_the_effects_and_replies_of_single_commands() {
    for seed in 0..6 {
        let served = Served::start();
        let (mut alone, mut piped) = (Client::connect(served.address), Client::connect(served.address));
        assert_eq!(piped.call("SELECT 1"), "+OK");
        // Small limits, so that collections become elements soon. In every other history they stay packed.
        if seed % 2 == 0 {
            for name in ["hash-max-listpack-entries", "set-max-intset-entries", "zset-max-listpack-entries"] {
                assert_eq!(alone.call(&format!("CONFIG SET {name} 8")), "+OK");
            }
        }
        let mut random = Prng::new(seed);
        let mut nth = 0;
        while nth < 4000 {
            let batch: Vec<_> = (0..1 + random.below(40) as usize).map(|at| command(&mut random, nth + at)).collect();
            let mut requests = Vec::new();
            batch.iter().for_each(|command| requests.extend(encode(command)));
            piped.stream.get_mut().write_all(&requests).expect("the server reads");
            for command in &batch {
                alone.stream.get_mut().write_all(&encode(command)).expect("the server reads");
                let (one, other) = (alone.receive(), piped.receive());
                assert_eq!(one, other, "seed {seed}, command {nth}: {command:?}");
                nth += 1;
            }
        }
        let (one, other) = (state(&mut alone), state(&mut piped));
        one.iter().zip(&other).for_each(|(one, other)| assert_eq!(one, other, "seed {seed}"));
        let report = served.engine.check().expect("everything can be read");
        assert!(report.problems.is_empty(), "seed {seed}: {:#?}", report.problems);
        served.stop();
    }
}

fn send_all(client: &mut Client, lines: &[&str]) {
    let mut requests = Vec::new();
    for line in lines {
        requests.extend(encode(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()));
    }
    client.stream.get_mut().write_all(&requests).expect("the server reads");
}

/// Waits until so many clients are blocked.
fn until_blocked(client: &mut Client, count: usize) {
    while client.call("INFO clients").split(' ').all(|line| line != format!("blocked_clients:{count}")) {}
}

#[test]
fn whoever_waits_is_served_between_two_commands_of_a_pipeline() {
    let served = Served::start();
    let (mut client, mut waiter) = (Client::connect(served.address), Client::connect(served.address));
    waiter.send(&["BLPOP", "l", "0"]);
    until_blocked(&mut client, 1);
    send_all(&mut client, &["INCR n", "LPUSH l a", "LPUSH l b", "LLEN l", "RPUSH l c"]);
    assert_eq!(waiter.receive(), "*2 $1 l $1 a");
    let replies: Vec<_> = (0..5).map(|_| client.receive()).collect();
    assert_eq!(replies, [":1", ":1", ":1", ":1", ":2"]);
    assert_eq!(client.call("LRANGE l 0 -1"), "*2 $1 b $1 c");
    served.stop();
}

#[test]
fn commands_of_a_pipeline_are_counted_shown_and_announced_one_by_one() {
    let served = Served::start();
    let (mut client, mut listener) = (Client::connect(served.address), Client::connect(served.address));
    let mut monitor = Client::connect(served.address);
    assert_eq!(client.call("CONFIG SET notify-keyspace-events KEA"), "+OK");
    assert_eq!(client.call("CONFIG RESETSTAT"), "+OK");
    assert_eq!(
        listener.call("PSUBSCRIBE __keyevent@0__:*"),
        "*3 $10 psubscribe $18 __keyevent@0__:* :1".replace("$18", "$16")
    );
    assert_eq!(monitor.call("MONITOR"), "+OK");
    let lines = ["RPUSH l a", "INCR n", "INCR l", "LPOP l", "SADD s a", "GET n", "HSET h f v"];
    send_all(&mut client, &lines);
    let replies: Vec<_> = lines.iter().map(|_| client.receive()).collect();
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(replies[..2], [":1", ":1"]);
    assert!(replies[2].starts_with("-WRONGTYPE") || replies[2] == wrong, "{}", replies[2]);
    assert_eq!(replies[3..], ["$1 a", ":1", "$1 1", ":1"]);
    for (event, key) in [("rpush", "l"), ("incrby", "n"), ("lpop", "l"), ("del", "l"), ("sadd", "s"), ("hset", "h")] {
        let told = listener.receive();
        assert!(told.contains(&format!("__keyevent@0__:{event}")) && told.ends_with(&format!(" {key}")), "{told}");
    }
    for line in lines {
        let shown = monitor.receive();
        let quoted: Vec<String> = line.split(' ').map(|word| format!("\\\"{word}\\\"")).collect();
        assert!(shown.ends_with(&quoted.join(" ")), "{shown} {quoted:?}");
    }
    let counts = client.call("INFO commandstats");
    for (name, calls, failed) in [("rpush", 1, 0), ("incr", 2, 1), ("lpop", 1, 0), ("get", 1, 0), ("hset", 1, 0)] {
        let of = counts.split(' ').find(|line| line.starts_with(&format!("cmdstat_{name}:"))).expect(name);
        assert!(of.contains(&format!("calls={calls},")) && of.ends_with(&format!("failed_calls={failed}")), "{of}");
    }
    served.stop();
}

#[test]
fn permissions_hold_for_each_command_of_a_pipeline() {
    let served = Served::start();
    let (mut admin, mut client) = (Client::connect(served.address), Client::connect(served.address));
    assert_eq!(admin.call("ACL SETUSER app on >x ~a* +lpush +incr +get"), "+OK");
    assert_eq!(client.call("AUTH app x"), "+OK");
    send_all(&mut client, &["LPUSH a1 x", "INCR b1", "LPUSH a1 y", "RPUSH a1 z", "INCR a2"]);
    let replies: Vec<_> = (0..5).map(|_| client.receive()).collect();
    assert_eq!((&*replies[0], &*replies[2], &*replies[4]), (":1", ":2", ":1"));
    assert!(replies[1].starts_with("-NOPERM") && replies[3].starts_with("-NOPERM"), "{replies:?}");
    assert_eq!(admin.call("ACL LOG").matches("toplevel").count(), 2);
    served.stop();
}
