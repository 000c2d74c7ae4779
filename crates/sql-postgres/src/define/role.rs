//! CREATE, ALTER and DROP of roles.
//!
//! They follow their transaction as other definitions do: until the commit only the session sees the changed accounts (EN-69). A role that another transaction changes is waited for, and so are those that give the role something or take it away while it is dropped.

use engine::rows::Strength;
use engine::{Account, RoleAttributes, ScramVerifier};
use query::catalog::access::AccessKind;
use query::catalog::comment::CommentKind;
use syntax::postgres::tree::{
    AlterRoleStmt, CreateRoleStmt, DefArg, DefElem, DropRoleStmt, Ident, RoleKind, RoleSpec, RoleSpecKind,
};

use crate::define::membership::{Membership, MembershipOptions};
use crate::error::{PgError, Result, state};
use crate::rights::role::{self, Role};
use crate::session::Session;
use crate::system::oids;
use crate::types::io;
use crate::types::{oid, registry};
use crate::value::Value;

/// The attributes that a statement gives to a role; `None` where it says nothing.
#[derive(Default)]
struct Said {
    password: Option<Option<String>>,
    is_super: Option<bool>,
    inherits: Option<bool>,
    creates_roles: Option<bool>,
    creates_databases: Option<bool>,
    can_login: Option<bool>,
    connections_max: Option<i32>,
    valid_until: Option<Option<i64>>,
    member_of: Vec<RoleSpec>,
    members: Vec<RoleSpec>,
    admins: Vec<RoleSpec>,
}

const PREFIX_RESERVED: &str = "Role names starting with \"pg_\" are reserved.";

/// Returns the error of a role that lacks the right.
pub(super) fn denied(doing: &str, detail: String) -> PgError {
    PgError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied to {doing}")).detail(detail)
}

pub(super) fn only(attribute: &str, doing: &str, of: &str) -> String {
    format!("Only roles with the {attribute} attribute may {doing} the {of} attribute.")
}

pub(super) fn only_administrators(role: &str) -> String {
    format!("Only roles with the CREATEROLE attribute and the ADMIN option on role \"{role}\" may alter this role.")
}

impl Session {
    pub(super) fn create_role(&mut self, create: &CreateRoleStmt, text: &str) -> Result<()> {
        let CreateRoleStmt { kind, name, options } = create;
        self.begin_definition("CREATE ROLE")?;
        self.refresh();
        let said = self.said(options)?;
        let current = self.current_role()?;
        if !current.is_super {
            self.check_creator(&current, &said)?;
        }
        let (name, at) = (&name.value, name.at.0);
        check_role_name(name).map_err(|error| match &**name {
            "none" | "public" => error.at(text, at as usize),
            _ => error,
        })?;
        if self.rights().roles().named(name).is_some() {
            return Err(PgError::new(state::DUPLICATE_OBJECT, format!("role \"{name}\" already exists")));
        }
        let mut account = Account { enabled: *kind == RoleKind::User, ..Account::new(name) };
        self.apply(&mut account, &said)?;
        account.check().map_err(account_error)?;
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let known = writing.account(name)?;
        check_free_name(name, known.as_deref())?;
        writing.put_account(account, known)?;
        self.finish(writing)?;
        self.look_anew();
        let made = self.rights().roles().existing(name)?;
        let mut memberships = Vec::new();
        for of in &said.member_of {
            let of = self.role_of(of)?;
            memberships.push((of, made.clone(), MembershipOptions::default()));
        }
        for (members, admin) in [(&said.admins, Some(true)), (&said.members, None)] {
            for member in members {
                let options = MembershipOptions { admin, ..MembershipOptions::default() };
                memberships.push((made.clone(), self.role_of(member)?, options));
            }
        }
        if !current.is_super {
            let options = MembershipOptions { admin: Some(true), inherit: Some(false), set: Some(false) };
            self.add_memberships(&[Membership { of: made, member: current, grantor: oids::POSTGRES, options }])?;
        }
        let mut wanted = Vec::new();
        for (of, member, options) in memberships {
            self.check_membership(&of, true)?;
            wanted.push(Membership { grantor: self.grantor_of_role(&of, None, true)?, of, member, options });
        }
        self.add_memberships(&wanted)
    }

