//! LOCK TABLES and FLUSH TABLES WITH READ LOCK.
//!
//! READ takes the table's lock (`catalog::table_lock`) in mode Share, which keeps writers out of the rows. WRITE takes it
//! in mode AccessExclusive. No lock is held while another is waited for, so two of these statements
//! never deadlock, nor does one with a transaction that waits for it.

use std::sync::Arc;

use crate::error::{self, Result, SqlError};
use crate::parse::statement::TableLock;
use crate::session::session_tracking::{LOCKED, READ, WRITE};
use crate::session::{Outcome, Session};
use query::catalog::Snapshot;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::session::definitions::RelatedTables;
use query::session::metadata_locks::{ApartLock, Patience};

/// The names and the scope of the explicit locks, which the session core holds.
#[derive(Debug, Default)]
pub(super) struct Locked {
    /// The lock of all definitions, which FLUSH TABLES WITH READ LOCK takes.
    definitions: Option<ApartLock>,
    /// Tables locked implicitly, because foreign keys reach them.
    implied: Vec<u64>,
    /// Aliases of the other tables. None: the table's own name.
    names: Vec<(u64, Option<String>)>,
    /// FLUSH TABLES WITH READ LOCK is in effect.
    pub is_all: bool,
}

impl Session {
    pub(super) fn lock_named(&mut self, locks: &[TableLock]) -> Result<Outcome> {
        self.unlock_tables();
        let (mut tables, mut names) = (Vec::new(), Vec::new());
        for TableLock { table, alias, write } in locks {
            let (schema, name) = self.full_name(table)?;
            match self.catalog.view(&schema, &name).cloned() {
                // The tables that a view reads are locked with it.
                Some(view) => tables.extend(self.tables_of_view(&view)?.into_iter().map(|table| (table, *write))),
                // No other session can reach a temporary table.
                None if self.catalog.is_temporary(&schema, &name) => {}
                None => {
                    let table = self.catalog.table(&schema, &name)?.clone();
                    names.push((table.id, alias.clone()));
                    tables.push((table, *write));
                }
            }
        }
        let named: Vec<u64> = tables.iter().map(|(table, _)| table.id).collect();
        let reached: Vec<_> = tables.iter().flat_map(|(table, exclusive)| self.reached(table, *exclusive)).collect();
        tables.extend(reached);
        let implied = tables.iter().map(|(table, _)| table.id).filter(|id| !named.contains(id)).collect();
        self.lock_tables(tables)?;
        (self.locked.implied, self.locked.names) = (implied, names);
        for lock in locks {
            self.track_deed(if lock.write { WRITE } else { READ });
        }
        self.track_deed(LOCKED);
        Ok(Outcome::done())
    }

    /// Returns the tables that foreign keys reach from changes of this one: parents and children for reading, children
    /// of cascades for writing.
    fn reached(&self, table: &Table, exclusive: bool) -> Vec<(Arc<Table>, bool)> {
        if !exclusive {
            return Vec::new();
        }
        let mut found: Vec<(Arc<Table>, bool)> = Vec::new();
        for key in &table.foreign_keys {
            found
                .extend(self.catalog.table(&key.parent_schema, &key.parent).ok().map(|parent| (parent.clone(), false)));
        }
        let (mut waiting, mut seen) = (vec![(table.schema.clone(), table.name.clone())], vec![table.id]);
        while let Some((schema, name)) = waiting.pop() {
            for child in self.catalog.children(&schema, &name) {
                let mut keys = child.foreign_keys.iter().filter(|key| key.refers_to(&schema, &name));
                let acts = keys.any(|key| key.on_delete.acts() || key.on_update.acts());
                if acts && !seen.contains(&child.id) {
                    seen.push(child.id);
                    waiting.push((child.schema.clone(), child.name.clone()));
                }
                found.push((child, acts));
            }
        }
        found
    }

    /// Takes read locks on all tables and blocks DDL.
    pub(super) fn lock_all(&mut self) -> Result<Outcome> {
        self.unlock_tables();
        let handle = self.handle.clone();
        let patience = Patience { wait: self.mdl_wait(), is_interrupted: &|| handle.is_interrupted() };
        let definitions = self.db.instance().definitions();
        self.locked.definitions = Some(self.core.locks.take_definitions(definitions, TableMode::Share, patience)?);
        self.locked.is_all = true;
        self.refresh();
        let shared = self.db.catalog().snapshot();
        let all = shared.schemas.values().flat_map(|schema| schema.tables.values());
        let tables = all.map(|table| (table.clone(), false)).collect();
        let locked = self.lock_tables(tables);
        if locked.is_err() {
            self.unlock_tables();
        }
        locked.map(|()| Outcome::done())
    }

    fn lock_tables(&mut self, tables: Vec<(Arc<Table>, bool)>) -> Result<()> {
        let (wait, handle) = (self.mdl_wait(), &self.handle);
        Ok(self.core.locks.lock_tables(tables, Patience { wait, is_interrupted: &|| handle.is_interrupted() })?)
    }

    pub(super) fn unlock_tables(&mut self) {
        if !self.locked.is_all {
            self.track_unlocked();
        }
        // A transaction begun under the global read lock may have read any table.
        let keeps_shared = self.locked.is_all && self.in_transaction();
        self.core.locks.unlock_tables(keeps_shared);
        self.locked.implied.clear();
        self.locked.names.clear();
        self.locked.is_all = false;
        self.locked.definitions = None;
    }

