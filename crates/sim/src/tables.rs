//! Rows: transactions of several statements over tables with an index, in addition to keys.
//!
//! A table is two maps, its rows and an index over the first bytes of their values, named by a record of the catalog. The oracle knows only rows: reading
//! compares the index with the rows, so neither may exist without the other. A transaction is played as a whole by one step, or started by one step and
//! ended by another (the open transaction, on a table of its own), so that checkpoints, crashes and purge meet transactions in progress.

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;

use engine::Error;
use engine::rows::{CATALOG, Inserted, MapId, RowBatch, Strength, Transaction};
use stdx::prng::Prng;

use crate::op::bytes;

pub type Table = BTreeMap<Vec<u8>, Vec<u8>>;
pub type Tables = BTreeMap<u8, Table>;

/// Number of tables that steps change, and the table of the open transaction.
const TABLES: u64 = 3;
pub const OPEN_TABLE: u8 = 9;
/// Keys of that table.
const OPEN_TABLE_KEYS: u64 = 12;

/// One statement.
#[derive(Clone)]
pub enum RowOp {
    Create(u8),
    Drop(u8),
    /// A new index replaces the old one, sorted and loaded.
    Rebuild(u8),
    Put(u8, Vec<u8>, Vec<u8>),
    Delete(u8, Vec<u8>),
    /// Locked and not changed.
    Lock(u8, Vec<u8>),
    /// Done and rolled back to a savepoint.
    RolledBack(Vec<RowOp>),
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Commit,
    Rollback,
    /// Dropped without an end.
    Forgotten,
}

type Result<T> = std::result::Result<T, Error>;

fn name(table: u8) -> [u8; 2] {
    [b't', table]
}

/// Returns the maps of the rows and of the index.
fn maps(txn: &mut Transaction, table: u8) -> Result<Option<(MapId, MapId)>> {
    let mut record = Vec::new();
    Ok(txn.get(CATALOG, &name(table), &mut record)?.then(|| decode(&record)))
}

fn decode(record: &[u8]) -> (MapId, MapId) {
    let word = |at: usize| MapId::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    (word(0), word(4))
}

fn encode(rows: MapId, index: MapId) -> Vec<u8> {
    [rows.to_le_bytes(), index.to_le_bytes()].concat()
}

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&value[..value.len().min(6)], b"/", key].concat()
}

fn new(done: Inserted) -> Result<()> {
    match done {
        Inserted::Done => Ok(()),
        Inserted::Exists => Err(Error::Invalid("an entry that must be new is there".into())),
    }
}

fn there(done: bool) -> Result<()> {
    if done { Ok(()) } else { Err(Error::Invalid("an entry that must be there is not".into())) }
}

impl RowOp {
    pub fn run(&self, txn: &mut Transaction) -> Result<()> {
        let mut old = Vec::new();
        match self {
            RowOp::Create(table) => {
                if maps(txn, *table)?.is_none() {
                    let (rows, index) = (txn.create_map()?, txn.create_map()?);
                    new(txn.insert(CATALOG, &name(*table), &encode(rows, index), &mut old)?)?;
                }
            }
            RowOp::Drop(table) => {
                if let Some((rows, index)) = maps(txn, *table)? {
                    txn.drop_map(rows)?;
                    txn.drop_map(index)?;
                    there(txn.delete(CATALOG, &name(*table))?)?;
                }
            }
            RowOp::Rebuild(table) => {
                let Some((rows, index)) = maps(txn, *table)? else { return Ok(()) };
                let fresh = txn.create_map()?;
                let found = all(txn, rows)?;
                let mut entries: Vec<Vec<u8>> = found.iter().map(|(key, value)| entry(key, value)).collect();
                entries.sort();
                entries.iter().try_for_each(|entry| new(txn.load(fresh, entry, b"")?))?;
                txn.drop_map(index)?;
                there(txn.update(CATALOG, &name(*table), &encode(rows, fresh))?)?;
            }
            RowOp::Put(table, key, value) => {
                let Some((rows, index)) = maps(txn, *table)? else { return Ok(()) };
                if txn.insert(rows, key, value, &mut old)? == Inserted::Exists {
                    there(txn.update(rows, key, value)?)?;
                    if entry(key, &old) == entry(key, value) {
                        return Ok(());
                    }
                    there(txn.delete(index, &entry(key, &old))?)?;
                }
                new(txn.insert(index, &entry(key, value), b"", &mut Vec::new())?)?;
            }
            RowOp::Delete(table, key) => {
                let Some((rows, index)) = maps(txn, *table)? else { return Ok(()) };
                if txn.get(rows, key, &mut old)? {
                    there(txn.delete(rows, key)?)?;
                    there(txn.delete(index, &entry(key, &old))?)?;
                }
            }
            RowOp::Lock(table, key) => {
                if let Some((rows, _)) = maps(txn, *table)? {
                    txn.lock_patiently(rows, key, Strength::Exclusive, &mut old)?;
                }
            }
            RowOp::RolledBack(ops) => {
                let savepoint = txn.savepoint();
                ops.iter().try_for_each(|op| op.run(txn))?;
                txn.rollback_to(savepoint)?;
            }
        }
        Ok(())
    }

    /// Returns whether the statement uses the table.
    pub fn is_of(&self, table: u8) -> bool {
        match self {
            RowOp::Create(of) | RowOp::Drop(of) | RowOp::Rebuild(of) => *of == table,
            RowOp::Put(of, ..) | RowOp::Delete(of, _) | RowOp::Lock(of, _) => *of == table,
            RowOp::RolledBack(ops) => ops.iter().any(|op| op.is_of(table)),
        }
    }

