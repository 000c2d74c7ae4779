//! Expressions over groups: what was bound over a block's wide rows is brought to the rows of its groups.
//!
//! A row of a group has the keys, then the results of the aggregates. A column that is neither a key nor follows from one is an error, and one that follows from a
//! primary key among the keys is the value of any row of the group.

use std::sync::Arc;

use query::nodes::expr::Expr;
use query::nodes::subquery::{Question, Subquery};
use query::plan::generated::is_like;

use crate::bind::Binder;
use crate::bind::aggregate::any_value;
use crate::bind::scope::{AGGREGATES, BlockScope, Grouped, SETS, WINDOWS};
use crate::error::Result;

/// A column that is not constant in a group, by its place.
pub struct Ungrouped(pub usize);

impl Grouped {
    /// Brings an expression over wide rows to the rows of groups. `reads` has, for each subquery, its references to the block.
    fn bring(&mut self, expr: &mut Expr, reads: &[(usize, Vec<usize>)]) -> std::result::Result<(), Ungrouped> {
        if let Some(at) = self.key_like(expr) {
            *expr = self.key(at);
            return Ok(());
        }
        match expr {
            // A set-returning function of GROUP BY is a key or part of one.
            Expr::Column(place, _) if *place >= SETS => match self.set_reads.get(*place - SETS) {
                Some(Some(read)) => Err(Ungrouped(*read)),
                _ => Ok(()),
            },
            Expr::Column(place, _) if *place >= WINDOWS => Ok(()),
            Expr::Column(place, _) if *place >= AGGREGATES => {
                *place = *place - AGGREGATES + self.keys.len();
                Ok(())
            }
            Expr::Column(place, _) => {
                let place = *place;
                match self.dependent.iter().any(|range| range.contains(&place)) {
                    true => {
                        *expr = self.any_value_of(expr.clone());
                        Ok(())
                    }
                    false => Err(Ungrouped(place)),
                }
            }
            Expr::Subquery(query, _) => {
                let outside = reads.iter().find(|(id, _)| *id == query.id);
                *query = Arc::new(self.brought(query, outside.map_or(&[], |(_, reads)| reads), reads)?);
                Ok(())
            }
            other => other.children_mut().into_iter().try_for_each(|child| self.bring(child, reads)),
        }
    }

    pub fn key_like(&self, expr: &Expr) -> Option<usize> {
        let may_be_key = !matches!(expr, Expr::Literal(..) | Expr::Parameter(..));
        if may_be_key { self.keys.iter().position(|key| is_like(expr, key, false)) } else { None }
    }

    fn key(&self, at: usize) -> Expr {
        let ty = crate::bind::typing::settled(&self.keys[at].ty());
        let nullable = ty.nullable || !self.sets.is_empty();
        Expr::Column(at, ty.with_nullable(nullable))
    }

    fn any_value_of(&mut self, column: Expr) -> Expr {
        let ty = column.ty();
        let is_it = |call: &query::nodes::node::AggregateCall| {
            std::ptr::eq(call.aggregate.function, &raw const crate::bind::aggregate::ANY_VALUE)
                && query::nodes::walk::same(&call.arguments[0], &column)
        };
        let known = self.calls.iter().position(is_it);
        let at = known.unwrap_or_else(|| {
            self.calls.push(any_value(column));
            self.calls.len() - 1
        });
        Expr::Column(self.keys.len() + at, ty)
    }

    /// Returns a subquery with needles over groups. Its plan refers to groups already.
    fn brought(
        &mut self,
        query: &Subquery,
        outside: &[usize],
        reads: &[(usize, Vec<usize>)],
    ) -> std::result::Result<Subquery, Ungrouped> {
        let mut brought = |needles: &[Expr]| -> std::result::Result<Vec<Expr>, Ungrouped> {
            let mut needles = needles.to_vec();
            needles.iter_mut().try_for_each(|needle| self.bring(needle, reads))?;
            Ok(needles)
        };
        let question = match &query.question {
            Question::Value => Question::Value,
            Question::Exists => Question::Exists,
            Question::Some { needles, test, keys } => {
                Question::Some { needles: brought(needles)?, test: test.clone(), keys: keys.clone() }
            }
            Question::All { needles, test } => Question::All { needles: brought(needles)?, test: test.clone() },
            Question::Row { needles, test } => Question::Row { needles: brought(needles)?, test: test.clone() },
        };
        let mut places = outside.to_vec();
        question.needles().iter().for_each(|needle| places.extend(needle.columns()));
        let (node, plain, known_by) = (query.node.clone(), query.plain.clone(), query.known_by.clone());
        Ok(Subquery { node, question, reads: places, plain, known_by, list: None, ..*query })
    }
}

impl Binder<'_> {
    /// Brings expressions of the current block to the rows of its groups.
    pub fn bring_to_groups<'e>(&mut self, exprs: impl Iterator<Item = &'e mut Expr>) -> Result<()> {
        let depth = self.scopes.len() - 1;
        let scope = &mut self.scopes[depth];
        let Some(mut grouped) = scope.grouped.take() else { return Ok(()) };
        let mut exprs = exprs;
        let failed = exprs.find_map(|expr| grouped.bring(expr, &scope.subquery_reads).err());
        scope.grouped = Some(grouped);
        match failed {
            None => Ok(()),
            Some(Ungrouped(place)) => {
                let at = scope.references.iter().find(|(known, _)| *known == place).map_or(0, |(_, at)| *at);
                Err(self.ungrouped(depth, place, at, false))
            }
        }
    }

    /// Refuses an expression that is not constant in a group.
    pub fn check_grouped(&mut self, expr: &Expr, at: u32) -> Result<()> {
        let depth = self.scopes.len() - 1;
        let scope = &mut self.scopes[depth];
        let Some(grouped) = &mut scope.grouped else { return Ok(()) };
        let known = grouped.calls.len();
        let brought = grouped.bring(&mut expr.clone(), &scope.subquery_reads);
        grouped.calls.truncate(known);
        match brought {
            Ok(()) => Ok(()),
            Err(Ungrouped(place)) => Err(self.ungrouped(depth, place, at, false)),
        }
    }

    /// Brings a column of a grouped block, which a subquery reads, to the rows of its groups.
    pub fn grouped_outer(&mut self, depth: usize, mut expr: Expr, at: u32) -> Result<Expr> {
        let Some(grouped) = &mut self.scopes[depth].grouped else { return Ok(expr) };
        match grouped.bring(&mut expr, &[]) {
            Ok(()) => Ok(expr),
            Err(Ungrouped(place)) => Err(self.ungrouped(depth, place, at, true)),
        }
    }
}

impl BlockScope {
    /// Gives the results of window functions their places, behind the columns of the rows that the windows read.
    pub fn settle_windows(expr: &mut Expr, first: usize) {
        expr.rewrite(&mut |expr| match expr {
            Expr::Column(place, _) if (WINDOWS..SETS).contains(place) => *place = *place - WINDOWS + first,
            _ => {}
        });
    }
}
