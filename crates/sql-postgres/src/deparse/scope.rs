//! Names that a query sees, and what an analysed query reads.

use crate::deparse::node::{
    FromSource, Group, Over, Query, QueryBody, Select, SortItem, SqlItem, SqlNode, Table, Ty, WHOLE, Window,
};

/// A table of FROM as names find it.
#[derive(Clone, Debug)]
pub struct NamedSource {
    pub alias: String,
    pub schema: Option<String>,
    pub columns: Vec<(String, SqlNode)>,
    /// Its columns are found without the table's name.
    pub are_columns_visible: bool,
}

/// The names of one query.
#[derive(Debug, Default)]
pub struct DeparseScope {
    pub tables: Vec<Table>,
    pub names: Vec<NamedSource>,
    /// A query of FROM without LATERAL sees nothing of the tables beside it.
    pub hides_outer: bool,
}

impl DeparseScope {
    pub fn add(&mut self, table: Table) -> usize {
        self.tables.push(table);
        self.tables.len() - 1
    }
}

pub fn column(table: usize, column: usize, ty: Ty) -> SqlNode {
    SqlNode::Column { level: 0, table, column, ty }
}

/// Returns the column as a query so many levels within sees it.
pub fn outwards(node: &SqlNode, levels: usize) -> SqlNode {
    match node {
        SqlNode::Column { level, table, column, ty } => {
            SqlNode::Column { level: level + levels, table: *table, column: *column, ty: *ty }
        }
        SqlNode::Coalesce(items, ty) => {
            SqlNode::Coalesce(items.iter().map(|item| outwards(item, levels)).collect(), *ty)
        }
        SqlNode::Cast { operand, ty, form } => {
            SqlNode::Cast { operand: Box::new(outwards(operand, levels)), ty: *ty, form: *form }
        }
        SqlNode::Call { name, arguments, ty, form } => SqlNode::Call {
            name: name.clone(),
            arguments: arguments.iter().map(|argument| outwards(argument, levels)).collect(),
            ty: *ty,
            form: *form,
        },
        other => other.clone(),
    }
}

/// The columns that were met: (level, table, column), the level counted from the query that the walk began with.
type Met = Vec<(usize, usize, usize)>;

/// Returns the columns of the one table that an expression reads.
pub fn columns(node: &SqlNode) -> Vec<usize> {
    let mut walk = Walk::default();
    walk.node(node, 0);
    walk.met.into_iter().map(|(_, _, column)| column).filter(|column| *column != WHOLE).collect()
}

/// Returns the relations that a query reads, with their columns.
pub fn relations(query: &Query) -> Vec<(String, String, Vec<usize>)> {
    let mut walk = Walk::default();
    walk.query(query);
    walk.found
}

#[derive(Default)]
struct Walk {
    met: Met,
    /// The queries that are open, outermost first.
    open: Vec<Vec<Table>>,
    found: Vec<(String, String, Vec<usize>)>,
}

impl Walk {
    fn query(&mut self, query: &Query) {
        self.open.push(query.tables.clone());
        for table in &query.tables {
            match &table.source {
                FromSource::Relation { schema, name, only: _ } => self.note(schema, name, None),
                FromSource::Subquery(query) => self.query(query),
                FromSource::Values(rows) => rows.iter().flatten().for_each(|node| self.node(node, 0)),
                FromSource::Common(_) | FromSource::Join => {}
            }
        }
        query.with.iter().for_each(|with| self.query(&with.query));
        self.body(&query.body);
        self.sorts(&query.order_by);
        query.limit.iter().chain(&query.offset).for_each(|node| self.node(node, 0));
        self.open.pop();
    }

    fn note(&mut self, schema: &str, name: &str, column: Option<usize>) {
        let at = match self.found.iter().position(|(known, of, _)| known == schema && of == name) {
            Some(at) => at,
            None => {
                self.found.push((schema.to_owned(), name.to_owned(), Vec::new()));
                self.found.len() - 1
            }
        };
        let columns = &mut self.found[at].2;
        columns.extend(column.filter(|column| !columns.contains(column)));
    }