    pub fn apply(&self, tables: &mut Tables) {
        match self {
            RowOp::Create(table) => drop(tables.entry(*table).or_default()),
            RowOp::Drop(table) => drop(tables.remove(table)),
            RowOp::Put(table, key, value) => {
                if let Some(table) = tables.get_mut(table) {
                    table.insert(key.clone(), value.clone());
                }
            }
            RowOp::Delete(table, key) => {
                if let Some(table) = tables.get_mut(table) {
                    table.remove(key);
                }
            }
            RowOp::Rebuild(_) | RowOp::Lock(..) | RowOp::RolledBack(_) => {}
        }
    }

    pub fn brief(&self) -> String {
        match self {
            RowOp::Create(table) => format!("create t{table}"),
            RowOp::Drop(table) => format!("drop t{table}"),
            RowOp::Rebuild(table) => format!("index t{table}"),
            RowOp::Put(table, key, value) => format!("t{table}:{key:02x?}={}b", value.len()),
            RowOp::Delete(table, key) => format!("t{table}:{key:02x?} deleted"),
            RowOp::Lock(table, key) => format!("t{table}:{key:02x?} locked"),
            RowOp::RolledBack(ops) => {
                format!("rolled back [{}]", ops.iter().map(RowOp::brief).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn all(txn: &mut Transaction, map: MapId) -> Result<Table> {
    let mut cursor = txn.scan(map, Unbounded, Unbounded, false)?;
    let (mut batch, mut found) = (RowBatch::new(), Table::new());
    while cursor.next(txn, &mut batch)? {
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
    Ok(found)
}

/// Reads all tables as a new transaction sees them. An index that does not match its rows is an error.
pub fn read(txn: &mut Transaction) -> Result<Tables> {
    let mut tables = Tables::new();
    for (name, record) in all(txn, CATALOG)? {
        let (rows, index) = decode(&record);
        let (rows, index) = (all(txn, rows)?, all(txn, index)?);
        let expected: Table = rows.iter().map(|(key, value)| (entry(key, value), Vec::new())).collect();
        if index != expected {
            let what = format!(
                "table {}: {} rows, and an index of {} entries that does not match (SI-4)",
                name[1],
                rows.len(),
                index.len()
            );
            return Err(Error::Invalid(what));
        }
        tables.insert(name[1], rows);
    }
    Ok(tables)
}

fn draw_change(prng: &mut Prng, table: u8, keys: u64) -> RowOp {
    let key = prng.below(keys).to_be_bytes()[5..].to_vec();
    match prng.below(10) {
        0..6 => {
            let len = match prng.below(30) {
                0 => 262_000 + prng.below(2_000),
                1..4 => 1_200 + prng.below(4_000),
                _ => prng.below(300),
            };
            RowOp::Put(table, key, bytes(len as usize, prng.next_u64()))
        }
        6..9 => RowOp::Delete(table, key),
        _ => RowOp::Lock(table, key),
    }
}

/// Draws a transaction that is played by one step.
pub fn draw(prng: &mut Prng, keys: u64) -> Vec<RowOp> {
    let table = |prng: &mut Prng| prng.below(TABLES) as u8;
    // A load cannot be rolled back to a savepoint.
    let is_definition = prng.chance(0.3);
    let count = if prng.chance(0.2) { 20 + prng.below(100) } else { 1 + prng.below(6) };
    let change = |prng: &mut Prng| {
        let table = table(prng);
        draw_change(prng, table, keys)
    };
    let mut ops: Vec<RowOp> = (0..count).map(|_| change(prng)).collect();
    if is_definition {
        let table = table(prng);
        let definition = match prng.below(6) {
            0..3 => RowOp::Create(table),
            3..5 => RowOp::Rebuild(table),
            _ => RowOp::Drop(table),
        };
        let at = prng.below(count + 1) as usize;
        ops.insert(at, definition);
    } else if prng.chance(0.4) {
        let count = 1 + prng.below(40);
        let rolled_back = (0..count).map(|_| change(prng)).collect();
        let at = prng.below(ops.len() as u64 + 1) as usize;
        ops.insert(at, RowOp::RolledBack(rolled_back));
    }
    ops
}

/// Draws more statements of the open transaction, on a table that no other one changes.
pub fn draw_open_transaction(prng: &mut Prng) -> Vec<RowOp> {
    let count = 1 + prng.below(8);
    let change = |prng: &mut Prng| draw_change(prng, OPEN_TABLE, OPEN_TABLE_KEYS);
    std::iter::once(RowOp::Create(OPEN_TABLE)).chain((0..count).map(|_| change(prng))).collect()
}

/// Creates all tables, so that transactions over their rows define none.
pub fn draw_tables() -> Vec<RowOp> {
    (0..TABLES as u8).chain([OPEN_TABLE]).map(RowOp::Create).collect()
}

/// Draws a transaction that may meet the losers of a transaction that was open at a crash.
pub fn draw_beside(prng: &mut Prng) -> Vec<RowOp> {
    if prng.chance(0.06) {
        return vec![if prng.chance(0.5) { RowOp::Drop(OPEN_TABLE) } else { RowOp::Rebuild(OPEN_TABLE) }];
    }
    let count = 1 + prng.below(5);
    let change = |prng: &mut Prng| {
        let table = if prng.chance(0.7) { OPEN_TABLE } else { prng.below(TABLES) as u8 };
        draw_change(prng, table, OPEN_TABLE_KEYS)
    };
    (0..count).map(|_| change(prng)).collect()
}

pub fn draw_ending(prng: &mut Prng) -> Ending {
    match prng.below(8) {
        0..5 => Ending::Commit,
        5..7 => Ending::Rollback,
        _ => Ending::Forgotten,
    }
}
