//! Serializable transactions: reads that are validated at the commit (EN-66 to EN-68). Anomalies by name, then random histories whose committed transactions
//! must have a serial order in which every read returns what it returned.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use engine::rows::{Inserted, Isolation, Locked, MapId, RowBatch, Rows, Strength, Transaction, Wait};
use engine::{Error, Lsn};
use stdx::prng::Prng;

use crate::support::World;

fn rows(world: &World) -> &Arc<Rows> {
    world.engine.rows()
}

fn begin(rows: &Arc<Rows>) -> Transaction {
    let mut txn = rows.begin(Isolation::Serializable);
    txn.survive_deadlocks();
    txn.fail_on_unseen();
    txn.validate_reads();
    txn
}

/// Runs a transaction of another level.
fn change(world: &World, change: impl FnOnce(&mut Transaction)) {
    let mut txn = rows(world).begin(Isolation::ReadCommitted);
    change(&mut txn);
    txn.commit().unwrap();
}

fn filled(world: &World, values: &[(&str, &str)]) -> MapId {
    let mut txn = rows(world).begin(Isolation::ReadCommitted);
    let map = txn.create_map().unwrap();
    values.iter().for_each(|(key, value)| put(&mut txn, map, key, value));
    txn.commit().unwrap();
    map
}

fn put(txn: &mut Transaction, map: MapId, key: &str, value: &str) {
    assert_eq!(txn.insert(map, key.as_bytes(), value.as_bytes(), &mut Vec::new()).unwrap(), Inserted::Done);
}

fn set(txn: &mut Transaction, map: MapId, key: &str, value: &str) {
    assert!(txn.update(map, key.as_bytes(), value.as_bytes()).unwrap());
}

fn get(txn: &mut Transaction, map: MapId, key: &str) -> Option<String> {
    let mut value = Vec::new();
    let is_there = txn.get(map, key.as_bytes(), &mut value).unwrap();
    is_there.then(|| String::from_utf8(value).unwrap())
}

fn scan(txn: &mut Transaction, map: MapId, from: &[u8], to: Bound<&[u8]>, backward: bool) -> Vec<(String, String)> {
    let mut cursor = txn.scan(map, Bound::Included(from), to, backward).unwrap();
    let (mut batch, mut found) = (RowBatch::new(), Vec::new());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    while cursor.next(txn, &mut batch).unwrap() {
        found.extend(batch.iter().map(|(key, value)| (text(key), text(value))));
    }
    found
}

fn all(txn: &mut Transaction, map: MapId) -> Vec<(String, String)> {
    scan(txn, map, b"", Bound::Unbounded, false)
}

fn refused(txn: Transaction) {
    let committed = txn.commit();
    assert!(matches!(committed, Err(Error::ReadWriteDependency)), "{committed:?}");
}

#[test]
fn write_skew_is_refused_and_the_refused_transaction_leaves_nothing() {
    let world = World::new(1);
    let map = filled(&world, &[("x", "on"), ("y", "on")]);
    let (mut one, mut other) = (begin(rows(&world)), begin(rows(&world)));
    assert_eq!((all(&mut one, map).len(), all(&mut other, map).len()), (2, 2));
    set(&mut one, map, "x", "off");
    set(&mut other, map, "y", "off");
    one.commit().unwrap();
    refused(other);
    let mut reader = begin(rows(&world));
    assert_eq!(get(&mut reader, map, "y").as_deref(), Some("on"));
    let mut again = begin(rows(&world));
    set(&mut again, map, "y", "off");
    again.commit().unwrap();
    assert!(rows(&world).read_set_bytes() > 0);
    drop(reader);
    assert_eq!(rows(&world).read_set_bytes(), 0);
}

