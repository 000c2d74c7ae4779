//! REINDEX, VACUUM FULL and CHECKPOINT: what a database administrator asks of the storage.
//!
//! A new index is filled into a map of its own from the rows of the table, and the old map goes with the commit, as CREATE INDEX and DROP INDEX do it. The primary key is the order of the rows themselves, so
//! it is built anew together with them.

use std::sync::Arc;

use query::catalog::table::{Index, Table};
use query::key_form::KeyForm;
use syntax::postgres::tree::{RangeVar, ReindexStmt, ReindexTarget};

use super::index::{UNMADE, is_shown};
use super::names::Relation;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::role::CHECKPOINT;
use crate::session::{Session, is_on};

impl Session {
    pub(super) fn reindex(&mut self, reindex: &ReindexStmt) -> Result<()> {
        let ReindexStmt { options, target } = reindex;
        let mut concurrently = false;
        for option in options {
            match &*option.name {
                "concurrently" => concurrently = is_on(option),
                "verbose" => {}
                name => {
                    return Err(PgError::new(state::SYNTAX_ERROR, format!("unrecognized REINDEX option \"{name}\"")));
                }
            }
        }
        if concurrently {
            self.forbid_block("REINDEX CONCURRENTLY")?;
        }
        match target {
            ReindexTarget::Index(name) => self.reindex_index(name),
            ReindexTarget::Table(name) => {
                self.begin_definition("REINDEX")?;
                let table = match self.relation(name)? {
                    Some(Relation::Table(table)) => table,
                    Some(_) => return Err(super::names::not_a(&name.name, "table or materialized view")),
                    None => return Err(self.missing_relation(name, None)),
                };
                self.check_owns(&Object::table(&table))?;
                if !has_indexes(&table) {
                    let message = format!("table \"{}\" has no indexes to reindex", table.name);
                    self.skip_notice(super::SUCCESSFUL, message);
                    return Ok(());
                }
                self.reindex_table(&table)
            }
            ReindexTarget::Schema(name) => {
                self.forbid_block("REINDEX SCHEMA")?;
                self.begin_definition("REINDEX")?;
                let stored = self.stored_schema(&name.value)?;
                let Some(schema) = self.catalog.schemas.get(&stored).cloned() else {
                    return Err(super::names::missing_schema(&name.value));
                };
                self.check_owns(&Object::schema(&schema))?;
                let tables = schema.tables.values().cloned().collect();
                self.reindex_own(tables)
            }
            ReindexTarget::System(name) | ReindexTarget::Database(name) => {
                let is_system = matches!(target, ReindexTarget::System(_));
                if is_system && concurrently {
                    return Err(PgError::new(
                        state::FEATURE_NOT_SUPPORTED,
                        "cannot reindex system catalogs concurrently",
                    ));
                }
                self.forbid_block(if is_system { "REINDEX SYSTEM" } else { "REINDEX DATABASE" })?;
                self.begin_definition("REINDEX")?;
                if name.as_ref().is_some_and(|name| name.value != self.who.database) {
                    let message = "can only reindex the currently open database";
                    return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
                }
                if let Some(database) = self.database_object() {
                    self.check_owns(&database)?;
                }
                // The tables of the system catalogs are computed and have no indexes.
                let tables = if is_system { Vec::new() } else { self.tables_of_database() };
                self.reindex_own(tables)
            }
        }
    }

    fn reindex_index(&mut self, name: &RangeVar) -> Result<()> {
        self.begin_definition("REINDEX")?;
        let found = self.relation(name)?;
        let (table, at) = match &found {
            Some(Relation::Index(table, at)) => (table.clone(), *at),
            Some(_) => return Err(super::names::not_a(&name.name, "index")),
            None => return Err(self.missing_relation(name, None)),
        };
        self.check_owns_relation(&Relation::Index(table.clone(), at), &name.name)?;
        self.refuse_waiting(&table, "REINDEX INDEX")?;
        self.change_table(&table, |_, draft, _| {
            match draft.new.indexes.iter_mut().find(|index| at.is_some() && index.name == name.name) {
                Some(index) => make_anew(index),
                None => draft.moves = true,
            }
            Ok(())
        })
    }

    /// Builds the indexes of those of the tables that the current role owns and this dialect has made.
    fn reindex_own(&mut self, tables: Vec<Arc<Table>>) -> Result<()> {
        for table in self.rewritable(tables).iter().filter(|table| has_indexes(table)) {
            self.reindex_table(table)?;
        }
        Ok(())
    }

    fn reindex_table(&mut self, table: &Arc<Table>) -> Result<()> {
        self.refuse_waiting(table, "REINDEX TABLE")?;
        self.change_table(table, |_, draft, _| {
            draft.moves = draft.new.primary.is_some();
            draft.new.indexes.iter_mut().filter(|_| !draft.moves).for_each(make_anew);
            Ok(())
        })
    }

    /// Writes the rows and the indexes of tables anew, all in one transaction.
    pub(crate) fn vacuum_full(&mut self, tables: Vec<Arc<Table>>) -> Result<()> {
        self.begin_definition("VACUUM")?;
        let rewritten = self.rewritable(tables).iter().try_for_each(|table| {
            self.refuse_waiting(table, "VACUUM")?;
            self.change_table(table, |_, draft, _| {
                draft.moves = true;
                Ok(())
            })
        });
        self.take_back();
        rewritten
    }

    fn rewritable(&mut self, mut tables: Vec<Arc<Table>>) -> Vec<Arc<Table>> {
        tables.retain(|table| table.maker == crate::MAKER && self.check_owns(&Object::table(table)).is_ok());
        tables
    }

    /// CHECKPOINT: waits until all pages that are dirty now are written.
    pub(crate) fn checkpoint(&mut self) -> Result<()> {
        let identity = self.current_identity();
        if !self.is_super() && !identity.set.has(CHECKPOINT) {
            let message = "permission denied to execute CHECKPOINT command";
            let detail = "Only roles with privileges of the \"pg_checkpoint\" role may execute this command.";
            return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail));
        }
        self.database().engine().checkpoint().map_err(|error| query::engine_fault::engine_fault(error).into())
    }
}

fn has_indexes(table: &Table) -> bool {
    table.primary.is_some() || table.indexes.iter().any(is_shown)
}

/// Gives an index a new map, which is filled when the change is settled.
fn make_anew(index: &mut Index) {
    (index.map, index.form) = (UNMADE, KeyForm::Hashed);
}
