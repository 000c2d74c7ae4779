//! Join order: chooses by cost the order of the tables of an inner join, and the method of each join.
//!
//! A set of items has the same number of rows in every order: the product of the filtered rows of its tables and the
//! selectivities of the conditions between them. So the best plan of a set is the best plan of a subset plus one step,
//! and all sets are enumerated by size (dynamic programming, Selinger and others, 1979). Beyond `EXACT` items the
//! cheapest next step is chosen greedily. Plans are left-deep; an item without a join condition to those before comes
//! last.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::nodes::expr::Expr;
use crate::nodes::relation::{Origin, Source};
use crate::plan::access::Choice;
use crate::plan::cost::kept;
use crate::plan::cost::{HASH, KEPT_EQUAL, LOOKUP, OPEN, PROBE, RANGE, STEP};
use crate::plan::equivalence::Class;
use crate::plan::estimate::estimate;
use crate::plan::planner::{Planner, tables_of};

/// The most items that are ordered by enumerating all sets.
const EXACT: usize = 10;
/// The most items in a set; more are joined in the order of the text.
const MOST: usize = 63;

/// The method by which an item is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nested loop: opened for each row before it.
    Loop,
    /// Read once into a hash table.
    Hash,
}

/// An item of the join: a table, a join of its own, or the right side of a semi-join.
struct Item<'s> {
    source: &'s Source,
    tables: Vec<usize>,
    /// The conditions of a semi-join; all others are in a common pool.
    own: Option<&'s [Expr]>,
    /// The number of rows that its own conditions keep, and the cost of reading them.
    rows: f64,
    cost: f64,
    /// The items that a condition ties it to.
    ties: u64,
    /// The items that must come before.
    needs: u64,
    /// Its conditions allow a hash join.
    hashes: bool,
    /// The fraction of rows that a semi-join keeps.
    selectivity: Option<f64>,
    is_anti: bool,
}

/// The column of an item in an equivalence class, and its number of distinct values.
struct Member {
    item: u64,
    distinct: f64,
}

/// A condition between items, and its selectivity over their pairs.
struct Tie {
    items: u64,
    selectivity: f64,
}

struct Ordering<'o, 'p> {
    planner: &'o Planner<'p>,
    conditions: &'o [Expr],
    before: &'o [usize],
    items: Vec<Item<'o>>,
    ties: Vec<Tie>,
    classes: Vec<Vec<Member>>,
    /// The cost of a step to an item per row, by the neighbours that were read.
    known: RefCell<HashMap<(usize, u64), f64>>,
}

/// Returns the items in order, each with its join method.
pub fn order(
    planner: &Planner<'_>,
    sources: &[Source],
    (conditions, classes): (&[Expr], &[Class]),
    before: &[usize],
) -> Vec<(usize, Way)> {
    if sources.len() < 2 || sources.len() > MOST {
        return (0..sources.len()).map(|at| (at, Way::Loop)).collect();
    }
    let ordering = Ordering::new(planner, sources, (conditions, classes), before);
    if sources.len() <= EXACT { ordering.exact() } else { ordering.greedy() }
}

