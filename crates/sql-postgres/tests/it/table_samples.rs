//! TABLESAMPLE: which rows are in a sample. `recorded/table_samples.txt` compares its errors with the real server's.

use crate::world::{Client, World};

fn ask(client: &mut Client, text: &str) -> String {
    client.run(text).join(" ")
}

fn count(client: &mut Client, text: &str) -> u64 {
    ask(client, text).parse().expect("a number")
}

#[test]
fn a_repeatable_sample_has_its_share_of_the_rows_and_stays() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int primary key, b text); create index t_b on t (b); create table bare (a int)");
    client.run("insert into t select n, 'x' || n from generate_series(1, 20000) n; insert into bare select a from t; analyze t");
    let sample = "t tablesample bernoulli (10) repeatable (7)";
    let first = ask(&mut client, &format!("select a from {sample} order by a"));
    let number = first.split(' ').count();
    // Within five standard deviations.
    assert!((1788..=2212).contains(&number), "{number}");
    client.run("update t set b = b || 'y' where a % 2 = 0");
    let second = client.run(&format!("begin; select a from {sample} order by a; commit")).join(" ");
    assert_eq!(second, format!("BEGIN {first} COMMIT"));
    let other = ask(&mut client, "select a from t tablesample bernoulli (10) repeatable (8) order by a");
    assert_ne!(first, other);
    // A larger percentage adds rows, and a path through an index changes nothing.
    assert_eq!(
        ask(
            &mut client,
            "select count(*) from (select a from t tablesample bernoulli (10) repeatable (7) except select a from t tablesample bernoulli (30) repeatable (7)) x"
        ),
        "0"
    );
    for condition in ["a between 100 and 900", "b like 'x1%'", "a = 7 or b = 'x3'"] {
        let through = ask(&mut client, &format!("select count(*) from {sample} where {condition}"));
        let beside = format!("select count(*) from (select * from {sample} offset 0) s where {condition}");
        assert_eq!(through, ask(&mut client, &beside), "{condition}");
    }
    // Groups of neighbours are there as a whole or not at all.
    let groups = "select count(*), count(distinct a / 64), min(n), max(n) from (select a, count(*) over (partition by a / 64) as n from t tablesample system (20) repeatable (1) where a between 64 and 19967) s";
    let groups = ask(&mut client, groups);
    let [rows, of, least, most]: [u64; 4] =
        groups.split('|').map(|part| part.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((rows, least, most), (of * 64, 64, 64), "{groups}");
    assert!((30..95).contains(&of), "{groups}");
    let bare = count(&mut client, "select count(*) from bare tablesample bernoulli (50)");
    assert!((9600..10400).contains(&bare), "{bare}");
}

#[test]
fn samples_are_joined_locked_and_changed_through() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (a int primary key, b int); create table u (a int primary key)");
    client.run("insert into t select n, 0 from generate_series(1, 1000) n; insert into u select a from t");
    let half = "t tablesample bernoulli (50) repeatable (3)";
    let rows = count(&mut client, &format!("select count(*) from {half}"));
    // Rows that are not in the sample are missing on the right of an outer join, and not in its result.
    let joined = format!("select count(*), count(t.a) from u left join {half} on t.a = u.a");
    assert_eq!(ask(&mut client, &joined), format!("1000|{rows}"));
    let full = format!("select count(*), count(t.a), count(u.a) from u full join {half} on t.a = u.a");
    assert_eq!(ask(&mut client, &full), format!("1000|{rows}|1000"));
    assert_eq!(
        count(&mut client, &format!("select count(*) from u where exists (select 1 from {half} where t.a = u.a)")),
        rows
    );
    assert_eq!(
        count(&mut client, &format!("select count(*) from u where u.a not in (select a from {half})")),
        1000 - rows
    );
    assert_eq!(
        ask(&mut client, &format!("update t set b = 1 where a in (select a from {half})")),
        format!("UPDATE {rows}")
    );
    assert_eq!(ask(&mut client, &format!("select count(*), min(b) from {half}")), format!("{rows}|1"));
    assert_eq!(ask(&mut client, &format!("delete from u using {half} where t.a = u.a")), format!("DELETE {rows}"));
    client.run("begin");
    assert_eq!(client.run(&format!("select a from {half} for update")).len() as u64, rows);
    let mut other = world.session();
    let free = count(&mut other, "select count(*) from (select a from t for update skip locked) s");
    assert_eq!(free, 1000 - rows);
    client.run("rollback");
    assert_eq!(
        count(&mut client, &format!("select count(*) from (select x.a from {half} join t x using (a)) s")),
        rows
    );
    client.run(&format!("create materialized view m as select a from {half}"));
    assert_eq!(ask(&mut client, "select count(*) from m"), rows.to_string());
}
