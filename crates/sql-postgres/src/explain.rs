//! EXPLAIN: a plan as lines of text, in PostgreSQL's layout. The nodes are this server's own.

use std::fmt::Write as _;
use std::sync::Arc;

use query::nodes::comparison::Comparison;
use query::nodes::expr::Expr;
use query::nodes::node::{Access, JoinKind, Node, Scan, SortKey};
use query::plan::estimate::estimate;

use crate::bind::Plan;
use crate::session::quoted;
use crate::value::Value;

/// Plans are cut below this depth, which no statement of a person reaches.
const DEPTH_MAX: usize = 100;

/// Returns the plan as lines. With `costs` each node has its estimates; the core's unit of cost is not PostgreSQL's.
pub(crate) fn lines(plan: &Plan, costs: bool) -> Vec<String> {
    let mut out = Lines { lines: Vec::new(), costs, is_change: false };
    out.plan(plan);
    out.lines
}

struct Lines {
    lines: Vec<String>,
    costs: bool,
    /// The rows are those of a change, which locks them itself in PostgreSQL's plans.
    is_change: bool,
}

impl Lines {
    fn plan(&mut self, plan: &Plan) {
        let out = self;
        match plan {
            Plan::Query { node, .. } => out.node(node, 0),
            Plan::Insert(insert) => {
                out.title(0, &format!("Insert on {}", quoted(&insert.rules.table.name)), None);
                match &insert.values {
                    query::nodes::change::Values::Query(node) => out.node(node, 1),
                    query::nodes::change::Values::Rows(rows) if rows.len() == 1 => out.title(1, "Result", Some(1.0)),
                    query::nodes::change::Values::Rows(rows) => {
                        out.title(1, "Values Scan on \"*VALUES*\"", Some(rows.len() as f64));
                    }
                }
            }
            Plan::Update(update) => out.change("Update", &update.targets, &update.node),
            Plan::Delete(delete) => out.change("Delete", &delete.targets, &delete.node),
            Plan::Evaluate(_) => out.title(0, "Result", Some(1.0)),
            Plan::Load(load) => match load.source {},
            Plan::Merge(merge) => {
                out.title(0, &format!("Merge on {}", quoted(&merge.table.name)), None);
                out.node(&merge.node, 1);
            }
            Plan::Several(several) => {
                out.plan(&several.main);
                for part in &several.parts {
                    let before = out.lines.len();
                    out.plan(&part.plan);
                    let own = out.lines.split_off(before);
                    out.lines.push(format!("  CTE {}", quoted(&part.name)));
                    out.lines.extend(own.into_iter().enumerate().map(|(nth, line)| match nth {
                        0 => format!("    ->  {line}"),
                        _ => format!("          {line}"),
                    }));
                }
            }
        }
    }

    fn change(&mut self, word: &str, targets: &[query::nodes::change::Target], node: &Arc<Node>) {
        let names: Vec<String> = targets.iter().map(|target| quoted(&target.rules.table.name)).collect();
        self.title(0, &format!("{word} on {}", names.join(", ")), None);
        self.is_change = true;
        self.node(node, 1);
    }

    /// The indentation of a node's own lines.
    fn indent(depth: usize) -> String {
        if depth == 0 { "  ".to_owned() } else { " ".repeat(depth * 6 + 2) }
    }

    fn title(&mut self, depth: usize, text: &str, rows: Option<f64>) {
        let mut line = if depth == 0 { String::new() } else { " ".repeat(depth * 6 - 4) + "->  " };
        line.push_str(text);
        if let (true, Some(rows)) = (self.costs, rows) {
            let _ = write!(line, "  (rows={})", rows.round().max(1.0));
        }
        self.lines.push(line);
    }

