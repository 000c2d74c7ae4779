//! Statements: arguments, digests, hints, errors and their dependents, rows, chunks, tokens.

use super::client::{Statement, bytes, field};
use super::*;

#[test]
fn arguments_are_values_whatever_is_in_them() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key, s varchar(40), b varbinary(8))");
    let insert = Statement::new("insert into t values (?, ?, ?)");
    let nasty = "a'b\\ \"?` -- ; drop table t";
    assert_eq!(client.execute(2, &insert.clone().int(1).string(nasty).octets(&[0, 255, b'\''])).affected, Some(1));
    assert_eq!(client.execute(2, &insert.clone().int(2).null().null()).affected, Some(1));
    let select = Statement::new("select s, b from t where id = ? and '?' <> ? /* ? */");
    let answer = client.execute(2, &select.int(1).string("x"));
    assert_eq!(answer.rows, [[[nasty.as_bytes(), &[0]].concat(), vec![0, 255, b'\'', 0]]]);
    assert_eq!(answer.columns, ["s", "b"]);
    let answer = client.execute(2, &Statement::new("select s from t where id = ?").int(2));
    assert_eq!(answer.rows, [[[]]], "NULL");
    let list = Statement::new("select ? from ? where id in (?) and id < ? order by 1");
    let answer = client.execute(2, &list.identifier("id").identifier("t").raw("1, 2,3").int(10));
    assert_eq!(answer.numbers(), [1, 2]);
    assert_eq!(client.execute(2, &insert.clone().int(3)).code(), 1064, "too few");
    assert_eq!(client.execute(2, &Statement::new("select ?").int(1).int(2)).code(), 8001, "too many");
    assert_eq!(client.execute(2, &Statement::new("select ?").raw("1").raw("2")).code(), 8001);
    assert_eq!(client.execute(2, &Statement::new("set @n = ?, @x = ?").int(7).string("it's")).error, None);
    assert_eq!(client.done(2, "select concat(@x, @n)").text(), "it's7");
    served.stop();
}

#[test]
fn a_change_answers_what_it_did() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key auto_increment, n int)");
    let answer = client.done(2, "insert into t (n) values (1), (2)");
    assert_eq!((answer.affected, answer.insert_id, answer.columns.len()), (Some(2), Some(1), 0));
    let update = Statement::new("update t set n = 2");
    assert_eq!(client.execute(2, &update).affected, Some(2), "rows found, as clients expect");
    assert_eq!(client.execute(2, &update.clone().capabilities(0)).affected, Some(0), "rows changed");
    let answer = client.done(2, "insert ignore into t values (1, 5)");
    assert_eq!((answer.affected, answer.warnings), (Some(0), vec![1062]));
    let answer = client.run(2, "insert into t values (1, 5)");
    let (severity, code, state, text) = answer.error.unwrap();
    assert_eq!((severity, code, &state[..], &text[..]), (0, 1062, "23000", "Duplicate entry '1' for key 't.PRIMARY'"));
    assert_eq!(client.done(2, "select n from t where id = 1").numbers(), [2], "the session goes on");
    served.stop();
}

#[test]
fn a_session_that_is_released_is_answered_and_over() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key)");
    for text in ["begin", "insert into t values (1)", "commit release"] {
        client.done(2, text);
    }
    assert!(client.run(2, "select 1").is_fatal(), "nobody has this number now");
    client.begin(3);
    for text in ["begin", "insert into d.t values (2)", "rollback release"] {
        client.done(3, text);
    }
    client.begin(4);
    assert_eq!(client.done(4, "select id from d.t").numbers(), [1]);
    served.stop();
}

#[test]
fn a_digest_stands_for_its_text_on_all_connections() {
    let served = serve(Options::default());
    let (mut one, mut two) = (served.session(), served.session());
    let by_digest = Statement::default().digest(&[1, 2, 3, 4]).int(5);
    let miss = one.execute(2, &by_digest);
    assert_eq!((miss.code(), miss.is_fatal()), (8000, false));
    let full = Statement::new("select ? + 1").digest(&[1, 2, 3, 4]).int(5);
    assert_eq!(one.execute(2, &full).numbers(), [6]);
    assert_eq!(two.execute(2, &by_digest).numbers(), [6]);
    assert_eq!(two.execute(2, &by_digest.clone().hint("/*trace 17*/")).numbers(), [6]);
    let texts = served.door.texts();
    assert_eq!((texts.hits.get(), texts.misses.get(), texts.count()), (2, 1, 1));
    served.stop();
}

