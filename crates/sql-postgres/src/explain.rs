//! EXPLAIN: a plan as a tree of items, with PostgreSQL's names. The nodes are this server's own. `explain/format` writes the tree.

mod format;

use std::sync::Arc;

use query::exec::instrumentation::{Measure, Measures};
use query::nodes::change::{OnConflict, Values};
use query::nodes::comparison::Comparison;
use query::nodes::expr::{Call, Expr};
use query::nodes::node::{Access, JoinKind, Node, Scan, SortKey};
use query::nodes::term_test::TermTest;
use query::plan::estimate::estimate;
use query::types::Type;

use crate::bind::Plan;
use crate::session::quoted;
use crate::types::io::{self, IoContext};
use crate::types::{oid, registry};
use crate::value::Value;

pub(crate) use format::{Form, Report, written};

/// Plans are cut below this depth, which no statement of a person reaches.
const DEPTH_MAX: usize = 100;

/// A property of an item.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    Text(String),
    List(Vec<String>),
}

/// A node of the plan, as it is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanItem {
    /// "Node Type".
    kind: &'static str,
    /// The line of the text format.
    title: String,
    /// How it belongs to the item above.
    relationship: &'static str,
    /// The CTE that it computes.
    subplan: Option<String>,
    /// Properties that the text format has in its title.
    facts: Vec<(&'static str, Fact)>,
    /// The estimated cost and rows.
    cost: Option<f64>,
    rows: Option<f64>,
    measure: Option<Measure>,
    /// Properties with lines of their own.
    details: Vec<(&'static str, Fact)>,
    inputs: Vec<PlanItem>,
}

/// The figures of a run: of nodes by their addresses, and of changes.
pub(crate) struct RanPlan {
    pub measures: Measures,
    /// The rows that the statement has changed.
    pub changed: Option<Measure>,
}

/// Returns the tree of a plan. `verbose` adds schemas and output columns.
pub(crate) fn tree(plan: &Plan, ran: Option<&RanPlan>, verbose: bool) -> PlanItem {
    let parts = match plan {
        Plan::Several(several) => several.parts.iter().map(|part| part.id).collect(),
        _ => Vec::new(),
    };
    Drawing { ran, verbose, parts, is_change: plan.changes_rows() }.plan(plan)
}

struct Drawing<'r> {
    /// The numbers of the parts of WITH that change rows.
    parts: Vec<usize>,
    ran: Option<&'r RanPlan>,
    verbose: bool,
    /// The rows are those of a change.
    is_change: bool,
}

impl PlanItem {
    fn new(kind: &'static str, title: impl Into<String>) -> PlanItem {
        PlanItem { kind, title: title.into(), relationship: "Outer", ..PlanItem::default() }
    }

    fn fact(mut self, name: &'static str, text: impl Into<String>) -> PlanItem {
        self.facts.push((name, Fact::Text(text.into())));
        self
    }

    fn detail(mut self, name: &'static str, text: impl Into<String>) -> PlanItem {
        let text = text.into();
        if !text.is_empty() {
            self.details.push((name, Fact::Text(text)));
        }
        self
    }

    fn list(mut self, name: &'static str, texts: Vec<String>) -> PlanItem {
        if !texts.is_empty() {
            self.details.push((name, Fact::List(texts)));
        }
        self
    }

    fn input(mut self, input: PlanItem) -> PlanItem {
        self.inputs.push(input);
        self
    }

    fn inner(mut self, mut input: PlanItem) -> PlanItem {
        input.relationship = "Inner";
        self.inputs.push(input);
        self
    }
}

