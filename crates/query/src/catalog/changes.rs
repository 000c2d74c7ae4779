//! Definitions that a transaction has changed and not yet published, by name.
//!
//! The session of the transaction sees them laid over the published ones; nobody else does (QU-45). At the commit they
//! are laid over whatever is published by then, so transactions that change different objects do not wait for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::PendingAccounts;

use crate::catalog::access::AccessChanges;
use crate::catalog::comment::CommentChanges;
use crate::catalog::default_access::DefaultAccessChanges;
use crate::catalog::object_id::ObjectId;
use crate::catalog::objects::Objects;
use crate::catalog::schema::Schema;
use crate::catalog::sequence::Sequence;
use crate::catalog::session_default::SessionDefaultsChanges;
use crate::catalog::snapshot::Snapshot;
use crate::catalog::table::{Table, TableId};
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;

/// The names of a schema and of an object in it.
type Name = Arc<(String, String)>;

pub(super) fn name_of(schema: &str, name: &str) -> Name {
    Arc::new((schema.to_owned(), name.to_owned()))
}

/// The new definition of each changed object; `None` for a name that no longer has one.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub(super) schemas: BTreeMap<String, Option<Arc<Schema>>>,
    pub(super) tables: BTreeMap<Name, Option<Arc<Table>>>,
    pub(super) views: BTreeMap<Name, Option<Arc<View>>>,
    pub(super) sequences: BTreeMap<Name, Option<Arc<Sequence>>>,
    pub(super) types: BTreeMap<Name, Option<Arc<UserType>>>,
    pub(super) access: AccessChanges,
    pub(super) session_defaults: SessionDefaultsChanges,
    pub(super) default_access: DefaultAccessChanges,
    pub(super) comments: CommentChanges,
    pub(super) accounts: Arc<PendingAccounts>,
    /// Dropped sequences.
    pub(super) gone: BTreeSet<ObjectId>,
    /// Changed tables whose published definition others may use meanwhile (QU-65), by their ids.
    pub(super) in_use: BTreeSet<TableId>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        let has_relations = !self.tables.is_empty() || !self.views.is_empty() || !self.sequences.is_empty();
        let has_rights = !self.access.is_empty() || !self.accounts.is_empty();
        let has_defaults = !self.session_defaults.is_empty() || !self.default_access.is_empty();
        let has_others = !self.schemas.is_empty() || !self.types.is_empty() || !self.comments.is_empty();
        !has_others && !has_rights && !has_defaults && !has_relations
    }

    /// Returns whether the transaction has changed what the name means.
    pub(super) fn concern(&self, schema: &str, name: &str) -> bool {
        let name = (schema.to_owned(), name.to_owned());
        self.tables.contains_key(&name)
            || self.views.contains_key(&name)
            || self.sequences.contains_key(&name)
            || self.types.contains_key(&name)
    }

    /// Returns these definitions with the changes laid over them.
    pub fn applied_to(&self, published: &Snapshot) -> Snapshot {
        let mut over = Snapshot { objects: Objects::default(), ..published.clone() };
        for (name, schema) in &self.schemas {
            let Some(header) = schema else {
                over.schemas.remove(name);
                continue;
            };
            let known = over.schemas.entry(name.clone()).or_insert_with(|| Arc::new(Schema::new(name)));
            let Schema { id, maker, collation, .. } = **header;
            let known = Arc::make_mut(known);
            (known.id, known.maker, known.collation) = (id, maker, collation);
        }
        lay(&mut over, &self.tables, |schema| &mut schema.tables);
        lay(&mut over, &self.views, |schema| &mut schema.views);
        lay(&mut over, &self.sequences, |schema| &mut schema.sequences);
        lay(&mut over, &self.types, |schema| &mut schema.types);
        // The rows of a view have a type, too.
        over.types_version += u64::from(!self.types.is_empty() || !self.views.is_empty());
        self.access.lay_over(&mut over.access);
        lay_over(&self.session_defaults, &mut over.session_defaults);
        lay_over(&self.default_access, &mut over.default_access);
        lay_over(&self.comments, &mut over.comments);
        over.accounts = self.accounts.clone();
        if !self.tables.is_empty() {
            over.children = Arc::new(over.children_by_parent());
        }
        over
    }

    /// Makes the versions of changed tables the current ones: plans of other versions are stale from here on.
    pub(super) fn put_in_force(&self) {
        for table in self.tables.values().flatten() {
            table.live.put_in_force(table.version);
        }
    }

    /// Makes the versions of changed tables those of the session. Nobody else uses these tables, but those that are in use.
    pub(super) fn put_in_force_privately(&self) {
        for table in self.tables.values().flatten() {
            match self.in_use.contains(&table.id) {
                true => table.live.put_in_force_privately(table.version),
                false => table.live.put_in_force(table.version),
            }
        }
    }

    /// Goes back to `earlier` changes of the same transaction: makes the versions current that were so then (QU-46).
    pub fn undo_to(&self, earlier: &Changes, published: &Snapshot) {
        // A version that others use stays in force all the time.
        for table in self.tables.values().flatten().filter(|table| !self.in_use.contains(&table.id)) {
            table.live.put_in_force(u64::MAX);
            *table.live.row_id.lock() = 0;
        }
        for name in self.tables.keys() {
            let published = published.table(&name.0, &name.1).ok();
            let then = match earlier.tables.get(name) {
                Some(then) => then.as_ref(),
                None => published,
            };
            let Some(table) = then else { continue };
            match published.filter(|_| earlier.in_use.contains(&table.id)) {
                Some(published) => {
                    table.live.put_in_force(published.version);
                    table.live.put_in_force_privately(table.version);
                }
                None => table.live.put_in_force(table.version),
            }
            if !self.in_use.contains(&table.id) {
                // Its rows, too, are those from then.
                *table.live.row_id.lock() = 0;
            }
        }
    }
}

/// Lays changed records over others; `None` removes one.
pub(super) fn lay_over<K: Ord + Clone, V: Clone>(changes: &BTreeMap<K, Option<V>>, known: &mut Arc<BTreeMap<K, V>>) {
    if changes.is_empty() {
        return;
    }
    let known = Arc::make_mut(known);
    for (key, record) in changes {
        match record {
            Some(record) => drop(known.insert(key.clone(), record.clone())),
            None => drop(known.remove(key)),
        }
    }
}

fn lay<T>(
    over: &mut Snapshot,
    changed: &BTreeMap<Name, Option<Arc<T>>>,
    objects: fn(&mut Schema) -> &mut BTreeMap<String, Arc<T>>,
) {
    for (place, object) in changed {
        let (schema, name) = &**place;
        // A dropped schema has none.
        let Some(schema) = over.schemas.get_mut(schema) else { continue };
        let objects = objects(Arc::make_mut(schema));
        match object {
            Some(object) => drop(objects.insert(name.clone(), object.clone())),
            None => drop(objects.remove(name)),
        }
    }
}
