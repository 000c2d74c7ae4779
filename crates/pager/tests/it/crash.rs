//! Crashes at every I/O of short histories, and at random moments of longer ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use os::SimFolder;
use pager::{Lsn, PAGE_BYTES, PageId, Pager};
use stdx::prng::Prng;

use crate::support::*;

/// Two pages that one mini-transaction always changes together, with the values written so far and the LSNs that made them.
type Pair = (PageId, PageId, Vec<(u64, Lsn)>);

/// The state that a client was shown.
#[derive(Default)]
struct Shown {
    pairs: Vec<Pair>,
    /// Extents with their content and the LSN that made them real.
    extents: Vec<(PageId, Vec<u8>, Lsn)>,
    /// Freed extents, with the LSN that freed them as well: until that is recovered, they are there.
    freed: Vec<(PageId, Vec<u8>, Lsn, Lsn)>,
    durable: Lsn,
}

fn step(pager: &Pager, shown: &mut Shown, random: &mut Prng, counter: &mut u64) -> Result<(), pager::Error> {
    *counter += 1;
    match random.below(20) {
        0..3 => {
            let (left, first) = make_page(pager, *counter)?;
            let (right, second) = make_page(pager, *counter)?;
            shown.pairs.push((left, right, vec![(*counter, first.max(second))]));
        }
        3..12 if !shown.pairs.is_empty() => {
            let at = random.below(shown.pairs.len() as u64) as usize;
            let (left, right, values) = &mut shown.pairs[at];
            let lsn = change(pager, &[*left, *right], *counter)?;
            values.push((*counter, lsn));
        }
        12..14 => {
            let units = 1 + random.below(5) as u32;
            let mut data = vec![0; units as usize * PAGE_BYTES];
            random.fill(&mut data);
            let first = pager.reserve(units, pager::NO_PAGE)?;
            pager.extent_write(first, 0, &data)?;
            let mut mtr = pager.mtr();
            mtr.allocated(first, units);
            shown.extents.push((first, data, mtr.commit()));
        }
        14 if shown.extents.len() > 2 => {
            let (first, data, made) = shown.extents.swap_remove(0);
            let mut mtr = pager.mtr();
            mtr.free(first, (data.len() / PAGE_BYTES) as u32);
            shown.freed.push((first, data, made, mtr.commit()));
        }
        15 => drop(pager.clean_ahead()?),
        16 => drop(pager.checkpoint()?),
        17 => pager.background_step()?,
        _ => drop(pager.flush_once()?),
    }
    shown.durable = pager.durable().get();
    Ok(())
}

fn verify(pager: &Pager, shown: &Shown, recovered_to: Lsn, seed: u64) {
    for (left, right, values) in &shown.pairs {
        let must = values.iter().rev().find(|(_, lsn)| *lsn <= shown.durable);
        let Some((must, _)) = must else { continue };
        let (left_value, right_value) = (value(pager, *left), value(pager, *right));
        assert!(left_value >= *must, "seed {seed}: page {left} has {left_value}, {must} was durable");
        assert!(values.iter().any(|(value, _)| *value == left_value), "seed {seed}: page {left} has {left_value}");
        assert_eq!(left_value, right_value, "seed {seed}: pages {left} and {right} were changed together");
    }
    let still_there = shown.freed.iter().filter(|(_, _, _, freed)| *freed > recovered_to);
    let still_there = still_there.map(|(first, data, made, _)| (first, data, made));
    for (first, data, lsn) in shown.extents.iter().map(|(first, data, made)| (first, data, made)).chain(still_there) {
        if *lsn > shown.durable {
            continue;
        }
        let crc: Vec<u32> = data.chunks(PAGE_BYTES).map(crc32c::crc32c).collect();
        let mut out = vec![0; data.len()];
        pager
            .extent_read(*first, 0, &mut out, &crc)
            .unwrap_or_else(|error| panic!("seed {seed}: extent {first}: {error}"));
        assert!(out == *data, "seed {seed}: extent {first} has other bytes");
    }
}

