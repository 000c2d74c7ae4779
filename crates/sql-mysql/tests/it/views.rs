//! Every index shows a transaction the same rows as the primary key does, whatever the transaction and others have written since its snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::rows::Rows;
use sql_mysql::{Kill, Session};
use stdx::prng::Prng;

use crate::support::{World, run};

const LEVELS: [&str; 4] = ["read uncommitted", "read committed", "repeatable read", "serializable"];
const ROWS: u64 = 6;
const VALUES: u64 = 4;

/// Several sessions in one thread. A statement that has to wait for a lock is killed: nobody else could end its wait.
struct Players {
    sessions: Vec<Session>,
    serializable: Vec<bool>,
    /// Number of the statement under way, and of the last one that was killed.
    now: AtomicU64,
    killed: AtomicU64,
    log: Vec<String>,
}

impl Players {
    fn run(&mut self, at: usize, sql: &str, rows: &Arc<Rows>) -> Vec<String> {
        let answer = self.run_or_kill(at, sql, rows);
        self.log.push(format!("{at}: {sql} -> {}", answer.join("; ")));
        answer
    }

    /// A plain read: only SERIALIZABLE waits for locks.
    fn read(&mut self, at: usize, sql: &str, rows: &Arc<Rows>) -> Vec<String> {
        match self.serializable[at] {
            true => self.run_or_kill(at, sql, rows),
            false => run(&mut self.sessions[at], sql),
        }
    }

    fn run_or_kill(&mut self, at: usize, sql: &str, rows: &Arc<Rows>) -> Vec<String> {
        let number = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        let handle = self.sessions[at].handle().clone();
        let (session, now, killed) = (&mut self.sessions[at], &self.now, &self.killed);
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while now.load(Ordering::SeqCst) == number {
                    if killed.load(Ordering::SeqCst) < number && !rows.lock_waits().is_empty() {
                        killed.store(number, Ordering::SeqCst);
                        handle.kill(Kill::Query);
                        rows.wake_waiters();
                    }
                    std::thread::yield_now();
                }
            });
            let answer = run(session, sql);
            now.fetch_add(1, Ordering::SeqCst);
            watch.join().expect("the watch ends");
            answer
        })
    }
}

/// One of few values, now and then NULL.
fn value(prng: &mut Prng) -> String {
    match prng.below(8) {
        0 => "null".to_owned(),
        _ => prng.below(VALUES).to_string(),
    }
}

fn condition(prng: &mut Prng) -> String {
    let (a, b) = (prng.below(VALUES), prng.below(VALUES));
    match prng.below(7) {
        0 => format!("k = {}", prng.below(ROWS)),
        1 => format!("s = {a}"),
        2 => format!("u = {a}"),
        3 => format!("s between {} and {}", a.min(b), a.max(b)),
        4 => format!("s > {a} and v = {b}"),
        5 => format!("s = {a} or u = {b}"),
        _ => format!("k in ({a}, {b})"),
    }
}

fn statement(prng: &mut Prng) -> String {
    let (k, s, u, v) = (prng.below(ROWS), value(prng), value(prng), value(prng));
    let condition = condition(prng);
    match prng.below(20) {
        0..=2 => format!("insert into t (k, u, s, v) values ({k}, {u}, {s}, {v})"),
        3 => format!("insert ignore into t (k, u, s, v) values ({k}, {u}, {s}, {v}), ({}, {s}, {u}, {v})", k + 1),
        4 => format!("replace into t (k, u, s, v) values ({k}, {u}, {s}, {v})"),
        5 => format!("insert into t (k, u, s, v) values ({k}, {u}, {s}, {v}) on duplicate key update v = {v}"),
        6 => format!("insert into t (k, u, s, v) values ({k}, {u}, {s}, {v}) on duplicate key update s = {s}"),
        7..=9 => format!("update t set v = coalesce(v, 0) + 1 where {condition}"),
        10 | 11 => format!("update t set s = {s} where {condition}"),
        12 => format!("update t set u = {u} where {condition}"),
        13 => format!("update t set k = {k} where {condition} limit 1"),
        14 | 15 => format!("delete from t where {condition}"),
        16 => format!("insert into c (k, s) values ({k}, {s})"),
        17 => format!("update c set s = {s} where k = {k}"),
        _ => format!("select * from t where {condition} for update"),
    }
}

fn sorted(mut answer: Vec<String>) -> Vec<String> {
    answer.sort();
    answer
}

