//! Copies of a running database, opened at a chosen point.

use std::sync::Arc;

use os::{Folder, SimFolder};
use pager::{Error, Options, Until};

use crate::support::*;

fn at(lsn: u64) -> Options {
    Options { until: Until { lsn: Some(lsn), wall_ms: None }, ..options() }
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
    // The branch goes its own way and can be opened again.
    change(&opened.pager, &[pid], 30).unwrap();
    opened.pager.close().unwrap();
    match try_open(branch(), at(backup.to - 8)) {
        Err(Error::Format(what)) => assert!(what.contains("choose a later"), "{what}"),
        other => panic!("{:?}", other.map(|opened| opened.recovered)),
    }
    assert_eq!(value(&pager, pid), 4, "the original does not notice");
}

#[test]
fn a_branch_cut_from_the_log_stays_cut() {
    let folder = SimFolder::new(23);
    let pager = open(&folder);
    let (pid, _) = make_page(&pager, 1).unwrap();
    let second = change(&pager, &[pid], 2).unwrap();
    change(&pager, &[pid], 3).unwrap();
    pager.flush_to(pager.log_head()).unwrap();
    drop(pager);
    let opened = try_open(folder.clone(), at(second)).unwrap();
    assert_eq!(value(&opened.pager, pid), 2);
    change(&opened.pager, &[pid], 20).unwrap();
    opened.pager.flush_to(opened.pager.log_head()).unwrap();
    drop(opened);
    assert_eq!(value(&open(&folder), pid), 20, "what was cut off does not come back");
}

#[test]
fn a_used_folder_is_refused() {
    let folder: Arc<SimFolder> = SimFolder::new(24);
    let pager = open(&folder);
    let target: Arc<dyn Folder> = folder.clone();
    assert!(matches!(pager.backup(target.as_ref(), &|_, _| {}), Err(Error::Format(_))));
}
