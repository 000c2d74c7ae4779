//! Queries: set operations, VALUES, and the ORDER BY and LIMIT of the whole.
//!
//! Each query has a height and a weight (`Binder::rise`), since planner and executor recurse over its plan.

use std::sync::Arc;

use query::block::shape::outermost;
use query::nodes::expr::Expr;
use query::nodes::node::{Node, SortKey};
use query::types::{Column, Type};
use syntax::postgres::tree::{self, SelectBody, SelectStmt, SetLink, SetOp, SortBy};

use crate::bind::Binder;
use crate::bind::expression::common_typmod;
use crate::bind::scope::{BoundQuery, Clause, OutputColumn};
use crate::bind::select::{bare_name, check_targets, strength_word};
use crate::bind::typing::{Operand, settled, shown};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::types::oid::{self, Oid};
use crate::types::registry::{self, column_type};

impl Binder<'_> {
    /// Binds a query whose columns all have known types.
    pub fn query(&mut self, query: &SelectStmt) -> Result<BoundQuery> {
        let mut bound = self.open_query(query)?;
        for at in 0..bound.columns.len() {
            if bound.columns[at].oid() == oid::UNKNOWN {
                self.retype_column(&mut bound, at, oid::TEXT, -1, CastContext::Implicit)?;
            }
        }
        Ok(bound)
    }

    /// Binds a query whose columns may have literals and parameters of unknown type.
    pub fn open_query(&mut self, query: &SelectStmt) -> Result<BoundQuery> {
        self.check_stack()?;
        let commons = self.commons.len();
        self.query_level += 1;
        self.with(query.with.as_ref())?;
        let around = std::mem::take(&mut self.height);
        let bound = self.body(query);
        self.query_level -= 1;
        self.commons.truncate(commons);
        self.rise(2)?;
        self.height = self.height.max(around);
        bound
    }

    fn body(&mut self, query: &SelectStmt) -> Result<BoundQuery> {
        let SelectStmt { with: _, body, order_by, limit, locking, span: _ } = query;
        if let SelectBody::Select(select) = body {
            return self.select(select, order_by, limit.as_deref(), locking, order_by.is_empty());
        }
        if let Some(first) = locking.first() {
            let word = strength_word(first.strength);
            let refused = match body {
                SelectBody::Values(_) => format!("{word} cannot be applied to VALUES"),
                _ => format!("{word} is not allowed with UNION/INTERSECT/EXCEPT"),
            };
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, refused));
        }
        let mut bound = self.set_operand(body)?;
        let bounds = self.bounds(limit.as_deref())?;
        let keys = if order_by.is_empty() { Vec::new() } else { self.sort_output(&mut bound, order_by)? };
        bound.node = bounds.of_sorted(bound.node, &keys);
        bound.plain = None;
        Ok(bound)
    }

    /// Sorts the rows of a set operation by names or numbers of its columns. Returns the keys.
    fn sort_output(&mut self, bound: &mut BoundQuery, order_by: &[SortBy]) -> Result<Vec<SortKey>> {
        let mut keys = Vec::new();
        for item in order_by {
            let at = item.expr.span.start;
            let nth = self.output_column(&item.expr, &bound.columns)?;
            if bound.columns[nth].oid() == oid::UNKNOWN {
                self.retype_column(bound, nth, oid::TEXT, -1, CastContext::Implicit)?;
            }
            self.check_sortable(bound.columns[nth].oid(), at)?;
            let ty = bound.columns[nth].column.ty.clone();
            keys.push(SortKey { at: nth, ty, order: self.order_of(item)? });
        }
        let input = bound.node.clone();
        bound.node = Arc::new(Node::Sort { input, keys: keys.clone(), limit: None, unique: false });
        Ok(keys)
    }

    fn output_column(&self, expr: &tree::Expr, columns: &[OutputColumn]) -> Result<usize> {
        let at = expr.span.start;
        if let tree::ExprKind::Const(tree::Const::Integer(number)) = &expr.kind {
            return match usize::try_from(*number) {
                Ok(nth) if (1..=columns.len()).contains(&nth) => Ok(nth - 1),
                _ => {
                    let text = format!("ORDER BY position {number} is not in select list");
                    self.fail(state::INVALID_COLUMN_REFERENCE, text, at)
                }
            };
        }
        let Some(name) = bare_name(expr) else {
            let error = PgError::new(state::FEATURE_NOT_SUPPORTED, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause");
            let detail = "Only result column names can be used, not expressions or functions.";
            let hint = "Add the expression/function to every SELECT, or move the UNION into a FROM clause.";
            return Err(self.error(error.detail(detail).hint(hint), at));
        };
        let mut found = (0..columns.len()).filter(|nth| columns[*nth].column.name == name);
        match (found.next(), found.next()) {
            (Some(nth), None) => Ok(nth),
            (Some(_), Some(_)) => self.fail(state::AMBIGUOUS_COLUMN, format!("ORDER BY \"{name}\" is ambiguous"), at),
            (None, _) => self.fail(state::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"), at),
        }
    }

    pub fn set_operand(&mut self, body: &SelectBody) -> Result<BoundQuery> {
        self.check_stack()?;
        match body {
            SelectBody::Select(select) => {
                self.query_level += 1;
                let bound = self.select(select, &[], None, &[], true);
                self.query_level -= 1;
                bound
            }
            SelectBody::Values(rows) => self.values(rows),
            SelectBody::SetOperations { first, links } => self.set_operations(first, links),
            SelectBody::Nested(query) => self.open_query(query),
        }
    }

    /// Binds a set operation, or its single operand.
    pub fn operations(&mut self, first: &SelectBody, links: &[SetLink]) -> Result<BoundQuery> {
        if links.is_empty() { self.set_operand(first) } else { self.set_operations(first, links) }
    }

    /// Binds set operations. Consecutive UNIONs become one node; one DISTINCT serves up to the last that has it.
    fn set_operations(&mut self, first: &SelectBody, links: &[SetLink]) -> Result<BoundQuery> {
        let mut run = vec![self.set_operand(first)?];
        let mut distinct = 0;
        for SetLink { op, all, operand, at } in links {
            let mut right = self.set_operand(operand)?;
            let word = match op {
                SetOp::Union => "UNION",
                SetOp::Intersect => "INTERSECT",
                SetOp::Except => "EXCEPT",
            };
            if right.columns.len() != run[0].columns.len() {
                let text = format!("each {word} query must have the same number of columns");
                return self.fail(state::SYNTAX_ERROR, text, at.0.max(start_of(operand)));
            }
            self.unify(&mut run, &mut right, word)?;
            if !(*all && *op == SetOp::Union) {
                for column in &right.columns {
                    self.check_comparable(column.oid(), at.0)?;
                }
            }
            match op {
                SetOp::Union => {
                    run.push(right);
                    if !all {
                        distinct = run.len();
                    }
                }
                SetOp::Intersect | SetOp::Except => {
                    let left = united(std::mem::take(&mut run), std::mem::take(&mut distinct));
                    self.rise(2)?;
                    run.push(set_operation(left, right, *op, *all));
                }
            }
        }
        self.rise(2)?;
        Ok(united(run, distinct))
    }

    /// Brings the columns of all operands to common types.
    fn unify(&mut self, run: &mut [BoundQuery], right: &mut BoundQuery, word: &str) -> Result<()> {
        for nth in 0..right.columns.len() {
            let at = right.columns[nth].at;
            let operand =
                |bound: &BoundQuery| Operand { expr: Expr::Column(nth, bound.columns[nth].column.ty.clone()), at };
            let (left, other) = (operand(&run[0]), operand(right));
            let target = self.common_of(&[&left, &other])?.map_err(|(left, right, _)| {
                let text = format!("{word} types {} and {} cannot be matched", shown(left), shown(right));
                self.error(PgError::new(state::DATATYPE_MISMATCH, text), at)
            })?;
            let typmod = common_typmod(&[&left, &other], target);
            // The queries of a run have common types already, so a long chain brings each to its type once.
            let common = &run[0].columns[nth].column.ty;
            let is_settled = registry::oid_of(common) == target && registry::typmod_of(common) == typmod;
            let unsettled = if is_settled { &mut [][..] } else { &mut *run };
            for side in unsettled.iter_mut().chain([&mut *right]) {
                self.retype_column(side, nth, target, typmod, CastContext::Implicit)?;
            }
        }
        Ok(())
    }

    /// Brings a column of a query to a type: a literal or parameter of unknown type where it is, other values above the query. The modifier is a description: it is none or
    /// that of the values.
    pub fn retype_column(
        &mut self,
        bound: &mut BoundQuery,
        nth: usize,
        target: Oid,
        typmod: i32,
        context: CastContext,
    ) -> Result<()> {
        let column = bound.columns[nth].column.ty.clone();
        let source = registry::oid_of(&column);
        let at = bound.columns[nth].at;
        if source == oid::UNKNOWN && self.retype_literals(bound, nth, target, at)? {
            let nullable = column.nullable;
            bound.columns[nth].column.ty = column_type(target, -1, nullable);
            return Ok(());
        }
        if source != target {
            let operand = Operand { expr: Expr::Column(nth, column), at };
            let expr = match self.coerce_to(operand, target, -1, context)? {
                Some(expr) => expr,
                None => {
                    let text = format!("could not convert type {} to {}", shown(source), shown(target));
                    return Err(PgError::new(state::CANNOT_COERCE, text));
                }
            };
            bound.columns[nth].column.ty = settled(&expr.ty());
            project_column(bound, nth, expr);
        }
        if registry::typmod_of(&bound.columns[nth].column.ty) != typmod {
            let ty = &mut bound.columns[nth].column.ty;
            *ty = column_type(target, typmod, ty.nullable);
        }
        Ok(())
    }

    /// Gives the literals and parameters that a column consists of their type. False: it consists of something else.
    fn retype_literals(&mut self, bound: &mut BoundQuery, nth: usize, target: Oid, at: u32) -> Result<bool> {
        // The parts of a merged block would have to change too.
        bound.plain = None;
        if let Some(Node::Rows { rows }) = Arc::get_mut(&mut bound.node) {
            for row in rows {
                self.retype_expr(&mut row[nth], target, at)?;
            }
            return Ok(true);
        }
        let Some(exprs) = outermost(&mut bound.node) else { return Ok(false) };
        let Some(expr) = exprs.get_mut(nth) else { return Ok(false) };
        self.retype_expr(expr, target, at)?;
        Ok(true)
    }

    fn retype_expr(&mut self, expr: &mut Expr, target: Oid, at: u32) -> Result<()> {
        let operand = Operand { expr: std::mem::replace(expr, Expr::null()), at };
        *expr = self.coerce(operand, target, CastContext::Implicit)?;
        Ok(())
    }

    /// Binds VALUES.
    pub fn values(&mut self, list: &[Vec<tree::Expr>]) -> Result<BoundQuery> {
        self.open_scope();
        self.scope().clause = Clause::Values;
        let mut rows: Vec<Vec<Operand>> = Vec::new();
        for row in list {
            rows.push(row.iter().map(|expr| self.expr(expr)).collect::<Result<_>>()?);
        }
        self.close_scope();
        let width = rows[0].len();
        check_targets(width)?;
        if let Some(other) = rows.iter().find(|row| row.len() != width) {
            let at = other.first().map_or(0, |operand| operand.at);
            return self.fail(state::SYNTAX_ERROR, "VALUES lists must all be the same length", at);
        }
        let mut columns = Vec::new();
        for nth in 0..width {
            let operands: Vec<&Operand> = rows.iter().map(|row| &row[nth]).collect();
            let is_open = operands.iter().all(|operand| operand.is_unknown());
            let target = if is_open { oid::UNKNOWN } else { self.common_type(&operands, "VALUES")? };
            let typmod = common_typmod(&operands, target);
            if !is_open {
                for row in &mut rows {
                    let operand = row[nth].clone();
                    let expr = self.coerce_to_common(vec![operand], target, "VALUES")?.swap_remove(0);
                    row[nth].expr = expr;
                }
            }
            let nullable = rows.iter().any(|row| row[nth].expr.ty().nullable);
            let column = Column::computed(format!("column{}", nth + 1), column_type(target, typmod, nullable));
            columns.push(OutputColumn { column, origin: None, at: operands_at(&rows, nth) });
        }
        let rows = rows.into_iter().map(|row| row.into_iter().map(|operand| operand.expr).collect()).collect();
        Ok(BoundQuery { node: Arc::new(Node::Rows { rows }), columns, plain: None })
    }
}

/// Returns the byte where a column of VALUES begins.
fn operands_at(rows: &[Vec<Operand>], nth: usize) -> u32 {
    rows[0][nth].at
}

/// Returns the byte where an operand's first expression is.
fn start_of(body: &SelectBody) -> u32 {
    match body {
        SelectBody::Select(select) => select.targets.first().map_or(0, |target| target.expr.span.start),
        SelectBody::Values(rows) => rows[0][0].span.start,
        SelectBody::SetOperations { first, links: _ } => start_of(first),
        SelectBody::Nested(query) => start_of(&query.body),
    }
}

/// Projects one column of a query as an expression.
pub fn project_column(bound: &mut BoundQuery, nth: usize, expr: Expr) {
    bound.plain = None;
    // An own projection on top takes further columns too.
    let is_own = |exprs: &[Expr]| exprs.iter().enumerate().all(|(at, expr)| expr.columns() == [at]);
    let width = bound.columns.len();
    if matches!(&*bound.node, Node::Project { exprs, .. } if exprs.len() == width && is_own(exprs))
        && let Some(Node::Project { exprs, .. }) = Arc::get_mut(&mut bound.node)
        && matches!(exprs[nth], Expr::Column(..))
    {
        exprs[nth] = expr;
        return;
    }
    let place = |(at, column): (usize, &OutputColumn)| match at == nth {
        true => expr.clone(),
        false => Expr::Column(at, column.column.ty.clone()),
    };
    let exprs = bound.columns.iter().enumerate().map(place).collect();
    bound.node = Arc::new(Node::Project { input: bound.node.clone(), exprs });
}

fn types_of(bound: &BoundQuery) -> Vec<Type> {
    bound.columns.iter().map(|column| column.column.ty.clone()).collect()
}

fn unnamed(columns: Vec<OutputColumn>) -> Vec<OutputColumn> {
    let column = |column: OutputColumn| {
        let ty = column.column.ty.with_nullable(true);
        OutputColumn { column: Column::computed(column.column.name, ty), origin: None, at: column.at }
    };
    columns.into_iter().map(column).collect()
}

/// Builds a UNION; its first `distinct` inputs are deduplicated.
fn united(mut inputs: Vec<BoundQuery>, distinct: usize) -> BoundQuery {
    if inputs.len() == 1 {
        return inputs.remove(0);
    }
    let types = types_of(&inputs[0]);
    let columns = unnamed(std::mem::take(&mut inputs[0].columns));
    let mut nodes: Vec<Arc<Node>> = inputs.into_iter().map(|input| input.node).collect();
    if distinct > 0 {
        let rest = nodes.split_off(distinct);
        let node = Arc::new(Node::Distinct { input: Arc::new(Node::Union { inputs: nodes }), types });
        nodes = [vec![node], rest].concat();
    }
    let node = if nodes.len() == 1 { nodes.remove(0) } else { Arc::new(Node::Union { inputs: nodes }) };
    BoundQuery { node, columns, plain: None }
}

fn set_operation(left: BoundQuery, right: BoundQuery, op: SetOp, all: bool) -> BoundQuery {
    let types = types_of(&left);
    let keeps_common = op == SetOp::Intersect;
    let columns = unnamed(left.columns);
    let (left, right) = (left.node, right.node);
    let node = Arc::new(Node::SetOperation { left, right, types: types.clone(), keeps_common, all });
    let node = if all { node } else { Arc::new(Node::Distinct { input: node, types }) };
    BoundQuery { node, columns, plain: None }
}
