//! Damage other than a crash: flipped bits, failing devices, full disks.

use std::time::Duration;

use os::{Fault, SimFolder};
use pager::{Background, Error, Options, Pager};

use crate::support::*;

fn flip(folder: &SimFolder, file: &str, offset: u64) {
    folder.flip_bit(file, offset, 3);
}

#[test]
fn a_damaged_page_is_named_and_the_others_are_served() {
    let folder = SimFolder::new(11);
    let pager = open(&folder);
    let (bad, _) = make_page(&pager, 1).unwrap();
    let (good, _) = make_page(&pager, 2).unwrap();
    pager.close().unwrap();
    // The next opening voids the double-write file, which would repair the damage.
    drop(open(&folder));
    flip(&folder, "data", bad * 4096 + 100);
    let pager = open(&folder);
    let error = pager.shared(bad).err().expect("the damage is found").to_string();
    assert!(error.contains(&format!("page {bad}")) && error.contains("'data'"), "{error}");
    assert_eq!(value(&pager, good), 2);
}

#[test]
fn damage_inside_the_wal_is_an_error_and_not_its_end() {
    let folder = SimFolder::new(12);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    for value in 2..10 {
        change(&pager, &[pid], value).unwrap();
        while pager.flush_once().unwrap() {}
    }
    drop(pager);
    // The second chunk of the first segment: header block, then chunks of one block each.
    flip(&folder, "log-00000001", 2 * 4096 + 70);
    let error = match try_open(folder, options()) {
        Err(error @ Error::Corrupt { .. }) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("acknowledged writes were dropped silently"),
    };
    assert!(error.contains("log-00000001") && error.contains("acknowledged"), "{error}");
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let folder = SimFolder::new(13);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    folder.set_capacity(Some(folder.used_bytes()));
    let mut made = 0;
    let error = loop {
        match pager.admit().and_then(|()| make_page(&pager, 7)) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
        assert!(made < 10_000, "the disk never fills");
    };
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert_eq!(value(&pager, pid), 1, "reads go on");
    folder.set_capacity(None);
    assert!(resumes(&pager));
}

#[test]
fn pages_reserved_for_undo_are_given_only_to_undo() {
    let folder = SimFolder::new(14);
    let pager = open(&folder);
    folder.set_capacity(Some(folder.used_bytes()));
    let mut reserve = pager.undo_reserve();
    reserve.reserve_pages(20).unwrap();
    while pager.reserve(1, pager::NO_PAGE).is_ok() {}
    let (_, free) = pager.space_use();
    assert!((20..64).contains(&free), "{free}");
    assert!(
        matches!(pager.undo_reserve().reserve_pages(20), Err(Error::DiskFull { .. })),
        "reserved pages are not reserved twice"
    );
    let undoing = pager.enter_undo();
    for _ in 0..20 {
        pager.reserve(1, pager::NO_PAGE).expect("undo finds a page");
    }
    drop(undoing);
    assert!(pager.reserve(1, pager::NO_PAGE).is_err());
    drop(reserve);
    assert_eq!(pager.reserve(1, pager::NO_PAGE).is_ok(), free > 20);
}

/// The bytes in the ring have no place on disk and never will: no client was told that they are durable.
#[test]
fn closing_does_not_wait_for_space_that_never_comes() {
    let folder = SimFolder::new(16);
    let threads = Options { background: Background::Threads, ..options() };
    let pager = try_open(folder.clone(), threads).unwrap().pager;
    let (pid, _) = make_page(&pager, 1).unwrap();
    folder.set_capacity(Some(folder.used_bytes()));
    // These writes skip `admit`, as undo does; one of their pages stays latched, so that no checkpoint helps.
    let pages: Vec<_> = (0..4).map(|round| make_page(&pager, round).unwrap().0).collect();
    let mut held = pager.mtr();
    let latched = pager.exclusive(pid).unwrap();
    set(&mut held, &latched, FIRST_WORD, 2);
    held.commit();
    let moved = |since: u64| pager.durable().wait_timeout(since + 1, Duration::from_millis(300));
    loop {
        // The ring has room for more than this: no append waits here.
        while pager.wal_head() - pager.durable().get() < 1 << 19 {
            change(&pager, &pages, 7).unwrap();
        }
        if !moved(pager.durable().get()) {
            break;
        }
    }
    drop(latched);
    let (sender, closed) = std::sync::mpsc::channel();
    let closing = pager.clone();
    std::thread::spawn(move || sender.send(closing.close().is_ok()));
    let result = closed.recv_timeout(Duration::from_secs(20)).expect("closing returns");
    assert!(!result, "and reports that it made no checkpoint");
    let folder = folder.crash();
    folder.set_capacity(None);
    assert!([1, 2].contains(&value(&open(&folder), pid)));
}

fn resumes(pager: &Pager) -> bool {
    (0..10).any(|_| pager.admit().and_then(|()| make_page(pager, 8)).is_ok())
}

/// Regression: seed 72 of `sim random`.
#[test]
fn a_page_torn_by_a_failed_sync_keeps_its_copy_until_it_is_written_again() {
    for seed in 0..24 {
        let folder = SimFolder::new(seed);
        let pager = open(&folder);
        let (torn, _) = make_page(&pager, 1).unwrap();
        let (other, _) = make_page(&pager, 1).unwrap();
        pager.checkpoint_all().unwrap();
        let page = pager.exclusive(torn).unwrap();
        let mut mtr = pager.mtr();
        // In the first sector of the page and in the last.
        for word in [FIRST_WORD, pager::PAGE_WORDS - 1] {
            set(&mut mtr, &page, word, 2);
        }
        mtr.commit();
        drop(page);
        folder.fail("data", Fault::Sync(1));
        assert!(pager.clean_until(pager.wal_head()).is_err(), "the sync fails");
        change(&pager, &[other], 2).unwrap();
        // The next batch lacks the page and takes the place of its copy.
        let latched = pager.exclusive(torn).unwrap();
        while pager.flush_once().unwrap() {}
        folder.crash_at_io(folder.io_count() + 2);
        assert!(pager.clean_until(pager.wal_head()).is_err(), "the crash comes before the data file is synced again");
        drop(latched);
        let opened = try_open(folder.crash(), options()).unwrap();
        assert!(opened.recovered.damaged.is_empty(), "seed {seed}: {:?}", opened.recovered.damaged);
        assert_eq!((value(&opened.pager, torn), value(&opened.pager, other)), (2, 2));
    }
}

#[test]
fn a_checkpoint_that_could_not_be_written_is_not_one() {
    let folder = SimFolder::new(15);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    pager.clean_until(pager.wal_head()).unwrap();
    folder.fail("data", Fault::Write(1));
    assert!(pager.checkpoint().is_err(), "the control block is not written");
    let lsn = pager.checkpoint().unwrap();
    let opened = try_open(folder.crash(), options()).unwrap();
    assert_eq!((opened.recovered.from, value(&opened.pager, pid)), (lsn, 1));
}
