//! Row locks and snapshots of two sessions, as far as nobody has to wait. tests/clients/sql/postgres_anomalies.txt has the waits.

use crate::world::{Client, World, check, resumed, suspend};

fn two(setup: &str) -> (World, Client, Client) {
    let mut world = World::new();
    let (mut one, other) = (world.session(), world.session());
    one.lines(setup);
    (world, one, other)
}

#[test]
fn repeatable_read_fails_at_rows_that_were_changed_and_does_not_meet_new_ones() {
    let (_world, mut one, mut other) =
        two("create table t (a int primary key, b int)\ninsert into t values (1, 1), (2, 2), (3, 3)");
    check(one.lines("begin isolation level repeatable read\nselect count(*) from t"), "BEGIN\n3");
    other.lines("insert into t values (4, 4)\ndelete from t where a = 2\nupdate t set a = 5 where a = 3");
    check(
        one.lines(
            "update t set b = 0 where a = 4
             delete from t where b = 4
             select * from t where a >= 4 for update
             update t set b = 9 where a = 1
             savepoint s
             delete from t where a = 2
             rollback to s
             select * from t where a = 2 for update
             rollback to s
             update t set b = 0 where a = 3
             rollback to s
             insert into t values (4, 0) on conflict do nothing
             rollback to s
             insert into t values (4, 0) on conflict (a) do update set b = 0
             rollback",
        ),
        "UPDATE 0
         DELETE 0
         UPDATE 1
         SAVEPOINT
         ERROR:  40001: could not serialize access due to concurrent delete
         ROLLBACK
         ERROR:  40001: could not serialize access due to concurrent update
         ROLLBACK
         ERROR:  40001: could not serialize access due to concurrent update
         ROLLBACK
         ERROR:  40001: could not serialize access due to concurrent update
         ROLLBACK
         ERROR:  40001: could not serialize access due to concurrent update
         ROLLBACK",
    );
}

#[test]
fn row_locks_have_four_strengths() {
    let names = ["key share", "share", "no key update", "update"];
    let (_world, mut one, mut other) = two("create table t (a int primary key)\ninsert into t values (1)");
    for (nth, held) in names.into_iter().enumerate() {
        check(one.lines(&format!("begin\nselect * from t for {held}")), "BEGIN\n1");
        for (wanted, name) in names.into_iter().enumerate() {
            let found = other.run(&format!("select * from t for {name} nowait"));
            let refused = "ERROR:  55P03: could not obtain lock on row in relation \"t\"";
            check(found, if nth + wanted < 3 { "1" } else { refused });
            let skipped = other.run(&format!("select * from t for {name} skip locked"));
            check(skipped, if nth + wanted < 3 { "1" } else { "" });
        }
        check(one.run("rollback"), "ROLLBACK");
    }
}

