//! A session's roles: the one that logged in, the current one, and the rights of the latter.

use std::sync::Arc;

use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::privilege::Privileges;
use crate::rights::role::{self, Facts, Role, RoleSet, Roles};
use crate::session::Session;
use crate::session::facts::{FactsOf as _, SessionState};
use crate::types::oid::Oid;

/// The identity of a session at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The role that logged in, or that SET SESSION AUTHORIZATION has put in its place.
    pub session: Oid,
    pub session_name: String,
    /// The role whose rights count: that of SET ROLE.
    pub current: Oid,
    pub name: String,
    pub set: RoleSet,
    /// The versions of the accounts and of the access records by which it was determined.
    pub versions: (u64, u64),
}

impl SessionState {
    /// Calls `f` with the facts by which the rights of the session are decided.
    pub fn with_rights<T>(&self, f: impl FnOnce(&Facts<'_>, &Identity) -> T) -> Option<T> {
        let db = self.db.as_ref()?;
        Some(f(&Facts { db, snapshot: &self.definitions, database: &self.database }, &self.identity))
    }

    /// Fails unless the current role has one of these privileges.
    pub fn check_any(&self, object: &Object, wanted: Privileges) -> Result<()> {
        let has = self.with_rights(|facts, identity| facts.privileges(&identity.set, object)).unwrap_or(0);
        if has & wanted != 0 { Ok(()) } else { Err(object.denied()) }
    }

    /// Checks that the session may become a role, and returns its name.
    pub(crate) fn checked_role(&self, name: &str) -> Result<String> {
        let role = self.role_of_set(name)?;
        let may = self.with_rights(|facts, identity| facts.may_become(identity.session, role.oid));
        match may {
            Some(true) => Ok(role.name),
            _ => Err(denied(format!("permission denied to set role \"{name}\""))),
        }
    }

    /// Checks that the client may be taken for a role, and returns its name.
    pub(crate) fn checked_session_role(&self, name: &str) -> Result<String> {
        let role = self.role_of_set(name)?;
        let is_super = |name: &str| self.role_named(name).is_some_and(|role| role.is_super);
        match role.name == self.login || is_super(&self.login) {
            true => Ok(role.name),
            false => Err(denied("permission denied to set session authorization".to_owned())),
        }
    }

    fn role_named(&self, name: &str) -> Option<Role> {
        Roles::seen(self.db.as_ref()?, &self.definitions).named(name)
    }

    fn role_of_set(&self, name: &str) -> Result<Role> {
        self.role_named(name)
            .ok_or_else(|| PgError::new(state::INVALID_PARAMETER_VALUE, format!("role \"{name}\" does not exist")))
    }
}

fn denied(message: String) -> PgError {
    PgError::new(state::INSUFFICIENT_PRIVILEGE, message)
}

impl Session {
    /// Returns the facts by which rights are decided, in the definitions that the session sees.
    pub(crate) fn rights(&self) -> Facts<'_> {
        Facts { db: &self.db, snapshot: &self.catalog, database: &self.who.database }
    }

    /// Brings the session's roles up to date after a change of accounts, of memberships or of the settings that name them.
    pub(crate) fn follow_roles(&mut self) {
        let versions = (self.db.engine().accounts().generation(), self.catalog.access.version);
        self.accounts_version = versions.0;
        let settings = &self.ctx.facts().settings;
        let (session, current): (String, String) =
            (settings.get("session_authorization").into(), settings.get("role").into());
        let old = self.ctx.facts().identity.clone();
        let session_oid = self.role_of_setting(&session, (&old.session_name, old.session));
        let (name, current_oid) = match &*current {
            "none" => (session.clone(), session_oid),
            name => (name.to_owned(), self.role_of_setting(name, (&old.name, old.current))),
        };
        let set = self.rights().role_set(current_oid);
        let new = Identity { session: session_oid, session_name: session, current: current_oid, name, set, versions };
        if *old == new {
            return;
        }
        let state = &mut self.ctx.slot_mut::<crate::functions::state::PgState>().session;
        (state.role, state.session_role) = (new.name.clone(), new.session_name.clone());
        let facts = self.ctx.facts();
        facts.role.clone_from(&new.name);
        facts.settings.describe("is_superuser", if new.set.is_super { "on" } else { "off" });
        let is_super = new.set.is_super;
        facts.identity = Arc::new(new);
        self.handle.show(|shown| shown.is_system = is_super);
        self.context_id = None;
    }

    /// Returns the role that a setting names. A session keeps its role under a new name, and does not come by that of a later one.
    fn role_of_setting(&self, name: &str, (known, oid): (&str, Oid)) -> Oid {
        if known == name && oid != 0 {
            return oid;
        }
        self.rights().roles().named(name).map_or(NOBODY, |role| role.oid)
    }

    pub(crate) fn current_identity(&mut self) -> Arc<Identity> {
        self.ctx.facts().identity.clone()
    }

    /// Returns the current role's name.
    pub(crate) fn role_name(&mut self) -> String {
        self.ctx.facts().identity.name.clone()
    }

    pub(crate) fn is_super(&mut self) -> bool {
        self.ctx.facts().identity.set.is_super
    }

    /// Returns the current role.
    pub(crate) fn current_role(&mut self) -> Result<Role> {
        let identity = self.current_identity();
        self.rights().roles().by_oid(identity.current).ok_or_else(|| role::missing(&identity.name))
    }

    /// Fails unless the current role has these privileges on an object.
    pub(crate) fn check_privileges(&mut self, object: &Object, wanted: Privileges) -> Result<()> {
        let identity = self.current_identity();
        self.rights().check(&identity.set, object, wanted)
    }

    /// Fails unless the current role owns an object.
    pub(crate) fn check_owns(&mut self, object: &Object) -> Result<()> {
        let identity = self.current_identity();
        self.rights().check_owner(&identity.set, object)
    }
}

/// The role of a session whose account is gone: it has no rights.
const NOBODY: Oid = Oid::MAX;
