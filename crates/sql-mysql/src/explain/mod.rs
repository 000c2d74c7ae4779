//! EXPLAIN's formats: FORMAT=TREE (`tree`), the rows of MySQL's table and FORMAT=JSON (`table`, `json`, both over `block`).
//!
//! Hard part: nodes refer to places of rows, and readers to columns. `names` derives the name of each place of a node's rows, from the scans upward.

mod block;
mod expression_text;
mod json;
mod table;
mod tree;

use std::sync::Arc;

use crate::batch::Row;
use crate::types::Column;
use query::exec::instrumentation::Measures;
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::nodes::subquery::Subquery;
use query::nodes::walk::inputs;
use query::nodes::window::What;

pub use expression_text::{Names, words};

/// A statement to be shown: what it does, to which table, and the plan of its rows.
pub struct Explained<'p> {
    pub verb: Verb,
    pub table: Option<&'p str>,
    pub node: Option<&'p Arc<Node>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Select,
    Insert,
    Replace,
    Update,
    Delete,
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Verb::Select => "SELECT",
            Verb::Insert => "INSERT",
            Verb::Replace => "REPLACE",
            Verb::Update => "UPDATE",
            Verb::Delete => "DELETE",
        }
    }
}

/// Renders the tree, one node per line, with measurements if the plan has run.
pub fn tree(explained: &Explained<'_>, measures: Option<&Measures>) -> String {
    tree::draw(explained, measures)
}

pub fn json(explained: &Explained<'_>) -> String {
    json::write(explained)
}

pub fn table_columns() -> Vec<Column> {
    table::columns()
}

pub fn table_rows(explained: &Explained<'_>) -> Vec<Row> {
    table::rows(explained)
}

/// Returns the names of the places in the node's rows.
pub fn names(node: &Arc<Node>, outer: &[Names]) -> Names {
    match &**node {
        Node::Scan(scan) => {
            let all = scan.names();
            match &scan.output {
                None => all.collect(),
                Some(places) => {
                    let place = |at: usize| places.iter().position(|place| *place == at);
                    all.filter_map(|(at, name)| Some((place(at)?, name))).collect()
                }
            }
        }
        Node::Loop { left, right, .. } => joined(left, right, outer),
        Node::Hash(join) => joined(&join.left, &join.right, outer),
        Node::LockRows(lock) => names(&lock.input, outer),
        Node::Filter { input, .. }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Strip { input, .. }
        | Node::Limit { input, .. }
        | Node::Ties { input, .. } => names(input, outer),
        Node::Union { inputs } => inputs.first().map_or(Names::new(), |input| names(input, outer)),
        Node::SetOperation { left, .. } => names(left, outer),
        Node::Common { source, .. } => names(source, outer),
        Node::Group(group) => {
            let below = names(&group.input, outer);
            let keys = group.keys.iter().map(|key| words(key, &below, outer));
            let calls = group.calls.iter().enumerate().map(|(at, call)| match group.level == Some(at) {
                true => "grouping()".to_owned(),
                false => call_words(call, &below, outer),
            });
            keys.chain(calls).enumerate().collect()
        }
        Node::Window(window) => {
            let mut names = names(&window.input, outer);
            let results: Vec<_> =
                window.calls.iter().map(|call| (call.at, what_words(&call.what, &names, outer))).collect();
            names.extend(results);
            names
        }
        Node::ProjectSet(set) => names(&set.input, outer),
        Node::Project { input, exprs } => {
            let below = names(input, outer);
            exprs.iter().map(|expr| words(expr, &below, outer)).enumerate().collect()
        }
        Node::Derived { offset, columns, alias, .. } | Node::Lateral { offset, columns, alias, .. } => {
            columns.iter().enumerate().map(|(at, name)| (offset + at, format!("{alias}.{name}"))).collect()
        }
        Node::System { table, offset, .. } => {
            table.columns.iter().enumerate().map(|(at, (name, _))| (offset + at, (*name).to_owned())).collect()
        }
        Node::One { .. } | Node::LastRound { .. } | Node::Rows { .. } | Node::TableFunction(_) => Names::new(),
    }
}

fn joined(left: &Arc<Node>, right: &Arc<Node>, outer: &[Names]) -> Names {
    let mut all = names(left, outer);
    all.extend(names(right, outer));
    all
}

pub fn call_words(call: &query::nodes::node::AggregateCall, names: &Names, outer: &[Names]) -> String {
    let arguments: Vec<String> = call.arguments.iter().map(|argument| words(argument, names, outer)).collect();
    let distinct = if call.aggregate.distinct { "distinct " } else { "" };
    let arguments = if arguments.is_empty() { "0".to_owned() } else { arguments.join(",") };
    format!("{}({distinct}{arguments})", call.aggregate.function.name)
}

pub fn what_words(what: &What, names: &Names, outer: &[Names]) -> String {
    let of = |name: &str, expr: &Expr| format!("{name}({}) OVER", words(expr, names, outer));
    match what {
        What::RowNumber => "row_number() OVER".into(),
        What::Rank => "rank() OVER".into(),
        What::DenseRank => "dense_rank() OVER".into(),
        What::PercentRank => "percent_rank() OVER".into(),
        What::CumeDist => "cume_dist() OVER".into(),
        What::Ntile(count) => of("ntile", count),
        What::Shift { value, ahead, .. } => of(if *ahead { "lead" } else { "lag" }, value),
        What::First(value) => of("first_value", value),
        What::Last(value) => of("last_value", value),
        What::Nth(value, _) => of("nth_value", value),
        What::Aggregate(call) => format!("{} OVER", call_words(call, names, outer)),
    }
}

/// Returns the names of places in the blocks around a subquery of this node.
pub fn outer_of(subquery: &Subquery, node: &Node, outer: &[Names]) -> Vec<Names> {
    let mut rows = Names::new();
    for input in inputs(node) {
        rows.extend(names(input, outer));
    }
    if let Node::Scan(scan) = node {
        rows.extend(scan.names());
    }
    deeper(subquery.depth, &rows, outer)
}

fn deeper(depth: usize, rows: &Names, outer: &[Names]) -> Vec<Names> {
    let mut inside: Vec<Names> = outer.iter().take(depth).cloned().collect();
    inside.resize(depth, Names::new());
    inside.push(rows.clone());
    inside
}
