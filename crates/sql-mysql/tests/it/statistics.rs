//! Statistics of tables: accuracy, persistence, and their effect on plans.

use crate::support::{World, run};

fn filled(world: &World, rows: usize) -> sql_mysql::Session {
    let mut session = world.session(1);
    for sql in [
        "create database test",
        "use test",
        "create table t (id int primary key, g int, h int, s varchar(20), key g (g), key hs (h, s), key sh (s, h))",
    ] {
        run(&mut session, sql);
    }
    for from in (0..rows).step_by(500) {
        let row = |at: usize| format!("({at},{},{},'{}')", at % 40, at / 10, ["ant", "Bee ", "cat\0x"][at % 3]);
        let values: Vec<String> = (from..(from + 500).min(rows)).map(row).collect();
        assert!(run(&mut session, &format!("insert into t values {}", values.join(",")))[0].starts_with("ok"));
    }
    session
}

/// Cardinalities of the indexes' parts.
fn cardinalities(session: &mut sql_mysql::Session) -> Vec<f64> {
    let sql = "select cardinality from information_schema.statistics where table_name = 't' order by index_name, seq_in_index";
    run(session, sql)[1..].iter().map(|line| line.parse().expect("a number")).collect()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((0.6..1.6).contains(&(found / expected)), "{found} for {expected}");
    }
}

#[test]
fn a_sample_tells_how_many_values_there_are() {
    let world = World::new(21);
    let mut session = filled(&world, 12_000);
    // Once at a statement's expense, once thoroughly. In order: g, hs, PRIMARY, sh.
    let expected = [40.0, 1200.0, 3600.0, 12_000.0, 3.0, 3600.0];
    run(&mut session, "explain select * from t where g = 1");
    assert_near(&cardinalities(&mut session), &expected);
    run(&mut session, "analyze table t");
    assert_near(&cardinalities(&mut session), &expected);
    // Few values are counted one by one.
    assert_eq!(cardinalities(&mut session)[0], 40.0);
    assert_eq!(cardinalities(&mut session)[4], 3.0);
}

#[test]
fn what_is_known_is_there_after_a_crash() {
    let world = World::new(22);
    let mut session = filled(&world, 4000);
    run(&mut session, "analyze table t");
    run(&mut session, "analyze table t update histogram on h with 7 buckets");
    let histograms = "select histogram from information_schema.column_statistics";
    let told = run(&mut session, histograms);
    assert_eq!(told.len(), 2);
    run(&mut session, "analyze table t");
    world.engine.durable().wait(session.durability_lsn());
    let before = cardinalities(&mut session);
    drop(session);
    let world = world.crash();
    let mut session = world.session(1);
    run(&mut session, "use test");
    assert_eq!(cardinalities(&mut session), before);
    assert_eq!(run(&mut session, histograms), told);
    run(&mut session, "analyze table t drop histogram on h");
    run(&mut session, "alter table t drop column h, drop index sh, drop index hs");
    drop(session);
    let world = world.reopen();
    let mut session = world.session(1);
    run(&mut session, "use test");
    assert_eq!(run(&mut session, histograms).len(), 1);
    assert_eq!(cardinalities(&mut session).len(), 2);
    run(&mut session, "drop table t");
    drop(session);
    world.reopen();
}

#[test]
fn a_plan_in_hand_is_made_anew_when_the_table_has_grown() {
    let world = World::new(23);
    let mut session = filled(&world, 500);
    let explain =
        |session: &mut sql_mysql::Session| run(session, "explain select * from t where g = 5 and h < 7").join("\n");
    assert!(explain(&mut session).contains("| 13 |"), "{}", explain(&mut session));
    let prepared = session.prepare("select count(*) from t where g = ?").expect("it parses").handle;
    let count = |session: &mut sql_mysql::Session, value: i64| {
        let outcome = session.execute_prepared(&prepared, vec![sql_mysql::value::Value::Int(value)]);
        crate::support::told(session, outcome)[1].clone()
    };
    assert_eq!(count(&mut session, 5), "13");
    // Nearly all rows have the value now: an index is no help, and both plans notice.
    for from in (10_000..14_000).step_by(500) {
        let values: Vec<String> = (from..from + 500).map(|at| format!("({at},5,1,'x')")).collect();
        run(&mut session, &format!("insert into t values {}", values.join(",")));
    }
    assert_eq!(count(&mut session, 5), "4013");
    assert!(explain(&mut session).contains("| ALL |"), "{}", explain(&mut session));
    assert_eq!(count(&mut session, 5), "4013");
}

#[test]
fn many_sessions_gather_and_define_at_once() {
    let world = World::new(24);
    drop(filled(&world, 3000));
    std::thread::scope(|scope| {
        for id in 2..6u64 {
            let world = &world;
            scope.spawn(move || {
                let mut session = world.session(id);
                run(&mut session, "use test");
                for round in 0..15 {
                    let sql = match (id + round) % 5 {
                        0 => "analyze table t".to_owned(),
                        1 => "analyze table t update histogram on g, s with 5 buckets".to_owned(),
                        2 => format!("alter table t comment = 'c{round}'"),
                        3 => format!("update t set g = g + 1 where id % 7 = {round} and id > {}", id * 500),
                        _ => "select count(*) from t where g < 7 and h between 3 and 99".to_owned(),
                    };
                    let answer = run(&mut session, &sql).join(" ");
                    let is_fine =
                        ["1213 ", "1205 ", "1412 "].iter().any(|code| answer.starts_with(&format!("error {code}")));
                    assert!(!answer.starts_with("error") || is_fine, "{sql}: {answer}");
                }
            });
        }
    });
    let mut session = world.session(9);
    run(&mut session, "use test");
    run(&mut session, "analyze table t");
    assert_near(&cardinalities(&mut session)[3..4], &[3000.0]);
}
