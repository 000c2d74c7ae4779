//! Whatever way leads to the rows of an OR, of ranges of one index or through several, they are those of a walk over the table.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use sql_mysql::Session;

use crate::support::{World, run};

/// Columns with an index each, and values to compare them with: of their kind and not, in the table and not.
const COLUMNS: [(&str, &[&str]); 4] = [
    ("u", &["-1", "0", "3", "7", "7.5", "12", "19", "4000000000000", "'8'", "NULL"]),
    ("n", &["-2.5", "0", "1.25", "1.251", "4", "9.75", "1e3", "'2.5'", "NULL"]),
    ("s", &["''", "'B'", "'b'", "'c '", "'dd'", "'z'", "NULL"]),
    ("v", &["2", "5", "11", "-7", "99", "NULL"]),
];

#[derive(Clone, Debug)]
enum Condition {
    Plain(String),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

impl Condition {
    fn text(&self) -> String {
        let all = |of: &[Condition], word: &str| of.iter().map(Condition::text).collect::<Vec<_>>().join(word);
        match self {
            Condition::Plain(text) => text.clone(),
            Condition::And(parts) => format!("({})", all(parts, " and ")),
            Condition::Or(arms) => format!("({})", all(arms, " or ")),
        }
    }
}

fn plain(columns: Range<usize>) -> impl Strategy<Value = Condition> {
    (columns, 0..8usize, 0..10usize, 0..10usize).prop_map(|(column, form, a, b)| {
        let (name, values) = COLUMNS[column];
        let (a, b) = (values[a % values.len()], values[b % values.len()]);
        Condition::Plain(match form {
            0 => format!("{name} = {a}"),
            1 => format!("{name} < {a}"),
            2 => format!("{a} < {name}"),
            3 => format!("{name} <= {a}"),
            4 => format!("{name} in ({a}, {b})"),
            5 => format!("{name} is null"),
            _ => format!("{name} between {a} and {b}"),
        })
    })
}

/// Mostly about one column, else about any; or each arm about one of any.
fn condition() -> impl Strategy<Value = Condition> {
    let apart = prop::collection::vec(plain(0..COLUMNS.len()), 2..5).prop_map(Condition::Or);
    prop_oneof![2 => together(), 1 => apart]
}

fn together() -> impl Strategy<Value = Condition> {
    let columns = (0..2 * COLUMNS.len()).prop_map(|at| if at < COLUMNS.len() { at..at + 1 } else { 0..COLUMNS.len() });
    columns.prop_flat_map(|columns| {
        plain(columns).prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 2..3).prop_map(Condition::And),
                3 => prop::collection::vec(inner, 2..5).prop_map(Condition::Or),
            ]
        })
    })
}

fn filled() -> (World, Session) {
    let world = World::new(61);
    let mut session = world.session(1);
    let setup = [
        "create database d".to_owned(),
        "create table d.t (id int primary key, u int unsigned, n decimal(6,2), s varchar(10), v int, pad varchar(200), \
         key (u), key (n desc), key (s), key (v desc, u))"
            .to_owned(),
        // Rows long enough, and so many, that an index is worth its way.
        "insert into d.t with recursive r as (select 0 i union all select i + 1 from r where i < 599) select i, nullif(i % 23, 22), \
         nullif(round(i * 7 % 400 / 40, 2), 5), nullif(elt(1 + i % 7, 'a', 'b', 'B ', 'c', 'dd', 'e', 'x'), 'x'), nullif(i % 19, 3) - 4, \
         repeat('x', 150) from r"
            .to_owned(),
        "analyze table d.t".to_owned(),
    ];
    for sql in &setup {
        let answer = run(&mut session, sql);
        assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
    }
    (world, session)
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn ranges_of_an_or_find_what_a_walk_over_the_table_finds() {
    let (_world, session) = filled();
    let session = RefCell::new(session);
    let ask = |sql: &str| run(&mut session.borrow_mut(), sql);
    // The same conditions each time: how many go by ranges is counted.
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (led, united) = (Cell::new(0), Cell::new(0));
    runner
        .run(&condition(), |condition| {
            let condition = condition.text();
            let walk =
                ask(&format!("select id, u, v, length(pad) from d.t ignore index (u, n, s, v) where {condition}"));
            let walk = sorted(walk);
            let hints = [
                "",
                "force index (u)",
                "force index (n)",
                "force index (s)",
                "force index (v)",
                "force index (u, n)",
                "force index (u, n, s, v)",
            ];
            for hint in hints {
                let sql = format!("select id, u, v, length(pad) from d.t {hint} where {condition}");
                let plan = ask(&format!("explain format=tree {sql}")).join("\n");
                led.set(led.get() + usize::from(plan.contains("ndex range scan") && plan.contains(" or ")));
                united.set(united.get() + usize::from(plan.contains("Index merge")));
                prop_assert_eq!(sorted(ask(&sql)), walk.clone(), "{}\n{}", sql, plan);
                let locking = ask(&format!("{sql} for update"));
                prop_assert_eq!(sorted(locking), walk.clone(), "{} for update\n{}", sql, plan);
            }
            // Backward and forward, in the order of the index, without a row twice.
            for (column, order) in [("u", "desc"), ("n", "desc"), ("v", "asc"), ("v", "desc")] {
                let sql = format!("select {column} from d.t {{}} where {condition} order by {column} {order} limit 40");
                let by_index = ask(&sql.replace("{}", &format!("force index ({column})")));
                let by_sort = ask(&sql.replace("{}", "ignore index (u, n, s, v)"));
                prop_assert_eq!(by_index, by_sort, "{}", sql);
            }
            Ok(())
        })
        .unwrap();
    assert!(led.get() > 80, "only {} of the plans went by ranges", led.get());
    assert!(united.get() > 80, "only {} of the plans went through several indexes", united.get());
}
