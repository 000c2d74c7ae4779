//! FORMAT=TREE and ANALYZE: one node per line, its inputs indented.

use std::fmt::Write;
use std::sync::Arc;

use super::{Explained, Names, Verb, call_words, names, outer_of, what_words, words};
use query::catalog::table::Table;
use query::exec::instrumentation::Measures;
use query::nodes::expr::Expr;
use query::nodes::node::{Access, JoinKind, Limit, Node, Scan, Span};
use query::nodes::walk::{inputs, subqueries};
use query::plan::estimate::estimate;

struct Drawing<'m> {
    measures: Option<&'m Measures>,
    out: String,
}

pub fn draw(explained: &Explained<'_>, measures: Option<&Measures>) -> String {
    let mut drawing = Drawing { measures, out: String::new() };
    let mut depth = 0;
    if explained.verb != Verb::Select {
        let verb = match explained.verb {
            Verb::Insert => "Insert into",
            Verb::Replace => "Replace into",
            Verb::Update => "Update",
            _ => "Delete from",
        };
        drawing.line(0, format!("{verb} {}", explained.table.unwrap_or("")));
        depth = 1;
    }
    match explained.node {
        Some(node) => drawing.node(node, depth, &[], &Names::new()),
        None if depth == 0 => drawing.line(0, "Rows fetched before execution".into()),
        None => {}
    }
    drawing.out
}

impl Drawing<'_> {
    fn line(&mut self, depth: usize, text: String) {
        let _ = writeln!(self.out, "{}-> {text}", "    ".repeat(depth));
    }

    /// `beside` names the rows on the left of a join.
    fn node(&mut self, node: &Arc<Node>, depth: usize, outer: &[Names], beside: &Names) {
        if matches!(&**node, Node::Project { .. } | Node::Strip { .. }) {
            for input in inputs(node) {
                self.node(input, depth, outer, beside);
            }
            return self.subqueries(node, depth + 1, outer, "projection");
        }
        let guess = estimate(node);
        let mut text = node_words(node, outer, beside);
        let _ = write!(text, "  (cost={:.2} rows={:.0})", guess.cost, guess.rows.clamp(1.0, 1e15));
        if let Some(measures) = self.measures {
            match measures.of(node) {
                Some(measure) => {
                    let _ = write!(text, " {measure}");
                }
                None => text.push_str(" (never executed)"),
            }
        }
        self.line(depth, text);
        let below = inputs(node);
        let mut beside = beside.clone();
        for input in below {
            match &**node {
                Node::Lateral { depth: at, .. } => {
                    let inside = super::deeper(*at, &beside, outer);
                    self.node(input, depth + 1, &inside, &Names::new());
                }
                _ => self.node(input, depth + 1, outer, &beside),
            }
            if matches!(&**node, Node::Loop { .. } | Node::Hash(_)) {
                beside.extend(names(input, outer));
            }
        }
        self.subqueries(node, depth + 1, outer, "condition");
    }

    fn subqueries(&mut self, node: &Arc<Node>, depth: usize, outer: &[Names], place: &str) {
        let mut found = Vec::new();
        subqueries(node, &mut |subquery| found.push(subquery));
        for subquery in found {
            let how = if subquery.is_correlated { "dependent" } else { "run only once" };
            self.line(depth, format!("Select #{} (subquery in {place}; {how})", subquery.id + 1));
            self.node(&subquery.node, depth + 1, &outer_of(subquery, node, outer), &Names::new());
            if let Some(list) = &subquery.list {
                self.line(depth, format!("Select #{} (as a list of keys, if many rows ask)", subquery.id + 1));
                self.node(&list.node, depth + 1, &[], &Names::new());
            }
        }
    }
}

fn is_function(node: &Node) -> bool {
    matches!(node, Node::TableFunction(_))
}

