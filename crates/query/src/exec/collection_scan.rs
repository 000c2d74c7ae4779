//! Scans of the tables of collections: `redis.hashes`, `redis.lists`, `redis.sets`, `redis.sorted_sets`, `redis.streams`.
//!
//! A scan goes from key to key and reads some elements of one as of one moment, then the next ones (D30-1): so it holds one batch, whatever the size of the
//! collection. It continues behind the last element by hash, score, index or id, as the Redis door's cursors do. The transaction's own changes are merged in:
//! what it has changed hides what is committed, and its own elements follow.
//!
//! A locking scan of keys that are not named reads without a lock until a row satisfies the conditions, locks the key, and reads the key again from its
//! beginning: nobody else changes it then.

use datum::Result;
use engine::rows::{ElementPlace, FoundElement, OwnElements, Strength, Wait, item_name, item_number};
use engine::{End, Entry, ItemValue, KeySet, KeyTransaction, Kind, ScoreBound, StreamId};

use crate::batch::Row;
use crate::catalog::keyspace_rows::KeyspaceTable;
use crate::engine_fault::engine_fault;
use crate::exec::collection_rows::{element_row, entry_rows, name_of_id, row_key};
use crate::exec::host::host;
use crate::exec::keys;
use crate::exec::keyspace_scan::walk;
use crate::exec::keyspace_wanted::{Wanted, wanted};
use crate::exec::memory::Held;
use crate::exec::row_ops::{BATCH, BATCH_BYTES, all_hold, template};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Lock, LockWait};
use crate::nodes::system_table::SystemTable;
use crate::value::Value;
use std::sync::Arc;

/// The fields of an entry with their values.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;
type Committed<T> = std::result::Result<T, engine::Error>;

/// The part of a key that is still to be read.
#[derive(Clone, Debug)]
enum Cursor {
    /// Elements by name.
    Names(usize),
    /// The elements whose hash is at least this.
    Hash(u64),
    /// The members behind one, in the order of scores; `None`: from the least score on.
    Scored(Option<(f64, Vec<u8>)>),
    /// The items of a list from this number on; `None`: from the first wanted one.
    Items(Option<i64>),
    /// The entries of a stream from this id on.
    Entries(StreamId),
    /// The transaction's own elements behind one.
    Own(Option<Vec<u8>>),
    Over,
}

/// The elements that a step has found, as of one moment.
#[derive(Default)]
struct Found {
    expire_at_ms: Option<u64>,
    /// Name and value.
    elements: Vec<(Vec<u8>, Vec<u8>)>,
    /// Of a stream: an id with its fields and values.
    entries: Vec<(StreamId, Fields)>,
    bytes: usize,
    next: Option<Cursor>,
}

impl Found {
    fn is_full(&self) -> bool {
        self.elements.len() + self.entries.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    fn push(&mut self, name: &[u8], value: Vec<u8>) {
        self.bytes += name.len() + value.len();
        self.elements.push((name.to_vec(), value));
    }
}

/// The key that is being read.
struct CollectionKey {
    db: u8,
    key: Vec<u8>,
    cursor: Cursor,
    is_locked: bool,
    /// The lock stays: the key has given a row since, or its absence, or that of an element, is what was asked for.
    keeps_lock: bool,
}

/// The place of a table of collections in a statement.
pub struct CollectionPlace<'p> {
    pub system: &'static SystemTable,
    pub keys: &'static KeyspaceTable,
    pub conditions: &'p [Expr],
    pub offset: usize,
    pub width: usize,
    pub lock: Option<Lock>,
    pub key_at: Option<usize>,
    pub base: Option<&'p Arc<Row>>,
}

pub struct CollectionScan {
    wanted: Wanted,
    /// The databases whose keys are still to be listed.
    databases: std::vec::IntoIter<u8>,
    keys: std::vec::IntoIter<(u8, Vec<u8>)>,
    held: Held,
    current: Option<CollectionKey>,
}

