//! Owners of objects: who makes one owns it, and the owner alone may change or drop it.

use std::collections::BTreeSet;

use engine::FIRST_ACCOUNT_ID;
use engine::rows::Strength;
use query::catalog::Writing;
use query::catalog::access::{AccessKey, AccessRecord};
use query::catalog::object_id::ObjectId;
use syntax::postgres::tree::{RoleSpec, RoleSpecKind};

use crate::define::names::Relation;
use crate::error::{PgError, Result, state};
use crate::rights::acl;
use crate::rights::object::{Object, has_whole};
use crate::rights::privilege::{CREATE, ObjectClass, TEMPORARY};
use crate::rights::role::{self, Facts, Role};
use crate::session::Session;
use crate::system::oids;
use crate::types::oid::Oid;

/// An object that a statement makes.
#[derive(Clone, Copy)]
pub(super) struct NewObject<'n> {
    key: AccessKey,
    class: ObjectClass,
    /// The stored name of its schema.
    schema: Option<&'n str>,
}

impl<'n> NewObject<'n> {
    /// A table or view.
    pub(super) fn relation(id: ObjectId, schema: &'n str) -> NewObject<'n> {
        NewObject { key: AccessKey::object(id), class: ObjectClass::Relation, schema: Some(schema) }
    }

    pub(super) fn sequence(id: ObjectId, schema: &'n str) -> NewObject<'n> {
        NewObject { key: AccessKey::object(id), class: ObjectClass::Sequence, schema: Some(schema) }
    }

    pub(super) fn schema(id: ObjectId) -> NewObject<'n> {
        NewObject { key: AccessKey::object(id), class: ObjectClass::Schema, schema: None }
    }

    /// A database, by its first schema.
    pub(super) fn database(id: ObjectId) -> NewObject<'n> {
        NewObject { key: AccessKey::database(id), class: ObjectClass::Database, schema: None }
    }
}

impl Session {
    /// Returns the role that a name or word of a statement means.
    pub(super) fn role_of(&mut self, spec: &RoleSpec) -> Result<Role> {
        let identity = self.current_identity();
        let roles = self.rights().roles();
        match &spec.kind {
            RoleSpecKind::Name(name) => roles.existing(name),
            RoleSpecKind::Public => Err(role::missing("public")),
            RoleSpecKind::CurrentRole | RoleSpecKind::CurrentUser => {
                roles.by_oid(identity.current).ok_or_else(|| role::missing(&identity.name))
            }
            RoleSpecKind::SessionUser => {
                roles.by_oid(identity.session).ok_or_else(|| role::missing(&identity.session_name))
            }
        }
    }

    /// Gives a new object to a role, with the privileges that the role has set for such objects. Those of `postgres` have no record without such privileges.
    pub(super) fn give(&mut self, writing: &mut Writing<'_>, made: NewObject<'_>, owner: Oid) -> Result<()> {
        let NewObject { key, class, schema } = made;
        let facts = Facts { db: self.database(), snapshot: &writing.snapshot, database: &self.who.database };
        let grants = facts.grants_of_new(class, owner, schema)?;
        if owner == oids::POSTGRES && grants.is_none() {
            return Ok(());
        }
        let grantees: BTreeSet<Oid> = grants.iter().flatten().map(|grant| grant.grantee).collect();
        for role in std::iter::once(owner).chain(grantees) {
            hold_role(writing, role)?;
        }
        Ok(writing.put_access(key, Some(AccessRecord { owner, grants }), true)?)
    }

    /// Gives a new object to the current role.
    pub(super) fn own(&mut self, writing: &mut Writing<'_>, made: NewObject<'_>) -> Result<()> {
        let owner = self.current_identity().current;
        self.give(writing, made, owner)
    }

    /// Fails unless the current role may make something in a schema, by its stored name; or temporary objects in the database.
    pub(super) fn check_creation(&mut self, schema: &str, temporary: bool) -> Result<()> {
        if temporary {
            let Some(database) = self.database_object() else { return Ok(()) };
            return self.check_privileges(&database, TEMPORARY).map_err(|_| {
                let message = format!("permission denied to create temporary tables in database \"{}\"", database.name);
                PgError::new(state::INSUFFICIENT_PRIVILEGE, message)
            });
        }
        let Some(schema) = self.catalog.schemas.get(schema).cloned() else { return Ok(()) };
        self.check_privileges(&Object::schema(&schema), CREATE)
    }

    /// Returns the database that the session is in.
    pub(super) fn database_object(&mut self) -> Option<Object> {
        let schema = self.catalog.schemas.get(&self.who.database)?;
        Some(Object::database(schema))
    }

