//! Copies of a database between folders and shared objects: equal, interrupted at every step, overtaken by a second one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use os::{Fate, Folder, Moment, ObjectStore, Open, SimClock, SimFolder, SimObjects};
use pager::{
    CopyOptions, CopyTarget, Error, NoObserver, Options, PageId, Pager, PreparedCopy, RecoveryTarget, RedoTable,
    SharedStorage, copy_backup,
};

use crate::support::*;

const PAGES: u64 = 60;

fn shared(objects: Arc<dyn ObjectStore>) -> SharedStorage {
    // Small objects, so that there are many.
    SharedStorage { objects, scratch: SimFolder::new(1), object_pages: 16, on_end: None, unfenced: None }
}

fn open_shared(objects: Arc<dyn ObjectStore>, options: Options) -> Result<Arc<Pager>, Error> {
    let redo = RedoTable::new().own(0x10..0x11, ToyRedo);
    let clock = Arc::new(SimClock::new(1_000));
    Ok(Pager::open_shared(&shared(objects), clock, options, redo, &mut NoObserver, 77, &|_| {})?.pager)
}

fn of_objects(store: &SimObjects, client: usize) -> CopyTarget {
    CopyTarget::Shared(shared(store.client(client)))
}

fn of_folder(folder: &Arc<SimFolder>) -> CopyTarget {
    CopyTarget::Folder(folder.clone())
}

/// The WAL is cut into small segments.
fn copying(overwrites: bool) -> CopyOptions {
    CopyOptions { random: 78, segment_bytes: 64 << 10, overwrites, threads: 1 }
}

/// Gives pages values that are on disk, then others that are only in the WAL. Returns the pages; page n has the value n + 2,000.
fn fill(pager: &Pager) -> Vec<PageId> {
    let pids: Vec<_> = (0..PAGES).map(|n| make_page(pager, n).unwrap().0).collect();
    pager.flush_to(pager.wal_head()).unwrap();
    pager.checkpoint_all().unwrap();
    for round in 1..=2 {
        for (n, pid) in pids.iter().enumerate() {
            change(pager, &[*pid], n as u64 + 1000 * round).unwrap();
        }
    }
    pager.flush_to(pager.wal_head()).unwrap();
    pids
}

fn assert_filled(pager: &Pager, pids: &[PageId]) {
    for (n, pid) in pids.iter().enumerate() {
        assert_eq!(value(pager, *pid), n as u64 + 2000);
    }
}

/// Asserts that the copy is equal, and a database that can be written and opened again.
fn assert_works(open: &dyn Fn() -> Arc<Pager>, pids: &[PageId]) {
    let pager = open();
    assert_filled(&pager, pids);
    assert_eq!(pager.database(), 78, "a copy has an id of its own");
    let (new, _) = make_page(&pager, 5).unwrap();
    let end = change(&pager, &[pids[0]], 6).unwrap();
    pager.flush_to(end).unwrap();
    drop(pager);
    let pager = open();
    assert_eq!((value(&pager, new), value(&pager, pids[0])), (5, 6));
}

/// The id of a copy that is interrupted.
const OTHER_ID: u64 = 79;

fn copy(pager: &Pager, target: &CopyTarget, overwrites: bool) -> Result<(), Error> {
    copy_as(pager, target, copying(overwrites))
}

fn copy_as(pager: &Pager, target: &CopyTarget, options: CopyOptions) -> Result<(), Error> {
    let copied = pager.copy(target, options, &|_, _| {})?;
    assert_eq!(copied.suspects, []);
    copied.finish()
}

fn says(result: Result<(), Error>, part: &str) {
    match result {
        Err(Error::Format(what)) => assert!(what.contains(part), "{what}"),
        other => panic!("not refused with '{part}': {other:?}"),
    }
}

