//! The buffer pool with more pages than frames, the space map, and many threads.

use std::sync::Arc;

use os::{Folder, RealClock, SimFolder};
use pager::{Background, Lsn, NoObserver, Options, PAGE_BYTES, Pager, RedoTable};

use crate::support::*;

#[test]
fn more_pages_than_frames_are_evicted_and_read_again() {
    let folder = SimFolder::new(5);
    let pager = open(&folder);
    let pids: Vec<_> = (0..500).map(|value| make_page(&pager, value).unwrap().0).collect();
    for (at, pid) in pids.iter().enumerate() {
        assert_eq!(value(&pager, *pid), at as u64);
    }
    let resident = pids.iter().filter(|pid| pager.is_resident(**pid)).count();
    assert!(resident <= 64, "{resident} pages in 64 frames");
    pager.close().unwrap();
    let pager = open(&folder);
    for (at, pid) in pids.iter().enumerate() {
        assert_eq!(value(&pager, *pid), at as u64);
    }
}

#[test]
fn prefetched_pages_are_resident() {
    let folder = SimFolder::new(6);
    let pager = open(&folder);
    let pids: Vec<_> = (0..40).map(|value| make_page(&pager, value).unwrap().0).collect();
    pager.close().unwrap();
    let pager = open(&folder);
    pager.prefetch_many(&pids[..4]);
    assert!(pids[..4].iter().all(|pid| pager.is_resident(*pid)));
    assert_eq!(value(&pager, pids[3]), 3);
}

#[test]
fn an_optimistic_view_detects_every_change() {
    let folder = SimFolder::new(7);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    let view = pager.optimistic(pid).unwrap();
    assert_eq!(view.page().load(FIRST_WORD), 1);
    assert!(view.validate());
    change(&pager, &[pid], 2).unwrap();
    assert!(!view.validate());
    assert!(view.upgrade().is_none());
    let view = pager.optimistic(pid).unwrap();
    assert!(view.upgrade().is_some());
}

#[test]
fn freed_pages_are_used_again_and_the_map_survives() {
    let folder = SimFolder::new(8);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    let mut mtr = pager.mtr();
    mtr.free(pid, 1);
    mtr.commit();
    assert!(!pager.is_allocated(pid));
    let (again, _) = make_page(&pager, 2).unwrap();
    assert_eq!(again, pid);
    let dropped = {
        let mut mtr = pager.mtr();
        mtr.allocate(3, pager::NO_PAGE).unwrap()
    };
    assert!(!pager.is_allocated(dropped), "a dropped mini-transaction gives its pages back");
    pager.close().unwrap();
    let pager = open(&folder);
    assert!(pager.is_allocated(pid) && !pager.is_allocated(dropped));
}

#[test]
fn threads_share_pages_and_the_wal() {
    let folder: Arc<dyn Folder> = SimFolder::new(9);
    let options = Options { background: Background::Threads, frame_bytes: 128 * 4096, ..options() };
    let redo = || RedoTable::new().own(0x10..0x11, ToyRedo);
    let pager =
        Pager::open(folder.clone(), Arc::new(RealClock::new()), options.clone(), redo(), &mut NoObserver, 3, &|_| {})
            .unwrap()
            .pager;
    let pids: Vec<_> = (0..300).map(|_| make_page(&pager, 0).unwrap().0).collect();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (pager, pids) = (&pager, &pids);
            scope.spawn(move || {
                let mut random = stdx::prng::Prng::new(thread);
                for _ in 0..2_000 {
                    let pid = pids[random.below(300) as usize];
                    let page = pager.exclusive(pid).unwrap();
                    let mut mtr = pager.mtr();
                    set(&mut mtr, &page, FIRST_WORD, page.page().load(FIRST_WORD) + 1);
                    let lsn = mtr.commit();
                    drop(page);
                    if random.chance(0.01) {
                        pager.durable().wait(lsn);
                    }
                }
            });
        }
    });
    let sum = |pager: &Pager| pids.iter().map(|pid| value(pager, *pid)).sum::<u64>();
    assert_eq!(sum(&pager), 8_000);
    pager.flush_to(pager.wal_head()).unwrap();
    pager.close().unwrap();
    let options = Options { background: Background::Manual, ..options };
    let again = Pager::open(folder, Arc::new(RealClock::new()), options, redo(), &mut NoObserver, 3, &|_| {}).unwrap();
    assert_eq!(sum(&again.pager), 8_000);
}