/// Runs a history until the simulated machine stops at I/O number `crash_at`, or to its end. Returns the folder after the crash.
fn run(seed: u64, steps: u64, crash_at: Option<u64>) -> (Arc<SimFolder>, Shown, u64) {
    let folder = SimFolder::new(seed);
    if let Some(at) = crash_at {
        folder.crash_at_io(at);
    }
    let mut shown = Shown::default();
    let history = AssertUnwindSafe(|| {
        let Ok(opened) = try_open(folder.clone(), options()) else { return };
        let mut random = Prng::new(seed);
        let mut counter = 0;
        for _ in 0..steps {
            if step(&opened.pager, &mut shown, &mut random, &mut counter).is_err() {
                return;
            }
        }
    });
    // A wait for WAL space panics when the simulated machine has stopped.
    let _ = catch_unwind(history);
    (folder.crash(), shown, folder.io_count())
}

fn recover_and_verify(folder: Arc<SimFolder>, shown: &Shown, seed: u64) {
    // Recovery itself may crash once, after a few I/Os.
    let again = folder.crash();
    again.crash_at_io(seed % 23);
    let _ = catch_unwind(AssertUnwindSafe(|| drop(try_open(again.clone(), options()))));
    let survivor = again.crash();
    let opened = try_open(survivor, options()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(opened.recovered.damaged.is_empty(), "seed {seed}: {:?}", opened.recovered.damaged);
    verify(&opened.pager, shown, opened.recovered.to, seed);
    // The database works after recovery.
    let (page, _) = make_page(&opened.pager, 1).expect("room");
    while opened.pager.flush_once().expect("the disk works") {}
    assert_eq!(value(&opened.pager, page), 1);
}

#[test]
fn a_crash_at_every_io_loses_nothing_durable() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        if !text.contains("simulated machine stops") {
            eprintln!("{text}");
        }
    }));
    for seed in 1..=4u64 {
        let (_, _, ios) = run(seed, 60, None);
        for crash_at in 1..=ios {
            let (folder, shown, _) = run(seed, 60, Some(crash_at));
            recover_and_verify(folder, &shown, seed * 1_000_000 + crash_at);
        }
    }
}

/// Regression (seed 20501 of `sim random`): the WAL had switched to a new segment in the middle of a mini-transaction whose second half was never written.
#[test]
fn a_segment_voided_by_a_crash_is_skipped() {
    let history = |crash_at: u64| {
        let folder = SimFolder::new(crash_at);
        folder.crash_at_io(crash_at);
        let run = AssertUnwindSafe(|| -> Result<(), pager::Error> {
            let pager = try_open(folder.clone(), options())?.pager;
            for value in 0..9 {
                let mut mtr = pager.mtr();
                let mut pages = Vec::new();
                for _ in 0..25 {
                    let pid = mtr.allocate(1, pager::NO_PAGE)?;
                    let page = mtr.fresh(pid)?;
                    page.set_kind(2, 0, 0);
                    (FIRST_WORD..pager::PAGE_WORDS).for_each(|word| page.store(word, value + 1));
                    mtr.image(&page);
                    pages.push(page);
                }
                mtr.commit();
                drop(pages);
                while pager.flush_once()? {}
            }
            Ok(())
        });
        catch_unwind(run).ok();
        (folder.crash(), !folder.has_crashed())
    };
    for crash_at in 1.. {
        let (mut folder, is_over) = history(crash_at);
        let mut made = Vec::new();
        for life in 1..7 {
            let pager = try_open(folder.clone(), options()).unwrap_or_else(|e| panic!("{crash_at} {life}: {e}")).pager;
            for (pid, value) in &made {
                assert_eq!(crate::support::value(&pager, *pid), *value, "{crash_at} {life}");
            }
            made.push((make_page(&pager, life).unwrap().0, life));
            while pager.flush_once().unwrap() {}
            folder = folder.crash();
        }
        if is_over {
            return;
        }
    }
}

#[test]
fn crashes_at_random_moments_of_longer_histories() {
    for seed in 100..160u64 {
        let mut random = Prng::new(seed);
        let (folder, shown, _) = run(seed, 1_000, Some(200 + random.below(2_000)));
        recover_and_verify(folder, &shown, seed);
    }
}
