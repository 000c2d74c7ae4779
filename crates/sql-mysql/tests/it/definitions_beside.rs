//! Changes of definitions beside others: those of different objects do not wait for each other, those of one come one after the other, and an index is made beside readers (QU-45, QU-65).

use std::sync::Arc;
use std::thread;

use query::catalog::Writing;
use query::catalog::table::Table;
use query::catalog::table_state::TableState;
use sql_mysql::{Kill, Session};

use crate::support::*;

fn prepared() -> World {
    let world = World::new(12);
    let mut session = world.session(1);
    let rows: Vec<String> = (1..=300).map(|n| format!("({n}, {})", n * 10)).collect();
    let rows = format!("insert into d.t values {}", rows.join(","));
    for sql in ["create database d", "create table d.t (id int primary key, k int)", &rows] {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
    }
    world
}

/// Gives the name of a table to a copy of `d.t`, as a change of definitions that does not end yet.
fn half_made<'w>(world: &'w World, name: &str) -> Writing<'w> {
    let mut writing = world.db.instance().catalog().write();
    let table = copy_of_t(&mut writing, name);
    writing.put_table(table).unwrap();
    writing
}

fn copy_of_t(writing: &mut Writing<'_>, name: &str) -> Table {
    let mut table = writing.snapshot.table("d", "t").unwrap().copy();
    (table.id, table.name, table.live) = (writing.new_id(), name.to_owned(), Arc::new(TableState::new(1)));
    table.map = writing.txn.create_map().unwrap();
    table
}

fn publish(writing: Writing<'_>) {
    writing.commit().unwrap();
}

/// Runs a statement in a thread of its own, and `end` once the statement waits for a lock of the engine.
fn beside(world: &World, session: Session, sql: &str, end: impl FnOnce()) -> (Session, Vec<String>) {
    thread::scope(|scope| {
        let running = scope.spawn(move || {
            let mut session = session;
            let lines = run(&mut session, sql);
            (session, lines)
        });
        while world.engine.rows().lock_waits().is_empty() {
            assert!(!running.is_finished(), "{sql} does not wait");
            thread::yield_now();
        }
        end();
        running.join().unwrap()
    })
}

#[test]
fn changes_of_other_objects_do_not_wait() {
    let world = prepared();
    let writing = half_made(&world, "a");
    let mut session = world.session(2);
    for sql in [
        "create table d.b (id int primary key)",
        "alter table d.t add column c int default 3",
        "rename table d.b to d.c",
        "create view d.v as select id from d.c",
        "drop view d.v",
        "create database e",
        "drop database e",
        "drop table d.c",
    ] {
        let lines = run(&mut session, sql);
        assert!(lines[0].starts_with("ok"), "{sql}: {lines:?}");
    }
    writing.commit().unwrap();
    assert_eq!(run(&mut session, "select count(*) from d.a"), ["[count(*)]", "0"]);
    assert_eq!(run(&mut session, "select sum(c) from d.t"), ["[sum(c)]", "900"]);
}

#[test]
fn changes_of_one_name_come_one_after_the_other() {
    let exists = "error 1050 Table 'a' already exists";
    for (sql, committed) in [
        ("create table d.a (x int)", exists),
        ("create table if not exists d.a (x int)", "ok 0"),
        ("create or replace view d.a as select 1", "error 1347 'd.a' is not VIEW"),
        ("rename table d.t to d.a", exists),
        ("alter table d.t rename to d.a", exists),
    ] {
        for is_committed in [true, false] {
            let world = prepared();
            let writing = half_made(&world, "a");
            let end = move || match is_committed {
                true => publish(writing),
                false => drop(writing),
            };
            let (mut session, lines) = beside(&world, world.session(2), sql, end);
            assert_eq!(lines[0], if is_committed { committed } else { "ok 0" }, "{sql}");
            if is_committed && sql.contains("if not") {
                assert_eq!(run(&mut session, "show warnings")[1..], ["Note | 1050 | Table 'a' already exists"]);
                assert_eq!(run(&mut session, "show columns from d.a")[1..].len(), 2, "the other one's");
            }
        }
    }
}

#[test]
fn databases_of_one_name_are_made_one_after_the_other() {
    for (sql, committed) in [
        ("create database e", "error 1007 Can't create database 'e'; database exists"),
        ("create database if not exists e", "ok 0"),
    ] {
        let world = prepared();
        let mut writing = world.db.instance().catalog().write();
        let collation = writing.snapshot.schema("d").unwrap().collation;
        writing.put_schema("e", collation, query::catalog::object_id::Maker(1)).unwrap();
        let end = || publish(writing);
        assert_eq!(beside(&world, world.session(2), sql, end).1, [committed], "{sql}");
    }
}

#[test]
fn a_wait_for_a_name_ends_by_kill_and_by_time() {
    let world = prepared();
    let _writing = half_made(&world, "a");
    let kill = || assert!(world.db.kill(2, Kill::Query));
    let (session, lines) = beside(&world, world.session(2), "create table d.a (x int)", kill);
    assert_eq!(lines, ["error 1317 Query execution was interrupted"]);
    let mut session = session;
    run(&mut session, "set lock_wait_timeout = 1");
    let expected = "error 1205 Lock wait timeout exceeded; try restarting transaction";
    assert_eq!(run(&mut session, "create table d.a (x int)"), [expected]);
    assert_eq!(run(&mut session, "create table d.b (x int)"), ["ok 0"]);
}

