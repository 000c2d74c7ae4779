//! Literal extraction: texts of the simple protocol that differ only in literals share a plan.
//!
//! The key of the plan is the parameterised text: a tag for each literal, words and operators as they are, and single spaces. The kind of a literal is part of its tag, because a plan is bound to types; a string has no type before the binder gives it one, as a parameter.
//! A text that cannot be divided safely (comments, a prefix before a quote, two adjacent strings, dollar quotes) is parsed as it is. Literals stay where their value has a meaning for the binder: in the select list, in ORDER BY and GROUP BY, in modifiers of types.

use std::sync::Arc;

use query::exec::host::seen_maps;

use crate::error::Result;
use crate::functions::state::PgState;
use crate::instance::plans::OfText;
use crate::session::Session;
use crate::session::statement::{Prepared, has_plan};
use crate::types::oid::{self, Oid};
use crate::types::{io, registry};
use crate::value::{Decimal, Value};

/// Statements with more literals are bulk loads and are not cached.
const LITERALS: usize = 64;
/// The longest key that is cached.
const KEY_MAX: usize = 16 << 10;
/// Precedes the tag of a literal in a key. A statement cannot contain it outside quotes.
const MARK: u8 = 1;

/// A parameterised statement. It is meant to be reused, since it keeps its buffers.
#[derive(Debug, Default)]
pub(super) struct ParameterisedText {
    /// The parameterised text, which statements of one plan have in common.
    pub key: Vec<u8>,
    pub literals: Vec<Value>,
    /// The types of the literals; 0 for strings.
    pub types: Vec<Oid>,
    /// The depth of open parentheses since the name of a type, plus one for the name itself.
    kept: usize,
    /// Inside a clause that keeps its literals.
    keeps_clause: bool,
}

/// Names of types that modifiers may follow.
const TYPES: [&str; 14] = [
    "bit",
    "bpchar",
    "char",
    "character",
    "dec",
    "decimal",
    "float",
    "interval",
    "numeric",
    "time",
    "timestamp",
    "timestamptz",
    "varchar",
    "varying",
];

/// Words that end ORDER BY or GROUP BY.
const CLAUSES: [&str; 8] = ["fetch", "for", "having", "limit", "offset", "range", "rows", "where"];

