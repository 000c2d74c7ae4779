//! Clients that wait for keys: who is served, in which order, by whose change.

use std::sync::{Arc, Mutex};
use std::thread;

use engine::rows::{Isolation, KeyValue};
use engine::{Claim, End, Error, KeySet, KeyTransaction, KeyWait, Kind, Serving, Stream, StreamId, WaitTicket};

use crate::support::{START_MS, World, wait_until};

/// The tickets that were served, in order: the name of the ticket and the item.
type Log = Arc<Mutex<Vec<(&'static str, Vec<u8>)>>>;

fn first(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let Some(entry) = txn.peek(0, key)?.filter(|entry| entry.kind == Kind::List) else { return Ok(None) };
    let mut walk = txn.items_from(&entry, End::Head, 0)?;
    Ok(walk.next(txn)?.and_then(|item| item.bytes().map(<[u8]>::to_vec)))
}

/// A wait as that of BLPOP, or with a target that of BLMOVE.
fn wait(name: &'static str, log: &Log, keys: &[&'static [u8]], target: Option<&'static [u8]>) -> KeyWait {
    let (log, done) = (log.clone(), log.clone());
    let serve = move |txn: &mut KeyTransaction<'_>, key: &[u8], claim: &Claim<'_>| {
        let Some(item) = first(txn, key)? else { return Ok(Serving::Exhausted) };
        if !claim.take() {
            return Ok(Serving::Waits);
        }
        txn.trim_items(0, key, End::Head, 1)?;
        if let Some(target) = target {
            txn.push_items(0, target, End::Tail, &[&item])?;
        }
        log.lock().unwrap().push((name, item));
        Ok(Serving::Served)
    };
    let served = move |lsn: Result<u64, Error>| match lsn {
        Ok(lsn) => assert!(lsn > 0),
        Err(error) => done.lock().unwrap().push((name, error.to_string().into_bytes())),
    };
    KeyWait {
        kind: Kind::List,
        class: Box::default(),
        keys: keys.iter().map(|key| Box::from(*key)).collect(),
        also: target.map(Box::from),
        serve: Box::new(serve),
        served: Box::new(served),
    }
}

fn begin(world: &World, keys: &[&'static [u8]], wait: KeyWait) -> Arc<WaitTicket> {
    let locks: Vec<(u8, &[u8])> = keys.iter().map(|key| (0, *key)).collect();
    world.write(&locks, |txn| {
        for (_, key) in &locks {
            assert!(first(txn, key)?.is_none(), "nothing is there");
        }
        txn.wait(0, wait)
    })
}

fn block(world: &World, name: &'static str, log: &Log, keys: &[&'static [u8]]) -> Arc<WaitTicket> {
    begin(world, keys, wait(name, log, keys, None))
}

fn push(world: &World, key: &[u8], items: &[&[u8]]) {
    world.one(0, key, |txn| txn.push_items(0, key, End::Tail, items));
}

fn served(log: &Log) -> Vec<(&'static str, String)> {
    let taken = std::mem::take(&mut *log.lock().unwrap());
    taken.into_iter().map(|(name, item)| (name, String::from_utf8(item).unwrap())).collect()
}

fn length(world: &World, key: &[u8]) -> u64 {
    let read = |txn: &mut KeyTransaction<'_>| txn.peek(0, key)?.map_or(Ok(0), |entry| entry.count());
    world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[(0, key)]), read).unwrap().0
}

fn pairs(of: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    of.iter().map(|(name, item)| (*name, (*item).to_owned())).collect()
}

#[test]
fn tickets_are_served_in_the_order_in_which_they_came() {
    let (world, log) = (World::new(1), Log::default());
    for (name, keys) in [("one", &[b"a" as &[u8], b"b"][..]), ("two", &[b"b"]), ("three", &[b"b", b"a", b"b"])] {
        block(&world, name, &log, keys);
    }
    push(&world, b"b", &[b"1", b"2"]);
    assert_eq!(served(&log), pairs(&[("one", "1"), ("two", "2")]));
    push(&world, b"c", &[b"3"]);
    assert!(served(&log).is_empty());
    push(&world, b"a", &[b"4", b"5"]);
    assert_eq!((served(&log), length(&world, b"a"), length(&world, b"b")), (pairs(&[("three", "4")]), 1, 0));
    world.check();
}

