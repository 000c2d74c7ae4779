//! The definitions that one statement reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::{Fault, Result};
use engine::PendingAccounts;

use crate::catalog::access::AccessRecords;
use crate::catalog::comment::Comments;
use crate::catalog::default_access::DefaultAccesses;
use crate::catalog::foreign_key::Children;
use crate::catalog::object_id::ObjectId;
use crate::catalog::objects::{Object, Objects};
use crate::catalog::schema::Schema;
use crate::catalog::sequence::Sequence;
use crate::catalog::session_default::SessionDefaults;
use crate::catalog::table::Table;
use crate::catalog::temporary_maps;
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;

/// All definitions as of one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub version: u64,
    pub schemas: BTreeMap<String, Arc<Schema>>,
    /// Names of schemas whose tables are computed.
    pub system: &'static [&'static str],
    /// Another number whenever types have changed, since bound expressions hold what they read of types.
    pub types_version: u64,
    /// The child tables of each parent, as of publication.
    pub children: Arc<Children>,
    /// Owners and privileges.
    pub access: AccessRecords,
    /// The settings of new sessions.
    pub session_defaults: Arc<SessionDefaults>,
    /// The privileges of new objects.
    pub default_access: Arc<DefaultAccesses>,
    /// The comments that no definition holds.
    pub comments: Arc<Comments>,
    /// The accounts that the transaction has changed which sees these definitions.
    pub accounts: Arc<PendingAccounts>,
    /// The shared definitions below a session's temporary objects. None if there are none.
    pub below: Option<Arc<Snapshot>>,
    /// The stored name of the schema that holds the session's temporary objects. None: there is none, or they lie among the shared ones.
    pub temporary_schema: Option<Arc<str>>,
    /// By number.
    pub(super) objects: Objects,
}

impl Snapshot {
    /// Returns whether the schema's tables are computed, and so not in the catalog. The name may be in any case.
    pub fn is_system(&self, schema: &str) -> bool {
        self.system.iter().any(|known| known.eq_ignore_ascii_case(schema))
    }

    pub fn schema(&self, name: &str) -> Result<&Arc<Schema>> {
        self.schemas.get(name).ok_or_else(|| Fault::UnknownDatabase(name.into()))
    }

    pub fn view(&self, schema: &str, name: &str) -> Option<&Arc<View>> {
        self.schemas.get(schema)?.views.get(name)
    }

    pub fn sequence(&self, schema: &str, name: &str) -> Option<&Arc<Sequence>> {
        self.schemas.get(schema)?.sequences.get(name)
    }

    pub fn user_type(&self, schema: &str, name: &str) -> Option<&Arc<UserType>> {
        self.schemas.get(schema)?.types.get(name)
    }

    pub fn user_types(&self) -> impl Iterator<Item = &Arc<UserType>> {
        self.schemas.values().flat_map(|schema| schema.types.values())
    }

    /// Returns a type and those that are over it, directly or through others and rows of relations.
    pub fn user_types_over(&self, ty: &UserType) -> Vec<Arc<UserType>> {
        let found = self.types_containing(&ty.numbers);
        let own = self.user_types().filter(|known| known.id == ty.id);
        let over = self.user_types().filter(|known| known.id != ty.id);
        own.chain(over.filter(|over| over.numbers.iter().any(|number| found.contains(number)))).cloned().collect()
    }

    pub fn table(&self, schema: &str, name: &str) -> Result<&Arc<Table>> {
        match self.schemas.get(schema) {
            Some(found) => found.tables.get(name).ok_or_else(|| Fault::unknown_table(schema, name)),
            None if self.is_system(schema) => Err(Fault::unknown_table(schema, name)),
            None => Err(Fault::UnknownDatabase(schema.into())),
        }
    }

    /// Returns the object of that number. The first call on a snapshot walks all definitions.
    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        match &self.below {
            Some(below) if id < temporary_maps::FIRST => below.object(id),
            below => self.objects.get(temporary_maps::narrow(id), self.schemas.values(), below.is_some()),
        }
    }

    /// Returns the table and the position of the column that owns the sequence.
    pub fn owner(&self, sequence: &Sequence) -> Option<(&Arc<Table>, usize)> {
        let Some(Object::Table(table)) = self.object(sequence.owned_by?) else { return None };
        let column = table.columns.iter().position(|column| column.sequences.contains(&sequence.id))?;
        Some((table, column))
    }
}
