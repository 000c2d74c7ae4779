//! Which query block an aggregate belongs to: not always the one in which it stands.
//!
//! `HAVING EXISTS (SELECT 1 FROM u WHERE u.x = SUM(t.b))` sums over the rows of `t`, as in MySQL: an aggregate is of the innermost block that its arguments have columns of, if aggregates may stand where
//! the subquery stands there (select list, HAVING, ORDER BY); else of the innermost block further in where they may, at last of its own. COUNT(*) has no columns and is of its own block, unless it stands in a WHERE.
//!
//! The hard thing is that nobody knows whose columns those are before they are bound: arguments within subqueries are bound twice, the first time to see (`reached`). And a block that has no GROUP BY and no aggregate of its own
//! may find one within a subquery when it has bound its select list over plain rows: it is then bound again, over groups (`Scope::summoned`, `select`).

use syntax::tree as ast;

use crate::bind::Bind;
use crate::bind::aggregate::aggregates;
use crate::error::{self, Result};
use crate::scalar::aggregate::Kind;
use crate::value::Value;
use query::nodes::expr::Expr;

/// What is noted while arguments are bound to see how far they reach.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The block of the aggregate; what blocks further in read of themselves does not count.
    own: usize,
    innermost: Option<usize>,
}

impl Reach {
    /// A column of that block is read.
    pub fn note(&mut self, depth: usize) {
        if depth <= self.own {
            self.innermost = self.innermost.max(Some(depth));
        }
    }
}

impl Bind<'_> {
    /// Has the node an aggregate, outside of subqueries, that belongs to this block? It stands where one may.
    pub fn has_own_aggregate(&mut self, node: &ast::Expr) -> Result<bool> {
        for (kind, function) in aggregates(node) {
            if self.home(kind, function, true)? + 1 == self.scopes.len() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The depth of the block that an aggregate of this one belongs to. `may_stand`: as far as this block goes, it may stand here.
    pub fn home(&mut self, kind: Kind, function: &ast::Function, may_stand: bool) -> Result<usize> {
        let own = self.scopes.len() - 1;
        // ANY_VALUE is a function like any other to MySQL.
        if kind == Kind::AnyValue || !self.scopes[..own].iter().any(|scope| scope.above) {
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

    /// The innermost block, up to this one, that the arguments have columns of. Leaves nothing behind but what is said to be used.
    fn reached(&mut self, kind: Kind, function: &ast::Function) -> Result<Option<usize>> {
        let own = self.scopes.len() - 1;
        let grouped: Vec<_> = self.scopes.iter_mut().map(|scope| scope.grouped.take()).collect();
        let gathers = std::mem::replace(&mut self.scope().gathers, true);
        let (correlations, uses) = (self.correlations.clone(), self.uses);
        let before = self.reach.replace(Reach { own, innermost: None });
        let called = self.without_windows(|bind| bind.call(kind, function));
        let reach = std::mem::replace(&mut self.reach, before);
        // An error ends the statement: then nothing has to be as it was.
        called?;
        (self.correlations, self.uses) = (correlations, uses);
        self.scope().gathers = gathers;
        for (scope, grouped) in self.scopes.iter_mut().zip(grouped) {
            scope.grouped = grouped;
        }
        Ok(reach.and_then(|reach| reach.innermost))
    }

    /// An aggregate of a block around: the place of its result, as this block reads it.
    pub fn aggregate_around(&mut self, depth: usize, kind: Kind, function: &ast::Function) -> Result<Expr> {
        if self.reach.is_some() {
            return Ok(Expr::null());
        }
        let (inner, reads) = (self.scopes.split_off(depth + 1), self.correlations.split_off(depth + 1));
        let bound = self.aggregate(kind, function);
        self.scopes.extend(inner);
        self.correlations.extend(reads);
        Ok(self.read_inside(depth, bound?))
    }

    /// What is of the rows of that block, as the current one reads it.
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

    /// The place of an aggregate's result in a row of this block's groups.
    pub fn aggregate(&mut self, kind: Kind, function: &ast::Function) -> Result<Expr> {
        let scope = self.scope();
        let is_summoned = scope.grouped.is_none();
        if is_summoned && (!scope.above || scope.gathers) {
            return Err(error::INVALID_GROUP_FUNC_USE.bare());
        }
        // The arguments are of the rows that are grouped.
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
