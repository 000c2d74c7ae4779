//! Statements that wait for locks of tables, and GET_LOCK, suspended without a thread: whatever ends the wait does end it, and one search finds deadlocks across all kinds of locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sql_mysql::{Kill, Outcome, Ready, Session};

use crate::support::*;

#[derive(Default)]
struct Wakes(Arc<AtomicUsize>);

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn register(&self, session: &mut Session) -> Duration {
        let count = self.0.clone();
        let wake = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let Ready::Within(delay) = session.when_ready(wake) else { panic!("it waits for pages") };
        delay
    }
}

fn prepared() -> World {
    let world = World::new(11);
    let mut session = world.session(1);
    for sql in [
        "create database d",
        "create table d.t (id int primary key, k int)",
        "create table d.u (id int primary key)",
        "insert into d.t values (1, 0), (2, 0)",
        "insert into d.u values (1)",
    ] {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
    }
    world
}

fn suspend(session: &mut Session, sql: &str) -> Wakes {
    session.allow_suspension();
    let outcome = session.execute(sql);
    assert!(matches!(outcome, Ok(Outcome::Suspended)), "{sql}: {:?}", told(session, outcome));
    let wakes = Wakes::default();
    wakes.register(session);
    wakes
}

fn resumed(session: &mut Session) -> Vec<String> {
    let outcome = session.resume();
    told(session, outcome)
}

/// Waits until the search for deadlocks has found the session's wait.
fn chosen(session: &mut Session, wakes: &Wakes) -> Vec<String> {
    while wakes.count() == 0 {
        std::thread::yield_now();
    }
    resumed(session)
}

const DEADLOCK: &str = "error 1213 Deadlock found when trying to get lock; try restarting transaction";

/// Resumes a suspended statement whenever its wait asks for it, as a door's timer does, until its time is over.
fn ended_by_time(session: &mut Session) -> Vec<String> {
    loop {
        let outcome = session.resume();
        if !matches!(outcome, Ok(Outcome::Suspended)) {
            return told(session, outcome);
        }
        std::thread::sleep(Wakes::default().register(session));
    }
}

#[test]
fn each_kind_of_statement_waits_for_a_locked_table_without_a_thread() {
    let world = prepared();
    let (mut holder, mut one) = (world.session(1), world.session(2));
    let long = format!("select id from d.t /* {} */", "x".repeat(200_000));
    let many: Vec<String> = (1000..6000).map(|id| format!("({id}, 0)")).collect();
    let pieces = format!("insert into d.t values {}", many.join(", "));
    for (statement, answer) in [
        ("select count(*) from d.t", "[count(*)]"),
        (&long, "[id]"),
        (&pieces, "ok 5000"),
        ("delete from d.t where id >= 1000", "ok 5000"),
        ("analyze table d.t", "[Table | Op | Msg_type | Msg_text]"),
        ("analyze table d.t update histogram on k", "[Table | Op | Msg_type | Msg_text]"),
        ("check table d.t", "[Table | Op | Msg_type | Msg_text]"),
        ("checksum table d.t", "[Table | Checksum]"),
        ("optimize table d.t, d.u", "[Table | Op | Msg_type | Msg_text]"),
        ("select t.id from d.t join d.u using (id)", "[id]"),
        ("update d.t set k = k + 1 where id = 1", "ok 1"),
        ("insert into d.t select id + 100, 0 from d.u", "ok 1"),
        ("delete from d.t where id > 100", "ok 1"),
        ("lock tables d.t read", "ok 0"),
        ("unlock tables", "ok 0"),
        ("lock tables d.u write, d.t write", "ok 0"),
        ("unlock tables", "ok 0"),
        ("alter table d.t add column c int", "ok 0"),
        ("flush tables with read lock", "ok 0"),
        ("unlock tables", "ok 0"),
        ("select id into @a from d.t where id = 1", "ok 1"),
        ("create table d.v select * from d.t", "ok 2"),
        ("truncate table d.t", "ok 0"),
        ("rename table d.t to d.s", "ok 0"),
        ("rename table d.s to d.t", "ok 0"),
        ("drop table d.v, d.t", "ok 0"),
    ] {
        if statement == "unlock tables" || statement.starts_with("rename table d.s") {
            assert_eq!(run(&mut one, statement)[0], answer, "{statement}");
            continue;
        }
        assert_eq!(run(&mut holder, "lock tables d.t write"), ["ok 0"]);
        let questions = counted(&mut holder);
        let wakes = suspend(&mut one, statement);
        assert!(matches!(one.resume(), Ok(Outcome::Suspended)), "{statement}: the holder still has it");
        wakes.register(&mut one);
        assert_eq!(wakes.count(), 0, "{statement}");
        run(&mut holder, "unlock tables");
        assert!(wakes.count() > 0, "{statement}");
        let lines = resumed(&mut one);
        assert!(lines[0].starts_with(answer), "{statement}: {lines:?}");
        assert!(counted(&mut holder) <= questions + 3, "{statement} counts once");
    }
}

