//! A database on shared objects: two openings of it, one after the other and at the same time; also on RADOS, where `BELUGA_RADOS_POOL` names a pool of a cluster
//! (`scripts/ceph.sh test`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use os::{Fate, Moment, ObjectStore, RadosAddress, RadosObjects, SimClock, SimFolder, SimObjects};
use pager::{EndHook, Error, NoObserver, Pager, RedoTable, SharedStorage, Unfenced};

use crate::support::{ToyRedo, change, make_page, options, value};

fn try_open(objects: Arc<dyn ObjectStore>, unfenced: Option<Unfenced>) -> Result<Arc<Pager>, Error> {
    let shared = SharedStorage {
        objects,
        scratch: SimFolder::new(1),
        object_pages: SharedStorage::OBJECT_PAGES,
        on_end: None,
        unfenced,
    };
    let redo = RedoTable::new().own(0x10..0x11, ToyRedo);
    let clock = Arc::new(SimClock::new(1_000));
    Ok(Pager::open_shared(&shared, clock, options(), redo, &mut NoObserver, 77, &|_| {})?.pager)
}

fn open(store: &SimObjects, client: usize) -> Arc<Pager> {
    try_open(store.client(client), None).expect("the database opens")
}

#[test]
fn a_second_node_finds_what_was_flushed_and_the_first_writes_no_more() {
    let store = SimObjects::new();
    let first = open(&store, 0);
    let pids: Vec<_> = (0..40).map(|n| make_page(&first, n).unwrap().0).collect();
    first.checkpoint_all().unwrap();
    let durable = change(&first, &pids, 7).unwrap();
    first.flush_to(durable).unwrap();
    // Neither flushed nor written.
    change(&first, &pids[..1], 8).unwrap();

    let second = open(&store, 1);
    assert_eq!(second.boot(), 2);
    assert!(pids.iter().all(|pid| value(&second, *pid) == 7));

    assert!(matches!(first.flush_once(), Err(Error::Fenced { .. })), "PG-29: an append of an earlier opening");
    assert!(first.is_dead());
    assert!(first.checkpoint_all().is_err());
    let end = change(&second, &pids, 9).unwrap();
    second.flush_to(end).unwrap();
    second.checkpoint_all().unwrap();
    drop((first, second));
    let third = open(&store, 2);
    assert!(pids.iter().all(|pid| value(&third, *pid) == 9));
}

#[test]
fn a_full_wal_wraps_over_many_segments_and_drops_them() {
    let store = SimObjects::new();
    let first = open(&store, 0);
    let pids: Vec<_> = (0..8).map(|n| make_page(&first, n).unwrap().0).collect();
    for round in 0..4000 {
        let end = change(&first, &pids, round).unwrap();
        if round % 100 == 99 {
            first.flush_to(end).unwrap();
            first.checkpoint_all().unwrap();
        }
    }
    drop(first);
    let second = open(&store, 1);
    assert!(pids.iter().all(|pid| value(&second, *pid) == 3999));
    let missing = store.client(2).read(&format!("log/{:016x}", 1), 0, &mut [0; 8]);
    assert!(matches!(missing, Err(os::ObjectError::Missing)), "the first segment has been removed");
}

#[test]
fn a_claim_that_a_checkpoint_overtakes_does_not_take_the_checkpoint_back() {
    let store = SimObjects::new();
    let first = open(&store, 0);
    let pids: Vec<_> = (0..8).map(|n| make_page(&first, n).unwrap().0).collect();
    let end = change(&first, &pids, 5).unwrap();
    first.flush_to(end).unwrap();

    // The first operation of the second client reads the root, the second one is its claim.
    let operations = AtomicU64::new(0);
    let writer = Mutex::new(Some(first.clone()));
    store.set_fate(Some(Arc::new(move |client, moment| {
        if client == 1 && moment == Moment::Before && operations.fetch_add(1, Ordering::Relaxed) == 1 {
            let first = writer.lock().unwrap().take().expect("this happens once");
            let before = first.checkpoint_lsn();
            assert!(first.checkpoint_all().unwrap() > before);
        }
        Fate::Proceed
    })));
    let second = open(&store, 1);
    store.set_fate(None);
    assert_eq!(second.boot(), 2);
    assert!(second.checkpoint_lsn() >= first.checkpoint_lsn(), "PG-29: the claim put an older checkpoint back");
    assert!(pids.iter().all(|pid| value(&second, *pid) == 5));
}

/// Lets a write of pages stay under way without an answer, goes on if the opening lets us, and lets that write arrive. Returns the number that was acknowledged
/// last, and the one that the next opening finds.
fn write_in_doubt(unfenced: Option<Unfenced>) -> (u64, u64) {
    let store = SimObjects::new();
    let pager = try_open(store.client(0), unfenced).unwrap();
    let (pid, end) = make_page(&pager, 1).unwrap();
    pager.flush_to(end).unwrap();
    store.set_fate(Some(Arc::new(
        |_, moment| {
            if moment == Moment::Before { Fate::FailUnderWay } else { Fate::Proceed }
        },
    )));
    assert!(matches!(pager.checkpoint_all(), Err(Error::Io { .. })));
    assert_eq!(store.late_writes(), 1);
    store.set_fate(None);
    let end = change(&pager, &[pid], 2).unwrap();
    let acknowledged = if pager.flush_to(end).is_ok() { 2 } else { 1 };
    let _ = pager.checkpoint_all();
    drop(pager);
    store.deliver_late(0);
    let next = open(&store, 1);
    (acknowledged, value(&next, pid))
}