    fn body(&mut self, body: &QueryBody) {
        match body {
            QueryBody::Empty => {}
            QueryBody::Select(select) => self.select(select),
            QueryBody::Values(rows) => rows.iter().flatten().for_each(|node| self.node(node, 0)),
            QueryBody::Set { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            QueryBody::Leaf(query) => self.query(query),
        }
    }

    fn select(&mut self, select: &Select) {
        let single = select.selection.iter().chain(&select.having);
        select.targets.iter().chain(select.distinct.iter().flatten()).chain(single).for_each(|node| self.node(node, 0));
        select.from.iter().for_each(|item| self.item(item));
        select.group_by.iter().for_each(|group| self.group(group));
        select.windows.iter().for_each(|(_, window)| self.window(window));
    }

    fn group(&mut self, group: &Group) {
        match group {
            Group::Key(node) => self.node(node, 0),
            Group::Empty => {}
            Group::List(_, list) => list.iter().for_each(|group| self.group(group)),
        }
    }

    fn item(&mut self, item: &SqlItem) {
        if let SqlItem::Join { left, right, on, .. } = item {
            self.item(left);
            self.item(right);
            on.iter().for_each(|node| self.node(node, 0));
        }
    }

    fn sorts(&mut self, sorts: &[SortItem]) {
        sorts.iter().for_each(|sort| self.node(&sort.key, 0));
    }

    fn window(&mut self, window: &Window) {
        window.partition_by.iter().for_each(|node| self.node(node, 0));
        self.sorts(&window.order_by);
    }

    fn node(&mut self, node: &SqlNode, level: usize) {
        match node {
            SqlNode::Column { level: out, table, column, ty: _ } => {
                self.met.push((level + out, *table, *column));
                let query = self.open.len().checked_sub(1 + out).and_then(|at| self.open.get(at));
                if let Some(FromSource::Relation { schema, name, .. }) =
                    query.and_then(|tables| tables.get(*table)).map(|table| table.source.clone())
                {
                    self.note(&schema, &name, Some(*column).filter(|column| *column != WHOLE));
                }
            }
            SqlNode::Const { .. } | SqlNode::SqlValue { .. } => {}
            SqlNode::Call { arguments: nodes, .. }
            | SqlNode::Operator { operands: nodes, .. }
            | SqlNode::And(nodes)
            | SqlNode::Or(nodes)
            | SqlNode::Coalesce(nodes, _)
            | SqlNode::Extreme { items: nodes, .. }
            | SqlNode::Array { items: nodes, .. }
            | SqlNode::JsonConstructor { items: nodes, .. }
            | SqlNode::Element { parts: nodes, .. }
            | SqlNode::Row(nodes) => nodes.iter().for_each(|node| self.node(node, level)),
            SqlNode::Cast { operand, .. }
            | SqlNode::Field { operand, .. }
            | SqlNode::Not(operand)
            | SqlNode::NullTest { operand, .. }
            | SqlNode::BooleanTest { operand, .. }
            | SqlNode::JsonValue { operand, .. }
            | SqlNode::JsonTest { operand, .. }
            | SqlNode::Collate { operand, .. } => self.node(operand, level),
            SqlNode::Distinct(left, right) | SqlNode::NullIf(left, right) => {
                self.node(left, level);
                self.node(right, level);
            }
            SqlNode::Quantified { operand, array, .. } => {
                self.node(operand, level);
                self.node(array, level);
            }
            SqlNode::Case { operand, arms, otherwise, .. } => {
                operand.iter().for_each(|node| self.node(node, level));
                for (when, then) in arms {
                    self.node(when, level);
                    self.node(then, level);
                }
                self.node(otherwise, level);
            }
            SqlNode::Aggregate(call) => {
                call.arguments.iter().chain(&call.filter).for_each(|node| self.node(node, level));
                self.sorts(&call.order_by);
            }
            SqlNode::Window(window) => {
                window.call.arguments.iter().chain(&window.call.filter).for_each(|node| self.node(node, level));
                if let Over::Window(window) = &window.over {
                    self.window(window);
                }
            }
            SqlNode::Sublink(link) => {
                link.test.iter().flat_map(|(left, _)| left).for_each(|node| self.node(node, level));
                self.query(&link.query);
            }
        }
    }
}
