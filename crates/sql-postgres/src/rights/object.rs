//! Objects with owners and privileges, and the checks on one of them.

use std::borrow::Cow;

use query::catalog::Schema;
use query::catalog::access::{AccessGrant, AccessKey, AccessRecord};
use query::catalog::sequence::Sequence;
use query::catalog::table::Table;
use query::catalog::view::View;

use crate::define::names::{Relation, schema_of};
use crate::error::{PgError, Result, state};
use crate::rights::acl::{first_grants, options_of, privileges_of};
use crate::rights::privilege::{DELETE, INSERT, ObjectClass, Privileges, SELECT, UPDATE, USAGE};
use crate::rights::role::{Facts, PUBLIC, READ_ALL_DATA, RoleSet, WRITE_ALL_DATA};
use crate::system::oids;
use crate::types::oid::Oid;

/// An object, as messages and access records name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub key: AccessKey,
    pub class: ObjectClass,
    /// The word of messages.
    pub kind: &'static str,
    pub name: String,
    /// A temporary relation, or the schema of such: its session may do everything with it.
    pub is_temporary: bool,
    /// The schema `public`, whose first owner and grants are others.
    is_public: bool,
}

impl Object {
    fn of(key: AccessKey, class: ObjectClass, kind: &'static str, name: &str) -> Object {
        Object { key, class, kind, name: name.to_owned(), is_temporary: false, is_public: false }
    }

    pub fn table(table: &Table) -> Object {
        let kind = if table.query.is_some() { "materialized view" } else { "table" };
        let object = Object::of(AccessKey::object(table.id), ObjectClass::Relation, kind, &table.name);
        Object { is_temporary: table.temporary, ..object }
    }

    pub fn view(view: &View) -> Object {
        let object = Object::of(AccessKey::object(view.id), ObjectClass::Relation, "view", &view.name);
        Object { is_temporary: view.temporary, ..object }
    }

    pub fn sequence(sequence: &Sequence) -> Object {
        let object = Object::of(AccessKey::object(sequence.id), ObjectClass::Sequence, "sequence", &sequence.name);
        Object { is_temporary: sequence.temporary, ..object }
    }

    pub fn schema(schema: &Schema) -> Object {
        let name = schema_of(&schema.name);
        let object = Object::of(AccessKey::object(schema.id), ObjectClass::Schema, "schema", name);
        Object { is_public: name == "public", is_temporary: schema.is_temporary(), ..object }
    }

    /// Returns a database, by its schema `public`.
    pub fn database(schema: &Schema) -> Object {
        Object::of(AccessKey::database(schema.id), ObjectClass::Database, "database", &schema.name)
    }

    /// Returns the object that has the owner of a relation: that of an index is its table's.
    pub fn relation(relation: &Relation, name: &str) -> Object {
        match relation {
            Relation::Table(table) => Object::table(table),
            Relation::View(view) => Object::view(view),
            Relation::Sequence(sequence) => Object::sequence(sequence),
            Relation::Index(table, _) => Object { kind: "index", name: name.to_owned(), ..Object::table(table) },
        }
    }

    /// Returns the object as GRANT names it: a view is a table there.
    pub fn as_granted(&self) -> Object {
        let kind = if matches!(self.kind, "view" | "materialized view") { "table" } else { self.kind };
        Object { kind, ..self.clone() }
    }

    /// Returns the privileges that everybody has at first.
    pub fn first_of_public(&self) -> Privileges {
        if self.is_public { USAGE } else { self.class.of_public() }
    }

    /// Returns whether the first grants are not those that follow from the owner.
    pub fn has_own_first(&self) -> bool {
        self.is_public
    }

    /// Returns the owner by the object's record.
    pub fn owner(&self, access: Option<&AccessRecord>) -> Oid {
        match access.map_or(0, |access| access.owner) {
            0 if self.is_public => oids::PG_DATABASE_OWNER,
            0 => oids::POSTGRES,
            owner => owner,
        }
    }

    /// Returns the grants by the object's record: those of columns, and those of the whole, which it has at first if none was made.
    pub fn grants<'a>(&self, access: Option<&'a AccessRecord>) -> Cow<'a, [AccessGrant]> {
        let known = access.and_then(|access| access.grants.as_deref()).unwrap_or(&[]);
        if has_whole(known) {
            return Cow::Borrowed(known);
        }
        let mut grants = first_grants(self.class, self.owner(access), self.first_of_public());
        if self.is_public {
            // It was given to everybody after its owner.
            grants.reverse();
        }
        grants.extend_from_slice(known);
        Cow::Owned(grants)
    }

    /// Returns the error of a role without the privilege.
    pub fn denied(&self) -> PgError {
        PgError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied for {} {}", self.kind, self.name))
    }

    /// Returns the error of a role that is not the owner.
    pub fn not_owner(&self) -> PgError {
        PgError::new(state::INSUFFICIENT_PRIVILEGE, format!("must be owner of {} {}", self.kind, self.name))
    }
}

