//! REINDEX, VACUUM FULL, CHECKPOINT, DROP INDEX CONCURRENTLY, and constraints that are added in steps: NOT VALID with VALIDATE, and of an index. The answers are those of PostgreSQL 16.

use crate::world::{Client, World, check};

fn world() -> (World, Client, Client) {
    let mut world = World::new();
    let (mut one, other) = (world.session(), world.session());
    one.lines("create table t (id int primary key, x int, y text)\ncreate index t_x on t (x)\ncreate unique index \"T_X\" on t (x, y)\ncreate index on t ((x + 1)) where y is not null");
    one.lines("insert into t select n, n % 10, 'y' || n from generate_series(1, 300) as n\nanalyze t\ncreate table u (id int)");
    (world, one, other)
}

fn by_index(client: &mut Client, condition: &str) -> String {
    let plan = client.run(&format!("explain select id from t where {condition}")).concat();
    assert!(plan.contains("Index"), "{plan}");
    client.run(&format!("select count(*) from t where {condition}")).join(",")
}

#[test]
fn indexes_that_are_built_anew_lead_to_every_row() {
    let (_world, mut one, mut other) = world();
    check(other.run("begin isolation level repeatable read"), "BEGIN");
    check(other.run("select count(*) from u"), "0");
    one.lines("update t set x = 77 where id = 5\ndelete from t where id = 15");
    for statement in
        ["index t_x", "index \"T_X\"", "table t", "(verbose) table concurrently t", "schema public", "database"]
    {
        check(one.run(&format!("reindex {statement}")), "REINDEX");
        assert_eq!(by_index(&mut one, "x = 5"), "28");
        assert_eq!(by_index(&mut one, "x = 77"), "1");
        assert_eq!(by_index(&mut one, "x = 77 and y = 'y5'"), "1");
        assert_eq!(by_index(&mut one, "x + 1 = 6 and y is not null"), "28");
        assert!(one.run("insert into t values (500, 77, 'y5')").concat().contains("23505"));
        assert!(one.run("insert into t values (5)").concat().contains("23505"));
    }
    // A snapshot that is older than the rows' new places.
    check(other.run("select count(*) from u"), "0");
    let late = other.run("select count(*) from t where x = 5").concat();
    assert!(late.contains("ERROR"), "{late}");
    check(other.run("rollback"), "ROLLBACK");
    assert_eq!(by_index(&mut other, "x = 77"), "1");
}

#[test]
fn an_index_that_is_built_anew_is_left_out_under_an_older_snapshot() {
    let (_world, mut one, mut other) = world();
    check(other.run("begin isolation level repeatable read"), "BEGIN");
    check(other.run("select count(*) from u"), "0");
    one.lines("update t set x = 77 where id = 5\nreindex index t_x\nreindex index \"T_X\"");
    check(other.run("select count(*) from t where x = 5"), "30");
    check(other.run("select count(*) from t where x = 77"), "0");
    check(other.run("commit"), "COMMIT");
    check(other.run("select count(*) from t where x = 77"), "1");
}

#[test]
fn a_reindex_that_is_undone_leaves_the_index_as_it_was() {
    let (_world, mut one, mut other) = world();
    check(one.run("begin"), "BEGIN");
    check(one.run("update t set x = 77 where id = 5"), "UPDATE 1");
    check(one.run("reindex index t_x"), "REINDEX");
    assert_eq!(by_index(&mut one, "x = 77"), "1");
    check(one.run("rollback"), "ROLLBACK");
    for client in [&mut one, &mut other] {
        assert_eq!(by_index(client, "x = 5"), "30");
        assert_eq!(by_index(client, "x = 77"), "0");
    }
}

#[test]
fn reindex_says_what_is_wrong() {
    let (_world, mut one, _) = world();
    for (statement, answer) in [
        ("reindex table u", "NOTICE:  00000: table \"u\" has no indexes to reindex\nREINDEX"),
        ("reindex index u", "ERROR:  42809: \"u\" is not an index"),
        ("reindex index nothing", "ERROR:  42P01: relation \"nothing\" does not exist"),
        ("reindex table t_x", "ERROR:  42809: \"t_x\" is not a table or materialized view"),
        ("reindex schema nothing", "ERROR:  3F000: schema \"nothing\" does not exist"),
        ("reindex database nothing", "ERROR:  0A000: can only reindex the currently open database"),
        ("reindex (quickly) table t", "ERROR:  42601: unrecognized REINDEX option \"quickly\""),
        ("reindex system concurrently", "ERROR:  0A000: cannot reindex system catalogs concurrently"),
        (
            "drop index concurrently t_x, \"T_X\"",
            "ERROR:  0A000: DROP INDEX CONCURRENTLY does not support dropping multiple objects",
        ),
        ("drop index concurrently t_x cascade", "ERROR:  0A000: DROP INDEX CONCURRENTLY does not support CASCADE"),
        (
            "drop index concurrently if exists nothing",
            "NOTICE:  00000: index \"nothing\" does not exist, skipping\nDROP INDEX",
        ),
        ("drop index concurrently t_x", "DROP INDEX"),
        ("begin", "BEGIN"),
        (
            "drop index concurrently \"T_X\"",
            "ERROR:  25001: DROP INDEX CONCURRENTLY cannot run inside a transaction block",
        ),
        ("rollback", "ROLLBACK"),
        ("begin", "BEGIN"),
        ("reindex schema public", "ERROR:  25001: REINDEX SCHEMA cannot run inside a transaction block"),
        ("rollback", "ROLLBACK"),
    ] {
        check(one.run(statement), answer);
    }
}

