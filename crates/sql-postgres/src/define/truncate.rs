//! TRUNCATE: new maps for a table's rows.

use std::sync::Arc;

use query::catalog::sequence::Sequence;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::catalog::{Snapshot, Writing};
use query::exec::rebuild;
use query::session::definitions::{RelatedTables, after_truncate};
use syntax::postgres::tree::TruncateStmt;

use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::privilege::TRUNCATE;
use crate::session::Session;

impl Session {
    pub(super) fn truncate(&mut self, truncate: &TruncateStmt) -> Result<()> {
        let TruncateStmt { relations, restart_identity, cascade } = truncate;
        self.begin_definition("TRUNCATE TABLE")?;
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for name in relations {
            let table = self.table_named(name)?;
            self.check_privileges(&Object::table(&table), TRUNCATE)?;
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
                self.check_privileges(&Object::table(&child), TRUNCATE)?;
                tables.push(child);
            }
            at += 1;
        }
        for table in &tables {
            self.refuse_waiting(table, "TRUNCATE")?;
        }
        let (temporary, shared): (Vec<_>, Vec<_>) = tables.into_iter().partition(|table| table.temporary);
        if !shared.is_empty() {
            self.empty(&shared, *restart_identity)?;
        }
        match temporary.is_empty() {
            true => Ok(()),
            false => self.empty_temporary(&temporary, *restart_identity),
        }
    }

    fn empty(&mut self, tables: &[Arc<Table>], restart_identity: bool) -> Result<()> {
        let db = self.database().clone();
        let needs = |snapshot: &Snapshot| {
            let named = tables.iter().map(|table| snapshot.table(&table.schema, &table.name).cloned());
            // No constraint is added or dropped.
            Ok(RelatedTables { changed: named.collect::<datum::Result<_>>()?, tied: Vec::new() })
        };
        let writing = self.lock_and_write(&db, TableMode::AccessExclusive, needs)?;
        let changed = needs(&writing.snapshot)?.changed;
        self.give_new_maps(writing, &changed, restart_identity)
    }

    /// Removes all rows of temporary tables.
    pub(crate) fn empty_temporary(&mut self, tables: &[Arc<Table>], restart_identity: bool) -> Result<()> {
        let db = self.database().clone();
        let writing = self.write_temporary(&db)?;
        self.give_new_maps(writing, tables, restart_identity)
    }

    fn give_new_maps(&mut self, mut writing: Writing<'_>, tables: &[Arc<Table>], restart_identity: bool) -> Result<()> {
        for old in tables {
            rebuild::truncate(&mut writing, old)?;
            if restart_identity {
                for id in old.columns.iter().flat_map(|column| &column.sequences) {
                    let mut all = writing.snapshot.schemas.values().flat_map(|schema| schema.sequences.values());
                    if let Some(sequence) = all.find(|sequence| sequence.id == *id).cloned() {
                        let start = sequence.parameters.start;
                        writing.alter_sequence(Sequence::clone(&sequence), Some(start))?;
                    }
                }
            }
        }
        self.finish(writing)?;
        tables.iter().for_each(|old| after_truncate(old));
        Ok(())
    }
}
