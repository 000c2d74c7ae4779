//! In which order the tables of an inner join are read, and how each is joined to those before: by what it is expected to cost.
//!
//! Every set of items has one number of rows, whatever the order in which it came about: the product of what is left of its tables, times the shares that the conditions between them keep. So
//! the best way to a set is the best way to one of its parts and a last step, and all sets are gone through from small to large (Selinger and others, 1979). Beyond `EXACT` items the cheapest next
//! step is taken each time. Only the left side of a step is a join; an item that nothing ties to those before comes when nothing else is left.

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

/// So many items are ordered by going through all their sets.
const EXACT: usize = 10;
/// More cannot be told from each other: they come as they are written.
const MOST: usize = 63;

/// How an item is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Opened anew for each row before it.
    Loop,
    /// Read once into a hash table.
    Hash,
}

/// What is to be joined: a table, a join of its own, or the other side of a semi-join.
struct Item<'s> {
    source: &'s Source,
    tables: Vec<usize>,
    /// Conditions of a semi-join; those of others are common to all.
    own: Option<&'s [Expr]>,
    /// Rows that its own conditions leave, and what reading them costs.
    rows: f64,
    cost: f64,
    /// Other items that a condition ties it to.
    ties: u64,
    /// Those that must come before.
    needs: u64,
    /// Its conditions make a hash table possible.
    hashes: bool,
    /// Of the rows before it, a semi-join keeps this share.
    share: Option<f64>,
    is_anti: bool,
}

/// Of a class of equal columns those of one item: which, and how many values they have.
struct Member {
    item: u64,
    distinct: f64,
}

/// A condition between items: which, and what share of pairs it keeps.
struct Tie {
    items: u64,
    share: f64,
}

struct Ordering<'o, 'p> {
    planner: &'o Planner<'p>,
    conditions: &'o [Expr],
    before: &'o [usize],
    items: Vec<Item<'o>>,
    ties: Vec<Tie>,
    classes: Vec<Vec<Member>>,
    /// What a step to an item costs for each row, given those of its neighbours that were read.
    known: RefCell<HashMap<(usize, u64), f64>>,
}

/// The items in their order, each with the way it is joined.
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
        // On its own: only conditions on itself.
        let mut mine: Vec<Expr> = own.unwrap_or(self.conditions).to_vec();
        mine.retain(|condition| planner.covers(&tables, condition));
        let alone = planner.source(inner, &mut mine, &[]);
        let (rows, cost) = (alone.rows.max(0.01), estimate(&alone.node).cost);
        Item { source: inner, tables, own, rows, cost, ties: 0, needs: 0, hashes: false, share: None, is_anti }
    }

    /// The items whose tables the expression reads.
    fn items_of(&self, expr: &Expr) -> u64 {
        let places = expr.columns();
        let reads = |item: &Item<'_>| places.iter().any(|place| self.planner.owns(&item.tables, *place));
        self.items.iter().enumerate().filter(|(_, item)| reads(item)).map(|(at, _)| 1 << at).sum()
    }

    /// The class's columns, one of each item: that of most values.
    fn members(&self, class: &Class) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for (place, ty) in &class.members {
            let column = Expr::Column(*place, ty.clone());
            let (item, distinct) = (self.items_of(&column), self.planner.sight.distinct(&column));
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
                // Of equalities that follow from each other only some count: `rows` sees to it.
                let is_of_class = classes.iter().any(|class| class.pair_of(condition).is_some());
                let share = if is_of_class { 1.0 } else { self.planner.sight.share(condition) };
                self.ties.push(Tie { items, share });
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
            .map(|condition| self.planner.sight.share(condition))
            .product();
        let share = (self.items[at].rows * pairs).clamp(0.0, 1.0);
        let item = &mut self.items[at];
        item.needs = needs | own_ties;
        item.share = Some(share);
    }

    fn bound(&self, set: u64) -> Vec<usize> {
        let items = self.items.iter().enumerate().filter(|(at, item)| set >> at & 1 == 1 && item.own.is_none());
        self.before.iter().copied().chain(items.flat_map(|(_, item)| item.tables.iter().copied())).collect()
    }

    /// About how many rows the join of a set has.
    fn rows(&self, set: u64) -> f64 {
        let mut rows = 1.0;
        for (_, item) in self.items.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1) {
            rows *= item.share.map_or(item.rows, |share| kept(share, item.is_anti));
        }
        for class in &self.classes {
            // Each further column has to meet one of those before: as two columns meet, by the one of more values.
            let members: Vec<f64> =
                class.iter().filter(|member| member.item & set != 0).map(|member| member.distinct).collect();
            rows /= members[..members.len().saturating_sub(1)].iter().product::<f64>();
        }
        let ties = self.ties.iter().filter(|tie| tie.items & !set == 0);
        (rows * ties.map(|tie| tie.share).product::<f64>()).max(0.01)
    }

    /// What opening the item costs for one row of the set.
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

    /// The cheaper way from a set to one with the item, and what it costs.
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

    /// Items that may follow a set: those that a condition ties to it, or else any that may.
    fn next(&self, set: u64) -> Vec<usize> {
        let may = |at: &usize| set >> at & 1 == 0 && self.items[*at].needs & !set == 0;
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
