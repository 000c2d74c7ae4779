//! Models of what readers look at without a lock: slots, and the registry of snapshots.

use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Arc, thread};

use crate::rows::slot::{Status, StatusTable};
use crate::rows::snapshot::SnapshotRegistry;

/// The log's head, moved by reservations.
struct Log(AtomicU64);

impl Log {
    fn head(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Reserves a record; its end.
    fn append(&self) -> u64 {
        self.0.fetch_add(10, Ordering::SeqCst) + 10
    }
}

/// M2: whoever takes a snapshot sees a commit if and only if its record ends at or before the snapshot.
#[test]
fn loom_a_commit_is_seen_by_just_the_snapshots_behind_it() {
    loom::model(|| {
        let (slots, log) = (Arc::new(StatusTable::new(1)), Arc::new(Log(AtomicU64::new(100))));
        let id = slots.begin(|| 1, 0);
        let writer = {
            let (slots, log) = (slots.clone(), log.clone());
            thread::spawn(move || {
                slots.committing(id);
                let lsn = log.append();
                slots.committed(id, lsn);
                lsn
            })
        };
        let snapshot = log.head();
        let status = slots.status(id);
        let lsn = writer.join().unwrap();
        match status {
            Status::Active => assert!(lsn > snapshot),
            Status::Committed(seen) => assert_eq!(seen, lsn),
            other => panic!("{other:?}"),
        }
    });
}

/// M3: a slot that is used again says nothing wrong of who had it: when that one was committed if somebody may ask, else that it is past.
#[test]
fn loom_a_slot_used_again_is_not_taken_for_its_former_owner() {
    for keep in [0, 1_000] {
        loom::model(move || {
            let slots = Arc::new(StatusTable::new(1));
            let old = slots.begin(|| 1, 0);
            slots.committed(old, 500);
            slots.advance(500, keep);
            let reader = {
                let slots = slots.clone();
                thread::spawn(move || slots.status(old))
            };
            let new = slots.begin(|| 2, keep);
            slots.aborted(new);
            let status = reader.join().unwrap();
            let is_past = keep > 500 && status == Status::Past;
            assert!(status == Status::Committed(500) || is_past, "{status:?}");
        });
    }
}

/// M4: what is taken for the oldest snapshot is no younger than any that is open or being taken.
#[test]
fn loom_no_snapshot_is_older_than_the_oldest() {
    loom::model(|| {
        let (snapshots, log) = (Arc::new(SnapshotRegistry::default()), Arc::new(Log(AtomicU64::new(100))));
        let seat = snapshots.enter();
        let reader = {
            let (snapshots, log) = (snapshots.clone(), log.clone());
            thread::spawn(move || snapshots.take(&seat, || log.head()))
        };
        log.append();
        let oldest = snapshots.oldest(|| log.head());
        let taken = reader.join().unwrap();
        assert!(oldest <= taken, "{oldest} is forgotten, {taken} is read");
    });
}