    /// Fails if an ordinary role may not make such a role.
    fn check_creator(&mut self, current: &Role, said: &Said) -> Result<()> {
        let doing = "create role";
        if !current.attributes.creates_roles {
            let detail = "Only roles with the CREATEROLE attribute may create roles.".to_owned();
            return Err(denied(doing, detail));
        }
        if said.is_super == Some(true) {
            return Err(denied(doing, only("SUPERUSER", "create roles with", "SUPERUSER")));
        }
        if said.creates_databases == Some(true) && !current.attributes.creates_databases {
            return Err(denied(doing, only("CREATEDB", "create roles with", "CREATEDB")));
        }
        Ok(())
    }

    pub(super) fn alter_role(&mut self, alter: &AlterRoleStmt) -> Result<()> {
        let AlterRoleStmt { role, options, drops_members } = alter;
        self.begin_definition("ALTER ROLE")?;
        self.refresh();
        let mut said = self.said(options)?;
        check_reserved(role, PREFIX_RESERVED)?;
        let altered = self.role_of(role)?;
        let current = self.current_role()?;
        self.check_alterer(&current, &altered, &said)?;
        let members = std::mem::take(&mut said.members);
        if altered.account.is_none() && altered.oid != oids::POSTGRES {
            let message = format!("role name \"{}\" is reserved", altered.name);
            return Err(PgError::new(state::RESERVED_NAME, message).detail(PREFIX_RESERVED));
        }
        if altered.oid == oids::POSTGRES {
            if said.is_super == Some(false) {
                let detail = "The bootstrap superuser must have the SUPERUSER attribute.".to_owned();
                return Err(denied("alter role", detail));
            }
            if altered.account.is_none() {
                return Err(PgError::unsupported("ALTER ROLE postgres without an account of that name"));
            }
        }
        let is_of_other_door = said.is_super == Some(false) && self.database().is_superuser(&altered.name);
        if is_of_other_door {
            return Err(PgError::unsupported(format!(
                "NOSUPERUSER of role \"{}\", whose account administers the server by other doors' rights,",
                altered.name
            )));
        }
        if altered.account.is_some() {
            let db = self.database().clone();
            let mut writing = self.write(&db)?;
            let known = writing.account(&altered.name)?;
            let concurrently = |what| PgError::new(state::INTERNAL_ERROR, format!("tuple concurrently {what}"));
            let mut next = match &known {
                Some(known) if Some(known) == altered.account.as_ref() => Account::clone(known),
                Some(_) => return Err(concurrently("updated")),
                None => return Err(concurrently("deleted")),
            };
            self.apply(&mut next, &said)?;
            next.check().map_err(account_error)?;
            writing.put_account(next, known)?;
            self.finish(writing)?;
            self.look_anew();
        }
        for member in &members {
            let member = self.role_of(member)?;
            self.check_membership(&altered, !drops_members)?;
            let grantor = self.grantor_of_role(&altered, None, !drops_members)?;
            let membership = Membership { of: altered.clone(), member, grantor, options: MembershipOptions::default() };
            match drops_members {
                true => self.drop_memberships(&[membership], false)?,
                false => self.add_memberships(&[membership])?,
            }
        }
        Ok(())
    }

