//! Which replies wait until what the transaction has met is durable (QU-64).

use crate::world::{Client, World, check};

/// The first session commits a change of a row whose COMMIT ends at the LSN, and the second has begun a transaction.
fn met() -> (World, Client, Client, u64) {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.lines("create table t (id int primary key, x int)\ninsert into t values (1, 10), (2, 20)\nbegin");
    check(one.run("update t set x = 11 where id = 1"), "UPDATE 1");
    check(one.run("commit"), "COMMIT");
    let committed = one.0.durability_lsn();
    check(other.run("begin"), "BEGIN");
    assert!(other.0.durability_lsn() < committed);
    (world, one, other, committed)
}

/// Returns whether a reply of the client now waits for the LSN, or need not because the WAL is durable up to it by now.
fn waits_for(world: &World, client: &Client, lsn: u64) -> bool {
    client.0.durability_lsn() >= lsn || world.db.engine().durable().get() >= lsn
}

#[test]
fn a_change_in_an_open_transaction_does_not_wait_for_the_commit_that_it_met() {
    let (_world, _one, mut other, committed) = met();
    check(other.run("update t set x = x + 1 where id = 1"), "UPDATE 1");
    check(other.run("insert into t values (3, 30)"), "INSERT 0 1");
    check(other.run("delete from t where id = 3"), "DELETE 1");
    assert!(other.0.durability_lsn() < committed);
    check(other.run("commit"), "COMMIT");
    assert!(other.0.durability_lsn() > committed);
}

#[test]
fn rows_wait_for_what_the_transaction_met_before() {
    for text in ["select 1", "update t set x = 0 where id = 2 returning id"] {
        let (world, _one, mut other, committed) = met();
        check(other.run("update t set x = x + 1 where id = 1"), "UPDATE 1");
        other.run(text);
        assert!(waits_for(&world, &other, committed), "{text}");
    }
}

#[test]
fn errors_and_rollback_wait_for_what_the_transaction_met() {
    for text in ["insert into t values (1, 1)", "rollback"] {
        let (world, _one, mut other, committed) = met();
        check(other.run("update t set x = x + 1 where id = 1"), "UPDATE 1");
        other.run(text);
        assert!(waits_for(&world, &other, committed), "{text}");
    }
}

#[test]
fn a_change_that_is_its_own_transaction_waits() {
    let (world, mut one, mut other, committed) = met();
    check(other.run("rollback"), "ROLLBACK");
    check(other.run("update t set x = x + 1 where id = 2"), "UPDATE 1");
    let own = other.0.durability_lsn();
    assert!(own > committed);
    // One that changes nothing has met the row all the same.
    check(one.run("update t set x = 0 where id = 2 and x = 999"), "UPDATE 0");
    assert!(waits_for(&world, &one, own));
}
