//! Names in the text of a definition: where they are, and what they mean.
//!
//! A definition keeps the text of its queries and expressions. When a relation gets another schema, `define/moved_names` corrects the texts that name it, at the places that the binder notes here. Names within the texts of views that are read have places of their own, and are left out.

use query::catalog::object_id::ObjectId;

use crate::bind::Binder;
use crate::bind::from::FoundRelation;
use crate::types::oid::Oid;

/// A name of an object in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSite {
    /// The byte where the name begins.
    pub at: u32,
    pub kind: NameSiteKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameSiteKind {
    /// A relation, or a type of a row, with the number of parts that the name has.
    Relation(ObjectId, usize),
    /// A type that users have defined, with the number of parts that the name has.
    Type(ObjectId, usize),
    /// A constant of type regclass.
    Constant(Oid),
    /// The schema and the table before the name of a column.
    Qualifier { schema: String, table: String },
}

impl Binder<'_> {
    /// Lets the binder note names from here on.
    pub(super) fn note_names(&mut self) {
        self.name_sites.get_or_insert_default();
    }

    /// Returns the names that were noted, by their places.
    pub(super) fn take_names(&mut self) -> Vec<NameSite> {
        let mut sites = self.name_sites.take().unwrap_or_default().into_inner();
        sites.sort_by_key(|site| site.at);
        sites.dedup();
        sites
    }

    pub(super) fn note_name(&self, at: u32, kind: NameSiteKind) {
        if let Some(sites) = &self.name_sites {
            sites.borrow_mut().push(NameSite { at, kind });
        }
    }

    /// Notes the name of a relation; those of the system never change.
    pub(super) fn note_relation(&self, found: &FoundRelation, at: u32, parts: usize) {
        let id = match found {
            FoundRelation::Table(table) => table.id,
            FoundRelation::View(view) => view.id,
            FoundRelation::Sequence(sequence) => sequence.id,
            FoundRelation::System(_) => return,
        };
        self.note_name(at, NameSiteKind::Relation(id, parts));
    }
}
