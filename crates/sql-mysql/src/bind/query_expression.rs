//! Query expressions: set operations, VALUES and TABLE, with the ORDER BY and LIMIT of the whole.
//!
//! Each query expression has a height and a weight (`Bind::rise`), since planner and executor recurse over its plan.

use std::sync::Arc;

use datum::key::KeyOrder;
use syntax::tree::{
    self, Limit, OrderItem, Query, QueryBody, Select, SelectItem, SetLink, SetOp, Span, TableName, TableRef,
};

use crate::bind::Bind;
use crate::bind::aggregate::has_aggregate;
use crate::bind::output_name::{bare_name, position};
use crate::bind::scope::Bound;
use crate::error::{self, Result, SqlError};
use crate::scalar::bind::{present, union_type};
use crate::scalar::operators;
use crate::types::{Column, MysqlType as _, Type};
use query::block::shape::{Limits, counted, limited};
use query::nodes::expr::Expr;
use query::nodes::node::{Node, SortKey};

/// The maximum height of a plan (joins, derived tables, views, chained WITH tables); planner and executor recurse.
const HEIGHT_MAX: usize = 1600;

/// The maximum number of nodes of a plan. Each reference to a common table expression counts all of its nodes.
const WEIGHT_MAX: usize = 100_000;

/// The keyword of `TABLE t`.
pub(super) const TABLE: &str = "TABLE";

