//! Messages that several connections share.

use super::*;

fn text(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

/// RE-21.
#[test]
fn a_message_passes_neither_an_earlier_message_nor_a_reply() {
    let bench = start(Settings::default());
    let mut streams = [bench.connect(), bench.connect(), bench.connect()];
    streams.iter_mut().for_each(|stream| {
        say(stream, "hello\n");
        hear(stream, "hello\n");
    });
    let connections = streams.each_ref().map(|stream| bench.connection_of(stream));
    let mut broadcast = Broadcast::default();
    for connection in &connections {
        for (message, lsn) in [("first\n", 0), ("held\n", 10), ("behind\n", 0)] {
            assert!(broadcast.put(connection, &text(message), lsn).is_some());
        }
    }
    drop(broadcast);
    for stream in &mut streams {
        hear(stream, "first\n");
        say(stream, "reply\n");
        bench.holds_output(stream, "held\nbehind\nreply\n".len() as u64);
    }
    bench.durable.advance(10);
    streams.iter_mut().for_each(|stream| hear(stream, "held\nbehind\nreply\n"));
    bench.pool.stop();
}

#[test]
fn messages_count_until_the_peer_has_taken_them_or_is_gone() {
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    say(&mut stream, "hello\n");
    hear(&mut stream, "hello\n");
    let connection = bench.connection_of(&stream);
    let large: Arc<[u8]> = vec![b'x'; 1 << 20].into();
    let mut waiting = 0;
    // Until the socket's buffers are full.
    while waiting < 4 << 20 {
        let backlog = Broadcast::default().put(&connection, &large, 0).expect("it is open");
        assert!(backlog.bytes >= 1 << 20);
        waiting = backlog.bytes;
    }
    assert!(bench.pool.counters().unsent_bytes() > 0);
    drop(stream);
    eventually("it is closed", || connection.is_closed());
    eventually("nothing waits", || bench.pool.counters().unsent_bytes() == 0);
    assert!(Broadcast::default().put(&connection, &large, 0).is_none());
    assert_eq!(bench.pool.counters().unsent_bytes(), 0);
    bench.pool.stop();
}

#[test]
fn every_message_arrives_once_and_in_order_at_all_that_share_it() {
    const MESSAGES: usize = 2000;
    let bench = start(Settings::default());
    let mut streams: Vec<TcpStream> = (0..20).map(|_| bench.connect()).collect();
    streams.iter_mut().for_each(|stream| {
        say(stream, "hello\n");
        hear(stream, "hello\n");
    });
    let connections: Vec<_> = streams.iter().map(|stream| bench.connection_of(stream)).collect();
    let expected: String = (0..MESSAGES).map(|at| format!("message {at}\n")).collect();
    std::thread::scope(|scope| {
        streams.iter_mut().for_each(|stream| {
            let expected = &expected;
            scope.spawn(move || hear(stream, expected));
        });
        for at in 0..MESSAGES {
            let (message, mut broadcast) = (text(&format!("message {at}\n")), Broadcast::default());
            connections.iter().for_each(|connection| {
                broadcast.put(connection, &message, (at % 7) as u64);
            });
            bench.durable.advance((at % 7) as u64);
        }
        bench.durable.advance(7);
    });
    bench.pool.stop();
}

/// RE-21: the session may have written half of a reply when it pauses.
#[test]
fn a_message_waits_for_the_end_of_a_pause() {
    const TIMES: usize = 200;
    const BYTES: usize = 1 << 20;
    let bench = start(Settings::default());
    let mut stream = bench.connect();
    *bench.door.at_pause.lock().unwrap() = Some(text("message\n"));
    say(&mut stream, &(format!("big {BYTES}\n").repeat(TIMES) + "last\n"));
    // The peer reads nothing, so the session pauses before it has answered all.
    eventually("it pauses", || bench.door.at_pause.lock().unwrap().is_none());
    hear_big(&mut stream, TIMES, BYTES);
    hear(&mut stream, "last\nmessage\n");
    bench.pool.stop();
}
