//! A page snapshot shows its pages as of its instant, whatever happens to them afterwards.

use std::collections::BTreeMap;
use std::sync::mpsc;

use os::SimFolder;
use pager::{Background, Error, NO_PAGE, Options, PAGE_BYTES, PageId, PageSnapshot, Pager};
use stdx::prng::Prng;

use crate::support::{change, make_page, open, options, set, try_open, value};

/// The owner of the toy's pages.
const OWNER: u32 = 0;
const FRAMES: u64 = 16 * PAGE_BYTES as u64;

fn free(pager: &Pager, pid: PageId) {
    let page = pager.exclusive(pid).expect("the page reads");
    let mut mtr = pager.mtr();
    set(&mut mtr, &page, 9, 0);
    mtr.free(pid, 1);
    mtr.commit();
}

/// Makes, changes and frees pages, cleans and evicts; `pages` follows.
fn work(pager: &Pager, prng: &mut Prng, pages: &mut BTreeMap<PageId, u64>, steps: usize) {
    for _ in 0..steps {
        let nth = |prng: &mut Prng, pages: &BTreeMap<PageId, u64>| {
            *pages.keys().nth(prng.below(pages.len() as u64) as usize).expect("one of them")
        };
        let new = prng.next_u64();
        match prng.below(12) {
            0 | 1 => drop(pages.insert(make_page(pager, new).expect("room").0, new)),
            2 if pages.len() > 20 => {
                let pid = nth(prng, pages);
                free(pager, pid);
                pages.remove(&pid);
            }
            3 => drop(pager.flush_once().expect("the WAL is written")),
            4 => drop(pager.clean_ahead().expect("pages are written")),
            // Taken and not changed.
            5 => drop(pager.exclusive(nth(prng, pages)).expect("the page reads")),
            _ => {
                let (one, other) = (nth(prng, pages), nth(prng, pages));
                let mut both = vec![one, other];
                both.dedup();
                change(pager, &both, new).expect("room");
                pages.extend(both.into_iter().map(|pid| (pid, new)));
            }
        }
    }
}

#[test]
fn a_snapshot_shows_the_pages_of_its_instant_while_they_change() {
    for seed in 0..40 {
        println!("seed {seed}");
        let (folder, mut prng) = (SimFolder::new(seed), Prng::new(seed));
        let pager = open(&folder);
        let mut pages = BTreeMap::new();
        for number in 0..100 {
            pages.insert(make_page(&pager, number).expect("room").0, number);
        }
        work(&pager, &mut prng, &mut pages, 300);
        for _ in 0..2 {
            let snapshot = PageSnapshot::prepare(&pager, OWNER).expect("there is no other");
            work(&pager, &mut prng, &mut pages, 200);
            let instant = snapshot.fix().expect("it is not lost");
            assert_eq!(instant, pager.wal_head());
            let then = pages.clone();
            let view = snapshot.open(instant, FRAMES).expect("memory");
            for _ in 0..8 {
                work(&pager, &mut prng, &mut pages, 100);
                for (pid, expected) in then.iter().filter(|_| prng.below(3) == 0).collect::<Vec<_>>() {
                    assert_eq!(value(&view, *pid), *expected, "page {pid}");
                }
                let some: Vec<PageId> = then.keys().copied().filter(|_| prng.below(4) == 0).collect();
                view.prefetch_many(&some);
            }
            for (pid, expected) in &then {
                assert_eq!(value(&view, *pid), *expected, "page {pid}");
            }
            snapshot.check().expect("it is not lost");
        }
        for (pid, expected) in &pages {
            assert_eq!(value(&pager, *pid), *expected, "page {pid}");
        }
    }
}

#[test]
fn a_change_that_commits_behind_the_instant_is_not_in_the_snapshot() {
    let pager = open(&SimFolder::new(1));
    let (pid, _) = make_page(&pager, 1).expect("room");
    let snapshot = PageSnapshot::prepare(&pager, OWNER).expect("there is no other");
    change(&pager, &[pid], 2).expect("room");
    let page = pager.exclusive(pid).expect("the page reads");
    let mut mtr = pager.mtr();
    set(&mut mtr, &page, 8, 3);
    let instant = snapshot.fix().expect("it is not lost");
    mtr.commit();
    drop(page);
    let view = snapshot.open(instant, FRAMES).expect("memory");
    assert_eq!((value(&view, pid), value(&pager, pid)), (2, 3));
}

