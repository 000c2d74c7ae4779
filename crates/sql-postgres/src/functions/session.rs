//! Functions that tell of the session, the server and the types of their arguments.

use datum::Result;
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{self, integer, text, truth};
use crate::functions::numeric::arithmetic::multiply;
use crate::functions::numeric::casts::to_integer;
use crate::functions::state::StateOf as _;
use crate::types::boolean::is_space;
use crate::types::io::{self, ObjectKind};
use crate::types::numeric::integer::Width;
use crate::types::numeric::numeric_in;
use crate::types::{array, oid, reg, registry};
use crate::value::{Decimal, Value};

/// Returns the text form of an argument of any type, which is not NULL.
pub fn shown(call: &Call, values: &[Value], at: usize, ctx: &EvalContext) -> Result<String> {
    if let Value::Text(text) = &values[at] {
        return Ok(text.to_string());
    }
    let mut out = Vec::new();
    io::output(&values[at], &call.arguments[at].ty(), &ctx.state().io, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Returns an argument as its cast to text gives it, which differs from the text form for bool and bpchar.
pub fn cast_to_text(call: &Call, values: &[Value], at: usize, ctx: &EvalContext) -> Result<String> {
    let mut text = shown(call, values, at, ctx)?;
    match registry::oid_of(&call.arguments[at].ty()) {
        oid::BOOL => return Ok(if text == "t" { "true" } else { "false" }.to_owned()),
        oid::BPCHAR => text.truncate(text.trim_end_matches(' ').len()),
        _ => {}
    }
    Ok(text)
}

fn fact(fact: &str) -> Result<Value> {
    Ok(Value::text(fact))
}

pub fn version(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    fact(&ctx.state().session.version)
}

pub fn current_database(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    fact(&ctx.state().session.database)
}

pub fn current_user(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    fact(&ctx.state().session.role)
}

pub fn session_user(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    fact(&ctx.state().session.session_role)
}

/// The schema in which an unqualified name is created; NULL if no schema of the path exists.
pub fn current_schema(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(ctx.state().session.search_path.first().map(Value::text).unwrap_or_default())
}

/// The schemas of the path that exist; with those that are searched before it, if asked so.
pub fn current_schemas(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let has_implicit = truth(values, 0)?;
    let session = &ctx.state().session;
    let (path, temporary) = (&session.search_path, session.temporary_schema.as_deref());
    let is_implicit = |name: &&str| has_implicit && !path.iter().any(|schema| schema == name);
    let implicit = temporary.into_iter().chain(["pg_catalog"]).filter(is_implicit);
    let names = implicit.chain(path.iter().map(String::as_str));
    Ok(array::list(oid::NAME, names.map(Value::text).collect()))
}

pub fn pg_backend_pid(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(ctx.state().session.backend_pid.into()))
}

/// The sessions that block a session: those that hold a lock for which it waits, or stand before it in its queue.
pub fn pg_blocking_pids(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let instance = host(ctx).instance.clone();
    let pid = u64::try_from(integer(values, 0)?).unwrap_or(0);
    let mut pids = instance.lock_holders().blockers(pid, instance.engine().rows(), instance.advisory_locks());
    pids.sort_unstable();
    pids.dedup();
    Ok(array::list(oid::INT4, pids.into_iter().map(|pid| Value::Int(pid as i64)).collect()))
}

pub fn pg_is_in_recovery(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::FALSE)
}

pub fn encoding(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    fact("UTF8")
}

/// PostgreSQL's encodings by their numbers.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names of encodings.
const ALIASES: &[(&str, &str)] = &[
    ("abc", "win1258"),
    ("alt", "win866"),
    ("iso88591", "latin1"),
    ("iso885910", "latin6"),
    ("iso885913", "latin7"),
    ("iso885914", "latin8"),
    ("iso885915", "latin9"),
    ("iso885916", "latin10"),
    ("iso88592", "latin2"),
    ("iso88593", "latin3"),
    ("iso88594", "latin4"),
    ("iso88599", "latin5"),
    ("koi8", "koi8r"),
    ("mskanji", "sjis"),
    ("shiftjis", "sjis"),
    ("tcvn", "win1258"),
    ("tcvn5712", "win1258"),
    ("unicode", "utf8"),
    ("vscii", "win1258"),
    ("win", "win1251"),
    ("win932", "sjis"),
    ("win936", "gbk"),
    ("win949", "uhc"),
    ("win950", "big5"),
    ("windows1250", "win1250"),
    ("windows1251", "win1251"),
    ("windows1252", "win1252"),
    ("windows1253", "win1253"),
    ("windows1254", "win1254"),
    ("windows1255", "win1255"),
    ("windows1256", "win1256"),
    ("windows1257", "win1257"),
    ("windows1258", "win1258"),
    ("windows866", "win866"),
    ("windows874", "win874"),
    ("windows932", "sjis"),
    ("windows936", "gbk"),
    ("windows949", "uhc"),
    ("windows950", "big5"),
];

/// Returns the number of an encoding by its name, in which case and punctuation do not count.
pub fn encoding_number(name: &str) -> Option<usize> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "");
    let wanted = plain(name);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == wanted);
    let wanted = alias.map_or(&*wanted, |(_, name)| name);
    ENCODINGS.iter().position(|known| plain(known) == wanted)
}

