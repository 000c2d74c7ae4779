//! Splitting of an INSERT of many rows into statements of some rows each. A syntax tree takes some fifty times the
//! bytes of its text, so only one piece has a tree at a time.
//!
//! Hard part: the pieces must give the result of the whole. So every row is scanned beforehand, must have as many
//! values as the first, and may contain only plain literals, which always parse. Any other text is parsed as a whole.

use std::ops::Range;

use crate::parse::lexical::{skip, skip_quoted};
use crate::scalar::modes::SqlMode;

/// Shorter statements are not split.
const TEXT_MIN: usize = 32 << 10;
/// The size of a piece in bytes; it has at least one row.
const PIECE: usize = 8 << 10;
/// The longest text before the first row, which is parsed again with each piece.
const HEAD_MAX: usize = 16 << 10;

/// A statement and its split points.
#[derive(Debug)]
pub struct Bulk<'t> {
    head: &'t str,
    rows: &'t str,
    tail: &'t str,
    pieces: Vec<Range<usize>>,
}

impl<'t> Bulk<'t> {
    /// Returns None if the text is short, is no INSERT or REPLACE ... VALUES, or its rows contain anything but
    /// literals.
    pub fn of(text: &'t str, mode: SqlMode) -> Option<Bulk<'t>> {
        if text.len() < TEXT_MIN {
            return None;
        }
        let begin = head(text.as_bytes())?;
        let mut walk = Walk {
            text: text.as_bytes(),
            at: begin,
            escapes: !mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
            ansi_quotes: mode.has(SqlMode::ANSI_QUOTES),
        };
        let (mut pieces, mut start, mut values) = (Vec::new(), 0, None);
        let end = loop {
            let count = walk.row()?;
            if *values.get_or_insert(count) != count {
                return None;
            }
            let end = walk.at;
            let goes_on = walk.comes(b',');
            if !goes_on || end - begin - start >= PIECE {
                pieces.push(start..end - begin);
                walk.space();
                start = walk.at - begin;
            }
            if !goes_on {
                break end;
            }
        };
        let tail = &text[end..];
        let is_plain = tail.len() <= HEAD_MAX && !asks(tail);
        is_plain.then(|| Bulk { head: &text[..begin], rows: &text[begin..end], tail, pieces })
    }

    /// Iterates over the pieces, each the statement with some of its rows.
    pub fn statements(&self) -> impl Iterator<Item = String> + '_ {
        self.pieces.iter().map(|piece| [self.head, &self.rows[piece.clone()], self.tail].concat())
    }
}