impl Drawing<'_> {
    fn plan(&self, plan: &Plan) -> PlanItem {
        match plan {
            Plan::Query { node, .. } => self.node(node, 0),
            Plan::Insert(insert) => {
                let mut item = self.change("Insert", [&*insert.rules.table].into_iter());
                if insert.arbiter.is_some() {
                    let update = insert.on_conflict == OnConflict::Update;
                    item = item.detail("Conflict Resolution", if update { "UPDATE" } else { "NOTHING" });
                }
                item.input(match &insert.values {
                    Values::Query(node) => self.node(node, 1),
                    Values::Rows(rows) if rows.len() == 1 => {
                        PlanItem { rows: Some(1.0), ..PlanItem::new("Result", "Result") }
                    }
                    Values::Rows(rows) => PlanItem { rows: Some(rows.len() as f64), ..values_scan() },
                })
            }
            Plan::Update(update) => {
                let tables = update.targets.iter().map(|target| &*target.rules.table);
                self.change("Update", tables).input(self.node(&update.node, 1))
            }
            Plan::Delete(delete) => {
                let tables = delete.targets.iter().map(|target| &*target.rules.table);
                self.change("Delete", tables).input(self.node(&delete.node, 1))
            }
            Plan::Merge(merge) => self.change("Merge", [&*merge.table].into_iter()).input(self.node(&merge.node, 1)),
            Plan::Several(several) => {
                let mut item = self.plan(&several.main);
                let parts = several.parts.iter().map(|part| PlanItem {
                    relationship: "InitPlan",
                    subplan: Some(format!("CTE {}", quoted(&part.name))),
                    measure: None,
                    ..self.plan(&part.plan)
                });
                item.inputs.splice(0..0, parts);
                item
            }
            Plan::Evaluate(_) => PlanItem::new("Result", "Result"),
            Plan::Load(load) => match load.source {},
        }
    }

    fn change<'t>(
        &self,
        word: &'static str,
        tables: impl Iterator<Item = &'t query::catalog::table::Table>,
    ) -> PlanItem {
        let tables: Vec<_> = tables.collect();
        let names: Vec<String> = tables.iter().map(|table| self.relation(table)).collect();
        let mut item = PlanItem::new("ModifyTable", format!("{word} on {}", names.join(", "))).fact("Operation", word);
        if let Some(table) = tables.first() {
            item = item.fact("Relation Name", &*table.name);
            if self.verbose {
                item = item.fact("Schema", schema(table));
            }
            item = item.fact("Alias", &*table.name);
        }
        item.measure = self.ran.and_then(|ran| ran.changed);
        item
    }

    fn relation(&self, table: &query::catalog::table::Table) -> String {
        match self.verbose {
            true => format!("{}.{}", quoted(&schema(table)), quoted(&table.name)),
            false => quoted(&table.name),
        }
    }

    /// Returns an item with the node's estimates and figures.
    fn item(&self, node: &Arc<Node>, kind: &'static str, title: impl Into<String>) -> PlanItem {
        let estimated = estimate(node);
        PlanItem {
            cost: Some(estimated.cost),
            rows: Some(estimated.rows),
            measure: self.ran.map(|ran| ran.measures.of(node).copied().unwrap_or_default()),
            ..PlanItem::new(kind, title)
        }
    }

    fn node(&self, node: &Arc<Node>, depth: usize) -> PlanItem {
        if depth > DEPTH_MAX {
            return PlanItem::new("Result", "...");
        }
        let below = |input: &Arc<Node>| self.node(input, depth + 1);
        match &**node {
            // These have no counterpart in PostgreSQL's plans: a target list, a narrower row.
            Node::Project { input, exprs } => {
                let item = self.node(input, depth);
                if !self.verbose || item.details.iter().any(|(name, _)| *name == "Output") {
                    return item;
                }
                let names = names_of(input);
                let output = exprs.iter().map(|expr| shown(expr, &names)).collect();
                let mut item = item;
                item.details.insert(0, ("Output", Fact::List(output)));
                item
            }
            Node::Strip { input, .. } => self.node(input, depth),
            Node::Derived { input, alias, .. } if matches!(**input, Node::LastRound { .. }) => {
                let Node::LastRound { id } = &**input else { return below(input) };
                // The rows that a change has returned, or those of the last round of a recursive query.
                let kind = if self.parts.contains(id) { "CTE Scan" } else { "WorkTable Scan" };
                self.item(node, kind, format!("{kind} on {}", quoted(alias))).fact("Alias", alias)
            }
            Node::Derived { input, alias, .. } | Node::Lateral { input, alias, .. } => {
                let title = format!("Subquery Scan on {}", quoted(alias));
                let item = self.item(node, "Subquery Scan", title).fact("Alias", alias);
                let input = PlanItem { relationship: "Subquery", ..below(input) };
                item.input(input)
            }
            Node::One { .. } => self.item(node, "Result", "Result"),
            Node::Rows { .. } => {
                let values = values_scan();
                PlanItem { facts: values.facts, ..self.item(node, values.kind, values.title) }
            }
            // A change locks its rows itself in PostgreSQL's plans.
            Node::LockRows(lock) if self.is_change => self.node(&lock.input, depth),
            Node::LockRows(lock) => self.item(node, "LockRows", "LockRows").input(below(&lock.input)),
            Node::Scan(scan) if scan.lock.is_some() && !self.is_change => {
                self.item(node, "LockRows", "LockRows").input(self.scan(scan, node))
            }
            Node::Scan(scan) => self.scan(scan, node),
            Node::Loop { left, right, kind, on, .. } => {
                let item = self.item(node, "Nested Loop", format!("Nested Loop{}", join_word(*kind)));
                item.fact("Join Type", join_type(*kind))
                    .detail("Join Filter", conditions(on, &names_of(node)))
                    .input(below(left))
                    .inner(below(right))
            }
            Node::Hash(join) => {
                let word = if join.kind == JoinKind::Inner { " Join" } else { join_word(join.kind) };
                let names = names_of(node);
                let pairs = join.left_keys.iter().zip(&join.right_keys);
                let keys: Vec<String> = pairs
                    .map(|(left, right)| format!("({} = {})", shown(left, &names), shown(right, &names)))
                    .collect();
                let item = self.item(node, "Hash Join", format!("Hash{word}"));
                let hash = PlanItem::new("Hash", "Hash").input(self.node(&join.right, depth + 2));
                item.fact("Join Type", join_type(join.kind))
                    .detail("Hash Cond", joined(keys))
                    .detail("Join Filter", conditions(&join.on, &names))
                    .input(below(&join.left))
                    .inner(hash)
            }
            Node::Filter { input, conditions: list } => {
                // PostgreSQL has the condition at the node itself.
                let mut item = self.node(input, depth);
                let text = conditions(list, &names_of(input));
                if !text.is_empty() {
                    item.details.insert(0, ("Filter", Fact::Text(text)));
                }
                if let Some(measure) = self.ran.and_then(|ran| ran.measures.of(node)) {
                    item.measure = Some(*measure);
                }
                item
            }
            Node::Group(group) => {
                let (title, strategy) = match group.is_whole {
                    true => ("Aggregate", "Plain"),
                    false => ("HashAggregate", "Hashed"),
                };
                let names = names_of(&group.input);
                let keys: Vec<String> = group.keys.iter().map(|key| shown(key, &names)).collect();
                let item = self.item(node, "Aggregate", title).fact("Strategy", strategy);
                item.list("Group Key", keys).input(below(&group.input))
            }
            Node::Window(window) => self.item(node, "WindowAgg", "WindowAgg").input(below(&window.input)),
            Node::Distinct { input, .. } => self.item(node, "Unique", "Unique").input(below(input)),
            Node::Sort { input, keys, unique, .. } => {
                let word = if *unique { "Unique" } else { "Sort" };
                self.item(node, word, word).list("Sort Key", sort_keys(keys, input)).input(below(input))
            }
            Node::ProjectSet(set) if matches!(&*set.input, Node::One { width: 0 }) => {
                self.item(node, "Function Scan", "Function Scan")
            }
            Node::ProjectSet(set) => self.item(node, "ProjectSet", "ProjectSet").input(below(&set.input)),
            Node::Limit { input, .. } | Node::Ties { input, .. } => {
                self.item(node, "Limit", "Limit").input(below(input))
            }
            Node::Union { inputs } => {
                let item = self.item(node, "Append", "Append");
                let inputs = inputs.iter().map(|input| PlanItem { relationship: "Member", ..below(input) }).collect();
                PlanItem { inputs, ..item }
            }
            Node::SetOperation { left, right, keeps_common, all, .. } => {
                let word = if *keeps_common { "Intersect" } else { "Except" };
                let all = if *all { " All" } else { "" };
                let item = self.item(node, "SetOp", format!("HashSetOp {word}{all}"));
                let item = item.fact("Strategy", "Hashed").fact("Command", format!("{word}{all}"));
                item.input(below(left)).inner(below(right))
            }
            Node::TableFunction(_) => self.item(node, "Function Scan", "Function Scan"),
            Node::Common { source, recursion, .. } => {
                let kind = if recursion.is_some() { "Recursive Union" } else { "CTE Scan" };
                let item = self.item(node, kind, kind).input(below(source));
                match recursion {
                    Some(recursion) => item.inner(below(&recursion.part)),
                    None => item,
                }
            }
            Node::LastRound { .. } => self.item(node, "WorkTable Scan", "WorkTable Scan"),
            Node::System { table, .. } => {
                let item = self.item(node, "Function Scan", format!("Function Scan on {}", table.name));
                item.fact("Function Name", table.name)
            }
        }
    }

    fn scan(&self, scan: &Scan, node: &Arc<Node>) -> PlanItem {
        let name = self.relation(&scan.table);
        let alias = if scan.alias == scan.table.name { String::new() } else { format!(" {}", quoted(&scan.alias)) };
        let access = &scan.access;
        if access.test.is_some() {
            return self.scan_of_terms(scan, node, format!("{name}{alias}"));
        }
        let is_whole = access.is_full() && access.index.is_none();
        let kind = match (is_whole, access.covering) {
            (true, _) => "Seq Scan",
            (false, true) => "Index Only Scan",
            (false, false) => "Index Scan",
        };
        let title = match is_whole {
            true => format!("{kind} on {name}{alias}"),
            false => {
                let backward = if access.backward { " Backward" } else { "" };
                format!("{kind}{backward} using {} on {name}{alias}", quoted(&key_name(scan, access)))
            }
        };
        let mut item = self.item(node, kind, title);
        if !is_whole {
            let direction = if access.backward { "Backward" } else { "Forward" };
            item = item.fact("Scan Direction", direction).fact("Index Name", key_name(scan, access));
        }
        item = item.fact("Relation Name", &*scan.table.name);
        if self.verbose {
            item = item.fact("Schema", schema(&scan.table));
        }
        let names: Vec<(usize, String)> =
            scan.names().map(|(at, name)| (at, name.rsplit('.').next().unwrap_or_default().to_owned())).collect();
        let leads = scan.implied.min(scan.conditions.len());
        let item = item.fact("Alias", &*scan.alias);
        let item = match (&scan.output, self.verbose) {
            (Some(places), true) => {
                let name = |at: &usize| names.iter().find(|(place, _)| place == at).map(|(_, name)| name.clone());
                item.list("Output", places.iter().filter_map(name).collect())
            }
            _ => item,
        };
        item.detail("Index Cond", conditions(&scan.conditions[..leads], &names))
            .detail("Filter", conditions(&scan.conditions[leads..], &names))
    }
}

