//! A plan as query blocks with their tables in join order, as MySQL's EXPLAIN shows it.

use std::sync::Arc;

use super::{Explained, Names, Verb, names, outer_of, words};
use crate::session::key_limits::part_bytes;
use crate::types::{Kind, MysqlType as _, Type};
use query::catalog::table::Part;
use query::nodes::expr::{Expr, Expr as E};
use query::nodes::node::{Access, JoinKind, Node, Scan};
use query::nodes::walk::{inputs, subqueries};
use query::plan::estimate::estimate;

#[derive(Debug, Default)]
pub struct Block {
    pub id: usize,
    pub kind: &'static str,
    pub tables: Vec<Shown>,
    pub cost: f64,
    pub sorts: bool,
    pub groups: bool,
    pub is_distinct: bool,
    pub has_windows: bool,
}

/// A table in a block, as it is read.
#[derive(Debug, Default)]
pub struct Shown {
    pub name: Option<String>,
    pub access: Option<&'static str>,
    pub possible: Vec<String>,
    pub key: Option<String>,
    pub parts: Vec<String>,
    /// The names of the keys in use.
    pub key_length: String,
    /// Several keys, in words.
    pub union: Option<String>,
    pub by: Vec<String>,
    pub rows: f64,
    pub cost: f64,
    pub filtered: f64,
    pub conditions: Vec<String>,
    pub columns: Vec<String>,
    pub covers: bool,
    /// Conditions are looked at before rows are read.
    pub pushes: bool,
    pub backward: bool,
    pub hashes: bool,
    /// The table belongs to a semi-join or antijoin, so it only filters the rows before it.
    pub decides: Option<JoinKind>,
    pub message: Option<&'static str>,
    /// The block that makes its rows.
    pub made_by: Option<usize>,
}

#[derive(Default)]
struct Walk {
    blocks: Vec<Block>,
    /// Blocks of common table expressions, by their ids.
    commons: Vec<(usize, usize)>,
}

pub fn blocks(explained: &Explained<'_>) -> Vec<Block> {
    let mut walk = Walk::default();
    let Some(node) = explained.node else {
        let shown = Shown { name: explained.table.map(str::to_owned), access: Some("ALL"), ..Shown::default() };
        return vec![Block { id: 1, kind: explained.verb.name(), tables: vec![shown], ..Block::default() }];
    };
    walk.begin("SIMPLE", node, &[]);
    let is_simple = walk.blocks.len() == 1;
    match explained.verb {
        Verb::Update | Verb::Delete => walk.blocks[0].kind = explained.verb.name(),
        _ if !is_simple => walk.blocks[0].kind = "PRIMARY",
        _ => {}
    }
    walk.blocks
}

impl Walk {
    /// A block for that node. Its place among the blocks.
    fn begin(&mut self, kind: &'static str, node: &Arc<Node>, outer: &[Names]) -> usize {
        let at = self.blocks.len();
        let guess = estimate(node);
        self.blocks.push(Block { id: at + 1, kind, cost: guess.cost, ..Block::default() });
        self.walk(at, node, outer, &Names::new());
        at
    }

    fn push(&mut self, at: usize, shown: Shown) {
        self.blocks[at].tables.push(shown);
    }

