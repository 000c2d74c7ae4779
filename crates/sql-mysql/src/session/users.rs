//! CREATE, ALTER, DROP, RENAME USER, SET PASSWORD, CREATE and DROP ROLE. Each changes all the accounts it names or
//! none.
//!
//! A user created here has no Redis rules: it can log in at the Redis door with the same password, but has no
//! permission there before ACL SETUSER.

use std::collections::BTreeSet;

use engine::{Account, AccountChange, DEFAULT_ACCOUNT, PASSWORD_MAX, Verifier, sha256};

use crate::error::{self, Result, SqlError};
use crate::parse::statement::{Options, RoleChoice, Secret, User, UserName};
use crate::rights::{Grants, Privileges};
use crate::session::Session;
use crate::session::rights::All;

const USER_CHARACTERS: usize = 32;
const HOST_CHARACTERS: usize = 255;

/// Replaces the account's secret.
fn apply_secret(account: &mut Account, secret: &Secret) -> Result<()> {
    let plugins = ["caching_sha2_password", "mysql_native_password"];
    let plugin = match secret {
        Secret::Password { plugin, .. } => plugin.as_deref().unwrap_or(plugins[0]),
        Secret::Digest { plugin, .. } | Secret::Plugin(plugin) => plugin,
    };
    if !plugins.contains(&plugin) {
        return Err(error::PLUGIN_IS_NOT_LOADED.with(&[&plugin]));
    }
    account.clear_passwords();
    match secret {
        Secret::Password { text, .. } if text.is_empty() => account.passwords = vec![sha256(b"")],
        Secret::Password { text, .. } if plugin == plugins[0] && text.len() > PASSWORD_MAX => {
            return Err(error::NOT_VALID_PASSWORD.bare());
        }
        Secret::Password { text, .. } if plugin == plugins[0] => account.set_password(text.as_bytes()),
        Secret::Password { text, .. } => {
            account.set_password(text.as_bytes());
            account.verifier = Some(Verifier::native(text.as_bytes()));
        }
        Secret::Plugin(_) => account.passwords = vec![sha256(b"")],
        Secret::Digest { bytes, .. } if bytes.is_empty() => account.passwords = vec![sha256(b"")],
        Secret::Digest { bytes, .. } => {
            let verifier = Verifier::decode(bytes).filter(|verifier| verifier.plugin() == plugin);
            account.verifier = Some(verifier.ok_or_else(|| error::PASSWORD_FORMAT.bare())?);
        }
    }
    Ok(())
}

fn apply_options(account: &mut Account, options: &Options) {
    if let Some(locked) = options.locked {
        account.enabled = !locked;
    }
    account.needs_tls = options.needs_tls.unwrap_or(account.needs_tls);
    account.expired = options.expired.unwrap_or(account.expired);
}

fn check_name(name: &UserName) -> Result<()> {
    let UserName::Named { user, host } = name else { return Ok(()) };
    if user.is_empty() {
        return Err(SqlError::unsupported("users without a name"));
    }
    if user.chars().count() > USER_CHARACTERS {
        return Err(error::WRONG_STRING_LENGTH.with(&[user, &"user name", &USER_CHARACTERS]));
    }
    if host.chars().count() > HOST_CHARACTERS {
        return Err(error::WRONG_STRING_LENGTH.with(&[host, &"host name", &HOST_CHARACTERS]));
    }
    let odd = |text: &str| text.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    if odd(user) || odd(host) || host.contains('@') {
        return Err(SqlError::unsupported("spaces in a user's name, and @ in its host"));
    }
    Ok(())
}

impl Session {
    /// Returns `'u'@'h'` for each account, for errors.
    pub(super) fn listed(&self, keys: &[String]) -> String {
        keys.iter().map(|key| self.who_of(key).to_string()).collect::<Vec<_>>().join(",")
    }

    /// Returns the names whose existence equals `wanted`; the others give an error, or notes if `lenient`.
    fn sift(&mut self, names: &[&UserName], wanted: bool, lenient: bool, verb: &str) -> Result<Vec<String>> {
        let accounts = self.db.clone();
        let mut keys: Vec<String> = Vec::new();
        let mut wrong = Vec::new();
        for name in names {
            let key = self.key_of(name);
            let there = accounts.engine().accounts().get(&key).is_some();
            if there == wanted && !keys.contains(&key) { keys.push(key) } else { wrong.push(key) }
        }
        if !wrong.is_empty() && !lenient {
            return Err(error::CANNOT_USER.with(&[&verb, &self.listed(&wrong)]));
        }
        for key in wrong {
            let code = if wanted { error::USER_DOES_NOT_EXIST } else { error::USER_ALREADY_EXISTS };
            let shown = self.who_of(&key).to_string();
            self.note(code.with(&[&shown]));
        }
        Ok(keys)
    }

