//! Effective privileges of a session: the grants of its account and of its active roles.
//!
//! MY-14: global privileges of the account itself count as of the login, as in MySQL; all others as of now. MY-15: a
//! privilege is checked before the existence of its object, so an account that may not see a table cannot find out
//! whether it exists.

use std::sync::Arc;

use crate::error::{self, Result, SqlError};
use crate::rights::grants::Grants;
use crate::rights::identity::Who;
use crate::rights::privilege::Privileges;
use query::nodes::relation::Columns;

#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// The user and host that the client gave, for messages.
    pub user: String,
    pub host: String,
    /// The matching account.
    pub who: Who,
    /// Global privileges.
    pub global: Privileges,
    pub of: Vec<Arc<Grants>>,
    /// The session's temporary tables, for which it has all privileges.
    pub own: Option<Arc<Grants>>,
}

/// Returns whether all accounts may read the schema; its rows are filtered by privileges.
fn is_open(schema: &str) -> bool {
    ["information_schema", "performance_schema"].iter().any(|known| known.eq_ignore_ascii_case(schema))
}

impl Rights {
    fn all(&self) -> impl Iterator<Item = &Arc<Grants>> {
        self.of.iter().chain(&self.own)
    }

    /// Returns the privileges without those on the session's temporary tables.
    pub fn shared(self: &Arc<Rights>) -> Arc<Rights> {
        match self.own {
            None => self.clone(),
            Some(_) => Arc::new(Rights { own: None, ..Rights::clone(self) }),
        }
    }

    /// Returns the privileges on a database, global ones included.
    pub fn database(&self, schema: &str) -> Privileges {
        let open = if is_open(schema) { Privileges::SELECT } else { Privileges::NONE };
        self.all().fold(self.global | open, |set, grants| set | grants.database(schema))
    }

    /// Returns the privileges on a table, those of its database included.
    pub fn table(&self, schema: &str, name: &str) -> Privileges {
        let own = self.all().filter_map(|grants| grants.table(schema, name));
        own.fold(self.database(schema), |set, of| set | of.table)
    }

    /// Returns the privileges on any column of the table.
    pub fn any_column(&self, schema: &str, name: &str) -> Privileges {
        let own = self.all().filter_map(|grants| grants.table(schema, name));
        own.flat_map(|of| of.columns.values()).fold(Privileges::NONE, |set, more| set | *more)
    }

    pub fn column(&self, schema: &str, name: &str, column: &str) -> Privileges {
        let lower = column.to_lowercase();
        let own = self.all().filter_map(|grants| grants.table(schema, name)?.columns.get(&lower));
        own.fold(self.table(schema, name), |set, more| set | *more)
    }

    /// Returns whether the account has any privilege in the database.
    pub fn sees_database(&self, schema: &str) -> bool {
        is_open(schema)
            || self.database(schema).has_any(Privileges::OF_DATABASE | Privileges::GRANT)
            || self.all().any(|grants| grants.tables.keys().any(|(known, _)| known == schema))
    }

    pub fn sees_table(&self, schema: &str, name: &str) -> bool {
        (self.table(schema, name) | self.any_column(schema, name)).has_any(Privileges::OF_TABLE | Privileges::GRANT)
    }

    /// Returns whether the account has a privilege on the table itself; column privileges do not count.
    pub fn has_table(&self, schema: &str, name: &str) -> bool {
        self.table(schema, name).has_any(Privileges::OF_TABLE | Privileges::GRANT)
    }

    pub fn sees_column(&self, schema: &str, name: &str, column: &str) -> bool {
        self.column(schema, name, column).has_any(Privileges::OF_COLUMN)
    }

    /// Returns the privileges on a column as `select,insert`.
    pub fn column_words(&self, schema: &str, name: &str, column: &str) -> String {
        let set = self.column(schema, name, column) & Privileges::OF_COLUMN;
        set.names().join(",").to_ascii_lowercase()
    }

    /// Requires one of these global privileges. Error 1227.
    pub fn need_global(&self, some: Privileges) -> Result<()> {
        if self.global.has_any(some) {
            return Ok(());
        }
        Err(error::SPECIFIC_ACCESS_DENIED.with(&[&some.names().join(" or ")]))
    }

    /// Requires all of these on the database. Error 1044.
    pub fn need_database(&self, schema: &str, all: Privileges) -> Result<()> {
        if self.database(schema).has(all) { Ok(()) } else { Err(self.no_database(schema)) }
    }

    pub fn no_database(&self, schema: &str) -> SqlError {
        error::DBACCESS_DENIED.with(&[&self.who.user, &self.who.host, &schema])
    }

    /// Requires all of these on the table. Error 1142.
    pub fn need_table(&self, schema: &str, name: &str, all: Privileges) -> Result<()> {
        let missing = all & !self.table(schema, name);
        if missing.is_none() { Ok(()) } else { Err(self.no_table(&missing.names().join(", "), name)) }
    }

    /// Returns whether the account has one of these on the table or on a column of it.
    pub fn has_any_column(&self, schema: &str, name: &str, some: Privileges) -> bool {
        (self.table(schema, name) | self.any_column(schema, name)).has_any(some)
    }

    /// Requires this privilege on the table or on a column of it. Error 1142.
    pub fn need_some_columns(&self, schema: &str, name: &str, one: Privileges) -> Result<()> {
        if (self.table(schema, name) | self.any_column(schema, name)).has(one) {
            return Ok(());
        }
        Err(self.no_table(one.first(), name))
    }

    /// Returns the error of a missing FILE privilege where table privileges are required too.
    pub fn no_file(&self) -> SqlError {
        error::ACCESS_DENIED.with(&[&self.user, &self.host, &"YES"])
    }

    pub fn no_table(&self, command: &str, name: &str) -> SqlError {
        error::TABLEACCESS_DENIED.with(&[&command, &self.user, &self.host, &name])
    }

    pub fn no_column(&self, command: &str, column: &str, name: &str) -> SqlError {
        error::COLUMNACCESS_DENIED.with(&[&command, &self.user, &self.host, &column, &name])
    }

    /// Returns the columns with this privilege.
    pub fn columns<'c>(
        &self,
        schema: &str,
        name: &str,
        columns: impl Iterator<Item = &'c str>,
        one: Privileges,
    ) -> Columns {
        if self.table(schema, name).has(one) {
            return Columns::All;
        }
        Columns::Some(columns.map(|column| self.column(schema, name, column).has(one)).collect())
    }
}