pub fn pg_encoding_to_char(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let name = usize::try_from(integer(values, 0)?).ok().and_then(|number| ENCODINGS.get(number));
    fact(name.unwrap_or(&""))
}

pub fn pg_char_to_encoding(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(encoding_number(text(values, 0)?).map_or(-1, |number| number as i64)))
}

pub fn pg_typeof(call: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(registry::oid_of(&call.arguments[0].ty()).into()))
}

pub fn format_type(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let typmod = if values[1].is_null() { None } else { Some(integer(values, 1)? as i32) };
    Ok(Value::Text(ctx.state().io.format_type(args::oid(values, 0)?, typmod).into()))
}

pub fn num_nulls(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(values.iter().filter(|value| value.is_null()).count() as i64))
}

pub fn num_nonnulls(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(values.iter().filter(|value| !value.is_null()).count() as i64))
}

/// Finds an object by name: `to_regclass` and its like. A missing one is NULL.
fn found(values: &[Value], kind: ObjectKind, ctx: &EvalContext) -> Result<Value> {
    let absent = [
        state::UNDEFINED_TABLE,
        state::UNDEFINED_OBJECT,
        state::UNDEFINED_FUNCTION,
        state::INVALID_SCHEMA_NAME,
        "42725",
    ];
    match reg::input(kind, text(values, 0)?, &ctx.state().io) {
        Ok(value) => Ok(value),
        Err(error) if absent.contains(&error.state) => Ok(Value::Null),
        Err(error) => Err(error.into()),
    }
}

macro_rules! lookups {
    ($($name:ident $kind:ident)*) => {
        $(pub fn $name(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
            found(values, ObjectKind::$kind, ctx)
        })*
    };
}

lookups! {
    to_regclass Relation
    to_regtype Type
    to_regproc Function
    to_regprocedure FunctionSignature
    to_regoper Operator
    to_regoperator OperatorSignature
    to_regnamespace Schema
    to_regrole Role
    to_regcollation Collation
}

/// The cast of a text to regclass.
pub fn regclass(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(reg::input(ObjectKind::Relation, text(values, 0)?, &ctx.state().io)?)
}

/// Returns whether a text is the input of a type.
pub fn pg_input_is_valid(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let name = text(values, 1)?;
    let Value::UInt(oid) = reg::input(ObjectKind::Type, name, &ctx.state().io)? else {
        return Err(PgError::new(state::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist")).into());
    };
    let ty = registry::column_type(oid as u32, -1, true);
    Ok(io::input(&ty, text(values, 0)?, &ctx.state().io).is_ok().into())
}

const SIZE_UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/// Halves are rounded away from zero; a unit is used below 10,240 of it, the first one below 10,240 bytes.
pub fn pg_size_pretty(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut size = i128::from(integer(values, 0)?);
    let mut unit = 0;
    loop {
        // But for bytes, the number carries one more bit for rounding.
        let limit = if unit == 0 { 10 * 1024 } else { 20 * 1024 - 1 };
        if size.abs() < limit || unit == SIZE_UNITS.len() - 1 {
            let shown = if unit == 0 { size } else { (size + size.signum()) / 2 };
            return Ok(Value::Text(format!("{shown} {}", SIZE_UNITS[unit]).into()));
        }
        // One bit less is shifted out the first time.
        size /= if unit == 0 { 1 << 9 } else { 1 << 10 };
        unit += 1;
    }
}

/// Reads a number with a unit, which `pg_size_pretty` writes.
pub fn pg_size_bytes(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let whole = text(values, 0)?;
    let trimmed = whole.trim_start_matches(is_space);
    let digits = |from: usize| trimmed[from..].bytes().take_while(u8::is_ascii_digit).count();
    let starts = |from: usize, signs: [char; 2]| usize::from(trimmed[from..].starts_with(signs));
    let mut end = starts(0, ['-', '+']);
    let before = digits(end);
    end += before;
    let mut has_digits = before > 0;
    if trimmed[end..].starts_with('.') {
        let behind = digits(end + 1);
        has_digits |= behind > 0;
        end += 1 + behind;
    }
    let invalid = || PgError::new(state::INVALID_PARAMETER_VALUE, format!("invalid size: \"{whole}\""));
    if !has_digits {
        return Err(invalid().into());
    }
    // Without digits behind it, an `e` begins the unit.
    if trimmed[end..].starts_with(['e', 'E']) {
        let sign = starts(end + 1, ['-', '+']);
        let count = digits(end + 1 + sign);
        end += if count > 0 { 1 + sign + count } else { 0 };
    }
    let number = numeric_in(&trimmed[..end], -1)?;
    let unit = trimmed[end..].trim_matches(is_space);
    let power = match unit {
        "" => Some(0),
        unit if unit.eq_ignore_ascii_case("B") => Some(0),
        unit => SIZE_UNITS.iter().position(|known| known.eq_ignore_ascii_case(unit)),
    };
    let Some(power) = power else {
        let hint = "Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".";
        return Err(invalid().detail(format!("Invalid size unit: \"{unit}\".")).hint(hint).into());
    };
    let bytes = multiply(&number, &Decimal::from(1_i64 << (10 * power)))?;
    Ok(Value::Int(to_integer(Width::Int8, &bytes)?))
}
