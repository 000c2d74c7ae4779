//! The cost of parsing beside the library `sqlparser`: medians of alternating rounds, one thread.

use std::hint::black_box;
use std::time::{Duration, Instant};

use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;
use syntax::Mode;

const ROUNDS: usize = 41;

/// How long a round is to take.
const ROUND: Duration = Duration::from_millis(5);

const TPCH_Q1: &str = "select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price, \
    sum(l_extendedprice * (1 - l_discount)) as sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, \
    avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order \
    from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day \
    group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus";

const CREATE_TABLE: &str = "CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, \
    c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id), KEY k_1 (k)) ENGINE = InnoDB";

const CREATE_TABLE_POSTGRES: &str = "CREATE TABLE sbtest1 (id SERIAL, k INTEGER DEFAULT '0' NOT NULL, \
    c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))";

fn texts() -> Vec<(&'static str, String)> {
    let c = "31451373586-15688153734-79729593694-96509299839-83724898275-86711833539-78981337422-35049690573-51724173961-87474696253";
    let pad = "98996621624-36689827414-04092488557-09587706818-65008859162";
    let rows: Vec<String> = (0..1_000).map(|id| format!("({id}, {}, '{c}', '{pad}')", id * 7919)).collect();
    let conditions: Vec<String> = (0..1_000).map(|id| format!("id = {id}")).collect();
    vec![
        ("point select", "SELECT c FROM sbtest1 WHERE id=5017".to_owned()),
        ("range", "SELECT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116".to_owned()),
        ("sum", "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 5017 AND 5116".to_owned()),
        ("order", "SELECT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116 ORDER BY c".to_owned()),
        ("distinct", "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116 ORDER BY c".to_owned()),
        ("update index", "UPDATE sbtest1 SET k=k+1 WHERE id=5017".to_owned()),
        ("update", format!("UPDATE sbtest1 SET c='{c}' WHERE id=5017")),
        ("delete", "DELETE FROM sbtest1 WHERE id=5017".to_owned()),
        ("insert", format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES (5017, 4993, '{c}', '{pad}')")),
        ("TPC-H Q1", TPCH_Q1.to_owned()),
        ("create table", CREATE_TABLE.to_owned()),
        ("insert of 1,000 rows", format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES {}", rows.join(", "))),
        ("select with 1,000 ORs", format!("SELECT c FROM sbtest1 WHERE {}", conditions.join(" OR "))),
        ("50 parentheses", format!("SELECT {}1{}", "(".repeat(50), ")".repeat(50))),
    ]
}

/// The mean time of one call, of as many as `count`.
fn time(count: u32, mut run: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..count).for_each(|_| run());
    start.elapsed() / count
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Prints the times of both parsers for each text.
fn compare(title: &str, texts: Vec<(&str, String)>, ours: fn(&str), dialect: &dyn Dialect) {
    let only = std::env::args().nth(1).filter(|word| !word.starts_with('-'));
    println!("{title:<24}{:>10}{:>14}{:>14}{:>8}", "bytes", "syntax us", "sqlparser us", "ratio");
    for (name, text) in texts {
        if only.as_ref().is_some_and(|only| !name.contains(&**only)) {
            continue;
        }
        let ours = || ours(black_box(&text));
        // The default limit of recursion refuses 50 parentheses.
        let theirs = || {
            let mut parser = Parser::new(dialect).with_recursion_limit(1_000);
            parser = parser.try_with_sql(black_box(&text)).expect(name);
            drop(black_box(parser.parse_statements().expect(name)));
        };
        let count = |one: Duration| (ROUND.as_nanos() / one.as_nanos().max(1)).clamp(1, 100_000) as u32;
        let (few, many) = (count(time(3, ours)), count(time(3, theirs)));
        let (mut of_ours, mut of_theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            of_ours.push(time(few, ours));
            of_theirs.push(time(many, theirs));
        }
        let (ours, theirs) = (median(of_ours).as_secs_f64() * 1e6, median(of_theirs).as_secs_f64() * 1e6);
        println!("{name:<24}{:>10}{ours:>14.2}{theirs:>14.2}{:>8.2}", text.len(), ours / theirs);
    }
}

fn main() {
    let mysql = |text: &str| drop(black_box(syntax::parse(text, Mode::default()).expect("a statement")));
    compare("MySQL", texts(), mysql, &MySqlDialect {});
    let postgres = |text: &str| drop(black_box(syntax::postgres::parse_script(text, &|| false).expect("a script")));
    let mut others = texts();
    for (name, text) in &mut others {
        if *name == "create table" {
            *text = CREATE_TABLE_POSTGRES.to_owned();
        }
    }
    compare("PostgreSQL", others, postgres, &PostgreSqlDialect {});
}
