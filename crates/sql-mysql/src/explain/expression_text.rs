//! Expressions as text for EXPLAIN, with the names of columns as far as the plan knows them.

use std::collections::HashMap;

use crate::scalar::operation::{Arithmetic, Operator};
use crate::scalar::operators::Operation;
use crate::scalar::{compare, convert, variable};
use crate::types::{CollationName as _, MysqlType as _};
use crate::value::Value;
use query::nodes::expr::{Call, Expr};
use query::nodes::subquery::{Question, Subquery};

/// The names of a row's places.
pub type Names = HashMap<usize, String>;

/// The expression over rows whose places have these names; `outer` are those of the blocks around it.
pub fn words(expr: &Expr, names: &Names, outer: &[Names]) -> String {
    let within = |expr: &Expr| words(expr, names, outer);
    let list =
        |exprs: &mut dyn Iterator<Item = &Expr>, between: &str| exprs.map(within).collect::<Vec<_>>().join(between);
    match expr {
        Expr::Literal(value, ty) => match value {
            Value::Null => "NULL".into(),
            value if ty.is_string() || ty.kind().is_temporal() => {
                format!("'{}'", convert::to_text(value, ty).replace('\'', "''"))
            }
            value => convert::to_text(value, ty).to_string(),
        },
        Expr::Column(at, _) => names.get(at).cloned().unwrap_or_else(|| format!("#{at}")),
        Expr::Parameter(..) => "?".into(),
        Expr::Outer { depth, at, .. } => {
            let name = outer.get(*depth).and_then(|names| names.get(at));
            name.cloned().unwrap_or_else(|| format!("#{at}"))
        }
        Expr::Subquery(query, _) => subquery_words(query, |expr| words(expr, names, outer)),
        Expr::And(sides) => format!("({})", list(&mut sides.iter(), " and ")),
        Expr::Or(sides) => format!("({})", list(&mut sides.iter(), " or ")),
        Expr::Xor(sides) => format!("({})", list(&mut sides.iter(), " xor ")),
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(inner) => format!("({} is not null)", within(inner)),
            Expr::Call(call) if Operation::of(call) == Some(Operation::Like) => {
                format!("({} not like {})", within(&call.arguments[0]), within(&call.arguments[1]))
            }
            inner => format!("(not {})", within(inner)),
        },
        Expr::IsNull(inner) => format!("({} is null)", within(inner)),
        Expr::IsTruth(inner, truth) => format!("({} is {truth})", within(inner)),
        Expr::Compare(node) => format!("({} {} {})", within(&node.left), compare::sign(node.op), within(&node.right)),
        Expr::Between(node) => format!(
            "({}{} between {} and {})",
            within(&node.needle),
            not(node.negated),
            within(&node.low),
            within(&node.high)
        ),
        Expr::In(node) => format!(
            "({}{} in ({}))",
            within(&node.needle),
            not(node.negated),
            list(&mut node.list.iter().map(|(expr, _)| expr), ",")
        ),
        Expr::Case(node) => {
            let arms = node.arms.iter().map(|(when, then)| format!(" when {} then {}", within(when), within(then)));
            format!("(case{} else {} end)", arms.collect::<String>(), within(&node.otherwise))
        }
        Expr::Exact(inner) | Expr::Shown(inner) | Expr::Elements(inner) => within(inner),
        Expr::Call(call) => call_words(call, within),
    }
}

/// `words` writes an argument.
fn call_words(call: &Call, words: impl Fn(&Expr) -> String) -> String {
    let argument = |at: usize| words(&call.arguments[at]);
    if let Some(Arithmetic { op, .. }) = Arithmetic::of(call) {
        return match op {
            Operator::Negate | Operator::BitNot => format!("{}{}", op.sign(), argument(0)),
            _ => format!("({} {} {})", argument(0), op.sign(), argument(1)),
        };
    }
    if let Some(name) = variable::name_of(call) {
        let is_read = call.arguments.len() == 1;
        return if is_read { format!("(@{name})") } else { format!("(@{name} := {})", argument(1)) };
    }
    match Operation::of(call) {
        Some(Operation::Cast) => format!("cast({} as {})", argument(0), call.ty.name()),
        Some(Operation::Collate) => format!("({} collate {})", argument(0), call.ty.collation.name()),
        Some(Operation::Like) => format!("({} like {})", argument(0), argument(1)),
        Some(Operation::Present | Operation::Truth | Operation::Unify) => argument(0),
        None if call.function.is_coercion() => argument(0),
        None => {
            let arguments: Vec<String> = call.arguments.iter().map(words).collect();
            format!("{}({})", call.function.name(), arguments.join(","))
        }
    }
}

/// The subquery as EXPLAIN shows it; `words` writes an expression.
fn subquery_words(query: &Subquery, words: impl Fn(&Expr) -> String) -> String {
    let select = format!("select #{}", query.id + 1);
    let sign = |test: &Expr| match test {
        Expr::Compare(compare) => compare::sign(compare.op),
        _ => "?",
    };
    let needles: Vec<String> = query.question.needles().iter().map(words).collect();
    let needle = if needles.len() == 1 { needles.concat() } else { format!("({})", needles.join(",")) };
    match &query.question {
        Question::Value => format!("({select})"),
        Question::Exists => format!("exists({select})"),
        Question::Some { keys: Some(_), .. } => format!("({needle} in ({select}))"),
        Question::Some { test, .. } if sign(test) == "=" => format!("({needle} in ({select}))"),
        Question::Some { test, .. } => format!("({needle} {} any ({select}))", sign(test)),
        Question::All { test, .. } => format!("({needle} {} all ({select}))", sign(test)),
        Question::Row { test, .. } => format!("({needle} {} ({select}))", sign(test)),
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}
