//! Cursors: positions, lifetimes, the current row; results as the real server gives them.

use sql_postgres::session::{Outcome, Parameter};
use sql_postgres::wire::Formats;

use crate::world::{Client, World, check};

fn prepared(world: &mut World) -> Client {
    let mut client = world.session();
    client.run("create table t (id int primary key, v text)");
    client.run("insert into t select i, 'v' || i from generate_series(1, 10) i");
    client
}

#[test]
fn a_scroll_cursor_moves_in_every_direction() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "begin
         declare c scroll cursor for select id from t order by id
         fetch c
         fetch 3 from c
         fetch prior from c
         fetch last c
         fetch next c
         fetch prior c
         fetch absolute 3 from c
         fetch absolute -2 from c
         fetch relative -3 from c
         fetch 0 c
         fetch backward all from c
         move 3 in c
         move backward all in c
         move forward all in c
         move 0 in c
         move -1 in c
         move absolute 100 in c
         fetch -2 from c
         fetch absolute 0 from c
         close c
         fetch c",
    );
    check(
        found,
        "BEGIN
         DECLARE CURSOR
         1
         FETCH 1
         2
         3
         4
         FETCH 3
         3
         FETCH 1
         10
         FETCH 1
         FETCH 0
         10
         FETCH 1
         3
         FETCH 1
         9
         FETCH 1
         6
         FETCH 1
         6
         FETCH 1
         5
         4
         3
         2
         1
         FETCH 5
         MOVE 3
         MOVE 2
         MOVE 10
         MOVE 0
         MOVE 1
         MOVE 0
         10
         9
         FETCH 2
         FETCH 0
         CLOSE CURSOR
         ERROR:  34000: cursor \"c\" does not exist",
    );
}

#[test]
fn a_cursor_without_scroll_refuses_to_go_back_and_is_ended_by_that() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "declare c cursor for select 1
         begin
         declare c no scroll cursor for select id from t order by id
         fetch absolute 3 c
         savepoint s
         fetch prior c
         rollback to s
         fetch c
         rollback",
    );
    check(
        found,
        "ERROR:  25P01: DECLARE CURSOR can only be used in transaction blocks
         BEGIN
         DECLARE CURSOR
         3
         FETCH 1
         SAVEPOINT
         ERROR:  55000: cursor can only scan forward
         HINT:  Declare it with SCROLL option to enable backward scan.
         ROLLBACK
         ERROR:  55000: portal \"c\" cannot be run
         ROLLBACK",
    );
}

#[test]
fn a_cursor_shows_the_rows_of_its_snapshot_whatever_runs_between() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "begin
         declare a cursor for select id from t order by id
         declare b cursor for select id * 10 from t order by id
         fetch 2 a
         fetch 2 b
         delete from t where id in (3, 4)
         insert into t values (0, 'zero')
         fetch 2 a
         fetch 1 b
         select count(*) from t
         commit
         fetch a",
    );
    check(
        found,
        "BEGIN
         DECLARE CURSOR
         DECLARE CURSOR
         1
         2
         FETCH 2
         10
         20
         FETCH 2
         DELETE 2
         INSERT 0 1
         3
         4
         FETCH 2
         30
         FETCH 1
         9
         COMMIT
         ERROR:  34000: cursor \"a\" does not exist",
    );
}

#[test]
fn a_cursor_with_hold_outlives_its_commit_and_no_rollback() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "declare h cursor with hold for select id from t order by id
         fetch 2 h
         delete from t where id > 4
         select name, is_holdable, is_scrollable from pg_cursors
         begin
         fetch 2 h
         rollback
         fetch backward 2 h
         move all in h
         begin
         declare i cursor with hold for select id from t
         rollback
         fetch i
         begin
         declare i cursor with hold for select 1 / (id - 4) from t order by id
         commit
         close all
         select count(*) from pg_cursors",
    );
    check(
        found,
        "DECLARE CURSOR
         1
         2
         FETCH 2
         DELETE 6
         h|t|t
         BEGIN
         3
         4
         FETCH 2
         ROLLBACK
         3
         2
         FETCH 2
         MOVE 8
         BEGIN
         DECLARE CURSOR
         ROLLBACK
         ERROR:  34000: cursor \"i\" does not exist
         BEGIN
         DECLARE CURSOR
         ERROR:  22012: division by zero
         CLOSE CURSOR ALL
         0",
    );
}

