//! Privileges that objects get when a role makes them (ALTER DEFAULT PRIVILEGES).
//!
//! A record for every schema takes the place of the privileges that a kind of objects has at first; one for a schema is added to them.

use query::catalog::access::AccessGrant;
use query::catalog::default_access::{DefaultAccessKey, DefaultAccesses};
use query::catalog::object_id::ObjectId;

use crate::define::names::schema_of;
use crate::error::Result;
use crate::rights::acl::{self, AclChange, first_grants};
use crate::rights::privilege::ObjectClass;
use crate::rights::role::{Facts, PUBLIC};
use crate::types::oid::Oid;

/// Returns the kind of objects of a record, as `pg_default_acl` shows it; `None` for one that has no default privileges.
pub fn kind_of(class: ObjectClass) -> Option<u8> {
    match class {
        ObjectClass::Relation => Some(b'r'),
        ObjectClass::Sequence => Some(b'S'),
        ObjectClass::Function => Some(b'f'),
        ObjectClass::Schema => Some(b'n'),
        ObjectClass::Column | ObjectClass::Database => None,
    }
}

/// Returns the class of a record's objects, and their name in messages.
fn class_of(kind: u8) -> Option<(ObjectClass, &'static str)> {
    match kind {
        b'r' => Some((ObjectClass::Relation, "relations")),
        b'S' => Some((ObjectClass::Sequence, "sequences")),
        b'f' => Some((ObjectClass::Function, "functions")),
        b'n' => Some((ObjectClass::Schema, "schemas")),
        _ => None,
    }
}

/// Returns the grants that a record changes when it does not exist yet: none if it is of one schema.
pub fn initial(key: DefaultAccessKey) -> Vec<AccessGrant> {
    match class_of(key.kind) {
        Some((class, _)) if key.schema == 0 => sorted(first_grants(class, key.role, class.of_public())),
        _ => Vec::new(),
    }
}

/// Sorts grants as PostgreSQL sorts an `aclitem[]`.
pub fn sorted(mut grants: Vec<AccessGrant>) -> Vec<AccessGrant> {
    grants.sort_unstable_by_key(|grant| (grant.grantee, grant.grantor, grant.grantable, grant.privileges));
    grants
}

impl Facts<'_> {
    /// Returns the grants of an object that a role makes in this database; `None` if they are those that it has at first. `schema`: the stored name of its schema.
    pub fn grants_of_new(
        &self,
        class: ObjectClass,
        owner: Oid,
        schema: Option<&str>,
    ) -> Result<Option<Vec<AccessGrant>>> {
        let known: &DefaultAccesses = &self.snapshot.default_access;
        let Some(kind) = kind_of(class).filter(|_| !known.is_empty()) else { return Ok(None) };
        let database = self.schema_id(self.database);
        let record = |schema: ObjectId| known.get(&DefaultAccessKey { database, role: owner, schema, kind });
        let of_all = record(0);
        let of_schema = schema.map(|name| self.schema_id(name)).filter(|id| *id != 0).and_then(record);
        if of_all.is_none() && of_schema.is_none() {
            return Ok(None);
        }
        let first = sorted(first_grants(class, owner, class.of_public()));
        let mut grants = of_all.map_or_else(|| first.clone(), |record| record.grants.clone());
        for grant in of_schema.iter().flat_map(|record| &record.grants) {
            for (privileges, option) in [(grant.privileges, false), (grant.grantable, true)] {
                let (grantee, grantor) = (grant.grantee, grant.grantor);
                let change = AclChange { is_grant: true, grantee, grantor, column: 0, privileges, option };
                if privileges != 0 {
                    acl::change(&mut grants, change, owner, false)?;
                }
            }
        }
        // Another door may have dropped a grantee.
        grants.retain(|grant| grant.grantee == PUBLIC || self.roles().by_oid(grant.grantee).is_some());
        let grants = sorted(grants);
        // Where nothing is left, PostgreSQL's `aclmerge` gives no list, which stands for the first privileges.
        Ok((grants != first && !grants.is_empty()).then_some(grants))
    }

    fn schema_id(&self, stored: &str) -> ObjectId {
        self.snapshot.schemas.get(stored).map_or(0, |schema| schema.id)
    }

    /// Describes a record as messages name it, with the database that it is of.
    pub fn described_default(&self, key: DefaultAccessKey) -> Option<(String, String)> {
        let of_id = |id: ObjectId| self.snapshot.schemas.values().find(|schema| schema.id == id);
        let database = of_id(key.database)?.name.clone();
        let (_, objects) = class_of(key.kind)?;
        let role = self.roles().name_of(key.role);
        let place = match key.schema {
            0 => String::new(),
            id => format!(" in schema {}", schema_of(&of_id(id)?.name)),
        };
        Some((database, format!("default privileges on new {objects} belonging to role {role}{place}")))
    }
}
