//! Locking statements with LIMIT lock the rows that they return and those that they have to pass, and no others.

use crate::support::{World, run};
use sql_mysql::Session;

const LEVELS: [&str; 2] = ["read committed", "repeatable read"];

fn all(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        let answer = run(session, sql);
        assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
    }
}

/// The rows, joined.
fn rows(session: &mut Session, sql: &str) -> String {
    let answer = run(session, sql);
    assert!(answer[0].starts_with('['), "{sql}: {answer:?}");
    answer[1..].join("; ")
}

fn jobs(world: &World) -> Session {
    let mut root = world.session(1);
    all(
        &mut root,
        &[
            "create database d",
            "use d",
            "create table jobs (id int primary key, state int, prio int, body varchar(20), key (state, prio), key (prio))",
            "create table owners (id int primary key, name varchar(20))",
            "insert into jobs with recursive n(i) as (select 1 union all select i + 1 from n where i < 500) select i, i % 2, i, 'x' from n",
            "insert into owners values (0, 'zero'), (1, 'one')",
        ],
    );
    root
}

fn session(world: &World, number: u64, level: &str) -> Session {
    let mut session = world.session(number);
    all(&mut session, &["use d", &format!("set session transaction isolation level {level}"), "begin"]);
    session
}

/// The rows of `jobs` that nobody has locked, counted, and the first of those that somebody has.
fn locked(root: &mut Session) -> String {
    all(root, &["begin"]);
    let all_ids = "select count(*), coalesce(group_concat(id order by id), '') from jobs where id not in";
    let free: Vec<String> = run(root, "select id from jobs for update skip locked").split_off(1);
    let answer = rows(root, &format!("{all_ids} ({})", free.join(", ")));
    all(root, &["rollback"]);
    answer
}

#[test]
fn a_statement_with_a_limit_locks_what_it_returns_and_what_it_passed() {
    let cases = [
        ("select id from jobs where state = 1 order by prio limit 1 for update", "1 | 1"),
        ("select id from jobs where state = 1 order by prio limit 1 for update skip locked", "1 | 1"),
        ("select id from jobs where state = 1 order by prio limit 1 for update nowait", "1 | 1"),
        ("select id from jobs where state = 1 order by prio limit 3 for share", "3 | 1,3,5"),
        ("select id from jobs order by id limit 2 for update", "2 | 1,2"),
        ("select id from jobs order by id desc limit 2 for update", "2 | 499,500"),
        ("select id from jobs order by id limit 2 offset 3 for update", "5 | 1,2,3,4,5"),
        ("select id from jobs where prio >= 100 order by prio limit 1 for update", "1 | 100"),
        ("select id from jobs where prio <= 100 order by prio desc limit 2 for update", "2 | 99,100"),
        ("update jobs set body = 'y' where state = 0 order by prio limit 1", "1 | 2"),
        ("update jobs set body = 'y' order by id limit 2", "2 | 1,2"),
        ("delete from jobs where prio > 7 order by prio limit 1", "1 | 8"),
        ("delete from jobs limit 2", "2 | 1,2"),
        (
            "select jobs.id from jobs force index (prio) left join owners on owners.id = jobs.state where prio > 4 limit 1 for update",
            "1 | 5",
        ),
        ("select * from (select id from jobs where prio > 20 order by prio limit 1 for update) q", "1 | 21"),
    ];
    let world = World::new(5);
    let mut root = jobs(&world);
    for level in LEVELS {
        for (sql, expected) in cases {
            let mut one = session(&world, 2, level);
            let answer = run(&mut one, sql);
            assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
            assert_eq!(locked(&mut root), expected, "{level}: {sql}");
            all(&mut one, &["rollback"]);
        }
        // Rows that are passed stay locked at REPEATABLE READ only.
        let mut one = session(&world, 2, level);
        all(&mut one, &["select id from jobs where prio > 10 and id % 10 = 5 order by prio limit 1 for update"]);
        let passed = if level == "read committed" { "1 | 15" } else { "5 | 11,12,13,14,15" };
        assert_eq!(locked(&mut root), passed, "{level}");
        // A range that is locked step by step is one lock.
        let ranges = "select count(*) from performance_schema.data_locks where lock_mode like '%GAP' and lock_mode not like '%NOT_GAP'";
        assert_eq!(rows(&mut root, ranges), if level == "read committed" { "0" } else { "1" });
        all(&mut one, &["rollback"]);
    }
}

#[test]
fn workers_that_skip_locked_rows_each_get_a_row_of_their_own() {
    for level in LEVELS {
        let world = World::new(6);
        let _root = jobs(&world);
        let mut workers: Vec<Session> = (0..40).map(|number| session(&world, 2 + number, level)).collect();
        let mut taken = Vec::new();
        for worker in &mut workers {
            let next = "select id from jobs where state = 1 order by prio limit 1 for update skip locked";
            taken.push(rows(worker, next).parse::<u64>().expect("a job"));
        }
        assert_eq!(taken, (0..40).map(|nth| 2 * nth + 1).collect::<Vec<_>>(), "{level}");
        for (worker, id) in workers.iter_mut().zip(&taken) {
            all(worker, &[&format!("delete from jobs where id = {id}"), "commit"]);
        }
    }
}

