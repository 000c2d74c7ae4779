//! SHOW GRANTS and SHOW CREATE USER: the statements that recreate an account.

use std::collections::BTreeSet;

use crate::batch::Row;
use crate::error::{self, Result, SqlError};
use crate::parse::lexical::quoted_name as name;
use crate::parse::statement::UserName;
use crate::rights::{Grants, Privileges};
use crate::session::{Session, text_column};
use crate::system::text;
use crate::types::Column;

/// Returns `SELECT, INSERT`, or USAGE, or ALL PRIVILEGES.
fn words(set: Privileges, all: Privileges) -> String {
    let set = set & !Privileges::GRANT;
    if set.is_none() {
        return "USAGE".to_owned();
    }
    if set == all { "ALL PRIVILEGES".to_owned() } else { set.names().join(", ") }
}

fn option(set: Privileges) -> &'static str {
    if set.has(Privileges::GRANT) { " WITH GRANT OPTION" } else { "" }
}

/// Returns the GRANT statements in MySQL's order and wording.
fn lines(grants: &Grants, who: &str, named: impl Fn(&str) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    let dynamic = grants.global & !Privileges::STATIC & !Privileges::GRANT;
    // MySQL 8 names each privilege at the global level.
    let global = words(grants.global & (Privileges::STATIC | Privileges::GRANT), Privileges::NONE);
    lines.push(format!("GRANT {global} ON *.* TO {who}{}", option(grants.global)));
    if !dynamic.is_none() {
        lines.push(format!("GRANT {} ON *.* TO {who}{}", dynamic.names().join(","), option(grants.global)));
    }
    for (pattern, set) in &grants.databases {
        let words = words(*set, Privileges::OF_DATABASE);
        lines.push(format!("GRANT {words} ON {}.* TO {who}{}", name(pattern), option(*set)));
    }
    for ((schema, table), of) in &grants.tables {
        let mut items: Vec<String> = Vec::new();
        if of.table & !Privileges::GRANT == Privileges::OF_TABLE {
            items.push("ALL PRIVILEGES".to_owned());
        } else {
            items.extend((of.table & !Privileges::GRANT).names().into_iter().map(str::to_owned));
        }
        for one in Privileges::OF_COLUMN.names() {
            let set = crate::rights::privilege::named(one).map_or(Privileges::NONE, |row| row.set);
            let columns: Vec<String> =
                of.columns.iter().filter(|(_, had)| had.has(set)).map(|(column, _)| name(column)).collect();
            if !columns.is_empty() {
                items.push(format!("{one} ({})", columns.join(", ")));
            }
        }
        let items = if items.is_empty() { "USAGE".to_owned() } else { items.join(", ") };
        lines.push(format!("GRANT {items} ON {}.{} TO {who}{}", name(schema), name(table), option(of.table)));
    }
    for admin in [false, true] {
        let roles: Vec<String> =
            grants.roles.iter().filter(|(_, with)| **with == admin).map(|(role, _)| named(role)).collect();
        if !roles.is_empty() {
            let option = if admin { " WITH ADMIN OPTION" } else { "" };
            lines.push(format!("GRANT {} TO {who}{option}", roles.join(",")));
        }
    }
    lines
}

impl Session {
    /// Checks that the session may see the account: its own, or any with SELECT on `mysql`.
    fn may_look_at(&self, key: &str) -> Result<()> {
        if key == self.account_state.account {
            return Ok(());
        }
        self.rights.need_database("mysql", Privileges::SELECT)
    }

    pub(super) fn show_grants(&mut self, of: Option<&UserName>, using: &[UserName]) -> Result<(Vec<Column>, Vec<Row>)> {
        let key = of.map_or_else(|| self.account_state.account.clone(), |name| self.key_of(name));
        self.may_look_at(&key)?;
        let who = self.who_of(&key);
        let accounts = self.db.clone();
        let accounts = accounts.engine().accounts();
        let missing = || error::NONEXISTING_GRANT.with(&[&who.user, &who.host]);
        let account = accounts.get(&key).ok_or_else(missing)?;
        let mut grants = Grants::of(&account)?;
        let mut roles: Vec<String> = Vec::new();
        if of.is_none() {
            roles.extend(self.account_state.roles.iter().cloned());
        }
        for role in using {
            let role = self.key_of(role);
            if !grants.roles.contains_key(&role) {
                return Err(error::ROLE_NOT_GRANTED.with(&[&self.who_of(&role).quoted(), &who.quoted()]));
            }
            roles.push(role);
        }
        self.merge(&mut grants, roles)?;
        let lines = lines(&grants, &who.quoted(), |role| self.who_of(role).quoted());
        let column = text_column(&format!("Grants for {}", who.plain()));
        Ok((vec![column], lines.into_iter().map(|line| vec![text(line)]).collect()))
    }

    /// Merges the privileges of the roles, transitively.
    fn merge(&self, grants: &mut Grants, mut roles: Vec<String>) -> Result<()> {
        let mut seen = BTreeSet::new();
        while let Some(role) = roles.pop() {
            let Some(account) = self.db.engine().accounts().get(&role).filter(|_| seen.insert(role)) else { continue };
            let of = Grants::of(&account)?;
            grants.global |= of.global;
            for (pattern, set) in of.databases {
                *grants.databases.entry(pattern).or_default() |= set;
            }
            for (key, of) in of.tables {
                let into = grants.tables.entry(key).or_default();
                into.table |= of.table;
                for (column, set) in of.columns {
                    *into.columns.entry(column).or_default() |= set;
                }
            }
            roles.extend(of.roles.into_keys());
        }
        Ok(())
    }

    pub(super) fn show_create_user(&mut self, name: &UserName) -> Result<(Vec<Column>, Vec<Row>)> {
        let key = self.key_of(name);
        self.may_look_at(&key)?;
        let who = self.who_of(&key);
        let account = self.db.engine().accounts().get(&key);
        let account = account.ok_or_else(|| error::CANNOT_USER.with(&[&"SHOW CREATE USER", &who]))?;
        // An account with neither verifier nor password accepts any password; the closest account in MySQL has an empty
        // one.
        let digests = account.verifier.is_none() && !account.nopass && account.passwords != [engine::sha256(b"")];
        if digests && !Grants::of(&account)?.is_role {
            // No MySQL statement creates such an account.
            return Err(SqlError::unsupported(
                "SHOW CREATE USER of an account whose passwords were set at the Redis door",
            ));
        }
        let secret = match &account.verifier {
            None => "'caching_sha2_password'".to_owned(),
            Some(_) if account.nopass => "'caching_sha2_password'".to_owned(),
            Some(verifier) => {
                let digest = String::from_utf8_lossy(&verifier.encode()).replace('\\', "\\\\").replace('\'', "\\'");
                format!("'{}' AS '{digest}'", verifier.plugin())
            }
        };
        let roles: Vec<String> =
            Grants::of(&account)?.default_roles.iter().map(|role| self.who_of(role).quoted()).collect();
        let roles = if roles.is_empty() { String::new() } else { format!(" DEFAULT ROLE {}", roles.join(",")) };
        let line = format!(
            "CREATE USER {} IDENTIFIED WITH {secret}{roles} REQUIRE {} PASSWORD EXPIRE{} ACCOUNT {} PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
            who.quoted(),
            if account.needs_tls { "SSL" } else { "NONE" },
            if account.expired { "" } else { " DEFAULT" },
            if account.enabled { "UNLOCK" } else { "LOCK" },
        );
        Ok((vec![text_column(&format!("CREATE USER for {}", who.plain()))], vec![vec![text(line)]]))
    }
}