#[test]
fn a_foreign_key_lets_other_columns_of_its_parent_change() {
    let (_world, mut one, mut other) = two("create table p (a int primary key, b int unique, v int)
         create table c (a int primary key, p int references p, q int references p (b))
         insert into p values (1, 1, 1), (2, 2, 2)");
    check(one.lines("begin\ninsert into c values (1, 1, 2)"), "BEGIN\nINSERT 0 1");
    check(other.lines("set lock_timeout = 1\nupdate p set v = v + 1"), "SET\nUPDATE 2");
    let refused = "ERROR:  55P03: canceling statement due to lock timeout";
    check(other.run("delete from p where a = 1"), refused);
    check(other.run("update p set b = 3 where a = 2"), refused);
    check(one.run("commit"), "COMMIT");
    // The other way round: a child comes while its parent is being changed.
    check(other.lines("begin\nupdate p set v = v + 1"), "BEGIN\nUPDATE 2");
    check(one.run("insert into c values (2, 2, 1)"), "INSERT 0 1");
    check(other.run("commit"), "COMMIT");
}

#[test]
fn a_rollback_to_a_savepoint_gives_back_locks() {
    let (_world, mut one, mut other) =
        two("create table t (a int primary key, b int)\ninsert into t values (1, 1), (2, 2), (3, 3)");
    one.lines("begin\nselect a from t where a = 1 for update\nsavepoint s\nselect a from t where a = 2 for update");
    let free = "select a from t order by a for update skip locked";
    check(other.run(free), "3");
    one.run("rollback to s");
    check(other.run(free), "2\n3");
    one.lines("select a from t where a = 3 for update\nselect 1 / 0");
    check(other.run(free), "2\n3");
    check(one.lines("rollback to s\ncommit"), "ROLLBACK\nCOMMIT");
    check(other.run(free), "1\n2\n3");
}

#[test]
fn a_limit_locks_the_rows_that_it_returns() {
    let (_world, mut one, mut other) = two("create table t (a int primary key, b int)
         insert into t select i, 100 - i from generate_series(1, 50) i");
    check(one.lines("begin\nselect a from t order by b limit 2 for update"), "BEGIN\n50\n49");
    check(other.lines("begin\nselect a from t order by b limit 1 for update skip locked"), "BEGIN\n48");
    check(one.run("select a from t order by b offset 1 limit 1 for update skip locked"), "49");
    check(other.run("select count(*) from (select a from t order by a limit 40) x"), "40");
    check(one.run("select a from t order by a limit 1 for share skip locked"), "1");
    check(other.run("select a from t order by a limit 1 for update skip locked"), "2");
    let parent = "select t.a from t, (values (1), (2)) v (x) where x = a order by b for update of t skip locked";
    check(other.run(parent), "2");
}

#[test]
fn an_insert_that_meets_a_locked_row_waits_for_it_without_a_thread() {
    let (mut world, mut one, mut other) = two("create table t (a int primary key, b int)\ninsert into t values (1, 0)");
    check(one.lines("begin\nselect a from t for update"), "BEGIN\n1");
    let text = "insert into t values (1, 1) on conflict (a) do update set b = t.b + excluded.b";
    let mut third = world.session();
    // A wait that blocks its thread ends.
    let mut waiting = [&mut other, &mut third].map(|client| {
        check(client.run("set lock_timeout = '20s'"), "SET");
        let wait = suspend(client, text);
        (client, wait)
    });
    check(one.run("commit"), "COMMIT");
    for (client, _wait) in &mut waiting {
        check(resumed(client), "INSERT 0 1");
    }
    check(one.run("select b from t"), "2");
}

/// A statement that failed and was rolled back may have left a check of a foreign key (QU-5) to the next one, which has changed nothing itself.
#[test]
fn a_check_behind_a_statement_without_changes_waits_and_does_not_suspend() {
    let (_world, mut one, mut other) = two("create table p (a int primary key)\ncreate table c (b int references p)");
    check(one.lines("insert into p values (1), (2)\ninsert into c values (1)"), "INSERT 0 2\nINSERT 0 1");
    check(one.lines("set lock_timeout = '1ms'\nbegin\nsavepoint s"), "SET\nBEGIN\nSAVEPOINT");
    let failed = one.run("delete from p where a in (1, 2) returning 1 / (a - 2)");
    assert!(failed[0].contains("division by zero"), "{failed:?}");
    check(one.run("rollback to s"), "ROLLBACK");
    check(other.lines("begin\ndelete from c\ndelete from p where a = 1"), "BEGIN\nDELETE 1\nDELETE 1");
    let mut script = one.0.simple("delete from p where a = 3").expect("it parses");
    one.0.allow_suspension();
    let Err(error) = one.0.next_of(&mut script) else { panic!("the check waits for the other transaction") };
    assert_eq!(error.message, "canceling statement due to lock timeout");
}

#[test]
fn an_insert_does_not_wait_for_a_lock_on_a_row_that_is_there() {
    let (_world, mut one, mut other) = two("create table t (a int primary key)\ninsert into t values (1)");
    check(one.lines("begin\nselect * from t for update"), "BEGIN\n1");
    check(
        other.run("insert into t values (1)"),
        "ERROR:  23505: duplicate key value violates unique constraint \"t_pkey\"
         DETAIL:  Key (a)=(1) already exists.",
    );
    check(other.run("insert into t values (1) on conflict do nothing"), "INSERT 0 0");
}

#[test]
fn locks_are_refused_where_rows_cannot_be_named() {
    let (_world, mut one, _) = two("create table t (a int primary key)\ncreate table u (a int primary key)");
    for (query, expected) in [
        (
            "select * from t left join t u using (a) for update",
            "FOR UPDATE cannot be applied to the nullable side of an outer join",
        ),
        ("with w as (select 1) select * from w for share of w", "FOR SHARE cannot be applied to a WITH query"),
        ("select * from generate_series(1, 2) s for key share of s", "FOR KEY SHARE cannot be applied to a function"),
        ("select distinct a from t for update", "FOR UPDATE is not allowed with DISTINCT clause"),
    ] {
        check(one.run(query), &format!("ERROR:  0A000: {expected}"));
    }
    check(one.run("select * from t left join t u using (a) for update of t"), "");
    for query in
        ["select * from (select * from t limit 1) s for update", "select * from pg_class for update of pg_class"]
    {
        assert!(one.run(query)[0].starts_with("ERROR:  0A000"), "{query}");
    }
    check(one.run("select * from t, (values (1)) v (b) for update"), "");
}

#[test]
fn a_lock_of_a_subquery_that_chooses_rows_is_one_of_its_tables() {
    let (_world, mut one, mut other) = two("create table t (a int primary key, b int)
         insert into t values (1, 1), (2, 2), (3, 3)");
    check(
        one.lines("begin\nselect a from (select a from t where b > 1) v order by a desc limit 1 for update"),
        "BEGIN\n3",
    );
    check(other.run("select a from t order by a for update skip locked"), "1\n2");
    let named = "select s.a from (select x.a from t x where b < 3) s, t where t.a = s.a order by 1 for update of s";
    check(one.run(named), "1\n2");
    check(other.run("select a from t for update skip locked"), "");
}

#[test]
fn advisory_locks_are_of_a_database_and_end_with_their_session() {
    let (_world, mut one, mut other) = two("create table t (a int primary key)");
    check(
        one.lines("select 1, pg_advisory_lock(4294967296), pg_advisory_xact_lock(5), pg_try_advisory_lock(1, 0)"),
        "1|||t",
    );
    check(
        other.lines(
            "select pg_try_advisory_lock(4294967296), pg_try_advisory_lock(1, 0), pg_try_advisory_xact_lock(5)
             select classid, objid, objsubid, mode, granted from pg_locks where locktype = 'advisory' order by objsubid
             select pg_advisory_unlock(1, 0)",
        ),
        "f|f|t
         1|0|1|ExclusiveLock|t
         1|0|2|ExclusiveLock|t
         f
         WARNING:  01000: you don't own a lock of type ExclusiveLock",
    );
    drop(one);
    check(other.lines("select pg_try_advisory_lock_shared(4294967296), pg_try_advisory_lock(1, 0)"), "t|t");
    other.run("discard all");
    check(other.lines("select count(*) from pg_locks where locktype = 'advisory'"), "0");
}

#[test]
fn a_locked_table_is_refused_without_waiting_and_given_back_to_a_savepoint() {
    let (_world, mut one, mut other) = two("create table t (a int primary key)\ncreate view v as select * from t");
    check(
        one.lines("lock table t\nbegin\nsavepoint s\nlock table only t"),
        "ERROR:  25P01: LOCK TABLE can only be used in transaction blocks\nBEGIN\nSAVEPOINT\nLOCK TABLE",
    );
    check(
        other.lines("begin\nlock t in access share mode nowait"),
        "BEGIN\nERROR:  55P03: could not obtain lock on relation \"t\"",
    );
    other.run("rollback");
    check(one.lines("rollback to s\nlock table t in row exclusive mode"), "ROLLBACK\nLOCK TABLE");
    check(
        other.lines(
            "begin
             lock t in row share mode nowait
             savepoint s
             lock t nowait
             rollback to s
             lock table t in share mode nowait
             rollback to s
             lock table v
             rollback",
        ),
        "BEGIN
         LOCK TABLE
         SAVEPOINT
         ERROR:  55P03: could not obtain lock on relation \"t\"
         ROLLBACK
         ERROR:  55P03: could not obtain lock on relation \"t\"
         ROLLBACK
         ERROR:  0A000: LOCK TABLE of a view is not supported
         ROLLBACK",
    );
    one.run("rollback");
    check(other.lines("begin\nlock t nowait\nselect * from t\ncommit"), "BEGIN\nLOCK TABLE\nCOMMIT");
}

#[test]
fn the_eight_modes_of_tables_conflict_as_the_manual_says() {
    const MODES: [&str; 8] = [
        "access share",
        "row share",
        "row exclusive",
        "share update exclusive",
        "share",
        "share row exclusive",
        "exclusive",
        "access exclusive",
    ];
    const CONFLICTS: [&str; 8] =
        ["       x", "      xx", "    xxxx", "   xxxxx", "  xx xxx", "  xxxxxx", " xxxxxxx", "xxxxxxxx"];
    let (_world, mut one, mut other) = two("create table t (a int primary key)");
    for (row, held) in CONFLICTS.iter().zip(MODES) {
        for (cell, wanted) in row.bytes().zip(MODES) {
            check(one.lines(&format!("begin\nlock t in {held} mode")), "BEGIN\nLOCK TABLE");
            let answer = match cell {
                b'x' => "BEGIN\nERROR:  55P03: could not obtain lock on relation \"t\"\nROLLBACK",
                _ => "BEGIN\nLOCK TABLE\nROLLBACK",
            };
            check(other.lines(&format!("begin\nlock t in {wanted} mode nowait\nrollback")), answer);
            check(one.lines(&format!("lock t in {wanted} mode nowait\nrollback")), "LOCK TABLE\nROLLBACK");
        }
    }
}

#[test]
fn statements_take_the_table_locks_of_what_they_do() {
    let (_world, mut one, mut other) = two("create table p (a int primary key)
         create table c (a int primary key, p int references p)
         insert into p values (1)");
    other.run("set lock_timeout = '1ms'");
    let timeout = "ERROR:  55P03: canceling statement due to lock timeout";
    one.lines("begin\nlock p in share mode");
    check(other.run("select a from p for update"), "1");
    check(other.run("insert into c values (1, 1)"), "INSERT 0 1");
    check(other.run("update p set a = 1"), timeout);
    check(one.run("update p set a = 1"), "UPDATE 1");
    one.lines("rollback\nbegin\nsavepoint s\nlock p in exclusive mode");
    check(other.run("select a from p"), "1");
    check(other.run("select a from p for key share"), timeout);
    check(other.run("select a from (select a from p for share) v"), timeout);
    check(other.run("insert into c values (2, 1)"), timeout);
    check(other.run("delete from p"), timeout);
    check(one.run("rollback to s"), "ROLLBACK");
    check(other.run("insert into c values (2, 1)"), "INSERT 0 1");
    one.lines("savepoint s\nupdate p set a = 1\nrollback to s");
    check(other.lines("begin\nlock p in share mode nowait\nrollback"), "BEGIN\nLOCK TABLE\nROLLBACK");
    check(other.lines("begin\nlock p nowait\nrollback"), "BEGIN\nLOCK TABLE\nROLLBACK");
    one.lines("rollback\nbegin\nlock p in exclusive mode\nselect 1 from c for update");
    check(
        other.run("select relation::regclass, mode, granted, waitstart is null from pg_locks where locktype = 'relation' order by relation::regclass::text, 2"),
        "c|RowShareLock|t|t
         p|ExclusiveLock|t|t",
    );
    check(other.run("select pg_blocking_pids(pg_backend_pid()), pg_blocking_pids(0)"), "{}|{}");
}

#[test]
fn the_schemas_of_the_path_are_an_array_and_options_a_table() {
    let (_world, mut one, _) = two("create schema app");
    check(
        one.lines(
            "set search_path = app, nowhere, public
             select current_schemas(false), current_schemas(true)
             select * from pg_options_to_table('{a=1,b,c=d=e}') where option_name <> ''",
        ),
        "SET
         {app,public}|{pg_catalog,app,public}
         a|1
         b|
         c|d=e",
    );
}

#[test]
fn a_name_is_an_array_of_its_bytes() {
    let (_world, mut one, _) = two("create schema app");
    check(
        one.lines(
            "select ('abc'::name)[0], ('abc'::name)[2], ('abc'::name)[5] = '', ('abc'::name)[64], ('abc'::name)[-1]
             select ('\u{e9}'::name)[0]::int, (null::name)[0], ('abc'::name)[0][1]
             select ('abc'::name)[0:1]
             select count(*) from pg_type where typname[0] = '_' and typelem <> 0 and typname = '_int4'",
        ),
        "a|c|t||
         -61||
         ERROR:  0A000: slices of fixed-length arrays not implemented
         1",
    );
}
