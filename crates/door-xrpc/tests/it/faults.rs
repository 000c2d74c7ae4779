//! Faults: foreign and broken clients, sessions that wait for each other, kills, lost connections.

use std::io::{Read, Write};

use super::client::{Answer, Statement};
use super::*;

/// Reads all that a connection receives until it is closed.
fn all(client: &mut Client) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = client.stream.read_to_end(&mut bytes);
    bytes
}

/// A session of another connection, which must keep working.
struct Bystander(Client);

impl Bystander {
    fn of(served: &Served) -> Bystander {
        Bystander(served.session())
    }

    #[track_caller]
    fn goes_on(&mut self) {
        assert_eq!(self.0.done(2, "select 1").numbers(), [1]);
    }
}

#[test]
fn strangers_are_told_where_they_are_and_the_log_hears_of_them() {
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = heard.clone();
    let on_foreign_protocol =
        Some(Arc::new(move |what: &str, _: SocketAddr| notes.lock().unwrap().push(what.to_owned())) as Arc<_>);
    let served = serve(Options { on_foreign_protocol, ..Options::default() });
    for (bytes, answer, name) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &b"HTTP/1.1 400 "[..], "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x15\x03\x01", "TLS"),
        (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"E", "PostgreSQL"),
        (b"\x20\x00\x00\x01\x85\xa6\xff\x01", b"", "MySQL"),
        (b"*1\r\n$4\r\nPING\r\n", b"", "another"),
    ] {
        let mut client = served.connect();
        client.stream.write_all(bytes).unwrap();
        assert!(all(&mut client).starts_with(answer), "{name}");
        assert!(heard.lock().unwrap().last().unwrap().contains(name), "{name}");
    }
    let mut galaxy = served.connect();
    galaxy.version = Some(0);
    galaxy.send(0, 4, b"\x0a\x07MYSQL41");
    let told = galaxy.receive();
    assert_eq!((told.sid, told.kind, client::number(&told.payload, 2)), (0, 1, 8001));
    assert_eq!(served.door.stats().foreign_connections.get(), 6);
    served.stop();
}

#[test]
fn who_does_not_log_in_gets_nothing() {
    let served = serve(Options::default());
    for (sid, kind) in [(2, 110), (2, 101), (1 << 63 | 1, 101), (0, 113)] {
        let mut client = served.connect();
        client.send(0, 1, b"");
        client.receive();
        client.send(sid, kind, b"");
        let denied = client.receive();
        assert_eq!((denied.sid, denied.kind, client::number(&denied.payload, 2)), (sid, 1, 1045));
        assert!(client.is_closed());
    }
    let mut client = served.connect();
    client.stream.write_all(&client.frame(0, 4, &[0; 70_000])).unwrap();
    assert_eq!(client::number(&client.receive().payload, 2), 1153, "nor room for more than a login");
    served.stop();
}

#[test]
fn what_is_no_message_closes_the_connection() {
    let served = serve(Options::default());
    let mut bystander = Bystander::of(&served);
    for (kind, payload) in [
        (101, &b"\x0a\x7fselect"[..]),
        (101, b"\x12\x02\x08\x01"),
        (111, b"\x08\x01"),
        (115, b"\x08\x00"),
        (12, b""),
        (2, b""),
        (99, b""),
        (127, b""),
    ] {
        let mut client = served.session();
        client.send(2, kind, payload);
        assert_eq!(all(&mut client), b"", "type {kind}");
        bystander.goes_on();
    }
    eventually("each is counted", || served.door.stats().malformed.get() == 8);
    let mut client = served.session();
    client.stream.write_all(b"\x02\0\0\0\0\0\0\0\0\0\0\0\x65").unwrap();
    assert!(client.is_closed(), "a length of nothing");
    served.stop();
}

#[test]
fn a_frame_that_is_too_long_is_told_so() {
    let served = serve(Options { length_max: 4096, ..Options::default() });
    let (mut client, mut bystander) = (served.session(), Bystander::of(&served));
    client.done(2, "create table t (id int primary key)");
    client.done(2, "begin");
    client.done(2, "insert into t values (1)");
    client.stream.write_all(b"\x02\0\0\0\0\0\0\0\x01\x10\0\0\x65").unwrap();
    let answer = client.answer(2);
    let (severity, code, state, _) = answer.error.unwrap();
    assert_eq!((severity, code, &state[..]), (1, 1153, "S1000"));
    assert!(client.is_closed());
    assert_eq!(bystander.0.done(2, "select * from t for update").rows.len(), 0, "what its sessions did is taken back");
    served.stop();
}