#[test]
fn a_copy_is_equal_in_all_four_directions() {
    let (folder, objects) = (SimFolder::new(31), SimObjects::new());
    let local = open(&folder);
    let distant = open_shared(objects.client(0), options()).unwrap();
    for source in [&local, &distant] {
        let pids = fill(source);
        let seen = AtomicU64::new(0);
        let copied = source.copy(&of_folder(&SimFolder::new(32)), copying(false), &|done, whole| {
            assert!(done <= whole);
            seen.fetch_max(done, Ordering::Relaxed);
        });
        let copied = copied.unwrap();
        assert_eq!(seen.into_inner(), copied.page_bytes, "progress reaches the end");
        assert!(copied.wal_bytes > 0);

        let target = SimFolder::new(33);
        copy(source, &of_folder(&target), false).unwrap();
        let crashed = target.crash();
        assert_works(&|| open(&crashed), &pids);

        let target = SimObjects::new();
        copy(source, &of_objects(&target, 0), false).unwrap();
        assert_works(&|| open_shared(target.client(1), options()).unwrap(), &pids);

        // The source goes on.
        assert_filled(source, &pids);
        let end = change(source, &pids, 1).unwrap();
        source.flush_to(end).unwrap();
    }
}

#[test]
fn several_threads_copy_the_same() {
    let folder = SimFolder::new(34);
    let pager = open(&folder);
    let pids = fill(&pager);
    let target = SimObjects::new();
    let options_ = CopyOptions { threads: 3, ..copying(false) };
    pager.copy(&of_objects(&target, 0), options_, &|_, _| {}).unwrap().finish().unwrap();
    assert_works(&|| open_shared(target.client(1), options()).unwrap(), &pids);
}

#[test]
fn a_place_that_is_in_use_is_refused_and_keeps_what_it_has() {
    let folder = SimFolder::new(35);
    let pager = open(&folder);
    let pids = fill(&pager);
    // A database, also if it may be overwritten.
    let (other, store) = (SimFolder::new(36), SimObjects::new());
    let kept = [open(&other), open_shared(store.client(0), options()).unwrap()].map(|pager| {
        let (pid, end) = make_page(&pager, 9).unwrap();
        pager.flush_to(end).unwrap();
        pid
    });
    let other = other.crash();
    for overwrites in [false, true] {
        says(copy(&pager, &of_folder(&other), overwrites), "not empty");
        says(copy(&pager, &of_objects(&store, 1), overwrites), "a database already");
    }
    assert_eq!(value(&open(&other), kept[0]), 9);
    assert_eq!(value(&open_shared(store.client(2), options()).unwrap(), kept[1]), 9);
    // Files that are not ours.
    let strange = SimFolder::new(37);
    strange.open("letters", Open::Create).unwrap();
    says(copy(&pager, &of_folder(&strange), true), "it has 'letters'");
    assert_eq!(strange.list().unwrap(), ["letters"]);
    assert_filled(&pager, &pids);
}

/// PG-36, PG-37.
#[test]
fn a_copy_into_objects_that_is_killed_at_any_step_is_refused_until_another_replaces_it() {
    let folder = SimFolder::new(38);
    let (large, small) = (open(&folder), open(&SimFolder::new(39)));
    // The first copy has more pages, and leaves other bytes.
    for n in 0..600 {
        make_page(&large, n).unwrap();
    }
    large.flush_to(large.wal_head()).unwrap();
    large.checkpoint_all().unwrap();
    let pids = fill(&small);
    let (mut steps, mut late_writes) = (0, 0);
    loop {
        steps += 1;
        let store = SimObjects::new();
        let left = AtomicU64::new(steps);
        store.set_fate(Some(Arc::new(move |_, moment| {
            let is_due = moment == Moment::Before
                && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(1))) == Ok(1);
            // Every other time the write is still under way.
            match is_due {
                true if steps % 2 == 0 => Fate::DieUnderWay,
                true => Fate::Die,
                false => Fate::Proceed,
            }
        })));
        let result = copy_as(&large, &of_objects(&store, 0), CopyOptions { random: OTHER_ID, ..copying(false) });
        store.set_fate(None);
        if result.is_ok() {
            break;
        }
        if SharedStorage::exists(&(store.client(0) as Arc<dyn ObjectStore>)).unwrap() {
            let opened = open_shared(store.client(1), options());
            says(opened.map(drop), "interrupted");
            says(copy(&small, &of_objects(&store, 2), false), "--overwrite");
        }
        let arrives_early = steps % 4 == 0;
        if arrives_early && store.late_writes() > 0 {
            store.deliver_late(0);
        }
        copy(&small, &of_objects(&store, 3), true).unwrap_or_else(|error| panic!("step {steps}: {error}"));
        if store.late_writes() > 0 {
            late_writes += 1;
            store.deliver_late(0);
        }
        let of_copy = open_shared(store.client(4), options()).unwrap();
        assert_filled(&of_copy, &pids);
        // What the first copy had beyond the end reads as zero when the file grows.
        let grown: Vec<_> = (0..500).map(|n| make_page(&of_copy, n).unwrap().0).collect();
        of_copy.flush_to(of_copy.wal_head()).unwrap();
        of_copy.checkpoint_all().unwrap();
        drop(of_copy);
        let of_copy = open_shared(store.client(5), options()).unwrap();
        assert!((0..).zip(&grown).all(|(n, pid)| value(&of_copy, *pid) == n), "step {steps}");
    }
    assert!(steps > 40 && late_writes > 10, "{steps} steps, {late_writes} late writes");
}

