//! Loom models of what readers use without a lock: the status table and the snapshot registry.

use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Arc, thread};

use crate::rows::snapshot::SnapshotRegistry;
use crate::rows::status_table::{Status, StatusTable};

/// The WAL's head, moved by reservations.
struct Log(AtomicU64);

impl Log {
    fn head(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Reserves a record and returns its end.
    fn append(&self) -> u64 {
        self.0.fetch_add(10, Ordering::SeqCst) + 10
    }
}

/// EN-14: a snapshot sees a commit if and only if its record ends at or before the snapshot.
#[test]
fn loom_a_commit_is_visible_to_exactly_the_snapshots_after_it() {
    loom::model(|| {
        let (statuses, log) = (Arc::new(StatusTable::new(1)), Arc::new(Log(AtomicU64::new(100))));
        let id = statuses.begin(|| 1, 0);
        let writer = {
            let (statuses, log) = (statuses.clone(), log.clone());
            thread::spawn(move || {
                statuses.committing(id);
                let lsn = log.append();
                statuses.committed(id, lsn);
                lsn
            })
        };
        let snapshot = log.head();
        let status = statuses.status(id);
        let lsn = writer.join().unwrap();
        match status {
            Status::Active => assert!(lsn > snapshot),
            Status::Committed(seen) => assert_eq!(seen, lsn),
            other => panic!("{other:?}"),
        }
    });
}

/// EN-15: a reused slot never reports a wrong status of its former owner: committed if a snapshot may ask, otherwise past.
#[test]
fn loom_a_reused_slot_is_not_taken_for_its_former_owner() {
    for keep in [0, 1_000] {
        loom::model(move || {
            let statuses = Arc::new(StatusTable::new(1));
            let old = statuses.begin(|| 1, 0);
            statuses.committed(old, 500);
            statuses.advance(500, keep);
            let reader = {
                let statuses = statuses.clone();
                thread::spawn(move || statuses.status(old))
            };
            let new = statuses.begin(|| 2, keep);
            statuses.aborted(new);
            let status = reader.join().unwrap();
            let is_past = keep > 500 && status == Status::Past;
            assert!(status == Status::Committed(500) || is_past, "{status:?}");
        });
    }
}

/// EN-16: the oldest snapshot that purge computes is no younger than any that is open or being taken.
#[test]
fn loom_no_snapshot_is_older_than_the_oldest() {
    loom::model(|| {
        let (snapshots, log) = (Arc::new(SnapshotRegistry::default()), Arc::new(Log(AtomicU64::new(100))));
        let registration = snapshots.enter();
        let reader = {
            let (snapshots, log) = (snapshots.clone(), log.clone());
            thread::spawn(move || snapshots.take(&registration, || log.head()))
        };
        log.append();
        let oldest = snapshots.oldest(|| log.head());
        let taken = reader.join().unwrap();
        assert!(oldest <= taken, "{oldest} is purged, {taken} is read");
    });
}
