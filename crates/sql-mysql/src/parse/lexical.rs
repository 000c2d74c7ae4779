//! Lexical scans of statements before they are parsed: statement boundaries, comments, and positions of parameters.
//!
//! Hard part: to agree with the tokenizer on the extent of quotes and comments. All scans share one function, `skip`.

use crate::scalar::modes::SqlMode;

/// Returns the end of the indivisible item at `at`: a quoted text, a comment, a word, or one byte.
pub(super) fn skip(text: &[u8], at: usize, escapes: bool) -> usize {
    match text[at] {
        quote @ (b'\'' | b'"') => skip_quoted(text, at, quote, escapes),
        b'`' => skip_quoted(text, at, b'`', false),
        b'#' => skip_line(text, at),
        b'-' if is_dashes(text, at) => skip_line(text, at),
        b'/' if text.get(at + 1) == Some(&b'*') => skip_comment(text, at),
        _ => at + 1,
    }
}

fn is_dashes(text: &[u8], at: usize) -> bool {
    text.get(at + 1) == Some(&b'-') && text.get(at + 2).is_none_or(|byte| byte.is_ascii_whitespace() || *byte < b' ')
}

fn skip_line(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length + 1)
}

fn skip_comment(text: &[u8], at: usize) -> usize {
    let mut end = at + 2;
    while end < text.len() {
        if text[end..].starts_with(b"*/") {
            return end + 2;
        }
        end += 1;
    }
    text.len()
}

pub(super) fn skip_quoted(text: &[u8], at: usize, quote: u8, escapes: bool) -> usize {
    let mut end = at + 1;
    while end < text.len() {
        match text[end] {
            b'\\' if escapes => end += 2,
            byte if byte == quote => match text.get(end + 1) {
                Some(next) if *next == quote => end += 2,
                _ => return end + 1,
            },
            _ => end += 1,
        }
    }
    text.len()
}

/// Splits off the first statement (without its `;`) and returns the rest.
pub fn split(text: &str, mode: SqlMode) -> (&str, &str) {
    let (bytes, escapes) = (text.as_bytes(), !mode.has(SqlMode::NO_BACKSLASH_ESCAPES));
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b';' {
            return (&text[..at], &text[at + 1..]);
        }
        at = skip(bytes, at, escapes).min(bytes.len());
    }
    (text, "")
}

/// Returns the offsets of the parameters of a statement.
pub fn parameters(text: &str, mode: SqlMode) -> Vec<usize> {
    let (bytes, escapes) = (text.as_bytes(), !mode.has(SqlMode::NO_BACKSLASH_ESCAPES));
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'?' {
            found.push(at);
        }
        at = skip(bytes, at, escapes);
    }
    found
}

/// Quotes a name with backquotes.
pub fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Returns whether the text is only space and comments.
pub fn is_blank(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let is_version = bytes[at..].starts_with(b"/*!");
        match bytes[at] {
            byte if byte.is_ascii_whitespace() || byte == b';' => at += 1,
            b'#' | b'-' | b'/' if !is_version && skip(bytes, at, true) > at + 1 => at = skip(bytes, at, true),
            _ => return false,
        }
    }
    true
}

/// Iterates over words and signs outside quotes and comments. A word continues over `@` and `.`, as in names of
/// variables.
pub struct Words<'t> {
    text: &'t str,
    at: usize,
    escapes: bool,
}

impl<'t> Words<'t> {
    pub fn new(text: &'t str, mode: SqlMode) -> Words<'t> {
        Words { text, at: 0, escapes: !mode.has(SqlMode::NO_BACKSLASH_ESCAPES) }
    }
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'@' | b'$' | b'.' | 0x80..);
        while self.at < bytes.len() {
            let from = self.at;
            let length = bytes[from..].iter().take_while(|byte| is_word(byte)).count();
            if length > 0 {
                self.at += length;
                return Some(&self.text[from..self.at]);
            }
            self.at = skip(bytes, from, self.escapes).min(bytes.len());
            if self.at == from + 1 && !bytes[from].is_ascii_whitespace() {
                return Some(&self.text[from..self.at]);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_in_quotes_or_comments_ends_nothing() {
        let text = "select ';', \"a;b\", `x;y` -- no; \n /* ; */ # ;\n, 'it''s;', 'a\\';'; select 2";
        let (first, rest) = split(text, SqlMode::DEFAULT);
        assert!(first.ends_with("'a\\';'"));
        assert_eq!(rest, " select 2");
        assert_eq!(split("select 1--1; x", SqlMode::DEFAULT).0, "select 1--1");
    }

    #[test]
    fn a_parameter_in_quotes_or_comments_is_none() {
        let text = "select ?, '?', \"?\", `?`, /* ? */ 'it''s ?', '\\'?', ? -- ?\n, ? # ?";
        let found = parameters(text, SqlMode::DEFAULT);
        let places: Vec<usize> = text.match_indices('?').map(|(at, _)| at).collect();
        assert_eq!(found, [places[0], places[7], places[9]], "{places:?}");
        assert_eq!(parameters("'\\', ?", SqlMode::DEFAULT.with(SqlMode::NO_BACKSLASH_ESCAPES)), [5]);
        assert_eq!(parameters("'é' = ?", SqlMode::DEFAULT), [7]);
    }

    #[test]
    fn comments_alone_are_blank() {
        assert!(is_blank("  -- x\n/* y */ ;"));
        assert!(!is_blank("/*!40000 set x */"));
        assert!(!is_blank(" - 1"));
    }
}
