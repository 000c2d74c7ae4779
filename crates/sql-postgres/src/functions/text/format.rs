//! concat, concat_ws and format: texts of arguments of any types.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{claim, invalid, text};
use crate::functions::session::{cast_to_text, shown};
use crate::functions::text::quote;
use crate::value::Value;

pub fn concat(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    joined(call, values, 0, "", ctx)
}

pub fn concat_ws(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    joined(call, values, 1, text(values, 0)?, ctx)
}

fn joined(call: &Call, values: &[Value], from: usize, separator: &str, ctx: &EvalContext) -> Result<Value> {
    let mut out = String::new();
    let known = (from..values.len()).filter(|at| !values[*at].is_null());
    for (number, at) in known.enumerate() {
        if number > 0 {
            out.push_str(separator);
        }
        out.push_str(&shown(call, values, at, ctx)?);
        drop(claim(out.len())?);
    }
    Ok(Value::Text(out.into()))
}

/// `text || any` and `any || text`.
pub fn concatenate_any(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let joined = [cast_to_text(call, values, 0, ctx)?, cast_to_text(call, values, 1, ctx)?].concat();
    Ok(Value::Text(joined.into()))
}

/// A specifier of `format` behind its percent sign.
struct Specifier {
    argument: Option<usize>,
    width: FieldWidth,
    is_left: bool,
    kind: char,
}

enum FieldWidth {
    None,
    Fixed(i64),
    /// That of an argument; `None`: the next one.
    Argument(Option<usize>),
}

pub fn format(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let mut rest = text(values, 0)?;
    let mut out = String::new();
    let mut next = 1;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if rest.is_empty() {
            return Err(unterminated());
        }
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let (specifier, behind) = specifier(rest)?;
        rest = behind;
        if !matches!(specifier.kind, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{}\"", specifier.kind);
            return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message).hint(HINT).into());
        }
        let width = match specifier.width {
            FieldWidth::None => 0,
            FieldWidth::Fixed(width) => width,
            FieldWidth::Argument(which) => width_argument(values, take(which, &mut next, values.len())?)?,
        };
        let at = take(specifier.argument, &mut next, values.len())?;
        let shown = argument(call, values, at, specifier.kind, ctx)?;
        pad(&shown, width, specifier.is_left, &mut out)?;
    }
    out.push_str(rest);
    Ok(Value::Text(out.into()))
}

const HINT: &str = "For a single \"%\" use \"%%\".";

#[cold]
fn unterminated() -> datum::Fault {
    PgError::new(state::INVALID_PARAMETER_VALUE, "unterminated format() type specifier").hint(HINT).into()
}

/// Returns the number of an argument, by its own number or as the next.
fn take(which: Option<usize>, next: &mut usize, count: usize) -> Result<usize> {
    let at = which.unwrap_or(*next);
    if at >= count {
        return Err(invalid("too few arguments for format()"));
    }
    *next = at + 1;
    Ok(at)
}

fn width_argument(values: &[Value], at: usize) -> Result<i64> {
    match &values[at] {
        Value::Null => Ok(0),
        Value::Int(width) => Ok(*width),
        Value::Text(text) => text.trim().parse().map_err(|_| {
            let message = format!("invalid input syntax for type integer: \"{text}\"");
            PgError::new(state::INVALID_TEXT_REPRESENTATION, message).into()
        }),
        _ => Err(invalid("format() width must be an integer")),
    }
}

fn argument(call: &Call, values: &[Value], at: usize, kind: char, ctx: &EvalContext) -> Result<String> {
    if values[at].is_null() {
        return match kind {
            's' => Ok(String::new()),
            'L' => Ok("NULL".to_owned()),
            _ => {
                Err(PgError::new(state::NULL_VALUE_NOT_ALLOWED, "null values cannot be formatted as an SQL identifier")
                    .into())
            }
        };
    }
    let shown = shown(call, values, at, ctx)?;
    Ok(match kind {
        'I' => quote::identifier(&shown),
        'L' => quote::literal(&shown),
        _ => shown,
    })
}

fn pad(shown: &str, width: i64, is_left: bool, out: &mut String) -> Result<()> {
    let missing = (width.unsigned_abs() as usize).saturating_sub(shown.chars().count());
    drop(claim(out.len() + shown.len() + missing)?);
    if !is_left && width >= 0 {
        out.extend(std::iter::repeat_n(' ', missing));
    }
    out.push_str(shown);
    if is_left || width < 0 {
        out.extend(std::iter::repeat_n(' ', missing));
    }
    Ok(())
}

/// Reads `[n$][-][width]type`.
fn specifier(text: &str) -> Result<(Specifier, &str)> {
    let mut rest = text;
    let mut found = Specifier { argument: None, width: FieldWidth::None, is_left: false, kind: ' ' };
    if let Some((number, behind)) = digits(rest)? {
        match behind.strip_prefix('$') {
            Some(behind) => {
                if number == 0 {
                    return Err(invalid("format specifies argument 0, but arguments are numbered from 1"));
                }
                found.argument = Some(number as usize);
                rest = behind;
            }
            None => {
                found.width = FieldWidth::Fixed(number);
                return ended(found, behind);
            }
        }
    }
    while let Some(behind) = rest.strip_prefix('-') {
        (found.is_left, rest) = (true, behind);
    }
    if let Some(behind) = rest.strip_prefix('*') {
        rest = behind;
        found.width = FieldWidth::Argument(None);
        if let Some((number, behind)) = digits(rest)? {
            let Some(behind) = behind.strip_prefix('$') else {
                return Err(invalid("width argument position must be ended by \"$\""));
            };
            if number == 0 {
                return Err(invalid("format specifies argument 0, but arguments are numbered from 1"));
            }
            (found.width, rest) = (FieldWidth::Argument(Some(number as usize)), behind);
        }
    } else if let Some((number, behind)) = digits(rest)? {
        (found.width, rest) = (FieldWidth::Fixed(number), behind);
    }
    ended(found, rest)
}

fn ended(mut found: Specifier, rest: &str) -> Result<(Specifier, &str)> {
    let kind = rest.chars().next().ok_or_else(unterminated)?;
    found.kind = kind;
    Ok((found, &rest[kind.len_utf8()..]))
}

fn digits(text: &str) -> Result<Option<(i64, &str)>> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return Ok(None);
    }
    match text[..length].parse::<i32>() {
        Ok(number) => Ok(Some((number.into(), &text[length..]))),
        Err(_) => Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range").into()),
    }
}
