//! In which order tables are read, and how they are joined.
//!
//! Inner joins are ordered greedily: next comes, of the tables that a condition ties to those before, the one of which the fewest rows are left, given the columns at hand. Outer joins keep their sides. A table without
//! a usable index is hashed by its equalities.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::bind::generated::indexed;
use crate::bind::scope::{Origin, ScopeTable, Source};
use crate::plan::access::{Choice, Target};
use crate::plan::cost::ROWS;
use crate::plan::share::Sight;
use crate::plan::walk::columns;
use crate::plan::{HashJoin, JoinKind, Node, Scan, SortKey};
use crate::scalar::Expr;
use crate::scalar::expr::{Comparison, Domain};
use crate::system::keys;
use crate::types::{Kind, Type};

pub struct Planner<'p> {
    pub tables: &'p [ScopeTable],
    pub used: &'p [bool],
    pub width: usize,
    /// Of a single table: the order that is wanted, and whether a limit makes it worth much.
    pub order: &'p [SortKey],
    pub limited: bool,
    pub sight: Sight<'p>,
}

/// A part of the plan: its node, the tables in it, about how many rows, whether in the wanted order.
pub struct Part {
    pub node: Arc<Node>,
    pub tables: Vec<usize>,
    pub rows: f64,
    pub ordered: bool,
}

