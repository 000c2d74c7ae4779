//! Owners and rights as the catalogs show them: numbers of roles, and arrays of `aclitem`.

use query::catalog::access::AccessGrant;

use crate::rights::object::Object;
use crate::rights::privilege::{ObjectClass, Privileges, letters};
use crate::rights::role::{PUBLIC, Roles};
use crate::system::arrays;
use crate::system::view::Shown;
use crate::types::oid::Oid;
use crate::value::Value;

/// Returns those of `pg_catalog` and `information_schema`: everybody may use them.
pub fn of_system_schema() -> Value {
    arrays::rights(&["postgres=UC/postgres".to_owned(), "=U/postgres".to_owned()])
}

/// Returns a role's name as an `aclitem` has it.
fn quoted(name: &str) -> String {
    match name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

pub fn role_in_item(roles: Roles<'_>, oid: Oid) -> String {
    roles.by_oid(oid).map_or_else(|| oid.to_string(), |role| quoted(&role.name))
}

/// Returns the text of an `aclitem`.
pub fn item(roles: Roles<'_>, grant: &AccessGrant) -> String {
    let grantee = if grant.grantee == PUBLIC { String::new() } else { role_in_item(roles, grant.grantee) };
    format!("{grantee}={}/{}", letters(grant.privileges, grant.grantable), role_in_item(roles, grant.grantor))
}

impl Shown {
    /// Returns the owner of an object.
    pub fn owner(&self, object: &Object) -> Oid {
        if object.is_temporary && object.class != ObjectClass::Schema {
            return self.identity.session;
        }
        self.facts().owner(object)
    }

    /// Returns the owner's name.
    pub fn owner_name(&self, object: &Object) -> String {
        self.facts().roles().name_of(self.owner(object))
    }

    /// Returns the rights on an object or column; NULL for those that it has at first.
    pub fn rights(&self, object: &Object, column: u32) -> Value {
        match self.facts().grants_shown(object, column) {
            Some(grants) => {
                arrays::rights(&grants.iter().map(|grant| item(self.facts().roles(), grant)).collect::<Vec<_>>())
            }
            None => Value::Null,
        }
    }

    /// Returns whether the current role owns an object or has one of these privileges.
    pub fn sees(&self, object: &Object, wanted: Privileges) -> bool {
        self.identity.set.is_super || self.facts().sees(&self.identity.set, object, wanted)
    }
}
