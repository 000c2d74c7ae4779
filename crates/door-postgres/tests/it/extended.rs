//! The extended protocol: statements, portals, pipelines, and what an error drops.

use door_postgres::Options;

use crate::client::{SYNC, bind, execute, message, parse, query, run};
use crate::serve;

#[test]
fn a_statement_is_parsed_described_bound_and_executed() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let bytes = [parse("s", "select 1"), message(b'D', b"Ss\0"), bind("p", "s"), message(b'D', b"Pp\0")].concat();
    assert_eq!(client.ask(&[&bytes[..], &execute("p", 0), SYNC].concat()), "1 t T 2 T D(1) C(SELECT 1) Z(I)");
    // The statement outlives the transaction; the portal does not.
    assert_eq!(client.ask(&[&bind("", "s")[..], &execute("", 0), SYNC].concat()), "2 D(1) C(SELECT 1) Z(I)");
    let bytes = [message(b'C', b"Ss\0"), message(b'C', b"Pp\0"), bind("", "s"), SYNC.to_vec()].concat();
    let error = "E(ERROR 26000 prepared statement \"s\" does not exist)";
    assert_eq!(client.ask(&bytes), format!("3 3 {error} Z(I)"));
    let bytes = [&run("")[..], &parse("", "begin"), &message(b'D', b"S\0"), SYNC].concat();
    assert_eq!(client.ask(&bytes), "1 2 I 1 t n Z(I)");
    served.stop();
}

#[test]
fn a_statement_without_rows_takes_any_result_formats() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let two_formats = message(b'B', b"\0\0\0\0\0\0\0\x02\0\0\0\x01");
    let bytes = [&parse("", "create table t (a int)")[..], &two_formats, &execute("", 0), SYNC].concat();
    assert_eq!(client.ask(&bytes), "1 2 C(CREATE TABLE) Z(I)");
    let bytes = [&parse("", "select 1")[..], &two_formats, SYNC].concat();
    let error = "E(ERROR 08P01 bind message has 2 result formats but query has 1 columns)";
    assert_eq!(client.ask(&bytes), format!("1 {error} Z(I)"));
    served.stop();
}

#[test]
fn a_portal_gives_its_rows_in_pieces() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let bytes = [
        parse("", "select x from (values (1), (2), (3), (4), (5)) a(x)"),
        bind("", ""),
        execute("", 2),
        execute("", 2),
    ]
    .concat();
    let answer = client.ask(&[&bytes[..], &execute("", 2), SYNC].concat());
    assert_eq!(answer, "1 2 D(1) D(2) s D(3) D(4) s D(5) C(SELECT 1) Z(I)");
    served.stop();
}

#[test]
fn an_error_drops_the_messages_up_to_the_next_sync() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let bytes = [&run("select 1/0")[..], &run("select 1"), &query("select 1"), SYNC, &run("select 1"), SYNC].concat();
    assert_eq!(client.ask(&bytes), "1 2 E(ERROR 22012 division by zero) Z(I)");
    assert_eq!(client.until(b'Z'), "1 2 D(1) C(SELECT 1) Z(I)");
    let bytes = [&parse("", "syntax")[..], &message(b'B', b"nothing"), &message(b'H', b""), SYNC].concat();
    assert_eq!(client.ask(&bytes), "E(ERROR 42601 syntax error at or near \"syntax\") Z(I)");
    // A message that the door itself refuses aborts the transaction too.
    assert_eq!(client.ask(&query("begin")), "C(BEGIN) Z(T)");
    let bytes = [&message(b'D', b"Xs\0")[..], &run("select 1"), SYNC].concat();
    assert_eq!(client.ask(&bytes), "E(ERROR 08P01 invalid DESCRIBE message subtype 88) Z(E)");
    assert_eq!(client.ask(&query("rollback")), "C(ROLLBACK) Z(I)");
    served.stop();
}

#[test]
fn flush_brings_replies_before_the_sync() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    client.send(&[run("select 1"), message(b'H', b"")].concat());
    assert_eq!(client.until(b'C'), "1 2 D(1) C(SELECT 1)");
    assert_eq!(client.ask(SYNC), "Z(I)");
    served.stop();
}

#[test]
fn copy_in_a_pipeline_drops_what_follows_its_error() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    assert_eq!(client.ask(&query("create table t (a int)")), "C(CREATE TABLE) Z(I)");
    client.send(&run("copy t from stdin"));
    assert_eq!(client.until(b'G'), "1 2 G");
    client.send(&[message(b'd', b"1\n"), message(b'c', b"")].concat());
    assert_eq!(client.ask(SYNC), "C(COPY 1) Z(I)");
    client.send(&run("copy t from stdin"));
    assert_eq!(client.until(b'G'), "1 2 G");
    let bytes = [&message(b'f', b"no\0")[..], &message(b'd', b"1\n"), &run("select 1"), SYNC].concat();
    assert_eq!(client.ask(&bytes), "E(ERROR 57014 COPY from stdin failed: no) Z(I)");
    served.stop();
}
