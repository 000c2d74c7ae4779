//! Subqueries in FROM that only choose columns and rows: their tables join those of the block around them, so that conditions of either side lead through indexes.

use query::nodes::expr::Expr;
use query::nodes::relation::Source;
use query::nodes::walk::conjuncts;
use syntax::postgres::tree::{ExprKind, Ident, Select, SelectBody, SelectStmt};

use crate::bind::Binder;
use crate::bind::from::Operands;
use crate::bind::scope::{Clause, NameColumn, NameItem, Presence};
use crate::bind::walk::has_subquery;
use crate::error::Result;

/// Returns the block of a query that consists of columns, tables and a condition without subqueries.
pub fn candidate(query: &SelectStmt) -> Option<&Select> {
    let SelectStmt { with, body, order_by, limit, locking, span: _ } = query;
    let SelectBody::Select(select) = body else { return None };
    let Select { distinct, targets, into, from, selection, group_by, group_distinct: _, having, windows } = &**select;
    let is_bare = with.is_none() && order_by.is_empty() && limit.is_none() && locking.is_empty() && into.is_none();
    let is_plain = distinct.is_none() && group_by.is_empty() && having.is_none() && windows.is_empty();
    let are_columns = targets.iter().all(|target| matches!(target.expr.kind, ExprKind::Column(_)));
    let is_simple = selection.as_ref().is_none_or(|selection| !has_subquery(selection));
    (is_bare && is_plain && are_columns && is_simple && !from.is_empty() && !targets.is_empty()).then_some(&**select)
}

impl Binder<'_> {
    /// Binds a candidate within the current block. `None`, with the block as it was: a column is no place of a row, so it could not become NULL in an outer join.
    pub fn merged_subselect(&mut self, select: &Select, alias: &str, names: &[Ident]) -> Result<Option<Operands>> {
        let before = (self.scope().tables.len(), self.scope().width);
        let around = std::mem::take(&mut self.scope().names);
        // It does not see the tables beside it.
        let hidden = self.unreachable.len();
        self.unreachable.extend(around.iter().cloned());
        let clause = self.scope().clause;
        self.query_level += 1;
        let bound = self.subselect_parts(select);
        self.query_level -= 1;
        self.unreachable.truncate(hidden);
        let scope = self.scope();
        scope.clause = clause;
        scope.names = around;
        let (source, conditions, columns) = bound?;
        if columns.iter().any(|column| !matches!(column.expr, Expr::Column(..))) {
            scope.tables.truncate(before.0);
            scope.width = before.1;
            scope.used.truncate(before.1);
            return Ok(None);
        }
        // A lock of the rows of this name is one of theirs.
        scope.tables[before.0..].iter_mut().for_each(|table| table.within = Some(alias.to_owned()));
        let mut item = NameItem {
            alias: alias.to_owned(),
            schema: None,
            table_name: None,
            columns: columns.into(),
            is_relation_visible: !alias.is_empty(),
            are_columns_visible: true,
            is_scalar: false,
            composite: None,
            presence: Presence::Always,
        };
        self.rename(&mut item, names)?;
        Ok(Some(Operands { source: Source::Inner(vec![source], conditions), names: vec![item] }))
    }

    #[allow(clippy::type_complexity)]
    fn subselect_parts(&mut self, select: &Select) -> Result<(Source, Vec<Expr>, Vec<NameColumn>)> {
        let source = self.from(&select.from)?;
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            self.set_clause(Clause::Where);
            conjuncts(self.condition(selection, "WHERE")?, &mut conditions);
        }
        let items = self.items(&select.targets)?;
        // A column is read if the block around reads it.
        let used = self.scope().used.clone();
        let targets = self.targets(&items, Clause::SelectList, false)?;
        self.scope().used = used;
        let column = |target: crate::bind::select::Target| NameColumn {
            name: target.name,
            expr: target.expr,
            origin: target.origin,
            is_hidden: false,
            is_unexpanded: false,
        };
        Ok((source, conditions, targets.into_iter().map(column).collect()))
    }
}
