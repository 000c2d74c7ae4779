//! What tables can be, after restarts and crashes and among sessions: generated columns, functional indexes.

use crate::support::{World, run};

/// Everything of the database agrees.
fn assert_sound(world: &World) {
    let report = query::check::check(&world.db).expect("the walk comes to its end");
    assert_eq!(report.problems, Vec::<String>::new());
}

fn all_ok(session: &mut query::Session, statements: &[&str]) {
    for sql in statements {
        let answer = run(session, sql);
        assert!(answer[0].starts_with("ok"), "{sql}: {answer:?}");
    }
}

#[test]
fn generated_columns_and_functional_indexes_survive_a_restart() {
    let world = World::new(71);
    let mut session = world.session(1);
    all_ok(
        &mut session,
        &[
            "create database d",
            "use d",
            "create table t (id int primary key, a int, v int as (a + 1), s int as (v * 2) stored, w varchar(9) as (concat('#', a)), key (w), unique key x ((a * 3)))",
            "insert into t (id, a) values (1, 10), (2, 20), (3, null)",
        ],
    );
    drop(session);
    let world = world.reopen();
    assert_sound(&world);
    let mut session = world.session(1);
    run(&mut session, "use d");
    all_ok(&mut session, &["update t set a = 30 where w = '#10'", "insert into t (id, a) values (4, 40)"]);
    assert_eq!(
        run(&mut session, "select * from t order by a * 3"),
        [
            "[id | a | v | s | w]",
            "3 | NULL | NULL | NULL | NULL",
            "2 | 20 | 21 | 42 | #20",
            "1 | 30 | 31 | 62 | #30",
            "4 | 40 | 41 | 82 | #40"
        ]
    );
    assert_eq!(
        run(&mut session, "insert into t (id, a) values (5, 40)"),
        ["error 1062 Duplicate entry '120' for key 't.x'"]
    );
    assert_eq!(run(&mut session, "select id from t where a * 3 = 90"), ["[id]", "1"]);
    assert_sound(&world);
}

/// G1: what an index finds follows from the row's bytes, whoever looks.
#[test]
fn an_index_over_an_expression_that_depends_on_the_session_agrees_with_its_table() {
    let world = World::new(72);
    let (mut one, mut two) = (world.session(1), world.session(2));
    all_ok(
        &mut one,
        &[
            "create database d",
            "create table d.t (id int primary key, ts timestamp, day date as (ts), key (day), key h ((hour(ts))))",
            "insert into d.t (id, ts) values (1, '2020-01-01 23:00:00'), (2, '2020-01-02 01:00:00')",
        ],
    );
    all_ok(
        &mut two,
        &[
            "set time_zone = '+10:00'",
            "update d.t set id = 3 where id = 1",
            "insert into d.t (id, ts) values (4, '2020-01-01 23:00:00')",
            "delete from d.t where id = 2",
        ],
    );
    assert_sound(&world);
    assert_eq!(
        run(&mut one, "select id from d.t force index (day) where day = '2020-01-01' order by id"),
        ["[id]", "3", "4"]
    );
}

#[test]
fn a_crash_around_ddl_leaves_generated_columns_whole() {
    let mut world = World::new(73);
    let mut session = world.session(1);
    all_ok(
        &mut session,
        &[
            "create database d",
            "create table d.t (id int primary key, a int)",
            "insert into d.t with recursive c(n) as (select 1 union all select n + 1 from c where n < 300) select n, n % 17 from c",
        ],
    );
    drop(session);
    world = world.reopen();
    for sql in [
        "alter table d.t add column v int as (a * 2), add column s varchar(20) as (concat('s', a)) stored, add key (v)",
        "create index f on d.t ((a + id), (lower(s)))",
        "alter table d.t drop key v, add key sv (s, v)",
        "alter table d.t modify column v bigint as (a * 7)",
        "alter table d.t drop key f, drop key sv",
        "alter table d.t drop column v, drop column s",
    ] {
        let mut session = world.session(1);
        // Nobody waits until it is on disk: after the crash it is there, or not at all.
        all_ok(&mut session, &[sql, "begin", "update d.t set a = a + 1"]);
        std::mem::forget(session);
        world = world.crash();
        assert_sound(&world);
        let mut session = world.session(1);
        assert_eq!(run(&mut session, "select count(*), sum(a) from d.t")[1], "300 | 2378", "after {sql}");
        run(&mut session, sql);
        all_ok(&mut session, &["update d.t set a = 16 - a", "update d.t set a = 16 - a"]);
        assert_sound(&world);
        drop(session);
        world = world.reopen();
        assert_sound(&world);
    }
}
