//! Sampling of statistics: reads a bounded number of random leaves of a table and of each of its indexes.
//!
//! A small table is read whole. For a large one, leaves of the table give the distribution of columns. Leaves of an
//! index, where equal values are adjacent, give the rate at which its prefix changes from one entry to the next, and
//! this rate times the number of entries estimates the number of distinct values. If there are few distinct values,
//! runs of equal ones are longer than a leaf; they are counted by seeking from each value to the next.

use std::collections::HashSet;
use std::ops::Bound;
use std::thread;
use std::time::Duration;

use datum::batch::Cell;
use datum::key::{KeyOrder, encode_cell, length};
use datum::{Fault, Result};
use engine::Engine;
use engine::rows::{Isolation, MapId, RowBatch, Transaction};
use stdx::prng::Prng;
use stdx::wait::{self, Reason};

use crate::catalog::decode::decode;
use crate::catalog::statistics::{ColumnStatistics, Histogram, KeyStatistics, Statistics, buckets, is_spread};
use crate::catalog::table::{Part, Table};
use crate::engine_fault::engine_fault;
use crate::key::{cut, encode_parts};
use crate::key_form::after;
use crate::types::Type;
use crate::value::Value;
use datum::temporal::Timestamp;

/// How much of a table is read.
#[derive(Clone, Copy)]
pub struct Effort {
    /// The number of leaves of the table, and of each index.
    pub leaves: usize,
    /// The number of distinct values of a prefix that are counted by seeking.
    pub jumps: usize,
}

/// For automatic sampling, at the expense of a statement.
pub const QUICK: Effort = Effort { leaves: 24, jumps: 32 };
/// For ANALYZE TABLE.
pub const THOROUGH: Effort = Effort { leaves: 200, jumps: 256 };

/// Tables up to this number of rows are read whole.
const WHOLE: f64 = 2000.0;
/// Histogram buckets of each column that are kept without a request.
const BUCKETS: usize = 24;
/// The number of characters of a string that a bucket keeps.
const LETTERS: u32 = 42;
/// The most rows that are read for a histogram.
const HISTOGRAM_ROWS: f64 = 200_000.0;

/// A check that sampling calls now and then; its error ends the sampling.
pub type LookUp<'l> = dyn FnMut() -> Result<()> + 'l;

struct Gathering<'g> {
    table: &'g Table,
    txn: Transaction,
    prng: Prng,
    batch: RowBatch,
    look_up: &'g mut LookUp<'g>,
}

static GATHERING: Reason = Reason::bounded("statistics");

/// Claims the sampling of a table (`TableState::begin_gathering`), and blocks while another session samples it.
pub fn claim(table: &Table, look_up: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    if table.live.begin_gathering() {
        return Ok(());
    }
    let Some(_waiting) = wait::try_announce(&GATHERING) else { return Err(Fault::TooManyWaits) };
    while !table.live.begin_gathering() {
        look_up()?;
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Estimates the number of rows of a table from a few pages.
pub fn count(engine: &Engine, table: &Table) -> Result<f64> {
    Ok(engine.rows().extent(table.map, Bound::Unbounded, Bound::Unbounded).map_err(engine_fault)?.records)
}

pub fn gather<'g>(
    engine: &Engine,
    table: &'g Table,
    effort: Effort,
    look_up: &'g mut LookUp<'g>,
) -> Result<Statistics> {
    let mut gathering = Gathering::new(engine, table, look_up);
    let about = count(engine, table)?;
    let gathered = Timestamp::now().0;
    let is_wanted = |at: &usize| is_spread(&table.columns[*at].ty) && !table.columns[*at].is_computed();
    let wanted: Vec<usize> = (0..table.columns.len()).filter(is_wanted).collect();
    if about <= WHOLE {
        let rows = gathering.all(&wanted)?;
        let keys = gathering.keys().into_iter().map(|(map, parts)| exact(table, map, parts, &rows)).collect();
        let columns = columns(table, &wanted, &rows, rows.len() as f64);
        return Ok(Statistics { rows: rows.len() as u64, gathered, keys, columns });
    }
    let sample = gathering.leaves(&wanted, effort.leaves)?;
    let keys = gathering
        .keys()
        .into_iter()
        .map(|(map, parts)| gathering.key(engine, (map, parts), effort, about))
        .collect::<Result<Vec<_>>>()?;
    let mut columns = columns(table, &wanted, &sample, about);
    for column in &mut columns {
        // An index gives a better estimate.
        let leads = |(map, parts): &(MapId, &[Part])| {
            let is_first = parts.first().is_some_and(|part| table.columns[part.column].slot == column.slot);
            (is_first && parts[0].prefix.is_none()).then_some(*map)
        };
        let known = gathering.keys().iter().find_map(leads);
        let key = known.and_then(|map| keys.iter().find(|key| key.map == map));
        column.distinct = key.and_then(|key| key.distinct.first().copied()).unwrap_or(column.distinct);
    }
    Ok(Statistics { rows: about as u64, gathered, keys, columns })
}

/// Builds a histogram of one column. A table of more than about `HISTOGRAM_ROWS` rows is sampled.
pub fn histogram<'g>(
    engine: &Engine,
    table: &'g Table,
    column: usize,
    wanted: u32,
    look_up: &'g mut LookUp<'g>,
) -> Result<Histogram> {
    let mut gathering = Gathering::new(engine, table, look_up);
    let extent = engine.rows().extent(table.map, Bound::Unbounded, Bound::Unbounded).map_err(engine_fault)?;
    let (rows, rate) = if extent.records <= HISTOGRAM_ROWS {
        (gathering.all(&[column])?, 1.0)
    } else {
        let leaves = (HISTOGRAM_ROWS / (extent.records / extent.leaves)).max(1.0);
        let rows = gathering.leaves(&[column], leaves as usize)?;
        let rate = (rows.len() as f64 / extent.records).min(1.0);
        (rows, rate)
    };
    let ty = &table.columns[column].ty;
    let (runs, nulls) = runs(rows.iter().map(|row| &row[column]), ty);
    Ok(Histogram { buckets: buckets(&runs, nulls, wanted as usize), nulls, updated: Timestamp::now().0, rate, wanted })
}

