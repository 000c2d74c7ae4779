//! Subqueries within expressions, as the binder passes them to planner and executor.

use std::sync::Arc;

use datum::Result;

use crate::nodes::comparison::Comparator;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{AggregateCall, Node};
use crate::nodes::relation::{ScopeTable, Source};
use crate::types::Type;
use crate::value::Value;

/// The question that a subquery's rows answer.
#[derive(Debug)]
pub enum Question {
    /// A scalar subquery.
    Value,
    Exists,
    /// Whether `test` holds for the needles and the values of one row, as in IN, ANY and ALL. `keys` are set if each
    /// part is an equality of such keys.
    Some {
        needles: Vec<Expr>,
        test: Expr,
        keys: Option<Vec<Type>>,
    },
    All {
        needles: Vec<Expr>,
        test: Expr,
    },
    /// A row comparison with the single row.
    Row {
        needles: Vec<Expr>,
        test: Expr,
    },
}

impl Question {
    /// Returns the outer expressions that rows are compared with.
    pub fn needles(&self) -> &[Expr] {
        match self {
            Question::Value | Question::Exists => &[],
            Question::Some { needles, .. } | Question::All { needles, .. } | Question::Row { needles, .. } => needles,
        }
    }
}

#[derive(Debug)]
pub struct Subquery {
    pub node: Arc<Node>,
    pub question: Question,
    pub depth: usize,
    pub reads: Vec<usize>,
    pub is_correlated: bool,
    pub id: usize,
    /// The block itself, if it can be merged into the enclosing block.
    pub plain: Option<Arc<Plain>>,
    /// The outer values, as (depth, place), if the result depends on nothing else.
    pub known_by: Option<Vec<(usize, usize)>>,
    /// The estimated number of distinct combinations of these values.
    pub kinds: f64,
    /// The hashed subquery, an alternative way of evaluation.
    pub list: Option<Listed>,
    /// The executor's function that evaluates it; the executor lies above expressions.
    pub evaluate: fn(&Subquery, &[Value], &mut EvalContext) -> Result<Value>,
}

impl Subquery {
    /// Returns an uncorrelated subquery with other needles.
    pub fn with_needles(&self, mut needle: impl FnMut(&Expr) -> Expr) -> Subquery {
        let mut moved = |exprs: &[Expr]| -> Vec<Expr> { exprs.iter().map(&mut needle).collect() };
        let question = match &self.question {
            Question::Value => Question::Value,
            Question::Exists => Question::Exists,
            Question::Some { needles, test, keys } => {
                Question::Some { needles: moved(needles), test: test.clone(), keys: keys.clone() }
            }
            Question::All { needles, test } => Question::All { needles: moved(needles), test: test.clone() },
            Question::Row { needles, test } => Question::Row { needles: moved(needles), test: test.clone() },
        };
        let mut reads = Vec::new();
        question.needles().iter().for_each(|needle| reads.extend(needle.columns()));
        let (node, plain, known_by) = (self.node.clone(), self.plain.clone(), self.known_by.clone());
        Subquery { node, question, reads, plain, known_by, list: None, ..*self }
    }

    /// Returns the subquery with a hashed alternative.
    pub fn with_list(&self, list: Listed) -> Subquery {
        Subquery { list: Some(list), reads: self.reads.clone(), ..self.with_needles(Expr::clone) }
    }
}

/// A hashed subquery: a plan that yields a set of keys.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Yields the keys, possibly with duplicates and NULLs.
    pub node: Arc<Node>,
    pub types: Vec<Type>,
    /// The outer expressions that are looked up, each with the comparator of it and its key.
    pub needles: Vec<Expr>,
    pub comparators: Vec<Comparator>,
    /// The cost of building it, and of evaluating the subquery for one row.
    pub cost: f64,
    pub each: f64,
}

/// A query block of tables and conditions only, or of aggregates over all their rows.
#[derive(Debug)]
pub struct Plain {
    pub tables: Vec<ScopeTable>,
    pub source: Source,
    pub conditions: Vec<Expr>,
    pub used: Vec<bool>,
    /// Aggregates over all rows; the select list is then over their results.
    pub calls: Vec<AggregateCall>,
    /// The select list.
    pub exprs: Vec<Expr>,
}
