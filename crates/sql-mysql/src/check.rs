//! Consistency checks of tables and indexes, for `beluga check` (without other activity) and CHECK TABLE (at a
//! snapshot).
//!
//! Each row must be under its own key and have its entry in every index, with exactly the bytes that the row
//! determines. An index has as many entries as its table has rows, or terms of rows (QU-66), and each names a row. Every map of the engine
//! belongs to a table.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use datum::Result;
use engine::rows::{CATALOG, Isolation, MapId, RowBatch, Transaction};

use crate::error::SqlError;
use crate::instance::database::Database;
use crate::value::Value;
use query::catalog::foreign_key::ForeignKey;
use query::catalog::table::{Index, Table};
use query::catalog::{Snapshot, decode};
use query::engine_fault::engine_fault;
use query::exec::foreign::each_orphan;
use query::key;

/// The most problems that are described for one table or index; more are only counted.
const NAMED_MAX: usize = 10;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub tables: u64,
    pub rows: u64,
    pub entries: u64,
    /// One line for each problem.
    pub problems: Vec<String>,
    /// Deviations that a user has asked for: rows without parents, written while foreign keys were not checked.
    pub notes: Vec<String>,
}

/// Checks every table. An error means that the check could not continue.
pub fn check(db: &Database) -> Result<Report> {
    let mut report = Report::default();
    let snapshot = db.catalog().snapshot();
    let tables = snapshot.schemas.values().flat_map(|schema| schema.tables.values());
    let mut used = BTreeSet::from([CATALOG]);
    for table in tables {
        used.insert(table.map);
        used.extend(table.indexes.iter().map(|index| index.map));
        Walk::new(db, table, &mut report, &mut |_| Ok(())).whole(&snapshot)?;
    }
    used.extend(db.catalog().temporary_maps()?);
    for map in db.engine().rows().maps().into_iter().filter(|map| !used.contains(map)) {
        report.problems.push(format!("map {map} belongs to no table"));
    }
    Ok(report)
}

/// Checks one table at a snapshot, beside other activity. `tick` is called now and then, and its error ends the check.
pub(crate) fn check_table(
    db: &Database,
    table: &Table,
    snapshot: &Snapshot,
    tick: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Report> {
    let mut report = Report::default();
    Walk::new(db, table, &mut report, tick).whole(snapshot)?;
    Ok(report)
}

struct Walk<'w> {
    table: &'w Table,
    report: &'w mut Report,
    /// The transaction whose snapshot is read; taken out while rows are scanned.
    txn: Option<Transaction>,
    tick: &'w mut dyn FnMut(usize) -> Result<()>,
}

/// Counted problems of one kind.
#[derive(Default)]
struct Wrong {
    named: Vec<String>,
    count: usize,
}

impl Wrong {
    fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(what());
        }
    }
}

