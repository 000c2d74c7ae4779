//! Which replies wait until what the transaction has met is durable (QU-64).

use sql_mysql::Session;

use crate::support::{World, run};

/// The first session commits a change of a row whose COMMIT ends at the LSN, and the second runs `begin`.
fn met(begin: &str) -> (World, Session, u64) {
    let world = World::new(1);
    let (mut one, mut other) = (world.session(1), world.session(2));
    for sql in
        ["create database d", "create table d.t (id int primary key, x int)", "insert into d.t values (1, 10), (2, 20)"]
    {
        assert!(run(&mut one, sql)[0].starts_with("ok"), "{sql}");
    }
    run(&mut one, "update d.t set x = 11 where id = 1");
    let committed = one.durability_lsn();
    run(&mut other, begin);
    assert!(other.durability_lsn() < committed);
    (world, other, committed)
}

/// Returns whether a reply of the session now waits for the LSN, or need not because the WAL is durable up to it by now.
fn waits_for(world: &World, session: &Session, lsn: u64) -> bool {
    session.durability_lsn() >= lsn || world.engine.durable().get() >= lsn
}

const BEGINNINGS: [&str; 2] = ["begin", "set autocommit = 0"];

#[test]
fn a_change_in_an_open_transaction_does_not_wait_for_the_commit_that_it_met() {
    for begin in BEGINNINGS {
        let (_world, mut other, committed) = met(begin);
        for sql in
            ["update d.t set x = x + 1 where id = 1", "replace into d.t values (3, 30)", "delete from d.t where id = 3"]
        {
            assert!(run(&mut other, sql)[0].starts_with("ok"), "{sql}");
            assert!(other.durability_lsn() < committed, "{begin}: {sql}");
        }
        run(&mut other, "commit");
        assert!(other.durability_lsn() > committed, "{begin}");
    }
}

#[test]
fn rows_errors_and_ends_wait_for_what_the_transaction_met() {
    for sql in [
        "select 1",
        "select x from d.t where id = 2",
        "insert into d.t values (1, 1)",
        "rollback",
        "create table d.u (id int)",
    ] {
        for begin in BEGINNINGS {
            let (world, mut other, committed) = met(begin);
            run(&mut other, "update d.t set x = x + 1 where id = 1");
            run(&mut other, sql);
            assert!(waits_for(&world, &other, committed), "{begin}: {sql}");
        }
    }
}

#[test]
fn a_change_that_is_its_own_transaction_waits() {
    let (world, mut other, committed) = met("select 1");
    run(&mut other, "update d.t set x = x + 1 where id = 1");
    let own = other.durability_lsn();
    assert!(own > committed);
    // One that changes nothing has met the row all the same.
    let mut third = world.session(3);
    run(&mut third, "update d.t set x = 0 where id = 1 and x = 999");
    assert!(waits_for(&world, &third, own));
}
