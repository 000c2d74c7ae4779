//! Answers of the real server to random texts and calls. Each line of `recorded.tsv` is one of
//!
//! - `set`, time zone, date format, order of fields, interval style, the transaction's start in microseconds;
//! - `in`, a type, a modifier, a text, and the value as it is shown again;
//! - `call`, a function, its arguments as texts, and the result.
//!
//! An error is `!`, its SQLSTATE and its texts. `TEMPORAL_CASES` names another file to play.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use query::nodes::aggregate::Aggregate;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::Function;
use query::types::Collation;

use crate::error::{PgError, Result};
use crate::functions::state::StateOf;
use crate::functions::temporal::compare::{comparable, day_for};
use crate::functions::temporal::{aggregate, clock, rows};
use crate::functions::{Body, function};
use crate::types::io::{self, DateFormat, DateOrder, IntervalStyle, IoContext};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::types::temporal::io::TimeTz;
use crate::types::temporal::{
    MICROS_PER_DAY, MICROS_PER_HOUR, PgZone, Span, TIMESTAMP_END, TIMESTAMP_MIN, is_valid_timestamp,
};
use crate::value::Value;

/// Undoes the escapes of COPY.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('v') => '\u{b}',
                other => other.unwrap_or('\\'),
            },
            other => other,
        });
    }
    out
}

fn settings(fields: &[String]) -> IoContext {
    IoContext {
        zone: PgZone::named(&fields[1]).expect("zone"),
        date_format: match fields[2].as_str() {
            "ISO" => DateFormat::Iso,
            "SQL" => DateFormat::Sql,
            "German" => DateFormat::German,
            _ => DateFormat::Postgres,
        },
        date_order: match fields[3].as_str() {
            "DMY" => DateOrder::Dmy,
            "YMD" => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        },
        interval_style: match fields[4].as_str() {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            _ => IntervalStyle::Iso8601,
        },
        now: fields[5].parse().expect("now"),
        ..IoContext::default()
    }
}

/// Reads a value: of the types of other modules only what the lines need.
fn read(ty: Oid, typmod: i32, text: &str, io: &IoContext) -> Result<Value> {
    if text == "<null>" {
        return Ok(Value::Null);
    }
    match ty {
        oid::INT4 => Ok(Value::Int(text.parse().expect("integer"))),
        oid::FLOAT8 => Ok(Value::Double(match text {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            text => text.parse().expect("double"),
        })),
        _ => io::input(&registry::column_type(ty, typmod, true), text, io),
    }
}

fn show(ty: Oid, value: &Value, io: &IoContext) -> Result<String> {
    let mut out = Vec::new();
    match value {
        Value::Null => return Ok("<null>".into()),
        Value::Decimal(decimal) if decimal.is_infinite() => {
            return Ok(if decimal.is_negative() { "-Infinity".into() } else { "Infinity".into() });
        }
        Value::Decimal(decimal) => return Ok(decimal.to_string()),
        Value::Int(number) if ty == oid::INT4 => return Ok(number.to_string()),
        Value::Double(number) => return Ok(number.to_bits().to_string()),
        _ => io::output(value, &registry::column_type(ty, -1, true), io, &mut out)?,
    }
    Ok(String::from_utf8(out).expect("UTF-8"))
}

fn error_text(error: PgError) -> String {
    let detail = error.detail.map(|detail| format!("|D:{detail}")).unwrap_or_default();
    let hint = error.hint.map(|hint| format!("|H:{hint}")).unwrap_or_default();
    format!("!{} {}{detail}{hint}", error.state, error.message)
}

fn call(number: Oid, texts: &[String], io: &IoContext) -> Result<String> {
    let row = function(number).expect("function");
    let Body::Scalar(body) = row.body else { panic!("{} is no scalar function", row.name) };
    let mut arguments = Vec::new();
    for (text, ty) in texts.iter().zip(row.arguments) {
        arguments.push(Expr::Literal(read(*ty, -1, text, io)?, registry::column_type(*ty, -1, true)));
    }
    let mut ctx = EvalContext::new();
    ctx.state_mut().io = io.clone();
    let ty = registry::column_type(row.result, -1, true);
    let call = Call { function: body, arguments, ty, collation: Collation::Binary, extra: Extra::default() };
    let value = Expr::Call(Box::new(call)).eval(&[], &mut ctx).map_err(PgError::from)?;
    show(row.result, &value, io)
}

