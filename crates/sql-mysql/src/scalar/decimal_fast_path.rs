//! The fast path of decimal arithmetic: sums, differences and products of decimals of up to 18 digits, in two machine
//! words and without intermediate values.
//!
//! The result has the digits and the scale that `arithmetic` computes. Anything else, including results that might
//! exceed 128 bits, is left to `arithmetic` as a whole.

use crate::scalar::decimal::{Decimal, SCALE_MAX};
use crate::scalar::operation::{Arithmetic, Operator};
use crate::types::{Kind, MysqlType as _};
use crate::value::Value;
use query::nodes::context::EvalContext;
use query::nodes::expr::Expr;

/// The powers of ten that fit an `i64`.
const POWERS: [i64; 19] = {
    let mut powers = [1i64; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// A coefficient and its scale.
type Number = (i64, u16);

/// Returns the result, or None if the expression is not of this kind.
#[inline]
pub fn eval(node: &Arithmetic<'_>, row: &[Value], ctx: &EvalContext) -> Option<Decimal> {
    let (coefficient, scale) = computed(node, row, ctx)?;
    Some(Decimal::new(coefficient, scale))
}

fn computed(node: &Arithmetic<'_>, row: &[Value], ctx: &EvalContext) -> Option<(i128, u16)> {
    let is_plain = matches!(node.op, Operator::Add | Operator::Subtract | Operator::Multiply);
    if !is_plain || node.ty.kind() != Kind::Decimal {
        return None;
    }
    let (a, left_scale) = operand(node.left, row, ctx)?;
    let (b, right_scale) = operand(node.right?, row, ctx)?;
    let scale = left_scale.max(right_scale);
    // A product of two words fits four, and so does the sum of two products.
    let raised = |number: i64, own: u16| Some(i128::from(number) * i128::from(*POWERS.get(usize::from(scale - own))?));
    Some(match node.op {
        Operator::Multiply => {
            let scale = left_scale + right_scale;
            if scale > SCALE_MAX.into() {
                return None;
            }
            (i128::from(a) * i128::from(b), scale)
        }
        Operator::Add => (raised(a, left_scale)? + raised(b, right_scale)?, scale),
        _ => (raised(a, left_scale)? - raised(b, right_scale)?, scale),
    })
}

fn operand(expr: &Expr, row: &[Value], ctx: &EvalContext) -> Option<Number> {
    match expr {
        Expr::Column(place, _) => number(row.get(*place)?),
        Expr::Literal(value, _) => number(value),
        Expr::Parameter(place, _) => number(ctx.parameters.get(*place)?),
        Expr::Call(call) => {
            let (coefficient, scale) = computed(&Arithmetic::of(call)?, row, ctx)?;
            Some((i64::try_from(coefficient).ok()?, scale))
        }
        _ => None,
    }
}

#[inline]
fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Decimal(decimal) => decimal.short(),
        Value::Int(number) => Some((*number, 0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::scalar::arithmetic;
    use crate::scalar::keyword_argument::Word;
    use crate::scalar::operation::{Arithmetic, Operator};
    use crate::types::{MysqlType as _, Type};
    use crate::value::{Decimal, Value};
    use query::nodes::context::EvalContext;
    use query::nodes::expr::{Call, Expr};

    fn call(op: Operator, left: Expr, right: Expr) -> Call {
        let ty = Type::decimal(65, 30);
        let collation = ty.collation;
        let (function, arguments) = (arithmetic::function(op), vec![left, right]);
        Call { function, arguments, ty, collation, extra: Word::Operator(op, 4).into() }
    }

    /// For all pairs of numbers near the limits, and all scales, the fast path gives the digits of the general path, or
    /// none.
    #[test]
    fn it_says_what_the_long_way_says() {
        let numbers = [0, 1, -1, 9, 10, 99, -100, 123_456_789, i64::MAX, i64::MIN, i64::MAX / 10, -(1 << 62)];
        let mut ctx = EvalContext::new();
        let (mut done, mut left_alone) = (0, 0);
        for op in [Operator::Add, Operator::Subtract, Operator::Multiply] {
            for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))) {
                for (s, t) in [(0, 0), (2, 2), (0, 18), (18, 2), (2, 30), (20, 20), (30, 30)] {
                    let value = |number: i64, scale| Value::Decimal(Decimal::new(number.into(), scale));
                    let column = |place| Expr::Column(place, Type::decimal(65, 30));
                    let row = [value(a, s), value(b, t)];
                    let call = call(op, column(0), column(1));
                    let node = Arithmetic::of(&call).expect("it is an operator");
                    let long = arithmetic::compute(&node, row[0].clone(), row[1].clone(), &mut ctx).expect("it fits");
                    match super::eval(&node, &row, &ctx) {
                        Some(short) => {
                            done += 1;
                            assert_eq!(
                                format!("{:?}", Value::Decimal(short)),
                                format!("{long:?}"),
                                "{a} {b} {s} {t} {op:?}"
                            );
                        }
                        None => left_alone += 1,
                    }
                }
            }
        }
        assert!(done > 1000 && left_alone > 100);
    }

    #[test]
    fn what_is_no_decimal_is_left_alone() {
        let column = |place| Expr::Column(place, Type::decimal(15, 2));
        for value in [Value::Null, Value::Double(1.0), Value::text("1"), Value::UInt(1)] {
            let sum = call(Operator::Add, column(0), column(0));
            let node = Arithmetic::of(&sum).expect("it is an operator");
            assert!(super::eval(&node, &[value], &EvalContext::new()).is_none());
        }
        let divided = call(Operator::Divide, column(0), column(0));
        let divided = Arithmetic::of(&divided).expect("it is an operator");
        assert!(super::eval(&divided, &[Value::Decimal(Decimal::new(1, 2))], &EvalContext::new()).is_none());
    }
}
