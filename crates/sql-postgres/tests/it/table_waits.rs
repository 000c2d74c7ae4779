//! Statements that wait for locks of tables, suspended without a thread, and the rows of `pg_locks` about waits.

use std::sync::atomic::Ordering;

use sql_postgres::session::{Outcome, Parameter};
use sql_postgres::wire::Formats;

use crate::world::{Client, World, check, resumed, suspend, woken};

fn two(setup: &str) -> (World, Client, Client) {
    let mut world = World::new();
    let (mut one, other) = (world.session(), world.session());
    one.lines(setup);
    (world, one, other)
}

#[test]
fn each_kind_of_statement_waits_for_a_locked_table_without_a_thread() {
    let (_world, mut one, mut other) = two("create table t (a int primary key, b int)
         create table u (a int primary key)
         insert into t values (1, 1)
         insert into u values (1)");
    other.run("prepare p as select a from t");
    other.run("create sequence s; prepare q as select a, $1 from t");
    let long = format!("select a from t /* {} */", "x".repeat(200_000));
    for (statement, answer) in [
        ("select a from t", "1"),
        ("select t.a from t join u using (a)", "1"),
        ("update t set b = 2", "UPDATE 1"),
        ("insert into u select a + 1 from t returning a", "2\nINSERT 0 1"),
        ("execute p", "1"),
        ("execute q (nextval('s'))", "1|1"),
        (&long, "1"),
        ("analyze t", "ANALYZE"),
        ("analyze u, t", "ANALYZE"),
        ("lock t in share mode", "LOCK TABLE"),
        ("drop table if exists nothing, t", "NOTICE:  00000: table \"nothing\" does not exist, skipping\nDROP TABLE"),
        ("alter table t add c int default 1", "ALTER TABLE"),
        ("truncate t", "TRUNCATE TABLE"),
        ("create table v as select * from t", "SELECT 1"),
        ("create index on t (b)", "CREATE INDEX"),
        ("create index on t ((b + 1))", "CREATE INDEX"),
    ] {
        check(one.lines("begin\nlock t"), "BEGIN\nLOCK TABLE");
        check(other.run("begin"), "BEGIN");
        let (_script, wakes) = suspend(&mut other, statement);
        assert!(matches!(other.0.resume(), Ok(Outcome::Suspended)), "{statement}: it is locked");
        let again = woken(&mut other);
        check(one.run("select mode <> '', granted, waitstart is null from pg_locks where not granted"), "t|f|f");
        one.run("rollback");
        assert!(wakes.load(Ordering::SeqCst) + again.load(Ordering::SeqCst) > 0, "{statement}");
        check(resumed(&mut other), answer);
        other.run("rollback");
    }
}

#[test]
fn a_portal_waits_for_a_locked_table_and_keeps_its_values() {
    let (_world, mut one, mut other) = two("create table t (a int primary key)
         insert into t values (1), (2)");
    check(one.lines("begin\nlock t"), "BEGIN\nLOCK TABLE");
    other.0.parse("", "select a from t where a = $1", &[]).unwrap();
    let value = Parameter { value: Some(b"2"), format: 0 };
    other.0.bind("", "", &[value], Formats::default()).unwrap();
    other.0.allow_suspension();
    assert!(matches!(other.0.execute("", 0), Ok(Outcome::Suspended)));
    let wakes = woken(&mut other);
    one.run("commit");
    assert!(wakes.load(Ordering::SeqCst) > 0);
    check(resumed(&mut other), "2");
    other.0.sync().unwrap();
}

#[test]
fn vacuum_and_the_first_fetch_of_a_portal_wait_for_a_locked_table_without_a_thread() {
    let (_world, mut one, mut other) = two("create table t (a int primary key)
         insert into t values (1), (2)");
    check(one.lines("begin\nlock t"), "BEGIN\nLOCK TABLE");
    let (_script, wakes) = suspend(&mut other, "vacuum (analyze) t");
    one.run("commit");
    assert!(wakes.load(Ordering::SeqCst) > 0);
    check(resumed(&mut other), "VACUUM");
    check(other.run("begin"), "BEGIN");
    other.0.parse("", "select a from t where a > $1 order by a", &[]).unwrap();
    let value = Parameter { value: Some(b"1"), format: 0 };
    other.0.bind("c", "", &[value], Formats::default()).unwrap();
    check(one.lines("begin\nlock t"), "BEGIN\nLOCK TABLE");
    let (_script, wakes) = suspend(&mut other, "fetch c");
    one.run("commit");
    assert!(wakes.load(Ordering::SeqCst) > 0);
    check(resumed(&mut other), "2\nFETCH 1");
    check(other.run("commit"), "COMMIT");
}

#[test]
fn waits_for_a_table_end_by_time_cancel_and_deadlock() {
    let (world, mut one, mut other) = two("create table t (a int primary key)
         create table u (a int primary key)");
    check(one.lines("begin\nlock t"), "BEGIN\nLOCK TABLE");
    let (_script, wakes) = suspend(&mut other, "select * from t");
    check(one.run("select pg_cancel_backend(2)"), "t");
    assert_eq!(wakes.load(Ordering::SeqCst), 1);
    check(resumed(&mut other), "57014: canceling statement due to user request");
    other.run("set lock_timeout = 1");
    suspend(&mut other, "select * from t");
    while matches!(other.0.resume(), Ok(Outcome::Suspended)) {
        woken(&mut other);
        std::thread::yield_now();
    }
    check(other.lines("set lock_timeout = 0\nbegin\nlock u"), "SET\nBEGIN\nLOCK TABLE");
    let (_script, _) = suspend(&mut one, "lock u in share mode");
    let (_script, wakes) = suspend(&mut other, "select * from t");
    while wakes.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    check(resumed(&mut other), "40P01: deadlock detected");
    check(resumed(&mut one), "LOCK TABLE");
    drop(world);
}

#[test]
fn pg_locks_shows_transactions_and_the_rows_for_which_they_wait() {
    let (mut world, mut one, mut other) = two("create table t (a int primary key)
         insert into t values (1)");
    let mut third = world.session();
    one.lines("begin\ndelete from t");
    other.run("begin");
    let (_script, _) = suspend(&mut other, "delete from t");
    third.run("begin");
    let (_script, _) = suspend(&mut third, "delete from t");
    let mut fourth = world.session();
    check(
        fourth.run(
            "select pid, locktype, relation::regclass, transactionid is null, mode, granted, virtualtransaction like pid || '/%', virtualxid = virtualtransaction
             from pg_locks where pid <> pg_backend_pid() order by pid, locktype, granted desc",
        ),
        "1|relation|t|t|RowExclusiveLock|t|t|
         1|transactionid||f|ExclusiveLock|t|t|
         1|virtualxid||t|ExclusiveLock|t|t|t
         2|relation|t|t|RowExclusiveLock|t|t|
         2|transactionid||f|ExclusiveLock|t|t|
         2|transactionid||f|ShareLock|f|t|
         2|tuple|t|t|ExclusiveLock|t|t|
         2|virtualxid||t|ExclusiveLock|t|t|t
         3|relation|t|t|RowExclusiveLock|t|t|
         3|transactionid||f|ExclusiveLock|t|t|
         3|tuple|t|t|ExclusiveLock|f|t|
         3|virtualxid||t|ExclusiveLock|t|t|t",
    );
    check(
        fourth.run(
            "select count(*), max(virtualxid) = min(virtualtransaction) from pg_locks where pid = pg_backend_pid()",
        ),
        "1|t",
    );
    one.run("rollback");
    check(
        one.lines(
            "begin\ncreate table made (a int)\nselect mode from pg_locks where relation = 'made'::regclass\nrollback",
        ),
        "BEGIN\nCREATE TABLE\nAccessExclusiveLock\nROLLBACK",
    );
}