#[test]
fn a_limit_leaves_the_range_behind_it_open_for_new_rows() {
    let world = World::new(7);
    let mut root = jobs(&world);
    all(&mut root, &["delete from jobs where id between 100 and 200", "set innodb_lock_wait_timeout = 1"]);
    let mut one = session(&world, 2, "repeatable read");
    assert_eq!(rows(&mut one, "select id from jobs where id > 50 order by id limit 2 for update"), "51; 52");
    all(&mut root, &["insert into jobs values (150, 1, 150, 'new'), (900, 1, 900, 'new')"]);
    all(&mut one, &["rollback", "begin"]);
    // Backwards, and to the end: no row can come into what was walked.
    assert_eq!(rows(&mut one, "select id from jobs where id > 495 order by id desc limit 1 for update"), "900");
    all(&mut root, &["insert into jobs values (800, 1, 800, 'new')"]);
    let blocked = run(&mut root, "insert into jobs values (901, 1, 901, 'new')");
    assert!(blocked[0].starts_with("error 1205"), "{blocked:?}");
    all(&mut one, &["rollback", "begin"]);
    assert_eq!(rows(&mut one, "select id from jobs where id > 898 order by id limit 5 for update"), "900");
    let blocked = run(&mut root, "insert into jobs values (999, 1, 999, 'new')");
    assert!(blocked[0].starts_with("error 1205"), "{blocked:?}");
    all(&mut one, &["rollback"]);
}

/// Runs the statement in `two`, which has to wait for `one`; then `one` is rolled back.
fn waits_and_then(world: &World, one: &mut Session, two: &mut Session, sql: &str) -> Vec<String> {
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| run(two, sql));
        while world.engine.rows().lock_waits().is_empty() {
            assert!(!waits.is_finished(), "it does not wait: {sql}");
            std::thread::yield_now();
        }
        all(one, &["rollback"]);
        waits.join().expect("it ends")
    })
}

#[test]
fn entries_that_an_open_transaction_has_removed_or_given_away_are_waited_for() {
    let world = World::new(9);
    let mut root = jobs(&world);
    all(
        &mut root,
        &[
            "create table u (id int primary key, n int unique, s int, key (s))",
            "insert into u values (1, 1, 1), (2, 2, 2), (3, 3, 3)",
            "create table child (id int primary key, n int, foreign key (n) references u (n) on delete cascade)",
            "insert into child values (1, 3), (2, 2)",
        ],
    );
    for level in LEVELS {
        for change in [
            vec!["delete from u where id = 1"],
            vec!["update u set s = 9, n = 9 where id = 1"],
            vec!["update u set n = 9, s = 9 where id = 1", "insert into u values (7, 1, 1)"],
        ] {
            for sql in [
                "select id from u force index (s) where s = 1 for update",
                "select id from u force index (s) where s < 2 for share",
                "select id from u force index (n) where n = 1 for update",
                "select id from u force index (n) where n < 2 limit 1 for update",
            ] {
                let (mut one, mut two) = (session(&world, 2, level), session(&world, 3, level));
                all(&mut one, &change);
                for refused in ["nowait", "skip locked"] {
                    if sql.ends_with("share") {
                        continue;
                    }
                    let answer = run(&mut two, &format!("{sql} {refused}"));
                    let expected = if refused == "nowait" { "error 3572" } else { "[id]" };
                    assert!(
                        answer.len() == 1 && answer[0].starts_with(expected),
                        "{level}: {change:?}: {sql}: {answer:?}"
                    );
                }
                assert_eq!(waits_and_then(&world, &mut one, &mut two, sql)[1..], ["1"], "{level}: {change:?}: {sql}");
                all(&mut two, &["rollback"]);
            }
        }
        // A cascade finds the child that another transaction had moved away, when that is taken back.
        let (mut one, mut two) = (session(&world, 2, level), session(&world, 3, level));
        all(&mut one, &["update child set n = 2 where id = 1"]);
        let answer = waits_and_then(&world, &mut one, &mut two, "delete from u where n = 3");
        assert!(answer[0].starts_with("ok 1"), "{answer:?}");
        assert_eq!(rows(&mut two, "select id from child"), "2", "{level}");
        all(&mut two, &["rollback"]);
    }
}

#[test]
fn a_duplicate_is_told_while_others_share_the_row() {
    let world = World::new(10);
    let _root = jobs(&world);
    let (mut one, mut two) = (session(&world, 2, "repeatable read"), session(&world, 3, "repeatable read"));
    all(&mut one, &["select * from jobs where id = 1 for share"]);
    assert!(run(&mut two, "insert into jobs values (1, 0, 0, 'new')")[0].starts_with("error 1062"));
    assert!(run(&mut two, "insert ignore into jobs values (1, 0, 0, 'new')")[0].starts_with("ok 0"));
    let replaced = waits_and_then(&world, &mut one, &mut two, "replace into jobs values (1, 0, 0, 'new')");
    assert!(replaced[0].starts_with("ok 2"), "{replaced:?}");
    all(&mut two, &["rollback"]);
    let (mut one, mut two) = (session(&world, 2, "repeatable read"), session(&world, 3, "repeatable read"));
    all(&mut one, &["select * from jobs where id = 1 for update"]);
    let answer = waits_and_then(&world, &mut one, &mut two, "insert into jobs values (1, 0, 0, 'new')");
    assert!(answer[0].starts_with("error 1062"), "{answer:?}");
}

#[test]
fn a_row_that_is_not_there_is_locked_at_repeatable_read_only() {
    let world = World::new(8);
    let _root = jobs(&world);
    for (level, expected) in [("read committed", "ok 1"), ("repeatable read", "error 1205")] {
        let mut one = session(&world, 2, level);
        let mut two = session(&world, 3, level);
        all(&mut two, &["set innodb_lock_wait_timeout = 1"]);
        assert_eq!(rows(&mut one, "select * from jobs where id = 1000 for update"), "");
        assert!(run(&mut one, "update jobs set prio = 1 where id = 1000")[0].starts_with("ok 0"));
        let answer = run(&mut two, "insert into jobs values (1000, 0, 0, 'new')");
        assert!(answer[0].starts_with(expected), "{level}: {answer:?}");
        all(&mut one, &["rollback"]);
        all(&mut two, &["rollback"]);
    }
}
