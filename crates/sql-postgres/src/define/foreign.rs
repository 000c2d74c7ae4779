//! Foreign keys in definitions: from syntax to constraints, and the effects of a change upon related tables.
//!
//! QU-26: a change that makes, changes or drops a constraint takes exclusive metadata locks on both tables and gives both a new version.

use std::sync::Arc;

use query::catalog::foreign_key::{Action, Deferral, ForeignKey};
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Table, TableColumn};
use query::catalog::{Snapshot, Writing};
use query::exec::foreign::check_rows;
use syntax::postgres::tree::{self, Constraint, ForeignKeyAction, MatchType};

use crate::bind::rights::column_key;
use crate::define::names::Relation;
use crate::define::object_name::{constraint_name, joined_columns};
use crate::error::{PgError, Result, state};
use crate::rights::needs::may_refer;
use crate::rights::object::Object;
use crate::session::Session;

fn action(node: ForeignKeyAction) -> Result<Action> {
    Ok(match node {
        ForeignKeyAction::NoAction => Action::Nothing,
        ForeignKeyAction::Restrict => Action::Restrict,
        ForeignKeyAction::Cascade => Action::Cascade,
        ForeignKeyAction::SetNull => Action::SetNull,
        ForeignKeyAction::SetDefault => return Err(PgError::unsupported("SET DEFAULT of a foreign key")),
    })
}

pub(super) fn deferral(deferrable: bool, initially_deferred: bool) -> Deferral {
    match (deferrable, initially_deferred) {
        (_, true) => Deferral::Deferred,
        (true, false) => Deferral::Immediate,
        (false, false) => Deferral::Never,
    }
}

impl Session {
    /// Returns the parent of a foreign key, as (schema, name); `draft` may be its own.
    pub(super) fn parent_of(&mut self, node: &tree::ForeignKey, draft: &Table) -> Result<(String, String)> {
        let named = &node.references;
        let is_own = named.name == draft.name
            && match &named.schema {
                Some(schema) => self.stored_schema(schema)? == draft.schema,
                None => true,
            };
        if is_own {
            return Ok((draft.schema.clone(), draft.name.clone()));
        }
        match self.relation(named)? {
            Some(Relation::Table(table)) if table.query.is_none() => Ok((table.schema.clone(), table.name.clone())),
            Some(_) => {
                let message = format!("referenced relation \"{}\" is not a table", named.name);
                Err(PgError::new(state::WRONG_OBJECT_TYPE, message))
            }
            None => Err(self.missing_relation(named, None)),
        }
    }

    /// Fails for a foreign key between a temporary table and one that is not. `draft` may be its own parent.
    pub(super) fn check_parent_persistence(&self, draft: &Table, schema: &str, name: &str) -> Result<()> {
        let is_temporary = match schema == draft.schema {
            true => draft.temporary,
            false => self.catalog.is_temporary(schema, name),
        };
        let kind = match (draft.temporary, is_temporary) {
            (true, false) => "temporary",
            (false, true) => "permanent",
            _ => return Ok(()),
        };
        let message = format!("constraints on {kind} tables may reference only {kind} tables");
        Err(PgError::new(state::INVALID_TABLE_DEFINITION, message))
    }