    /// Fails if the current role may not change the other one so.
    fn check_alterer(&mut self, current: &Role, altered: &Role, said: &Said) -> Result<()> {
        let doing = "alter role";
        if current.is_super {
            return Ok(());
        }
        if altered.is_super {
            return Err(denied(doing, only("SUPERUSER", "alter roles with", "SUPERUSER")));
        }
        if said.is_super.is_some() {
            return Err(denied(doing, only("SUPERUSER", "change", "SUPERUSER")));
        }
        let administers = current.attributes.creates_roles && self.rights().administers(current.oid, altered.oid);
        let changes_more = said.inherits.is_some()
            || said.creates_roles.is_some()
            || said.creates_databases.is_some()
            || said.can_login.is_some()
            || said.connections_max.is_some()
            || said.valid_until.is_some();
        if !administers && changes_more {
            return Err(denied(doing, only_administrators(&altered.name)));
        }
        if !administers && said.password.is_some() && altered.oid != current.oid {
            let detail = "To change another role's password, the current user must have the CREATEROLE attribute and the ADMIN option on the role.";
            return Err(denied(doing, detail.to_owned()));
        }
        if said.creates_databases.is_some() && !current.attributes.creates_databases {
            return Err(denied(doing, only("CREATEDB", "change", "CREATEDB")));
        }
        Ok(())
    }

    pub(super) fn drop_role(&mut self, drop: &DropRoleStmt) -> Result<()> {
        let DropRoleStmt { roles, missing_ok } = drop;
        self.begin_definition("DROP ROLE")?;
        self.refresh();
        let current = self.current_role()?;
        if !current.is_super && !current.attributes.creates_roles {
            let detail =
                "Only roles with the CREATEROLE attribute and the ADMIN option on the target roles may drop roles.";
            return Err(denied("drop role", detail.to_owned()));
        }
        let mut dropped: Vec<Role> = Vec::new();
        for spec in roles {
            let RoleSpecKind::Name(name) = &spec.kind else {
                let message = "cannot use special role specifier in DROP ROLE";
                return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
            };
            let Some(found) = self.rights().roles().named(name) else {
                if !missing_ok {
                    return Err(role::missing(name));
                }
                self.skip_notice(super::SUCCESSFUL, format!("role \"{name}\" does not exist, skipping"));
                continue;
            };
            self.check_dropper(&current, &found)?;
            if !dropped.iter().any(|known| known.oid == found.oid) {
                dropped.push(found);
            }
        }
        if dropped.is_empty() {
            return Ok(());
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let mut known = Vec::new();
        for role in &dropped {
            // From here on no transaction gives the role anything.
            let is_there = writing.hold_role(role.oid, Strength::Exclusive)?;
            known.push(writing.account(&role.name)?);
            if !is_there {
                return Err(PgError::new(state::INTERNAL_ERROR, "tuple concurrently deleted"));
            }
        }
        self.finish(writing)?;
        self.look_anew();
        for role in &dropped {
            self.check_free(role)?;
        }
        self.forget_members(&dropped)?;
        let mut writing = self.write(&db)?;
        for (role, known) in dropped.iter().zip(known) {
            writing.remove_account(&role.name, known);
        }
        writing.drop_comments(CommentKind::Role, dropped.iter().map(|role| role.oid.into()))?;
        writing.drop_session_defaults(|key| key.role != 0 && dropped.iter().any(|role| role.oid == key.role))?;
        self.finish(writing)?;
        self.look_anew();
        Ok(())
    }

    fn check_dropper(&mut self, current: &Role, role: &Role) -> Result<()> {
        let identity = self.current_identity();
        let in_use = |message: &str| Err(PgError::new(state::OBJECT_IN_USE, message));
        if role.oid == identity.current {
            return in_use("current user cannot be dropped");
        }
        if role.oid == identity.session {
            return in_use("session user cannot be dropped");
        }
        if role.is_super && !current.is_super {
            return Err(denied("drop role", only("SUPERUSER", "drop roles with", "SUPERUSER")));
        }
        if !current.is_super && !self.rights().administers(current.oid, role.oid) {
            return Err(denied(
                "drop role",
                format!(
                    "Only roles with the CREATEROLE attribute and the ADMIN option on role \"{}\" may drop this role.",
                    role.name
                ),
            ));
        }
        if role.account.is_none() || role.oid == oids::POSTGRES || role.name == engine::DEFAULT_ACCOUNT {
            let message = format!("cannot drop role {} because it is required by the database system", role.name);
            return Err(PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message));
        }
        Ok(())
    }

