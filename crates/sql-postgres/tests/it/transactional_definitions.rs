//! Definitions in transactions: what a session sees of its own, what others see, and what is left after a rollback or a crash.

use sql_postgres::session::Outcome;
use sql_postgres::wire::Formats;

use crate::world::{World, play};

#[test]
fn definitions_follow_their_transaction_as_in_postgresql() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/transactions.txt"));
}

#[test]
fn materialized_views_answer_as_in_postgresql() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/materialized_views.txt"));
}

#[test]
fn readers_of_a_materialized_view_go_on_while_it_is_refreshed_concurrently() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run(
        "create table t (a int primary key); insert into t values (1); create materialized view m as select a from t",
    );
    one.run("create unique index on m (a); insert into t values (2)");
    one.run("begin");
    one.run("refresh materialized view concurrently m");
    assert_eq!(one.run("select a from m order by a"), ["1", "2"]);
    assert_eq!(other.run("select a from m"), ["1"], "the rows of before");
    one.run("commit");
    assert_eq!(other.run("select a from m order by a"), ["1", "2"]);
}

#[test]
fn a_refresh_survives_a_crash_or_was_never_there() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int); insert into t values (1); create materialized view m as select a from t");
    client.run("create index on m ((a + 1)); insert into t values (2)");
    client.run("begin; refresh materialized view m with no data");
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(client.run("select a from m where a + 1 = 2"), ["1"]);
    client.run("refresh materialized view m");
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(client.run("select a from m where a + 1 = 3"), ["2"]);
    client.run("refresh materialized view m with no data");
    let mut world = world.crash(client);
    let error = world.session().run("select a from m");
    assert_eq!(error[0], "ERROR:  55000: materialized view \"m\" has not been populated");
}

#[test]
fn others_see_definitions_when_they_are_committed() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int); insert into t values (1); create view v as select a from t");
    assert_eq!(other.run("select * from t"), ["1"]);
    one.run("begin");
    one.run("create table u (b int); insert into u values (2)");
    one.run("drop view v");
    one.run("create view v as select a, b from t, u");
    assert_eq!(one.run("select * from v"), ["1|2"]);
    assert_eq!(other.run("select * from u"), ["ERROR:  42P01: relation \"u\" does not exist"]);
    assert_eq!(other.run("select * from v"), ["1"]);
    assert_eq!(other.run("create table w (c int)"), ["CREATE TABLE"], "changes of other objects do not wait");
    assert_eq!(one.run("select * from w"), Vec::<String>::new());
    one.run("commit");
    assert_eq!(other.run("select * from v"), ["1|2"]);
}

/// A plan that was bound to an uncommitted definition is found neither by others nor after the rollback.
#[test]
fn plans_of_undone_definitions_are_never_used() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int, b int); insert into t values (1, 10)");
    for round in 0..3 {
        assert_eq!(one.run("select * from t where a = 1"), ["1|10"], "{round}");
        one.run("begin");
        one.run("savepoint s");
        one.run("alter table t add column c int default 5");
        assert_eq!(one.run("select * from t where a = 1"), ["1|10|5"]);
        one.run("rollback to s");
        assert_eq!(one.run("select * from t where a = 1"), ["1|10"]);
        one.run("alter table t drop column b");
        assert_eq!(one.run("select * from t where a = 1"), ["1"]);
        one.run("rollback");
        assert_eq!(one.run("select * from t where a = 1"), ["1|10"]);
        assert_eq!(other.run("select * from t where a = 1"), ["1|10"]);
    }
    one.run("alter table t add column d int default 6");
    assert_eq!(other.run("select * from t where a = 1"), ["1|10|6"]);
}