    /// Fails unless the current role owns a relation. `name`: that of an index.
    pub(super) fn check_owns_relation(&mut self, relation: &Relation, name: &str) -> Result<()> {
        self.check_owns(&Object::relation(relation, name))
    }

    /// Fails unless the current role may drop a relation: as its owner, or as that of its schema.
    pub(super) fn check_drops(&mut self, relation: &Relation, name: &str) -> Result<()> {
        let schema = self.catalog.schemas.get(relation.schema()).cloned();
        let is_of_schema = schema.is_some_and(|schema| self.check_owns(&Object::schema(&schema)).is_ok());
        if is_of_schema { Ok(()) } else { self.check_owns_relation(relation, name) }
    }

    /// Fails unless the current role may give what it owns to another role.
    fn check_recipient(&mut self, to: &Role) -> Result<()> {
        let identity = self.current_identity();
        match self.rights().may_become(identity.current, to.oid) {
            true => Ok(()),
            false => {
                let message = format!("must be able to SET ROLE \"{}\"", to.name);
                Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message))
            }
        }
    }

    /// Gives relations to another role. Those in schemas: the new owner must be able to make something there.
    pub(super) fn change_owner_of_relation(&mut self, relation: &Relation, name: &str, to: &Role) -> Result<()> {
        let object = Object::relation(relation, name);
        if object.is_temporary {
            return Err(PgError::unsupported(format!("OWNER TO of a temporary {}", object.kind)));
        }
        self.check_owns(&object)?;
        if self.rights().owner(&object) == to.oid {
            return Ok(());
        }
        let schema = relation.schema().to_owned();
        if let Relation::Sequence(sequence) = relation
            && let Some((table, _)) = self.catalog.owner(sequence)
        {
            let message = format!("cannot change owner of sequence \"{}\"", sequence.name);
            let error = PgError::new(state::FEATURE_NOT_SUPPORTED, message);
            let detail = format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name);
            return Err(error.detail(detail));
        }
        if !self.is_super() {
            self.check_recipient(to)?;
            let Some(schema) = self.catalog.schemas.get(&schema).cloned() else { return Ok(()) };
            let set = self.rights().role_set(to.oid);
            self.rights().check(&set, &Object::schema(&schema), CREATE)?;
        }
        let mut objects = vec![object];
        if let Relation::Table(table) = relation {
            let schema = self.catalog.schemas.get(&table.schema).cloned();
            let owned = schema.iter().flat_map(|schema| schema.sequences.values());
            objects.extend(
                owned.filter(|sequence| sequence.owned_by == Some(table.id)).map(|sequence| Object::sequence(sequence)),
            );
        }
        self.change_owner(&objects, to.oid)
    }

    /// Gives a schema or database to another role.
    pub(super) fn change_owner_of(&mut self, object: &Object, to: &Role) -> Result<()> {
        if self.rights().owner(object) == to.oid {
            return Ok(());
        }
        if !self.is_super() {
            self.check_owns(object)?;
            self.check_recipient(to)?;
            match self.database_object() {
                Some(database) if object.kind == "schema" => self.check_privileges(&database, CREATE)?,
                _ if !self.current_role()?.attributes.creates_databases => {
                    let message = "permission denied to change owner of database";
                    return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message));
                }
                _ => {}
            }
        }
        self.change_owner(std::slice::from_ref(object), to.oid)
    }

    pub(super) fn change_owner(&mut self, objects: &[Object], to: Oid) -> Result<()> {
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        hold_role(&mut writing, to)?;
        for object in objects {
            let known = writing.access(object.key)?;
            let known = known.as_deref();
            let old = object.owner(known);
            let mut grants = match known.and_then(|known| known.grants.clone()) {
                Some(grants) if has_whole(&grants) || !object.has_own_first() => Some(grants),
                _ if object.has_own_first() => Some(object.grants(known).into_owned()),
                _ => None,
            };
            if let Some(grants) = &mut grants {
                acl::change_owner(grants, old, to);
            }
            writing.put_access(object.key, Some(AccessRecord { owner: to, grants }), false)?;
        }
        self.finish(writing)
    }
}

/// Keeps a role from being dropped before the transaction ends, which is about to refer to it. Fails if it is gone already.
pub(super) fn hold_role(writing: &mut Writing<'_>, role: Oid) -> Result<()> {
    // Others are always there.
    if role < FIRST_ACCOUNT_ID || writing.hold_role(role, Strength::Shared)? {
        return Ok(());
    }
    Err(PgError::new(state::UNDEFINED_OBJECT, format!("role {role} was concurrently dropped")))
}
