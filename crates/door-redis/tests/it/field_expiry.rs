//! Expiry times of fields. The replies are those of Redis 7.4 (src/t_hash.c, tests/unit/type/hash-field-expire.tcl), so no script recorded from 7.0 has them.

use crate::{Client, Served};

/// Far in the future, in seconds.
const LATER: u64 = 4_000_000_000;

/// Fills a hash with f1, f2 and so on, and with as many fillers as it takes to have elements.
fn fill(client: &mut Client, key: &str, fields: u32, is_large: bool) {
    let mut request = format!("HSET {key}");
    (1..=fields).for_each(|n| request += &format!(" f{n} v{n}"));
    if is_large {
        (0..200).for_each(|n| request += &format!(" filler{n} value"));
    }
    client.call(&format!("DEL {key}"));
    assert!(client.call(&request).starts_with(':'));
}

/// Makes fields due, without waiting longer than that takes.
fn make_due(client: &mut Client, key: &str, fields: &[&str]) {
    let names = fields.join(" ");
    let done = client.call(&format!("HPEXPIRE {key} 1 FIELDS {} {names}", fields.len()));
    assert_eq!(done, format!("*{}{}", fields.len(), " :1".repeat(fields.len())));
    let gone = format!("*{}{}", fields.len(), " :-2".repeat(fields.len()));
    while client.call(&format!("HTTL {key} FIELDS {} {names}", fields.len())) != gone {}
}

#[test]
fn fields_get_keep_and_lose_expiry_times_as_in_redis() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    for is_large in [false, true] {
        fill(&mut client, "h", 4, is_large);
        let cases = [
            (format!("HEXPIREAT h {LATER} NX FIELDS 1 f1"), "*1 :1"),
            (format!("HEXPIREAT h {LATER} nx fields 2 f1 f2"), "*2 :0 :1"),
            (format!("HEXPIREAT h {LATER} XX FIELDS 3 f1 f3 nosuch"), "*3 :1 :0 :-2"),
            (format!("HEXPIREAT h {} GT FIELDS 3 f1 f2 f3", LATER + 1), "*3 :1 :1 :0"),
            (format!("HEXPIREAT h {LATER} GT FIELDS 1 f1"), "*1 :0"),
            (format!("HEXPIREAT h {LATER} LT FIELDS 3 f1 f3 f3"), "*3 :1 :1 :0"),
            ("HEXPIRETIME h FIELDS 5 f1 f2 f3 f4 nosuch".into(), "*5 :4000000000 :4000000001 :4000000000 :-1 :-2"),
            ("HPEXPIRETIME h FIELDS 1 f2".into(), "*1 :4000000001000"),
            (format!("HPEXPIREAT h {}001 FIELDS 1 f2", LATER), "*1 :1"),
            ("HEXPIRETIME h FIELDS 1 f2".into(), "*1 :4000000001"),
            ("HPERSIST h FIELDS 3 f2 f4 nosuch".into(), "*3 :1 :-1 :-2"),
            ("HTTL h FIELDS 2 f2 f4".into(), "*2 :-1 :-1"),
            // HSET takes the time away, HINCRBY keeps it.
            ("HSET h f1 1 f4 1".into(), ":0"),
            ("HPTTL h FIELDS 1 f1".into(), "*1 :-1"),
            (format!("HEXPIREAT h {LATER} FIELDS 2 f1 f4"), "*2 :1 :1"),
            ("HINCRBY h f1 5".into(), ":6"),
            ("HINCRBYFLOAT h f4 0.5".into(), "$3 1.5"),
            ("HSETNX h f1 9".into(), ":0"),
            ("HEXPIRETIME h FIELDS 2 f1 f4".into(), "*2 :4000000000 :4000000000"),
            ("HEXPIREAT h 1 NX FIELDS 4 f1 f2 f3 nosuch".into(), "*4 :0 :2 :0 :-2"),
            ("HEXPIREAT h 0 FIELDS 3 f1 f1 f3".into(), "*3 :2 :-2 :2"),
            ("HMGET h f1 f2 f3 f4".into(), "*4 $-1 $-1 $-1 $3 1.5"),
        ];
        for (request, expected) in cases {
            assert_eq!(client.call(&request), expected, "{request}, large: {is_large}");
        }
    }
    assert_eq!(client.call("DEL h"), ":1");
    fill(&mut client, "h", 1, false);
    assert_eq!(client.call("HPEXPIREAT h 1 FIELDS 1 f1"), "*1 :2");
    assert_eq!(client.call("EXISTS h"), ":0");
    served.stop();
}

