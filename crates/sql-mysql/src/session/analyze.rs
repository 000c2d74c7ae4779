//! Statistics of tables: ANALYZE TABLE and automatic sampling.
//!
//! Planning over a table without statistics, or with stale ones (a tenth of the rows changed), first samples some leaf
//! pages (`sampling::QUICK`). The statement pays for no more than that, and one session samples at a time; others plan
//! with the old statistics. The sampler holds the table's metadata lock, so statistics are never kept for a dropped
//! table.

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::Fault;

use crate::batch::Row;
use crate::error::{self, Result};
use crate::instance::handle::Kill;
use crate::parse::statement::{Histograms, Name};
use crate::session::{Outcome, Session, text_column};
use crate::types::Column;
use crate::value::Value;
use query::catalog::sampling::{self, Effort, QUICK, THOROUGH};
use query::catalog::statistics::{ColumnStatistics, Histogram, Statistics, is_spread};
use query::catalog::table::Table;
use query::catalog::table_lock::{NO_WAIT, TableClaim, TableMode};
use query::session::metadata_locks::Patience;

/// Statistics of smaller tables are not persisted; they are sampled again after a restart.
const KEPT_ROWS: u64 = 2000;

/// Releases the sampling right and the metadata lock on drop.
struct Gatherer<'t> {
    table: &'t Table,
    is_inside: bool,
}

impl Drop for Gatherer<'_> {
    fn drop(&mut self) {
        if self.is_inside {
            self.table.live.table_lock.release(TableMode::AccessShare);
        }
        self.table.live.give_up();
    }
}

impl Session {
    /// Refreshes the table's statistics before planning if they are missing or stale.
    pub(super) fn know(&self, table: &Arc<Table>) {
        let live = &table.live;
        match live.statistics() {
            Some(known) if live.is_unsure() => {
                let Ok(rows) = sampling::count(self.db.engine(), table) else { return };
                if !known.is_off(rows) {
                    live.be_sure(rows as u64);
                    return;
                }
            }
            Some(_) if !live.is_old() => return,
            _ => {}
        }
        if !live.begin_gathering() {
            return;
        }
        let mut gatherer = Gatherer { table, is_inside: false };
        // Does not wait: a concurrent change of the definition invalidates the plan anyway.
        gatherer.is_inside = live.table_lock.acquire(TableMode::AccessShare, TableClaim::default(), NO_WAIT).is_ok();
        if !gatherer.is_inside || !live.is_current(table.version) {
            return;
        }
        if let Ok(statistics) = self.gather(table, QUICK) {
            if statistics.rows >= KEPT_ROWS {
                // A full disk must not fail a read.
                let _ = self.db.catalog().keep_statistics(table, &statistics);
            }
            live.learn(Arc::new(statistics));
        }
    }

    /// Samples the table and carries over its histograms.
    fn gather(&self, table: &Table, effort: Effort) -> Result<Statistics> {
        let mut look_up = || self.look_up();
        let mut statistics = sampling::gather(self.db.engine(), table, effort, &mut look_up)?;
        let Some(before) = table.live.statistics() else { return Ok(statistics) };
        for column in &before.columns {
            if let Some(histogram) = &column.histogram {
                set_histogram(&mut statistics, column.slot, Some(histogram.clone()));
            }
        }
        Ok(statistics)
    }

    fn look_up(&self) -> datum::Result<()> {
        if self.handle.killed() == Kill::No { Ok(()) } else { Err(Fault::Interrupted) }
    }

