//! Replies behind a gate: a server whose right to answer is in doubt.

use std::sync::atomic::AtomicBool;

use super::*;

fn gated() -> (Bench, Arc<AtomicBool>) {
    let is_open = Arc::new(AtomicBool::new(true));
    let of_gate = is_open.clone();
    let gate = ReplyGate::new(move || of_gate.load(Ordering::SeqCst));
    (start_gated(Settings::default(), Some(gate)), is_open)
}

/// PG-33.
#[test]
fn nothing_leaves_while_the_gate_is_closed_and_everything_afterwards() {
    let (bench, is_open) = gated();
    let mut streams: Vec<TcpStream> = (0..20).map(|_| bench.connect()).collect();
    streams.iter_mut().for_each(|stream| {
        say(stream, "hello\n");
        hear(stream, "hello\n");
    });
    is_open.store(false, Ordering::SeqCst);
    streams.iter_mut().for_each(|stream| say(stream, "one\n"));
    // A message that nobody has asked for, more than a send batch takes, and a reply that also waits for the WAL.
    let connection = bench.connection_of(&streams[0]);
    streams.iter_mut().for_each(|stream| bench.holds_output(stream, 4));
    assert!(Broadcast::default().put(&connection, &b"message\n".as_slice().into(), 0).is_some());
    say(&mut streams[1], "big 200000\n");
    say(&mut streams[2], "hold 10\n");
    bench.holds_output(&mut streams[0], 12);
    bench.holds_output(&mut streams[1], 200_005);
    bench.holds_output(&mut streams[2], 12);
    // The watermark opens nothing, nor does a notice while the gate is closed.
    bench.durable.advance(5);
    bench.pool.release_held();
    say(&mut streams[3], "two\n");
    bench.holds_output(&mut streams[3], 8);
    bench.holds_output(&mut streams[0], 12);
    is_open.store(true, Ordering::SeqCst);
    bench.pool.release_held();
    hear(&mut streams[0], "one\nmessage\n");
    hear(&mut streams[1], &format!("one\n{}\n", "x".repeat(200_000)));
    hear(&mut streams[2], "one\n");
    hear(&mut streams[3], "one\ntwo\n");
    streams[4..].iter_mut().for_each(|stream| hear(stream, "one\n"));
    bench.holds_output(&mut streams[2], 8);
    bench.durable.advance(10);
    hear(&mut streams[2], "hold 10\n");
    bench.pool.stop();
}

#[test]
fn a_gate_that_opens_and_closes_at_any_moment_loses_no_reply() {
    let (bench, is_open) = gated();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = bench.connect();
                    for at in 0..500 {
                        say(&mut stream, &format!("{at}\n"));
                        hear(&mut stream, &format!("{at}\n"));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                is_open.store(false, Ordering::SeqCst);
                std::thread::yield_now();
                is_open.store(true, Ordering::SeqCst);
                bench.pool.release_held();
            }
        });
        for client in clients {
            client.join().unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
    bench.pool.stop();
}

#[test]
fn a_connection_with_held_output_closes_when_its_peer_or_the_pool_does() {
    let (bench, is_open) = gated();
    let (mut stream, mut other) = (bench.connect(), bench.connect());
    for stream in [&mut stream, &mut other] {
        say(stream, "hello\n");
        hear(stream, "hello\n");
    }
    is_open.store(false, Ordering::SeqCst);
    say(&mut stream, "one\n");
    bench.holds_output(&mut stream, 4);
    let connection = bench.connection_of(&stream);
    connection.handle().kill();
    eventually("it is closed", || connection.is_closed());
    say(&mut other, "one\n");
    bench.holds_output(&mut other, 4);
    assert!(!bench.pool.drain(Duration::from_millis(50)), "its reply has not left");
    bench.pool.stop();
}
