//! Types whose values are rows, by their numbers.
//!
//! The rows of a table or a view have a type of their own. It has no record: its number follows from the relation's, its
//! fields are the relation's columns, and it ends with the relation. A composite type of the catalog is numbered alike, so
//! one number is never that of both.
//!
//! ```text
//!   bits 31 to 27   1
//!   bit 26          1 arrays
//!   bits 25 to 0    the object's number, above `OBJECTS`
//! ```
//!
//! Rows of temporary relations have no type of their own.
//!
//! Values carry the names and types of their fields. So a column of such a type keeps the relation as it is (QU-70): a
//! change of its columns, or a drop, takes the lock that a table with such a column holds shared.

use std::collections::BTreeSet;
use std::sync::Arc;

use datum::{Fault, Result};
use engine::rows::Strength;

use crate::catalog::Writing;
use crate::catalog::changes::name_of;
use crate::catalog::object_id::ObjectId;
use crate::catalog::objects::Object;
use crate::catalog::snapshot::Snapshot;
use crate::catalog::table::Table;
use crate::catalog::user_type::{TypeDefinition, UserType, type_key};
use crate::catalog::view::View;
use crate::types::TypeId;

/// Object numbers are counted from here: smaller ones are left to the dialects.
const OBJECTS: u32 = 1 << 14;
const OBJECT_BITS: u32 = 26;
/// The bits above those of the object, for rows and for arrays of them.
const ROWS: u32 = 2;
const ARRAYS: u32 = 3;

/// Returns the numbers of the type of an object's rows, and of arrays of them. `None`: the object is temporary, or its number is too large.
pub fn numbers(id: ObjectId) -> Option<[TypeId; 2]> {
    let object = u32::try_from(id).ok()?.checked_add(OBJECTS)?;
    (object < 1 << OBJECT_BITS).then(|| [ROWS, ARRAYS].map(|kind| TypeId(kind << OBJECT_BITS | object)))
}

/// Returns the object whose rows, or arrays of them, are the values of a type; `None` for another type.
pub fn object_of(TypeId(number): TypeId) -> Option<ObjectId> {
    let is_of_rows = matches!(number >> OBJECT_BITS, ROWS | ARRAYS);
    let object = number & ((1 << OBJECT_BITS) - 1);
    object.checked_sub(OBJECTS).filter(|_| is_of_rows).map(u64::from)
}

/// Returns the names and types of the columns whose values are in a row of the table.
fn row_of(table: &Table) -> impl Iterator<Item = (&str, TypeId, u32)> {
    let shown = table.columns.iter().filter(|column| !column.is_hidden());
    shown.map(|column| (&*column.name, column.ty.id, column.ty.length))
}

fn row_of_view(view: &View) -> impl Iterator<Item = (&str, TypeId, u32)> {
    view.columns.iter().zip(&view.types).map(|(name, ty)| (&**name, ty.id, ty.length))
}

/// Returns whether the rows of two versions of a table have one type.
pub fn has_row_of(table: &Table, other: &Table) -> bool {
    row_of(table).eq(row_of(other))
}

impl UserType {
    /// Returns the types of attributes, or of the values behind a domain.
    pub(super) fn inner(&self) -> Vec<TypeId> {
        match &self.definition {
            TypeDefinition::Enumeration(_) => Vec::new(),
            TypeDefinition::Domain(domain) => vec![domain.base.id],
            TypeDefinition::Composite(composite) => {
                composite.row.fields.iter().map(|field| TypeId(field.number)).collect()
            }
        }
    }
}

