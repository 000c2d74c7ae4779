//! Statements that gather more than they may hold: they answer what they answer with memory for everything.

use std::path::PathBuf;

use crate::support::{World, run};

/// A folder that is gone when the test is over.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("beluga-spill-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The same rows in two worlds.
fn fill(world: &World) -> sql_mysql::Session {
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
    (
        "select t.k, count(*), count(u.id), sum(d), sum(d * (1 - u.k)) from t left join u on t.k + 700 = u.k group by t.k",
        false,
    ),
    ("select u.note, count(*), min(s) from t join u on t.k = u.k and t.id <> u.id group by u.note", false),
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
    ("select k, s from t intersect select k, s from t where id % 3 > 0", false),
    ("select k from t intersect all select k from u where id % 2 = 0", false),
    ("select k, s from t except select k, s from t where id % 4 = 0", false),
    ("select k from u except all select k from t where id < 4000", false),
    ("select count(distinct s, id), sum(distinct k) from t", true),
    ("select avg(distinct id), count(distinct d) from t", true),
    ("select k % 3, count(distinct id), sum(distinct d), count(distinct s) from t group by k % 3", false),
    ("select id from t where s in (select concat(s, '') from t x where id % 3 = 0)", false),
    ("select id from t where (k, id) not in (select k, id from t x where id % 3 = 0)", false),
    ("select id from t where (k, s) in (select k, s from t x where id % 3 = 0) and id < 300", false),
    ("select id from t where (k, s) not in (select k, s from t x where id % 3 = 0) and id < 300", false),
    (
        "select id from t where concat(s, id) > all (select concat(s, id) from t x where id < 4000 and s < 'text 3')",
        false,
    ),
    ("select id % 50 k, json_arrayagg(s), count(*), sum(distinct k) from t group by id % 50 order by k", true),
    (
        "select id div 100, json_objectagg(id, concat(s, s)), group_concat(s), count(distinct k) from t group by id div 100",
        false,
    ),
    (
        "with recursive r as (select id n, 'a key of some length' s from t union select n div 2, s from r) select count(*), sum(n) from r",
        true,
    ),
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
    // What one group gathers beyond what GROUP_CONCAT shows is kept in memory: it is told so.
    let came = run(&mut b, "select json_arrayagg(s) from t");
    assert!(came[0].starts_with("error 1037 "), "{came:?}");
    // It is the statement that is bound, not the session.
    assert_eq!(run(&mut b, "select count(*) from t").join("|"), "[count(*)]|6000");
}

/// Changes of more rows than may be held; the first few make what the others work on.
const CHANGES: &[&str] = &[
    "create table p (id int primary key, name varchar(20))",
    "create table c (id int primary key, p int, s varchar(60), key (p), foreign key (p) references p (id) on delete cascade on update cascade)",
    "insert into p values (1, 'one'), (2, 'two'), (3, null)",
    "alter table t add key (k)",
    "insert into c select id, id % 3 + 1, s from t",
    "insert into t select id + 10000, k + 1, s, d, x, at, b, j from t where id < 5000",
    "insert into t (id, k, s) select id, k, 'again' from t where id % 2 = 0 on duplicate key update s = concat(t.s, 'd'), k = t.k + 1",
    "update t set d = d + 1, s = concat(id, '-', s)",
    "update t set k = k + 1 order by k desc, id limit 7000",
    "update t force index (k) set k = k + 5 where k between 5 and 1400",
    "update t join u on t.k = u.k set t.x = t.x + 1, u.note = concat(u.note, '!')",
    "update t, u set t.b = x'0102' where t.k = u.k and u.id % 3 = 0",
    "update ignore t set id = id + 1 where id > 9000",
    "delete from t where k % 7 = 3",
    "delete from t order by s desc, id limit 3000",
    "delete t, u from t join u on t.k = u.k where u.id % 5 = 1",
    "update p set id = 20 where id = 2",
    "delete from p where id = 1",
    "replace into t select id, k + 1, s, d, x, at, b, j from t",
    "update t set k = k + 1 where id > 50 returning id, s, k",
    "insert into t (id, k, s) select id + 100000, k, s from t where id < 4000 returning id, concat(s, s)",
    "delete from t where id >= 100000 returning s, id",
];