    /// Fails if objects belong to the role, or privileges on some.
    fn check_free(&mut self, role: &Role) -> Result<()> {
        let lines = self.dependences_on_role(role);
        if lines.is_empty() {
            return Ok(());
        }
        let message = format!("role \"{}\" cannot be dropped because some objects depend on it", role.name);
        Err(PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message).detail(lines.join("\n")))
    }

    /// Describes what depends on a role: in this database by name, in others by number.
    fn dependences_on_role(&mut self, role: &Role) -> Vec<String> {
        let path = self.search_path();
        let facts = self.rights();
        // With the place among the lines of the real server, which sorts by OID.
        let mut lines: Vec<((bool, oid::Oid), String)> = Vec::new();
        let mut elsewhere: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        let oid_of = |key: &query::catalog::access::AccessKey| match facts.snapshot.object(key.of) {
            Some(query::catalog::objects::Object::Schema(schema)) if key.kind == AccessKind::Object => {
                crate::system::view::schema_oid(schema)
            }
            _ => oids::of_object(key.of),
        };
        for (key, access) in facts.snapshot.access.all() {
            let place = (key.kind == AccessKind::Member, oid_of(key));
            let owns = access.owner == role.oid;
            let has = |grant: &query::catalog::access::AccessGrant| {
                (grant.grantee == role.oid && key.kind != AccessKind::Member) || grant.grantor == role.oid
            };
            let is_granted = access.grants.iter().flatten().any(has);
            if !owns && !is_granted {
                continue;
            }
            if key.kind == AccessKind::Member {
                let member = facts.roles().name_of(key.of as oid::Oid);
                for grant in access.grants.iter().flatten().filter(|grant| grant.grantor == role.oid) {
                    let of = facts.roles().name_of(grant.grantee);
                    lines.push((place, format!("privileges for membership of role {member} in role {of}")));
                }
                continue;
            }
            match facts.described(*key, &path) {
                Some((database, shown)) if database == facts.database || key.kind == AccessKind::Database => {
                    let of_columns: Vec<u32> =
                        access.grants.iter().flatten().filter(|grant| has(grant)).map(|grant| grant.column).collect();
                    if of_columns.contains(&0) && !owns {
                        lines.push((place, format!("privileges for {shown}")));
                    }
                    let names = facts.column_names(*key, &of_columns);
                    let of_column = |name: &String| (place, format!("privileges for column {name} of {shown}"));
                    lines.extend(names.iter().map(of_column));
                    if owns {
                        lines.push((place, format!("owner of {shown}")));
                    }
                }
                Some((database, _)) => *elsewhere.entry(database).or_default() += 1,
                None => {}
            }
        }
        for (key, record) in &*facts.snapshot.default_access {
            let owns = key.role == role.oid;
            if !owns && !record.grants.iter().any(|grant| grant.grantee == role.oid) {
                continue;
            }
            let of = if owns { "owner of" } else { "privileges for" };
            match facts.described_default(*key) {
                Some((database, shown)) if database == facts.database => {
                    lines.push(((false, oids::of_object(record.id)), format!("{of} {shown}")));
                }
                Some((database, _)) => *elsewhere.entry(database).or_default() += 1,
                None => {}
            }
        }
        lines.sort_by_key(|(place, _)| *place);
        let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        lines.extend(elsewhere.into_iter().map(|(database, count)| match count {
            1 => format!("1 object in database {database}"),
            count => format!("{count} objects in database {database}"),
        }));
        lines
    }

    /// Reads the options of CREATE and ALTER ROLE.
    fn said(&mut self, options: &[DefElem]) -> Result<Said> {
        let mut said = Said::default();
        for (nth, option) in options.iter().enumerate() {
            if options[..nth].iter().any(|other| other.name == option.name) {
                return Err(PgError::new(state::SYNTAX_ERROR, "conflicting or redundant options"));
            }
            let truth = || Some(matches!(option.value, Some(DefArg::Bool(true))));
            match (&*option.name, &option.value) {
                ("password", Some(DefArg::String(text))) => said.password = Some(Some(text.clone())),
                ("password", _) => said.password = Some(None),
                ("superuser", _) => said.is_super = truth(),
                ("inherit", _) => said.inherits = truth(),
                ("createrole", _) => said.creates_roles = truth(),
                ("createdb", _) => said.creates_databases = truth(),
                ("canlogin", _) => said.can_login = truth(),
                ("isreplication" | "bypassrls", Some(DefArg::Bool(false))) => {}
                ("isreplication", _) => return Err(PgError::unsupported("REPLICATION of a role")),
                ("bypassrls", _) => return Err(PgError::unsupported("BYPASSRLS of a role")),
                ("connectionlimit", Some(DefArg::Integer(limit))) if *limit < -1 => {
                    let message = format!("invalid connection limit: {limit}");
                    return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
                }
                ("connectionlimit", Some(DefArg::Integer(limit))) => said.connections_max = Some(*limit),
                ("validUntil", Some(DefArg::String(text))) => said.valid_until = Some(self.moment(text)?),
                ("addroleto", Some(DefArg::Roles(roles))) => said.member_of.clone_from(roles),
                ("rolemembers", Some(DefArg::Roles(roles))) => said.members.clone_from(roles),
                ("adminmembers", Some(DefArg::Roles(roles))) => said.admins.clone_from(roles),
                ("sysid", _) => self.skip_notice("00000", "SYSID can no longer be specified".to_owned()),
                (name, _) => {
                    return Err(PgError::new(state::SYNTAX_ERROR, format!("option \"{name}\" not recognized")));
                }
            }
        }
        Ok(said)
    }

    /// Returns a moment of VALID UNTIL; `None` for infinity.
    fn moment(&mut self, text: &str) -> Result<Option<i64>> {
        let context = self.context().slot_mut::<crate::functions::state::PgState>().io.clone();
        match io::input(&registry::column_type(oid::TIMESTAMPTZ, -1, true), text, &context)? {
            Value::Int(i64::MAX) => Ok(None),
            Value::Int(at) => Ok(Some(at)),
            _ => Err(PgError::unsupported(format!("VALID UNTIL '{text}'"))),
        }
    }

    fn apply(&mut self, account: &mut Account, said: &Said) -> Result<()> {
        let RoleAttributes { is_super, creates_databases, creates_roles, inherits, valid_until, connections_max } =
            &mut account.role;
        let set = |to: &mut bool, said: Option<bool>| *to = said.unwrap_or(*to);
        set(is_super, said.is_super);
        set(creates_databases, said.creates_databases);
        set(creates_roles, said.creates_roles);
        set(inherits, said.inherits);
        set(&mut account.enabled, said.can_login);
        *valid_until = said.valid_until.unwrap_or(*valid_until);
        *connections_max = said.connections_max.unwrap_or(*connections_max);
        match &said.password {
            None => {}
            Some(None) => account.clear_passwords(),
            Some(Some(password)) if password.is_empty() => {
                self.skip_notice("00000", "empty string is not a valid password, clearing password".to_owned());
                account.clear_passwords();
            }
            Some(Some(password)) => match verifier(password) {
                Some(verifier) => {
                    account.clear_passwords();
                    account.scram = Some(Box::new(engine::Scram { verifier, digest: None }));
                }
                None if is_md5(password) => return Err(PgError::unsupported("an MD5 verifier as a password")),
                None => account.set_password(password.as_bytes()),
            },
        }
        Ok(())
    }
}

