//! Sessions: transaction blocks, settings, definitions, COPY, portals; results as the real server gives them.

use sql_postgres::session::{Outcome, Parameter};
use sql_postgres::wire::Formats;

use crate::world::{World, check};

#[test]
fn an_aborted_block_runs_nothing_but_its_end() {
    let mut world = World::new();
    let mut client = world.session();
    let found = client.lines(
        "create table t (a int primary key, b text)
         begin
         insert into t values (1, 'x')
         select 1/0
         select 1
         commit
         select count(*) from t
         begin
         insert into t values (2, 'y')
         savepoint s
         insert into t values (3, 'z')
         select 1/0
         rollback to s
         insert into t values (4, 'w')
         commit
         select a, b from t order by a",
    );
    check(
        found,
        "CREATE TABLE
         BEGIN
         INSERT 0 1
         ERROR:  22012: division by zero
         ERROR:  25P02: current transaction is aborted, commands ignored until end of transaction block
         ROLLBACK
         0
         BEGIN
         INSERT 0 1
         SAVEPOINT
         INSERT 0 1
         ERROR:  22012: division by zero
         ROLLBACK
         INSERT 0 1
         COMMIT
         2|y
         4|w",
    );
}

#[test]
fn statements_of_one_query_are_one_transaction() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int primary key)");
    check(
        client.run("insert into t values (1); insert into t values (1)"),
        "INSERT 0 1
         ERROR:  23505: duplicate key value violates unique constraint \"t_pkey\"
         DETAIL:  Key (a)=(1) already exists.",
    );
    check(client.run("select count(*) from t"), "0");
    check(
        client.run("insert into t values (1); begin; insert into t values (2); rollback; select count(*) from t"),
        "INSERT 0 1
         BEGIN
         INSERT 0 1
         ROLLBACK
         0",
    );
}

#[test]
fn misplaced_transaction_statements_are_warned_of() {
    let mut world = World::new();
    let mut client = world.session();
    check(
        client.lines(
            "begin
             begin
             commit
             commit
             rollback
             savepoint a
             begin
             release a
             rollback
             commit and chain
             begin isolation level repeatable read
             commit and chain
             show transaction_isolation
             rollback
             show transaction_isolation
             begin transaction isolation level serializable
             rollback
             begin read only
             create table t (a int)
             rollback",
        ),
        "BEGIN
         WARNING:  25001: there is already a transaction in progress
         BEGIN
         COMMIT
         WARNING:  25P01: there is no transaction in progress
         COMMIT
         WARNING:  25P01: there is no transaction in progress
         ROLLBACK
         ERROR:  25P01: SAVEPOINT can only be used in transaction blocks
         BEGIN
         ERROR:  3B001: savepoint \"a\" does not exist
         ROLLBACK
         ERROR:  25P01: COMMIT AND CHAIN can only be used in transaction blocks
         BEGIN
         COMMIT
         repeatable read
         ROLLBACK
         read committed
         BEGIN
         ROLLBACK
         BEGIN
         ERROR:  25006: cannot execute CREATE TABLE in a read-only transaction
         ROLLBACK",
    );
}

#[test]
fn an_update_over_a_newer_row_fails_in_repeatable_read() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.lines(
        "create table t (a int primary key, b int)
         insert into t values (1, 1), (2, 2)",
    );
    check(one.lines("begin isolation level repeatable read\nselect sum(b) from t"), "BEGIN\n3");
    check(other.run("update t set b = 10 where a = 1"), "UPDATE 1");
    check(
        one.lines("select sum(b) from t\nupdate t set b = 5 where a = 2\nupdate t set b = 6 where a = 1\ncommit"),
        "3
         UPDATE 1
         ERROR:  40001: could not serialize access due to concurrent update
         ROLLBACK",
    );
    check(one.run("select b from t order by a"), "10\n2");
}

