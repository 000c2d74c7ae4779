//! Which index leads to the rows of a table, given the conditions on it.
//!
//! A condition is of use if one side is a column of the table and the other can be computed before the row is read. Conditions are never dropped here: what the index
//! finds may have to be looked at again, for a value may not fit its column (`fit`), and locking reads look at newer rows than the index. `implied` are those that need not if
//! every value fits exactly and the rows are those of the index's snapshot.
//!
//! No condition is replaced by an index (QU-25).

use crate::catalog::table::Part;
use crate::nodes::comparison::Comparison;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Access, Limit, SortKey};
use crate::nodes::term_test::{TermForm, TermTest};
use crate::plan::column_ranges::{Bounds, ColumnRanges, is_list, parts, says_no_more};
use crate::plan::cost::{HASH, KEPT, KEPT_BETWEEN, KEPT_TERM, LOOKUP, RANGE, ROW, UNION, WHOLE};
use crate::plan::target::Target;

/// An OR of more arms leads through no more than one index.
const ARMS: usize = 16;

/// A way to the rows, and about how many of them there are.
#[derive(Clone, Debug)]
pub struct Choice {
    pub access: Access,
    /// Conditions that say nothing more than the access, by their places.
    pub implied: Vec<usize>,
    /// And those that `rows` counts in already.
    pub served: Vec<usize>,
    pub rows: f64,
    pub cost: f64,
}

