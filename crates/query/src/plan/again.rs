//! May a plan that has begun be dropped and begun anew, as if nothing had been?
//!
//! It may where it reads one table and nothing in it answers anew each time it is asked, or leaves something behind: no RAND(), no GET_LOCK(), no variable that is set, no subquery. So may an INSERT of such values (`bind::change::Insert`). What it has locked
//! so far it would lock again.

use crate::plan::walk::is_volatile;
use crate::plan::{Node, walk};
use crate::scalar::Expr;

pub fn may_begin_again(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => scan.access.exprs().chain(&scan.conditions).all(is_steady),
        Node::Filter { input, conditions } => may_begin_again(input) && conditions.iter().all(is_steady),
        Node::Project { input, exprs } => may_begin_again(input) && exprs.iter().all(is_steady),
        Node::Strip { input, .. } | Node::Distinct { input, .. } => may_begin_again(input),
        Node::Sort { input, limit, .. } => {
            let limits = limit.iter().flat_map(|(limit, offset)| std::iter::once(limit).chain(offset));
            may_begin_again(input) && limits.into_iter().all(is_steady)
        }
        Node::Limit { input, limit, offset, counts: false } => {
            may_begin_again(input) && limit.iter().chain(offset).all(is_steady)
        }
        Node::Group(group) => {
            let arguments = group.calls.iter().flat_map(|call| &call.arguments);
            may_begin_again(&group.input) && group.keys.iter().chain(arguments).all(is_steady)
        }
        _ => false,
    }
}

pub fn is_steady(expr: &Expr) -> bool {
    !is_volatile(expr) && !walk::has_subquery(expr)
}
