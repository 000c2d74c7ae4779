//! Walks over expressions of the syntax tree, without the subqueries within.

use syntax::postgres::tree::{self, ExprKind, FuncCall, JsonContent, Over, SelectStmt, WindowDef};

use crate::bind::resolve::functions_named;
use crate::functions::Body;

/// Returns whether an expression within, or this one, satisfies the predicate.
pub fn any(expr: &tree::Expr, is_it: &dyn Fn(&tree::Expr) -> bool) -> bool {
    is_it(expr) || children(expr).into_iter().any(|child| any(child, is_it))
}

/// Returns whether the expression contains an aggregate of its block, as far as its text tells.
pub fn has_aggregate(expr: &tree::Expr) -> bool {
    any(expr, &|expr| match &expr.kind {
        ExprKind::Function(call) => call.over.is_none() && (call.within_group || is_aggregate(call)),
        ExprKind::Grouping(_) => true,
        _ => false,
    })
}

/// Returns whether the expression contains a subquery.
pub fn has_subquery(expr: &tree::Expr) -> bool {
    any(expr, &|expr| !matches!(expr.kind, ExprKind::ArrayQuery(_)) && subquery_of(expr).is_some())
}

/// Returns the query of an expression that is a subquery.
pub fn subquery_of(expr: &tree::Expr) -> Option<&SelectStmt> {
    match &expr.kind {
        ExprKind::Subquery(query) | ExprKind::Exists(query) | ExprKind::ArrayQuery(query) => Some(query),
        ExprKind::InQuery { operand: _, query, negated: _, at: _ } => Some(query),
        ExprKind::QuantifiedQuery(node) => Some(&node.query),
        ExprKind::JsonConstructor(node) => match &node.content {
            JsonContent::Query(query, ..) => Some(query),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether the name of the function is that of an aggregate.
pub fn is_aggregate(call: &FuncCall) -> bool {
    functions_named(call.name.last()).iter().any(|row| matches!(row.body, Body::Aggregate(_)))
}

/// Returns the expressions of which this one consists.
pub fn children(expr: &tree::Expr) -> Vec<&tree::Expr> {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Column(_) | ExprKind::Param(_) | ExprKind::SqlValue(_) => Vec::new(),
        ExprKind::Default | ExprKind::CurrentOf(_) => Vec::new(),
        ExprKind::ArrayQuery(_) | ExprKind::Exists(_) | ExprKind::Subquery(_) => Vec::new(),
        ExprKind::And(list)
        | ExprKind::Or(list)
        | ExprKind::Row { items: list, explicit: _ }
        | ExprKind::Array(list)
        | ExprKind::Coalesce(list)
        | ExprKind::Greatest(list)
        | ExprKind::Least(list)
        | ExprKind::Grouping(list) => list.iter().collect(),
        ExprKind::Not(operand)
        | ExprKind::Prefix { op: _, operand }
        | ExprKind::NullTest { operand, negated: _, at: _ }
        | ExprKind::BooleanTest { operand, test: _, negated: _, at: _ }
        | ExprKind::InQuery { operand, query: _, negated: _, at: _ }
        | ExprKind::Cast { operand, to: _, at: _ }
        | ExprKind::Collate { operand, collation: _, at: _ }
        | ExprKind::Indirection { operand, links: _ } => vec![operand],
        ExprKind::Chain { first, links } => {
            std::iter::once(&**first).chain(links.iter().map(|link| &link.operand)).collect()
        }
        ExprKind::Quantified(node) => vec![&node.left, &node.array],
        ExprKind::QuantifiedQuery(node) => vec![&node.left],
        ExprKind::Distinct { left, right, negated: _, at: _ } | ExprKind::NullIf { left, right } => vec![left, right],
        ExprKind::Between(node) => vec![&node.operand, &node.low, &node.high],
        ExprKind::InList { operand, list, negated: _, at: _ } => std::iter::once(&**operand).chain(list).collect(),
        ExprKind::Like(node) => [&node.operand, &node.pattern].into_iter().chain(&node.escape).collect(),
        ExprKind::Case(node) => {
            let arms = node.arms.iter().flat_map(|arm| [&arm.condition, &arm.result]);
            node.operand.iter().chain(arms).chain(&node.otherwise).collect()
        }
        ExprKind::JsonValue { operand, format: _ } => vec![operand],
        ExprKind::JsonConstructor(node) => match &node.content {
            JsonContent::Object(members) => members.iter().flat_map(|(key, value)| [key, value]).collect(),
            JsonContent::Array(items) => items.iter().collect(),
            JsonContent::Query(..) => Vec::new(),
        },
        ExprKind::JsonTest(node) => vec![&node.operand],
        ExprKind::Function(call) => of_call(call),
    }
}

fn of_call(call: &FuncCall) -> Vec<&tree::Expr> {
    let arguments = call.arguments.iter().map(|argument| &argument.value);
    let order = call.order_by.iter().map(|item| &item.expr);
    let mut list: Vec<&tree::Expr> = arguments.chain(order).chain(&call.filter).collect();
    if let Some(Over::Window(window)) = &call.over {
        list.extend(of_window(window));
    }
    list
}

/// Returns the expressions of PARTITION BY and ORDER BY of a window.
pub fn of_window(window: &WindowDef) -> Vec<&tree::Expr> {
    window.partition_by.iter().chain(window.order_by.iter().map(|item| &item.expr)).collect()
}
