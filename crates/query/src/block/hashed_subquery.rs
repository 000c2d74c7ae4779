//! Hashed subqueries: `EXISTS (SELECT ... WHERE s.k = t.k AND p)` tests whether `t.k` is among the `s.k` that satisfy
//! `p`.
//!
//! A subquery correlated by equalities alone can be materialized once as a set of keys, wherever it is used: below OR,
//! in HAVING, in the ON of an outer join, in UPDATE and DELETE. The executor chooses at run time (`exec::subquery`): it
//! evaluates the subquery for the first rows, and builds the set when that has cost as much. A subquery that is a whole
//! condition may also become a derived table joined first (`QueryBlock::listed`): then few keys lead to few rows of a large
//! table, and only those are locked.
//!
//! Hard part: the set answers FALSE where IN would answer UNKNOWN. So IN uses one only where both reject the row
//! (`truth`).
//!
//! Keeps QU-36.

use std::sync::Arc;

use crate::block::decorrelated_aggregate::{Theirs, derived, tie};
use crate::block::semi_join::reads;
use crate::block::shape::projected;
use crate::block::{PlanningInputs, QueryBlock, TABLES_MAX};
use crate::nodes::comparison::{Comparator, Comparison};
use crate::nodes::expr::{Compare, Expr};
use crate::nodes::node::Node;
use crate::nodes::relation::Source;
use crate::nodes::subquery::{Listed, Plain, Question, Subquery};
use crate::nodes::walk::{has_subquery, is_volatile, looks_around, repeats};
use crate::plan::column_pruning::pack;
use crate::plan::cost::HASH;
use crate::plan::estimate::{estimate, subquery_cost};
use crate::plan::planner::{Part, Planner};
use crate::plan::selectivity::StatisticsView;

/// The cost ratio below which the derived table is used: a subquery as a condition leaves rejected rows unlocked.
const CHEAPER: f64 = 0.8;

/// Gives hashed forms to the subqueries that allow one. `truth` means that UNKNOWN counts as FALSE.
pub fn list(expr: &mut Expr, truth: bool, inputs: PlanningInputs<'_>) {
    match expr {
        Expr::Subquery(query, _) if query.is_correlated => {
            if let Some(listed) = of(query, truth, inputs) {
                *query = Arc::new(query.with_list(listed));
            }
        }
        Expr::And(parts) | Expr::Or(parts) => parts.iter_mut().for_each(|part| list(part, truth, inputs)),
        Expr::IsTruth(inner, true) => list(inner, true, inputs),
        expr => expr.children_mut().into_iter().for_each(|child| list(child, false, inputs)),
    }
}

/// Gives hashed forms to subqueries in the conditions of outer joins.
pub fn list_joins(source: &mut Source, inputs: PlanningInputs<'_>) {
    match source {
        Source::Table(_) => {}
        Source::Inner(items, on) => {
            on.iter_mut().for_each(|condition| list(condition, true, inputs));
            items.iter_mut().for_each(|item| list_joins(item, inputs));
        }
        Source::Left(left, right, on) => {
            on.iter_mut().for_each(|condition| list(condition, true, inputs));
            list_joins(left, inputs);
            list_joins(right, inputs);
        }
        Source::Semi(inner, on, _) => {
            on.iter_mut().for_each(|condition| list(condition, true, inputs));
            list_joins(inner, inputs);
        }
    }
}

/// Returns the subquery's hashed form.
fn of(query: &Subquery, truth: bool, inputs: PlanningInputs<'_>) -> Option<Listed> {
    if query.depth != inputs.depth {
        return None;
    }
    let (mut needles, mut comparators, mut types) = (Vec::new(), Vec::new(), Vec::new());
    match &query.question {
        Question::Exists if query.is_correlated => {}
        Question::Some { needles: theirs, test, keys: Some(keys) } if truth => {
            needles = theirs.clone();
            comparators = compared(test, theirs.len())?;
            types = keys.clone();
        }
        _ => return None,
    }
    let node = match query.is_correlated {
        true => {
            let plain = query.plain.as_ref().filter(|plain| plain.calls.is_empty())?;
            let (selected, mut rest, mut keys) = (plain.exprs.get(..needles.len())?, Vec::new(), Vec::new());
            for condition in &plain.conditions {
                let Some((mine, Theirs { expr, by })) = tie(condition, query.depth) else {
                    rest.push(condition.clone());
                    continue;
                };
                types.push(by.hash_type(&expr.ty(), &mine.ty())?);
                needles.push(expr);
                comparators.push(by);
                keys.push(mine);
            }
            if keys.is_empty() {
                return None;
            }
            keys.splice(0..0, selected.iter().cloned());
            planned(plain, rest, keys, inputs)
        }
        false => query.node.clone(),
    };
    let is_odd = |expr: &Expr| is_volatile(expr) || has_subquery(expr);
    if needles.iter().any(is_odd) || !repeats(&node) || looks_around(&node) {
        return None;
    }
    let made = estimate(&node);
    Some(Listed { node, types, needles, comparators, cost: made.cost + made.rows * HASH, each: subquery_cost(query) })
}