/// PG-37: the first copy is frozen at any step, while a second one replaces it.
#[test]
fn a_copy_that_is_thawed_after_another_has_replaced_it_changes_nothing() {
    let (first, second) = (open(&SimFolder::new(40)), open(&SimFolder::new(41)));
    for n in 0..300 {
        make_page(&first, n).unwrap();
    }
    first.flush_to(first.wal_head()).unwrap();
    let pids = fill(&second);
    let mut frozen = 0;
    for step in 1.. {
        let store = SimObjects::new();
        let (left, is_over) = (AtomicU64::new(step), Arc::new(AtomicBool::new(false)));
        let (of_hook, source, over) = (store.clone(), Mutex::new(Some(second.clone())), is_over.clone());
        store.set_fate(Some(Arc::new(move |client, moment| {
            if client == 0 && moment == Moment::Before && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                let source = source.lock().unwrap().take().expect("this happens once");
                copy(&source, &of_objects(&of_hook, 1), true).unwrap();
                over.store(true, Ordering::Relaxed);
            }
            Fate::Proceed
        })));
        let result = copy_as(&first, &of_objects(&store, 0), CopyOptions { random: OTHER_ID, ..copying(false) });
        store.set_fate(None);
        if !is_over.load(Ordering::Relaxed) {
            break;
        }
        frozen += 1;
        assert!(result.is_err(), "step {step}: both copies have ended well");
        let opened = open_shared(store.client(2), options()).unwrap();
        assert_filled(&opened, &pids);
        let (pid, end) = make_page(&opened, 3).unwrap();
        opened.flush_to(end).unwrap();
        opened.checkpoint_all().unwrap();
        drop(opened);
        assert_eq!(value(&open_shared(store.client(3), options()).unwrap(), pid), 3);
    }
    assert!(frozen > 20, "{frozen} steps");
}

/// PG-36.
#[test]
fn a_copy_into_a_folder_that_a_crash_ends_is_refused_until_another_replaces_it() {
    let pager = open(&SimFolder::new(42));
    let pids = fill(&pager);
    let mut crashes = 0;
    for io in 1.. {
        let target = SimFolder::new(1000 + io);
        target.crash_at_io(io);
        let result = copy(&pager, &of_folder(&target), false);
        if result.is_ok() && !target.has_crashed() {
            break;
        }
        crashes += 1;
        let target = target.crash();
        // Either nothing at all can be seen of it, or it is refused.
        let is_begun = match copy(&pager, &of_folder(&target.fork(7)), false) {
            Ok(()) => false,
            refused => {
                says(refused, "--overwrite");
                true
            }
        };
        if is_begun {
            says(try_open(target.fork(8), options()).map(drop), "interrupted");
        }
        copy(&pager, &of_folder(&target), true).unwrap_or_else(|error| panic!("crash at {io}: {error}"));
        assert_works(&|| open(&target), &pids);
    }
    assert!(crashes > 15, "{crashes} crashes");
}