    pub(super) fn create_users(
        &mut self,
        users: &[User],
        if_not_exists: bool,
        options: &Options,
        default_roles: Option<&RoleChoice>,
    ) -> Result<()> {
        for user in users {
            check_name(&user.name)?;
        }
        let names: Vec<&UserName> = users.iter().map(|user| &user.name).collect();
        let keys = self.sift(&names, false, if_not_exists, "CREATE USER")?;
        let roles = match default_roles {
            None | Some(RoleChoice::None) => BTreeSet::new(),
            Some(RoleChoice::List(names)) => names.iter().map(|name| self.key_of(name)).collect(),
            Some(_) => return Err(SqlError::unsupported("DEFAULT ROLE ALL of a new user, which has none")),
        };
        for role in &roles {
            if self.db.engine().accounts().get(role).is_none() {
                return Err(error::UNKNOWN_AUTHID.with(&[&self.who_of(role).quoted()]));
            }
        }
        if !roles.is_empty() {
            self.rights.need_global(Privileges::ROLE_ADMIN | Privileges::SUPER)?;
        }
        let mut changes = Vec::new();
        for user in users {
            let key = self.key_of(&user.name);
            if !keys.contains(&key) {
                continue;
            }
            let grants = Grants {
                roles: roles.iter().map(|role| (role.clone(), false)).collect(),
                default_roles: roles.clone(),
                ..Grants::default()
            };
            let mut account = Account { enabled: true, grants: Some(grants.encode()), ..Account::new(&key) };
            let empty = Secret::Password { plugin: None, text: String::new() };
            apply_secret(&mut account, user.secret.as_ref().unwrap_or(&empty))?;
            apply_options(&mut account, options);
            changes.push(account);
        }
        self.change_accounts(|session, all| {
            session.may_change(all, roles.iter())?;
            match changes.iter().find(|account| all.contains_key(&account.name)) {
                Some(account) => Err(error::CANNOT_USER.with(&[&"CREATE USER", &account.name])),
                None => Ok(changes.into_iter().map(AccountChange::Put).collect()),
            }
        })
    }

    pub(super) fn create_roles(&mut self, names: &[UserName], if_not_exists: bool) -> Result<()> {
        names.iter().try_for_each(check_name)?;
        let names: Vec<&UserName> = names.iter().collect();
        let keys = self.sift(&names, false, if_not_exists, "CREATE ROLE")?;
        let grants = Grants { is_role: true, ..Grants::default() }.encode();
        let role = |key: &String| Account { grants: Some(grants.clone()), expired: true, ..Account::new(key) };
        let roles: Vec<Account> = keys.iter().map(role).collect();
        self.change_accounts(|_, all| match roles.iter().find(|account| all.contains_key(&account.name)) {
            Some(account) => Err(error::CANNOT_USER.with(&[&"CREATE ROLE", &account.name])),
            None => Ok(roles.into_iter().map(AccountChange::Put).collect()),
        })
    }

    pub(super) fn alter_users(&mut self, users: &[User], if_exists: bool, options: &Options) -> Result<()> {
        let names: Vec<&UserName> = users.iter().map(|user| &user.name).collect();
        let is_plain = options.locked.is_none() && options.expired.is_none() && options.needs_tls.is_none();
        let own = self.account_state.account.clone();
        let is_own_password =
            is_plain && users.iter().all(|user| user.secret.is_some() && self.key_of(&user.name) == own);
        if !is_own_password {
            if self.account_state.must_change {
                return Err(error::MUST_CHANGE_PASSWORD.bare());
            }
            self.rights.need_global(Privileges::CREATE_USER)?;
        }
        let keys = self.sift(&names, true, if_exists, "ALTER USER")?;
        let mut secrets = Vec::new();
        for user in users {
            let key = self.key_of(&user.name);
            if keys.contains(&key) {
                secrets.push((key, user.secret.clone()));
            }
        }
        self.change_accounts(|session, all| {
            if !is_own_password {
                session.may_change(all, secrets.iter().map(|(key, _)| key))?;
            }
            let mut changes = Vec::new();
            for (key, secret) in &secrets {
                let Some(old) = all.get(key) else { return Err(error::CANNOT_USER.with(&[&"ALTER USER", key])) };
                let mut account = Account::clone(old);
                if let Some(secret) = secret {
                    apply_secret(&mut account, secret)?;
                    account.expired = false;
                }
                apply_options(&mut account, options);
                changes.push(AccountChange::Put(account));
            }
            Ok(changes)
        })?;
        if secrets.iter().any(|(key, secret)| *key == own && secret.is_some()) {
            self.account_state.must_change = false;
        }
        Ok(())
    }