/// Returns how each needle is compared with its column.
fn compared(test: &Expr, count: usize) -> Option<Vec<Comparator>> {
    let parts = if let Expr::And(parts) = test { &parts[..] } else { std::slice::from_ref(test) };
    let comparator = |(at, part): (usize, &Expr)| {
        let Expr::Compare(compare) = part else { return None };
        let is_it = matches!(compare.left, Expr::Column(place, _) if place == at)
            && matches!(compare.right, Expr::Column(place, _) if place == count + at);
        (is_it && compare.op == Comparison::Equal).then_some(compare.by)
    };
    (parts.len() == count).then_some(())?;
    parts.iter().enumerate().map(comparator).collect()
}

/// Plans the key set: the keys of the rows that satisfy the conditions.
fn planned(plain: &Plain, conditions: Vec<Expr>, mut keys: Vec<Expr>, inputs: PlanningInputs<'_>) -> Arc<Node> {
    let PlanningInputs { statistics, values, .. } = inputs;
    let (tables, width) = (&plain.tables[..], plain.used.len());
    // The subquery's own select list is not needed.
    let mut used = vec![false; width];
    let mut read = |expr: &Expr| expr.columns().into_iter().for_each(|place| used[place] = true);
    keys.iter().chain(&conditions).for_each(&mut read);
    reads(&plain.source, &mut read);
    let estimates = StatisticsView { tables, statistics, values };
    let planner = Planner { tables, used: &used, width, order: &[], limited: false, estimates };
    let mut part = planner.plan(&plain.source, conditions);
    pack(&mut part.node, &used, keys.iter_mut().collect());
    projected(part.node, keys)
}

impl QueryBlock {
    /// Gives hashed forms to the block's subqueries.
    pub fn list(&mut self, inputs: PlanningInputs<'_>) {
        self.conditions.iter_mut().for_each(|condition| list(condition, true, inputs));
        self.exprs.iter_mut().for_each(|expr| list(expr, false, inputs));
        self.sorts.iter_mut().for_each(|(expr, _)| list(expr, false, inputs));
        list_joins(&mut self.source, inputs);
    }

    /// Replaces conditions by joins to their key sets where that is cheaper than the current plan.
    pub fn with_lists(&mut self, part: &mut Part, inputs: PlanningInputs<'_>) {
        let mut at = 0;
        while at < self.conditions.len() {
            let query = asked(&self.conditions[at]).filter(|_| self.tables.len() < TABLES_MAX);
            let id = query.map(|query| query.id);
            let listed = query.and_then(|query| query.list.clone().or_else(|| of(query, true, inputs)));
            at += 1;
            let (Some(id), Some(listed)) = (id, listed) else { continue };
            let other = self.listed(at - 1, id, &listed);
            let other_part = other.plan(inputs);
            if other.cost(&other_part) < (self.cost(part) + listed.cost) * CHEAPER {
                (*self, *part) = (other, other_part);
                at -= 1;
            }
        }
    }

    /// Returns the block without the condition and joined to its distinct keys instead.
    fn listed(&self, at: usize, id: usize, listed: &Listed) -> QueryBlock {
        let mut block = self.clone();
        block.conditions.remove(at);
        let (offset, table) = (block.width, block.tables.len());
        block.width += listed.types.len();
        block.used.resize(block.width, true);
        let node = Arc::new(Node::Distinct { input: listed.node.clone(), types: listed.types.clone() });
        block.tables.push(derived(id, node, listed.types.clone(), offset, false));
        let keys = listed.needles.iter().zip(&listed.types).zip(&listed.comparators).enumerate();
        let on = keys.map(|(at, ((needle, ty), by))| {
            let (left, right) = (needle.clone(), Expr::Column(offset + at, ty.clone()));
            Expr::Compare(Box::new(Compare { op: Comparison::Equal, left, right, by: *by }))
        });
        let on: Vec<Expr> = on.collect();
        block.source = match std::mem::replace(&mut block.source, Source::Table(table)) {
            Source::Inner(mut items, mut others) => {
                items.push(Source::Table(table));
                others.extend(on);
                Source::Inner(items, others)
            }
            source => Source::Inner(vec![source, Source::Table(table)], on),
        };
        block
    }
}

/// Returns the subquery that a condition tests for a match.
fn asked(condition: &Expr) -> Option<&Subquery> {
    condition.subquery().map(|query| &**query)
}
