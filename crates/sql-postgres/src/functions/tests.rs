//! Calls that were recorded on the real server: `calls.tsv` has a line for each, the function's OID, the arguments as `type:text`, and the result or the error.
//!
//! `CALLS` names another file of such lines to play instead.

use std::fmt::Write as _;

use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::types::{Collation, Type};

use crate::error::PgError;
use crate::functions::{Body, PgFunction, function};
use crate::types::io::{self, IoContext};
use crate::types::{oid, registry};
use crate::value::Value;

/// Reads a field of COPY's text form; `None` is NULL.
fn unescaped(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let mut out = String::new();
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.push(match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\x08',
                Some('f') => '\x0c',
                Some('v') => '\x0b',
                Some(other) => other,
                None => break,
            }),
            other => out.push(other),
        }
    }
    Some(out)
}

fn argument(field: &str, declared: oid::Oid, io: &IoContext) -> Result<Expr, PgError> {
    let (name, text) = field.split_once(':').unwrap_or(("", field));
    let oid = if name.is_empty() { declared } else { registry::by_name(name).unwrap().oid };
    let ty = registry::column_type(oid, -1, true);
    let value = match unescaped(text) {
        Some(text) => io::input(&ty, &text, io)?,
        None => Value::Null,
    };
    Ok(Expr::Literal(value, ty))
}

fn result(row: &'static PgFunction, fields: &[&str]) -> Result<Option<String>, PgError> {
    let Body::Scalar(body) = row.body else { panic!("{} is no scalar function", row.name) };
    let mut ctx = EvalContext::new();
    let io = IoContext::default();
    let declared = |at: usize| row.arguments.get(at).or(row.arguments.last()).copied().unwrap_or(oid::TEXT);
    let arguments: Result<Vec<Expr>, PgError> =
        fields.iter().enumerate().map(|(at, field)| argument(field, declared(at), &io)).collect();
    let ty: Type = registry::column_type(row.result, -1, true);
    let extra = Extra::default();
    let call = Call { function: body, arguments: arguments?, ty: ty.clone(), collation: Collation::Binary, extra };
    let value = Expr::Call(Box::new(call)).eval(&[], &mut ctx)?;
    if value.is_null() {
        return Ok(None);
    }
    let mut out = Vec::new();
    io::output(&value, &ty, &io, &mut out)?;
    Ok(Some(String::from_utf8(out).unwrap()))
}

#[test]
fn recorded_calls_give_what_the_real_server_gives() {
    let recorded = match std::env::var("CALLS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("tests/calls.tsv").to_owned(),
    };
    let mut wrong = String::new();
    let mut count = 0;
    for line in recorded.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let row = function(fields[0].parse().unwrap()).unwrap_or_else(|| panic!("no function {}", fields[0]));
        let (arguments, wanted) = fields[1..].split_at(fields.len() - 2);
        let found = match result(row, arguments) {
            Ok(value) => value,
            Err(error) => Some(format!("!{} {}", error.state, error.message)),
        };
        if found != unescaped(wanted[0]) {
            count += 1;
            writeln!(wrong, "{}: {line}\n   found {found:?}", row.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{count} calls differ\n{wrong}");
}
