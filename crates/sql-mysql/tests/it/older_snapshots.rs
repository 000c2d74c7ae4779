//! Transactions whose snapshot is older than an index, or than the rows of a table (QU-63).

use sql_mysql::Session;

use crate::support::{World, run};

const CHANGED: &str = "error 1412 Table definition has changed, please retry transaction";

fn older(definitions: &[&str]) -> (World, Session, Session) {
    let world = World::new(1);
    let (mut one, mut other) = (world.session(1), world.session(2));
    for sql in [
        "create database d",
        "create table d.t (id int primary key, x int, y int, key (y))",
        "insert into d.t values (1, 10, 100), (2, 20, 200), (3, 30, 300)",
    ] {
        assert!(run(&mut one, sql)[0].starts_with("ok"), "{sql}");
    }
    run(&mut other, "start transaction with consistent snapshot");
    for sql in definitions {
        let told = run(&mut one, sql);
        assert!(!told.concat().contains("error"), "{sql}: {told:?}");
    }
    (world, one, other)
}

#[test]
fn an_index_that_is_newer_than_the_snapshot_is_left_out_of_plans() {
    let (_world, mut one, mut other) = older(&["update d.t set x = 21 where id = 2", "create index i on d.t (x)"]);
    let text = "select id from d.t force index (i) where x = 20";
    assert!(!run(&mut one, text).concat().contains('2'));
    for _ in 0..3 {
        assert_eq!(run(&mut other, text).last().unwrap(), "2");
    }
    // Changes act on the newest rows.
    assert!(run(&mut other, "update d.t set y = 5 where x = 21")[0].starts_with("ok"));
    assert_eq!(run(&mut other, "select x from d.t where y = 5").last().unwrap(), "21");
    run(&mut other, "commit");
    assert!(!run(&mut other, text).concat().contains('2'));
}

#[test]
fn reads_of_rows_that_were_written_anew_fail_as_in_mysql() {
    for definitions in [
        &["truncate table d.t", "insert into d.t values (1, 1, 1)"][..],
        &["alter table d.t modify x bigint"],
        &["drop table d.t", "create table d.t (id int primary key, x int, y int)"],
    ] {
        let (_world, mut one, mut other) = older(definitions);
        for sql in [
            "select * from d.t",
            "select count(*) from d.t where y = 100",
            "select * from d.t where id = 1 for update",
            "update d.t set x = 5",
            "delete from d.t where id = 1",
            "insert into d.t select id + 20, x, y from d.t",
        ] {
            assert_eq!(run(&mut other, sql), [CHANGED], "{definitions:?}: {sql}");
        }
        assert!(run(&mut other, "insert into d.t values (9, 9, 9)")[0].starts_with("ok"));
        run(&mut other, "commit");
        assert_eq!(run(&mut other, "select id from d.t where y = 9").last().unwrap(), "9");
        assert_eq!(run(&mut one, "select id from d.t where y = 9").last().unwrap(), "9");
    }
}

#[test]
fn temporary_tables_are_never_too_new() {
    let (_world, _, mut other) = older(&["create index i on d.t (x)"]);
    for sql in [
        "create temporary table d.own (id int primary key, x int)",
        "insert into d.own select id, x from d.t",
        "create index i on d.own (x)",
        "alter table d.own modify x bigint",
    ] {
        assert!(run(&mut other, sql)[0].starts_with("ok"), "{sql}");
    }
    assert_eq!(run(&mut other, "select id from d.own where x = 20").last().unwrap(), "2");
}