#[test]
fn settings_follow_their_transaction() {
    let mut world = World::new();
    let mut client = world.session();
    check(
        client.lines(
            "set application_name = 'a'
             begin
             set application_name = 'b'
             set local application_name = 'c'
             show application_name
             commit
             show application_name
             begin
             set application_name = 'x'
             rollback
             show application_name
             select set_config('my.x', '5', true), current_setting('my.x')
             set statement_timeout = '90min'
             show statement_timeout
             reset statement_timeout
             show statement_timeout
             set foo = 1
             set standard_conforming_strings = off",
        ),
        "SET
         BEGIN
         SET
         SET
         c
         COMMIT
         b
         BEGIN
         SET
         ROLLBACK
         b
         5|5
         SET
         90min
         RESET
         0
         ERROR:  42704: unrecognized configuration parameter \"foo\"
         ERROR:  0A000: setting \"standard_conforming_strings\" to \"off\" is not supported",
    );
}

/// It is of the outer query too if only a subquery within its arguments reads columns of that.
#[test]
fn aggregates_of_outer_queries_are_refused() {
    let mut world = World::new();
    let mut client = world.session();
    check(
        client.run(
            "create table o(f int); insert into o values (1), (2);
             select (select count((select o.f + z.f)) from o z) from o",
        ),
        "CREATE TABLE
         INSERT 0 2
         2
         2",
    );
    let refused = "ERROR:  0A000: an aggregate of an outer query is not supported";
    for select in [
        "select (select max(o.f)) from o",
        "select (select max((select i.f from o i where i.f = o.f))) from o",
        "select (select count((select o.f)) from o z) from o",
        "select (select sum(1) filter (where (select o.f > 1)) from o z) from o",
    ] {
        check(client.run(select), refused);
    }
}

#[test]
fn names_are_chosen_as_postgresql_chooses_them() {
    let mut world = World::new();
    let mut client = world.session();
    check(
        client.lines(
            "create table p (id serial primary key, n text unique)
             create table c (id int generated always as identity, p int references p, a int check (a > 0), d int default 1 + 1)
             create index on c (a, d desc)
             insert into p (n) values ('a'), ('b') returning id
             insert into c (p, a) values (1, 1) returning id, d
             insert into c (p, a) values (9, 1)
             insert into c (p, a) values (1, 0)
             delete from p where id = 1
             select indexname from pg_indexes order by 1
             select conname from pg_constraint order by 1
             select sequencename, last_value from pg_sequences order by 1
             drop table p
             drop table p cascade
             drop table if exists p",
        ),
        "CREATE TABLE
         CREATE TABLE
         CREATE INDEX
         1
         2
         INSERT 0 2
         1|2
         INSERT 0 1
         ERROR:  23503: insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\"
         DETAIL:  Key (p)=(9) is not present in table \"p\".
         ERROR:  23514: new row for relation \"c\" violates check constraint \"c_a_check\"
         DETAIL:  Failing row contains (3, 1, 0, 2).
         ERROR:  23503: update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\"
         DETAIL:  Key (id)=(1) is still referenced from table \"c\".
         c_a_d_idx
         p_n_key
         p_pkey
         c_a_check
         c_p_fkey
         p_n_key
         p_pkey
         c_id_seq|3
         p_id_seq|2
         ERROR:  2BP01: cannot drop table p because other objects depend on it
         DETAIL:  constraint c_p_fkey on table c depends on table p
         HINT:  Use DROP ... CASCADE to drop the dependent objects too.
         NOTICE:  00000: drop cascades to constraint c_p_fkey on table c
         DROP TABLE
         NOTICE:  00000: table \"p\" does not exist, skipping
         DROP TABLE",
    );
}

#[test]
fn a_table_is_altered_with_its_rows() {
    let mut world = World::new();
    let mut client = world.session();
    check(
        client.lines(
            "create table t (a int, b text)
             insert into t values (2, 'x'), (1, 'y'), (3, null)
             alter table t add primary key (a)
             alter table t add column c int default 7
             alter table t alter column b set not null
             update t set b = 'z' where b is null
             alter table t alter column b set not null
             alter table t add constraint u unique (b)
             alter table t rename column b to bb
             select * from t order by a
             alter table t drop column c
             alter table t alter column a type bigint
             insert into t values (3000000000, 'q')
             select * from t order by a
             alter table t drop constraint t_pkey
             insert into t values (3, 'r')
             create view v as select * from t
             alter table t add column d int
             select count(*) from v
             drop table t
             truncate t
             select count(*) from v",
        ),
        "CREATE TABLE
         INSERT 0 3
         ALTER TABLE
         ALTER TABLE
         ERROR:  23502: column \"b\" of relation \"t\" contains null values
         UPDATE 1
         ALTER TABLE
         ALTER TABLE
         ALTER TABLE
         1|y|7
         2|x|7
         3|z|7
         ALTER TABLE
         ALTER TABLE
         INSERT 0 1
         1|y
         2|x
         3|z
         3000000000|q
         ALTER TABLE
         INSERT 0 1
         CREATE VIEW
         ALTER TABLE
         5
         ERROR:  2BP01: cannot drop table t because other objects depend on it
         DETAIL:  view v depends on table t
         HINT:  Use DROP ... CASCADE to drop the dependent objects too.
         TRUNCATE TABLE
         0",
    );
}