impl Bind<'_> {
    /// Binds a statement's query, with values in display form.
    pub fn statement_query(&mut self, query: &Query) -> Result<Bound> {
        let mut bound = self.query(query)?;
        let exprs: Vec<Expr> =
            bound.columns.iter().enumerate().map(|(at, column)| present(Expr::Column(at, column.ty.clone()))).collect();
        if exprs.iter().any(|expr| !matches!(expr, Expr::Column(..))) {
            bound.node = Arc::new(Node::Project { input: bound.node, exprs });
        }
        Ok(bound)
    }

    pub fn query(&mut self, query: &Query) -> Result<Bound> {
        // See `Binder::bind`.
        if !stdx::stack::is_half_free() {
            return Err(error::STACK_OVERRUN.with(&[&"the queries are nested too deep"]));
        }
        let commons = self.commons.len();
        self.with(query.with.as_ref())?;
        let environment = std::mem::take(&mut self.height);
        let bound = self.body(query);
        self.commons.truncate(commons);
        self.rise(2)?;
        self.height = self.height.max(environment);
        bound
    }

    /// Counts nodes above the plan bound so far for the current query.
    pub fn rise(&mut self, nodes: usize) -> Result<()> {
        self.height += nodes;
        self.weight += nodes;
        if self.weight > WEIGHT_MAX {
            let what = format!("views and common table expressions that come to more than {WEIGHT_MAX} nodes");
            return Err(error::STACK_OVERRUN.with(&[&what]));
        }
        if self.height > HEIGHT_MAX {
            let what =
                format!("views, common table expressions and joins of more than {HEIGHT_MAX} nodes above each other");
            return Err(error::STACK_OVERRUN.with(&[&what]));
        }
        Ok(())
    }

    fn body(&mut self, query: &Query) -> Result<Bound> {
        let Query { with: _, body, order_by, limit, locks, into: _, span: _ } = query;
        match body {
            QueryBody::Select(select) => return self.select(select, order_by, limit.as_ref(), locks),
            QueryBody::Table(table) => return self.select(&self.all_of(table)?, order_by, limit.as_ref(), locks),
            QueryBody::Values(_) | QueryBody::Query(_) | QueryBody::SetOperations { .. } => {}
        }
        let mut bound = self.set_expr(body)?;
        let limits = self.limits(limit.as_ref())?;
        let mut keys = Vec::new();
        for (nth, OrderItem { expr, descending }) in order_by.iter().enumerate() {
            let at = self.output_column(expr, &bound.columns, nth)?;
            keys.push(SortKey { at, ty: bound.columns[at].ty.clone(), order: KeyOrder::with_null_least(*descending) });
        }
        if !keys.is_empty() {
            bound.node = Arc::new(Node::Sort { input: bound.node, keys, limit: None, unique: false });
        }
        bound.node = match first_select(body) {
            Some(first) if first.calc_found_rows => counted(bound.node, limits),
            _ => limited(bound.node, limits),
        };
        Ok(bound)
    }

    /// TABLE t: returns the block `SELECT * FROM t`. The span of its `*` is the word TABLE.
    fn all_of(&self, table: &TableName) -> Result<Select> {
        let mut span = Span::default();
        if self.recorder.is_some() {
            let before = self.text.get(..table.span.start as usize).unwrap_or("").trim_end();
            let start = before.len().checked_sub(TABLE.len());
            let start = start.filter(|at| before.get(*at..).is_some_and(|word| word.eq_ignore_ascii_case(TABLE)));
            let start = start.ok_or_else(|| SqlError::unsupported("a comment within TABLE in a view"))?;
            span = Span { start: start as u32, end: before.len() as u32 };
        }
        Ok(Select {
            hints: Vec::new(),
            distinct: false,
            straight_join: false,
            calc_found_rows: false,
            items: vec![SelectItem::All(span)],
            from: vec![tree::Joined { first: TableRef::Table(Box::new(table.clone())), joins: Vec::new() }],
            selection: None,
            group_by: Vec::new(),
            rollup: false,
            having: None,
            windows: Vec::new(),
        })
    }

    /// Resolves an ORDER BY item of a set operation, by name or number.
    fn output_column(&mut self, expr: &tree::Expr, columns: &[Column], nth: usize) -> Result<usize> {
        if let Some(at) = position(expr, columns.len())? {
            return Ok(at);
        }
        let Some(name) = bare_name(expr) else {
            if has_aggregate(expr) {
                return Err(error::AGGREGATE_ORDER_FOR_UNION.with(&[&(nth + 1)]));
            }
            return Err(SqlError::unsupported("ORDER BY an expression over UNION"));
        };
        let found = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| error::BAD_FIELD.with(&[&name, &"order clause"]))
    }

    pub(super) fn set_expr(&mut self, body: &QueryBody) -> Result<Bound> {
        match body {
            QueryBody::Select(select) => self.select(select, &[], None, &[]),
            QueryBody::Table(table) => self.select(&self.all_of(table)?, &[], None, &[]),
            QueryBody::Query(query) => self.query(query),
            QueryBody::Values(rows) => self.values_rows(rows),
            QueryBody::SetOperations { first, links } => self.set_operations(first, links),
        }
    }

    /// Binds an operand of a set operation. Its order matters only with a limit.
    fn set_operand(&mut self, body: &QueryBody) -> Result<Bound> {
        match body {
            QueryBody::Query(query) if query.limit.is_none() && !query.order_by.is_empty() => {
                self.query(&Query { order_by: Vec::new(), ..(**query).clone() })
            }
            body => self.set_expr(body),
        }
    }

    /// Binds a set operation, or its single operand.
    pub(super) fn operations(&mut self, first: &QueryBody, links: &[SetLink]) -> Result<Bound> {
        if links.is_empty() { self.set_expr(first) } else { self.set_operations(first, links) }
    }

    /// Binds set operations. Consecutive UNIONs become one node; one DISTINCT serves up to the last that has it.
    fn set_operations(&mut self, first: &QueryBody, links: &[SetLink]) -> Result<Bound> {
        let mut run = vec![self.set_operand(first)?];
        let mut distinct = 0;
        for SetLink { op, all, operand } in links {
            let right = self.set_operand(operand)?;
            if right.columns.len() != run[0].columns.len() {
                return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
            }
            match op {
                SetOp::Union => {
                    run.push(right);
                    if !all {
                        distinct = run.len();
                    }
                }
                SetOp::Intersect | SetOp::Except => {
                    let left = united(std::mem::take(&mut run), std::mem::take(&mut distinct))?;
                    self.rise(2)?;
                    run.push(self.set_operation(left, right, *op, *all)?);
                }
            }
        }
        self.rise(2)?;
        united(run, distinct)
    }

    fn set_operation(&mut self, left: Bound, right: Bound, op: SetOp, all: bool) -> Result<Bound> {
        let mut sides = unify(vec![left, right])?;
        let columns = std::mem::take(&mut sides[0].columns);
        let types: Vec<Type> = columns.iter().map(|column| column.ty.clone()).collect();
        let keeps_common = op == SetOp::Intersect;
        let [left, right] = <[Bound; 2]>::try_from(sides).unwrap_or_else(|_| unreachable!("two sides"));
        let (left, right) = (left.node, right.node);
        let node = Arc::new(Node::SetOperation { left, right, types: types.clone(), keeps_common, all });
        let node = if all { node } else { Arc::new(Node::Distinct { input: node, types }) };
        Ok(Bound { node, columns, plain: None })
    }

    fn values_rows(&mut self, list: &[Vec<tree::Expr>]) -> Result<Bound> {
        self.open_scope();
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        for row in list {
            rows.push(row.iter().map(|expr| self.expr(expr)).collect::<Result<_>>()?);
        }
        self.close_scope();
        let mut types: Vec<Type> = rows[0].iter().map(Expr::ty).collect();
        for row in &rows[1..] {
            if row.len() != types.len() {
                return Err(error::WRONG_VALUE_COUNT_ON_ROW.with(&[&2]));
            }
            for (ty, expr) in types.iter_mut().zip(row) {
                *ty = union_type(ty, &expr.ty())?;
            }
        }
        let cast = |row: Vec<Expr>| row.into_iter().zip(&types).map(|(expr, ty)| cast(expr, ty)).collect();
        let rows = rows.into_iter().map(cast).collect();
        let columns =
            types.iter().enumerate().map(|(at, ty)| Column::computed(format!("column_{at}"), ty.clone())).collect();
        Ok(Bound { node: Arc::new(Node::Rows { rows }), columns, plain: None })
    }

    pub fn limits(&mut self, limit: Option<&Limit>) -> Result<Limits> {
        let Some(Limit { count, offset }) = limit else { return Ok((None, None)) };
        self.open_scope();
        let bound = (|| Ok((Some(self.expr(count)?), offset.as_ref().map(|offset| self.expr(offset)).transpose()?)))();
        self.close_scope();
        bound
    }
}

