//! What a session may do: its account's grants and those of its active roles, put together.
//!
//! MY-14: what an account itself was given on `*.*` counts as it was when the session entered, as in MySQL; everything else as it is now.
//! MY-15: nothing is looked up before the right to it is: who may not see a table cannot tell whether it exists.

use std::sync::Arc;

use crate::error::{self, Result, SqlError};
use crate::rights::grants::Grants;
use crate::rights::identity::Who;
use crate::rights::privilege::Privileges;
use query::nodes::relation::Columns;

#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// As the client called itself, and where it comes from: errors name these.
    pub user: String,
    pub host: String,
    /// The account that was found for it.
    pub who: Who,
    /// What holds everywhere.
    pub global: Privileges,
    pub of: Vec<Arc<Grants>>,
    /// The session's temporary tables, with which it may do anything.
    pub own: Option<Arc<Grants>>,
}

/// Schemas that everybody reads; what they show is cut down to what one may see.
fn is_open(schema: &str) -> bool {
    ["information_schema", "performance_schema"].iter().any(|known| known.eq_ignore_ascii_case(schema))
}

impl Rights {
    fn all(&self) -> impl Iterator<Item = &Arc<Grants>> {
        self.of.iter().chain(&self.own)
    }

    /// Without what holds for temporary tables: of what all sessions see.
    pub fn shared(self: &Arc<Rights>) -> Arc<Rights> {
        match self.own {
            None => self.clone(),
            Some(_) => Arc::new(Rights { own: None, ..Rights::clone(self) }),
        }
    }

    /// At a database, with what holds everywhere.
    pub fn database(&self, schema: &str) -> Privileges {
        let open = if is_open(schema) { Privileges::SELECT } else { Privileges::NONE };
        self.all().fold(self.global | open, |set, grants| set | grants.database(schema))
    }

    /// At a table, with what its database gives.
    pub fn table(&self, schema: &str, name: &str) -> Privileges {
        let own = self.all().filter_map(|grants| grants.table(schema, name));
        own.fold(self.database(schema), |set, of| set | of.table)
    }

    /// What any column of the table has of its own.
    pub fn any_column(&self, schema: &str, name: &str) -> Privileges {
        let own = self.all().filter_map(|grants| grants.table(schema, name));
        own.flat_map(|of| of.columns.values()).fold(Privileges::NONE, |set, more| set | *more)
    }

    pub fn column(&self, schema: &str, name: &str, column: &str) -> Privileges {
        let lower = column.to_lowercase();
        let own = self.all().filter_map(|grants| grants.table(schema, name)?.columns.get(&lower));
        own.fold(self.table(schema, name), |set, more| set | *more)
    }

    /// Anything at all in that database.
    pub fn sees_database(&self, schema: &str) -> bool {
        is_open(schema)
            || self.database(schema).has_any(Privileges::OF_DATABASE | Privileges::GRANT)
            || self.all().any(|grants| grants.tables.keys().any(|(known, _)| known == schema))
    }

    pub fn sees_table(&self, schema: &str, name: &str) -> bool {
        (self.table(schema, name) | self.any_column(schema, name)).has_any(Privileges::OF_TABLE | Privileges::GRANT)
    }

    /// A right to the table itself: grants for its columns do not count.
    pub fn has_table(&self, schema: &str, name: &str) -> bool {
        self.table(schema, name).has_any(Privileges::OF_TABLE | Privileges::GRANT)
    }

    pub fn sees_column(&self, schema: &str, name: &str, column: &str) -> bool {
        self.column(schema, name, column).has_any(Privileges::OF_COLUMN)
    }

    /// `select,insert`: what may be done with a column.
    pub fn column_words(&self, schema: &str, name: &str, column: &str) -> String {
        let set = self.column(schema, name, column) & Privileges::OF_COLUMN;
        set.names().join(",").to_ascii_lowercase()
    }

    /// One of these everywhere, or error 1227.
    pub fn need_global(&self, some: Privileges) -> Result<()> {
        if self.global.has_any(some) {
            return Ok(());
        }
        Err(error::SPECIFIC_ACCESS_DENIED.with(&[&some.names().join(" or ")]))
    }

    /// All of these at the database, or error 1044.
    pub fn need_database(&self, schema: &str, all: Privileges) -> Result<()> {
        if self.database(schema).has(all) { Ok(()) } else { Err(self.no_database(schema)) }
    }

    pub fn no_database(&self, schema: &str) -> SqlError {
        error::DBACCESS_DENIED.with(&[&self.who.user, &self.who.host, &schema])
    }

    /// All of these at the table, or error 1142.
    pub fn need_table(&self, schema: &str, name: &str, all: Privileges) -> Result<()> {
        let missing = all & !self.table(schema, name);
        if missing.is_none() { Ok(()) } else { Err(self.no_table(&missing.names().join(", "), name)) }
    }

    /// One of these at the table or at some of its columns?
    pub fn has_any_column(&self, schema: &str, name: &str, some: Privileges) -> bool {
        (self.table(schema, name) | self.any_column(schema, name)).has_any(some)
    }

    /// This one at the table or at some of its columns, or error 1142.
    pub fn need_some_columns(&self, schema: &str, name: &str, one: Privileges) -> Result<()> {
        if (self.table(schema, name) | self.any_column(schema, name)).has(one) {
            return Ok(());
        }
        Err(self.no_table(one.first(), name))
    }

    /// FILE is missing where it is asked for together with rights of a table.
    pub fn no_file(&self) -> SqlError {
        error::ACCESS_DENIED.with(&[&self.user, &self.host, &"YES"])
    }

    pub fn no_table(&self, command: &str, name: &str) -> SqlError {
        error::TABLEACCESS_DENIED.with(&[&command, &self.user, &self.host, &name])
    }

    pub fn no_column(&self, command: &str, column: &str, name: &str) -> SqlError {
        error::COLUMNACCESS_DENIED.with(&[&command, &self.user, &self.host, &column, &name])
    }

    /// The columns at which this is had.
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
