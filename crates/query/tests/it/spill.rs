//! Statements that gather more than they may hold: they answer what they answer with memory for everything.

use std::path::PathBuf;

use crate::support::{World, run};

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("beluga-spill-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The same rows in two worlds.
fn fill(world: &World) -> query::Session {
    let mut session = world.session(1);
    run(&mut session, "create database test");
    run(&mut session, "use test");
    run(
        &mut session,
        "create table t (id int primary key, k int, s varchar(60), d decimal(30,4), x double, at datetime(6), b varbinary(20), j json)",
    );
    run(&mut session, "create table u (id int primary key, k int, note varchar(40))");
    for from in (0..6000).step_by(500) {
        let row = |id: u32| {
            let k = id * 7919 % 1500;
            let s = if id.is_multiple_of(11) {
                "null".into()
            } else {
                format!("'text {} of some length, {}'", k % 700, id % 3)
            };
            format!(
                "({id}, {k}, {s}, {}.{:04}, {k}.5, '2024-01-0{} 10:00:00.{:06}', x'{:08x}', '{{\"k\": {k}}}')",
                id as i64 * 1_000_000_007 - 5_000_000,
                id % 10_000,
                id % 9 + 1,
                id,
                k
            )
        };
        let rows: Vec<String> = (from..from + 500).map(row).collect();
        run(&mut session, &format!("insert into t values {}", rows.join(",")));
        let row = |id: u32| {
            format!(
                "({id}, {}, 'note {}')",
                if id.is_multiple_of(13) { "null".into() } else { (id % 2000).to_string() },
                id % 50
            )
        };
        let rows: Vec<String> = (from..from + 500).map(row).collect();
        run(&mut session, &format!("insert into u values {}", rows.join(",")));
    }
    session
}

/// Statements, and whether their rows come in an order that they ask for.
const STATEMENTS: &[(&str, bool)] = &[
    ("select * from t order by s, id", true),
    ("select id, d, x, at, b, j from t order by d desc, id", true),
    ("select distinct s, k from t order by k, s", true),
    ("select id from t order by k, id limit 20 offset 3000", true),
    (
        "select k, s, count(*), sum(d), avg(x), min(at), max(s), group_concat(id order by id) from t group by k, s",
        false,
    ),
    ("select k, count(*), sum(d) from t group by k with rollup", true),
    ("select distinct k, s, b from t", false),
    ("select count(distinct s), count(*), sum(k) from t", false),
    ("select t.id, u.id, u.note from t join u on t.k = u.k where t.id < 3000", false),
    ("select t.id, u.id from t left join u on t.k + 700 = u.k and u.id % 2 = 0", false),
    ("select a.id, b.id, a.s from t a join t b on a.s = b.s and a.id < b.id where a.id % 5 = 0", false),
    (
        "select id, row_number() over (order by s, id) r, sum(k) over (partition by k order by id) q from t order by id",
        true,
    ),
    (
        "select id, lag(s, 700) over (order by id) l, first_value(id) over (order by id rows between 900 preceding and current row) f, count(*) over () c from t order by id",
        true,
    ),
    ("with c as (select k, s, id from t) select a.id, b.id from c a join c b on a.id = b.id + 4000 order by 1", true),
    (
        "with recursive r as (select 1 n, 'some longer text that takes memory' s union all select n + 1, s from r where n < 900) select count(*), sum(n) from r",
        false,
    ),
    ("select k, s from t union select k, note from u", false),
    ("select id from t where (k, s) in (select k, s from t where id % 3 = 0)", false),
    ("select id from t where not exists (select * from t o where o.k = t.k and o.s = t.s and o.id % 3 = 0)", false),
];

#[test]
fn what_does_not_fit_into_memory_answers_the_same() {
    let folder = Folder::new("same");
    let (plenty, scarce) = (World::new(3), World::new(3));
    // Left over from a server that was killed.
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::fs::write(folder.0.join("7.spill"), "old").expect("a file");
    scarce.db.spill_to(&folder.0, 64 << 10).expect("the folder is there");
    let (mut a, mut b) = (fill(&plenty), fill(&scarce));
    for (sql, is_ordered) in STATEMENTS {
        let (mut wanted, mut came) = (run(&mut a, sql), run(&mut b, sql));
        if !is_ordered {
            wanted.sort();
            came.sort();
        }
        let spilled = scarce.db.spill().expect("it was given").byte_count();
        assert!(!came[0].starts_with("error"), "{sql}: {came:?}");
        assert!(wanted == came, "{sql} (after {spilled} bytes): {} rows and {}", wanted.len(), came.len());
    }
    let spill = scarce.db.spill().expect("it was given");
    assert!(spill.byte_count() > 1 << 20, "{}", spill.byte_count());
    assert!(spill.file_count() > 100, "{}", spill.file_count());
    let names = std::fs::read_dir(&folder.0).expect("the folder is there").count();
    assert_eq!(names, 0, "files have no names");
    // What a subquery answers is kept in memory: it is told so.
    let came = run(&mut b, "select id, (k, s) in (select k, s from t where id % 3 = 0) from t");
    assert!(came[0].starts_with("error 1037 "), "{came:?}");
    // It is the statement that is bound, not the session.
    assert_eq!(run(&mut b, "select count(*) from t").join("|"), "[count(*)]|6000");
}

#[test]
fn a_disk_without_room_ends_the_statement_alone() {
    let folder = Folder::new("full");
    let world = World::new(5);
    world.db.spill_to(&folder.0, 64 << 10).expect("the folder is there");
    let mut session = fill(&world);
    // Nothing can be created any more.
    std::fs::remove_dir_all(&folder.0).expect("it was there");
    let came = run(&mut session, "select * from t order by s, id");
    assert!(came[0].starts_with("error 1026 "), "{came:?}");
    assert_eq!(run(&mut session, "select count(*) from t").join("|"), "[count(*)]|6000");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    assert_eq!(run(&mut session, "select * from t order by s, id").len(), 6001);
}

#[test]
fn a_statement_that_spills_can_be_ended() {
    let folder = Folder::new("killed");
    let world = World::new(6);
    world.db.spill_to(&folder.0, 64 << 10).expect("the folder is there");
    let mut session = fill(&world);
    run(&mut session, "set max_execution_time = 30");
    let came = run(&mut session, "select a.id from t a, t b order by a.s, b.s, a.id limit 1000000");
    assert!(came[0].starts_with("error 3024 "), "{came:?}");
    run(&mut session, "set max_execution_time = 0");
    assert_eq!(run(&mut session, "select count(*) from t").join("|"), "[count(*)]|6000");
}
