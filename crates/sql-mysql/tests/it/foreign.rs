//! Foreign keys under many sessions, crashes and DDL: nobody ever commits an orphan.

use std::sync::Arc;

use os::SimFolder;
use stdx::prng::Prng;

use crate::support::{World, run};

const THREADS: u64 = 4;
const PARENTS: u64 = 6;

const LEVELS: [&str; 4] = ["read uncommitted", "read committed", "repeatable read", "serializable"];

fn all(session: &mut sql_mysql::Session, statements: &[&str]) {
    for sql in statements {
        let answer = run(session, sql);
        assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
    }
}

fn foreign_graph(world: &World) {
    let mut session = world.session(1);
    all(
        &mut session,
        &[
            "create database d",
            "use d",
            "create table p (id int primary key, k int not null, n int, unique (k), key (n))",
            "create table r (id int primary key auto_increment, p int, foreign key (p) references p (id))",
            "create table c (id int primary key auto_increment, k int, foreign key (k) references p (k) on delete cascade on update cascade, unique (k, id))",
            "create table s (id int primary key auto_increment, c int, n int, foreign key (c) references c (id) on delete set null, foreign key (n) references p (n) on delete cascade)",
            "create table tree (id int primary key auto_increment, up int, foreign key (up) references tree (id) on delete cascade)",
        ],
    );
    for id in 1..=PARENTS {
        all(&mut session, &[&format!("insert into p values ({id}, {id}, {})", id / 3)]);
    }
}

fn statement(prng: &mut Prng) -> String {
    let (a, b) = (prng.below(PARENTS) + 1, prng.below(PARENTS) + 1);
    match prng.below(16) {
        0 | 1 => format!("insert into r (p) values ({a})"),
        2 | 3 => format!("insert into c (k) values ({a}), ({b})"),
        4 | 5 => format!("insert into s (c, n) values ((select max(id) from c where k = {a}), {})", b / 3),
        6 | 7 => format!("delete from p where id = {a}"),
        8 | 9 => format!("insert ignore into p values ({a}, {a}, {})", a / 3),
        10 => format!("update p set k = k + {b} * 100 where id = {a}"),
        11 => format!("delete from r where p = {a}"),
        12 => format!("update r set p = {b} where p = {a} limit 1"),
        13 => format!("replace into p values ({a}, {a}, {})", b / 3),
        14 => format!("insert into tree (up) select max(id) from tree where id % 3 = {}", a % 3),
        _ => format!("delete from tree where id % 7 = {} limit 2", a % 7),
    }
}

/// Lets others in between two statements.
fn pause(prng: &mut Prng) {
    std::thread::sleep(std::time::Duration::from_micros(prng.below(300)));
}

fn live(world: &World, thread: u64, rounds: u64, seed: u64) {
    let mut session = world.session(10 + thread);
    let mut prng = Prng::new(seed);
    all(&mut session, &["use d", "set innodb_lock_wait_timeout = 5"]);
    // Lost to a deadlock, a wait, a constraint, or a number beyond the column's.
    let fine = ["1213", "1205", "1451", "1452", "1062", "3008", "1264"];
    for _ in 0..rounds {
        let level = LEVELS[prng.below(4) as usize];
        // An old snapshot sees parents that are gone: the checks must not.
        let begin = ["begin", "start transaction with consistent snapshot"][prng.below(2) as usize];
        all(&mut session, &[&format!("set session transaction isolation level {level}"), begin]);
        pause(&mut prng);
        for step in 0..prng.below(4) + 1 {
            pause(&mut prng);
            let sql = statement(&mut prng);
            let answer = run(&mut session, &sql);
            if let Some(rest) = answer[0].strip_prefix("error ") {
                assert!(fine.iter().any(|code| rest.starts_with(code)), "{sql}: {answer:?}");
                if rest.starts_with("1213") {
                    break;
                }
            }
            if step == 1 && prng.below(4) == 0 {
                run(&mut session, "savepoint here");
                run(&mut session, &statement(&mut prng));
                run(&mut session, "rollback to here");
            }
        }
        run(&mut session, if prng.below(5) == 0 { "rollback" } else { "commit" });
    }
}

