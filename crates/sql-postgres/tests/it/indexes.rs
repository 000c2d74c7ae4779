//! Indexes over expressions, of some rows, and with included columns.

use crate::world::{Client, World, play};

#[test]
fn indexes_are_made_shown_and_kept_as_in_postgresql() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/indexes.txt"));
}

fn plan(client: &mut Client, query: &str) -> String {
    client.run(&format!("explain (costs off) {query}")).join("\n")
}

#[test]
fn a_partial_index_is_used_where_the_conditions_imply_its_predicate() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key, a int, b int, st text, ok bool, gone timestamptz)");
    client.run("insert into t select g, g, g % 1000, 's' || g % 7, g % 5 = 0, null from generate_series(1, 20000) g");
    for (predicate, used, unused) in [
        ("gone is null", vec!["gone is null"], vec!["gone is not null", "true", "gone is null or a = 1"]),
        (
            "a > 10",
            vec![
                "a > 10",
                "a > 11",
                "a >= 11",
                "10 < a",
                "a = 12",
                "a in (11, 12)",
                "a between 11 and 20",
                "a > 10 and st = 'x'",
            ],
            vec![
                "a > 9",
                "a >= 10",
                "a <> 3",
                "a < 10",
                "a = 10",
                "a in (10, 12)",
                "a between 10 and 20",
                "a > 10 or st = 'x'",
            ],
        ),
        (
            "a <= 10 and st = 's1'",
            vec!["a < 11 and a <= 10 and st = 's1'", "a = 3 and st = 's1'"],
            vec!["a <= 10", "st = 's1'"],
        ),
        ("a = 1 or st = 's2'", vec!["a = 1", "st = 's2'", "st = 's2' or a = 1"], vec!["a = 2", "st = 's2' or a = 3"]),
        ("a in (1, 2, 3)", vec!["a = 2", "a in (1, 3)", "a in (1, 2, 3)"], vec!["a = 4", "a in (1, 4)"]),
        (
            "st is not null",
            vec!["st = 'x'", "st like 'x%'", "lower(st) = 'x'", "st is not null"],
            vec!["st is null", "coalesce(st, 'x') = 'x'", "st is distinct from 'y'"],
        ),
        ("ok", vec!["ok", "ok = true", "ok is true"], vec!["not ok", "ok is not false"]),
        ("not ok", vec!["not ok", "ok = false"], vec!["ok", "ok is not true"]),
        ("lower(st) = 'x'", vec!["lower(st) = 'x'", "'x' = lower(st)"], vec!["st = 'x'", "lower(st) = 'y'"]),
    ] {
        client.run(&format!("create index i on t (b) where {predicate}"));
        for (conditions, expected) in [(used, true), (unused, false)] {
            for condition in conditions {
                let query = format!("select * from t where b = 7 and ({condition})");
                let plan = plan(&mut client, &query);
                assert_eq!(plan.contains("using i on t"), expected, "{predicate}: {query}\n{plan}");
            }
        }
        client.run("drop index i");
    }
}

/// Values of parameters decide: the plan is made for each run.
#[test]
fn a_partial_index_serves_the_parameters_that_imply_its_predicate() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int, b int)");
    client.run("insert into t select g, g % 100 from generate_series(1, 1000) g");
    client.run("create index i on t (b) where a > 500");
    client.run("prepare p (int) as select count(*) from t where b = 7 and a > $1");
    for (value, count) in [(500, "5"), (0, "10"), (900, "1"), (499, "5"), (500, "5"), (0, "10"), (900, "1")] {
        assert_eq!(client.run(&format!("execute p({value})")), [count], "{value}");
        assert_eq!(client.run(&format!("select count(*) from t where b = 7 and a > {value}")), [count], "{value}");
    }
}