#[test]
fn a_named_text_is_run_as_it_is_meant_now_by_whoever_names_it() {
    let served = serve(Options::default());
    let (mut one, mut two) = (served.session(), served.session());
    one.done(2, "create table t (id int primary key, s varchar(9))");
    one.done(2, "insert into t values (1, 'one'), (2, 'two')");
    let named = |text: &str| Statement::new(text).digest(b"d");
    let by_digest = Statement::default().digest(b"d");
    let select = "select * from d.t where id = ?";
    for client in [&mut one, &mut two] {
        assert_eq!(client.execute(2, &named(select).int(1)).rows.len(), 1);
        for id in [1, 2] {
            let answer = client.execute(2, &by_digest.clone().int(id));
            assert_eq!((answer.columns, answer.rows.len()), (vec!["id".into(), "s".into()], 1));
        }
    }
    assert_eq!(two.execute(2, &by_digest.clone().int(1).compact()).columns, ["", ""], "another form");
    assert_eq!(two.execute(2, &by_digest.clone().int(1)).columns, ["id", "s"]);
    // The number of arguments is each request's own.
    assert_eq!(two.execute(2, &by_digest).code(), 1064);
    assert_eq!(two.execute(2, &by_digest.clone().int(1).int(2)).code(), 8001);
    assert_eq!(two.execute(2, &by_digest.clone().raw("2")).rows[0][1], b"two\0", "a part of the text");
    one.done(2, "alter table t add column n int default 7 first");
    assert_eq!(two.execute(2, &by_digest.clone().int(1)).columns, ["n", "id", "s"], "the table as it is now");
    assert_eq!(one.execute(2, &named("select ? + 1").int(1)).numbers(), [2]);
    assert_eq!(two.execute(2, &by_digest.clone().int(5)).numbers(), [6], "the text that was sent last");
    served.door.texts().clear();
    assert_eq!(two.execute(2, &by_digest.clone().int(5)).code(), 8000);
    // Bytes of a text are letters of the client's character set.
    let eszett = Statement::new("select hex('\u{df}')").digest(b"e");
    assert_eq!(one.execute(2, &eszett).text(), "C39F");
    one.done(2, "set character_set_client = latin1");
    assert_eq!(one.execute(2, &Statement::default().digest(b"e")).text(), "C383C5B8");
    assert_eq!(two.execute(2, &Statement::default().digest(b"e")).text(), "C39F");
    served.stop();
}

#[test]
fn a_named_text_obeys_the_rights_and_settings_of_its_session() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key)");
    client.done(2, "insert into t values (1)");
    let named = |text: &str| Statement::new(text).digest(b"d");
    let by_digest = Statement::default().digest(b"d");
    client.execute(2, &named("select concat(\"a\", ?) from t").string("b"));
    assert_eq!(client.execute(2, &by_digest.clone().string("b")).text(), "ab");
    client.done(2, "set sql_mode = 'ansi_quotes'");
    assert_eq!(client.execute(2, &by_digest.clone().string("b")).code(), 1054, "the name of a column");
    client.done(2, "set sql_mode = default, transaction_isolation = 'serializable'");
    assert_eq!(client.execute(2, &by_digest.clone().string("c")).text(), "ac");
    client.done(2, "create temporary table t (id int)");
    assert_eq!(client.execute(2, &by_digest.clone().string("d")).rows.len(), 0, "the session's own table");
    served.stop();
}

#[test]
fn an_error_fails_the_requests_that_depend_on_it_and_no_other() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key)");
    let statements = [
        Statement::new("insert into nowhere values (1)").reset_error(true),
        Statement::new("insert into t values (1)").reset_error(false),
        Statement::new("insert into t values (2)").reset_error(false),
        Statement::new("insert into t values (3)").reset_error(true),
        Statement::new("insert into t values (4)").reset_error(false),
    ];
    statements.iter().for_each(|statement| client.say(2, statement));
    let codes: Vec<u64> = statements.iter().map(|_| client.answer(2).code()).collect();
    assert_eq!(codes, [1146, 1146, 1146, 0, 0]);
    assert_eq!(client.done(2, "select id from t").numbers(), [3, 4]);
    // An unknown digest is not an error that later requests inherit.
    client.say(2, &Statement::default().digest(b"none").reset_error(true));
    client.say(2, &Statement::new("select 1").reset_error(false));
    assert_eq!((client.answer(2).code(), client.answer(2).code()), (8000, 0));
    served.stop();
}

