//! Locks on names and objects of the catalog, which keep transactions apart that change the same definitions.
//!
//! They are locks of the engine's lock table on keys of the catalog's map, so a wait for one stands in the search for
//! deadlocks and ends with the holder's transaction. Tables have a metadata lock besides, which keeps out their users.
//!
//! ```text
//!   'L' schema 0 name     exclusive: a transaction gives the name to an object, or takes it from one;
//!                         shared: a new constraint refers to a table of the name, which does not exist
//!   'L' schema 0          shared: something is made in the schema; exclusive: the schema is made or dropped
//!   'L' 0 'a' name        exclusive: an account is created, changed or dropped
//!   'L' 0 'i' number      shared: a record refers to a role; exclusive: it is dropped
//!   'L' 0 'r' key         exclusive: an access record is changed
//!   'L' 0 'd' key         exclusive: the settings of new sessions are changed
//!   'L' 0 'f' key         exclusive: the privileges of new objects are changed
//!   'v' id, 'q' id        exclusive: a view or sequence is changed or dropped
//!   'y' id                exclusive: a type is changed or dropped; shared: a table with columns of it is made or changed;
//!                         the same for the type of the rows of the table or view of that number
//! ```

use std::sync::Arc;

use datum::fault::TableName;
use datum::{Fault, Result};
use engine::rows::{CATALOG, Strength};

use crate::catalog::Writing;
use crate::catalog::record::sequence_key;
use crate::catalog::schema::Schema;
use crate::catalog::sequence::Sequence;
use crate::catalog::table::Table;
use crate::catalog::view::{View, view_key};
use crate::engine_fault::engine_fault;

fn name_key(schema: &str, name: &str) -> Vec<u8> {
    [&b"L"[..], schema.as_bytes(), &[0], name.as_bytes()].concat()
}

impl Schema {
    fn has(&self, name: &str) -> bool {
        self.tables.contains_key(name)
            || self.views.contains_key(name)
            || self.sequences.contains_key(name)
            || self.types.contains_key(name)
    }
}