#[test]
fn a_snapshot_waits_for_the_writers_that_began_before_it() {
    let pager =
        try_open(SimFolder::new(1), Options { background: Background::Threads, ..options() }).expect("opens").pager;
    let (pid, _) = make_page(&pager, 1).expect("room");
    let page = pager.exclusive(pid).expect("the page reads");
    let (send, receive) = mpsc::channel();
    let prepare = || {
        let (pager, send) = (pager.clone(), send.clone());
        std::thread::spawn(move || send.send(PageSnapshot::prepare(&pager, OWNER)).expect("the test waits"))
    };
    let threads = [prepare(), prepare()];
    // One of them keeps images by now, and waits for the latch.
    assert!(receive.recv().expect("an answer").is_err());
    assert!(receive.try_recv().is_err());
    let mut mtr = pager.mtr();
    set(&mut mtr, &page, 8, 2);
    mtr.commit();
    drop(page);
    let snapshot = receive.recv().expect("an answer").expect("it is ready");
    threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    let instant = snapshot.fix().expect("it is not lost");
    change(&pager, &[pid], 3).expect("room");
    let view = snapshot.open(instant, FRAMES).expect("memory");
    assert_eq!((value(&view, pid), value(&pager, pid)), (2, 3));
    drop((view, snapshot));
    pager.close().expect("it closes");
}

#[test]
fn units_of_values_stay_until_the_snapshot_ends() {
    let pager = open(&SimFolder::new(1));
    let (pid, _) = make_page(&pager, 1).expect("room");
    let value: Vec<u8> = (0..8 * PAGE_BYTES).map(|at| (at % 251) as u8).collect();
    let crc: Vec<u32> = value.chunks(PAGE_BYTES).map(crc32c::crc32c).collect();
    let first = pager.reserve(8, NO_PAGE).expect("room");
    pager.extent_write(first, 0, &value).expect("room");
    let mut mtr = pager.mtr();
    let page = pager.exclusive(pid).expect("the page reads");
    set(&mut mtr, &page, 9, first);
    mtr.allocated(first, 8);
    mtr.commit();
    drop(page);
    let snapshot = PageSnapshot::prepare(&pager, OWNER).expect("there is no other");
    let instant = snapshot.fix().expect("it is not lost");
    let page = pager.exclusive(pid).expect("the page reads");
    let mut mtr = pager.mtr();
    set(&mut mtr, &page, 9, 0);
    mtr.free(first, 8);
    mtr.commit();
    drop(page);
    // As many as the pool has frames: what was freed is written and evicted.
    for number in 0..200 {
        let run = pager.reserve(1, NO_PAGE).expect("room");
        assert!(!(first..first + 8).contains(&run), "PG-27: page {run} is allocated again");
        pager.extent_write(run, 0, &vec![number as u8; PAGE_BYTES]).expect("room");
        while pager.flush_once().expect("the WAL is written") {}
        pager.clean_ahead().expect("pages are written");
    }
    let view = snapshot.open(instant, FRAMES).expect("memory");
    let mut found = vec![0; value.len()];
    view.extent_read(first, 0, &mut found, &crc).expect("the value is there");
    assert_eq!(found, value);
    drop(snapshot);
    assert_eq!(pager.reserve(8, first - 1).expect("room"), first, "what was held back is free again");
}

#[test]
fn a_full_disk_ends_the_snapshot_and_not_the_writers() {
    let folder = SimFolder::new(1);
    let pager = open(&folder);
    let pids: Vec<PageId> = (0..300).map(|number| make_page(&pager, number).expect("room").0).collect();
    // Enough for the WAL, and not for a larger data file.
    folder.set_capacity(Some(folder.used_bytes() + (512 << 10)));
    let snapshot = PageSnapshot::prepare(&pager, OWNER).expect("there is no other");
    let instant = snapshot.fix().expect("it is not lost");
    let view = snapshot.open(instant, FRAMES).expect("memory");
    assert_eq!(value(&view, pids[0]), 0);
    pids.iter().for_each(|pid| free(&pager, *pid));
    let (_, free_before) = pager.space_use();
    // More than is free beside what the snapshot holds back.
    for number in 0..free_before + 100 {
        while pager.flush_once().expect("the WAL is written") {}
        if number % 20 == 0 {
            pager.checkpoint().expect("the pages are written");
        }
        make_page(&pager, number).expect("the snapshot makes room");
    }
    assert!(matches!(snapshot.check(), Err(Error::NoSnapshot(why)) if why.contains("disk")));
    assert!(view.shared(pids[299]).is_err());
    drop(snapshot);
    PageSnapshot::prepare(&pager, OWNER).expect("another one can begin").fix().expect("it is not lost");
}

#[test]
fn there_is_one_snapshot_at_a_time() {
    let pager = open(&SimFolder::new(1));
    let snapshot = PageSnapshot::prepare(&pager, OWNER).expect("there is no other");
    assert!(matches!(PageSnapshot::prepare(&pager, OWNER), Err(Error::NoSnapshot(_))));
    drop(snapshot);
    PageSnapshot::prepare(&pager, OWNER).expect("there is no other");
}
