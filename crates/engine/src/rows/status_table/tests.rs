use super::*;
use stdx::sync::atomic::AtomicBool;

fn counter(first: u64) -> impl Fn() -> u64 {
    let next = AtomicU64::new(first);
    move || next.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn commit_lsns_are_known_while_a_snapshot_may_ask() {
    let statuses = StatusTable::new(100);
    let ids = counter(100);
    let (a, b, c) = (statuses.begin(&ids, 0), statuses.begin(&ids, 0), statuses.begin(&ids, 0));
    assert_eq!(statuses.status(a), Status::Active);
    statuses.committing(a);
    statuses.committed(a, 1000);
    statuses.aborted(b);
    assert_eq!((statuses.status(a), statuses.status(b)), (Status::Committed(1000), Status::Aborted));
    statuses.advance(900, 0);
    assert_eq!(statuses.low(), a, "not durable yet");
    statuses.advance(1000, 0);
    assert_eq!(statuses.low(), c, "the third is open");
    assert!(statuses.is_open(c) && !statuses.is_open(a));
}

#[test]
fn a_loser_is_active_until_it_is_undone_and_never_committed() {
    let statuses = StatusTable::new(1 << 40 | 1);
    statuses.recover(vec![70, 7]);
    assert!(statuses.is_open(7) && statuses.is_open(70) && !statuses.is_open(8));
    assert_eq!((statuses.status(7), statuses.status(8)), (Status::Active, Status::Past));
    statuses.advance(1 << 50, 1 << 50);
    assert!(statuses.is_open(7) && statuses.low() > 70, "decided transactions are forgotten beside it");
    statuses.aborted(7);
    assert_eq!((statuses.status(7), statuses.status(70)), (Status::Aborted, Status::Active));
    assert!(statuses.is_loser(7) && !statuses.is_loser(8));
}

#[test]
fn a_reused_slot_keeps_what_a_snapshot_may_ask() {
    let statuses = StatusTable::new(1);
    let ids = counter(1);
    let old = statuses.begin(&ids, 0);
    statuses.committed(old, 500);
    let open = statuses.begin(&ids, 0);
    for number in 2..SLOTS as u64 {
        let id = statuses.begin(&ids, 400);
        statuses.committed(id, 500 + number);
    }
    let again = statuses.begin(&ids, 400);
    assert_eq!(again % SLOTS as u64, old % SLOTS as u64);
    assert_eq!(statuses.status(old), Status::Committed(500), "a snapshot at 400 may ask");
    let other = statuses.begin(&ids, 400);
    assert_ne!(other % SLOTS as u64, open % SLOTS as u64, "the slot of an open transaction is passed over");
    assert_eq!(statuses.status(open), Status::Active);
    statuses.committed(open, 99_999);
    statuses.advance(1 << 40, 1 << 40);
    assert_eq!(statuses.status(old), Status::Past);
}

#[test]
fn the_transaction_that_closes_a_cycle_detects_the_deadlock() {
    let statuses = StatusTable::new(1);
    let ids = counter(1);
    let (a, b, c) = (statuses.begin(&ids, 0), statuses.begin(&ids, 0), statuses.begin(&ids, 0));
    let patience = |millis| WaitLimits {
        until: Instant::now() + Duration::from_millis(millis),
        is_cancelled: &|| false,
        releases: 0,
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| statuses.wait(a, b, &patience(20_000)));
        let second = scope.spawn(|| statuses.wait(b, c, &patience(20_000)));
        while statuses.waits.lock().holders.len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(statuses.wait(c, a, &patience(20_000)), WaitOutcome::Deadlock);
        statuses.aborted(c);
        assert_eq!(second.join().unwrap(), WaitOutcome::Over);
        statuses.committed(b, 77);
        assert_eq!(first.join().unwrap(), WaitOutcome::Over);
    });
    assert_eq!(statuses.wait(b, a, &patience(5)), WaitOutcome::TimedOut);
}

#[test]
fn a_wait_ends_when_a_lock_is_released_or_it_is_cancelled() {
    let statuses = StatusTable::new(1);
    let ids = counter(1);
    let (a, b) = (statuses.begin(&ids, 0), statuses.begin(&ids, 0));
    let is_told = AtomicBool::new(false);
    let is_cancelled = || is_told.load(Ordering::SeqCst);
    let patience = |releases| WaitLimits {
        until: Instant::now() + Duration::from_secs(20),
        is_cancelled: &is_cancelled,
        releases,
    };
    let waits = || {
        while statuses.waits.lock().holders.is_empty() {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| statuses.wait(a, b, &patience(0)));
        waits();
        statuses.released(b);
        assert_eq!(waiter.join().unwrap(), WaitOutcome::Over);
        assert_eq!(statuses.wait(a, b, &patience(0)), WaitOutcome::Over, "released before the wait began");
        let waiter = scope.spawn(|| statuses.wait(a, b, &patience(1)));
        waits();
        is_told.store(true, Ordering::SeqCst);
        statuses.recheck_waiters();
        assert_eq!(waiter.join().unwrap(), WaitOutcome::Cancelled);
    });
}
