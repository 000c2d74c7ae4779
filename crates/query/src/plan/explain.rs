//! A plan as text: a tree, one node a line.

use std::fmt::Write;
use std::sync::Arc;

use crate::plan::{Access, JoinKind, Node, Scan};

pub fn explain(node: &Arc<Node>) -> String {
    let mut out = String::new();
    draw(node, 0, &mut out);
    out.pop();
    out
}

fn line(depth: usize, text: &str, out: &mut String) {
    let _ = writeln!(out, "{}-> {text}", "    ".repeat(depth));
}

fn draw(node: &Arc<Node>, depth: usize, out: &mut String) {
    let (text, inputs): (String, Vec<&Arc<Node>>) = match &**node {
        Node::One { .. } => ("Rows fetched before execution".into(), vec![]),
        Node::Scan(scan) => (scan_text(scan), vec![]),
        Node::Loop { left, right, kind, .. } => (format!("Nested loop {}", kind_name(*kind)), vec![left, right]),
        Node::Hash(join) => (format!("Hash {}", kind_name(join.kind)), vec![&join.left, &join.right]),
        Node::Filter { input, conditions } => (format!("Filter: {} condition(s)", conditions.len()), vec![input]),
        Node::Group(group) => {
            let how = if group.is_whole { "Aggregate" } else { "Group by hash, aggregate" };
            (format!("{how}: {} key(s), {} function(s)", group.keys.len(), group.calls.len()), vec![&group.input])
        }
        Node::Window(window) => {
            let (partition, order) = (window.partition.len(), window.order.len());
            let text = format!(
                "Window: {} function(s), partition by {partition} key(s), order by {order} key(s)",
                window.calls.len()
            );
            (text, vec![&window.input])
        }
        Node::Project { input, .. } | Node::Strip { input, .. } => return draw(input, depth, out),
        Node::Distinct { input, .. } => ("Distinct by hash".into(), vec![input]),
        Node::Sort { input, keys, limit, unique } => {
            let top = if limit.is_some() { ", limit" } else { "" };
            let only = if *unique { ", without duplicates" } else { "" };
            (format!("Sort: {} key(s){top}{only}", keys.len()), vec![input])
        }
        Node::Limit { input, .. } => ("Limit".into(), vec![input]),
        Node::Union { inputs } => ("Append".into(), inputs.iter().collect()),
        Node::SetOperation { left, right, keeps_common, .. } => {
            ((if *keeps_common { "Intersect" } else { "Except" }).into(), vec![left, right])
        }
        Node::Derived { input, .. } => ("Derived table".into(), vec![input]),
        Node::Common { source, recursion, .. } => match recursion {
            None => ("Materialize CTE".into(), vec![source]),
            Some(recursion) => ("Materialize recursive CTE".into(), vec![source, &recursion.part]),
        },
        Node::LastRound { .. } => ("Scan new records of the CTE".into(), vec![]),
        Node::System { table, .. } => (format!("Table scan on {}.{}", table.schema, table.name), vec![]),
        Node::Rows { rows } => (format!("{} row(s)", rows.len()), vec![]),
    };
    line(depth, &text, out);
    inputs.into_iter().for_each(|input| draw(input, depth + 1, out));
}

fn kind_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "inner join",
        JoinKind::Left => "left join",
    }
}

fn scan_text(scan: &Scan) -> String {
    let Access { index, equal, low, high, backward, is_point, covering } = &scan.access;
    let name = index.map_or("PRIMARY", |at| &scan.table.indexes[at].name);
    let way = match () {
        () if *is_point && equal.iter().all(|part| part.len() == 1) => "Single-row index lookup",
        () if *covering => "Covering index scan",
        () if low.is_some() || high.is_some() => "Index range scan",
        () if !equal.is_empty() => "Index lookup",
        () if index.is_some() => "Index scan",
        () => "Table scan",
    };
    let mut text = format!("{way} on {}", scan.alias);
    if index.is_some() || !equal.is_empty() || low.is_some() || high.is_some() {
        let _ = write!(text, " using {name}");
        let columns: Vec<&str> = match index {
            Some(at) => {
                scan.table.indexes[*at].parts.iter().map(|part| &*scan.table.columns[part.column].name).collect()
            }
            None => scan.table.primary.iter().flatten().map(|part| &*scan.table.columns[part.column].name).collect(),
        };
        let used = equal.len() + usize::from(low.is_some() || high.is_some());
        let _ = write!(text, " ({})", columns[..used.min(columns.len())].join(", "));
    }
    if *backward {
        text.push_str(" (reverse)");
    }
    if !scan.conditions.is_empty() {
        let _ = write!(text, ", {} condition(s)", scan.conditions.len());
    }
    if scan.lock.is_some() {
        text.push_str(", locking");
    }
    let _ = write!(text, "  (rows={:.0})", scan.estimate.max(1.0));
    text
}
