//! Statements that leave rather than wait for a page: they answer what they would have answered, and leave nothing behind.

use os::SimFolder;
use sql_mysql::error::SqlError;
use sql_mysql::{Kill, Outcome, Session};

use crate::support::*;

/// Frames for a quarter of the table's pages.
const FRAMES: u64 = 256;
const ROWS: u64 = 12_000;

/// A database with `d.t`, far larger than its memory.
fn world(seed: u64) -> World {
    let world = World::with_frames(SimFolder::new(seed), FRAMES);
    let mut session = world.session(1);
    run(&mut session, "create database d");
    run(&mut session, "create table d.t (id int primary key, k int, pad varchar(400), key (k))");
    for from in (0..ROWS).step_by(1000) {
        let fill = format!(
            "insert into d.t with recursive c(n) as (select {from} + 1 union all select n + 1 from c where n < {from} + 1000) select n, n * 7919 % {ROWS}, repeat('x', 300) from c"
        );
        assert_eq!(run(&mut session, &fill), ["ok 1000, Records: 1000  Duplicates: 0  Warnings: 0"]);
    }
    world
}

/// Runs the statement, which may leave, and says how often it has.
fn leaving(session: &mut Session, sql: &str) -> (Vec<String>, usize) {
    session.allow_suspension();
    let mut outcome = session.execute(sql);
    let mut leaves = 0;
    while let Ok(Outcome::Suspended) = outcome {
        leaves += 1;
        let (sender, receiver) = std::sync::mpsc::channel();
        session.when_ready(std::sync::Arc::new(move || {
            let _ = sender.send(());
        }));
        receiver.recv().expect("the pages have been read");
        outcome = session.resume();
    }
    (told(session, outcome), leaves)
}

fn is_away(outcome: &Result<Outcome, SqlError>) -> bool {
    matches!(outcome, Ok(Outcome::Suspended))
}

#[test]
fn who_leaves_answers_what_who_waits_answers() {
    let world = world(1);
    let (mut leaver, mut waiter) = (world.session(1), world.session(2));
    let reads = |id: u64| {
        [
            format!("select k, length(pad) from d.t where id = {id}"),
            format!("select id from d.t where id between {id} and {} order by k", id + 99),
            format!("select sum(k) from d.t where id between {id} and {}", id + 99),
            format!("select distinct length(pad) from d.t where id between {id} and {}", id + 40),
            format!("select id, k from d.t where id < {id} order by id desc limit 3"),
            format!("select id, pad from d.t where k = {id}"),
            format!("select id from d.t where id in ({id}, {}, {})", id % 700, id / 2),
        ]
    };
    let mut leaves = 0;
    for step in 0..40 {
        for sql in reads(step * 7 % 37 * 311) {
            let (lines, left) = leaving(&mut leaver, &sql);
            assert_eq!(lines, run(&mut waiter, &sql), "{sql}");
            leaves += left;
        }
    }
    assert!(leaves > 100, "{leaves}");
    let counted = "show status like 'Handler_read%'";
    assert_eq!(run(&mut leaver, counted), run(&mut waiter, counted));
}

#[test]
fn changes_are_made_once_however_often_their_statement_leaves() {
    let world = world(2);
    let mut session = world.session(1);
    let mut leaves = 0;
    for step in 0..60 {
        let id = step * 193 % ROWS + 1;
        for sql in [
            format!("update d.t set k = k + 1, pad = concat(pad, 'y') where id = {id}"),
            format!("delete from d.t where id = {}", id + 1),
        ] {
            let (lines, left) = leaving(&mut session, &sql);
            assert!(lines[0].starts_with("ok 1"), "{sql}: {lines:?}");
            leaves += left;
        }
    }
    assert!(leaves > 60, "{leaves}");
    let sum = "select count(*), sum(k) from d.t";
    let changed = ROWS * (ROWS - 1) / 2 + 60 - (0..60).map(|step| (step * 193 + 2) * 7919 % ROWS).sum::<u64>();
    assert_eq!(run(&mut session, sum)[1], format!("{} | {changed}", ROWS - 60));
    assert_eq!(run(&mut session, "check table d.t")[1], "d.t | check | status | OK");
}