/// Of GROUP_CONCAT no more is held than can be seen, and what is seen, with its warning, is what it would be.
#[test]
fn what_group_concat_cuts_is_not_held() {
    let folder = Folder::new("concat");
    let (plenty, scarce) = (World::new(9), World::new(9));
    scarce.db.spill_to(&folder.0, 64 << 10).expect("the folder is there");
    let (mut a, mut b) = (fill(&plenty), fill(&scarce));
    for sql in [
        "set group_concat_max_len = 1000",
        "select group_concat(s) from t",
        "show warnings",
        "select group_concat(s order by id desc separator '') from t",
        "show warnings",
        "select group_concat(distinct s order by d, s) from t",
        "select k % 2, group_concat(s order by x desc, id) from t group by k % 2 order by 1",
        "show warnings",
        "set group_concat_max_len = 10000000",
    ] {
        let (wanted, came) = (run(&mut a, sql), run(&mut b, sql));
        assert!(wanted == came && !came.concat().contains("error"), "{sql}: {wanted:?}, {came:?}");
    }
    assert!(run(&mut a, "select group_concat(s) from t")[1].len() > 100_000);
    let came = run(&mut b, "select group_concat(s) from t");
    assert!(came[0].starts_with("error 1037 "), "{came:?}");
}

#[test]
fn rows_that_are_changed_need_not_fit_into_memory() {
    let folder = Folder::new("changes");
    let (plenty, scarce) = (World::new(7), World::new(7));
    scarce.db.spill_to(&folder.0, 64 << 10).expect("the folder is there");
    let (mut a, mut b) = (fill(&plenty), fill(&scarce));
    for sql in CHANGES {
        let before = scarce.db.spill().expect("it was given").byte_count();
        let (wanted, came) = (run(&mut a, sql), run(&mut b, sql));
        let spilled = scarce.db.spill().expect("it was given").byte_count() - before;
        assert!(wanted == came && !came[0].starts_with("error"), "{sql}: {:?} {:?}", wanted[0], came[0]);
        let is_large = sql.contains(" t ") && !sql.starts_with("alter") || sql.contains(" p ") && sql.contains("where");
        assert!(spilled > 64 << 10 || !is_large, "{sql}: {spilled} bytes");
        for table in ["t", "u", "c", "p"] {
            if table.len() == 1 && sql.starts_with("create table p") {
                continue;
            }
            let all = format!("select * from {table} order by id");
            let (wanted, came) = (run(&mut a, &all), run(&mut b, &all));
            assert!(wanted == came, "{sql}: {table}, {} rows and {}", wanted.len(), came.len());
        }
    }
    drop((a, b));
    let report = sql_mysql::check::check(&scarce.db).expect("the walk comes to its end");
    assert_eq!(report.problems, Vec::<String>::new());
}

/// The memory of a join's right side is released with it, and no other memory.
#[test]
fn a_sort_over_a_loop_counts_all_of_its_rows() {
    let folder = Folder::new("loop");
    let world = World::new(8);
    world.db.spill_to(&folder.0, 64 << 10).expect("the folder is there");
    let mut session = fill(&world);
    let sql = "select u.id, v.s from u, lateral (select t.s from t where t.id = u.k) v order by v.s, u.id";
    let plan = run(&mut session, &format!("explain format=tree {sql}")).join("|");
    assert!(plan.contains("Nested loop"), "{plan}");
    let before = world.db.spill().expect("it was given").byte_count();
    assert!(run(&mut session, sql).len() > 5000);
    let spilled = world.db.spill().expect("it was given").byte_count() - before;
    assert!(spilled > 200 << 10, "{spilled}");
    // What a LATERAL table gathers for one row is gone before the next.
    let sql = "select count(*) from u, lateral (select t.s from t where t.id < u.id % 300) v";
    assert_eq!(run(&mut session, sql), ["[count(*)]", "897000"]);
}

#[test]
fn a_disk_without_room_ends_the_statement_alone() {
    let folder = Folder::new("full");
    let world = World::new(5);
    world.db.spill_to(&folder.0, 64 << 10).expect("the folder is there");
    let mut session = fill(&world);
    // Nothing can be created any more: a file has taken the folder's place.
    std::fs::remove_dir_all(&folder.0).expect("it was there");
    std::fs::write(&folder.0, "").expect("a file");
    let came = run(&mut session, "select * from t order by s, id");
    assert!(came[0].starts_with("error 1026 "), "{came:?}");
    assert_eq!(run(&mut session, "select count(*) from t").join("|"), "[count(*)]|6000");
    std::fs::remove_file(&folder.0).expect("the file");
    assert_eq!(run(&mut session, "select * from t order by s, id").len(), 6001, "the folder is made again");
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
