//! Inputs that were recorded on the real server: `inputs.tsv` has the type, the text, and either the output and the binary form in hexadecimal or the error with its detail.
//!
//! `INPUTS` names another file of such lines to play instead.

use std::fmt::Write as _;

use super::*;
use crate::types::registry::{by_name, column_type, typmod_in};

/// Reads a field of COPY's text form.
fn unescaped(field: &str) -> String {
    let mut out = String::new();
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '\\' { letters.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some(other)) => out.push(other),
            (other, _) => out.push(other),
        }
    }
    out
}

fn type_of(text: &str) -> Type {
    let (name, modifiers) = match text.split_once('(') {
        Some((name, modifiers)) => (name, modifiers.trim_end_matches(')')),
        None => (text, ""),
    };
    let row = by_name(name.trim_matches('"')).unwrap();
    let mut modifiers: Vec<i32> = modifiers.split(',').filter_map(|text| text.parse().ok()).collect();
    if row.oid == oid::INTERVAL && !modifiers.is_empty() {
        modifiers.insert(0, registry::interval_field::ALL);
    }
    let typmod = if modifiers.is_empty() { -1 } else { typmod_in(&row, &modifiers).unwrap().typmod };
    column_type(row.oid, typmod, true)
}

fn forms(ty: &Type, text: &str) -> Result<Vec<String>> {
    let io = IoContext::default();
    let value = input(ty, text, &io)?;
    let (mut shown, mut sent, mut hex) = (Vec::new(), Vec::new(), Vec::new());
    output(&value, ty, &io, &mut shown)?;
    send(&value, ty, &io, &mut sent)?;
    bytea::encode_hex(&sent, &mut hex);
    assert_eq!(receive(ty, &sent, &io)?, value, "{text}");
    Ok([shown, hex].map(|form| String::from_utf8(form).unwrap()).to_vec())
}

#[test]
fn recorded_inputs_have_the_forms_of_the_real_server() {
    let recorded = match std::env::var("INPUTS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("inputs.tsv").to_owned(),
    };
    let mut wrong = String::new();
    for line in recorded.lines() {
        let fields: Vec<String> = line.split('\t').map(unescaped).collect();
        let found = forms(&type_of(&fields[0]), &fields[1]).unwrap_or_else(|error| {
            let detail = error.detail.map_or(String::new(), |detail| format!(" / {detail}"));
            vec![format!("!{} {}{detail}", error.state, error.message)]
        });
        if found != fields[2..] {
            writeln!(wrong, "{line}\n   found {found:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