#[test]
fn prepared_statements_follow_definitions_through_savepoints() {
    let mut world = World::new();
    let mut client = world.session();
    let lines = client.lines(
        "create table t (a int primary key, b int)
         insert into t values (1, 10), (2, 20)
         prepare p as select b from t where a = $1
         execute p(1)
         begin
         create index on t (b)
         execute p(1)
         savepoint s
         truncate t
         execute p(1)
         insert into t values (1, 11)
         execute p(1)
         rollback to s
         execute p(1)
         drop table t
         execute p(1)
         rollback
         execute p(2)",
    );
    let expected = [
        "CREATE TABLE",
        "INSERT 0 2",
        "PREPARE",
        "10",
        "BEGIN",
        "CREATE INDEX",
        "10",
        "SAVEPOINT",
        "TRUNCATE TABLE",
        "INSERT 0 1",
        "11",
        "ROLLBACK",
        "10",
        "DROP TABLE",
        "ERROR:  42P01: relation \"t\" does not exist",
        "ROLLBACK",
        "20",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_crash_loses_uncommitted_definitions_and_keeps_committed_ones() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int); insert into t values (1)");
    one.run("begin; create table kept (id serial primary key, s text); insert into kept (s) values ('x'), ('y'); create index on kept (s); savepoint a; create table regretted as select * from kept; rollback to a; alter table t add column b int default 2; commit");
    other.run("begin; create table lost (id serial primary key); insert into lost default values; drop table t; truncate kept; create temp table tmp (a int)");
    // Makes the other's records durable.
    one.run("create table last (a int)");
    std::mem::forget(other);
    let mut world = world.crash(one);
    let mut client = world.session();
    assert_eq!(client.run("select * from t"), ["1|2"]);
    assert_eq!(client.run("select * from kept order by id"), ["1|x", "2|y"]);
    assert_eq!(client.run("select count(*) from last"), ["0"]);
    for gone in ["lost", "regretted", "tmp"] {
        let expected = format!("ERROR:  42P01: relation \"{gone}\" does not exist");
        assert_eq!(client.run(&format!("select * from {gone}")), [expected]);
    }
    assert_eq!(client.run("insert into kept (s) values ('z') returning id > 2"), ["t", "INSERT 0 1"]);
    let report = world.db.engine().check().expect("the check runs");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Definitions read what is committed when they begin, whatever the transaction's snapshot.
#[test]
fn a_table_rewritten_in_repeatable_read_keeps_rows_that_its_snapshot_does_not_see() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int primary key, b int); insert into t values (1, 1)");
    one.run("begin isolation level repeatable read");
    assert_eq!(one.run("select count(*) from t"), ["1"]);
    one.run("commit");
    one.run("begin isolation level repeatable read");
    assert_eq!(one.run("select 1"), ["1"]);
    other.run("insert into t values (2, 2)");
    other.run("create table u (a int)");
    assert_eq!(one.run("alter table t alter b type text"), ["ALTER TABLE"]);
    assert_eq!(one.run("create index on t (b)"), ["CREATE INDEX"]);
    assert_eq!(one.run("alter table u add b int"), ["ALTER TABLE"]);
    one.run("commit");
    assert_eq!(one.run("select a from t where b = '2'"), ["2"]);
    assert_eq!(other.run("select count(*) from t"), ["2"]);
}

/// Two sessions that alter two tables in opposite order: one is told of the deadlock, the other goes on.
#[test]
fn definitions_in_opposite_order_are_a_deadlock() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int); create table u (a int)");
    one.run("begin; alter table t add b int");
    other.run("begin; alter table u add b int");
    let waiter = std::thread::spawn(move || (other.run("alter table t add c int"), other));
    let mut found = vec![one.run("alter table u add c int")];
    if found[0] == ["ALTER TABLE"] {
        one.run("commit");
    } else {
        one.run("rollback");
    }
    let (answer, mut other) = waiter.join().expect("it ends");
    other.run("commit");
    found.push(answer);
    found.sort();
    assert_eq!(found, [vec!["ALTER TABLE"], vec!["ERROR:  40P01: deadlock detected"]]);
}

