//! Forms of tables after restarts and crashes, and among sessions: generated columns, functional indexes, tables from queries, temporary tables.

use crate::support::{World, run};

/// Everything of the database agrees.
fn assert_sound(world: &World) {
    let report = sql_mysql::check::check(&world.db).expect("the walk comes to its end");
    assert_eq!(report.problems, Vec::<String>::new());
}

fn all_ok(session: &mut sql_mysql::Session, statements: &[&str]) {
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

/// QU-8: what an index finds follows from the row's bytes, whoever looks.
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

#[test]
fn a_table_made_from_a_query_is_there_with_its_rows_or_not_at_all() {
    for seed in 74..78 {
        let world = World::new(seed);
        let mut session = world.session(1);
        all_ok(
            &mut session,
            &[
                "create database d",
                "create table d.t (id int primary key, a int)",
                "insert into d.t with recursive c(n) as (select 1 union all select n + 1 from c where n < 500) select n, n % 17 from c",
            ],
        );
        drop(session);
        let world = world.reopen();
        let mut session = world.session(1);
        let made = "create table d.made (id int auto_increment primary key, twice int as (a * 2), key (a), key ((a + 1))) select a, repeat('x', 300) as long_ from d.t";
        assert_eq!(run(&mut session, made), ["ok 500, id 1, Records: 500  Duplicates: 0  Warnings: 0"]);
        assert!(run(&mut session, "create table d.bad (a int unique) select a from d.t")[0].starts_with("error 1062"));
        let world = world.crash();
        drop(session);
        assert_sound(&world);
        let mut session = world.session(1);
        let found = run(&mut session, "select count(*), sum(twice) from d.made where a + 1 > 0");
        assert!(found[0].starts_with("error 1146") || found[1] == "500 | 7944", "{found:?}");
        assert_eq!(run(&mut session, "show tables from d like 'bad'").len(), 1);
    }
}

#[test]
fn a_table_made_from_a_query_waits_for_no_gate_that_another_change_holds() {
    let world = World::new(79);
    let mut one = world.session(1);
    all_ok(&mut one, &["create database d", "create table d.t (id int primary key, a int)"]);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let mut session = world.session(10 + number);
            scope.spawn(move || {
                for round in 0..15 {
                    let sql = match number {
                        0 => format!("alter table d.t add column c{round} int as (a + {round})"),
                        1 => format!("create table d.made{round} select id, a from d.t"),
                        _ => format!("insert into d.t (id, a) values ({round}, {round})"),
                    };
                    let answer = run(&mut session, &sql);
                    assert!(answer[0].starts_with("ok"), "{sql}: {answer:?}");
                }
            });
        }
    });
    assert_sound(&world);
}

/// QU-12: whatever ends a session, nothing of its temporary tables is left.
#[test]
fn temporary_tables_go_with_their_session_and_leave_nothing() {
    let world = World::new(80);
    let mut one = world.session(1);
    all_ok(&mut one, &["create database d", "create table d.t (id int primary key, a int)", "use d"]);
    let maps = world.engine.rows().maps();
    let make = [
        "use d",
        "create temporary table t (id int auto_increment primary key, a int, v int as (a + 1), key (v), key ((a * 2)))",
        "insert into t (a) values (1), (2), (3)",
        "create temporary table u select * from t",
        "alter table u add key (a)",
    ];
    all_ok(&mut one, &make);
    assert!(world.engine.rows().maps().len() > maps.len());
    assert_sound(&world);
    one.reset();
    assert_eq!(world.engine.rows().maps(), maps, "after RESET_CONNECTION");
    assert_eq!(run(&mut one, "select * from t"), ["[id | a]"]);
    all_ok(&mut one, &make);
    all_ok(
        &mut one,
        &["begin", "insert into t (a) values (4)", "drop temporary table t", "insert into u (a) values (5)"],
    );
    let who = sql_mysql::Login { user: "root".into(), host: "localhost".into(), database: None, connection_id: 1 };
    one.change_user(who).expect("root may");
    assert_eq!(world.engine.rows().maps(), maps, "after CHANGE_USER");
    all_ok(&mut one, &make);
    all_ok(&mut one, &["begin", "delete from t", "drop temporary table u"]);
    drop(one);
    assert_eq!(world.engine.rows().maps(), maps, "after the session");
    assert_sound(&world);
    let mut open = world.session(2);
    all_ok(&mut open, &make);
    all_ok(
        &mut open,
        &["begin", "update t set a = a + 1", "create temporary table w like u", "drop temporary table u"],
    );
    // Something durable behind all that, so that the crash leaves it.
    let reopened = {
        let durable = world.session(3);
        drop(durable);
        world.engine.rows().maps().len()
    };
    assert!(reopened > maps.len());
    let world = world.crash();
    drop(open);
    assert_sound(&world);
    // The transaction that the crash has cut may still be rolled back: the server drops its tables when it is told that it no longer is.
    while !world.engine.rows().rolling_back().is_empty() {
        std::thread::yield_now();
    }
    world.db.drop_left_temporary().expect("they can go now");
    assert!(world.engine.rows().maps().len() <= maps.len(), "after a crash");
}

