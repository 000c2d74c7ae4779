//! Predicate extraction: conditions on one table, or one column, that an OR over several implies.
//!
//! `(a.x = 1 AND b.y > 2) OR (a.x = 5 AND b.y < 0)` implies `a.x = 1 OR a.x = 5`. The OR itself is evaluated when all
//! its tables are joined; the implied condition filters `a` before. It is added, and the OR stays: a row that satisfies
//! the OR satisfies all conditions of one arm.
//!
//! Likewise `(x = 1 AND y > 2) OR (x = 5 AND y < 0)` implies `x IN (1, 5)`, which can lead through an index, and spares
//! rejected rows the evaluation of the other columns.

use crate::nodes::comparison::{Comparator, Comparison};
use crate::nodes::expr::{Expr, In};
use crate::nodes::relation::Origin;
use crate::nodes::walk::{has_subquery, is_volatile, parts_of, same};
use crate::plan::planner::Planner;

impl Planner<'_> {
    /// Returns the implied conditions, each on one of these tables.
    pub(super) fn restrictions(&self, tables: &[usize], conditions: &[Expr]) -> Vec<Expr> {
        let mut found: Vec<Expr> = Vec::new();
        for condition in conditions {
            let Expr::Or(arms) = condition else { continue };
            let arms: Vec<Vec<Expr>> = arms.iter().map(parts_of).collect();
            for table in tables.iter().filter(|table| !self.covers(&[**table], condition)) {
                let Some(restriction) = self.of_table(*table, &arms) else { continue };
                if conditions.iter().chain(&found).all(|known| !same(known, &restriction)) {
                    found.push(restriction);
                }
            }
        }
        found
    }

    /// Returns the OR of the conditions that the arms have on the table, or None if some arm has none.
    fn of_table(&self, table: usize, arms: &[Vec<Expr>]) -> Option<Expr> {
        let of_arm = |parts: &Vec<Expr>| {
            let is_of_table =
                |part: &&Expr| !part.columns().is_empty() && self.covers(&[table], part) && is_plain(part);
            let of_table: Vec<Expr> = parts.iter().filter(is_of_table).cloned().collect();
            (!of_table.is_empty()).then(|| Expr::and(of_table))
        };
        arms.iter().map(of_arm).collect::<Option<Vec<Expr>>>().map(Expr::or)
    }
}

/// Constants, each with the comparator of the column and it.
type Values = Vec<(Expr, Comparator)>;

/// The selectivity above which an implied list is not added.
const FEW: f64 = 0.4;
/// The most values of an implied list.
const LONGEST: usize = 64;

impl Planner<'_> {
    /// Inserts before the conditions on a table the lists that their ORs imply for one column, and removes an OR that
    /// is equivalent to its list.
    pub(super) fn list_values(&self, table: usize, conditions: &mut Vec<Expr>) {
        let mut found = Vec::new();
        conditions.retain(|condition| {
            let Expr::Or(arms) = condition else { return true };
            let arms: Vec<Vec<Expr>> = arms.iter().map(parts_of).collect();
            let Some((list, selectivity)) = self.best_list(table, &arms) else { return true };
            let is_whole = arms.iter().all(|arm| arm.len() == 1);
            if is_whole || selectivity < FEW {
                found.push(list);
            }
            !is_whole
        });
        conditions.splice(0..0, found);
    }

    /// Among the columns for which every arm has constants, chooses one with an index, or else the most selective.
    /// Returns the list and its selectivity.
    fn best_list(&self, table: usize, arms: &[Vec<Expr>]) -> Option<(Expr, f64)> {
        let known = &self.tables[table];
        let Origin::Base(base) = &known.origin else { return None };
        let leads = |column: usize| {
            let indexes = base.indexes.iter().filter(|index| index.terms.is_none()).map(|index| &index.parts[..]);
            base.primary.as_deref().into_iter().chain(indexes).any(|parts| parts[0].column == column)
        };
        let lists = arms.first()?.iter().filter_map(|part| {
            let (Expr::Column(place, ty), _) = values(part)? else { return None };
            let column = place.checked_sub(known.offset).filter(|column| *column < known.columns.len())?;
            let of_part = |part| values(part).filter(|(of, _)| is_column(of, *place)).map(|(_, values)| values);
            let all: Vec<Values> = arms.iter().map(|arm| arm.iter().find_map(of_part)).collect::<Option<_>>()?;
            let list = all.concat();
            let needle = Expr::Column(*place, ty.clone());
            let list = (list.len() <= LONGEST).then(|| In { needle, list, sorted: None, negated: false })?;
            let list = Expr::In(Box::new(list));
            let selectivity = self.estimates.selectivity(&list);
            Some((!leads(column), selectivity, list))
        });
        let best = lists.min_by(|(a, s, _), (b, t, _)| a.cmp(b).then(s.total_cmp(t)))?;
        Some((best.2, best.1))
    }
}

fn is_column(expr: &Expr, place: usize) -> bool {
    matches!(expr, Expr::Column(at, _) if *at == place)
}

/// Returns the expression that the condition compares with constants, and the constants.
fn values(part: &Expr) -> Option<(&Expr, Values)> {
    let is_value = |expr: &Expr| match expr {
        Expr::Call(call) if call.function.is_coercion() => {
            matches!(call.arguments[0], Expr::Literal(..) | Expr::Parameter(..))
        }
        expr => matches!(expr, Expr::Literal(..) | Expr::Parameter(..)),
    };
    match part {
        Expr::Compare(compare) if compare.op == Comparison::Equal => {
            let sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)];
            let (of, value) = sides.into_iter().find(|(_, value)| is_value(value))?;
            Some((of, vec![(value.clone(), compare.by)]))
        }
        Expr::In(list) if !list.negated => {
            list.list.iter().all(|(value, _)| is_value(value)).then(|| (&list.needle, list.list.clone()))
        }
        _ => None,
    }
}

/// Returns whether the condition is cheap and gives the same result if evaluated twice.
fn is_plain(part: &Expr) -> bool {
    !has_subquery(part) && !is_volatile(part)
}