    fn estimated(&mut self, depth: usize, text: &str, node: &Arc<Node>) {
        let estimated = estimate(node);
        let mut line = if depth == 0 { String::new() } else { " ".repeat(depth * 6 - 4) + "->  " };
        line.push_str(text);
        if self.costs {
            let _ = write!(line, "  (cost={:.2} rows={})", estimated.cost, estimated.rows.round().max(1.0));
        }
        self.lines.push(line);
    }

    fn detail(&mut self, depth: usize, label: &str, text: &str) {
        if !text.is_empty() {
            self.lines.push(format!("{}{label}: {text}", Self::indent(depth)));
        }
    }

    fn node(&mut self, node: &Arc<Node>, depth: usize) {
        if depth > DEPTH_MAX {
            return self.title(depth, "...", None);
        }
        match &**node {
            // These have no counterpart in PostgreSQL's plans: a target list, a narrower row.
            Node::Project { input, .. } | Node::Strip { input, .. } => self.node(input, depth),
            Node::Derived { input, alias, .. } => {
                self.estimated(depth, &format!("Subquery Scan on {}", quoted(alias)), node);
                self.node(input, depth + 1);
            }
            Node::Lateral { input, alias, .. } => {
                self.estimated(depth, &format!("Subquery Scan on {}", quoted(alias)), node);
                self.node(input, depth + 1);
            }
            Node::One { .. } => self.estimated(depth, "Result", node),
            Node::Rows { .. } => self.estimated(depth, "Values Scan on \"*VALUES*\"", node),
            Node::LockRows(lock) if self.is_change => self.node(&lock.input, depth),
            Node::LockRows(lock) => {
                self.estimated(depth, "LockRows", node);
                self.node(&lock.input, depth + 1);
            }
            Node::Scan(scan) if scan.lock.is_some() && !self.is_change => {
                self.estimated(depth, "LockRows", node);
                self.scan(scan, node, depth + 1);
            }
            Node::Scan(scan) => self.scan(scan, node, depth),
            Node::Loop { left, right, kind, on, .. } => {
                self.estimated(depth, &format!("Nested Loop{}", join_word(*kind)), node);
                self.detail(depth, "Join Filter", &conditions(on, &names_of(node)));
                self.node(left, depth + 1);
                self.node(right, depth + 1);
            }
            Node::Hash(join) => {
                let word = if join.kind == JoinKind::Inner { " Join" } else { join_word(join.kind) };
                self.estimated(depth, &format!("Hash{word}"), node);
                let names = names_of(node);
                let pairs = join.left_keys.iter().zip(&join.right_keys);
                let keys: Vec<String> = pairs
                    .map(|(left, right)| format!("({} = {})", shown(left, &names), shown(right, &names)))
                    .collect();
                self.detail(depth, "Hash Cond", &joined(keys));
                self.detail(depth, "Join Filter", &conditions(&join.on, &names));
                self.node(&join.left, depth + 1);
                self.title(depth + 1, "Hash", None);
                self.node(&join.right, depth + 2);
            }
            Node::Filter { input, conditions: list } => {
                // PostgreSQL has the condition at the node itself.
                let before = self.lines.len();
                self.node(input, depth);
                let text = conditions(list, &names_of(input));
                if !text.is_empty() {
                    self.lines.insert(before + 1, format!("{}Filter: {text}", Self::indent(depth)));
                }
            }
            Node::Group(group) => {
                let word = if group.is_whole { "Aggregate" } else { "HashAggregate" };
                self.estimated(depth, word, node);
                let names = names_of(&group.input);
                let keys: Vec<String> = group.keys.iter().map(|key| shown(key, &names)).collect();
                self.detail(depth, "Group Key", &keys.join(", "));
                self.node(&group.input, depth + 1);
            }
            Node::Window(window) => {
                self.estimated(depth, "WindowAgg", node);
                self.node(&window.input, depth + 1);
            }
            Node::ProjectSet(set) if matches!(&*set.input, Node::One { width: 0 }) => {
                self.estimated(depth, "Function Scan", node);
            }
            Node::ProjectSet(set) => {
                self.estimated(depth, "ProjectSet", node);
                self.node(&set.input, depth + 1);
            }
            Node::Distinct { input, .. } => {
                self.estimated(depth, "Unique", node);
                self.node(input, depth + 1);
            }
            Node::Sort { input, keys, unique, .. } => {
                self.estimated(depth, if *unique { "Unique" } else { "Sort" }, node);
                self.detail(depth, "Sort Key", &sort_keys(keys, input));
                self.node(input, depth + 1);
            }
            Node::Limit { input, .. } | Node::Ties { input, .. } => {
                self.estimated(depth, "Limit", node);
                self.node(input, depth + 1);
            }
            Node::Union { inputs } => {
                self.estimated(depth, "Append", node);
                inputs.iter().for_each(|input| self.node(input, depth + 1));
            }
            Node::SetOperation { left, right, keeps_common, all, .. } => {
                let word = if *keeps_common { "Intersect" } else { "Except" };
                let all = if *all { " All" } else { "" };
                self.estimated(depth, &format!("HashSetOp {word}{all}"), node);
                self.node(left, depth + 1);
                self.node(right, depth + 1);
            }
            Node::TableFunction(_) => self.estimated(depth, "Function Scan", node),
            Node::Common { source, recursion, .. } => {
                self.estimated(depth, if recursion.is_some() { "Recursive Union" } else { "CTE Scan" }, node);
                self.node(source, depth + 1);
                if let Some(recursion) = recursion {
                    self.node(&recursion.part, depth + 1);
                }
            }
            // The rows of a recursive part, or those that a change has returned.
            Node::LastRound { .. } => self.estimated(depth, "WorkTable Scan", node),
            Node::System { table, .. } => self.estimated(depth, &format!("Function Scan on {}", table.name), node),
        }
    }

