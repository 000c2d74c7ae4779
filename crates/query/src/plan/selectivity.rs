//! Selectivity: the fraction of rows that a condition keeps, estimated from statistics.
//!
//! Conditions are assumed to be independent. Values count if they are known at planning: literals, and parameters if
//! the plan is made for one run. Selectivity never affects a result (QU-22).

use crate::catalog::statistics::ColumnStatistics;
use crate::catalog::table::Table;
use crate::exec::ranges::{Bounds, bounds, entries_of_test};
use crate::nodes::comparison::{Coerced, Comparator, Comparison};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::{Between, Call, Compare, Expr, In};
use crate::nodes::function::{Folding, Prefix, PrefixOf};
use crate::nodes::node::{Access, Node};
use crate::nodes::relation::{Origin, ScopeTable};
use crate::nodes::walk::is_volatile;
use crate::plan::cost::{KEPT, KEPT_BETWEEN, KEPT_EQUAL, ROWS};
use crate::plan::estimate::estimate;
use crate::plan::statistics::Statistics;
use crate::types::Type;
use crate::value::Value;
use datum::Storage;

/// The number of elements of an array of which nothing is known.
const ELEMENTS: f64 = 10.0;

/// The planner's view of tables and values.
#[derive(Clone, Copy)]
pub struct StatisticsView<'p> {
    pub tables: &'p [ScopeTable],
    pub statistics: &'p dyn Statistics,
    /// The values of the parameters. Empty if they are unknown.
    pub values: &'p [Value],
}

/// How many columns tell the rows apart: those of groups.
fn keys(node: &Node) -> usize {
    match node {
        Node::Project { input, .. } => keys(input),
        Node::Group(group) => group.keys.len().max(1),
        _ => 1,
    }
}

/// Ranges of an access that are measured in the tree; beyond, statistics must do.
const DIVES: usize = 16;