#[test]
fn frames_come_in_pieces_of_any_size() {
    let served = serve(Options::default());
    let mut client = served.session();
    let statement = b"\x0a\x0aselect 1+1\x48\x01";
    let bytes = client.frame(2, 101, statement);
    for cut in 1..bytes.len() {
        client.stream.write_all(&bytes[..cut]).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        client.stream.write_all(&bytes[cut..]).unwrap();
        assert_eq!(client.answer(2).numbers(), [2], "cut at {cut}");
    }
    for byte in &bytes {
        client.stream.write_all(&[*byte]).unwrap();
    }
    assert_eq!(client.answer(2).numbers(), [2]);
    served.stop();
}

#[test]
fn a_session_takes_so_many_requests_and_then_ends() {
    let served = serve(Options { queue_max: 16, ..Options::default() });
    let mut client = served.session();
    client.begin(3);
    let bytes: Vec<u8> = (0..200).flat_map(|_| client.frame(2, 101, b"\x0a\x10select sleep(.1)")).collect();
    client.stream.write_all(&bytes).unwrap();
    // Requests behind it find no session.
    loop {
        let error = client.answer(2).error;
        if error.is_some_and(|(severity, _, _, text)| severity == 1 && text.contains("16 requests")) {
            break;
        }
    }
    // Another session continues.
    client.say(3, &Statement::new("select 1"));
    let mut answer = Answer::default();
    loop {
        let frame = client.receive();
        if frame.sid == 3 && answer.take(&frame) {
            break;
        }
        assert!(frame.sid == 3 || frame.kind == 1, "{frame:?}");
    }
    assert_eq!(answer.numbers(), [1]);
    served.stop();
}

/// Locks the only row of `t` in session 2, and lets `sids` wait for it.
fn wait_for_a_row(served: &Served, sids: std::ops::Range<u64>) -> Client {
    let mut client = served.session();
    client.done(2, "create table if not exists t (id int primary key, n int)");
    client.done(2, "replace into t values (1, 0)");
    client.done(2, "begin");
    client.done(2, "update t set n = n + 1");
    for sid in sids {
        client.begin(sid);
        client.say(sid, &Statement::new("update d.t set n = n + 1"));
    }
    std::thread::sleep(Duration::from_millis(50));
    client
}

#[test]
fn more_sessions_wait_for_a_row_than_there_are_threads_and_its_holder_frees_it() {
    let served = serve(Options::default());
    let mut client = wait_for_a_row(&served, 10..110);
    client.say(2, &Statement::new("commit"));
    let mut done = 0;
    while done < 101 {
        let frame = client.receive();
        assert_ne!(frame.kind, 1, "{frame:?}");
        done += usize::from(frame.kind == 17);
    }
    assert_eq!(client.done(2, "select n from t").numbers(), [101]);
    served.stop();
}

#[test]
fn a_killed_statement_ends_with_an_error_and_its_session_goes_on() {
    let served = serve(Options::default());
    let mut client = wait_for_a_row(&served, 3..4);
    client.send(3, 111, b"\x08\x01\x10\x03");
    let answer = client.answer(3);
    let (severity, code, state, _) = answer.error.clone().unwrap();
    assert_eq!((severity, code, &state[..]), (0, 1317, "70100"));
    assert_eq!(client.done(3, "select 1").numbers(), [1]);
    // Nothing runs: nothing is killed, and nothing is answered.
    client.send(3, 111, b"\x08\x01\x10\x03");
    assert_eq!(client.done(3, "select 2").numbers(), [2]);
    // A session that waits for tokens can be killed too.
    client.say(3, &Statement::new("select 1 union all select 2").token(0));
    while client.receive().kind != 19 {}
    client.send(3, 111, b"\x08\x01\x10\x03");
    assert_eq!(client.answer(3).code(), 1317);
    served.stop();
}