/// Compares what each index shows with what the primary key shows. Returns how many comparisons were made.
fn compare(players: &mut Players, at: usize, prng: &mut Prng, rows: &Arc<Rows>) -> u64 {
    let (a, b) = (prng.below(VALUES), prng.below(VALUES));
    let (low, high) = (a.min(b), a.max(b));
    let mut count = 0;
    let pairs = [
        // Rows by an index, a range of it, from both ends.
        ("t", "s", "k, u, s, v", format!("s = {a}")),
        ("t", "s", "k, u, s, v", format!("s between {low} and {high}")),
        ("t", "s", "k, u, s, v", "s is null or s is not null".to_owned()),
        ("t", "sv", "k, u, s, v", format!("s = {a} and v > {b}")),
        ("t", "u", "k, u, s, v", format!("u = {a}")),
        ("t", "u", "k, u, s, v", format!("u >= {a}")),
        ("t", "w", "k, u, s, v", format!("w = 'w{a}'")),
        ("t", "g", "k, u, s, v, x", format!("x = {}", a + 1)),
        // Entries alone.
        ("t", "s", "k, s", format!("s >= {a}")),
        ("t", "s", "count(*)", format!("s = {a}")),
        ("t", "s", "count(*)", "s >= 0".to_owned()),
        ("t", "sv", "s, v, k", format!("s <= {a}")),
        ("t", "u", "u, k", format!("u = {a}")),
        ("t", "u", "count(*)", format!("u in ({a}, {b})")),
        ("t", "s, u", "k, u, s, v", format!("s = {a} or u = {b}")),
        ("c", "k", "id, k, s", format!("k = {a}")),
        ("c", "cs", "id, s", format!("s >= {a}")),
        ("c", "cs", "count(*)", format!("s >= {a}")),
    ];
    for _ in 0..6 {
        let (table, index, columns, condition) = &pairs[prng.below(pairs.len() as u64) as usize];
        let by = |hint: &str| format!("select {columns} from {table} {hint} where {condition}");
        let through = sorted(players.read(at, &by(&format!("force index ({index})")), rows));
        let straight = sorted(players.read(at, &by("force index (primary)"), rows));
        if through[0].starts_with("error") || straight[0].starts_with("error") {
            continue;
        }
        assert_eq!(through, straight, "{index}: {condition}\n{}", players.log.join("\n"));
        count += 1;
    }
    let joins = [
        "select a.k, b.k, b.v from t a force index (primary) join t b force index (X) on b.s = a.s",
        "select a.k, b.k, b.v from t a force index (primary) left join t b force index (X) on b.u = a.u",
        "select a.k from t a force index (primary) where exists (select 1 from t b force index (X) where b.s = a.k)",
        "select a.k from t a force index (primary) where a.k not in (select b.s from t b force index (X) where b.s = a.k)",
    ];
    for _ in 0..2 {
        let join = joins[prng.below(joins.len() as u64) as usize];
        let index = if join.contains("b.u") { "u" } else { "s" };
        let through = sorted(players.read(at, &join.replace('X', index), rows));
        let straight = sorted(players.read(at, &join.replace('X', "primary"), rows));
        if through[0].starts_with("error") || straight[0].starts_with("error") {
            continue;
        }
        assert_eq!(through, straight, "{join}\n{}", players.log.join("\n"));
        count += 1;
    }
    count
}

