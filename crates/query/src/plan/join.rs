//! Join planning: the order in which tables are read, and the join methods.
//!
//! `order` decides for inner joins; outer joins keep their sides. The right side of a join is either opened for each
//! left row, possibly through an index, or read once into a hash table. Semi-joins, which subqueries become
//! (`bind::semi_join`), are items of an inner join that come after the tables that they read.

use std::sync::Arc;

use crate::key;
use crate::nodes::comparison::{Comparator, Comparison, ComparisonType};
use crate::nodes::expr::Expr;
use crate::nodes::keyspace_table;
use crate::nodes::node::{HashJoin, JoinKind, Node, Scan, Stages};
use crate::nodes::relation::{Origin, ScopeTable, Source};
use crate::nodes::system_condition::is_key_condition;
use crate::nodes::walk::{has_subquery, is_volatile};
use crate::plan::access::Choice;
use crate::plan::constant_folding::folds;
use crate::plan::cost::kept;
use crate::plan::cost::{FOUND, HASH, OPEN, PROBE, ROWS};
use crate::plan::equivalence;
use crate::plan::estimate::{asking, estimate};
use crate::plan::generated::indexed;
use crate::plan::order::{Way, order};
use crate::plan::planner::{Part, Planner, tables_of};
use crate::plan::target::Target;
use crate::types::Type;

