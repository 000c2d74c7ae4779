//! QU-51: exact numbers of the core beside the functions that they stand for.

use datum::Storage;
use query::nodes::aggregate::{Aggregate, AggregateFunction};
use query::nodes::context::EvalContext;
use query::nodes::exact_number::ExactOperation;
use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::{Function, Run};
use query::types::{Collation, Type};
use stdx::prng::Prng;

use super::*;
use crate::functions::Body;

const COLUMNS: usize = 4;

fn numeric() -> Type {
    Type::undeclared(Storage::Decimal, (0, Type::ANY_SCALE), true)
}

/// Returns the functions that the core may compute itself.
fn exact_functions() -> Vec<&'static Function> {
    let function = |row: &'static crate::functions::PgFunction| match row.body {
        Body::Scalar(function) if function.exact_operation.is_some() => Some(function),
        _ => None,
    };
    FUNCTIONS.iter().filter_map(function).collect()
}

fn expression(prng: &mut Prng, functions: &[&'static Function], depth: u64) -> Expr {
    if depth == 0 || prng.chance(0.2) {
        return match prng.below(3) {
            0 => Expr::Literal(value(prng), numeric()),
            1 => Expr::Parameter(prng.below(2) as usize, numeric()),
            _ => Expr::Column(prng.below(COLUMNS as u64) as usize, numeric()),
        };
    }
    let function = functions[prng.below(functions.len() as u64) as usize];
    let arguments = match function.exact_operation {
        Some(ExactOperation::Convert) => {
            let whole = prng.next_u64() as i64 >> prng.below(64);
            vec![Expr::Literal(
                Value::Int(whole),
                Type::undeclared(Storage::Int { bytes: 8, signed: true }, (0, 0), true),
            )]
        }
        _ => vec![expression(prng, functions, depth - 1), expression(prng, functions, depth / 3)],
    };
    Expr::Call(Box::new(Call {
        function,
        arguments,
        ty: numeric(),
        collation: Collation::Binary,
        extra: Extra::default(),
    }))
}

fn value(prng: &mut Prng) -> Value {
    let scale = [0, 2, 2, 2, 6, 18, 19, 29, 30, 31, 200, 16_383][prng.below(12) as usize];
    let word = prng.next_u64() as i64 >> prng.below(64);
    Value::Decimal(match prng.below(24) {
        0 => return Value::Null,
        1 => [Decimal::NAN, Decimal::INFINITY, Decimal::NEGATIVE_INFINITY][prng.below(3) as usize].clone(),
        2 => Decimal::new([i64::MAX, i64::MIN, 0, -1][prng.below(4) as usize].into(), scale),
        3 => Decimal::new(i128::from(word) << prng.below(64), scale),
        // More digits before the point than a numeric may have, once two of them are multiplied.
        4 if prng.chance(0.2) => Decimal::new(7, 0).times_exactly(
            &"1".repeat(70_000).parse::<num_bigint::BigInt>().map_or(Decimal::ZERO, |big| Decimal::from_big(big, 0)),
        ),
        _ => Decimal::new(word.into(), scale),
    })
}

/// Evaluates with the dialect's functions alone.
fn by_functions(expr: &Expr, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Expr::Call(call) = expr else { return expr.eval(row, ctx) };
    let mut values = Vec::new();
    for argument in &call.arguments {
        let value = by_functions(argument, row, ctx)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        values.push(value);
    }
    match call.function.run {
        Run::Strict(run) => run(call, &values, ctx),
        Run::Pair(run) => run(call, &values[0], &values[1], ctx),
        _ => panic!("a strict function"),
    }
}

fn shown(result: &Result<Value>) -> String {
    let text = format!("{result:?}");
    text.chars().take(400).chain(format!(" of {}", text.len()).chars()).collect()
}

#[test]
fn exact_numbers_are_those_of_the_functions() {
    let (functions, mut prng, mut ctx) = (exact_functions(), Prng::new(51), EvalContext::new());
    assert_eq!(functions.len(), 6);
    let (mut exact, mut left, mut failed) = (0, 0, 0);
    for _ in 0..4000 {
        let depth = 1 + prng.below(10);
        let expr = expression(&mut prng, &functions, depth);
        ctx.parameters = vec![value(&mut prng), value(&mut prng)];
        for _ in 0..4 {
            let row: Vec<Value> = (0..COLUMNS).map(|_| value(&mut prng)).collect();
            let (one, other) = (expr.eval(&row, &mut ctx), by_functions(&expr, &row, &mut ctx));
            assert_eq!(shown(&one), shown(&other), "{expr:?} over {row:?}");
            failed += usize::from(one.is_err());
            if let Expr::Call(call) = &expr {
                match call.exact_number(&row, &ctx) {
                    Some(number) => {
                        exact += 1;
                        assert_eq!(shown(&Ok(Value::Decimal(number.into()))), shown(&other));
                    }
                    None => left += 1,
                }
            }
        }
    }
    assert!(exact > 1000 && left > 1000 && failed > 4, "{exact} {left} {failed}");
}

fn sum_of(function: &'static AggregateFunction) -> Aggregate {
    Aggregate {
        function,
        distinct: false,
        arguments: vec![numeric()],
        order: Vec::new(),
        separator: "".into(),
        ty: numeric(),
        by: None,
        filtered: false,
        setting: 0,
    }
}

#[test]
fn sums_of_exact_numbers_are_those_of_values() {
    let (functions, mut prng, mut ctx) = (exact_functions(), Prng::new(52), EvalContext::new());
    let known = [&aggregates::SUM, &aggregates::AVG, &aggregates::VAR_POP, &aggregates::MIN, &aggregates::COUNT];
    let mut added = 0;
    for round in 0..1500 {
        let aggregate = sum_of(known[round % known.len()]);
        let (mut one, mut other) = (aggregate.start(), aggregate.start());
        let expr = expression(&mut prng, &functions, 3);
        let Expr::Call(call) = &expr else { continue };
        for _ in 0..prng.below(20) {
            let row: Vec<Value> = (0..COLUMNS).map(|_| value(&mut prng)).collect();
            ctx.parameters = vec![value(&mut prng), value(&mut prng)];
            let Ok(value) = by_functions(&expr, &row, &mut ctx) else { continue };
            let is_added = call.exact_number(&row, &ctx).is_some_and(|number| one.add_exact(number));
            added += usize::from(is_added);
            if value.is_null() {
                continue;
            }
            if !is_added {
                one.add(&aggregate, std::slice::from_ref(&value), &mut ctx).expect("it fits");
            }
            other.add(&aggregate, &[value], &mut ctx).expect("it fits");
        }
        assert_eq!(shown(&one.finish(&aggregate, &mut ctx)), shown(&other.finish(&aggregate, &mut ctx)));
    }
    assert!(added > 500, "{added}");
}