impl StatisticsView<'_> {
    /// Without the parameters' values: a plan may have tens of thousands, and is asked about each.
    fn context(&self) -> EvalContext {
        EvalContext::new()
    }

    /// The value of an expression that is the same for all rows, if it is known already.
    pub fn constant(&self, expr: &Expr) -> Option<Value> {
        if let Expr::Literal(value, _) = expr {
            return Some(value.clone());
        }
        if let Expr::Parameter(at, _) = expr {
            return self.values.get(*at).cloned();
        }
        let (mut known, mut has_parameters) = (!is_volatile(expr), false);
        expr.walk(&mut |part| match part {
            Expr::Column(..) => known = false,
            part if part.reads_outside() => known = false,
            Expr::Parameter(at, _) => {
                has_parameters = true;
                known &= *at < self.values.len();
            }
            _ => {}
        });
        if !known {
            return None;
        }
        if !has_parameters {
            return expr.eval(&[], &mut self.context()).ok();
        }
        let mut filled = expr.clone();
        filled.rewrite(&mut |part| {
            if let Expr::Parameter(at, ty) = part {
                *part = Expr::Literal(self.values[*at].clone(), ty.clone());
            }
        });
        filled.eval(&[], &mut self.context()).ok()
    }

    /// Returns the value of a constant on which the plan is to depend. If it is a parameter's, the plan is for this run only.
    pub fn decisive(&self, expr: &Expr) -> Option<Value> {
        let (mut has_parameters, mut is_fixed) = (false, true);
        expr.walk(&mut |part| match part {
            Expr::Literal(..) => {}
            Expr::Parameter(..) => has_parameters = true,
            Expr::Call(call) => is_fixed &= call.function.folding != Folding::None && !call.function.volatile,
            _ => is_fixed = false,
        });
        let is_known = is_fixed && (!has_parameters || self.statistics.may_depend_on_values());
        if is_known { self.constant(expr) } else { None }
    }

    fn table_at(&self, place: usize) -> Option<&ScopeTable> {
        self.tables.iter().find(|table| {
            !matches!(table.origin, Origin::View(_))
                && (table.offset..table.offset + table.columns.len()).contains(&place)
        })
    }

    /// About how many rows the table has.
    pub fn rows(&self, table: &ScopeTable) -> f64 {
        match &table.origin {
            Origin::Base(base) => base.live.rows().map_or(ROWS, |rows| (rows as f64).max(1.0)),
            Origin::Derived { node } => estimate(node).rows.max(1.0),
            Origin::Lateral { node, .. } => estimate(node).rows.max(1.0),
            Origin::View(_) | Origin::System(_) => ROWS,
        }
    }

    /// Calls `look` with the statistics of a column, its type, and the number of rows of its table.
    fn column<T>(&self, expr: &Expr, look: impl FnOnce(&ColumnStatistics, &Type, f64) -> T) -> Option<T> {
        let Expr::Column(place, _) = expr else { return None };
        let table = self.table_at(*place)?;
        let Origin::Base(base) = &table.origin else { return None };
        let column = &base.columns[place - table.offset];
        let known = base.live.statistics()?;
        let statistics = known.column(column.slot)?;
        Some(look(statistics, &column.ty, self.rows(table)))
    }

    /// How many different values the expression has, if it is a column of which that is known.
    pub fn distinct(&self, expr: &Expr) -> Option<f64> {
        self.column(expr, |column, _, _| (column.distinct as f64).max(1.0)).or_else(|| {
            let Expr::Column(place, _) = expr else { return None };
            let table = self.table_at(*place)?;
            match &table.origin {
                Origin::Derived { node } => Some(self.rows(table).powf(1.0 / keys(node) as f64)),
                _ => None,
            }
        })
    }

    /// Returns the fraction of rows, or of pairs of rows, that satisfy the condition.
    pub fn selectivity(&self, condition: &Expr) -> f64 {
        if let Some(value) = self.constant(condition) {
            let holds =
                matches!(value, Value::Int(truth) if truth != 0) || matches!(value, Value::UInt(truth) if truth != 0);
            return f64::from(u8::from(holds));
        }
        let selectivity = match condition {
            Expr::And(parts) => parts.iter().map(|part| self.selectivity(part)).product(),
            Expr::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - self.selectivity(part)).product::<f64>(),
            Expr::Not(inner) => 1.0 - self.selectivity(inner),
            Expr::Compare(compare) => self.of_compare(compare),
            Expr::Between(between) => self.of_between(between),
            Expr::In(list) => self.of_list(list),
            Expr::Call(call) => match call.function.prefix {
                Some(prefix) => self.of_pattern(call, prefix).unwrap_or(KEPT_BETWEEN),
                None => KEPT,
            },
            Expr::IsNull(inner) => self.column(inner, |column, _, _| 1.0 - column.some()).unwrap_or(KEPT_EQUAL),
            condition if condition.reads_outside() => 0.5,
            _ => KEPT,
        };
        selectivity.clamp(1e-9, 1.0)
    }

    fn of_compare(&self, compare: &Compare) -> f64 {
        let (left, right) = (&compare.left, &compare.right);
        if let (Expr::Column(..), Expr::Column(..)) = (left, right) {
            return match compare.op {
                Comparison::Equal | Comparison::NullSafeEqual => {
                    let most = self.distinct(left).into_iter().chain(self.distinct(right)).fold(0.0, f64::max);
                    if most > 0.0 { 1.0 / most } else { KEPT_EQUAL }
                }
                Comparison::NotEqual => 1.0 - KEPT_EQUAL,
                _ => KEPT,
            };
        }
        let sides = [(left, right, compare.op), (right, left, compare.op.flipped())];
        let found = sides.into_iter().find_map(|(column, other, op)| {
            self.column(column, |known, ty, _| {
                let equal = |value: Option<&Value>| known.equal(value, ty);
                let value = self.constant(other).map(|value| compare.by.coerce(&value, ty, &self.context()));
                match (op, value) {
                    (_, Some(Coerced::Null)) => 0.0,
                    (Comparison::Equal | Comparison::NullSafeEqual, Some(Coerced::Exact(value))) => equal(Some(&value)),
                    (Comparison::Equal | Comparison::NullSafeEqual, Some(Coerced::Below | Coerced::Above)) => 0.0,
                    (Comparison::Equal | Comparison::NullSafeEqual, _) => equal(None),
                    (Comparison::NotEqual, Some(Coerced::Exact(value))) => known.some() - equal(Some(&value)),
                    (Comparison::NotEqual, _) => known.some() - equal(None),
                    (op, Some(Coerced::Exact(value))) => {
                        let is_upper = matches!(op, Comparison::Less | Comparison::LessEqual);
                        let inclusive = matches!(op, Comparison::LessEqual | Comparison::Greater);
                        match known.below(&value, inclusive, ty) {
                            Some(below) if is_upper => below,
                            Some(below) => known.some() - below,
                            None => KEPT,
                        }
                    }
                    (Comparison::Less | Comparison::LessEqual, Some(Coerced::Above))
                    | (Comparison::Greater | Comparison::GreaterEqual, Some(Coerced::Below)) => known.some(),
                    (_, Some(Coerced::Above | Coerced::Below)) => 0.0,
                    _ => KEPT,
                }
            })
        });
        found.unwrap_or(match compare.op {
            Comparison::Equal | Comparison::NullSafeEqual => KEPT_EQUAL,
            Comparison::NotEqual => 1.0 - KEPT_EQUAL,
            _ => KEPT,
        })
    }

    fn of_between(&self, between: &Between) -> f64 {
        let selectivity = self.column(&between.needle, |known, ty, _| {
            let bound = |expr: &Expr, by: Comparator, inclusive: bool| match by.coerce(
                &self.constant(expr)?,
                ty,
                &self.context(),
            ) {
                Coerced::Exact(value) => known.below(&value, inclusive, ty),
                Coerced::Below => Some(0.0),
                Coerced::Above => Some(known.some()),
                _ => None,
            };
            Some((bound(&between.high, between.high_by, true)? - bound(&between.low, between.low_by, false)?).max(0.0))
        });
        let selectivity = selectivity.flatten().unwrap_or(KEPT_BETWEEN);
        if between.negated { 1.0 - selectivity } else { selectivity }
    }

    fn of_list(&self, list: &In) -> f64 {
        let one = |item: &Expr, by: Comparator| {
            let known = self.column(&list.needle, |known, ty, _| {
                match self.constant(item).map(|value| by.coerce(&value, ty, &self.context())) {
                    Some(Coerced::Exact(value)) => known.equal(Some(&value), ty),
                    Some(Coerced::Null | Coerced::Below | Coerced::Above) => 0.0,
                    _ => known.equal(None, ty),
                }
            });
            known.unwrap_or(KEPT_EQUAL)
        };
        let unknown = || self.column(&list.needle, |known, ty, _| known.equal(None, ty)).unwrap_or(KEPT_EQUAL);
        let of_item = |item: &Expr, by: Comparator| match item {
            Expr::Elements(array) => match self.constant(array) {
                Some(Value::Array(array)) => array.len() as f64 * unknown(),
                Some(_) => 0.0,
                None => ELEMENTS * unknown(),
            },
            item => one(item, by),
        };
        let selectivity = list.list.iter().map(|(item, by)| of_item(item, *by)).sum::<f64>().min(if list.negated {
            0.95
        } else {
            1.0
        });
        let is_guessed = self.distinct(&list.needle).is_none();
        let selectivity = if is_guessed { selectivity.min(0.5) } else { selectivity };
        if list.negated { 1.0 - selectivity } else { selectivity }
    }

    /// Of a pattern that begins with something: what the column's spread says of texts that begin so.
    fn of_pattern(&self, call: &Call, prefix: PrefixOf) -> Option<f64> {
        let Prefix { bytes, is_whole } = prefix(call, &mut |expr| self.constant(expr))?;
        let begin = String::from_utf8(bytes).ok()?;
        let selectivity = self.column(&call.arguments[0], |known, ty, _| match is_whole {
            true => Some(known.equal(None, ty)),
            false if ty.storage == Storage::Text => known.begins(&begin, ty),
            false => None,
        });
        selectivity.flatten()
    }

    /// Returns about how many combinations of values the access names.
    pub fn values(&self, access: &Access) -> f64 {
        let count = |expr: &Expr| match expr {
            Expr::Elements(array) => match self.constant(array) {
                Some(Value::Array(array)) => array.len() as f64,
                Some(_) => 0.0,
                None => ELEMENTS,
            },
            _ => 1.0,
        };
        access.equal.iter().map(|values| values.iter().map(count).sum::<f64>()).product()
    }

    /// About how many rows the access finds, measured in the tree: if all its bounds are known and it is not of too many ranges.
    pub fn measured(&self, table: &Table, access: &Access) -> Option<f64> {
        if self.values(access) * access.within.len().max(1) as f64 > DIVES as f64
            || access.exprs().any(|expr| self.constant(expr).is_none())
        {
            return None;
        }
        let map = access.index.map_or(table.map, |at| table.indexes[at].map);
        let mut ctx = EvalContext::new();
        ctx.parameters = self.values.to_vec();
        let extent = |(from, to): &Bounds| {
            self.statistics.extent(map, from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice))
        };
        let ranges = match access.test {
            None => bounds(table, access, &mut ctx).ok()?,
            Some(test) => {
                let records = |_, entries: &Bounds| extent(entries).unwrap_or(0.0);
                let entries = entries_of_test(table, access, test, &[], &mut ctx, records).ok()?;
                if entries.len() > DIVES {
                    return None;
                }
                entries
            }
        };
        ranges.iter().map(extent).sum()
    }
}
