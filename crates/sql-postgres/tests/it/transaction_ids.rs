//! Ids and snapshots of transactions of several sessions, and over a crash. `recorded/transaction_ids.txt` has the statements of one session.

use crate::world::{Client, World};

fn ask(client: &mut Client, text: &str) -> String {
    client.run(text).join(" ")
}

#[test]
fn snapshots_tell_which_transactions_they_see() {
    let mut world = World::new();
    let (mut one, mut two, mut reader) = (world.session(), world.session(), world.session());
    let status = |client: &mut Client, id: &str| ask(client, &format!("select pg_xact_status('{id}')"));
    let sees = |client: &mut Client, id: &str| {
        ask(client, &format!("select pg_visible_in_snapshot('{id}', pg_current_snapshot())"))
    };
    one.run("create table t (a int)");
    one.run("begin; insert into t values (1)");
    let open = ask(&mut one, "select pg_current_xact_id()");
    two.run("begin; insert into t values (2)");
    let later = ask(&mut two, "select txid_current()");
    two.run("commit");
    reader.run("begin isolation level repeatable read");
    assert_eq!((sees(&mut reader, &open), sees(&mut reader, &later)), ("f".to_owned(), "t".to_owned()));
    let snapshot = ask(&mut reader, "select pg_current_snapshot()");
    assert!(snapshot.starts_with(&format!("{open}:")) && snapshot.ends_with(&format!(":{open}")), "{snapshot} {open}");
    assert_eq!(ask(&mut reader, "select * from pg_snapshot_xip(pg_current_snapshot())"), open);
    assert_eq!(status(&mut two, &open), "in progress");
    one.run("commit");
    // The snapshot is as old as before, the outcome is that of now.
    assert_eq!((sees(&mut reader, &open), status(&mut reader, &open)), ("f".to_owned(), "committed".to_owned()));
    assert_eq!(ask(&mut reader, "select a from t"), "2");
    assert_eq!(sees(&mut two, &open), "t");
    two.run("begin");
    let undone = ask(&mut two, "select txid_current()");
    two.run("rollback");
    assert_eq!(status(&mut two, &undone), "aborted");
    let future = "select pg_xact_status((txid_current() + 1000000)::text::xid8)";
    assert!(ask(&mut two, future).contains("22023: transaction ID"), "{}", ask(&mut two, future));
    assert!(ask(&mut two, future).contains("is in the future"));
    assert_eq!(status(&mut two, "1"), "");
}

#[test]
fn ids_are_given_once_and_positions_grow_over_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run(
        "create table t (id xid8, at pg_lsn); insert into t select pg_current_xact_id(), pg_current_wal_insert_lsn()",
    );
    client.run("insert into t select pg_current_xact_id(), pg_current_wal_insert_lsn()");
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(
        ask(&mut client, "select bool_and(id < pg_current_xact_id()), bool_and(at < pg_current_wal_lsn()) from t"),
        "t|t"
    );
    assert_eq!(ask(&mut client, "select count(distinct id), count(distinct at) from t"), "2|2");
    // What was decided before the start is no longer known, and visible.
    assert_eq!(
        ask(
            &mut client,
            "select distinct pg_xact_status(id), pg_visible_in_snapshot(id, pg_current_snapshot()) from t"
        ),
        "|t"
    );
}