fn node_words(node: &Arc<Node>, outer: &[Names], beside: &Names) -> String {
    let mut names = names(node, outer);
    names.extend(beside.iter().map(|(at, name)| (*at, name.clone())));
    let all = |exprs: &[Expr], names: &Names| {
        let list: Vec<String> = exprs.iter().map(|expr| words(expr, names, outer)).collect();
        if list.len() == 1 { list.into_iter().collect() } else { format!("({})", list.join(" and ")) }
    };
    match &**node {
        Node::One { .. } => "Rows fetched before execution".into(),
        Node::Scan(scan) => scan_words(scan, &names, outer),
        Node::Loop { kind, on, .. } => {
            let on = if on.is_empty() { String::new() } else { format!(", on {}", all(on, &names)) };
            format!("Nested loop {}{on}", kind_name(*kind))
        }
        Node::Hash(join) => {
            let keys: Vec<String> = join
                .left_keys
                .iter()
                .zip(&join.right_keys)
                .map(|(left, right)| format!("({} = {})", words(left, &names, outer), words(right, &names, outer)))
                .collect();
            let on = if join.on.is_empty() { String::new() } else { format!(", on {}", all(&join.on, &names)) };
            let kind = match join.kind {
                JoinKind::Inner => "Inner hash join",
                JoinKind::Left => "Left hash join",
                JoinKind::Semi => "Hash semijoin",
                JoinKind::Anti => "Hash antijoin",
            };
            format!("{kind} {}{on}", keys.join(", "))
        }
        Node::Filter { conditions, .. } => format!("Filter: {}", all(conditions, &names)),
        Node::Group(group) => {
            let below = super::names(&group.input, outer);
            let told = group.calls.iter().enumerate().filter(|(at, _)| group.level != Some(*at));
            let calls: Vec<String> = told.map(|(_, call)| call_words(call, &below, outer)).collect();
            let keys: Vec<String> = group.keys.iter().map(|key| words(key, &below, outer)).collect();
            match group.is_whole {
                true => format!("Aggregate: {}", calls.join(", ")),
                false => format!("Group by hash: {} [{}]", keys.join(", "), calls.join(", ")),
            }
        }
        Node::Window(window) => {
            let below = super::names(&window.input, outer);
            let calls: Vec<String> = window.calls.iter().map(|call| what_words(&call.what, &below, outer)).collect();
            let mut text = format!("Window: {}", calls.join(", "));
            let list = |exprs: &mut dyn Iterator<Item = &Expr>| {
                exprs.map(|expr| words(expr, &below, outer)).collect::<Vec<_>>().join(", ")
            };
            if !window.partition.is_empty() {
                let _ = write!(text, ", partition by {}", list(&mut window.partition.iter()));
            }
            if !window.order.is_empty() {
                let _ = write!(text, ", order by {}", list(&mut window.order.iter().map(|(expr, _)| expr)));
            }
            text
        }
        Node::LockRows(_) => "Lock rows".into(),
        Node::Project { .. } | Node::Strip { .. } => String::new(),
        Node::Distinct { .. } => "Remove duplicates by hash".into(),
        Node::Sort { keys, limit, unique, .. } => {
            let keys: Vec<String> = keys
                .iter()
                .map(|key| {
                    let name = names.get(&key.at).cloned().unwrap_or_else(|| format!("#{}", key.at));
                    if key.order.descending { format!("{name} DESC") } else { name }
                })
                .collect();
            let top = match limit {
                Some((limit, _)) => format!(", limit {} row(s)", words(limit, &names, outer)),
                None => String::new(),
            };
            format!("Sort{}: {}{top}", if *unique { " with duplicate removal" } else { "" }, keys.join(", "))
        }
        Node::Ties { .. } => "Limit with ties".into(),
        Node::Limit { limit, offset, .. } => {
            let word =
                |expr: &Option<Expr>| expr.as_ref().map_or_else(|| "all".to_owned(), |expr| words(expr, &names, outer));
            match offset {
                None => format!("Limit: {} row(s)", word(limit)),
                Some(_) => format!("Limit/Offset: {}/{} row(s)", word(limit), word(offset)),
            }
        }
        Node::Union { .. } => "Append".into(),
        Node::SetOperation { keeps_common, .. } => if *keeps_common { "Intersect" } else { "Except" }.into(),
        Node::Derived { alias, input, .. } | Node::Lateral { alias, input, .. } if is_function(input) => {
            format!("Table scan on {alias}")
        }
        Node::ProjectSet(_) => "Evaluate set-returning functions".into(),
        Node::TableFunction(_) => "Materialize table function".into(),
        Node::Derived { alias, .. } => format!("Derived table {alias}"),
        Node::Lateral { alias, .. } => format!("Derived table {alias} (made for each row)"),
        Node::Common { recursion, .. } => match recursion {
            None => "Materialize CTE".into(),
            Some(_) => "Materialize recursive CTE".into(),
        },
        Node::LastRound { .. } => "Scan new records of the CTE".into(),
        Node::System { table, .. } => format!("Table scan on {}.{}", table.schema, table.name),
        Node::Rows { rows } => format!("{} row(s)", rows.len()),
    }
}