    fn scan(&mut self, scan: &Scan, node: &Arc<Node>, depth: usize) {
        let name = quoted(&scan.table.name);
        let alias = if scan.alias == scan.table.name { String::new() } else { format!(" {}", quoted(&scan.alias)) };
        let access = &scan.access;
        let way = if access.is_full() && access.index.is_none() {
            "Seq Scan".to_owned()
        } else {
            let word = if access.covering { "Index Only Scan" } else { "Index Scan" };
            let backward = if access.backward { " Backward" } else { "" };
            format!("{word}{backward} using {}", quoted(&key_name(scan, access)))
        };
        self.estimated(depth, &format!("{way} on {name}{alias}"), node);
        let names: Vec<(usize, String)> =
            scan.names().map(|(at, name)| (at, name.rsplit('.').next().unwrap_or_default().to_owned())).collect();
        let leads = scan.implied.min(scan.conditions.len());
        self.detail(depth, "Index Cond", &conditions(&scan.conditions[..leads], &names));
        self.detail(depth, "Filter", &conditions(&scan.conditions[leads..], &names));
    }
}

fn key_name(scan: &Scan, access: &Access) -> String {
    match access.index {
        Some(at) => scan.table.indexes[at].name.clone(),
        None => crate::define::names::primary_name(&scan.table),
    }
}

fn join_word(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "",
        JoinKind::Left => " Left Join",
        JoinKind::Semi => " Semi Join",
        JoinKind::Anti => " Anti Join",
    }
}