#[test]
fn a_ticket_that_was_given_up_takes_nothing() {
    let (world, log) = (World::new(1), Log::default());
    let tickets = ["one", "two"].map(|name| block(&world, name, &log, &[b"k"]));
    assert!(world.engine.keyspace().cancel_wait(&tickets[0]));
    push(&world, b"k", &[b"1", b"2"]);
    assert_eq!((served(&log), length(&world, b"k")), (pairs(&[("two", "1")]), 1));
    assert!(!world.engine.keyspace().cancel_wait(&tickets[1]), "it has been served");
}

#[test]
fn a_served_target_serves_its_own_tickets() {
    let (world, log) = (World::new(1), Log::default());
    begin(&world, &[b"a"], wait("move", &log, &[b"a"], Some(b"b")));
    begin(&world, &[b"b"], wait("again", &log, &[b"b"], Some(b"c")));
    block(&world, "last", &log, &[b"c"]);
    push(&world, b"a", &[b"1"]);
    assert_eq!(served(&log), pairs(&[("move", "1"), ("again", "1"), ("last", "1")]));
    assert_eq!([b"a", b"b", b"c"].map(|key| length(&world, key)), [0, 0, 0]);
    // A circle ends when its tickets have been served.
    begin(&world, &[b"a"], wait("there", &log, &[b"a"], Some(b"b")));
    begin(&world, &[b"b"], wait("back", &log, &[b"b"], Some(b"a")));
    push(&world, b"a", &[b"2"]);
    assert_eq!((served(&log), length(&world, b"a")), (pairs(&[("there", "2"), ("back", "2")]), 1));
    world.check();
}

#[test]
fn a_transaction_serves_after_its_commit_and_a_rollback_serves_nobody() {
    let (world, log) = (World::new(1), Log::default());
    block(&world, "one", &log, &[b"a", b"b"]);
    let aborted = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&[(0, b"a")]), true, |txn| {
        txn.push_items(0, b"a", End::Tail, &[b"0"])?;
        Err(Error::Misuse("asked for"))
    });
    assert!(aborted.is_err() && served(&log).is_empty());
    world.write(&[(0, b"a"), (0, b"b")], |txn| {
        txn.push_items(0, b"b", End::Tail, &[b"1"])?;
        txn.push_items(0, b"a", End::Tail, &[b"2"])?;
        txn.delete(0, b"b")?;
        assert!(log.lock().unwrap().is_empty());
        Ok(())
    });
    // b came first, but is gone.
    assert_eq!((served(&log), length(&world, b"a")), (pairs(&[("one", "2")]), 0));
}

#[test]
fn keys_of_a_transaction_serve_in_the_order_in_which_they_came() {
    let (world, log) = (World::new(1), Log::default());
    world.set(0, b"b", b"text");
    begin(&world, &[b"a"], wait("move", &log, &[b"a"], Some(b"c")));
    block(&world, "two", &log, &[b"c", b"b"]);
    world.write(&[(0, b"a"), (0, b"b")], |txn| {
        // A key that is removed, or of another type, is not ready.
        txn.delete(0, b"b")?;
        txn.push_items(0, b"a", End::Tail, &[b"1"])?;
        txn.push_items(0, b"b", End::Tail, &[b"2"])?;
        Ok(())
    });
    assert_eq!(served(&log), pairs(&[("move", "1"), ("two", "2")]));
    assert_eq!((length(&world, b"b"), length(&world, b"c")), (0, 1));
}

