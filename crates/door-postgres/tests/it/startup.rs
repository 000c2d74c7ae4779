//! First packets: versions, parameters, cancel requests, and what is no first packet.

use std::time::{Duration, Instant};

use door_postgres::Options;
use stdx::prng::Prng;

use crate::client::{Client, GSS_REQUEST, SSL_REQUEST, VERSION, many_rows, query, socket, startup};
use crate::serve;

#[test]
fn a_startup_is_answered_with_parameters_and_a_key() {
    let served = serve(0, Options::default());
    let mut client = served.connect();
    let answer = client.start("postgres");
    assert!(answer.starts_with("R0 S("), "{answer}");
    assert!(answer.contains("S(client_encoding=UTF8)") && answer.contains("S(server_version=16."), "{answer}");
    assert!(answer.ends_with(" K Z(I)"), "{answer}");
    let other = served.enter();
    assert!(client.pid != other.pid && client.key != other.key);
    served.stop();
}

#[test]
fn encryption_is_declined_where_there_is_none() {
    let served = serve(0, Options::default());
    let mut client = served.connect();
    client.send(GSS_REQUEST);
    assert_eq!(client.byte(), b'N');
    client.send(SSL_REQUEST);
    assert_eq!(client.byte(), b'N');
    assert!(client.start("postgres").ends_with("Z(I)"));
    served.stop();
}

#[test]
fn newer_minor_versions_are_negotiated_and_other_versions_refused() {
    let served = serve(0, Options::default());
    for (version, options) in [(VERSION + 2, vec![]), (VERSION, vec![("_pq_.new", "1")])] {
        let mut client = served.connect();
        client.send(&startup(version, &[vec![("user", "postgres")], options].concat()));
        assert!(client.until(b'Z').starts_with("v R0 "));
    }
    for (bytes, answer) in [
        (startup(2 << 16, &[]), "E(FATAL 0A000 unsupported frontend protocol 2.0: server supports 3.0 to 3.0) end"),
        (startup(VERSION, &[]), "E(FATAL 28000 no PostgreSQL user name specified in startup packet) end"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "E(FATAL 08P01 invalid length of startup packet) end"),
        (
            startup(VERSION, &[("user", "a"), ("replication", "database")]),
            "E(FATAL 0A000 replication connections are not supported) end",
        ),
    ] {
        let mut client = served.connect();
        assert_eq!(client.ask(&bytes), answer);
    }
    served.stop();
}

#[test]
fn an_unknown_database_is_told_after_the_login() {
    let served = serve(0, Options::default());
    let mut client = served.connect();
    client.send(&startup(VERSION, &[("user", "postgres"), ("database", "nowhere")]));
    assert_eq!(client.until(b'Z'), "R0 E(FATAL 3D000 database \"nowhere\" does not exist) end");
    served.stop();
}

#[test]
fn a_cancel_request_needs_the_key() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    client.send(&query(&many_rows(1_000_000)));
    // A request that comes before the statement would end nothing.
    assert_eq!(client.receive().map(|(kind, _)| kind), Some(b'T'));
    assert_eq!(client.receive().map(|(kind, _)| kind), Some(b'D'));
    let cancel = |pid: u32, key: u32| {
        let words = [16_u32, 1234 << 16 | 5678, pid, key];
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        let mut other = served.connect();
        other.send(&bytes);
        assert_eq!(other.until(b'Z'), "end", "there is no answer");
    };
    cancel(client.pid, client.key ^ 1);
    cancel(client.pid + 1, client.key);
    let counts = |served: &crate::Served| (served.door.stats().cancels.get(), served.door.stats().wrong_cancels.get());
    assert_eq!(counts(&served), (0, 2));
    let begun = Instant::now();
    cancel(client.pid, client.key);
    let answer = client.until(b'Z');
    assert!(answer.ends_with(" E(ERROR 57014 canceling statement due to user request) Z(I)"), "{answer:.200}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(counts(&served), (1, 2));
    assert!(client.ask(&query("select 1")).ends_with("Z(I)"), "the session goes on");
    served.stop();
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let served = serve(1, Options::default());
    let _first = served.enter();
    let mut second = served.connect();
    assert_eq!(second.until(b'Z'), "E(FATAL 53300 sorry, too many clients already) end");
    served.stop();
}

#[test]
fn a_stopping_server_says_so_to_idle_clients() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    served.door.say_goodbye();
    let error = "E(FATAL 57P01 terminating connection due to administrator command) end";
    assert_eq!(client.until(b'Z'), error);
    served.stop();
}

/// Busy clients learn why they are cut off, too: their requests cross the server's last error.
#[test]
fn a_client_that_is_ended_amid_its_requests_reads_the_reason() {
    let served = serve(0, Options::default());
    for _ in 0..400 {
        let mut client = served.enter();
        let door = served.door.clone();
        let ender = std::thread::spawn(move || door.say_goodbye());
        let last = loop {
            let answer = client.ask(&query("select 1"));
            if !answer.ends_with("Z(I)") {
                break answer;
            }
        };
        ender.join().expect("it ends all clients");
        assert!(last.contains("E(FATAL 57P01 terminating connection due to administrator command)"), "{last}");
    }
    served.stop();
}

/// Whatever arrives, the door answers or closes, and goes on serving others.
#[test]
fn random_first_bytes_end_the_connection_and_nothing_else() {
    let served = serve(0, Options::default());
    let mut prng = Prng::new(3);
    for round in 0..200 {
        let mut bytes = startup(VERSION, &[("user", "postgres")]);
        for _ in 0..=prng.below(3) {
            let at = prng.below(bytes.len() as u64) as usize;
            bytes[at] = prng.below(256) as u8;
        }
        bytes.truncate(prng.below(bytes.len() as u64 + 1) as usize);
        let mut client = Client::over(Box::new(socket(served.address)));
        client.send(&bytes);
        if round % 20 == 0 {
            drop(client);
            served.enter();
        }
    }
    assert_eq!(served.pool.counters().panics.get(), 0);
    served.stop();
}