/// Plays lines and returns those whose answers differ.
fn differences(lines: &str) -> Vec<String> {
    let mut io = IoContext::default();
    let mut differing = Vec::new();
    for line in lines.lines() {
        let fields: Vec<String> = line.split('\t').map(unescaped).collect();
        let number = |at: usize| fields[at].parse::<i64>().expect("number");
        let (answer, ty) = match fields[0].as_str() {
            "set" => {
                io = settings(&fields);
                continue;
            }
            "in" => {
                let (ty, typmod) = (number(1) as Oid, number(2) as i32);
                (read(ty, typmod, &fields[3], &io).and_then(|value| show(ty, &value, &io)), ty)
            }
            "call" => {
                let number = number(1) as Oid;
                (call(number, &fields[2..fields.len() - 1], &io), function(number).expect("function").result)
            }
            other => panic!("{other}"),
        };
        let answer = answer.unwrap_or_else(error_text);
        let recorded = fields.last().expect("answer");
        let is_same = match recorded.parse::<f64>() {
            Ok(double) if ty == oid::FLOAT8 => answer == double.to_bits().to_string(),
            _ => answer == *recorded,
        };
        if !is_same {
            let name = function(fields[1].parse().unwrap_or(0)).map_or("", |row| row.name);
            differing.push(format!(
                "{} {:?} {:?} {name}\n    {line}\n    ours: {answer}",
                io.zone.name(),
                io.date_format,
                io.date_order
            ));
        }
    }
    differing
}

fn play(lines: &str) {
    let differing = differences(lines);
    differing.iter().take(60).for_each(|line| println!("{line}"));
    assert!(differing.is_empty(), "{} of {} differ", differing.len(), lines.lines().count());
}

#[test]
fn random_calls_answer_as_the_real_server() {
    match std::env::var("TEMPORAL_CASES") {
        Ok(path) => play(&std::fs::read_to_string(path).expect("cases")),
        Err(_) => play(include_str!("recorded.tsv")),
    }
}

fn evaluated(function: &'static Function, arguments: Vec<Expr>, ty: Oid, io: &IoContext) -> String {
    let mut ctx = EvalContext::new();
    ctx.state_mut().io = io.clone();
    let ty = registry::column_type(ty, -1, true);
    let result = registry::oid_of(&ty);
    let call = Call { function, arguments, ty, collation: Collation::Binary, extra: Extra::default() };
    let value = Expr::Call(Box::new(call)).eval(&[], &mut ctx).expect("value");
    show(result, &value, io).expect("text")
}

#[test]
fn value_functions_tell_the_start_of_the_transaction_in_the_zone() {
    // 2026-11-26 03:45:13.123456 UTC
    let io = IoContext {
        zone: PgZone::named("America/New_York").expect("zone"),
        now: 848_979_913_123_456,
        ..IoContext::default()
    };
    let int = |number| Expr::Literal(Value::Int(number), registry::column_type(oid::INT4, -1, false));
    assert_eq!(evaluated(&clock::CURRENT_DATE, vec![], oid::DATE, &io), "2026-11-25");
    assert_eq!(evaluated(&clock::CURRENT_TIME, vec![int(0)], oid::TIMETZ, &io), "22:45:13-05");
    assert_eq!(evaluated(&clock::CURRENT_TIMESTAMP, vec![], oid::TIMESTAMPTZ, &io), "2026-11-25 22:45:13.123456-05");
    assert_eq!(evaluated(&clock::LOCALTIME, vec![int(3)], oid::TIME, &io), "22:45:13.123");
    assert_eq!(evaluated(&clock::LOCALTIMESTAMP, vec![int(9)], oid::TIMESTAMP, &io), "2026-11-25 22:45:13.123456");
}

#[test]
fn sums_and_averages_of_intervals_keep_their_fields() {
    let (io, mut ctx) = (IoContext::default(), EvalContext::new());
    let ty = registry::column_type(oid::INTERVAL, -1, true);
    let mut answers = Vec::new();
    for function in [&aggregate::SUM, &aggregate::AVG] {
        let aggregate = Aggregate {
            function,
            distinct: false,
            arguments: vec![ty.clone()],
            order: vec![],
            separator: "".into(),
            ty: ty.clone(),
            by: None,
            filtered: false,
            setting: 0,
        };
        let mut state = aggregate.start();
        for text in ["1 mon 3 days", "2 mons 00:00:01", "5 days 12:00"] {
            let value = read(oid::INTERVAL, -1, text, &io).expect("interval");
            state.add(&aggregate, &[value], &mut ctx).expect("sum");
        }
        let value = state.finish(&aggregate, &mut ctx).expect("result");
        answers.push(show(oid::INTERVAL, &value, &io).expect("text"));
    }
    assert_eq!(answers, ["3 mons 8 days 12:00:01", "1 mon 2 days 20:00:00.333333"]);
}