/// Returns the names of the places of a node's rows, as far as its scans tell.
fn names_of(node: &Arc<Node>) -> Vec<(usize, String)> {
    match &**node {
        Node::Scan(scan) => scan.names().collect(),
        Node::Loop { left, right, .. } => names_of(left).into_iter().chain(names_of(right)).collect(),
        Node::Hash(join) => names_of(&join.left).into_iter().chain(names_of(&join.right)).collect(),
        Node::Filter { input, .. } | Node::Strip { input, .. } | Node::Sort { input, .. } => names_of(input),
        Node::LockRows(lock) => names_of(&lock.input),
        Node::Derived { alias, columns, offset, .. } | Node::Lateral { alias, columns, offset, .. } => {
            columns.iter().enumerate().map(|(nth, name)| (offset + nth, format!("{alias}.{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

fn sort_keys(keys: &[SortKey], input: &Arc<Node>) -> String {
    let Node::Project { exprs, input } = &**input else { return String::new() };
    let names = names_of(input);
    let key = |key: &SortKey| {
        let text = exprs.get(key.at).map_or_else(String::new, |expr| shown(expr, &names));
        let direction = if key.order.descending { " DESC" } else { "" };
        let nulls = match (key.order.descending, key.order.nulls_first) {
            (false, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
            _ => "",
        };
        text + direction + nulls
    };
    keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

fn joined(list: Vec<String>) -> String {
    match list.len() {
        0 | 1 => list.concat(),
        _ => format!("({})", list.join(" AND ")),
    }
}

fn conditions(list: &[Expr], names: &[(usize, String)]) -> String {
    joined(list.iter().map(|expr| shown(expr, names)).collect())
}

fn operator(op: Comparison) -> &'static str {
    match op {
        Comparison::Equal => "=",
        Comparison::NullSafeEqual => "IS NOT DISTINCT FROM",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}

/// Returns an expression as a person reads it. It is no text of SQL: casts that the binder has inserted are calls.
fn shown(expr: &Expr, names: &[(usize, String)]) -> String {
    let list = |exprs: &[Expr], word: &str| {
        let parts: Vec<String> = exprs.iter().map(|expr| shown(expr, names)).collect();
        format!("({})", parts.join(word))
    };
    match expr {
        Expr::Literal(Value::Null, _) => "NULL".to_owned(),
        Expr::Literal(Value::Text(text), _) => format!("'{}'", text.as_str().replace('\'', "''")),
        Expr::Literal(value, _) => value.to_string(),
        Expr::Column(at, _) => {
            names.iter().find(|(place, _)| place == at).map_or_else(|| format!("?{at}"), |(_, name)| name.clone())
        }
        Expr::Parameter(at, _) => format!("${}", at + 1),
        Expr::Outer { at, .. } => format!("$outer{at}"),
        Expr::Subquery(..) => "(SubPlan)".to_owned(),
        Expr::And(exprs) => list(exprs, " AND "),
        Expr::Or(exprs) => list(exprs, " OR "),
        Expr::Xor(sides) => list(&sides[..], " <> "),
        Expr::Not(inner) => format!("(NOT {})", shown(inner, names)),
        Expr::IsNull(inner) => format!("({} IS NULL)", shown(inner, names)),
        Expr::IsTruth(inner, is) => format!("({} IS {})", shown(inner, names), if *is { "TRUE" } else { "FALSE" }),
        Expr::Compare(node) => {
            format!("({} {} {})", shown(&node.left, names), operator(node.op), shown(&node.right, names))
        }
        Expr::Between(node) => {
            let not = if node.negated { "NOT " } else { "" };
            let (needle, low, high) = (&node.needle, &node.low, &node.high);
            format!("({} {not}BETWEEN {} AND {})", shown(needle, names), shown(low, names), shown(high, names))
        }
        Expr::In(node) => {
            let not = if node.negated { "NOT " } else { "" };
            let items: Vec<String> = node.list.iter().map(|(item, _)| shown(item, names)).collect();
            format!("({} {not}IN ({}))", shown(&node.needle, names), items.join(", "))
        }
        Expr::Case(_) => "CASE".to_owned(),
        Expr::Call(call) => {
            let arguments: Vec<String> = call.arguments.iter().map(|argument| shown(argument, names)).collect();
            format!("{}({})", call.function.name(), arguments.join(", "))
        }
        Expr::Exact(inner) | Expr::Shown(inner) => shown(inner, names),
    }
}
