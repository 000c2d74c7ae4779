//! Decorrelation of scalar aggregates: `x < (SELECT 0.2 * AVG(y) FROM l WHERE l.k = p.k)` becomes a join.
//!
//! The subquery's tables are grouped by the correlated column (`l.k`), and the groups are joined on it. Hard part: for
//! a row without a group the subquery answers the aggregate of no rows, 0 for COUNT and NULL for most. So the join is
//! an outer one, unless a condition rejects the NULL. Only equalities are grouped by, and only if the comparison and
//! the grouping have the same equality, so a row has at most one group. The planner costs both plans and takes the
//! cheaper.
//!
//! Keeps QU-35.

use std::sync::Arc;

use crate::block::shape::{Grouping, group_count, group_node};
use crate::block::{PlanningInputs, QueryBlock, TABLES_MAX};
use crate::nodes::comparison::{Comparator, Comparison, ComparisonType};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::{Case, Compare, Expr};
use crate::nodes::node::Node;
use crate::nodes::relation::Columns;
use crate::nodes::relation::{Origin, ScopeTable, Source};
use crate::nodes::subquery::{Plain, Question, Subquery};
use crate::nodes::walk::{has_subquery, is_volatile, looks_around, repeats};
use crate::plan::column_pruning::pack;
use crate::plan::planner::Planner;
use crate::plan::selectivity::StatisticsView;
use crate::types::{Column, Type};
use crate::value::Value;

impl QueryBlock {
    /// Returns the subqueries that could be decorrelated, each once.
    pub(super) fn candidates(&self, depth: usize) -> Vec<Arc<Subquery>> {
        let mut found: Vec<Arc<Subquery>> = Vec::new();
        for expr in self.all() {
            expr.walk(&mut |expr| {
                let Some(query) = expr.subquery() else { return };
                let is_whole = query.plain.as_ref().is_some_and(|plain| !plain.calls.is_empty());
                let may = is_whole && query.is_correlated && query.depth == depth;
                if may && matches!(query.question, Question::Value) && found.iter().all(|known| known.id != query.id) {
                    found.push(query.clone());
                }
            });
        }
        found
    }

    /// Returns the block with the subquery joined as a derived table. None: the result could differ.
    pub(super) fn joined(&self, query: &Subquery, inputs: PlanningInputs<'_>) -> Option<QueryBlock> {
        let plain = query.plain.as_ref()?;
        if self.tables.len() >= TABLES_MAX || plain.exprs.first().is_none_or(has_subquery) {
            return None;
        }
        let (mut keys, mut theirs, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for condition in &plain.conditions {
            match tie(condition, query.depth) {
                Some((mine, other)) => {
                    keys.push(mine);
                    theirs.push(other);
                }
                None => rest.push(condition.clone()),
            }
        }
        let node = grouped(plain, &keys, rest, inputs).filter(|node| repeats(node) && !looks_around(node))?;
        let (offset, at) = (self.width, self.tables.len());
        let mut block = self.clone();
        block.width += keys.len() + 1;
        block.used.resize(block.width, true);
        let value = Expr::Column(offset + keys.len(), plain.exprs[0].ty().with_nullable(true));
        let value = answered(plain, value, Expr::Column(offset, keys[0].ty().with_nullable(true)));
        for expr in block.all_mut() {
            expr.rewrite(&mut |expr| {
                if expr.subquery().is_some_and(|it| it.id == query.id) {
                    *expr = value.clone();
                }
            });
        }
        let is_refused = |condition: &Expr| refuses(condition, &|place| place >= offset);
        let is_inner = block.conditions.iter().any(is_refused);
        let types = keys.iter().chain([&plain.exprs[0]]).map(Expr::ty).collect();
        block.tables.push(derived(query.id, node, types, offset, !is_inner));
        let on: Vec<Expr> =
            theirs.into_iter().enumerate().map(|(at, tie)| tie.with_key(offset + at, &keys[at])).collect();
        let source = std::mem::replace(&mut block.source, Source::Table(at));
        block.source = match source {
            Source::Inner(mut items, mut others) if is_inner => {
                items.push(Source::Table(at));
                others.extend(on);
                Source::Inner(items, others)
            }
            source if is_inner => Source::Inner(vec![source, Source::Table(at)], on),
            source => Source::Left(Box::new(source), Box::new(Source::Table(at)), on),
        };
        Some(block)
    }
}

/// The outer side of a correlated equality, and its comparison domain.
pub(super) struct Theirs {
    pub expr: Expr,
    pub by: Comparator,
}

impl Theirs {
    fn with_key(self, place: usize, key: &Expr) -> Expr {
        let (left, right) = (self.expr, Expr::Column(place, key.ty()));
        let compare = Compare { op: Comparison::Equal, left, right, by: self.by };
        Expr::Compare(Box::new(compare))
    }
}

/// Splits a condition into an equality between a subquery expression and an outer expression, if it is one.
pub(super) fn tie(condition: &Expr, depth: usize) -> Option<(Expr, Theirs)> {
    let Expr::Compare(compare) = condition else { return None };
    if compare.op != Comparison::Equal {
        return None;
    }
    let sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)];
    sides.into_iter().find_map(|(mine, theirs)| {
        if has_subquery(mine) || mine.columns().is_empty() || is_volatile(mine) || is_volatile(theirs) {
            return None;
        }
        // Groups use the equality of the key's own type.
        let is_same = compare.by.hash_type(&theirs.ty(), &mine.ty()).is_some()
            && match compare.by.ty {
                ComparisonType::Text(collation) => mine.ty().collation == collation,
                _ => true,
            };
        let (mut expr, mut around, mut fits) = (theirs.clone(), false, is_same && theirs.columns().is_empty());
        expr.rewrite(&mut |expr| match expr {
            Expr::Outer { depth: block, at, ty } if *block == depth => {
                around = true;
                *expr = Expr::Column(*at, ty.clone());
            }
            expr => fits &= !expr.reads_outside(),
        });
        (fits && around).then(|| (mine.clone(), Theirs { expr, by: compare.by }))
    })
}

