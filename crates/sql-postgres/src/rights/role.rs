//! Roles: the accounts of the one list, and those that PostgreSQL has from the beginning.
//!
//! A role's OID is the number of its account. `postgres` is 10, whether or not there is an account of that name.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Account, PendingAccounts, RoleAttributes};
use query::catalog::Snapshot;
use query::catalog::access::{AccessGrant, AccessKey, AccessKind};
use query::catalog::schema_name::SchemaName;

use crate::define::materialized::kind_of;
use crate::define::names::schema_of;
use crate::error::{PgError, Result, state};
use crate::instance::database::{Database, POSTGRES};
use crate::rights::privilege::{INHERIT_OPTION, MEMBER, SET_OPTION};
use crate::system::oids;
use crate::types::oid::Oid;

/// The OIDs of roles that are no accounts.
pub const READ_ALL_DATA: Oid = 6181;
pub const WRITE_ALL_DATA: Oid = 6182;
pub const READ_ALL_STATS: Oid = 3375;
pub const SIGNAL_BACKEND: Oid = 4200;
pub const MONITOR: Oid = 3373;
pub const CHECKPOINT: Oid = 4544;
const READ_ALL_SETTINGS: Oid = 3374;
const STAT_SCAN_TABLES: Oid = 3377;

/// The roles that are no accounts, by name.
pub static PREDEFINED: [(&str, Oid); 9] = [
    ("pg_checkpoint", CHECKPOINT),
    ("pg_database_owner", oids::PG_DATABASE_OWNER),
    ("pg_monitor", MONITOR),
    ("pg_read_all_data", READ_ALL_DATA),
    ("pg_read_all_settings", READ_ALL_SETTINGS),
    ("pg_read_all_stats", READ_ALL_STATS),
    ("pg_signal_backend", SIGNAL_BACKEND),
    ("pg_stat_scan_tables", STAT_SCAN_TABLES),
    ("pg_write_all_data", WRITE_ALL_DATA),
];

/// The memberships of `pg_monitor`, which it always has.
static OF_MONITOR: [AccessGrant; 3] =
    [of_monitor(READ_ALL_SETTINGS), of_monitor(READ_ALL_STATS), of_monitor(STAT_SCAN_TABLES)];

const fn of_monitor(grantee: Oid) -> AccessGrant {
    let privileges = MEMBER | INHERIT_OPTION | SET_OPTION;
    AccessGrant { grantee, grantor: oids::POSTGRES, column: 0, privileges, grantable: 0 }
}

/// The role that stands for everybody, as a grantee.
pub const PUBLIC: Oid = 0;

#[derive(Clone, Debug)]
pub struct Role {
    pub oid: Oid,
    pub name: String,
    pub is_super: bool,
    pub can_login: bool,
    pub attributes: RoleAttributes,
    /// `None`: the role is no account.
    pub account: Option<Arc<Account>>,
}

impl Role {
    fn of_account(db: &Database, account: Arc<Account>) -> Role {
        let is_postgres = account.name == POSTGRES;
        let attributes = match is_postgres {
            true => POSTGRES_ATTRIBUTES,
            false => account.role,
        };
        Role {
            oid: if is_postgres { oids::POSTGRES } else { account.id },
            name: account.name.clone(),
            is_super: attributes.is_super || db.is_superuser(&account.name),
            can_login: account.enabled,
            attributes,
            account: Some(account),
        }
    }

    fn predefined(name: &str, oid: Oid) -> Role {
        let (is_super, can_login) = (false, false);
        Role { oid, name: name.to_owned(), is_super, can_login, attributes: RoleAttributes::default(), account: None }
    }

    fn postgres() -> Role {
        let (oid, name) = (oids::POSTGRES, POSTGRES.to_owned());
        Role { oid, name, is_super: true, can_login: true, attributes: POSTGRES_ATTRIBUTES, account: None }
    }
}

const POSTGRES_ATTRIBUTES: RoleAttributes = RoleAttributes {
    is_super: true,
    creates_databases: true,
    creates_roles: true,
    inherits: true,
    valid_until: None,
    connections_max: -1,
};

/// Returns whether an account is a role: those with a host are MySQL's alone.
fn is_role(name: &str) -> bool {
    !name.contains('@')
}

/// The roles as a session sees them: the accounts of the list, and over them those that its transaction has changed.
#[derive(Clone, Copy)]
pub struct Roles<'r> {
    db: &'r Database,
    own: Option<&'r PendingAccounts>,
}

