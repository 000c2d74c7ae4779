//! CREATE INDEX beside sessions that read the table (QU-65).

use crate::world::{Client, World, check, resumed, suspend};

fn three() -> (World, Client, Client, Client) {
    let mut world = World::new();
    let (mut one, other, third) = (world.session(), world.session(), world.session());
    one.lines("create table t (a int primary key, b int)\ninsert into t select n, n * 10 from generate_series(1, 300) as n\nanalyze t");
    (world, one, other, third)
}

fn by_index(client: &mut Client, b: i32) -> String {
    let plan = client.run(&format!("explain select a from t where b = {b}")).concat();
    assert!(plan.contains("Index"), "{plan}");
    client.run(&format!("select a from t where b = {b}")).join(",")
}

#[test]
fn others_read_the_table_while_an_index_is_made_and_write_it_afterwards() {
    let (_world, mut one, mut other, mut third) = three();
    other.run("prepare reads as select count(*) from t where b > $1");
    check(other.run("begin"), "BEGIN");
    check(other.run("execute reads (2980)"), "2");
    check(other.run("declare c cursor for select a from t order by a"), "DECLARE CURSOR");
    check(other.run("fetch 1 from c"), "1\nFETCH 1");
    check(one.run("begin"), "BEGIN");
    check(one.run("create index on t (b)"), "CREATE INDEX");
    check(
        one.run("select mode from pg_locks where relation = 't'::regclass and mode like '%Excl%'"),
        "ShareRowExclusiveLock",
    );
    check(third.run("select count(*) from t where b = 20"), "1");
    check(third.run("select a from t where a = 2 for update"), "2");
    check(other.run("execute reads (2980)"), "2");
    let (_script, _) = suspend(&mut third, "insert into t values (301, 20)");
    check(one.run("commit"), "COMMIT");
    check(resumed(&mut third), "INSERT 0 1");
    assert_eq!(by_index(&mut one, 20), "2,301");
    // The reader's transaction goes on, its cursor in what it has read.
    check(other.run("fetch 2 from c"), "2\n3\nFETCH 2");
    check(other.run("execute reads (2980)"), "2");
    check(other.run("insert into t values (302, 20)"), "INSERT 0 1");
    check(other.run("commit"), "COMMIT");
    assert_eq!(by_index(&mut one, 20), "2,301,302");
}

#[test]
fn the_session_that_makes_an_index_keeps_it_at_once() {
    let (_world, mut one, mut other, _third) = three();
    one.run("prepare adds as insert into t values ($1, $2)");
    check(one.run("execute adds (400, 1)"), "INSERT 0 1");
    check(one.run("begin"), "BEGIN");
    check(one.run("execute adds (401, 2)"), "INSERT 0 1");
    check(one.run("create unique index u on t (b)"), "CREATE INDEX");
    check(one.run("execute adds (402, 3)"), "INSERT 0 1");
    check(one.run("update t set b = 4 where a = 401"), "UPDATE 1");
    check(one.run("savepoint s"), "SAVEPOINT");
    assert!(one.run("execute adds (403, 3)").concat().contains("23505"));
    check(one.run("rollback to s"), "ROLLBACK");
    assert_eq!(by_index(&mut one, 3), "402");
    check(other.run("select count(*) from t"), "301");
    check(one.run("commit"), "COMMIT");
    for (b, a) in [(1, "400"), (2, ""), (3, "402"), (4, "401"), (10, "1")] {
        assert_eq!(by_index(&mut other, b), a);
    }
    assert!(other.run("insert into t values (500, 3)").concat().contains("23505"));
}

#[test]
fn an_index_that_is_undone_leaves_readers_and_writers_as_they_were() {
    for end in ["rollback", "rollback to s; commit"] {
        let (_world, mut one, mut other, mut third) = three();
        check(other.run("begin"), "BEGIN");
        check(other.run("select count(*) from t"), "300");
        check(one.run("begin"), "BEGIN");
        check(one.run("savepoint s"), "SAVEPOINT");
        check(one.run("create unique index u on t (b)"), "CREATE INDEX");
        check(other.run("select count(*) from t where b = 20"), "1");
        one.run(end);
        check(other.run("select count(*) from t where b = 20"), "1");
        check(other.run("insert into t values (301, 20)"), "INSERT 0 1");
        check(third.run("insert into t values (302, 20)"), "INSERT 0 1");
        check(other.run("commit"), "COMMIT");
        check(one.run("select count(*) from t where b = 20"), "3");
        assert!(one.run("create unique index u on t (b)").concat().contains("23505"), "{end}");
        check(other.run("insert into t values (303, 20)"), "INSERT 0 1");
    }
}

#[test]
fn an_index_beside_other_changes_of_one_transaction_is_undone_alone() {
    let (_world, mut one, mut other, _third) = three();
    check(one.run("begin"), "BEGIN");
    check(one.run("create index i on t (b)"), "CREATE INDEX");
    check(other.run("select count(*) from t"), "300");
    check(one.run("savepoint s"), "SAVEPOINT");
    check(one.run("alter table t add c int default 7"), "ALTER TABLE");
    check(one.run("create index j on t (c)"), "CREATE INDEX");
    check(one.run("select min(c) from t"), "7");
    check(one.run("rollback to s"), "ROLLBACK");
    // The exclusive lock is given back, the index i is still the session's alone.
    check(other.run("select count(*) from t"), "300");
    check(one.run("insert into t values (301, 20)"), "INSERT 0 1");
    assert_eq!(by_index(&mut one, 20), "2,301");
    check(one.run("commit"), "COMMIT");
    assert_eq!(by_index(&mut other, 20), "2,301");
    assert!(other.run("select c from t").concat().contains("42703"));
}

#[test]
fn a_crash_keeps_the_rows_of_readers_beside_an_index() {
    let (world, mut one, mut other, _third) = three();
    check(other.run("begin"), "BEGIN");
    check(other.run("select count(*) from t"), "300");
    check(one.run("create index i on t (b)"), "CREATE INDEX");
    check(other.run("insert into t values (301, 20)"), "INSERT 0 1");
    check(other.run("commit"), "COMMIT");
    drop(one);
    drop(_third);
    let mut world = world.crash(other);
    assert_eq!(by_index(&mut world.session(), 20), "2,301");
}

#[test]
fn one_session_at_a_time_makes_an_index_of_a_table() {
    let (_world, mut one, mut other, _third) = three();
    check(one.run("begin"), "BEGIN");
    check(one.run("create index i on t (b)"), "CREATE INDEX");
    let (_script, _) = suspend(&mut other, "create index j on t (b, a)");
    check(one.run("commit"), "COMMIT");
    check(resumed(&mut other), "CREATE INDEX");
    check(one.run("select count(*) from pg_indexes where tablename = 't'"), "3");
}