impl CollectionScan {
    pub fn open(place: &CollectionPlace<'_>, ctx: &mut EvalContext) -> Result<CollectionScan> {
        let wanted = wanted(place.system, place.conditions, place.offset, place.base.map(|row| &**row), ctx)?;
        let named = wanted.named();
        if named.is_none() {
            keys::check_walk(ctx)?;
        }
        let databases = if named.is_some() { Vec::new() } else { wanted.databases() };
        Ok(CollectionScan {
            wanted,
            databases: databases.into_iter(),
            keys: named.unwrap_or_default().into_iter(),
            held: Held::default(),
            current: None,
        })
    }

    /// Appends the next wide rows. None come at the end.
    pub fn next(&mut self, place: &CollectionPlace<'_>, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        while out.is_empty() {
            host(ctx).look_up()?;
            if self.current.is_none() && !self.begin_key(place, ctx)? {
                return Ok(());
            }
            self.step(place, ctx, out)?;
        }
        Ok(())
    }

    /// Goes to the next key. Returns false behind the last one.
    fn begin_key(&mut self, place: &CollectionPlace<'_>, ctx: &mut EvalContext) -> Result<bool> {
        loop {
            if let Some((db, key)) = self.keys.next() {
                let is_named = self.wanted.keys.is_some();
                let (mut is_locked, mut keeps_lock) = (false, self.wanted.names.is_some() || keys::is_validated(ctx));
                if let Some(lock) = place.lock.filter(|_| is_named) {
                    let Some(found) = lock_key(place.keys.kind, (db, &key), lock, ctx)? else { continue };
                    is_locked = true;
                    keeps_lock |= found.collection.is_none();
                }
                let cursor = self.first(place.keys.kind);
                self.current = Some(CollectionKey { db, key, cursor, is_locked, keeps_lock });
                return Ok(true);
            }
            self.held.clear();
            let Some(db) = self.databases.next() else { return Ok(false) };
            let (keys, held) = walk(db, place.keys.kind, &self.wanted.prefix, ctx)?;
            self.held = held;
            self.keys = keys.into_iter().map(|key| (db, key)).collect::<Vec<_>>().into_iter();
        }
    }

    fn first(&self, kind: Kind) -> Cursor {
        let has_scores = self.wanted.scores != (f64::NEG_INFINITY, f64::INFINITY);
        match kind {
            _ if self.wanted.names.is_some() => Cursor::Names(0),
            Kind::List => Cursor::Items(None),
            Kind::Stream => Cursor::Entries(self.wanted.ids.0),
            Kind::ZSet if has_scores => Cursor::Scored(None),
            _ => Cursor::Hash(0),
        }
    }

    /// Reads on in the current key.
    fn step(&mut self, place: &CollectionPlace<'_>, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        let first = self.first(place.keys.kind);
        let Some(current) = &mut self.current else { return Ok(()) };
        let rows = read_on(place.keys, &self.wanted, current, ctx)?;
        let is_over = matches!(current.cursor, Cursor::Over);
        for (name, values) in rows {
            let Some(wide) = wide(place, (current.db, &current.key, &name), values, ctx)? else { continue };
            match place.lock {
                Some(lock) if !current.is_locked => {
                    let at = (current.db, &*current.key);
                    if lock_key(place.keys.kind, at, lock, ctx)?.is_none() {
                        self.current = None;
                        return Ok(());
                    }
                    (current.cursor, current.is_locked) = (first, true);
                    return Ok(());
                }
                _ => out.push(wide),
            }
            current.keeps_lock = true;
        }
        if is_over {
            if current.is_locked && !current.keeps_lock {
                host(ctx).txn()?.unlock_last();
            }
            self.current = None;
        }
        Ok(())
    }
}

/// Locks a key. Returns None if it is to be skipped.
fn lock_key(kind: Kind, (db, key): (u8, &[u8]), lock: Lock, ctx: &mut EvalContext) -> Result<Option<FoundElement>> {
    let txn = host(ctx).txn()?;
    let wait = match lock.wait {
        LockWait::Patient | LockWait::Choosy => txn.patience(),
        LockWait::NoWait => Wait::NoWait,
        LockWait::SkipLocked => Wait::SkipLocked,
    };
    let strength: Strength = lock.strength;
    txn.lock_element(ElementPlace { db, key, kind, name: &[] }, strength, wait).map_err(engine_fault)
}

