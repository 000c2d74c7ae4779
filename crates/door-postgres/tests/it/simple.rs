//! The simple protocol: queries, errors, COPY, long replies.

use door_postgres::Options;
use stdx::prng::Prng;

use crate::client::{SYNC, bind, execute, many_rows, message, parse, query};
use crate::serve;

#[test]
fn each_statement_of_a_text_has_its_reply() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    assert_eq!(client.ask(&query("select 1")), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(client.ask(&query("")), "I Z(I)");
    assert_eq!(client.ask(&query("begin; select 1")), "C(BEGIN) T D(1) C(SELECT 1) Z(T)");
    assert_eq!(client.ask(&query("select 1/0; select 1")), "E(ERROR 22012 division by zero) Z(E)");
    let aborted = "current transaction is aborted, commands ignored until end of transaction block";
    assert_eq!(client.ask(&query("select 1")), format!("E(ERROR 25P02 {aborted}) Z(E)"));
    assert_eq!(client.ask(&query("rollback")), "C(ROLLBACK) Z(I)");
    assert_eq!(client.ask(&query("syntax")), "E(ERROR 42601 syntax error at or near \"syntax\") Z(I)");
    assert_eq!(client.ask(&query("set timezone = 'UTC'")), "C(SET) S(TimeZone=UTC) Z(I)");
    served.stop();
}

#[test]
fn queries_may_be_sent_before_replies_are_read() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let bytes = [query("select 1"), query("select 1/0"), query("select 1")].concat();
    // In pieces, so that messages are cut anywhere.
    bytes.chunks(7).for_each(|piece| client.send(piece));
    assert_eq!(client.until(b'Z'), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(client.until(b'Z'), "E(ERROR 22012 division by zero) Z(I)");
    assert_eq!(client.until(b'Z'), "T D(1) C(SELECT 1) Z(I)");
    served.stop();
}

/// The reply is larger than what the connection may hold, and the client reads only after it has sent two more queries.
#[test]
fn a_long_reply_waits_for_its_reader() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let rows = 1_000_000;
    let bytes = query(&many_rows(rows));
    client.send(&[bytes, query("select 1"), query("select 1")].concat());
    let held = || served.pool.connections().iter().map(|connection| connection.buffers().unsent).max();
    assert!(served.enter().ask(&query("select 1")).ends_with("Z(I)"), "others are served meanwhile");
    assert!(held().is_some_and(|bytes| bytes < 4 << 20), "{:?}", held());
    let mut count = 0;
    loop {
        let (kind, body) = client.receive().expect("a row");
        match kind {
            b'D' => count += 1,
            b'C' => break assert_eq!(body, format!("SELECT {rows}\0").as_bytes()),
            kind => assert_eq!(kind, b'T'),
        }
    }
    assert_eq!(count, rows);
    assert_eq!(client.until(b'Z'), "Z(I)");
    assert_eq!(client.until(b'Z'), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(client.until(b'Z'), "T D(1) C(SELECT 1) Z(I)");
    served.stop();
}

#[test]
fn a_client_that_leaves_in_the_middle_is_forgotten() {
    let served = serve(0, Options::default());
    let endless = format!("select count(*) from ({0}) a, ({0}) b, ({0}) c", many_rows(1_000_000));
    for text in [many_rows(1_000_000), endless] {
        let mut client = served.enter();
        client.send(&query(&text));
        drop(client);
    }
    let mut client = served.enter();
    client.send(&message(b'X', b""));
    assert_eq!(client.until(b'Z'), "end");
    served.stop();
}

