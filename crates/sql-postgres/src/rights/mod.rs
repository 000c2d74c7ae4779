//! Roles, owners and privileges, as PostgreSQL has them.
//!
//! ```text
//!   the one list of accounts ──► role: roles, memberships ──► RoleSet: the roles whose rights a role has   ┐
//!   query::catalog::access ────► object: owner and grants of an object                                     ├─► check
//! ```
//! PS-40: a privilege is checked when a statement is bound, against the definitions that the statement reads, and each time a command begins. Plans that are kept are of a plan-cache context with the version of all grants and accounts, so a plan that was bound before a REVOKE is never run after it.
//!
//! Files: `privilege` (names and bits), `role` (roles and memberships), `acl` (lists of grants), `default_acl` (grants on new objects), `object` (what a name stands for, and its owner), `needs` (the privileges that a plan needs), `guarded` (the statements that check them).

pub mod acl;
pub mod default_acl;
pub mod guarded;
pub mod needs;
pub mod object;
pub mod privilege;
pub mod role;

use std::sync::Arc;

use query::catalog::access::AccessRecord;

use crate::system::oids;
use crate::types::oid::Oid;

/// Returns the owner of an object by its record. Without one it is `postgres`.
pub fn owner_of(access: Option<&Arc<AccessRecord>>) -> Oid {
    match access.map_or(0, |access| access.owner) {
        0 => oids::POSTGRES,
        owner => owner,
    }
}
