//! Signatures and definitions of functions as SQL: `pg_get_function_arguments` and its like.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::optional;
use crate::error::{PgError, state};
use crate::functions::args::integer;
use crate::session::quoted;
use crate::system::extract::{PG_PROC, unescaped};
use crate::types::oid::{self, Oid};
use crate::types::registry::{by_oid, element_of, format_type};
use crate::value::Value;

/// The fields of a line of `pg_proc` that a definition shows.
struct Proc {
    name: &'static str,
    language: Oid,
    cost: &'static str,
    rows: &'static str,
    support: Oid,
    kind: char,
    is_leakproof: bool,
    is_strict: bool,
    returns_set: bool,
    volatility: char,
    parallel: char,
    result: Oid,
    arguments: Vec<SignatureArgument>,
    source: String,
    body: Option<String>,
}

struct SignatureArgument {
    mode: char,
    name: String,
    ty: Oid,
    default: Option<String>,
}

/// Returns the items of an array's text form, which have no quotes in this catalog.
fn items(field: &str) -> Vec<&str> {
    field.trim_matches(['{', '}']).split(',').map(|item| item.trim_matches('"')).collect()
}

/// Splits a list of expressions at the commas outside quotes and parentheses.
fn expressions(text: &str) -> Vec<String> {
    let (mut all, mut depth, mut is_quoted) = (vec![String::new()], 0, false);
    for letter in text.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if !is_quoted && depth == 0 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        all.last_mut().into_iter().for_each(|last| last.push(letter));
    }
    all.into_iter().map(|item| item.trim().to_owned()).collect()
}

impl Proc {
    /// Returns the function of an OID, if it is served.
    fn of(wanted: Oid) -> Option<Proc> {
        crate::functions::function(wanted)?;
        let line = PG_PROC.line(wanted)?;
        let fields: Vec<&'static str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse::<Oid>().unwrap_or(0);
        let letter = |at: usize| fields[at].chars().next().unwrap_or(' ');
        let is = |at: usize| fields[at] == "t";
        let types = if fields[20] == "\\N" {
            fields[19].split(' ').filter(|ty| !ty.is_empty()).collect()
        } else {
            items(fields[20])
        };
        let modes = (fields[21] != "\\N").then(|| items(fields[21]));
        let names = (fields[22] != "\\N").then(|| items(fields[22]));
        let mut arguments: Vec<SignatureArgument> = types
            .iter()
            .enumerate()
            .map(|(at, ty)| SignatureArgument {
                mode: modes.as_ref().and_then(|modes| modes.get(at)?.chars().next()).unwrap_or('i'),
                name: names.as_ref().and_then(|names| names.get(at).copied()).unwrap_or_default().to_owned(),
                ty: ty.parse().unwrap_or(0),
                default: None,
            })
            .collect();
        let defaults = unescaped(fields[23]).map(|text| expressions(&text)).unwrap_or_default();
        let mut inputs: Vec<&mut SignatureArgument> =
            arguments.iter_mut().filter(|argument| matches!(argument.mode, 'i' | 'b' | 'v')).collect();
        let first = inputs.len().saturating_sub(defaults.len());
        inputs[first..].iter_mut().zip(defaults).for_each(|(argument, default)| argument.default = Some(default));
        Some(Proc {
            name: fields[1],
            language: number(4),
            cost: fields[5],
            rows: fields[6],
            support: number(8),
            kind: letter(9),
            is_leakproof: is(11),
            is_strict: is(12),
            returns_set: is(13),
            volatility: letter(14),
            parallel: letter(15),
            result: number(18),
            arguments,
            source: unescaped(fields[25]).unwrap_or_default(),
            body: unescaped(fields[27]),
        })
    }

    fn arguments_text(&self, with_defaults: bool) -> String {
        let shown =
            self.arguments.iter().filter(|argument| argument.mode != 't' && (with_defaults || argument.mode != 'o'));
        let text = |argument: &SignatureArgument| {
            let mode = match argument.mode {
                'o' => "OUT ",
                'b' => "INOUT ",
                'v' => "VARIADIC ",
                _ => "",
            };
            let name = if argument.name.is_empty() { String::new() } else { quoted(&argument.name) + " " };
            let default = argument.default.as_ref().filter(|_| with_defaults);
            let default = default.map_or(String::new(), |default| format!(" DEFAULT {default}"));
            format!("{mode}{name}{}{default}", format_type_or_name(argument.ty))
        };
        shown.map(text).collect::<Vec<_>>().join(", ")
    }

    fn result_text(&self) -> Option<String> {
        if self.kind == 'p' {
            return None;
        }
        let table: Vec<String> = self
            .arguments
            .iter()
            .filter(|argument| argument.mode == 't')
            .map(|argument| format!("{} {}", quoted(&argument.name), format_type_or_name(argument.ty)))
            .collect();
        if !table.is_empty() {
            return Some(format!("TABLE({})", table.join(", ")));
        }
        let set = if self.returns_set { "SETOF " } else { "" };
        Some(format!("{set}{}", format_type_or_name(self.result)))
    }

