//! Statements and their results, which are PostgreSQL's own: each file of `scenarios` has statements and what PostgreSQL 16 answered.

mod world;

use world::World;

use crate::types::oid::{self, Oid};

/// Plays a file of statements. Rows of a statement after `>~` come in any order.
fn play(scenario: &str) {
    let mut world = World::new();
    let mut blocks = scenario.split("\n\n").filter(|block| !block.trim().is_empty());
    let mut wrong = Vec::new();
    blocks.by_ref().for_each(|block| {
        let mut lines = block.trim_matches('\n').lines();
        let first = lines.next().unwrap_or_default();
        let (statement, is_ordered) = match first.strip_prefix(">~ ") {
            Some(statement) => (statement, false),
            None => (first.strip_prefix("> ").unwrap_or(first), true),
        };
        let mut expected: Vec<String> = lines.map(str::to_owned).collect();
        let mut found = world.run(statement);
        if !is_ordered {
            expected.sort();
            found.sort();
        }
        if expected != found {
            wrong.push(format!("{statement}\nexpected {expected:#?}\nfound {found:#?}"));
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn queries_answer_as_postgresql_does() {
    play(include_str!("scenarios/queries.txt"));
}

#[test]
fn clauses_errors_and_changes_are_those_of_postgresql() {
    play(include_str!("scenarios/statements.txt"));
}

#[test]
fn changes_see_no_change_of_their_statement() {
    play(include_str!("scenarios/changes.txt"));
}

#[test]
fn the_queries_of_tpc_h_and_windows_answer_as_postgresql_does() {
    play(include_str!("scenarios/tpch.txt"));
}

#[test]
fn set_returning_functions_answer_as_postgresql_does() {
    play(include_str!("scenarios/sets.txt"));
}

#[test]
fn grouping_sets_ties_and_filters_answer_as_postgresql_does() {
    play(include_str!("scenarios/grouping_sets.txt"));
}

#[test]
fn frames_of_windows_answer_as_postgresql_does() {
    play(include_str!("scenarios/windows.txt"));
}

#[test]
fn an_endless_set_costs_no_more_than_what_is_read_of_it() {
    let mut world = World::new();
    for text in [
        "select generate_series(1, 1000000000000) limit 2",
        "select * from generate_series(1, 1000000000000) as g(generate_series) limit 2",
        "select generate_series(1, 1000000000000) from (values (2), (1)) v(x) order by x limit 2",
    ] {
        assert_eq!(world.run(text), ["generate_series", "1", "2"], "{text}");
    }
}

fn parameters(world: &mut World, text: &str, given: &[Oid]) -> Vec<Oid> {
    world.bind(text, given.to_vec()).expect("the statement can be bound").parameter_types
}

#[test]
fn types_of_parameters_follow_from_their_places() {
    let mut world = World::new();
    world.run("create table t(id int primary key, k bigint, c varchar(20), d numeric, f date)");
    for (text, types) in [
        ("select c from t where id = $1", vec![oid::INT4]),
        ("select c from t where id between $1 and $2", vec![oid::INT4, oid::INT4]),
        ("select c from t where c = $1", vec![oid::TEXT]),
        ("update t set k = k + $1 where id = $2", vec![oid::INT8, oid::INT4]),
        (
            "insert into t values ($1, $2, $3, $4, $5)",
            vec![oid::INT4, oid::INT8, oid::VARCHAR, oid::NUMERIC, oid::DATE],
        ),
        ("insert into t (id) select $1", vec![oid::INT4]),
        ("delete from t where f < $1", vec![oid::DATE]),
        ("select $1", vec![oid::TEXT]),
        ("select $1 + 1", vec![oid::INT4]),
        ("select $1::int8, $1", vec![oid::INT8]),
        ("select id from t where id in ($1, $2)", vec![oid::INT4, oid::INT4]),
        ("select id from t limit $1 offset $2", vec![oid::INT8, oid::INT8]),
        ("select coalesce(d, $1) from t", vec![oid::NUMERIC]),
        ("select 1 union select $1", vec![oid::INT4]),
        ("select case when $1 then 1 else $2 end", vec![oid::BOOL, oid::INT4]),
        ("select upper($1)", vec![oid::TEXT]),
    ] {
        assert_eq!(parameters(&mut world, text, &[]), types, "{text}");
    }
    let given = [oid::INT8];
    assert_eq!(parameters(&mut world, "select c from t where id = $1", &given), given);
}

#[test]
fn a_parameter_without_a_type_is_an_error() {
    let mut world = World::new();
    let error = world.bind("select $1 is null", Vec::new()).expect_err("nothing tells the type");
    assert_eq!((error.state, error.message.as_str()), ("42P18", "could not determine data type of parameter $1"));
    let error = world.bind("select $2 + 1", Vec::new()).expect_err("nothing tells the type of the first");
    assert_eq!(error.message, "could not determine data type of parameter $1");
    let error = world.bind("select $1::int, $1::date", Vec::new()).expect_err("two types");
    assert_eq!(error.state, "42846");
}

#[test]
fn deep_expressions_and_long_chains_end_in_an_error_or_a_plan() {
    let mut world = World::new();
    let chain = format!("select 1{}", " + 1".repeat(2_000));
    let answer = world.run(&chain);
    let is_refused = answer[0] == "ERROR 54001: stack depth limit exceeded";
    assert!(is_refused || answer[1] == "2001", "{answer:?}");
    let many = format!("select 1 where 1 in ({})", vec!["1"; 5_000].join(", "));
    assert_eq!(world.run(&many).len(), 2);
}

#[test]
fn copies_within_copies_are_bounded() {
    let mut world = World::new();
    let nested = |open: &str, close: &str| format!("select {}1{}", open.repeat(60), close.repeat(60));
    for (open, close) in
        [("(1 in (", ", random()::int))::int"), ("case ", " when 1 then 2 when 3 then 4 end"), ("nullif(", ", 5)")]
    {
        let answer = world.run(&nested(open, close));
        let is_refused = answer[0].starts_with("ERROR 54001");
        assert!(is_refused || !answer[0].starts_with("ERROR"), "{open}: {answer:?}");
    }
    let answer = world.run(&nested("(", " between 0 and 1)::int"));
    assert!(!answer[0].starts_with("ERROR"), "{answer:?}");
}

#[test]
fn nested_expressions_end_in_an_error_or_an_answer_on_two_mebibytes() {
    let nests = [
        ("abs(", ")"),
        ("lower(", "::text)"),
        ("coalesce(", ", 2)"),
        ("nullif(", ", 0)"),
        ("greatest(", ", 0)"),
        ("case when true then ", " else 2 end"),
        ("- ", ""),
        ("(1 + ", ")"),
        ("(select ", ")"),
        ("cast(", " as numeric)"),
        ("(1 in (", ", 2))::int"),
    ];
    let run = move || {
        let mut world = World::new();
        for (open, close) in nests {
            for height in [10, 50, 150, 250, 390] {
                let answer = world.run(&format!("select {}1{}", open.repeat(height), close.repeat(height)));
                let is_refused = answer[0].ends_with("stack depth limit exceeded") || answer[0].contains("TooDeep");
                assert!(is_refused || !answer[0].starts_with("ERROR"), "{height} {open}: {answer:?}");
                assert!(!is_refused || height > 50, "{height} {open}");
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread starts");
    thread.join().expect("it ends without an overflow");
}