#[test]
fn unrequested_bytes_are_flushed_after_an_idle_period_and_not_before() {
    let folder: Arc<dyn Folder> = SimFolder::new(10);
    let options = Options { background: Background::Threads, ring_bytes: 8 << 20, ..options() };
    let redo = RedoTable::new().own(0x10..0x11, ToyRedo);
    let pager =
        Pager::open(folder, Arc::new(RealClock::new()), options, redo, &mut NoObserver, 4, &|_| {}).unwrap().pager;
    let pid = make_page(&pager, 0).unwrap().0;
    let (sender, advances) = std::sync::mpsc::channel();
    pager.durable().listen(Box::new(move |_| sender.send(()).unwrap_or_default()));
    // A listener requests no flush, unlike a waiter.
    let is_flushed = || {
        while pager.durable().get() < pager.wal_head() {
            if advances.recv_timeout(std::time::Duration::from_secs(30)).is_err() {
                return false;
            }
        }
        true
    };
    assert!(is_flushed());
    let (start, before) = (std::time::Instant::now(), pager.counts().log_flushes);
    for value in 0..500 {
        change(&pager, &[pid], value).unwrap();
    }
    // The first change wakes a parked flusher; then there is one flush per idle period of 20 ms.
    let most = 3 + start.elapsed().as_millis() as u64 / 20;
    let flushes = pager.counts().log_flushes - before;
    assert!(flushes <= most, "{flushes} flushes, where at most {most} are due");
    assert!(is_flushed(), "unrequested bytes are not flushed");
    let lsn = change(&pager, &[pid], 1).unwrap();
    pager.durable().wait(lsn);
    pager.close().unwrap();
}

/// The cleaner runs from early in the opening on; until the maps have been read it must not touch them.
#[test]
fn opening_with_the_cleaner_running_keeps_the_space_map() {
    for seed in 0..60 {
        let folder = SimFolder::new(seed);
        let threads = Options { background: Background::Threads, ..options() };
        let mut kept = Vec::new();
        for round in 0..3 {
            let pager = try_open(folder.clone(), threads.clone()).unwrap().pager;
            kept.push((make_page(&pager, round).unwrap().0, round));
            for (pid, round) in &kept {
                assert!(pager.is_allocated(*pid), "page {pid} of round {round} is free again");
                assert_eq!(value(&pager, *pid), *round);
            }
            assert!((0..pager::WELL_KNOWN).all(|index| pager.is_allocated(Pager::well_known(index))));
            pager.close().unwrap();
        }
    }
}

#[test]
fn the_wal_reuses_its_files() {
    let folder = SimFolder::new(31);
    let options = Options { segment_bytes: 64 << 10, checkpoint_distance: 1 << 20, ..options() };
    let pager = try_open(folder.clone(), options).unwrap().pager;
    let (pid, _) = make_page(&pager, 1).unwrap();
    let files = || folder.list().unwrap();
    for round in 0..8 {
        // Seven segments between two checkpoints.
        let start = pager.wal_head();
        while pager.wal_head() - start < 7 * (64 << 10) {
            pager.admit().unwrap();
            change(&pager, &[pid], round).unwrap();
            if pager.wal_head() % 8192 < 200 {
                pager.flush_to(pager.wal_head()).unwrap();
            }
        }
        let before = files().len();
        pager.checkpoint_all().unwrap();
        assert_eq!(files().len(), before, "files that the next segments need were removed: {:?}", files());
    }
    pager.close().unwrap();
}

