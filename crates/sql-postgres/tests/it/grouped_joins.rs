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
