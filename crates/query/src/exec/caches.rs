//! Results that a statement computes once and reuses: of subqueries and common table expressions.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use crate::exec::spill::keys::Keys;
use crate::exec::spill::rows::Rows;
use crate::exec::subquery_cache::SubqueryCache;
use crate::nodes::context::EvalContext;
use crate::nodes::walk::RoundReaders;

/// Caches by the id of the subquery or common table expression.
#[derive(Default)]
pub struct Caches {
    /// Results of uncorrelated subqueries.
    pub answers: HashMap<usize, Arc<Answer>>,
    /// Results of correlated subqueries by outer values.
    pub repeats: HashMap<usize, SubqueryCache>,
    /// Hashed subqueries, built or still evaluated row by row.
    pub listings: HashMap<usize, Listing>,
    /// Rows of common table expressions, and of the previous round of recursive ones.
    pub commons: HashMap<usize, Arc<Rows>>,
    /// Recursive common table expressions whose rounds run as they are needed, and whose readers share the rows; `exec/recursion` knows their type.
    pub growing: HashMap<usize, Box<dyn Any + Send>>,
}

impl Caches {
    /// Forgets the results that depend on the rows of a round that is over.
    pub fn forget(&mut self, round: &RoundReaders) {
        for id in &round.commons {
            self.commons.remove(id);
            self.growing.remove(id);
        }
        for id in &round.subqueries {
            self.answers.remove(id);
            self.repeats.remove(id);
            self.listings.remove(id);
        }
    }

    /// Empties the caches but keeps the maps' allocations.
    pub fn clear(&mut self) {
        self.answers.clear();
        self.repeats.clear();
        self.listings.clear();
        self.commons.clear();
        self.growing.clear();
    }
}

/// Returns the caches of the running statement.
pub fn caches(ctx: &mut EvalContext) -> &mut Caches {
    ctx.slot_mut()
}

/// The accumulated cost of evaluation row by row, and the hash set once that cost reaches the cost of building it.
#[derive(Default)]
pub struct Listing {
    pub(super) asked: f64,
    pub(super) keys: Option<Arc<Keys>>,
}

/// The result of a subquery, cached if it is not correlated.
#[derive(Default)]
pub struct Answer {
    pub(super) is_empty: bool,
    /// The rows. Where a key set answers, only those with a NULL among several values, or all of them.
    pub(super) rows: Rows,
    pub(super) nulls: Rows,
    pub(super) keys: Keys,
}
