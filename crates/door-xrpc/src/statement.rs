//! A statement and its arguments, as `query` takes them: text with `?`, and values.
//!
//! Arguments are bound and never become text, whatever they contain. Two kinds are exceptions: an identifier, which is quoted, and a raw string, with which
//! clients fill lists. For these the positions of the `?` are found with the tokenizer.

use std::borrow::Cow;

use sql_mysql::Session;
use sql_mysql::charset;
use sql_mysql::error::{Result, SqlError};
use sql_mysql::types::{Charset, Collation, CollationName as _};
use sql_mysql::value::Value;

use crate::errors;
use crate::message::datatypes::{Any, Scalar};

/// The text to execute, and a value for each of its `?`.
#[derive(Debug, PartialEq)]
pub struct Bound<'t> {
    pub text: Cow<'t, str>,
    pub values: Vec<Value>,
}

/// Puts the hint in front of the text, and the arguments in their places.
pub fn bind<'t>(sql: &Session, text: Cow<'t, str>, hint: &str, args: &[Any<'_>]) -> Result<Bound<'t>> {
    let mut bound = Bound { text, values: Vec::with_capacity(args.len()) };
    let mut pasted = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        match value(arg)? {
            Argument::Value(value) => bound.values.push(value),
            Argument::Text(text) => pasted.push((at, text)),
        }
    }
    if !pasted.is_empty() {
        bound.text = paste(sql, &bound.text, args.len(), pasted)?.into();
    }
    if !is_plain_comment(hint) {
        bound.text = [hint, &bound.text].concat().into();
    }
    Ok(bound)
}

/// Returns the arguments as values; None if one of them becomes text of the statement, or is refused.
pub fn values(args: &[Any<'_>]) -> Option<Vec<Value>> {
    let of = |arg: &Any<'_>| match arg {
        Any::Scalar(Scalar::Identifier(_) | Scalar::Raw(_) | Scalar::Placeholder(_)) => None,
        Any::Scalar(scalar) => Some(plain(*scalar)),
        Any::Object(_) | Any::Array(_) => None,
    };
    args.iter().map(of).collect()
}

/// The error for more arguments than places.
pub fn too_many(args: usize, places: usize) -> SqlError {
    errors::XRPC.with(&[&format!("The statement has {places} places and there are {args} arguments.")])
}

fn paste(sql: &Session, text: &str, count: usize, pasted: Vec<(usize, String)>) -> Result<String> {
    let places = sql.parameters(text);
    if count > places.len() {
        return Err(too_many(count, places.len()));
    }
    let (mut out, mut end) = (String::with_capacity(text.len() + 16 * pasted.len()), 0);
    for (at, piece) in pasted {
        out.push_str(&text[end..places[at]]);
        out.push_str(&piece);
        end = places[at] + 1;
    }
    out.push_str(&text[end..]);
    Ok(out)
}

enum Argument {
    Value(Value),
    Text(String),
}

fn value(arg: &Any<'_>) -> Result<Argument> {
    let Any::Scalar(scalar) = arg else {
        return Err(errors::not_served("arguments that are objects or arrays"));
    };
    Ok(Argument::Value(match *scalar {
        Scalar::Identifier(name) => return Ok(Argument::Text(quoted(utf8(name)?))),
        Scalar::Raw(text) => return Ok(Argument::Text(utf8(text)?.to_owned())),
        Scalar::Placeholder(_) => return Err(errors::not_served("placeholders as arguments")),
        scalar => plain(scalar),
    }))
}

/// Converts a scalar to a value. A placeholder is resolved before and has none.
pub fn plain(scalar: Scalar<'_>) -> Value {
    match scalar {
        Scalar::Int(number) => Value::Int(number),
        Scalar::UInt(number) => Value::UInt(number),
        Scalar::Null | Scalar::Placeholder(_) => Value::Null,
        Scalar::Octets(bytes) => Value::bytes(bytes),
        Scalar::Double(number) => Value::Double(number),
        Scalar::Float(number) => Value::Float(number),
        Scalar::Bool(truth) => Value::from(truth),
        Scalar::String(bytes, collation) => string(bytes, collation),
        Scalar::Identifier(bytes) | Scalar::Raw(bytes) => string(bytes, None),
    }
}

/// Decodes a string by the character set of its collation; without one, or if the bytes are not valid in it, the value is bytes.
fn string(bytes: &[u8], collation: Option<u64>) -> Value {
    let collation = collation.and_then(|id| Collation::by_id(u16::try_from(id).ok()?));
    match collation.map_or(Charset::Utf8, Collation::charset) {
        Charset::Binary => Value::bytes(bytes),
        charset => charset::decode(bytes, charset).map_or_else(|| Value::bytes(bytes), Value::text),
    }
}

