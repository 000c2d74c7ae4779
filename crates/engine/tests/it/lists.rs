//! Lists, packed and with chunks: against a model, over crashes at any I/O, under rollback and purge.

use engine::{End, Error, KeySet, KeyTransaction, Kind, ListWalk};
use stdx::prng::Prng;

use crate::key_changes::{KeyChange, Model, all, crash_at_any_io, play_beside_model};
use crate::support::{World, bytes};

type List = Vec<Vec<u8>>;
fn collect(txn: &mut KeyTransaction<'_>, mut walk: ListWalk) -> Result<List, Error> {
    let mut items = Vec::new();
    while let Some(item) = walk.next(txn)? {
        let (entry, mut bytes) = (item.to_entry()?, Vec::new());
        txn.value(&entry, 0..entry.len, &mut bytes)?;
        items.push(bytes);
    }
    Ok(items)
}

/// Reads a list by walks from both ends, and some items of it by their indexes.
fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<Option<List>, Error> {
    let Some(entry) = txn.peek(0, key)? else { return Ok(None) };
    let walk = txn.items_from(&entry, End::Head, 0)?;
    let items = collect(txn, walk)?;
    let back = txn.items_from(&entry, End::Tail, 0)?;
    let back: List = collect(txn, back)?.into_iter().rev().collect();
    assert!(items == back, "the walks from both ends differ");
    assert_eq!(entry.count()?, items.len() as u64);
    for index in (0..items.len()).step_by(items.len() / 5 + 1) {
        let mut walk = txn.items_from(&entry, End::Head, index as u64)?;
        let item = walk.next(txn)?.expect("an index below the count");
        let (found, mut bytes) = (item.to_entry()?, Vec::new());
        txn.value(&found, 0..found.len, &mut bytes)?;
        assert!(bytes == items[index], "item {index}");
    }
    Ok(Some(items))
}

#[derive(Clone, Debug)]
enum Op {
    Push(Vec<u8>, End, List),
    Trim(Vec<u8>, End, u64),
    Keep(Vec<u8>, f64, f64),
    Set(Vec<u8>, f64, Vec<u8>),
    Insert(Vec<u8>, Vec<u8>, bool, Vec<u8>),
    Remove(Vec<u8>, End, u64, Vec<u8>),
    Move(Vec<u8>, Vec<u8>, End, End),
    Delete(Vec<u8>),
    Copy(Vec<u8>, Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
    Touch(Vec<u8>),
}

fn key(prng: &mut Prng) -> Vec<u8> {
    match prng.below(6) {
        4 => bytes(700, 1),
        5 => bytes(3000, 2),
        n => format!("k{n}").into_bytes(),
    }
}

/// Few different items, so that pivots and items to remove are found.
fn item(prng: &mut Prng) -> Vec<u8> {
    let which = prng.below(40);
    let len = match which {
        0 => 300_000,
        1 | 2 => 2000 + which,
        3 => 1098,
        4 => 1099,
        5..12 => 400 + which,
        12..25 => 90 + which,
        _ => which % 7,
    };
    bytes(len as usize, which)
}

fn end(prng: &mut Prng) -> End {
    if prng.chance(0.5) { End::Head } else { End::Tail }
}

fn share(prng: &mut Prng) -> f64 {
    prng.below(1000) as f64 / 1000.0
}

fn index(share: f64, count: usize) -> u64 {
    (share * count as f64) as u64
}

fn push(list: &mut List, end: End, item: Vec<u8>) {
    if end == End::Head { list.insert(0, item) } else { list.push(item) }
}

fn pop(list: &mut List, end: End) -> Option<Vec<u8>> {
    match end {
        _ if list.is_empty() => None,
        End::Head => Some(list.remove(0)),
        End::Tail => list.pop(),
    }
}

impl KeyChange for Op {
    type Value = List;
    type Drawn = ();

    fn draw(prng: &mut Prng, (): &mut ()) -> Op {
        match prng.below(24) {
            0..9 => {
                let count = if prng.chance(0.25) { prng.below(60) + 1 } else { prng.below(3) + 1 };
                Op::Push(key(prng), end(prng), (0..count).map(|_| item(prng)).collect())
            }
            9..12 => Op::Trim(key(prng), end(prng), if prng.chance(0.2) { prng.below(60) } else { prng.below(3) }),
            12 => Op::Keep(key(prng), share(prng) / 3.0, 1.0 - share(prng) / 3.0),
            13 | 14 => Op::Set(key(prng), share(prng), item(prng)),
            15 | 16 => Op::Insert(key(prng), item(prng), prng.chance(0.5), item(prng)),
            17 => {
                let most = if prng.chance(0.5) { u64::MAX } else { prng.below(3) + 1 };
                Op::Remove(key(prng), end(prng), most, item(prng))
            }
            18 | 19 => Op::Move(key(prng), key(prng), end(prng), end(prng)),
            20 => Op::Delete(key(prng)),
            21 => Op::Copy(key(prng), key(prng)),
            22 => Op::Rename(key(prng), key(prng)),
            _ => Op::Touch(key(prng)),
        }
    }