impl<'r> Roles<'r> {
    pub fn seen(db: &'r Database, snapshot: &'r Snapshot) -> Roles<'r> {
        Roles { db, own: Some(&snapshot.accounts) }
    }

    /// Returns the roles that every session sees.
    pub fn committed(db: &'r Database) -> Roles<'r> {
        Roles { db, own: None }
    }

    fn account(&self, name: &str) -> Option<Arc<Account>> {
        match self.own.and_then(|own| own.get(name)) {
            Some(own) => own.cloned(),
            None => self.db.engine().accounts().get(name),
        }
    }

    /// Returns the role of that name.
    pub fn named(&self, name: &str) -> Option<Role> {
        if let Some((name, oid)) = PREDEFINED.iter().find(|(known, _)| *known == name) {
            return Some(Role::predefined(name, *oid));
        }
        match self.account(name).filter(|_| is_role(name)) {
            Some(account) => Some(Role::of_account(self.db, account)),
            None if name == POSTGRES => Some(Role::postgres()),
            None => None,
        }
    }

    /// Returns the role of that OID.
    pub fn by_oid(&self, oid: Oid) -> Option<Role> {
        if oid == oids::POSTGRES {
            return self.named(POSTGRES);
        }
        if let Some((name, oid)) = PREDEFINED.iter().find(|(_, known)| *known == oid) {
            return Some(Role::predefined(name, *oid));
        }
        let account = match self.own.and_then(|own| own.by_id(oid)) {
            Some(own) => own.cloned(),
            None => self.db.engine().accounts().by_id(oid),
        };
        account
            .filter(|account| is_role(&account.name) && account.name != POSTGRES)
            .map(|account| Role::of_account(self.db, account))
    }

    /// Returns all roles.
    pub fn all(&self) -> Vec<Role> {
        let mut accounts = self.db.engine().accounts().list();
        if let Some(own) = self.own.filter(|own| !own.is_empty()) {
            accounts.retain(|account| own.get(&account.name).is_none());
            accounts.extend(own.present().cloned());
        }
        let roles = accounts.into_iter().filter(|account| is_role(&account.name));
        let mut roles: Vec<Role> = roles.map(|account| Role::of_account(self.db, account)).collect();
        if !roles.iter().any(|role| role.oid == oids::POSTGRES) {
            roles.push(Role::postgres());
        }
        roles.extend(PREDEFINED.iter().map(|(name, oid)| Role::predefined(name, *oid)));
        roles
    }

    /// Returns the role of that name, or the error that there is none.
    pub fn existing(&self, name: &str) -> Result<Role> {
        self.named(name).ok_or_else(|| missing(name))
    }

    /// Returns a role's name as functions and catalogs show it.
    pub fn name_of(&self, oid: Oid) -> String {
        self.by_oid(oid).map_or_else(|| format!("unknown (OID={oid})"), |role| role.name)
    }
}