#[test]
fn reads_that_found_nothing_count() {
    let world = World::new(2);
    let map = filled(&world, &[("m", "1")]);
    let (mut one, mut other) = (begin(rows(&world)), begin(rows(&world)));
    assert_eq!((get(&mut one, map, "a"), get(&mut other, map, "b")), (None, None));
    put(&mut one, map, "b", "one");
    put(&mut other, map, "a", "other");
    one.commit().unwrap();
    refused(other);
    // A range, in both directions.
    for backward in [false, true] {
        let (mut one, mut other) = (begin(rows(&world)), begin(rows(&world)));
        let [from, within, to] = if backward { ["p", "pp", "q"] } else { ["r", "rr", "s"] };
        assert_eq!(scan(&mut one, map, from.as_bytes(), Bound::Excluded(to.as_bytes()), backward), []);
        assert_eq!(scan(&mut other, map, from.as_bytes(), Bound::Excluded(within.as_bytes()), backward), []);
        change(&world, |txn| put(txn, map, within, "phantom"));
        put(&mut one, map, if backward { "yb" } else { "ya" }, "");
        refused(one);
        put(&mut other, map, if backward { "zb" } else { "za" }, "");
        other.commit().unwrap();
    }
}

#[test]
fn deletions_and_rows_that_came_back_count() {
    let world = World::new(3);
    let map = filled(&world, &[("x", "1"), ("y", "1")]);
    let mut one = begin(rows(&world));
    assert!(get(&mut one, map, "x").is_some());
    change(&world, |txn| assert!(txn.delete(map, b"x").unwrap()));
    world.flush();
    world.settle();
    // Its own row lies over the deletion that it does not see.
    put(&mut one, map, "x", "mine");
    refused(one);
    let mut one = begin(rows(&world));
    assert_eq!(get(&mut one, map, "x"), None);
    change(&world, |txn| put(txn, map, "x", "2"));
    change(&world, |txn| assert!(txn.delete(map, b"x").unwrap()));
    set(&mut one, map, "y", "2");
    refused(one);
}

#[test]
fn a_change_below_that_of_an_open_transaction_counts_and_the_open_one_does_not() {
    let world = World::new(4);
    let map = filled(&world, &[("x", "1"), ("y", "1"), ("z", "1")]);
    let (mut one, mut other) = (begin(rows(&world)), begin(rows(&world)));
    assert_eq!((all(&mut one, map).len(), all(&mut other, map).len()), (3, 3));
    let mut open = rows(&world).begin(Isolation::ReadCommitted);
    set(&mut open, map, "x", "open");
    put(&mut open, map, "new", "open");
    set(&mut one, map, "y", "2");
    one.commit().unwrap();
    open.rollback();
    change(&world, |txn| set(txn, map, "x", "2"));
    let mut open = rows(&world).begin(Isolation::ReadCommitted);
    set(&mut open, map, "x", "3");
    let mut third = begin(rows(&world));
    assert!(get(&mut third, map, "x").is_some());
    set(&mut other, map, "z", "2");
    refused(other);
    put(&mut third, map, "third", "");
    third.commit().unwrap();
    open.commit().unwrap();
}

#[test]
fn a_transaction_that_only_reads_is_never_refused() {
    let world = World::new(5);
    let map = filled(&world, &[("checking", "0"), ("savings", "0")]);
    // The read-only anomaly of Fekete, O'Neil and O'Neil.
    let mut withdraw = begin(rows(&world));
    assert_eq!(all(&mut withdraw, map).len(), 2);
    let mut deposit = begin(rows(&world));
    assert!(get(&mut deposit, map, "savings").is_some());
    set(&mut deposit, map, "savings", "20");
    deposit.commit().unwrap();
    let mut report = begin(rows(&world));
    assert_eq!(all(&mut report, map)[1].1, "20");
    set(&mut withdraw, map, "checking", "-11");
    refused(withdraw);
    change(&world, |txn| set(txn, map, "savings", "30"));
    assert_eq!(all(&mut report, map)[1].1, "20");
    report.commit().unwrap();
}

#[test]
fn locked_reads_make_a_reader_part_of_the_order() {
    let world = World::new(6);
    let map = filled(&world, &[("x", "1"), ("y", "1")]);
    let mut one = begin(rows(&world));
    assert!(get(&mut one, map, "x").is_some());
    change(&world, |txn| set(txn, map, "x", "2"));
    assert_eq!(one.lock(map, b"y", Strength::Shared, Wait::NoWait, &mut Vec::new()).unwrap(), Locked::Present);
    refused(one);
}

