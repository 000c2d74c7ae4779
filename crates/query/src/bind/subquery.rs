//! Subqueries in expressions: each becomes a hosted expression that runs a plan of its own.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::exec::hosted::{Question, Subquery};
use crate::scalar::Expr;
use crate::scalar::bind::compare;
use crate::scalar::expr::Comparison;
use crate::types::{Column, Type};

impl Bind<'_> {
    /// Binds the query one level deeper.
    fn nested(
        &mut self,
        query: &ast::Query,
        question: impl FnOnce(&mut Self, &[Column]) -> Result<Question>,
    ) -> Result<(Subquery, Vec<Column>)> {
        let depth = self.scopes.len() - 1;
        self.correlations.push(Vec::new());
        let bound = self.query(query);
        let outside = self.correlations.pop().unwrap_or_default();
        let bound = bound?;
        let question = question(self, &bound.columns)?;
        let mut reads: Vec<usize> = outside.iter().filter(|(at, _)| *at == depth).map(|(_, place)| *place).collect();
        let is_correlated = !outside.is_empty();
        if let Question::Some { needle, .. } | Question::All { needle, .. } = &question {
            reads.extend(crate::plan::walk::columns(needle));
        }
        let id = self.new_id();
        Ok((Subquery { node: bound.node, question, depth, reads, is_correlated, id }, bound.columns))
    }

    fn one_column(columns: &[Column]) -> Result<&Column> {
        match columns {
            [column] => Ok(column),
            _ => Err(error::OPERAND_COLUMNS.with(&[&1])),
        }
    }

    pub fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let (subquery, columns) = self.nested(query, |_, _| Ok(Question::Value))?;
        let ty = Self::one_column(&columns)?.ty.clone().with_nullable(true);
        Ok(Expr::Hosted(Arc::new(subquery), ty))
    }

    pub fn exists(&mut self, query: &ast::Query, negated: bool) -> Result<Expr> {
        let (subquery, _) = self.nested(query, |_, _| Ok(Question::Exists))?;
        let expr = Expr::Hosted(Arc::new(subquery), Type::boolean().with_nullable(false));
        Ok(if negated { Expr::Not(Box::new(expr)) } else { expr })
    }

    pub fn in_subquery(&mut self, needle: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr> {
        let expr = self.compared(needle, Comparison::Equal, query, false)?;
        Ok(if negated { Expr::Not(Box::new(expr)) } else { expr })
    }

    pub fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Expr> {
        let query = match right {
            ast::Expr::Subquery(query) => query,
            ast::Expr::Nested(inner) => match &**inner {
                ast::Expr::Subquery(query) => query,
                _ => return Err(SqlError::parse(format!("'{right}' at line 1"))),
            },
            _ => return Err(SqlError::parse(format!("'{right}' at line 1"))),
        };
        let op = match op {
            ast::BinaryOperator::Eq => Comparison::Equal,
            ast::BinaryOperator::NotEq => Comparison::NotEqual,
            ast::BinaryOperator::Lt => Comparison::Less,
            ast::BinaryOperator::LtEq => Comparison::LessEqual,
            ast::BinaryOperator::Gt => Comparison::Greater,
            ast::BinaryOperator::GtEq => Comparison::GreaterEqual,
            op => return Err(SqlError::parse(format!("'{op}' at line 1"))),
        };
        self.compared(left, op, query, all)
    }

    fn compared(&mut self, needle: &ast::Expr, op: Comparison, query: &ast::Query, all: bool) -> Result<Expr> {
        if matches!(needle, ast::Expr::Tuple(_)) {
            return Err(SqlError::unsupported("rows of several columns compared with a subquery"));
        }
        let needle = self.expr(needle)?;
        let (subquery, _) = self.nested(query, |bind, columns| {
            let column = Self::one_column(columns)?;
            let test = compare(bind.settings(), op, Expr::Column(0, needle.ty()), Expr::Column(1, column.ty.clone()))?;
            let key = match &test {
                Expr::Compare(compare) if op == Comparison::Equal => {
                    crate::plan::join::key_type(&compare.left, &compare.right, compare.domain)
                }
                _ => None,
            };
            Ok(if all { Question::All { needle, test } } else { Question::Some { needle, test, key } })
        })?;
        Ok(Expr::Hosted(Arc::new(subquery), Type::boolean().with_nullable(true)))
    }
}
