//! bool: its spellings.

use crate::error::Result;
use crate::types::io;
use crate::value::Value;

/// Returns the truth of a value of type bool.
pub fn of(value: &Value) -> bool {
    !matches!(value, Value::Int(0) | Value::UInt(0))
}

pub fn input(text: &str) -> Result<Value> {
    parse(text.trim_matches(is_space)).map(Value::from).ok_or_else(|| io::invalid_input("boolean", text))
}

/// C's `isspace`
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Returns the truth that a word without spaces names: a beginning of true, false, yes, no, on or off that is the beginning of no other; or 1, or 0.
pub fn parse(word: &str) -> Option<bool> {
    let begins = |full: &str| full.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
    match word.len() {
        0 => None,
        _ if begins("true") || begins("yes") || word == "1" => Some(true),
        _ if begins("false") || begins("no") || word == "0" => Some(false),
        2.. if begins("on") => Some(true),
        2.. if begins("off") => Some(false),
        _ => None,
    }
}
