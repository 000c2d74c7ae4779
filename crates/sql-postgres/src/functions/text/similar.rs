//! SIMILAR TO: patterns of SQL's standard, rewritten as regular expressions.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::text;
use crate::functions::text::regex::{RegexOptions, compile};
use crate::functions::text::regexp::first_match;
use crate::functions::text::similar_parts::parts_of_match;
use crate::value::Value;

pub fn similar_to_escape(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let escape = if values.len() > 1 { Some(text(values, 1)?) } else { None };
    Ok(Value::Text(rewritten(text(values, 0)?, escape)?.into()))
}

/// The older form, for which an escape of NULL is the backslash.
pub fn similar_escape(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let escape = if values[1].is_null() { None } else { Some(text(values, 1)?) };
    Ok(Value::Text(rewritten(text(values, 0)?, escape)?.into()))
}

/// `substring(text SIMILAR pattern ESCAPE escape)`
pub fn substring(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (pattern, escape, text) = (text(values, 1)?, text(values, 2)?, text(values, 0)?);
    let parts = parts(pattern, Some(escape))?;
    match (&parts[..], parts_of_match(&parts, text)?) {
        ([_, _, ..], Some(found)) => Ok(found.map(|range| Value::text(&text[range])).unwrap_or_default()),
        _ => first_match(&*compile(&joined(&parts), RegexOptions::PLAIN)?, text),
    }
}

/// Returns the regular expression that matches the same whole texts.
fn rewritten(pattern: &str, escape: Option<&str>) -> Result<String> {
    Ok(joined(&parts(pattern, escape)?))
}

fn joined(parts: &[String]) -> String {
    // The parts that surround the result match as little as they can.
    const SEPARATORS: [&str; 3] = ["", "){1,1}?(", "){1,1}(?:"];
    let mut out = String::from("^(?:");
    for (part, separator) in parts.iter().zip(SEPARATORS) {
        out.push_str(separator);
        out.push_str(part);
    }
    out.push_str(")$");
    out
}

/// Returns regular expressions of the parts of a pattern: an escaped double quote separates those of `substring`, of which the second is the result.
fn parts(pattern: &str, escape: Option<&str>) -> Result<Vec<String>> {
    let escape = match escape {
        None => Some('\\'),
        Some(text) => {
            let mut letters = text.chars();
            match (letters.next(), letters.next()) {
                (first, None) => first,
                _ => {
                    let hint = "Escape string must be empty or one character.";
                    let error = PgError::new(state::INVALID_ESCAPE_SEQUENCE, "invalid escape string");
                    return Err(error.hint(hint).into());
                }
            }
        }
    };
    let (mut parts, mut out) = (Vec::new(), String::new());
    let (mut is_escaped, mut in_class) = (false, false);
    for letter in pattern.chars() {
        if is_escaped {
            is_escaped = false;
            if letter == '"' && !in_class {
                if parts.len() == 2 {
                    let message = "SQL regular expression may not contain more than two escape-double-quote separators";
                    return Err(PgError::new(state::INVALID_USE_OF_ESCAPE_CHARACTER, message).into());
                }
                parts.push(std::mem::take(&mut out));
            } else {
                out.push('\\');
                out.push(letter);
            }
        } else if Some(letter) == escape {
            is_escaped = true;
        } else if in_class {
            if letter == '\\' {
                out.push('\\');
            }
            out.push(letter);
            in_class = letter != ']';
        } else {
            match letter {
                '[' => {
                    out.push('[');
                    in_class = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(letter);
                }
                other => out.push(other),
            }
        }
    }
    parts.push(out);
    Ok(parts)
}
