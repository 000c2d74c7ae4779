//! Plays the answers of a PostgreSQL server, which `tests/numeric/record.py` recorded.

use std::fmt::Write as _;

use datum::Storage;
use query::nodes::aggregate::{Aggregate, AggregateFunction};
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Extra};
use query::nodes::function::{Finish, Function, Run};
use query::types::{Collation, Type};

use super::*;
use crate::error::PgError;
use crate::functions::{Body, PgFunction};
use crate::types::numeric::float::{float_in, float_out, float4_receive, float4_send, float8_receive, float8_send};
use crate::types::numeric::integer::{Width, integer_in, integer_out, integer_receive, integer_send};
use crate::types::numeric::{numeric_in, numeric_out, numeric_receive, numeric_send};
use crate::types::oid::{self, Oid};

const ANSWERS: &str = include_str!("../../../tests/numeric/answers.txt");

fn oid_of(name: &str) -> Oid {
    match name {
        "int2" => oid::INT2,
        "int4" => oid::INT4,
        "int8" => oid::INT8,
        "float4" => oid::FLOAT4,
        "float8" => oid::FLOAT8,
        "numeric" => oid::NUMERIC,
        other => panic!("a type {other}"),
    }
}

fn width(ty: Oid) -> Width {
    match ty {
        oid::INT2 => Width::Int2,
        oid::INT4 => Width::Int4,
        _ => Width::Int8,
    }
}

fn read(text: &str, ty: Oid, typmod: i32) -> std::result::Result<Value, PgError> {
    Ok(match ty {
        _ if text == "\\N" => Value::Null,
        oid::FLOAT4 => Value::Float(float_in(text)?),
        oid::FLOAT8 => Value::Double(float_in(text)?),
        oid::NUMERIC => Value::Decimal(numeric_in(text, typmod)?),
        _ => Value::Int(integer_in(text, width(ty))?),
    })
}

fn show(value: &Value, ty: Oid, extra_digits: i32) -> String {
    let mut out = Vec::new();
    match value {
        Value::Null => return "\\N".to_owned(),
        Value::Int(number) if ty == oid::BOOL => return if *number == 1 { "true" } else { "false" }.to_owned(),
        Value::Int(number) => integer_out(*number, &mut out),
        Value::Float(number) => float_out(*number, extra_digits, &mut out),
        Value::Double(number) => float_out(*number, extra_digits, &mut out),
        Value::Decimal(number) => numeric_out(number, &mut out),
        other => panic!("a value {other:?}"),
    }
    let text = String::from_utf8(out).expect("a number is ASCII");
    match text.len() {
        0..=300 => text,
        length => format!("{}..{}/{length}", &text[..60], &text[length - 60..]),
    }
}

fn send(value: &Value, ty: Oid) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Int(number) => integer_send(*number, width(ty), &mut out),
        Value::Float(number) => float4_send(*number, &mut out),
        Value::Double(number) => float8_send(*number, &mut out),
        Value::Decimal(number) => numeric_send(number, &mut out),
        other => panic!("a value {other:?}"),
    }
    out
}

fn receive(bytes: &[u8], ty: Oid) -> std::result::Result<Value, PgError> {
    Ok(match ty {
        oid::FLOAT4 => Value::Float(float4_receive(bytes)?),
        oid::FLOAT8 => Value::Double(float8_receive(bytes)?),
        oid::NUMERIC => Value::Decimal(numeric_receive(bytes, -1)?),
        _ => Value::Int(integer_receive(bytes, width(ty))?),
    })
}

fn row(oid: &str) -> &'static PgFunction {
    let oid = oid.parse().expect("an OID");
    FUNCTIONS.iter().find(|row: &&PgFunction| row.oid == oid).expect("a row")
}

fn call(function: &'static Function, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let ty = Type::undeclared(Storage::Decimal, (0, 0), true);
    let call = Call { function, arguments: Vec::new(), ty, collation: Collation::Binary, extra: Extra::default() };
    assert!(matches!(function.finish, Finish::Unchanged), "a function that rounds");
    match function.run {
        Run::Strict(run) => run(&call, values, ctx),
        Run::Pair(run) => run(&call, &values[0], &values[1], ctx),
        _ => panic!("a strict function"),
    }
}