#[test]
fn copy_reads_the_clients_data() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    assert_eq!(client.ask(&query("create table t (a int)")), "C(CREATE TABLE) Z(I)");
    client.send(&query("copy t from stdin; select 1"));
    assert_eq!(client.until(b'G'), "G");
    let data = [message(b'd', b"1\n2"), SYNC.to_vec(), message(b'H', b""), message(b'd', b"\n")].concat();
    client.send(&data);
    assert_eq!(client.ask(&message(b'c', b"")), "C(COPY 2) T D(1) C(SELECT 1) Z(I)");
    client.send(&query("copy t from stdin"));
    assert_eq!(client.until(b'G'), "G");
    let answer = "E(ERROR 57014 COPY from stdin failed: changed my mind) Z(I)";
    assert_eq!(client.ask(&message(b'f', b"changed my mind\0")), answer);
    // Data behind the error is dropped.
    client.send(&query("copy t from stdin"));
    assert_eq!(client.until(b'G'), "G");
    let answer = "E(ERROR 22P02 invalid input syntax for type integer: \"x\") Z(I)";
    assert_eq!(client.ask(&[message(b'd', b"x\n"), message(b'd', b"1\n"), message(b'c', b"")].concat()), answer);
    assert_eq!(client.ask(&query("copy t to stdout")), "H d(1/) d(2/) c C(COPY 2) Z(I)");
    client.send(&query("copy t from stdin"));
    assert_eq!(client.until(b'G'), "G");
    let answer = "E(ERROR 08P01 unexpected message type 0x51 during COPY from stdin) Z(I)";
    assert_eq!(client.ask(&query("select 1")), answer);
    assert!(client.ask(&query("select 1")).ends_with("Z(I)"));
    served.stop();
}

#[test]
fn a_message_that_is_too_long_is_an_error_and_no_more() {
    let served = serve(0, Options { message_max: 1 << 20, ..Options::default() });
    let mut client = served.enter();
    let long = query(&format!("select '{}'", "x".repeat(2 << 20)));
    let error = format!("E(ERROR 54000 a message of {} bytes is too long) Z(I)", long.len());
    assert_eq!(client.ask(&long), error);
    assert_eq!(client.ask(&query("select 1")), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(client.ask(b"Q\xff\xff\xff\xff"), "E(FATAL 08P01 invalid message length) end");
    let mut client = served.enter();
    assert_eq!(client.ask(b"?\0\0\0\x04"), "E(FATAL 08P01 invalid frontend message type 63) end");
    served.stop();
}

#[test]
fn function_calls_and_texts_in_other_encodings_are_refused() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let error = "E(ERROR 0A000 function calls by FunctionCall messages are not supported) Z(I)";
    assert_eq!(client.ask(&message(b'F', b"\0\0\0\0")), error);
    let error = "E(ERROR 22021 invalid byte sequence for encoding \"UTF8\": 0xff) Z(I)";
    assert_eq!(client.ask(&message(b'Q', b"select '\xff'\0")), error);
    served.stop();
}

/// Known and unknown messages in any order, with cut and spoilt bodies: the door answers or closes, and never panics.
#[test]
fn random_messages_never_stop_the_door() {
    let served = serve(0, Options { message_max: 1 << 16, ..Options::default() });
    let mut prng = Prng::new(4);
    for _ in 0..60 {
        let mut client = served.enter();
        let mut bytes = Vec::new();
        for _ in 0..prng.below(12) {
            let one = match prng.below(9) {
                0 => query("select 1; begin; select 1/0"),
                1 => parse("s", &many_rows(2000)),
                2 => bind("p", "s"),
                3 => execute("p", prng.below(3) as u32),
                4 => query("copy t from stdin"),
                5 => message(b'd', b"1\n"),
                6 => message(b"cfHSDC"[prng.below(6) as usize], b"Ss\0"),
                7 => message(b'd', &vec![b'1'; 70_000]),
                _ => SYNC.to_vec(),
            };
            bytes.extend(one);
        }
        if prng.below(2) == 0 && !bytes.is_empty() {
            let at = prng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << prng.below(8);
        }
        client.send(&bytes);
        drop(client);
    }
    served.enter();
    assert_eq!(served.pool.counters().panics.get(), 0);
    served.stop();
}