impl<'w> Walk<'w> {
    fn new(
        db: &Database,
        table: &'w Table,
        report: &'w mut Report,
        tick: &'w mut dyn FnMut(usize) -> Result<()>,
    ) -> Walk<'w> {
        let mut txn = db.engine().rows().begin(Isolation::RepeatableRead);
        txn.take_snapshot();
        Walk { table, report, txn: Some(txn), tick }
    }

    fn name(&self) -> String {
        format!("table {}.{}", self.table.schema, self.table.name)
    }

    /// Checks the table with its indexes and constraints.
    fn whole(mut self, snapshot: &Snapshot) -> Result<()> {
        self.table()?;
        let table = self.table;
        table.foreign_keys.iter().try_for_each(|key| self.orphans(key, snapshot))
    }

    fn table(&mut self) -> Result<()> {
        self.report.tables += 1;
        let (mut wrong, mut rows) = (Wrong::default(), 0);
        let mut entries = vec![0; self.table.indexes.len()];
        let needed: Vec<usize> = (0..self.table.columns.len()).collect();
        let mut row = vec![Value::Null; needed.len()];
        self.each(self.table.map, |walk, txn, row_key, bytes| {
            rows += 1;
            match decode::decode(walk.table, bytes, &needed, &mut row) {
                Ok(()) => walk.row(txn, row_key, &row, (&mut entries, &mut wrong)),
                Err(error) => {
                    wrong.add(|| format!("row {}: {error}", hex(row_key)));
                    Ok(())
                }
            }
        })?;
        self.report.rows += rows;
        self.tell(&self.name(), wrong);
        for (index, entries) in self.table.indexes.iter().zip(entries) {
            self.index(index, entries)?;
        }
        Ok(())
    }

    /// Checks a row's own key and its index entries, and counts them.
    fn row(
        &self,
        txn: &mut Transaction,
        row_key: &[u8],
        row: &[Value],
        (entries, wrong): (&mut [u64], &mut Wrong),
    ) -> Result<()> {
        let (mut key, mut value, mut found) = (Vec::new(), Vec::new(), Vec::new());
        if self.table.primary.is_some() {
            key::primary(self.table, row, &mut key)?;
            if key != row_key {
                wrong.add(|| format!("row {}: its columns make it {}", hex(row_key), hex(&key)));
            }
        }
        let indexes = self.table.indexes.iter().zip(entries).filter(|(index, _)| index.has_entry(row));
        for (index, count) in indexes {
            key::each_entry(self.table, index, (row, row_key), (&mut key, &mut value), |key, value| {
                *count += 1;
                found.clear();
                if !txn.get(index.map, key, &mut found).map_err(engine_fault)? {
                    wrong.add(|| format!("row {}: index {} lacks it", hex(row_key), index.name));
                } else if found != value {
                    wrong.add(|| {
                        format!(
                            "row {}: index {} names row {} in its place",
                            hex(row_key),
                            index.name,
                            hex(key::row_key(key, &found))
                        )
                    });
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Checks that an index has no more entries than the rows of its table have in it.
    fn index(&mut self, index: &Index, wanted: u64) -> Result<()> {
        let (mut wrong, mut entries) = (Wrong::default(), 0);
        let map = self.table.map;
        self.each(index.map, |_, txn, key, value| {
            entries += 1;
            let row_key = key::row_key(key, value);
            if !txn.get(map, row_key, &mut Vec::new()).map_err(engine_fault)? {
                wrong.add(|| format!("entry {} names row {}, which is not there", hex(key), hex(row_key)));
            }
            Ok(())
        })?;
        if entries != wanted {
            wrong.add(|| match index.terms {
                None => format!("{entries} entries for {wanted} rows"),
                Some(_) => format!("{entries} entries for {wanted} terms of rows"),
            });
        }
        self.report.entries += entries;
        self.tell(&format!("{}, index {}", self.name(), index.name), wrong);
        Ok(())
    }

    /// Checks that every row has its parents, unless the table is marked as unchecked (QU-7) or the foreign key has not been validated.
    fn orphans(&mut self, key: &ForeignKey, snapshot: &Snapshot) -> Result<()> {
        let whose = format!("{}, foreign key {}", self.name(), key.name);
        let vouched = key.is_validated && !self.table.live.unchecked.load(Ordering::Acquire);
        // A parent may be missing: dropped, or not yet created, while foreign_key_checks was off (QU-6). Rows that
        // refer to it are damage if they were checked (QU-7).
        let Ok(parent) = snapshot.table(&key.parent_schema, &key.parent) else {
            return self.without_parent(&whose, key, vouched);
        };
        let mut wrong = Wrong::default();
        match key.fit(self.table, parent) {
            Err(fault) => wrong.add(|| SqlError::from(fault).message),
            Ok(by) => {
                let Some(txn) = &mut self.txn else { return Ok(()) };
                let orphan = |row_key: &[u8], _: &[Value]| {
                    wrong.add(|| format!("row {} has no parent", hex(row_key)));
                    Ok(())
                };
                each_orphan(txn, self.table, key, parent, by, &mut *self.tick, orphan)?;
            }
        }
        if vouched {
            self.tell(&whose, wrong);
        } else if wrong.count > 0 {
            let since = match key.is_validated {
                true => "from times when foreign_key_checks was off",
                false => "which are older than the constraint, and it is NOT VALID",
            };
            self.report.notes.push(format!("{whose}: {} without a parent, {since}", wrong.count));
        }
        Ok(())
    }

    /// The parent table does not exist, so every row with a key without NULLs is an orphan.
    fn without_parent(&mut self, whose: &str, key: &ForeignKey, vouched: bool) -> Result<()> {
        let (mut wrong, mut row) = (Wrong::default(), vec![Value::Null; self.table.columns.len()]);
        self.each(self.table.map, |walk, _, row_key, bytes| {
            decode::decode(walk.table, bytes, &key.columns, &mut row)?;
            if !key.columns.iter().any(|at| row[*at].is_null()) {
                wrong.add(|| format!("row {} has no parent", hex(row_key)));
            }
            Ok(())
        })?;
        let parent = format!("{}.{}", key.parent_schema, key.parent);
        match (vouched, wrong.count) {
            (_, 0) => self.report.notes.push(format!("{whose}: its parent table {parent} does not exist")),
            (false, count) => self
                .report
                .notes
                .push(format!("{whose}: {count} without a parent, since its parent table {parent} does not exist")),
            (true, _) => self.tell(whose, wrong),
        }
        Ok(())
    }

    fn each(
        &mut self,
        map: MapId,
        mut f: impl FnMut(&Self, &mut Transaction, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(mut txn) = self.txn.take() else { return Ok(()) };
        let mut cursor = txn.scan(map, Bound::Unbounded, Bound::Unbounded, false).map_err(engine_fault)?;
        let mut batch = RowBatch::new();
        while cursor.next(&mut txn, &mut batch).map_err(engine_fault)? {
            (self.tick)(batch.len())?;
            for (key, value) in batch.iter() {
                f(self, &mut txn, key, value)?;
            }
        }
        self.txn = Some(txn);
        Ok(())
    }

    fn tell(&mut self, whose: &str, wrong: Wrong) {
        let more = wrong.count - wrong.named.len();
        self.report.problems.extend(wrong.named.into_iter().map(|what| format!("{whose}: {what}")));
        if more > 0 {
            self.report.problems.push(format!("{whose}: {more} problems more"));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
