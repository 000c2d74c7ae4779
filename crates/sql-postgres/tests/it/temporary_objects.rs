//! Temporary objects of several sessions, and what is left of them. `recorded/temporary.txt` has the statements of one session.

use crate::world::{Client, World, check};

/// Returns the lines of a text's results, joined by spaces.
fn ask(client: &mut Client, text: &str) -> String {
    client.run(text).join(" ")
}

/// Returns how many maps of temporary tables there are.
fn maps(world: &World) -> usize {
    world.db.instance().catalog().temporary_maps().expect("the catalog is read").len()
}

#[test]
fn sessions_do_not_see_each_others_temporary_objects() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int); insert into t values (1)");
    one.run("create temp table t (a int); insert into t values (2)");
    one.run("create temp sequence s; create temp view v as select * from t");
    assert_eq!(ask(&mut one, "select * from t where a > 0"), "2");
    // The same text finds a shared plan and one of the session's own.
    assert_eq!(ask(&mut other, "select * from t where a > 0"), "1");
    assert_eq!(ask(&mut one, "select * from t where a > 0"), "2");
    let listed = "select count(*) from pg_class where relname in ('t', 's', 'v')";
    assert_eq!(ask(&mut one, listed), "4");
    assert_eq!(ask(&mut other, listed), "1");
    let schemas = "select count(*) from pg_namespace where nspname ~ '^pg_temp'";
    assert_eq!((ask(&mut one, schemas), ask(&mut other, schemas)), ("1".to_owned(), "0".to_owned()));
    assert!(ask(&mut other, "select * from pg_temp.t").contains("relation \"pg_temp.t\" does not exist"));
    let own = ask(&mut one, "select pg_my_temp_schema()::regnamespace");
    assert!(ask(&mut other, &format!("select * from {own}.t")).contains("does not exist"));
    assert_eq!(ask(&mut one, &format!("select * from {own}.t")), "2");
    other.run("create temp table t (a int); insert into t values (3)");
    assert_eq!(ask(&mut other, "select * from t where a > 0"), "3");
    assert_eq!(ask(&mut one, "select * from t, pg_temp.v as v"), "2|2");
    drop(one);
    assert_eq!(ask(&mut other, "drop table t; select * from t where a > 0"), "DROP TABLE 1");
    assert_eq!(maps(&world), 0);
}

#[test]
fn a_view_over_a_temporary_table_becomes_temporary_with_a_notice() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create temp table t (a int)");
    check(
        client.run("create view v as select * from t"),
        "NOTICE:  00000: view \"v\" will be a temporary view
        CREATE VIEW",
    );
    check(client.run("create temp view w as select * from t"), "CREATE VIEW");
    check(
        client.run("create view over as select * from v"),
        "NOTICE:  00000: view \"over\" will be a temporary view
        CREATE VIEW",
    );
    let mut other = world.session();
    assert!(ask(&mut other, "select * from v").contains("relation \"v\" does not exist"));
    check(
        client.run("drop table t cascade"),
        "NOTICE:  00000: drop cascades to 3 other objects
        DETAIL:  drop cascades to view v
        drop cascades to view w
        drop cascades to view over
        DROP TABLE",
    );
}

/// A prepared statement finds what its names mean when it is executed; on the real server only the session's first temporary object does that.
#[test]
fn prepared_statements_find_temporary_tables_that_are_made_later() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int); insert into t values (1); create temp table other (a int)");
    client.run("prepare q as select a from t where a < $1");
    assert_eq!(ask(&mut client, "execute q (10)"), "1");
    client.run("create temp table t (a int); insert into t values (2)");
    assert_eq!(ask(&mut client, "execute q (10)"), "2");
    client.run("begin; drop table t");
    assert_eq!(ask(&mut client, "execute q (10)"), "1");
    client.run("rollback");
    assert_eq!(ask(&mut client, "execute q (10)"), "2");
    client.run("drop table t");
    assert_eq!(ask(&mut client, "execute q (10)"), "1");
    client.run("create temp table t (a text)");
    assert!(ask(&mut client, "execute q (10)").contains("42883"));
}

/// A permanent view goes on to read permanent tables.
#[test]
fn a_temporary_table_does_not_hide_what_a_permanent_view_reads() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int); insert into t values (1); create view v as select * from t");
    client.run("create materialized view m as select * from t");
    client.run("create temp table t (a int, b int); insert into t values (2, 2)");
    assert_eq!(ask(&mut client, "select * from v"), "1");
    assert_eq!(
        ask(&mut client, "insert into v values (5); refresh materialized view m; select * from m"),
        "INSERT 0 1 REFRESH MATERIALIZED VIEW 1 5"
    );
    assert_eq!(ask(&mut client, "select * from public.t; select * from t"), "1 5 2|2");
    check(
        client.run("select pg_get_viewdef('v'::regclass)"),
        "SELECT a
        FROM public.t;",
    );
    assert!(ask(&mut client, "drop table public.t").contains("view v depends on table public.t"));
    check(client.run("drop table t"), "DROP TABLE");
}

#[test]
fn many_temporary_tables_leave_nothing() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int)");
    for round in 0..150 {
        let on_commit = if round % 3 == 0 { " on commit drop" } else { "" };
        client.run("begin");
        client.run(&format!("create temp table t (a serial primary key, b text){on_commit}"));
        client.run("insert into t (b) values ('x'); create temp view v as select * from t");
        client.run(if round % 7 == 0 { "rollback" } else { "commit" });
        client.run("drop table if exists pg_temp.t cascade");
    }
    assert_eq!(maps(&world), 0);
    assert_eq!(ask(&mut client, "select count(*) from pg_class where relnamespace = pg_my_temp_schema()"), "0");
    assert_eq!(ask(&mut client, "select count(*) from t"), "0");
}

