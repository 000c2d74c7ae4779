//! Traversal of expressions and plan nodes.

use std::sync::Arc;

use crate::nodes::expr::Expr;
use crate::nodes::function::SessionUse;
use crate::nodes::node::Node;
use crate::nodes::subquery::Subquery;
use crate::nodes::window::{Edge, What};

/// Returns whether the expression is volatile, like RAND().
pub fn is_volatile(expr: &Expr) -> bool {
    let mut volatile = false;
    expr.walk(&mut |expr| volatile |= matches!(expr, Expr::Call(call) if call.function.volatile));
    volatile
}

/// Returns whether the expression contains a subquery.
pub fn has_subquery(expr: &Expr) -> bool {
    let mut has = false;
    expr.walk(&mut |expr| has |= expr.reads_outside());
    has
}

/// Returns the conjuncts of an arm of an OR.
pub fn parts_of(arm: &Expr) -> Vec<Expr> {
    let mut parts = Vec::new();
    conjuncts(arm.clone(), &mut parts);
    parts
}

/// Appends the conjuncts of a condition.
pub fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(list) => list.into_iter().for_each(|item| conjuncts(item, out)),
        Expr::Or(arms) => {
            let common = common_of(&arms);
            let rest = if common.is_empty() { Some(Expr::Or(arms)) } else { without(&arms, &common) };
            out.extend(rest);
            out.extend(common);
        }
        expr => out.push(expr),
    }
}

/// Returns the OR without the common conditions, or None if an arm has no other: (a AND b) OR a is a, also with NULLs.
fn without(arms: &[Expr], common: &[Expr]) -> Option<Expr> {
    let rest = |arm: &Expr| {
        let mut parts = parts_of(arm);
        parts.retain(|part| !common.iter().any(|known| same(known, part)));
        (!parts.is_empty()).then(|| Expr::and(parts))
    };
    arms.iter().map(rest).collect::<Option<Vec<Expr>>>().map(Expr::or)
}

/// Returns the conditions common to all arms of an OR. Only a condition of its own leads through an index or joins tables.
fn common_of(arms: &[Expr]) -> Vec<Expr> {
    let [first, rest @ ..] = arms else { return Vec::new() };
    let mut common = parts_of(first);
    common.retain(|part| matches!(part, Expr::Compare(_) | Expr::Between(_) | Expr::In(_)) && !is_volatile(part));
    for arm in rest {
        if common.is_empty() {
            break;
        }
        let others = parts_of(arm);
        common.retain(|part| others.iter().any(|other| same(part, other)));
    }
    common
}

/// Returns whether two expressions are equal. Expressions with subqueries never are.
pub fn same(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Column(a, _), Expr::Column(b, _)) => a == b,
        (Expr::Subquery(a, _), Expr::Subquery(b, _)) if Arc::ptr_eq(a, b) => true,
        (Expr::Column(..), _) | (_, Expr::Column(..)) => false,
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}

/// Returns the expressions of the node itself.
pub fn exprs(node: &Node) -> Vec<&Expr> {
    match node {
        Node::Scan(scan) => {
            // The bounds of an access path also occur in conditions, as the same expressions.
            scan.conditions.iter().chain(scan.access.bounds().filter(|_| scan.conditions.is_empty())).collect()
        }
        Node::Loop { on, .. } => on.iter().collect(),
        Node::Hash(join) => join.left_keys.iter().chain(&join.right_keys).chain(&join.on).collect(),
        Node::Filter { conditions, .. } => conditions.iter().collect(),
        Node::LockRows(lock) => lock.conditions.iter().chain(lock.outer.iter().flat_map(|join| &join.on)).collect(),
        Node::Group(group) => group.keys.iter().chain(group.calls.iter().flat_map(|call| &call.arguments)).collect(),
        Node::Window(window) => {
            let order = window.order.iter().map(|(expr, _)| expr);
            let arguments = window.calls.iter().flat_map(|call| match &call.what {
                What::Aggregate(call) => call.arguments.iter().collect(),
                What::Shift { value, by, otherwise, .. } => [value, otherwise].into_iter().chain(by).collect(),
                What::Nth(value, nth) => vec![value, nth],
                What::First(value) | What::Last(value) | What::Ntile(value) => vec![value],
                What::RowNumber | What::Rank | What::DenseRank | What::PercentRank | What::CumeDist => Vec::new(),
            });
            let edges = window.calls.iter().flat_map(|call| [&call.frame.start, &call.frame.end]);
            let amounts = edges.filter_map(|edge| match edge {
                Edge::Preceding(distance) | Edge::Following(distance) => Some(&distance.amount),
                Edge::Far | Edge::Current => None,
            });
            window.partition.iter().chain(order).chain(arguments).chain(amounts).collect()
        }
        Node::Project { exprs, .. } => exprs.iter().collect(),
        Node::Rows { rows } => rows.iter().flatten().collect(),
        Node::TableFunction(function) => vec![&function.argument],
        Node::ProjectSet(set) => set.calls.iter().flat_map(|call| &call.arguments).collect(),
        _ => Vec::new(),
    }
}

