//! Sorting: by texts, of which only the first bytes of the key are made as long as they tell rows apart; and what the process list says of it.

use std::cmp::Reverse;
use std::thread;
use std::time::{Duration, Instant};

use sql_mysql::Outcome;
use sql_mysql::batch::Batch;
use sql_mysql::types::{Collation, CollationName as _};

use crate::support::{World, run};

/// Many begin alike, some are the whole beginning of others, some begin with what has no plain weight, some are equal up to case.
fn text(id: u32) -> String {
    let letters = ["a", "B", "b", "-", "7", "ß", "é", " "];
    let mut number = id.wrapping_mul(2_654_435_761);
    let starts = ["", "a", "same", "Same", "same begin", "éa"];
    let mut text = starts[number as usize % starts.len()].to_owned();
    for _ in 0..number / 64 % 7 {
        number = number.rotate_right(5).wrapping_mul(31);
        text.push_str(letters[number as usize % letters.len()]);
    }
    text
}

fn fill(collation: &str) -> sql_mysql::Session {
    let mut session = World::new(4).session(1);
    run(&mut session, "create database test");
    run(&mut session, "use test");
    run(&mut session, &format!("create table t (id int primary key, g int, s varchar(60) collate {collation})"));
    for from in (0..2000).step_by(500) {
        let row = |id: u32| match id % 97 {
            0 => format!("({id}, {}, null)", id % 3),
            _ => format!("({id}, {}, '{}')", id % 3, text(id)),
        };
        let rows: Vec<String> = (from..from + 500).map(row).collect();
        run(&mut session, &format!("insert into t values {}", rows.join(",")));
    }
    session
}

/// Each row's key, id and group.
fn keys(collation: Collation) -> Vec<(Option<Vec<u8>>, u32, u32)> {
    let key = |id: u32| {
        let mut key = Vec::new();
        collation.sort_key(text(id).as_bytes(), &mut key);
        key
    };
    (0..2000u32)
        .map(|id| (!id.is_multiple_of(97)).then(|| key(id)))
        .zip(0..)
        .map(|(key, id)| (key, id, id % 3))
        .collect()
}

fn ids(session: &mut sql_mysql::Session, sql: &str) -> Vec<u32> {
    run(session, sql)[1..].iter().map(|id| id.parse().unwrap_or_else(|_| panic!("{sql}: {id}"))).collect()
}

#[test]
fn texts_that_begin_alike_are_told_apart_by_the_rest() {
    for collation in ["utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "utf8mb4_0900_bin", "utf8mb4_bin"] {
        let mut session = fill(collation);
        let mut rows = keys(Collation::by_name(collation).expect("there is one"));
        let mut expect = |sql: &str, rows: &[(Option<Vec<u8>>, u32, u32)]| {
            let wanted: Vec<u32> = rows.iter().map(|(_, id, _)| *id).collect();
            assert_eq!(ids(&mut session, sql), wanted, "{collation}: {sql}");
        };
        rows.sort_by_key(|(key, id, _)| (key.clone(), *id));
        expect("select id from t order by s, id", &rows);
        expect("select id from t order by s, id limit 50", &rows[..50]);
        expect("select id from t order by s, id limit 30 offset 700", &rows[700..730]);
        rows.sort_by_key(|(key, id, _)| (Reverse(key.clone()), *id));
        expect("select id from t order by s desc, id", &rows);
        rows.sort_by_key(|(key, id, group)| (key.clone(), Reverse(*group), *id));
        expect("select id from t order by s, g desc, id", &rows);
        rows.sort_by_key(|(key, id, _)| (Reverse(key.clone()), Reverse(*id)));
        expect("select id from t order by s desc, id desc limit 10", &rows[..10]);
        rows.dedup_by_key(|(key, _, _)| key.clone());
        let distinct = run(&mut session, "select distinct s from t order by s desc");
        assert_eq!(distinct.len() - 1, rows.len(), "{collation}");
        let counted = run(&mut session, "select count(*) from (select distinct s from t) d");
        assert_eq!(counted[1], rows.len().to_string(), "{collation}");
    }
}

/// Returns the state of session 1 in the process list.
fn state(session: &mut sql_mysql::Session) -> String {
    run(session, "select state from information_schema.processlist where id = 1")[1].clone()
}

/// The state of session 1 while it runs the statement, as soon as it begins with this.
fn state_during(world: &World, sql: &str, begin: &str) -> String {
    let (mut session, mut other) = (world.session(1), world.session(2));
    thread::scope(|scope| {
        let running = scope.spawn(move || run(&mut session, sql));
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let state = state(&mut other);
            if state.starts_with(begin) {
                run(&mut other, "kill query 1");
                let lines = running.join().expect("a killed statement ends");
                assert!(lines.last().is_some_and(|line| line.starts_with("error 1317")), "{lines:?}");
                return state;
            }
            assert!(!running.is_finished() && Instant::now() < until, "{sql}: {state}");
            thread::sleep(Duration::from_millis(5));
        }
    })
}

#[test]
fn sorts_tell_how_many_rows_they_have_read() {
    let world = World::new(6);
    let mut session = world.session(3);
    let values: Vec<String> = (0..3000).map(|id| format!("({id}, {})", id % 2)).collect();
    run(&mut session, "create database test");
    run(&mut session, "create table test.t (id int primary key, g int)");
    run(&mut session, &format!("insert into test.t values {}", values.join(",")));
    run(&mut session, "analyze table test.t");
    for (sql, stage) in [
        ("select id, sleep(0.002) s from test.t order by s, g", "Sorting for order: reading ("),
        (
            "select row_number() over (order by s) from (select sleep(0.002) s from test.t) d",
            "Sorting for window: reading (",
        ),
        (
            "select g, group_concat(s) from (select g, sleep(0.002) s from test.t) d group by g",
            "Sorting for group: reading (",
        ),
    ] {
        let state = state_during(&world, sql, stage);
        let (done, of) = state[stage.len()..].split_once(" of about ").unwrap_or_else(|| panic!("{state}"));
        assert_eq!(of, "3000 rows)", "{state}");
        assert!(done.parse::<u64>().is_ok_and(|done| (256..3000).contains(&done)), "{state}");
    }
}

#[test]
fn a_sort_whose_rows_are_taken_slowly_tells_how_many_it_has_sent() {
    let mut session = fill("utf8mb4_bin");
    let Ok(Outcome::Rows(mut rows)) = session.execute("select id from t order by s, id") else { panic!("no rows") };
    let (mut batch, mut states) = (Batch::new(), Vec::new());
    while rows.next(&mut session, &mut batch).expect("the next rows") {
        states.push(session.handle().shown().activity().map(str::to_owned));
        thread::sleep(Duration::from_millis(110));
    }
    let state = |at: usize| states[at].as_deref();
    assert_eq!(state(0), Some("executing"), "it has not taken long yet");
    assert_eq!(state(1), Some("Sorting for order: sending (512 of 2000 rows)"));
    assert_eq!(state(6), Some("Sorting for order: sending (1792 of 2000 rows)"));
    assert_eq!(session.handle().shown().activity(), None, "it is over");
}
