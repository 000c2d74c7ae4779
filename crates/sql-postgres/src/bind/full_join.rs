//! FULL JOIN: the rows of a left join, and after them the rows of the right side that have no match.
//!
//! The core joins inner, left, semi and anti. A full join becomes a derived table with the columns of both sides, and its tables' names reach the columns of that table. So
//! both sides are read twice, and no table beside the join takes part in its order.

use std::sync::Arc;

use query::block::shape::projected;
use query::block::{PlanningInputs, QueryBlock};
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::nodes::relation::Source;
use query::plan::column_pruning::pack;
use query::plan::statistics::Statistics;
use query::types::Column;
use query::value::Value;
use syntax::postgres::tree::{FromItem, Join, TableRef};

use crate::bind::Binder;
use crate::bind::from::Operands;
use crate::bind::scope::{BlockScope, NameItem, OutputColumn};
use crate::bind::typing::{settled, unsupported};
use crate::error::Result;

impl Binder<'_> {
    /// Binds joins of which the last is a full one, as a table of the current scope.
    pub fn full_join(&mut self, first: &TableRef, joins: &[Join]) -> Result<Operands> {
        let Some((last, before)) = joins.split_last() else { return self.table_ref(first) };
        if self.keyed {
            return Err(unsupported("FULL JOIN in a statement that changes rows"));
        }
        // The join is a block of its own at the same depth. It cannot read the tables beside it.
        let around = std::mem::take(self.scope());
        let weight = self.weight;
        let bound = self.full_join_block(first, before, last);
        *self.scope() = around;
        let (node, columns, mut names) = bound?;
        // Both sides are planned twice, and what they are made of as often again.
        self.weight += self.weight - weight;
        self.rise(0)?;
        let derived = self.derived("", columns, &[], node)?;
        let Source::Table(at) = derived.source else { return Ok(derived) };
        let offset = self.scope().tables[at].offset;
        for item in &mut names {
            let mut columns = item.columns.to_vec();
            for column in &mut columns {
                column.expr.rewrite(&mut |expr| {
                    if let Expr::Column(place, ty) = expr {
                        *place += offset;
                        ty.nullable = true;
                    }
                });
            }
            item.columns = columns.into();
        }
        Ok(Operands { source: derived.source, names })
    }

    #[allow(clippy::type_complexity)]
    fn full_join_block(
        &mut self,
        first: &TableRef,
        before: &[Join],
        last: &Join,
    ) -> Result<(Arc<Node>, Vec<OutputColumn>, Vec<NameItem>)> {
        let left_item = FromItem { first: first.clone(), joins: before.to_vec() };
        let left = self.from(std::slice::from_ref(&left_item))?;
        let left_names = std::mem::take(&mut self.scope().names);
        let left_width = self.scope().width;
        let left_tables = self.scope().tables.len();
        let left_operands = Operands { source: left.clone(), names: left_names };
        let joined = self.joined(left_operands, std::slice::from_ref(last), &[])?;
        let (right, on) = split(joined.source);
        let names = joined.names;
        let scope = std::mem::take(self.scope());
        if scope.tables.iter().any(|table| table.after.iter().any(|at| *at < left_tables)) {
            return Err(unsupported("LATERAL within FULL JOIN"));
        }
        let (node, columns) = self.full_rows(scope, (left, right), on, left_width);
        Ok((node, columns, names))
    }

    /// Plans both parts over all places of the block.
    fn full_rows(
        &mut self,
        mut scope: BlockScope,
        (left, right): (Source, Source),
        on: Vec<Expr>,
        left_width: usize,
    ) -> (Arc<Node>, Vec<OutputColumn>) {
        // Any column may be read above.
        scope.used.fill(true);
        let types = place_types(&scope);
        let place = |at: usize| Expr::Column(at, types[at].ty.clone().with_nullable(true));
        let null = |at: usize| Expr::Literal(Value::Null, types[at].ty.clone().with_nullable(true));
        let matched = Source::Left(Box::new(left.clone()), Box::new(right.clone()), on.clone());
        let unmatched = Source::Inner(vec![right, Source::Semi(Box::new(left), on, true)], Vec::new());
        let all = (0..scope.width).map(place).collect();
        let own = (0..scope.width).map(|at| if at < left_width { null(at) } else { place(at) }).collect();
        let inputs = vec![self.side(&scope, matched, all), self.side(&scope, unmatched, own)];
        let columns = types.into_iter().map(|column| OutputColumn { column, origin: None, at: 0 }).collect();
        (Arc::new(Node::Union { inputs }), columns)
    }

    fn side(&self, scope: &BlockScope, source: Source, mut exprs: Vec<Expr>) -> Arc<Node> {
        let (statistics, values): (&dyn Statistics, _) = (self.environment.session, self.environment.values);
        let depth = self.scopes.len() - 1;
        let inputs = PlanningInputs { depth, order: &[], limited: false, statistics, values };
        let block = QueryBlock {
            tables: scope.tables.clone(),
            width: scope.width,
            used: scope.used.clone(),
            source,
            conditions: Vec::new(),
            exprs: Vec::new(),
            sorts: Vec::new(),
        };
        let mut node = block.plan(inputs).node;
        pack(&mut node, &block.used, exprs.iter_mut().collect());
        projected(node, exprs)
    }
}

/// Returns the right side and the conditions of a join.
fn split(source: Source) -> (Source, Vec<Expr>) {
    match source {
        Source::Left(_, right, on) => (*right, on),
        other => (other, Vec::new()),
    }
}

/// Returns the description of each place of the wide row.
fn place_types(scope: &BlockScope) -> Vec<Column> {
    let mut columns = Vec::with_capacity(scope.width);
    for table in &scope.tables {
        columns.extend(table.columns.iter().map(|column| Column { ty: settled(&column.ty), ..column.clone() }));
        if table.key_at.is_some() {
            columns.push(Column::computed("", crate::bind::typing::unknown_type()));
        }
    }
    columns
}
