//! Backups of a running database, opened at a chosen point.

use std::sync::Arc;

use os::{Folder, SimFolder};
use pager::{Error, Options, RecoveryTarget};

use crate::support::*;

fn at(lsn: u64) -> Options {
    Options { recovery_target: RecoveryTarget { lsn: Some(lsn), wall_ms: None }, ..options() }
}

#[test]
fn a_copy_opens_at_any_point_after_its_end() {
    let folder = SimFolder::new(21);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    pager.checkpoint_all().unwrap();
    change(&pager, &[pid], 2).unwrap();
    let copy = SimFolder::new(22);
    let backup = pager.backup(copy.as_ref(), &|_, _| {}).unwrap();
    let third = change(&pager, &[pid], 3).unwrap();
    change(&pager, &[pid], 4).unwrap();
    let renewed = pager.backup_log(copy.as_ref()).unwrap();
    assert_eq!((backup.from, renewed.from), (pager.checkpoint_lsn(), backup.from));

    let branch = || copy.crash();
    assert_eq!(value(&open(&branch()), pid), 4);
    let opened = try_open(branch(), at(third)).unwrap();
    assert_eq!((value(&opened.pager, pid), opened.recovered.to), (3, third));
    // The branch has a history of its own and can be opened again.
    change(&opened.pager, &[pid], 30).unwrap();
    opened.pager.close().unwrap();
    match try_open(branch(), at(backup.to - 8)) {
        Err(Error::Format(what)) => assert!(what.contains("choose a later"), "{what}"),
        other => panic!("{:?}", other.map(|opened| opened.recovered)),
    }
    assert_eq!(value(&pager, pid), 4, "the original is unchanged");
}

#[test]
fn a_branch_keeps_its_cut_of_the_wal() {
    let folder = SimFolder::new(23);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    let second = change(&pager, &[pid], 2).unwrap();
    change(&pager, &[pid], 3).unwrap();
    pager.flush_to(pager.wal_head()).unwrap();
    drop(pager);
    let opened = try_open(folder.clone(), at(second)).unwrap();
    assert_eq!(value(&opened.pager, pid), 2);
    change(&opened.pager, &[pid], 20).unwrap();
    opened.pager.flush_to(opened.pager.wal_head()).unwrap();
    drop(opened);
    assert_eq!(value(&open(&folder), pid), 20, "the changes cut off do not come back");
}

#[test]
fn a_used_folder_is_refused() {
    let folder: Arc<SimFolder> = SimFolder::new(24);
    let pager = open(&folder);
    let target: Arc<dyn Folder> = folder.clone();
    assert!(matches!(pager.backup(target.as_ref(), &|_, _| {}), Err(Error::Format(_))));
}

/// WAL files are reused in their order, and a WAL with a gap renews nothing: a renewed backup shows the last change, or the renewal has been refused.
#[test]
fn a_copy_is_renewed_whole_or_not_at_all() {
    const SEGMENT: u64 = 64 << 10;
    let options = || Options { segment_bytes: SEGMENT, checkpoint_distance: 1 << 20, ..options() };
    let (mut renewals, mut refusals) = (0, 0);
    for segments in [1, 4, 10, 16, 19, 22, 30, 45] {
        let folder = SimFolder::new(25);
        let pager = try_open(folder.clone(), options()).unwrap().pager;
        let (pid, _) = make_page(&pager, 1).unwrap();
        // Until there are as many old files as are ever kept.
        let mut number = 1;
        let mut write = |bytes: u64, every: u64| {
            let end = pager.wal_head() + bytes;
            while pager.wal_head() < end {
                let next = pager.wal_head() + every;
                while pager.wal_head() < next {
                    number += 1;
                    change(&pager, &[pid], number).unwrap();
                }
                pager.checkpoint_all().unwrap();
            }
            number
        };
        write(24 * SEGMENT, 12 * SEGMENT);
        let copy = SimFolder::new(26);
        pager.backup(copy.as_ref(), &|_, _| {}).unwrap();
        let last = write(segments * SEGMENT, 5 * SEGMENT);
        match pager.backup_log(copy.as_ref()) {
            Ok(renewed) => {
                let opened = try_open(copy.crash(), options()).unwrap();
                assert_eq!((opened.recovered.to, value(&opened.pager, pid)), (renewed.to, last), "{segments} segments");
                renewals += 1;
            }
            Err(Error::Format(what)) => {
                assert!(what.contains("make a new backup"), "{what}");
                refusals += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(renewals > 1 && refusals > 1, "{renewals} renewed, {refusals} refused");
}