    pub(super) fn analyze_tables(&mut self, names: &[Name], histograms: Option<&Histograms>) -> Result<Outcome> {
        let mut rows = Vec::new();
        match histograms {
            None => {
                for name in names {
                    let (schema, name) = self.full_name(name)?;
                    let shown = format!("{schema}.{name}");
                    match self.analyze(&schema, &name) {
                        Ok(()) => rows.push(told(&shown, "analyze", "status", "OK")),
                        Err(error) if error.code == error::QUERY_INTERRUPTED.code || error::SUSPENDED.is(&error) => {
                            return Err(error);
                        }
                        Err(error) => {
                            rows.push(told(&shown, "analyze", "Error", &error.message));
                            rows.push(told(&shown, "analyze", "status", "Operation failed"));
                        }
                    }
                    // A table that is done is not done again, so the next is waited for with the thread.
                    self.core.locks.suspend(false);
                }
            }
            Some(_) if names.len() > 1 => {
                let message = "Only one table can be specified while modifying histogram statistics.";
                rows.push(told("", "histogram", "Error", message));
            }
            Some(histograms) => {
                let (schema, name) = self.full_name(&names[0])?;
                let shown = format!("{schema}.{name}");
                match self.modify_histograms(&schema, &name, histograms) {
                    Ok(lines) => {
                        rows.extend(lines.into_iter().map(|(kind, line)| told(&shown, "histogram", kind, &line)));
                    }
                    Err(error) if error.code == error::NO_SUCH_TABLE.code => {
                        rows.push(told(&shown, "histogram", "Error", &error.message));
                        rows.push(told(&shown, "histogram", "status", "Operation failed"));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let columns: Vec<Column> = ["Table", "Op", "Msg_type", "Msg_text"].map(text_column).into();
        Ok(self.rows(columns, rows))
    }

    fn base(&self, schema: &str, name: &str) -> Result<Arc<Table>> {
        if self.catalog.view(schema, name).is_some() {
            return Err(error::WRONG_OBJECT.with(&[&schema, &name, &"BASE TABLE"]));
        }
        Ok(self.catalog.table(schema, name)?.clone())
    }

    pub(super) fn analyze(&mut self, schema: &str, name: &str) -> Result<()> {
        let table = self.base(schema, name)?;
        self.alone(&table, |session| session.gather(&table, THOROUGH))
    }

    /// Installs and persists the statistics that `make` returns. No other session samples the table meanwhile.
    fn alone(&mut self, table: &Arc<Table>, make: impl FnOnce(&Session) -> Result<Statistics>) -> Result<()> {
        let (wait, handle) = (self.mdl_wait(), self.handle.clone());
        let _used = match self.core.locks.explicit_lock(table) {
            None => {
                let patience = Patience { wait, is_interrupted: &|| handle.is_interrupted() };
                Some(self.core.locks.use_apart(table, patience)?)
            }
            Some(_) => None,
        };
        sampling::claim(table, &mut || self.look_up())?;
        let _gatherer = Gatherer { table, is_inside: false };
        if !table.live.is_current(table.version) {
            return Err(error::TABLE_DEF_CHANGED.bare());
        }
        let statistics = make(self)?;
        let gate = self.db.catalog().keep_statistics(table, &statistics)?;
        self.core.transaction.raise_durability_lsn(gate);
        table.live.learn(Arc::new(statistics));
        Ok(())
    }

    /// Returns a line for each column, by name.
    fn modify_histograms(
        &mut self,
        schema: &str,
        name: &str,
        histograms: &Histograms,
    ) -> Result<Vec<(&'static str, String)>> {
        let table = self.base(schema, name)?;
        let mut lines = BTreeMap::new();
        self.alone(&table, |session| {
            let mut statistics = match table.live.statistics() {
                Some(known) => Statistics::clone(&known),
                None => session.gather(&table, QUICK)?,
            };
            for column in histograms.columns() {
                let line = session.modify_histogram(&table, column, histograms, &mut statistics)?;
                lines.insert(column.to_lowercase(), line);
            }
            Ok(statistics)
        })?;
        Ok(lines.into_values().collect())
    }

    fn modify_histogram(
        &self,
        table: &Table,
        name: &str,
        histograms: &Histograms,
        statistics: &mut Statistics,
    ) -> Result<(&'static str, String)> {
        let Some(at) = table.column(name) else {
            return Ok(("Error", format!("The column '{name}' does not exist.")));
        };
        let column = &table.columns[at];
        let has = statistics.column(column.slot).is_some_and(|column| column.histogram.is_some());
        let made = match histograms {
            Histograms::Drop(_) if !has => {
                return Ok(("Error", format!("No histogram statistics found for column '{}'.", column.name)));
            }
            Histograms::Drop(_) => None,
            Histograms::Update(..) if !is_spread(&column.ty) || column.is_computed() => {
                return Ok(("Error", format!("The column '{}' has an unsupported data type.", column.name)));
            }
            Histograms::Update(..) if is_unique(table, at) => {
                return Ok((
                    "Error",
                    format!("The column '{}' is covered by a single-part unique index.", column.name),
                ));
            }
            Histograms::Update(_, wanted) => {
                let mut look_up = || self.look_up();
                Some(sampling::histogram(self.db.engine(), table, at, *wanted, &mut look_up)?)
            }
        };
        let word = if made.is_some() { "created" } else { "removed" };
        set_histogram(statistics, column.slot, made);
        Ok(("status", format!("Histogram statistics {word} for column '{}'.", column.name)))
    }
}

/// Returns whether the column alone is a unique key.
fn is_unique(table: &Table, column: usize) -> bool {
    let indexes = table.indexes.iter().filter(|index| index.is_key() && !index.invisible).map(|index| &index.parts[..]);
    let mut keys = table.primary.iter().map(Vec::as_slice).chain(indexes);
    keys.any(|parts| matches!(parts, [part] if part.column == column))
}

fn set_histogram(statistics: &mut Statistics, slot: usize, histogram: Option<Histogram>) {
    match statistics.columns.iter_mut().find(|column| column.slot == slot) {
        Some(column) => column.histogram = histogram,
        None => statistics.columns.push(ColumnStatistics { slot, histogram, ..ColumnStatistics::default() }),
    }
}

fn told(table: &str, op: &str, kind: &str, text: &str) -> Row {
    [table, op, kind, text].map(Value::text).into()
}
