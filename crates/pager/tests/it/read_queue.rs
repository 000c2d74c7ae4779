//! Reads through async read queues, on a real file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use os::{RealClock, RealFolder};
use pager::{Background, NoObserver, Options, PageId, Pager, RedoTable};
use stdx::prng::Prng;

use crate::support::*;

/// A folder that is removed on drop.
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens a pager with `frames` frames over `count` pages that hold their own numbers, all on disk.
fn pager_with_pages(name: &str, frames: u64, count: u64) -> (TemporaryFolder, Arc<Pager>, Vec<PageId>) {
    let temporary = TemporaryFolder(std::env::temp_dir().join(format!("beluga-queue-{name}-{}", std::process::id())));
    let open = || {
        let options = Options {
            background: Background::Threads,
            frame_bytes: frames * 4096,
            segment_bytes: 1 << 20,
            ..options()
        };
        let folder = RealFolder::open(&temporary.0, true).unwrap();
        let redo = RedoTable::new().own(0x10..0x11, ToyRedo);
        Pager::open(folder, Arc::new(RealClock::new()), options, redo, &mut NoObserver, 5, &|_| {}).unwrap().pager
    };
    let pager = open();
    let pids = (0..count).map(|value| make_page(&pager, value).unwrap().0).collect();
    pager.close().unwrap();
    drop(pager);
    let pager = open();
    (temporary, pager, pids)
}

fn count_in(counter: Arc<AtomicUsize>) -> pager::ReadCallback {
    Box::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

#[test]
fn every_fetched_page_has_its_callback_once() {
    let (_folder, pager, pids) = pager_with_pages("storm", 96, 400);
    let (asked, called) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pager, pids, asked, called) = (&pager, &pids, &asked, &called);
            scope.spawn(move || {
                // Two threads have a queue of their own, two have none; where the system has no io_uring, none has.
                let queue = if thread < 2 { pager.open_read_queue() } else { None };
                queue.iter().for_each(|queue| queue.attach_thread());
                let mut random = Prng::new(thread);
                for _ in 0..300 {
                    let wanted: Vec<PageId> = (0..8).map(|_| pids[random.below(400) as usize]).collect();
                    asked.fetch_add(wanted.len(), Ordering::Relaxed);
                    pager.fetch(wanted.iter().map(|pid| (*pid, count_in(called.clone()))));
                    queue.iter().for_each(|queue| queue.poll_completions());
                    let at = random.below(400) as usize;
                    assert_eq!(value(pager, pids[at]), at as u64);
                }
                let until = Instant::now() + Duration::from_secs(20);
                while called.load(Ordering::Relaxed) < asked.load(Ordering::Relaxed) && Instant::now() < until {
                    queue.iter().for_each(|queue| queue.poll_completions());
                    std::thread::yield_now();
                }
            });
        }
    });
    pager.close().unwrap();
    assert_eq!(called.load(Ordering::Relaxed), asked.load(Ordering::Relaxed));
}

#[test]
fn a_waiter_gets_its_page_although_no_attached_thread_polls() {
    let (_folder, pager, pids) = pager_with_pages("alone", 64, 40);
    let queue = pager.open_read_queue();
    queue.iter().for_each(|queue| queue.attach_thread());
    pager.fetch(pids[..30].iter().map(|pid| (*pid, Box::new(|| {}) as pager::ReadCallback)));
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(value(&pager, pids[7])).unwrap());
        // This thread has submitted its reads and only sleeps.
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(7));
    });
    pager.close().unwrap();
}

#[test]
fn a_cached_only_view_never_waits_for_a_read_in_flight() {
    let (_folder, pager, pids) = pager_with_pages("now", 64, 40);
    assert!(matches!(pager.optimistic_cached(pids[3]), Err(pager::Error::PageMiss(page)) if page == pids[3]));
    let queue = pager.open_read_queue();
    queue.iter().for_each(|queue| queue.attach_thread());
    let called = Arc::new(AtomicUsize::new(0));
    // A second request for the page that is being read is called back as well.
    (0..3).for_each(|_| pager.fetch([(pids[3], count_in(called.clone()))]));
    let until = Instant::now() + Duration::from_secs(20);
    while called.load(Ordering::Relaxed) < 3 && Instant::now() < until {
        if called.load(Ordering::Relaxed) == 0 && queue.is_some() {
            assert!(matches!(pager.optimistic_cached(pids[3]), Err(pager::Error::PageMiss(_))));
        }
        queue.iter().for_each(|queue| queue.poll_completions());
    }
    assert_eq!(called.load(Ordering::Relaxed), 3);
    assert!(pager.optimistic_cached(pids[3]).is_ok());
    pager.close().unwrap();
}

#[test]
fn closing_completes_the_reads_in_flight() {
    let (_folder, pager, pids) = pager_with_pages("close", 64, 40);
    let queue = pager.open_read_queue();
    queue.iter().for_each(|queue| queue.attach_thread());
    let called = Arc::new(AtomicUsize::new(0));
    pager.fetch(pids[..30].iter().map(|pid| (*pid, count_in(called.clone()))));
    pager.close().unwrap();
    assert_eq!(called.load(Ordering::Relaxed), 30);
}