#[test]
fn a_killed_session_is_gone_and_so_are_its_locks() {
    let served = serve(Options::default());
    let mut client = wait_for_a_row(&served, 3..5);
    // A session that holds the lock and is idle.
    client.send(2, 111, b"\x08\x02\x10\x02");
    let mut answers = [(2, Answer::default()), (3, Answer::default()), (4, Answer::default())];
    let mut open = 3;
    while open > 0 {
        let frame = client.receive();
        let (_, answer) = answers.iter_mut().find(|(sid, _)| *sid == frame.sid).unwrap();
        open -= usize::from(answer.take(&frame));
    }
    let [killed, others @ ..] = answers.map(|(_, answer)| answer);
    let (severity, code, state, _) = killed.error.unwrap();
    assert_eq!((severity, code, &state[..]), (1, 8001, "70100"));
    assert!(others.iter().all(|other| other.affected == Some(1)));
    assert!(client.run(2, "select 1").is_fatal(), "nobody has this number now");
    // And a session that waits, killed by SQL this time.
    let mut client = wait_for_a_row(&served, 5..6);
    client.begin(6);
    let id =
        client.done(6, "select id from information_schema.processlist where info like 'update%'").rows[0][0].clone();
    client.say(6, &Statement::new(&format!("kill {}", client::varint(&id))));
    let (mut killer, mut codes) = (Answer::default(), Vec::new());
    while codes.len() < 2 || killer.affected.is_none() {
        let frame = client.receive();
        match frame.sid {
            5 => codes.push((client::number(&frame.payload, 1), client::number(&frame.payload, 2))),
            _ => drop(killer.take(&frame)),
        }
    }
    assert_eq!((codes, killer.error), (vec![(0, 1317), (1, 8001)], None));
    served.stop();
}

#[test]
fn a_lost_connection_takes_back_what_its_sessions_did() {
    let served = serve(Options::default());
    let client = wait_for_a_row(&served, 3..20);
    drop(client);
    eventually("every session ends, those that waited too", || served.door.stats().sessions.get() == 0);
    let mut client = served.session();
    assert_eq!(client.done(2, "select n from t for update").numbers(), [0]);
    served.stop();
}

#[test]
fn a_number_is_used_again_and_again() {
    let served = serve(Options::default());
    let (mut client, mut bystander) = (served.session(), Bystander::of(&served));
    client.done(2, "create table t (id int primary key)");
    for round in 0..100 {
        client.begin(9);
        client.execute(9, &Statement::new("set @x = ?").int(round));
        client.done(9, "begin");
        client.done(9, "insert into d.t values (1)");
        if round % 2 == 0 {
            client.send(9, 7, b"");
            assert_eq!(client.receive(), Frame { sid: 9, kind: 0, payload: Vec::new() });
        } else {
            client.send(9, 111, b"\x08\x02\x10\x09");
            assert!(client.answer(9).is_fatal());
        }
        bystander.goes_on();
    }
    client.begin(9);
    assert_eq!(client.done(9, "select @x").rows, [[[]]], "nothing is left of those before");
    assert_eq!(client.done(9, "select count(*) from d.t for update").numbers(), [0]);
    served.stop();
}

#[test]
fn a_session_that_is_begun_twice_ends_behind_what_it_runs() {
    let served = serve(Options::default());
    let mut client = wait_for_a_row(&served, 3..5);
    client.send(3, 110, b"");
    let answer = client.answer(3);
    assert_eq!((answer.code(), answer.is_fatal()), (1317, false), "the statement is broken off");
    let answer = client.answer(3);
    assert_eq!((answer.code(), answer.is_fatal()), (8001, true));
    client.say(2, &Statement::new("commit"));
    let mut answers = [(2, Answer::default()), (4, Answer::default())];
    let mut open = 2;
    while open > 0 {
        let frame = client.receive();
        let (_, answer) = answers.iter_mut().find(|(sid, _)| *sid == frame.sid).unwrap();
        open -= usize::from(answer.take(&frame));
    }
    assert_eq!(answers[1].1.affected, Some(1), "the other one that waited has not heard of it");
    client.begin(3);
    assert_eq!(client.done(3, "select n from d.t").numbers(), [2]);
    served.stop();
}

#[test]
fn who_closes_its_half_is_taken_for_gone() {
    let served = serve(Options::default());
    let (mut client, mut bystander) = (served.session(), Bystander::of(&served));
    client.done(2, "create table t (id int primary key)");
    client.done(2, "begin");
    client.done(2, "insert into t values (1)");
    client.say(2, &Statement::new("select sleep(20)"));
    std::thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(all(&mut client), b"", "the other half is closed, too");
    assert_eq!(bystander.0.done(2, "select * from t for update").rows.len(), 0, "what it did is taken back");
    assert!(begun.elapsed() < Duration::from_secs(10), "and what it ran is broken off");
    bystander.goes_on();
    served.stop();
}