impl<'g> Gathering<'g> {
    fn new(engine: &Engine, table: &'g Table, look_up: &'g mut LookUp<'g>) -> Gathering<'g> {
        let txn = engine.rows().begin(Isolation::ReadCommitted);
        Gathering { table, txn, prng: Prng::new(table.id), batch: RowBatch::new(), look_up }
    }

    /// Returns the maps of the table and of its indexes, with their key parts.
    fn keys(&self) -> Vec<(MapId, &'g [Part])> {
        let primary = self.table.primary.iter().map(|parts| (self.table.map, &parts[..]));
        let of_values = self.table.indexes.iter().filter(|index| index.terms.is_none());
        primary.chain(of_values.map(|index| (index.map, &index.parts[..]))).collect()
    }

    fn take(&mut self, wanted: &[usize], rows: &mut Vec<Vec<Value>>) -> Result<()> {
        for (_, bytes) in self.batch.iter() {
            let mut row = vec![Value::Null; self.table.columns.len()];
            decode(self.table, bytes, wanted, &mut row)?;
            rows.push(row);
        }
        Ok(())
    }

    fn all(&mut self, wanted: &[usize]) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        let mut cursor =
            self.txn.scan(self.table.map, Bound::Unbounded, Bound::Unbounded, false).map_err(engine_fault)?;
        while cursor.next(&mut self.txn, &mut self.batch).map_err(engine_fault)? {
            (self.look_up)()?;
            self.take(wanted, &mut rows)?;
        }
        Ok(rows)
    }

    fn leaves(&mut self, wanted: &[usize], leaves: usize) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        for _ in 0..leaves {
            (self.look_up)()?;
            self.txn.sample(self.table.map, &mut self.prng, &mut self.batch).map_err(engine_fault)?;
            self.take(wanted, &mut rows)?;
        }
        Ok(rows)
    }

    fn key(
        &mut self,
        engine: &Engine,
        (map, parts): (MapId, &[Part]),
        effort: Effort,
        rows: f64,
    ) -> Result<KeyStatistics> {
        let leaves = engine.rows().extent(map, Bound::Unbounded, Bound::Unbounded).map_err(engine_fault)?.leaves as u64;
        let types: Vec<(&Type, KeyOrder)> =
            parts.iter().map(|part| (&self.table.columns[part.column].ty, part.order)).collect();
        let mut changes = vec![0usize; parts.len()];
        let mut pairs = 0;
        for _ in 0..effort.leaves {
            (self.look_up)()?;
            self.txn.sample(map, &mut self.prng, &mut self.batch).map_err(engine_fault)?;
            for at in 1..self.batch.len() {
                let (left, right) = (self.batch.get(at - 1).0, self.batch.get(at).0);
                pairs += 1;
                let same = same_parts(left, right, &types);
                changes[same..].iter_mut().for_each(|count| *count += 1);
            }
        }
        let mut distinct = Vec::new();
        let mut few = true;
        for at in 0..parts.len() {
            let guessed = 1.0 + changes[at] as f64 / f64::from(pairs.max(1)) * (rows - 1.0).max(0.0);
            let counted = if few { self.count_values(map, &types[..=at], effort.jumps)? } else { None };
            few = counted.is_some();
            let least = distinct.last().copied().unwrap_or(1);
            distinct.push(counted.unwrap_or_else(|| (guessed as u64).max(effort.jumps as u64)).max(least));
        }
        Ok(KeyStatistics { map, leaves, distinct })
    }

    /// Counts the distinct values of a prefix by seeking from each to the next. Returns None if there are many.
    fn count_values(&mut self, map: MapId, types: &[(&Type, KeyOrder)], most: usize) -> Result<Option<u64>> {
        let mut from = Bound::Unbounded;
        for count in 0..=most {
            (self.look_up)()?;
            let mut cursor =
                self.txn.scan(map, from.as_ref().map(Vec::as_slice), Bound::Unbounded, false).map_err(engine_fault)?;
            if !cursor.next(&mut self.txn, &mut self.batch).map_err(engine_fault)? {
                return Ok(Some(count as u64));
            }
            let key = self.batch.get(0).0;
            let Some(end) = end_of(key, types) else { return Ok(None) };
            from = match after(&key[..end]) {
                Bound::Excluded(key) => Bound::Included(key),
                _ => return Ok(Some(count as u64 + 1)),
            };
        }
        Ok(None)
    }
}