#[test]
fn vacuum_full_writes_the_rows_anew() {
    let (_world, mut one, mut other) = world();
    check(one.run("delete from t where id > 100"), "DELETE 200");
    check(one.run("vacuum (full, analyze) t, u"), "VACUUM");
    assert_eq!(by_index(&mut one, "x = 5"), "10");
    check(other.run("select count(*), max(id) from t"), "100|100");
    check(one.run("vacuum full"), "VACUUM");
    check(other.run("insert into t values (101, 1, 'z')"), "INSERT 0 1");
    check(one.run("checkpoint"), "CHECKPOINT");
    check(one.run("create unlogged table w (i int)").into_iter().next_back().into_iter().collect(), "CREATE TABLE");
    check(one.run("create role plain"), "CREATE ROLE");
    check(one.run("set role plain"), "SET");
    check(
        one.run("checkpoint"),
        "ERROR:  42501: permission denied to execute CHECKPOINT command\nDETAIL:  Only roles with privileges of the \"pg_checkpoint\" role may execute this command.",
    );
    check(one.run("reindex table t"), "ERROR:  42501: must be owner of table t");
    check(one.run("reindex index t_x"), "ERROR:  42501: must be owner of index t_x");
    check(one.run("reset role"), "RESET");
    check(one.run("grant pg_checkpoint to plain"), "GRANT ROLE");
    check(one.run("set role plain"), "SET");
    check(one.run("checkpoint"), "CHECKPOINT");
}

#[test]
fn a_constraint_that_is_not_valid_binds_new_rows_alone() {
    let (_world, mut one, _) = world();
    one.lines("insert into u values (1), (999)");
    check(one.run("alter table u add constraint c check (id < 100) not valid"), "ALTER TABLE");
    check(one.run("alter table u add constraint f foreign key (id) references t not valid"), "ALTER TABLE");
    check(
        one.run("select conname, convalidated, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'u'::regclass order by 1"),
        "c|f|CHECK ((id < 100)) NOT VALID\nf|f|FOREIGN KEY (id) REFERENCES t(id) NOT VALID",
    );
    assert!(one.run("insert into u values (500)").concat().contains("23514"));
    assert!(one.run("insert into u values (-1)").concat().contains("23503"));
    assert!(one.run("update u set id = 998 where id = 999").concat().contains("23514"));
    // The rows are written anew, and nobody asks whether the old ones satisfy the constraint.
    check(one.run("alter table u add column v int default random() * 0"), "ALTER TABLE");
    check(one.run("vacuum full u"), "VACUUM");
    check(
        one.run("alter table u validate constraint c"),
        "ERROR:  23514: check constraint \"c\" of relation \"u\" is violated by some row",
    );
    check(
        one.run("alter table u validate constraint f"),
        "ERROR:  23503: insert or update on table \"u\" violates foreign key constraint \"f\"\nDETAIL:  Key (id)=(999) is not present in table \"t\".",
    );
    check(one.run("delete from u where id = 999"), "DELETE 1");
    check(one.run("alter table u validate constraint c, validate constraint f"), "ALTER TABLE");
    check(one.run("alter table u validate constraint c"), "ALTER TABLE");
    check(one.run("select count(*) from pg_constraint where conrelid = 'u'::regclass and convalidated"), "2");
    check(
        one.run("alter table u validate constraint nothing"),
        "ERROR:  42704: constraint \"nothing\" of relation \"u\" does not exist",
    );
    check(
        one.run("alter table t validate constraint t_pkey"),
        "ERROR:  42809: constraint \"t_pkey\" of relation \"t\" is not a foreign key or check constraint",
    );
    // A new table has no rows to check.
    check(
        one.run(
            "create table v (id int check (id > 0) not null, constraint f foreign key (id) references t not valid)",
        ),
        "CREATE TABLE",
    );
    check(one.run("select count(*) from pg_constraint where conrelid = 'v'::regclass and convalidated"), "2");
}

