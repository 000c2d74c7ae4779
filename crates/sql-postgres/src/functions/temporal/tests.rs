//! Answers of the real server to random texts and calls. Each line of `recorded.tsv` is one of
//!
//! - `set`, time zone, date format, order of fields, interval style, the transaction's start in microseconds;
//! - `in`, a type, a modifier, a text, and the value as it is shown again;
//! - `call`, a function, its arguments as texts, and the result.
//!
//! An error is `!`, its SQLSTATE and its texts. `TEMPORAL_CASES` names another file to play.

use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::types::Collation;

use crate::error::{PgError, Result};
use crate::functions::state::StateOf;
use crate::functions::{Body, function};
use crate::types::io::{self, DateFormat, DateOrder, IntervalStyle, IoContext};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::types::temporal::PgZone;
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
            differing.push(format!("{} {:?} {:?} {name}\n    {line}\n    ours: {answer}", io.zone.name(), io.date_format, io.date_order));
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
    if let Ok(path) = std::env::var("TEMPORAL_CASES") {
        play(&std::fs::read_to_string(path).expect("cases"));
    }
}
