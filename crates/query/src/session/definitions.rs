//! Changes of definitions, as a session of every dialect makes them: the locks, the tables that constraints tie to those that change, and publication.
//!
//! ```text
//!   admit_definition ─► try_change: locks, then the catalog ─► maps, rows, records in `Writing` ─► commit publishes ─► after_drop, after_truncate
//! ```
//! Hard part: the tables to lock follow from definitions that may change while locks are waited for. `try_change` determines them again once no other session can change definitions, and the caller begins
//! anew if there are more. No lock is held meanwhile (QU-26).

use std::sync::Arc;
use std::time::Duration;

use datum::{Fault, Result};
use engine::rows::{CATALOG, Isolation};

use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::table::Table;
use crate::catalog::table_lock::TableMode;
use crate::catalog::table_state::TableState;
use crate::catalog::{Snapshot, Writing};
use crate::engine_fault::engine_fault;
use crate::exec::host::Host;
use crate::exec::instance::Instance;
use crate::key_form::KeyForm;
use crate::session::metadata_locks::{ApartLock, Patience};
use crate::session::transaction::SessionCore;

/// The tables that a statement changes, and those tied to them by existing or new constraints.
#[derive(Default)]
pub struct RelatedTables {
    pub changed: Vec<Arc<Table>>,
    pub tied: Vec<Arc<Table>>,
}

impl RelatedTables {
    /// Returns the tables and those tied to them in this snapshot.
    pub fn of(changed: Vec<Arc<Table>>, snapshot: &Snapshot) -> RelatedTables {
        let relatives = |table: &Arc<Table>| snapshot.relatives(&table.schema, &table.name, &table.foreign_keys);
        let tied: Vec<Arc<Table>> = changed.iter().flat_map(relatives).collect();
        RelatedTables { changed, tied: Vec::new() }.and(tied.into_iter())
    }

    /// Adds tables that new constraints tie.
    pub fn and(mut self, tied: impl Iterator<Item = Arc<Table>>) -> RelatedTables {
        for table in tied {
            if !self.all().any(|known| known.id == table.id) {
                self.tied.push(table);
            }
        }
        self
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.changed.iter().chain(&self.tied)
    }
}

/// The waits of a change of definitions.
#[derive(Clone, Copy)]
pub struct Waits<'p> {
    pub metadata: Patience<'p>,
    /// For the rollback of recovered transactions in the tables.
    pub rows: Duration,
}

impl SessionCore {
    /// Registers a change of definitions until the lock is dropped. Waits while another session reads all tables under one lock.
    pub fn admit_definition(&self, patience: Patience<'_>) -> Result<ApartLock> {
        self.locks.take_definitions(self.instance.definitions(), TableMode::RowExclusive, patience)
    }