#[test]
fn a_row_that_is_put_in_has_one_number_however_often_its_statement_leaves() {
    let world = world(8);
    let mut session = world.session(1);
    run(
        &mut session,
        "create table d.n (id int auto_increment primary key, t int, k int, pad varchar(400), key (k), foreign key (t) references d.t (id))",
    );
    let row = |step: u64| format!("({}, {}, repeat('z', 300))", step * 977 % ROWS + 1, step * 7919 % ROWS);
    let fill: Vec<String> = (0..6000).map(row).collect();
    for some in fill.chunks(500) {
        run(&mut session, &format!("insert into d.n (t, k, pad) values {}", some.join(", ")));
    }
    let mut leaves = 0;
    for step in 0..200 {
        let (one, other) = (row(step * 31 + 7), row(step * 17 + 3));
        let (lines, left) = leaving(&mut session, &format!("insert into d.n (t, k, pad) values {one}, {other}"));
        assert_eq!(lines[0], format!("ok 2, id {}, Records: 2  Duplicates: 0  Warnings: 0", 6001 + 2 * step));
        leaves += left;
    }
    assert!(leaves > 60, "{leaves}");
    assert_eq!(run(&mut session, "select count(*), max(id) - min(id) + 1 from d.n")[1], "6400 | 6400");
    assert_eq!(run(&mut session, "check table d.n")[1], "d.n | check | status | OK");
}

#[test]
fn what_cannot_begin_again_waits() {
    let world = world(3);
    let mut session = world.session(1);
    for (nth, sql) in [
        "select rand() < 2, k from d.t where id = {}",
        "select @a := k from d.t where id = {}",
        "select k from d.t where id = (select {})",
        "insert into d.t select 100000 + {}, 1, 'x'",
        "select a.k from d.t a, d.t b where a.id = {} and b.id = a.k",
        "select k into @a from d.t where id = {}",
        "explain analyze select k from d.t where id = {}",
    ]
    .iter()
    .enumerate()
    {
        for step in 1..20 {
            session.allow_suspension();
            let sql = sql.replace("{}", &(step * 509 + nth as u64).to_string());
            let outcome = session.execute(&sql);
            assert!(outcome.is_ok() && !is_away(&outcome), "{sql}");
            told(&mut session, outcome);
        }
    }
}

/// Some row whose page is not in memory: the statement has left.
fn leave_for_some_row(session: &mut Session, sql: &str) -> u64 {
    for step in 0..200 {
        let id = step * 61 + 1;
        session.allow_suspension();
        let outcome = session.execute(&sql.replace("{}", &id.to_string()));
        if is_away(&outcome) {
            return id;
        }
        told(session, outcome);
    }
    panic!("everything is in memory");
}

#[test]
fn who_has_left_holds_no_lock_on_the_row_and_can_be_forgotten() {
    let world = world(4);
    let (mut one, mut two) = (world.session(1), world.session(2));
    run(&mut one, "begin");
    let id = leave_for_some_row(&mut one, "update d.t set k = -1 where id = {} and pad = ''");
    run(&mut two, "set innodb_lock_wait_timeout = 1");
    assert_eq!(
        run(&mut two, &format!("select id from d.t where id = {id} for update nowait")),
        ["[id]", &id.to_string()]
    );
    // Something else is said instead of going on.
    assert_eq!(run(&mut one, "select count(*) from d.t where k = -1"), ["[count(*)]", "0"]);
    assert_eq!(session_resumed(&mut one), ["error 1317 Query execution was interrupted"]);
    run(&mut one, "commit");
}

fn session_resumed(session: &mut Session) -> Vec<String> {
    let outcome = session.resume();
    told(session, outcome)
}

#[test]
fn who_is_killed_while_away_hears_of_it() {
    let world = world(5);
    let mut session = world.session(1);
    run(&mut session, "begin");
    leave_for_some_row(&mut session, "select k from d.t where id = {}");
    assert!(world.db.kill(1, Kill::Query));
    assert_eq!(session_resumed(&mut session), ["error 1317 Query execution was interrupted"]);
    assert_eq!(run(&mut session, "select 1"), ["[1]", "1"]);
}

#[test]
fn who_comes_back_too_early_too_often_waits_in_the_end() {
    let world = world(6);
    let mut session = world.session(1);
    let id = leave_for_some_row(&mut session, "select id from d.t where id = {}");
    let mut tries = 0;
    let lines = loop {
        let outcome = session.resume();
        if !is_away(&outcome) {
            break told(&mut session, outcome);
        }
        tries += 1;
        assert!(tries < 20);
    };
    assert_eq!(lines, ["[id]", &id.to_string()]);
    assert!(tries > 1, "{tries}");
}