fn play(seed: u64, steps: u64) -> u64 {
    let world = World::new(seed);
    let mut prng = Prng::new(seed);
    let rows = world.engine.rows().clone();
    let mut root = world.session(1);
    for sql in [
        "create database d",
        "use d",
        "create table t (k int primary key, u int unique, s int, v int, w varchar(9) as (concat('w', s)) stored, x int as (s + 1), key s (s), key sv (s desc, v), key w (w), key g (x))",
        "create table c (id int primary key auto_increment, k int, s int, key k (k), key cs (s), foreign key (k) references t (k) on delete cascade on update cascade)",
        "insert into t (k, u, s, v) values (0, 0, 1, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, null, null, 3)",
        "insert into c (k, s) values (0, 0), (1, 1), (1, 2), (2, 3)",
    ] {
        let answer = run(&mut root, sql);
        assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
    }
    let mut sessions: Vec<Session> = (0..2 + seed % 3).map(|at| world.session(2 + at)).collect();
    for session in &mut sessions {
        run(session, "use d");
    }
    let mut open = vec![false; sessions.len()];
    let serializable = vec![false; sessions.len()];
    let mut players =
        Players { sessions, serializable, now: AtomicU64::new(0), killed: AtomicU64::new(0), log: Vec::new() };
    players.log.push(format!("seed {seed}"));
    let mut compared = 0;
    for _ in 0..steps {
        let at = prng.below(open.len() as u64) as usize;
        if !open[at] {
            let level = LEVELS[prng.below(4) as usize];
            players.serializable[at] = level == "serializable";
            players.run(at, &format!("set session transaction isolation level {level}"), &rows);
            // Half of the statements commit alone: they are what the other transactions do not see.
            if prng.below(2) == 0 {
                players.run(at, &statement(&mut prng), &rows);
                continue;
            }
            let begin = ["begin", "start transaction with consistent snapshot"][prng.below(2) as usize];
            players.run(at, begin, &rows);
            open[at] = true;
            if prng.below(2) == 0 {
                compared += compare(&mut players, at, &mut prng, &rows);
            }
            continue;
        }
        let sql = match prng.below(12) {
            0 => "commit".to_owned(),
            1 => "rollback".to_owned(),
            2 => "savepoint here".to_owned(),
            3 => "rollback to here".to_owned(),
            _ => statement(&mut prng),
        };
        let answer = players.run(at, &sql, &rows);
        let is_fine = ["1062", "1305", "1317", "1213", "1452", "1451", "1761", "1762"];
        if let Some(rest) = answer[0].strip_prefix("error ") {
            assert!(is_fine.iter().any(|code| rest.starts_with(code)), "{}", players.log.join("\n"));
        }
        open[at] = !matches!(&sql[..], "commit" | "rollback") && !answer[0].starts_with("error 1213");
        compared += compare(&mut players, at, &mut prng, &rows);
    }
    compared
}

#[test]
fn every_index_shows_the_rows_that_the_primary_key_shows() {
    let compared: u64 = (0..30).map(|seed| play(seed, 40)).sum();
    assert!(compared > 3_000, "only {compared} comparisons were made");
}

/// Statements of two sessions, and what the last line of each answer must be.
fn script(setup: &[&str], steps: &[(usize, &str, &str)]) {
    let world = World::new(3);
    let mut sessions = [world.session(1), world.session(2)];
    run(&mut sessions[0], "create database d");
    for session in &mut sessions {
        run(session, "use d");
    }
    for sql in setup {
        let answer = run(&mut sessions[0], sql);
        assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
    }
    for (at, sql, expected) in steps {
        let answer = run(&mut sessions[*at], sql);
        let rows = match &answer[..] {
            [head, rows @ ..] if head.starts_with('[') => rows.join("; "),
            other => other.join("; "),
        };
        assert_eq!(rows, *expected, "{at}: {sql}");
    }
}

#[test]
fn a_row_written_over_an_unseen_version_is_found_by_the_index_that_others_wrote() {
    script(
        &["create table l (k int primary key, v text, s int, key (s))"],
        &[
            (0, "begin", "ok 0"),
            (0, "select * from l where s = 1", ""),
            (1, "insert into l values (1, 'x', 1)", "ok 1"),
            (0, "update l set v = concat(v, 'y') where s = 1", "ok 1, Rows matched: 1  Changed: 1  Warnings: 0"),
            (0, "select v from l where k = 1", "xy"),
            (0, "select v from l where s = 1", "xy"),
            (0, "select count(*) from l where s = 1", "1"),
            (1, "insert into l values (2, 'z', 5)", "ok 1"),
            (0, "select count(*) from l where s = 5", "0"),
        ],
    );
}

#[test]
fn a_key_of_a_unique_index_may_show_the_snapshots_row_and_the_transactions_own() {
    script(
        &["create table l (k int primary key, u int unique, v int)", "insert into l values (1, 7, 0), (2, 8, 0)"],
        &[
            (0, "begin", "ok 0"),
            (0, "select k, u from l", "1 | 7; 2 | 8"),
            (1, "delete from l where k = 1", "ok 1"),
            (1, "update l set u = 7 where k = 2", "ok 1, Rows matched: 1  Changed: 1  Warnings: 0"),
            (0, "update l set v = 1 where k = 2", "ok 1, Rows matched: 1  Changed: 1  Warnings: 0"),
            (0, "select k, u from l force index (primary) where k > 0", "1 | 7; 2 | 7"),
            (0, "select k, u from l force index (u) where u = 7", "1 | 7; 2 | 7"),
            (0, "select k, u from l force index (u) where u > 0 order by u desc", "2 | 7; 1 | 7"),
            (0, "select count(*) from l force index (u) where u = 8", "0"),
        ],
    );
}
