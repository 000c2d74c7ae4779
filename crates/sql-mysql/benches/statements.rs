//! Benchmark of sysbench's statements in a session, without a wire: microseconds per statement, in one thread.

use std::sync::Arc;
use std::time::Instant;

use engine::{Engine, Options};
use os::{Folder, SimClock, SimFolder};
use sql_mysql::value::Value;
use sql_mysql::{Database, Login, Outcome, Session};

const ROWS: u64 = 20_000;

fn drained(session: &mut Session, outcome: Outcome) -> usize {
    let Outcome::Rows(mut rows) = outcome else { return 0 };
    let (mut count, mut batch) = (0, sql_mysql::batch::Batch::new());
    while rows.next(session, &mut batch).expect("rows") {
        count += batch.len();
    }
    count
}

fn measure(name: &str, rounds: u64, mut one: impl FnMut(u64)) {
    (0..rounds / 10).for_each(&mut one);
    let start = Instant::now();
    (0..rounds).for_each(&mut one);
    println!("{name:<28} {:>8.2} us", start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
}

fn main() {
    let folder = SimFolder::new(1);
    let pager = pager::Options {
        frame_bytes: 128 << 20,
        ring_bytes: 16 << 20,
        segment_bytes: 16 << 20,
        checkpoint_distance: 256 << 20,
        ..pager::Options::default()
    };
    let engine = Engine::open(
        Options { pager, random: 7, ..Options::default() },
        folder as Arc<dyn Folder>,
        Arc::new(SimClock::new(1_700_000_000_000)),
    )
    .expect("the engine opens");
    let db = Database::open(engine).expect("the catalog loads");
    let who = Login { user: "root".into(), host: "localhost".into(), database: None, connection_id: 1 };
    let mut session = Session::new(&db, who).expect("a session");
    for sql in [
        "create database sbtest",
        "use sbtest",
        "CREATE TABLE sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))",
    ] {
        session.execute(sql).expect(sql);
    }
    let c = "31451373586-15688153734-79729593694-96509299839-83724898275-86711833539-78981337422-35049690573-51724173961-87474696253";
    let pad = "98996621624-36689827414-04092488557-09587706818-65008859162";
    for first in (0..ROWS).step_by(100) {
        let rows: Vec<String> = (0..100).map(|at| format!("({}, '{c}', '{pad}')", (first + at) * 7 % ROWS)).collect();
        session.execute(&format!("INSERT INTO sbtest1(k, c, pad) VALUES {}", rows.join(","))).expect("rows");
    }
    session.execute("CREATE INDEX k_1 ON sbtest1(k)").expect("an index");
    let id = |at: u64| at * 7919 % ROWS + 1;
    let mut text = |name: &str, rounds: u64, sql: &dyn Fn(u64) -> String| {
        measure(name, rounds, |at| {
            let sql = sql(id(at));
            let outcome = session.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            drained(&mut session, outcome);
        });
    };
    if std::env::args().any(|word| word == "range") {
        text("range alone", 40_000, &|id| format!("SELECT c FROM sbtest1 WHERE id BETWEEN {id} AND {}", id + 99));
        return;
    }
    text("point select", 100_000, &|id| format!("SELECT c FROM sbtest1 WHERE id={id}"));
    text("range", 5_000, &|id| format!("SELECT c FROM sbtest1 WHERE id BETWEEN {id} AND {}", id + 99));
    text("sum", 5_000, &|id| format!("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN {id} AND {}", id + 99));
    text("order", 2_000, &|id| format!("SELECT c FROM sbtest1 WHERE id BETWEEN {id} AND {} ORDER BY c", id + 99));
    text("distinct", 2_000, &|id| {
        format!("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN {id} AND {} ORDER BY c", id + 99)
    });
    text("update index", 20_000, &|id| format!("UPDATE sbtest1 SET k=k+1 WHERE id={id}"));
    text("update non-index", 20_000, &|id| format!("UPDATE sbtest1 SET c='{c}{}' WHERE id={id}", id % 10));
    text("insert", 20_000, &|id| format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, {id}, '{c}', '{pad}')"));
    let point = session.prepare("SELECT c FROM sbtest1 WHERE id=?").expect("it parses");
    measure("point select, prepared", 100_000, |at| {
        let outcome = session.execute_prepared(&point.handle, vec![Value::Int(id(at) as i64)]).expect("a row");
        drained(&mut session, outcome);
    });
}
