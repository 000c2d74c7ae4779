//! Common table expressions, and the rules of MySQL for recursive ones.
//!
//! The seed of a recursive expression consists of the UNION members before the first that refers to the table itself.
//! It alone determines the columns and their types.

use std::sync::Arc;

use syntax::tree::walk::{self, Visitor};
use syntax::tree::{
    self, CommonTable, ExprKind, Join, JoinKind, Joined, Query, QueryBody, SelectItem, SetLink, SetOp, TableName,
    TableRef, With,
};

use crate::bind::Bind;
use crate::bind::aggregate::{has_aggregate, has_window};
use crate::bind::from::rename;
use crate::bind::query_expression::cast;
use crate::bind::scope::{Bound, Common};
use crate::error::{self, Code, Result, SqlError};
use crate::parse::statement::Name;
use crate::types::Type;
use query::block::shape::limited;
use query::nodes::expr::Expr;
use query::nodes::node::{Node, Recursion};

const CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE: Code = Code {
    name: "CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE",
    code: 3577,
    sqlstate: "HY000",
    format: "In recursive query block of Recursive Common Table Expression '{}', the recursive table must be referenced only once, and not in any subquery",
};

/// A recursive common table expression: its seed and its recursive part.
struct Recursive<'a> {
    first: &'a QueryBody,
    seed: &'a [SetLink],
    part: &'a QueryBody,
    rest: &'a [SetLink],
    distinct: bool,
}

impl Bind<'_> {
    /// Binds the tables of WITH. The caller removes them from `commons` again.
    pub fn with(&mut self, with: Option<&With>) -> Result<()> {
        let Some(With { recursive, tables }) = with else { return Ok(()) };
        tables.iter().try_for_each(|table| self.common(table, *recursive))
    }

    fn common(&mut self, table: &CommonTable, recursive: bool) -> Result<()> {
        let CommonTable { name, columns: _, query } = table;
        let id = self.new_id();
        let environment = (std::mem::take(&mut self.height), std::mem::take(&mut self.weight));
        let reads = self.correlations.last().map_or(0, Vec::len);
        let recursion = if recursive { recursion(query, &name.value)? } else { None };
        let bound = match recursion {
            Some(parts) => self.recursive(table, id, &parts)?,
            None => {
                let mut bound = self.query(query)?;
                rename(&mut bound.columns, &table.columns)?;
                let node = Arc::new(Node::Common { id, source: bound.node, recursion: None, is_kept: true });
                Bound { node, columns: bound.columns, plain: None }
            }
        };
        if self.correlations.last().map_or(0, Vec::len) != reads {
            return Err(SqlError::unsupported("a common table expression that reads the query around it"));
        }
        self.rise(1)?;
        let size = (self.height, self.weight);
        (self.height, self.weight) = (environment.0, environment.1 + 1);
        self.commons.push(Common { name: name.value.clone(), columns: bound.columns, node: bound.node, size });
        Ok(())
    }

    fn recursive(&mut self, table: &CommonTable, id: usize, parts: &Recursive<'_>) -> Result<Bound> {
        let CommonTable { name, columns, query } = table;
        let Query { with, body: _, order_by, limit, locks: _, into: _, span: _ } = &**query;
        let Recursive { first, seed, part, rest, distinct } = *parts;
        if !order_by.is_empty() {
            return Err(SqlError::unsupported("ORDER BY over UNION in recursive Common Table Expression"));
        }
        let commons = self.commons.len();
        self.with(with.as_ref())?;
        let mut source = self.operations(first, seed)?;
        rename(&mut source.columns, columns)?;
        for column in &mut source.columns {
            column.ty.nullable = true;
        }
        let types: Vec<Type> = source.columns.iter().map(|column| column.ty.clone()).collect();
        self.commons.push(Common {
            name: name.value.clone(),
            columns: source.columns.clone(),
            node: Arc::new(Node::LastRound { id }),
            size: (1, 1),
        });
        let bound = self.operations(part, rest);
        self.commons.truncate(commons);
        let bound = bound?;
        if bound.columns.len() != types.len() {
            return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
        }
        // The seed decides the types.
        let exprs = bound.columns.iter().zip(&types).enumerate();
        let exprs = exprs.map(|(at, (column, ty))| cast(Expr::Column(at, column.ty.clone()), ty)).collect();
        let part = Arc::new(Node::Project { input: bound.node, exprs });
        let recursion = Some(Recursion { part, distinct, types, is_lazy: false });
        let node = Arc::new(Node::Common { id, source: source.node, recursion, is_kept: true });
        let node = limited(node, self.limits(limit.as_ref())?);
        Ok(Bound { node, columns: source.columns, plain: None })
    }
}

