//! Objects of the catalog by their numbers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::catalog::sequence::Sequence;
use crate::catalog::table::{ObjectId, Table, UNNUMBERED};
use crate::catalog::view::View;
use crate::catalog::{Schema, Snapshot, temporary_maps};

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
}

/// The objects of one snapshot, found at the first use. A copy of a snapshot may be changed, so a clone is empty.
#[derive(Debug, Default)]
pub struct Objects(OnceLock<HashMap<ObjectId, Object>>);

impl Clone for Objects {
    fn clone(&self) -> Objects {
        Objects::default()
    }
}

impl Snapshot {
    /// Returns the object of that number. The first call on a snapshot walks all definitions.
    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        match &self.below {
            Some(below) if id < temporary_maps::FIRST => below.object(id),
            _ => self.objects.0.get_or_init(|| self.numbered()).get(&id),
        }
    }

    /// Returns the table and the position of the column that owns the sequence.
    pub fn owner(&self, sequence: &Sequence) -> Option<(&Arc<Table>, usize)> {
        let Some(Object::Table(table)) = self.object(sequence.owned_by?) else { return None };
        let column = table.columns.iter().position(|column| column.sequences.contains(&sequence.id))?;
        Some((table, column))
    }

    /// Returns all objects by their numbers, or the temporary ones of an overlay.
    fn numbered(&self) -> HashMap<ObjectId, Object> {
        let mut all = HashMap::new();
        let is_overlay = self.below.is_some();
        for schema in self.schemas.values() {
            if !is_overlay {
                all.insert(schema.id, Object::Schema(schema.clone()));
                all.extend(schema.views.values().map(|view| (view.id, Object::View(view.clone()))));
            }
            for table in schema.tables.values().filter(|table| table.temporary == is_overlay) {
                all.extend(parts(table));
            }
            let sequences = schema.sequences.values().filter(|sequence| sequence.temporary == is_overlay);
            all.extend(sequences.map(|sequence| (sequence.id, Object::Sequence(sequence.clone()))));
        }
        all.remove(&UNNUMBERED);
        all
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
