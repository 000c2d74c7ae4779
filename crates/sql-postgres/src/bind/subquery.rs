//! Subqueries in expressions: each has a plan of its own.

use std::sync::Arc;

use query::exec::subquery::evaluate;
use query::nodes::comparison::Comparison;
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::nodes::subquery::{Plain, Question, Subquery};
use query::nodes::walk::{expr_repeats, repeats};
use query::plan::selectivity::StatisticsView;
use query::plan::statistics::Statistics;
use query::types::Type;
use syntax::postgres::tree::{self, ExprKind, Location, Operator, SelectStmt};

use crate::bind::Binder;
use crate::bind::project_set::reads_sets;
use crate::bind::scope::{BoundQuery, OutputColumn};
use crate::bind::typing::{Operand, oid_of, unsupported};
use crate::error::{Result, state};
use crate::types::oid;
use crate::types::registry::column_type;

/// How the rows of a subquery answer for an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    Any,
    All,
    /// The single row.
    Row,
}

impl Binder<'_> {
    /// Binds the query one level deeper. `question` may change its rows.
    pub fn nested(
        &mut self,
        query: &SelectStmt,
        question: impl FnOnce(&mut Self, &mut BoundQuery) -> Result<Question>,
    ) -> Result<(Subquery, Vec<OutputColumn>)> {
        let depth = self.scopes.len() - 1;
        let (mut bound, outside) = self.deeper(|binder| binder.query(query))?;
        let question = question(self, &mut bound)?;
        let mut reads: Vec<usize> = outside.iter().filter(|(at, _)| *at == depth).map(|(_, place)| *place).collect();
        let is_correlated = !outside.is_empty();
        let id = self.new_id();
        self.scope().subquery_reads.push((id, reads.clone()));
        for needle in question.needles() {
            reads.extend(needle.columns());
        }
        let BoundQuery { node, columns, plain } = bound;
        let repeats = is_correlated && repeats(&node) && question.needles().iter().all(expr_repeats);
        let kinds = if repeats { outside.iter().map(|read| self.kinds(*read)).product() } else { f64::INFINITY };
        let known_by = repeats.then_some(outside);
        let list = None;
        let subquery =
            Subquery { node, question, depth, reads, is_correlated, id, plain, known_by, kinds, list, evaluate };
        Ok((subquery, columns))
    }

    /// Estimates the number of distinct values of an outer block's column.
    fn kinds(&self, (depth, place): (usize, usize)) -> f64 {
        let scope = &self.scopes[depth];
        let Some(at) = scope.table_of(place).filter(|_| scope.grouped.is_none()) else { return f64::INFINITY };
        let table = &scope.tables[at];
        let ty = table.columns[place - table.offset].ty.clone();
        let (statistics, values): (&dyn Statistics, _) = (self.environment.session, self.environment.values);
        let estimates = StatisticsView { tables: &scope.tables, statistics, values };
        estimates.distinct(&Expr::Column(place, ty)).unwrap_or(f64::INFINITY)
    }

    /// Binds one level deeper. Also returns the outer references.
    #[allow(clippy::type_complexity)]
    pub fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Vec<(usize, usize)>)> {
        self.correlations.push(Vec::new());
        let bound = bind(self);
        let outside = self.correlations.pop().unwrap_or_default();
        Ok((bound?, outside))
    }

    pub fn scalar_subquery(&mut self, query: &SelectStmt, at: u32) -> Result<Operand> {
        let (subquery, columns) = self.nested(query, |_, _| Ok(Question::Value))?;
        let [column] = &columns[..] else {
            return self.fail(state::SYNTAX_ERROR, "subquery must return only one column", at);
        };
        let ty = column.column.ty.clone().with_nullable(true);
        Ok(Operand { expr: Expr::Subquery(Arc::new(subquery), ty), at })
    }

    pub fn exists(&mut self, query: &SelectStmt, at: u32) -> Result<Operand> {
        let (subquery, _) = self.nested(query, |_, _| Ok(Question::Exists))?;
        Ok(Operand { expr: Expr::Subquery(Arc::new(subquery), truth(false)), at })
    }

    pub fn in_query(
        &mut self,
        operand: &tree::Expr,
        query: &SelectStmt,
        negated: bool,
        (at, op): (u32, u32),
    ) -> Result<Operand> {
        let needles = self.needles(operand)?;
        let op = Operator::plain("=", Location(op));
        let expr = self.quantified(needles, &op, query, Quantifier::Any)?;
        Ok(Operand { expr: if negated { Expr::Not(Box::new(expr)) } else { expr }, at })
    }

    pub fn quantified_query(&mut self, node: &tree::QuantifiedQuery, at: u32) -> Result<Operand> {
        let tree::QuantifiedQuery { left, op, all, query } = node;
        let needles = self.needles(left)?;
        let quantifier = if *all { Quantifier::All } else { Quantifier::Any };
        Ok(Operand { expr: self.quantified(needles, op, query, quantifier)?, at })
    }

    /// Binds the comparison of a row with the single row of a subquery.
    pub fn row_subquery(&mut self, row: &[tree::Expr], op: &Operator, query: &SelectStmt, at: u32) -> Result<Operand> {
        let needles = self.all(row)?;
        Ok(Operand { expr: self.quantified(needles, op, query, Quantifier::Row)?, at })
    }

    fn needles(&mut self, operand: &tree::Expr) -> Result<Vec<Operand>> {
        match &operand.kind {
            ExprKind::Row { items, explicit: _ } => self.row_items(items),
            _ => Ok(vec![self.expr(operand)?]),
        }
    }

    fn quantified(
        &mut self,
        needles: Vec<Operand>,
        op: &Operator,
        query: &SelectStmt,
        quantifier: Quantifier,
    ) -> Result<Expr> {
        let (subquery, _) = self.nested(query, |binder, bound| {
            let (given, wanted) = (bound.columns.len(), needles.len());
            if given != wanted {
                let text =
                    if given < wanted { "subquery has too few columns" } else { "subquery has too many columns" };
                return binder.fail(state::SYNTAX_ERROR, text, op.at.0);
            }
            let (needles, test) = binder.row_test(op, needles, bound)?;
            let keys = keys_of(&test);
            Ok(match quantifier {
                Quantifier::Any => Question::Some { needles, test, keys },
                Quantifier::All => Question::All { needles, test },
                Quantifier::Row => Question::Row { needles, test },
            })
        })?;
        Ok(Expr::Subquery(Arc::new(subquery), truth(true)))
    }

    /// Returns the needles in the types in which they are compared, and the comparison of the first places of a row with those behind them. The query's rows are brought
    /// to these types too.
    fn row_test(&mut self, op: &Operator, needles: Vec<Operand>, bound: &mut BoundQuery) -> Result<(Vec<Expr>, Expr)> {
        let count = needles.len();
        if needles.iter().any(|needle| reads_sets(&needle.expr)) {
            return self.fail(state::DATATYPE_MISMATCH, "row comparison operator must not return a set", op.at.0);
        }
        // The operator's coercions belong to the needles and to the rows, so that the test reads plain values.
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        let (mut left_tests, mut right_tests) = (Vec::new(), Vec::new());
        for (at, needle) in needles.into_iter().enumerate() {
            let column = bound.columns[at].column.ty.clone();
            let right = Operand { expr: Expr::Column(at, column), at: op.at.0 };
            let test = self.make_operator(op, needle, right)?;
            let (left, right) = match test.expr {
                Expr::Compare(compare) => (compare.left, compare.right),
                Expr::Call(call) if call.arguments.len() == 2 => {
                    let mut sides = call.arguments.into_iter();
                    (sides.next().unwrap_or_else(Expr::null), sides.next().unwrap_or_else(Expr::null))
                }
                _ => return Err(self.error(unsupported(format!("the operator {} over a subquery", op.name)), op.at.0)),
            };
            let place = |at: usize, expr: &Expr| Operand {
                expr: Expr::Column(at, column_type(oid_of(expr), -1, true)),
                at: op.at.0,
            };
            left_tests.push(place(at, &left));
            right_tests.push(place(count + at, &right));
            lefts.push(left);
            rights.push(right);
        }
        let test = match count {
            1 => {
                let (left, right) = (left_tests.swap_remove(0), right_tests.swap_remove(0));
                let bound = self.make_operator(op, left, right)?;
                self.coerce_to_boolean(bound, "ANY")?
            }
            _ => self.compare_rows(op, left_tests, right_tests, op.at.0)?.expr,
        };
        bring(bound, rights);
        Ok((lefts, test))
    }
}

