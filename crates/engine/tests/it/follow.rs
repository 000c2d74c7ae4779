//! Following another server: a note and the changes that it is about are there both or not at all, nobody but the writer writes, and only the writer removes what
//! has expired.

use std::cell::Cell;
use std::time::Duration;

use engine::rows::Isolation;
use engine::{DocumentChanges, Error, Expire, FollowWriter, KeySet, KeyTransaction, Lsn};

use crate::support::{START_MS, World, cut_anywhere};

fn apply(world: &World, writer: FollowWriter, value: &[u8], note: &[u8]) -> Result<Lsn, Error> {
    let keys = vec![(0, &b"k"[..]), (3, b"k")];
    let run = |txn: &mut KeyTransaction<'_>| {
        txn.put_string(0, b"k", value, Expire::None)?;
        txn.put_string(3, b"k", value, Expire::None)?;
        txn.put_note(note)
    };
    world.engine.keyspace().write_following(writer, Some(keys), run).map(|((), lsn)| lsn)
}

fn follow(world: &World, note: &[u8]) -> FollowWriter {
    world.engine.keyspace().follow(note).unwrap().0
}

/// The note, two keys, the libraries, and the numbers of keys of two databases.
type FollowState = (Option<Vec<u8>>, [Option<Vec<u8>>; 2], Vec<(String, Vec<u8>)>, [u64; 2]);

fn state(world: &World) -> FollowState {
    let keyspace = world.engine.keyspace();
    let values = [world.get(0, b"k"), world.get(3, b"k")];
    let documents = world.engine.documents().list("library").unwrap();
    (keyspace.follow_note().unwrap(), values, documents, [world.count(0), world.count(5)])
}

#[test]
fn changes_and_their_note_are_one_wherever_the_wal_ends() {
    let writer = Cell::new(None);
    let before = |world: &World| {
        writer.set(Some(follow(world, b"0")));
        apply(world, writer.get().unwrap(), b"old", b"1").unwrap();
    };
    let change = |world: &World| assert!(apply(world, writer.get().unwrap(), &[b'n'; 5000], b"2").unwrap() > 0);
    cut_anywhere(1, before, change, state);
}

#[test]
fn everything_is_replaced_at_once_wherever_the_wal_ends() {
    let writer = Cell::new(None);
    let before = |world: &World| {
        world.set(5, b"mine", b"goes");
        world.engine.documents().change("library", &[("old", Some(b"goes"))]).unwrap();
        writer.set(Some(follow(world, b"0")));
    };
    let change = |world: &World| {
        let writer = writer.get().unwrap();
        let staging = world.engine.keyspace().stage_following(writer).unwrap();
        for db in [0, 3] {
            let put = |txn: &mut KeyTransaction<'_>| txn.put_string(db, b"k", b"new", Expire::None);
            staging.write::<_, Error>(KeySet::Keys(&[(db, b"k")]), false, put).unwrap();
        }
        let changes = vec![("old", None), ("new", Some(&b"comes"[..]))];
        staging.replace_all(writer, b"1", &DocumentChanges { kind: "library", changes }).unwrap();
        let (note, values, documents, counts) = state(world);
        assert_eq!((note.as_deref(), values[1].as_deref()), (Some(&b"1"[..]), Some(&b"new"[..])));
        assert_eq!((documents, counts), (vec![("new".to_owned(), b"comes".to_vec())], [1, 0]));
    };
    cut_anywhere(2, before, change, state);
}

