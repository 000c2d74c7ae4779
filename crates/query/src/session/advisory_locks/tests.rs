use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use AdvisoryMode::{Exclusive, Shared};

fn queued(locks: &AdvisoryLocks, session: u64, name: &[u8], mode: AdvisoryMode) {
    assert_eq!(locks.request(session, name, mode), Ok(LockAnswer::Queued));
}

#[test]
fn shared_locks_go_together_and_an_exclusive_one_alone() {
    let locks = AdvisoryLocks::default();
    assert_eq!(locks.try_acquire(1, b"a", Shared), Ok(true));
    assert_eq!(locks.try_acquire(2, b"a", Shared), Ok(true));
    assert_eq!(locks.try_acquire(3, b"a", Exclusive), Ok(false));
    assert_eq!(locks.try_acquire(1, b"a", Exclusive), Ok(false), "another session shares it");
    locks.release(2, b"a", Shared);
    assert_eq!(locks.try_acquire(1, b"a", Exclusive), Ok(true), "its own share does not keep it off");
    assert_eq!(locks.holder(b"a"), Some(1));
    locks.release(1, b"a", Exclusive);
    assert_eq!(locks.try_acquire(3, b"a", Shared), Ok(true));
    locks.release(1, b"a", Shared);
    locks.release(3, b"a", Shared);
    assert!(locks.list().is_empty());
    assert!(locks.state.lock().locks.is_empty(), "a lock that nobody holds is forgotten");
}

#[test]
fn requests_are_granted_in_the_order_of_their_arrival() {
    let locks = AdvisoryLocks::default();
    assert_eq!(locks.try_acquire(1, b"a", Shared), Ok(true));
    queued(&locks, 2, b"a", Exclusive);
    queued(&locks, 3, b"a", Shared);
    assert_eq!(locks.try_acquire(4, b"a", Shared), Ok(false), "a shared lock does not overtake");
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    locks.wake_when_granted(
        2,
        Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }),
    );
    locks.release(1, b"a", Shared);
    assert!(locks.take_granted(2) && !locks.take_granted(3));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    locks.release(2, b"a", Exclusive);
    assert!(locks.take_granted(3));
}

#[test]
fn a_holder_goes_before_those_that_wait_for_it() {
    let locks = AdvisoryLocks::default();
    assert_eq!(locks.try_acquire(1, b"a", Shared), Ok(true));
    assert_eq!(locks.try_acquire(2, b"a", Shared), Ok(true));
    queued(&locks, 3, b"a", Exclusive);
    queued(&locks, 1, b"a", Exclusive);
    locks.release(2, b"a", Shared);
    assert!(locks.take_granted(1) && !locks.is_granted(3));
}

#[test]
fn a_withdrawn_request_lets_those_behind_it_pass_and_gives_a_granted_lock_back() {
    let locks = AdvisoryLocks::default();
    assert_eq!(locks.try_acquire(1, b"a", Shared), Ok(true));
    queued(&locks, 2, b"a", Exclusive);
    queued(&locks, 3, b"a", Shared);
    locks.withdraw(2);
    assert!(locks.is_granted(3));
    locks.withdraw(3);
    locks.release(1, b"a", Shared);
    assert!(locks.list().is_empty());
}

#[test]
fn a_request_that_closes_a_cycle_fails_and_leaves_the_others_waiting() {
    let locks = AdvisoryLocks::default();
    for session in 1..=3 {
        assert_eq!(locks.try_acquire(session, &[session as u8], Exclusive), Ok(true));
    }
    queued(&locks, 1, &[2], Exclusive);
    queued(&locks, 2, &[3], Shared);
    assert_eq!(locks.request(3, &[1], Shared), Err(Fault::Deadlock));
    assert_eq!((locks.blockers(1), locks.blockers(2), locks.blockers(3)), (vec![2], vec![3], vec![]));
    locks.release(3, &[3], Exclusive);
    assert!(locks.take_granted(2));
}

#[test]
fn two_that_share_a_lock_and_want_it_alone_are_a_deadlock() {
    let locks = AdvisoryLocks::default();
    assert_eq!(locks.try_acquire(1, b"a", Shared), Ok(true));
    assert_eq!(locks.try_acquire(2, b"a", Shared), Ok(true));
    queued(&locks, 1, b"a", Exclusive);
    assert_eq!(locks.request(2, b"a", Exclusive), Err(Fault::Deadlock));
    locks.release(2, b"a", Shared);
    assert!(locks.take_granted(1));
}

#[test]
fn locks_are_bounded_in_number() {
    let locks = AdvisoryLocks::default();
    for nth in 0..ADVISORY_LOCKS_MAX as u64 {
        assert_eq!(locks.try_acquire(1, &nth.to_be_bytes(), Exclusive), Ok(true));
    }
    let full = Fault::TooManyLocks { max: ADVISORY_LOCKS_MAX as u64 };
    assert_eq!(locks.try_acquire(1, b"a", Exclusive), Err(full.clone()));
    assert_eq!(locks.request(2, &0_u64.to_be_bytes(), Exclusive), Err(full));
    locks.release(1, &0_u64.to_be_bytes(), Exclusive);
    assert_eq!(locks.try_acquire(1, b"a", Exclusive), Ok(true));
}
