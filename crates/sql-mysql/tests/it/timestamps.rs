//! Timestamps for clients: each is given out once, whatever the clock does and across crashes.

use crate::support::{World, run};

const STEP: u64 = 64;
const MILLISECOND: u64 = 1 << 22;

#[test]
fn a_batch_is_nobody_elses_and_numbers_follow_the_clock_but_never_fall() {
    let world = World::new(11);
    let (one, durability_lsn) = world.db.take_timestamps(3, 1_700_000_000_000).unwrap();
    assert_eq!(one, 1_700_000_000_000 * MILLISECOND);
    assert!(durability_lsn > 0);
    let (two, _) = world.db.take_timestamps(1, 1_700_000_000_000).unwrap();
    assert_eq!(two, one + 3 * STEP);
    let (later, _) = world.db.take_timestamps(1, 1_700_000_000_005).unwrap();
    assert_eq!(later, 1_700_000_000_005 * MILLISECOND);
    let (behind, _) = world.db.take_timestamps(1, 1_600_000_000_000).unwrap();
    assert_eq!(behind, later + STEP);
}

#[test]
fn after_a_crash_they_go_on_above_all_that_may_have_been_shown() {
    let world = World::new(12);
    let (_, durability_lsn) = world.db.take_timestamps(1, 1_700_000_000_000).unwrap();
    // Shown only when the log is durable up to there.
    world.engine.durable().wait(durability_lsn);
    let (last, same) = world.db.take_timestamps(1000, 1_700_000_009_000).unwrap();
    assert_eq!(same, durability_lsn, "no record for each");
    let world = world.crash();
    let (next, _) = world.db.take_timestamps(1, 1_600_000_000_000).unwrap();
    assert!(next >= last + 1000 * STEP);
    let world = world.reopen();
    let (after, _) = world.db.take_timestamps(1, 0).unwrap();
    assert!(after > next);
}

/// The statements of a PolarDB-X compute node at its start.
#[test]
fn the_sequence_of_timestamps_is_there_from_the_start() {
    let world = World::new(13);
    let mut root = world.session(1);
    assert_eq!(
        run(&mut root, "create sequence mysql.gts_base cache 2 TIMESTAMP"),
        ["error 1050 Table 'gts_base' already exists"]
    );
    assert_eq!(
        run(&mut root, "create sequence if not exists mysql.gts_base start with 1 increment by -1 cache 2 timestamp"),
        ["ok 0"]
    );
    for other in ["mysql.gts_base", "mysql.other timestamp"] {
        assert!(run(&mut root, &format!("create sequence {other}"))[0].starts_with("error 1235"), "{other}");
    }
    let number = |rows: Vec<String>| rows[1].parse::<u64>().expect("a number");
    let one = number(run(&mut root, "select nextval(mysql.gts_base)"));
    assert!(root.durability_lsn() > 0 && one % STEP == 0);
    let base = number(run(&mut root, "call dbms_tso.get_timestamp('mysql', 'gts_base', 10)"));
    assert!(base >= one, "above the first lie the ten");
    let two = number(run(&mut root, "SELECT NEXTVAL(mysql.GTS_BASE)"));
    assert!(two > base + 10 * STEP, "and they are nobody else's");
    let (of_door, _) = world.db.take_timestamps(1, 0).unwrap();
    assert!(of_door >= two, "all doors count with the same numbers");
    let rows =
        run(&mut root, "select nextval(mysql.gts_base), nextval(mysql.gts_base) from (select 1 union all select 2) t");
    let mut all: Vec<u64> =
        rows[1..].iter().flat_map(|row| row.split(" | ")).map(|text| text.parse().unwrap()).collect();
    all.dedup();
    assert_eq!(all.len(), 4, "each is another: {rows:?}");
    for (call, code) in [
        ("call dbms_tso.get_timestamp('mysql', 'other', 1)", "error 1146"),
        ("call dbms_tso.get_timestamp('mysql', 'gts_base', 0)", "error 1210"),
        ("call dbms_tso.get_timestamp('mysql', 'gts_base', 65537)", "error 1210"),
        ("call dbms_tso.get_timestamp('mysql', 'gts_base')", "error 1318"),
        ("select nextval(mysql.other)", "error 1235"),
    ] {
        assert!(run(&mut root, call)[0].starts_with(code), "{call}: {:?}", run(&mut root, call));
    }
}

#[test]
fn a_compute_node_is_told_what_there_is_to_call() {
    let world = World::new(14);
    let mut root = world.session(1);
    let rows = run(&mut root, "call dbms_admin.show_native_procedure()");
    assert_eq!(rows[0], "[SCHEMA_NAME | PROC_NAME | PROC_TYPE | PARAMETERS]");
    for known in [
        "dbms_admin | show_native_procedure | ADMIN_PROC | NULL",
        "dbms_trans | returning | TRANS_PROC | VARCHAR, VARCHAR",
        "dbms_tso | get_timestamp | ADMIN_PROC | VARCHAR, VARCHAR, LONGLONG",
    ] {
        assert!(rows.iter().any(|row| row == known), "{rows:?}");
    }
    let version =
        run(&mut root, "SELECT @@polardbx_engine_version as version, @@polardbx_release_date as release_date");
    assert_eq!(version, ["[version | release_date]".to_owned(), format!("{} | unreleased", env!("CARGO_PKG_VERSION"))]);
}