impl Target<'_> {
    /// The best way, and whether it gives the rows in the order of `order` (places of the wide row).
    pub fn choose(&self, conditions: &[Expr], order: &[SortKey], prefers_order: bool) -> (Choice, bool) {
        let ranges = self.ranges(conditions.iter());
        let full = Access::default();
        // FORCE INDEX: the whole table is the last resort.
        let dear = if self.allowed.is_some_and(|allowed| allowed.forced) { 1e9 } else { 1.0 };
        let cost = (self.rows * ROW + WHOLE) * dear;
        let (implied, served) = (Vec::new(), Vec::new());
        let mut best = (Choice { access: full, implied, served, rows: self.rows, cost }, false);
        for way in self.ways((conditions, &ranges), order) {
            better(&mut best, way, prefers_order);
        }
        // What is found by one key, or is little, is not found with less by several.
        if !best.0.access.is_point && best.0.cost > UNION {
            let others = (0..conditions.len()).filter(|by| !best.0.served.contains(by));
            let unions: Vec<Choice> = others.filter_map(|by| self.union(conditions, by)).collect();
            unions.into_iter().for_each(|union| better(&mut best, (union, order.is_empty()), prefers_order));
        }
        best
    }

    /// By each key that may be used.
    fn ways(&self, ranges: (&[Expr], &ColumnRanges), order: &[SortKey]) -> Vec<(Choice, bool)> {
        let may_primary = self.allowed.is_none_or(|allowed| allowed.primary);
        let primary = self.table.primary.iter().filter(|_| may_primary);
        let mut ways: Vec<(Choice, bool)> =
            primary.map(|parts| self.way((None, &[]), parts, true, ranges, order)).collect();
        for (at, index) in self.table.indexes.iter().enumerate() {
            let may_use = !index.invisible
                && !index.is_unseen
                && self.allowed.is_none_or(|allowed| allowed.indexes.contains(&at));
            if let Some(by) = may_use.then(|| self.holding_all(index, ranges.0)).flatten() {
                if let Some(form) = index.terms {
                    let column = index.parts[0].column;
                    ways.extend(
                        self.ways_of_terms(at, (column, form), &by, ranges.0).map(|way| (way, order.is_empty())),
                    );
                    continue;
                }
                ways.push(self.way((Some(at), &by), &index.parts, index.unique, ranges, order));
            }
        }
        ways
    }

    /// Returns the ways through an index of terms: by each condition that tests the terms of its column.
    fn ways_of_terms(
        &self,
        index: usize,
        (column, form): (usize, TermForm),
        predicate_by: &[usize],
        conditions: &[Expr],
    ) -> impl Iterator<Item = Choice> {
        conditions.iter().enumerate().filter_map(move |(by, condition)| {
            let (test, other) = self.test_of(condition, column).filter(|(test, _)| test.is_told_by(form))?;
            let access =
                Access { index: Some(index), equal: vec![vec![other.clone()]], test: Some(test), ..Access::default() };
            let guessed = self.rows * self.estimates.selectivity(condition).min(KEPT_TERM);
            let rows = self.estimates.measured(self.table, &access).unwrap_or(guessed).max(0.01);
            let served = std::iter::once(by).chain(predicate_by.iter().copied()).collect();
            let cost = rows * (ROW + LOOKUP + HASH) + RANGE * 2.0;
            Some(Choice { access, implied: Vec::new(), served, rows, cost })
        })
    }

    /// Returns the test of a column's terms that a condition is, and its other side, which is known before the row is read.
    fn test_of<'c>(&self, condition: &'c Expr, column: usize) -> Option<(TermTest, &'c Expr)> {
        let (test, left, right) = match condition {
            Expr::Call(call) => match (call.function.term_test, &call.arguments[..]) {
                (Some(test), [left, right]) => (test, left, right),
                _ => return None,
            },
            Expr::Compare(compare) if compare.op == Comparison::Equal => {
                (TermTest::Equals, &compare.left, &compare.right)
            }
            _ => return None,
        };
        let is_column = |side: &Expr, other: &Expr| self.column_of(side) == Some(column) && self.is_known(other);
        match () {
            () if is_column(left, right) => Some((test, right)),
            () if is_column(right, left) => test.turned().map(|test| (test, left)),
            () => None,
        }
    }

    /// The way through several keys that the condition's arms lead to, one each; None: an arm leads through none.
    fn union(&self, conditions: &[Expr], by: usize) -> Option<Choice> {
        let Expr::Or(arms) = &conditions[by] else { return None };
        if arms.len() > ARMS {
            return None;
        }
        let (mut access, mut rows, mut cost) = (Access::default(), 0.0, 0.0);
        for arm in arms {
            // What the other conditions say holds in every arm.
            let others = conditions.iter().enumerate().filter(|(at, _)| *at != by).map(|(_, other)| other);
            let all: Vec<Expr> = parts(arm).into_iter().chain(others).cloned().collect();
            let ranges = self.ranges(all.iter());
            let of_arm = |choice: &Choice| {
                let lookup = if choice.access.index.is_some() { LOOKUP } else { 0.0 };
                choice.rows * (ROW + lookup + HASH) + RANGE * choice.access.within.len().max(1) as f64
            };
            let ways = self.ways((&all, &ranges), &[]).into_iter().map(|(choice, _)| choice);
            let way = ways.filter(|choice| !choice.access.is_full()).min_by(|a, b| of_arm(a).total_cmp(&of_arm(b)))?;
            (rows, cost) = (rows + way.rows, cost + of_arm(&way));
            access.union.push(Access { backward: false, ..way.access });
        }
        let rows = rows.min(self.rows);
        Some(Choice { access, implied: Vec::new(), served: vec![by], rows, cost })
    }

    fn way(
        &self,
        (index, predicate_by): (Option<usize>, &[usize]),
        parts: &[Part],
        unique: bool,
        (conditions, ranges): (&[Expr], &ColumnRanges),
        order: &[SortKey],
    ) -> (Choice, bool) {
        let mut access = Access { index, rules: ranges.rules, ..Access::default() };
        let mut has_list = false;
        let mut has_null = false;
        let (mut taken, mut served) = (Vec::new(), Vec::new());
        let mut whole = None;
        for part in parts {
            let Some((equal, by)) = ranges.of(part.column).and_then(|bounds| bounds.equal.as_ref()) else { break };
            if is_list(equal) && std::mem::replace(&mut has_list, true) {
                break;
            }
            // A prefix finds more than what is equal; what follows it in the key is of no use then.
            has_null |= equal.iter().any(Expr::is_null_literal);
            access.equal.push(equal.clone());
            served.push(*by);
            if part.prefix.is_none() {
                taken.push(*by);
            }
            if part.prefix.is_some() {
                break;
            }
        }
        let is_whole = access.equal.len() == parts.len() && parts.iter().all(|part| part.prefix.is_none());
        if unique && is_whole && !has_null {
            access.is_point = true;
        } else if access.equal.len() < parts.len()
            && access.equal.iter().zip(parts).all(|(_, part)| part.prefix.is_none())
        {
            let part = &parts[access.equal.len()];
            if let Some(bounds) =
                ranges.of(part.column).filter(|bounds| part.prefix.is_none() && bounds.equal.is_none())
            {
                let limits = bounds.low.iter().chain(&bounds.high).map(|(_, by)| *by);
                taken.extend(limits.clone());
                served.extend(limits);
                whole = bound(&mut access, bounds, has_list, &mut served);
            }
        }
        // The rows of a partial index.
        let share: f64 = predicate_by.iter().map(|at| self.estimates.selectivity(&conditions[*at])).product();
        let rows = self.found(&access, share, conditions, &served);
        served.extend(predicate_by);
        let ordered = !has_list
            && serves_order(parts, access.equal.len(), order, self.offset, &mut access.backward, access.is_point);
        // Through an index each row is looked up on its own, unless the entry is enough, or says already that it is not wanted.
        let each = match index {
            Some(at) if (self.covers)(at) => ROW,
            Some(at) if !access.is_full() => ROW + LOOKUP * self.left(at, conditions, &served),
            Some(_) => ROW + LOOKUP,
            None => ROW,
        };
        let begin = if access.is_full() { WHOLE } else { RANGE * access.within.len().max(1) as f64 };
        let cost = rows * each + begin;
        let mut implied = implied(conditions, &taken);
        implied.extend(whole);
        implied.retain(|at| self.formulas.is_empty() || self.is_direct(&conditions[*at]));
        (Choice { access, implied, served, rows, cost }, ordered)
    }

    /// Returns the fraction of entries whose rows must be read.
    fn left(&self, index: usize, conditions: &[Expr], served: &[usize]) -> f64 {
        let others = conditions.iter().enumerate().filter(|(at, _)| !served.contains(at));
        others
            .filter(|(_, condition)| (self.pushes)(index, condition))
            .map(|(_, one)| self.estimates.selectivity(one))
            .product()
    }

    /// About how many rows the access finds: measured in the tree where its bounds are known, else by what is known of its key and columns.
    fn found(&self, access: &Access, share: f64, conditions: &[Expr], served: &[usize]) -> f64 {
        let lists = self.estimates.values(access);
        if access.is_point {
            return lists;
        }
        if access.is_full() {
            return (self.rows * share).max(0.01);
        }
        if let Some(rows) = self.estimates.measured(self.table, access) {
            return rows.max(0.01);
        }
        let known = self.table.live.statistics();
        let map = access.index.map_or(self.table.map, |at| self.table.indexes[at].map);
        let equal = access.equal.len();
        let distinct = known.as_ref().and_then(|known| known.distinct(map, equal));
        let rows = match distinct {
            Some(distinct) => self.rows * share / distinct * lists,
            None if equal > 0 => (self.rows * share / 10f64.powi(equal as i32)).max(1.0) * lists,
            None => self.rows * share,
        };
        let mut selectivity = 1.0;
        if access.is_bounded() {
            // Behind those of the equal parts.
            let mut bounds: Vec<usize> = served[equal..].to_vec();
            bounds.dedup();
            selectivity = bounds.iter().map(|at| self.estimates.selectivity(&conditions[*at])).product();
            if access.low.is_some() && access.high.is_some() && bounds.len() == 2 && selectivity >= KEPT * KEPT {
                selectivity = KEPT_BETWEEN;
            }
        }
        (rows * selectivity).max(0.01)
    }
}

