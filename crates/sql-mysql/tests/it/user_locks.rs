//! Locks by name: sessions that wait for each other's, and what ends a wait.

use std::thread;
use std::time::Duration;

use sql_mysql::Kill;

use crate::support::{World, run};

#[test]
fn who_waits_for_a_named_lock_gets_it_when_its_holder_lets_go_or_goes() {
    let world = World::new(71);
    let (mut one, mut two) = (world.session(1), world.session(2));
    assert_eq!(run(&mut one, "select get_lock('job', 0), get_lock('JOB', 0)")[1], "1 | 1");
    assert_eq!(run(&mut two, "select get_lock('job', 0), is_free_lock('job'), is_used_lock('job')")[1], "0 | 0 | 1");
    assert_eq!(run(&mut two, "select release_lock('job'), release_lock('none')")[1], "0 | NULL");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| run(&mut two, "select get_lock('job', -1)")[1].clone());
        assert_eq!(run(&mut one, "select release_lock('job')")[1], "1");
        assert_eq!(run(&mut one, "select release_all_locks()")[1], "1");
        assert_eq!(waiter.join().expect("it gets it"), "1");
    });
    // No transaction lets it go, the end of the session does.
    run(&mut two, "begin");
    run(&mut two, "rollback");
    assert_eq!(run(&mut one, "select is_used_lock('job')")[1], "2");
    drop(two);
    assert_eq!(run(&mut one, "select is_free_lock('job'), is_used_lock('job')")[1], "1 | NULL");
    assert_eq!(run(&mut one, "select get_lock('job', 0)")[1], "1");
    one.reset();
    assert_eq!(run(&mut one, "select is_free_lock('job')")[1], "1");
}

#[test]
fn a_circle_of_waits_for_named_locks_is_an_error_for_who_closes_it() {
    let world = World::new(72);
    let (mut one, mut two) = (world.session(1), world.session(2));
    run(&mut one, "select get_lock('a', 0)");
    run(&mut two, "select get_lock('b', 0)");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let told = run(&mut one, "select get_lock('b', 60)");
            run(&mut one, "select release_lock('a')");
            told
        });
        let told = run(&mut two, "select get_lock('a', 60)");
        // Whoever came second is the victim; the other one gets what it lets go.
        if told[0].starts_with("error 3058") {
            run(&mut two, "select release_lock('b')");
            assert_eq!(waiter.join().expect("it gets it")[1], "1");
        } else {
            assert!(waiter.join().expect("it is told")[0].starts_with("error 3058"), "{told:?}");
        }
    });
}

#[test]
fn a_kill_ends_a_sleep_and_a_wait_for_a_named_lock() {
    let world = World::new(73);
    let (mut one, mut two) = (world.session(1), world.session(2));
    run(&mut one, "select get_lock('a', 0)");
    for (sql, told) in [
        ("select get_lock('a', 1000)", "error 1317 Query execution was interrupted"),
        // A sleep is cut short; a query that goes on after it is not.
        ("select sleep(1000)", "1"),
        ("select sleep(1000) from (select 1 union all select 2) t", "error 1317 Query execution was interrupted"),
        ("select 1 from (select 1) t where sleep(1000)", "error 1317 Query execution was interrupted"),
        ("select benchmark(1000000000000, 1)", "error 1317 Query execution was interrupted"),
    ] {
        let handle = two.handle().clone();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| run(&mut two, sql).pop());
            // Before the statement has begun a kill is forgotten.
            while !waiter.is_finished() {
                handle.kill(Kill::Query);
                thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(waiter.join().expect("it ends").as_deref(), Some(told), "{sql}");
        });
    }
}

#[test]
fn the_time_of_a_query_ends_its_sleep() {
    let world = World::new(74);
    let mut session = world.session(1);
    assert_eq!(run(&mut session, "select /*+ max_execution_time(30) */ sleep(1000)").pop().as_deref(), Some("1"));
    run(&mut session, "set max_execution_time = 30");
    assert_eq!(run(&mut session, "select sleep(1000) + 1").pop().as_deref(), Some("2"));
    let told = run(&mut session, "select sleep(1000) from (select 1 union all select 2) t");
    assert!(told.last().is_some_and(|told| told.starts_with("error 3024")), "{told:?}");
    run(&mut session, "set max_execution_time = 0");
    assert_eq!(run(&mut session, "select sleep(0.04)").pop().as_deref(), Some("0"));
}
