//! Damage that is not a crash: flipped bits, devices that fail, disks that are full.

use std::thread::sleep;
use std::time::Duration;

use os::{Fault, SimFolder};
use pager::{Background, Error, Options, Pager};

use crate::support::*;

fn flip(folder: &SimFolder, file: &str, offset: u64) {
    folder.flip_bit(file, offset, 3);
}

#[test]
fn a_damaged_page_fails_by_name_and_the_rest_serves() {
    let folder = SimFolder::new(11);
    let pager = open(&folder);
    let (bad, _) = make_page(&pager, 1).unwrap();
    let (good, _) = make_page(&pager, 2).unwrap();
    pager.close().unwrap();
    // The next opening voids the double write, which would repair the damage.
    drop(open(&folder));
    flip(&folder, "data", bad * 4096 + 100);
    let pager = open(&folder);
    let error = pager.shared(bad).err().expect("the damage is found").to_string();
    assert!(error.contains(&format!("page {bad}")) && error.contains("'data'"), "{error}");
    assert_eq!(value(&pager, good), 2);
}

#[test]
fn a_damaged_log_is_an_error_unless_it_is_the_end() {
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
        Ok(_) => panic!("acknowledged writes were dropped without a word"),
    };
    assert!(error.contains("log-00000001") && error.contains("acknowledged"), "{error}");
}

#[test]
fn a_full_disk_refuses_writes_and_lets_them_on_when_there_is_room() {
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
fn pages_put_aside_are_there_for_undo_and_for_nobody_else() {
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
        "what is put aside is not put aside twice"
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

/// What is in the ring has no place on disk, nor ever will: nobody was told that it is durable.
#[test]
fn closing_does_not_wait_for_room_that_never_comes() {
    let folder = SimFolder::new(16);
    let threads = Options { background: Background::Threads, ..options() };
    let pager = try_open(folder.clone(), threads).unwrap().pager;
    let (pid, _) = make_page(&pager, 1).unwrap();
    folder.set_capacity(Some(folder.used_bytes()));
    // Nobody asks whether there is room, as undo does not; the pages it changes stand latched, so that no checkpoint helps.
    let pages: Vec<_> = (0..4).map(|round| make_page(&pager, round).unwrap().0).collect();
    let mut held = pager.mtr();
    let latched = pager.exclusive(pid).unwrap();
    set(&mut held, &latched, FIRST_WORD, 2);
    held.commit();
    let moved = |since: u64| {
        (0..30).any(|_| {
            sleep(Duration::from_millis(10));
            pager.durable().get() > since
        })
    };
    loop {
        // The ring has room for more than this: nobody waits here.
        while pager.wal_head() - pager.durable().get() < 1 << 19 {
            change(&pager, &pages, 7).unwrap();
        }
        if !moved(pager.durable().get()) {
            break;
        }
    }
    drop(latched);
    let (told, closed) = std::sync::mpsc::channel();
    let closing = pager.clone();
    std::thread::spawn(move || told.send(closing.close().is_ok()));
    let result = closed.recv_timeout(Duration::from_secs(20)).expect("closing ends");
    assert!(!result, "and tells that it could make no checkpoint");
    let folder = folder.crash();
    folder.set_capacity(None);
    assert!([1, 2].contains(&value(&open(&folder), pid)));
}

fn resumes(pager: &Pager) -> bool {
    (0..10).any(|_| pager.admit().and_then(|()| make_page(pager, 8)).is_ok())
}

/// Seed 72 of `sim random`.
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
        // The next batch goes without the page, and takes the place of its copy.
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
