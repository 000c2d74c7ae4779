//! Prepared statements of tables that change, and the fields of errors that drivers read.

use crate::world::World;

#[test]
fn a_prepared_statement_fails_when_its_columns_have_changed() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    other.lines("create table t (a int, b varchar(10))\ninsert into t values (1, 'x')");
    one.run("prepare q as select * from t");
    let same = ["1|x"];
    let changed = ["ERROR:  0A000: cached plan must not change result type"];
    for (change, expected) in [
        ("create index on t (a)", &same),
        ("alter table t rename a to z", &changed),
        ("alter table t rename z to a", &same),
        ("alter table t alter b type varchar(20)", &changed),
        ("alter table t alter b type varchar(10)", &same),
        ("alter table t add c int", &changed),
        ("alter table t drop c", &same),
    ] {
        other.run(change);
        assert_eq!(one.run("execute q"), expected, "{change}");
    }
    other.run("alter table t add c int");
    let error = one.script_error("execute q").expect("the columns have changed");
    assert_eq!(error.routine, Some("RevalidateCachedQuery"));
}

#[test]
fn errors_of_constraints_name_the_schema() {
    let mut world = World::new();
    let mut client = world.session();
    client.lines("create schema s\ncreate table s.t (a int primary key check (a < 9), b int not null references s.t, c int unique deferrable)\ninsert into s.t values (1, 1, 1), (2, 1, 2)");
    for (text, column, constraint) in [
        ("insert into s.t values (1, 1)", None, Some("t_pkey")),
        ("insert into s.t values (10, 1)", None, Some("t_a_check")),
        ("insert into s.t values (3, null)", Some("b"), None),
        ("insert into s.t values (3, 7)", None, Some("t_b_fkey")),
        ("delete from s.t where a = 1", None, Some("t_b_fkey")),
        ("insert into s.t values (3, 1, 1)", None, Some("t_c_key")),
        ("with n as (insert into s.t values (3, 7) returning a) select * from n", None, Some("t_b_fkey")),
    ] {
        let object = client.script_error(text).and_then(|error| error.object).expect("an error about the table");
        assert_eq!((object.schema.as_deref(), object.table.as_deref()), (Some("s"), Some("t")), "{text}");
        assert_eq!((object.column.as_deref(), object.constraint.as_deref()), (column, constraint), "{text}");
    }
}
