//! ON CONFLICT: the keys whose conflicts an INSERT handles, and the update in its place.

use std::sync::Arc;

use datum::Fault;
use query::catalog::table::{Part, Table};
use query::nodes::change::{Arbiter, OnConflict};
use query::nodes::expr::Expr;
use syntax::postgres::tree::{ConflictAction, ConflictTarget, IndexElem, IndexKey, OnConflictClause};

use crate::bind::Binder;
use crate::bind::scope::Clause;
use crate::bind::typing::unsupported;
use crate::error::{PgError, Result, state};

/// The action on a conflict, the assignments of its update, and the keys.
type Conflict = (OnConflict, Vec<(usize, Expr)>, Option<Arbiter>);

impl Binder<'_> {
    pub fn on_conflict(
        &mut self,
        clause: Option<&OnConflictClause>,
        table: &Arc<Table>,
        shown: &str,
    ) -> Result<Conflict> {
        let Some(OnConflictClause { target, action, at }) = clause else {
            return Ok((OnConflict::Fail, Vec::new(), None));
        };
        let keys = match target {
            Some(target) => self.arbiters(target, table)?,
            None => unique_keys(table).map(|(key, _)| key).collect(),
        };
        match action {
            ConflictAction::Nothing => {
                Ok((OnConflict::Ignore, Vec::new(), Some(Arbiter { keys, condition: None, affects_twice })))
            }
            ConflictAction::Update { set, selection } => {
                if target.is_none() {
                    let text = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    let hint = "For example, ON CONFLICT (column_name).";
                    return Err(self.error(PgError::new(state::SYNTAX_ERROR, text).hint(hint), at.0));
                }
                self.open_scope();
                self.add_target(table, shown);
                self.add_target(table, "excluded");
                if let Some(excluded) = self.scope().names.last_mut() {
                    excluded.schema = None;
                }
                let updates = self.sets(set, table, "updated")?;
                self.set_clause(Clause::Where);
                let condition = selection.as_ref().map(|selection| self.condition(selection, "WHERE")).transpose()?;
                self.close_scope();
                Ok((OnConflict::Update, updates, Some(Arbiter { keys, condition, affects_twice })))
            }
        }
    }

    fn arbiters(&mut self, target: &ConflictTarget, table: &Arc<Table>) -> Result<Vec<Option<usize>>> {
        match target {
            ConflictTarget::Constraint(name) => {
                let primary = if table.primary_name.is_empty() { "PRIMARY" } else { &table.primary_name };
                let mut keys = unique_keys(table).filter(|(key, _)| match key {
                    None => primary == name.value,
                    Some(at) => table.indexes[*at].name == name.value,
                });
                match keys.next() {
                    Some((key, _)) => Ok(vec![key]),
                    None => {
                        let text = format!("constraint \"{}\" for table \"{}\" does not exist", name.value, table.name);
                        Err(PgError::new(state::UNDEFINED_OBJECT, text))
                    }
                }
            }
            ConflictTarget::Columns { elements, selection, at } => {
                if selection.is_some() {
                    return Err(self.error(unsupported("ON CONFLICT with the predicate of an index"), at.0));
                }
                self.inferred(elements, table)
            }
        }
    }

    /// Returns the unique keys over exactly these columns.
    fn inferred(&self, elements: &[IndexElem], table: &Table) -> Result<Vec<Option<usize>>> {
        let mut columns = Vec::new();
        for element in elements {
            match &element.key {
                IndexKey::Column(name) => columns.push(self.conflict_column(table, name)?),
                IndexKey::Expr(expr) => {
                    return Err(self.error(unsupported("ON CONFLICT of an expression"), expr.span.start));
                }
            }
        }
        let is_it = |parts: &[Part]| {
            parts.iter().all(|part| part.prefix.is_none() && columns.contains(&part.column))
                && columns.iter().all(|column| parts.iter().any(|part| part.column == *column))
        };
        let keys: Vec<Option<usize>> =
            unique_keys(table).filter(|(_, parts)| is_it(parts)).map(|(key, _)| key).collect();
        if keys.is_empty() {
            let text = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(PgError::new(state::INVALID_COLUMN_REFERENCE, text));
        }
        Ok(keys)
    }

    fn conflict_column(&self, table: &Table, name: &syntax::postgres::tree::Ident) -> Result<usize> {
        let is_it = |column: &query::catalog::table::TableColumn| !column.is_hidden() && column.name == name.value;
        match table.columns.iter().position(is_it) {
            Some(at) => Ok(at),
            None => {
                let text = format!("column \"{}\" does not exist", name.value);
                self.fail(state::UNDEFINED_COLUMN, text, name.at.0)
            }
        }
    }
}

fn affects_twice() -> Fault {
    let text = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
    PgError::new(state::CARDINALITY_VIOLATION, text).hint(hint).into()
}

/// Iterates over the unique keys of a table: the primary key, which is `None`, and the unique indexes.
fn unique_keys(table: &Table) -> impl Iterator<Item = (Option<usize>, &[Part])> {
    let primary = table.primary.iter().map(|parts| (None, &parts[..]));
    let indexes = table.indexes.iter().enumerate().filter(|(_, index)| index.unique);
    primary.chain(indexes.map(|(at, index)| (Some(at), &index.parts[..])))
}