/// Any value of a type, its least and greatest ones often.
fn any_value(ty: Oid) -> BoxedStrategy<Value> {
    let texts = prop_oneof![
        prop::sample::select(vec![
            "year",
            "week",
            "epoch",
            "millennium",
            "us",
            "julian",
            "UTC",
            "Europe/Berlin",
            "msk",
            "-15:59"
        ]),
        prop::sample::select(vec![
            "YYYY-MM-DD HH24:MI:SS.US TZH",
            "IYYY-IW-ID",
            "IDDD J WW W Q CC",
            "Y,YYYth RM DDD",
            "HH12 AM SSSSS FF6"
        ]),
    ];
    let free = "[-+0-9:./ a-zA-Z\"\\\\]{0,30}";
    match ty {
        oid::TEXT => prop_oneof![texts.prop_map(Value::text), free.prop_map(Value::text)].boxed(),
        oid::INT4 => prop_oneof![any::<i32>(), -100..100i32, Just(i32::MIN), Just(i32::MAX)]
            .prop_map(|n| Value::Int(n.into()))
            .boxed(),
        oid::FLOAT8 => prop_oneof![any::<f64>(), -100.0..100.0, Just(f64::NAN), Just(f64::INFINITY)]
            .prop_map(Value::Double)
            .boxed(),
        oid::DATE => prop_oneof![
            -2_451_545i32..2_145_031_949,
            Just(i32::MIN),
            Just(i32::MAX),
            Just(-2_451_545),
            Just(2_145_031_948)
        ]
        .prop_map(|days| Value::Int(days.into()))
        .boxed(),
        oid::TIME => prop_oneof![0..=MICROS_PER_DAY, Just(MICROS_PER_DAY)].prop_map(Value::Int).boxed(),
        oid::TIMETZ => (0..=MICROS_PER_DAY, -57_599i32..57_600)
            .prop_map(|(micros, west)| TimeTz { micros, west }.to_value())
            .boxed(),
        oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            let extremes = prop::sample::select(vec![i64::MIN, i64::MAX, TIMESTAMP_MIN, TIMESTAMP_END - 1]);
            prop_oneof![TIMESTAMP_MIN..TIMESTAMP_END, extremes].prop_map(Value::Int).boxed()
        }
        oid::INTERVAL => {
            let months = prop_oneof![any::<i32>(), -30..30i32, Just(i32::MIN), Just(i32::MAX), Just(0)];
            let micros = prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), Just(0)];
            (months.clone(), months, micros)
                .prop_map(|(months, days, micros)| Value::Interval(Span { months, days, micros }))
                .boxed()
        }
        other => panic!("type {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn values_brought_among_another_type_compare_as_the_operators_do(
        days in any_value(oid::DATE),
        local in any_value(oid::TIMESTAMP),
        at in any_value(oid::TIMESTAMPTZ),
        zone in prop::sample::select(vec!["UTC", "America/New_York", "<+05>-5"]),
    ) {
        let mut ctx = EvalContext::new();
        ctx.state_mut().io.zone = PgZone::named(zone).expect("zone");
        let compared = [
            (2344, oid::DATE, oid::TIMESTAMP, &days, &local),
            (2357, oid::DATE, oid::TIMESTAMPTZ, &days, &at),
            (2526, oid::TIMESTAMP, oid::TIMESTAMPTZ, &local, &at),
        ];
        for (number, ty, other, value, beside) in compared {
            let Some(Body::Scalar(order)) = function(number).map(|row| &row.body) else { panic!("{number}") };
            let int4 = registry::column_type(oid::INT4, -1, true);
            let literal = |value: &Value, ty: Oid| Expr::Literal(value.clone(), registry::column_type(ty, -1, true));
            let mut eval = |function: &'static Function, arguments: Vec<Expr>| {
                let (ty, extra) = (int4.clone(), Extra::default());
                let call = Call { function, arguments, ty, collation: Collation::Binary, extra };
                Expr::Call(Box::new(call)).eval(&[], &mut ctx).expect("value")
            };
            let order = eval(order, vec![literal(value, ty), literal(beside, other)]);
            let placed = eval(comparable(ty, other).expect("function"), vec![literal(value, ty)]);
            let (Value::Int(order), Value::Int(placed), Value::Int(beside)) = (order, placed, beside) else { panic!() };
            prop_assert_eq!(order, placed.cmp(beside) as i64);
        }
    }

    #[test]
    fn a_date_stands_for_a_timestamp_in_each_comparison(
        days in any_value(oid::DATE),
        (local, at) in (any_value(oid::TIMESTAMP), any_value(oid::TIMESTAMPTZ)),
        near in -3i64..=3,
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Pacific/Apia", "Asia/Kathmandu", "<+14>-14"]),
    ) {
        let mut ctx = EvalContext::new();
        ctx.state_mut().io.zone = PgZone::named(zone).expect("zone");
        let Value::Int(day) = days else { panic!("a date") };
        // Timestamps around the date's own midnight say more than any two values.
        let beside = Value::Int(day.saturating_mul(MICROS_PER_DAY).saturating_add(near * MICROS_PER_HOUR * 5));
        let is_timestamp = matches!(beside, Value::Int(at) if is_valid_timestamp(at));
        let other = if is_timestamp { [&beside, &beside] } else { [&local, &at] };
        for (number, ty, value) in [(2344, oid::TIMESTAMP, &local), (2344, oid::TIMESTAMP, other[0]), (2357, oid::TIMESTAMPTZ, &at), (2357, oid::TIMESTAMPTZ, other[1])] {
            let Some(Body::Scalar(order)) = function(number).map(|row| &row.body) else { panic!("{number}") };
            let mut eval = |function: &'static Function, arguments: &[(&Value, u32)]| {
                let literal = |(value, ty): &(&Value, u32)| Expr::Literal((*value).clone(), registry::column_type(*ty, -1, true));
                let arguments = arguments.iter().map(literal).collect();
                let (ty, extra) = (registry::column_type(oid::INT4, -1, true), Extra::default());
                let call = Call { function, arguments, ty, collation: Collation::Binary, extra };
                match Expr::Call(Box::new(call)).eval(&[], &mut ctx) {
                    Ok(Value::Int(number)) => number,
                    other => panic!("{other:?}"),
                }
            };
            let order = eval(order, &[(&days, oid::DATE), (value, ty)]).cmp(&0);
            use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual};
            for op in [Less, LessEqual, Greater, GreaterEqual] {
                let stands = eval(day_for(op, ty).expect("function"), &[(value, ty)]);
                prop_assert_eq!(op.accepts(order), op.accepts(day.cmp(&stands)), "{:?} {:?}", op, value);
            }
            prop_assert!(day_for(Equal, ty).is_none());
        }
    }

    #[test]
    fn no_call_panics(seed: u64) {
        let mut runner = TestRunner::new_with_rng(
            ProptestConfig::default(),
            TestRng::from_seed(RngAlgorithm::XorShift, &[seed.to_le_bytes(), (!seed).to_le_bytes()].concat()),
        );
        let zones = ["UTC", "America/New_York", "Asia/Kathmandu", "<+05>-5"];
        let zone = PgZone::named(zones[(seed % 4) as usize]).expect("zone");
        let io = IoContext { zone, now: 848_979_913_123_456, ..IoContext::default() };
        let mut ctx = EvalContext::new();
        ctx.state_mut().io = io.clone();
        for row in rows::FUNCTIONS.iter().chain(rows::COMPARISONS) {
            let Body::Scalar(body) = row.body else { continue };
            let argument = |ty: &Oid| {
                let value = any_value(*ty).new_tree(&mut runner).expect("value").current();
                Expr::Literal(value, registry::column_type(*ty, -1, true))
            };
            let arguments = row.arguments.iter().map(argument).collect();
            let ty = registry::column_type(row.result, -1, true);
            let call = Call { function: body, arguments, ty, collation: Collation::Binary, extra: Extra::default() };
            let shown = Expr::Call(Box::new(call)).eval(&[], &mut ctx).map(|value| show(row.result, &value, &io));
            prop_assert!(!matches!(shown, Ok(Err(_))), "{}", row.name);
        }
    }
}
