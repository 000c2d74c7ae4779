//! Hidden columns: the values of index expressions, and whether rows are in partial indexes.
//!
//! An expression of an index is a generated column without a name, and so is the predicate of a partial index. Rows keep
//! the values (QU-8), so an entry follows from the bytes of its row. Indexes with the same expression share the column,
//! which is dropped with the last of them. Its text is the expression as PostgreSQL shows it in a pretty definition.

use std::sync::Arc;

use query::catalog::table::{Generated, Table, TableColumn};
use query::nodes::expr::Expr as Bound;
use query::types::Type;
use syntax::postgres::tree::{self, Expr};

use crate::bind::{self, TableExpression};
use crate::define::alter::{Draft, From};
use crate::deparse::{self, ExpressionPlace, Style};
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::types::registry::{column_type, oid_of, typmod_of};

impl Session {
    /// Binds a part of an index, or its predicate, over a table. The second result is the text of a hidden column.
    pub(super) fn index_expression(
        &mut self,
        table: &Arc<Table>,
        expr: &Expr,
        kind: TableExpression,
        text: &str,
    ) -> Result<(Bound, String)> {
        let bound = self.with_environment(&[], |environment, ctx| {
            bind::bind_table_expression(environment, ctx, text, (table, expr), kind, None)
        })?;
        let place = match kind {
            TableExpression::IndexPredicate => ExpressionPlace::Check,
            _ => ExpressionPlace::Plain,
        };
        let shown = deparse::expression_of(table, expr, place, Style::PRETTY, self.context())?;
        Ok((bound, shown))
    }

    /// Returns the types of hidden columns whose operands may have changed their types.
    pub(super) fn retype_hidden_columns(&mut self, table: &mut Table) -> Result<()> {
        let over = Arc::new(table.copy().with_derived_fields());
        for at in 0..table.columns.len() {
            let Some(text) = table.expression_of(at).map(str::to_owned) else { continue };
            let is_predicate = table.indexes.iter().any(|index| index.predicate == Some(at));
            let kind = if is_predicate { TableExpression::IndexPredicate } else { TableExpression::IndexPart };
            let bound = self.bind_text(&over, &text, kind, None)?;
            table.columns[at].ty = hidden_type(&bound);
        }
        Ok(())
    }

    /// Returns the hidden columns that read a column.
    pub(super) fn hidden_readers(&mut self, table: &Table, column: usize) -> Result<Vec<usize>> {
        let mut readers = Vec::new();
        for at in 0..table.columns.len() {
            let Some(text) = table.expression_of(at) else { continue };
            if deparse::columns_of(table, text, self.context())?.contains(&column) {
                readers.push(at);
            }
        }
        Ok(readers)
    }

    /// Rewrites the texts of a table's definition after columns have got other names.
    pub(super) fn rename_in_texts(&mut self, old: &Table, new: &mut Table) -> Result<()> {
        let names = new.copy();
        let mut renamed =
            |text: &str, place, style| deparse::renamed((old, &names), text, place, style, self.context());
        for check in &mut new.checks {
            check.text = renamed(&check.text, ExpressionPlace::Check, Style::PLAIN)?;
        }
        for column in &mut new.columns {
            let Some(generated) = &mut column.generated else { continue };
            let (place, style) = match generated.hidden {
                true => (ExpressionPlace::Plain, Style::PRETTY),
                false => {
                    let (ty, typmod) =
                        crate::system::view::type_of(&TableColumn::new(String::new(), column.ty.clone(), 0));
                    (ExpressionPlace::Column { ty, typmod }, Style::PLAIN)
                }
            };
            generated.text = renamed(&generated.text, place, style)?;
        }
        Ok(())
    }
}

fn hidden_type(bound: &Bound) -> Type {
    let ty = bound.ty();
    column_type(oid_of(&ty), typmod_of(&ty), true)
}

/// Fails for a type whose values have no order.
pub(super) fn require_order(ty: &Type) -> Result<()> {
    let oid = oid_of(ty);
    if crate::system::operator_class::default_class(oid) != 0 {
        return Ok(());
    }
    let shown = crate::types::registry::format_type(oid, None);
    let message = format!("data type {shown} has no default operator class for access method \"btree\"");
    let hint = "You must specify an operator class for the index or define a default operator class for the data type.";
    Err(PgError::new(state::UNDEFINED_OBJECT, message).hint(hint))
}

/// Returns the column that an expression is, if it is nothing else.
pub(super) fn column_itself(bound: &Bound) -> Option<usize> {
    match bound {
        Bound::Column(at, _) => Some(*at),
        _ => None,
    }
}

/// Returns whether a text of an expression is written without parentheses of its own in an index: the calls of PostgreSQL's
/// `looks_like_function`.
pub fn is_call(text: &str) -> bool {
    use tree::ExprKind;
    let kind = syntax::postgres::parse_expression(text).map(|expr| expr.kind);
    matches!(
        kind,
        Ok(ExprKind::Function(_)
            | ExprKind::Coalesce(_)
            | ExprKind::Greatest(_)
            | ExprKind::Least(_)
            | ExprKind::NullIf { .. }
            | ExprKind::SqlValue(_))
    )
}

impl Draft {
    /// Returns the hidden column of an expression, which is made unless there is one.
    pub(super) fn hidden_column(&mut self, bound: &Bound, text: String) -> usize {
        let ty = hidden_type(bound);
        let is_it = |column: &TableColumn| {
            column.ty == ty && column.generated.as_ref().is_some_and(|known| known.hidden && known.text == text)
        };
        if let Some(at) = self.new.columns.iter().position(is_it) {
            return at;
        }
        let mut column = TableColumn::new(String::new(), ty.clone(), self.new.slots.len());
        column.generated = Some(Generated { text, stored: false, hidden: true, kept: true });
        self.new.columns.push(column);
        self.new.slots.push(ty.storage);
        self.from.push(From::Initial);
        self.moves = true;
        self.new.columns.len() - 1
    }

    /// Drops the hidden columns that no index has any more.
    pub(super) fn drop_unused_columns(&mut self) {
        let is_unused = |table: &Table, at: usize| table.columns[at].is_hidden() && !table.is_in_key(at);
        while let Some(at) = (0..self.new.columns.len()).find(|at| is_unused(&self.new, *at)) {
            self.remove_column(at);
        }
    }

    /// Takes a column out that no key has any more. Those behind it move up.
    pub(super) fn remove_column(&mut self, at: usize) {
        let Draft { old: _, new, from, rebuild: _, moves: _, sequences, not_null, domain_check: _ } = self;
        new.columns.remove(at);
        from.remove(at);
        not_null.retain(|column| *column != at);
        sequences.retain(|wanted| wanted.column != at);
        let primary = new.primary.iter_mut().flatten().map(|part| &mut part.column);
        let places = primary
            .chain(new.indexes.iter_mut().flat_map(|index| index.columns_mut()))
            .chain(new.foreign_keys.iter_mut().flat_map(|key| &mut key.columns))
            .chain(not_null)
            .chain(sequences.iter_mut().map(|wanted| &mut wanted.column));
        places.filter(|place| **place > at).for_each(|place| *place -= 1);
    }
}