#[test]
fn savepoints_are_set_without_a_statement() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key)");
    client.done(2, "begin");
    let savepoint = |op: u8| [&[8, op, 0x12, 3][..], b"sp1", &[0x18, 1]].concat();
    for (op, text) in [(0, "insert into t values (1)"), (2, "insert into t values (2)")] {
        client.send(2, 115, &savepoint(op));
        assert_eq!(client.receive(), Frame { sid: 2, kind: 0, payload: Vec::new() });
        client.done(2, text);
    }
    client.send(2, 115, &savepoint(1));
    assert_eq!(client.receive().kind, 0);
    client.send(2, 115, &savepoint(2));
    assert_eq!(client.answer(2).code(), 1305, "it is released");
    client.done(2, "commit");
    assert_eq!(client.done(2, "select id from t").numbers(), [2]);
    served.stop();
}

#[test]
fn the_database_of_a_request_is_selected_and_an_unknown_one_ends_the_session() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create database e");
    let which = Statement::new("select database()");
    assert_eq!(client.execute(2, &which.clone().schema("e")).text(), "e");
    assert_eq!(client.execute(2, &which).text(), "e", "it stays");
    let answer = client.execute(2, &which.clone().schema("nowhere"));
    assert_eq!((answer.code(), answer.is_fatal()), (1049, true));
    assert!(client.run(2, "select 1").is_fatal());
    served.stop();
}

#[test]
fn metadata_is_told_or_left_out() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key auto_increment, s varchar(100))");
    client.say(2, &Statement::new("select id as i, s from t as a"));
    let meta = client.receive().payload;
    assert_eq!(meta[..4], [8, 1, 0x10, 3], "SINT, LONG");
    let names: Vec<String> = (3..=8).map(|place| String::from_utf8(bytes(&meta, place)).unwrap()).collect();
    assert_eq!(names, ["i", "id", "a", "t", "d", "def"]);
    let number = |place| client::number(&meta, place);
    assert_eq!((number(9), number(11), number(12), number(14)), (63, 11, 0x130, 16_899));
    assert_eq!(client.answer(2).columns, ["s"]);
    client.say(2, &Statement::new("select id from t").compact());
    assert!(field(&client.receive().payload, 3).is_none());
    client.answer(2);
    served.stop();
}

#[test]
fn rows_travel_in_chunks_where_they_can() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key, s varchar(500), l text)");
    let rows: Vec<String> = (0..3000).map(|id| format!("({id}, 'x', null)")).collect();
    client.done(2, &format!("insert into t values {}", rows.join(", ")));
    let answer = client.execute(2, &Statement::new("select id, s from t").chunks());
    assert!(answer.chunks >= 2 && answer.rows.is_empty(), "{}", answer.chunks);
    let answer = client.execute(2, &Statement::new("select id, l from t").chunks());
    assert_eq!((answer.chunks, answer.rows.len()), (0, 3000), "a text may be too long for a chunk");
    let answer = client.execute(2, &Statement::new("select id from t where id < 0").chunks());
    assert_eq!((answer.chunks, answer.columns.len()), (0, 1));
    served.stop();
}