    fn read(txn: &mut KeyTransaction<'_>, key: &[u8]) -> Result<List, Error> {
        Ok(read(txn, key)?.expect("a scanned key is there"))
    }

    fn keys(&self) -> Vec<(u8, &[u8])> {
        match self {
            Op::Push(key, ..)
            | Op::Trim(key, ..)
            | Op::Keep(key, ..)
            | Op::Set(key, ..)
            | Op::Insert(key, ..)
            | Op::Remove(key, ..)
            | Op::Delete(key)
            | Op::Touch(key) => vec![(0, key)],
            Op::Move(from, to, ..) | Op::Copy(from, to) | Op::Rename(from, to) => vec![(0, from), (0, to)],
        }
    }

    fn run(&self, txn: &mut KeyTransaction<'_>) -> Result<(), Error> {
        let count = |txn: &mut KeyTransaction<'_>, key: &[u8]| -> Result<usize, Error> {
            Ok(txn.peek(0, key)?.map_or(Ok(0), |entry| entry.count())? as usize)
        };
        match self {
            Op::Push(key, end, items) => {
                let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
                txn.push_items(0, key, *end, &items)?;
            }
            Op::Trim(key, end, count) => drop(txn.trim_items(0, key, *end, *count)?),
            Op::Keep(key, from, to) => {
                let count = count(txn, key)?;
                let kept = index(*from, count)..index(*to, count);
                if kept.is_empty() {
                    txn.delete(0, key)?;
                } else {
                    txn.keep_items(0, key, kept)?;
                }
            }
            Op::Set(key, share, item) => {
                let count = count(txn, key)?;
                assert_eq!(txn.set_item(0, key, index(*share, count), item)?, count > 0);
            }
            Op::Insert(key, pivot, is_before, item) => drop(txn.insert_item(0, key, pivot, *is_before, item)?),
            Op::Remove(key, from, most, item) => drop(txn.remove_items(0, key, *from, *most, item)?),
            Op::Move(from, to, out, into) => {
                if let Some(entry) = txn.peek(0, from)? {
                    let walk = txn.items_from(&entry, *out, 0)?;
                    let item = collect(txn, walk)?.swap_remove(0);
                    txn.trim_items(0, from, *out, 1)?;
                    txn.push_items(0, to, *into, &[&item])?;
                }
            }
            Op::Delete(key) => drop(txn.delete(0, key)?),
            Op::Copy(from, to) => drop(txn.copy((0, from), (0, to))?),
            Op::Rename(from, to) => drop(txn.rename((0, from), (0, to))?),
            Op::Touch(key) => drop(txn.set_expire(0, key, Some(u64::MAX / 2))?),
        }
        Ok(())
    }

    fn apply(&self, model: &mut Model<Op>) {
        match self {
            Op::Push(key, end, items) => {
                let list = model.entry(key.clone()).or_default();
                items.iter().for_each(|item| push(list, *end, item.clone()));
            }
            Op::Move(from, to, out, into) => {
                if let Some(item) = model.get_mut(from).and_then(|list| pop(list, *out)) {
                    push(model.entry(to.clone()).or_default(), *into, item);
                }
            }
            Op::Delete(key) => drop(model.remove(key)),
            Op::Copy(from, to) => {
                if let Some(found) = model.get(from).cloned() {
                    model.insert(to.clone(), found);
                }
            }
            Op::Rename(from, to) => {
                if let Some(found) = model.remove(from) {
                    model.insert(to.clone(), found);
                }
            }
            Op::Touch(_) => {}
            Op::Trim(key, ..) | Op::Keep(key, ..) | Op::Set(key, ..) | Op::Insert(key, ..) | Op::Remove(key, ..) => {
                if let Some(list) = model.get_mut(key) {
                    self.apply_to(list);
                }
            }
        }
        model.retain(|_, list| !list.is_empty());
    }
}

impl Op {
    fn apply_to(&self, list: &mut List) {
        match self {
            Op::Trim(_, end, count) => (0..*count).for_each(|_| drop(pop(list, *end))),
            Op::Keep(_, from, to) => {
                let (from, to) = (index(*from, list.len()) as usize, index(*to, list.len()) as usize);
                *list = list.get(from..to).unwrap_or_default().to_vec();
            }
            Op::Set(_, share, item) => {
                let index = index(*share, list.len()) as usize;
                list[index].clone_from(item);
            }
            Op::Insert(_, pivot, is_before, item) => {
                if let Some(index) = list.iter().position(|one| one == pivot) {
                    list.insert(index + usize::from(!is_before), item.clone());
                }
            }
            Op::Remove(_, from, most, item) => {
                let mut left = *most;
                let mut keeps = |one: &Vec<u8>| {
                    let goes = one == item && left > 0;
                    left -= u64::from(goes);
                    !goes
                };
                if *from == End::Head {
                    list.retain(&mut keeps);
                } else {
                    let mut kept: List = std::mem::take(list).into_iter().rev().filter(&mut keeps).collect();
                    kept.reverse();
                    *list = kept;
                }
            }
            _ => unreachable!("changes of other keys are applied before"),
        }
    }
}