#[test]
fn a_list_that_comes_by_another_name_serves_too() {
    let (world, log) = (World::new(1), Log::default());
    push(&world, b"from", &[b"1", b"2"]);
    block(&world, "copy", &log, &[b"to"]);
    world.write(&[(0, b"from"), (0, b"to")], |txn| txn.copy((0, b"from"), (0, b"to")));
    assert_eq!((served(&log), length(&world, b"to")), (pairs(&[("copy", "1")]), 1));
    block(&world, "rename", &log, &[b"new"]);
    world.write(&[(0, b"from"), (0, b"new")], |txn| txn.rename((0, b"from"), (0, b"new")));
    assert_eq!((served(&log), length(&world, b"new")), (pairs(&[("rename", "1")]), 1));
    block(&world, "swap", &log, &[b"other"]);
    world
        .engine
        .keyspace()
        .write::<_, Error>(KeySet::Keys(&[(3, b"other")]), false, |txn| txn.push_items(3, b"other", End::Tail, &[b"9"]))
        .unwrap();
    assert!(served(&log).is_empty(), "the wait is for another database");
    world.all(|txn| txn.swap(0, 3));
    assert_eq!(served(&log), pairs(&[("swap", "9")]));
    world.check();
}

/// A wait that counts how often it is asked, and is never served.
fn counted(kind: Kind, asked: &Arc<Mutex<u32>>) -> KeyWait {
    let asked = asked.clone();
    let serve = move |_: &mut KeyTransaction<'_>, _: &[u8], _: &Claim<'_>| {
        *asked.lock().unwrap() += 1;
        Ok(Serving::Waits)
    };
    let (keys, served) = (vec![Box::from(&b"k"[..])], Box::new(|_| ()));
    KeyWait { kind, class: Box::default(), keys, also: None, serve: Box::new(serve), served }
}

/// Makes an empty stream at k, or does something with the one that is there.
fn stream(world: &World, change: impl for<'k> FnOnce(&mut KeyTransaction<'k>, &mut Stream<'k>)) {
    world.write(&[(0, b"k")], |txn| {
        let mut stream = match txn.peek(0, b"k")?.filter(|entry| entry.kind == Kind::Stream) {
            Some(entry) => txn.stream(0, b"k", &entry)?,
            None => txn.new_stream(0, b"k")?,
        };
        change(txn, &mut stream);
        txn.store_stream(stream)
    });
}

#[test]
fn tickets_are_asked_when_a_stream_ends_or_grows() {
    let (world, asked) = (World::new(1), Arc::new(Mutex::new(0)));
    begin(&world, &[b"k"], counted(Kind::Stream, &asked));
    let was_asked = |times: u32, what: &str| assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), times, "{what}");
    let make = || {
        stream(&world, |_, _| ());
        was_asked(1, "a new stream");
    };
    make();
    world.set(0, b"k", b"v");
    was_asked(1, "SET");
    world.one(0, b"k", |txn| txn.delete(0, b"k"));
    was_asked(0, "DEL of a string");
    make();
    world.one(0, b"k", |txn| txn.delete(0, b"k"));
    was_asked(1, "DEL");
    make();
    world.one(0, b"k", |txn| txn.set_expire(0, b"k", Some(START_MS + 10)));
    std::mem::take(&mut *asked.lock().unwrap());
    world.clock.advance_ms(100);
    world.settle();
    was_asked(1, "expiry");
    make();
    world.all(|txn| txn.flush_all());
    was_asked(1, "FLUSHALL");
    make();
    stream(&world, |_, stream| stream.set_last_id(StreamId::new(7, 0)));
    stream(&world, |txn, stream| txn.create_group(stream, b"g", StreamId::MIN, 0).unwrap());
    was_asked(0, "a change of ids and a new group");
    stream(&world, |txn, stream| {
        let group = txn.group(stream, b"g").unwrap().unwrap();
        txn.destroy_group(stream, &group).unwrap();
    });
    was_asked(1, "the end of a group");
    world.set(0, b"other", b"v");
    was_asked(0, "another key");
}