#[test]
fn a_start_on_a_full_disk_needs_no_room() {
    let folder = SimFolder::new(32);
    let options = Options { segment_bytes: 4 << 20, checkpoint_distance: 16 << 20, ..options() };
    let pager = try_open(folder.clone(), options.clone()).unwrap().pager;
    let (pid, _) = make_page(&pager, 1).unwrap();
    change(&pager, &[pid], 2).unwrap();
    pager.flush_to(pager.wal_head()).unwrap();
    let folder = folder.crash();
    folder.set_capacity(Some(folder.used_bytes()));
    let pager = try_open(folder.clone(), options.clone()).expect("no new space is needed").pager;
    assert_eq!(value(&pager, pid), 2);
    // New writes are refused, an admitted one is not, and nothing is lost.
    assert!(matches!(pager.admit(), Err(pager::Error::DiskFull { .. })));
    change(&pager, &[pid], 3).unwrap();
    pager.flush_to(pager.wal_head()).unwrap();
    // The checkpoint releases files, and the first of them becomes the spare file for the next start.
    pager.checkpoint_all().unwrap();
    let _ = pager.background_step();
    let folder = folder.crash();
    folder.set_capacity(Some(folder.used_bytes()));
    let pager = try_open(folder.clone(), options.clone()).expect("nor at the next start").pager;
    assert_eq!(value(&pager, pid), 3);
    let folder = folder.crash();
    folder.set_capacity(None);
    let pager = try_open(folder.clone(), options).unwrap().pager;
    assert_eq!(value(&pager, pid), 3);
    pager.admit().expect("room is back");
    pager.close().unwrap();
}

/// Regression: with a ring of a megabyte over segments of a quarter of one, admitted writes found no segment, and neither did the checkpoint that would
/// have freed some.
#[test]
fn admitted_writes_find_room_in_the_wal() {
    for seed in 0..16u64 {
        let folder = SimFolder::new(40 + seed);
        let pager = try_open(folder.clone(), options()).unwrap().pager;
        let (pid, _) = make_page(&pager, 1).unwrap();
        // Each seed starts at another position of the segment.
        for round in 0..seed * 200 {
            pager.admit().unwrap();
            change(&pager, &[pid], round).unwrap();
        }
        pager.flush_to(pager.wal_head()).unwrap();
        folder.set_capacity(Some(folder.used_bytes() + (64 << 10) * (seed % 4)));
        let mut admitted = 0;
        while pager.admit().is_ok() && pager.wal_head() - pager.durable().get() < 1 << 19 {
            change(&pager, &[pid], admitted).unwrap();
            admitted += 1;
        }
        pager.flush_to(pager.wal_head()).expect("there is a segment for it");
        pager.checkpoint_all().expect("and for the checkpoint");
        assert!(admitted == 0 || value(&open(&folder.crash()), pid) == admitted - 1);
    }
}

#[test]
fn a_freed_value_is_not_written_once_its_end_is_durable() {
    let folder = SimFolder::new(33);
    let pager = open(&folder);
    let data = vec![7; 4 * PAGE_BYTES];
    let first = pager.reserve(4, pager::NO_PAGE).unwrap();
    pager.extent_write(first, 0, &data).unwrap();
    let mut mtr = pager.mtr();
    mtr.allocated(first, 4);
    let made = mtr.commit();
    let mut mtr = pager.mtr();
    mtr.free(first, 4);
    let freed = mtr.commit();
    let written = || pager.counts().page_writes;
    let before = written();
    // Until the WAL holds the record that frees the value, the cleaner skips it, as it skips every page ahead of the WAL.
    assert!(pager.durable().get() < made);
    pager.flush_to(freed).unwrap();
    pager.clean_until(Lsn::MAX).unwrap();
    let pages = written() - before;
    assert!(pages > 0 && pages < 4, "the map was written, four dead units were not: {pages}");
    assert!(pager.checkpoint().unwrap() >= freed, "they delay no checkpoint");
    // The run is reused for a value that is written.
    let again = pager.reserve(4, pager::NO_PAGE).unwrap();
    pager.extent_write(again, 0, &data).unwrap();
    let mut mtr = pager.mtr();
    mtr.allocated(again, 4);
    pager.flush_to(mtr.commit()).unwrap();
    let before = written();
    pager.clean_until(Lsn::MAX).unwrap();
    assert!(written() - before >= 4);
    let pager = open(&folder.crash());
    let mut out = vec![0; data.len()];
    pager.extent_read(again, 0, &mut out, &[crc32c::crc32c(&data[..PAGE_BYTES]); 4]).unwrap();
    assert_eq!(out, data);
}