impl<'o, 'p> Ordering<'o, 'p> {
    fn new(
        planner: &'o Planner<'p>,
        sources: &'o [Source],
        (conditions, classes): (&'o [Expr], &[Class]),
        before: &'o [usize],
    ) -> Self {
        let (items, ties, known) = (Vec::new(), Vec::new(), RefCell::default());
        let mut ordering = Ordering { planner, conditions, before, items, ties, classes: Vec::new(), known };
        ordering.items = sources.iter().map(|source| ordering.item(source)).collect();
        ordering.tie(conditions, classes);
        ordering.classes = classes.iter().map(|class| ordering.members(class)).collect();
        for at in 0..ordering.items.len() {
            ordering.need(at);
        }
        ordering
    }

    fn item(&self, source: &'o Source) -> Item<'o> {
        let planner = self.planner;
        let mut tables = Vec::new();
        tables_of(source, &mut tables);
        let (inner, own, is_anti) = match source {
            Source::Semi(inner, on, is_anti) => (&**inner, Some(&on[..]), *is_anti),
            source => (source, None, false),
        };
        // Read independently: only conditions on itself.
        let mut mine: Vec<Expr> = own.unwrap_or(self.conditions).to_vec();
        mine.retain(|condition| planner.covers(&tables, condition));
        let alone = planner.source(inner, &mut mine, &[]);
        let (rows, cost) = (alone.rows.max(0.01), estimate(&alone.node).cost);
        Item { source: inner, tables, own, rows, cost, ties: 0, needs: 0, hashes: false, selectivity: None, is_anti }
    }

    /// Returns the items whose tables the expression reads.
    fn items_of(&self, expr: &Expr) -> u64 {
        let places = expr.columns();
        let reads = |item: &Item<'_>| places.iter().any(|place| self.planner.owns(&item.tables, *place));
        self.items.iter().enumerate().filter(|(_, item)| reads(item)).map(|(at, _)| 1 << at).sum()
    }

    /// Returns the class's columns, one for each item: the one with the most distinct values.
    fn members(&self, class: &Class) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for (place, ty) in &class.members {
            let column = Expr::Column(*place, ty.clone());
            let (item, distinct) = (self.items_of(&column), self.planner.estimates.distinct(&column));
            let distinct = distinct.unwrap_or(1.0 / KEPT_EQUAL);
            match members.iter_mut().find(|member| member.item == item) {
                Some(member) => member.distinct = member.distinct.max(distinct),
                None if item.count_ones() == 1 => members.push(Member { item, distinct }),
                None => {}
            }
        }
        members.sort_by(|a, b| b.distinct.total_cmp(&a.distinct));
        members
    }

    fn tie(&mut self, conditions: &[Expr], classes: &[Class]) {
        for condition in conditions {
            let items = self.items_of(condition);
            if items.count_ones() > 1 {
                // Implied equalities do not count again; `rows` handles classes.
                let is_of_class = classes.iter().any(|class| class.pair_of(condition).is_some());
                let selectivity = if is_of_class { 1.0 } else { self.planner.estimates.selectivity(condition) };
                self.ties.push(Tie { items, selectivity });
            }
        }
        for at in 0..self.items.len() {
            let ties = self.ties.iter().filter(|tie| tie.items >> at & 1 == 1).fold(0, |all, tie| all | tie.items);
            let own = self.items[at].own.map_or(self.conditions, |own| own);
            let own_ties = match self.items[at].own {
                Some(own) => own.iter().fold(0, |all, condition| all | self.items_of(condition)),
                None => 0,
            };
            let hashes = self.planner.is_hashable(self.items[at].source, own, &self.items[at].tables);
            let item = &mut self.items[at];
            (item.ties, item.hashes) = ((ties | own_ties) & !(1 << at), hashes);
        }
    }

    fn need(&mut self, at: usize) {
        let tables = &self.planner.tables;
        let after: Vec<usize> = self.items[at]
            .tables
            .iter()
            .flat_map(|table| &tables[*table].after)
            .filter(|before| !matches!(tables[**before].origin, Origin::View(_)))
            .copied()
            .collect();
        let has = |item: &Item<'_>| after.iter().any(|table| item.tables.contains(table));
        let needs: u64 = (0..self.items.len())
            .filter(|other| *other != at && has(&self.items[*other]))
            .map(|other| 1 << other)
            .sum();
        let Some(own) = self.items[at].own else {
            self.items[at].needs = needs;
            return;
        };
        let own_ties = own.iter().fold(0, |all, condition| all | self.items_of(condition)) & !(1 << at);
        let pairs: f64 = own
            .iter()
            .filter(|condition| !self.planner.covers(&self.items[at].tables, condition))
            .map(|condition| self.planner.estimates.selectivity(condition))
            .product();
        let selectivity = (self.items[at].rows * pairs).clamp(0.0, 1.0);
        let item = &mut self.items[at];
        item.needs = needs | own_ties;
        item.selectivity = Some(selectivity);
    }

    fn bound(&self, set: u64) -> Vec<usize> {
        let items = self.items.iter().enumerate().filter(|(at, item)| set >> at & 1 == 1 && item.own.is_none());
        self.before.iter().copied().chain(items.flat_map(|(_, item)| item.tables.iter().copied())).collect()
    }

    /// Estimates the number of rows of the join of a set.
    fn rows(&self, set: u64) -> f64 {
        let mut rows = 1.0;
        for (_, item) in self.items.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1) {
            rows *= item.selectivity.map_or(item.rows, |selectivity| kept(selectivity, item.is_anti));
        }
        for class in &self.classes {
            // Each further column must match one before; as with two columns, the larger number of distinct values
            // counts.
            let members: Vec<f64> =
                class.iter().filter(|member| member.item & set != 0).map(|member| member.distinct).collect();
            rows /= members[..members.len().saturating_sub(1)].iter().product::<f64>();
        }
        let ties = self.ties.iter().filter(|tie| tie.items & !set == 0);
        (rows * ties.map(|tie| tie.selectivity).product::<f64>()).max(0.01)
    }

