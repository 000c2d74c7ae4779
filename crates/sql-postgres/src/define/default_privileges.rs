//! ALTER DEFAULT PRIVILEGES.

use query::catalog::Writing;
use query::catalog::access::{AccessGrant, RoleId};
use query::catalog::default_access::{DefaultAccess, DefaultAccessKey};
use syntax::postgres::tree::{AlterDefaultPrivilegesStmt, ObjectType};

use crate::define::names::missing_schema;
use crate::define::owner::hold_role;
use crate::error::{PgError, Result, state};
use crate::rights::acl::{self, AclChange};
use crate::rights::default_acl::{initial, kind_of, sorted};
use crate::rights::privilege::{self, ObjectClass, Privileges};
use crate::rights::role::PUBLIC;
use crate::session::Session;
use crate::types::oid::Oid;

/// A grant to grantees of what is made from now on, or the opposite.
struct DefaultGrant<'s> {
    is_grant: bool,
    grantees: &'s [Oid],
    privileges: Privileges,
    option: bool,
    cascade: bool,
}

impl Session {
    pub(super) fn alter_default_privileges(&mut self, alter: &AlterDefaultPrivilegesStmt, text: &str) -> Result<()> {
        let AlterDefaultPrivilegesStmt {
            roles,
            schemas,
            redundant,
            is_grant,
            privileges,
            objects,
            grantees,
            grant_option,
            cascade,
        } = alter;
        self.begin_definition("ALTER DEFAULT PRIVILEGES")?;
        self.refresh();
        if let Some(at) = redundant {
            let error = PgError::new(state::SYNTAX_ERROR, "conflicting or redundant options");
            return Err(error.at(text, at.0 as usize));
        }
        let grantees = self.grantees(grantees)?;
        let class = match objects {
            ObjectType::Table => ObjectClass::Relation,
            ObjectType::Sequence => ObjectClass::Sequence,
            ObjectType::Schema => ObjectClass::Schema,
            ObjectType::Type => return Err(PgError::unsupported("default privileges on types")),
            _ => ObjectClass::Function,
        };
        let mut wanted = if privileges.is_empty() { class.all() } else { 0 };
        for named in privileges {
            if !named.columns.is_empty() {
                let message = "default privileges cannot be set for columns";
                return Err(PgError::new(state::INVALID_GRANT_OPERATION, message));
            }
            let bit = privilege::named(named.name.as_deref().unwrap_or_default())?;
            if bit & !class.all() != 0 {
                return Err(privilege::invalid(bit, class));
            }
            wanted |= bit;
        }
        let grant = DefaultGrant {
            is_grant: *is_grant,
            grantees: &grantees,
            privileges: wanted,
            option: *grant_option,
            cascade: *cascade,
        };
        let identity = self.current_identity();
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        self.forget_strangers(&mut writing)?;
        for grantee in &grantees {
            hold_role(&mut writing, *grantee)?;
        }
        if roles.is_empty() {
            self.change_defaults(&mut writing, identity.current, schemas, class, &grant)?;
        }
        for role in roles {
            let role = self.role_of(role)?.oid;
            if !identity.set.has(role) {
                let message = "permission denied to change default privileges";
                return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message));
            }
            self.change_defaults(&mut writing, role, schemas, class, &grant)?;
        }
        self.finish(writing)
    }

    /// Changes the records of a role: those of the schemas, or that of all schemas.
    fn change_defaults(
        &mut self,
        writing: &mut Writing<'_>,
        role: Oid,
        schemas: &[syntax::postgres::tree::Ident],
        class: ObjectClass,
        grant: &DefaultGrant<'_>,
    ) -> Result<()> {
        let Some(kind) = kind_of(class) else { return Ok(()) };
        hold_role(writing, role)?;
        let database = self.who.database.clone();
        writing.hold_schema(&database)?;
        let mut key = DefaultAccessKey { database: writing.snapshot.schema(&database)?.id, role, schema: 0, kind };
        if schemas.is_empty() {
            return change_default(writing, key, grant);
        }
        for name in schemas {
            if crate::system::is_system(&name.value) {
                return Err(PgError::unsupported(format!("default privileges in schema {}", name.value)));
            }
            let stored = self.stored_schema(&name.value)?;
            let Some(schema) = writing.snapshot.schemas.get(&stored) else { return Err(missing_schema(&name.value)) };
            if class == ObjectClass::Schema {
                let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
                return Err(PgError::new(state::INVALID_GRANT_OPERATION, message));
            }
            key.schema = schema.id;
            writing.hold_schema(&stored).map_err(|_| missing_schema(&name.value))?;
            change_default(writing, key, grant)?;
        }
        Ok(())
    }

    /// Takes from a role the privileges that new objects of others in this database give it, and removes the records of the role itself. Returns how many those were.
    pub(super) fn drop_owned_defaults(&mut self, writing: &mut Writing<'_>, role: Oid) -> Result<usize> {
        let database = writing.snapshot.schema(&self.who.database)?.id;
        let known = writing.snapshot.default_access.clone();
        let here = known.iter().filter(|(key, _)| key.database == database);
        let all = DefaultGrant { is_grant: false, grantees: &[role], privileges: 0, option: false, cascade: true };
        let mut count = 0;
        for (key, record) in here {
            if key.role == role {
                writing.drop_default_access(|gone| gone == *key)?;
                count += 1;
            } else if record.grants.iter().any(|grant| grant.grantee == role) {
                change_default(writing, *key, &DefaultGrant { privileges: Privileges::MAX, ..all })?;
            }
        }
        Ok(count)
    }

    /// Removes the records of roles that another door has dropped.
    pub(super) fn forget_strangers(&mut self, writing: &mut Writing<'_>) -> Result<()> {
        let roles = self.rights().roles();
        let known = writing.snapshot.session_defaults.keys().map(|key| key.role);
        let known: Vec<RoleId> = known.chain(writing.snapshot.default_access.keys().map(|key| key.role)).collect();
        let gone: Vec<RoleId> = known.into_iter().filter(|role| *role != 0 && roles.by_oid(*role).is_none()).collect();
        if gone.is_empty() {
            return Ok(());
        }
        writing.drop_session_defaults(|key| gone.contains(&key.role))?;
        Ok(writing.drop_default_access(|key| gone.contains(&key.role))?)
    }
}

/// Changes one record, or removes it if it gives no more than an object has at first.
fn change_default(writing: &mut Writing<'_>, key: DefaultAccessKey, grant: &DefaultGrant<'_>) -> Result<()> {
    let known = writing.default_access(key)?;
    let first = initial(key);
    let mut grants: Vec<AccessGrant> = known.as_ref().map_or_else(|| first.clone(), |known| known.grants.clone());
    for grantee in grant.grantees {
        if grant.is_grant && grant.option && *grantee == PUBLIC {
            let message = "grant options can only be granted to roles";
            return Err(PgError::new(state::INVALID_GRANT_OPERATION, message));
        }
        let change = AclChange {
            is_grant: grant.is_grant,
            grantee: *grantee,
            grantor: key.role,
            column: 0,
            privileges: grant.privileges,
            option: grant.option,
        };
        acl::change(&mut grants, change, key.role, grant.cascade)?;
    }
    let grants = sorted(grants);
    match known {
        _ if grants == first => Ok(writing.put_default_access(key, None)?),
        Some(known) => Ok(writing.put_default_access(key, Some(DefaultAccess { id: known.id, grants }))?),
        None => {
            let id = writing.new_id();
            Ok(writing.put_default_access(key, Some(DefaultAccess { id, grants }))?)
        }
    }
}
