//! A document as text in its one normal form: `{"a": 1, "b": [true, null]}`, a space behind each colon and comma.

use std::fmt::{self, Display, Write};

use super::{Json, Node};
use crate::{base64, float};

impl Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Null => f.write_str("null"),
            Node::Bool(truth) => write!(f, "{truth}"),
            Node::Int(number) => write!(f, "{number}"),
            Node::UInt(number) => write!(f, "{number}"),
            Node::Double(number) => f.write_str(&double(*number)),
            Node::Decimal(decimal) => write!(f, "{decimal}"),
            Node::String(text) => quote_into(text, f),
            Node::Array(elements) => {
                f.write_char('[')?;
                for (place, element) in elements.iter().enumerate() {
                    f.write_str(if place == 0 { "" } else { ", " })?;
                    element.fmt(f)?;
                }
                f.write_char(']')
            }
            Node::Object(members) => {
                f.write_char('{')?;
                for (place, (name, node)) in members.iter().enumerate() {
                    f.write_str(if place == 0 { "" } else { ", " })?;
                    quote_into(name, f)?;
                    f.write_str(": ")?;
                    node.fmt(f)?;
                }
                f.write_char('}')
            }
            Node::Date(date) => write!(f, "\"{date}\""),
            Node::Time(time) => write!(f, "\"{time:.6}\""),
            Node::DateTime(at) => write!(f, "\"{at:.6}\""),
            Node::Bytes(bytes) => write!(f, "\"base64:type15:{}\"", base64::encode(bytes)),
        }
    }
}

/// A double has a point or an exponent, so that it reads back as a double.
fn double(number: f64) -> String {
    let mut text = float::double_text(number);
    if !text.contains(['.', 'e']) {
        text.push_str(".0");
    }
    text
}

fn quote_into(text: &str, f: &mut impl Write) -> fmt::Result {
    f.write_char('"')?;
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0C => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1F => "",
            _ => continue,
        };
        f.write_str(&text[from..at])?;
        if escape.is_empty() {
            write!(f, "\\u{byte:04x}")?;
        } else {
            f.write_str(escape)?;
        }
        from = at + 1;
    }
    f.write_str(&text[from..])?;
    f.write_char('"')
}

/// Returns a text as a JSON string, in quotes.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    let written = quote_into(text, &mut out);
    debug_assert!(written.is_ok());
    out
}
