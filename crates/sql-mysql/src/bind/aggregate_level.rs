//! Aggregate levels: the query block that an aggregate is evaluated in, which may be an outer one.
//!
//! `HAVING EXISTS (SELECT 1 FROM u WHERE u.x = SUM(t.b))` sums over the rows of `t`, as in MySQL. An aggregate belongs
//! to the innermost block whose columns its arguments use, if the subquery is in a place there that allows aggregates
//! (select list, HAVING, ORDER BY). Otherwise it belongs to the next block further in that allows them, and finally to
//! its own. COUNT(*) has no columns and belongs to its own block, except in a WHERE.
//!
//! Hard part: the columns are known only after binding, so arguments inside subqueries are bound twice, first to find
//! the level (`reached`). A block without GROUP BY may meet an aggregate in a subquery after its select list was bound
//! over ungrouped rows. It is then bound again over groups (`Scope::summoned`, `select`).

use syntax::tree as ast;

use crate::bind::Bind;
use crate::bind::aggregate::aggregates;
use crate::error::{self, Result};
use crate::scalar::aggregate::AggregateKind;
use crate::value::Value;
use query::nodes::expr::Expr;

/// The innermost block referenced while arguments are bound.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The aggregate's block; references among blocks further in do not count.
    own: usize,
    innermost: Option<usize>,
}

impl Reach {
    /// Records a reference to a column of that block.
    pub fn note(&mut self, depth: usize) {
        if depth <= self.own {
            self.innermost = self.innermost.max(Some(depth));
        }
    }
}

impl Bind<'_> {
    /// Returns whether the node has an aggregate of this block, outside subqueries. The node is in a place that allows
    /// aggregates.
    pub fn has_own_aggregate(&mut self, node: &ast::Expr) -> Result<bool> {
        for (kind, function) in aggregates(node) {
            if self.home(kind, function, true)? + 1 == self.scopes.len() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the depth of the block that an aggregate belongs to. `may_stand` tells whether this block allows it
    /// here.
    pub fn home(&mut self, kind: AggregateKind, function: &ast::Function, may_stand: bool) -> Result<usize> {
        let own = self.scopes.len() - 1;
        // MySQL treats ANY_VALUE as an ordinary function.
        if kind == AggregateKind::AnyValue || !self.scopes[..own].iter().any(|scope| scope.above) {
            return Ok(own);
        }
        let reach = self.reached(kind, function)?;
        if reach == Some(own) || reach.is_none() && may_stand {
            return Ok(own);
        }
        let first = reach.unwrap_or(0);
        if reach.is_some() && self.scopes[first].above {
            return Ok(first);
        }
        Ok((first..own).rev().find(|depth| self.scopes[*depth].above).unwrap_or(own))
    }

    /// Returns the innermost block, up to this one, whose columns the arguments use. Restores all binder state but the
    /// used columns.
    fn reached(&mut self, kind: AggregateKind, function: &ast::Function) -> Result<Option<usize>> {
        let own = self.scopes.len() - 1;
        let grouped: Vec<_> = self.scopes.iter_mut().map(|scope| scope.grouped.take()).collect();
        let gathers = std::mem::replace(&mut self.scope().gathers, true);
        let (correlations, uses) = (self.correlations.clone(), self.uses);
        let before = self.reach.replace(Reach { own, innermost: None });
        let called = self.without_windows(|bind| bind.call(kind, function));
        let reach = std::mem::replace(&mut self.reach, before);
        // An error ends the statement, so nothing needs to be restored.
        called?;
        (self.correlations, self.uses) = (correlations, uses);
        self.scope().gathers = gathers;
        for (scope, grouped) in self.scopes.iter_mut().zip(grouped) {
            scope.grouped = grouped;
        }
        Ok(reach.and_then(|reach| reach.innermost))
    }

    /// Binds an aggregate of an outer block and returns its result as an outer reference.
    pub fn aggregate_around(&mut self, depth: usize, kind: AggregateKind, function: &ast::Function) -> Result<Expr> {
        if self.reach.is_some() {
            return Ok(Expr::null());
        }
        let (inner, reads) = (self.scopes.split_off(depth + 1), self.correlations.split_off(depth + 1));
        let bound = self.aggregate(kind, function);
        self.scopes.extend(inner);
        self.correlations.extend(reads);
        Ok(self.read_inside(depth, bound?))
    }

    /// Rewrites an expression of that block's rows for the current block, as outer references.
    pub fn read_inside(&mut self, depth: usize, mut expr: Expr) -> Expr {
        let inner = &mut self.correlations[depth + 1..];
        expr.rewrite(&mut |expr| {
            let Expr::Column(at, ty) = expr else { return };
            for reads in inner.iter_mut().filter(|reads| !reads.contains(&(depth, *at))) {
                reads.push((depth, *at));
            }
            *expr = Expr::Outer { depth, at: *at, ty: ty.clone() };
        });
        expr
    }

    /// Adds an aggregate to this block and returns the place of its result in a group's row.
    pub fn aggregate(&mut self, kind: AggregateKind, function: &ast::Function) -> Result<Expr> {
        let scope = self.scope();
        let is_summoned = scope.grouped.is_none();
        if is_summoned && (!scope.above || scope.gathers) {
            return Err(error::INVALID_GROUP_FUNC_USE.bare());
        }
        // The arguments are bound over the grouping's input rows.
        let call = self.below(|bind| bind.without_windows(|bind| bind.call(kind, function)))?;
        let ty = call.aggregate.ty.clone();
        let scope = self.scope();
        scope.summoned |= is_summoned;
        let Some(grouped) = &mut scope.grouped else { return Ok(Expr::Literal(Value::Null, ty)) };
        let known = grouped
            .calls
            .iter()
            .enumerate()
            .position(|(at, other)| grouped.level != Some(at) && format!("{other:?}") == format!("{call:?}"));
        let at = known.unwrap_or_else(|| {
            grouped.calls.push(call);
            grouped.calls.len() - 1
        });
        Ok(Expr::shown(Expr::Column(grouped.keys.len() + at, ty)))
    }
}