impl Snapshot {
    /// Returns the types, and those whose values contain values of them, directly or through others.
    pub fn types_containing(&self, types: &[TypeId]) -> BTreeSet<TypeId> {
        let mut found: BTreeSet<TypeId> = types.iter().copied().collect();
        loop {
            let before = found.len();
            for ty in self.user_types() {
                if ty.inner().iter().any(|inner| found.contains(inner)) {
                    found.extend(&ty.numbers);
                }
            }
            for schema in self.schemas.values() {
                let tables = schema.tables.values().filter(|table| row_of(table).any(|(_, ty, _)| found.contains(&ty)));
                let mut relations: Vec<ObjectId> = tables.map(|table| table.id).collect();
                let views = schema.views.values();
                let views = views.filter(|view| row_of_view(view).any(|(_, ty, _)| found.contains(&ty)));
                relations.extend(views.map(|view| view.id));
                found.extend(relations.into_iter().filter_map(numbers).flatten());
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Returns a table with a column whose values are rows of one of these relations, or contain such, and the column's name.
    pub fn column_of_rows(
        &self,
        relations: impl Iterator<Item = ObjectId>,
        is_other: impl Fn(&Table) -> bool,
    ) -> Option<(&Table, &str)> {
        let types: Vec<TypeId> = relations.filter_map(numbers).flatten().collect();
        let types = self.types_containing(&types);
        let tables = self.schemas.values().flat_map(|schema| schema.tables.values());
        tables.filter(|table| is_other(table)).find_map(|table| {
            let column = table.columns.iter().find(|column| types.contains(&column.ty.id))?;
            Some((&**table, &*column.name))
        })
    }
}

impl Writing<'_> {
    /// Locks the types of values, and those within them, so that none is changed or dropped before the transaction ends.
    pub(super) fn hold_types_of(&mut self, types: impl Iterator<Item = TypeId>) -> Result<()> {
        let (mut open, mut seen): (Vec<TypeId>, BTreeSet<ObjectId>) = (types.collect(), BTreeSet::new());
        while let Some(number) = open.pop() {
            let by_number = self.snapshot.user_types().find(|ty| ty.numbers.contains(&number)).cloned();
            if let Some(ty) = by_number {
                if seen.insert(ty.id) {
                    open.extend(ty.inner());
                    self.hold_type(&ty)?;
                }
                continue;
            }
            let relation = object_of(number).and_then(|id| self.snapshot.object(id)).cloned();
            match relation {
                Some(Object::Table(table)) if !table.temporary && seen.insert(table.id) => {
                    open.extend(row_of(&table).map(|(_, ty, _)| ty));
                    self.lock(&type_key(table.id, 0), Strength::Shared)?;
                    self.check_row(&table.schema, &table.name, |now| {
                        let now = now.table(&table.schema, &table.name).ok();
                        now.is_some_and(|now| now.id == table.id && has_row_of(now, &table))
                    })?;
                }
                Some(Object::View(view)) if !view.temporary && seen.insert(view.id) => {
                    open.extend(row_of_view(&view).map(|(_, ty, _)| ty));
                    self.lock(&type_key(view.id, 0), Strength::Shared)?;
                    self.check_row(&view.schema, &view.name, |now| {
                        let now = now.view(&view.schema, &view.name);
                        now.is_some_and(|now| now.id == view.id && row_of_view(now).eq(row_of_view(&view)))
                    })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Fails if another transaction has meanwhile changed the row of a relation, or dropped it.
    fn check_row(&self, schema: &str, name: &str, is_same: impl Fn(&Snapshot) -> bool) -> Result<()> {
        match self.pending.changes.concern(schema, name) || is_same(&self.catalog.published()) {
            true => Ok(()),
            false => Err(Fault::ConcurrentChange),
        }
    }

    /// Locks the row type of a relation that is changed or dropped. Fails if another transaction has meanwhile made a table
    /// or a type with values of it.
    fn claim_row_type(&mut self, relation: ObjectId) -> Result<()> {
        self.lock(&type_key(relation, 0), Strength::Exclusive)?;
        match numbers(relation) {
            Some(numbers) => self.check_users_of(&numbers, None),
            None => Ok(()),
        }
    }

    /// Claims the row type of a table that is changed, if that changes it.
    pub(super) fn claim_changed_row(&mut self, old: &Table, new: Option<&Table>) -> Result<()> {
        match new.is_some_and(|new| has_row_of(old, new)) || old.temporary {
            true => Ok(()),
            false => self.claim_row_type(old.id),
        }
    }

    /// Does the same for a view.
    pub(super) fn claim_changed_row_of_view(&mut self, old: &View, new: Option<&View>) -> Result<()> {
        match new.is_some_and(|new| row_of_view(old).eq(row_of_view(new))) || old.temporary {
            true => Ok(()),
            false => self.claim_row_type(old.id),
        }
    }

    /// Fails if another transaction has meanwhile made a table or a type that uses one of these, the numbers of `but` apart.
    pub(super) fn check_users_of(&self, types: &[TypeId], but: Option<ObjectId>) -> Result<()> {
        let published = self.catalog.published();
        let family = published.types_containing(types);
        for over in published.user_types().filter(|over| Some(over.id) != but) {
            if !over.numbers.iter().any(|number| family.contains(number)) {
                continue;
            }
            let seen = self.snapshot.user_type(&over.schema, &over.name);
            let is_changed = self.pending.changes.types.contains_key(&*name_of(&over.schema, &over.name));
            if !is_changed && !seen.is_some_and(|seen| Arc::ptr_eq(seen, over)) {
                return Err(Fault::ConcurrentChange);
            }
        }
        for table in published.schemas.values().flat_map(|schema| schema.tables.values()) {
            let seen = self.snapshot.schemas.get(&table.schema).and_then(|schema| schema.tables.get(&table.name));
            let is_replaced = self.pending.changes.concern(&table.schema, &table.name)
                || seen.is_some_and(|seen| Arc::ptr_eq(seen, table));
            if !is_replaced && table.columns.iter().any(|column| family.contains(&column.ty.id)) {
                return Err(Fault::ConcurrentChange);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_by_the_numbers_of_its_rows() {
        for id in [0, 1, 77, (1 << 26) - (1 << 14) - 1] {
            let numbers = numbers(id).unwrap();
            assert_eq!(numbers.map(object_of), [Some(id); 2]);
        }
        assert_eq!(numbers((1 << 26) - (1 << 14)), None);
        assert_eq!(numbers(crate::catalog::temporary_maps::FIRST), None);
        assert_eq!(object_of(TypeId(1 << 28)), None);
        assert_eq!(object_of(TypeId((1 << 31) - 1)), None);
        assert_eq!(object_of(TypeId(23)), None);
    }
}
