//! RETURNING: what a change answers of the rows that it has put in, changed or taken out.
//!
//! Its list is bound over a row of the changed table alone: as it stands afterwards, or, of DELETE, as it stood. It has no part in the plan that finds the rows, and is computed as each is changed; what it answers
//! is gathered and given when all are changed. MySQL has no such clause; it is as in MariaDB (INSERT, REPLACE, DELETE) and PostgreSQL (UPDATE: rows that already were what they are to be count too).

use std::sync::Arc;

use syntax::tree::SelectItem;

use crate::bind::Bind;
use crate::error::{Result, SqlError};
use query::catalog::table::Table;
use query::nodes::change::Returning;

/// A table whose rows a statement changes.
pub(super) struct Changing {
    pub table: Arc<Table>,
    /// What the statement calls it.
    pub alias: String,
    pub is_view: bool,
}

impl Bind<'_> {
    /// No scope is open. Who asks must have the right to read what the list names.
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
        Ok(Some(Returning { exprs, columns: columns.into() }))
    }
}
