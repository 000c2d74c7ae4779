//! Composite types: restarts, two sessions, plans, bounds.

use sql_postgres::session::Parameter;
use sql_postgres::wire::Formats;

use crate::world::World;

#[test]
fn composite_types_and_their_values_are_the_same_after_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create type pair as (a int, x date, b text)");
    client.run("create type nest as (p pair, ps pair[], n numeric(6,2))");
    client.run("alter type pair drop attribute x");
    client.run("comment on column pair.b is 'the second'");
    client.run("create table t (p pair primary key, n nest)");
    client.run("create index on t (n)");
    client.run("insert into t values ((1, 'x'), ((2, 'y'), array['(3,z)'::pair, null], 1.239)), ((2, null), null)");
    let facts = "select attrelid, attname, attnum, atttypid, col_description(attrelid, attnum) from pg_attribute
        where attrelid in (select typrelid from pg_type where typname in ('pair', 'nest')) and not attisdropped order by 1, 3";
    let before = client.run(facts);
    assert_eq!(before.len(), 5);
    // What is open when the power fails is gone.
    let mut other = world.session();
    other.run("begin");
    other.run("create type lost as (a int)");
    drop(other);
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(client.run(facts), before);
    let row = r#"(1,x)|("(2,y)","{""(3,z)"",NULL}",1.24)"#;
    assert_eq!(client.run("select * from t where p = row(1, 'x')::pair"), [row]);
    assert_eq!(client.run("select * from t where n = row(row(2, 'y'), '{\"(3,z)\",NULL}', 1.24)::nest"), [row]);
    assert_eq!(client.run("select '(1)'::lost")[0], "ERROR:  42704: type \"lost\" does not exist");
    client.run("drop table t");
    client.run("alter type pair add attribute c int");
    let number = "select attnum from pg_attribute where attrelid = 'pair'::regclass and attname = 'c'";
    assert_eq!(client.run(number), ["4"], "a number is given once");
}

