//! `parse_ident`: the parts of a qualified name.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{text, truth};
use crate::types::array::list;
use crate::types::boolean::is_space;
use crate::types::oid;
use crate::value::Value;

fn without_space(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

pub fn parse_ident(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (name, is_strict) = (text(values, 0)?, truth(values, 1)?);
    let wrong = |detail: &str| {
        let text = format!("string is not a valid identifier: \"{name}\"");
        let error = PgError::new(state::INVALID_PARAMETER_VALUE, text);
        Err(if detail.is_empty() { error } else { error.detail(detail) }.into())
    };
    let (mut rest, mut parts, mut is_behind_dot) = (without_space(name), Vec::new(), false);
    loop {
        if parts.len() % 1024 == 1023 {
            ctx.check_killed()?;
        }
        let part = match rest.strip_prefix('"') {
            Some(quoted) => match of_quotes(quoted) {
                None => return wrong("String has unclosed double quotes."),
                Some((part, _)) if part.is_empty() => return wrong("Quoted identifier must not be empty."),
                Some(part) => Some(part),
            },
            None => of_letters(rest),
        };
        let Some((part, behind)) = part else {
            return wrong(match (rest.starts_with('.'), is_behind_dot) {
                (true, _) => "No valid identifier before \".\".",
                (false, true) => "No valid identifier after \".\".",
                (false, false) => "",
            });
        };
        parts.push(Value::text(part));
        rest = without_space(behind);
        match rest.strip_prefix('.') {
            Some(behind) => {
                is_behind_dot = true;
                rest = without_space(behind);
            }
            None if rest.is_empty() || !is_strict => return Ok(list(oid::TEXT, parts)),
            None => return wrong(""),
        }
    }
}

/// Returns the name before the closing quote, and the text behind it. A quote stands twice for itself.
fn of_quotes(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(behind) => {
                name.push('"');
                rest = behind;
            }
            None => return Some((name, rest)),
        }
    }
}

/// Returns the name at the beginning, in lower case, and the text behind it.
fn of_letters(text: &str) -> Option<(String, &str)> {
    let is_start = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || !letter.is_ascii();
    let is_part = |letter: char| is_start(letter) || letter.is_ascii_digit() || letter == '$';
    if !text.starts_with(is_start) {
        return None;
    }
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    Some((text[..end].to_ascii_lowercase(), &text[end..]))
}
