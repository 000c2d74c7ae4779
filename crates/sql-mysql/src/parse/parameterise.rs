//! Literal extraction: statements that differ only in literals share a plan.
//!
//! The key of the plan is the parameterised text: a tag for each literal, words and operators as they are, and single
//! spaces. The kind of a literal is part of its tag, because a plan is bound to types. A text that cannot be split
//! safely (comments, a prefix before a quote as in `x'41'` or `DATE '...'`, two adjacent strings, `?`) is not
//! parameterised and is parsed as it is.

use crate::value::{Decimal, Value};

/// Statements with more literals are bulk loads and are not cached.
const LITERALS: usize = 64;
/// The longest key that is cached.
const KEY_MAX: usize = 16 << 10;

/// Precedes the tag of a literal in a key. A statement cannot contain it outside quotes.
const MARK: u8 = 1;

/// A parameterised statement. It is meant to be reused, since it keeps its buffers.
#[derive(Debug, Default)]
pub struct ParameterisedText {
    /// The parameterised text, which statements of one plan have in common.
    pub key: Vec<u8>,
    pub literals: Vec<Value>,
    /// The depth of open parentheses since a function of `KEPT`, whose literals stay, plus one for the name itself.
    kept: usize,
    /// Inside the select list, which keeps its literals, since they name the result columns.
    is_list: bool,
}

/// Functions whose result type depends on the values of literal arguments.
const KEPT: [&str; 12] = [
    "convert_tz",
    "lpad",
    "repeat",
    "replace",
    "round",
    "rpad",
    "str_to_date",
    "time",
    "timediff",
    "timestamp",
    "truncate",
    "unix_timestamp",
];

impl ParameterisedText {
    /// Computes key and literals of a text. Returns false if the text must be parsed as it is.
    pub fn take(&mut self, text: &str) -> bool {
        self.key.clear();
        self.literals.clear();
        self.kept = 0;
        self.is_list = text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
        let bytes = text.as_bytes();
        if bytes.len() > 1 << 20 || !is_candidate(bytes) {
            return false;
        }
        let mut at = 0;
        while at < bytes.len() {
            let Some(next) = self.step(text, at) else { return false };
            if self.literals.len() > LITERALS || self.key.len() > KEY_MAX {
                return false;
            }
            at = next;
        }
        while self.key.last() == Some(&b' ') {
            self.key.pop();
        }
        true
    }

    /// Returns whether literals at this place stay in the key.
    fn keeps(&self) -> bool {
        self.kept > 0 || self.is_list
    }

    /// Copies one word, operator, literal or run of spaces, and returns its end.
    fn step(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let byte = bytes[at];
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                if self.is_list && !self.key.is_empty() {
                    self.key.push(byte);
                } else if !matches!(self.key.last(), None | Some(b' ' | b'(' | b',')) {
                    self.key.push(b' ');
                }
                Some(at + 1)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'@' | b'$' | 0x80.. => {
                let end = at + bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                let word = &bytes[at..end];
                // Paths and defaults of JSON_TABLE are not values.
                if word.len() == 10 && word.eq_ignore_ascii_case(b"json_table") {
                    return None;
                }
                if self.kept == 0
                    && bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'(')
                    && KEPT.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
                {
                    self.kept = 1;
                }
                self.is_list &= !word.eq_ignore_ascii_case(b"from");
                self.key.extend_from_slice(word);
                Some(end)
            }
            b'0'..=b'9' => self.number(text, at),
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) && !self.follows_name() => self.number(text, at),
            b'\'' => self.quoted(text, at),
            b'`' => {
                let end = at + 2 + bytes[at + 1..].iter().position(|byte| *byte == b'`')?;
                self.key.extend_from_slice(&bytes[at..end]);
                Some(end)
            }
            b'"' | b'#' | b'?' | b';' | b'{' | b'}' | b'\\' | 0..=31 => None,
            b'/' if bytes.get(at + 1) == Some(&b'*') => None,
            b'-' if bytes.get(at + 1) == Some(&b'-') => None,
            _ => {
                match byte {
                    b'(' if self.kept > 0 => self.kept += 1,
                    // The last but one closes the argument list.
                    b')' if self.kept > 0 => self.kept = if self.kept == 2 { 0 } else { self.kept - 1 },
                    _ => {}
                }
                self.key.push(byte);
                Some(at + 1)
            }
        }
    }

    fn follows_name(&self) -> bool {
        self.key.last().is_some_and(|byte| is_word(*byte) || *byte == b'`' || *byte == MARK)
    }

    fn push(&mut self, tag: u8, value: Value) {
        self.key.extend_from_slice(&[MARK, tag]);
        self.literals.push(value);
    }

    fn number(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(at);
        let mut is_whole = true;
        if bytes.get(end) == Some(&b'.') {
            is_whole = false;
            end = digits(end + 1);
        }
        if bytes.get(end).is_some_and(|byte| is_word(*byte)) {
            // An exponent, 0x41, or a name that begins with a digit.
            return None;
        }
        let literal = &text[at..end];
        if self.keeps() {
            self.key.extend_from_slice(literal.as_bytes());
            return Some(end);
        }
        if is_whole && literal.len() <= 18 {
            self.push(b'i', Value::Int(literal.parse().ok()?));
        } else {
            let decimal = Decimal::parse(literal).filter(|_| !is_whole)?;
            // Precision and scale are part of the literal's type.
            let (whole, scale) = (decimal.whole_digits(), decimal.bounded_scale());
            self.push(b'd', Value::Decimal(decimal));
            self.key.extend_from_slice(&[b'0' + u8::try_from(whole).ok()?, b'0' + scale]);
        }
        Some(end)
    }

    fn quoted(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let before = self.key.iter().rposition(|byte| *byte != b' ').map(|last| &self.key[..=last])?;
        if ends_in_type_word(before) || before.ends_with(&[MARK, b's']) {
            return None;
        }
        let length = bytes[at + 1..].iter().position(|byte| matches!(byte, b'\'' | b'\\'))?;
        let end = at + 1 + length;
        let is_marked = bytes[at..end].contains(&MARK);
        if bytes[end] == b'\\' || bytes.get(end + 1) == Some(&b'\'') || (self.keeps() && is_marked) {
            return None;
        }
        if self.keeps() {
            self.key.extend_from_slice(&bytes[at..=end]);
        } else {
            self.push(b's', Value::text(&text[at + 1..end]));
        }
        Some(end + 1)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@' | 0x80..)
}

