//! State that survives a restart, and conflicts between sessions.

use sql_mysql::Session;
use sql_mysql::batch::{Batch, Cells};

use crate::support::{World, run};

#[test]
fn tables_rows_and_numbers_survive_a_restart() {
    let world = World::new(11);
    let mut session = world.session(1);
    for sql in [
        "create database d",
        "create table d.t (id int not null auto_increment primary key, name varchar(20) not null default 'x', unique key (name))",
        "insert into d.t (name) values ('a'), ('b'), ('c')",
        "delete from d.t where id = 3",
    ] {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
    }
    drop(session);
    let world = world.reopen();
    let mut session = world.session(1);
    assert_eq!(run(&mut session, "select id, name from d.t order by id"), ["[id | name]", "1 | a", "2 | b"]);
    assert!(run(&mut session, "insert into d.t (name) values ('d')")[0].starts_with("ok 1"));
    // A number is never given twice, though some may be skipped.
    assert_eq!(run(&mut session, "select id > 3 from d.t where name = 'd'")[1], "1");
    assert_eq!(
        run(&mut session, "insert into d.t (name) values ('a')"),
        ["error 1062 Duplicate entry 'a' for key 't.name'"]
    );
}

#[test]
fn a_statement_that_fails_in_the_middle_changes_nothing() {
    let world = World::new(12);
    let mut session = world.session(1);
    run(&mut session, "create database d");
    run(&mut session, "use d");
    run(&mut session, "create table t (id int primary key, k int, unique key (k))");
    run(&mut session, "begin");
    assert_eq!(
        run(&mut session, "insert into t values (1, 1), (2, 2)"),
        ["ok 2, Records: 2  Duplicates: 0  Warnings: 0"]
    );
    assert_eq!(
        run(&mut session, "insert into t values (3, 3), (4, 1)"),
        ["error 1062 Duplicate entry '1' for key 't.k'"]
    );
    assert_eq!(run(&mut session, "select * from t where k > 0"), ["[id | k]", "1 | 1", "2 | 2"]);
    run(&mut session, "commit");
    assert_eq!(run(&mut session, "select count(*) from t"), ["[count(*)]", "2"]);
}

#[test]
fn ddl_waits_for_transactions_that_use_the_table() {
    let world = World::new(13);
    let mut one = world.session(1);
    run(&mut one, "create database d");
    run(&mut one, "create table d.t (id int primary key)");
    run(&mut one, "begin");
    run(&mut one, "insert into d.t values (1)");
    let mut other = world.session(2);
    run(&mut other, "set lock_wait_timeout = 1");
    assert_eq!(
        run(&mut other, "alter table d.t add column b int"),
        ["error 1205 Lock wait timeout exceeded; try restarting transaction"]
    );
    run(&mut one, "commit");
    assert_eq!(run(&mut other, "alter table d.t add column b int default 7"), ["ok 0"]);
    assert_eq!(run(&mut one, "select * from d.t"), ["[id | b]", "1 | 7"]);
}

#[test]
fn a_killed_statement_ends() {
    let world = World::new(14);
    let mut one = world.session(1);
    run(&mut one, "create database d");
    run(&mut one, "create table d.t (id int primary key)");
    let many =
        "insert into d.t with recursive c(n) as (select 1 union all select n + 1 from c where n < 900) select n from c";
    assert_eq!(run(&mut one, many), ["ok 900, Records: 900  Duplicates: 0  Warnings: 0"]);
    let Ok(sql_mysql::Outcome::Rows(mut rows)) = one.execute("select * from d.t") else { panic!("rows") };
    assert!(world.db.kill(1, sql_mysql::Kill::Query));
    let mut batch = Batch::new();
    assert!(rows.next(&mut one, &mut batch).expect("rows that were there already"));
    assert_eq!(rows.next(&mut one, &mut batch).expect_err("it was killed").code, 1317);
    assert_eq!(run(&mut one, "select 1"), ["[1]", "1"]);
}

#[test]
fn prepared_statements_run_again_and_again() {
    use sql_mysql::value::Value;
    let world = World::new(15);
    let mut session = world.session(1);
    run(&mut session, "create database d");
    run(&mut session, "use d");
    run(&mut session, "create table t (id int primary key, c varchar(20))");
    let insert = session.prepare("insert into t values (?, ?)").expect("it parses");
    assert_eq!(insert.parameters.len(), 2);
    for number in 1..=5 {
        let values = vec![Value::Int(number), Value::text(format!("c{number}"))];
        session.execute_prepared(&insert.handle, values).expect("a new row");
    }
    let select = session.prepare("select c from t where id = ?").expect("it parses");
    assert_eq!(select.columns[0].name, "c");
    for number in [3, 9, 1] {
        let Ok(sql_mysql::Outcome::Rows(mut rows)) = session.execute_prepared(&select.handle, vec![Value::Int(number)])
        else {
            panic!("rows")
        };
        let mut batch = Batch::new();
        let found = rows.next(&mut session, &mut batch).expect("it reads");
        assert_eq!(found, number < 9);
        if found {
            assert_eq!(batch.rows().map(Cells::to_row).collect::<Vec<_>>(), [[Value::text(format!("c{number}"))]]);
        }
    }
}

/// Sessions 1 and 2, and a table `d.t` with the rows (1, 0) and (2, 0).
fn two_sessions_and_two_rows(seed: u64) -> (World, Session, Session) {
    let world = World::new(seed);
    let mut one = world.session(1);
    let two = world.session(2);
    run(&mut one, "create database d");
    run(&mut one, "create table d.t (id int primary key, v int)");
    run(&mut one, "insert into d.t values (1, 0), (2, 0)");
    (world, one, two)
}

#[test]
fn of_two_who_wait_for_each_other_one_is_told() {
    let (_world, mut one, mut two) = two_sessions_and_two_rows(16);
    run(&mut one, "begin");
    run(&mut two, "begin");
    run(&mut one, "update d.t set v = 1 where id = 1");
    run(&mut two, "update d.t set v = 2 where id = 2");
    let answers = std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&mut one, "update d.t set v = 1 where id = 2"));
        let second = scope.spawn(|| run(&mut two, "update d.t set v = 2 where id = 1"));
        [first.join().expect("an answer"), second.join().expect("an answer")]
    });
    let told = answers.iter().filter(|answer| answer[0].starts_with("error 1213")).count();
    let served = answers.iter().filter(|answer| answer[0].starts_with("ok 1")).count();
    assert_eq!((told, served), (1, 1), "{answers:?}");
    run(&mut one, "commit");
    run(&mut two, "commit");
    let rows = run(&mut one, "select v from d.t");
    assert_eq!(rows[1], rows[2], "the victim has changed nothing");
}

#[test]
fn a_statement_that_waits_for_a_row_can_be_killed() {
    let (world, mut one, mut two) = two_sessions_and_two_rows(17);
    run(&mut one, "begin");
    run(&mut one, "update d.t set v = 1 where id = 1");
    run(&mut two, "begin");
    run(&mut two, "update d.t set v = 2 where id = 2");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| run(&mut two, "update d.t set v = 3"));
        // The wait may not have begun yet: then the kill is seen as it begins, or was forgotten with the statement before it.
        while !waits.is_finished() {
            world.db.kill(2, sql_mysql::Kill::Query);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let answer = waits.join().expect("an answer");
        assert!(answer[0].starts_with("error 1317"), "{answer:?}");
    });
    run(&mut one, "rollback");
    assert_eq!(run(&mut two, "commit")[0], "ok 0");
    assert_eq!(run(&mut two, "select v from d.t order by id")[1..], ["0", "2"], "the transaction is what it was");
}
