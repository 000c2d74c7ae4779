//! Recovery in batches: whatever their size, the same pages; large ones read a page once; damage and failing devices.

use std::sync::Arc;
use std::time::Duration;

use os::{Fault, SimFolder};
use pager::{Background, Options, PageId, Pager};

use crate::support::*;

/// Opens what a crash of `folder` leaves.
fn recover(folder: &Arc<SimFolder>, recovery_bytes: u64, background: Background) -> Arc<Pager> {
    let options = Options { recovery_bytes, background, ..options() };
    try_open(folder.crash(), options).expect("the folder opens").pager
}

/// Several times as many pages as frames, all of them changed in every round.
fn rounds(folder: &Arc<SimFolder>, rounds: u64) -> Vec<PageId> {
    let pager = open(folder);
    let pids: Vec<PageId> = (0..300).map(|_| make_page(&pager, 0).unwrap().0).collect();
    pager.checkpoint_all().unwrap();
    for round in 1..=rounds {
        for pid in &pids {
            change(&pager, &[*pid], round * 1000 + pid).unwrap();
            // Chunks of few records: a batch has at least one.
            pager.flush_to(pager.wal_head()).unwrap();
        }
    }
    pids
}

#[test]
fn a_page_is_read_once_however_often_the_log_changes_it() {
    let folder = SimFolder::new(31);
    let pids = rounds(&folder, 8);
    let mut reads = Vec::new();
    for recovery_bytes in [1, 4 << 10, 64 << 10, 4 << 20] {
        for background in [Background::Manual, Background::Threads] {
            let pager = recover(&folder, recovery_bytes, background);
            reads.push(pager.counts().page_reads);
            for pid in &pids {
                assert_eq!(value(&pager, *pid), 8000 + pid, "{recovery_bytes} {background:?}");
            }
            pager.close().unwrap();
        }
    }
    // The space map besides.
    let [.., manual, threads] = reads[..] else { unreachable!() };
    assert!(manual <= 310 && threads <= 310, "{reads:?}");
    assert!(reads[0] > 600, "in the order of the log a page is read again and again: {reads:?}");
}

#[test]
fn pages_that_are_freed_later_in_the_log_need_no_repair() {
    for recovery_bytes in [1, 4 << 20] {
        let folder = SimFolder::new(32);
        let pager = open(&folder);
        let [freed, reused, kept] = std::array::from_fn(|_| make_page(&pager, 1).unwrap().0);
        pager.close().unwrap();
        let pager = open(&folder);
        for value in 2..40 {
            change(&pager, &[freed, reused, kept], value).unwrap();
        }
        let free = |pid| {
            let mut mtr = pager.mtr();
            mtr.free(pid, 1);
            mtr.commit();
        };
        free(reused);
        let (again, _) = make_page(&pager, 77).unwrap();
        assert_eq!(again, reused, "the first free page is given out");
        free(freed);
        while pager.flush_once().unwrap() {}
        let crashed = folder.crash();
        for pid in [freed, reused, kept] {
            crashed.flip_bit("data", pid * 4096 + 100, 3);
        }
        let opened = try_open(crashed, Options { recovery_bytes, ..options() }).unwrap();
        let damaged: Vec<PageId> = opened.recovered.damaged.iter().map(|(pid, _)| *pid).collect();
        assert_eq!(damaged, [kept], "{:?}", opened.recovered.damaged);
        assert_eq!(value(&opened.pager, reused), 77);
    }
}

/// The cleaner of recovery ends with the error; the threads that wait for frames must not wait for it.
#[test]
fn a_device_that_fails_ends_recovery_and_the_next_one_succeeds() {
    for nth in [1, 2, 3, 5, 8] {
        let folder = SimFolder::new(33 + nth);
        let pids = rounds(&folder, 3);
        let crashed = folder.crash();
        for fault in [Fault::Write(nth), Fault::Sync(nth)] {
            crashed.fail("data", fault);
        }
        let (sender, result) = std::sync::mpsc::channel();
        let opening = crashed.clone();
        std::thread::spawn(move || {
            let threads = Options { background: Background::Threads, ..options() };
            sender.send(try_open(opening, threads).map(|opened| opened.pager.close()).is_ok())
        });
        result.recv_timeout(Duration::from_secs(60)).expect("opening ends");
        crashed.clear_faults();
        let pager = recover(&crashed, 64 << 10, Background::Threads);
        for pid in &pids {
            assert_eq!(value(&pager, *pid), 3000 + pid, "{nth}");
        }
        pager.close().unwrap();
    }
}
