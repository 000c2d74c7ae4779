//! Commands on collections of many elements check for interrupts, so they keep no other client with their thread, and they end where no other thread is left.

use std::cell::Cell;

use engine::{End, Error, Expire, KeySet, KeyTransaction, Kind, PackLimits};

use crate::support::World;

const LIMITS: PackLimits = PackLimits { entries: 128, value: 64 };
const ELEMENTS: u32 = 20_000;
/// Elements that may be read or written between two checks: those of a leaf.
const BETWEEN: u32 = 250;

thread_local! {
    static CHECKS: Cell<u32> = const { Cell::new(0) };
    static MUST_END: Cell<bool> = const { Cell::new(false) };
}

fn hook() -> bool {
    CHECKS.set(CHECKS.get() + 1);
    !MUST_END.get()
}

/// Returns how often `work` checked for interrupts, and what it gave.
fn watched<R>(must_end: bool, work: impl FnOnce() -> R) -> (u32, R) {
    MUST_END.set(must_end);
    CHECKS.set(0);
    stdx::wait::install_interrupt_hook(Some(hook));
    let done = work();
    stdx::wait::install_interrupt_hook(None);
    (CHECKS.get(), done)
}

const KINDS: [(&[u8], Kind); 4] = [(b"h", Kind::Hash), (b"s", Kind::Set), (b"z", Kind::ZSet), (b"l", Kind::List)];

fn filled(txn: &mut KeyTransaction<'_>, key: &[u8], kind: Kind) -> Result<(), Error> {
    let members: Vec<Vec<u8>> = (0..ELEMENTS).map(|n| format!("member {n:08}").into_bytes()).collect();
    let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
    match kind {
        Kind::ZSet => drop(txn.put_scores(0, key, &members, &mut |at, _| Some(at as f64), LIMITS)?),
        Kind::List => drop(txn.push_items(0, key, End::Tail, &members)?),
        _ => {
            let items: Vec<(&[u8], &[u8])> = members.iter().map(|member| (*member, &b""[..])).collect();
            txn.put_members(0, key, kind, &items, LIMITS)?;
        }
    }
    Ok(())
}

/// Reads all elements.
fn walked(txn: &mut KeyTransaction<'_>, key: &[u8], kind: Kind) -> Result<u32, Error> {
    let entry = txn.peek(0, key)?.expect("the key is there");
    let mut seen = 0;
    if kind == Kind::List {
        let mut walk = txn.items_from(&entry, End::Head, 0)?;
        while walk.next(txn)?.is_some() {
            seen += 1;
        }
        return Ok(seen);
    }
    let mut walk = txn.members(&entry)?;
    while walk.next(txn)?.is_some() {
        seen += 1;
    }
    if kind == Kind::ZSet {
        let mut walk = txn.sorted(&entry, 0, false)?;
        while walk.next(txn)?.is_some() {}
    }
    Ok(seen)
}

#[test]
fn work_on_many_elements_lets_other_clients_be_served() {
    let world = World::new(31);
    let keyspace = world.engine.keyspace();
    for (key, kind) in KINDS {
        let copy = [key, b"2"].concat();
        let keys = [(0, key), (0, copy.as_slice())];
        let (checks, done) = watched(false, || keyspace.write(KeySet::Keys(&keys), true, |txn| filled(txn, key, kind)));
        done.unwrap();
        assert!(checks >= ELEMENTS / BETWEEN, "{kind:?} was written with {checks} checks");
        let (checks, seen) = watched(false, || keyspace.read(KeySet::Keys(&keys), |txn| walked(txn, key, kind)));
        assert_eq!(seen.unwrap().0, ELEMENTS);
        assert!(checks >= ELEMENTS / BETWEEN, "{kind:?} was read with {checks} checks");
        let copied = |txn: &mut KeyTransaction<'_>| txn.copy((0, key), (0, &copy)).map(drop);
        let (checks, done) = watched(false, || keyspace.write(KeySet::Keys(&keys), true, copied));
        done.unwrap();
        assert!(checks >= ELEMENTS / BETWEEN, "{kind:?} was copied with {checks} checks");
    }
    let strings: Vec<(u8, Vec<u8>)> = (0..5000).map(|n| (0, format!("string {n}").into_bytes())).collect();
    let keys: Vec<(u8, &[u8])> = strings.iter().map(|(db, key)| (*db, key.as_slice())).collect();
    let set = |txn: &mut KeyTransaction<'_>| {
        keys.iter().try_for_each(|(db, key)| txn.put_string(*db, key, b"v", Expire::Keep))
    };
    let (checks, done) = watched(false, || keyspace.write(KeySet::Keys(&keys), true, set));
    done.unwrap();
    assert!(checks >= 5000 / BETWEEN, "strings were written with {checks} checks");
    world.check();
}

#[test]
fn work_that_must_end_ends_with_an_error_and_changes_nothing() {
    let world = World::new(32);
    let keyspace = world.engine.keyspace();
    for (key, kind) in KINDS {
        let copy = [key, b"2"].concat();
        let keys = [(0, key), (0, copy.as_slice())];
        keyspace.write(KeySet::Keys(&keys), true, |txn| filled(txn, key, kind)).unwrap();
        let read = watched(true, || keyspace.read(KeySet::Keys(&keys), |txn| walked(txn, key, kind))).1;
        assert!(matches!(read, Err(Error::TooManyComputations)), "{kind:?}: {read:?}");
        // A change that has begun goes back whole: nothing interrupts the undo.
        let both = |txn: &mut KeyTransaction<'_>| {
            txn.put_string(0, &copy, b"v", Expire::Keep)?;
            walked(txn, key, kind).map(drop)
        };
        let done = watched(true, || keyspace.write(KeySet::Keys(&keys), true, both)).1;
        assert!(matches!(done, Err(Error::TooManyComputations)), "{kind:?}: {done:?}");
        let there = keyspace.read(KeySet::Keys(&keys), |txn| Ok::<_, Error>(txn.peek(0, &copy)?.is_some()));
        assert!(!there.unwrap().0);
        assert_eq!(keyspace.read(KeySet::Keys(&keys), |txn| walked(txn, key, kind)).unwrap().0, ELEMENTS);
    }
    world.check();
}