#[test]
fn the_end_of_a_session_and_a_crash_free_temporary_tables() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create temp table a (x int primary key); insert into a values (1)");
    one.run("begin; create temp table b (x int); insert into b values (1); drop table a");
    // As others see it.
    assert_eq!(maps(&world), 1);
    drop(one);
    assert_eq!(maps(&world), 0);
    other.run("create temp table a (x int primary key, y int unique); insert into a values (1, 1)");
    assert_eq!(maps(&world), 2);
    let mut world = world.crash(other);
    assert_eq!(maps(&world), 0);
    let mut client = world.session();
    assert!(ask(&mut client, "select * from a").contains("does not exist"));
    assert_eq!(ask(&mut client, "select count(*) from pg_namespace where nspname ~ '^pg_temp'"), "0");
    check(client.run("create temp table a (x int)"), "CREATE TABLE");
}

#[test]
fn the_schema_of_temporary_objects_comes_and_goes_with_their_transaction() {
    let mut world = World::new();
    let mut client = world.session();
    let schema = "select pg_my_temp_schema() <> 0, array_length(current_schemas(true), 1)";
    assert_eq!(ask(&mut client, schema), "f|2");
    client.run("begin; create temp table t (a int)");
    assert_eq!(ask(&mut client, schema), "t|3");
    client.run("rollback");
    assert_eq!(ask(&mut client, schema), "f|2");
    client.run("begin; savepoint a; create temp table t (a int); rollback to a");
    assert_eq!(ask(&mut client, schema), "f|2");
    client.run("create temp table t (a int); commit; drop table t");
    assert_eq!(ask(&mut client, schema), "t|3");
    check(client.run("create temp table t (a int, a int)"), "ERROR:  42701: column \"a\" specified more than once");
    assert_eq!(ask(&mut client, schema), "t|3");
}

#[test]
fn copies_and_locks_take_the_temporary_table() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int, b text); create temp table t (a int, b text)");
    assert_eq!(client.copy("copy t from stdin", "1\tx\n2\ty\n"), ["COPY 2"]);
    check(
        client.run("copy t to stdout"),
        "1\tx
        2\ty
        COPY 2",
    );
    check(client.run("copy public.t to stdout"), "COPY 0");
    check(
        client.run("truncate public.t; select count(*) from t"),
        "TRUNCATE TABLE
        2",
    );
    check(
        client.run("truncate t; select count(*) from t"),
        "TRUNCATE TABLE
        0",
    );
}

#[test]
fn a_role_needs_the_privilege_for_temporary_objects_alone() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create role plain; revoke temporary on database postgres from public");
    client.run("set role plain");
    let denied = "permission denied to create temporary tables in database \"postgres\"";
    assert!(ask(&mut client, "create temp table t (a int)").contains(denied));
    assert!(ask(&mut client, "create temp view v as select 1 as a").contains(denied));
    assert!(ask(&mut client, "create temp sequence s").contains(denied));
    client.run("reset role; grant temporary on database postgres to plain; set role plain");
    check(client.run("create temp table t (a int)"), "CREATE TABLE");
    check(client.run("create temp view v as select * from t"), "CREATE VIEW");
    check(client.run("create temp sequence s"), "CREATE SEQUENCE");
    check(
        client.run("insert into t values (1); select * from v; select * from pg_temp.t"),
        "INSERT 0 1
        1
        1",
    );
    assert_eq!(ask(&mut client, "set search_path = pg_temp; select nextval('s')"), "SET 1");
    check(
        client.run("create index on t (a); alter table t add b int; drop table t cascade"),
        "CREATE INDEX
        ALTER TABLE
        NOTICE:  00000: drop cascades to view v
        DROP TABLE",
    );
}

/// A session may use its temporary views under each of its roles, and they read with the rights of the role that made them.
#[test]
fn a_temporary_view_reads_with_the_rights_of_its_maker() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create role plain; create table secret (a int); insert into secret values (42)");
    client.run("create temp view open as select * from secret");
    client.run("set role plain; create temp view closed as select * from secret");
    let denied = "permission denied for table secret";
    assert_eq!(ask(&mut client, "select * from open"), "42");
    assert!(ask(&mut client, "select * from closed").contains(denied));
    check(client.run("create or replace temp view open as select a from secret"), "CREATE VIEW");
    assert!(ask(&mut client, "select * from open").contains(denied));
    client.run("reset role");
    assert!(ask(&mut client, "select * from closed").contains(denied));
    assert!(ask(&mut client, "select * from open").contains(denied));
    check(
        client.run("create or replace temp view open as select a from secret; select * from open"),
        "CREATE VIEW
        42",
    );
}

#[test]
fn the_schema_of_temporary_objects_cannot_be_changed() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create temp table t (a int)");
    let schema = ask(&mut client, "select pg_my_temp_schema()::regnamespace");
    for text in ["drop schema % cascade", "grant usage on schema % to public", "create type %.e as enum ('a')"] {
        assert!(ask(&mut client, &text.replace('%', &schema)).contains("is not supported"), "{text}");
    }
    assert!(
        ask(&mut client, "create table pg_temp_99999.x (a int)").contains("schema \"pg_temp_99999\" does not exist")
    );
    check(client.run(&format!("create table {schema}.u (a int); select * from pg_temp.u")), "CREATE TABLE");
}
