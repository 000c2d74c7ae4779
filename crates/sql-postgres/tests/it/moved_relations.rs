//! SET SCHEMA of several sessions, over a crash, and where it is refused. `recorded/set_schema.txt` has the statements of one session.

use crate::world::{Client, World, check};

fn ask(client: &mut Client, text: &str) -> String {
    client.run(text).join(" ")
}

#[test]
fn a_moved_table_and_its_dependents_survive_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create schema s; create table t (id serial primary key, a int check (public.t.a > 0))");
    client.run("create table child (id int references t); create view v as select * from public.t where t.a > 1");
    client.run("create materialized view m as select id from t; create index t_sum on t ((a + id))");
    client.run("insert into t (a) values (1), (2); insert into child values (1)");
    check(
        client.run("alter table t set schema s; alter materialized view m set schema s"),
        "ALTER TABLE\nALTER MATERIALIZED VIEW",
    );
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(
        ask(&mut client, "select * from v; select * from s.t where a + id = 4; select * from t"),
        "2|2 2|2 ERROR:  42P01: relation \"t\" does not exist"
    );
    assert_eq!(ask(&mut client, "insert into s.t (a) values (5)"), "INSERT 0 1");
    assert!(ask(&mut client, "insert into s.t (a) values (0)").contains("23514"));
    assert!(ask(&mut client, "insert into child values (9)").contains("23503"));
    assert!(ask(&mut client, "delete from s.t where id = 1").contains("23503"));
    assert_eq!(
        ask(&mut client, "refresh materialized view s.m; select count(*) from s.m"),
        "REFRESH MATERIALIZED VIEW 3"
    );
    // A failed statement after the move, and a rollback, leave everything where it was.
    client.run("begin; alter table s.t set schema public");
    assert_eq!(ask(&mut client, "select count(*) from v; select 1 / 0; rollback").matches("22012").count(), 1);
    client.run("rollback");
    assert_eq!(ask(&mut client, "select count(*) from s.t; select count(*) from v"), "3 2");
}

#[test]
fn other_sessions_find_a_relation_where_it_is_committed() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create schema s; create table t (a int); create view v as select a from t; insert into t values (7)");
    other.run("prepare q as select a from v; prepare direct as select a from t; prepare moved as select 1");
    assert_eq!(ask(&mut other, "execute q; execute direct"), "7 7");
    one.run("begin; alter view v set schema s");
    assert_eq!(ask(&mut other, "execute q"), "7");
    one.run("rollback; alter table t set schema s");
    assert_eq!(ask(&mut other, "execute q"), "7");
    assert!(ask(&mut other, "execute direct").contains("42P01"));
    other.run("set search_path = s");
    assert_eq!(ask(&mut other, "execute direct"), "7");
}

#[test]
fn views_of_the_session_alone_follow_and_unknown_forms_are_refused() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create schema s; create table t (a int); insert into t values (7); create sequence q");
    client.run("create temp view own as select a from t; create temp table copy (n int default nextval('public.q'))");
    assert_eq!(
        ask(&mut client, "alter table t set schema s; alter sequence q set schema s; select * from own"),
        "ALTER TABLE ALTER SEQUENCE 7"
    );
    assert_eq!(ask(&mut client, "insert into copy default values; select n from copy"), "INSERT 0 1 1");
    client.run("create view odd as select a from s.U&\"t\"");
    assert!(ask(&mut client, "alter table s.t set schema public").contains("0A000"));
    client.run("drop view odd; create domain d as int default nextval('s.q')");
    assert!(ask(&mut client, "alter sequence s.q set schema public").contains("the domain \"d\" names"));
    assert_eq!(ask(&mut client, "alter table s.t set schema public; select * from own"), "ALTER TABLE 7");
}
