//! ALTER ROLE ... SET and ALTER DATABASE ... SET: settings of new sessions.

use std::sync::Arc;

use query::catalog::session_default::DefaultsKey;
use query::catalog::{Schema, Writing};
use syntax::postgres::tree::{AlterDatabaseSetStmt, AlterRoleSetStmt, VariableSet, VariableSetStmt};

use crate::define::owner::hold_role;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::role::Role;
use crate::session::{Session, flat};
use crate::settings::{self, stored};

/// The bytes of the settings of a role in a database, and of all settings of a role, or of those that are of no role.
const RECORD_MAX: usize = 64 << 10;
const ROLE_MAX: usize = 1 << 20;

/// A change of stored settings.
enum SettingChange {
    Put(String, String),
    Remove(String),
    RemoveAll,
}

impl Session {
    pub(super) fn alter_role_set(&mut self, alter: &AlterRoleSetStmt) -> Result<()> {
        let AlterRoleSetStmt { role, database, set } = alter;
        self.begin_definition("ALTER ROLE")?;
        self.refresh();
        let role = match role {
            None => None,
            Some(spec) => {
                super::role::check_reserved(spec, "Cannot alter reserved roles.")?;
                let role = self.role_of(spec)?;
                self.check_alters_settings(&role)?;
                Some(role)
            }
        };
        let database = match database {
            None => None,
            Some(name) => Some(self.database_named(&name.value)?),
        };
        match (&role, &database) {
            (None, Some(database)) => self.check_owns(&Object::database(database))?,
            (None, None) if !self.is_super() => {
                let error = PgError::new(state::INSUFFICIENT_PRIVILEGE, "permission denied to alter setting");
                return Err(error.detail("Only roles with the SUPERUSER attribute may alter settings globally."));
            }
            _ => {}
        }
        self.change_session_defaults(role.as_ref(), database.as_ref(), set)
    }

    pub(super) fn alter_database_set(&mut self, alter: &AlterDatabaseSetStmt) -> Result<()> {
        let AlterDatabaseSetStmt { name, set } = alter;
        self.begin_definition("ALTER DATABASE")?;
        self.refresh();
        let database = self.database_named(&name.value)?;
        self.check_owns(&Object::database(&database))?;
        self.change_session_defaults(None, Some(&database), set)
    }

    /// Fails unless the current role may change the settings of another: each may change its own.
    fn check_alters_settings(&mut self, altered: &Role) -> Result<()> {
        let current = self.current_role()?;
        if current.is_super {
            return Ok(());
        }
        let detail = if altered.is_super {
            super::role::only("SUPERUSER", "alter roles with", "SUPERUSER")
        } else if altered.oid == current.oid
            || current.attributes.creates_roles && self.rights().administers(current.oid, altered.oid)
        {
            return Ok(());
        } else {
            super::role::only_administrators(&altered.name)
        };
        Err(super::role::denied("alter role", detail))
    }

    fn change_session_defaults(
        &mut self,
        role: Option<&Role>,
        database: Option<&Arc<Schema>>,
        set: &VariableSetStmt,
    ) -> Result<()> {
        let change = self.change_of_setting(set)?;
        let key =
            DefaultsKey { database: database.map_or(0, |schema| schema.id), role: role.map_or(0, |role| role.oid) };
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        if let Some(schema) = database {
            writing.hold_schema(&schema.name)?;
        }
        if let Some(role) = role {
            hold_role(&mut writing, role.oid)?;
        }
        let known = writing.session_defaults(key)?;
        let mut texts = known.as_deref().map(<[String]>::to_vec).unwrap_or_default();
        let is_super = self.is_super();
        match &change {
            SettingChange::Put(name, value) => {
                stored::check_name(name, is_super)?;
                self.check_stored(name, value)?;
                stored::put(&mut texts, name, value);
            }
            // A name is looked at where something is stored.
            SettingChange::Remove(_) | SettingChange::RemoveAll if known.is_none() => return self.finish(writing),
            SettingChange::Remove(name) => {
                stored::check_name(name, is_super)?;
                stored::remove(&mut texts, name);
            }
            SettingChange::RemoveAll => stored::remove_all(&mut texts, is_super),
        }
        check_size(&writing, key, &texts)?;
        writing.put_session_defaults(key, texts)?;
        self.forget_strangers(&mut writing)?;
        self.finish(writing)
    }

    fn change_of_setting(&mut self, set: &VariableSetStmt) -> Result<SettingChange> {
        Ok(match &set.action {
            VariableSet::Value { name, values } => SettingChange::Put(name.value.clone(), flat(&name.value, values)?),
            VariableSet::Current(name) => {
                let shown = self.setting(&name.value).ok_or_else(|| settings::unknown(&name.value))?;
                SettingChange::Put(name.value.clone(), shown)
            }
            VariableSet::Default(name) | VariableSet::Reset(name) => SettingChange::Remove(name.value.clone()),
            VariableSet::ResetAll => SettingChange::RemoveAll,
            // No setting has these names.
            VariableSet::Transaction(_) => SettingChange::Remove("TRANSACTION".to_owned()),
            VariableSet::Snapshot(_) => SettingChange::Remove("TRANSACTION SNAPSHOT".to_owned()),
            VariableSet::SessionCharacteristics(_) => SettingChange::Remove("SESSION CHARACTERISTICS".to_owned()),
        })
    }

    /// Fails for a value that no session could apply. One that names something that is not there, or not for this role, is stored with a notice.
    fn check_stored(&mut self, name: &str, value: &str) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        let notice = match &*lower {
            "role" if value == "none" => None,
            "role" | "session_authorization" => {
                let identity = self.current_identity();
                let facts = self.rights();
                match facts.roles().named(value) {
                    None => Some(crate::rights::role::missing(value)),
                    Some(role) if lower == "role" && !facts.may_become(identity.session, role.oid) => {
                        let message = format!("permission will be denied to set role \"{value}\"");
                        Some(PgError::new(state::INSUFFICIENT_PRIVILEGE, message))
                    }
                    Some(_) => None,
                }
            }
            _ => self.check_setting(name, value)?,
        };
        if let Some(notice) = notice {
            self.tell("NOTICE", notice);
        }
        Ok(())
    }
}

/// Fails if the settings of a role, or those of no role, would take more memory than they may.
fn check_size(writing: &Writing<'_>, key: DefaultsKey, texts: &[String]) -> Result<()> {
    let size = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let others = writing.snapshot.session_defaults.iter().filter(|(other, _)| other.role == key.role && **other != key);
    let (own, others) = (size(texts), others.map(|(_, texts)| size(texts)).sum::<usize>());
    if own <= RECORD_MAX && own + others <= ROLE_MAX {
        return Ok(());
    }
    let error = PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many settings of a role or database");
    Err(error.detail(format!(
        "The settings of a role in one database may have {RECORD_MAX} bytes, and those of a role in all databases {ROLE_MAX} bytes."
    )))
}
