//! The session's privileges: resolved at login, refreshed when accounts change.
//!
//! MY-16: plans are checked against the privileges of their plan-cache context (`session/plans`), and a session whose
//! privileges change leaves its context. So a cached plan needs no privilege check.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Account, AccountChange};

use crate::error::{self, Result, SqlError};
use crate::parse::statement::Statement;
use crate::parse::statement::{Accounting, RoleChoice, UserName};
use crate::rights::{Grants, Privileges, Rights, Who, find};
use crate::scalar::state::StateOf as _;
use crate::session::{Outcome, Session};
use crate::system::viewer::Viewer;
use crate::value::Text;

/// A snapshot of the list of accounts.
pub(super) type All = BTreeMap<String, Arc<Account>>;

/// The session's account and the state derived from it.
#[derive(Debug, Default)]
pub(super) struct AccountState {
    /// The name of the account.
    pub account: String,
    /// The generation of the list at the lookup.
    pub generation: u64,
    /// The account's own privileges on `*.*` at login (MY-14).
    pub entered_with: Privileges,
    /// The active roles.
    pub roles: BTreeSet<String>,
    /// The password has expired and must be changed first.
    pub must_change: bool,
}

impl Session {
    /// Looks up the account; an error if there is none.
    pub(super) fn enter(&mut self) -> Result<()> {
        let accounts = self.db.engine().accounts();
        let generation = accounts.generation();
        let account = find(accounts, &self.who.user, &self.who.host).ok_or_else(|| self.denied())?;
        let grants = Grants::of(&account)?;
        self.account_state = AccountState {
            account: account.name.clone(),
            generation,
            entered_with: grants.global,
            roles: grants.default_roles.iter().filter(|role| grants.roles.contains_key(*role)).cloned().collect(),
            must_change: account.expired,
        };
        self.handle.show(|shown| shown.account.clone_from(&account.name));
        self.look_up_rights()
    }

    pub(super) fn denied(&self) -> SqlError {
        error::ACCESS_DENIED.with(&[&self.who.user, &self.who.host, &"YES"])
    }

    /// Returns the name of the session's account.
    pub fn account(&self) -> &str {
        &self.account_state.account
    }

    /// Refreshes the privileges if accounts have changed. Mostly it compares two numbers.
    pub(super) fn follow_accounts(&mut self) -> Result<()> {
        if self.db.engine().accounts().generation() == self.account_state.generation {
            Ok(())
        } else {
            self.look_up_rights()
        }
    }

    /// Returns the privileges of an account with its default roles, for a view's definer.
    pub(super) fn rights_of_account(&self, name: &str) -> Result<Option<Arc<Rights>>> {
        let accounts = self.db.engine().accounts();
        let Some(account) = accounts.get(name) else { return Ok(None) };
        let grants = Grants::of(&account)?;
        let roles = grants.default_roles.iter().filter(|role| grants.roles.contains_key(*role)).cloned().collect();
        let (global, of) = self.put_together(grants, &roles)?;
        let who = Who::of(name, |name| accounts.get(name).is_some());
        Ok(Some(Arc::new(Rights { user: who.user.clone(), host: who.host.clone(), who, global, of, own: None })))
    }