    /// Adds a foreign key to the draft of a table. `column`: that of a column's constraint.
    pub(super) fn add_foreign_key(
        &mut self,
        draft: &mut Table,
        constraint: &Constraint,
        node: &tree::ForeignKey,
        column: Option<usize>,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let tree::ForeignKey {
            columns: own_names,
            references: _,
            referenced,
            matching,
            on_update,
            on_delete,
            on_delete_columns,
        } = node;
        if *matching == MatchType::Full && own_names.len() > 1 {
            return Err(PgError::unsupported("MATCH FULL"));
        }
        if !on_delete_columns.is_empty() {
            return Err(PgError::unsupported("a list of columns for ON DELETE SET NULL"));
        }
        let mut own = Vec::new();
        for name in own_names {
            let at = draft.columns.iter().position(|column| !column.is_hidden() && column.name == name.value);
            own.push(at.ok_or_else(|| missing_key_column(&name.value))?);
        }
        own.extend(column.filter(|_| own_names.is_empty()));
        let (parent_schema, parent) = self.parent_of(node, draft)?;
        self.check_parent_persistence(draft, &parent_schema, &parent)?;
        let is_own = parent_schema == draft.schema && parent == draft.name;
        let found = if is_own { None } else { Some(snapshot.table(&parent_schema, &parent)?.clone()) };
        let table = found.as_deref().unwrap_or(draft);
        let parent_columns: Vec<String> = match (&referenced[..], table.primary_parts()) {
            ([], Some(_)) if table.primary.is_none() => {
                let message = format!("cannot use a deferrable primary key for referenced table \"{parent}\"");
                return Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
            }
            ([], Some(parts)) => parts.iter().map(|part| table.columns[part.column].name.clone()).collect(),
            ([], None) => {
                let message = format!("there is no primary key for referenced table \"{parent}\"");
                return Err(PgError::new(state::UNDEFINED_OBJECT, message));
            }
            (names, _) => names.iter().map(|name| name.value.clone()).collect(),
        };
        if let Some(name) = parent_columns.iter().find(|name| !table.columns.iter().any(|column| column.name == **name))
        {
            return Err(missing_key_column(name));
        }
        if parent_columns.len() != own.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(PgError::new(state::INVALID_FOREIGN_KEY, message));
        }
        let names: Vec<&str> = own.iter().map(|at| &*draft.columns[*at].name).collect();
        let name = match &constraint.name {
            Some(name) => name.value.clone(),
            None => constraint_name(snapshot, draft, &joined_columns(&names), "fkey"),
        };
        super::create_table::check_constraint_name(draft, &name)?;
        let key = ForeignKey {
            id: UNNUMBERED,
            name,
            columns: own,
            parent_schema,
            parent,
            parent_columns,
            on_delete: action(*on_delete)?,
            on_update: action(*on_update)?,
            deferral: deferral(constraint.deferrable, constraint.initially_deferred),
            is_validated: true,
        };
        let parent = found.as_deref().unwrap_or(draft);
        require_unique(&key, parent)?;
        if let Some(parent) = &found {
            let is_of_key = |column: &TableColumn| key.parent_columns.contains(&column.name);
            let at = (0..parent.columns.len()).filter(|at| is_of_key(&parent.columns[*at]));
            let columns: Vec<u32> = at.map(|at| column_key(parent, at)).collect();
            let (identity, object) = (self.current_identity(), Object::table(parent));
            if !may_refer(&self.rights(), &identity.set, &object, &columns) {
                return Err(object.denied());
            }
        }
        key.fit(draft, parent)?;
        need_key_index(draft, &key);
        draft.foreign_keys.push(key);
        Ok(())
    }

    /// Checks the rows against foreign keys that are new or have not been validated, unless they are NOT VALID.
    pub(super) fn check_new_keys(&mut self, old: &Table, new: &Table, writing: &mut Writing<'_>) -> Result<()> {
        let is_checked =
            |key: &&ForeignKey| old.foreign_keys.iter().any(|known| known.name == key.name && known.is_validated);
        for key in new.foreign_keys.iter().filter(|key| key.is_validated && !is_checked(key)) {
            let is_own = key.refers_to(&new.schema, &new.name);
            let parent =
                if is_own { None } else { Some(writing.snapshot.table(&key.parent_schema, &key.parent)?.clone()) };
            let parent = parent.as_deref().unwrap_or(new);
            let by = key.fit(new, parent)?;
            check_rows(&mut writing.txn, new, key, parent, by, self.context())?;
        }
        Ok(())
    }

    /// QU-6 from the parent's side: fails if a constraint of another table would lose its key.
    pub(super) fn check_children(&self, new: &Table, snapshot: &Snapshot) -> Result<()> {
        for child in snapshot.children_now(&new.schema, &new.name).iter().filter(|child| child.id != new.id) {
            for key in child.foreign_keys.iter().filter(|key| key.refers_to(&new.schema, &new.name)) {
                key.fit(child, new)?;
                require_unique(key, new)?;
            }
        }
        Ok(())
    }

    /// Gives tables a new version because their constraints changed (QU-26).
    pub(super) fn touch(&self, writing: &mut Writing<'_>, tables: &[Arc<Table>]) -> Result<()> {
        for table in tables {
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
}

/// Adds an index of the key's columns where none leads to the children: the core finds them by it. PostgreSQL needs none, so it is not shown.
fn need_key_index(draft: &mut Table, key: &ForeignKey) {
    if draft.key_over(&key.columns).is_none() {
        let parts = key.columns.iter().map(|column| super::index::ascending(*column)).collect();
        draft.indexes.push(super::index::unmade(key.name.clone(), parts, false, true));
    }
}

/// PostgreSQL wants a unique key of exactly the referenced columns.
fn require_unique(key: &ForeignKey, parent: &Table) -> Result<()> {
    let mut places = key.places_in(parent)?;
    places.sort_unstable();
    let is_whole = |parts: &[query::catalog::table::Part]| {
        let mut columns: Vec<usize> = parts.iter().map(|part| part.column).collect();
        columns.sort_unstable();
        columns == places
    };
    let unique = parent.indexes.iter().filter(|index| index.is_key()).map(|index| &*index.parts);
    let mut deferrable = parent.indexes.iter().filter(|index| index.tells_apart() && !index.unique);
    match parent.primary.as_deref().into_iter().chain(unique).any(is_whole) {
        true => Ok(()),
        false if deferrable.any(|index| is_whole(&index.parts)) => {
            let message = format!("cannot use a deferrable unique constraint for referenced table \"{}\"", parent.name);
            Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
        }
        false => {
            let message =
                format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name);
            Err(PgError::new(state::INVALID_FOREIGN_KEY, message))
        }
    }
}

fn missing_key_column(name: &str) -> PgError {
    PgError::new(
        state::UNDEFINED_COLUMN,
        format!("column \"{name}\" referenced in foreign key constraint does not exist"),
    )
}
