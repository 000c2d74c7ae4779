//! Objects of the catalog by their numbers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::catalog::object_id::{ObjectId, UNNUMBERED};
use crate::catalog::schema::Schema;
use crate::catalog::sequence::Sequence;
use crate::catalog::table::Table;
use crate::catalog::temporary_maps::narrow;
use crate::catalog::user_type::{TypeDefinition, UserType};
use crate::catalog::view::View;

/// An object, or a table and the position of its part.
#[derive(Clone, Debug)]
pub enum Object {
    Schema(Arc<Schema>),
    Table(Arc<Table>),
    PrimaryKey(Arc<Table>),
    Index(Arc<Table>, usize),
    Check(Arc<Table>, usize),
    ForeignKey(Arc<Table>, usize),
    View(Arc<View>),
    Sequence(Arc<Sequence>),
    Type(Arc<UserType>),
    DomainCheck(Arc<UserType>, usize),
}

/// The objects of one snapshot, found at the first use. A copy of a snapshot may be changed, so a clone is empty.
#[derive(Debug, Default)]
pub struct Objects(OnceLock<HashMap<ObjectId, Object>>);

impl Clone for Objects {
    fn clone(&self) -> Objects {
        Objects::default()
    }
}

impl Objects {
    /// Returns the object of that number. The first call finds all of `schemas`; of an overlay the temporary ones.
    pub(super) fn get<'s>(
        &self,
        id: ObjectId,
        schemas: impl Iterator<Item = &'s Arc<Schema>>,
        is_overlay: bool,
    ) -> Option<&Object> {
        self.0.get_or_init(|| numbered(schemas, is_overlay)).get(&id)
    }
}

fn numbered<'s>(schemas: impl Iterator<Item = &'s Arc<Schema>>, is_overlay: bool) -> HashMap<ObjectId, Object> {
    let mut all = HashMap::new();
    for schema in schemas {
        if schema.is_temporary() == is_overlay {
            all.insert(narrow(schema.id), Object::Schema(schema.clone()));
            all.extend(schema.views.values().map(|view| (narrow(view.id), Object::View(view.clone()))));
            all.extend(schema.types.values().map(|ty| (ty.id, Object::Type(ty.clone()))));
            all.extend(schema.types.values().flat_map(domain_checks));
        }
        for table in schema.tables.values().filter(|table| table.temporary == is_overlay) {
            all.extend(parts(table).into_iter().map(|(id, part)| (narrow(id), part)));
        }
        let sequences = schema.sequences.values().filter(|sequence| sequence.temporary == is_overlay);
        all.extend(sequences.map(|sequence| (narrow(sequence.id), Object::Sequence(sequence.clone()))));
    }
    all.remove(&UNNUMBERED);
    all
}

fn domain_checks(ty: &Arc<UserType>) -> Vec<(ObjectId, Object)> {
    match &ty.definition {
        TypeDefinition::Domain(domain) => {
            let checks = domain.checks.iter().enumerate();
            checks.map(|(at, check)| (check.id, Object::DomainCheck(ty.clone(), at))).collect()
        }
        TypeDefinition::Enumeration(_) | TypeDefinition::Composite(_) => Vec::new(),
    }
}

/// Returns the table and its parts.
fn parts(table: &Arc<Table>) -> Vec<(ObjectId, Object)> {
    let mut parts = vec![(table.id, Object::Table(table.clone()))];
    parts.push((table.primary_id, Object::PrimaryKey(table.clone())));
    let at = |(at, id), make: fn(Arc<Table>, usize) -> Object| (id, make(table.clone(), at));
    let indexes = table.indexes.iter().map(|index| index.id).enumerate();
    parts.extend(indexes.map(|index| at(index, Object::Index)));
    let checks = table.checks.iter().map(|check| check.id).enumerate();
    parts.extend(checks.map(|check| at(check, Object::Check)));
    let keys = table.foreign_keys.iter().map(|key| key.id).enumerate();
    parts.extend(keys.map(|key| at(key, Object::ForeignKey)));
    parts
}