#[test]
fn a_rollback_to_a_savepoint_forgets_no_read() {
    let world = World::new(7);
    let map = filled(&world, &[("x", "1"), ("y", "1")]);
    let mut one = begin(rows(&world));
    let point = one.savepoint();
    assert!(get(&mut one, map, "x").is_some());
    one.rollback_to(point).unwrap();
    change(&world, |txn| set(txn, map, "x", "2"));
    set(&mut one, map, "y", "2");
    refused(one);
}

#[test]
fn a_coarsened_read_set_is_bounded_and_refuses_more_never_less() {
    let world = World::new(8);
    let map = filled(&world, &[("y", "1")]);
    let mut one = begin(rows(&world));
    for key in 0..20_000 {
        assert_eq!(get(&mut one, map, &format!("{key:08}")), None);
    }
    assert!(rows(&world).read_set_bytes() <= 256 << 10);
    change(&world, |txn| put(txn, map, "00013131", "phantom"));
    set(&mut one, map, "y", "2");
    refused(one);
    assert_eq!(rows(&world).read_set_bytes(), 0);
}

const KEYS: u64 = 5;

fn key(number: u64) -> String {
    format!("k{number}")
}

type State = BTreeMap<String, String>;

/// A step of a transaction, with its result.
#[derive(Clone, Debug)]
enum Step {
    Got(String, Option<String>),
    Scanned(String, String, Vec<(String, String)>),
    Wrote(String, Option<String>),
}

/// Runs a transaction's steps against a state. Returns false if a read would have returned something else.
fn replays(steps: &[Step], state: &mut State) -> bool {
    steps.iter().all(|step| match step {
        Step::Got(key, value) => state.get(key) == value.as_ref(),
        Step::Scanned(from, to, found) => {
            let now: Vec<_> =
                state.range(from.clone()..to.clone()).map(|(key, value)| (key.clone(), value.clone())).collect();
            now == *found
        }
        Step::Wrote(key, Some(value)) => {
            state.insert(key.clone(), value.clone());
            true
        }
        Step::Wrote(key, None) => state.remove(key).is_some(),
    })
}

/// Searches for an order of the transactions in which all of them replay and the end is `end`.
fn has_serial_order(left: &[Vec<Step>], state: &State, end: &State) -> bool {
    if left.is_empty() {
        return state == end;
    }
    (0..left.len()).any(|next| {
        let (mut state, mut rest) = (state.clone(), left.to_vec());
        replays(&rest.remove(next), &mut state) && has_serial_order(&rest, &state, end)
    })
}

/// Takes a random step. Returns false if the transaction has to end.
fn step(txn: &mut Transaction, map: MapId, prng: &mut Prng, value: &str, steps: &mut Vec<Step>) -> bool {
    let name = key(prng.below(KEYS));
    match prng.below(6) {
        0 | 1 => steps.push(Step::Got(name.clone(), get(txn, map, &name))),
        2 => {
            let to = key(prng.below(KEYS + 1));
            let mut found = match name < to {
                true => scan(txn, map, name.as_bytes(), Bound::Excluded(to.as_bytes()), value.len().is_multiple_of(2)),
                false => return true,
            };
            found.sort();
            steps.push(Step::Scanned(name, to, found));
        }
        3 => match txn.delete(map, name.as_bytes()) {
            Ok(true) => steps.push(Step::Wrote(name, None)),
            // A deletion that finds no newest row has read nothing: its caller has found the row first.
            Ok(false) => {}
            Err(_) => return false,
        },
        _ => match get(txn, map, &name) {
            found @ Some(_) => {
                steps.push(Step::Got(name.clone(), found));
                match txn.update(map, name.as_bytes(), value.as_bytes()) {
                    Ok(true) => steps.push(Step::Wrote(name, Some(value.into()))),
                    Ok(false) => {}
                    Err(_) => return false,
                }
            }
            None => {
                steps.push(Step::Got(name.clone(), None));
                match txn.insert(map, name.as_bytes(), value.as_bytes(), &mut Vec::new()) {
                    Ok(Inserted::Done) => steps.push(Step::Wrote(name, Some(value.into()))),
                    Ok(Inserted::Exists) => {}
                    Err(_) => return false,
                }
            }
        },
    }
    true
}

