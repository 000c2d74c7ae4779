//! Messages among clients: their durability, their limits, and the end of a subscriber.

use super::*;

fn info(client: &mut Client, field: &str) -> i64 {
    let text = client.call("INFO stats");
    let value = text.split(&format!("{field}:")).nth(1).unwrap_or_else(|| panic!("{field} in {text}"));
    value.split(' ').next().unwrap_or_default().parse().expect("a number")
}

#[test]
fn a_message_follows_what_its_publisher_has_changed() {
    let served = Served::start();
    let (mut subscriber, mut publisher) = (Client::connect(served.address), Client::connect(served.address));
    assert_eq!(subscriber.call("SUBSCRIBE a"), "*3 $9 subscribe $1 a :1");
    for round in 0..50 {
        let lsn = served.engine.pager().wal_head();
        publisher.send(&["SET", "k", &round.to_string()]);
        publisher.send(&["PUBLISH", "a", "changed"]);
        assert_eq!(subscriber.receive(), "*3 $7 message $1 a $7 changed");
        // DR-4, RE-21: the change of the batch was durable before its message was sent.
        assert!(served.engine.durable().get() > lsn);
        assert_eq!((publisher.receive(), publisher.receive()), ("+OK".to_owned(), ":1".to_owned()));
    }
    served.stop();
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_and_the_publisher_does_not_wait() {
    let served = Served::start();
    let (mut lazy, mut publisher) = (Client::connect(served.address), Client::connect(served.address));
    lazy.call("SUBSCRIBE a");
    assert_eq!(publisher.call("CONFIG SET client-output-buffer-limit \"pubsub 100kb 0 0\""), "+OK");
    let payload = "x".repeat(50_000);
    let mut reached = 0;
    while {
        publisher.send(&["PUBLISH", "a", &payload]);
        publisher.receive() == ":1"
    } {
        reached += 1;
        assert!(reached < 10_000, "it is never cut");
    }
    assert_eq!(info(&mut publisher, "client_output_buffer_limit_disconnections"), 1);
    assert_eq!(info(&mut publisher, "pubsub_channels"), 0);
    served.stop();
}

/// RE-19.
#[test]
fn a_client_that_waits_ends_with_its_peer() {
    let served = Served::start();
    let mut watcher = Client::connect(served.address);
    let mut waiting = Client::connect(served.address);
    waiting.send(&["WAIT", "1", "1000000"]);
    while !watcher.call("CLIENT LIST").contains("flags=b") {}
    drop(waiting);
    while watcher.call("CLIENT LIST").contains("flags=b") {}
    served.stop();
}

#[test]
fn hostile_patterns_take_bounded_time() {
    let served = Served::start();
    let (mut subscriber, mut publisher) = (Client::connect(served.address), Client::connect(served.address));
    let pattern = "*a".repeat(200) + "b";
    subscriber.send(&["PSUBSCRIBE", &pattern]);
    subscriber.receive();
    let channel = "a".repeat(20_000);
    publisher.send(&["PUBLISH", &channel, "x"]);
    assert_eq!(publisher.receive(), ":0");
    served.stop();
}
