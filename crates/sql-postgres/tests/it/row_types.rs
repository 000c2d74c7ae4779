//! Row types of relations: restarts, two sessions, changes that a column keeps from being made.

use crate::world::World;

#[test]
fn columns_of_row_types_are_the_same_after_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int, b text)");
    client.run("create view v as select t as whole, 7 as n from t");
    client.run("create table u (id int primary key, r t, rs t[], w v)");
    client.run("insert into t values (1, 'x')");
    client.run("insert into u select 1, t, array[t, null], v from t, v");
    let facts = "select attname, atttypid, format_type(atttypid, atttypmod) from pg_attribute
        where attrelid = 'u'::regclass and attnum > 0 order by attnum";
    let before = client.run(facts);
    assert_eq!(before.len(), 4);
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(client.run(facts), before);
    assert_eq!(client.run("select * from u"), [r#"1|(1,x)|{"(1,x)",NULL}|("(1,x)",7)"#]);
    assert_eq!(client.run("select id from u where r = (select t from t)"), ["1"]);
    let used = "ERROR:  0A000: cannot alter table \"t\" because column \"u.rs\" uses its row type";
    assert_eq!(client.run("alter table t add column c int")[0], used);
    client.run("drop table u");
    assert_eq!(client.run("alter table t add column c int"), ["ALTER TABLE"]);
    assert_eq!(client.run("select whole from v"), ["(1,x,)"]);
}

#[test]
fn rows_do_not_change_under_a_table_that_is_being_made() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int, b text)");
    one.run("create view v as select t as whole from t");
    other.run("set lock_timeout = '20ms'");
    let timeout = ["ERROR:  55P03: canceling statement due to lock timeout"];
    one.run("begin");
    one.run("create table u (r t[], w v)");
    assert_eq!(other.run("alter table t add column c int"), timeout);
    assert_eq!(other.run("drop table t cascade").last().unwrap(), timeout[0]);
    assert_eq!(other.run("create or replace view v as select t as whole, 1 as n from t"), timeout);
    assert_eq!(other.run("insert into t values (1, 'x')"), ["INSERT 0 1"]);
    one.run("commit");
    one.run("insert into u values ('{\"(1,x)\"}', row(row(2, 'y')))");
    for change in ["add column c int", "drop column b", "rename column b to c", "alter column a type bigint"] {
        let used = "ERROR:  0A000: cannot alter table \"t\" because column \"u.r\" uses its row type";
        let error = other.run(&format!("alter table t {change}"));
        let of_view = "ERROR:  2BP01";
        assert!(error[0] == used || error[0].starts_with(of_view) || error[0].contains("used by a view"), "{error:?}");
    }
    assert_eq!(other.run("select * from u"), [r#"{"(1,x)"}|("(2,y)")"#]);
    one.run("drop table u");
    // The other way round: a row that is about to change gets no users.
    one.run("begin");
    one.run("alter table t add column c int");
    assert_eq!(other.run("create table u (r t)"), timeout);
    one.run("rollback");
    assert_eq!(other.run("create table u (r t)"), ["CREATE TABLE"]);
    other.run("insert into u values (row(1, 'x'))");
    assert_eq!(one.run("select (r).b from u"), ["x"]);
}

#[test]
fn a_row_type_is_named_by_its_relation() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int)");
    client.run("create table u (r t, d int default (row(5)::t).a)");
    let error = client.run("alter table t rename to t2");
    assert!(error[0].starts_with("ERROR:  0A000: RENAME of type t"), "{error:?}");
    client.run("alter table u alter column d drop default");
    assert_eq!(client.run("alter table t rename to t2"), ["ALTER TABLE"]);
    client.run("insert into u values (row(1))");
    assert_eq!(client.run("select pg_typeof(r), r from u"), ["t2|(1)"]);
    client.run("create schema s");
    client.run("alter table u alter column d set default (row(6)::t2).a");
    assert_eq!(client.run("alter table t2 set schema s"), ["ALTER TABLE"]);
    client.run("insert into u (r) values (row(2))");
    assert_eq!(client.run("select pg_typeof(r), * from u order by r"), ["s.t2|(1)|", "s.t2|(2)|6"]);
    // A type whose attribute is a row is rewritten with the rows within.
    client.run("create type pair as (x int, y int)");
    client.run("create table inner_rows (p pair)");
    client.run("create table outer_rows (r inner_rows)");
    client.run("insert into outer_rows values (row(row(1, 2)))");
    let own = "ERROR:  42P16: composite type pair cannot be made a member of itself";
    assert_eq!(client.run("alter type pair add attribute z inner_rows"), [own]);
    assert_eq!(client.run("alter type pair add attribute z int"), ["ALTER TYPE"]);
    assert_eq!(client.run("select r, ((r).p).z from outer_rows"), [r#"("(1,2,)")|"#]);
    client.run("create domain small as int check (value < 10)");
    client.run("create table base (d small)");
    client.run("create table over (r base)");
    assert_eq!(client.run("insert into over values (row(3))"), ["INSERT 0 1"]);
    assert!(client.run("insert into over values (row(30))")[0].starts_with("ERROR:  23514"));
}

#[test]
fn row_types_within_each_other_are_bounded() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t0 (a int)");
    let made = (1..60).find(|nth| {
        let done = client.run(&format!("create table t{nth} (r t{})", nth - 1));
        assert!(done == ["CREATE TABLE"] || done[0].starts_with("ERROR:  54000"), "{done:?}");
        done != ["CREATE TABLE"]
    });
    assert_eq!(made, Some(33));
}