impl Writing<'_> {
    pub(super) fn lock(&mut self, key: &[u8], strength: Strength) -> Result<()> {
        self.txn.lock_patiently(CATALOG, key, strength, &mut Vec::new()).map(drop).map_err(engine_fault)
    }

    /// Locks a name that is about to have an object, and its schema against being dropped. Fails with
    /// `Fault::NameTaken` if another transaction has meanwhile given the name to one.
    pub fn claim_name(&mut self, schema: &str, name: &str) -> Result<()> {
        self.lock(&name_key(schema, ""), Strength::Shared)?;
        self.lock(&name_key(schema, name), Strength::Exclusive)?;
        if self.pending.changes.concern(schema, name) {
            return Ok(());
        }
        let is_own = self.pending.changes.schemas.contains_key(schema);
        let (now, seen) = (self.catalog.published(), self.snapshot.schemas.get(schema));
        match now.schemas.get(schema) {
            Some(now) if now.has(name) && !seen.is_some_and(|seen| seen.has(name)) => {
                Err(Fault::NameTaken(Box::new(TableName { schema: schema.into(), table: name.into() })))
            }
            None if !is_own => Err(Fault::UnknownDatabase(schema.into())),
            _ => Ok(()),
        }
    }

    /// Locks the name of a missing table, to which a new constraint refers. Fails with `Fault::ConcurrentChange` if
    /// another transaction has meanwhile made it.
    pub fn hold_missing(&mut self, schema: &str, name: &str) -> Result<()> {
        self.lock(&name_key(schema, name), Strength::Shared)?;
        match self.catalog.published().table(schema, name) {
            Ok(_) => Err(Fault::ConcurrentChange),
            Err(_) => Ok(()),
        }
    }

    /// Fails with `Fault::ConcurrentChange` if another transaction has meanwhile made a constraint that refers to this new
    /// table, whose name the caller has claimed: it is to be checked with the table.
    pub(super) fn check_children(&self, table: &Table) -> Result<()> {
        let now = self.catalog.published().children(&table.schema, &table.name);
        let is_seen = |child: &Arc<Table>| {
            let seen = self.snapshot.table(&child.schema, &child.name);
            seen.is_ok_and(|seen| seen.id == child.id && seen.refers_to(&table.schema, &table.name))
        };
        let is_changed = |child: &Arc<Table>| self.pending.changes.concern(&child.schema, &child.name);
        match now.iter().all(|child| is_seen(child) || is_changed(child)) {
            true => Ok(()),
            false => Err(Fault::ConcurrentChange),
        }
    }

    /// Locks a schema to the end of the transaction against being dropped, before a record refers to it. Fails if it is
    /// gone.
    pub fn hold_schema(&mut self, name: &str) -> Result<()> {
        self.lock(&name_key(name, ""), Strength::Shared)?;
        let is_own = self.pending.changes.schemas.get(name).map(Option::is_some);
        match is_own.unwrap_or_else(|| self.catalog.published().schemas.contains_key(name)) {
            true => Ok(()),
            false => Err(Fault::UnknownDatabase(name.into())),
        }
    }

    /// Locks a name that is about to lose its object.
    pub(super) fn give_up_name(&mut self, schema: &str, name: &str) -> Result<()> {
        self.lock(&name_key(schema, name), Strength::Exclusive)
    }

    /// Locks the name of a schema that is made, changed or dropped. Fails if another transaction has meanwhile made or
    /// dropped it, or something in it.
    pub(super) fn claim_schema(&mut self, name: &str, is_dropped: bool) -> Result<()> {
        self.lock(&name_key(name, ""), Strength::Exclusive)?;
        if self.pending.changes.schemas.contains_key(name) {
            return Ok(());
        }
        let now = self.catalog.published();
        match (now.schemas.get(name), self.snapshot.schemas.get(name)) {
            (Some(_), None) => Err(Fault::NameTaken(Box::new(TableName { schema: name.into(), table: "".into() }))),
            (None, Some(_)) => Err(Fault::UnknownDatabase(name.into())),
            (Some(now), Some(_)) if is_dropped => {
                let names = now.tables.keys().chain(now.views.keys()).chain(now.sequences.keys());
                let names = names.chain(now.types.keys());
                let is_new = names.into_iter().any(|object| !self.pending.changes.concern(name, object));
                if is_new { Err(Fault::ConcurrentChange) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Locks a view that is changed or dropped. Fails if another transaction has meanwhile done so.
    pub(super) fn claim_view(&mut self, view: &View) -> Result<()> {
        self.lock(&view_key(view.id, 0), Strength::Exclusive)?;
        if self.pending.changes.concern(&view.schema, &view.name) {
            return Ok(());
        }
        let now = self.catalog.published();
        let (now, seen) = (now.view(&view.schema, &view.name), self.snapshot.view(&view.schema, &view.name));
        is_unchanged(now, seen)
    }

    /// Does the same for a sequence of this name.
    pub(super) fn claim_sequence(&mut self, sequence: &Sequence, name: &str) -> Result<()> {
        if sequence.temporary {
            return Ok(());
        }
        self.lock(&sequence_key(sequence.id), Strength::Exclusive)?;
        if self.pending.changes.concern(&sequence.schema, name) {
            return Ok(());
        }
        let now = self.catalog.published();
        let (now, seen) = (now.sequence(&sequence.schema, name), self.snapshot.sequence(&sequence.schema, name));
        is_unchanged(now, seen)
    }
}

fn is_unchanged<T>(now: Option<&Arc<T>>, seen: Option<&Arc<T>>) -> Result<()> {
    match (now, seen) {
        (Some(now), Some(seen)) if Arc::ptr_eq(now, seen) => Ok(()),
        (None, None) => Ok(()),
        _ => Err(Fault::ConcurrentChange),
    }
}