#[test]
fn wrong_arguments_are_refused_as_in_redis() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    client.call("SET s v");
    fill(&mut client, "h", 3, false);
    let (no_fields, wrong_count) = (
        "-ERR Mandatory argument FIELDS is missing or not at the right position",
        "-ERR The `numfields` parameter must match the number of arguments",
    );
    let cases = [
        ("HEXPIRE h 1 FIELDS 1", "-ERR wrong number of arguments for \\'hexpire\\' command"),
        ("HTTL h FIELDS 1", "-ERR wrong number of arguments for \\'httl\\' command"),
        ("HPERSIST h 1 f1", "-ERR wrong number of arguments for \\'hpersist\\' command"),
        ("HEXPIRE s 1 FIELDS 1 f1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("HPERSIST s FIELDS 1 f1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("HPTTL s FIELDS 1 f1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("HEXPIRE h x FIELDS 1 f1", "-ERR value is not an integer or out of range"),
        ("HEXPIRE h -1 FIELDS 1 f1", "-ERR invalid expire time, must be >= 0"),
        ("HPEXPIREAT h 70368744177664 FIELDS 1 f1", "-ERR invalid expire time in \\'hpexpireat\\' command"),
        ("HEXPIREAT h 70368744178 FIELDS 1 f1", "-ERR invalid expire time in \\'hexpireat\\' command"),
        ("HPEXPIRE h 70368744177663 FIELDS 1 f1", "-ERR invalid expire time in \\'hpexpire\\' command"),
        ("HEXPIRE h 9223372036854775807 FIELDS 1 f1", "-ERR invalid expire time in \\'hexpire\\' command"),
        ("HEXPIRE h 9 NX GT FIELDS 1 f1", no_fields),
        ("HEXPIRE h 9 YY FIELDS 1 f1", no_fields),
        ("HEXPIRE h 9 FIELD 1 f1", no_fields),
        ("HEXPIRE h 9 FIELDS 0 f1", "-ERR Parameter `numFields` should be greater than 0"),
        ("HEXPIRE h 9 NX FIELDS x f1", "-ERR Parameter `numFields` should be greater than 0"),
        ("HEXPIRE h 9 FIELDS 2 f1", wrong_count),
        ("HEXPIRE h 9 NX FIELDS 1 f1 f2", wrong_count),
        ("HTTL h FIELDS 0 f1", "-ERR Number of fields must be a positive integer"),
        ("HPERSIST h FIELDS -1 f1", "-ERR Number of fields must be a positive integer"),
        ("HEXPIRETIME h FIELDS 3 f1 f2", wrong_count),
        ("HPEXPIRETIME h f1 1 FIELDS", no_fields),
        ("HEXPIRE nosuch 9 FIELDS 2 a b", "*2 :-2 :-2"),
        ("HPERSIST nosuch FIELDS 1 a", "*1 :-2"),
        ("HTTL nosuch FIELDS 2 a b", "*2 :-2 :-2"),
        ("HTTL h FIELDS 1 f1", "*1 :-1"),
    ];
    for (request, expected) in cases {
        assert_eq!(client.call(request), expected, "{request}");
    }
    served.stop();
}

#[test]
fn no_command_sees_a_due_field() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    // Due fields stay on disk.
    assert_eq!(client.call("DEBUG SET-ACTIVE-EXPIRE 0"), "+OK");
    for is_large in [false, true] {
        fill(&mut client, "h", 6, is_large);
        make_due(&mut client, "h", &["f2", "f4", "f5"]);
        let left = if is_large { 203 } else { 3 };
        let all = client.call("HGETALL h");
        assert!(all.starts_with(&format!("*{} ", left * 2)) && !all.contains("v2") && !all.contains("f4"), "{all}");
        for request in ["HKEYS h", "HVALS h", "HRANDFIELD h 1000", "HSCAN h 0 COUNT 100000"] {
            let shown = client.call(request);
            assert!(
                ["2", "4", "5"].iter().all(|n| !shown.contains(&format!("f{n} ")) && !shown.contains(&format!("v{n}")))
            );
        }
        let script = "EVAL \"return {redis.call('hget','h','f2'),redis.call('hlen','h')}\" 1 h";
        let cases = [
            ("HLEN h", format!(":{left}")),
            ("HGET h f2", "$-1".into()),
            ("HMGET h f1 f2", "*2 $2 v1 $-1".into()),
            ("HEXISTS h f2", ":0".into()),
            ("HSTRLEN h f2", ":0".into()),
            ("HDEL h f2", ":0".into()),
            ("HPERSIST h FIELDS 1 f2", "*1 :-2".into()),
            ("HEXPIRE h 100 FIELDS 1 f2", "*1 :-2".into()),
            (script, format!("*2 $-1 :{left}")),
            ("HSETNX h f2 new", ":1".into()),
            ("HINCRBY h f4 7", ":7".into()),
            ("HTTL h FIELDS 2 f2 f4", "*2 :-1 :-1".into()),
            ("COPY h copy REPLACE", ":1".into()),
            ("HLEN copy", format!(":{}", left + 2)),
            ("HEXISTS copy f5", ":0".into()),
            ("RENAME h renamed", "+OK".into()),
            ("HEXISTS renamed f5", ":0".into()),
            ("HLEN renamed", format!(":{}", left + 2)),
        ];
        for (request, expected) in cases {
            assert_eq!(client.call(request), expected, "{request}, large: {is_large}");
        }
        // SORT reads weights and values from fields.
        fill(&mut client, "w1", 2, is_large);
        make_due(&mut client, "w1", &["f1"]);
        client.call("DEL l");
        client.call("RPUSH l 1");
        assert_eq!(client.call("SORT l BY w*->f1 GET w*->f1 GET w*->f2"), "*2 $-1 $2 v2");
    }
    // A hash of due fields is absent.
    fill(&mut client, "gone", 2, false);
    make_due(&mut client, "gone", &["f1", "f2"]);
    for (request, expected) in [
        ("EXISTS gone", ":0"),
        ("TYPE gone", "+none"),
        ("DEL gone", ":0"),
        ("HSET gone f1 x", ":1"),
        ("HLEN gone", ":1"),
    ] {
        assert_eq!(client.call(request), expected, "{request}");
    }
    served.stop();
}