#[test]
fn copy_brings_rows_in_and_out() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table ct (a int, b text, c numeric(5,2) default 7, d int not null default 3, check (a < 100))");
    check(client.copy("copy ct from stdin", "1\tx\\ty\t1.5\t2\n\\N\t\\N\t\\N\t4\n\\.\n"), "COPY 2");
    check(client.copy("copy ct (a, b) from stdin (format csv, header)", "a,b\n2,\"q\"\"\nr\"\n3,\n"), "COPY 2");
    check(
        client.copy("copy ct (a, b) from stdin", "1\n"),
        "ERROR:  22P04: missing data for column \"b\"
         CONTEXT:  COPY ct, line 1: \"1\"",
    );
    check(
        client.copy("copy ct (a, b) from stdin", "no\n"),
        "ERROR:  22P02: invalid input syntax for type integer: \"no\"
         CONTEXT:  COPY ct, line 1, column a: \"no\"",
    );
    check(
        client.copy("copy ct (a, b) from stdin", "1\t2\nx\t2\n"),
        "ERROR:  22P02: invalid input syntax for type integer: \"x\"
         CONTEXT:  COPY ct, line 2, column a: \"x\"",
    );
    check(
        client.copy("copy ct (a, b) from stdin", "1\t2\n200\t\\N\n"),
        "ERROR:  23514: new row for relation \"ct\" violates check constraint \"ct_a_check\"
         DETAIL:  Failing row contains (200, null, 7.00, 3).
         CONTEXT:  COPY ct, line 2: \"200\t\\N\"",
    );
    check(
        client.run("copy ct to stdout"),
        "1\tx\\ty\t1.50\t2
         \\N\t\\N\t\\N\t4
         2\tq\"\\nr\t7.00\t3
         3\t\\N\t7.00\t3
         COPY 4",
    );
    check(client.run("copy (select b from ct where a = 1) to stdout (format csv, force_quote *)"), "\"x\ty\"\nCOPY 1");
}

#[test]
fn rows_and_sequences_survive_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.lines(
        "create table t (id serial primary key, a text)
         insert into t (a) values ('x'), ('y')
         create schema s
         create table s.u (a int)
         insert into s.u values (5)",
    );
    let mut world = world.crash(client);
    let mut client = world.session();
    check(client.run("select id, a from t order by id"), "1|x\n2|y");
    check(client.run("select a from s.u"), "5");
    let next: i64 = client.run("insert into t (a) values ('z') returning id")[0].parse().expect("a number");
    assert!((3..=40).contains(&next), "{next}");
}

#[test]
fn a_portal_stops_at_its_limit_and_goes_on() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int primary key)");
    client.run("insert into t values (1), (2), (3), (4), (5)");
    let session = &mut client.0;
    session.parse("s", "select a from t where a > $1 order by a", &[]).expect("it is parsed");
    let (types, fields) = session.describe_statement("s").expect("it is described");
    assert_eq!((types, fields.map(|columns| columns.fields().len())), (vec![23], Some(1)));
    session.bind("", "s", &[Parameter { format: 0, value: Some(b"1") }], Formats::default()).expect("it is bound");
    let mut lines = Vec::new();
    for limit in [2, 2, 2] {
        let outcome = client.0.execute("", limit).expect("it runs");
        client.outcome(outcome, &mut lines).expect("rows");
    }
    check(lines, "2\n3\nportal suspended\n4\n5\nportal suspended");
    client.0.sync().expect("the transaction ends");
    assert_eq!(client.0.transaction_status(), b'I');
}