/// Decodes text of a client with the given character set.
pub fn decode(bytes: &[u8], charset: Charset) -> Result<Cow<'_, str>> {
    charset::decode(bytes, charset).ok_or_else(|| charset::not_text(bytes, charset))
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    match decode(bytes, Charset::Utf8)? {
        Cow::Borrowed(text) => Ok(text),
        Cow::Owned(_) => unreachable!("UTF-8 is borrowed"),
    }
}

pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Returns whether the hint is only a comment. Clients trace their requests by comments that differ each time, and the cached statement would never be found.
fn is_plain_comment(hint: &str) -> bool {
    let hint = hint.trim();
    match hint.strip_prefix("/*") {
        None => hint.is_empty(),
        Some(rest) => !rest.starts_with(['!', '+', 'M']) && rest.find("*/") == Some(rest.len().wrapping_sub(2)),
    }
}

/// Returns whether the hint changes nothing of the statement.
pub fn is_trace(hint: &[u8]) -> bool {
    let asks_for_nothing = |hint: &str| is_plain_comment(hint) && matches!(returned(hint), Ok(None));
    hint.is_empty() || hint.is_ascii() && std::str::from_utf8(hint).is_ok_and(asks_for_nothing)
}

/// Returns the list for RETURNING that a hint asks for: `fields(a,b)`, or all columns without it; `None` if it asks for none.
pub fn returned(hint: &str) -> Result<Option<String>> {
    let folded = hint.to_ascii_lowercase();
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    if !folded.split(|letter| !is_part(letter)).any(|word| word == "returning") {
        return Ok(None);
    }
    let Some(begin) = folded.find("fields") else { return Ok(Some("*".into())) };
    let list = hint[begin + "fields".len()..].trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let names = list.and_then(|(list, _)| list.split(',').map(column).collect::<Option<Vec<String>>>());
    let names = names.ok_or_else(|| errors::XRPC.with(&[&"The hint's `fields` is no list of columns."]))?;
    Ok(Some(names.join(", ")))
}

/// Returns a column's name, quoted, or `*`.
fn column(name: &str) -> Option<String> {
    let name = name.trim();
    let bare = name.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).unwrap_or(name);
    match bare {
        "" => None,
        "*" => Some(bare.into()),
        bare if bare.contains('`') => None,
        bare => Some(quoted(bare)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_say_nothing_are_told_from_those_that_do() {
        for plain in ["", "  ", "/*DRDS /127.0.0.1/1a2b/ */", " /* a */ ", "/**/"] {
            assert!(is_plain_comment(plain), "{plain}");
        }
        for other in ["/*+ x */", "/*!40001 x */", "/* a */ /* b */", "/* a */ select", "/* a", "x", "/*/"] {
            assert!(!is_plain_comment(other), "{other}");
        }
    }

    #[test]
    fn a_trace_is_a_comment_that_asks_for_nothing() {
        for trace in ["", "/*DRDS /127.0.0.1/1a2b/ */"] {
            assert!(is_trace(trace.as_bytes()), "{trace}");
        }
        for other in ["/* returning */", "/*+ x */", "select 1;", "/* \u{e4} */"] {
            assert!(!is_trace(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn hints_name_the_columns_that_come_back() {
        let returned = |hint| returned(hint).map_err(|error| error.code);
        assert_eq!(returned("/*+ index(t) */"), Ok(None));
        assert_eq!(returned("/*+ index(returning_parcels) */"), Ok(None));
        assert_eq!(returned("/*+returning*/"), Ok(Some("*".into())));
        assert_eq!(returned("/*+ RETURNING Fields ( id, `a b` ,*) */"), Ok(Some("`id`, `a b`, *".into())));
        for malformed in [
            "/*+returning fields*/",
            "/*+returning fields()*/",
            "/*+returning fields(a,)*/",
            "/*+returning fields(a*/",
            "/*+returning fields(a`b)*/",
        ] {
            assert_eq!(returned(malformed), Err(8001), "{malformed}");
        }
    }

    #[test]
    fn strings_are_letters_where_their_collation_says_so() {
        assert_eq!(string("ä".as_bytes(), Some(45)), Value::text("ä"));
        assert_eq!(string("ä".as_bytes(), None), Value::text("ä"));
        assert_eq!(string(b"\xe4", Some(8)), Value::text("ä"));
        assert_eq!(string(b"ab", Some(63)), Value::bytes(b"ab"));
        assert_eq!(string(b"\xff", Some(45)), Value::bytes(b"\xff"));
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        assert_eq!(decode(b"\xe4", Charset::Latin1).unwrap(), "ä");
        assert_eq!(decode(b"a\xff", Charset::Utf8).unwrap_err().code, 1300);
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
