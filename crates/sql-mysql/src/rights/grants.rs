//! Grants of one account: privileges at four levels, roles, and default roles.
//!
//! Encoding: version u8, then each list preceded by its length, in the order of the fields. Sets are u64; texts are
//! preceded by a length u32.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Account;

use crate::error::{Result, SqlError};
use crate::rights::identity::is_like;
use crate::rights::privilege::Privileges;
use query::catalog::codec::{In, Out};

/// Version 1 had no SYSTEM_USER.
const VERSION: u8 = 2;

/// Privileges on a table and on some of its columns, whose names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfTable {
    pub table: Privileges,
    pub columns: BTreeMap<String, Privileges>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    pub global: Privileges,
    /// Database privileges by a LIKE pattern.
    pub databases: BTreeMap<String, Privileges>,
    pub tables: BTreeMap<(String, String), OfTable>,
    /// Granted roles by account name; true: with ADMIN OPTION.
    pub roles: BTreeMap<String, bool>,
    pub default_roles: BTreeSet<String>,
    /// Created by CREATE ROLE.
    pub is_role: bool,
}

impl Grants {
    /// Returns the grants of the account. An account with all Redis rules administers the account list, and has all
    /// privileges here unless it has grants of its own.
    pub fn of(account: &Account) -> Result<Grants> {
        if let Some(bytes) = &account.grants {
            return Grants::decode(bytes);
        }
        let mut words = account.rules.split_ascii_whitespace();
        let is_plain = words.all(|word| ["~*", "&*", "+@all", "resetchannels"].contains(&word));
        let has = |word: &str| account.rules.split_ascii_whitespace().any(|known| known == word);
        let is_all = is_plain && has("~*") && has("+@all");
        let global = if is_all { Privileges::OF_SERVER | Privileges::GRANT } else { Privileges::NONE };
        Ok(Grants { global, ..Grants::default() })
    }

    /// Returns whether the account holds SYSTEM_USER, itself or through any granted role, active or not. `get` finds
    /// accounts by name.
    pub fn are_of_system_user(&self, get: impl Fn(&str) -> Option<Arc<Account>>) -> Result<bool> {
        let mut is_system = self.global.has(Privileges::SYSTEM_USER);
        let mut waiting: Vec<String> = self.roles.keys().cloned().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop().filter(|_| !is_system) {
            let Some(role) = get(&name).filter(|_| seen.insert(name)) else { continue };
            let role = Grants::of(&role)?;
            is_system = role.global.has(Privileges::SYSTEM_USER);
            waiting.extend(role.roles.into_keys());
        }
        Ok(is_system)
    }

    /// Returns the privileges on a database, without global ones. Only the closest matching pattern counts.
    pub fn database(&self, name: &str) -> Privileges {
        let closeness = |pattern: &str| {
            let mut letters = pattern.chars().enumerate().peekable();
            while let Some((at, letter)) = letters.next() {
                match letter {
                    '\\' => drop(letters.next()),
                    '%' | '_' => return at,
                    _ => {}
                }
            }
            usize::MAX
        };
        let fits = self.databases.iter().filter(|(pattern, _)| is_like(pattern, name));
        fits.max_by_key(|(pattern, _)| closeness(pattern)).map_or(Privileges::NONE, |(_, set)| *set)
    }

    pub fn table(&self, schema: &str, name: &str) -> Option<&OfTable> {
        self.tables.get(&(schema.to_owned(), name.to_owned()))
    }