impl Drawing<'_> {
    /// A scan through an index of terms: the conditions that the index decides are rechecked on each row.
    fn scan_of_terms(&self, scan: &Scan, node: &Arc<Node>, name: String) -> PlanItem {
        let index = quoted(&key_name(scan, &scan.access));
        let names: Vec<(usize, String)> =
            scan.names().map(|(at, name)| (at, name.rsplit('.').next().unwrap_or_default().to_owned())).collect();
        let other = scan.access.equal.iter().flatten().next().map(|other| shown(other, &names));
        let is_other = |side: &Expr| Some(shown(side, &names)) == other;
        let (led, rest): (Vec<Expr>, Vec<Expr>) =
            scan.conditions.iter().cloned().partition(|condition| match condition {
                Expr::Call(call) => call.function.term_test.is_some() && call.arguments.iter().any(is_other),
                Expr::Compare(compare) => is_other(&compare.left) || is_other(&compare.right),
                _ => false,
            });
        let cond = conditions(&led, &names);
        let entries = PlanItem::new("Bitmap Index Scan", format!("Bitmap Index Scan on {index}"));
        let entries = entries.fact("Index Name", key_name(scan, &scan.access)).detail("Index Cond", cond.clone());
        let item = self.item(node, "Bitmap Heap Scan", format!("Bitmap Heap Scan on {name}"));
        let item = item.fact("Relation Name", &*scan.table.name).fact("Alias", &*scan.alias);
        item.detail("Recheck Cond", cond).detail("Filter", conditions(&rest, &names)).input(entries)
    }
}

