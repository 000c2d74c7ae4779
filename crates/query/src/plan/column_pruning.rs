//! Column pruning: removes unused columns from the rows of joins.
//!
//! While a block is bound and planned, its wide row has a slot for every column of every table, and names, statistics
//! and conditions refer to these slots. A join builds such a row for each match. So once the plan is chosen, unused
//! slots are removed and the remaining ones renumbered. Hard part: every reference to a slot must be found. The
//! expressions in the joins' nodes and in the nodes directly above them are rewritten. A block that is read from
//! within, by a correlated subquery or a LATERAL table, is left as it is.
//!
//! Keeps QU-18.

use std::sync::Arc;

use crate::nodes::expr::Expr;
use crate::nodes::function::SessionUse;
use crate::nodes::node::{Node, Scan};

/// Removes the slots that are not `used` from the rows of a join. `above` are the expressions over these rows.
pub fn pack(node: &mut Arc<Node>, used: &[bool], mut above: Vec<&mut Expr>) {
    if matches!(&**node, Node::Scan(_)) {
        return;
    }
    let mut kept = vec![false; used.len()];
    let may_pack = survey(node, used, &mut kept).is_some() && above.iter().all(|expr| can_move(expr));
    if !may_pack || kept.iter().all(|kept| *kept) {
        return;
    }
    let packing = Packing::new(&kept);
    packing.node(node);
    above.iter_mut().for_each(|expr| packing.expr(expr));
}

/// Marks the slots that remain. Returns None if an expression below cannot be rewritten.
fn survey(node: &Arc<Node>, used: &[bool], kept: &mut [bool]) -> Option<()> {
    if Arc::strong_count(node) > 1 || !exprs(node).all(can_move) {
        return None;
    }
    match &**node {
        Node::One { .. } => {}
        Node::Scan(scan) => {
            if scan.key_at.is_some() || scan.output.is_some() {
                return None;
            }
            for column in 0..scan.table.columns.len() {
                kept[scan.offset + column] = !is_sparse(scan) || used[scan.offset + column];
            }
        }
        Node::Derived { offset, width: _, columns, .. } => kept[*offset..offset + columns.len()].fill(true),
        Node::System { table, offset, key_at: None, .. } => kept[*offset..offset + table.columns.len()].fill(true),
        Node::Filter { input, .. } => survey(input, used, kept)?,
        Node::Loop { left, right, .. } => {
            survey(left, used, kept)?;
            survey(right, used, kept)?;
        }
        Node::Hash(join) => {
            survey(&join.left, used, kept)?;
            survey(&join.right, used, kept)?;
        }
        _ => return None,
    }
    Some(())
}

/// Returns whether single columns of the table can be pruned. Generated columns are computed from the table's other
/// columns, which must be adjacent.
fn is_sparse(scan: &Scan) -> bool {
    !scan.table.columns.iter().any(|column| column.is_computed())
}

/// Returns all expressions of a node of a join.
fn exprs(node: &Node) -> Box<dyn Iterator<Item = &Expr> + '_> {
    match node {
        Node::Scan(scan) => Box::new(scan.conditions.iter().chain(scan.access.exprs())),
        Node::Loop { on, .. } => Box::new(on.iter()),
        Node::Hash(join) => Box::new(join.left_keys.iter().chain(&join.right_keys).chain(&join.on)),
        Node::Filter { conditions, .. } => Box::new(conditions.iter()),
        Node::System { wanted, .. } => Box::new(wanted.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns whether all slots that the expression reads are visible in it, so that it can be rewritten.
fn can_move(expr: &Expr) -> bool {
    let mut can = true;
    expr.walk(&mut |expr| {
        can &= match expr {
            Expr::Subquery(query, _) => !query.is_correlated && query.question.needles().iter().all(can_move),
            Expr::Call(call) => call.function.session != SessionUse::Written,
            _ => true,
        };
    });
    can
}

struct Packing {
    /// The new number of each slot; for a pruned slot, the number of the next one that remains.
    places: Vec<usize>,
    width: usize,
}

impl Packing {
    fn new(kept: &[bool]) -> Packing {
        let mut width = 0;
        let next = |kept: &bool| {
            let place = width;
            width += usize::from(*kept);
            place
        };
        let places = kept.iter().map(next).collect();
        // A row has at least one slot.
        Packing { places, width: width.max(1) }
    }

    fn place(&self, place: usize) -> usize {
        self.places.get(place).copied().unwrap_or(self.width)
    }

    fn expr(&self, expr: &mut Expr) {
        expr.rewrite(&mut |expr| match expr {
            Expr::Column(place, _) => *place = self.place(*place),
            Expr::Subquery(query, ty) if !query.question.needles().is_empty() => {
                let moved = query.with_needles(|needle| {
                    let mut needle = needle.clone();
                    self.expr(&mut needle);
                    needle
                });
                *expr = Expr::Subquery(Arc::new(moved), ty.clone());
            }
            _ => {}
        });
    }

    fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e mut Expr>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    fn ranges(&self, ranges: &mut [(usize, usize)]) {
        ranges.iter_mut().for_each(|(from, to)| (*from, *to) = (self.place(*from), self.place(*to)));
    }

    fn node(&self, node: &mut Arc<Node>) {
        let Some(node) = Arc::get_mut(node) else { unreachable!("the survey has seen that nobody else has it") };
        match node {
            Node::One { width } => *width = self.width,
            Node::Scan(scan) => self.scan(scan),
            Node::Derived { offset, width, .. } => (*offset, *width) = (self.place(*offset), self.width),
            Node::System { offset, width, wanted, .. } => {
                (*offset, *width) = (self.place(*offset), self.width);
                self.exprs(wanted);
            }
            Node::Filter { input, conditions } => {
                self.exprs(conditions);
                self.node(input);
            }
            Node::Loop { left, right, on, fills, .. } => {
                self.exprs(on);
                self.ranges(fills);
                self.node(left);
                self.node(right);
            }
            Node::Hash(join) => {
                self.exprs(join.left_keys.iter_mut().chain(&mut join.right_keys).chain(&mut join.on));
                self.ranges(&mut join.fills);
                join.kept.iter_mut().for_each(|place| *place = self.place(*place));
                self.node(&mut join.left);
                self.node(&mut join.right);
            }
            _ => unreachable!("the survey lets no other node pass"),
        }
    }

    fn scan(&self, scan: &mut Scan) {
        self.exprs(scan.conditions.iter_mut().chain(scan.access.exprs_mut()));
        if is_sparse(scan) {
            let places = (0..scan.table.columns.len()).map(|column| scan.offset + column);
            scan.places = Some(places.map(|place| self.place(place)).collect());
        }
        scan.stages.renumber(|place| self.place(place));
        scan.stages_after.renumber(|place| self.place(place));
        (scan.offset, scan.width) = (self.place(scan.offset), self.width);
    }
}
