//! ON CONFLICT: the keys whose conflicts an INSERT handles, and the update in its place.

use std::sync::Arc;

use datum::Fault;
use query::catalog::table::{Part, Table};
use query::nodes::change::{Arbiter, OnConflict};
use query::nodes::expr::Expr;
use query::plan::generated::is_like_given;
use query::plan::implication::implying;
use query::plan::selectivity::StatisticsView;
use query::plan::statistics::Statistics;
use syntax::postgres::tree::{self, ConflictAction, ConflictTarget, IndexElem, IndexKey, OnConflictClause};

use crate::bind::Binder;
use crate::bind::scope::{Clause, NameColumn};
use crate::error::fault::about_table;
use crate::error::{ErrorObject, PgError, Result, state};

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
        let mut indexes = keys.iter().filter_map(|key| key.map(|at| &table.indexes[at]));
        if let Some(index) = indexes.find(|index| !index.unique) {
            let text = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
            let error = PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, text);
            let about =
                ErrorObject { constraint: Some(index.name.as_str().into()), ..about_table(&table.schema, &table.name) };
            return Err(error.about(about));
        }
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
                    // It shows the new row, and nothing of the table.
                    excluded.columns = excluded.columns.iter().cloned().map(without_origin).collect();
                }
                let updates = self.sets(set, table, "updated")?;
                let columns: Vec<usize> = updates.iter().map(|(column, _)| *column).collect();
                let need = self.need_of_table(table);
                self.need_update(need, table, &columns);
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
                    Some(at) => table.indexes[*at].is_constraint && table.indexes[*at].name == name.value,
                });
                match keys.next() {
                    Some((key, parts)) => {
                        let columns: Vec<usize> = parts.iter().map(|part| part.column).collect();
                        let need = self.need_of_table(table);
                        self.need_select_of(need, table, &columns);
                        Ok(vec![key])
                    }
                    None => {
                        let text = format!("constraint \"{}\" for table \"{}\" does not exist", name.value, table.name);
                        Err(PgError::new(state::UNDEFINED_OBJECT, text))
                    }
                }
            }
            ConflictTarget::Columns { elements, selection, at: _ } => {
                self.inferred(elements, selection.as_ref(), table)
            }
        }
    }

    /// Returns the unique keys over exactly these columns and expressions, which have all rows that satisfy the predicate.
    fn inferred(
        &mut self,
        elements: &[IndexElem],
        selection: Option<&tree::Expr>,
        table: &Arc<Table>,
    ) -> Result<Vec<Option<usize>>> {
        self.open_scope();
        self.add_target(table, &table.name);
        let bound = self.inference(elements, selection, table);
        self.close_scope();
        let (columns, exprs, predicate) = bound?;
        let need = self.need_of_table(table);
        self.need_select_of(need, table, &columns);
        let (statistics, values): (&dyn Statistics, _) = (self.environment.session, self.environment.values);
        let estimates = StatisticsView { tables: &[], statistics, values };
        let constant = |expr: &Expr| estimates.decisive(expr);
        let formula = |column: usize| {
            let formulas = table.bound_formulas().into_iter().flatten();
            formulas.filter(|_| table.columns[column].is_hidden()).find(|formula| formula.column == column)
        };
        let is_it = |parts: &[Part]| {
            let is_wanted = |part: &Part| match formula(part.column) {
                Some(formula) => exprs.iter().any(|expr| is_like_given(expr, &formula.expr, &constant)),
                None => columns.contains(&part.column),
            };
            let has_expr = |expr: &Expr| {
                let mut formulas = parts.iter().filter_map(|part| formula(part.column));
                formulas.any(|formula| is_like_given(expr, &formula.expr, &constant))
            };
            parts.iter().all(|part| part.prefix.is_none() && is_wanted(part))
                && columns.iter().all(|column| parts.iter().any(|part| part.column == *column))
                && exprs.iter().all(has_expr)
        };
        let has_all = |key: &Option<usize>| {
            let Some(column) = key.and_then(|at| table.indexes[at].predicate) else { return true };
            formula(column).is_some_and(|formula| implying(&predicate, &formula.expr, &constant).is_some())
        };
        let fitting = unique_keys(table).filter(|(_, parts)| is_it(parts)).map(|(key, _)| key);
        let keys: Vec<Option<usize>> = fitting.filter(has_all).collect();
        if keys.is_empty() {
            let text = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(PgError::new(state::INVALID_COLUMN_REFERENCE, text));
        }
        Ok(keys)
    }

    /// Binds the specification of an index: its columns, its expressions and its predicate.
    fn inference(
        &mut self,
        elements: &[IndexElem],
        selection: Option<&tree::Expr>,
        table: &Arc<Table>,
    ) -> Result<(Vec<usize>, Vec<Expr>, Vec<Expr>)> {
        let (mut columns, mut exprs) = (Vec::new(), Vec::new());
        self.set_clause(Clause::IndexExpression);
        for element in elements {
            match &element.key {
                IndexKey::Column(name) => columns.push(self.conflict_column(table, name)?),
                IndexKey::Expr(expr) => match self.expr(expr)?.expr {
                    Expr::Column(at, _) if at < table.columns.len() => columns.push(at),
                    bound => exprs.push(bound),
                },
            }
        }
        self.set_clause(Clause::IndexPredicate);
        let predicate = selection.map(|selection| self.condition(selection, "WHERE")).transpose()?;
        Ok((columns, exprs, predicate.into_iter().collect()))
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

fn without_origin(column: NameColumn) -> NameColumn {
    NameColumn { origin: None, ..column }
}

fn affects_twice() -> Fault {
    let text = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
    PgError::new(state::CARDINALITY_VIOLATION, text).hint(hint).into()
}

/// Iterates over the unique keys of a table: the primary key, which is `None`, and the unique indexes.
fn unique_keys(table: &Table) -> impl Iterator<Item = (Option<usize>, &[Part])> {
    let primary = table.primary.iter().map(|parts| (None, &parts[..]));
    let indexes = table.indexes.iter().enumerate().filter(|(_, index)| index.tells_apart());
    primary.chain(indexes.map(|(at, index)| (Some(at), &index.parts[..])))
}