#[test]
fn a_backup_that_was_interrupted_is_not_taken_for_one() {
    let pager = open(&SimFolder::new(43));
    let pids = fill(&pager);
    let mut crashes = 0;
    for io in 1.. {
        let backup = SimFolder::new(2000 + io);
        backup.crash_at_io(io);
        if pager.backup(backup.as_ref(), &|_, _| {}).is_ok() && !backup.has_crashed() {
            break;
        }
        crashes += 1;
        let folder: Arc<dyn Folder> = backup.crash();
        let target = SimFolder::new(45);
        match copy_backup(&folder, &of_folder(&target), copying(false), &|_, _| {}) {
            // Its last write was there after all.
            Ok(_) => {
                assert_filled(
                    &completed(&|options| try_open(target.clone(), options).map(|new| new.pager), None),
                    &pids,
                );
            }
            Err(Error::Format(_)) => assert!(pager.backup_log(folder.as_ref()).is_err(), "crash at {io}"),
            Err(error) => panic!("crash at {io}: {error}"),
        }
    }
    assert!(crashes > 10, "{crashes} crashes");
}

/// Opens what a copy has prepared, as of the end or of a position, and completes it.
fn completed(open: &dyn Fn(Options) -> Result<Arc<Pager>, Error>, lsn: Option<u64>) -> Arc<Pager> {
    says(open(options()).map(drop), "interrupted");
    let target = RecoveryTarget { lsn, wall_ms: None };
    let pager = open(Options { opens_incomplete: true, recovery_target: target, ..options() }).unwrap();
    says(open(options()).map(drop), "interrupted");
    pager.complete().unwrap();
    pager
}

#[test]
fn a_backup_is_restored_to_both_places_as_of_any_moment_that_its_wal_covers() {
    let folder = SimFolder::new(46);
    let mut pager = open(&folder);
    let pids = fill(&pager);
    let backup = SimFolder::new(47);
    pager.backup(backup.as_ref(), &|_, _| {}).unwrap();
    // Later openings renew it: their chunks have greater epochs than the backup's root.
    let mut moments = Vec::new();
    for round in 0..3 {
        drop(pager);
        pager = open(&folder);
        for n in 0..300 {
            let number = round * 1000 + n;
            moments.push((change(&pager, &pids, number).unwrap(), number));
        }
        pager.flush_to(pager.wal_head()).unwrap();
        pager.backup_log(backup.as_ref()).unwrap();
    }
    let source: Arc<dyn Folder> = backup;
    for (lsn, number) in [moments[17], moments[450], *moments.last().unwrap()] {
        let target = SimFolder::new(48);
        let prepare =
            |target: &CopyTarget| -> PreparedCopy { copy_backup(&source, target, copying(false), &|_, _| {}).unwrap() };
        prepare(&of_folder(&target));
        let store = SimObjects::new();
        prepare(&of_objects(&store, 0));
        let in_folder = |options| try_open(target.clone(), options).map(|opened| opened.pager);
        let in_objects = |options| open_shared(store.client(1), options);
        let opens: [&dyn Fn(Options) -> Result<Arc<Pager>, Error>; 2] = [&in_folder, &in_objects];
        for open in opens {
            let restored = completed(open, Some(lsn));
            assert!(pids.iter().all(|pid| value(&restored, *pid) == number));
            // What it writes without a checkpoint is found again, behind chunks of those openings.
            let end = change(&restored, &pids, 7).unwrap();
            restored.flush_to(end).unwrap();
            drop(restored);
            let again = open(options()).unwrap();
            assert!(pids.iter().all(|pid| value(&again, *pid) == 7));
        }
    }
}

#[test]
fn a_damaged_page_of_the_source_is_named() {
    let folder = SimFolder::new(49);
    let pager = open(&folder);
    let pids = fill(&pager);
    pager.checkpoint_all().unwrap();
    folder.flip_bit("data", pids[7] * 4096 + 100, 3);
    let copied = pager.copy(&of_folder(&SimFolder::new(50)), copying(false), &|_, _| {}).unwrap();
    assert_eq!(copied.suspects, [pids[7]]);
}

#[test]
fn a_folder_that_was_in_use_is_no_backup() {
    let folder = SimFolder::new(51);
    fill(&open(&folder));
    for folder in [folder.crash(), SimFolder::new(52)] {
        let source: Arc<dyn Folder> = folder;
        let result = copy_backup(&source, &of_objects(&SimObjects::new(), 0), copying(false), &|_, _| {});
        assert!(matches!(result.map(drop), Err(Error::Format(_))));
    }
}