/// Takes the bounds of the part behind the equal ones; gives the condition of several ranges, if it says nothing else. Ranges behind each value of a list would be too many.
fn bound(access: &mut Access, bounds: &Bounds, has_list: bool, served: &mut Vec<usize>) -> Option<usize> {
    let limit = |limit: &Option<(Limit, usize)>| limit.as_ref().map(|(limit, _)| limit.clone());
    (access.low, access.high) = (limit(&bounds.low), limit(&bounds.high));
    let within = bounds.within.as_ref().filter(|_| !has_list)?;
    access.within = within.spans.clone();
    served.push(within.by);
    within.is_all.then_some(within.by)
}

/// Of the conditions whose bounds were taken, once for each bound, those that are taken whole and mean for keys what they mean for values.
fn implied(conditions: &[Expr], taken: &[usize]) -> Vec<usize> {
    let times = |at: usize| taken.iter().filter(|taken| **taken == at).count();
    let mut implied: Vec<usize> =
        taken.iter().copied().filter(|at| says_no_more(&conditions[*at], times(*at))).collect();
    implied.sort_unstable();
    implied.dedup();
    implied
}

fn better(best: &mut (Choice, bool), way: (Choice, bool), prefers_order: bool) {
    let weight = |(choice, ordered): &(Choice, bool)| {
        // A sort costs about as much again, unless a limit makes it cost everything.
        match (*ordered, prefers_order) {
            (false, true) => choice.cost * 3.0,
            (true, true) => choice.cost.min(50.0 + choice.cost / 10.0),
            (false, false) => choice.cost * 1.3,
            (true, false) => choice.cost,
        }
    };
    if weight(&way) < weight(best) || (way.1 && !best.1 && way.0.cost <= best.0.cost) {
        *best = way;
    }
}

/// Do entries of the index, after `equal` parts that do not change, come in this order? If they do backward, says so.
fn serves_order(
    parts: &[Part],
    equal: usize,
    order: &[SortKey],
    offset: usize,
    backward: &mut bool,
    is_point: bool,
) -> bool {
    if order.is_empty() || is_point {
        return true;
    }
    let mut at = equal;
    let mut direction = None;
    for key in order {
        let is_fixed = parts[..equal].iter().any(|part| part.prefix.is_none() && part.column + offset == key.at);
        if is_fixed {
            continue;
        }
        let Some(part) = parts.get(at) else { return false };
        if part.prefix.is_some() || part.column + offset != key.at {
            return false;
        }
        let turned = part.order != key.order;
        if turned && part.order.reversed() != key.order {
            return false;
        }
        if *direction.get_or_insert(turned) != turned {
            return false;
        }
        at += 1;
    }
    *backward = direction.unwrap_or(false);
    true
}
