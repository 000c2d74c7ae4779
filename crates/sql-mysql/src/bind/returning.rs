//! RETURNING: the result set of a change over the rows that it inserts, updates or deletes.
//!
//! The list is bound over a row of the changed table alone: the new row, or the old one for DELETE. It is evaluated as
//! each row is changed, not in the plan that finds the rows, and the results are sent after the last change. MySQL has
//! no such clause; it follows MariaDB (INSERT, REPLACE, DELETE) and PostgreSQL (UPDATE, which returns unchanged rows
//! too).

use std::sync::Arc;

use syntax::tree::SelectItem;

use crate::bind::Bind;
use crate::error::{Result, SqlError};
use query::catalog::table::Table;
use query::nodes::change::Returning;

/// A table whose rows a statement changes.
pub(super) struct Changing {
    pub table: Arc<Table>,
    /// Its alias in the statement.
    pub alias: String,
    pub is_view: bool,
}

impl Bind<'_> {
    /// Binds the list. No scope is open. The privilege to read its columns is checked.
    pub(super) fn returning(
        &mut self,
        list: Option<&[SelectItem]>,
        changing: &[Changing],
    ) -> Result<Option<Returning>> {
        let Some(list) = list else { return Ok(None) };
        let [Changing { table, alias, is_view: false }] = changing else {
            return Err(SqlError::unsupported("RETURNING of views, and of several tables"));
        };
        self.open_scope();
        let readable = self.readable(table);
        let at = self.add_table(table, alias, readable);
        let hidden = table.columns.iter().map(|column| column.invisible || column.is_hidden()).collect();
        self.scope().tables[at].hidden = hidden;
        let items = self.items(list)?;
        let (exprs, columns) = self.select_list(&items)?;
        self.close_scope();
        Ok(Some(Returning { exprs, is_wide: false, columns: columns.into() }))
    }
}