/// Plans the groups: their keys, and the subquery's value for each.
fn grouped(plain: &Plain, keys: &[Expr], conditions: Vec<Expr>, inputs: PlanningInputs<'_>) -> Option<Arc<Node>> {
    if keys.is_empty() {
        return None;
    }
    let PlanningInputs { statistics, values, .. } = inputs;
    let (tables, used, width) = (&plain.tables[..], &plain.used[..], plain.used.len());
    let estimates = StatisticsView { tables, statistics, values };
    let mut part =
        Planner { tables, used, width, order: &[], limited: false, estimates }.plan(&plain.source, conditions);
    let (mut group_keys, mut calls) = (keys.to_vec(), plain.calls.clone());
    let grouping = Grouping { keys: &group_keys, calls: &calls, rollup: false, sets: &[], level: None };
    let groups = group_count(part.rows, grouping, estimates);
    let arguments = calls.iter_mut().flat_map(|call| &mut call.arguments);
    pack(&mut part.node, used, group_keys.iter_mut().chain(arguments).collect());
    let grouping = Grouping { keys: &group_keys, calls: &calls, rollup: false, sets: &[], level: None };
    let node = group_node(part.node, grouping, groups);
    let mut exprs: Vec<Expr> = keys.iter().enumerate().map(|(at, key)| Expr::Column(at, key.ty())).collect();
    let mut value = plain.exprs[0].clone();
    value.rewrite(&mut |expr| {
        if let Expr::Column(at, _) = expr {
            *at += keys.len();
        }
    });
    value.keep_all_digits();
    exprs.push(value);
    Some(Arc::new(Node::Project { input: node, exprs }))
}

/// Returns the group's value, or the aggregate of no rows if there is no group.
fn answered(plain: &Plain, value: Expr, first_key: Expr) -> Expr {
    let mut ctx = EvalContext::new();
    let of_none: Vec<Value> = plain
        .calls
        .iter()
        .map(|call| call.aggregate.start().finish(&call.aggregate, &mut ctx).unwrap_or_default())
        .collect();
    if is_strict(&plain.exprs[0], &|at| of_none.get(at).is_some_and(Value::is_null)) {
        return value;
    }
    let mut otherwise = plain.exprs[0].clone();
    otherwise.rewrite(&mut |expr| {
        if let Expr::Column(at, ty) = expr {
            *expr = Expr::Literal(of_none.get(*at).cloned().unwrap_or_default(), ty.clone());
        }
    });
    // The key of a matched group is not NULL.
    let is_none = Expr::IsNull(Box::new(first_key));
    let ty = value.ty();
    Expr::Case(Box::new(Case { arms: vec![(is_none, otherwise)], otherwise: value, ty }))
}

/// Returns whether the expression is NULL whenever these places are.
fn is_strict(expr: &Expr, is_null: &dyn Fn(usize) -> bool) -> bool {
    match expr {
        Expr::Column(at, _) => is_null(*at),
        Expr::Call(call) if call.function.strict => call.arguments.iter().any(|argument| is_strict(argument, is_null)),
        Expr::Exact(inner) | Expr::Shown(inner) | Expr::Elements(inner) => is_strict(inner, is_null),
        _ => false,
    }
}

/// Returns whether the condition rejects rows where these places are NULL.
fn refuses(condition: &Expr, is_null: &dyn Fn(usize) -> bool) -> bool {
    match condition {
        Expr::Compare(compare) if compare.op != Comparison::NullSafeEqual => {
            is_strict(&compare.left, is_null) || is_strict(&compare.right, is_null)
        }
        Expr::Between(between) if !between.negated => is_strict(&between.needle, is_null),
        _ => false,
    }
}

/// Returns a subquery as a derived table.
pub(super) fn derived(id: usize, node: Arc<Node>, types: Vec<Type>, offset: usize, nullable: bool) -> ScopeTable {
    let named = |(at, ty): (usize, Type)| Column::computed(format!("Name_exp_{}", at + 1), ty.with_nullable(true));
    let columns: Vec<Column> = types.into_iter().enumerate().map(named).collect();
    ScopeTable {
        alias: format!("derived_{}", id + 1),
        schema: String::new(),
        origin: Origin::Derived { node },
        offset,
        hidden: vec![true; columns.len()],
        columns,
        key_at: None,
        lock: None,
        nullable,
        allowed: None,
        readable: Columns::All,
        within: None,
        after: Vec::new(),
    }
}