/// Splits a recursive common table expression. The UNION members before the first self-reference are the seed.
fn recursion<'a>(query: &'a Query, name: &str) -> Result<Option<Recursive<'a>>> {
    let QueryBody::SetOperations { first, links } = &query.body else {
        return match mentions(&query.body, name) {
            0 => Ok(None),
            _ => Err(error::CTE_RECURSIVE_REQUIRES_UNION.with(&[&name])),
        };
    };
    if mentions(first, name) > 0 {
        return Err(error::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST.with(&[&name]));
    }
    let Some(at) = links.iter().position(|link| mentions(&link.operand, name) > 0) else { return Ok(None) };
    if links.iter().all(|link| link.op != SetOp::Union) {
        return Err(error::CTE_RECURSIVE_REQUIRES_UNION.with(&[&name]));
    }
    let (seed, members) = links.split_at(at);
    if let Some(link) = members.iter().find(|link| link.op != SetOp::Union) {
        let op = if link.op == SetOp::Except { "EXCEPT" } else { "INTERSECT" };
        return Err(SqlError::unsupported(format!("{op} in the recursive part of a Common Table Expression")));
    }
    members.iter().try_for_each(|link| check_recursive(&link.operand, name))?;
    let distinct = members.iter().any(|link| !link.all);
    if members.windows(2).any(|pair| !pair[0].all && pair[1].all) {
        let what = "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression";
        return Err(SqlError::unsupported(what));
    }
    Ok(Some(Recursive { first, seed, part: &members[0].operand, rest: &members[1..], distinct }))
}

/// Checks that a recursive block uses no clause that needs more than one row at a time.
fn check_recursive(body: &QueryBody, name: &str) -> Result<()> {
    let in_from = mentions_in_from(body, name);
    if mentions(body, name) > in_from {
        return Err(CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE.with(&[&name]));
    }
    let sorts = || {
        SqlError::unsupported("ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression")
    };
    match body {
        QueryBody::Query(query) => {
            if in_from > 0 && (!query.order_by.is_empty() || query.limit.is_some()) {
                return Err(sorts());
            }
            check_recursive(&query.body, name)
        }
        QueryBody::SetOperations { first, links } => {
            check_recursive(first, name)?;
            links.iter().try_for_each(|link| check_recursive(&link.operand, name))
        }
        QueryBody::Select(select) if in_from > 0 => {
            if in_from > 1 {
                return Err(CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE.with(&[&name]));
            }
            let gathers = |node: &tree::Expr| has_aggregate(node) || has_window(node);
            let in_list = |item: &SelectItem| matches!(item, SelectItem::Expr(item) if gathers(&item.expr));
            if !select.group_by.is_empty()
                || select.items.iter().any(in_list)
                || select.having.as_ref().is_some_and(gathers)
            {
                return Err(error::CTE_RECURSIVE_FORBIDS_AGGREGATION.with(&[&name]));
            }
            if select.distinct {
                return Err(sorts());
            }
            // A condition that rejects NULLs makes it an inner join.
            let is_met = |condition: &tree::Expr| !refuses_null(condition, name);
            if select.from.iter().any(|item| is_filled_up(item, name)) && select.selection.as_ref().is_none_or(is_met) {
                return Err(error::CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER.with(&[&name]));
            }
            Ok(())
        }
        QueryBody::Select(_) | QueryBody::Values(_) | QueryBody::Table(_) => Ok(()),
    }
}