impl Planner<'_> {
    pub fn plan(&self, source: &Source, mut conditions: Vec<Expr>) -> Part {
        let mut part = match source {
            Source::Table(table) if self.real_tables() == 1 => self.leaf(*table, &mut conditions, &[], true),
            // A view of one table.
            Source::Inner(items, on) if self.real_tables() == 1 && items.len() == 1 => {
                conditions.extend(on.iter().cloned());
                match &items[0] {
                    Source::Table(table) => self.leaf(*table, &mut conditions, &[], true),
                    source => self.source(source, &mut conditions, &[]),
                }
            }
            source => self.source(source, &mut conditions, &[]),
        };
        part.node = filter(part.node, conditions);
        part
    }

    /// Without views, which have no rows of their own.
    fn real_tables(&self) -> usize {
        self.tables.iter().filter(|table| !matches!(table.origin, Origin::View(_))).count()
    }

    fn owns(&self, tables: &[usize], place: usize) -> bool {
        tables.iter().any(|table| {
            let table = &self.tables[*table];
            (table.offset..table.offset + table.columns.len()).contains(&place)
        })
    }

    fn covers(&self, tables: &[usize], expr: &Expr) -> bool {
        columns(expr).into_iter().all(|place| self.owns(tables, place))
    }

    /// Takes out the conditions that can be looked at once these tables are read.
    fn ripe(&self, tables: &[usize], conditions: &mut Vec<Expr>) -> Vec<Expr> {
        let (ripe, rest) = std::mem::take(conditions).into_iter().partition(|condition| self.covers(tables, condition));
        *conditions = rest;
        ripe
    }

    fn source(&self, source: &Source, conditions: &mut Vec<Expr>, before: &[usize]) -> Part {
        match source {
            Source::Table(table) => self.leaf(*table, conditions, before, false),
            Source::Inner(items, on) => {
                conditions.extend(on.iter().cloned());
                self.inner(items, conditions, before)
            }
            Source::Left(left, right, on) => self.outer(left, right, on, conditions, before),
        }
    }

    fn choice(&self, at: usize, conditions: &[Expr], before: &[usize], wants_order: bool) -> Option<(Choice, bool)> {
        let table = &self.tables[at];
        let Origin::Base(base) = &table.origin else { return None };
        let is_bound = |place: usize| self.owns(before, place);
        let target = Target {
            table: base,
            offset: table.offset,
            is_bound: &is_bound,
            allowed: table.allowed.as_ref(),
            rows: self.sight.rows(table),
            formulas: indexed(base, table.offset),
            sight: self.sight,
        };
        let order = if wants_order { self.order } else { &[] };
        Some(target.choose(conditions, order, self.limited && wants_order && !self.order.is_empty()))
    }

    /// Of the rows that the choice finds, the share that the other conditions keep.
    fn kept(&self, conditions: &[Expr], choice: &Choice) -> f64 {
        let others = conditions.iter().enumerate().filter(|(at, _)| !choice.served.contains(at));
        others.map(|(_, condition)| self.sight.share(condition)).product()
    }

    fn leaf(&self, at: usize, conditions: &mut Vec<Expr>, before: &[usize], wants_order: bool) -> Part {
        let table = &self.tables[at];
        let with: Vec<usize> = before.iter().copied().chain([at]).collect();
        let ripe = self.ripe(&with, conditions);
        let (offset, width) = (table.offset, self.width);
        match &table.origin {
            Origin::Base(base) => {
                let (choice, ordered) =
                    self.choice(at, &ripe, before, wants_order).unwrap_or_else(|| unreachable!("a base table"));
                let needed: Vec<usize> = (0..base.columns.len()).filter(|column| self.used[offset + column]).collect();
                let needed = base.with_sources(needed);
                let kept = self.kept(&ripe, &choice);
                let (conditions, implied) = implied_first(ripe, &choice.implied);
                let mut access = choice.access;
                access.covering =
                    needed.is_empty() && access.index.is_some() && table.lock.is_none() && table.key_at.is_none();
                let scan = Scan {
                    table: base.clone(),
                    alias: table.alias.clone(),
                    offset,
                    width,
                    needed_after: needed.clone(),
                    needed,
                    key_at: table.key_at,
                    access,
                    conditions,
                    implied,
                    lock: table.lock,
                    output: None,
                    found: choice.rows,
                    estimate: choice.rows * kept,
                    cost: choice.cost,
                };
                Part {
                    node: Arc::new(Node::Scan(Box::new(scan))),
                    tables: vec![at],
                    rows: (choice.rows * kept).max(0.01),
                    ordered: ordered && wants_order,
                }
            }
            Origin::Derived { node } => {
                let alias = table.alias.clone();
                let columns = table.columns.iter().map(|column| column.name.clone()).collect();
                let derived = Arc::new(Node::Derived { input: node.clone(), alias, columns, offset, width });
                let rows =
                    self.sight.rows(table) * ripe.iter().map(|condition| self.sight.share(condition)).product::<f64>();
                Part { node: filter(derived, ripe), tables: vec![at], rows: rows.max(0.01), ordered: false }
            }
            Origin::View(_) => unreachable!("a view's tables are read, not the view"),
            Origin::Lateral { node, depth } => {
                let alias = table.alias.clone();
                let columns = table.columns.iter().map(|column| column.name.clone()).collect();
                let lateral = Node::Lateral { input: node.clone(), alias, columns, depth: *depth, offset, width };
                Part { node: filter(Arc::new(lateral), ripe), tables: vec![at], rows: 10.0, ordered: false }
            }
            Origin::System(system) => {
                let wanted = if keys::is_keys(system) { ripe.clone() } else { Vec::new() };
                let (lock, key_at) = (table.lock.filter(|_| keys::is_keys(system)), table.key_at);
                let node = Arc::new(Node::System { table: system, offset, width, wanted, lock, key_at });
                Part { node: filter(node, ripe), tables: vec![at], rows: ROWS, ordered: false }
            }
        }
    }

    /// About what one pass over the source reads, given the tables before.
    fn weight(&self, source: &Source, conditions: &[Expr], before: &[usize]) -> f64 {
        match source {
            Source::Table(at) => {
                let with: Vec<usize> = before.iter().copied().chain([*at]).collect();
                let ripe: Vec<Expr> =
                    conditions.iter().filter(|condition| self.covers(&with, condition)).cloned().collect();
                match self.choice(*at, &ripe, before, false) {
                    Some((choice, _)) => choice.rows * self.kept(&ripe, &choice),
                    None => self.sight.rows(&self.tables[*at]),
                }
            }
            Source::Inner(items, _) => items.iter().map(|item| self.weight(item, conditions, before)).product(),
            Source::Left(left, _, _) => self.weight(left, conditions, before) * 2.0,
        }
    }

    /// Does a condition tie the source to what is read already? What nothing ties comes last: each of its rows meets every row before.
    fn is_joined(&self, source: &Source, conditions: &[Expr], bound: &[usize]) -> bool {
        let mut own = Vec::new();
        tables_of(source, &mut own);
        let with: Vec<usize> = bound.iter().chain(&own).copied().collect();
        let ties = |condition: &Expr| {
            let places = columns(condition);
            places.iter().any(|place| self.owns(bound, *place)) && places.iter().any(|place| self.owns(&own, *place))
        };
        bound.is_empty() || conditions.iter().any(|condition| ties(condition) && self.covers(&with, condition))
    }

    /// Are the tables read that must be before those of the source?
    fn may_come(&self, source: &Source, bound: &[usize]) -> bool {
        let mut own = Vec::new();
        tables_of(source, &mut own);
        own.iter()
            .flat_map(|table| &self.tables[*table].after)
            .filter(|before| !matches!(self.tables[**before].origin, Origin::View(_)))
            .all(|before| bound.contains(before) || own.contains(before))
    }

    fn inner(&self, items: &[Source], conditions: &mut Vec<Expr>, before: &[usize]) -> Part {
        let mut rest: Vec<&Source> = items.iter().collect();
        let mut done: Option<Part> = None;
        while !rest.is_empty() {
            let mut bound = before.to_vec();
            bound.extend(done.iter().flat_map(|part| &part.tables));
            let weights: Vec<f64> = rest.iter().map(|item| self.weight(item, conditions, &bound)).collect();
            let rank = |item: &usize| (!self.is_joined(rest[*item], conditions, &bound), weights[*item]);
            let best = (0..rest.len())
                .filter(|item| self.may_come(rest[*item], &bound))
                .min_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(Ordering::Equal))
                .unwrap_or(0);
            let next = rest.remove(best);
            done = Some(match done {
                None => self.source(next, conditions, before),
                Some(left) => self.join(left, next, Vec::new(), conditions, before, JoinKind::Inner),
            });
        }
        done.unwrap_or_else(|| Part {
            node: Arc::new(Node::One { width: self.width }),
            tables: Vec::new(),
            rows: 1.0,
            ordered: false,
        })
    }

    fn outer(&self, left: &Source, right: &Source, on: &[Expr], conditions: &mut Vec<Expr>, before: &[usize]) -> Part {
        let left = self.source(left, conditions, before);
        self.join(left, right, on.to_vec(), conditions, before, JoinKind::Left)
    }

    /// Conditions of WHERE go to the right side of an inner join; of an outer join only what ON says.
    fn join(
        &self,
        left: Part,
        right: &Source,
        on: Vec<Expr>,
        conditions: &mut Vec<Expr>,
        before: &[usize],
        kind: JoinKind,
    ) -> Part {
        let mut bound = before.to_vec();
        bound.extend(&left.tables);
        let mut pool = if kind == JoinKind::Left { on } else { std::mem::take(conditions) };
        if let Some(part) = self.hash(&left, right, &mut pool, &bound, kind) {
            if kind == JoinKind::Inner {
                *conditions = pool;
            }
            return part;
        }
        let right = self.source(right, &mut pool, &bound);
        let (on, rest) = if kind == JoinKind::Left { (pool, Vec::new()) } else { (Vec::new(), pool) };
        if kind == JoinKind::Inner {
            *conditions = rest;
        }
        let fills = self.fills(&right.tables);
        let rows = left.rows * right.rows.max(if kind == JoinKind::Left { 1.0 } else { 0.0 });
        let tables = left.tables.iter().chain(&right.tables).copied().collect();
        Part {
            node: Arc::new(Node::Loop { left: left.node, right: right.node, kind, on, fills }),
            tables,
            rows,
            ordered: false,
        }
    }

    fn fills(&self, tables: &[usize]) -> Vec<(usize, usize)> {
        let of = |table: &ScopeTable| {
            (table.offset, table.offset + table.columns.len() + usize::from(table.key_at.is_some()))
        };
        tables.iter().map(|table| of(&self.tables[*table])).collect()
    }

    /// A hash join, where the right side is one table without a better way to its rows.
    fn hash(&self, left: &Part, right: &Source, pool: &mut Vec<Expr>, bound: &[usize], kind: JoinKind) -> Option<Part> {
        let Source::Table(at) = right else { return None };
        let is_locked = matches!(self.tables[*at].origin, Origin::System(_)) && self.tables[*at].lock.is_some();
        if is_locked || matches!(self.tables[*at].origin, Origin::Lateral { .. }) {
            return None;
        }
        // A key that is known from the left is read by itself.
        let by_key = |place: usize| keys::is_key(&self.tables[*at], place);
        let names_key = |condition: &Expr| {
            let Expr::Compare(compare) = condition else { return false };
            let sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)];
            compare.op == Comparison::Equal
                && sides.iter().any(|(mine, other)| {
                    matches!(mine, Expr::Column(place, _) if by_key(*place)) && self.covers(bound, other)
                })
        };
        if pool.iter().any(names_key) {
            return None;
        }
        let mut with = bound.to_vec();
        with.push(*at);
        let ripe: Vec<Expr> = pool.iter().filter(|condition| self.covers(&with, condition)).cloned().collect();
        if let Some((choice, _)) = self.choice(*at, &ripe, bound, false)
            && (!choice.access.equal.is_empty() || left.rows <= 1.5 || self.tables[*at].lock.is_some())
        {
            return None;
        }
        let (mut left_keys, mut right_keys, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for condition in &ripe {
            let Expr::Compare(compare) = condition else { continue };
            if compare.op != Comparison::Equal {
                continue;
            }
            for (mine, theirs) in [(&compare.left, &compare.right), (&compare.right, &compare.left)] {
                let is_theirs =
                    columns(theirs).iter().any(|place| self.owns(&[*at], *place)) && self.covers(&[*at], theirs);
                if is_theirs
                    && self.covers(bound, mine)
                    && let Some(ty) = key_type(mine, theirs, compare.domain)
                {
                    left_keys.push(mine.clone());
                    right_keys.push(theirs.clone());
                    types.push(ty);
                    break;
                }
            }
        }
        if types.is_empty() {
            return None;
        }
        // The right side is read on its own: with conditions on itself only.
        let mut own: Vec<Expr> = Vec::new();
        let mut on = Vec::new();
        for condition in std::mem::take(pool) {
            if !self.covers(&with, &condition) {
                pool.push(condition);
            } else if self.covers(&[*at], &condition) {
                own.push(condition);
            } else {
                on.push(condition);
            }
        }
        let part = self.leaf(*at, &mut own, &[], false);
        let right = filter(part.node, own);
        let fills = self.fills(&[*at]);
        let node = HashJoin {
            left: left.node.clone(),
            right,
            kind,
            left_keys,
            right_keys,
            types,
            on,
            fills,
            estimate: left.rows * 2.0,
        };
        let tables = left.tables.iter().copied().chain([*at]).collect();
        Some(Part { node: Arc::new(Node::Hash(node)), tables, rows: left.rows * 2.0, ordered: false })
    }
}

