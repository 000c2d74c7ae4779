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

#[test]
fn a_subscriber_above_the_soft_limit_is_cut_without_another_message() {
    let served = Served::start();
    let (mut lazy, mut publisher) = (Client::connect(served.address), Client::connect(served.address));
    lazy.call("SUBSCRIBE a");
    assert_eq!(publisher.call("CONFIG SET client-output-buffer-limit \"pubsub 0 100kb 1\""), "+OK");
    let unsent = |publisher: &mut Client| {
        let list = publisher.call("CLIENT LIST");
        let lazy = list.split("id=").find(|line| line.contains(" sub=1 "))?;
        field(lazy, "omem")?.parse::<u64>().ok()
    };
    let payload = "x".repeat(50_000);
    while unsent(&mut publisher).is_some_and(|bytes| bytes < 200_000) {
        publisher.send(&["PUBLISH", "a", &payload]);
        assert_eq!(publisher.receive(), ":1");
    }
    while unsent(&mut publisher).is_some() {}
    assert_eq!(info(&mut publisher, "client_output_buffer_limit_disconnections"), 1);
    served.stop();
}

#[test]
fn a_lower_limit_of_tracked_keys_holds_at_once() {
    let served = Served::start();
    let (mut client, mut other) = (Client::connect(served.address), Client::connect(served.address));
    client.call("HELLO 3");
    assert_eq!(client.call("CLIENT TRACKING ON"), "+OK");
    client.call("MGET a b c d");
    assert_eq!(info(&mut other, "tracking_total_keys"), 4);
    assert_eq!(other.call("CONFIG SET tracking-table-max-keys 1"), "+OK");
    assert_eq!(info(&mut other, "tracking_total_keys"), 1);
    for _ in 0..3 {
        assert_eq!((client.receive().as_str(), client.receive().as_str()), (">2", "$10 invalidate"));
        assert!(client.receive().starts_with("*1 $1 "));
    }
    assert_eq!(client.call("PING"), "+PONG");
    served.stop();
}

/// DR-15.
#[test]
fn an_invalidation_by_a_served_wait_follows_its_reply() {
    let served = Served::start();
    let (mut client, mut other) = (Client::connect(served.address), Client::connect(served.address));
    client.call("HELLO 3");
    assert_eq!(client.call("CLIENT TRACKING ON"), "+OK");
    for round in 0..20 {
        client.call("LRANGE to 0 -1");
        client.send(&["BLMOVE", "from", "to", "LEFT", "LEFT", "0"]);
        while !other.call("CLIENT LIST").contains("flags=bt") {}
        assert_eq!(other.call("RPUSH from x"), ":1");
        let parts = [client.receive(), client.receive(), client.receive(), client.receive()];
        assert_eq!(parts, ["$1 x", ">2", "$10 invalidate", "*1 $2 to"].map(str::to_owned), "round {round}");
    }
    served.stop();
}

#[test]
fn times_of_commands_are_tracked_if_wanted() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    for (word, is_tracked) in [("no", false), ("yes", true)] {
        client.call("CONFIG RESETSTAT");
        assert_eq!(client.call(&format!("CONFIG SET latency-tracking {word}")), "+OK");
        client.call("SET k v");
        assert_eq!(client.call("INFO latencystats").contains("latency_percentiles_usec_set:"), is_tracked, "{word}");
        assert_eq!(client.call("LATENCY HISTOGRAM set").contains("calls"), is_tracked, "{word}");
        assert!(client.call("INFO commandstats").contains("cmdstat_set:calls=1,"), "{word}");
    }
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

#[test]
fn a_monitor_runs_nothing_that_could_touch_keys() {
    let served = Served::start();
    for request in
        ["GET k", "SET k v", "PUBLISH a b", "EVAL 'return 1' 0", "EVALSHA 0 0", "EVAL_RO 'return 1' 0", "FCALL f 0"]
    {
        let mut client = Client::connect(served.address);
        assert_eq!(client.call("MONITOR"), "+OK");
        assert_eq!(client.call(request), "-ERR Replica can\\'t interact with the keyspace", "{request}");
    }
    served.stop();
}

/// Commands that may replicate wait as writes do, also in EXEC.
#[test]
fn a_pause_of_writes_holds_messages_counts_and_scripts() {
    let served = Served::start();
    let mut other = Client::connect(served.address);
    assert_eq!(other.call("PFADD h a"), ":1");
    let library = "#!lua name=l\nredis.register_function{function_name='reads', callback=function() return 'not held' end, flags={'no-writes'}}";
    other.send(&["FUNCTION", "LOAD", library]);
    assert_eq!(other.receive(), "$1 l");
    assert_eq!(other.call("CLIENT PAUSE 1000000 WRITE"), "+OK");
    let requests =
        ["PFCOUNT h", "PUBLISH a b", "SPUBLISH a b", "EVAL 'return 1' 0", "EVALSHA 0 0", "FCALL f 0", "EXEC"];
    let held: Vec<Client> = requests
        .iter()
        .map(|request| {
            let mut client = Client::connect(served.address);
            if *request == "EXEC" {
                assert_eq!(client.call("MULTI"), "+OK");
                assert_eq!(client.call("GET h2"), "+QUEUED");
                client.send(&["PUBLISH", "a", "b"]);
            }
            client.stream.get_mut().write_all(format!("{request}\r\n").as_bytes()).expect("the server reads");
            client
        })
        .collect();
    let held_count = |list: &str| {
        let flags = list.split(" flags=").skip(1).filter_map(|rest| rest.split(' ').next());
        flags.filter(|flags| flags.contains('b')).count()
    };
    while held_count(&other.call("CLIENT LIST")) < held.len() {}
    // Scripts and functions whose flags say that they do not write are not held.
    let reading = "#!lua flags=no-writes\nreturn 'not held'";
    for reads in ["GET h2", "EVAL_RO 'return 1' 0", "PING"] {
        assert!(!other.call(reads).is_empty());
    }
    for request in [
        &["EVAL", reading, "0"],
        &["EVALSHA", "1F5B76F46BE101CA32A8018D0133F7471D42AE05", "0"],
        &["FCALL", "reads", "0"],
    ] {
        other.send(request);
        assert_eq!(other.receive(), "$8 not held", "{request:?}");
    }
    for request in ["MULTI", "FCALL reads 0"] {
        other.call(request);
    }
    assert_eq!(other.call("EXEC"), "*1 $8 not held");
    assert_eq!(other.call("CLIENT UNPAUSE"), "+OK");
    for (mut client, request) in held.into_iter().zip(requests) {
        assert!(!client.receive().is_empty(), "{request}");
    }
    served.stop();
}