#[test]
fn an_index_of_an_expression_leads_to_its_rows() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key, s text, a int, b int)");
    client.run("insert into t select g, 'N' || g, g, g % 10 from generate_series(1, 2000) g");
    client.run("create index i on t (lower(s))");
    client.run("create index j on t ((a + b), (a * 2))");
    assert!(plan(&mut client, "select * from t where lower(s) = 'n77'").contains("using i on t"));
    assert_eq!(client.run("select id from t where lower(s) = 'n77'"), ["77"]);
    assert!(plan(&mut client, "select * from t where a + b between 20 and 22").contains("using j on t"));
    assert_eq!(client.run("select id from t where a + b between 20 and 22 order by id"), ["15", "16", "20", "21"]);
    assert_eq!(client.run("update t set a = 5000 where a + b = 21"), ["UPDATE 0"]);
    assert_eq!(client.run("update t set a = 5000 where a + b = 22 and a * 2 = 42"), ["UPDATE 1"]);
    assert_eq!(client.run("select id from t where a + b = 5001"), ["21"]);
    assert_eq!(client.run("select id from t where a + b = 22"), ["16"]);
}

#[test]
fn included_columns_are_read_from_the_entries_unless_they_are_long() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key, a int, b text, c numeric)");
    client.run("create unique index i on t (a) include (b, c)");
    client.run("create index j on t (c) include (b)");
    client.run("insert into t select g, g, 'b' || g, g / 4.0 from generate_series(1, 500) g");
    client.run(
        "insert into t values (900, 900, repeat('x', 3000), 1.50), (901, null, null, null), (902, null, 'n', null)",
    );
    assert!(plan(&mut client, "select b, c from t where a = 7").contains("Index Only Scan"));
    assert_eq!(client.run("select b, c from t where a = 7"), ["b7|1.7500000000000000"]);
    assert_eq!(client.run("select length(b), c from t where a = 900"), ["3000|1.50"]);
    assert_eq!(client.run("select b from t where a is null order by id"), ["", "n"]);
    client.run("update t set b = 'short' where id = 900");
    client.run("update t set b = repeat('y', 2000) where id = 7");
    assert_eq!(client.run("select b, c from t where a = 900"), ["short|1.50"]);
    assert_eq!(client.run("select left(b, 3), c from t where a = 7"), ["yyy|1.7500000000000000"]);
    assert_eq!(client.run("select left(b, 3) from t where c = 1.75"), ["yyy"]);
    client.run("delete from t where a < 400");
    assert_eq!(client.run("select count(b), count(c) from t where a > 0"), ["102|102"]);
}

/// Waits, newer versions and savepoints: whether a row is in the index follows its version.
#[test]
fn a_partial_unique_index_decides_between_transactions() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (id int primary key, k text, gone bool default false)");
    one.run("create unique index i on t (lower(k)) where not gone");
    one.run("insert into t values (1, 'A')");
    other.run("begin isolation level repeatable read");
    assert_eq!(other.run("select id from t where lower(k) = 'a' and not gone"), ["1"]);
    one.run("update t set gone = true");
    assert_eq!(one.run("select id from t where lower(k) = 'a' and not gone"), Vec::<String>::new());
    assert_eq!(one.run("insert into t values (2, 'a')"), ["INSERT 0 1"]);
    assert_eq!(other.run("select id from t where lower(k) = 'a' and not gone"), ["1"], "of its snapshot");
    other.run("commit");
    assert_eq!(other.run("select id from t where lower(k) = 'a' and not gone"), ["2"]);
    one.run("begin");
    one.run("savepoint s");
    one.run("update t set gone = not gone where id = 2");
    one.run("update t set gone = false where id = 1");
    one.run("rollback to s");
    one.run("commit");
    assert_eq!(one.run("select id, gone from t order by id"), ["1|t", "2|f"]);
    assert_eq!(one.run("select id from t where lower(k) = 'a' and not gone"), ["2"]);
}

#[test]
fn indexes_of_expressions_survive_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key, k text, n int)");
    client.run("insert into t select g, 'K' || g, g % 3 from generate_series(1, 100) g");
    client.run("create unique index i on t (lower(k)) include (n) where n > 0");
    client.run("insert into t values (101, 'K101', 1)");
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(
        client.run("select pg_get_indexdef('i'::regclass)"),
        ["CREATE UNIQUE INDEX i ON public.t USING btree (lower(k)) INCLUDE (n) WHERE (n > 0)"]
    );
    assert_eq!(client.run("select id from t where lower(k) = 'k101' and n > 0"), ["101"]);
    let error = client.script_error("insert into t values (102, 'k101', 2)").expect("a duplicate");
    assert_eq!(error.detail.as_deref(), Some("Key (lower(k))=(k101) already exists."));
}