/// The implied conditions before the others, and how many they are.
fn implied_first(conditions: Vec<Expr>, implied: &[usize]) -> (Vec<Expr>, usize) {
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (at, condition) in conditions.into_iter().enumerate() {
        if implied.contains(&at) { first.push(condition) } else { others.push(condition) }
    }
    let count = first.len();
    first.append(&mut others);
    (first, count)
}

fn tables_of(source: &Source, out: &mut Vec<usize>) {
    match source {
        Source::Table(table) => out.push(*table),
        Source::Inner(items, _) => items.iter().for_each(|item| tables_of(item, out)),
        Source::Left(left, right, _) => {
            tables_of(left, out);
            tables_of(right, out);
        }
    }
}

pub fn filter(input: Arc<Node>, conditions: Vec<Expr>) -> Arc<Node> {
    if conditions.is_empty() { input } else { Arc::new(Node::Filter { input, conditions }) }
}

/// The type as whose keys both sides are equal exactly if the comparison says so.
pub fn key_type(a: &Expr, b: &Expr, domain: Domain) -> Option<Type> {
    let (a, b) = (a.ty(), b.ty());
    match domain {
        Domain::Integer if a.kind.is_integer() && b.kind.is_integer() && a.unsigned == b.unsigned => {
            Some(Type { unsigned: a.unsigned, ..Type::integer() })
        }
        Domain::Text(collation) if is_plain_text(&a) && is_plain_text(&b) => Some(Type::text(255, collation)),
        Domain::Decimal if a.kind == Kind::Decimal && b.kind == Kind::Decimal && a.scale == b.scale => Some(a),
        Domain::DateTime | Domain::Time if a.kind == b.kind => Some(a),
        Domain::Double if a.kind == Kind::Double && b.kind == Kind::Double => Some(Type::double()),
        _ => None,
    }
}

fn is_plain_text(ty: &Type) -> bool {
    ty.kind.is_text() && !matches!(ty.kind, Kind::Enum | Kind::Set)
}
