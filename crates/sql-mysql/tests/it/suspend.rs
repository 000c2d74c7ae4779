//! Statements that are suspended in SLEEP or for a row: no thread of theirs waits, each way to end the wait does end it, and changes are made once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sql_mysql::error::SqlError;
use sql_mysql::{Kill, Outcome, Ready, Session};

use crate::support::*;

/// Counts calls of its `Wake`.
#[derive(Default)]
struct Wakes(Arc<AtomicUsize>);

impl Wakes {
    fn wake(&self) -> sql_mysql::Wake {
        let count = self.0.clone();
        Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn prepared() -> World {
    let world = World::new(7);
    let mut session = world.session(1);
    for sql in
        ["create database d", "create table d.t (id int primary key, k int)", "insert into d.t values (1, 0), (2, 0)"]
    {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
    }
    world
}

fn suspend(session: &mut Session, sql: &str) -> (Wakes, Duration) {
    session.allow_suspension();
    let outcome = session.execute(sql);
    assert!(is_away(&outcome), "{sql}: {:?}", outcome.map(|_| ()));
    let wakes = Wakes::default();
    let Ready::Within(delay) = session.when_ready(wakes.wake()) else { panic!("{sql} waits for pages") };
    (wakes, delay)
}

fn is_away(outcome: &Result<Outcome, SqlError>) -> bool {
    matches!(outcome, Ok(Outcome::Suspended))
}

fn resumed(session: &mut Session) -> Vec<String> {
    let outcome = session.resume();
    told(session, outcome)
}

/// Resumes it until its time has come, as a door does.
fn slept(session: &mut Session) -> Vec<String> {
    loop {
        let outcome = session.resume();
        if !is_away(&outcome) {
            return told(session, outcome);
        }
        let Ready::Within(delay) = session.when_ready(Wakes::default().wake()) else { panic!("no time") };
        std::thread::sleep(delay);
    }
}

#[test]
fn sleep_alone_is_suspended_and_answers_as_with_a_thread() {
    let world = prepared();
    let mut session = world.session(2);
    for (sql, answer) in [
        ("select sleep(0.02)", ["[sleep(0.02)]", "0"].as_slice()),
        ("select 1 + sleep(0.01), 'x' from dual limit 1", &["[1 + sleep(0.01) | x]", "1 | x"]),
        ("select sleep(0.01), sleep(0.01)", &["[sleep(0.01) | sleep(0.01)]", "0 | 0"]),
        ("select 5 from dual where sleep(0.01) = 0", &["[5]", "5"]),
        ("do sleep(0.01)", &["ok 0"]),
    ] {
        let (_, delay) = suspend(&mut session, sql);
        assert!(delay <= Duration::from_millis(20), "{sql}: {delay:?}");
        assert_eq!(slept(&mut session), answer, "{sql}");
    }
    assert_eq!(suspend(&mut session, "select sleep(1e300)").1, Duration::MAX);
}

#[test]
fn sleep_beside_what_cannot_be_restarted_is_not_suspended() {
    let world = prepared();
    let mut session = world.session(2);
    for sql in [
        "select sleep(0), rand() < 2",
        "select @a := sleep(0)",
        "select sleep(0) from d.t",
        "select sleep(0) union select 2",
        "select (select sleep(0))",
        "select sleep(0) into @a",
        "select benchmark(2, sleep(0))",
    ] {
        session.allow_suspension();
        let outcome = session.execute(&sql.replace("(0)", "(0.001)"));
        assert!(outcome.is_ok() && !is_away(&outcome), "{sql}");
        told(&mut session, outcome);
    }
}

#[test]
fn whatever_ends_a_sleep_wakes_the_suspended_statement() {
    let world = prepared();
    let mut session = world.session(2);
    let (wakes, _) = suspend(&mut session, "select sleep(3600)");
    assert!(is_away(&session.resume()), "nothing has happened");
    session.when_ready(wakes.wake());
    assert_eq!(wakes.count(), 0);
    assert!(world.db.kill(2, Kill::Query));
    assert_eq!(wakes.count(), 1);
    assert_eq!(resumed(&mut session), ["[sleep(3600)]", "1"]);
    let (_, delay) = suspend(&mut session, "select /*+ MAX_EXECUTION_TIME(30) */ sleep(3600)");
    assert!(delay <= Duration::from_millis(30), "{delay:?}");
    assert_eq!(slept(&mut session)[1], "1");
    let (wakes, _) = suspend(&mut session, "select sleep(3600)");
    let handle = session.handle().clone();
    world.db.depart(&handle);
    assert_eq!(wakes.count(), 1);
    session.resume().ok();
    let mut other = world.session(3);
    let (wakes, _) = suspend(&mut other, "select sleep(3600)");
    world.db.end_waits();
    assert_eq!(wakes.count(), 1);
    let mut late = world.session(4);
    assert_eq!(run(&mut late, "select sleep(3600)"), ["[sleep(3600)]", "1"], "no wait begins any more");
}

#[test]
fn a_statement_is_suspended_for_a_row_and_changes_it_once() {
    let world = prepared();
    let (mut holder, mut one, mut two) = (world.session(1), world.session(2), world.session(3));
    for (first, second) in [
        ("update d.t set k = k + 1 where id = 1", "update d.t set k = k + 1 where id = 1"),
        ("select k from d.t where id = 1 for update", "update d.t set k = k + 1 where id between 1 and 2"),
        ("delete from d.t where id = 2", "insert into d.t values (2, 0)"),
    ] {
        let before = run(&mut holder, "select sum(k) from d.t");
        run(&mut holder, "begin");
        run(&mut holder, "update d.t set k = k where id in (1, 2)");
        run(&mut holder, first);
        let (wakes, _) = suspend(&mut one, second);
        let (behind, _) = suspend(&mut two, "select count(*) from d.t where id = 1 for update");
        assert!(is_away(&one.resume()), "{second}: the holder still has it");
        one.when_ready(wakes.wake());
        assert_eq!((wakes.count(), behind.count()), (0, 0));
        run(&mut holder, "commit");
        assert!(wakes.count() > 0, "{second}: the row is free");
        let lines = resumed(&mut one);
        assert!(lines[0].starts_with("ok"), "{second}: {lines:?}");
        assert!(behind.count() > 0, "{second}: and then the next");
        assert_eq!(resumed(&mut two)[1], "1");
        let after = run(&mut holder, "select sum(k) from d.t");
        assert!(before != after || first.starts_with("delete"), "{second}: {before:?}");
    }
    assert_eq!(run(&mut holder, "select * from d.t"), ["[id | k]", "1 | 3", "2 | 0"]);
}

#[test]
fn waits_for_a_row_end_by_time_kill_departure_and_deadlock() {
    let world = prepared();
    let (mut holder, mut one) = (world.session(1), world.session(2));
    let update = "update d.t set k = k + 1 where id = 1";
    run(&mut holder, "begin");
    run(&mut holder, update);
    run(&mut one, "set innodb_lock_wait_timeout = 1");
    let (_, delay) = suspend(&mut one, update);
    assert!(delay <= Duration::from_secs(1));
    assert_eq!(slept(&mut one), ["error 1205 Lock wait timeout exceeded; try restarting transaction"]);
    run(&mut one, "set innodb_lock_wait_timeout = 3600");
    let (wakes, _) = suspend(&mut one, update);
    assert!(world.db.kill(2, Kill::Query));
    assert_eq!(wakes.count(), 1);
    assert_eq!(resumed(&mut one), ["error 1317 Query execution was interrupted"]);
    // A circle: the second has the other row.
    run(&mut one, "begin");
    run(&mut one, "update d.t set k = 9 where id = 2");
    suspend(&mut one, update);
    holder.allow_suspension();
    let victim = holder.execute("update d.t set k = 8 where id = 2");
    assert_eq!(
        told(&mut holder, victim),
        ["error 1213 Deadlock found when trying to get lock; try restarting transaction"]
    );
    assert_eq!(resumed(&mut one)[0].split(',').next(), Some("ok 1"));
    run(&mut one, "commit");
    // Who goes gives its place up.
    run(&mut holder, "begin");
    run(&mut holder, update);
    suspend(&mut one, update);
    let (behind, _) = {
        let mut two = world.session(3);
        let woken = suspend(&mut two, update);
        drop(one);
        run(&mut holder, "rollback");
        assert!(woken.0.count() > 0);
        assert!(resumed(&mut two)[0].starts_with("ok 1"));
        woken
    };
    assert!(behind.count() > 0);
    assert_eq!(run(&mut holder, "select * from d.t"), ["[id | k]", "1 | 2", "2 | 9"]);
}

#[test]
fn after_its_first_change_a_statement_is_not_restarted() {
    let world = prepared();
    let (mut holder, mut one) = (world.session(1), world.session(2));
    run(&mut holder, "begin");
    run(&mut holder, "insert into d.t values (11, 0)");
    run(&mut one, "set innodb_lock_wait_timeout = 1");
    one.allow_suspension();
    let outcome = one.execute("insert into d.t values (10, 0), (11, 0)");
    assert!(!is_away(&outcome), "the first row is in");
    assert_eq!(told(&mut one, outcome), ["error 1205 Lock wait timeout exceeded; try restarting transaction"]);
    run(&mut holder, "rollback");
    assert_eq!(run(&mut one, "select count(*) from d.t"), ["[count(*)]", "2"]);
}
