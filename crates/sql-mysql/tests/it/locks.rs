//! INNODB_TRX, data_locks and data_lock_waits show transactions and their locks.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{World, run};

/// The rows, without the head.
fn rows(session: &mut sql_mysql::Session, sql: &str) -> Vec<String> {
    run(session, sql).split_off(1)
}

fn told(session: &mut sql_mysql::Session, sql: &str) -> String {
    rows(session, sql).join("; ")
}

fn prepared() -> (World, sql_mysql::Session) {
    let world = World::new(11);
    let mut session = world.session(1);
    for sql in [
        "create database d",
        "use d",
        "create table t (a int, b date, v int, primary key (a, b))",
        "create table w (name varchar(20) primary key, v int, n int unique)",
        "create table nameless (v int)",
        "insert into t values (1, '2026-01-02', 0), (2, '2026-01-02', 0), (3, '2026-01-02', 0)",
        "insert into w values ('one', 1, 1)",
        "insert into nameless values (1)",
    ] {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
    }
    (world, session)
}

const TRANSACTIONS: &str = "select trx_mysql_thread_id, trx_state, trx_isolation_level, trx_tables_locked, trx_rows_locked, trx_rows_modified, trx_weight, trx_is_read_only, trx_autocommit_non_locking, trx_query from information_schema.innodb_trx order by 1";
const LOCKS: &str = "select thread_id, object_schema, object_name, index_name, lock_type, lock_mode, lock_status, lock_data from performance_schema.data_locks order by thread_id, object_name, lock_data";

#[test]
fn open_transactions_and_their_locks_are_told() {
    let (world, mut asks) = prepared();
    let mut one = world.session(2);
    run(&mut one, "use d");
    assert_eq!(told(&mut asks, TRANSACTIONS), "", "the statement that asks is none");
    run(&mut one, "set transaction isolation level read committed");
    run(&mut one, "begin");
    assert_eq!(told(&mut asks, TRANSACTIONS), "2 | RUNNING | READ COMMITTED | 0 | 0 | 0 | 0 | 0 | 0 | NULL");
    let id = "select trx_id > 281474976710656 from information_schema.innodb_trx";
    assert_eq!(told(&mut asks, id), "1", "a number of InnoDB's kind for who has locked nothing");
    run(&mut one, "update t set v = v + 1 where a < 3");
    run(&mut one, "select * from w where name = 'one' for share");
    run(&mut one, "select * from nameless for update");
    assert_eq!(told(&mut asks, TRANSACTIONS), "2 | RUNNING | READ COMMITTED | 3 | 4 | 2 | 6 | 0 | 0 | NULL");
    let locks = rows(&mut asks, LOCKS);
    let nameless = &locks[0];
    assert!(
        nameless.starts_with("2 | d | nameless | GEN_CLUST_INDEX | RECORD | X,REC_NOT_GAP | GRANTED | 0x00000000"),
        "{nameless}"
    );
    let rest = [
        "2 | d | t | PRIMARY | RECORD | X,REC_NOT_GAP | GRANTED | 1, 2026-01-02",
        "2 | d | t | PRIMARY | RECORD | X,REC_NOT_GAP | GRANTED | 2, 2026-01-02",
        "2 | d | w | PRIMARY | RECORD | S,REC_NOT_GAP | GRANTED | NULL",
    ];
    assert_eq!(locks[1..], rest, "of a text the key keeps its order alone");
    let same = "select count(*), count(distinct engine_lock_id), min(trx_id = engine_transaction_id) from performance_schema.data_locks join information_schema.innodb_trx";
    assert_eq!(told(&mut asks, same), "4 | 4 | 1");
    run(&mut one, "rollback");
    assert_eq!((told(&mut asks, TRANSACTIONS), told(&mut asks, LOCKS)), (String::new(), String::new()));
    run(&mut one, "start transaction read only");
    assert!(told(&mut asks, TRANSACTIONS).starts_with("2 | RUNNING | REPEATABLE READ | 0 | 0 | 0 | 0 | 1 | 0"));
    run(&mut one, "commit");
    run(&mut one, "set autocommit = 0");
    run(&mut one, "select * from t");
    assert!(told(&mut asks, TRANSACTIONS).starts_with("2 | RUNNING | REPEATABLE READ | 0 | 0 | 0 | 0 | 0 | 0"));
}

#[test]
fn ranges_and_locks_without_keys_are_told() {
    let (world, mut asks) = prepared();
    let mut one = world.session(2);
    for sql in
        ["use d", "set transaction isolation level serializable", "begin", "select * from t where a > 1 for update"]
    {
        run(&mut one, sql);
    }
    let gaps = "select lock_mode, lock_data from performance_schema.data_locks where lock_mode like '%GAP' and lock_mode not like '%NOT_GAP'";
    assert_eq!(told(&mut asks, gaps), "X,GAP | supremum pseudo-record");
    run(&mut one, "rollback");
    run(&mut one, "create table many (a int primary key)");
    run(
        &mut one,
        "insert into many with recursive n(a) as (select 1 union all select a + 1 from n where a < 900) select a from n",
    );
    run(
        &mut one,
        "insert into many select a + 900 * b.k from many join (select 1 k union all select 2 union all select 3 union all select 4 union all select 5 union all select 6 union all select 7 union all select 8 union all select 9) b",
    );
    run(&mut one, "begin");
    run(&mut one, "select count(*) from many for update");
    assert_eq!(told(&mut asks, "select trx_rows_locked from information_schema.innodb_trx"), "9000");
    let without = "select lock_mode, lock_data from performance_schema.data_locks where object_name = 'many' and lock_data is null";
    assert_eq!(told(&mut asks, without), "X,REC_NOT_GAP | NULL", "beyond some thousands there are no keys");
}

