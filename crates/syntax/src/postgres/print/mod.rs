//! Trees to text that parses to the same tree (SY-4), in the style of PostgreSQL's deparser: keywords in upper case, operators in parentheses, names in quotes only where they need them.
//!
//! Nodes stream into the formatter; nothing is collected, and recursion follows the tree's height only, never the length of a list or chain. Parentheses count as nested constructs when the text is read, so a tree near
//! `HEIGHT_MAX` may be refused then.

use std::fmt::{self, Display, Formatter, Write};

use super::keyword::{Category, Kw};
use super::tree::{Alias, AnyName, Ident, RangeVar};

mod change;
mod expr;
mod json;
mod query;
mod types;

/// Returns the name, in double quotes where it needs them (`quote_identifier`).
pub fn identifier(name: &str) -> impl Display {
    Identifier(name)
}

/// Returns the text as a string literal (`quote_literal`).
pub fn string(text: &str) -> impl Display {
    Text(text)
}

struct Identifier<'a>(&'a str);

impl Identifier<'_> {
    /// Whether the name is read as itself without quotes: small letters, and no keyword that is reserved anywhere.
    fn is_plain(&self) -> bool {
        let Identifier(name) = *self;
        let is_word = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        is_word && Kw::of(name.as_bytes()).category() == Category::Unreserved
    }
}

impl Display for Identifier<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Identifier(name) = *self;
        if self.is_plain() { f.write_str(name) } else { Quoted(name).fmt(f) }
    }
}

/// A name in quotes, needed or not: where a keyword would begin something else.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Quoted(name) = *self;
        f.write_char('"')?;
        for (i, part) in name.split('"').enumerate() {
            f.write_str(when(i > 0, "\"\""))?;
            f.write_str(part)?;
        }
        f.write_char('"')
    }
}

struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Text(text) = *self;
        f.write_str(when(text.contains('\\'), "E"))?;
        f.write_char('\'')?;
        let mut done = 0;
        for (at, byte) in text.bytes().enumerate() {
            if matches!(byte, b'\'' | b'\\') {
                f.write_str(&text[done..=at])?;
                done = at;
            }
        }
        f.write_str(&text[done..])?;
        f.write_char('\'')
    }
}

/// Items separated by commas.
struct Commas<'a, T>(&'a [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            f.write_str(when(i > 0, ", "))?;
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// A clause of words and a value, where there is a value.
struct Clause<'a, T>(&'static str, Option<&'a T>);

impl<T: Display> Display for Clause<'_, T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Clause(words, value) = self;
        let Some(value) = value else { return Ok(()) };
        f.write_str(words)?;
        value.fmt(f)
    }
}

/// A clause of words and a list, where the list is not empty.
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

fn when(condition: bool, text: &str) -> &str {
    if condition { text } else { "" }
}

/// Names with dots between.
fn dotted<'a>(f: &mut Formatter, parts: impl IntoIterator<Item = &'a String>) -> fmt::Result {
    for (i, part) in parts.into_iter().enumerate() {
        f.write_str(when(i > 0, "."))?;
        Identifier(part).fmt(f)?;
    }
    Ok(())
}

impl Display for Ident {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Ident { value, at: _ } = self;
        Identifier(value).fmt(f)
    }
}

impl Display for AnyName {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let AnyName { parts, at: _ } = self;
        dotted(f, parts)
    }
}

impl Display for RangeVar {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let RangeVar { catalog, schema, name, only, at: _ } = self;
        f.write_str(when(*only, "ONLY "))?;
        dotted(f, [catalog, schema].into_iter().flatten().chain([name]))
    }
}

impl Display for Alias {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Alias { name, columns } = self;
        write!(f, "{name}{}", Listed("", columns))
    }
}