    pub(super) fn set_password(&mut self, name: &UserName, password: &str) -> Result<()> {
        let secret = Some(Secret::Password { plugin: self.plugin_of(name), text: password.to_owned() });
        self.alter_users(&[User { name: name.clone(), secret }], false, &Options::default())
            .map_err(|error| if error::CANNOT_USER.is(&error) { error::PASSWORD_NO_MATCH.bare() } else { error })
    }

    /// Returns the account's current authentication plugin.
    fn plugin_of(&self, name: &UserName) -> Option<String> {
        let account = self.db.engine().accounts().get(&self.key_of(name))?;
        account.verifier.as_ref().map(|verifier| verifier.plugin().to_owned())
    }

    pub(super) fn drop_users(&mut self, names: &[UserName], if_exists: bool) -> Result<()> {
        let names: Vec<&UserName> = names.iter().collect();
        let keys = self.sift(&names, true, if_exists, "DROP USER")?;
        if keys.iter().any(|key| key == DEFAULT_ACCOUNT) {
            return Err(error::CANNOT_USER.with(&[&"DROP USER", &self.listed(&[DEFAULT_ACCOUNT.to_owned()])]));
        }
        self.change_accounts(|session, all| {
            session.may_change(all, keys.iter())?;
            let mut changes: Vec<AccountChange> = keys.iter().cloned().map(AccountChange::Remove).collect();
            changes.extend(without_roles(all, &keys)?);
            Ok(changes)
        })
    }

    pub(super) fn rename_users(&mut self, pairs: &[(UserName, UserName)]) -> Result<()> {
        let mut moves: Vec<(String, String)> = Vec::new();
        let mut wrong = Vec::new();
        for (from, to) in pairs {
            check_name(to)?;
            let (from, to) = (self.key_of(from), self.key_of(to));
            let accounts = self.db.engine().accounts();
            let is_free = accounts.get(&to).is_none() && !moves.iter().any(|(_, taken)| *taken == to);
            if accounts.get(&from).is_none() || !is_free || from == DEFAULT_ACCOUNT {
                wrong.push(from.clone());
            }
            moves.push((from, to));
        }
        if !wrong.is_empty() {
            return Err(error::CANNOT_USER.with(&[&"RENAME USER", &self.listed(&wrong)]));
        }
        self.change_accounts(|session, all| {
            session.may_change(all, moves.iter().map(|(from, _)| from))?;
            renamed(all, &moves)
        })
    }
}

/// Revokes the roles from all accounts that have them.
fn without_roles(all: &All, roles: &[String]) -> Result<Vec<AccountChange>> {
    let mut changes = Vec::new();
    for account in all.values().filter(|account| !roles.contains(&account.name)) {
        let mut grants = Grants::of(account)?;
        let before = grants.roles.len();
        grants.roles.retain(|role, _| !roles.contains(role));
        if grants.roles.len() < before {
            grants.default_roles.retain(|role| !roles.contains(role));
            changes.push(AccountChange::Put(Account { grants: Some(grants.encode()), ..Account::clone(account) }));
        }
    }
    Ok(changes)
}

/// Renames accounts, and the roles of that name in other accounts.
fn renamed(all: &All, moves: &[(String, String)]) -> Result<Vec<AccountChange>> {
    let new_name = |name: &String| moves.iter().find(|(from, _)| from == name).map_or(name, |(_, to)| to).clone();
    let mut changes: Vec<AccountChange> = moves.iter().map(|(from, _)| AccountChange::Remove(from.clone())).collect();
    for account in all.values() {
        let mut grants = Grants::of(account)?;
        let name = new_name(&account.name);
        let roles = grants.roles.iter().map(|(role, admin)| (new_name(role), *admin)).collect();
        let default_roles = grants.default_roles.iter().map(new_name).collect();
        if name == account.name && grants.roles == roles {
            continue;
        }
        (grants.roles, grants.default_roles) = (roles, default_roles);
        let kept = if account.grants.is_some() || !grants.roles.is_empty() { Some(grants.encode()) } else { None };
        changes.push(AccountChange::Put(Account { name, grants: kept, ..Account::clone(account) }));
    }
    Ok(changes)
}