/// As if the client's machine were gone: the socket sends nothing and reads nothing.
#[test]
fn who_takes_nothing_any_more_is_cut_off_and_its_locks_with_it() {
    let served = serve(Options::default());
    served.pool.tune(&reactor::Settings { net_write_timeout: Duration::from_millis(300), ..Default::default() });
    let (mut gone, mut bystander) = (wait_for_a_row(&served, 0..0), Bystander::of(&served));
    gone.begin(3);
    let rows = "with recursive c(n) as (select 1 union all select n + 1 from c where n < 1000) select repeat('x', 10000) from c a, c b";
    gone.say(3, &Statement::new(rows));
    bystander.goes_on();
    assert_eq!(bystander.0.done(2, "update t set n = n + 1").affected, Some(1), "it waits for the row until then");
    eventually("both of its sessions have ended", || served.door.stats().sessions.get() == 1);
    drop(gone);
    served.stop();
}

#[test]
fn a_flood_of_digests_takes_no_more_room_than_there_is() {
    let digests = door_xrpc::Limits { entries: 64, shards: 4, bytes_max: 1 << 20 };
    let served = serve(Options { digests, ..Options::default() });
    let (mut client, mut bystander) = (served.session(), Bystander::of(&served));
    let known = Statement::new("select 42").digest(b"known");
    assert_eq!(bystander.0.execute(2, &known).numbers(), [42]);
    for number in 0..2_000u32 {
        let statement = Statement::new(&format!("select {number}")).digest(&number.to_le_bytes());
        assert_eq!(client.execute(2, &statement).numbers(), [i64::from(number)]);
    }
    assert!(served.door.texts().count() <= 64);
    assert!(served.door.texts().evicted.get() >= 2_001 - 64);
    // Another client's statement is evicted: that client gets the error, and sends it again.
    let answer = bystander.0.execute(2, &Statement::default().digest(b"known"));
    assert_eq!((answer.code(), answer.is_fatal()), (8000, false));
    assert_eq!(bystander.0.execute(2, &known).numbers(), [42]);
    assert_eq!(bystander.0.execute(2, &Statement::default().digest(b"known")).numbers(), [42]);
    served.stop();
}

#[test]
fn a_stop_takes_back_what_sessions_did_and_has_not_committed() {
    for round in 0..10 {
        let served = serve(Options::default());
        let mut client = wait_for_a_row(&served, 3..40);
        client.begin(40);
        client.done(40, "create table d.u (id int primary key)");
        for sid in 41..80 {
            client.begin(sid);
            client.done(sid, "begin");
            client.done(sid, &format!("insert into d.u values ({sid})"));
        }
        served.pool.stop();
        assert_eq!(served.database.sessions().len(), 0, "round {round}");
        assert_eq!(served.door.stats().sessions.get(), 0);
        let identity = sql_mysql::Login {
            user: "root".into(),
            host: "localhost".into(),
            database: Some("d".into()),
            connection_id: 1,
        };
        let mut sql = sql_mysql::Session::new(&served.database, identity).unwrap();
        sql.execute("set innodb_lock_wait_timeout = 1").unwrap();
        for (change, rows) in [("update t set n = -7 where id = 1", 1), ("insert into u values (41), (79)", 2)] {
            let Ok(sql_mysql::Outcome::Done { affected, .. }) = sql.execute(change) else { panic!("{change}") };
            assert_eq!(affected, rows, "{change}");
        }
    }
}

#[test]
fn who_does_not_read_holds_no_thread() {
    let served = serve(Options::default());
    let mut slow = served.session();
    slow.done(2, "create table t (id int primary key, s varchar(8000))");
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, repeat('x', 8000))")).collect();
    slow.done(2, &format!("insert into t values {}", rows.join(", ")));
    (10..20).for_each(|sid| slow.begin(sid));
    for sid in 10..20 {
        slow.say(sid, &Statement::new("select a.s from d.t a, d.t b"));
    }
    let mut other = served.session();
    for _ in 0..50 {
        assert_eq!(other.done(2, "select 1").numbers(), [1]);
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(slow);
    eventually("its sessions end with it", || served.door.stats().sessions.get() == 1);
    served.stop();
}
