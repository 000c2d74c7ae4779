//! SET PERSIST: what it says holds after a restart, and after a crash as soon as it was told; RESET PERSIST takes it back.

use os::SimFolder;

use crate::support::{World, run};

const NAMES: &str = "select @@global.innodb_lock_wait_timeout, @@global.foreign_key_checks, @@global.sql_mode, @@global.session_track_system_variables";

#[test]
fn what_is_persisted_holds_after_a_restart_and_after_a_crash() {
    let mut world = World::on(SimFolder::new(5));
    let mut session = world.session(1);
    for sql in [
        "set persist innodb_lock_wait_timeout = 7, persist foreign_key_checks = off",
        "set persist sql_mode = 'ansi_quotes'",
        "set persist session_track_system_variables = null",
        "set global lock_wait_timeout = 3",
    ] {
        assert_eq!(run(&mut session, sql), ["ok 0"], "{sql}");
        world.engine.durable().wait(session.durability_lsn());
    }
    drop(session);
    for restarts in 0..3 {
        world = if restarts == 0 { world.crash() } else { world.reopen() };
        let mut session = world.session(2);
        assert_eq!(run(&mut session, NAMES)[1], "7 | 0 | ANSI_QUOTES | NULL");
        assert_eq!(run(&mut session, "select @@innodb_lock_wait_timeout, @@sql_mode")[1], "7 | ANSI_QUOTES");
        assert_eq!(run(&mut session, "select @@global.lock_wait_timeout")[1], "31536000", "GLOBAL is for one life");
    }
    let mut session = world.session(3);
    run(&mut session, "reset persist sql_mode");
    assert_eq!(run(&mut session, "select @@global.sql_mode")[1], "ANSI_QUOTES", "what is in force stays");
    drop(session);
    let world = world.reopen();
    let mut session = world.session(4);
    assert!(run(&mut session, "select @@global.sql_mode")[1].starts_with("ONLY_FULL_GROUP_BY"));
    assert_eq!(run(&mut session, "select count(*) from performance_schema.persisted_variables")[1], "3");
    run(&mut session, "reset persist");
    drop(session);
    let world = world.reopen();
    let mut session = world.session(5);
    assert_eq!(run(&mut session, "select @@global.innodb_lock_wait_timeout")[1], "50");
}