/// Returns the wide row of an element, or None if it does not satisfy the conditions. Without a lock they are evaluated above.
fn wide(
    place: &CollectionPlace<'_>,
    (db, key, name): (u8, &[u8], &[u8]),
    values: Row,
    ctx: &mut EvalContext,
) -> Result<Option<Row>> {
    let mut wide = template(place.base, place.width);
    values.into_iter().enumerate().for_each(|(at, value)| wide[place.offset + at] = value);
    if let Some(at) = place.key_at {
        wide[at] = Value::bytes(row_key(db, key, name));
    }
    let holds = place.lock.is_none() || all_hold(place.conditions, &wide, ctx)?;
    Ok(holds.then_some(wide))
}

/// Reads the next elements of a key, with their names, and moves the cursor.
fn read_on(
    table: &KeyspaceTable,
    wanted: &Wanted,
    current: &mut CollectionKey,
    ctx: &mut EvalContext,
) -> Result<Vec<(Vec<u8>, Row)>> {
    let (db, key, kind) = (current.db, &*current.key, table.kind);
    if let Cursor::Own(after) = &current.cursor {
        let (rows, next) = own_rows(table, wanted, (db, key), after.as_deref(), ctx);
        current.cursor = next;
        return Ok(rows);
    }
    // Of a list that the transaction has changed, the numbers tell its items in their order.
    let numbers = match host(ctx).txn.as_ref().map(|txn| txn.own_elements(db, key, kind)) {
        Some(OwnElements::Absent) => {
            current.cursor = Cursor::Over;
            return Ok(Vec::new());
        }
        Some(OwnElements::Changed(own)) => Some((own.numbers(), own.keeps_committed())),
        Some(OwnElements::None) | None => None,
    };
    let keyspace = host(ctx).instance.engine().keyspace().clone();
    let cursor = current.cursor.clone();
    let is_hidden = numbers.as_ref().is_some_and(|(_, keeps)| !keeps);
    let read = keyspace.read::<Option<Found>, engine::Error>(KeySet::Keys(&[(db, key)]), |unit| {
        if is_hidden {
            return Ok(None);
        }
        let Some(entry) = unit.peek(db, key)?.filter(|entry| entry.kind == kind) else { return Ok(None) };
        let expire_at_ms = entry.expire_at_ms;
        let first = numbers.as_ref().map_or(0, |(numbers, _)| numbers.start);
        let mut found = committed(unit, (db, key), &entry, wanted, &cursor, first)?;
        found.expire_at_ms = expire_at_ms;
        Ok(Some(found))
    });
    let (found, durability_lsn) = read.map_err(engine_fault)?;
    host(ctx).seen = host(ctx).seen.max(durability_lsn);
    let found = found.unwrap_or_default();
    let own = host(ctx).txn.as_ref().map(|txn| txn.own_elements(db, key, kind));
    let own = match own {
        Some(OwnElements::Changed(own)) => Some(own),
        _ => None,
    };
    let expire_at_ms = own.map_or(found.expire_at_ms, |own| own.collection().expire_at_ms);
    let mut rows = Vec::with_capacity(found.elements.len());
    for (id, fields) in &found.entries {
        let name = name_of_id(*id).into_bytes();
        rows.extend(entry_rows(table, (db, key), *id, fields, expire_at_ms).map(|row| (name.clone(), row)));
    }
    let is_own = |name: &[u8]| own.is_some_and(|own| own.item(name).is_some());
    let position = |name: &[u8]| match (own, item_number(name)) {
        (Some(own), Some(number)) => number - own.numbers().start,
        (None, Some(number)) => number,
        _ => 0,
    };
    for (name, value) in &found.elements {
        if !is_own(name) {
            rows.push((name.clone(), element_row(table, (db, key), name, value, position(name), expire_at_ms)));
        }
    }
    let behind = if own.is_some() { Cursor::Own(None) } else { Cursor::Over };
    current.cursor = found.next.unwrap_or(behind);
    Ok(rows)
}