    /// Estimates the cost of opening the item for one row of the set.
    fn each(&self, at: usize, set: u64) -> f64 {
        let item = &self.items[at];
        let key = (at, set & item.ties);
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let bound = self.bound(set & (item.ties | item.needs));
        let mut conditions = item.own.unwrap_or(self.conditions).to_vec();
        let each = match item.source {
            Source::Table(table) => {
                let with: Vec<usize> = bound.iter().copied().chain([*table]).collect();
                conditions.retain(|condition| self.planner.covers(&with, condition));
                let choice: Option<(Choice, bool)> = self.planner.choice(*table, &conditions, &bound, false);
                let is_known = |expr: &Expr| self.planner.covers(&bound, expr);
                match choice {
                    Some((choice, _)) => choice.cost + self.planner.asking(&conditions, &choice),
                    None if self.planner.names_key(*table, &conditions, &is_known) => RANGE + LOOKUP,
                    None => item.cost,
                }
            }
            source => estimate(&self.planner.source(source, &mut conditions, &bound).node).cost,
        };
        self.known.borrow_mut().insert(key, each);
        each
    }

    /// Returns the cost and method of the cheaper step from a set to one with the item.
    fn step(&self, at: usize, set: u64, left: f64) -> (f64, Way) {
        let item = &self.items[at];
        let looped = left * (OPEN + self.each(at, set));
        let hashed = item.cost + item.rows * HASH + left * PROBE;
        let may_hash = item.hashes && set & item.ties != 0;
        if may_hash && hashed < looped && left > 1.5 { (hashed, Way::Hash) } else { (looped, Way::Loop) }
    }

    fn first(&self, at: usize) -> f64 {
        if self.before.is_empty() { self.items[at].cost } else { self.each(at, 0) }
    }

    /// Returns the items that may follow a set: those that a condition ties to it, or else any.
    fn next(&self, set: u64) -> Vec<usize> {
        // A semi-join keeps or drops rows of others, even if its conditions read none of them.
        let begins = |item: &Item<'_>| set != 0 || item.own.is_none();
        let may = |at: &usize| set >> at & 1 == 0 && self.items[*at].needs & !set == 0 && begins(&self.items[*at]);
        let all: Vec<usize> = (0..self.items.len()).filter(may).collect();
        let tied: Vec<usize> = all.iter().copied().filter(|at| self.items[*at].ties & set != 0).collect();
        if set == 0 || tied.is_empty() { all } else { tied }
    }

    fn exact(&self) -> Vec<(usize, Way)> {
        let full = (1u64 << self.items.len()) - 1;
        let mut best: Vec<Option<(f64, usize, Way)>> = vec![None; full as usize + 1];
        for set in 0..full {
            let cost = match (set, best[set as usize]) {
                (0, _) => 0.0,
                (_, Some((cost, ..))) => cost,
                (_, None) => continue,
            };
            let left = if set == 0 { 1.0 } else { self.rows(set) };
            for at in self.next(set) {
                let more = set | 1 << at;
                let (step, way) = if set == 0 { (self.first(at), Way::Loop) } else { self.step(at, set, left) };
                let cost = cost + step + self.rows(more) * STEP;
                if best[more as usize].is_none_or(|(known, ..)| cost < known) {
                    best[more as usize] = Some((cost, at, way));
                }
            }
        }
        let (mut order, mut set) = (Vec::new(), full);
        while set != 0 {
            let Some((_, at, way)) = best[set as usize] else { return self.greedy() };
            order.push((at, way));
            set &= !(1 << at);
        }
        order.reverse();
        order
    }

    fn greedy(&self) -> Vec<(usize, Way)> {
        let (mut order, mut set, mut left) = (Vec::new(), 0u64, 1.0);
        while order.len() < self.items.len() {
            let cost = |at: &usize| {
                let (step, way) = if set == 0 { (self.first(*at), Way::Loop) } else { self.step(*at, set, left) };
                (step + self.rows(set | 1 << at), way)
            };
            let steps = self.next(set).into_iter().map(|at| (at, cost(&at)));
            let Some((at, (_, way))) = steps.min_by(|a, b| a.1.0.total_cmp(&b.1.0)) else { break };
            order.push((at, way));
            set |= 1 << at;
            left = self.rows(set);
        }
        let rest: Vec<usize> = (0..self.items.len()).filter(|at| set >> at & 1 == 0).collect();
        order.extend(rest.into_iter().map(|at| (at, Way::Loop)));
        order
    }
}