#[test]
fn rows_wait_for_the_clients_leave_and_other_sessions_go_on() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key, s varchar(100))");
    let rows: Vec<String> = (0..2000).map(|id| format!("({id}, repeat('x', 90))")).collect();
    client.done(2, &format!("insert into t values {}", rows.join(", ")));
    client.begin(3);
    client.say(2, &Statement::new("select s from t").token(1));
    let mut answer = client::Answer::default();
    while answer.token_waits == 0 {
        assert!(!answer.take(&client.receive()));
    }
    assert!(answer.rows.len() < 20, "{}", answer.rows.len());
    // Waiting holds no thread: there are two threads, and a hundred sessions wait.
    for sid in 100..200 {
        client.begin(sid);
        client.say(sid, &Statement::new("select s from d.t").token(0));
        while client.receive().kind != 19 {}
    }
    assert_eq!(client.done(3, "select 1").numbers(), [1]);
    // More tokens than the rest needs.
    client.send(2, 112, b"\x08\x90\x4e");
    while !answer.take(&client.receive()) {}
    assert_eq!((answer.rows.len(), answer.token_waits, answer.affected), (2000, 1, Some(0)));
    // An offer to no statement is not answered.
    client.send(2, 112, b"\x08\x0a");
    assert_eq!(client.done(2, "select 2").numbers(), [2]);
    client.send(999, 112, b"\x08\x0a");
    assert!(client.answer(999).is_fatal());
    let answer = client.execute(2, &Statement::new("select s from t").token(1));
    assert!(answer.rows.len() == 2000 && answer.token_waits > 100, "{}", answer.token_waits);
    assert_eq!(client.execute(2, &Statement::new("select 1").token(-2)).code(), 8001);
    assert_eq!(client.execute(2, &Statement::new("select s from t").token(-1)).token_waits, 0);
    served.stop();
}

#[test]
fn a_change_answers_its_rows_where_the_hint_asks_for_them() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int auto_increment primary key, a int, twice int as (a * 2))");
    let changed = |text: &str, hint: &str| Statement::new(text).hint(hint);
    let insert = changed("insert into t (a) values (?), (?); ", "/*+returning*/").int(5).int(6);
    let answer = client.execute(2, &insert);
    assert_eq!((answer.numbers(), answer.columns.len(), answer.code()), (vec![1, 2], 3, 0));
    let update = changed("update t set a = a + 1 where id = 2 -- all of it", "/*+ returning fields(twice, `id`) */");
    assert_eq!(client.execute(2, &update).numbers(), [14]);
    // The digest is that of the statement; the hint comes with the request.
    let delete = Statement::new("delete from t where id = ?").digest(b"delete");
    assert_eq!(client.execute(2, &delete.clone().int(77)).code(), 0);
    let again = Statement::default().digest(b"delete").hint("/*+returning fields(a)*/").int(1);
    assert_eq!(client.execute(2, &again).numbers(), [5]);
    // An error is reported, and the change is rolled back.
    assert_eq!(client.execute(2, &changed("delete from t", "/*+returning fields(nothing)*/")).code(), 1054);
    assert_eq!(client.execute(2, &changed("select * from t", "/*+returning*/")).code(), 1064);
    assert_eq!(client.done(2, "select count(*) from t").numbers(), [1]);
    assert_eq!(client.done(2, "call dbms_trans.returning('a', 'delete from t')").numbers(), [7]);
    served.stop();
}

#[test]
fn what_is_not_served_says_so() {
    let served = serve(Options::default());
    let mut client = served.session();
    assert_eq!(client.execute(2, &Statement::new("select 1").snapshot(77)).code(), 8001);
    assert_eq!(client.execute(2, &Statement::new("delete from t").hint("/*+returning fields(a*/")).code(), 8001);
    for kind in [116, 117, 118] {
        client.send(2, kind, b"");
        assert_eq!((kind, client.answer(2).code()), (kind, 8001));
    }
    assert_eq!(client.done(2, "select 1").numbers(), [1], "the session goes on");
    client.send(2, 24, b"");
    assert!(client.answer(2).is_fatal());
    served.stop();
}

#[test]
fn timestamps_come_at_once_and_each_once() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.begin(3);
    client.say(3, &Statement::new("select sleep(1)"));
    let mut last = 0;
    for sid in [2, 3, 0, 77] {
        client.send(sid, 113, b"\x0a\x00\x10\x03");
        let frame = client.receive();
        assert_eq!((frame.sid, frame.kind), (sid, 20), "beside what runs, and without a session");
        let base = client::number(&frame.payload, 2);
        assert!(base >= last + 3 * 64 && base & 63 == 0, "{base} after {last}");
        last = base;
    }
    let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!((last >> 22).abs_diff(now_ms) < 60_000);
    client.send(2, 113, b"\x0a\x00\x10\x00");
    let mut answer = client::Answer::default();
    answer.take(&client.receive());
    assert_eq!(answer.code(), 8001, "a batch of none");
    served.stop();
}
