//! Semi-joins: `x IN (SELECT ...)`, `EXISTS (...)` and their negations in WHERE become joins.
//!
//! A query block with only tables and conditions is kept beside its plan (`Plain`). Where a condition tests it for a
//! match, its tables move into the enclosing block: their columns get places behind the existing ones, outer references
//! become plain columns, and the planner orders the semi-join like other joins. Hard part: NULL. NOT IN may become an
//! antijoin only if neither side can be NULL; NOT EXISTS always may, and so may IN where UNKNOWN counts as FALSE.
//!
//! If no row has two matches (`unique_semi_join`), the tables join as an inner join, which may start at either side.

use std::sync::Arc;

use crate::block::unique_semi_join::single;
use crate::block::{QueryBlock, TABLES_MAX};
use crate::nodes::expr::Expr;
use crate::nodes::node::AggregateCall;
use crate::nodes::relation::{Origin, ScopeTable, Source};
use crate::nodes::subquery::{Plain, Question, Subquery};
use crate::nodes::walk::{is_volatile, looks_around};

/// The tables of a block that is being bound, and the places of its wide rows.
pub struct BlockTables<'s> {
    pub tables: &'s mut Vec<ScopeTable>,
    pub width: &'s mut usize,
    /// The places that an expression reads.
    pub used: &'s mut Vec<bool>,
}

/// Returns the block if it can be merged into another.
pub fn plain(block: &QueryBlock, calls: &[AggregateCall], exprs: &[Expr]) -> Option<Arc<Plain>> {
    let may_move = |table: &ScopeTable| {
        let is_movable = match &table.origin {
            Origin::Derived { node } => !looks_around(node),
            Origin::Lateral { .. } | Origin::System(_) => false,
            Origin::Base(_) | Origin::View(_) => true,
        };
        is_movable && table.lock.is_none() && table.key_at.is_none()
    };
    let has_table = !block.tables.is_empty();
    if !has_table || !block.tables.iter().all(may_move) || block.conditions.iter().any(is_volatile) {
        return None;
    }
    Some(Arc::new(Plain {
        tables: block.tables.clone(),
        source: block.source.clone(),
        conditions: block.conditions.clone(),
        used: block.used.clone(),
        calls: calls.to_vec(),
        exprs: exprs.to_vec(),
    }))
}

/// A block being moved into an enclosing block.
struct Move {
    /// The enclosing block's depth, and the ends of its places and tables.
    depth: usize,
    places: usize,
    tables: usize,
    fails: bool,
}

impl Move {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let mut moved = expr.clone();
        moved.rewrite(&mut |expr| match expr {
            Expr::Column(place, _) => *place += self.places,
            Expr::Outer { depth, at, ty } if *depth == self.depth => *expr = Expr::Column(*at, ty.clone()),
            Expr::Outer { .. } => {}
            // An uncorrelated subquery can move unchanged.
            Expr::Subquery(query, ty) if !query.is_correlated => {
                let moved = query.with_needles(|needle| self.expr(needle));
                *expr = Expr::Subquery(Arc::new(moved), ty.clone());
            }
            other => self.fails |= other.reads_outside(),
        });
        moved
    }

    fn exprs(&mut self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn source(&mut self, source: &Source) -> Source {
        match source {
            Source::Table(at) => Source::Table(at + self.tables),
            Source::Inner(items, on) => {
                let items = items.iter().map(|item| self.source(item)).collect();
                Source::Inner(items, self.exprs(on))
            }
            Source::Left(left, right, on) => {
                let (left, right) = (self.source(left), self.source(right));
                Source::Left(Box::new(left), Box::new(right), self.exprs(on))
            }
            Source::Semi(inner, on, is_anti) => Source::Semi(Box::new(self.source(inner)), self.exprs(on), *is_anti),
        }
    }
}

/// Replaces conditions that test a subquery for a match, or for none, by joins in FROM.
pub fn pull(scope: &mut BlockTables<'_>, depth: usize, source: Source, conditions: &mut Vec<Expr>) -> Source {
    let has_table = |table: &ScopeTable| !matches!(table.origin, Origin::View(_));
    if !scope.tables.iter().any(has_table) || scope.tables.iter().any(|table| table.lock.is_some()) {
        return source;
    }
    let mut pulled = Pulled::default();
    conditions.retain(|condition| {
        let semi = asked(condition).and_then(|(query, is_anti)| semi(scope, depth, query, is_anti));
        let stays = semi.is_none();
        if let Some(semi) = semi {
            pulled.items.extend(semi.items);
            pulled.on.extend(semi.on);
        }
        stays
    });
    if pulled.items.is_empty() {
        return source;
    }
    let (mut items, mut on) = match source {
        Source::Inner(items, on) => (items, on),
        source => (vec![source], Vec::new()),
    };
    items.append(&mut pulled.items);
    on.append(&mut pulled.on);
    Source::Inner(items, on)
}

