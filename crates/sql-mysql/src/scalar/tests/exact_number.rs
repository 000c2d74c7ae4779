//! Decimals that the core computes itself, beside the operators.

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

/// QU-51: for all pairs of numbers near the limits, and all scales, the core gives the digits that the operator computes, or none.
#[test]
fn exact_numbers_are_those_of_the_operators() {
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
                match call.exact_number(&row, &ctx) {
                    Some(short) => {
                        done += 1;
                        assert_eq!(
                            format!("{:?}", Value::Decimal(short.into())),
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
        assert!(sum.exact_number(&[value], &EvalContext::new()).is_none());
    }
    let divided = call(Operator::Divide, column(0), column(0));
    assert!(divided.exact_number(&[Value::Decimal(Decimal::new(1, 2))], &EvalContext::new()).is_none());
}
