use super::*;

#[test]
fn a_full_table_gives_up_a_key_for_each_new_one() {
    let table = TrackingTable::default();
    table.set_keys_max(10);
    let mut given_up = 0;
    for number in 0..1000_u32 {
        let key = number.to_le_bytes();
        given_up += usize::from(table.enter(&key, 1, KeyRead::default()).is_some());
        assert!(table.counts().keys <= 10);
    }
    let counts = table.counts();
    assert_eq!((counts.keys + given_up, counts.items), (1000, counts.keys));
}

#[test]
fn a_client_is_under_a_key_once() {
    let table = TrackingTable::default();
    for id in [1, 2, 1, 2, 3] {
        assert!(table.enter(b"k", id, KeyRead::default()).is_none());
    }
    let counts = table.counts();
    assert_eq!((counts.keys, counts.items), (1, 3));
    table.clear();
    let counts = table.counts();
    assert_eq!((counts.keys, counts.items), (0, 0));
}

#[test]
fn a_read_is_invalidated_by_the_changes_behind_it() {
    let read = |run, changes| KeyRead { run, changes };
    // Read, changed, read, changed twice, read: two changes have a read before them, and the last read stays.
    let mut reads = KeyReads::of(read(7, 0));
    for changes in [1, 3] {
        reads.add(read(7, changes));
    }
    let mut told = Vec::new();
    for _ in 0..3 {
        let (is_told, later) = reads.changed(7);
        told.push(is_told);
        reads = later.expect("the last read stays");
    }
    assert_eq!(told, [true, true, false]);
    assert_eq!(reads.bits, 1);
    // The reads of a run that was rolled back are as those before a transaction.
    let mut reads = KeyReads::of(read(7, 2));
    reads.add(read(8, 1));
    let (is_told, later) = reads.changed(8);
    assert!(is_told && later.is_some());
    assert!(matches!(KeyReads::of(read(7, 2)).changed(8), (true, None)));
    assert!(matches!(KeyReads::of(read(0, 0)).changed(0), (true, None)));
}
