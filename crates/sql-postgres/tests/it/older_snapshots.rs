//! Transactions whose snapshot is older than an index, or than the rows of a table (QU-63). The answers are those of PostgreSQL 16.

use crate::world::{Client, World, check};

/// The second has a snapshot when the first runs `definitions`.
fn older(setup: &str, definitions: &str) -> (World, Client, Client) {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.lines("create table t (id int primary key, x int, y int unique)");
    one.lines("create table u (id int primary key)");
    one.lines("insert into t select n, n * 10, n * 100 from generate_series(1, 3) as n");
    one.lines(setup);
    check(other.run("begin isolation level repeatable read"), "BEGIN");
    other.run("select * from u");
    one.lines(definitions);
    (world, one, other)
}

#[test]
fn an_index_that_is_newer_than_the_snapshot_is_left_out_of_plans() {
    let (_world, mut one, mut other) = older(
        "",
        "update t set x = 21 where id = 2\ninsert into t values (4, 20, 400)\ncreate index on t (x)\nanalyze t",
    );
    check(other.run("select id from t where x = 20"), "2");
    assert!(other.run("select id from t where x = 21").is_empty());
    check(other.run("select max(x) from t"), "30");
    assert!(!other.run("explain select id from t where x = 20").concat().contains("Index"));
    check(one.run("select id from t where x = 20"), "4");
    // A plan that one session shares with the other is checked against the snapshot.
    check(other.run("select id from t where x = 20"), "2");
    check(other.run("commit"), "COMMIT");
    check(other.run("select id from t where x = 20"), "4");
}

#[test]
fn a_prepared_plan_is_made_anew_for_an_older_snapshot() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.lines("create table t (id int primary key, x int)\ninsert into t select n, n * 10 from generate_series(1, 300) as n\ncreate table u ()");
    check(other.run("prepare p as select id from t where x = $1"), "PREPARE");
    check(other.run("execute p (20)"), "2");
    other.run("begin isolation level serializable");
    other.run("select from u");
    one.run("create index on t (x)");
    check(one.run("select id from t where x = 20"), "2");
    check(other.run("execute p (20)"), "2");
    check(other.run("execute p (20)"), "2");
    check(other.run("commit"), "COMMIT");
    check(other.run("execute p (20)"), "2");
}

#[test]
fn a_key_that_is_newer_than_the_snapshot_proves_nothing() {
    let (_world, _, mut other) = older(
        "insert into t values (4, 10, 400)\ninsert into u values (10)",
        "delete from t where id = 4\ncreate unique index on t (x)",
    );
    check(other.run("select u.id from u where u.id in (select x from t)"), "10");
    check(other.run("select t.id from t join u on u.id = t.x order by 1"), "1\n4");
    check(other.run("select count(*) from u where exists (select from t where t.x = u.id)"), "1");
}

#[test]
fn changes_go_through_an_index_that_is_newer_than_the_snapshot() {
    let (_world, mut one, mut other) = older("", "create index on t (x)\ncreate unique index on t (x, y)");
    check(other.run("update t set x = 25 where x = 20"), "UPDATE 1");
    check(other.run("delete from t where x = 30"), "DELETE 1");
    check(other.run("insert into t values (5, 50, 500)"), "INSERT 0 1");
    check(other.run("select id from t where x > 20 order by id"), "2\n5");
    check(
        other.run("insert into t values (6, 10, 100)"),
        "ERROR:  23505: duplicate key value violates unique constraint \"t_y_key\"\nDETAIL:  Key (y)=(100) already exists.",
    );
    check(other.run("rollback"), "ROLLBACK");
    check(one.run("select id from t where x >= 20 order by id"), "2\n3");
}

#[test]
fn rows_that_were_written_anew_are_gone_or_refused() {
    for definition in ["alter table t alter x type bigint", "truncate t"] {
        let (_world, _, mut other) = older("", definition);
        assert!(other.run("select id from t where id = 1").is_empty(), "{definition}");
        check(other.run("insert into t values (9, 9, 9)"), "INSERT 0 1");
        check(other.run("select id from t where y = 9"), "9");
    }
    for definition in
        ["create index on t ((x + y))", "create index on t (id) where x = 20", "alter table t drop constraint t_pkey"]
    {
        let (_world, mut one, mut other) = older("", definition);
        check(
            other.run("select id from t where x = 20"),
            "ERROR:  40001: could not serialize access due to concurrent change of the table's definition\nHINT:  The transaction might succeed if retried.",
        );
        check(other.run("rollback"), "ROLLBACK");
        check(other.run("select id from t where x = 20"), "2");
        check(one.run("select id from t where x = 20"), "2");
    }
}

#[test]
fn a_refreshed_materialized_view_shows_its_rows_to_older_snapshots() {
    let (_world, mut one, mut other) = older(
        "create materialized view m as select * from t\ncreate unique index on m (id)",
        "insert into t values (4, 40, 400)\nrefresh materialized view m",
    );
    check(other.run("select count(*) from m"), "4");
    check(other.run("select x from m where id = 4"), "40");
    assert!(other.run("select id from t where id = 4").is_empty());
    one.run("insert into t values (5, 50, 500)");
    check(one.run("refresh materialized view concurrently m"), "REFRESH MATERIALIZED VIEW");
    check(other.run("select count(*) from m"), "4");
    check(one.run("select count(*) from m"), "5");
}

#[test]
fn an_own_index_is_used_only_by_snapshots_that_see_its_rows() {
    let (_world, _, mut other) = older("", "update t set x = 21 where id = 2\ninsert into t values (4, 20, 400)");
    check(other.run("create index on t (x)"), "CREATE INDEX");
    check(other.run("select id from t where x = 20"), "2");
    assert!(other.run("select id from t where x = 21").is_empty());
    check(other.run("commit"), "COMMIT");
    check(other.run("select id from t where x = 20"), "4");
}
