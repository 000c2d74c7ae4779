//! What a subquery that depends on a row has answered, kept by what it depends on: rows with the same values are not asked for twice.
//!
//! Only of subqueries that answer the same whenever they are asked with the same values (`repeats`), and not in statements that change rows. What is kept has a limit of its own, beside what is
//! counted of the statement: when it is reached all is forgotten. Where answers are not asked for again, nothing is kept any more.

use stdx::hash::Map;

use crate::exec::host::row_bytes;
use crate::exec::hosted::{Outer, Subquery};
use crate::plan::Node;
use crate::plan::explain::{exprs, inputs};
use crate::plan::walk::is_volatile;
use crate::scalar::Expr;
use crate::value::Value;

/// Of the memory of a statement, the part that the answers of one subquery may take.
const PART: usize = 16;
/// After so many questions it is known whether they repeat: one in `SELDOM` at least.
const TRIALS: u64 = 512;
const SELDOM: u64 = 16;

#[derive(Debug, Default)]
pub struct Answers {
    known: Map<Vec<u8>, Value>,
    bytes: usize,
    asked: u64,
    hits: u64,
    is_off: bool,
}

impl Answers {
    pub fn is_on(&self) -> bool {
        !self.is_off
    }

    pub fn get(&mut self, key: &[u8]) -> Option<Value> {
        self.asked += 1;
        let known = self.known.get(key).cloned();
        self.hits += u64::from(known.is_some());
        if self.asked == TRIALS && self.hits < TRIALS / SELDOM {
            *self = Answers { is_off: true, ..Answers::default() };
        }
        known
    }

    pub fn keep(&mut self, key: Vec<u8>, answer: &Value, memory_max: usize) {
        let bytes = key.len() + row_bytes(std::slice::from_ref(answer));
        if self.bytes + bytes > memory_max / PART {
            self.known.clear();
            self.bytes = 0;
        }
        if !self.is_off && bytes <= memory_max / PART {
            self.bytes += bytes;
            self.known.insert(key, answer.clone());
        }
    }
}

/// Does the plan answer the same whenever it is asked with the same rows around? Nothing in it draws lots, waits, or looks at the user's variables.
pub fn repeats(node: &Node) -> bool {
    let is_odd = matches!(node, Node::LastRound { .. });
    !is_odd && exprs(node).into_iter().all(expr_repeats) && inputs(node).into_iter().all(|input| repeats(input))
}

pub fn expr_repeats(expr: &Expr) -> bool {
    let mut all = !is_volatile(expr);
    expr.walk(&mut |expr| {
        if let Expr::Hosted(hosted, _) = expr {
            let any = hosted.as_any();
            let is_outer = any.is_some_and(|any| any.is::<Outer>());
            let query = any.and_then(|any| any.downcast_ref::<Subquery>());
            all &= is_outer
                || query.is_some_and(|query| repeats(&query.node) && query.question.needles().iter().all(expr_repeats));
        }
    });
    all
}

/// Does the plan look at rows around it?
pub fn looks_around(node: &Node) -> bool {
    exprs(node).into_iter().any(expr_looks_around) || inputs(node).into_iter().any(|input| looks_around(input))
}

/// Of subqueries within, only whether they look at anything outside of themselves is known: that may be what they are in.
fn expr_looks_around(expr: &Expr) -> bool {
    let mut looks = false;
    expr.walk(&mut |expr| {
        if let Expr::Hosted(hosted, _) = expr {
            let any = hosted.as_any();
            looks |= any.is_some_and(|any| any.is::<Outer>());
            looks |= any.and_then(|any| any.downcast_ref::<Subquery>()).is_some_and(|query| query.is_correlated);
        }
    });
    looks
}