/// Runs the statement in a thread, lets `look` see it wait for so many others, and ends what it waits for.
fn while_it_waits(one: &mut sql_mysql::Session, two: &mut sql_mysql::Session, sql: &str, look: impl FnOnce()) {
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| run(two, sql));
        look();
        run(one, "rollback");
        assert!(waits.join().expect("it ends")[0].starts_with("ok"));
    });
    run(two, "rollback");
}

fn eventually(session: &mut sql_mysql::Session, sql: &str, expected: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let came = told(session, sql);
        if came == expected {
            return;
        }
        assert!(Instant::now() < until, "{came}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn who_waits_is_told_with_the_row_and_who_has_it() {
    let (world, mut asks) = prepared();
    let (mut one, mut two) = (world.session(2), world.session(3));
    for session in [&mut one, &mut two] {
        run(session, "use d");
    }
    const WAITS: &str = "select requesting_thread_id, blocking_thread_id, requesting_engine_transaction_id = r.trx_id, blocking_engine_transaction_id = b.trx_id, r.trx_requested_lock_id = requesting_engine_lock_id, r.trx_state, b.trx_state, r.trx_wait_started is not null, b.trx_wait_started is null, r.trx_query, h.lock_status, h.lock_mode, h.lock_data, w.lock_status, w.lock_data from performance_schema.data_lock_waits join information_schema.innodb_trx r on r.trx_mysql_thread_id = requesting_thread_id join information_schema.innodb_trx b on b.trx_mysql_thread_id = blocking_thread_id join performance_schema.data_locks h on h.engine_lock_id = blocking_engine_lock_id join performance_schema.data_locks w on w.engine_lock_id = requesting_engine_lock_id";
    let expected = |query: &str, row: &str| {
        format!(
            "3 | 2 | 1 | 1 | 1 | LOCK WAIT | RUNNING | 1 | 1 | {query} | GRANTED | X,REC_NOT_GAP | {row} | WAITING | {row}"
        )
    };
    run(&mut one, "begin");
    run(&mut one, "select * from t where a = 2 and b = '2026-01-02' for update");
    let update = "update t set v = 7 where a = 2 and b = '2026-01-02'";
    const VIEW: &str = "select wait_started is not null, wait_age_secs < 100, wait_age < '00:02:00', locked_table, locked_index, waiting_pid, waiting_query, waiting_trx_rows_locked, waiting_lock_mode, blocking_pid, blocking_query, blocking_trx_rows_locked, blocking_trx_rows_modified, sql_kill_blocking_query, sql_kill_blocking_connection, waiting_trx_started <= wait_started, blocking_trx_age is not null, waiting_lock_id <> blocking_lock_id from sys.innodb_lock_waits";
    while_it_waits(&mut one, &mut two, update, || {
        eventually(&mut asks, WAITS, &expected(update, "2, 2026-01-02"));
        let view = format!(
            "1 | 1 | 1 | `d`.`t` | PRIMARY | 3 | {update} | 0 | X,REC_NOT_GAP | 2 | NULL | 1 | 0 | KILL QUERY 2 | KILL 2 | 1 | 1 | 1"
        );
        assert_eq!(told(&mut asks, VIEW), view);
    });
    // Who has put a row in has no lock that is listed until somebody wants the row.
    run(&mut one, "begin");
    run(&mut one, "insert into t values (9, '2026-01-02', 0)");
    assert_eq!(told(&mut asks, LOCKS), "");
    let delete = "delete from t where a = 9 and b = '2026-01-02'";
    while_it_waits(&mut one, &mut two, delete, || eventually(&mut asks, WAITS, &expected(delete, "9, 2026-01-02")));
    assert_eq!((told(&mut asks, LOCKS), told(&mut asks, WAITS)), (String::new(), String::new()));
}

#[test]
fn who_may_not_see_others_sees_his_own() {
    let (world, mut root) = prepared();
    for sql in ["create user app", "grant all on d.* to app"] {
        run(&mut root, sql);
    }
    let mut app = world.session_of("app", "localhost", 4).expect("app may come in");
    for session in [&mut root, &mut app] {
        run(session, "begin");
    }
    run(&mut root, "select * from d.t where a = 1 for update");
    run(&mut app, "select * from d.t where a = 3 for update");
    assert!(run(&mut app, TRANSACTIONS)[0].starts_with("error 1227"));
    let mine = "select lock_data from performance_schema.data_locks where lock_mode like '%NOT_GAP' order by 1";
    assert_eq!(told(&mut app, mine), "3, 2026-01-02");
    assert_eq!(told(&mut root, mine), "1, 2026-01-02; 3, 2026-01-02");
}