fn kind_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "inner join",
        JoinKind::Left => "left join",
        JoinKind::Semi => "semijoin",
        JoinKind::Anti => "antijoin",
    }
}

/// Returns the text of the bounds on the column behind the equal ones.
fn bound_words(access: &Access, column: &str, words: &dyn Fn(&Expr) -> String) -> Vec<String> {
    let limits = |low: &Option<Limit>, high: &Option<Limit>| -> Vec<String> {
        let sides = [(low, [">", ">="]), (high, ["<", "<="])];
        let told = sides.into_iter().filter_map(|(limit, signs)| limit.as_ref().map(|limit| (limit, signs)));
        told.map(|((value, inclusive), signs)| format!("{column} {} {}", signs[usize::from(*inclusive)], words(value)))
            .collect()
    };
    let span = |span: &Span| match span {
        Span::Equal(value) => format!("{column}={}", words(value)),
        Span::Between { low, high } => limits(low, high).join(" and "),
    };
    let mut told = limits(&access.low, &access.high);
    if !access.within.is_empty() {
        told.push(access.within.iter().map(span).collect::<Vec<_>>().join(" or "));
    }
    told
}

/// Returns the text of an access path's bounds, part by part of its key.
fn key_words(access: &Access, table: &Table, words: &dyn Fn(&Expr) -> String) -> Vec<String> {
    let parts = access.parts(table);
    let column = |at: usize| parts.get(at).map_or("", |part| &*table.columns[part.column].name);
    let equal = access.equal.iter().enumerate().map(|(at, values)| {
        let list: Vec<String> = values.iter().map(words).collect();
        if list.len() == 1 {
            format!("{}={}", column(at), list[0])
        } else {
            format!("{} in ({})", column(at), list.join(","))
        }
    });
    let mut told: Vec<String> = equal.collect();
    told.extend(bound_words(access, column(access.equal.len()), words));
    told
}

fn scan_words(scan: &Scan, names: &Names, outer: &[Names]) -> String {
    let mut names = names.clone();
    names.extend(scan.names());
    let Access { index, equal, backward, is_point, covering, .. } = &scan.access;
    let is_bounded = scan.access.is_bounded();
    let used = index.is_some() || !equal.is_empty() || is_bounded;
    let way = match () {
        () if !scan.access.union.is_empty() => "Index merge",
        () if *is_point && equal.iter().all(|part| part.len() == 1) => "Single-row index lookup",
        () if is_bounded || equal.iter().any(|part| part.len() > 1) => "Index range scan",
        () if !equal.is_empty() => "Index lookup",
        () if index.is_some() => "Index scan",
        () => "Table scan",
    };
    let way = match way.strip_prefix("Index") {
        Some(rest) if *covering => format!("Covering index{rest}"),
        _ if *covering => way.replace("index", "covering index"),
        _ => way.to_owned(),
    };
    let mut text = format!("{way} on {}", scan.alias);
    if used {
        let _ = write!(text, " using {}", scan.access.name(&scan.table));
        let ranges = key_words(&scan.access, &scan.table, &|value| words(value, &names, outer));
        if !ranges.is_empty() {
            let _ = write!(text, " ({})", ranges.join(", "));
        }
    }
    if !scan.access.union.is_empty() {
        let told = |way: &Access| {
            let ranges = key_words(way, &scan.table, &|value| words(value, &names, outer));
            format!("{} ({})", way.name(&scan.table), ranges.join(", "))
        };
        let ways: Vec<String> = scan.access.union.iter().map(told).collect();
        let _ = write!(text, " using union of {}", ways.join(" and "));
    }
    if *backward {
        text.push_str(" (reverse)");
    }
    let pushed = scan.implied..scan.implied + if *covering { 0 } else { scan.pushed };
    let told = |wanted: bool| {
        let list = scan.conditions.iter().enumerate().filter(|(at, _)| pushed.contains(at) == wanted);
        list.map(|(_, expr)| words(expr, &names, outer)).collect::<Vec<_>>().join(" and ")
    };
    for (words, told) in [("with index condition:", told(true)), ("where", told(false))] {
        if !told.is_empty() {
            let _ = write!(text, ", {words} {told}");
        }
    }
    if scan.lock.is_some() {
        text.push_str(", locking");
    }
    text
}
