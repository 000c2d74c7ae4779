//! The names that tables and columns get in a text: each table of a query and of those around it has one of its own.

use crate::deparse::node::{Query, QueryBody, SqlNode, WHOLE};
use crate::deparse::print::{Namespace, Printer};

impl Printer {
    /// Opens a query: names its tables.
    pub fn push(&mut self, query: &Query, has_outer: bool) {
        let mut taken: Vec<String> = self.open.iter().flat_map(|open| open.names.iter().cloned()).collect();
        let mut names = Vec::new();
        for table in &query.tables {
            if table.is_join {
                names.push(String::new());
                continue;
            }
            let name = unique(&table.alias, &taken);
            if !name.is_empty() {
                taken.push(name.clone());
            }
            names.push(name);
        }
        let targets = match &query.body {
            QueryBody::Select(select) => select.targets.clone(),
            _ => Vec::new(),
        };
        let outputs = query.columns.iter().map(|(name, _)| name.clone()).zip(targets).collect();
        self.open.push(Namespace {
            tables: query.tables.clone(),
            names,
            qualifies: has_outer || query.tables.len() != 1,
            outputs,
            commons: query.with.iter().map(|with| with.name.clone()).collect(),
        });
    }

    pub fn pop(&mut self) {
        self.open.pop();
    }

    /// Returns a column as it is written, and its name.
    pub fn column_text(&self, level: usize, table: usize, column: usize) -> (String, String) {
        let Some(at) = self.open.len().checked_sub(1 + level) else { return Default::default() };
        let open = &self.open[at];
        if column == WHOLE {
            let name = Some(&open.names[table]).filter(|name| !name.is_empty()).unwrap_or(&open.tables[table].alias);
            return (format!("{}.*", crate::deparse::text::name(name)), String::new());
        }
        let name = open.tables[table].columns.get(column).map_or("", |(name, _)| name);
        let shown = crate::deparse::text::name(name);
        let innermost = &self.open[self.open.len() - 1];
        // In ORDER BY a name alone would be that of another output column.
        let is_own = |node: &SqlNode| matches!(node, SqlNode::Column { level: 0, table: of, column: nth, .. } if level == 0 && (*of, *nth) == (table, column));
        let is_hidden =
            self.in_order_by && innermost.outputs.iter().any(|(known, node)| known == name && !is_own(node));
        let qualifier = &open.names[table];
        match (innermost.qualifies || is_hidden) && !qualifier.is_empty() {
            true => (format!("{}.{shown}", crate::deparse::text::name(qualifier)), name.to_owned()),
            false => (shown, name.to_owned()),
        }
    }
}

/// Returns the name, with a number behind it where it is taken.
fn unique(name: &str, taken: &[String]) -> String {
    let is_taken = |name: &str| taken.iter().any(|known| known == name);
    if name.is_empty() || !is_taken(name) {
        return name.to_owned();
    }
    let mut number = 1;
    loop {
        let suffix = format!("_{number}");
        let mut cut = name.len().min(63 - suffix.len());
        while !name.is_char_boundary(cut) {
            cut -= 1;
        }
        let numbered = format!("{}{suffix}", &name[..cut]);
        if !is_taken(&numbered) {
            return numbered;
        }
        number += 1;
    }
}
