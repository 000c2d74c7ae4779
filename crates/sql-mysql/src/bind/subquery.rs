//! Subqueries in expressions: each has a plan of its own.

use std::sync::Arc;

use syntax::tree as ast;

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::scalar::bind::{compare_rows, comparison, row_parts};
use crate::types::{Column, Type};
use query::block::shape::outermost;
use query::exec::subquery::evaluate;
use query::nodes::comparison::Comparison;
use query::nodes::expr::Expr;
use query::nodes::subquery::{Question, Subquery};
use query::nodes::walk::{expr_repeats, repeats};
use query::plan::selectivity::StatisticsView;
use query::plan::statistics::Statistics;

impl Bind<'_> {
    /// Binds the query one level deeper.
    fn nested(
        &mut self,
        query: &ast::Query,
        question: impl FnOnce(&mut Self, &[Column]) -> Result<Question>,
    ) -> Result<(Subquery, Vec<Column>)> {
        let depth = self.scopes.len() - 1;
        let (bound, outside) = self.deeper(|bind| bind.query(query))?;
        let question = question(self, &bound.columns)?;
        let mut reads: Vec<usize> = outside.iter().filter(|(at, _)| *at == depth).map(|(_, place)| *place).collect();
        let is_correlated = !outside.is_empty();
        for needle in question.needles() {
            reads.extend(needle.columns());
        }
        let id = self.new_id();
        let (node, plain) = (bound.node, bound.plain);
        let repeats = is_correlated && repeats(&node) && question.needles().iter().all(expr_repeats);
        let kinds = if repeats { outside.iter().map(|read| self.kinds(*read)).product() } else { f64::INFINITY };
        let known_by = repeats.then_some(outside);
        Ok((
            Subquery { node, question, depth, reads, is_correlated, id, plain, known_by, kinds, list: None, evaluate },
            bound.columns,
        ))
    }

    /// Estimates the number of distinct values of an outer block's column.
    fn kinds(&self, (depth, place): (usize, usize)) -> f64 {
        let scope = &self.scopes[depth];
        if scope.grouped.is_some() {
            return f64::INFINITY;
        }
        let (statistics, values): (&dyn Statistics, _) = (self.environment.variables, self.environment.values);
        let estimates = StatisticsView { tables: &scope.tables, statistics, values };
        estimates.distinct(&Expr::Column(place, scope.type_at(place))).unwrap_or(f64::INFINITY)
    }

    /// Binds one level deeper. Also returns the outer references.
    #[allow(clippy::type_complexity)]
    pub fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Vec<(usize, usize)>)> {
        self.correlations.push(Vec::new());
        let bound = bind(self);
        let outside = self.correlations.pop().unwrap_or_default();
        Ok((bound?, outside))
    }

    fn one_column(columns: &[Column]) -> Result<&Column> {
        match columns {
            [column] => Ok(column),
            _ => Err(error::OPERAND_COLUMNS.with(&[&1])),
        }
    }

    pub fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let (mut subquery, columns) = self.nested(query, |_, _| Ok(Question::Value))?;
        let ty = Self::one_column(&columns)?.ty.clone().with_nullable(true);
        // Sort columns follow it.
        if let Some(expr) = outermost(&mut subquery.node).and_then(|exprs| exprs.first_mut()) {
            expr.keep_all_digits();
        }
        Ok(Expr::shown(Expr::Subquery(Arc::new(subquery), ty)))
    }

    pub fn exists(&mut self, query: &ast::Query) -> Result<Expr> {
        let (subquery, _) = self.nested(query, |_, _| Ok(Question::Exists))?;
        Ok(Expr::Subquery(Arc::new(subquery), Type::truth().with_nullable(false)))
    }

    pub fn in_subquery(&mut self, needle: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr> {
        let expr = self.compared(needle, Comparison::Equal, query, false)?;
        Ok(if negated { Expr::Not(Box::new(expr)) } else { expr })
    }

    pub fn quantified(&mut self, left: &ast::Expr, op: ast::CompareOp, query: &ast::Query, all: bool) -> Result<Expr> {
        match comparison(op) {
            Comparison::NullSafeEqual => Err(SqlError::parse("'<=>' at line 1")),
            op => self.compared(left, op, query, all),
        }
    }

    fn compared(&mut self, needle: &ast::Expr, op: Comparison, query: &ast::Query, all: bool) -> Result<Expr> {
        let needles: Vec<Expr> = match row_parts(needle) {
            Some(parts) => parts.iter().map(|part| self.expr(part)).collect::<Result<_>>()?,
            None => vec![self.expr(needle)?],
        };
        let (subquery, _) = self.nested(query, |bind, columns| {
            if columns.len() != needles.len() {
                return Err(error::OPERAND_COLUMNS.with(&[&needles.len()]));
            }
            let test = bind.row_test(op, &needles, columns)?;
            let parts = match &test {
                Expr::And(parts) => &parts[..],
                test => std::slice::from_ref(test),
            };
            let key = |part: &Expr| match part {
                Expr::Compare(compare) if op == Comparison::Equal => {
                    compare.by.hash_type(&compare.left.ty(), &compare.right.ty())
                }
                _ => None,
            };
            let keys = parts.iter().map(key).collect();
            Ok(if all { Question::All { needles, test } } else { Question::Some { needles, test, keys } })
        })?;
        Ok(Expr::Subquery(Arc::new(subquery), Type::truth().with_nullable(true)))
    }

    /// Returns the row comparison of the first places with those behind them.
    fn row_test(&self, op: Comparison, needles: &[Expr], columns: &[Column]) -> Result<Expr> {
        let pair = |at: usize| {
            let right = Expr::Column(needles.len() + at, columns[at].ty.clone());
            (Expr::Column(at, needles[at].ty()), right)
        };
        let pairs: Vec<(Expr, Expr)> = (0..needles.len()).map(pair).collect();
        Ok(compare_rows(self.settings(), op, &pairs)?)
    }

    /// Binds `(a, b) = (SELECT c, d ...)`, from either side.
    pub fn row_comparison(&mut self, left: &ast::Expr, op: ast::CompareOp, right: &ast::Expr) -> Result<Option<Expr>> {
        let op = comparison(op);
        let (parts, query, op) = match (row_parts(left), row_parts(right), subquery_of(left), subquery_of(right)) {
            (Some(parts), _, _, Some(query)) => (parts, query, op),
            (_, Some(parts), Some(query), _) => (parts, query, op.flipped()),
            _ => return Ok(None),
        };
        let needles: Vec<Expr> = parts.iter().map(|part| self.expr(part)).collect::<Result<_>>()?;
        let (subquery, _) = self.nested(query, |bind, columns| {
            if columns.len() != needles.len() {
                return Err(error::OPERAND_COLUMNS.with(&[&needles.len()]));
            }
            let test = bind.row_test(op, &needles, columns)?;
            Ok(Question::Row { needles, test })
        })?;
        Ok(Some(Expr::Subquery(Arc::new(subquery), Type::truth().with_nullable(true))))
    }
}

fn subquery_of(node: &ast::Expr) -> Option<&ast::Query> {
    match &node.kind {
        ast::ExprKind::Subquery(query) => Some(query),
        _ => None,
    }
}
