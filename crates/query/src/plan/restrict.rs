//! What an OR over several tables says of one of them: `(a.x = 1 AND b.y > 2) OR (a.x = 5 AND b.y < 0)` is true of no row of `a` but those with `a.x = 1 OR a.x = 5`.
//!
//! The OR itself is looked at when all its tables are joined; what it says of one is looked at before, and makes few rows of many. It is said besides: a row for
//! which the OR holds has an arm all of whose parts hold.

use crate::plan::join::Planner;
use crate::plan::walk::{columns, has_subquery, is_volatile, parts_of, same};
use crate::scalar::Expr;

impl Planner<'_> {
    /// The further conditions that follow, each on one of these tables.
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

    /// The OR of what every arm asks of the table. None: some arm asks nothing of it.
    fn of_table(&self, table: usize, arms: &[Vec<Expr>]) -> Option<Expr> {
        let of_arm = |parts: &Vec<Expr>| {
            let is_of_table = |part: &&Expr| !columns(part).is_empty() && self.covers(&[table], part) && is_plain(part);
            let of_table: Vec<Expr> = parts.iter().filter(is_of_table).cloned().collect();
            (!of_table.is_empty()).then(|| Expr::and(of_table))
        };
        arms.iter().map(of_arm).collect::<Option<Vec<Expr>>>().map(Expr::or)
    }
}

/// To look at it twice costs little and says the same.
fn is_plain(part: &Expr) -> bool {
    !has_subquery(part) && !is_volatile(part)
}