/// Returns the transaction's own elements behind one, and where to go on.
fn own_rows(
    table: &KeyspaceTable,
    wanted: &Wanted,
    (db, key): (u8, &[u8]),
    after: Option<&[u8]>,
    ctx: &mut EvalContext,
) -> (Vec<(Vec<u8>, Row)>, Cursor) {
    let own = match host(ctx).txn.as_ref().map(|txn| txn.own_elements(db, key, table.kind)) {
        Some(OwnElements::Changed(own)) => own,
        _ => return (Vec::new(), Cursor::Over),
    };
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let expire_at_ms = own.collection().expire_at_ms;
    let mut add = |name: &[u8], value: &[u8]| {
        let position = item_number(name).filter(|_| table.kind == Kind::List);
        let position = position.map_or(0, |number| number - own.numbers().start);
        bytes += name.len() + value.len();
        rows.push((name.to_vec(), element_row(table, (db, key), name, value, position, expire_at_ms)));
        bytes >= BATCH_BYTES
    };
    if let Some(names) = &wanted.names {
        for name in names {
            if let Some(Some(value)) = own.item(name) {
                add(name, value);
            }
        }
        return (rows, Cursor::Over);
    }
    let mut last = None;
    for (nth, (name, value)) in own.items_after(after).enumerate() {
        let is_full = add(name, value);
        if is_full || nth + 1 == BATCH {
            last = Some(name.to_vec());
            break;
        }
    }
    (rows, last.map_or(Cursor::Over, |last| Cursor::Own(Some(last))))
}

/// Reads committed elements from a cursor on. `first` is the number of a list's first item.
fn committed(
    unit: &mut KeyTransaction<'_>,
    (db, key): (u8, &[u8]),
    entry: &Entry,
    wanted: &Wanted,
    cursor: &Cursor,
    first: i64,
) -> Committed<Found> {
    let mut found = Found::default();
    match cursor {
        Cursor::Names(at) if entry.kind == Kind::Stream => {
            entries_by_id(unit, (db, key), entry, (wanted, *at), &mut found)?
        }
        Cursor::Names(at) => {
            for (nth, name) in wanted.names.iter().flatten().enumerate().skip(*at) {
                if found.is_full() {
                    found.next = Some(Cursor::Names(nth));
                    break;
                }
                if let Some(value) = unit.member(entry, name)? {
                    found.push(name, bytes_of(unit, &value)?);
                }
            }
        }
        Cursor::Hash(from) => by_hash(unit, entry, *from, &mut found)?,
        Cursor::Scored(after) => by_score(unit, entry, wanted.scores, after.as_ref(), &mut found)?,
        Cursor::Items(from) => {
            let low = wanted.positions.0.max(0).saturating_add(first);
            items(unit, entry, (from.unwrap_or(low), wanted.positions.1.saturating_add(first)), &mut found)?;
        }
        Cursor::Entries(from) => entries(unit, (db, key), entry, (*from, wanted.ids.1), &mut found)?,
        Cursor::Own(_) | Cursor::Over => {}
    }
    Ok(found)
}

fn bytes_of(unit: &mut KeyTransaction<'_>, value: &Entry) -> Committed<Vec<u8>> {
    let mut bytes = Vec::with_capacity(value.len as usize);
    unit.value(value, 0..value.len, &mut bytes)?;
    Ok(bytes)
}

fn value_of(unit: &mut KeyTransaction<'_>, value: ItemValue<'_>) -> Committed<Vec<u8>> {
    match value.bytes() {
        Some(bytes) => Ok(bytes.to_vec()),
        None => bytes_of(unit, &value.to_entry()?),
    }
}