fn is_md5(password: &str) -> bool {
    let digits = password.strip_prefix("md5");
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the verifier that a text of `pg_authid.rolpassword` is.
fn verifier(text: &str) -> Option<ScramVerifier> {
    let (iterations, rest) = text.strip_prefix("SCRAM-SHA-256$")?.split_once(':')?;
    let (salt, keys) = rest.split_once('$')?;
    let (stored, server) = keys.split_once(':')?;
    let decoded = |text: &str| datum::base64::decode(text.as_bytes());
    let verifier = ScramVerifier {
        iterations: iterations.parse().ok()?,
        salt: decoded(salt)?,
        stored_key: decoded(stored)?.try_into().ok()?,
        server_key: decoded(server)?.try_into().ok()?,
    };
    verifier.is_valid().then_some(verifier)
}

/// Fails for a name that no role may have.
fn check_role_name(name: &str) -> Result<()> {
    if name == "public" || name == "none" {
        return Err(PgError::new(state::RESERVED_NAME, format!("role name \"{name}\" is reserved")));
    }
    if name.starts_with("pg_") {
        let error = PgError::new(state::RESERVED_NAME, format!("role name \"{name}\" is reserved"));
        return Err(error.detail(PREFIX_RESERVED));
    }
    if name.contains('@') {
        return Err(PgError::unsupported(format!(
            "the role name \"{name}\", which has the form of an account with a host,"
        )));
    }
    Ok(())
}

/// Fails for a role that PostgreSQL keeps for itself.
pub(super) fn check_reserved(spec: &RoleSpec, detail: &str) -> Result<()> {
    match &spec.kind {
        RoleSpecKind::Name(name) if name.starts_with("pg_") => {
            let error = PgError::new(state::RESERVED_NAME, format!("role name \"{name}\" is reserved"));
            Err(error.detail(detail))
        }
        _ => Ok(()),
    }
}

/// Returns the error of a change of the account list.
fn account_error(error: engine::Error) -> PgError {
    match error {
        engine::Error::Invalid(what) => PgError::new(state::INVALID_NAME, what),
        error => query::engine_fault::engine_fault(error).into(),
    }
}

impl Session {
    /// Gives a role another name. It stays the same role.
    pub(super) fn rename_role(&mut self, name: &Ident, to: &Ident) -> Result<()> {
        self.begin_definition("ALTER ROLE")?;
        self.refresh();
        let (name, to) = (&name.value, &to.value);
        let renamed = self.rights().roles().existing(name)?;
        let identity = self.current_identity();
        for (oid, word) in [(identity.session, "session"), (identity.current, "current")] {
            if renamed.oid == oid {
                return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, format!("{word} user cannot be renamed")));
            }
        }
        check_role_name(name)?;
        check_role_name(to)?;
        if self.rights().roles().named(to).is_some() {
            return Err(PgError::new(state::DUPLICATE_OBJECT, format!("role \"{to}\" already exists")));
        }
        let current = self.current_role()?;
        if renamed.is_super && !current.is_super {
            return Err(denied("rename role", only("SUPERUSER", "rename roles with", "SUPERUSER")));
        }
        let may =
            current.is_super || current.attributes.creates_roles && self.rights().administers(current.oid, renamed.oid);
        if !may {
            return Err(denied(
                "rename role",
                format!(
                    "Only roles with the CREATEROLE attribute and the ADMIN option on role \"{name}\" may rename this role."
                ),
            ));
        }
        if renamed.account.is_none() || renamed.oid == oids::POSTGRES || name == engine::DEFAULT_ACCOUNT {
            return Err(PgError::unsupported(format!("RENAME of role \"{name}\"")));
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let (old, other) = (writing.account(name)?, writing.account(to)?);
        check_free_name(to, other.as_deref())?;
        let Some(account) = old.clone().filter(|account| account.id == renamed.oid) else {
            return Err(PgError::new(state::INTERNAL_ERROR, "tuple concurrently updated"));
        };
        let account = Account { name: to.clone(), ..Account::clone(&account) };
        account.check().map_err(account_error)?;
        writing.put_account(account, other)?;
        writing.remove_account(name, old);
        self.finish(writing)?;
        self.look_anew();
        Ok(())
    }
}

/// Fails if another transaction has given the name to a role while its lock was waited for.
fn check_free_name(name: &str, known: Option<&Account>) -> Result<()> {
    match known {
        None => Ok(()),
        Some(_) => {
            let message = "duplicate key value violates unique constraint \"pg_authid_rolname_index\"";
            let error = PgError::new(state::UNIQUE_VIOLATION, message);
            Err(error.detail(format!("Key (rolname)=({name}) already exists.")))
        }
    }
}
