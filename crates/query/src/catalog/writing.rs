//! A change of definitions: a transaction, and the definitions that result from it.
//!
//! It is a transaction of its own, which `commit` publishes, or one statement in the transaction of a session, whose
//! changes go on in `Pending` (`leave`). Dropping it undoes the first, and gives the transaction back to the session in
//! the second case.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datum::{Fault, Result};
use engine::rows::{CATALOG, Isolation, SnapshotAside, Transaction};
use stdx::sync::Mutex;

use crate::catalog::changes::{Changes, name_of};
use crate::catalog::object_id::{Maker, UNNUMBERED};
use crate::catalog::objects::Objects;
use crate::catalog::pending::Pending;
use crate::catalog::record::{
    PIECE, auto_key, forget_pieces, put, put_table_record, schema_key, statistics_key, temporary_key, unchecked_key,
};
use crate::catalog::schema::{Schema, encode_schema};
use crate::catalog::sequence::HeldCounter;
use crate::catalog::snapshot::Snapshot;
use crate::catalog::table::{Index, Table, TableId};
use crate::catalog::view::{View, encode_view, view_key};
use crate::catalog::{Catalog, temporary_maps};
use crate::engine_fault::engine_fault;
use crate::types::Collation;

/// The place where a session finds its transaction after a change that has failed.
pub type Lent = Arc<Mutex<Option<Transaction>>>;

/// A change of definitions. See the file's description.
pub struct Writing<'c> {
    pub(super) catalog: &'c Catalog,
    /// The definitions as they are changed.
    pub snapshot: Snapshot,
    pub txn: Transaction,
    pub(super) pending: Pending,
    /// The sequences whose counters the session's transaction holds already.
    held_before: Vec<TableId>,
    /// The transaction is a session's.
    lent: Option<Lent>,
    /// The snapshot of the session's transaction, which reads the newest rows meanwhile.
    aside: Option<SnapshotAside>,
    /// Only temporary tables change, so nothing is published.
    pub temporary: bool,
}

impl Catalog {
    /// Begins a change of definitions that is a transaction of its own. The caller holds the metadata locks of the
    /// tables that it changes. Others change other definitions meanwhile (QU-45).
    pub fn write(&self) -> Writing<'_> {
        self.writing(Snapshot::clone(&self.published()), false)
    }

    /// Begins a change of temporary tables, over the definitions that their session sees.
    pub fn write_temporary(&self, seen: &Snapshot) -> Writing<'_> {
        self.writing(seen.clone(), true)
    }

    fn writing(&self, snapshot: Snapshot, temporary: bool) -> Writing<'_> {
        Writing {
            catalog: self,
            snapshot,
            txn: self.engine.rows().begin(Isolation::ReadCommitted),
            pending: Pending::default(),
            held_before: Vec::new(),
            lent: None,
            aside: None,
            temporary,
        }
    }

    /// Begins a change in a session's transaction, over the definitions that it sees. Until its end plain reads of the
    /// transaction see what is committed now: the caller has locked the tables whose rows it reads.
    pub fn write_within(
        &self,
        mut txn: Transaction,
        (seen, pending): (&Snapshot, &Pending),
        temporary: bool,
        lent: &Lent,
    ) -> Writing<'_> {
        let aside = Some(txn.read_newest());
        let mut writing = self.writing(seen.clone(), temporary);
        std::mem::replace(&mut writing.txn, txn).rollback();
        writing.pending.changes = pending.changes.clone();
        writing.held_before = pending.counters.iter().map(HeldCounter::id).collect();
        (writing.aside, writing.lent) = (aside, Some(lent.clone()));
        writing
    }
}

