//! Trees as texts: jsonb's output, and jsonb_pretty's.

use datum::json::{JsonbScalar, Node};

use crate::types::json::write_number;

/// Appends a document in one line, with a space behind each colon and comma.
pub fn write(node: &Node, out: &mut String) {
    match node {
        Node::Array(elements) => {
            out.push('[');
            for (place, element) in elements.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                write(element, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (place, (name, node)) in members.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                write_string(name, out);
                out.push_str(": ");
                write(node, out);
            }
            out.push('}');
        }
        scalar => write_scalar(scalar, out),
    }
}

fn write_scalar(node: &Node, out: &mut String) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Node::String(text) => write_string(text, out),
        Node::Decimal(number) => write_number(number, out),
        other => match other.jsonb_scalar() {
            JsonbScalar::Number(number) => write_number(&number, out),
            JsonbScalar::String(text) => write_string(&text, out),
        },
    }
}

/// Appends a document with one line for each part, four spaces for each level.
pub fn indented(node: &Node, level: usize, out: &mut String) {
    let line = |level: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n("    ", level));
    };
    match node {
        Node::Array(elements) => {
            out.push('[');
            for (place, element) in elements.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                line(level + 1, out);
                indented(element, level + 1, out);
            }
            line(level, out);
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (place, (name, node)) in members.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                line(level + 1, out);
                write_string(name, out);
                out.push_str(": ");
                indented(node, level + 1, out);
            }
            line(level, out);
            out.push('}');
        }
        scalar => write_scalar(scalar, out),
    }
}

/// Appends a text as a string, in quotes and with escapes: `escape_json`.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escape);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        }
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.push('"');
}