#[test]
fn nobody_but_the_present_writer_writes() {
    let world = World::new(1);
    world.set(0, b"k", b"value");
    let keyspace = world.engine.keyspace();
    let first = follow(&world, b"0");
    let refused = |world: &World| {
        let keyspace = world.engine.keyspace();
        assert!(matches!(keyspace.set(0, b"k", b"x", Expire::None), Err(Error::Following)));
        assert!(matches!(keyspace.set(0, b"k", &[0; 300_000], Expire::None), Err(Error::Following)));
        let delete = keyspace.write::<bool, Error>(KeySet::Keys(&[(0, b"k")]), true, |txn| txn.delete(0, b"k"));
        assert!(matches!(delete, Err(Error::Following)));
        let flush = keyspace.write::<(), Error>(KeySet::All, true, |txn| txn.flush_all());
        assert!(matches!(flush, Err(Error::Following)));
        let note = keyspace.write::<(), Error>(KeySet::All, true, |txn| txn.put_note(b"x"));
        assert!(matches!(note, Err(Error::Following)));
        assert!(matches!(keyspace.stage(), Err(Error::Following)));
        let mut txn = world.engine.rows().begin(Isolation::ReadCommitted);
        assert!(matches!(txn.delete_key(0, b"k"), Err(Error::Following)));
    };
    refused(&world);
    // A transaction that only reads is no change, even if it could write.
    keyspace.write::<_, Error>(KeySet::Keys(&[(0, b"k")]), true, |txn| txn.get(0, b"k")).unwrap();
    let second = follow(&world, b"1");
    assert!(matches!(apply(&world, first, b"x", b"2"), Err(Error::Following)), "it has a successor");
    assert!(matches!(keyspace.stage_following(first), Err(Error::Following)));
    apply(&world, second, b"y", b"2").unwrap();
    let world = world.reopen();
    refused(&world);
    assert_eq!(world.engine.keyspace().follow_note().unwrap().as_deref(), Some(&b"2"[..]));
    assert!(world.engine.keyspace().end_follow().unwrap() > 0);
    world.set(0, b"k", b"mine");
    assert!(matches!(apply(&world, second, b"x", b"3"), Err(Error::Following)));
    world.flush();
    let world = world.crash();
    assert_eq!(world.engine.keyspace().follow_note().unwrap(), None);
    world.set(0, b"k", b"mine");
    world.check();
}

#[test]
fn a_change_of_sql_that_was_open_is_rolled_back() {
    let world = World::new(1);
    world.set(0, b"k", b"value");
    let mut txn = world.engine.rows().begin(Isolation::ReadCommitted);
    assert!(txn.delete_key(0, b"k").unwrap());
    // It waits for no transaction that holds keys, but what is applied does.
    let writer = follow(&world, b"0");
    world.engine.keyspace().limit_key_wait(Duration::ZERO);
    assert!(matches!(apply(&world, writer, b"x", b"1"), Err(Error::LockTimeout)));
    assert!(matches!(txn.commit(), Err(Error::Following)));
    assert_eq!(world.get(0, b"k").as_deref(), Some(&b"value"[..]));
    apply(&world, writer, b"x", b"1").unwrap();
    world.check();
}

#[test]
fn only_the_writer_removes_what_has_expired() {
    let world = World::new(1);
    let keyspace = world.engine.keyspace();
    keyspace.set(0, b"k", b"value", Expire::At(START_MS + 1)).unwrap();
    keyspace.set(0, b"other", b"value", Expire::At(START_MS + 1)).unwrap();
    let writer = follow(&world, b"0");
    world.clock.advance_ms(10_000);
    world.settle();
    assert_eq!((world.count(0), world.get(0, b"k")), (2, None), "it is absent, and still there");
    let persist = |txn: &mut KeyTransaction<'_>| {
        assert!(txn.get(0, b"k")?.is_some(), "the other server says when it expires");
        txn.set_expire(0, b"k", None)
    };
    keyspace.write_following(writer, Some(vec![(0, b"k")]), persist).unwrap();
    assert_eq!(world.get(0, b"k").as_deref(), Some(&b"value"[..]));
    let world = world.reopen();
    world.settle();
    assert_eq!(world.count(0), 2);
    world.engine.keyspace().end_follow().unwrap();
    world.settle();
    assert_eq!((world.count(0), world.get(0, b"other")), (1, None));
    world.check();
}
