//! Trees to text that parses to the same tree under the default mode.
//!
//! The style is the one in which MySQL prints views and CHECK constraints: every operator stands in parentheses, identifiers in
//! backquotes, keywords and function names in lower case. Nodes stream into the formatter; nothing is collected, and recursion follows
//! the tree's height only, never the length of a list or chain.
//!
//! Two things come back in another form: `ExprKind::Concat` as a call of `concat`, since `||` is OR in the default mode, and the names of
//! functions in lower case. Parentheses count as nested constructs when the text is read, so a tree near [`HEIGHT_MAX`] may be refused then.
//!
//! [`HEIGHT_MAX`]: crate::tree::HEIGHT_MAX

use std::fmt::{self, Display, Formatter, Write};

use crate::mysql::keyword::Kw;
use crate::tree::{Ident, Name};

mod change;
mod expr;
mod query;
mod statement;
mod table;

/// The name in backquotes.
pub fn identifier(name: &str) -> impl Display {
    Identifier(name)
}

/// The text as a string literal.
pub fn string(text: &str) -> impl Display {
    Text(text)
}

struct Identifier<'a>(&'a str);

impl Display for Identifier<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Identifier(name) = *self;
        f.write_char('`')?;
        for (i, part) in name.split('`').enumerate() {
            f.write_str(when(i > 0, "``"))?;
            f.write_str(part)?;
        }
        f.write_char('`')
    }
}

struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Text(text) = *self;
        f.write_char('\'')?;
        let mut done = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                0 => "\\0",
                b'\n' => "\\n",
                b'\r' => "\\r",
                0x1a => "\\Z",
                b'\\' => "\\\\",
                b'\'' => "\\'",
                _ => continue,
            };
            f.write_str(&text[done..at])?;
            f.write_str(escape)?;
            done = at + 1;
        }
        f.write_str(&text[done..])?;
        f.write_char('\'')
    }
}

/// A string literal where the bytes are text, else a hexadecimal one.
struct Bytes<'a>(&'a [u8]);

impl Display for Bytes<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Bytes(bytes) = *self;
        match std::str::from_utf8(bytes) {
            Ok(text) => Text(text).fmt(f),
            Err(_) => Hex(bytes).fmt(f),
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Hex(bytes) = *self;
        if bytes.is_empty() {
            return f.write_str("x''");
        }
        f.write_str("0x")?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A character set, collation, option or the like: as it is where it is a plain word, else in backquotes. BINARY is a character set, DEFAULT and
/// NULL are options.
struct Word<'a>(&'a str);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Word(word) = *self;
        let kw = Kw::of(word.as_bytes());
        let is_quoted = kw.is_reserved() && !matches!(kw, Kw::BINARY | Kw::DEFAULT | Kw::NULL);
        if is_plain(word) && !is_quoted { f.write_str(word) } else { Identifier(word).fmt(f) }
    }
}

/// Whether the word is one token without quotes. A leading underscore could be an introducer.
fn is_plain(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The word in lower case.
struct Lower<'a>(&'a str);

impl Display for Lower<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Lower(word) = *self;
        word.chars().try_for_each(|letter| f.write_char(letter.to_ascii_lowercase()))
    }
}

/// The word in upper case.
struct Upper<'a>(&'a str);

impl Display for Upper<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Upper(word) = *self;
        word.chars().try_for_each(|letter| f.write_char(letter.to_ascii_uppercase()))
    }
}

/// Items separated by commas.
struct Commas<'a, T>(&'a [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        separated(f, ",", self.0, |f, item| item.fmt(f))
    }
}

/// Names in backquotes separated by commas.
struct Identifiers<'a>(&'a [String]);

impl Display for Identifiers<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        separated(f, ",", self.0, |f, item| Identifier(item).fmt(f))
    }
}

/// Strings separated by commas.
struct Texts<'a>(&'a [String]);

impl Display for Texts<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        separated(f, ",", self.0, |f, item| Text(item).fmt(f))
    }
}

/// User variables separated by commas.
struct Variables<'a>(&'a [String]);

impl Display for Variables<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        separated(f, ",", self.0, |f, item| Variable(item).fmt(f))
    }
}

/// A user variable.
struct Variable<'a>(&'a str);

impl Display for Variable<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Variable(name) = *self;
        f.write_char('@')?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
        if !name.is_empty() && name.bytes().all(plain) { f.write_str(name) } else { Identifier(name).fmt(f) }
    }
}

/// A clause of a word and a value, where there is a value.
struct Clause<'a, T>(&'static str, Option<&'a T>);

impl<T: Display> Display for Clause<'_, T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Clause(words, value) = self;
        let Some(value) = value else { return Ok(()) };
        f.write_str(words)?;
        value.fmt(f)
    }
}

/// A clause of words and a list separated by commas, where the list is not empty.
struct Clauses<'a, T>(&'static str, &'a [T]);

impl<T: Display> Display for Clauses<'_, T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Clauses(words, list) = *self;
        if list.is_empty() {
            return Ok(());
        }
        f.write_str(words)?;
        Commas(list).fmt(f)
    }
}

/// A list in parentheses after words, where it is not empty.
struct Listed<'a, T>(&'static str, &'a [T]);

impl<T: Display> Display for Listed<'_, T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Listed(words, list) = *self;
        if list.is_empty() { Ok(()) } else { write!(f, "{words}({})", Commas(list)) }
    }
}

/// `(n)`, where there is an n.
struct Length(Option<u64>);

impl Display for Length {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Length(length) = self;
        length.iter().try_for_each(|length| write!(f, "({length})"))
    }
}

/// `(precision,scale)`, as far as they are given.
struct Precision(Option<u64>, Option<u64>);

impl Display for Precision {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match *self {
            Precision(Some(precision), Some(scale)) => write!(f, "({precision},{scale})"),
            Precision(precision, _) => Length(precision).fmt(f),
        }
    }
}

fn separated<T>(
    f: &mut Formatter,
    separator: &str,
    list: &[T],
    item: impl Fn(&mut Formatter, &T) -> fmt::Result,
) -> fmt::Result {
    for (i, element) in list.iter().enumerate() {
        f.write_str(when(i > 0, separator))?;
        item(f, element)?;
    }
    Ok(())
}

fn when(condition: bool, text: &str) -> &str {
    if condition { text } else { "" }
}

impl Display for Ident {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Ident { value, span: _ } = self;
        Identifier(value).fmt(f)
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Name { schema, name } = self;
        if let Some(schema) = schema {
            write!(f, "{}.", Identifier(schema))?;
        }
        Identifier(name).fmt(f)
    }
}