/// The number of statements so far, which this one raises by one.
fn counted(session: &mut Session) -> u64 {
    run(session, "show global status like 'Questions'")[1].split(" | ").nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_change_of_definitions_waits_for_readers_and_new_readers_behind_it() {
    let world = prepared();
    let (mut reader, mut one, mut two) = (world.session(1), world.session(2), world.session(3));
    run(&mut reader, "begin");
    run(&mut reader, "select * from d.t");
    let wakes = suspend(&mut one, "alter table d.t add column c int default 7");
    let behind = suspend(&mut two, "select * from d.t where id = 1");
    assert_eq!(run(&mut reader, "select count(*) from d.t"), ["[count(*)]", "2"], "it has the table already");
    assert_eq!((wakes.count(), behind.count()), (0, 0));
    run(&mut reader, "commit");
    assert!(wakes.count() > 0 && behind.count() == 0);
    assert!(resumed(&mut one)[0].starts_with("ok"));
    assert!(behind.count() > 0);
    assert_eq!(resumed(&mut two), ["[id | k | c]", "1 | 0 | 7"], "the statement knows the new definition");
}

#[test]
fn waits_for_a_table_end_by_time_kill_and_departure() {
    let world = prepared();
    let (mut holder, mut one, mut two) = (world.session(1), world.session(2), world.session(3));
    run(&mut holder, "lock tables d.t write");
    run(&mut one, "set lock_wait_timeout = 1");
    suspend(&mut one, "select * from d.t");
    let expected = "error 1205 Lock wait timeout exceeded; try restarting transaction";
    assert_eq!(ended_by_time(&mut one), [expected]);
    run(&mut one, "set lock_wait_timeout = 3600");
    let wakes = suspend(&mut one, "lock tables d.t read");
    assert!(world.db.kill(2, Kill::Query));
    assert_eq!(wakes.count(), 1);
    assert_eq!(resumed(&mut one), ["error 1317 Query execution was interrupted"]);
    suspend(&mut one, "alter table d.t add column c int");
    let behind = suspend(&mut two, "select 1 from d.t where id = 1");
    drop(one);
    run(&mut holder, "unlock tables");
    assert!(behind.count() > 0, "the place of the session that has left is free");
    assert_eq!(resumed(&mut two), ["[1]", "1"]);
    run(&mut holder, "lock tables d.t write");
    let wakes = suspend(&mut two, "select * from d.t");
    world.db.end_waits();
    assert_eq!(wakes.count(), 1);
    assert_eq!(resumed(&mut two), ["error 1317 Query execution was interrupted"]);
}

#[test]
fn get_lock_waits_without_a_thread_and_is_taken_once() {
    let world = prepared();
    let (mut holder, mut one) = (world.session(1), world.session(2));
    run(&mut holder, "select get_lock('a', 0), get_lock('b', 0)");
    let wakes = suspend(&mut one, "select get_lock('c', 0), get_lock('a', 60), get_lock('b', -1), get_lock('d', 0)");
    assert_eq!(run(&mut holder, "select get_lock('c', 0)")[1], "0");
    run(&mut holder, "do release_lock('a')");
    assert!(wakes.count() > 0);
    assert!(matches!(one.resume(), Ok(Outcome::Suspended)), "the next one is not free");
    let wakes = Wakes::default();
    wakes.register(&mut one);
    run(&mut holder, "do release_lock('b')");
    assert!(wakes.count() > 0);
    assert_eq!(resumed(&mut one)[1], "1 | 1 | 1 | 1");
    assert_eq!(run(&mut one, "select release_all_locks()")[1], "4", "each once");
    run(&mut holder, "do get_lock('a', 0)");
    suspend(&mut one, "do get_lock('a', 1)");
    assert_eq!(ended_by_time(&mut one), ["ok 0"]);
    let wakes = suspend(&mut one, "select get_lock('a', 3600)");
    assert!(world.db.kill(2, Kill::Query));
    assert_eq!(wakes.count(), 1);
    assert_eq!(resumed(&mut one), ["error 1317 Query execution was interrupted"]);
    run(&mut holder, "do release_lock('a')");
    assert_eq!(run(&mut holder, "select is_free_lock('a')")[1], "1", "the ended request is gone");
}

#[test]
fn a_limit_of_the_statement_ends_its_wait() {
    let world = prepared();
    let (mut holder, mut one) = (world.session(1), world.session(2));
    run(&mut holder, "lock tables d.t write");
    run(&mut holder, "do get_lock('a', 0)");
    for sql in
        ["select /*+ MAX_EXECUTION_TIME(50) */ * from d.t", "select /*+ MAX_EXECUTION_TIME(50) */ get_lock('a', 3600)"]
    {
        suspend(&mut one, sql);
        let lines = ended_by_time(&mut one);
        assert!(lines[0].starts_with("error 3024"), "{sql}: {lines:?}");
    }
}

#[test]
fn a_deadlock_of_a_table_and_a_row_ends_one_wait() {
    let world = prepared();
    let (mut one, mut two, mut three) = (world.session(1), world.session(2), world.session(3));
    run(&mut one, "begin");
    run(&mut one, "update d.t set k = 1 where id = 1");
    run(&mut two, "begin");
    run(&mut two, "insert into d.u values (2)");
    let change = suspend(&mut three, "alter table d.u add column c int");
    let row = suspend(&mut two, "update d.t set k = 2 where id = 1");
    // It waits behind the change, the change for the second, and the second for its row.
    let victim = suspend(&mut one, "select * from d.u");
    assert_eq!(chosen(&mut one, &victim), [DEADLOCK]);
    assert!(row.count() > 0, "the transaction is rolled back");
    assert!(resumed(&mut two)[0].starts_with("ok 1"));
    run(&mut two, "commit");
    assert!(change.count() > 0);
    assert!(resumed(&mut three)[0].starts_with("ok"));
}

#[test]
fn a_deadlock_of_a_user_lock_and_a_table_ends_one_wait() {
    let world = prepared();
    let (mut one, mut two) = (world.session(1), world.session(2));
    run(&mut one, "do get_lock('a', 0)");
    run(&mut two, "lock tables d.t write");
    let table = suspend(&mut one, "select count(*) from d.t");
    let lock = suspend(&mut two, "select get_lock('a', 3600)");
    assert_eq!(
        chosen(&mut two, &lock),
        [
            "error 3058 Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition."
        ]
    );
    assert_eq!(table.count(), 0);
    run(&mut two, "unlock tables");
    assert!(table.count() > 0);
    assert_eq!(resumed(&mut one), ["[count(*)]", "2"]);
}

#[test]
fn a_thousand_waits_for_one_table_are_granted_in_their_order() {
    let world = prepared();
    let mut holder = world.session(1);
    run(&mut holder, "lock tables d.t write");
    let mut crowd: Vec<(Session, Wakes)> = (0..1000)
        .map(|nth| {
            let mut session = world.session(10 + nth);
            let wakes = suspend(&mut session, "lock tables d.t write");
            (session, wakes)
        })
        .collect();
    run(&mut holder, "unlock tables");
    for nth in 0..crowd.len() {
        let woken = crowd[nth..].iter().filter(|(_, wakes)| wakes.count() > 0).count();
        assert_eq!(woken, 1, "the others go on waiting");
        let session = &mut crowd[nth].0;
        assert_eq!(resumed(session), ["ok 0"]);
        run(session, "unlock tables");
    }
}