    fn walk(&mut self, at: usize, node: &Arc<Node>, outer: &[Names], beside: &Names) {
        match &**node {
            Node::Scan(scan) => self.push(at, shown(scan, outer, beside)),
            Node::One { .. } => {
                let message = Some("No tables used");
                self.push(at, Shown { message, filtered: 100.0, ..Shown::default() });
            }
            Node::Rows { rows } => {
                let shown = Shown { message: Some("No tables used"), rows: rows.len() as f64, ..Shown::default() };
                self.push(at, shown);
            }
            Node::System { table, .. } => {
                let name = Some(table.name.to_owned());
                self.push(at, Shown { name, access: Some("ALL"), filtered: 100.0, ..Shown::default() });
            }
            Node::Loop { left, right, kind, .. } => {
                self.walk(at, left, outer, beside);
                let from = self.blocks[at].tables.len();
                let mut more = beside.clone();
                more.extend(names(left, outer));
                self.walk(at, right, outer, &more);
                self.decide(at, from, *kind);
                self.attach(at, node, outer, beside);
            }
            Node::Hash(join) => {
                self.walk(at, &join.left, outer, beside);
                let from = self.blocks[at].tables.len();
                self.walk(at, &join.right, outer, beside);
                if let Some(first) = self.blocks[at].tables.get_mut(from) {
                    first.hashes = true;
                }
                self.decide(at, from, join.kind);
                self.attach(at, node, outer, beside);
            }
            Node::Filter { input, .. } => {
                self.walk(at, input, outer, beside);
                self.attach(at, node, outer, beside);
            }
            Node::LockRows(lock) => self.walk(at, &lock.input, outer, beside),
            Node::Group(group) => {
                self.blocks[at].groups |= !group.is_whole;
                self.walk(at, &group.input, outer, beside);
            }
            Node::Window(window) => {
                self.blocks[at].has_windows = true;
                self.walk(at, &window.input, outer, beside);
            }
            Node::ProjectSet(set) => self.walk(at, &set.input, outer, beside),
            Node::Sort { input, .. } => {
                self.blocks[at].sorts = true;
                self.walk(at, input, outer, beside);
            }
            Node::Distinct { input, .. } => match &**input {
                Node::Union { inputs } => self.union(at, inputs, outer, true),
                _ => {
                    self.blocks[at].is_distinct = true;
                    self.walk(at, input, outer, beside);
                }
            },
            Node::Union { inputs } => self.union(at, inputs, outer, false),
            Node::SetOperation { left, right, keeps_common, .. } => {
                self.walk(at, left, outer, beside);
                self.begin(if *keeps_common { "INTERSECT" } else { "EXCEPT" }, right, outer);
            }
            Node::Derived { input, alias, .. } | Node::Lateral { input, alias, .. }
                if matches!(&**input, Node::TableFunction(_)) =>
            {
                let name = Some(alias.clone());
                let message = Some("Table function: json_table; Using temporary");
                let rows = estimate(input).rows;
                self.push(at, Shown { name, access: Some("ALL"), rows, filtered: 100.0, message, ..Shown::default() });
                let inside = match &**node {
                    Node::Lateral { depth, .. } => super::deeper(*depth, beside, outer),
                    _ => outer.to_vec(),
                };
                self.walk(at, input, &inside, &Names::new());
            }
            Node::Derived { input, .. } => {
                let place = self.blocks[at].tables.len();
                let rows = estimate(input).rows;
                self.push(at, Shown { access: Some("ALL"), rows, filtered: 100.0, ..Shown::default() });
                let made_by = match &**input {
                    Node::Common { id, .. } => match self.commons.iter().find(|(known, _)| known == id) {
                        Some((_, block)) => *block,
                        None => {
                            let block = self.blocks.len();
                            self.commons.push((*id, block));
                            self.begin("DERIVED", input, &[])
                        }
                    },
                    Node::LastRound { .. } => at,
                    _ => self.begin("DERIVED", input, &[]),
                };
                let id = self.blocks[made_by].id;
                let shown = &mut self.blocks[at].tables[place];
                shown.name = Some(format!("<derived{id}>"));
                shown.made_by = (made_by != at).then_some(made_by);
            }
            Node::Lateral { input, depth, .. } => {
                let place = self.blocks[at].tables.len();
                let rows = estimate(input).rows;
                self.push(at, Shown { access: Some("ALL"), rows, filtered: 100.0, ..Shown::default() });
                let inside = super::deeper(*depth, beside, outer);
                let made_by = self.begin("DEPENDENT DERIVED", input, &inside);
                self.blocks[at].tables[place].name = Some(format!("<derived{}>", self.blocks[made_by].id));
                self.blocks[at].tables[place].made_by = Some(made_by);
            }
            Node::Common { source, recursion, .. } => {
                self.walk(at, source, outer, beside);
                if let Some(recursion) = recursion {
                    self.begin("UNION", &recursion.part, outer);
                }
            }
            Node::Project { .. } | Node::Strip { .. } | Node::Limit { .. } | Node::Ties { .. } => {
                for input in inputs(node) {
                    self.walk(at, input, outer, beside);
                }
            }
            Node::LastRound { .. } | Node::TableFunction(_) => {}
        }
        let mut found = Vec::new();
        subqueries(node, &mut |subquery| found.push(subquery));
        for subquery in found {
            let kind = if subquery.is_correlated { "DEPENDENT SUBQUERY" } else { "SUBQUERY" };
            self.begin(kind, &subquery.node, &outer_of(subquery, node, outer));
        }
    }

    fn decide(&mut self, at: usize, from: usize, kind: JoinKind) {
        if matches!(kind, JoinKind::Semi | JoinKind::Anti)
            && let Some(last) = self.blocks[at].tables[from..].last_mut()
        {
            last.decides = Some(kind);
        }
    }

    fn union(&mut self, at: usize, inputs: &[Arc<Node>], outer: &[Names], distinct: bool) {
        let mut ids = vec![self.blocks[at].id];
        for (nth, input) in inputs.iter().enumerate() {
            if nth == 0 {
                self.walk(at, input, outer, &Names::new());
            } else {
                let made = self.begin("UNION", input, outer);
                ids.push(self.blocks[made].id);
            }
        }
        if distinct {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let name = Some(format!("<union{}>", ids.join(",")));
            let shown = Shown { name, access: Some("ALL"), message: Some("Using temporary"), ..Shown::default() };
            self.blocks.push(Block { kind: "UNION RESULT", tables: vec![shown], ..Block::default() });
        }
    }

