//! GRANT and REVOKE of privileges and roles.
//!
//! The grantor must hold the privileges and GRANT OPTION at that level or above. A statement changes all of its
//! accounts or none.

use engine::{Account, AccountChange};

use crate::error::{self, Result, SqlError};
use crate::parse::statement::{Given, Level, RoleChoice, UserName};
use crate::rights::privilege::named;
use crate::rights::{Grants, Privileges};
use crate::session::Session;
use crate::session::rights::All;

/// A privilege level with its names resolved.
enum Place {
    Server,
    Database(String),
    Table(String, String),
}

/// Privileges on the object and on columns, whose names are in lower case.
struct Meant {
    whole: Privileges,
    columns: Vec<(String, Privileges)>,
}

fn meant(given: &[Given], place: &Place) -> Result<Meant> {
    let top = match place {
        Place::Server => Privileges::OF_SERVER,
        Place::Database(_) => Privileges::OF_DATABASE,
        Place::Table(..) => Privileges::OF_TABLE,
    };
    let mut meant = Meant { whole: Privileges::NONE, columns: Vec::new() };
    for item in given {
        let set = match item.words.as_str() {
            "ALL" | "ALL PRIVILEGES" => top,
            "USAGE" => Privileges::NONE,
            "GRANT OPTION" => Privileges::GRANT,
            words => named(words).ok_or_else(|| SqlError::unsupported(format!("the privilege {words}")))?.set,
        };
        if !(top | Privileges::GRANT).has(set) {
            return Err(match place {
                Place::Database(_) => error::WRONG_USAGE.with(&[&"DB GRANT", &"GLOBAL PRIVILEGES"]),
                _ => error::ILLEGAL_GRANT_FOR_TABLE.bare(),
            });
        }
        if item.columns.is_empty() {
            meant.whole |= set;
            continue;
        }
        if !matches!(place, Place::Table(..)) || !Privileges::OF_COLUMN.has(set) {
            return Err(match place {
                Place::Table(..) => error::WRONG_USAGE.with(&[&"COLUMN GRANT", &"NON-COLUMN PRIVILEGES"]),
                _ => error::ILLEGAL_GRANT_FOR_TABLE.bare(),
            });
        }
        meant.columns.extend(item.columns.iter().map(|column| (column.to_lowercase(), set)));
    }
    Ok(meant)
}

impl Session {
    fn place(&self, level: &Level) -> Result<Place> {
        Ok(match level {
            Level::Server => Place::Server,
            Level::Database(Some(name)) => Place::Database(name.clone()),
            Level::Database(None) => Place::Database(self.database.clone().ok_or_else(|| error::NO_DB.bare())?),
            Level::Table(name) => {
                let (schema, name) = self.full_name(name)?;
                Place::Table(schema, name)
            }
        })
    }

    /// Checks that the session may grant or revoke these privileges.
    fn may_pass_on(&self, place: &Place, meant: &Meant) -> Result<()> {
        let rights = &self.rights;
        let wanted = meant.whole | Privileges::GRANT;
        match place {
            Place::Server if rights.global.has(wanted) => Ok(()),
            Place::Server => Err(self.denied()),
            Place::Database(schema) if rights.database(schema).has(wanted) => Ok(()),
            Place::Database(schema) => Err(rights.no_database(schema)),
            Place::Table(schema, name) => {
                let had = rights.table(schema, name);
                if !had.has(Privileges::GRANT) {
                    return Err(rights.no_table("GRANT", name));
                }
                rights.need_table(schema, name, wanted)?;
                let lacks = |(column, set): &&(String, Privileges)| !rights.column(schema, name, column).has(*set);
                match meant.columns.iter().find(lacks) {
                    None => Ok(()),
                    Some((column, set)) => Err(rights.no_column(set.first(), column, name)),
                }
            }
        }
    }

