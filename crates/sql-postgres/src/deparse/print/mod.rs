//! Analysed definitions as text: layout and parentheses of `ruleutils.c`.
//!
//! The text is written in lines: `keyword` begins one, with the indent of the query that is open. Pretty text leaves out parentheses that `is_simple` finds unneeded.

mod expr;
mod names;
mod query_text;
mod simple;

use std::sync::Arc;

use query::catalog::Snapshot;
use query::catalog::table::Table as Stored;
use query::nodes::context::EvalContext;

use crate::define::names::{is_found_in, schema_shown};
use crate::deparse::node::{Query, SqlNode, Table};
use crate::deparse::text;
use crate::error::Result;
use crate::session::facts::FactsOf as _;

/// The layout of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Leaves out parentheses.
    pub is_pretty: bool,
    /// Lines longer than this are broken; 0 gives each item of a list a line, `None` breaks nothing.
    pub wrap: Option<usize>,
}

impl Style {
    pub const PLAIN: Style = Style { is_pretty: false, wrap: Some(0) };
    pub const PRETTY: Style = Style { is_pretty: true, wrap: Some(0) };

    pub fn of(is_pretty: bool) -> Style {
        if is_pretty { Style::PRETTY } else { Style::PLAIN }
    }
}

const STEP: isize = 8;
const VAR: isize = 4;
const JOIN: isize = 4;
/// Deeper indents grow more slowly.
const LIMIT: isize = 40;

/// The tables of a query that is open, by the names that the text gives them.
struct Namespace {
    tables: Vec<Table>,
    names: Vec<String>,
    /// Columns are written with the name of their table.
    qualifies: bool,
    /// Names of the output columns, for ORDER BY; with the expression of each.
    outputs: Vec<(String, SqlNode)>,
    commons: Vec<String>,
}

pub struct Printer {
    out: String,
    indent: isize,
    style: Style,
    /// The expression is a domain's, and its only column the value.
    is_over_value: bool,
    /// The queries that are open, outermost first.
    open: Vec<Namespace>,
    snapshot: Arc<Snapshot>,
    database: String,
    path: Vec<String>,
    /// A key of ORDER BY or GROUP BY is written.
    in_order_by: bool,
}

/// Returns the text of a view's query.
pub fn query(query: &Query, style: Style, ctx: &mut EvalContext) -> Result<String> {
    let mut printer = Printer::new(style, ctx);
    let names: Vec<String> = query.columns.iter().map(|(name, _)| name.clone()).collect();
    printer.named_query(query, &names, true);
    Ok(printer.out)
}

/// Returns the text of an expression over the columns of one table.
pub fn expression(node: &SqlNode, table: &Stored, style: Style, ctx: &mut EvalContext) -> Result<String> {
    let mut printer = Printer::new(style, ctx);
    printer.is_over_value = table.name.is_empty();
    let columns = table.columns.iter().map(|column| (column.name.clone(), (0, -1))).collect();
    printer.open.push(Namespace {
        tables: vec![Table {
            source: crate::deparse::node::FromSource::Join,
            alias: table.name.clone(),
            has_alias: false,
            columns,
            has_column_aliases: false,
            is_lateral: false,
            is_join: false,
        }],
        names: vec![table.name.clone()],
        qualifies: false,
        outputs: Vec::new(),
        commons: Vec::new(),
    });
    printer.node(node, false);
    Ok(printer.out)
}

impl Printer {
    fn new(style: Style, ctx: &mut EvalContext) -> Printer {
        let facts = ctx.facts();
        let snapshot = facts.definitions.clone();
        Printer {
            out: String::new(),
            indent: 0,
            style,
            is_over_value: false,
            open: Vec::new(),
            snapshot,
            database: facts.database.clone(),
            path: facts.search_path.clone(),
            in_order_by: false,
        }
    }

    /// Begins a line with a keyword: `appendContextKeyword`.
    fn keyword(&mut self, word: &str, before: isize, after: isize, plus: isize) {
        self.indent += before;
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.out.push('\n');
        let amount = if self.indent < LIMIT {
            self.indent.max(0) + plus
        } else {
            (LIMIT + (self.indent - LIMIT) / (STEP / 2)) % LIMIT + plus
        };
        self.out.extend(std::iter::repeat_n(' ', amount.max(0) as usize));
        self.out.push_str(word);
        self.indent = (self.indent + after).max(0);
    }

    fn open_parenthesis(&mut self) {
        if !self.style.is_pretty {
            self.out.push('(');
        }
    }

    fn close_parenthesis(&mut self) {
        if !self.style.is_pretty {
            self.out.push(')');
        }
    }

    /// Returns a relation's name, with its schema where the name alone would find another.
    fn relation_name(&self, schema: &str, name: &str) -> String {
        let is_common = self.open.iter().any(|open| open.commons.iter().any(|common| common == name));
        match !is_common && self.is_visible(schema, name) {
            true => text::name(name),
            false => format!("{}.{}", text::name(schema_shown(&self.snapshot, schema)), text::name(name)),
        }
    }

    fn is_visible(&self, schema: &str, name: &str) -> bool {
        is_found_in(&self.snapshot, &self.database, &self.path, schema, name)
    }
}