/// Returns the inputs of the node.
pub fn inputs(node: &Node) -> Vec<&Arc<Node>> {
    match node {
        Node::Loop { left, right, .. } | Node::SetOperation { left, right, .. } => vec![left, right],
        Node::Hash(join) => vec![&join.left, &join.right],
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Strip { input, .. }
        | Node::Distinct { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Ties { input, .. }
        | Node::Derived { input, .. }
        | Node::Lateral { input, .. } => vec![input],
        Node::LockRows(lock) => vec![&lock.input],
        Node::Group(group) => vec![&group.input],
        Node::Window(window) => vec![&window.input],
        Node::ProjectSet(set) => vec![&set.input],
        Node::Union { inputs } => inputs.iter().collect(),
        Node::Common { source, recursion, .. } => {
            std::iter::once(source).chain(recursion.iter().map(|recursion| &recursion.part)).collect()
        }
        Node::One { .. }
        | Node::Scan(_)
        | Node::LastRound { .. }
        | Node::System { .. }
        | Node::Rows { .. }
        | Node::TableFunction(_) => Vec::new(),
    }
}

/// Returns whether the plan reads stored tables, those of common table expressions aside.
pub fn reads_tables(node: &Node) -> bool {
    match node {
        Node::Scan(_) => true,
        Node::Common { .. } => false,
        node => inputs(node).into_iter().any(|input| reads_tables(input)),
    }
}

/// The readers of the round before in a recursive part, at any depth: the ids of common table expressions and of subqueries.
#[derive(Debug, Default)]
pub struct RoundReaders {
    pub commons: Vec<usize>,
    pub subqueries: Vec<usize>,
}

impl RoundReaders {
    pub fn of(part: &Node, recursion: usize) -> RoundReaders {
        let mut readers = RoundReaders::default();
        readers.add(part, recursion);
        readers
    }

    /// Returns whether the node reads them.
    fn add(&mut self, node: &Node, recursion: usize) -> bool {
        let mut reads = matches!(node, Node::LastRound { id } if *id == recursion);
        for input in inputs(node) {
            reads |= self.add(input, recursion);
        }
        subqueries(node, &mut |query| {
            let list = query.list.as_ref().map(|list| &list.node);
            let mut subquery_reads = false;
            for plan in list.into_iter().chain([&query.node]) {
                subquery_reads |= self.add(plan, recursion);
            }
            if subquery_reads {
                self.subqueries.push(query.id);
            }
            reads |= subquery_reads;
        });
        if let Node::Common { id, .. } = node
            && reads
        {
            self.commons.push(*id);
        }
        reads
    }
}

/// Calls `visit` for the subqueries in the node's expressions.
pub fn subqueries<'n>(node: &'n Node, visit: &mut dyn FnMut(&'n Subquery)) {
    for expr in exprs(node) {
        expr.walk(&mut |expr| {
            if let Expr::Subquery(query, _) = expr {
                visit(query);
            }
        });
    }
}

/// Returns whether the outer rows determine the result of the plan: nothing in it is random, waits or reads user
/// variables.
pub fn repeats(node: &Node) -> bool {
    let is_odd = match node {
        Node::LastRound { .. } => true,
        Node::ProjectSet(set) => set.calls.iter().filter_map(|call| call.function).any(|function| function.volatile),
        _ => false,
    };
    !is_odd && exprs(node).into_iter().all(expr_repeats) && inputs(node).into_iter().all(|input| repeats(input))
}

pub fn expr_repeats(expr: &Expr) -> bool {
    let mut all = !is_volatile(expr);
    expr.walk(&mut |expr| {
        all &= match expr {
            Expr::Subquery(query, _) => repeats(&query.node) && query.question.needles().iter().all(expr_repeats),
            Expr::Call(call) => call.function.session == SessionUse::Unused,
            _ => true,
        };
    });
    all
}

/// Returns whether the plan reads outer rows.
pub fn looks_around(node: &Node) -> bool {
    exprs(node).into_iter().any(expr_looks_around) || inputs(node).into_iter().any(|input| looks_around(input))
}

/// Counts a correlated subquery within as reading outer rows, since these may be rows of the expression itself.
fn expr_looks_around(expr: &Expr) -> bool {
    let mut looks = false;
    expr.walk(&mut |expr| {
        looks |= match expr {
            Expr::Outer { .. } => true,
            Expr::Subquery(query, _) => query.is_correlated,
            _ => false,
        };
    });
    looks
}

/// Returns whether the expression is deterministic over a row and free of side effects.
pub fn is_steady(expr: &Expr) -> bool {
    !is_volatile(expr) && !has_subquery(expr)
}