#[test]
fn a_child_and_its_parent_are_checked_with_each_other_whoever_comes_first() {
    let child = "create table d.c (x bigint, foreign key (x) references d.a (id))";
    // The parent comes while the child is made: its key does not fit.
    let world = prepared();
    let writing = half_made(&world, "a");
    let mut session = world.session(2);
    run(&mut session, "set foreign_key_checks = 0");
    let (mut session, lines) = beside(&world, session, child, || publish(writing));
    assert!(lines[0].starts_with("error 3780 "), "{lines:?}");
    assert!(run(&mut session, &child.replace("bigint", "int"))[0].starts_with("ok"));

    // The child comes while the parent is made.
    let world = prepared();
    let mut session = world.session(2);
    let mut writing = world.db.instance().catalog().write();
    let table = copy_of_t(&mut writing, "a");
    run(&mut session, "set foreign_key_checks = 0");
    assert_eq!(run(&mut session, child), ["ok 0"]);
    assert_eq!(writing.put_table(table).unwrap_err(), datum::Fault::ConcurrentChange);
}

#[test]
fn an_index_is_made_beside_readers() {
    let world = prepared();
    let (mut reader, mut older, mut one) = (world.session(1), world.session(2), world.session(3));
    run(&mut one, "prepare p from 'select id from d.t where k = 200'");
    run(&mut reader, "begin");
    assert_eq!(run(&mut reader, "select id from d.t where k = 20"), ["[id]", "2"]);
    run(&mut older, "start transaction with consistent snapshot");
    for sql in [
        "create index i on d.t (k)",
        "alter table d.t add index j (k, id), add unique u (k desc), algorithm = inplace, lock = none",
    ] {
        let lines = run(&mut one, sql);
        assert!(lines[0].starts_with("ok 0"), "{sql}: {lines:?}");
        assert_eq!(run(&mut reader, "select id from d.t where k = 20"), ["[id]", "2"]);
        assert_eq!(run(&mut older, "select id from d.t where k = 30"), ["[id]", "3"]);
    }
    assert_eq!(run(&mut older, "commit"), ["ok 0"]);
    let plan = run(&mut older, "explain select id from d.t where k = 20").concat();
    assert!(plan.contains(" i ") || plan.contains(" j ") || plan.contains(" u "), "{plan}");
    assert_eq!(run(&mut reader, "insert into d.t values (301, 7)"), ["ok 1"]);
    assert_eq!(run(&mut reader, "commit"), ["ok 0"]);
    assert_eq!(run(&mut one, "execute p"), ["[id]", "20"]);
    assert_eq!(run(&mut one, "select id from d.t where k = 7"), ["[id]", "301"]);
    assert!(run(&mut older, "insert into d.t values (302, 7)")[0].starts_with("error 1062 "));
    assert_eq!(run(&mut older, "commit"), ["ok 0"]);
}

#[test]
fn an_index_waits_for_writers_and_what_moves_rows_for_readers_too() {
    let world = prepared();
    let (mut holder, mut one) = (world.session(1), world.session(2));
    run(&mut one, "set lock_wait_timeout = 1");
    run(&mut holder, "begin");
    run(&mut holder, "select * from d.t where id = 1");
    let timeout = "error 1205 Lock wait timeout exceeded; try restarting transaction";
    for sql in [
        "alter table d.t add index i (k), add column c int",
        "alter table d.t add index i ((k + 1))",
        "alter table d.t drop primary key, add primary key (k)",
        "alter table d.t add constraint foreign key (k) references d.t (id)",
    ] {
        assert_eq!(run(&mut one, sql), [timeout], "{sql}");
    }
    run(&mut holder, "update d.t set k = 1 where id = 1");
    assert_eq!(run(&mut one, "alter table d.t add index i (k)"), [timeout]);
    run(&mut holder, "commit");
    assert!(run(&mut one, "alter table d.t add index i (k)")[0].starts_with("ok"));
}

#[test]
fn a_crash_keeps_an_index_and_what_readers_wrote_after_it() {
    let world = prepared();
    let (mut reader, mut one) = (world.session(1), world.session(2));
    run(&mut reader, "begin");
    run(&mut reader, "select count(*) from d.t");
    assert!(run(&mut one, "create unique index u on d.t (k)")[0].starts_with("ok"));
    run(&mut reader, "insert into d.t values (301, 7)");
    assert_eq!(run(&mut reader, "commit"), ["ok 0"]);
    world.engine.durable().wait(reader.durability_lsn());
    drop((reader, one));
    let world = world.crash();
    let mut session = world.session(1);
    assert_eq!(run(&mut session, "select id from d.t force index (u) where k = 7"), ["[id]", "301"]);
    assert!(run(&mut session, "insert into d.t values (302, 7)")[0].starts_with("error 1062 "));
}