    /// Removes empty entries.
    pub fn tidy(&mut self) {
        self.databases.retain(|_, set| !set.is_none());
        for of in self.tables.values_mut() {
            of.columns.retain(|_, set| !set.is_none());
        }
        self.tables.retain(|_, of| !of.table.is_none() || !of.columns.is_empty());
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.byte(VERSION);
        out.byte(u8::from(self.is_role));
        out.number(self.global.0);
        out.count(self.databases.len());
        for (pattern, set) in &self.databases {
            out.text(pattern);
            out.number(set.0);
        }
        out.count(self.tables.len());
        for ((schema, name), of) in &self.tables {
            out.text(schema);
            out.text(name);
            out.number(of.table.0);
            out.count(of.columns.len());
            for (column, set) in &of.columns {
                out.text(column);
                out.number(set.0);
            }
        }
        out.count(self.roles.len());
        for (role, admin) in &self.roles {
            out.text(role);
            out.byte(u8::from(*admin));
        }
        out.count(self.default_roles.len());
        self.default_roles.iter().for_each(|role| out.text(role));
        out.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Grants> {
        let mut from = In(bytes);
        let version = from.byte()?;
        if !(1..=VERSION).contains(&version) {
            return Err(SqlError::corrupt("grants of a later version"));
        }
        let is_role = from.byte()? != 0;
        let mut global = Privileges(from.number()?);
        // As MySQL does when upgrading to 8.0.16: accounts that may act as others are administrators.
        if version == 1 && global.has(Privileges::SET_USER_ID) {
            global |= Privileges::SYSTEM_USER;
        }
        let databases = from.list(|from| Ok((from.text()?, Privileges(from.number()?))))?;
        let tables = from.list(|from| {
            let name = (from.text()?, from.text()?);
            let table = Privileges(from.number()?);
            let columns = from.list(|from| Ok((from.text()?, Privileges(from.number()?))))?;
            Ok((name, OfTable { table, columns: columns.into_iter().collect() }))
        })?;
        let roles = from.list(|from| Ok((from.text()?, from.byte()? != 0)))?;
        let default_roles = from.list(In::text)?;
        Ok(Grants {
            global,
            databases: databases.into_iter().collect(),
            tables: tables.into_iter().collect(),
            roles: roles.into_iter().collect(),
            default_roles: default_roles.into_iter().collect(),
            is_role,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_come_back_from_their_bytes() {
        let mut grants = Grants { global: Privileges::SELECT | Privileges::GRANT, is_role: true, ..Grants::default() };
        grants.databases.insert("app\\_%".into(), Privileges::OF_DATABASE);
        let columns = BTreeMap::from([("a".to_owned(), Privileges::UPDATE)]);
        grants.tables.insert(("d".into(), "t".into()), OfTable { table: Privileges::INSERT, columns });
        grants.roles.insert("r@h".into(), true);
        grants.default_roles.insert("r@h".into());
        assert_eq!(Grants::decode(&grants.encode()), Ok(grants.clone()));
        let bytes = grants.encode();
        assert!((0..bytes.len()).all(|end| Grants::decode(&bytes[..end]).is_err()));
    }

    #[test]
    fn administrators_of_the_first_version_hold_system_user() {
        let decoded = |set| {
            let mut bytes = Grants { global: set, ..Grants::default() }.encode();
            bytes[0] = 1;
            Grants::decode(&bytes).map(|grants| grants.global)
        };
        let administrator = Privileges::SELECT | Privileges::SET_USER_ID;
        assert_eq!(decoded(administrator), Ok(administrator | Privileges::SYSTEM_USER));
        let plain = Privileges::SELECT | Privileges::CREATE_USER;
        assert_eq!(decoded(plain), Ok(plain));
    }

    #[test]
    fn system_users_are_found_through_rings_of_roles() {
        let with = |name: &str, global, roles: &[&str]| {
            let roles = roles.iter().map(|role| ((*role).to_owned(), false)).collect();
            let grants = Grants { global, roles, ..Grants::default() };
            Arc::new(Account { grants: Some(grants.encode()), ..Account::new(name) })
        };
        let all = [
            with("plain", Privileges::SUPER, &["ring"]),
            with("ring", Privileges::NONE, &["gnir"]),
            with("gnir", Privileges::NONE, &["ring"]),
            with("boss", Privileges::NONE, &["ring", "middle"]),
            with("middle", Privileges::NONE, &["chief"]),
            with("chief", Privileges::SYSTEM_USER, &[]),
        ];
        let get = |name: &str| all.iter().find(|account| account.name == name).cloned();
        let is_system = |name: &str| Grants::of(&get(name).unwrap()).unwrap().are_of_system_user(get).unwrap();
        assert_eq!(["plain", "ring", "boss", "middle", "chief"].map(is_system), [false, false, true, true, true]);
    }

    #[test]
    fn the_closest_pattern_of_a_database_counts_alone() {
        let mut grants = Grants::default();
        grants.databases.insert("%".into(), Privileges::SELECT);
        grants.databases.insert("app%".into(), Privileges::INSERT);
        grants.databases.insert("app\\_x".into(), Privileges::UPDATE);
        assert_eq!(grants.database("app_x"), Privileges::UPDATE);
        assert_eq!(grants.database("appox"), Privileges::INSERT);
        assert_eq!(grants.database("other"), Privileges::SELECT);
    }

    #[test]
    fn who_may_do_everything_at_the_redis_door_may_here() {
        let all = |rules: &str| {
            let account = Account { rules: rules.into(), ..Account::new("a") };
            Grants::of(&account).is_ok_and(|grants| grants.global.has(Privileges::SUPER | Privileges::GRANT))
        };
        assert!(all("~* &* +@all") && all("~* resetchannels +@all"));
        for less in ["", "~a:* +@all", "~* +get", "~* +@all -flushall", "resetchannels -@all (~* +@all)"] {
            assert!(!all(less), "{less}");
        }
    }
}
