//! Groups over joins, whose rows are shown to them as they are made, beside groups over rows that are kept (QU-52).

use stdx::prng::Prng;

use crate::world::{Client, World};

fn fill(client: &mut Client, prng: &mut Prng) {
    client.run("create table a (id int primary key, k int, s text, n numeric)");
    client.run("create table b (id int primary key, k int, s text, n numeric)");
    client.run("create index on b (k)");
    let numbers =
        ["null", "0", "-1.50", "2.5", "1e30", "99999999999999999999.99", "'NaN'", "0.000000000000000000000000000001"];
    for table in ["a", "b"] {
        let mut row = |id: u64| {
            let key = if prng.below(6) == 0 { "null".to_owned() } else { prng.below(40).to_string() };
            let text = ["null", "'x'", "'X '", "'a text that is longer than a short one'"][prng.below(4) as usize];
            let number = match prng.below(2) {
                0 => numbers[prng.below(numbers.len() as u64) as usize].to_owned(),
                _ => format!("{}.{:02}", prng.below(100_000), prng.below(100)),
            };
            format!("({id}, {key}, {text}, {number})")
        };
        let rows: Vec<String> = (0..300).map(&mut row).collect();
        client.run(&format!("insert into {table} values {}", rows.join(",")));
    }
    client.run("analyze");
}

/// The columns of each of these joins are `k`, `s`, `x` and `y`.
const JOINS: &[&str] = &[
    "select a.k, b.s, a.n x, b.n y from a join b on a.k = b.k",
    "select a.k, b.s, a.n x, b.n y from a left join b on a.k = b.k and a.s < b.s",
    "select a.k, a.s, a.n x, b.n y from a right join b on a.k = b.k and a.n > b.n",
    "select a.k, b.s, a.n x, b.n y from a join b on a.id = b.k",
    "select a.k, b.s, a.n x, b.n y from a left join b on a.id < b.id and b.id < 9",
    "select a.k, a.s, a.n x, a.n y from a where exists (select from b where b.k = a.k and b.n < a.n)",
    "select a.k, a.s, a.n x, a.n y from a where not exists (select from b where b.k = a.k)",
    "select a.k, c.s, b.n x, c.n y from a join b on a.k = b.k left join b c on b.id = c.k where a.id < 60",
];

const GROUPS: &[&str] = &[
    "select count(*), count(x), sum(x), avg(y), min(x), max(s), sum(x * (1 - y)), sum(y + x * 2) from j",
    "select k, count(*), sum(x * (1 - y)), avg(x - y), count(distinct s), sum(x) filter (where y > 1) from j group by k order by k",
    "select k, s, variance(x * 2), string_agg(s, ',' order by x, y), max(y) from j group by k, s order by k, s",
    "select k, s, sum(x), grouping(k, s) from j group by grouping sets ((k), (s), ()) order by 4, k, s",
    // The first row that fails ends the statement.
    "select k, sum(1 / (x - 2.5)) from j group by k order by k",
];

#[test]
fn a_group_over_a_join_answers_as_over_rows_that_are_kept() {
    let (mut world, mut prng) = (World::new(), Prng::new(52));
    let mut client = world.session();
    fill(&mut client, &mut prng);
    let (mut rows, mut failed) = (0, 0);
    for join in JOINS {
        for group in GROUPS {
            let shown = client.run(&format!("with j as not materialized ({join}) {group}"));
            let kept = client.run(&format!("with j as materialized ({join}) {group}"));
            assert_eq!(shown, kept, "{group} over {join}");
            rows += shown.len();
            failed += usize::from(shown[0].starts_with("ERROR"));
        }
    }
    assert!(rows > 1000 && failed > 3, "{rows} {failed}");
}

/// Queries over `a` and `b`. The index on `b.k` leads to the rows of `b`, unless `b` is a table that is read first.
const NESTED: &[&str] = &[
    "select a.id, b.id, b.s, b.late, b.twice from a join b on a.k = b.k where a.id < 6 order by 1, 2",
    "select a.id, count(b.id), sum(length(b.long)), min(b.late) from a left join b on a.k = b.k and b.s <> 'x' where a.id < 6 group by a.id order by 1",
    "select count(*), sum(length(b.long)) from a join b on a.k = b.k and b.long like '%z'",
    "select a.id from a where a.id < 6 and exists (select from b where b.k = a.k and b.late > 3 and b.s <> a.s) order by 1",
    "select a.id from a where a.id < 6 and not exists (select from b where b.k = a.k and b.long like '%z') order by 1",
    "select a.id, b.id, c.id, c.s from a join b on a.k = b.k left join b c on c.k = b.id + 1 and c.late in (5, 7, 9) where a.id < 9 order by 1, 2, 3",
    "select count(*), sum(c.twice), max(c.s) from a join b on a.k = b.k join b c on c.k = b.k + 1 and b.late <= c.late where a.id < 9",
    "select id, s, late from b where k between 3 and 20 and s in ('x', 'X ') and late > 1 and n < 50 order by 1",
    "select id, twice from b where k >= 7 and late is not null order by k, id limit 9",
];

#[test]
fn a_scan_that_begins_again_for_each_left_row_finds_what_a_copy_of_the_table_gives() {
    let (mut world, mut prng) = (World::new(), Prng::new(53));
    let mut client = world.session();
    fill(&mut client, &mut prng);
    // Rows from before these columns lack their slots; two rows are long, one of which the conditions reject.
    client.run("alter table b add column late int default 4");
    client.run("alter table b add column twice int generated always as (2 * k) stored");
    client.run("alter table b add column long text default 'y'");
    client.run(
        "insert into b (id, k, s, n, late) select 1000 + i, i % 40, 'x', i, i % 11 from generate_series(1, 600) i",
    );
    client.run("update b set long = repeat('y', 300000) || 'z' where id = 1005");
    client.run("update b set long = repeat('y', 300000) where id = 1006");
    client.run("analyze");
    let (mut rows, mut nested) = (0, 0);
    for query in NESTED {
        let plan = client.run(&format!("explain {query}")).join("\n");
        nested += usize::from(plan.contains("Nested Loop") && plan.contains("Index Scan"));
        let found = client.run(query);
        let copied = client.run(&format!("with b as materialized (select * from b) {query}"));
        assert_eq!(found, copied, "{query}\n{plan}");
        rows += found.len();
    }
    assert!(rows > 100 && nested > 3, "{rows} {nested}");
}

#[test]
fn comparisons_of_numbers_come_before_those_of_texts_and_none_passes_a_condition_that_may_fail() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (s text, n int)");
    let filter = |client: &mut Client, condition: &str| {
        let plan = client.run(&format!("explain select from t where {condition}"));
        let line = plan.iter().find(|line| line.contains("Filter:")).cloned().unwrap_or_default();
        [line.find("n ").unwrap_or(usize::MAX), line.find("s ").unwrap_or(usize::MAX)]
    };
    let [number, text] = filter(&mut client, "s = 'x' and n > 3");
    assert!(number < text, "{number} {text}");
    let [number, text] = filter(&mut client, "s = 'x' and 1 / (n - 3) > 1");
    assert!(text < number, "{number} {text}");
}
