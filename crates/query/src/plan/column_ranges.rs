//! The ranges of columns that conditions on a table imply, in a form that an index can use: values, bounds, or several
//! ranges.
//!
//! An OR implies for a column the union of what its arms imply, if every arm implies something. For example, `k < 5 OR
//! (k = 9 AND x = 2)` implies that `k` is in one of two ranges. If the arms have no other conditions
//! (`Within::is_all`), the OR need not be rechecked where the ranges are exact.

use std::collections::BTreeMap;

use crate::nodes::comparison::{Comparator, Comparison, ComparisonRules, ComparisonType};
use crate::nodes::expr::Expr;
use crate::nodes::node::{Limit, Span};
use crate::plan::target::Target;

/// An OR of more ranges does not lead through an index.
const LONGEST: usize = 256;

/// The bounds of one column, each with the number of the condition that implies it.
#[derive(Default)]
pub struct Bounds {
    pub equal: Option<(Vec<Expr>, usize)>,
    pub low: Option<(Limit, usize)>,
    pub high: Option<(Limit, usize)>,
    pub within: Option<Within>,
}

/// A non-empty set of ranges.
pub struct Within {
    pub spans: Vec<Span>,
    pub by: usize,
    /// The condition is equivalent to the ranges.
    pub is_all: bool,
    /// The selectivity of the condition.
    selectivity: f64,
}

impl Bounds {
    /// Returns the ranges that the bounds allow, or None if they allow every value.
    fn spans(&self) -> Option<Vec<Span>> {
        if let Some((values, _)) = &self.equal {
            // Ranges are counted, and the elements of an array are known to the executor alone.
            if values.iter().any(|value| matches!(value, Expr::Elements(_))) {
                return None;
            }
            return Some(values.iter().cloned().map(Span::Equal).collect());
        }
        let limit = |limit: &Option<(Limit, usize)>| limit.as_ref().map(|(limit, _)| limit.clone());
        match (limit(&self.low), limit(&self.high), &self.within) {
            (None, None, within) => within.as_ref().map(|within| within.spans.clone()),
            (low, high, _) => Some(vec![Span::Between { low, high }]),
        }
    }

    /// Returns whether the ranges are equivalent to these conditions.
    fn is_all_of(&self, parts: &[&Expr]) -> bool {
        let taken: Vec<usize> = match (&self.equal, &self.low, &self.high, &self.within) {
            (Some((_, by)), ..) => vec![*by],
            (None, None, None, Some(within)) => return within.is_all && parts.len() == 1,
            (None, low, high, _) => low.iter().chain(high).map(|(_, by)| *by).collect(),
        };
        let times = |at: usize| taken.iter().filter(|taken| **taken == at).count();
        parts.iter().enumerate().all(|(at, part)| says_no_more(part, times(at)))
    }

    fn add(&mut self, op: Comparison, other: &Expr, by: usize) {
        match op {
            Comparison::Equal if !other.is_null_literal() => self.equal = Some((vec![other.clone()], by)),
            Comparison::Greater | Comparison::GreaterEqual if self.low.is_none() => {
                self.low = Some(((other.clone(), op == Comparison::GreaterEqual), by));
            }
            Comparison::Less | Comparison::LessEqual if self.high.is_none() => {
                self.high = Some(((other.clone(), op == Comparison::LessEqual), by));
            }
            _ => {}
        }
    }
}

/// The ranges of the columns of a table.
#[derive(Default)]
pub struct ColumnRanges {
    columns: BTreeMap<usize, Bounds>,
    /// The rules by which columns are compared with their bounds: those of the statement's dialect.
    pub rules: Option<&'static ComparisonRules>,
}

impl ColumnRanges {
    pub fn of(&self, column: usize) -> Option<&Bounds> {
        self.columns.get(&column)
    }

    fn at(&mut self, column: usize) -> &mut Bounds {
        self.columns.entry(column).or_default()
    }
}