/// Adds the rows; where rows can be removed, others before them too, which are removed again.
fn total(function: &'static AggregateFunction, rows: &[Vec<Value>]) -> Result<Value> {
    let aggregate = Aggregate {
        function,
        distinct: false,
        arguments: Vec::new(),
        order: Vec::new(),
        separator: "".into(),
        ty: Type::undeclared(Storage::Decimal, (0, 0), true),
        by: None,
        filtered: false,
        setting: 0,
    };
    let mut ctx = EvalContext::new();
    let mut state = aggregate.start();
    let moves = state.can_remove(&aggregate);
    for values in rows.iter().rev().filter(|_| moves).chain(rows) {
        state.add(&aggregate, values, &mut ctx)?;
    }
    for values in rows.iter().rev().filter(|_| moves) {
        state.remove(values, &mut ctx)?;
    }
    state.copy().finish(&aggregate, &mut ctx)
}

/// Shows an outcome as the file has it.
fn outcome(result: std::result::Result<String, PgError>) -> String {
    match result {
        Ok(text) => format!("=\t{text}"),
        Err(PgError { state, message, detail, .. }) => format!("!\t{state}\t{message}\t{}", detail.unwrap_or_default()),
    }
}

fn pg(fault: Fault) -> PgError {
    let Fault::Dialect(raised) = fault else { panic!("a fault {fault:?}") };
    let mut error = PgError::new(raised.state, raised.message);
    error.detail = (!raised.detail.is_empty()).then_some(raised.detail);
    error
}

fn answer(question: &[&str]) -> String {
    let mut ctx = EvalContext::new();
    match question {
        ["call", oid, arguments @ ..] => {
            let row = row(oid);
            let values: Vec<Value> =
                arguments.iter().zip(row.arguments).map(|(text, ty)| read(text, *ty, -1).expect("a value")).collect();
            let Body::Scalar(function) = row.body else { panic!("a function") };
            outcome(call(function, &values, &mut ctx).map(|value| show(&value, row.result, 1)).map_err(pg))
        }
        ["agg", oid, rows @ ..] => {
            let row = row(oid);
            let values = |text: &&str| -> Vec<Value> {
                text.split('|').zip(row.arguments).map(|(text, ty)| read(text, *ty, -1).expect("a value")).collect()
            };
            let rows: Vec<Vec<Value>> = rows.iter().map(values).collect();
            let Body::Aggregate(function) = row.body else { panic!("an aggregate") };
            outcome(total(function, &rows).map(|value| show(&value, row.result, 1)).map_err(pg))
        }
        ["in", ty, typmod, text] => {
            let ty = oid_of(ty);
            outcome(read(text, ty, typmod.parse().expect("a number")).map(|value| show(&value, ty, 1)))
        }
        ["out", ty, extra_digits, text] => {
            let ty = oid_of(ty);
            outcome(read(text, ty, -1).map(|value| show(&value, ty, extra_digits.parse().expect("a number"))))
        }
        ["send", ty, text] => {
            let ty = oid_of(ty);
            let value = read(text, ty, -1).expect("a value");
            let bytes = send(&value, ty);
            assert_eq!(show(&receive(&bytes, ty).expect("its form"), ty, 1), show(&value, ty, 1));
            for length in 0..bytes.len() {
                assert!(receive(&bytes[..length], ty).is_err());
            }
            assert!(receive(&[&bytes[..], &[0]].concat(), ty).is_err());
            outcome(Ok(bytes.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            })))
        }
        other => panic!("a question {other:?}"),
    }
}

