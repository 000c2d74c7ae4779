//! Temporary relations: the schema that holds them, and changes of them.
//!
//! Each session has a schema `pg_temp_N`, laid over the definitions that all sessions see from its first temporary object on (QU-69). The name `pg_temp` means it, and the names of relations are looked up there before all others unless `search_path` has a place for it.

use std::sync::Arc;

use query::catalog::Writing;
use query::catalog::sequence::Sequence;
use query::catalog::table::Table;
use query::catalog::view::View;
use syntax::postgres::tree::{OnCommit, Persistence, RangeVar};

use crate::define::drop::Gone;
use crate::define::names::{PG_TEMP, missing_schema, schema_in};
use crate::error::{PgError, Result, state};
use crate::instance::database::Database;
use crate::session::Session;

impl Session {
    /// Returns the schema in which a relation is made, by its stored name, and whether the relation is temporary.
    pub(super) fn creation_place(&mut self, name: &RangeVar, persistence: Persistence) -> Result<(String, bool)> {
        let refused = |message: &str| Err(PgError::new(state::INVALID_TABLE_DEFINITION, message));
        self.check_database(name)?;
        self.refresh();
        let own = self.stored_schema(&self.temporary_schema_name())?;
        if persistence == Persistence::Temporary {
            return match name.schema.as_deref() {
                None | Some(PG_TEMP) => Ok((own, true)),
                Some(schema) if self.stored_schema(schema)? == own => Ok((own, true)),
                Some(schema) if !self.has_schema(schema) => Err(missing_schema(schema)),
                Some(_) => refused("cannot create temporary relation in non-temporary schema"),
            };
        }
        let schema = self.creation_schema(name)?;
        let is_temporary = schema == own;
        match persistence {
            Persistence::Unlogged if is_temporary => {
                refused("only temporary relations may be created in temporary schemas")
            }
            Persistence::Unlogged => {
                self.tell_logged();
                Ok((schema, false))
            }
            _ => Ok((schema, is_temporary)),
        }
    }

    /// Notes that UNLOGGED has no effect.
    pub(super) fn tell_logged(&mut self) {
        let notice = PgError::new(super::SUCCESSFUL, "unlogged relations are written to the log like others");
        self.tell("NOTICE", notice.detail("A crash does not empty them."));
    }

    fn has_schema(&self, schema: &str) -> bool {
        let exists = schema_in(&self.catalog, &self.who.database, schema).is_some();
        exists || crate::system::is_system(schema)
    }

    /// Fails for ON COMMIT of a table that is not temporary.
    pub(super) fn check_on_commit(&self, temporary: bool, on_commit: OnCommit) -> Result<()> {
        if temporary || on_commit == OnCommit::Default {
            return Ok(());
        }
        let message = "ON COMMIT can only be used on temporary tables";
        Err(PgError::new(state::INVALID_TABLE_DEFINITION, message))
    }

    /// Begins a change of the session's temporary objects, for which it has a schema from here on.
    pub(super) fn write_temporary<'c>(&mut self, db: &'c Database) -> Result<Writing<'c>> {
        self.need_temporary_schema()?;
        let seen = self.catalog.clone();
        self.begin_change(db, &seen, true)
    }

    /// Begins a change of temporary objects, or one of shared objects that needs no metadata lock.
    pub(super) fn write_of<'c>(&mut self, db: &'c Database, temporary: bool) -> Result<Writing<'c>> {
        if temporary { self.write_temporary(db) } else { self.write(db) }
    }

    /// Drops tables, views and sequences that are temporary. Foreign keys to the tables from others go with them.
    pub(super) fn drop_temporary(&mut self, gone: &Gone) -> Result<()> {
        let db = self.database().clone();
        let mut writing = self.write_temporary(&db)?;
        for view in &gone.views {
            writing.drop_view(view)?;
        }
        for table in &gone.tables {
            writing.drop_table(table)?;
        }
        for sequence in &gone.sequences {
            super::drop::drop_remaining(&mut writing, sequence)?;
        }
        let is_child =
            |table: &&Arc<Table>| gone.tables.iter().any(|known| table.refers_to(&known.schema, &known.name));
        let children: Vec<Arc<Table>> = writing.snapshot.temporary_tables().filter(is_child).cloned().collect();
        super::drop::drop_foreign_keys(&mut writing, &children, &gone.tables)?;
        self.finish(writing)?;
        gone.tables.iter().for_each(|table| table.live.put_in_force(u64::MAX));
        Ok(())
    }

    /// Drops tables at a commit, with what depends on them.
    pub(crate) fn drop_at_commit(&mut self, tables: Vec<Arc<Table>>) -> Result<()> {
        let mut gone = Gone { tables, ..Gone::default() };
        self.extend_with_dependents(&mut gone)?;
        self.drop_temporary(&gone)
    }

    /// Removes all rows of tables at a commit. Fails if foreign keys of other tables refer to them.
    pub(crate) fn empty_at_commit(&mut self, tables: &[Arc<Table>]) -> Result<()> {
        let is_other = |child: &&Arc<Table>| !tables.iter().any(|table| table.id == child.id);
        for child in self.catalog.temporary_tables().filter(|table| !table.foreign_keys.is_empty()).filter(is_other) {
            if let Some(parent) = tables.iter().find(|table| child.refers_to(&table.schema, &table.name)) {
                let message = "unsupported ON COMMIT and foreign key combination";
                let detail = format!(
                    "Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
                    child.name, parent.name
                );
                return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message).detail(detail));
            }
        }
        self.empty_temporary(tables, false)
    }

    /// Drops all temporary objects of the session: DISCARD TEMP. Their schema stays.
    pub(crate) fn drop_all_temporary(&mut self) -> Result<()> {
        self.refresh();
        let Some(schema) = self.catalog.temporary().cloned() else { return Ok(()) };
        let gone = Gone {
            tables: schema.tables.values().cloned().collect(),
            views: schema.views.values().cloned().collect(),
            sequences: schema.sequences.values().cloned().collect(),
            ..Gone::default()
        };
        if gone.is_empty() {
            return Ok(());
        }
        self.begin_change_of_definitions()?;
        let dropped = self.drop_temporary(&gone);
        self.take_back();
        dropped
    }

    /// Refuses to move a relation into or out of a schema of temporary objects.
    pub(super) fn refuse_temporary_move(&self, from: &str, to: &str) -> Result<()> {
        let own = self.stored_schema(&self.temporary_schema_name())?;
        if from != own && to != own {
            return Ok(());
        }
        let message = "cannot move objects into or out of temporary schemas";
        Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message))
    }

    /// Refuses a type in the schema of temporary objects.
    pub(super) fn refuse_temporary_type(&self, schema: &str) -> Result<()> {
        match schema == self.stored_schema(&self.temporary_schema_name())? {
            true => Err(PgError::unsupported("a type in the schema of temporary objects")),
            false => Ok(()),
        }
    }
}

impl Gone {
    /// Splits off what is temporary.
    pub(super) fn split(self) -> (Gone, Gone) {
        let (own_tables, tables) = self.tables.into_iter().partition(|table: &Arc<Table>| table.temporary);
        let (own_views, views) = self.views.into_iter().partition(|view: &Arc<View>| view.temporary);
        let (own_sequences, sequences) =
            self.sequences.into_iter().partition(|sequence: &Arc<Sequence>| sequence.temporary);
        let own = Gone { tables: own_tables, views: own_views, sequences: own_sequences, ..Gone::default() };
        (own, Gone { tables, views, sequences, types: self.types, of_rows: self.of_rows })
    }
}