    /// Under LOCK TABLES: checks that the statement uses only locked tables, and writes only those locked for WRITE.
    pub(super) fn check_locked(&self, tables: &[Arc<Table>], written: &[Arc<Table>]) -> Result<()> {
        if self.locked.is_all && written.iter().any(|table| !table.temporary) {
            return Err(conflict());
        }
        if !self.core.locks.has_explicit() {
            return Ok(());
        }
        for table in tables.iter().filter(|table| !table.temporary) {
            let writes = written.iter().any(|one| one.id == table.id);
            let is_named =
                |(locked, _): &(&Arc<Table>, bool)| locked.id == table.id && !self.locked.implied.contains(&locked.id);
            match self.core.locks.explicit().find(is_named) {
                None => {
                    return Err(error::TABLE_NOT_LOCKED.with(&[&table.name]));
                }
                Some((_, false)) if writes => {
                    return Err(read_locked(table));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Under LOCK TABLES: checks that a table is used by an alias under which it was locked.
    pub(super) fn check_locked_names(&self, tables: &[Arc<Table>], named: &[(u64, String)]) -> Result<()> {
        let is_locked = |id: u64| self.core.locks.explicit().any(|(table, _)| table.id == id);
        let is_own = |id: u64, alias: &str| tables.iter().any(|table| table.id == id && table.name == alias);
        let is_named = |(id, alias): &(u64, String)| {
            let mut names = self.locked.names.iter().filter(|(locked, _)| locked == id);
            names.any(|(_, name)| name.as_ref().map_or_else(|| is_own(*id, alias), |name| name == alias))
        };
        let mut others = named.iter().filter(|one| is_locked(one.0) && !is_named(one));
        match others.next() {
            Some((_, alias)) if !self.locked.is_all => Err(error::TABLE_NOT_LOCKED.with(&[alias])),
            _ => Ok(()),
        }
    }

    /// Under LOCK TABLES: refuses to create a table that is not locked.
    pub(super) fn check_may_come(&self, schema: &str, name: &str) -> Result<()> {
        let is_locked = |(table, _): (&Arc<Table>, bool)| table.schema == schema && table.name == name;
        if self.locked.is_all || !self.core.locks.has_explicit() || self.core.locks.explicit().any(is_locked) {
            return Ok(());
        }
        Err(error::TABLE_NOT_LOCKED.with(&[&name]))
    }

    /// Under LOCK TABLES: refuses DDL on schemas and views, which cannot be locked.
    pub(super) fn check_unlocked(&self) -> Result<()> {
        if self.locked.is_all || !self.core.locks.has_explicit() {
            return Ok(());
        }
        Err(error::LOCK_OR_ACTIVE_TRANSACTION.bare())
    }

    pub(super) fn is_read_locked(&self, table: &Table) -> bool {
        self.core.locks.explicit_lock(table) == Some(false)
    }

    /// Returns the tables whose exclusive metadata locks a DDL statement takes. Under LOCK TABLES it may change only
    /// tables locked for WRITE. A related table locked for READ keeps its shared lock, as this session holds one: other
    /// readers continue, but no session writes its rows (QU-11).
    pub(super) fn tables_to_lock(&self, ends: &RelatedTables) -> Result<Vec<Arc<Table>>> {
        self.check_locked(&ends.changed, &ends.changed)?;
        if let Some(table) = ends.changed.iter().find(|table| self.is_read_locked(table)) {
            return Err(read_locked(table));
        }
        let tied = ends.tied.iter().filter(|table| !self.is_read_locked(table));
        Ok(ends.changed.iter().chain(tied).cloned().collect())
    }

    /// Checks that tables left with shared metadata locks are unchanged and have no new constraint. A dropped
    /// constraint is harmless: a plan that has it still takes the metadata lock of the other table, which was exclusive
    /// (QU-26).
    pub(super) fn check_left_open(&self, now: &Snapshot) -> Result<()> {
        for (table, _) in self.core.locks.explicit().filter(|(_, exclusive)| !exclusive) {
            let (schema, name) = (&*table.schema, &*table.name);
            let is_same = now.table(schema, name).is_ok_and(|now| now.id == table.id && now.version == table.version);
            let before = self.catalog.shared().children_now(schema, name);
            let was_there = |child: &Arc<Table>| {
                let old = before.iter().find(|old| old.id == child.id);
                let mut keys = child.foreign_keys.iter().filter(|key| key.refers_to(schema, name));
                keys.all(|key| old.is_some_and(|old| old.foreign_keys.contains(key)))
            };
            if !is_same || !now.children_now(schema, name).iter().all(was_there) {
                return Err(read_locked(table));
            }
        }
        Ok(())
    }

    /// Registers a change of definitions. Waits while another session holds the global read lock.
    pub(super) fn define(&self) -> Result<ApartLock> {
        if self.locked.is_all {
            return Err(conflict());
        }
        let (wait, handle) = (self.mdl_wait(), &self.handle);
        Ok(self.core.admit_definition(Patience { wait, is_interrupted: &|| handle.is_interrupted() })?)
    }
}

pub(super) fn read_locked(table: &Table) -> SqlError {
    error::TABLE_NOT_LOCKED_FOR_WRITE.with(&[&table.name])
}

fn conflict() -> SqlError {
    let message = "Can't execute the query because you have a conflicting read lock".to_owned();
    SqlError { code: 1223, sqlstate: "HY000", message }
}