/// Projects the columns of a query as these expressions over them.
fn bring(bound: &mut BoundQuery, exprs: Vec<Expr>) {
    let is_plain = |(at, expr): (usize, &Expr)| matches!(expr, Expr::Column(place, _) if *place == at);
    let is_same = exprs.iter().enumerate().all(is_plain);
    for (column, expr) in bound.columns.iter_mut().zip(&exprs) {
        column.column.ty = expr.ty();
    }
    if is_same {
        return;
    }
    if let Some(plain) = bound.plain.take() {
        let mut exprs = exprs.clone();
        for expr in &mut exprs {
            expr.rewrite(&mut |expr| {
                if let Expr::Column(at, _) = expr {
                    *expr = plain.exprs[*at].clone();
                }
            });
        }
        let Plain { tables, source, conditions, used, calls, exprs: _ } = &*plain;
        let (tables, source, conditions) = (tables.clone(), source.clone(), conditions.clone());
        let (used, calls) = (used.clone(), calls.clone());
        bound.plain = Some(Arc::new(Plain { tables, source, conditions, used, calls, exprs }));
    }
    bound.node = Arc::new(Node::Project { input: bound.node.clone(), exprs });
}

/// Returns the types of the keys by which a row is found, if the test is an equality of each part.
fn keys_of(test: &Expr) -> Option<Vec<Type>> {
    let parts = match test {
        Expr::And(parts) => &parts[..],
        test => std::slice::from_ref(test),
    };
    let key = |part: &Expr| match part {
        Expr::Compare(compare) if compare.op == Comparison::Equal => {
            compare.by.hash_type(&compare.left.ty(), &compare.right.ty())
        }
        _ => None,
    };
    parts.iter().map(key).collect()
}

fn truth(nullable: bool) -> Type {
    column_type(oid::BOOL, -1, nullable)
}
