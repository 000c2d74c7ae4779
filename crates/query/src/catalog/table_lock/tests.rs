use std::sync::atomic::AtomicUsize;

use super::*;

const SOON: Patience<'_> = Patience { wait: Duration::ZERO, is_interrupted: &|| false };
const LONG: Patience<'_> = Patience { wait: Duration::from_secs(60), is_interrupted: &|| false };

fn other() -> TableClaim {
    TableClaim::default()
}

fn holding(owner: u64, modes: &[TableMode]) -> TableClaim {
    let mut own = TableModes::default();
    modes.iter().for_each(|mode| own.add(*mode));
    TableClaim { owner, own }
}

fn queued(lock: &TableLock, mode: TableMode, claim: TableClaim) -> Arc<TableTicket> {
    lock.request(mode, claim).expect("it has to wait")
}

fn owners(lock: &TableLock) -> Vec<u64> {
    lock.waiting().iter().map(|(claim, _)| claim.owner).collect()
}

#[test]
fn modes_conflict_as_the_table_says() {
    let table = ["       x", "      xx", "    xxxx", "   xxxxx", "  xx xxx", "  xxxxxx", " xxxxxxx", "xxxxxxxx"];
    for (row, held) in table.iter().zip(TABLE_MODES) {
        for (cell, wanted) in row.bytes().zip(TABLE_MODES) {
            let lock = TableLock::default();
            lock.acquire(held, other(), SOON).expect("nobody has it");
            let taken = lock.acquire(wanted, other(), SOON);
            assert_eq!(taken.is_err(), cell == b'x', "{held:?} {wanted:?}");
            if taken.is_ok() {
                lock.release(wanted);
            }
            if held != wanted {
                lock.acquire(wanted, holding(1, &[held]), SOON).expect("a session does not exclude itself");
                lock.release(wanted);
            }
            lock.release(held);
            assert_eq!(lock.word.load(Ordering::Relaxed), 0, "{held:?} {wanted:?}");
        }
    }
}

#[test]
fn requests_are_granted_in_their_order_but_a_holder_goes_first() {
    let lock = TableLock::default();
    lock.acquire(RowExclusive, other(), SOON).expect("nobody has it");
    let share = queued(&lock, Share, holding(1, &[]));
    let writer = queued(&lock, RowExclusive, holding(2, &[]));
    assert_eq!(owners(&lock), [1, 2], "a new writer waits behind the share");
    assert!(lock.request(AccessShare, other()).is_none(), "a reader conflicts with neither");
    let own = lock.request(Share, holding(3, &[RowExclusive]));
    assert!(own.is_none(), "the holder does not wait behind those that wait for it");
    lock.release(Share);
    lock.release(AccessShare);
    lock.release(RowExclusive);
    assert!(share.is_granted() && !writer.is_granted());
    lock.release(Share);
    assert!(writer.is_granted());
    lock.release(RowExclusive);
    assert_eq!(lock.word.load(Ordering::Relaxed), 0);
}

#[test]
fn a_holder_that_wants_more_is_granted_it_past_a_request_that_waits_for_it() {
    let lock = TableLock::default();
    lock.acquire(AccessShare, other(), SOON).expect("nobody has it");
    let change = queued(&lock, AccessExclusive, holding(2, &[]));
    assert!(lock.request(AccessExclusive, holding(1, &[AccessShare])).is_none());
    lock.release(AccessExclusive);
    assert!(!change.is_granted());
    lock.release(AccessShare);
    assert!(change.is_granted());
}

#[test]
fn a_reader_waits_behind_a_change_that_waits() {
    let lock = TableLock::default();
    lock.acquire(AccessShare, other(), SOON).expect("nobody has it");
    let change = queued(&lock, AccessExclusive, other());
    let reader = queued(&lock, AccessShare, other());
    lock.withdraw(&change);
    assert!(reader.is_granted());
    lock.release(AccessShare);
    lock.release(AccessShare);
    assert_eq!(lock.word.load(Ordering::Relaxed), 0);
}

#[test]
fn a_lock_that_is_let_go_wakes_all_that_may_have_it() {
    let lock = TableLock::default();
    lock.acquire(AccessExclusive, other(), SOON).expect("nobody has it");
    let calls = Arc::new(AtomicUsize::new(0));
    let wait = |mode| {
        let (ticket, counted) = (queued(&lock, mode, other()), calls.clone());
        ticket.wake_when_granted(Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }));
    };
    (0..1000).for_each(|nth| wait(if nth % 2 == 0 { RowExclusive } else { AccessShare }));
    wait(Share);
    wait(RowShare);
    lock.release(AccessExclusive);
    assert_eq!(calls.load(Ordering::SeqCst), 1001, "all but the share");
    (0..500).for_each(|_| lock.release(RowExclusive));
    assert_eq!(calls.load(Ordering::SeqCst), 1002);
}

#[test]
fn a_request_that_ends_lets_those_behind_it_pass() {
    let lock = TableLock::default();
    lock.acquire(RowExclusive, other(), SOON).expect("nobody has it");
    let is_killed = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let killed = || is_killed.load(Ordering::SeqCst);
        let patience = Patience { wait: LONG.wait, is_interrupted: &killed };
        scope.spawn(|| {
            while lock.waiting().is_empty() {
                std::thread::yield_now();
            }
            assert_eq!(lock.acquire(RowExclusive, other(), SOON), Err(Fault::LockTimeout));
            is_killed.store(true, Ordering::SeqCst);
        });
        assert_eq!(lock.acquire(Exclusive, other(), patience), Err(Fault::Interrupted));
    });
    lock.acquire(RowExclusive, other(), SOON).expect("nobody wants more");
}

#[test]
fn a_granted_request_that_is_withdrawn_gives_the_lock_back() {
    let lock = TableLock::default();
    lock.acquire(AccessExclusive, other(), SOON).expect("nobody has it");
    let (first, second) = (queued(&lock, AccessExclusive, other()), queued(&lock, AccessExclusive, other()));
    lock.release(AccessExclusive);
    assert!(first.is_granted() && !second.is_granted());
    lock.withdraw(&first);
    assert!(second.is_granted());
    lock.withdraw(&second);
    assert_eq!(lock.word.load(Ordering::Relaxed), 0);
}

#[test]
fn weak_and_strong_requests_of_many_threads_exclude_each_other() {
    let (lock, writers, changes) = (TableLock::default(), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for nth in 0..4 {
            let (lock, writers, changes) = (&lock, &writers, &changes);
            scope.spawn(move || {
                for round in 0..2000 {
                    if (nth + round) % 5 == 0 {
                        lock.acquire(Share, other(), LONG).expect("it is granted");
                        changes.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(writers.load(Ordering::SeqCst), 0);
                        changes.fetch_sub(1, Ordering::SeqCst);
                        lock.release(Share);
                    } else {
                        lock.acquire(RowExclusive, other(), LONG).expect("it is granted");
                        writers.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(changes.load(Ordering::SeqCst), 0);
                        writers.fetch_sub(1, Ordering::SeqCst);
                        lock.release(RowExclusive);
                    }
                }
            });
        }
    });
    assert_eq!(lock.word.load(Ordering::Relaxed), 0);
}
