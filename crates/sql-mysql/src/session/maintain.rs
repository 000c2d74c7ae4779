//! CHECK, OPTIMIZE, REPAIR and CHECKSUM TABLE: result rows for each table instead of errors.
//!
//! CHECK verifies the table at a snapshot, as `beluga check` does, so writers continue. OPTIMIZE rebuilds the table.
//! REPAIR has nothing to do that recovery at start does not.

use std::ops::Bound::Unbounded;
use std::sync::Arc;

use engine::rows::RowBatch;

use crate::batch::Row;
use crate::check;
use crate::error::{self, Result, SqlError};
use crate::parse::statement::{Alteration, Maintenance, Name};
use crate::scalar::functions::crc32_of;
use crate::session::session_tracking::READ;
use crate::session::{Outcome, Session, number_column, text_column};
use crate::system::value_text;
use crate::types::Column;
use crate::value::Value;
use query::catalog::table::Table;
use query::exec::generated;

/// The messages about one table: (type, text).
type Said = Vec<(&'static str, String)>;

impl Session {
    pub(super) fn maintain(&mut self, what: Maintenance, names: &[Name]) -> Result<Outcome> {
        let verb = match what {
            Maintenance::Analyze => return self.analyze_tables(names, None),
            Maintenance::Check => "check",
            Maintenance::Optimize => "optimize",
            Maintenance::Repair => "repair",
            Maintenance::Checksum(quick) => return self.checksums(names, quick),
        };
        let mut rows: Vec<Row> = Vec::new();
        for name in names {
            let (schema, name) = self.full_name(name)?;
            let said = match self.maintained(what, &schema, &name) {
                Ok(said) => said,
                Err(error) if is_of_table(&error) => {
                    vec![("Error", error.message), ("status", "Operation failed".to_owned())]
                }
                Err(error) => return Err(error),
            };
            let shown = Value::text(format!("{schema}.{name}"));
            let row = |(kind, words): (&str, String)| {
                vec![shown.clone(), Value::text(verb), Value::text(kind), Value::text(words)]
            };
            rows.extend(said.into_iter().map(row));
            // A table that is done is not done again, so the next is waited for with the thread.
            self.core.locks.suspend(false);
        }
        let columns: Vec<Column> = ["Table", "Op", "Msg_type", "Msg_text"].map(text_column).into();
        Ok(self.rows(columns, rows))
    }

    fn maintained(&mut self, what: Maintenance, schema: &str, name: &str) -> Result<Said> {
        let fine = || ("status", "OK".to_owned());
        if self.catalog.view(schema, name).is_some() {
            // For views, CHECK alone is defined: it tests whether the view can be read.
            if what != Maintenance::Check {
                return Err(error::WRONG_OBJECT.with(&[&schema, &name, &"BASE TABLE"]));
            }
            let view = self.catalog.view(schema, name).cloned();
            view.map(|view| self.columns_of_view(&view)).transpose()?;
            return Ok(vec![fine()]);
        }
        let table = self.catalog.table(schema, name)?.clone();
        match what {
            Maintenance::Check => self.checked(&table),
            Maintenance::Optimize => {
                let name = Name { schema: Some(schema.to_owned()), name: name.to_owned() };
                self.alter_table(&name, &[Alteration::Rebuild])?;
                self.core.locks.suspend(false);
                self.refresh();
                self.analyze(schema, &name.name)?;
                let note = "Table does not support optimize, doing recreate + analyze instead";
                Ok(vec![("note", note.to_owned()), fine()])
            }
            Maintenance::Repair => {
                Ok(vec![("note", "The storage engine for the table doesn't support repair".to_owned())])
            }
            Maintenance::Analyze | Maintenance::Checksum(_) => Ok(vec![fine()]),
        }
    }

    /// Returns the table's newest definition.
    fn catalog_table(&mut self, schema: &str, name: &str) -> Result<Arc<Table>> {
        self.refresh();
        Ok(self.catalog.table(schema, name)?.clone())
    }

    /// Returns the table under a shared metadata lock.
    fn passed(&mut self, table: &Arc<Table>) -> Result<Arc<Table>> {
        for _ in 0..100 {
            let table = self.catalog_table(&table.schema, &table.name)?;
            self.check_locked(std::slice::from_ref(&table), &[])?;
            if self.share_tables(std::slice::from_ref(&table))? {
                return Ok(table);
            }
        }
        Err(error::LOCK_WAIT_TIMEOUT.bare())
    }

    fn checked(&mut self, table: &Arc<Table>) -> Result<Said> {
        let table = self.passed(table)?;
        let (db, snapshot) = (self.db.clone(), self.catalog.clone());
        let report = check::check_table(&db, &table, &snapshot, &mut |_| self.host().look_up());
        self.commit()?;
        let report = report?;
        if report.problems.is_empty() {
            return Ok(vec![("status", "OK".to_owned())]);
        }
        let problems = report.problems.into_iter().map(|problem| ("error", problem));
        Ok(problems.chain([("error", "Corrupt".to_owned())]).collect())
    }

    /// CHECKSUM TABLE: a sum that is independent of row order and indexes. The table is read in the current
    /// transaction.
    fn checksums(&mut self, names: &[Name], quick: bool) -> Result<Outcome> {
        let mut rows: Vec<Row> = Vec::new();
        for name in names {
            let (schema, name) = self.full_name(name)?;
            // QUICK: no checksum is maintained.
            let found = self.catalog.table(&schema, &name).cloned().map_err(SqlError::from);
            let sum =
                found.and_then(|table| if quick { Ok(Value::Null) } else { self.checksum(&table).map(Value::UInt) });
            let sum = match sum {
                Ok(sum) => sum,
                Err(error) if !is_of_table(&error) => return Err(error),
                Err(error) => {
                    self.ctx.warnings.push(query::nodes::context::Level::Error, error);
                    Value::Null
                }
            };
            rows.push(vec![Value::text(format!("{schema}.{name}")), sum]);
            self.core.locks.suspend(false);
        }
        self.end_statement()?;
        Ok(self.rows(vec![text_column("Table"), number_column("Checksum")], rows))
    }

    fn checksum(&mut self, table: &Arc<Table>) -> Result<u64> {
        let table = self.passed(table)?;
        let environment = self.bind_environment();
        crate::bind::Bind::new(&environment).formulas(&table)?;
        drop(environment);
        let named: Vec<usize> = table.named().map(|(at, _)| at).collect();
        let needed = table.with_sources(named.clone());
        (self.is_bare, self.has_used_tables) = (false, true);
        self.need_transaction();
        self.track_deed(READ);
        let txn = self.host().txn()?;
        txn.begin_statement();
        let mut cursor = txn.scan(table.map, Unbounded, Unbounded, false)?;
        let (mut batch, mut row, mut sum) = (RowBatch::new(), vec![Value::Null; table.columns.len()], 0u32);
        while cursor.next(self.host().txn()?, &mut batch)? {
            self.host().look_up()?;
            for (_, bytes) in batch.iter() {
                generated::decode(&table, bytes, &needed, &mut row, &mut self.ctx)?;
                let mut shown = Vec::new();
                for at in &named {
                    match &row[*at] {
                        Value::Null => shown.extend_from_slice(&0u64.to_le_bytes()),
                        value => {
                            let text = value_text(value, &table.columns[*at].ty, &mut self.ctx);
                            shown.extend_from_slice(&(text.len() as u64 + 1).to_le_bytes());
                            shown.extend_from_slice(text.as_bytes());
                        }
                    }
                }
                sum = sum.wrapping_add(crc32_of(&shown));
            }
        }
        Ok(u64::from(sum))
    }
}

/// Returns whether the error concerns this table only, so that the next one can be processed.
fn is_of_table(error: &SqlError) -> bool {
    [
        error::NO_SUCH_TABLE,
        error::WRONG_OBJECT,
        error::VIEW_INVALID,
        error::BAD_DB,
        error::TABLE_NOT_LOCKED,
        error::TABLE_NOT_LOCKED_FOR_WRITE,
    ]
    .iter()
    .any(|code| code.is(error))
}