fn vouched(world: &World) {
    let report = sql_mysql::check::check(&world.db).expect("the walk comes to its end");
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn no_orphan_is_ever_committed_at_any_isolation_level() {
    for seed in 41..44 {
        let world = Arc::new(World::on(SimFolder::new(seed)));
        foreign_graph(&world);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let world = &world;
                scope.spawn(move || live(world, thread, 80, seed * 100 + thread));
            }
        });
        vouched(&world);
    }
}

#[test]
fn a_crash_in_the_middle_of_cascades_leaves_no_orphan() {
    for seed in 51..55 {
        let world = World::on(SimFolder::new(seed));
        foreign_graph(&world);
        live(&world, 0, 60, seed);
        let mut open = world.session(2);
        all(&mut open, &["use d", "begin", "delete from r", "delete from p where id < 7"]);
        let world = world.crash();
        vouched(&world);
        drop(open);
    }
}

#[test]
fn a_crash_around_ddl_leaves_both_ends_or_none() {
    for seed in 61..64 {
        let world = World::on(SimFolder::new(seed));
        let mut session = world.session(1);
        all(
            &mut session,
            &[
                "create database d",
                "use d",
                "create table p (id int primary key)",
                "create table c (id int primary key, p int)",
                "insert into p values (1), (2)",
                "insert into c values (1, 1), (2, 2)",
                "alter table c add constraint f foreign key (p) references p (id) on delete cascade",
                "rename table p to q",
            ],
        );
        drop(session);
        let world = world.crash();
        vouched(&world);
        let mut session = world.session(1);
        if run(&mut session, "select count(*) from d.q")[0].starts_with('[') {
            assert_eq!(run(&mut session, "insert into d.c values (3, 9)")[0][..10].to_owned(), "error 1452");
            assert_eq!(run(&mut session, "delete from d.q where id = 1"), ["ok 1"]);
            assert_eq!(run(&mut session, "select count(*) from d.c")[1], "1");
        }
    }
}

#[test]
fn child_and_parent_wait_for_each_other() {
    let world = World::new(71);
    let (mut one, mut two) = (world.session(1), world.session(2));
    all(
        &mut one,
        &[
            "create database d",
            "use d",
            "create table p (id int primary key, v int)",
            "create table c (id int primary key, p int, foreign key (p) references p (id))",
            "insert into p values (1, 0), (2, 0)",
        ],
    );
    all(&mut two, &["use d", "set innodb_lock_wait_timeout = 1"]);
    let waited = "error 1205 Lock wait timeout exceeded; try restarting transaction";
    for level in LEVELS {
        let set = format!("set session transaction isolation level {level}");
        all(&mut one, &[&set, "begin", "insert into c values (1, 1)"]);
        all(
            &mut two,
            &[&set, "insert into c values (2, 1)", "delete from p where id = 2", "insert into p values (2, 0)"],
        );
        assert_eq!(run(&mut two, "delete from p where id = 1"), [waited]);
        assert_eq!(run(&mut two, "update p set id = 5 where id = 1"), [waited]);
        all(&mut one, &["rollback", "delete from c", "begin", "delete from p where id = 1"]);
        assert_eq!(run(&mut two, "insert into c values (3, 1)"), [waited]);
        all(&mut one, &["rollback", "begin", "delete from p where id = 1"]);
        // The one that waits finds what the other has committed.
        let answers = std::thread::scope(|scope| {
            let child = scope.spawn(|| run(&mut two, "insert into c values (3, 1)"));
            std::thread::sleep(std::time::Duration::from_millis(50));
            all(&mut one, &["commit"]);
            child.join().expect("an answer")
        });
        assert!(answers[0].starts_with("error 1452"), "{answers:?}");
        all(&mut one, &["insert into p values (1, 0)"]);
    }
}