    /// Conditions of a join or a filter belong to the table that was read last.
    fn attach(&mut self, at: usize, node: &Arc<Node>, outer: &[Names], beside: &Names) {
        let (list, mut known) = match &**node {
            Node::Loop { on, .. } => (on, names(node, outer)),
            Node::Hash(join) => (&join.on, names(node, outer)),
            Node::Filter { conditions, input } => (conditions, names(input, outer)),
            _ => return,
        };
        known.extend(beside.clone());
        let mut list: Vec<String> = list.iter().map(|expr| words(expr, &known, outer)).collect();
        if let Node::Hash(join) = &**node {
            let keys = join.left_keys.iter().zip(&join.right_keys);
            let equal = |(left, right)| format!("({} = {})", words(left, &known, outer), words(right, &known, outer));
            list.extend(keys.map(equal));
        }
        if let Some(last) = self.blocks[at].tables.last_mut() {
            last.conditions.extend(list);
        }
    }
}

fn shown(scan: &Scan, outer: &[Names], beside: &Names) -> Shown {
    let (access, table) = (&scan.access, &scan.table);
    let mut known = beside.clone();
    known.extend(scan.names());
    let used = access.used();
    let is_fixed = |expr: &Expr| matches!(expr, E::Literal(..) | E::Parameter(..));
    let fixed = access.equal.iter().flatten().all(is_fixed);
    let has_range = used > access.equal.len() || access.equal.iter().any(|values| values.len() > 1);
    let is_union = !access.union.is_empty();
    let way = match () {
        () if is_union => "index_merge",
        () if access.is_point && !has_range && fixed => "const",
        () if access.is_point && !has_range => "eq_ref",
        () if has_range => "range",
        () if used > 0 => "ref",
        () if access.index.is_some() || access.backward => "index",
        () => "ALL",
    };
    let is_read = used > 0 || access.index.is_some() || access.backward || is_union;
    let taken = |way: &'_ Access| {
        let parts = way.parts(table);
        parts[..if way.used() > 0 { way.used().min(parts.len()) } else { parts.len() }].to_vec()
    };
    let each: Vec<Vec<Part>> = access.ways().iter().map(taken).collect();
    let named: Vec<String> = each.iter().flatten().map(|part| table.columns[part.column].name.clone()).collect();
    let length = |parts: &Vec<Part>| -> u32 {
        parts.iter().map(|part| key_length(&table.columns[part.column].ty, part.prefix)).sum()
    };
    let lengths: Vec<String> = each.iter().map(|parts| length(parts).to_string()).collect();
    let keys: Vec<&str> = access.ways().iter().map(|way| way.name(table)).collect();
    let by = if way == "range" || is_union {
        Vec::new()
    } else {
        access.equal.iter().flatten().map(|expr| reference(expr, &known)).collect()
    };
    let asked: Vec<usize> = scan.conditions.iter().flat_map(|condition| condition.columns()).collect();
    let through = query::plan::generated::indexed(table, scan.offset);
    let is_asked = |formula: &Expr| {
        let mut found = false;
        let mut look = |expr: &Expr| found |= query::plan::generated::is_like(expr, formula, false);
        scan.conditions.iter().for_each(|condition| condition.walk(&mut look));
        found
    };
    let computed: Vec<usize> =
        through.iter().filter(|(_, formula)| is_asked(formula)).map(|(column, _)| *column).collect();
    let leads =
        |column: usize| scan.place(column).is_some_and(|place| asked.contains(&place)) || computed.contains(&column);
    let primary = table.primary.iter().filter(|parts| leads(parts[0].column)).map(|_| "PRIMARY".to_owned());
    let others = table.indexes.iter().filter(|index| leads(index.parts[0].column)).map(|index| index.name.clone());
    Shown {
        name: Some(scan.alias.clone()),
        access: Some(way),
        possible: primary.chain(others).collect(),
        key: is_read.then(|| keys.join(",")),
        parts: if is_read { named } else { Vec::new() },
        key_length: if is_read { lengths.join(",") } else { String::new() },
        union: is_union.then(|| format!("Using union({})", keys.join(","))),
        by: if is_read { by } else { Vec::new() },
        rows: scan.found,
        cost: scan.cost,
        filtered: (scan.estimate / scan.found.max(0.01) * 100.0).clamp(0.01, 100.0),
        conditions: scan.conditions.iter().map(|expr| words(expr, &known, outer)).collect(),
        columns: scan
            .needed
            .iter()
            .filter(|at| !table.columns[**at].is_hidden())
            .map(|at| table.columns[*at].name.clone())
            .collect(),
        covers: access.covering,
        pushes: scan.pushed > 0 && !access.covering,
        backward: access.backward,
        ..Shown::default()
    }
}

fn reference(expr: &Expr, known: &Names) -> String {
    match expr {
        E::Literal(..) | E::Parameter(..) => "const".into(),
        E::Column(at, _) => known.get(at).cloned().unwrap_or_else(|| "func".into()),
        _ => "func".into(),
    }
}

/// Bytes of the column in a key, as EXPLAIN counts them: with the length of a text and the mark of NULL.
fn key_length(ty: &Type, prefix: Option<u32>) -> u32 {
    let is_variable = ty.storage.is_string() && !matches!(ty.kind(), Kind::Char | Kind::Binary);
    part_bytes(ty, prefix) + if is_variable { 2 } else { 0 } + u32::from(ty.nullable)
}
