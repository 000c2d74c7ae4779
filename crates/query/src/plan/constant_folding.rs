//! Constant folding: evaluates the constant parts of a scan's conditions once, before its first row: `d < DATE
//! '1994-01-01' + INTERVAL 1 YEAR`. Parameters, which stand for most literals, are replaced by their values, and lists
//! of constants are sorted.
//!
//! An expression that fails or warns is left unfolded, since there may be no row that evaluates it. The exception is a
//! comparison with a constant of the wrong form, such as a string that is no date: that is an error of the statement.

use datum::Result;

use crate::nodes::context::EvalContext;
use crate::nodes::eval::sort_literals;
use crate::nodes::expr::{Expr, In};
use crate::nodes::function::Folding;
use crate::types::Type;
use crate::value::Value;

/// The number of rows from which replacing parameters by their values pays off.
const ROWS: f64 = 64.0;

/// Returns whether folding pays off for a condition that is evaluated for about `rows` rows.
pub fn folds(condition: &Expr, rows: f64) -> bool {
    let mut found = false;
    condition.walk(&mut |expr| match expr {
        Expr::Parameter(..) => found |= rows >= ROWS,
        Expr::Compare(compare) => found |= is_fixed(&compare.left) || is_fixed(&compare.right),
        Expr::Between(between) => found |= is_fixed(&between.low) || is_fixed(&between.high),
        Expr::In(list) => found |= list.list.iter().any(|(candidate, _)| is_fixed(candidate)),
        _ => {}
    });
    found
}

/// Returns the conditions with constant expressions replaced by their values.
pub fn folded(conditions: &[Expr], ctx: &mut EvalContext) -> Result<Vec<Expr>> {
    let mut conditions = conditions.to_vec();
    let mut done = Ok(());
    let mut fold = |expr: &mut Expr| match expr {
        Expr::Parameter(place, ty) => {
            if let Some(value) = ctx.parameters.get(*place) {
                *expr = Expr::Literal(value.clone(), ty.clone());
            }
        }
        Expr::In(list) if list.sorted.is_none() => {
            expand(list);
            list.list.iter_mut().for_each(|(candidate, _)| drop(computed(candidate, ctx)));
            list.sorted = sort_literals(&mut list.list);
        }
        Expr::Compare(compare) => {
            for side in [&mut compare.left, &mut compare.right] {
                if let (Err(error), true) = (computed(side, ctx), done.is_ok()) {
                    done = Err(error);
                }
            }
        }
        Expr::Between(between) => {
            let _ = (computed(&mut between.low, ctx), computed(&mut between.high, ctx));
        }
        _ => {}
    };
    conditions.iter_mut().for_each(|condition| condition.rewrite(&mut fold));
    done.map(|()| conditions)
}

/// Puts the elements of known arrays in their place.
fn expand(list: &mut In) {
    let is_known = |expr: &Expr| matches!(expr, Expr::Elements(array) if matches!(**array, Expr::Literal(..)));
    if !list.list.iter().any(|(candidate, _)| is_known(candidate)) {
        return;
    }
    for (candidate, by) in std::mem::take(&mut list.list) {
        let Expr::Elements(array) = &candidate else {
            list.list.push((candidate, by));
            continue;
        };
        match &**array {
            Expr::Literal(Value::Array(array), _) => {
                let shape = array.element();
                let ty =
                    Type { collation: shape.collation, ..Type::undeclared(shape.storage, (0, Type::ANY_SCALE), true) };
                let literals = array.values().iter().map(|value| (Expr::Literal(value.clone(), ty.clone()), by));
                list.list.extend(literals);
            }
            Expr::Literal(..) => list.list.push((Expr::null(), by)),
            _ => list.list.push((candidate, by)),
        }
    }
}

/// Returns whether the expression is a call without side effects over literals and parameters.
fn is_fixed(expr: &Expr) -> bool {
    let is_computed = match expr {
        Expr::Call(call) => call.function.folding != Folding::None,
        _ => false,
    };
    is_computed
        && expr
            .children()
            .into_iter()
            .all(|child| matches!(child, Expr::Literal(..) | Expr::Parameter(..)) || is_fixed(child))
}

/// Replaces a constant expression by its value, a quotient with all its digits. Fails if a checked coercion fails,
/// which is an error of the statement.
fn computed(expr: &mut Expr, ctx: &mut EvalContext) -> Result<()> {
    if !is_fixed(expr) {
        return Ok(());
    }
    let warnings = std::mem::take(&mut ctx.warnings);
    let value = expr.eval_exact(&[], ctx);
    let is_silent = ctx.warnings.count() == 0;
    ctx.warnings = warnings;
    match value {
        Ok(value) if is_silent => *expr = Expr::Literal(value, expr.ty()),
        Err(error) if matches!(expr, Expr::Call(call) if call.function.folding == Folding::CheckedCoercion) => {
            return Err(error);
        }
        _ => {}
    }
    Ok(())
}
