//! Rows and answers that a statement computes once and looks up again: of subqueries and common table expressions.

use std::collections::HashMap;
use std::sync::Arc;

use crate::exec::spill::keys::Keys;
use crate::exec::spill::rows::Rows;
use crate::exec::subquery_cache::SubqueryCache;
use crate::nodes::context::EvalContext;

/// By the number of the subquery or the common table expression.
#[derive(Default)]
pub struct Caches {
    /// SubqueryCache of subqueries that depend on nothing.
    pub answers: HashMap<usize, Arc<Answer>>,
    /// SubqueryCache of correlated subqueries.
    pub repeats: HashMap<usize, SubqueryCache>,
    /// Hashed subqueries, built or to be built.
    pub listings: HashMap<usize, Listing>,
    /// Rows of common table expressions, and of the last round of recursive ones under way.
    pub commons: HashMap<usize, Arc<Rows>>,
}

impl Caches {
    /// Keeps the maps' memory.
    pub fn clear(&mut self) {
        self.answers.clear();
        self.repeats.clear();
        self.listings.clear();
        self.commons.clear();
    }
}

/// The caches of the running statement.
pub fn caches(ctx: &mut EvalContext) -> &mut Caches {
    ctx.slot_mut()
}

/// The cost of asking row by row so far, and the hash set, once that has cost as much as building it.
#[derive(Default)]
pub struct Listing {
    pub(super) asked: f64,
    pub(super) keys: Option<Arc<Keys>>,
}

/// The result of a subquery, cached if it is not correlated.
#[derive(Default)]
pub struct Answer {
    pub(super) is_empty: bool,
    /// Its rows. Where keys answer the question, those that have a NULL among their values; and of several columns all.
    pub(super) rows: Rows,
    pub(super) nulls: Rows,
    pub(super) keys: Keys,
}