/// Returns the end of the parts in an encoded key, or None if the key does not contain them all.
fn end_of(key: &[u8], types: &[(&Type, KeyOrder)]) -> Option<usize> {
    // Of a shortened key the last parts are not there, and other bytes may look like them.
    let end = types.iter().try_fold(0, |from, (ty, order)| Some(from + length(key.get(from..)?, ty.shape(), *order)?));
    end.filter(|end| *end <= key.len())
}

/// Returns the number of leading parts that two keys have in common.
fn same_parts(left: &[u8], right: &[u8], types: &[(&Type, KeyOrder)]) -> usize {
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let ends = |at: &usize| end_of(left, &types[..*at]).is_some_and(|end| end <= common);
    (1..=types.len()).take_while(ends).count()
}

/// Returns the exact statistics of a key from all rows of the table.
fn exact(table: &Table, map: MapId, parts: &[Part], rows: &[Vec<Value>]) -> KeyStatistics {
    let distinct = (1..=parts.len()).map(|count| {
        let key = |row: &Vec<Value>| {
            let mut key = Vec::new();
            encode_parts(table, &parts[..count], row, &mut key);
            key
        };
        rows.iter().map(key).collect::<HashSet<_>>().len() as u64
    });
    KeyStatistics { map, leaves: 1, distinct: distinct.collect() }
}

/// Sorts values without NULLs. Returns the distinct ones, each with the number of its rows, and the fraction of NULLs. Long strings are cut.
fn runs<'v>(values: impl Iterator<Item = &'v Value>, ty: &Type) -> (Vec<(Value, usize)>, f64) {
    // All keys lie in one buffer, and each is made once.
    let (mut keys, mut keyed, mut nulls) = (Vec::new(), Vec::new(), 0usize);
    for value in values {
        if value.is_null() {
            nulls += 1;
            continue;
        }
        let from = keys.len();
        encode_cell(beginning(value), ty.shape(), KeyOrder::ASCENDING, &mut keys);
        keyed.push((from..keys.len(), value));
    }
    let all = keyed.len() + nulls;
    keyed.sort_by(|(one, _), (other, _)| keys[one.clone()].cmp(&keys[other.clone()]));
    let same = keyed.chunk_by(|(one, _), (other, _)| keys[one.clone()] == keys[other.clone()]);
    (same.map(|run| (cut(run[0].1, LETTERS), run.len())).collect(), nulls as f64 / (all as f64).max(1.0))
}

/// Returns the part of a value that `cut` keeps.
fn beginning(value: &Value) -> Cell<'_> {
    match value {
        Value::Text(text) => {
            let end = text.char_indices().nth(LETTERS as usize).map_or(text.len(), |(end, _)| end);
            Cell::Text(&text[..end])
        }
        Value::Bytes(bytes) => Cell::Bytes(&bytes[..bytes.len().min(LETTERS as usize)]),
        value => Cell::Value(value),
    }
}

fn columns(table: &Table, wanted: &[usize], rows: &[Vec<Value>], all: f64) -> Vec<ColumnStatistics> {
    let column = |at: &usize| {
        let ty = &table.columns[*at].ty;
        let (runs, nulls) = runs(rows.iter().map(|row| &row[*at]), ty);
        ColumnStatistics {
            slot: table.columns[*at].slot,
            nulls,
            distinct: guess(&runs, all * (1.0 - nulls)),
            spread: buckets(&runs, nulls, BUCKETS),
            histogram: None,
        }
    };
    wanted.iter().map(column).collect()
}

/// Estimates the number of distinct values among `all` rows from a sample: many values that were met once imply many
/// that were not met (the estimator "Duj1" of Haas and Stokes, 1998).
fn guess(runs: &[(Value, usize)], all: f64) -> u64 {
    let (seen, different) = (runs.iter().map(|(_, count)| *count).sum::<usize>() as f64, runs.len() as f64);
    let once = runs.iter().filter(|(_, count)| *count == 1).count() as f64;
    if seen >= all || seen == 0.0 {
        return different as u64;
    }
    let guess = seen * different / (seen - once + once * seen / all);
    guess.clamp(different, all) as u64
}
