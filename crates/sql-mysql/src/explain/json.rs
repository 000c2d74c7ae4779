//! FORMAT=JSON: the document that MySQL's tools draw, with its names and nesting.

use std::fmt::Write;

use super::block::{Block, Shown, blocks};
use super::{Explained, Verb};
use query::nodes::node::JoinKind;

/// A document whose members stay in order.
enum Part {
    Number(u64),
    Truth(bool),
    Text(String),
    List(Vec<Part>),
    Object(Vec<(&'static str, Part)>),
}

pub fn write(explained: &Explained<'_>) -> String {
    let all = blocks(explained);
    let mut block = match (explained.verb, explained.node) {
        (Verb::Insert | Verb::Replace, _) => {
            let mut target =
                vec![(if explained.verb == Verb::Insert { "insert" } else { "replace" }, Part::Truth(true))];
            target.push(("table_name", Part::Text(explained.table.unwrap_or("").to_owned())));
            target.push(("access_type", Part::Text("ALL".into())));
            let mut members = vec![("select_id", Part::Number(1)), ("table", Part::Object(target))];
            if explained.node.is_some() {
                let mut from = Vec::new();
                body(&all, 0, explained.verb, &mut from);
                members.push(("insert_from", Part::Object(from)));
            }
            members
        }
        _ => query_block(&all, 0, explained.verb),
    };
    let subqueries: Vec<Part> = all
        .iter()
        .enumerate()
        .filter(|(_, block)| block.kind.ends_with("SUBQUERY"))
        .map(|(at, block)| {
            Part::Object(vec![
                ("dependent", Part::Truth(block.kind.starts_with("DEPENDENT"))),
                ("query_block", Part::Object(query_block(&all, at, Verb::Select))),
            ])
        })
        .collect();
    if !subqueries.is_empty() {
        block.push(("attached_subqueries", Part::List(subqueries)));
    }
    let unions: Vec<Part> = all
        .iter()
        .enumerate()
        .filter(|(_, block)| matches!(block.kind, "UNION" | "INTERSECT" | "EXCEPT"))
        .map(|(at, _)| Part::Object(vec![("query_block", Part::Object(query_block(&all, at, Verb::Select)))]))
        .collect();
    let document = if unions.is_empty() {
        Part::Object(vec![("query_block", Part::Object(block))])
    } else {
        let mut specifications = vec![Part::Object(vec![("query_block", Part::Object(block))])];
        specifications.extend(unions);
        let result = Part::Object(vec![
            ("using_temporary_table", Part::Truth(all.iter().any(|block| block.kind == "UNION RESULT"))),
            ("query_specifications", Part::List(specifications)),
        ]);
        Part::Object(vec![("query_block", Part::Object(vec![("union_result", result)]))])
    };
    let mut out = String::new();
    draw(&document, 0, &mut out);
    out
}

fn query_block(all: &[Block], at: usize, verb: Verb) -> Vec<(&'static str, Part)> {
    let block = &all[at];
    let mut members = vec![("select_id", Part::Number(block.id as u64))];
    members.push(("cost_info", Part::Object(vec![("query_cost", cost(block.cost))])));
    let mut inner = Vec::new();
    body(all, at, verb, &mut inner);
    // From the inside out: grouping, duplicates, windows, order.
    let layers = [
        (block.groups, "grouping_operation", "using_temporary_table"),
        (block.has_windows, "windowing", "using_filesort"),
        (block.is_distinct, "duplicates_removal", "using_temporary_table"),
        (block.sorts, "ordering_operation", "using_filesort"),
    ];
    for (holds, name, how) in layers {
        if holds {
            let mut layer = vec![(how, Part::Truth(true))];
            layer.append(&mut inner);
            inner.push((name, Part::Object(layer)));
        }
    }
    members.append(&mut inner);
    members
}

fn body(all: &[Block], at: usize, verb: Verb, out: &mut Vec<(&'static str, Part)>) {
    let tables = &all[at].tables;
    if let [only] = &tables[..] {
        match only.message {
            Some(message) if only.name.is_none() => out.push(("message", Part::Text(message.into()))),
            _ => out.push(("table", table(all, only, only.rows, verb))),
        }
        return;
    }
    let (mut prefix, mut list) = (1.0, Vec::new());
    for shown in tables {
        prefix *= (shown.rows * shown.filtered / 100.0).max(0.01);
        list.push(Part::Object(vec![("table", table(all, shown, prefix, verb))]));
    }
    out.push(("nested_loop", Part::List(list)));
}

fn cost(number: f64) -> Part {
    Part::Text(format!("{number:.2}"))
}

fn table(all: &[Block], shown: &Shown, prefix: f64, verb: Verb) -> Part {
    let texts = |list: &[String]| Part::List(list.iter().map(|text| Part::Text(text.clone())).collect());
    let mut members = Vec::new();
    match verb {
        Verb::Update => members.push(("update", Part::Truth(true))),
        Verb::Delete => members.push(("delete", Part::Truth(true))),
        _ => {}
    }
    members.push(("table_name", Part::Text(shown.name.clone().unwrap_or_default())));
    members.push(("access_type", Part::Text(shown.access.unwrap_or("ALL").into())));
    if !shown.possible.is_empty() {
        members.push(("possible_keys", texts(&shown.possible)));
    }
    if let Some(key) = &shown.key {
        members.push(("key", Part::Text(key.clone())));
        members.push(("used_key_parts", texts(&shown.parts)));
        members.push(("key_length", Part::Text(shown.key_length.clone())));
    }
    if !shown.by.is_empty() {
        members.push(("ref", texts(&shown.by)));
    }
    if shown.rows > 0.0 {
        let produced = (prefix * if verb == Verb::Select { 1.0 } else { shown.filtered / 100.0 }).round().max(1.0);
        members.push(("rows_examined_per_scan", Part::Number(shown.rows.round().max(1.0) as u64)));
        members.push(("rows_produced_per_join", Part::Number(produced as u64)));
        members.push(("filtered", Part::Text(format!("{:.2}", shown.filtered))));
    }
    if shown.backward {
        members.push(("backward_index_scan", Part::Truth(true)));
    }
    if shown.covers {
        members.push(("using_index", Part::Truth(true)));
    }
    match shown.decides {
        Some(JoinKind::Semi) => members.push(("first_match", Part::Truth(true))),
        Some(JoinKind::Anti) => members.push(("not_exists", Part::Truth(true))),
        _ => {}
    }
    if shown.hashes {
        members.push(("using_join_buffer", Part::Text("hash join".into())));
    }
    if shown.cost > 0.0 {
        members.push(("cost_info", Part::Object(vec![("read_cost", cost(shown.cost))])));
    }
    if !shown.columns.is_empty() {
        members.push(("used_columns", texts(&shown.columns)));
    }
    if !shown.conditions.is_empty() {
        members.push(("attached_condition", Part::Text(shown.conditions.join(" and "))));
    }
    if let Some(made_by) = shown.made_by {
        let made = vec![
            ("using_temporary_table", Part::Truth(true)),
            ("query_block", Part::Object(query_block(all, made_by, Verb::Select))),
        ];
        members.push(("materialized_from_subquery", Part::Object(made)));
    }
    Part::Object(members)
}

fn draw(part: &Part, depth: usize, out: &mut String) {
    let indent = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    match part {
        Part::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Part::Truth(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Part::Text(text) => quote(text, out),
        Part::List(parts) => {
            out.push('[');
            for (at, part) in parts.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                draw(part, depth + 1, out);
            }
            indent(out, depth);
            out.push(']');
        }
        Part::Object(members) => {
            out.push('{');
            for (at, (name, part)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                quote(name, out);
                out.push_str(": ");
                draw(part, depth + 1, out);
            }
            indent(out, depth);
            out.push('}');
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter if (letter as u32) < 32 => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}
