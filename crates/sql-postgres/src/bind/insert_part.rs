//! INSERT into fields and elements of columns: all parts of one become its value.

use std::sync::Arc;

use query::catalog::table::Table;
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::value::Value;
use syntax::postgres::tree::InsertColumn;

use crate::bind::Binder;
use crate::bind::array::part_of;
use crate::bind::composite::PartValue;
use crate::bind::scope::{BoundQuery, Clause, OutputColumn};
use crate::bind::typing::Operand;
use crate::error::Result;
use crate::types::registry::{oid_of, typmod_of};

impl Binder<'_> {
    /// Returns the value of a column with a further part, in a new row.
    pub fn insert_part(
        &mut self,
        base: Option<Expr>,
        table: &Table,
        (target, column): (usize, &InsertColumn),
        value: &mut PartValue<'_, Self>,
    ) -> Result<Expr> {
        let ty = &table.columns[target].ty;
        let null = || Expr::Literal(Value::Null, ty.clone().with_nullable(true));
        let base = base.and_then(part_of).unwrap_or_else(null);
        let ty = (oid_of(ty), typmod_of(ty));
        self.assigned_part((base, ty), &column.indirection, &column.name, value)
    }

    /// Makes one column of all parts of one, in the rows of a query. Returns the targets of the columns that there are now.
    pub fn gather_parts(
        &mut self,
        bound: &mut BoundQuery,
        targets: &[usize],
        columns: &[InsertColumn],
        table: &Table,
    ) -> Result<Vec<usize>> {
        self.open_scope();
        self.scope().clause = Clause::InsertValues;
        let (mut outputs, mut exprs): (Vec<OutputColumn>, Vec<Expr>) = Default::default();
        let wholes = unique(targets);
        for (nth, (target, column)) in targets.iter().zip(columns).enumerate() {
            let at = bound.columns[nth].at;
            let value = Expr::Column(nth, bound.columns[nth].column.ty.clone());
            let place = wholes.iter().position(|whole| whole == target).unwrap_or(exprs.len());
            let base = exprs.get(place).cloned();
            let whole = match column.indirection.is_empty() {
                true => value,
                false => self.insert_part(base, table, (*target, column), &mut |binder, ty| {
                    binder.part_value(Operand { expr: value.clone(), at }, column, ty)
                })?,
            };
            if place < exprs.len() {
                exprs[place] = whole;
            } else {
                exprs.push(whole);
                outputs.push(bound.columns[nth].clone());
            }
        }
        self.close_scope();
        for (output, expr) in outputs.iter_mut().zip(&exprs) {
            output.column.ty = expr.ty();
        }
        bound.columns = outputs;
        bound.node = Arc::new(Node::Project { input: bound.node.clone(), exprs });
        Ok(wholes)
    }
}

/// Returns whether an INSERT gives parts of columns.
pub fn has_parts(columns: &[InsertColumn]) -> bool {
    columns.iter().any(|column| !column.indirection.is_empty())
}

/// Returns the targets, each once.
pub fn unique(targets: &[usize]) -> Vec<usize> {
    let is_first = |(nth, target): &(usize, &usize)| !targets[..*nth].contains(target);
    targets.iter().enumerate().filter(is_first).map(|(_, target)| *target).collect()
}