/// Returns whether a conjunct of the condition compares a column that may be the table's.
fn refuses_null(condition: &tree::Expr, name: &str) -> bool {
    let is_column = |side: &tree::Expr| match &side.kind {
        ExprKind::Column(column) => column.table.as_ref().is_none_or(|table| table.eq_ignore_ascii_case(name)),
        _ => false,
    };
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().any(|part| refuses_null(part, name)),
        ExprKind::Compare { op: tree::CompareOp::NullSafeEqual, left: _, right: _ } => false,
        ExprKind::Compare { op: _, left, right } => is_column(left) || is_column(right),
        ExprKind::Between { operand, low: _, high: _, negated: _ }
        | ExprKind::InList { operand, list: _, negated: _ }
        | ExprKind::Is { operand, test: tree::Truth::Null, negated: true } => is_column(operand),
        _ => false,
    }
}

/// Returns whether the table is on the NULL-extended side of an outer join.
fn is_filled_up(item: &Joined, name: &str) -> bool {
    let has = |table: &TableRef| match table {
        TableRef::Table(table) => table.name.schema.is_none() && table.name.name.eq_ignore_ascii_case(name),
        TableRef::Nested(items) => {
            let mut mentions = Mentions { name, deep: false, count: 0 };
            walk::joined(items, &mut mentions);
            mentions.count > 0
        }
        TableRef::Derived(_) | TableRef::JsonTable(_) => false,
    };
    let within = |table: &TableRef| match table {
        TableRef::Nested(items) => items.iter().any(|item| is_filled_up(item, name)),
        TableRef::Table(_) | TableRef::Derived(_) | TableRef::JsonTable(_) => false,
    };
    let mut left = has(&item.first);
    let mut found = within(&item.first);
    for Join { kind, table, constraint: _ } in &item.joins {
        found |= within(table) || (*kind == JoinKind::Left && has(table)) || (*kind == JoinKind::Right && left);
        left |= has(table);
    }
    found
}

/// Counts references to a table.
struct Mentions<'n> {
    name: &'n str,
    /// Also in subqueries and derived tables.
    deep: bool,
    count: usize,
}

impl Visitor for Mentions<'_> {
    fn expr(&mut self, _: &tree::Expr) -> bool {
        self.deep
    }

    fn query(&mut self, query: &Query) -> bool {
        // Another WITH table of that name hides it.
        let hides = |table: &CommonTable| table.name.value.eq_ignore_ascii_case(self.name);
        self.deep && !query.with.as_ref().is_some_and(|with| with.tables.iter().any(hides))
    }

    fn table(&mut self, table: &TableName) {
        let Name { schema, name } = &table.name;
        self.count += usize::from(schema.is_none() && name.eq_ignore_ascii_case(self.name));
    }
}

fn mentions(body: &QueryBody, name: &str) -> usize {
    let mut mentions = Mentions { name, deep: true, count: 0 };
    walk::body(body, &mut mentions);
    mentions.count
}

fn mentions_in_from(body: &QueryBody, name: &str) -> usize {
    match body {
        QueryBody::Query(query) => mentions_in_from(&query.body, name),
        QueryBody::SetOperations { first, links } => {
            let others = links.iter().map(|link| mentions_in_from(&link.operand, name));
            mentions_in_from(first, name) + others.sum::<usize>()
        }
        QueryBody::Select(_) | QueryBody::Values(_) | QueryBody::Table(_) => {
            let mut mentions = Mentions { name, deep: false, count: 0 };
            walk::body(body, &mut mentions);
            mentions.count
        }
    }
}