    /// Begins a change of definitions that is a transaction of its own. A name that another transaction changes is waited for
    /// for this long, and until the session is interrupted.
    pub fn begin_own_change<'i>(&self, instance: &'i Instance, wait: Duration) -> Writing<'i> {
        self.locks.suspend(false);
        let mut writing = instance.catalog().write();
        writing.txn.set_lock_wait(wait);
        writing.txn.set_cancel(self.cancel.clone());
        writing
    }

    /// Takes metadata locks in this mode for a change, and begins it. `needs` finds the tables in definitions, first in
    /// those that the session sees; `to_lock` chooses the tables whose locks are taken. `None`: meanwhile there are more
    /// tables, so the caller tries again with newer definitions.
    pub fn try_change<'i, E: From<Fault>>(
        &self,
        instance: &'i Instance,
        seen: &Snapshot,
        (mode, waits): (TableMode, Waits<'_>),
        needs: impl Fn(&Snapshot) -> Result<RelatedTables, E>,
        to_lock: impl FnOnce(&RelatedTables) -> Result<Vec<Arc<Table>>, E>,
    ) -> Result<Option<(Vec<ApartLock>, Writing<'i>)>, E> {
        let related = needs(seen)?;
        self.wait_for_losers(&related.changed, waits.rows)?;
        let locks = self.locks.apart(&to_lock(&related)?, mode, waits.metadata)?;
        let writing = self.begin_own_change(instance, waits.metadata.wait);
        let now = needs(&writing.snapshot)?;
        let is_locked = now.all().all(|table| related.all().any(|known| known.id == table.id));
        Ok(is_locked.then_some((locks, writing)))
    }

    /// Takes, to the end of the transaction, locks of the tables that `needs` finds in these definitions. Definitions may have changed during a wait: the caller asks again with those from then, and is done
    /// when `needs` finds no other tables.
    pub fn lock_definitions(&self, related: &RelatedTables, mode: TableMode, waits: Waits<'_>) -> Result<()> {
        self.wait_for_losers(&related.changed, waits.rows)?;
        let tables: Vec<Arc<Table>> = related.all().cloned().collect();
        self.locks.exclude(&tables, mode, waits.metadata)
    }

    /// Returns the definitions that the session sees, without its temporary tables: those published, and over them the
    /// ones that its transaction has changed (QU-45).
    pub fn definitions(&self) -> Arc<Snapshot> {
        let published = self.instance.catalog().snapshot();
        match self.pending.changes.is_empty() {
            true => published,
            false => Arc::new(self.pending.changes.applied_to(&published)),
        }
    }

    /// Returns whether the open transaction has changed definitions, so plans bound to them are the session's own.
    pub fn has_changed_definitions(&self) -> bool {
        !self.pending.changes.is_empty()
    }

    /// Begins a statement that changes definitions within the open transaction, which it takes out of the host. `seen`
    /// are the definitions that the session sees; with its temporary tables if only those are changed.
    pub fn begin_change<'i>(
        &mut self,
        host: &mut Host,
        instance: &'i Instance,
        seen: &Snapshot,
        temporary: bool,
    ) -> Result<Writing<'i>> {
        self.locks.suspend(false);
        let txn = host.txn.take().ok_or_else(|| Fault::corrupt("a change of definitions without a transaction"))?;
        if temporary {
            self.temporary.begin_change();
        }
        Ok(instance.catalog().write_within(txn, (seen, &self.pending), temporary, &self.lent))
    }

    /// Ends such a statement.
    pub fn end_change(&mut self, host: &mut Host, writing: Writing<'_>) {
        let temporary = writing.temporary;
        let (txn, now) = writing.leave(&mut self.pending);
        host.txn = Some(txn);
        if temporary {
            self.temporary.adopt(&now);
        }
    }

    /// Puts the transaction back of a statement that ended without `end_change`. Its changes are still to be undone.
    pub fn take_back(&mut self, host: &mut Host) {
        if let Some(txn) = self.lent.lock().take() {
            host.txn = Some(txn);
        }
    }

    /// Waits for the rollback of recovered transactions that changed these tables. No metadata lock or catalog lock is
    /// held meanwhile.
    fn wait_for_losers(&self, tables: &[Arc<Table>], lock_wait: Duration) -> Result<()> {
        let rows = self.instance.engine().rows();
        let maps = tables.iter().flat_map(|table| table.maps()).filter(|map| rows.is_rolling_back_in(*map));
        for map in maps {
            let mut txn = rows.begin(Isolation::ReadCommitted);
            txn.set_lock_wait(lock_wait);
            txn.set_cancel(self.cancel.clone());
            txn.wait_for_losers(map).map_err(engine_fault)?;
        }
        Ok(())
    }

    /// Gives tables a new version because their constraints changed (QU-26), except those that the session has locked
    /// for reading, whose metadata locks were left shared.
    pub fn touch(&self, writing: &mut Writing<'_>, tables: &[Arc<Table>]) -> Result<()> {
        for table in tables.iter().filter(|table| self.locks.explicit_lock(table) != Some(false)) {
            // The same statement may have dropped or touched it.
            if let Ok(current) = writing.snapshot.table(&table.schema, &table.name).cloned()
                && current.id == table.id
                && current.version == table.version
            {
                writing.put_table(current.copy())?;
            }
        }
        Ok(())
    }

    /// Invalidates the plans of tables whose drop is committed, and forgets the session's explicit locks of them. A session
    /// that waits for a metadata lock then sees that the table is gone.
    pub fn after_drop(&mut self, gone: &[Arc<Table>]) {
        gone.iter().for_each(|table| table.live.put_in_force(u64::MAX));
        self.locks.forget_explicit(gone);
    }

    /// Drops temporary tables. Their maps are freed when no transaction of the session is open.
    pub fn drop_temporary(&mut self, gone: &[Arc<Table>], is_in_transaction: bool) -> Result<()> {
        self.temporary.drop_tables(gone);
        if is_in_transaction { Ok(()) } else { self.temporary.free_dropped(self.instance.catalog()) }
    }
}

/// Resets what is known of a table's rows after a committed TRUNCATE.
pub fn after_truncate(table: &Table) {
    table.live.forget();
    *table.live.row_id.lock() = 0;
}

/// Stores a new table: gives it an id, and maps to its rows and to the indexes that have none (`CATALOG`). The draft has
/// its columns' slots (`Table::draft`).
pub fn create_table(writing: &mut Writing<'_>, mut draft: Table) -> Result<Arc<Table>> {
    (draft.id, draft.version, draft.live) = (writing.new_id(), 1, Arc::new(TableState::new(1)));
    draft.live.set_rows(0);
    draft.primary_form = KeyForm::Hashed;
    let maps = std::iter::once(&mut draft.map).chain(draft.indexes.iter_mut().map(|index| &mut index.map));
    for map in maps.filter(|map| **map == CATALOG) {
        *map = writing.txn.create_map().map_err(engine_fault)?;
    }
    writing.put_table(draft)
}

/// Returns the children that refer to these tables and are not among them, with one of their keys.
pub fn referring<'t>(
    gone: &'t [Arc<Table>],
    snapshot: &'t Snapshot,
) -> impl Iterator<Item = (&'t Arc<Table>, Arc<Table>)> {
    let children = gone.iter().flat_map(|table| {
        snapshot.children_now(&table.schema, &table.name).into_iter().map(move |child| (table, child))
    });
    children.filter(|(_, child)| !gone.iter().any(|other| other.id == child.id))
}

/// Lets constraints of all tables follow a renamed table or its renamed columns; `renames` are (old, new). Columns are
/// told apart by `is_same`.
pub fn follow_names(
    writing: &mut Writing<'_>,
    old: &Table,
    new: &mut Table,
    renames: &[(String, String)],
    is_same: fn(&str, &str) -> bool,
) -> Result<()> {
    if old.schema == new.schema && old.name == new.name && renames.is_empty() {
        return Ok(());
    }
    let target = (new.schema.clone(), new.name.clone());
    let follow = |key: &mut ForeignKey| {
        if key.refers_to(&old.schema, &old.name) {
            (key.parent_schema, key.parent) = target.clone();
            for name in &mut key.parent_columns {
                if let Some((_, to)) = renames.iter().find(|(from, _)| is_same(from, name)) {
                    name.clone_from(to);
                }
            }
        }
    };
    new.foreign_keys.iter_mut().for_each(follow);
    for child in writing.snapshot.children_now(&old.schema, &old.name) {
        if child.id != old.id {
            let mut copy = child.copy();
            copy.foreign_keys.iter_mut().for_each(follow);
            writing.put_table(copy)?;
        }
    }
    Ok(())
}
