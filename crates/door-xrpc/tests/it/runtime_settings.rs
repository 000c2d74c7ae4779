//! Settings that change while the door is open, and its counters.

use std::io::Write;

use super::client::{Answer, Statement};
use super::*;

#[test]
fn lengths_and_modes_change_for_who_comes_next() {
    let served = serve(Options::default());
    let mut before = served.session();
    served.door.tune(&Options { mode: Mode::Galaxy(3), length_max: 4096, ..Options::default() });
    assert_eq!(before.done(2, "select 1").numbers(), [1], "a connection keeps its mode");
    before.stream.write_all(b"\x02\0\0\0\0\0\0\0\x01\x10\0\0\x65").unwrap();
    assert_eq!(before.answer(2).code(), 1153, "and not its longest frame");
    let mut after = served.connect();
    after.version = Some(3);
    assert_eq!(after.enter("root", "").kind, 4);
    after.begin(2);
    assert_eq!(after.done(2, "select 1").numbers(), [1]);
    served.stop();
}

#[test]
fn the_queue_of_a_session_is_as_long_as_it_was_when_it_began() {
    let served = serve(Options::default());
    let mut client = served.session();
    served.door.tune(&Options { queue_max: 16, ..Options::default() });
    client.begin(3);
    for (sid, is_too_many) in [(2, false), (3, true)] {
        let bytes: Vec<u8> = (0..60).flat_map(|_| client.frame(sid, 101, b"\x0a\x11select sleep(.01)")).collect();
        client.stream.write_all(&bytes).unwrap();
        let (mut done, mut fatal) = (0, false);
        while done < 60 && !fatal {
            let answer = client.answer(sid);
            fatal = answer.is_fatal();
            done += 1;
        }
        assert_eq!(fatal, is_too_many, "sid {sid}");
    }
    served.stop();
}

#[test]
fn connections_and_sessions_are_counted_while_they_are_there() {
    let served = serve(Options::default());
    let stats = || {
        let stats = served.door.stats();
        [stats.connections.get(), stats.closing.get(), stats.sessions.get(), served.door.session_count()]
    };
    let mut client = served.session();
    let other = served.enter();
    client.begin(3);
    assert_eq!(client.run(1 << 63 | 1, "select 1").numbers(), [1]);
    eventually("the session for single statements waits for the next", || stats() == [2, 0, 2, 3]);
    client.say(3, &Statement::new("select sleep(20)"));
    client.say(1 << 63 | 2, &Statement::new("select sleep(20)"));
    eventually("both are at work", || served.door.stats().borrowed.get() == 1);
    drop(other);
    eventually("one has gone", || stats()[0] == 1);
    drop(client);
    eventually("what they ran was broken off", || stats()[..3] == [0, 0, 0]);
    served.stop();
}

#[test]
fn steps_are_measured_and_can_be_left_unmeasured() {
    let served = serve(Options::default());
    let counts = || {
        let own = served.door.stats().named().map(|(name, times)| (name, times.snapshot().count));
        let pool = served.pool.counters().latency.named().map(|(name, times)| (name, times.snapshot().count));
        own.into_iter().chain(pool).collect::<std::collections::HashMap<_, _>>()
    };
    let mut client = served.session();
    client.done(2, "select 1");
    // A session that was woken comes through the queue; a lone one need not.
    let rows = "with recursive c(n) as (select 1 union all select n + 1 from c where n < 900) select n from c";
    assert!(client.execute(2, &Statement::new(rows).token(0)).token_waits > 0);
    // The last measurement happens after the answer.
    eventually("each step is there", || {
        let counts = counts();
        ["run", "decode", "auth", "work queue", "recv first", "recv all", "schedule"]
            .iter()
            .all(|name| counts[name] > 0)
    });
    served.pool.counters().latency.switch(false);
    served.door.tune(&Options { measures: false, ..Options::default() });
    client.done(2, "select 1");
    std::thread::sleep(Duration::from_millis(20));
    let before = counts();
    (0..50).for_each(|_| drop(client.done(2, "select 1")));
    let after = counts();
    for name in ["decode", "auth", "work queue", "recv first", "recv all", "schedule"] {
        assert_eq!(before[name], after[name], "{name}");
    }
    assert!(after["run"] >= before["run"] + 50, "that of statements is for the counters too");
    served.stop();
}

#[test]
fn kills_are_heard_of() {
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = heard.clone();
    let on_kill = Some(Arc::new(move |user: &str, sid: u64, whole: bool| {
        notes.lock().unwrap().push((user.to_owned(), sid, whole))
    }) as Arc<_>);
    let served = serve(Options { on_kill, ..Options::default() });
    let mut client = served.session();
    client.send(2, 111, b"\x08\x01\x10\x02");
    client.send(2, 111, b"\x08\x02\x10\x02");
    assert!(client.answer(2).is_fatal());
    assert_eq!(*heard.lock().unwrap(), [("root".to_owned(), 2, false), ("root".to_owned(), 2, true)]);
    served.stop();
}

#[test]
fn a_page_of_output_is_enough_for_rows() {
    let served = serve(Options { output_pages: 1, ..Options::default() });
    let mut client = served.session();
    let rows = "with recursive c(n) as (select 1 union all select n + 1 from c where n < 900) select n, repeat('x', 100) from c";
    let answer: Answer = client.done(2, rows);
    assert_eq!(answer.numbers(), (1..=900).collect::<Vec<_>>());
    served.stop();
}