#[test]
fn attributes_do_not_change_under_a_table_that_is_being_made() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create type pair as (a int, b text)");
    one.run("create type nest as (p pair[])");
    other.run("set lock_timeout = '20ms'");
    one.run("begin");
    one.run("create table t (n nest)");
    let timeout = ["ERROR:  55P03: canceling statement due to lock timeout"];
    assert_eq!(other.run("alter type nest add attribute c int"), timeout);
    assert_eq!(other.run("alter type pair add attribute c int"), timeout, "the table has it within another type");
    one.run("commit");
    one.run("insert into t values (row(array[row(1, 'x')::pair]))");
    let used = "ERROR:  0A000: cannot alter type \"pair\" because column \"t.n\" uses it";
    assert_eq!(other.run("alter type pair alter attribute a type bigint")[0], used);
    one.run("prepare p as select * from t");
    assert_eq!(one.run("execute p"), [r#"("{""(1,x)""}")"#]);
    one.run("begin");
    assert_eq!(one.run("select (n).p[1].a from t"), ["1"]);
    assert_eq!(other.run("alter type pair add attribute c int"), timeout, "the table is read");
    one.run("commit");
    assert_eq!(other.run("alter type pair add attribute c int"), ["ALTER TYPE"]);
    assert_eq!(one.run("execute p"), [r#"("{""(1,x,)""}")"#]);
    other.run("begin");
    assert_eq!(other.run("alter type pair drop attribute b"), ["ALTER TYPE"]);
    assert_eq!(other.run("select * from t"), [r#"("{""(1,)""}")"#]);
    other.run("rollback");
    assert_eq!(other.run("select * from t"), [r#"("{""(1,x,)""}")"#]);
    assert_eq!(other.run("alter type pair drop attribute c"), ["ALTER TYPE"]);
    one.run("drop table t");
    one.run("begin");
    one.run("create type over as (p pair)");
    assert_eq!(other.run("drop type pair cascade").last().unwrap(), timeout[0]);
    one.run("rollback");
    assert_eq!(other.run("alter type pair drop attribute a"), ["ALTER TYPE"]);
    assert_eq!(one.run("select '(x)'::pair"), ["(x)"]);
}

#[test]
fn plans_follow_changes_of_attributes() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create type pair as (a int, b text)");
    one.run("prepare p as select row(1, 'x')::pair, (row(1, 'x')::pair).a");
    assert_eq!(one.run("execute p"), ["(1,x)|1"]);
    other.run("alter type pair rename attribute a to c");
    assert_eq!(one.run("execute p")[0], "ERROR:  42703: column \"a\" not found in data type pair");
    other.run("alter type pair rename attribute c to a");
    assert_eq!(one.run("execute p"), ["(1,x)|1"]);
    one.run("begin");
    one.run("alter type pair add attribute c int");
    assert_eq!(one.run("select '(1,x,2)'::pair"), ["(1,x,2)"]);
    assert_eq!(other.run("select '(1,x)'::pair"), ["(1,x)"]);
    one.run("rollback");
    assert_eq!(one.run("select '(1,x)'::pair"), ["(1,x)"]);
}

#[test]
fn composite_types_are_bounded() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create type c0 as (a int)");
    let made = (1..40).map(|nth| client.run(&format!("create type c{nth} as (p c{}[], q c{0})", nth - 1)));
    let made: Vec<Vec<String>> = made.collect();
    let refused = made.iter().position(|lines| lines[0] != "CREATE TYPE").unwrap();
    assert_eq!(made[refused][0], "ERROR:  54000: composite types are within each other at most 32 times");
    let last = refused;
    assert_eq!(client.run(&format!("select row(null, null)::c{last}")), ["(,)"]);
    assert_eq!(client.run(&format!("select row(null, null)::c{last} = '(,)'::c{last}")), ["t"]);
    // No way around it from within.
    client.run("create type other as (a int)");
    assert_eq!(
        client.run("alter type c0 add attribute o other")[0],
        "ERROR:  54000: composite types are within each other at most 32 times"
    );
    let attributes = |count: usize| (0..count).map(|nth| format!("a{nth} int")).collect::<Vec<_>>().join(", ");
    let many = client.run(&format!("create type many as ({})", attributes(1601)));
    assert_eq!(many, ["ERROR:  54011: tables can have at most 1600 columns"]);
    assert_eq!(client.run(&format!("create type many as ({})", attributes(1600))), ["CREATE TYPE"]);
    let more = client.run("alter type many drop attribute a0, add attribute b int");
    assert_eq!(more, ["ERROR:  54011: tables can have at most 1600 columns"]);
    assert_eq!(client.run("select (null::many).a1599"), [""]);
}

#[test]
fn values_follow_the_attributes_of_their_type() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create type pair as (a int, b text)");
    client.run("create type nest as (p pair, ps pair[])");
    client.run("create table t (id int primary key, p pair unique default '(8,d)', n nest, ps pair[])");
    client.run("insert into t values (1, '(1,x)', '(\"(2,y)\",\"{\"\"(3,z)\"\",NULL}\")', '{\"(4,w)\"}'), (2, null, null, '{}')");
    let changed = client.run("alter type pair drop attribute a, add attribute c int");
    assert_eq!(changed, ["ALTER TYPE"]);
    client.run("insert into t (id) values (3)");
    let rows = [r#"1|(x,)|("(y,)","{""(z,)"",NULL}")|{"(w,)"}"#, "2|||{}", "3|(d,)||"];
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(client.run("select * from t order by id"), rows);
    assert_eq!(client.run("select id from t where p = row('x', null)::pair"), ["1"]);
    let twice = client.run("insert into t values (4, ('x', null))");
    assert_eq!(twice[0], "ERROR:  23505: duplicate key value violates unique constraint \"t_p_key\"");
    // A text that reads a field would lose it.
    for (define, object, undo) in [
        ("create view v as select (p).b from t", "view v", "drop view v"),
        ("create view v as select * from t", "view v", "drop view v"),
        (
            "alter table t add check ((p).b <> '')",
            "constraint t_p_check on table t",
            "alter table t drop constraint t_p_check",
        ),
        ("create index i on t (((n).p))", "an index of table t", "drop index i"),
        ("create index i on t (id) where (p).c > 1", "an index of table t", "drop index i"),
        (
            "alter table t add b text generated always as ((p).b) stored",
            "an expression of table t",
            "alter table t drop b",
        ),
    ] {
        client.run(define);
        let refused = format!("ERROR:  0A000: ALTER of type pair, whose values {object} reads, is not supported");
        assert_eq!(client.run("alter type pair rename attribute b to d")[0], refused, "{define}");
        client.run(undo);
    }
    client.run("alter table t alter column n set default row(null, null)");
    let refused =
        "ERROR:  0A000: ALTER of type pair, which default value for column n of table t names, is not supported";
    assert_eq!(client.run("alter type pair rename attribute b to d")[0], refused);
    client.run("alter table t alter column n drop default");
    assert_eq!(client.run("alter type pair rename attribute b to d"), ["ALTER TYPE"]);
    assert_eq!(client.run("select row_to_json(p) from t where id = 1"), [r#"{"d":"x","c":null}"#]);
}

#[test]
fn domains_within_rows_are_checked_in_copies_and_parameters() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create domain pos as int check (value > 0)");
    client.run("create type item as (n pos, ps pos[])");
    client.run("create type nest as (i item, items item[])");
    client.run("create table t (id int, i item, n nest)");
    let violated = "ERROR:  23514: value for domain pos violates check constraint \"pos_check\"";
    for (column, value) in
        [("i", "(0,)"), ("i", "(1,\"{1,0}\")"), ("n", "(\"(1,)\",\"{\"\"(0,)\"\"}\")"), ("n", "(\"(0,)\",)")]
    {
        let copied = client.copy(&format!("copy t (id, {column}) from stdin"), &format!("1\t{value}\n"));
        assert_eq!(copied[0], violated, "{value}");
    }
    let copied = client.copy("copy t (id, n) from stdin", "1\t(\"(1,)\",\"{\"\"(2,)\"\"}\")\n");
    assert_eq!(copied, ["COPY 1"]);
    let number = |client: &mut crate::world::Client, of: &str| -> u32 {
        client.run(&format!("select '{of}'::regtype::oid"))[0].parse().expect("a number")
    };
    let (pos, array, item) = (number(&mut client, "pos"), number(&mut client, "pos[]"), number(&mut client, "item"));
    let binary = |value: i32, ty: u32| {
        let number = [ty.to_be_bytes(), 4i32.to_be_bytes(), value.to_be_bytes()].concat();
        [&2i32.to_be_bytes()[..], &number, &array.to_be_bytes(), &(-1i32).to_be_bytes()].concat()
    };
    let mut run = |format: i16, value: &[u8], given: &[u32]| {
        let client = &mut client;
        client.0.parse("", "select ($1::item).n", given).expect("it parses");
        let parameter = Parameter { format, value: Some(value) };
        let done = client.0.bind("", "", &[parameter], Formats::default()).and_then(|()| client.0.execute("", 0));
        let mut lines = Vec::new();
        let done = done.and_then(|outcome| client.outcome(outcome, &mut lines));
        client.0.sync().expect("the pipeline ends");
        done.map_or_else(|error| format!("{}: {}", error.state, error.message), |()| lines[0].clone())
    };
    let violated = &violated["ERROR:  ".len()..];
    for given in [&[][..], &[item]] {
        assert_eq!(run(1, &binary(3, pos), given), "3");
        assert_eq!(run(1, &binary(0, pos), given), violated);
        assert_eq!(run(0, b"(3,)", given), "3");
        assert_eq!(run(0, b"(3,{-1})", given), violated);
    }
    let other = run(1, &binary(3, 23), &[]);
    assert!(other.starts_with("42804: binary data has type 23 (integer) instead of expected"), "{other}");
}

/// The checks of a type are made once, however often it lies within others.
#[test]
fn checks_of_types_within_types_are_bounded() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create domain pos as int check (value > 0)");
    client.run("create type c0 as (a pos)");
    for nth in 1..31 {
        let parts = (0..40).map(|part| format!("p{part} c{}", nth - 1)).collect::<Vec<_>>().join(", ");
        assert_eq!(client.run(&format!("create type c{nth} as ({parts})")), ["CREATE TYPE"]);
    }
    let empty = format!("({})", ",".repeat(39));
    assert_eq!(client.run(&format!("select '{empty}'::c30")), [&*empty]);
    assert_eq!(client.run("select json_populate_record(null::c30, '{}') is null"), ["t"]);
    let field = |path: usize| format!("x{}.a", ".p0".repeat(path));
    client.run("create table t (x c12)");
    client.run("insert into t values (null)");
    let violated = ["ERROR:  23514: value for domain pos violates check constraint \"pos_check\""];
    assert_eq!(client.run(&format!("update t set {} = 0", field(12))), violated);
    assert_eq!(client.run(&format!("update t set {} = 4", field(12))), ["UPDATE 1"]);
    let shown = client.run("select x::text from t");
    client.run("create table u (x c12)");
    assert_eq!(client.run(&format!("insert into u values ('{}')", shown[0])), ["INSERT 0 1"]);
    let bad = shown[0].replace('4', "0");
    assert_eq!(client.run(&format!("insert into u values ('{bad}')")), violated);
}

#[test]
fn domains_over_composite_types_are_the_same_after_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create type pair as (a int, b text)");
    client.run("create domain small as pair check ((value).a < 10)");
    client.run("create domain smalls as small[]");
    client.run("create table t (id int primary key, s small, ss smalls)");
    client.run("create index on t (s)");
    client.run("insert into t values (1, '(3,x)', '{\"(4,y)\"}')");
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(client.run("select *, (ss[1]).a from t where s = row(3, 'x')::pair"), [r#"1|(3,x)|{"(4,y)"}|4"#]);
    let violated = "ERROR:  23514: value for domain small violates check constraint \"small_check\"";
    for (column, value) in [("s", "(10,)"), ("ss", "{\"(1,)\",\"(11,)\"}")] {
        let copied = client.copy(&format!("copy t (id, {column}) from stdin"), &format!("2\t{value}\n"));
        assert_eq!(copied[0], violated, "{value}");
    }
    // A change of attributes would change what the check reads.
    let refused = "ERROR:  0A000: ALTER of type pair, whose values type small reads, is not supported";
    assert_eq!(client.run("alter type pair rename attribute a to c")[0], refused);
    assert_eq!(client.run("alter domain small drop constraint small_check"), ["ALTER DOMAIN"]);
    assert_eq!(client.run("alter type pair add attribute c int, drop attribute a"), ["ALTER TYPE"]);
    assert_eq!(client.run("select * from t"), [r#"1|(x,)|{"(y,)"}"#]);
    assert_eq!(client.run("select id from t where s = row('x', null)::pair"), ["1"]);
}

/// Domains between composite types count no levels, and hide none.
#[test]
fn types_within_domains_are_bounded() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create type c0 as (a int)");
    let made = (1..40).map(|nth| {
        client.run(&format!("create domain d{nth} as c{}[]", nth - 1));
        client.run(&format!("create type c{nth} as (p d{nth})"))
    });
    let made: Vec<Vec<String>> = made.collect();
    let refused = made.iter().position(|lines| lines[0] != "CREATE TYPE").unwrap();
    assert_eq!(made[refused][0], "ERROR:  54000: composite types are within each other at most 32 times");
    assert_eq!(client.run(&format!("select '()'::c{refused}")), ["()"]);
    assert_eq!(
        client.run("alter type c0 add attribute p d1")[0],
        "ERROR:  42P16: composite type c0 cannot be made a member of itself"
    );
    // Each names all before it: their checks are bound once for a statement.
    client.run("create domain n0 as int check (value > 0)");
    for nth in 1..30 {
        let others = (0..nth).map(|of| format!("value::n{of} > 0")).collect::<Vec<_>>().join(" and ");
        let made = client.run(&format!("create domain n{nth} as int check (value > 0 or {others})"));
        assert_eq!(made, ["CREATE DOMAIN"]);
    }
    assert_eq!(client.run("select 1::n29"), ["1"]);
    let violated = "ERROR:  23514: value for domain n0 violates check constraint \"n0_check\"";
    assert_eq!(client.run("select 0::n2")[0], violated);
}