#[test]
fn an_opening_ends_after_a_write_of_unknown_outcome() {
    assert_eq!(write_in_doubt(None), (1, 1), "PG-34");
    let (acknowledged, found) = write_in_doubt(Some(Unfenced::Doubt));
    assert!(found < acknowledged, "the late write has replaced the newer page, which PG-34 prevents");
}

/// Takes over, again and again, from a writer that is at work. No acknowledged number is lost, and the writer ends.
fn take_over_from_a_busy_writer(connect: &dyn Fn() -> Arc<dyn ObjectStore>) {
    let first = try_open(connect(), None).unwrap();
    let pids: Vec<_> = (0..20).map(|n| make_page(&first, n).unwrap().0).collect();
    first.flush_to(first.wal_head()).unwrap();
    let mut writer = first;
    for opening in 2..6 {
        let acknowledged = AtomicU64::new(0);
        let (next, found) = std::thread::scope(|scope| {
            let writes = scope.spawn(|| {
                // Until the writer is refused. Numbers grow, so a page never holds less than was acknowledged.
                for number in opening << 32.. {
                    let Ok(end) = change(&writer, &pids, number) else { return };
                    if writer.flush_to(end).is_err() {
                        return;
                    }
                    acknowledged.store(number, Ordering::SeqCst);
                    if number % 16 == 0 && writer.checkpoint_all().is_err() {
                        return;
                    }
                }
            });
            while acknowledged.load(Ordering::SeqCst) & 0xff < 100 {
                assert!(!writes.is_finished(), "the writer has ended by itself");
                std::thread::yield_now();
            }
            let next = try_open(connect(), None).unwrap();
            let found = value(&next, pids[0]);
            assert!(pids.iter().all(|pid| value(&next, *pid) == found), "a mini-transaction is there by half");
            writes.join().unwrap();
            (next, found)
        });
        assert_eq!(next.boot(), opening);
        // The last batch may be there although nobody was told.
        let acknowledged = acknowledged.into_inner();
        assert!(found == acknowledged || found == acknowledged + 1, "acknowledged {acknowledged:#x}, found {found:#x}");
        let late = change(&writer, &pids, 1).and_then(|end| writer.flush_to(end));
        assert!(late.is_err(), "an earlier opening acknowledges a write");
        writer = next;
    }
}

#[test]
fn a_busy_writer_loses_nothing_that_it_acknowledged_to_a_second_node() {
    let store = SimObjects::new();
    take_over_from_a_busy_writer(&|| store.client(0));
}

#[test]
fn a_busy_writer_loses_nothing_that_it_acknowledged_to_a_second_node_on_rados() {
    let Ok(pool) = std::env::var("BELUGA_RADOS_POOL") else {
        println!("skipped: BELUGA_RADOS_POOL names no pool of a Ceph cluster");
        return;
    };
    let name = format!("test-{}-takeover", std::process::id());
    let address = RadosAddress { pool, name, conf: None, user: "client.admin".into() };
    take_over_from_a_busy_writer(&|| RadosObjects::connect(&address).unwrap());
}

/// A cleaner that is refused must not go on as if the disk were full for a while. PG-33 keeps back whatever is computed meanwhile.
#[test]
fn the_thread_that_is_refused_or_in_doubt_tells_of_the_end_of_its_opening() {
    for is_lost in [false, true] {
        let store = SimObjects::new();
        let ends: Arc<Mutex<Vec<bool>>> = Arc::default();
        let of_hook = ends.clone();
        let on_end: EndHook =
            Arc::new(move |error| of_hook.lock().unwrap().push(matches!(error, Error::Fenced { .. })));
        let shared = SharedStorage {
            objects: store.client(0),
            scratch: SimFolder::new(1),
            object_pages: SharedStorage::OBJECT_PAGES,
            on_end: Some(on_end),
            unfenced: None,
        };
        let (redo, clock) = (RedoTable::new().own(0x10..0x11, ToyRedo), Arc::new(SimClock::new(1_000)));
        let opened = Pager::open_shared(&shared, clock, options(), redo, &mut NoObserver, 77, &|_| {}).unwrap();
        let first = opened.pager;
        let pids: Vec<_> = (0..40).map(|n| make_page(&first, n).unwrap().0).collect();
        first.flush_to(change(&first, &pids, 7).unwrap()).unwrap();
        assert!(ends.lock().unwrap().is_empty());
        if is_lost {
            store.set_fate(Some(Arc::new(|_, _| Fate::FailUnderWay)));
        } else {
            drop(open(&store, 1));
        }
        // The cleaner's work.
        first.checkpoint_all().unwrap_err();
        let ends = ends.lock().unwrap();
        assert!(!ends.is_empty() && ends.iter().all(|is_fenced| *is_fenced != is_lost), "{ends:?}");
    }
}
