//! The output of a path: `printJsonPathItem`.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::types::json::write_string;
use crate::types::jsonpath::{Accessor, Compare, Expr, Flags, JsonPath, LAST_LEVEL};

impl Display for JsonPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.is_lax {
            f.write_str("strict ")?;
        }
        print(&self.root, true, f)
    }
}

/// Strengths of binding: an operand that binds no stronger than its operator is put in brackets.
fn priority(expr: &Expr) -> u8 {
    use crate::types::jsonpath::Arithmetic::{Add, Subtract};
    match expr {
        Expr::Or(..) => 0,
        Expr::And(..) => 1,
        Expr::Compare(..) | Expr::StartsWith(..) => 2,
        Expr::Arithmetic(Add | Subtract, ..) => 3,
        Expr::Arithmetic(..) => 4,
        Expr::Signed(..) => 5,
        _ => 6,
    }
}

fn quoted(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let mut out = String::new();
    write_string(text, &mut out);
    f.write_str(&out)
}

fn operand(inner: &Expr, outer: &Expr, f: &mut Formatter<'_>) -> fmt::Result {
    print(inner, priority(inner) <= priority(outer), f)
}

fn binary(
    expr: &Expr,
    (left, right): (&Expr, &Expr),
    sign: &str,
    brackets: bool,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    if brackets {
        f.write_char('(')?;
    }
    operand(left, expr, f)?;
    write!(f, " {sign} ")?;
    operand(right, expr, f)?;
    if brackets { f.write_char(')') } else { Ok(()) }
}

fn print(expr: &Expr, brackets: bool, f: &mut Formatter<'_>) -> fmt::Result {
    match expr {
        Expr::Null => f.write_str("null"),
        Expr::Bool(truth) => write!(f, "{truth}"),
        Expr::Number(number) => write!(f, "{number}"),
        Expr::String(text) => quoted(text, f),
        Expr::Variable(name) => {
            f.write_char('$')?;
            quoted(name, f)
        }
        Expr::Root => f.write_char('$'),
        Expr::Current => f.write_char('@'),
        Expr::Last => f.write_str("last"),
        Expr::Arithmetic(op, left, right) => {
            binary(expr, (left, right), op.sign().encode_utf8(&mut [0; 4]), brackets, f)
        }
        Expr::Signed(is_minus, inner) => {
            f.write_str(if brackets { "(" } else { "" })?;
            f.write_char(if *is_minus { '-' } else { '+' })?;
            operand(inner, expr, f)?;
            f.write_str(if brackets { ")" } else { "" })
        }
        Expr::Compare(op, left, right) => binary(expr, (left, right), sign(*op), brackets, f),
        Expr::And(left, right) => binary(expr, (left, right), "&&", brackets, f),
        Expr::Or(left, right) => binary(expr, (left, right), "||", brackets, f),
        Expr::StartsWith(left, right) => binary(expr, (left, right), "starts with", brackets, f),
        Expr::Not(inner) => bracketed("!(", inner, ")", f),
        Expr::IsUnknown(inner) => bracketed("(", inner, ") is unknown", f),
        Expr::Exists(inner) => bracketed("exists (", inner, ")", f),
        Expr::LikeRegex { operand: inner, pattern, flags } => {
            f.write_str(if brackets { "(" } else { "" })?;
            operand(inner, expr, f)?;
            f.write_str(" like_regex ")?;
            quoted(pattern, f)?;
            print_flags(*flags, f)?;
            f.write_str(if brackets { ")" } else { "" })
        }
        Expr::Access(base, accessors) => {
            match **base {
                // `1.type()` would be read as a number with a point.
                Expr::Number(_) => bracketed("(", base, ")", f)?,
                _ => print(base, true, f)?,
            }
            accessors.iter().try_for_each(|accessor| print_accessor(accessor, f))
        }
    }
}

fn bracketed(before: &str, inner: &Expr, after: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(before)?;
    print(inner, false, f)?;
    f.write_str(after)
}

fn sign(op: Compare) -> &'static str {
    match op {
        Compare::Equal => "==",
        Compare::NotEqual => "!=",
        Compare::Less => "<",
        Compare::LessEqual => "<=",
        Compare::Greater => ">",
        Compare::GreaterEqual => ">=",
    }
}

fn print_flags(flags: Flags, f: &mut Formatter<'_>) -> fmt::Result {
    let letters = [
        (flags.ignores_case, 'i'),
        (flags.dot_matches_newline, 's'),
        (flags.multiline, 'm'),
        (flags.is_expanded, 'x'),
        (flags.is_literal, 'q'),
    ];
    if letters.iter().all(|(is_set, _)| !is_set) {
        return Ok(());
    }
    f.write_str(" flag \"")?;
    for (_, letter) in letters.iter().filter(|(is_set, _)| *is_set) {
        f.write_char(*letter)?;
    }
    f.write_char('"')
}

fn print_accessor(accessor: &Accessor, f: &mut Formatter<'_>) -> fmt::Result {
    match accessor {
        Accessor::Key(name) => {
            f.write_char('.')?;
            quoted(name, f)
        }
        Accessor::AnyKey => f.write_str(".*"),
        Accessor::AnyElement => f.write_str("[*]"),
        Accessor::Elements(list) => {
            f.write_char('[')?;
            for (place, (first, last)) in list.iter().enumerate() {
                f.write_str(if place == 0 { "" } else { "," })?;
                print(first, false, f)?;
                if let Some(last) = last {
                    f.write_str(" to ")?;
                    print(last, false, f)?;
                }
            }
            f.write_char(']')
        }
        Accessor::AnyLevel(0, LAST_LEVEL) => f.write_str(".**"),
        Accessor::AnyLevel(LAST_LEVEL, LAST_LEVEL) => f.write_str(".**{last}"),
        Accessor::AnyLevel(first, last) if first == last => write!(f, ".**{{{first}}}"),
        Accessor::AnyLevel(first, LAST_LEVEL) => write!(f, ".**{{{first} to last}}"),
        Accessor::AnyLevel(LAST_LEVEL, last) => write!(f, ".**{{last to {last}}}"),
        Accessor::AnyLevel(first, last) => write!(f, ".**{{{first} to {last}}}"),
        Accessor::Filter(condition) => bracketed("?(", condition, ")", f),
        Accessor::Method(method) => write!(f, ".{}()", method.name()),
    }
}
