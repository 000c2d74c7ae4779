use super::*;

#[test]
fn the_oldest_open_snapshot_counts() {
    let snapshots = SnapshotRegistry::default();
    let seats: Vec<SnapshotRegistration> = (0..600).map(|_| snapshots.enter()).collect();
    assert_eq!(snapshots.oldest(|| 5_000), 5_000);
    for (at, registration) in seats.iter().enumerate() {
        assert_eq!(snapshots.take(registration, || 1_000 + at as u64), 1_000 + at as u64);
    }
    assert_eq!(snapshots.oldest(|| 5_000), 1_000);
    snapshots.release(&seats[0]);
    assert_eq!(snapshots.oldest(|| 5_000), 1_001);
    snapshots.expire(1_001);
    assert!(snapshots.is_expired(1_001) && !snapshots.is_expired(1_002));
    assert_eq!(snapshots.oldest(|| 5_000), 1_002);
    seats.into_iter().for_each(|registration| snapshots.leave(registration));
    assert_eq!(snapshots.oldest(|| 5_000), 5_000);
    assert!(snapshots.enter().number < 600, "words are used again");
}