impl ParameterisedText {
    /// Computes key and literals of a text. Returns false if the text must be parsed as it is.
    pub fn take(&mut self, text: &str) -> bool {
        self.key.clear();
        self.literals.clear();
        self.types.clear();
        self.kept = 0;
        self.keeps_clause = text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
        let text = text.trim_end();
        let text = text.strip_suffix(';').unwrap_or(text);
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

    fn keeps(&self) -> bool {
        self.kept > 0 || self.keeps_clause
    }

    /// Copies one word, operator, literal or run of spaces, and returns its end.
    fn step(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let byte = bytes[at];
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                if !matches!(self.key.last(), None | Some(b' ' | b'(' | b',')) {
                    self.key.push(b' ');
                }
                Some(at + 1)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                let end = at + bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                self.word(&bytes[at..end], &bytes[end..]);
                Some(end)
            }
            b'0'..=b'9' => self.number(text, at),
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) && !self.follows_name() => self.number(text, at),
            b'\'' => self.quoted(text, at),
            b'"' => {
                let end = at + 2 + bytes[at + 1..].iter().position(|byte| *byte == b'"')?;
                self.key.extend_from_slice(&bytes[at..end]);
                Some(end)
            }
            b'$' | b';' | b'{' | b'}' | b'\\' | 0..=31 => None,
            b'/' if bytes.get(at + 1) == Some(&b'*') => None,
            b'-' if bytes.get(at + 1) == Some(&b'-') => None,
            _ => {
                match byte {
                    b'(' if self.kept > 0 => self.kept += 1,
                    // The last but one closes the list of modifiers.
                    b')' if self.kept > 0 => self.kept = if self.kept == 2 { 0 } else { self.kept - 1 },
                    _ => {}
                }
                self.key.push(byte);
                Some(at + 1)
            }
        }
    }

    fn word(&mut self, word: &[u8], rest: &[u8]) {
        let is = |known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
        let opens = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'(');
        if self.kept == 0 && opens && TYPES.iter().any(is) {
            self.kept = 1;
        }
        if is(&"by") {
            self.keeps_clause = true;
        } else if self.keeps_clause && (is(&"from") || CLAUSES.iter().any(is)) {
            self.keeps_clause = false;
        }
        self.key.extend_from_slice(word);
    }

    fn follows_name(&self) -> bool {
        self.key.last().is_some_and(|byte| is_word(*byte) || matches!(byte, b'"' | b')' | b']') || *byte == MARK)
    }

    fn push(&mut self, tag: u8, value: Value, ty: Oid) {
        self.key.extend_from_slice(&[MARK, tag]);
        self.literals.push(value);
        self.types.push(ty);
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
        if bytes.get(end).is_some_and(|byte| is_word(*byte) || *byte == b'.') {
            // An exponent, 0x41, or no number.
            return None;
        }
        let literal = &text[at..end];
        if self.keeps() {
            self.key.extend_from_slice(literal.as_bytes());
            return Some(end);
        }
        if !is_whole {
            self.push(b'd', Value::Decimal(Decimal::parse(literal)?), oid::NUMERIC);
            return Some(end);
        }
        let number: i64 = literal.parse().ok()?;
        match number {
            // A minus sign before it would make it an int4.
            2_147_483_648 => return None,
            number if number <= i64::from(i32::MAX) => self.push(b'i', Value::Int(number), oid::INT4),
            number => self.push(b'l', Value::Int(number), oid::INT8),
        }
        Some(end)
    }

    fn quoted(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let before = self.key.iter().rposition(|byte| *byte != b' ').map(|last| &self.key[..=last])?;
        if ends_in_type_word(before) || before.ends_with(&[MARK, b's']) || before.ends_with(b"'") {
            return None;
        }
        let end = at + 1 + bytes[at + 1..].iter().position(|byte| *byte == b'\'')?;
        let is_marked = bytes[at..end].contains(&MARK);
        if bytes.get(end + 1) == Some(&b'\'') || is_marked {
            return None;
        }
        if self.keeps() {
            self.key.extend_from_slice(&bytes[at..=end]);
        } else {
            self.push(b's', Value::text(&text[at + 1..end]), 0);
        }
        Some(end + 1)
    }

    /// Returns the text that the key stands for, with parameters in the place of literals.
    fn text(&self) -> String {
        let (mut out, mut at, mut number) = (Vec::with_capacity(self.key.len() + 64), 0, 0);
        while at < self.key.len() {
            if self.key[at] == MARK {
                number += 1;
                out.extend_from_slice(format!(" ${number} ").as_bytes());
                at += 2;
            } else {
                out.push(self.key[at]);
                at += 1;
            }
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// A word after which a quote is part of one literal, or of a name.
fn ends_in_type_word(key: &[u8]) -> bool {
    let word = key.len() - key.iter().rev().take_while(|byte| is_word(**byte)).count();
    let word = &key[word..];
    if word.is_empty() {
        return false;
    }
    const SAFE: &[&str] = &[
        "and",
        "or",
        "like",
        "ilike",
        "in",
        "between",
        "values",
        "select",
        "where",
        "when",
        "then",
        "else",
        "not",
        "set",
        "on",
        "having",
        "case",
        "escape",
        "distinct",
        "returning",
    ];
    !SAFE.iter().any(|safe| word.eq_ignore_ascii_case(safe.as_bytes()))
}

/// Only the statements that come by the thousand.
fn is_candidate(text: &[u8]) -> bool {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let text = &text[start..];
    ["select ", "insert ", "update ", "delete "]
        .iter()
        .any(|word| text.len() > word.len() && text[..word.len()].eq_ignore_ascii_case(word.as_bytes()))
}

impl Session {
    /// Returns the cached statement of a parameterised text, and this text's literals.
    pub(super) fn known_text(&mut self, text: &str) -> Option<(Arc<Prepared>, Vec<Value>)> {
        if self.transaction.is_aborted {
            return None;
        }
        let mut parameterised = std::mem::take(&mut self.parameterised);
        let prepared = if parameterised.take(text) { self.prepared_of(&parameterised) } else { None };
        let found = prepared.and_then(|prepared| {
            // An error of a literal is reported for the text itself, with its position.
            let values = self.typed(std::mem::take(&mut parameterised.literals), &prepared.parameter_types).ok()?;
            Some((prepared, values))
        });
        self.parameterised = parameterised;
        found
    }

    fn prepared_of(&mut self, parameterised: &ParameterisedText) -> Option<Arc<Prepared>> {
        if seen_maps(&self.ctx).is_some() {
            // A plan for an older snapshot is not shared (QU-63).
            return None;
        }
        let context = self.context_id();
        match self.db.plans.text(context, &parameterised.key) {
            Some(OfText::Prepared(prepared)) if prepared.is_current(context) => return Some(prepared),
            Some(OfText::Unshared) => return None,
            // A text is prepared anew when a definition has changed: its columns may be others.
            Some(OfText::Prepared(_)) | None => {}
        }
        let prepared = self.prepare_shared(parameterised).ok().flatten().map(Arc::new);
        let entry = prepared.clone().map_or(OfText::Unshared, OfText::Prepared);
        self.db.plans.keep_text(context, &parameterised.key, entry);
        prepared
    }

    /// Prepares the parameterised text; `None` if its plan depends on the literals.
    fn prepare_shared(&mut self, parameterised: &ParameterisedText) -> Result<Option<Prepared>> {
        let text: Arc<str> = parameterised.text().into();
        let mut statements = self.parse_text(&text)?;
        let (1, Some(raw)) = (statements.len(), statements.pop()) else { return Ok(None) };
        if !has_plan(&raw.statement) || raw.parameters as usize != parameterised.literals.len() {
            return Ok(None);
        }
        let prepared = self.prepare(&text, Some(raw), &parameterised.types)?;
        Ok((prepared.parameter_types.len() == parameterised.literals.len() && prepared.keeps_plan())
            .then_some(prepared))
    }

    /// Gives strings the types that the binder has inferred.
    fn typed(&mut self, mut literals: Vec<Value>, types: &[Oid]) -> Result<Vec<Value>> {
        let pg = self.ctx.slot_mut::<PgState>();
        for (literal, ty) in literals.iter_mut().zip(types) {
            let Value::Text(text) = literal else { continue };
            if !matches!(*ty, oid::TEXT | oid::UNKNOWN | oid::VARCHAR) {
                *literal = io::input(&registry::column_type(*ty, -1, true), text.as_str(), &pg.io)?;
            }
        }
        Ok(literals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<String> {
        let mut parameterised = ParameterisedText::default();
        parameterised.take(text).then(|| parameterised.text())
    }

    #[test]
    fn literals_come_out_and_the_rest_stays() {
        let mut parameterised = ParameterisedText::default();
        assert!(parameterised.take("SELECT c FROM sbtest1 WHERE id=4711"));
        assert_eq!(parameterised.text(), "SELECT c FROM sbtest1 WHERE id= $1 ");
        assert_eq!(parameterised.literals, [Value::Int(4711)]);
        assert_eq!(parameterised.types, [oid::INT4]);
        assert!(parameterised.take("INSERT INTO t2 (a, b) VALUES (-1, 'x;y',1.50);"));
        assert_eq!(parameterised.text(), "INSERT INTO t2 (a,b) VALUES (- $1 , $2 , $3 )");
        assert_eq!(parameterised.types, [oid::INT4, 0, oid::NUMERIC]);
    }

    #[test]
    fn literals_with_a_meaning_for_the_binder_stay() {
        assert_eq!(key("select a, 1 from t order by 1 limit 5").unwrap(), "select a,1 from t order by 1 limit  $1 ");
        assert_eq!(
            key("update t set a = b::numeric(10, 2) where c = 3").unwrap(),
            "update t set a = b::numeric(10,2) where c =  $1 "
        );
        assert_eq!(key("delete from t where a = 'x'::varchar(3)").unwrap(), "delete from t where a =  $1 ::varchar(3)");
    }

    #[test]
    fn a_text_that_is_not_surely_divided_is_left_alone() {
        for text in [
            "select a from t where b = date '2020-01-01'",
            "select a from t where b = E'a'",
            "select a from t where b = 'a' 'b'",
            "select a from t where b = 'it''s'",
            "select a from t where b = $$x$$",
            "select a from t where b = $1",
            "select a from t where b = 1e5",
            "select a from t where b = -2147483648",
            "select 1 -- x",
            "select /* c */ 1",
            "select 1; select 2",
            "vacuum",
        ] {
            assert_eq!(key(text), None, "{text}");
        }
    }
}