#[test]
fn ddl_on_a_family_does_not_lock_out_who_is_in_it() {
    let world = World::new(72);
    let (mut one, mut two) = (world.session(1), world.session(2));
    all(
        &mut one,
        &[
            "create database d",
            "use d",
            "create table p (id int primary key)",
            "create table c (id int primary key, p int, foreign key (p) references p (id))",
            "begin",
            "insert into p values (1)",
        ],
    );
    std::thread::scope(|scope| {
        let ddl = scope.spawn(|| run(&mut two, "alter table d.c drop foreign key c_ibfk_1, add column x int"));
        std::thread::sleep(std::time::Duration::from_millis(300));
        // The DDL waits for p; c must not stay closed meanwhile.
        all(&mut one, &["insert into c values (1, 1)", "commit"]);
        assert_eq!(ddl.join().expect("an answer"), ["ok 0"]);
    });
    all(&mut one, &["insert into c values (2, 99, 0)", "drop table p"]);
}

#[test]
fn plans_know_of_constraints_that_come_later() {
    let world = World::new(73);
    let mut one = world.session(1);
    all(
        &mut one,
        &[
            "create database d",
            "use d",
            "create table p (id int primary key)",
            "insert into p values (1), (2), (3)",
            "delete from p where id = 3",
        ],
    );
    let delete = one.prepare("delete from p where id = ?").expect("it parses");
    all(
        &mut world.session(2),
        &["use d", "create table c (p int, foreign key (p) references p (id))", "insert into c values (1)"],
    );
    assert!(run(&mut one, "delete from p where id = 1")[0].starts_with("error 1451"));
    let answer = one.execute_prepared(&delete.handle, vec![sql_mysql::value::Value::Int(1)]);
    assert_eq!(answer.expect_err("it has a child").code, 1451);
    all(&mut world.session(3), &["drop table d.c"]);
    assert_eq!(run(&mut one, "delete from p where id = 1"), ["ok 1"]);
}

#[test]
fn the_check_vouches_for_what_was_checked_and_says_so_of_the_rest() {
    let world = World::new(74);
    let mut one = world.session(1);
    all(
        &mut one,
        &[
            "create database d",
            "use d",
            "create table p (id int primary key)",
            "create table c (id int primary key, p int, foreign key (p) references p (id))",
            "insert into p values (1)",
            "insert into c values (1, 1)",
            "set foreign_key_checks = 0",
            "insert into c values (2, 7)",
            "set foreign_key_checks = 1",
        ],
    );
    drop(one);
    let world = world.reopen();
    let report = sql_mysql::check::check(&world.db).expect("the walk comes to its end");
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(
        report.notes,
        ["table d.c, foreign key c_ibfk_1: 1 without a parent, from times when foreign_key_checks was off"]
    );
    // The constraint itself is checked again.
    let mut one = world.session(1);
    assert!(run(&mut one, "insert into d.c values (3, 7)")[0].starts_with("error 1452"));
}

/// QU-6: an empty child made before its parent, and one whose parent was dropped, are as somebody wanted them.
#[test]
fn a_missing_parent_is_a_remark_and_no_damage() {
    let world = World::on(SimFolder::new(5));
    let mut session = world.session(1);
    all(
        &mut session,
        &[
            "create database a",
            "use a",
            "set foreign_key_checks = 0",
            "create table `empty` (id int primary key, p int, foreign key (p) references later (id))",
            "create table nulls (id int primary key, p int, foreign key (p) references later (id))",
            "set foreign_key_checks = 1",
            "insert into nulls values (1, null)",
            "create table users (id int primary key)",
            "create table kids (id int primary key, u int, foreign key (u) references users (id))",
            "insert into users values (1)",
            "insert into kids values (1, 1), (2, null)",
            "set foreign_key_checks = 0",
            "drop table users",
        ],
    );
    let report = sql_mysql::check::check(&world.db).expect("the walk comes to its end");
    assert_eq!(report.problems, Vec::<String>::new());
    let mut notes = report.notes;
    notes.sort();
    assert_eq!(
        notes,
        [
            "table a.empty, foreign key empty_ibfk_1: its parent table a.later does not exist",
            "table a.kids, foreign key kids_ibfk_1: 1 without a parent, since its parent table a.users does not exist",
            "table a.nulls, foreign key nulls_ibfk_1: its parent table a.later does not exist",
        ]
    );
}
