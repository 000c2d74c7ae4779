//! REASSIGN OWNED and DROP OWNED: all that belongs to roles in this database, and the privileges that they have.

use std::sync::Arc;

use engine::FIRST_ACCOUNT_ID;
use query::catalog::access::{AccessGrant, AccessKey, AccessKind, AccessRecord};
use query::catalog::objects::Object as CatalogObject;
use query::catalog::schema_name::SchemaName;
use syntax::postgres::tree::{DropOwnedStmt, ReassignOwnedStmt, RoleSpec};

use crate::define::drop::{Dependence, Gone};
use crate::define::materialized::kind_of;
use crate::define::names::schema_of;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::role::Role;
use crate::session::Session;
use crate::types::oid::Oid;

/// An object with an access record.
struct Recorded {
    key: AccessKey,
    object: CatalogObject,
    record: Arc<AccessRecord>,
}

impl Session {
    pub(super) fn reassign_owned(&mut self, reassign: &ReassignOwnedStmt) -> Result<()> {
        let ReassignOwnedStmt { roles, to } = reassign;
        self.begin_definition("REASSIGN OWNED")?;
        self.refresh();
        let roles = self.owners(roles, "reassign")?;
        let to = self.role_of(to)?;
        if !self.current_identity().set.has(to.oid) {
            return Err(denied("reassign", &to, "to it"));
        }
        refuse_required(&roles, "reassign ownership of")?;
        let owned: Vec<Object> = self
            .recorded(|record| roles.iter().any(|role| role.oid == record.owner))
            .iter()
            .filter_map(|recorded| match &recorded.object {
                CatalogObject::Table(table) => Some(Object::table(table)),
                CatalogObject::View(view) => Some(Object::view(view)),
                CatalogObject::Sequence(sequence) => Some(Object::sequence(sequence)),
                CatalogObject::Schema(schema) if recorded.key.kind == AccessKind::Database => {
                    Some(Object::database(schema))
                }
                CatalogObject::Schema(schema) => Some(Object::schema(schema)),
                _ => None,
            })
            .collect();
        self.change_owner(&owned, to.oid)
    }

    pub(super) fn drop_owned(&mut self, drop: &DropOwnedStmt) -> Result<()> {
        let DropOwnedStmt { roles, cascade } = drop;
        self.begin_definition("DROP OWNED")?;
        self.refresh();
        let roles = self.owners(roles, "drop")?;
        refuse_required(&roles, "drop")?;
        let mut defaults = 0;
        for role in &roles {
            defaults += self.revoke_everything(role.oid)?;
        }
        let owned = self.recorded(|record| roles.iter().any(|role| role.oid == record.owner));
        let (mut gone, mut schemas) = (Gone::default(), Vec::new());
        for Recorded { key, object, .. } in owned.into_iter().filter(|owned| owned.key.kind == AccessKind::Object) {
            match object {
                CatalogObject::Table(table) => gone.tables.push(table),
                CatalogObject::View(view) => gone.views.push(view),
                CatalogObject::Sequence(sequence) => gone.sequences.push(sequence),
                CatalogObject::Schema(schema) => schemas.push(schema),
                _ => debug_assert!(false, "{key:?}"),
            }
        }
        let count = gone.tables.len() + gone.views.len() + gone.sequences.len() + schemas.len() + defaults;
        let what = match (count, &gone.tables[..], &gone.views[..], &gone.sequences[..]) {
            (1, [table], ..) => Some(format!("{} {}", kind_of(table), self.shown_relation(&table.schema, &table.name))),
            (1, _, [view], _) => Some(format!("view {}", self.shown_relation(&view.schema, &view.name))),
            (1, .., [one]) => Some(format!("sequence {}", self.shown_relation(&one.schema, &one.name))),
            (1, ..) => schemas.first().map(|schema| format!("schema {}", schema_of(&schema.name))),
            _ => None,
        };
        let mut dependences = Vec::new();
        for schema in &schemas {
            if schema_of(&schema.name) == "public" {
                // It is the database itself to other dialects.
                return Err(PgError::unsupported("DROP of the schema public"));
            }
            if !schema.types.is_empty() {
                return Err(PgError::unsupported("DROP OWNED of a schema with types"));
            }
            let on = format!("schema {}", schema_of(&schema.name));
            let mut note = |kind: &str, name: &str| {
                let object = format!("{kind} {}.{name}", schema_of(&schema.name));
                dependences.push(Dependence { object, on: on.clone() });
            };
            for table in schema.tables.values().filter(|table| !table.temporary) {
                if !gone.tables.iter().any(|known| known.id == table.id) {
                    note(kind_of(table), &table.name);
                    gone.tables.push(table.clone());
                }
            }
            for sequence in schema.sequences.values() {
                if !gone.sequences.iter().any(|known| known.id == sequence.id) {
                    if sequence.owned_by.is_none() {
                        note("sequence", &sequence.name);
                    }
                    gone.sequences.push(sequence.clone());
                }
            }
            for view in schema.views.values() {
                if !gone.views.iter().any(|known| known.id == view.id) {
                    note("view", &view.name);
                    gone.views.push(view.clone());
                }
            }
        }
        if gone.is_empty() && schemas.is_empty() {
            return Ok(());
        }
        dependences.extend(self.extend_with_dependents(&mut gone)?);
        let schemas: Vec<String> = schemas.iter().map(|schema| schema.name.clone()).collect();
        self.drop_with_dependents(gone, dependences, *cascade, what.as_deref(), &schemas)?;
        self.look_anew();
        Ok(())
    }

