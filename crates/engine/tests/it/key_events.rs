//! Events of keys: of commands, of expiry and of transactions of rows, with their durability LSN, and none of a rollback.

use std::sync::{Arc, Mutex};

use engine::rows::{Isolation, KeyValue};
use engine::{Error, Expire, KeySet, Lsn, event_class};

use crate::support::{START_MS, World, bytes};

type Seen = Arc<Mutex<Vec<(String, Lsn)>>>;

fn listen(world: &World) -> Seen {
    let seen = Seen::default();
    let own = seen.clone();
    world.engine.keyspace().events().listen(Box::new(move |events, lsn| {
        let shown = events.iter().map(|event| {
            let key = String::from_utf8_lossy(&event.key);
            (format!("{} {}:{}", event.name, event.db, &key[..key.len().min(10)]), lsn)
        });
        own.lock().unwrap().extend(shown);
    }));
    world.engine.keyspace().events().want(!event_class::CHANGED);
    seen
}

fn take(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut *seen.lock().unwrap()).into_iter().map(|(event, _)| event).collect()
}

/// EN-65.
#[test]
fn events_come_in_the_order_of_the_changes_with_the_lsn_of_the_commit() {
    let world = World::new(1);
    let seen = listen(&world);
    let lsn = world.engine.keyspace().set(0, b"a", b"1", Expire::None).unwrap();
    assert_eq!(*seen.lock().unwrap(), [("new 0:a".to_owned(), lsn), ("set 0:a".to_owned(), lsn)]);
    take(&seen);
    let long = vec![b'l'; 2000];
    world.engine.keyspace().set(3, &long, &bytes(400_000, 1), Expire::At(START_MS + 50)).unwrap();
    assert_eq!(take(&seen), ["new 3:llllllllll", "set 3:llllllllll", "expire 3:llllllllll"]);
    let keys: [(u8, &[u8]); 2] = [(0, b"a"), (0, b"b")];
    let failed = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&keys), true, |key_txn| {
        key_txn.put_string(0, b"b", b"never", Expire::None)?;
        key_txn.notify(0, b"b", event_class::STRING, "set");
        Err(Error::Invalid("changed my mind".into()))
    });
    assert!(failed.is_err());
    assert_eq!(take(&seen), [""; 0]);
    world.engine.keyspace().set(0, b"a", b"2", Expire::At(START_MS + 50)).unwrap();
    take(&seen);
    world.clock.advance_ms(100);
    // One expired key is replaced before the background finds it.
    world.engine.keyspace().set(0, b"a", b"3", Expire::None).unwrap();
    assert_eq!(take(&seen), ["expired 0:a", "new 0:a", "set 0:a"]);
    while world.engine.keyspace().background_step(100).unwrap().more {}
    assert_eq!(take(&seen), ["expired 3:llllllllll"]);
}

#[test]
fn a_commit_of_rows_announces_its_keys_and_a_rollback_does_not() {
    let world = World::new(2);
    world.set(0, b"gone", b"1");
    let seen = listen(&world);
    for commits in [false, true] {
        let mut txn = world.engine.rows().begin(Isolation::RepeatableRead);
        txn.put_key(0, b"a", KeyValue { value: b"1".as_slice().into(), expire_at_ms: None }).unwrap();
        txn.put_key(1, b"b", KeyValue { value: b"1".as_slice().into(), expire_at_ms: Some(START_MS + 1000) }).unwrap();
        txn.delete_key(0, b"gone").unwrap();
        assert_eq!(take(&seen), [""; 0], "nobody hears of it before the commit");
        if commits {
            let lsn = txn.commit().unwrap();
            assert!(seen.lock().unwrap().iter().all(|(_, of_event)| *of_event == lsn));
            let mut events = take(&seen);
            events.sort();
            assert_eq!(events, ["del 0:gone", "expire 1:b", "new 0:a", "new 1:b", "set 0:a", "set 1:b"]);
        } else {
            txn.rollback();
            assert_eq!(take(&seen), [""; 0]);
        }
    }
}

#[test]
fn only_wanted_classes_are_announced() {
    let world = World::new(3);
    let seen = listen(&world);
    world.engine.keyspace().events().want(event_class::MISS);
    world.set(0, b"a", b"1");
    assert_eq!(world.get(0, b"a"), Some(b"1".to_vec()));
    assert_eq!(world.get(0, b"b"), None);
    let keys: [(u8, &[u8]); 1] = [(0, b"c")];
    world.engine.keyspace().read::<_, Error>(KeySet::Keys(&keys), |key_txn| key_txn.get(0, b"c")).unwrap();
    assert_eq!(take(&seen), ["keymiss 0:b", "keymiss 0:c"]);
    world.engine.keyspace().events().want(0);
    assert_eq!(world.get(0, b"b"), None);
    assert_eq!(take(&seen), [""; 0]);
}