#[test]
fn a_target_that_a_transaction_of_rows_holds_is_served_when_that_ends() {
    let (world, log) = (World::new(1), Log::default());
    let keyspace = world.engine.keyspace().clone();
    keyspace.defer_waits({
        let keyspace = keyspace.clone();
        Box::new(move |deferred| {
            let keyspace = keyspace.clone();
            thread::spawn(move || keyspace.serve_now(deferred));
        })
    });
    let mut txn = world.engine.rows().begin(Isolation::RepeatableRead);
    txn.put_key(0, b"b", KeyValue { value: b"v".as_slice().into(), expire_at_ms: None }).unwrap();
    begin(&world, &[b"a"], wait("move", &log, &[b"a"], Some(b"b")));
    block(&world, "behind", &log, &[b"a"]);
    push(&world, b"a", &[b"1", b"2", b"3"]);
    assert!(served(&log).is_empty(), "those behind the first ticket are not served before it");
    assert_eq!(length(&world, b"a"), 3);
    txn.rollback();
    wait_until("both are served", || log.lock().unwrap().len() == 2);
    assert_eq!((served(&log), length(&world, b"b")), (pairs(&[("move", "1"), ("behind", "2")]), 1));
    wait_until("the stripes are free", || length(&world, b"a") == 1);
    world.check();
}

#[test]
fn producers_and_waiters_of_many_threads_lose_nothing() {
    const THREADS: u64 = 4;
    const EACH: u64 = 200;
    let (world, log) = (World::new(1), Log::default());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (world, log) = (&world, &log);
            scope.spawn(move || {
                for n in 0..EACH {
                    push(world, if n % 2 == 0 { b"a" } else { b"b" }, &[format!("{thread}-{n}").as_bytes()]);
                }
            });
            scope.spawn(move || {
                let keys: [(u8, &[u8]); 2] = [(0, b"a"), (0, b"b")];
                for _ in 0..EACH {
                    world.write(&keys, |txn| {
                        for key in [&b"a"[..], b"b"] {
                            if let Some(item) = first(txn, key)? {
                                txn.trim_items(0, key, End::Head, 1)?;
                                log.lock().unwrap().push(("popped", item));
                                return Ok(());
                            }
                        }
                        txn.wait(0, wait("served", log, &[b"a", b"b"], None)).map(drop)
                    });
                }
            });
        }
    });
    let mut items: Vec<String> = served(&log).into_iter().map(|(_, item)| item).collect();
    items.sort();
    items.dedup();
    assert_eq!(items.len() as u64, THREADS * EACH, "each item comes to one of as many waits");
    assert_eq!(length(&world, b"a") + length(&world, b"b"), 0);
    world.check();
}

#[test]
fn a_key_that_has_nothing_for_a_class_is_not_offered_to_the_rest_of_it() {
    let (world, log) = (World::new(1), Log::default());
    // Each class is told that there is nothing by its second ticket.
    for (name, class) in [("a1", b"a"), ("b1", b"b"), ("a2", b"a"), ("a3", b"a"), ("b2", b"b"), ("b3", b"b")] {
        let log = log.clone();
        let serve = move |_: &mut KeyTransaction<'_>, _: &[u8], _: &Claim<'_>| {
            log.lock().unwrap().push((name, Vec::new()));
            Ok(if name.ends_with('1') { Serving::Waits } else { Serving::Exhausted })
        };
        let (keys, served) = (vec![Box::from(&b"k"[..])], Box::new(|_| ()));
        let wait = KeyWait {
            kind: Kind::List,
            class: Box::from(&class[..]),
            keys,
            also: None,
            serve: Box::new(serve),
            served,
        };
        begin(&world, &[b"k"], wait);
    }
    push(&world, b"k", &[b"1"]);
    assert_eq!(served(&log), pairs(&[("a1", ""), ("a2", ""), ("b1", ""), ("b2", "")]));
}
