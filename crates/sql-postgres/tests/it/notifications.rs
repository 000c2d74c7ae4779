//! LISTEN and NOTIFY: what arrives, when and where.

use crate::world::{Client, World, check};

/// The notifications that have come, as channel and payload.
fn taken(client: &mut Client) -> Vec<String> {
    let notifications = client.0.take_notifications();
    notifications.iter().map(|notification| format!("{}:{}", notification.channel, notification.payload)).collect()
}

#[test]
fn notifications_arrive_with_their_commit_and_once_each() {
    let mut world = World::new();
    let (mut listener, mut sender) = (world.session(), world.session());
    listener.run("listen a");
    sender.lines(
        "begin
         notify a, '1'
         notify a, '1'
         savepoint s
         notify a, 'lost'
         rollback to s
         select pg_notify('a', '2')
         notify b, 'of another channel'",
    );
    assert!(taken(&mut listener).is_empty());
    sender.run("commit");
    assert_eq!(taken(&mut listener), ["a:1", "a:2"]);
    sender.run("begin; notify a, 'no'; rollback");
    assert!(taken(&mut listener).is_empty());
}

#[test]
fn a_listener_in_a_transaction_receives_at_its_end() {
    let mut world = World::new();
    let (mut listener, mut sender) = (world.session(), world.session());
    listener.lines(
        "listen a
         begin",
    );
    sender.run("notify a");
    assert!(taken(&mut listener).is_empty());
    listener.run("commit");
    assert_eq!(taken(&mut listener), ["a:"]);
}

#[test]
fn listening_begins_and_ends_with_a_commit() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("begin; listen a; rollback");
    client.run("notify a");
    assert!(taken(&mut client).is_empty());
    client.run("begin; listen a; notify a, 'own'; commit");
    assert_eq!(taken(&mut client), ["a:own"]);
    check(client.run("select * from pg_listening_channels()"), "a");
    client.run("unlisten *");
    client.run("notify a");
    assert!(taken(&mut client).is_empty());
    client.run("listen a");
    client.run("discard all");
    check(client.run("select count(*) from pg_listening_channels()"), "0");
}

#[test]
fn names_and_payloads_that_are_too_long_are_refused() {
    let mut world = World::new();
    let mut client = world.session();
    let found = client.lines(
        "select pg_notify('', 'x')
         select pg_notify(null, null)
         select pg_notify(repeat('c', 64), '')
         select pg_notify('c', repeat('x', 8000))
         select pg_notify('c', repeat('x', 7999))",
    );
    check(
        found,
        "ERROR:  22023: channel name cannot be empty
         ERROR:  22023: channel name cannot be empty
         ERROR:  22023: channel name too long
         ERROR:  22023: payload string too long",
    );
}