/// A pulled-up subquery: a semi-join, or tables and conditions of an inner join.
#[derive(Default)]
struct Pulled {
    items: Vec<Source>,
    on: Vec<Expr>,
}

/// Returns the subquery of a condition, and whether it is negated.
fn asked(condition: &Expr) -> Option<(&Subquery, bool)> {
    match condition {
        Expr::Subquery(query, _) => Some((query, false)),
        Expr::Not(inner) => inner.subquery().map(|query| (&**query, true)),
        _ => None,
    }
}

fn semi(scope: &mut BlockTables<'_>, depth: usize, query: &Subquery, is_anti: bool) -> Option<Pulled> {
    let plain = query.plain.as_ref().filter(|plain| query.depth == depth && plain.calls.is_empty())?;
    if scope.tables.len() + plain.tables.len() > TABLES_MAX {
        return None;
    }
    let (places, tables) = (*scope.width, scope.tables.len());
    let mut moving = Move { depth, places, tables, fails: false };
    let mut on = moving.exprs(&plain.conditions);
    match &query.question {
        Question::Exists => {}
        Question::Some { needles, test, keys } => {
            // A comparison that has no hash keys stays a subquery over its materialized rows.
            if keys.is_none() && !query.is_correlated {
                return None;
            }
            let given = plain.exprs.get(..needles.len())?;
            // If neither side is nullable, the result is never UNKNOWN.
            let are_solid = needles.iter().all(|expr| is_solid(scope.tables, expr))
                && given.iter().all(|expr| is_solid(&plain.tables, expr));
            let selected = moving.exprs(given);
            if (is_anti && !are_solid) || needles.iter().chain(&selected).any(is_volatile) {
                return None;
            }
            let mut test = test.clone();
            test.rewrite(&mut |expr| {
                if let Expr::Column(at, _) = expr {
                    *expr = match needles.get(*at) {
                        Some(needle) => needle.clone(),
                        None => selected[*at - needles.len()].clone(),
                    };
                }
            });
            crate::nodes::walk::conjuncts(test, &mut on);
        }
        Question::Value | Question::All { .. } | Question::Row { .. } => return None,
    }
    let source = moving.source(&plain.source);
    // An uncorrelated subquery is evaluated once.
    let looks_around = |expr: &Expr| expr.columns().iter().any(|place| *place < places);
    if moving.fails || !on.iter().any(looks_around) || inner_looks_around(&source, places) {
        return None;
    }
    for table in &plain.tables {
        let mut table = table.clone();
        table.offset += places;
        table.after.iter_mut().for_each(|at| *at += tables);
        scope.tables.push(table);
    }
    *scope.width += plain.used.len();
    scope.used.resize(*scope.width, false);
    // The subquery's select list is not needed: only its conditions determine the columns read.
    reads(&source, &mut |expr| expr.columns().into_iter().for_each(|place| scope.used[place] = true));
    on.iter().flat_map(Expr::columns).for_each(|place| scope.used[place] = true);
    let pulled = if is_anti { None } else { single(scope.tables, places, &source, &on) };
    Some(match pulled {
        Some((items, on)) => Pulled { items, on },
        None => Pulled { items: vec![Source::Semi(Box::new(source), on, is_anti)], on: Vec::new() },
    })
}

/// Visits every condition of a FROM.
pub(super) fn reads(source: &Source, visit: &mut dyn FnMut(&Expr)) {
    match source {
        Source::Table(_) => {}
        Source::Inner(items, on) => {
            on.iter().for_each(&mut *visit);
            items.iter().for_each(|item| reads(item, visit));
        }
        Source::Left(left, right, on) => {
            on.iter().for_each(&mut *visit);
            reads(left, visit);
            reads(right, visit);
        }
        Source::Semi(inner, on, _) => {
            on.iter().for_each(&mut *visit);
            reads(inner, visit);
        }
    }
}

/// Returns whether the value is never NULL: a literal, or a NOT NULL column of a stored table outside outer joins.
fn is_solid(tables: &[ScopeTable], expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Column(place, ty) => {
            let is_its = |table: &&ScopeTable| (table.offset..table.offset + table.columns.len()).contains(place);
            let table = tables.iter().find(is_its);
            !ty.nullable && table.is_some_and(|table| matches!(table.origin, Origin::Base(_)) && !table.nullable)
        }
        _ => false,
    }
}

/// Returns whether a condition in the subquery's FROM refers to the enclosing block. Then the FROM cannot be read by
/// itself.
fn inner_looks_around(source: &Source, places: usize) -> bool {
    let looks = |on: &[Expr]| on.iter().flat_map(Expr::columns).any(|place| place < places);
    match source {
        Source::Table(_) => false,
        Source::Inner(items, on) => looks(on) || items.iter().any(|item| inner_looks_around(item, places)),
        Source::Left(left, right, on) => {
            looks(on) || inner_looks_around(left, places) || inner_looks_around(right, places)
        }
        Source::Semi(inner, on, _) => looks(on) || inner_looks_around(inner, places),
    }
}