#[test]
fn a_savepoint_ends_the_cursors_made_since_and_spares_those_before() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "begin
         declare o cursor for select id from t order by id
         fetch 2 o
         savepoint a
         declare i cursor for select id from t order by id
         fetch 1 o
         select 1/0
         rollback to a
         fetch 1 o
         fetch i
         rollback",
    );
    check(
        found,
        "BEGIN
         DECLARE CURSOR
         1
         2
         FETCH 2
         SAVEPOINT
         DECLARE CURSOR
         3
         FETCH 1
         ERROR:  22012: division by zero
         ROLLBACK
         4
         FETCH 1
         ERROR:  34000: cursor \"i\" does not exist
         ROLLBACK",
    );
}

#[test]
fn current_of_is_the_row_at_which_the_cursor_is() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "begin
         declare c cursor for select v from t order by id for update
         savepoint s
         update t set v = 'x' where current of c
         rollback to s
         fetch 2 c
         update t set v = v || '!' where current of c returning *
         delete from t where current of c
         delete from t where current of c
         fetch c
         rollback
         begin
         declare c cursor for select a.id from t a join t b using (id)
         fetch c
         delete from t where current of c
         rollback
         delete from t where current of c",
    );
    check(
        found,
        "BEGIN
         DECLARE CURSOR
         SAVEPOINT
         ERROR:  24000: cursor \"c\" is not positioned on a row
         ROLLBACK
         v1
         v2
         FETCH 2
         2|v2!
         UPDATE 1
         DELETE 1
         DELETE 0
         v3
         FETCH 1
         ROLLBACK
         BEGIN
         DECLARE CURSOR
         1
         FETCH 1
         ERROR:  24000: cursor \"c\" is not a simply updatable scan of table \"t\"
         ROLLBACK
         ERROR:  34000: cursor \"c\" does not exist",
    );
}

#[test]
fn a_portal_is_a_cursor_and_a_cursor_a_portal() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let mut lines = client.run("begin");
    let three = b"3";
    let parameter = Parameter { format: 0, value: Some(three) };
    client.0.parse("s", "select id from t where id > $1 order by id", &[]).expect("it parses");
    client.0.bind("p", "s", &[parameter], Formats::default()).expect("it binds");
    let outcome = client.0.execute("p", 2).expect("it runs");
    client.outcome(outcome, &mut lines).expect("its rows are written");
    client.0.sync().expect("the pipeline ends");
    // The rows still come from the executor, as nothing has run in between.
    let outcome = client.0.execute("p", 1).expect("it goes on");
    client.outcome(outcome, &mut lines).expect("its rows are written");
    lines.extend(client.lines(
        "fetch 1 from p
         update t set v = 'x' where id = 8
         move 1 in p
         fetch 1 from p",
    ));
    client.0.parse("d", "declare c cursor for select id from t where id < $1 order by id", &[]).expect("it parses");
    let (types, fields) = client.0.describe_statement("d").expect("it is described");
    assert_eq!((types, fields.is_some()), (vec![23], false));
    client.0.bind("", "d", &[parameter], Formats::default()).expect("it binds");
    let outcome = client.0.execute("", 0).expect("it runs");
    client.outcome(outcome, &mut lines).expect("it has no rows");
    let outcome = client.0.execute("c", 1).expect("a cursor is a portal");
    assert!(matches!(outcome, Outcome::Rows(_)));
    client.outcome(outcome, &mut lines).expect("its rows are written");
    lines.extend(client.lines("fetch 5 from c"));
    check(
        lines,
        "BEGIN
         4
         5
         portal suspended
         6
         portal suspended
         7
         FETCH 1
         UPDATE 1
         MOVE 1
         9
         FETCH 1
         DECLARE CURSOR
         1
         portal suspended
         2
         FETCH 1",
    );
}