    /// Returns the accounts named. An unknown account is the error `missing`, or a warning if `lenient`.
    fn grantees(
        &mut self,
        names: &[UserName],
        lenient: bool,
        missing: impl Fn(&Session, &str) -> SqlError,
    ) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        for name in names {
            let key = self.key_of(name);
            if self.db.engine().accounts().get(&key).is_some() {
                keys.push(key);
            } else if lenient {
                let shown = self.who_of(&key).to_string();
                self.warn(error::USER_DOES_NOT_EXIST.with(&[&shown]));
            } else {
                return Err(missing(self, &key));
            }
        }
        Ok(keys)
    }

    /// Applies `change` to the grants of each account.
    fn change_grants(
        &mut self,
        keys: &[String],
        mut change: impl FnMut(&str, &mut Grants) -> Result<()>,
    ) -> Result<()> {
        self.change_accounts(|session, all| {
            session.may_change(all, keys.iter())?;
            let mut changes = Vec::new();
            for key in keys {
                let account = all.get(key).ok_or_else(|| error::UNKNOWN_AUTHID.with(&[key]))?;
                let mut grants = Grants::of(account)?;
                change(key, &mut grants)?;
                grants.tidy();
                changes.push(AccountChange::Put(Account { grants: Some(grants.encode()), ..Account::clone(account) }));
            }
            Ok(changes)
        })
    }

    pub(super) fn grant(&mut self, given: &[Given], level: &Level, to: &[UserName], option: bool) -> Result<()> {
        let place = self.place(level)?;
        let mut meant = meant(given, &place)?;
        self.may_pass_on(&place, &meant)?;
        if option {
            meant.whole |= Privileges::GRANT;
        }
        if let Place::Table(schema, name) = &place {
            self.check_target(schema, name, &meant)?;
        }
        let keys = self.grantees(to, false, |_, _| error::CANT_CREATE_USER_WITH_GRANT.bare())?;
        self.change_grants(&keys, |_, grants| {
            match &place {
                Place::Server => grants.global |= meant.whole,
                Place::Database(pattern) => *grants.databases.entry(pattern.clone()).or_default() |= meant.whole,
                Place::Table(schema, name) => {
                    let of = grants.tables.entry((schema.clone(), name.clone())).or_default();
                    of.table |= meant.whole;
                    for (column, set) in &meant.columns {
                        *of.columns.entry(column.clone()).or_default() |= *set;
                    }
                }
            }
            Ok(())
        })
    }

    /// Checks that the table exists, unless CREATE is granted, and that the columns exist.
    fn check_target(&self, schema: &str, name: &str, meant: &Meant) -> Result<()> {
        if let Some(table) = crate::system::find(schema, name) {
            let known = |column: &str| table.columns.iter().any(|(known, _)| known.eq_ignore_ascii_case(column));
            return match meant.columns.iter().find(|(column, _)| !known(column)) {
                None => Ok(()),
                Some((column, _)) => Err(error::BAD_FIELD.with(&[column, &name])),
            };
        }
        if let Some(view) = self.catalog.view(schema, name) {
            let known = |column: &str| view.columns.iter().any(|known| known.eq_ignore_ascii_case(column));
            return match meant.columns.iter().find(|(column, _)| !known(column)) {
                None => Ok(()),
                Some((column, _)) => Err(error::BAD_FIELD.with(&[column, &name])),
            };
        }
        match self.catalog.table(schema, name) {
            Ok(table) => match meant.columns.iter().find(|(column, _)| table.column(column).is_none()) {
                None => Ok(()),
                Some((column, _)) => Err(error::BAD_FIELD.with(&[column, &name])),
            },
            Err(_) if meant.whole.has(Privileges::CREATE) && meant.columns.is_empty() => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    pub(super) fn revoke(
        &mut self,
        given: &[Given],
        level: &Level,
        from: &[UserName],
        if_exists: bool,
        ignore_unknown: bool,
    ) -> Result<()> {
        let place = self.place(level)?;
        let meant = meant(given, &place)?;
        self.may_pass_on(&place, &meant)?;
        let missing = |session: &Session, key: &str| {
            let who = session.who_of(key);
            match &place {
                Place::Table(_, name) => error::NONEXISTING_TABLE_GRANT.with(&[&who.user, &who.host, name]),
                _ => error::NONEXISTING_GRANT.with(&[&who.user, &who.host]),
            }
        };
        let keys = self.grantees(from, ignore_unknown, missing)?;
        let whos: Vec<crate::rights::Who> = keys.iter().map(|key| self.who_of(key)).collect();
        let mut lacking = Vec::new();
        let is_all = meant.whole == Privileges::OF_SERVER;
        let mut at = 0;
        self.change_grants(&keys, |_, grants| {
            let who = &whos[at];
            at += 1;
            let lacks = match &place {
                Place::Server => {
                    grants.global = grants.global & !meant.whole;
                    false
                }
                Place::Database(pattern) => match grants.databases.get_mut(pattern) {
                    Some(set) => {
                        *set = *set & !meant.whole;
                        false
                    }
                    None => !is_all,
                },
                Place::Table(schema, name) => match grants.tables.get_mut(&(schema.clone(), name.clone())) {
                    Some(of) => {
                        of.table = of.table & !meant.whole;
                        // Privileges revoked from the table are revoked from its columns too.
                        of.columns.values_mut().for_each(|set| *set = *set & !meant.whole);
                        for (column, gone) in &meant.columns {
                            if let Some(set) = of.columns.get_mut(column) {
                                *set = *set & !*gone;
                            }
                        }
                        false
                    }
                    None => true,
                },
            };
            if lacks {
                let error = match &place {
                    Place::Table(_, name) => error::NONEXISTING_TABLE_GRANT.with(&[&who.user, &who.host, name]),
                    _ => error::NONEXISTING_GRANT.with(&[&who.user, &who.host]),
                };
                if !if_exists {
                    return Err(error);
                }
                lacking.push(error);
            }
            Ok(())
        })?;
        lacking.into_iter().for_each(|error| self.warn(error));
        Ok(())
    }

    /// REVOKE ALL PRIVILEGES, GRANT OPTION: revokes everything but roles.
    pub(super) fn revoke_all(&mut self, from: &[UserName], ignore_unknown: bool) -> Result<()> {
        if !self.rights.global.has(Privileges::CREATE_USER) {
            self.rights.need_database("mysql", Privileges::UPDATE)?;
        }
        let missing = |session: &Session, key: &str| {
            let who = session.who_of(key);
            error::NONEXISTING_GRANT.with(&[&who.user, &who.host])
        };
        let keys = self.grantees(from, ignore_unknown, missing)?;
        self.change_grants(&keys, |_, grants| {
            grants.global = Privileges::NONE;
            grants.databases.clear();
            grants.tables.clear();
            Ok(())
        })
    }

    pub(super) fn all_accounts(&self) -> All {
        self.db.engine().accounts().list().into_iter().map(|account| (account.name.clone(), account)).collect()
    }

    /// Checks that the session may grant or revoke these roles.
    fn may_pass_on_roles(&self, roles: &[String]) -> Result<()> {
        let admins = Privileges::ROLE_ADMIN | Privileges::SUPER;
        let administers = |role: &String| self.rights.of.iter().any(|grants| grants.roles.get(role) == Some(&true));
        if roles.iter().all(administers) { Ok(()) } else { self.rights.need_global(admins) }
    }

    pub(super) fn grant_roles(&mut self, roles: &[UserName], to: &[UserName], admin: bool) -> Result<()> {
        let unknown = |session: &Session, key: &str| error::UNKNOWN_AUTHID.with(&[&session.who_of(key).quoted()]);
        let roles: Vec<String> = roles.iter().map(|role| self.key_of(role)).collect();
        self.may_pass_on_roles(&roles)?;
        self.may_change(&self.all_accounts(), roles.iter())?;
        let to = self.grantees(to, false, unknown)?;
        if let Some(role) = roles.iter().find(|role| self.db.engine().accounts().get(role).is_none()) {
            return Err(unknown(self, role));
        }
        let all = self.all_accounts();
        for role in &roles {
            for key in &to {
                if reaches(&all, role, key)? {
                    let (user, role) = (self.who_of(key).quoted(), self.who_of(role).quoted());
                    return Err(error::ROLE_GRANTED_TO_ITSELF.with(&[&user, &role]));
                }
            }
        }
        self.change_grants(&to, |_, grants| {
            for role in &roles {
                let known = grants.roles.entry(role.clone()).or_default();
                *known |= admin;
            }
            Ok(())
        })
    }

    pub(super) fn revoke_roles(
        &mut self,
        roles: &[UserName],
        from: &[UserName],
        if_exists: bool,
        ignore_unknown: bool,
    ) -> Result<()> {
        let unknown = |session: &Session, key: &str| error::UNKNOWN_AUTHID.with(&[&session.who_of(key).quoted()]);
        let roles: Vec<String> = roles.iter().map(|role| self.key_of(role)).collect();
        self.may_pass_on_roles(&roles)?;
        self.may_change(&self.all_accounts(), roles.iter())?;
        if let Some(role) = roles.iter().find(|role| self.db.engine().accounts().get(role).is_none())
            && !if_exists
        {
            return Err(unknown(self, role));
        }
        let from = self.grantees(from, ignore_unknown, unknown)?;
        self.change_grants(&from, |_, grants| {
            grants.roles.retain(|role, _| !roles.contains(role));
            grants.default_roles.retain(|role| !roles.contains(role));
            Ok(())
        })
    }

    pub(super) fn set_default_role(&mut self, choice: &RoleChoice, of: &[UserName]) -> Result<()> {
        let keys: Vec<String> = of.iter().map(|name| self.key_of(name)).collect();
        if keys.iter().any(|key| *key != self.account_state.account) {
            self.rights.need_global(Privileges::CREATE_USER)?;
        }
        let mut chosen = Vec::new();
        for key in &keys {
            let account = self.db.engine().accounts().get(key);
            let account = account.ok_or_else(|| error::CANNOT_USER.with(&[&"SET DEFAULT ROLE", &self.who_of(key)]))?;
            chosen.push(self.chosen(choice, &Grants::of(&account)?, key)?);
        }
        self.change_grants(&keys, |key, grants| {
            let at = keys.iter().position(|known| known == key).unwrap_or(0);
            grants.default_roles.clone_from(&chosen[at]);
            Ok(())
        })
    }
}

/// Returns whether `from` has the role `to`, directly or transitively, or is `to`.
fn reaches(all: &All, from: &str, to: &str) -> Result<bool> {
    let (mut waiting, mut seen) = (vec![from.to_owned()], std::collections::BTreeSet::new());
    while let Some(name) = waiting.pop() {
        if name == to {
            return Ok(true);
        }
        if let Some(account) = all.get(&name).filter(|_| seen.insert(name)) {
            waiting.extend(Grants::of(account)?.roles.into_keys());
        }
    }
    Ok(false)
}