/// Runs ops as one key transaction. `Ok(false)`: it was rolled back as asked.
#[test]
fn lists_are_as_a_model_says() {
    (0..6).for_each(|seed| play_beside_model::<Op>(seed, 250));
}

#[test]
fn a_crash_at_any_io_leaves_lists_as_they_were_committed() {
    crash_at_any_io::<Op>(25, Prng::new(12));
}

fn numbers(range: std::ops::Range<u64>) -> List {
    range.map(|n| format!("item {n:06}").into_bytes()).collect()
}

fn put(world: &World, key: &[u8], end: End, items: &List) {
    let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    world.one(0, key, |txn| txn.push_items(0, key, end, &items));
}

#[test]
fn a_push_and_a_pop_of_a_long_queue_change_one_record() {
    let world = World::new(1);
    put(&world, b"q", End::Tail, &numbers(0..5000));
    let (mut writes, head) = (0, world.engine.pager().wal_head());
    for n in 5000..6000 {
        let before = world.engine.metrics().txn_commits.get();
        put(&world, b"q", End::Tail, &numbers(n..n + 1));
        world.one(0, b"q", |txn| txn.trim_items(0, b"q", End::Head, 1));
        writes += world.engine.metrics().txn_commits.get() - before;
    }
    assert!(writes < 100, "{writes} of 2000 changes needed chunks");
    assert!((world.engine.pager().wal_head() - head) / 2000 < 1400, "a change logs its record");
    let expected: Model<Op> = [(b"q".to_vec(), numbers(1000..6000))].into();
    assert!(all::<Op>(&world) == expected);
    world.check();
}

#[test]
fn a_list_that_becomes_short_has_one_record_again() {
    let world = World::new(1);
    put(&world, b"l", End::Head, &numbers(0..3000));
    assert!(world.engine.check().unwrap().elements > 20);
    world.one(0, b"l", |txn| txn.trim_items(0, b"l", End::Tail, 2990));
    world.settle();
    assert_eq!(world.engine.check().unwrap().elements, 0);
    assert!(all::<Op>(&world)[b"l".as_slice()] == numbers(2990..3000).into_iter().rev().collect::<List>());
    world.one(0, b"l", |txn| txn.trim_items(0, b"l", End::Tail, 20));
    assert!(all::<Op>(&world).is_empty());
    world.check();
}

#[test]
fn insertions_at_one_place_make_room_when_positions_run_out() {
    let world = World::new(1);
    put(&world, b"l", End::Tail, &numbers(0..300));
    let mut model = numbers(0..300);
    for n in 0..400 {
        let (pivot, is_before) = (b"item 000150".as_slice(), n % 3 != 0);
        let item = bytes(450 + n, n as u64);
        world.one(0, b"l", |txn| txn.insert_item(0, b"l", pivot, is_before, &item));
        let at = model.iter().position(|one| one == pivot).expect("the pivot stays");
        model.insert(at + usize::from(!is_before), item);
    }
    assert!(all::<Op>(&world)[b"l".as_slice()] == model);
    world.check();
}

#[test]
fn items_of_any_size_give_back_their_pages() {
    let world = World::new(1);
    let items: List = (0..30).map(|n| bytes(if n % 7 == 0 { 600_000 } else { 3000 }, n)).collect();
    put(&world, b"l", End::Tail, &items);
    world.check();
    world.one(0, b"l", |txn| txn.trim_items(0, b"l", End::Head, 8));
    world.one(0, b"l", |txn| txn.set_item(0, b"l", 3, b"short"));
    world.one(0, b"l", |txn| txn.remove_items(0, b"l", End::Tail, u64::MAX, &items[14]));
    world.settle();
    world.check();
    assert_eq!(all::<Op>(&world)[b"l".as_slice()].len(), 21);
    world.one(0, b"l", |txn| txn.delete(0, b"l"));
    world.settle();
    let report = world.engine.check().unwrap();
    assert_eq!((report.problems, report.elements, report.value_pages, report.queued), (Vec::new(), 0, 0, 0));
}

#[test]
fn an_entry_of_another_type_is_no_list() {
    let world = World::new(1);
    world.set(0, b"s", b"v");
    let refused = world
        .engine
        .keyspace()
        .write::<_, Error>(KeySet::Keys(&[(0, b"s")]), false, |txn| txn.push_items(0, b"s", End::Head, &[b"a"]));
    assert!(matches!(refused, Err(Error::Misuse(_))));
    put(&world, b"l", End::Head, &numbers(0..1));
    let kind = world.one(0, b"l", |txn| Ok(txn.peek(0, b"l")?.map(|entry| (entry.kind, entry.encoding()))));
    assert_eq!(kind, Some((Kind::List, "quicklist")));
}
