//! Subqueries within expressions, as the binder gives them to planner and executor.

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
    /// The value of the one row.
    Value,
    Exists,
    /// Does `test`, over needles and a row's values, hold for one of them? `keys`: each part is equality by such keys.
    Some {
        needles: Vec<Expr>,
        test: Expr,
        keys: Option<Vec<Type>>,
    },
    All {
        needles: Vec<Expr>,
        test: Expr,
    },
    /// The same for the one row.
    Row {
        needles: Vec<Expr>,
        test: Expr,
    },
}

impl Question {
    /// The expressions that rows are compared with.
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
    /// The same as a block that can become part of the block around.
    pub plain: Option<Arc<Plain>>,
    /// Where it depends on rows around it and on nothing else: on these values of them, (depth, place).
    pub known_by: Option<Vec<(usize, usize)>>,
    /// About how many different values those have.
    pub kinds: f64,
    /// The same question asked of a list of keys.
    pub list: Option<Listed>,
    /// Runs it: the executor's function, given by the binder, for the executor lies above expressions.
    pub evaluate: fn(&Subquery, &[Value], &mut EvalContext) -> Result<Value>,
}

impl Subquery {
    /// The same of one that depends on nothing, asked of other rows: by these needles instead.
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

    /// The same with a list at hand.
    pub fn with_list(&self, list: Listed) -> Subquery {
        Subquery { list: Some(list), reads: self.reads.clone(), ..self.with_needles(Expr::clone) }
    }
}

/// A subquery as a list of keys.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Gives the keys, some of them more than once or NULL.
    pub node: Arc<Node>,
    pub types: Vec<Type>,
    /// The outer row's expressions that are looked up, and how each is compared with its key.
    pub needles: Vec<Expr>,
    pub comparators: Vec<Comparator>,
    /// The cost of building it, and of evaluating the subquery for one row.
    pub cost: f64,
    pub each: f64,
}

/// A query block that is tables and conditions; or aggregates over all their rows.
#[derive(Debug)]
pub struct Plain {
    pub tables: Vec<ScopeTable>,
    pub source: Source,
    pub conditions: Vec<Expr>,
    pub used: Vec<bool>,
    /// Aggregates over all of its rows: what it selects is of their results then.
    pub calls: Vec<AggregateCall>,
    /// Its select list.
    pub exprs: Vec<Expr>,
}