    /// Returns the roles of a statement, whose rights the current one must have.
    fn owners(&mut self, specs: &[RoleSpec], verb: &str) -> Result<Vec<Role>> {
        let roles = specs.iter().map(|spec| self.role_of(spec)).collect::<Result<Vec<Role>>>()?;
        let identity = self.current_identity();
        match roles.iter().find(|role| !identity.set.has(role.oid)) {
            Some(role) => Err(denied(verb, role, "owned by it")),
            None => Ok(roles),
        }
    }

    /// Returns the objects of this database, and all databases, whose access records fit, in the order in which they were made.
    fn recorded(&self, fits: impl Fn(&AccessRecord) -> bool) -> Vec<Recorded> {
        let mut found = Vec::new();
        for (key, record) in self.catalog.access.all().filter(|(_, record)| fits(record)) {
            let Some(object) = self.catalog.object(key.of).filter(|_| key.kind != AccessKind::Member) else { continue };
            let schema = match object {
                CatalogObject::Table(table) => &table.schema,
                CatalogObject::View(view) => &view.schema,
                CatalogObject::Sequence(sequence) => &sequence.schema,
                CatalogObject::Schema(schema) => &schema.name,
                _ => continue,
            };
            let is_here = SchemaName::of_stored(schema).is_some_and(|name| name.database == self.who.database);
            if is_here || key.kind == AccessKind::Database {
                found.push(Recorded { key: *key, object: object.clone(), record: record.clone() });
            }
        }
        found.sort_by_key(|recorded| recorded.key);
        found
    }

    /// Revokes what a role has been given, and ends the memberships and the default privileges that it has given. Returns how many objects these default privileges were.
    fn revoke_everything(&mut self, role: Oid) -> Result<usize> {
        let concerns = |grant: &AccessGrant| grant.grantee == role || grant.grantor == role;
        let recorded = self.recorded(|record| record.grants.iter().flatten().any(concerns));
        let given = self.rights().all_memberships().filter(|(_, grant)| grant.grantor == role);
        let members: Vec<Oid> = given.map(|(member, _)| member).collect();
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        for Recorded { key, object, record } in &recorded {
            if record.owner != role {
                self.revoke_all(&mut writing, object, *key, role)?;
            }
        }
        for key in members.into_iter().map(AccessKey::member) {
            let mut grants = writing.access(key)?.and_then(|known| known.grants.clone()).unwrap_or_default();
            grants.retain(|grant| grant.grantor != role);
            let grants = (!grants.is_empty()).then_some(grants);
            writing.put_access(key, Some(AccessRecord { owner: 0, grants }), false)?;
        }
        let defaults = self.drop_owned_defaults(&mut writing, role)?;
        self.finish(writing)?;
        self.look_anew();
        Ok(defaults)
    }
}

fn denied(verb: &str, role: &Role, what: &str) -> PgError {
    let error = PgError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied to {verb} objects"));
    error.detail(format!("Only roles with privileges of role \"{}\" may {verb} objects {what}.", role.name))
}

/// Fails for roles that are always there.
fn refuse_required(roles: &[Role], doing: &str) -> Result<()> {
    match roles.iter().find(|role| role.oid < FIRST_ACCOUNT_ID) {
        Some(role) => {
            let message = format!(
                "cannot {doing} objects owned by role {} because they are required by the database system",
                role.name
            );
            Err(PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message))
        }
        None => Ok(()),
    }
}