    /// Combines an account's grants with those of its roles, transitively.
    fn put_together(&self, own: Grants, roles: &BTreeSet<String>) -> Result<(Privileges, Vec<Arc<Grants>>)> {
        let accounts = self.db.engine().accounts();
        let mut global = own.global;
        let mut of = vec![Arc::new(own)];
        let mut waiting: Vec<String> = roles.iter().cloned().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            let Some(role) = accounts.get(&name).filter(|_| seen.insert(name)) else { continue };
            let role = Grants::of(&role)?;
            global |= role.global;
            waiting.extend(role.roles.keys().cloned());
            of.push(Arc::new(role));
        }
        Ok((global, of))
    }

    /// Recomputes the session's privileges.
    pub(super) fn look_up_rights(&mut self) -> Result<()> {
        let db = self.db.clone();
        let accounts = db.engine().accounts();
        self.account_state.generation = accounts.generation();
        let is_known = |name: &str| accounts.get(name).is_some();
        let own = accounts.get(&self.account_state.account);
        let grants = own.map_or(Ok(Grants::default()), |account| Grants::of(&account))?;
        self.account_state.roles.retain(|role| grants.roles.contains_key(role));
        let grants = Grants { global: self.account_state.entered_with, ..grants };
        let (global, of) = self.put_together(grants, &self.account_state.roles)?;
        let who = Who::of(&self.account_state.account, is_known);
        let facts = &mut self.ctx.state_mut().session;
        facts.current_user = Text::from(who.plain());
        let roles: Vec<String> = self.account_state.roles.iter().map(|role| Who::of(role, is_known).quoted()).collect();
        facts.current_role = Text::from(if roles.is_empty() { "NONE".to_owned() } else { roles.join(",") });
        let own = self.rights_of_temporary();
        let rights = Rights { user: self.who.user.clone(), host: self.who.host.clone(), who, global, of, own };
        self.rights = Arc::new(rights);
        self.ctx.put_slot(Viewer {
            db: self.db.clone(),
            handle: self.handle.clone(),
            variables: self.values.clone(),
            rights: self.rights.shared(),
        });
        let is_system = self.rights.global.has(Privileges::SYSTEM_USER);
        self.handle.show(|shown| shown.is_system = is_system);
        self.leave_context();
        Ok(())
    }

    /// Refuses all statements but a password change once the password has expired.
    pub(super) fn check_password_age(&self, statement: &Statement) -> Result<()> {
        if !self.account_state.must_change {
            return Ok(());
        }
        let helps = match statement {
            Statement::Set(_) => true,
            Statement::Accounting(what) => {
                matches!(**what, Accounting::AlterUser { .. } | Accounting::SetPassword { .. })
            }
            _ => false,
        };
        if helps { Ok(()) } else { Err(error::MUST_CHANGE_PASSWORD.bare()) }
    }

    /// Requires SYSTEM_USER to change an account that has it, so that CREATE USER alone does not lead to
    /// administrators' privileges.
    pub(super) fn may_change<'k>(&self, all: &All, mut keys: impl Iterator<Item = &'k String>) -> Result<()> {
        if self.rights.global.has(Privileges::SYSTEM_USER) {
            return Ok(());
        }
        keys.try_for_each(|key| match all.get(key) {
            Some(account) if Grants::of(account)?.are_of_system_user(|name| all.get(name).cloned())? => {
                self.rights.need_global(Privileges::SYSTEM_USER)
            }
            _ => Ok(()),
        })
    }

    /// Changes all of the accounts or none; the reply waits until the change is durable.
    pub(super) fn change_accounts(
        &mut self,
        f: impl FnOnce(&Session, &All) -> Result<Vec<AccountChange>>,
    ) -> Result<()> {
        let session = &*self;
        let lsn = session.db.engine().accounts().change_many(|all| f(session, all))??;
        self.core.transaction.raise_durability_lsn(lsn);
        self.look_up_rights()
    }

    /// Returns the account's name in the list.
    pub(super) fn key_of(&self, name: &UserName) -> String {
        match name {
            UserName::Current => self.account_state.account.clone(),
            UserName::Named { user, host } => {
                let accounts = self.db.engine().accounts();
                Who::new(user, host).key(|name| accounts.get(name).is_some())
            }
        }
    }

    pub(super) fn who_of(&self, key: &str) -> Who {
        let accounts = self.db.engine().accounts();
        Who::of(key, |name| accounts.get(name).is_some())
    }

    pub(super) fn accounting(&mut self, what: &Accounting) -> Result<Outcome> {
        match what {
            Accounting::CreateUser { users, if_not_exists, options, default_roles } => {
                self.create_users(users, *if_not_exists, options, default_roles.as_ref())
            }
            Accounting::AlterUser { users, if_exists, options } => self.alter_users(users, *if_exists, options),
            Accounting::DropUser { names, if_exists, .. } => self.drop_users(names, *if_exists),
            Accounting::RenameUser(pairs) => self.rename_users(pairs),
            Accounting::SetPassword { name, password } => self.set_password(name, password),
            Accounting::CreateRole { names, if_not_exists } => self.create_roles(names, *if_not_exists),
            Accounting::Grant { given, level, to, grant_option } => self.grant(given, level, to, *grant_option),
            Accounting::Revoke { given, level, from, if_exists, ignore_unknown } => {
                self.revoke(given, level, from, *if_exists, *ignore_unknown)
            }
            Accounting::RevokeAll { from, ignore_unknown, .. } => self.revoke_all(from, *ignore_unknown),
            Accounting::GrantRoles { roles, to, admin_option } => self.grant_roles(roles, to, *admin_option),
            Accounting::RevokeRoles { roles, from, if_exists, ignore_unknown } => {
                self.revoke_roles(roles, from, *if_exists, *ignore_unknown)
            }
            Accounting::SetDefaultRole { roles, of } => self.set_default_role(roles, of),
            Accounting::SetRole(choice) => self.set_role(choice),
        }?;
        Ok(Outcome::done())
    }

    /// Returns the roles that the clause selects from the account's.
    pub(super) fn chosen(&self, choice: &RoleChoice, grants: &Grants, of: &str) -> Result<BTreeSet<String>> {
        let named = |names: &[UserName]| -> Result<BTreeSet<String>> {
            let keys: BTreeSet<String> = names.iter().map(|name| self.key_of(name)).collect();
            match keys.iter().find(|key| !grants.roles.contains_key(*key)) {
                None => Ok(keys),
                Some(other) => {
                    Err(error::ROLE_NOT_GRANTED.with(&[&self.who_of(other).quoted(), &self.who_of(of).quoted()]))
                }
            }
        };
        let all = || grants.roles.keys().cloned().collect::<BTreeSet<String>>();
        Ok(match choice {
            RoleChoice::None => BTreeSet::new(),
            RoleChoice::Default => {
                grants.default_roles.iter().filter(|role| grants.roles.contains_key(*role)).cloned().collect()
            }
            RoleChoice::All => all(),
            RoleChoice::AllExcept(names) => {
                let except = named(names)?;
                all().difference(&except).cloned().collect()
            }
            RoleChoice::List(names) => named(names)?,
        })
    }

    fn set_role(&mut self, choice: &RoleChoice) -> Result<()> {
        let own = self.db.engine().accounts().get(&self.account_state.account);
        let grants = own.map_or(Ok(Grants::default()), |account| Grants::of(&account))?;
        self.account_state.roles = self.chosen(choice, &grants, &self.account_state.account)?;
        self.look_up_rights()
    }
}