#[test]
fn an_index_becomes_a_constraint() {
    let (_world, mut one, _) = world();
    one.lines("create unique index other on u (id)\ncreate unique index by_id on t (id)\ncreate unique index falling on t (id desc)\ncreate unique index part on t (id) where id > 3\ncreate unique index computed on t ((id + 1))");
    let detail = "DETAIL:  Cannot create a primary key or unique constraint using such an index.";
    for (tail, answer) in [
        ("unique using index nothing", "ERROR:  42704: index \"nothing\" does not exist".to_owned()),
        ("unique using index u", "ERROR:  42809: \"u\" is not an index".to_owned()),
        ("unique using index other", "ERROR:  55000: index \"other\" does not belong to table \"t\"".to_owned()),
        (
            "unique using index t_pkey",
            "ERROR:  55000: index \"t_pkey\" is already associated with a constraint".to_owned(),
        ),
        ("unique using index t_x", format!("ERROR:  42809: \"t_x\" is not a unique index\n{detail}")),
        ("unique using index computed", format!("ERROR:  42809: index \"computed\" contains expressions\n{detail}")),
        ("unique using index part", format!("ERROR:  42809: \"part\" is a partial index\n{detail}")),
        (
            "unique using index falling",
            format!(
                "ERROR:  42809: index \"falling\" column number 1 does not have default sorting behavior\n{detail}"
            ),
        ),
        ("unique using index by_id", "ALTER TABLE".to_owned()),
        (
            "unique using index by_id",
            "ERROR:  55000: index \"by_id\" is already associated with a constraint".to_owned(),
        ),
    ] {
        check(one.run(&format!("alter table t add {tail}")), &answer);
    }
    check(
        one.run("alter table t add constraint pair unique using index \"T_X\" deferrable"),
        "NOTICE:  00000: ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"T_X\" to \"pair\"\nALTER TABLE",
    );
    check(
        one.run("select conname, contype, condeferrable from pg_constraint where conrelid = 't'::regclass order by 1"),
        "by_id|u|f\npair|u|t\nt_pkey|p|f",
    );
    assert!(one.run("insert into t values (1000, 1, 'y1')").concat().contains("\"pair\""));
    one.lines("create table w (a int, b int)\ninsert into w values (2, 1), (1, 2)\ncreate unique index wa on w (a)");
    check(
        one.run("alter table w add constraint w_key primary key using index wa"),
        "NOTICE:  00000: ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"wa\" to \"w_key\"\nALTER TABLE",
    );
    check(one.run("select a, b from w order by a"), "1|2\n2|1");
    assert!(one.run("insert into w values (null, 3)").concat().contains("23502"));
    assert!(one.run("insert into w values (1, 3)").concat().contains("\"w_key\""));
    one.run("create unique index wb on w (b)");
    assert!(one.run("alter table w add primary key using index wb").concat().contains("multiple primary keys"));
}

#[test]
fn a_table_like_another_takes_over_what_is_included() {
    let (_world, mut one, _) = world();
    one.lines(
        "create table a (id int generated always as identity (start 10) primary key, x int default 7 not null, d int generated always as (x * 2) stored, n text check (n <> ''), constraint pair unique (x, n) include (d))\n\
         create index on a (lower(n)) where x > 3\ncreate index a_x on a (x desc)\ncomment on column a.x is 'the x'\ncomment on index a_x is 'the index'",
    );
    check(one.run("create table b (first int, like a including all, last int)"), "CREATE TABLE");
    check(
        one.run("select indexdef from pg_indexes where tablename = 'b' order by 1"),
        "CREATE INDEX b_lower_idx ON public.b USING btree (lower(n)) WHERE (x > 3)\nCREATE INDEX b_x_idx ON public.b USING btree (x DESC)\nCREATE UNIQUE INDEX b_pkey ON public.b USING btree (id)\nCREATE UNIQUE INDEX b_x_n_d_key ON public.b USING btree (x, n) INCLUDE (d)",
    );
    check(
        one.run(
            "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'b'::regclass order by 1",
        ),
        "a_n_check|CHECK ((n <> ''::text))\nb_pkey|PRIMARY KEY (id)\nb_x_n_d_key|UNIQUE (x, n) INCLUDE (d)",
    );
    check(one.run("insert into b (first, n, last) values (1, 'A', 9) returning *"), "1|10|7|14|A|9\nINSERT 0 1");
    check(one.run("insert into b (n) values ('B') returning id"), "11\nINSERT 0 1");
    check(one.run("insert into a (n) values ('A') returning id"), "10\nINSERT 0 1");
    check(one.run("select id from b where lower(n) = 'b' and x > 3"), "11");
    assert!(one.run("insert into b (n) values ('A')").concat().contains("\"b_x_n_d_key\""));
    assert!(one.run("insert into b (n) values ('')").concat().contains("23514"));
    check(one.run("select col_description('b'::regclass, 3), obj_description('b_x_idx'::regclass)"), "the x|the index");
    check(
        one.run("create table c (like a including all excluding indexes excluding identity excluding comments)"),
        "CREATE TABLE",
    );
    check(one.run("select count(*) from pg_indexes where tablename = 'c'"), "0");
    check(
        one.run("insert into c values (null)")
            .concat()
            .contains("23502")
            .then_some("refused".to_owned())
            .into_iter()
            .collect(),
        "refused",
    );
    check(one.run("insert into c (id, n) values (1, 'z') returning d"), "14\nINSERT 0 1");
    check(one.run("create table e (like a)"), "CREATE TABLE");
    check(one.run("insert into e (id, x) values (1, 2) returning *"), "1|2||\nINSERT 0 1");
    check(
        one.run("create table f (like a including indexes, primary key (x))"),
        "ERROR:  42P16: multiple primary keys for table \"f\" are not allowed",
    );
}