fn start(world: &World, prng: &mut Prng) -> (MapId, State) {
    let state: State = (0..KEYS).filter(|_| prng.chance(0.5)).map(|number| (key(number), "start".to_owned())).collect();
    let values: Vec<(&str, &str)> = state.iter().map(|(key, value)| (&**key, &**value)).collect();
    (filled(world, &values), state)
}

fn end(world: &World, map: MapId) -> State {
    all(&mut begin(rows(world)), map).into_iter().collect()
}

#[test]
fn committed_transactions_of_random_histories_have_a_serial_order() {
    let (mut committed, mut failed) = (0, 0);
    for seed in 0..500 {
        let (world, mut prng) = (World::new(seed), Prng::new(seed));
        let (map, state) = start(&world, &mut prng);
        let mut open: Vec<(Transaction, Vec<Step>)> = Vec::new();
        let mut done: Vec<Vec<Step>> = Vec::new();
        let mut number = 0;
        for _ in 0..40 {
            if open.len() < 3 && done.len() + open.len() < 6 {
                let mut txn = begin(rows(&world));
                txn.set_lock_wait(std::time::Duration::ZERO);
                open.push((txn, Vec::new()));
            }
            if open.is_empty() {
                break;
            }
            let at = prng.below(open.len() as u64) as usize;
            number += 1;
            let goes_on = {
                let (txn, steps) = &mut open[at];
                !prng.chance(0.2) && step(txn, map, &mut prng, &format!("v{number}"), steps)
            };
            if !goes_on {
                let (txn, steps) = open.remove(at);
                // A failed statement ends its transaction half of the time; else it commits what it has done before.
                match prng.chance(0.8).then(|| txn.commit()) {
                    Some(Ok(_)) => {
                        committed += 1;
                        done.push(steps);
                    }
                    Some(Err(error)) => {
                        assert!(matches!(error, Error::ReadWriteDependency), "seed {seed}: {error:?}");
                        failed += 1;
                    }
                    None => {}
                }
            }
            if prng.chance(0.2) {
                world.go_about(prng.below(3)).unwrap();
            }
        }
        for (txn, steps) in open {
            if txn.commit().is_ok() {
                done.push(steps);
            }
        }
        assert!(has_serial_order(&done, &state, &end(&world, map)), "seed {seed}: {done:#?} from {state:?}");
    }
    assert!(committed > 1000 && failed > 60, "{committed} {failed}: the histories have too few conflicts");
}

#[test]
fn transactions_of_several_threads_replay_in_the_order_of_their_commits() {
    const THREADS: u64 = 4;
    let world = World::new(11);
    let mut prng = Prng::new(11);
    let (map, mut state) = start(&world, &mut prng);
    let history: Mutex<Vec<(Lsn, Vec<Step>)>> = Mutex::default();
    let (refusals, barrier) = (AtomicU64::new(0), Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (world, history, refusals, barrier) = (&world, &history, &refusals, &barrier);
            scope.spawn(move || {
                let mut prng = Prng::new(100 + thread);
                barrier.wait();
                for number in 0..400 {
                    let mut txn = begin(rows(world));
                    txn.set_lock_wait(std::time::Duration::ZERO);
                    let mut steps = Vec::new();
                    let goes =
                        (0..4).all(|at| step(&mut txn, map, &mut prng, &format!("{thread}.{number}.{at}"), &mut steps));
                    if !goes || steps.iter().all(|step| !matches!(step, Step::Wrote(..))) {
                        continue;
                    }
                    match txn.commit() {
                        Ok(lsn) => history.lock().unwrap().push((lsn, steps)),
                        Err(error) => {
                            assert!(matches!(error, Error::ReadWriteDependency), "{error:?}");
                            refusals.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    if number % 50 == 0 {
                        world.flush();
                    }
                }
            });
        }
    });
    let mut history = history.into_inner().unwrap();
    history.sort_by_key(|(lsn, _)| *lsn);
    assert!(history.len() > 100, "{} commits", history.len());
    for (lsn, steps) in &history {
        assert!(replays(steps, &mut state), "the transaction that committed at {lsn} is not in order: {steps:?}");
    }
    assert_eq!(state, end(&world, map));
}