#[test]
fn the_background_removes_due_fields_and_says_so() {
    let served = Served::start();
    let (mut client, mut listener) = (Client::connect(served.address), Client::connect(served.address));
    assert_eq!(client.call("CONFIG SET notify-keyspace-events Khgx"), "+OK");
    assert!(listener.call("SUBSCRIBE __keyspace@0__:h").contains("subscribe"));
    fill(&mut client, "h", 2, false);
    client.call("HPEXPIRE h 1 FIELDS 1 f1");
    let mut heard = || listener.receive().rsplit(' ').next().unwrap_or_default().to_owned();
    assert_eq!([heard(), heard(), heard()], ["hset", "hexpire", "hexpired"]);
    assert_eq!(client.call("HLEN h"), ":1");
    client.call("HEXPIRE h 100 FIELDS 1 f2");
    client.call("HPERSIST h FIELDS 1 f2");
    client.call("HPERSIST h FIELDS 1 f2");
    client.call("HPEXPIRE h 1 FIELDS 1 f2");
    assert_eq!([heard(), heard(), heard(), heard(), heard()], ["hexpire", "hpersist", "hexpire", "hexpired", "del"]);
    assert_eq!(client.call("EXISTS h"), ":0");
    fill(&mut client, "h", 1, false);
    client.call("HEXPIREAT h 1 FIELDS 1 f1");
    assert_eq!([heard(), heard(), heard()], ["hset", "hdel", "del"]);
    served.stop();
}

#[test]
fn expiry_times_of_fields_are_dumped_and_restored() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    for is_large in [false, true] {
        fill(&mut client, "h", 3, is_large);
        assert_eq!(client.call(&format!("HEXPIREAT h {LATER} FIELDS 1 f1")), "*1 :1");
        assert_eq!(client.call(&format!("HPEXPIREAT h {LATER}007 FIELDS 1 f3")), "*1 :1");
        let script = "EVAL \"return redis.call('restore','r',0,redis.call('dump','h'),'replace')\" 2 h r";
        assert_eq!(client.call(script), "+OK");
        assert_eq!(client.call("HPEXPIRETIME r FIELDS 3 f1 f2 f3"), "*3 :4000000000000 :-1 :4000000000007");
        assert_eq!(client.call("HMGET r f1 f2 f3"), "*3 $2 v1 $2 v2 $2 v3");
        assert_eq!(client.call("HLEN r"), format!(":{}", if is_large { 203 } else { 3 }));
    }
    served.stop();
}