/// Returns the error for a role that does not exist.
pub fn missing(name: &str) -> PgError {
    PgError::new(state::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

/// The definitions and accounts by which rights are decided, and the database that `pg_database_owner` is about.
#[derive(Clone, Copy)]
pub struct Facts<'f> {
    pub db: &'f Database,
    pub snapshot: &'f Snapshot,
    pub database: &'f str,
}

impl<'f> Facts<'f> {
    pub fn roles(&self) -> Roles<'f> {
        Roles::seen(self.db, self.snapshot)
    }

    /// Returns the memberships of a role.
    pub fn memberships(&self, member: Oid) -> &'f [AccessGrant] {
        if member == MONITOR {
            return &OF_MONITOR;
        }
        let access = self.snapshot.access.get(AccessKey::member(member));
        access.and_then(|access| access.grants.as_deref()).unwrap_or(&[])
    }

    /// Returns all memberships with their members.
    pub fn all_memberships(&self) -> impl Iterator<Item = (Oid, AccessGrant)> + 'f {
        let records = self.snapshot.access.all().filter(|(key, _)| key.kind == AccessKind::Member);
        let of_monitor = OF_MONITOR.iter().map(|grant| (MONITOR, *grant));
        let recorded = records.flat_map(|(key, access)| {
            let member = key.of as Oid;
            access.grants.iter().flatten().map(move |grant| (member, *grant))
        });
        of_monitor.chain(recorded)
    }

    pub fn database_owner(&self) -> Oid {
        let schema = self.snapshot.schemas.get(self.database);
        let access = schema.and_then(|schema| self.snapshot.access.get(AccessKey::database(schema.id)));
        super::owner_of(access)
    }

    /// Returns the role and those that it is a member of, through memberships with an option; 0: with any.
    pub fn reach(&self, role: Oid, option: u32) -> BTreeSet<Oid> {
        let (mut found, mut waiting) = (BTreeSet::from([role]), vec![role]);
        let owner = self.database_owner();
        while let Some(role) = waiting.pop() {
            let granted = self.memberships(role).iter().filter(|grant| option == 0 || grant.privileges & option != 0);
            let implied = (role == owner).then_some(oids::PG_DATABASE_OWNER);
            for of in granted.map(|grant| grant.grantee).chain(implied) {
                if found.insert(of) {
                    waiting.push(of);
                }
            }
        }
        found
    }

    /// Returns the rights of a role.
    pub fn role_set(&self, role: Oid) -> RoleSet {
        let is_super = self.roles().by_oid(role).is_some_and(|role| role.is_super);
        RoleSet { is_super, roles: self.reach(role, INHERIT_OPTION) }
    }

    /// Returns whether a role may become another one.
    pub fn may_become(&self, role: Oid, other: Oid) -> bool {
        self.roles().by_oid(role).is_some_and(|role| role.is_super) || self.reach(role, SET_OPTION).contains(&other)
    }

    /// Returns whether the grantor has the ADMIN option only by what the member has given, if anything.
    pub fn gives_admin_back(&self, member: Oid, of: Oid, grantor: Oid) -> bool {
        if grantor == oids::POSTGRES {
            return false;
        }
        // The grantors of options from which that of `grantor` follows.
        let (mut sources, mut waiting) = (BTreeSet::from([grantor]), vec![grantor]);
        while let Some(role) = waiting.pop() {
            let options = self.memberships(role).iter().filter(|grant| grant.grantee == of && grant.grantable != 0);
            waiting.extend(options.map(|grant| grant.grantor).filter(|source| sources.insert(*source)));
        }
        sources.contains(&member)
    }

    /// Describes an object of an access record: the database that it is in, and its kind and name.
    pub fn described(&self, key: AccessKey, path: &[String]) -> Option<(String, String)> {
        use query::catalog::objects::Object;
        let object = self.snapshot.object(key.of)?;
        let named = |kind: &str, schema: &str, name: &str| {
            let schema = schema_of(schema);
            match path.iter().any(|known| known == schema) {
                true => format!("{kind} {name}"),
                false => format!("{kind} {schema}.{name}"),
            }
        };
        let (stored, shown) = match object {
            Object::Schema(schema) if key.kind == AccessKind::Database => {
                (&schema.name, format!("database {}", schema.name))
            }
            Object::Schema(schema) => (&schema.name, format!("schema {}", schema_of(&schema.name))),
            Object::Table(table) => (&table.schema, named(kind_of(table), &table.schema, &table.name)),
            Object::View(view) => (&view.schema, named("view", &view.schema, &view.name)),
            Object::Sequence(sequence) => (&sequence.schema, named("sequence", &sequence.schema, &sequence.name)),
            _ => return None,
        };
        let database = SchemaName::of_stored(stored)?.database.to_owned();
        Some((database, shown))
    }

    /// Returns the names of columns of a table by their numbers in its access record.
    pub fn column_names(&self, key: AccessKey, keys: &[u32]) -> Vec<String> {
        use query::catalog::objects::Object;
        let Some(Object::Table(table)) = self.snapshot.object(key.of) else { return Vec::new() };
        let columns = table.columns.iter().filter(|column| keys.contains(&(column.slot as u32 + 1)));
        columns.map(|column| column.name.clone()).collect()
    }

    /// Returns whether a role may give membership of another.
    pub fn administers(&self, role: Oid, of: Oid) -> bool {
        if self.roles().by_oid(role).is_some_and(|role| role.is_super) {
            return true;
        }
        let reached = self.reach(role, 0);
        let mut grants = reached.iter().flat_map(|member| self.memberships(*member));
        role != of && grants.any(|grant| grant.grantee == of && grant.grantable != 0)
    }
}

/// The roles whose rights a role has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleSet {
    pub is_super: bool,
    /// The role itself, and those whose rights it inherits.
    pub roles: BTreeSet<Oid>,
}

impl RoleSet {
    /// Returns whether the rights of another role are among them.
    pub fn has(&self, role: Oid) -> bool {
        self.is_super || self.roles.contains(&role)
    }
}
