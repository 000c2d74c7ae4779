//! TRUNCATE: new maps for a table's rows, or within a transaction block a DELETE of all of them, which can be undone.

use std::sync::Arc;

use query::catalog::Snapshot;
use query::catalog::table::Table;
use query::key_form::KeyForm;
use query::session::definitions::RelatedTables;
use syntax::postgres::tree::TruncateStmt;

use crate::define::alter::CASCADE_HINT;
use crate::error::{PgError, Result, state};
use crate::session::{Session, quoted};

impl Session {
    pub(super) fn truncate(&mut self, truncate: &TruncateStmt) -> Result<()> {
        let TruncateStmt { relations, restart_identity, cascade } = truncate;
        self.check_writable("TRUNCATE TABLE")?;
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for name in relations {
            let table = self.table_named(name)?;
            if !tables.iter().any(|known| known.id == table.id) {
                tables.push(table);
            }
        }
        let mut at = 0;
        while at < tables.len() {
            let table = tables[at].clone();
            for child in self.catalog.children_now(&table.schema, &table.name) {
                if tables.iter().any(|known| known.id == child.id) {
                    continue;
                }
                if !cascade {
                    let message = "cannot truncate a table referenced in a foreign key constraint";
                    let error = PgError::new(state::FEATURE_NOT_SUPPORTED, message);
                    let detail = format!("Table \"{}\" references \"{}\".", child.name, table.name);
                    let hint =
                        format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", child.name);
                    return Err(error.detail(detail).hint(hint));
                }
                let message = format!("truncate cascades to table \"{}\"", child.name);
                self.skip_notice(super::SUCCESSFUL, message);
                tables.push(child);
            }
            at += 1;
        }
        let _ = CASCADE_HINT;
        if self.has_changed_before() || tables.iter().any(|table| table.temporary) {
            if *restart_identity {
                return Err(PgError::unsupported("TRUNCATE ... RESTART IDENTITY within a transaction block"));
            }
            // Children first.
            return tables.iter().rev().try_for_each(|table| self.delete_all(table));
        }
        self.commit_reads()?;
        self.truncate_now(&tables, *restart_identity)
    }

    fn delete_all(&mut self, table: &Arc<Table>) -> Result<()> {
        let schema = super::names::schema_of(&table.schema);
        let text: Arc<str> = format!("delete from {}.{}", quoted(schema), quoted(&table.name)).into();
        self.run_text(&text)
    }

    fn truncate_now(&mut self, tables: &[Arc<Table>], restart_identity: bool) -> Result<()> {
        let db = self.database().clone();
        let needs = |snapshot: &Snapshot| {
            let named = tables.iter().map(|table| snapshot.table(&table.schema, &table.name).cloned());
            // No constraint is added or dropped.
            Ok(RelatedTables { changed: named.collect::<datum::Result<_>>()?, tied: Vec::new() })
        };
        let (_closed, mut writing) = self.close_and_write(&db, needs)?;
        let changed = needs(&writing.snapshot)?.changed;
        for old in &changed {
            let mut new = old.copy();
            writing.txn.drop_map(old.map)?;
            (new.map, new.primary_form) = (writing.txn.create_map()?, KeyForm::Hashed);
            for index in &mut new.indexes {
                writing.txn.drop_map(index.map)?;
                (index.map, index.form) = (writing.txn.create_map()?, KeyForm::Hashed);
            }
            writing.put_table(new)?;
            if restart_identity {
                for id in old.columns.iter().flat_map(|column| &column.sequences) {
                    let mut all = writing.snapshot.schemas.values().flat_map(|schema| schema.sequences.values());
                    if let Some(sequence) = all.find(|sequence| sequence.id == *id).cloned() {
                        let start = sequence.parameters.start;
                        writing.alter_sequence(query::catalog::sequence::Sequence::clone(&sequence), Some(start))?;
                    }
                }
            }
        }
        self.finish(writing)?;
        for old in &changed {
            old.live.forget();
            *old.live.row_id.lock() = 0;
        }
        Ok(())
    }
}