/// Returns whether grants were made on the whole object.
pub fn has_whole(grants: &[AccessGrant]) -> bool {
    grants.iter().any(|grant| grant.column == 0)
}

/// The entry of a list from which all grants on the whole object are revoked.
pub const NONE_LEFT: AccessGrant = AccessGrant { grantee: 0, grantor: 0, column: 0, privileges: 0, grantable: 0 };

/// Returns the privileges that predefined roles have on every object of a kind.
fn of_predefined(set: &RoleSet, class: ObjectClass) -> Privileges {
    let mut all = 0;
    if set.roles.contains(&READ_ALL_DATA) {
        all |= match class {
            ObjectClass::Relation | ObjectClass::Sequence => SELECT,
            ObjectClass::Schema => USAGE,
            _ => 0,
        };
    }
    if set.roles.contains(&WRITE_ALL_DATA) {
        all |= match class {
            ObjectClass::Relation => INSERT | UPDATE | DELETE,
            ObjectClass::Sequence => UPDATE,
            ObjectClass::Schema => USAGE,
            _ => 0,
        };
    }
    all
}

impl Facts<'_> {
    fn access(&self, object: &Object) -> Option<&AccessRecord> {
        self.snapshot.access.get(object.key).map(|access| &**access)
    }

    pub fn owner(&self, object: &Object) -> Oid {
        object.owner(self.access(object))
    }

    /// Returns the grants on an object or, with its slot and 1, a column; `None` if none was made.
    pub fn grants_shown(&self, object: &Object, column: u32) -> Option<Vec<AccessGrant>> {
        let known = self.access(object).and_then(|access| access.grants.as_deref()).unwrap_or(&[]);
        let of = |grants: &[AccessGrant]| -> Vec<AccessGrant> {
            grants.iter().filter(|grant| grant.column == column && grant.privileges != 0).copied().collect()
        };
        match column {
            0 if has_whole(known) => Some(of(known)),
            0 if object.has_own_first() => Some(of(&object.grants(None))),
            0 => None,
            _ => Some(of(known)).filter(|grants| !grants.is_empty()),
        }
    }

    /// Returns the grants on an object, those that it has at first included.
    pub fn grants_of(&self, object: &Object) -> Vec<AccessGrant> {
        object.grants(self.access(object)).into_owned()
    }

    /// Returns whether a role owns an object, or has one of these privileges on it or on a column of it.
    pub fn sees(&self, set: &RoleSet, object: &Object, wanted: Privileges) -> bool {
        let of_columns = || {
            let grants = self.access(object).and_then(|access| access.grants.as_deref()).unwrap_or(&[]);
            let is_own = |grant: &&AccessGrant| grant.grantee == PUBLIC || set.roles.contains(&grant.grantee);
            grants.iter().filter(is_own).any(|grant| grant.privileges & wanted != 0)
        };
        self.is_owner(set, object) || self.privileges(set, object) & wanted != 0 || of_columns()
    }

    /// Returns the privileges of a role on an object.
    pub fn privileges(&self, set: &RoleSet, object: &Object) -> Privileges {
        if set.is_super || object.is_temporary {
            return object.class.all();
        }
        privileges_of(set, &object.grants(self.access(object)), 0) | of_predefined(set, object.class)
    }

    /// Returns the privileges of a role on a column, by its slot and 1, beside those on the table.
    pub fn column_privileges(&self, set: &RoleSet, object: &Object, column: u32) -> Privileges {
        match self.access(object).and_then(|access| access.grants.as_deref()) {
            Some(grants) => privileges_of(set, grants, column),
            None => 0,
        }
    }

    /// Returns the privileges that a role may give on.
    pub fn options(&self, set: &RoleSet, object: &Object, column: u32) -> Privileges {
        let access = self.access(object);
        let class = if column == 0 { object.class } else { ObjectClass::Column };
        options_of(set, object.owner(access), class.all(), &object.grants(access), column)
    }

    /// Fails unless the role has all these privileges.
    pub fn check(&self, set: &RoleSet, object: &Object, wanted: Privileges) -> Result<()> {
        match wanted & !self.privileges(set, object) {
            0 => Ok(()),
            _ => Err(object.denied()),
        }
    }

    pub fn is_owner(&self, set: &RoleSet, object: &Object) -> bool {
        object.is_temporary || set.has(self.owner(object))
    }

    pub fn check_owner(&self, set: &RoleSet, object: &Object) -> Result<()> {
        if self.is_owner(set, object) { Ok(()) } else { Err(object.not_owner()) }
    }
}