/// Elements of the same hash come together, so that the next hash continues behind them.
fn by_hash(unit: &mut KeyTransaction<'_>, entry: &Entry, from: u64, found: &mut Found) -> Committed<()> {
    let mut walk = unit.members_from(entry, from)?;
    let mut last = None;
    while let Some(item) = walk.next(unit)? {
        if found.is_full() && item.hash.is_some() && item.hash != last {
            found.next = item.hash.map(Cursor::Hash);
            break;
        }
        last = item.hash;
        // The collection has been packed since the last step: its members are in no order of hashes any more.
        if item.hash.is_none() && from > 0 && unit.member_hash(item.member).is_some_and(|hash| hash < from) {
            continue;
        }
        let (member, value) = (item.member.to_vec(), item.value);
        let value = value_of(unit, value)?;
        found.push(&member, value);
    }
    Ok(())
}

fn by_score(
    unit: &mut KeyTransaction<'_>,
    entry: &Entry,
    (low, high): (f64, f64),
    after: Option<&(f64, Vec<u8>)>,
    found: &mut Found,
) -> Committed<()> {
    let bound = match after {
        Some((score, member)) => ScoreBound::Member { score: *score, member, is_after: true },
        None => ScoreBound::Score { score: low, is_after: false },
    };
    let rank = unit.rank(entry, &bound)?;
    let mut walk = unit.sorted(entry, rank, false)?;
    while let Some((score, member)) = walk.next(unit)? {
        if score > high {
            break;
        }
        found.push(member, score.to_le_bytes().to_vec());
        if found.is_full() {
            found.next = Some(Cursor::Scored(Some((score, member.to_vec()))));
            break;
        }
    }
    Ok(())
}

/// Reads the items whose numbers, their committed indexes, are from one to another, both included.
fn items(unit: &mut KeyTransaction<'_>, entry: &Entry, (from, to): (i64, i64), found: &mut Found) -> Committed<()> {
    let mut number = from.max(0);
    let mut walk = unit.items_from(entry, End::Head, number as u64)?;
    while number <= to
        && let Some(item) = walk.next(unit)?
    {
        if found.is_full() {
            found.next = Some(Cursor::Items(Some(number)));
            break;
        }
        let value = match item.bytes() {
            Some(bytes) => bytes.to_vec(),
            None => bytes_of(unit, &item.to_entry()?)?,
        };
        found.push(&item_name(number), value);
        number += 1;
    }
    Ok(())
}

fn entries(
    unit: &mut KeyTransaction<'_>,
    (db, key): (u8, &[u8]),
    entry: &Entry,
    (from, to): (StreamId, StreamId),
    found: &mut Found,
) -> Committed<()> {
    let stream = unit.stream(db, key, entry)?;
    let mut walk = unit.stream_entries(&stream, from, to, false)?;
    while let Some(item) = walk.next(unit)? {
        if found.is_full() {
            found.next = Some(Cursor::Entries(item.id));
            break;
        }
        let fields: Fields = item.fields().map(|(field, value)| (field.to_vec(), value.to_vec())).collect();
        found.bytes += fields.iter().map(|(field, value)| field.len() + value.len()).sum::<usize>();
        found.entries.push((item.id, fields));
    }
    Ok(())
}

fn entries_by_id(
    unit: &mut KeyTransaction<'_>,
    at: (u8, &[u8]),
    entry: &Entry,
    (wanted, from): (&Wanted, usize),
    found: &mut Found,
) -> Committed<()> {
    for (nth, name) in wanted.names.iter().flatten().enumerate().skip(from) {
        if found.is_full() {
            found.next = Some(Cursor::Names(nth));
            break;
        }
        let Some(id) = id_of(name).filter(|id| wanted.ids.0 <= *id && *id <= wanted.ids.1) else { continue };
        entries(unit, at, entry, (id, id), found)?;
    }
    Ok(())
}

/// Reads an id as the table shows it.
fn id_of(name: &[u8]) -> Option<StreamId> {
    let (ms, seq) = std::str::from_utf8(name).ok()?.split_once('-')?;
    let id = StreamId { ms: ms.parse().ok()?, seq: seq.parse().ok()? };
    (name_of_id(id).as_bytes() == name).then_some(id)
}