#[test]
fn temporary_tables_that_a_stopped_server_left_go_at_the_next_start() {
    let world = World::new(81);
    let mut one = world.session(1);
    all_ok(&mut one, &["create database d", "use d"]);
    let maps = world.engine.rows().maps();
    all_ok(&mut one, &["create temporary table t (id int primary key, a int, key (a))", "insert into t values (1, 1)"]);
    assert_ne!(world.engine.rows().maps(), maps);
    // The session never says good-bye, as after a kill.
    std::mem::forget(one);
    let World { folder, engine, db } = world;
    engine.close().expect("closing works");
    std::mem::forget(db);
    let world = World::on(folder);
    assert_eq!(world.engine.rows().maps(), maps);
    assert_sound(&world);
}

#[test]
fn sessions_see_their_own_temporary_tables_at_the_same_time() {
    let world = World::new(82);
    let mut one = world.session(1);
    all_ok(&mut one, &["create database d", "create table d.t (id int primary key)", "insert into d.t values (-1)"]);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let mut session = world.session(10 + number);
            scope.spawn(move || {
                all_ok(&mut session, &["use d"]);
                for round in 0..20 {
                    all_ok(
                        &mut session,
                        &[
                            "create temporary table t (id int, who int default 0, key (id))",
                            &format!("insert into t (id) values ({number}), ({round})"),
                            "begin",
                            "insert into t (id) values (1000)",
                            if round % 2 == 0 { "rollback" } else { "commit" },
                        ],
                    );
                    let rows = run(&mut session, "select count(*), min(id) from t where id >= 0");
                    assert_eq!(rows[1], format!("{} | {}", 2 + round % 2, number.min(round)));
                    all_ok(&mut session, &["drop temporary table t"]);
                    assert_eq!(run(&mut session, "select * from t"), ["[id]", "-1"]);
                }
            });
        }
    });
    assert_sound(&world);
}

#[test]
fn check_table_goes_on_beside_writers_and_finds_what_is_wrong() {
    let world = World::new(83);
    let mut one = world.session(1);
    all_ok(
        &mut one,
        &[
            "create database d",
            "use d",
            "create table t (id int primary key, a int, v int as (a * 2), key (v), unique key (a, id))",
            "insert into t (id, a) with recursive c(n) as (select 1 union all select n + 1 from c where n < 400) select n, n from c",
        ],
    );
    std::thread::scope(|scope| {
        let mut writer = world.session(2);
        scope.spawn(move || {
            for round in 0..60 {
                all_ok(&mut writer, &[&format!("update d.t set a = a + 1 where id % 7 = {}", round % 7)]);
            }
        });
        for _ in 0..10 {
            assert_eq!(run(&mut one, "check table t")[1], "d.t | check | status | OK");
        }
    });
    // An entry that has no row.
    let map = *world.engine.rows().maps().last().expect("an index");
    let mut txn = world.engine.rows().begin(engine::rows::Isolation::ReadCommitted);
    txn.insert(map, b"nonsense", &[1, 1, 0], &mut Vec::new()).expect("it is put in");
    txn.commit().expect("it counts");
    let said = run(&mut one, "check table t");
    assert!(said.len() > 2 && said.last().is_some_and(|last| last.ends_with("error | Corrupt")), "{said:?}");
}