    /// Returns the properties that differ from their defaults.
    fn properties(&self) -> String {
        let mut text = String::new();
        if self.kind == 'w' {
            text.push_str(" WINDOW");
        }
        text.push_str(match self.volatility {
            'i' => " IMMUTABLE",
            's' => " STABLE",
            _ => "",
        });
        text.push_str(match self.parallel {
            's' => " PARALLEL SAFE",
            'r' => " PARALLEL RESTRICTED",
            _ => "",
        });
        if self.is_strict {
            text.push_str(" STRICT");
        }
        if self.is_leakproof {
            text.push_str(" LEAKPROOF");
        }
        let usual_cost = if self.language == INTERNAL { "1" } else { "100" };
        if self.cost != usual_cost {
            text.push_str(&format!(" COST {}", self.cost));
        }
        if self.returns_set && self.rows != "0" && self.rows != "1000" {
            text.push_str(&format!(" ROWS {}", self.rows));
        }
        if let Some((name, _)) = crate::system::function_name(self.support) {
            text.push_str(&format!(" SUPPORT {name}"));
        }
        text
    }

    fn definition(&self) -> String {
        let language = if self.language == INTERNAL { "internal" } else { "sql" };
        let properties = self.properties();
        let properties = if properties.is_empty() { properties } else { properties + "\n" };
        let body = match &self.body {
            Some(body) => body.clone() + "\n",
            None => format!("AS $function${}$function$\n", self.source),
        };
        let word = if self.kind == 'p' { "PROCEDURE" } else { "FUNCTION" };
        let result = self.result_text().map_or(String::new(), |result| format!(" RETURNS {result}\n"));
        let (name, arguments) = (quoted(self.name), self.arguments_text(true));
        format!(
            "CREATE OR REPLACE {word} pg_catalog.{name}({arguments})\n{result} LANGUAGE {language}\n{properties}{body}"
        )
    }
}

/// The languages of PostgreSQL's own functions.
const INTERNAL: Oid = 12;

/// Returns a type's name, also of one that is not served.
fn format_type_or_name(ty: Oid) -> String {
    if by_oid(ty).is_some() || element_of(ty).is_some() {
        return format_type(ty, None);
    }
    crate::system::extract::type_name(ty).map_or_else(|| "???".to_owned(), quoted)
}

fn proc(values: &[Value]) -> Result<Option<Proc>> {
    Ok(Proc::of(integer(values, 0)? as u32))
}

pub fn arguments(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    optional(proc(values)?.map(|proc| proc.arguments_text(true)))
}

pub fn identity_arguments(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    optional(proc(values)?.map(|proc| proc.arguments_text(false)))
}

pub fn result(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    optional(proc(values)?.and_then(|proc| proc.result_text()))
}

pub fn sql_body(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    optional(proc(values)?.and_then(|proc| proc.body))
}

pub fn definition(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Some(proc) = proc(values)? else { return Ok(Value::Null) };
    if proc.kind == 'a' {
        let message = format!("\"{}\" is an aggregate function", proc.name);
        return Err(PgError::new(state::WRONG_OBJECT_TYPE, message).into());
    }
    optional(Some(proc.definition()))
}

/// Returns the default of the n-th input argument, from 1.
pub fn argument_default(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let nth = integer(values, 1)?;
    let Some(proc) = proc(values)? else { return Ok(Value::Null) };
    let at = usize::try_from(nth - 1).ok();
    optional(at.and_then(|at| proc.arguments.into_iter().nth(at)).and_then(|argument| argument.default))
}

/// Returns the function of a signature as `regprocedure` writes it: `abs(integer)`.
pub fn find(text: &str) -> Option<Oid> {
    let (name, arguments) = text.trim().strip_suffix(')')?.split_once('(')?;
    let name = name.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name).trim_matches('"');
    let named: Option<Vec<Oid>> = match arguments.trim() {
        "" => Some(Vec::new()),
        list => list.split(',').map(|name| type_named(name.trim())).collect(),
    };
    let types = named?;
    crate::functions::functions_named(name).iter().find(|row| row.arguments == types).map(|row| row.oid)
}

fn type_named(name: &str) -> Option<Oid> {
    let io = crate::types::io::IoContext::default();
    match crate::types::reg::input(crate::types::io::ObjectKind::Type, name, &io).ok()? {
        Value::UInt(found) => Some(found as Oid),
        _ => None,
    }
}

/// Returns a function with the types of its arguments, as `regprocedure` shows it.
pub fn shown(function: Oid) -> Option<String> {
    let proc = Proc::of(function)?;
    let types = proc.arguments.iter().filter(|argument| matches!(argument.mode, 'i' | 'b' | 'v'));
    let types: Vec<String> = types
        .map(|argument| match argument.mode {
            'v' if argument.ty == oid::ANY => "\"any\"".to_owned(),
            _ => format_type_or_name(argument.ty),
        })
        .collect();
    Some(format!("{}({})", quoted(proc.name), types.join(",")))
}