impl Planner<'_> {
    pub fn plan(&self, source: &Source, mut conditions: Vec<Expr>) -> Part {
        let mut part = match source {
            Source::Table(table) if self.real_tables() == 1 => self.leaf(*table, &mut conditions, &[], true),
            // A view over one table.
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

    /// Removes and returns the conditions that can be evaluated once these tables are read.
    fn ripe(&self, tables: &[usize], conditions: &mut Vec<Expr>) -> Vec<Expr> {
        let (ripe, rest) = std::mem::take(conditions).into_iter().partition(|condition| self.covers(tables, condition));
        *conditions = rest;
        ripe
    }

    pub(super) fn source(&self, source: &Source, conditions: &mut Vec<Expr>, before: &[usize]) -> Part {
        match source {
            Source::Table(table) => self.leaf(*table, conditions, before, false),
            Source::Inner(items, on) => {
                conditions.extend(on.iter().cloned());
                self.inner(items, conditions, before)
            }
            Source::Left(left, right, on) => self.outer(left, right, on, conditions, before),
            Source::Semi(inner, ..) => self.source(inner, conditions, before),
        }
    }

    pub(super) fn choice(
        &self,
        at: usize,
        conditions: &[Expr],
        before: &[usize],
        wants_order: bool,
    ) -> Option<(Choice, bool)> {
        let table = &self.tables[at];
        let Origin::Base(base) = &table.origin else { return None };
        let is_bound = |place: usize| self.owns(before, place);
        let reads_entries = table.lock.is_none() && table.key_at.is_none() && !base.computes;
        let used = |column: &usize| self.used[table.offset + column];
        let covers = |at: usize| {
            let index = &base.indexes[at];
            reads_entries && (0..base.columns.len()).filter(used).all(|column| key::shows(base, index, column))
        };
        let pushes = |at: usize, condition: &Expr| {
            let shows = |column: usize| column < base.columns.len() && key::shows(base, &base.indexes[at], column);
            reads_entries && is_shown(condition, table.offset, &shows)
        };
        let target = Target {
            table: base,
            offset: table.offset,
            is_bound: &is_bound,
            covers: &covers,
            pushes: &pushes,
            allowed: table.allowed.as_ref(),
            rows: self.estimates.rows(table),
            formulas: indexed(base, table.offset),
            estimates: self.estimates,
        };
        let order = if wants_order { self.order } else { &[] };
        Some(target.choose(conditions, order, self.limited && wants_order && !self.order.is_empty()))
    }

    /// Returns the selectivity of the other conditions upon the rows that the access path finds, as far as they count.
    fn kept(&self, conditions: &[Expr], choice: &Choice, counts: impl Fn(&Expr) -> bool) -> f64 {
        let is_other = |(at, condition): &(usize, &Expr)| !choice.served.contains(at) && counts(condition);
        let others = conditions.iter().enumerate().filter(is_other);
        others.map(|(_, condition)| self.estimates.selectivity(condition)).product()
    }

    /// Estimates the cost of subqueries in conditions, evaluated for the rows that the other conditions keep.
    pub(super) fn asking(&self, conditions: &[Expr], choice: &Choice) -> f64 {
        asking(conditions, choice.rows * self.kept(conditions, choice, |condition| !asks(condition)))
    }

    fn leaf(&self, at: usize, conditions: &mut Vec<Expr>, before: &[usize], wants_order: bool) -> Part {
        let table = &self.tables[at];
        let with: Vec<usize> = before.iter().copied().chain([at]).collect();
        let mut ripe = self.ripe(&with, conditions);
        self.list_values(at, &mut ripe);
        let (offset, width) = (table.offset, self.width);
        match &table.origin {
            Origin::Base(base) => {
                let (choice, ordered) =
                    self.choice(at, &ripe, before, wants_order).unwrap_or_else(|| unreachable!("a base table"));
                let needed: Vec<usize> = (0..base.columns.len()).filter(|column| self.used[offset + column]).collect();
                let needed = base.with_sources(needed);
                let kept = self.kept(&ripe, &choice, |_| true);
                let asking = self.asking(&ripe, &choice);
                let access = choice.access;
                let keeps_order = ordered && wants_order && !self.order.is_empty() && !access.is_point;
                // Computed columns read other columns.
                let index = access.index.filter(|_| !base.computes).map(|at| &base.indexes[at]);
                let shown = index.map(|index| key::shown(base, index)).unwrap_or_default();
                let shows = |column: usize| shown.iter().any(|shown| shown.column == column);
                // A scan that gives its row's key reads the row, and may be locking.
                let reads_row = table.lock.is_some() || table.key_at.is_some();
                let is_pushed = |condition: &Expr| !reads_row && is_shown(condition, offset, &shows);
                let (conditions, implied, pushed) = in_order(ripe, &choice.implied, is_pushed);
                let mut scan = Scan {
                    table: base.clone(),
                    alias: table.alias.clone(),
                    offset,
                    width,
                    places: None,
                    folds: !access.is_point && conditions.iter().any(|condition| folds(condition, choice.rows)),
                    stages: Stages::new(base, offset, &conditions, &needed),
                    stages_after: Stages::new(base, offset, &conditions[implied + pushed..], &needed),
                    needed_after: needed.clone(),
                    needed,
                    key_at: table.key_at,
                    access,
                    conditions,
                    implied,
                    pushed,
                    lock: table.lock,
                    shown,
                    keeps_order,
                    output: None,
                    found: choice.rows,
                    estimate: choice.rows * kept,
                    cost: choice.cost + asking,
                };
                scan.access.covering = scan.is_shown(&scan.needed);
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
                let rows = self.estimates.rows(table)
                    * ripe.iter().map(|condition| self.estimates.selectivity(condition)).product::<f64>();
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
                let is_wanted = |condition: &&Expr| system.is_keyspace() || is_key_condition(system, condition, offset);
                let wanted: Vec<Expr> = ripe.iter().filter(is_wanted).cloned().collect();
                let rows = if system.is_keyspace() || wanted.is_empty() { ROWS } else { FOUND };
                let (lock, key_at) = (table.lock.filter(|_| system.is_keyspace()), table.key_at);
                let node = Arc::new(Node::System { table: system, offset, width, wanted, lock, key_at });
                Part { node: filter(node, ripe), tables: vec![at], rows, ordered: false }
            }
        }
    }

    fn inner(&self, items: &[Source], conditions: &mut Vec<Expr>, before: &[usize]) -> Part {
        let mut classes = Vec::new();
        if items.len() > 1 {
            let mut own = Vec::new();
            items.iter().for_each(|item| tables_of(item, &mut own));
            conditions.extend(self.restrictions(&own, conditions));
            classes = equivalence::classes(conditions);
            own.extend(before);
            conditions.extend(self.conclusions(&classes, &own, conditions));
        }
        let order = order(self, items, (conditions, &classes), before);
        let steps = order.iter().map(|(at, _)| self.bound_by(&items[*at])).collect::<Vec<_>>();
        self.without_repeats(&classes, before, &steps, conditions);
        let mut done: Option<Part> = None;
        for (at, way) in order {
            done = Some(match (done, &items[at]) {
                (None, item) => self.source(item, conditions, before),
                (Some(left), Source::Semi(right, on, is_anti)) => {
                    let kind = if *is_anti { JoinKind::Anti } else { JoinKind::Semi };
                    self.join(left, right, (kind, way), on.clone(), conditions, before)
                }
                (Some(left), item) => self.join(left, item, (JoinKind::Inner, way), Vec::new(), conditions, before),
            });
        }
        done.unwrap_or_else(|| Part {
            node: Arc::new(Node::One { width: self.width }),
            tables: Vec::new(),
            rows: 1.0,
            ordered: false,
        })
    }

    /// Returns the tables whose columns are bound once the item is joined.
    fn bound_by(&self, item: &Source) -> Vec<usize> {
        let mut tables = Vec::new();
        if !matches!(item, Source::Semi(..)) {
            tables_of(item, &mut tables);
        }
        tables
    }

    fn outer(&self, left: &Source, right: &Source, on: &[Expr], conditions: &mut Vec<Expr>, before: &[usize]) -> Part {
        let left = self.source(left, conditions, before);
        let bound: Vec<usize> = before.iter().chain(&left.tables).copied().collect();
        let way = self.way(left.rows, right, on, &bound);
        self.join(left, right, (JoinKind::Left, way), on.to_vec(), conditions, before)
    }

    /// Returns the cheaper method of joining the right side to `left` rows.
    fn way(&self, left: f64, right: &Source, conditions: &[Expr], bound: &[usize]) -> Way {
        let mut own = Vec::new();
        tables_of(right, &mut own);
        // Both methods are planned; a large source only once.
        if left <= 1.5 || own.len() > 4 || !self.is_hashable(right, conditions, &own) {
            return Way::Loop;
        }
        let looped = self.source(right, &mut conditions.to_vec(), bound);
        let mut alone: Vec<Expr> =
            conditions.iter().filter(|condition| self.covers(&own, condition)).cloned().collect();
        let hashed = self.source(right, &mut alone, &[]);
        let hash_cost = estimate(&hashed.node).cost + hashed.rows * HASH + left * PROBE;
        if hash_cost < left * (OPEN + estimate(&looped.node).cost) { Way::Hash } else { Way::Loop }
    }

    /// Plans a join. Conditions of WHERE move into the right side of an inner join; of other joins, only those of the
    /// join itself.
    fn join(
        &self,
        left: Part,
        right: &Source,
        (kind, way): (JoinKind, Way),
        on: Vec<Expr>,
        conditions: &mut Vec<Expr>,
        before: &[usize],
    ) -> Part {
        let mut bound = before.to_vec();
        bound.extend(&left.tables);
        let mut pool = if kind == JoinKind::Inner { std::mem::take(conditions) } else { on };
        if way == Way::Hash
            && let Some(part) = self.hash(&left, right, &mut pool, &bound, kind)
        {
            if kind == JoinKind::Inner {
                *conditions = pool;
            }
            return part;
        }
        let mut right = self.source(right, &mut pool, &bound);
        let (on, rest) = if kind == JoinKind::Inner { (Vec::new(), pool) } else { (pool, Vec::new()) };
        if kind == JoinKind::Inner {
            *conditions = rest;
        }
        if matches!(kind, JoinKind::Semi | JoinKind::Anti)
            && let Some(Node::Scan(scan)) = Arc::get_mut(&mut right.node)
        {
            scan.narrow(on.iter());
        }
        let fills = self.fills(&right.tables);
        let rows = joined_rows(kind, left.rows, right.rows);
        let tables = tables_after(kind, &left, &right.tables);
        Part {
            node: Arc::new(Node::Loop { left: left.node, right: right.node, kind, on, fills }),
            tables,
            rows,
            ordered: false,
        }
    }

    fn fills(&self, tables: &[usize]) -> Vec<(usize, usize)> {
        let of = |table: &ScopeTable| {
            let columns = (table.offset, table.offset + table.columns.len());
            std::iter::once(columns).chain(table.key_at.map(|at| (at, at + 1)))
        };
        tables.iter().flat_map(|table| of(&self.tables[*table])).collect()
    }

    /// Returns whether the right side can be read independently into a hash table. An equality must tie it to other
    /// tables.
    pub(super) fn is_hashable(&self, right: &Source, conditions: &[Expr], own: &[usize]) -> bool {
        let is_odd = |at: &usize| {
            let table = &self.tables[*at];
            table.lock.is_some()
                || matches!(table.origin, Origin::Lateral { .. })
                    && !table.after.iter().all(|before| own.contains(before))
        };
        if own.iter().any(is_odd) {
            return false;
        }
        let is_elsewhere = |expr: &Expr| expr.columns().iter().all(|place| !self.owns(own, *place));
        if let Source::Table(at) = right
            && self.names_key(*at, conditions, &is_elsewhere)
        {
            return false;
        }
        conditions.iter().any(|condition| self.key(condition, own, &is_elsewhere).is_some())
    }

    /// Returns whether a Redis key is given by other tables, so that it is looked up directly.
    pub(super) fn names_key(&self, at: usize, conditions: &[Expr], is_known: &dyn Fn(&Expr) -> bool) -> bool {
        conditions.iter().any(|condition| {
            let Expr::Compare(compare) = condition else { return false };
            let sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)];
            let is_key = |mine: &Expr| matches!(mine, Expr::Column(place, _) if keyspace_table::is_key(&self.tables[at], *place));
            compare.op == Comparison::Equal && sides.iter().any(|(mine, other)| is_key(mine) && is_known(other))
        })
    }

    /// Returns the condition as an equality of keys: the other side's, this side's, and their type.
    fn key<'e>(
        &self,
        condition: &'e Expr,
        own: &[usize],
        is_theirs: &dyn Fn(&Expr) -> bool,
    ) -> Option<(&'e Expr, &'e Expr, Type)> {
        let Expr::Compare(compare) = condition else { return None };
        if compare.op != Comparison::Equal {
            return None;
        }
        let sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)];
        sides.into_iter().find_map(|(theirs, mine)| {
            let is_mine = !mine.columns().is_empty() && !theirs.columns().is_empty() && self.covers(own, mine);
            let fits = is_mine && is_theirs(theirs) && !is_volatile(theirs) && !is_volatile(mine);
            if fits { Some((theirs, mine, compare.by.hash_type(&theirs.ty(), &mine.ty())?)) } else { None }
        })
    }

    /// Plans a hash join, if an equality ties the right side to the left.
    fn hash(&self, left: &Part, right: &Source, pool: &mut Vec<Expr>, bound: &[usize], kind: JoinKind) -> Option<Part> {
        let mut tables = Vec::new();
        tables_of(right, &mut tables);
        let is_theirs = |expr: &Expr| self.covers(bound, expr);
        let (mut left_keys, mut right_keys, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for condition in pool.iter() {
            if let Some((theirs, mine, ty)) = self.key(condition, &tables, &is_theirs) {
                left_keys.push(theirs.clone());
                right_keys.push(mine.clone());
                types.push(ty);
            }
        }
        if types.is_empty() {
            return None;
        }
        // The right side is read independently, with conditions on itself only.
        let with: Vec<usize> = bound.iter().chain(&tables).copied().collect();
        let (mut own, mut on, mut selectivity) = (Vec::new(), Vec::new(), 1.0);
        for condition in std::mem::take(pool) {
            if !self.covers(&with, &condition) {
                pool.push(condition);
            } else if self.covers(&tables, &condition) {
                own.push(condition);
            } else {
                selectivity *= self.estimates.selectivity(&condition);
                if self.key(&condition, &tables, &is_theirs).is_none() {
                    on.push(condition);
                }
            }
        }
        let part = self.source(right, &mut own, &[]);
        let right = filter(part.node, own);
        let rows = joined_rows(kind, left.rows, part.rows * selectivity);
        let (fills, tables) = (self.fills(&part.tables), tables_after(kind, left, &part.tables));
        let (left, estimate) = (left.node.clone(), rows);
        // If the keys alone decide, no other column of the right side is used.
        let is_decided = on.is_empty() && matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let asked = fills.iter().flat_map(|(from, to)| *from..*to).filter(|place| !is_decided && self.used[*place]);
        let kept = asked.collect();
        let node = HashJoin { left, right, kind, left_keys, right_keys, types, on, fills, kept, estimate };
        Some(Part { node: Arc::new(Node::Hash(node)), tables, rows, ordered: false })
    }
}