fn values_scan() -> PlanItem {
    PlanItem::new("Values Scan", "Values Scan on \"*VALUES*\"").fact("Alias", "*VALUES*")
}

fn schema(table: &query::catalog::table::Table) -> String {
    crate::bind::schema_shown(&table.schema).unwrap_or_else(|| table.schema.clone())
}

fn join_type(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Inner",
        JoinKind::Left => "Left",
        JoinKind::Semi => "Semi",
        JoinKind::Anti => "Anti",
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

fn sort_keys(keys: &[SortKey], input: &Arc<Node>) -> Vec<String> {
    let columns: Vec<String> = match &**input {
        Node::Project { exprs, input } => {
            let names = names_of(input);
            exprs.iter().map(|expr| shown(expr, &names)).collect()
        }
        Node::Scan(scan) => {
            let names: Vec<(usize, String)> = scan.names().collect();
            let own = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
            let name = |at: &usize| names.iter().find(|(place, _)| place == at).map(|(_, name)| own(name));
            scan.output.iter().flatten().map(|at| name(at).unwrap_or_default()).collect()
        }
        _ => return Vec::new(),
    };
    let key = |key: &SortKey| {
        let text = columns.get(key.at).cloned().unwrap_or_default();
        let direction = if key.order.descending { " DESC" } else { "" };
        let nulls = match (key.order.descending, key.order.nulls_first) {
            (false, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
            _ => "",
        };
        text + direction + nulls
    };
    keys.iter().map(key).collect()
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

/// Returns the operator of a test of terms.
fn term_operator(call: &Call) -> Option<&'static str> {
    Some(match call.function.term_test? {
        TermTest::Holds => "@>",
        TermTest::IsHeldBy => "<@",
        TermTest::Overlaps => "&&",
        TermTest::Equals => "=",
        TermTest::HasName => "?",
        TermTest::HasAnyName => "?|",
        TermTest::HasAllNames => "?&",
        TermTest::PathExists(_) => "@?",
        TermTest::PathMatches(_) => "@@",
    })
}

/// Returns the text of a value with its type; `None` where that needs more than the value.
fn constant(value: &Value, ty: &Type) -> Option<String> {
    let mut text = Vec::new();
    io::output(value, ty, &IoContext::default(), &mut text).ok()?;
    let name = registry::format_type(registry::oid_of(ty), None);
    Some(format!("'{}'::{name}", String::from_utf8_lossy(&text).replace('\'', "''")))
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
        Expr::Literal(Value::Int(truth), ty) if registry::oid_of(ty) == oid::BOOL => {
            if *truth == 0 { "false" } else { "true" }.to_owned()
        }
        Expr::Literal(value @ Value::Bytes(_), ty) => constant(value, ty).unwrap_or_else(|| value.to_string()),
        Expr::Literal(value @ (Value::Array(_) | Value::Json(_)), ty) => {
            constant(value, ty).unwrap_or_else(|| value.to_string())
        }
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
        Expr::Call(call) if let ([left, right], Some(operator)) = (&call.arguments[..], term_operator(call)) => {
            format!("({} {operator} {})", shown(left, names), shown(right, names))
        }
        Expr::Call(call) => {
            let arguments: Vec<String> = call.arguments.iter().map(|argument| shown(argument, names)).collect();
            format!("{}({})", call.function.name(), arguments.join(", "))
        }
        Expr::Exact(inner) | Expr::Shown(inner) => shown(inner, names),
        Expr::Elements(array) => format!("ANY ({})", shown(array, names)),
    }
}