/// The waits of one session are for rows, those of the other for a table.
#[test]
fn a_cycle_of_rows_and_tables_is_a_deadlock() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int primary key, b int); insert into t values (1, 1)");
    one.run("begin; update t set b = 2 where a = 1");
    let waiter = std::thread::spawn(move || {
        let mut outcome = other.run("update t set b = 3 where a = 1");
        if outcome == ["suspended"] {
            outcome = vec!["UPDATE 1".to_owned()];
        }
        (outcome, other)
    });
    while one.run("select count(*) from t").len() != 1 || world.db.engine().rows().lock_waits().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(one.run("alter table t add c int"), ["ERROR:  40P01: deadlock detected"]);
    one.run("rollback");
    waiter.join().expect("it ends");
}

#[test]
fn a_name_is_given_to_one_object_of_concurrent_transactions() {
    let mut world = World::new();
    let (mut one, mut other, mut third) = (world.session(), world.session(), world.session());
    one.run("begin; create table t (a int); create sequence s");
    let waiter = std::thread::spawn(move || other.run("create table t (b int)"));
    let waiting = std::thread::spawn(move || third.run("create view s as select 1 as one"));
    while world.db.engine().rows().lock_waits().len() < 2 {
        std::thread::yield_now();
    }
    one.run("commit");
    assert_eq!(waiter.join().expect("it ends"), ["ERROR:  42P07: relation \"t\" already exists"]);
    assert_eq!(waiting.join().expect("it ends"), ["ERROR:  42P07: relation \"s\" already exists"]);
    assert_eq!(one.run("insert into t values (1)"), ["INSERT 0 1"]);
}

#[test]
fn a_portal_of_a_truncated_table_keeps_its_rows() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int); insert into t select generate_series(1, 300)");
    client.run("begin");
    client.0.parse("p", "select a from t", &[]).expect("it is parsed");
    client.0.bind("c", "p", &[], Formats::default()).expect("it is bound");
    let outcome = client.0.execute("c", 2).expect("it begins");
    let mut lines = Vec::new();
    client.outcome(outcome, &mut lines).expect("two rows");
    assert_eq!(lines.last().map(String::as_str), Some("portal suspended"));
    assert_eq!(client.run("truncate t"), ["TRUNCATE TABLE"]);
    let outcome = client.0.execute("c", 0).expect("it goes on");
    assert!(!matches!(outcome, Outcome::Empty));
}

/// The columns of a simple query are told after its wait.
#[test]
fn a_query_that_waits_for_a_definition_gives_the_new_columns() {
    for condition in ["", " where a < 5"] {
        let mut world = World::new();
        let (mut one, mut other, mut watcher) = (world.session(), world.session(), world.session());
        let query = format!("select * from t{condition}");
        one.run("create table t (a int); insert into t values (1)");
        assert_eq!(other.run(&query), ["1"]);
        one.run("begin; alter table t add column b text default 'new'");
        let asked = query.clone();
        let waiter = std::thread::spawn(move || other.run(&asked));
        let active = format!("select count(*) from pg_stat_activity where state = 'active' and query = '{query}'");
        while watcher.run(&active) != ["1"] {
            std::thread::yield_now();
        }
        one.run("commit");
        assert_eq!(waiter.join().expect("no panic"), ["1|new"]);
    }
}

/// A plan was found for the query's text, and the definition changes before it runs.
#[test]
fn a_simple_query_gives_the_columns_of_a_definition_that_changed_after_its_look_up() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int); insert into t values (1)");
    let query = "select * from t where a < 5";
    assert_eq!(other.run(query), ["1"]);
    let mut script = other.0.simple(query).expect("it begins");
    one.run("alter table t add column b text default 'new'");
    let (outcome, mut lines) = (other.0.next_of(&mut script).expect("it runs").expect("a result"), Vec::new());
    other.outcome(outcome, &mut lines).expect("it gives its rows");
    assert_eq!(lines, ["1|new"]);
    assert!(other.0.next_of(&mut script).expect("it ends").is_none());
    assert_eq!(other.run(query), ["1|new"]);
}
