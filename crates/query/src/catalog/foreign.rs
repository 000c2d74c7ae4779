//! Foreign keys as definitions: the constraints of a table, and the search for their two ends.
//!
//! The child's definition holds the whole constraint and names the parent. The parent may be missing
//! (foreign_key_checks = 0), and a table that takes the name later becomes the parent. So the parent's side is a search
//! over all definitions, whose result is kept in the snapshot as `children`. QU-6: a change of definitions leaves no
//! constraint whose two ends do not fit, whether checks are on or off.

use std::sync::Arc;

use datum::fault::{ForeignKeyParts, ReferencedColumn, ReferencedKey, ReferencedType};
use datum::{Fault, Result, Storage};

use crate::catalog::Snapshot;
use crate::catalog::foreign_key::{Action, Children, ForeignKey, KeyAt};
use crate::catalog::table::{Part, Table};
use crate::key_form::KeyForm;
use crate::types::Type;

impl ForeignKey {
    pub fn refers_to(&self, schema: &str, name: &str) -> bool {
        self.parent_schema == schema && self.parent == name
    }

    /// Returns the declaration with names in the place of positions, for errors and for SQL text.
    pub fn parts(&self, child: &Table) -> ForeignKeyParts {
        let action = |action: Action| (action != Action::Nothing).then(|| action.name());
        ForeignKeyParts {
            constraint: self.name.as_str().into(),
            schema: child.schema.as_str().into(),
            table: child.name.as_str().into(),
            columns: self.columns.iter().map(|at| child.columns[*at].name.as_str().into()).collect(),
            parent_schema: self.parent_schema.as_str().into(),
            parent_table: self.parent.as_str().into(),
            parent_columns: self.parent_columns.iter().map(|name| name.as_str().into()).collect(),
            on_delete: action(self.on_delete),
            on_update: action(self.on_update),
            values: Box::default(),
        }
    }

    /// Returns the referenced columns of the parent.
    pub fn places_in(&self, parent: &Table) -> Result<Vec<usize>> {
        let place = |name: &String| {
            parent.column(name).ok_or_else(|| {
                let (constraint, parent) = (self.name.as_str().into(), parent.name.as_str().into());
                let column = name.as_str().into();
                Fault::ReferencedColumnMissing(Box::new(ReferencedColumn { constraint, parent, column }))
            })
        };
        self.parent_columns.iter().map(place).collect()
    }

    /// Checks that child and parent fit, and returns the parent's key.
    pub fn fit(&self, child: &Table, parent: &Table) -> Result<KeyAt> {
        let places = self.places_in(parent)?;
        for (own, theirs) in self.columns.iter().zip(&places) {
            let (own, theirs) = (&child.columns[*own], &parent.columns[*theirs]);
            if !are_compatible(&own.ty, &theirs.ty) {
                let (column, referenced) = (own.name.as_str().into(), theirs.name.as_str().into());
                let types = ReferencedType { constraint: self.name.as_str().into(), column, referenced };
                return Err(Fault::ReferencedColumnType(Box::new(types)));
            }
        }
        parent.key_over(&places).ok_or_else(|| {
            let (constraint, parent) = (self.name.as_str().into(), parent.name.as_str().into());
            Fault::ReferencedKeyMissing(Box::new(ReferencedKey { constraint, parent }))
        })
    }
}

/// Returns whether values of both columns have the same form and the same order, so that one can be looked up by the other.
fn are_compatible(a: &Type, b: &Type) -> bool {
    let is_same = a.storage == b.storage && (a.id == b.id || a.storage.is_string());
    is_same
        && match a.storage {
            Storage::Text | Storage::Enum | Storage::Set => a.collation == b.collation,
            Storage::Bytes => true,
            Storage::Decimal => (a.length, a.scale) == (b.length, b.scale),
            Storage::Bit => a.length == b.length,
            _ => a.scale == b.scale,
        }
}

/// Returns whether the key begins with these columns, in this order and without prefixes.
pub fn leads(parts: &[Part], columns: &[usize]) -> bool {
    parts.len() >= columns.len()
        && parts.iter().zip(columns).all(|(part, column)| part.column == *column && part.prefix.is_none())
}

impl Table {
    /// Returns the best key that finds rows by values of these columns. The inner None is the primary key.
    pub fn key_over(&self, columns: &[usize]) -> Option<KeyAt> {
        if self.primary.as_ref().is_some_and(|parts| leads(parts, columns)) {
            return Some(None);
        }
        let fits = |unique: bool| {
            let is_whole = |parts: &[Part]| !unique || parts.len() == columns.len();
            self.indexes.iter().position(|index| {
                // A partial index lacks rows, and one of terms does not find values.
                let fits = index.predicate.is_none() && index.terms.is_none() && (index.unique || !unique);
                fits && leads(&index.parts, columns) && is_whole(&index.parts)
            })
        };
        fits(true).or_else(|| fits(false)).map(Some)
    }

    pub fn key_parts(&self, key: KeyAt) -> &[Part] {
        match key {
            None => self.primary.as_deref().unwrap_or(&[]),
            Some(at) => &self.indexes[at].parts,
        }
    }

    pub fn key_form(&self, key: KeyAt) -> KeyForm {
        key.map_or(self.primary_form, |at| self.indexes[at].form)
    }

    pub fn refers_to(&self, schema: &str, name: &str) -> bool {
        self.foreign_keys.iter().any(|key| key.refers_to(schema, name))
    }
}

/// Adds the tables among these that refer to parents.
pub(super) fn add_children<'t>(children: &mut Children, tables: impl Iterator<Item = &'t Arc<Table>>) {
    for table in tables {
        for key in &table.foreign_keys {
            let of_parent = children.entry((key.parent_schema.clone(), key.parent.clone())).or_default();
            let child = (table.schema.clone(), table.name.clone());
            if !of_parent.contains(&child) {
                of_parent.push(child);
            }
        }
    }
}

impl Snapshot {
    /// Returns the child tables of each parent, by names, in these definitions.
    pub fn children_by_parent(&self) -> Children {
        let mut children = Children::new();
        add_children(&mut children, self.schemas.values().flat_map(|schema| schema.tables.values()));
        children
    }

    /// Returns the tables that refer to this name in the published definitions, possibly the table itself.
    pub fn children(&self, schema: &str, name: &str) -> Vec<Arc<Table>> {
        if self.children.is_empty() {
            return Vec::new();
        }
        let found = self.children.get(&(schema.to_owned(), name.to_owned()));
        found.into_iter().flatten().filter_map(|(schema, name)| self.table(schema, name).ok().cloned()).collect()
    }

    /// Returns the same while the definitions are being changed.
    pub fn children_now(&self, schema: &str, name: &str) -> Vec<Arc<Table>> {
        let tables = self.schemas.values().flat_map(|schema| schema.tables.values());
        tables.filter(|table| table.refers_to(schema, name)).cloned().collect()
    }

    /// Returns the other tables that constraints relate to the table.
    pub fn relatives(&self, schema: &str, name: &str, keys: &[ForeignKey]) -> Vec<Arc<Table>> {
        let parents = keys.iter().filter_map(|key| self.table(&key.parent_schema, &key.parent).ok().cloned());
        let mut found: Vec<Arc<Table>> = parents.chain(self.children_now(schema, name)).collect();
        found.retain(|table| table.schema != schema || table.name != name);
        found.sort_by_key(|table| table.id);
        found.dedup_by_key(|table| table.id);
        found
    }
}