#[test]
fn an_error_in_a_pipeline_undoes_it_up_to_its_beginning() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int primary key)");
    let session = &mut client.0;
    session.parse("", "insert into t values ($1)", &[]).expect("it is parsed");
    for value in [b"1", b"2"] {
        session.bind("", "", &[Parameter { format: 0, value: Some(value) }], Formats::default()).expect("it is bound");
        let outcome = session.execute("", 0).expect("it runs");
        assert!(matches!(outcome, Outcome::Done { tag } if tag == "INSERT 0 1"));
    }
    session.bind("", "", &[Parameter { format: 0, value: Some(b"2") }], Formats::default()).expect("it is bound");
    assert_eq!(session.execute("", 0).expect_err("a duplicate").state, "23505");
    session.sync().expect("nothing is open");
    check(client.run("select count(*) from t"), "0");
}

/// A constant of unknown type is of each bound's type, so '5' is below 10 as a number and not as a text.
#[test]
fn between_takes_a_constant_anew_for_each_bound() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int); insert into t values (3), (7)");
    for _ in 0..2 {
        assert_eq!(client.run("select a from t where '5' between a and '10'"), Vec::<String>::new());
        assert_eq!(client.run("select a from t where '5' between a and '9'"), ["3"]);
        assert_eq!(client.run("select a from t where '5' between symmetric '10' and a"), ["7"]);
    }
    client.run("prepare p as select a from t where $1 between a and $2");
    assert_eq!(client.run("execute p('5', '10')"), ["3"]);
}

/// The numbers of pages and records depend on the form of the data, so they are not compared with the real server's.
#[test]
fn explain_counts_pages_and_wal_records_of_each_node() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key, a text); insert into t select n, repeat('x', 400) from generate_series(1, 2000) n; analyze t");
    let figure = |lines: &[String], name: &str| -> Vec<u64> {
        let values = lines.iter().flat_map(|line| line.lines()).filter_map(|line| line.split_once(name));
        values.map(|(_, rest)| rest.trim_end_matches(',').parse().expect("a number")).collect()
    };
    let one = client.run("explain (analyze, buffers, wal, format json) select a from t where id = 7");
    let all = client.run("explain (analyze, buffers, format json) select count(a) from t");
    let (point, scan) = (figure(&one, "\"Shared Hit Blocks\": "), figure(&all, "\"Shared Hit Blocks\": "));
    // That of planning is the last.
    assert!(point.len() == 2 && (1..20).contains(&point[0]), "{one:?}");
    assert!(scan.len() == 3 && scan[0] >= scan[1] && scan[1] >= 200, "{all:?}");
    assert_eq!(figure(&one, "\"WAL Records\": "), [0]);
    assert_eq!(figure(&all, "\"Shared Read Blocks\": "), [0; 3]);
    let change = "update t set a = repeat('y', 400) where id <= 100";
    let changed = client.run(&format!("explain (analyze, wal, timing off, summary off, costs off, buffers) {change}"));
    let wal = changed.iter().find(|line| line.contains("WAL: records=")).expect("the change writes records");
    let records: u64 = wal.split(['=', ' ']).filter_map(|word| word.parse().ok()).next().expect("a number");
    assert!(records >= 100 && wal.contains("bytes="), "{changed:?}");
    assert!(changed[0].contains("Update on t") && changed[1].starts_with("  Buffers: shared hit="), "{changed:?}");
    assert!(client.run("explain (analyze, wal off) select 1").iter().all(|line| !line.contains("WAL")));
    assert!(client.run("explain (buffers) select 1").iter().all(|line| !line.contains("Buffers")));
    for (statement, message) in [
        ("explain (wal) select 1", "ERROR:  22023: EXPLAIN option WAL requires ANALYZE"),
        ("explain (timing) select 1", "ERROR:  22023: EXPLAIN option TIMING requires ANALYZE"),
    ] {
        assert_eq!(client.run(statement), [message]);
    }
    let yaml = client.run("explain (analyze, buffers, format yaml) select 1").join("\n");
    assert!(yaml.contains("  Planning: \n    Shared Hit Blocks: "), "{yaml}");
}