/// Estimates the rows of a join whose right side has `each` rows for each left row.
fn joined_rows(kind: JoinKind, left: f64, each: f64) -> f64 {
    match kind {
        JoinKind::Inner => left * each,
        JoinKind::Left => left * each.max(1.0),
        JoinKind::Semi => left * kept(each.min(1.0), false),
        JoinKind::Anti => left * kept(each.min(1.0), true),
    }
}

/// Returns the tables in the rows of a join.
fn tables_after(kind: JoinKind, left: &Part, right: &[usize]) -> Vec<usize> {
    let right = if matches!(kind, JoinKind::Semi | JoinKind::Anti) { &[] } else { right };
    left.tables.iter().chain(right).copied().collect()
}

/// Sorts conditions: the implied ones, those pushed into the index, the others, and last those with subqueries. Returns
/// the numbers of the first two.
fn in_order(conditions: Vec<Expr>, implied: &[usize], is_pushed: impl Fn(&Expr) -> bool) -> (Vec<Expr>, usize, usize) {
    let (mut first, mut pushed, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (at, condition) in conditions.into_iter().enumerate() {
        match () {
            () if implied.contains(&at) => first.push(condition),
            () if is_pushed(&condition) => pushed.push(condition),
            () => others.push(condition),
        }
    }
    others.chunk_by_mut(|a, b| rank(a).is_some() && rank(b).is_some()).for_each(|plain| plain.sort_by_key(rank));
    others.sort_by_key(asks);
    let counts = (first.len(), pushed.len());
    first.append(&mut pushed);
    first.append(&mut others);
    (first, counts.0, counts.1)
}

/// Returns how dear a comparison of columns with each other or with constants is, since conditions that cannot fail may
/// be evaluated in any order: numbers before texts, one candidate before several. `None`: it may fail.
fn rank(condition: &Expr) -> Option<u8> {
    // A text that is compared as a number or as a time may not be one.
    let fits = |side: &Expr, by: &Comparator| {
        let is_text = side.carried().is_none_or(|ty| ty.storage.is_string());
        is_text == matches!(by.ty, ComparisonType::Text(_) | ComparisonType::Bytes)
    };
    let (by, sides, step) = match condition {
        Expr::Compare(node) => (vec![node.by], vec![&node.left, &node.right], 0),
        Expr::Between(node) => (vec![node.low_by, node.high_by], vec![&node.needle, &node.low, &node.high], 0),
        Expr::In(node) => {
            let sides = std::iter::once(&node.needle).chain(node.list.iter().map(|(candidate, _)| candidate));
            (node.list.iter().map(|(_, by)| *by).collect(), sides.collect(), 1)
        }
        _ => return None,
    };
    let is_plain = |side: &Expr| matches!(side, Expr::Column(..)) || side.is_constant();
    if !sides.into_iter().all(|side| is_plain(side) && by.iter().all(|by| fits(side, by))) {
        return None;
    }
    let dear = |by: Comparator| match by.ty {
        ComparisonType::Integer | ComparisonType::Double | ComparisonType::DateTime | ComparisonType::Time => Some(0),
        ComparisonType::Decimal => Some(2),
        ComparisonType::Text(_) | ComparisonType::Bytes => Some(4),
        ComparisonType::Json | ComparisonType::Dynamic => None,
    };
    by.into_iter().try_fold(step, |rank, by| Some(rank.max(dear(by)? + step)))
}

/// Returns whether the condition reads only columns of index entries and is deterministic.
fn is_shown(condition: &Expr, offset: usize, shows: &dyn Fn(usize) -> bool) -> bool {
    let read = condition.columns();
    let is_column = |place: &usize| place.checked_sub(offset).is_some_and(shows);
    !read.is_empty() && read.iter().all(is_column) && !has_subquery(condition) && !is_volatile(condition)
}

/// Returns whether the condition has a subquery that depends on the row.
fn asks(condition: &Expr) -> bool {
    let mut asks = false;
    condition.walk(&mut |expr| {
        asks |= expr.subquery().is_some_and(|query| query.is_correlated);
    });
    asks
}

pub fn filter(input: Arc<Node>, mut conditions: Vec<Expr>) -> Arc<Node> {
    conditions.sort_by_key(asks);
    if conditions.is_empty() { input } else { Arc::new(Node::Filter { input, conditions }) }
}