/// Returns whether the text after the rows may contain a subquery, which would be evaluated once per piece.
fn asks(tail: &str) -> bool {
    const ASKING: [&[u8]; 3] = [b"select", b"table", b"values row"];
    let tail = tail.as_bytes();
    ASKING.iter().any(|word| tail.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}

/// Returns the offset of the first row.
fn head(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth, mut is_first) = (0, 0_i32, true);
    while at < text.len().min(HEAD_MAX) {
        match text[at] {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'(' => (at, depth) = (at + 1, depth + 1),
            b')' => (at, depth) = (at + 1, depth - 1),
            b',' | b'.' => at += 1,
            b'`' => at = skip(text, at, false),
            byte if is_word(byte) => {
                let end = at + text[at..].iter().take_while(|byte| is_word(**byte)).count();
                let word = &text[at..end];
                let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
                if is_first && !is("insert") && !is("replace") {
                    return None;
                }
                is_first = false;
                at = end;
                if depth == 0 && (is("values") || is("value")) {
                    at += text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                    return (text.get(at) == Some(&b'(')).then_some(at);
                }
            }
            // A comment, a literal, a sign: not before VALUES.
            _ => return None,
        }
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// A scanner of rows of literals.
struct Walk<'t> {
    text: &'t [u8],
    at: usize,
    escapes: bool,
    ansi_quotes: bool,
}

impl Walk<'_> {
    fn space(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    /// Skips the sign if it is next, and returns whether it was.
    fn comes(&mut self, sign: u8) -> bool {
        let before = self.at;
        self.space();
        let comes = self.text.get(self.at) == Some(&sign);
        self.at = if comes { self.at + 1 } else { before };
        comes
    }

    /// Scans a row in parentheses and returns its number of literals.
    fn row(&mut self) -> Option<usize> {
        if !self.comes(b'(') {
            return None;
        }
        let mut count = 0;
        loop {
            self.space();
            self.literal()?;
            count += 1;
            if self.comes(b')') {
                return Some(count);
            }
            if !self.comes(b',') {
                return None;
            }
        }
    }

    fn literal(&mut self) -> Option<()> {
        match *self.text.get(self.at)? {
            b'\'' => self.quoted(b'\''),
            b'"' if !self.ansi_quotes => self.quoted(b'"'),
            b'-' | b'+' => {
                self.at += 1;
                self.number()
            }
            b'0' if self.text.get(self.at + 1) == Some(&b'x') => {
                let digits = self.digits(self.at + 2, u8::is_ascii_hexdigit);
                self.pass(self.at + 2 + digits).filter(|()| digits > 0 && digits.is_multiple_of(2))
            }
            b'0'..=b'9' | b'.' => self.number(),
            b'x' | b'X' if self.text.get(self.at + 1) == Some(&b'\'') => {
                let digits = self.digits(self.at + 2, u8::is_ascii_hexdigit);
                let end = self.at + 2 + digits;
                (digits.is_multiple_of(2) && self.text.get(end) == Some(&b'\'')).then(|| self.at = end + 1)
            }
            _ => self.word(),
        }
    }

    fn digits(&self, from: usize, is_digit: fn(&u8) -> bool) -> usize {
        self.text.get(from..).unwrap_or_default().iter().take_while(|byte| is_digit(byte)).count()
    }

    /// Moves to `end`, unless a word begins or continues there.
    fn pass(&mut self, end: usize) -> Option<()> {
        let ends = self.text.get(end).is_none_or(|byte| !is_word(*byte) && *byte != b'.');
        ends.then(|| self.at = end)
    }

    fn quoted(&mut self, quote: u8) -> Option<()> {
        // An unterminated string ends behind the text.
        let end = skip_quoted(self.text, self.at, quote, self.escapes);
        (end < self.text.len()).then(|| self.at = end)
    }

    /// 1, 1.5, .5, 1e5.
    fn number(&mut self) -> Option<()> {
        let whole = self.digits(self.at, u8::is_ascii_digit);
        let mut end = self.at + whole;
        let mut digits = whole;
        if self.text.get(end) == Some(&b'.') {
            let fraction = self.digits(end + 1, u8::is_ascii_digit);
            if fraction == 0 {
                return None;
            }
            (end, digits) = (end + 1 + fraction, digits + fraction);
        }
        if digits == 0 {
            return None;
        }
        if matches!(self.text.get(end), Some(b'e' | b'E')) {
            end += 1 + usize::from(matches!(self.text.get(end + 1), Some(b'+' | b'-')));
            let exponent = self.digits(end, u8::is_ascii_digit);
            if exponent == 0 {
                return None;
            }
            end += exponent;
        }
        self.pass(end)
    }

    /// NULL, TRUE, FALSE, or `_binary` before a string.
    fn word(&mut self) -> Option<()> {
        let length = self.digits(self.at, |byte| is_word(*byte));
        let word = &self.text[self.at..self.at + length];
        if word.eq_ignore_ascii_case(b"_binary") {
            self.at += length;
            self.space();
            return (self.text.get(self.at) == Some(&b'\'')).then(|| self.quoted(b'\''))?;
        }
        let is_literal = ["null", "true", "false"].iter().any(|literal| word.eq_ignore_ascii_case(literal.as_bytes()));
        is_literal.then(|| self.at += length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(row: &str) -> String {
        vec![row; TEXT_MIN / row.len() + 1].join(",")
    }

    fn pieces(text: &str) -> Option<Vec<String>> {
        Bulk::of(text, SqlMode::DEFAULT).map(|bulk| bulk.statements().collect())
    }

    #[test]
    fn the_pieces_have_all_rows_and_nothing_else() {
        let row = r#"(1, -2.5,'a''b\'),(', "x", NULL,x'00ff', 0xAB, 1e-5,.5, _binary 'z', true)"#;
        let text = format!(
            "insert into `va lues`.t (a, `values`) VALUES\n{} , {row} on duplicate key update a = 1",
            rows(row)
        );
        let pieces = pieces(&text).unwrap();
        assert!(pieces.len() > 3);
        let count: usize = pieces.iter().map(|piece| piece.matches(row).count()).sum();
        assert_eq!(count, text.matches(row).count());
        for piece in &pieces {
            assert!(piece.starts_with("insert into `va lues`.t (a, `values`) VALUES\n(1"), "{piece}");
            assert!(piece.ends_with(") on duplicate key update a = 1"), "{piece}");
            assert!(piece.len() < 2 * PIECE);
            assert!(crate::parse::parse(piece, SqlMode::DEFAULT).is_ok());
        }
    }

    #[test]
    fn what_may_be_wrong_in_a_later_row_is_not_cut() {
        let good = rows("(1,'a')");
        assert!(pieces(&format!("replace t value {good};")).is_some());
        let odd = [
            "(1)",
            "(1,'a',2)",
            "(1,a)",
            "(1,now())",
            "(1,'a' 'b')",
            "(1,(2))",
            "(1,default)",
            "(1,1e)",
            "(1,1.5.5)",
            "(1,'a)",
            "(1,0xABC)",
            "(1,x'abc')",
            "(1,5a)",
            "(1,?)",
            "(1,- 5)",
            "(1,/* */2)",
            "()",
            "(1,)",
            "(1,'a'",
            "",
        ];
        for row in odd {
            assert!(pieces(&format!("insert into t values {good},{row}")).is_none(), "{row}");
        }
        for head in [
            "insert into t select * from (values ",
            "/* x */ insert into t values",
            "select 1 in",
            "insert into t values row",
        ] {
            assert!(pieces(&format!("{head} {good}")).is_none(), "{head}");
        }
        let asking = "on duplicate key update a = (SELECT count(*) from t)";
        assert!(pieces(&format!("insert into t values {good} {asking}")).is_none());
        assert!(pieces("insert into t values (1,'a'),(2,'b')").is_none());
    }
}