/// Returns the first SELECT of a set operation.
fn first_select(mut body: &QueryBody) -> Option<&Select> {
    while let QueryBody::SetOperations { first, links: _ } = body {
        body = first;
    }
    match body {
        QueryBody::Select(select) => Some(select),
        _ => None,
    }
}

pub(super) fn cast(expr: Expr, ty: &Type) -> Expr {
    let own = expr.ty();
    let is_same = own.kind() == ty.kind()
        && own.is_unsigned() == ty.is_unsigned()
        && own.scale == ty.scale
        && own.members == ty.members;
    if is_same || own.kind() == crate::types::Kind::Null {
        return expr;
    }
    // BIT becomes decimal digits when unified with other types.
    let expr = match own.kind() == crate::types::Kind::Bit && ty.is_string() {
        true => operators::cast(expr, Type::unsigned().with_nullable(own.nullable)),
        false => expr,
    };
    operators::cast(expr, ty.clone())
}

/// Builds a UNION; its first `distinct` inputs are deduplicated.
fn united(inputs: Vec<Bound>, distinct: usize) -> Result<Bound> {
    if inputs.len() == 1 {
        return inputs.into_iter().next().ok_or_else(|| unreachable!("there is one"));
    }
    let mut inputs = unify(inputs)?;
    let columns = std::mem::take(&mut inputs[0].columns);
    let mut nodes: Vec<Arc<Node>> = inputs.into_iter().map(|input| input.node).collect();
    if distinct > 0 {
        let rest = nodes.split_off(distinct);
        let types = columns.iter().map(|column| column.ty.clone()).collect();
        let node = Arc::new(Node::Distinct { input: Arc::new(Node::Union { inputs: nodes }), types });
        nodes = [vec![node], rest].concat();
    }
    let node = if nodes.len() == 1 { nodes.remove(0) } else { Arc::new(Node::Union { inputs: nodes }) };
    Ok(Bound { node, columns, plain: None })
}

/// Casts all inputs to common types under the column names of the first.
fn unify(mut sides: Vec<Bound>) -> Result<Vec<Bound>> {
    let mut types: Vec<Type> = sides[0].columns.iter().map(|column| column.ty.clone()).collect();
    for side in &sides[1..] {
        if side.columns.len() != types.len() {
            return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
        }
        for (ty, column) in types.iter_mut().zip(&side.columns) {
            *ty = union_type(ty, &column.ty)?;
        }
    }
    for side in &mut sides {
        let exprs: Vec<Expr> = side
            .columns
            .iter()
            .zip(&types)
            .enumerate()
            .map(|(at, (column, ty))| cast(Expr::Column(at, column.ty.clone()), ty))
            .collect();
        if exprs.iter().any(operators::is_cast) {
            side.node = Arc::new(Node::Project { input: side.node.clone(), exprs });
        }
        side.columns = side
            .columns
            .iter()
            .zip(&types)
            .map(|(column, ty)| Column::computed(column.name.clone(), ty.clone()))
            .collect();
    }
    Ok(sides)
}