impl Target<'_> {
    pub fn ranges<'e>(&self, conditions: impl Iterator<Item = &'e Expr>) -> ColumnRanges {
        let mut ranges = ColumnRanges::default();
        for (by, condition) in conditions.enumerate() {
            self.take(condition, by, &mut ranges);
        }
        ranges
    }

    fn take(&self, condition: &Expr, by: usize, ranges: &mut ColumnRanges) {
        match condition {
            Expr::Compare(compare) => {
                let sides = [
                    (&compare.left, &compare.right, compare.op),
                    (&compare.right, &compare.left, compare.op.flipped()),
                ];
                ranges.rules = Some(compare.by.rules);
                let usable = |(column, other, op)| Some((self.usable(column, other, compare.by)?, other, op));
                if let Some((at, other, op)) = sides.into_iter().find_map(usable) {
                    ranges.at(at).add(op, other, by);
                }
            }
            Expr::Between(between) if !between.negated => {
                ranges.rules = Some(between.low_by.rules);
                if let Some(at) = self.usable(&between.needle, &between.low, between.low_by) {
                    ranges.at(at).add(Comparison::GreaterEqual, &between.low, by);
                }
                if let Some(at) = self.usable(&between.needle, &between.high, between.high_by) {
                    ranges.at(at).add(Comparison::LessEqual, &between.high, by);
                }
            }
            Expr::In(list) if !list.negated => {
                ranges.rules = list.list.first().map(|(_, by)| by.rules).or(ranges.rules);
                let columns = list.list.iter().map(|(item, by)| self.usable(&list.needle, item, *by));
                let Some(Some(at)) = columns.reduce(|a, b| a.and(b)) else { return };
                let bounds = ranges.at(at);
                if bounds.equal.as_ref().is_none_or(|(known, _)| is_list(known)) {
                    // No value equals a NULL of the list, but as a key it would find the NULLs of the column.
                    let items = list.list.iter().map(|(item, _)| item).filter(|item| !item.is_null_literal());
                    bounds.equal = Some((items.cloned().collect(), by));
                }
            }
            Expr::IsNull(inner) => {
                if let Some(at) = self.column_of(inner) {
                    ranges.at(at).equal.get_or_insert_with(|| (vec![Expr::null()], by));
                }
            }
            Expr::Or(arms) if arms.len() <= LONGEST => self.take_arms(condition, arms, by, ranges),
            _ => {}
        }
    }

    /// Adds the ranges of the columns that every arm bounds.
    fn take_arms(&self, condition: &Expr, arms: &[Expr], by: usize, ranges: &mut ColumnRanges) {
        let mut columns: Vec<(usize, Vec<Span>, bool)> = Vec::new();
        for (nth, arm) in arms.iter().enumerate() {
            let parts = parts(arm);
            let of_arm = self.ranges(parts.iter().copied());
            ranges.rules = of_arm.rules.or(ranges.rules);
            if nth == 0 {
                columns = of_arm.columns.keys().map(|column| (*column, Vec::new(), true)).collect();
            }
            columns.retain_mut(|(column, spans, is_all)| {
                let Some((bounds, more)) = of_arm.of(*column).and_then(|bounds| Some((bounds, bounds.spans()?))) else {
                    return false;
                };
                spans.extend(more);
                *is_all &= bounds.is_all_of(&parts);
                spans.len() <= LONGEST
            });
            if columns.is_empty() {
                return;
            }
        }
        let selectivity = self.estimates.selectivity(condition);
        for (column, spans, is_all) in columns.into_iter().filter(|(_, spans, _)| !spans.is_empty()) {
            let within = &mut ranges.at(column).within;
            if within.as_ref().is_none_or(|known| selectivity < known.selectivity) {
                *within = Some(Within { spans, by, is_all, selectivity });
            }
        }
    }

    /// Returns the column if it is compared with a known value in a way that an index of it supports.
    fn usable(&self, column: &Expr, other: &Expr, by: Comparator) -> Option<usize> {
        let at = self.column_of(column)?;
        let ty = &self.table.columns[at].ty;
        by.may_use_index(ty).then_some(at).filter(|_| self.is_known(other))
    }
}

/// Returns whether there may be several values.
pub fn is_list(values: &[Expr]) -> bool {
    values.len() > 1 || matches!(values, [Expr::Elements(_)])
}

/// Returns the conjuncts of an arm.
pub fn parts(arm: &Expr) -> Vec<&Expr> {
    match arm {
        Expr::And(list) => list.iter().flat_map(parts).collect(),
        part => vec![part],
    }
}

/// Returns whether the condition, of which `taken` bounds are used, is equivalent to these bounds over keys.
pub fn says_no_more(condition: &Expr, taken: usize) -> bool {
    let is_plain = |by: Comparator| {
        matches!(
            by.ty,
            ComparisonType::Integer | ComparisonType::Decimal | ComparisonType::Text(_) | ComparisonType::Bytes
        )
    };
    match condition {
        _ if taken == 0 => false,
        Expr::Compare(compare) => is_plain(compare.by),
        Expr::Between(between) => taken == 2 && is_plain(between.low_by) && is_plain(between.high_by),
        Expr::In(list) => list.list.iter().all(|(_, by)| is_plain(*by)),
        _ => false,
    }
}