/// A word after which a quote is part of one literal, or of a name.
fn ends_in_type_word(key: &[u8]) -> bool {
    let word = key.len() - key.iter().rev().take_while(|byte| is_word(**byte)).count();
    let word = &key[word..];
    if word.is_empty() {
        return false;
    }
    const SAFE: &[&str] = &[
        "and", "or", "like", "in", "between", "values", "value", "select", "where", "when", "then", "else", "not",
        "set", "on", "having", "regexp", "rlike", "div", "mod", "xor", "case", "escape", "by", "limit", "distinct",
    ];
    // `MARK i` before a quote cannot be a word's end: the mark is no word byte, its tag is.
    !SAFE.iter().any(|safe| word.eq_ignore_ascii_case(safe.as_bytes()))
}

/// Only the statements that come by the thousand.
fn is_candidate(text: &[u8]) -> bool {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let text = &text[start..];
    ["select ", "insert ", "update ", "delete ", "replace "]
        .iter()
        .any(|word| text.len() > word.len() && text[..word.len()].eq_ignore_ascii_case(word.as_bytes()))
}

/// The text that a key stands for, with `?` for each literal: what is parsed when the key is met first.
pub fn text_of(key: &[u8]) -> String {
    let (mut out, mut at) = (Vec::with_capacity(key.len()), 0);
    while at < key.len() {
        if key[at] == MARK {
            out.extend_from_slice(b" ? ");
            at += if key[at + 1] == b'd' { 4 } else { 2 };
        } else {
            out.push(key[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<String> {
        let mut parameterised = ParameterisedText::default();
        parameterised.take(text).then(|| text_of(&parameterised.key))
    }

    #[test]
    fn literals_come_out_and_the_rest_stays() {
        let mut parameterised = ParameterisedText::default();
        assert!(parameterised.take("SELECT c FROM sbtest1 WHERE id=4711"));
        assert_eq!(text_of(&parameterised.key), "SELECT c FROM sbtest1 WHERE id= ? ");
        assert_eq!(parameterised.literals, [Value::Int(4711)]);
        assert!(parameterised.take("INSERT INTO t2 (a, b) VALUES (-1, 'x;y',1.50)"));
        assert_eq!(text_of(&parameterised.key), "INSERT INTO t2 (a,b) VALUES (- ? , ? , ? )");
        assert_eq!(parameterised.literals[1], Value::text("x;y"));
    }

    #[test]
    fn kinds_of_literals_are_part_of_the_key() {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for text in ["1", "'1'", "1.5", "1.55", "12.5"] {
            let mut parameterised = ParameterisedText::default();
            assert!(parameterised.take(&format!("select a from t where a = {text}")));
            assert!(!keys.contains(&parameterised.key), "{text}");
            keys.push(parameterised.key);
        }
    }

    #[test]
    fn literals_that_a_type_follows_from_stay() {
        let one = key("select a from t where ROUND((a + 1) * 2, 3) = 5 and b='x'").unwrap();
        assert_eq!(one, "select a from t where ROUND((a + 1) * 2,3) =  ?  and b= ? ");
        assert_ne!(key("delete from t where round(a, 1) = 2"), key("delete from t where round(a, 2) = 2"));
        assert_ne!(key("delete from t where round (a, 1) = 2"), key("delete from t where round (a, 2) = 2"));
        assert_eq!(
            key("update t set a = str_to_date('1', '%H'), b = 'b'").unwrap(),
            "update t set a = str_to_date('1','%H'),b =  ? "
        );
        assert_eq!(key("update t set round = 1").unwrap(), "update t set round =  ? ");
    }

    #[test]
    fn what_names_a_column_stays_as_it_was_written() {
        assert_eq!(
            key("SELECT concat(a,  b),\n c FROM  t WHERE a =\n 1").unwrap(),
            "SELECT concat(a,  b),\n c FROM t WHERE a =  ? "
        );
        for text in ["select 1", "select 'a' 'b'", "select 1 as one, 'x' from t", "SELECT  1.50+2", "select a from t"] {
            assert_eq!(key(text).unwrap(), text);
        }
        assert_eq!(key("select 1, 'x' from t limit 1").unwrap(), "select 1, 'x' from t limit  ? ");
    }

    #[test]
    fn what_is_not_surely_a_literal_is_left_alone() {
        for text in [
            "select x'41' from t",
            "select date '2020-01-01'",
            "select a from t where b = 'a' 'b'",
            "select 'a\u{1}i'",
            "select _utf8'a' from t",
            "select 'it''s'",
            "select 'a\\n'",
            "select 1e5",
            "select 0x41",
            "select /* c */ 1",
            "select 1 -- x",
            "select a from t where b = ?",
            "select a as 'name' from t where a = 1",
            "show tables like 'x'",
        ] {
            assert_eq!(key(text), None, "{text}");
        }
    }
}
