//! Names and constants as SQL.

use crate::deparse::node::Ty;
use crate::session::quoted;
use crate::types::oid;
use crate::types::registry::format_type;

pub fn name(name: &str) -> String {
    quoted(name)
}

/// Returns a string constant without a prefix: quotes and backslashes are doubled, and a backslash needs `E`.
pub fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    if text.contains('\\') {
        out.push('E');
    }
    out.push('\'');
    for letter in text.chars() {
        if matches!(letter, '\'' | '\\') {
            out.push(letter);
        }
        out.push(letter);
    }
    out.push('\'');
    out
}

/// The decoration of a constant with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Where it would be read as of another type.
    Needed,
    Always,
    Never,
}

/// Returns a constant: `get_const_expr`.
pub fn constant(text: Option<&str>, (ty, typmod): Ty, label: Label) -> String {
    let with_label = |text: String| format!("{text}::{}", format_type(ty, Some(typmod)));
    let Some(text) = text else {
        return if label == Label::Never { "NULL".to_owned() } else { with_label("NULL".to_owned()) };
    };
    let (shown, is_needed) = match ty {
        oid::INT4 if !text.starts_with('-') => (text.to_owned(), false),
        oid::NUMERIC if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['e', 'E', '.']) => {
            (text.to_owned(), typmod >= 0)
        }
        oid::BOOL => (if text == "t" { "true" } else { "false" }.to_owned(), false),
        oid::INT4 | oid::NUMERIC => (format!("'{text}'"), true),
        oid::UNKNOWN => (literal(text), false),
        _ => (literal(text), true),
    };
    match label {
        Label::Never => shown,
        Label::Always => with_label(shown),
        Label::Needed if is_needed => with_label(shown),
        Label::Needed => shown,
    }
}

/// Returns names in quotes where they need them, with commas between.
pub fn names<'n>(names: impl IntoIterator<Item = &'n String>) -> String {
    names.into_iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}