impl Writing<'_> {
    pub fn new_id(&mut self) -> TableId {
        let next = if self.temporary { &self.catalog.next_temporary } else { &self.catalog.next_id };
        next.fetch_add(1, Ordering::Relaxed)
    }

    /// Stores a schema, new or with another collation. The maker is that of a new one.
    pub fn put_schema(&mut self, name: &str, collation: Collation, maker: Maker) -> Result<()> {
        let old = self.snapshot.schemas.get(name).map(|old| Schema::clone(old));
        let mut schema = old.unwrap_or_else(|| Schema { maker, ..Schema::new(name) });
        schema.collation = collation;
        if schema.id == UNNUMBERED {
            schema.id = self.new_id();
        }
        self.claim_schema(name, false)?;
        put(&mut self.txn, &schema_key(name), &encode_schema(&schema))?;
        let schema = Arc::new(schema);
        self.changes().schemas.insert(name.to_owned(), Some(schema.clone()));
        self.snapshot.schemas.insert(name.to_owned(), schema);
        self.snapshot.objects = Objects::default();
        Ok(())
    }

    /// Drops a schema whose tables, views and sequences have been dropped.
    pub fn drop_schema(&mut self, name: &str) -> Result<()> {
        self.claim_schema(name, true)?;
        let id = self.snapshot.schemas.get(name).map_or(UNNUMBERED, |schema| schema.id);
        self.drop_access(id)?;
        self.drop_comments_of([id])?;
        self.drop_session_defaults(|key| key.database == id && id != UNNUMBERED)?;
        self.drop_default_access(|key| (key.database == id || key.schema == id) && id != UNNUMBERED)?;
        self.txn.delete(CATALOG, &schema_key(name)).map_err(engine_fault)?;
        self.changes().schemas.insert(name.to_owned(), None);
        self.snapshot.schemas.remove(name);
        self.snapshot.objects = Objects::default();
        Ok(())
    }

    /// Stores a table's definition, new or changed. Numbers its new parts, and drops the sequences of columns that the
    /// changed one no longer has.
    pub fn put_table(&mut self, mut table: Table) -> Result<Arc<Table>> {
        let old = self.snapshot.schemas.get(&table.schema).and_then(|schema| schema.tables.get(&table.name));
        let old = old.filter(|old| old.id == table.id).cloned();
        table.number_parts(old.as_deref(), || self.new_id());
        let table = Arc::new(table.with_derived_fields());
        let owned =
            |table: &Table| table.columns.iter().flat_map(|column| column.sequences.clone()).collect::<Vec<_>>();
        let (mut gone, kept) = (old.as_deref().map_or_else(Vec::new, owned), owned(&table));
        gone.retain(|id| !kept.contains(id));
        self.drop_owned(table.id, &gone)?;
        if table.temporary {
            put(&mut self.txn, &temporary_key(table.id), &temporary_maps::maps_as_bytes(&table))?;
            self.schema_mut(&table.schema)?.tables.insert(table.name.clone(), table.clone());
            return Ok(table);
        }
        if old.is_none() {
            self.claim_name(&table.schema, &table.name)?;
            self.check_children(&table)?;
        }
        if let Some(old) = &old {
            self.drop_comments_gone(old.ids(), table.ids())?;
            self.claim_changed_row(old, Some(&table))?;
        }
        self.hold_types(&table)?;
        put_table_record(&mut self.txn, &table)?;
        let changes = self.changes();
        changes.tables.insert(name_of(&table.schema, &table.name), Some(table.clone()));
        changes.in_use.remove(&table.id);
        self.schema_mut(&table.schema)?.tables.insert(table.name.clone(), table.clone());
        Ok(table)
    }

    /// Stores a new version of a table beside which others go on to use the published one, to the commit and after it (QU-65).
    /// The new version has all maps of the old one, and no other constraint.
    pub fn put_table_in_use(&mut self, table: Table) -> Result<()> {
        let old = self.snapshot.table(&table.schema, &table.name)?;
        let has_kept = |index: &Index| table.indexes.iter().any(|other| other.map == index.map);
        let is_same = old.id == table.id && old.map == table.map && old.foreign_keys == table.foreign_keys;
        assert!(is_same && old.indexes.iter().all(has_kept), "QU-65: others use the maps");
        let table = self.put_table(table)?;
        self.changes().in_use.insert(table.id);
        Ok(())
    }

    /// Removes a table's name before a drop or a rename.
    pub fn forget_name(&mut self, table: &Table) -> Result<()> {
        if !table.temporary {
            self.give_up_name(&table.schema, &table.name)?;
            self.changes().tables.insert(name_of(&table.schema, &table.name), None);
        }
        self.schema_mut(&table.schema)?.tables.remove(&table.name);
        Ok(())
    }

    pub fn drop_table(&mut self, table: &Table) -> Result<()> {
        self.forget_name(table)?;
        self.claim_changed_row(table, None)?;
        self.drop_access(table.id)?;
        self.drop_comments_of(table.ids())?;
        if table.temporary {
            self.txn.delete(CATALOG, &temporary_key(table.id)).map_err(engine_fault)?;
        }
        for column in &table.columns {
            self.drop_owned(table.id, &column.sequences)?;
        }
        forget_pieces(&mut self.txn, table.id)?;
        let mut piece = 0;
        while self.txn.delete(CATALOG, &statistics_key(table.id, piece)).map_err(engine_fault)? {
            piece += 1;
        }
        self.txn.delete(CATALOG, &auto_key(table.id)).map_err(engine_fault)?;
        self.txn.delete(CATALOG, &unchecked_key(table.id)).map_err(engine_fault)?;
        self.txn.drop_map(table.map).map_err(engine_fault)?;
        for index in &table.indexes {
            self.txn.drop_map(index.map).map_err(engine_fault)?;
        }
        Ok(())
    }

    /// Stores a view, new or in place of the one of that name.
    pub fn put_view(&mut self, view: View) -> Result<()> {
        if view.temporary {
            self.schema_mut(&view.schema)?.views.insert(view.name.clone(), Arc::new(view));
            return Ok(());
        }
        if let Some(old) = self.snapshot.view(&view.schema, &view.name).cloned() {
            self.claim_changed_row_of_view(&old, Some(&view))?;
            self.take_view_out(&old)?;
        }
        self.claim_name(&view.schema, &view.name)?;
        for (piece, bytes) in encode_view(&view).chunks(PIECE).enumerate() {
            put(&mut self.txn, &view_key(view.id, piece as u16), bytes)?;
        }
        let view = Arc::new(view);
        self.changes().views.insert(name_of(&view.schema, &view.name), Some(view.clone()));
        self.schema_mut(&view.schema)?.views.insert(view.name.clone(), view);
        Ok(())
    }

    pub fn drop_view(&mut self, view: &View) -> Result<()> {
        self.claim_changed_row_of_view(view, None)?;
        self.drop_access(view.id)?;
        self.drop_comments_of([view.id])?;
        self.take_view_out(view)
    }

    /// Removes a view before it is stored under another name. Its owner and privileges stay.
    pub fn take_view_out(&mut self, view: &View) -> Result<()> {
        if view.temporary {
            self.schema_mut(&view.schema)?.views.remove(&view.name);
            return Ok(());
        }
        self.claim_view(view)?;
        self.give_up_name(&view.schema, &view.name)?;
        let mut piece = 0;
        while self.txn.delete(CATALOG, &view_key(view.id, piece)).map_err(engine_fault)? {
            piece += 1;
        }
        self.changes().views.insert(name_of(&view.schema, &view.name), None);
        self.schema_mut(&view.schema)?.views.remove(&view.name);
        Ok(())
    }

    pub(super) fn schema_mut(&mut self, name: &str) -> Result<&mut Schema> {
        let schema = self.snapshot.schemas.get_mut(name).ok_or_else(|| Fault::UnknownDatabase(name.into()))?;
        self.snapshot.objects = Objects::default();
        Ok(Arc::make_mut(schema))
    }

    pub(super) fn changes(&mut self) -> &mut Changes {
        Arc::make_mut(&mut self.pending.changes)
    }

    /// Returns whether the transaction holds the counter of the sequence.
    pub(super) fn holds_counter(&self, sequence: TableId) -> bool {
        self.held_before.contains(&sequence) || self.pending.counters.iter().any(|held| held.id() == sequence)
    }

    /// Commits and publishes the change. Returns its durability LSN.
    pub fn commit(mut self) -> Result<engine::Lsn> {
        assert!(self.lent.is_none(), "QU-45: a session's transaction commits its changes");
        let txn = self.take_txn();
        let mut pending = std::mem::take(&mut self.pending);
        let lsn = pending.commit(txn, self.catalog)?;
        self.snapshot.put_temporary_in_force();
        Ok(lsn)
    }

    /// Ends a statement in a session's transaction: puts its changes in force there, and adds them to the session's.
    /// Returns the transaction, and the definitions as they are now.
    pub fn leave(mut self, session: &mut Pending) -> (Transaction, Snapshot) {
        assert!(self.lent.take().is_some(), "the transaction is the change's own");
        let own = std::mem::take(&mut self.pending);
        own.changes.put_in_force_privately();
        self.snapshot.put_temporary_in_force();
        session.changes = own.changes;
        session.counters.extend(own.counters);
        self.restore_snapshot();
        let txn = self.take_txn();
        (txn, std::mem::take(&mut self.snapshot))
    }

    /// Goes back to the snapshot of the session's transaction, for a query within the change.
    pub fn restore_snapshot(&mut self) {
        if let Some(aside) = self.aside.take() {
            self.txn.read_as_before(aside);
        }
    }

    /// Takes the transaction out; one that has done nothing stays.
    fn take_txn(&mut self) -> Transaction {
        let spare = self.catalog.engine.rows().begin(Isolation::ReadCommitted);
        std::mem::replace(&mut self.txn, spare)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.restore_snapshot();
        let txn = self.take_txn();
        match self.lent.take() {
            Some(lent) => *lent.lock() = Some(txn),
            None => txn.rollback(),
        }
        // The counters are released behind the undo.
    }
}

impl Snapshot {
    /// Makes the versions of the session's temporary tables the current ones.
    fn put_temporary_in_force(&self) {
        for table in self.temporary_tables() {
            table.live.put_in_force(table.version);
        }
    }
}