#[test]
fn every_answer_is_that_of_postgresql() {
    let answers = match std::env::var("BELUGA_NUMERIC_ANSWERS") {
        Ok(path) => std::fs::read_to_string(path).expect("a file of answers"),
        Err(_) => ANSWERS.to_owned(),
    };
    let is_near = |fields: &[&str], found: &str| {
        // PostgreSQL's cube root is its platform's, which is some units of the last place off; ours is the nearest double.
        let is_root = fields[0] == "call" && row(fields[1]).name.ends_with("cbrt");
        let number = |text: &str| text.strip_prefix("=\t").and_then(|text| text.parse::<f64>().ok());
        let expected = fields[fields.len() - 2..].join("\t");
        is_root
            && matches!((number(found), number(&expected)), (Some(a), Some(b)) if a.to_bits().abs_diff(b.to_bits()) <= 4)
    };
    let mut wrong = Vec::new();
    for line in answers.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let at = fields.iter().rposition(|field| matches!(*field, "=" | "!")).expect("an answer");
        let found = answer(&fields[..at]);
        if found != fields[at..].join("\t") && !is_near(&fields, &found) {
            wrong.push(format!("{line}\n    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), answers.lines().count(), wrong.join("\n"));
}

fn scalar(oid: &str, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Body::Scalar(function) = row(oid).body else { panic!("a function") };
    call(function, values, ctx)
}

#[test]
fn a_seed_gives_the_numbers_that_postgresql_gives() {
    let mut ctx = EvalContext::new();
    let mut number = |oid: &str, values: &[f64]| {
        let values: Vec<Value> = values.iter().copied().map(Value::Double).collect();
        scalar(oid, &values, &mut ctx).map(|value| if let Value::Double(number) = value { number } else { -1.0 })
    };
    assert!((0.0..1.0).contains(&number("1598", &[]).expect("a number")));
    number("1599", &[0.5]).expect("a seed");
    let answers = [0.985_167_717_534_799_9, 0.825_301_858_027_981, 0.129_746_100_124_504_16];
    for answer in answers {
        assert_eq!(number("1598", &[]).expect("a number"), answer);
    }
    assert_eq!(number("6212", &[3.0, 2.0]).expect("a number"), 3.956_427_714_656_492);
    assert_eq!(number("6212", &[0.0, 1.0]).expect("a number"), -1.597_611_994_921_005_5);
    assert_eq!(number("1598", &[]).expect("a number"), 0.156_198_657_646_234_42);
    number("1599", &[-0.25]).expect("a seed");
    assert_eq!(number("1598", &[]).expect("a number"), 0.555_321_334_003_935_1);
    for (seed, shown) in [(1.5, "1.5"), (f64::NAN, "NaN"), (-1e300, "-1e+300")] {
        let fault = number("1599", &[seed]).expect_err("a seed out of range");
        assert_eq!(pg(fault).message, format!("setseed parameter {shown} is out of allowed range [-1,1]"));
    }
}

#[test]
fn count_leaves_out_null_and_count_of_rows_does_not() {
    let Body::Aggregate(count) = row("2147").body else { panic!("an aggregate") };
    let rows = [vec![Value::Int(1)], vec![Value::Null], vec![Value::text("a")]];
    assert_eq!(total(count, &rows).expect("a count"), Value::Int(2));
    let Body::Aggregate(count) = row("2803").body else { panic!("an aggregate") };
    assert_eq!(total(count, &[vec![], vec![], vec![]]).expect("a count"), Value::Int(3));
}

#[test]
fn a_value_of_another_form_is_an_error_and_no_panic() {
    let mut ctx = EvalContext::new();
    for row in FUNCTIONS {
        let values = vec![Value::text("x"); row.arguments.len()];
        match row.body {
            Body::Scalar(function) if !values.is_empty() => assert!(call(function, &values, &mut ctx).is_err()),
            Body::Aggregate(function) if !row.name.contains("count") => {
                assert!(total(function, &[values]).is_err() || matches!(row.name, "min" | "max"))
            }
            _ => {}
        }
    }
}

#[test]
fn rows_of_operators_and_casts_name_functions_with_their_types() {
    let signature = |oid: Oid| FUNCTIONS.iter().find(|row| row.oid == oid).map(|row| (row.arguments, row.result));
    for operator in OPERATORS {
        let operands = if operator.left == 0 { vec![operator.right] } else { vec![operator.left, operator.right] };
        assert_eq!(signature(operator.function), Some((&operands[..], operator.result)), "{}", operator.oid);
    }
    for cast in CASTS {
        let (arguments, result) = signature(cast.function).expect("a function");
        assert_eq!((arguments[0], result), (cast.source, cast.target));
    }
    let mut oids: Vec<Oid> = FUNCTIONS.iter().map(|row| row.oid).collect();
    oids.sort_unstable();
    assert!(oids.windows(2).all(|pair| pair[0] < pair[1]));
}
