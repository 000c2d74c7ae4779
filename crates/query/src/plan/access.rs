//! Which index leads to the rows of a table, given the conditions on it.
//!
//! A condition is of use if one side is a column of the table and the other can be computed before the row is read. Conditions are never dropped here: what the index
//! finds may have to be looked at again, for a value may not fit its column (`fit`), and locking reads look at newer rows than the index. `implied` are those that need not if
//! every value fits exactly and the rows are those of the index's snapshot.

use crate::bind::generated::is_like;
use crate::bind::hints::Allowed;
use crate::catalog::table::{Part, Table};
use crate::plan::cost::{KEPT, KEPT_BETWEEN, LOOKUP, RANGE, ROW, WHOLE};
use crate::plan::fit::is_promising;
use crate::plan::share::Sight;
use crate::plan::{Access, SortKey};
use crate::scalar::Expr;
use crate::scalar::expr::{Comparison, Domain};

/// What conditions say of one column.
#[derive(Clone, Debug, Default)]
struct Bounds {
    equal: Option<Vec<Expr>>,
    low: Option<(Expr, bool)>,
    high: Option<(Expr, bool)>,
    /// Which of the conditions said so.
    equal_by: usize,
    low_by: usize,
    high_by: usize,
}

/// A way to the rows, and about how many of them there are.
#[derive(Clone, Debug)]
pub struct Choice {
    pub access: Access,
    /// Conditions that say nothing more than the access, by their places.
    pub implied: Vec<usize>,
    /// And those that `rows` counts in already.
    pub served: Vec<usize>,
    pub rows: f64,
    pub cost: f64,
}

/// The table as the planner needs to know it.
pub struct Target<'t> {
    pub table: &'t Table,
    pub offset: usize,
    /// May this place of the row be read before the table's row is?
    pub is_bound: &'t dyn Fn(usize) -> bool,
    /// Indexes that hints allow; None: all.
    pub allowed: Option<&'t Allowed>,
    pub rows: f64,
    /// Columns of its keys that are computed, by which expressions over the wide row.
    pub formulas: Vec<(usize, Expr)>,
    pub sight: Sight<'t>,
}

impl Target<'_> {
    fn column_of(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(at, _) if (self.offset..self.offset + self.table.columns.len()).contains(at) => {
                Some(at - self.offset)
            }
            Expr::Column(..) => None,
            // What a generated column holds, the index of that column finds.
            expr => self.formulas.iter().find(|(_, formula)| is_like(expr, formula, false)).map(|(column, _)| *column),
        }
    }

    /// Is it about a column itself, not about what a generated one is computed by?
    fn is_direct(&self, condition: &Expr) -> bool {
        let mut found = false;
        condition.walk(&mut |expr| found |= self.formulas.iter().any(|(_, formula)| is_like(expr, formula, false)));
        !found
    }

    fn is_known(&self, expr: &Expr) -> bool {
        super::walk::columns(expr).into_iter().all(|at| (self.is_bound)(at)) && !super::walk::is_volatile(expr)
    }

    /// The column if it is compared with something known, in a way its index knows.
    fn usable(&self, column: &Expr, other: &Expr, domain: Domain) -> Option<usize> {
        let at = self.column_of(column)?;
        (is_promising(&self.table.columns[at].ty, domain) || is_string_number(&self.table.columns[at].ty, domain))
            .then_some(at)
            .filter(|_| self.is_known(other))
    }

    fn bounds(&self, conditions: &[Expr]) -> Vec<Bounds> {
        let mut all = vec![Bounds::default(); self.table.columns.len()];
        for (by, condition) in conditions.iter().enumerate() {
            match condition {
                Expr::Compare(compare) => {
                    let sides = [
                        (&compare.left, &compare.right, compare.op),
                        (&compare.right, &compare.left, mirrored(compare.op)),
                    ];
                    for (column, other, op) in sides {
                        if let Some(at) = self.usable(column, other, compare.domain) {
                            add(&mut all[at], op, other, by);
                            break;
                        }
                    }
                }
                Expr::Between(between) if !between.negated => {
                    if let Some(at) = self.usable(&between.needle, &between.low, between.low_domain) {
                        add(&mut all[at], Comparison::GreaterEqual, &between.low, by);
                    }
                    if let Some(at) = self.usable(&between.needle, &between.high, between.high_domain) {
                        add(&mut all[at], Comparison::LessEqual, &between.high, by);
                    }
                }
                Expr::In(list) if !list.negated => {
                    let at = list
                        .list
                        .iter()
                        .map(|(item, domain)| self.usable(&list.needle, item, *domain))
                        .reduce(|a, b| a.and(b));
                    if let Some(Some(at)) = at
                        && all[at].equal.as_ref().is_none_or(|known| known.len() > 1)
                    {
                        // Nothing equals a NULL of the list; as a key it would find the NULLs of the column.
                        let items = list.list.iter().map(|(item, _)| item).filter(|item| !is_null(item));
                        all[at].equal = Some(items.cloned().collect());
                        all[at].equal_by = by;
                    }
                }
                Expr::IsNull(inner) => {
                    if let Some(at) = self.column_of(inner)
                        && all[at].equal.is_none()
                    {
                        all[at].equal = Some(vec![Expr::null()]);
                        all[at].equal_by = by;
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// The best way, and whether it gives the rows in the order of `order` (places of the wide row).
    pub fn choose(&self, conditions: &[Expr], order: &[SortKey], prefers_order: bool) -> (Choice, bool) {
        let bounds = self.bounds(conditions);
        let full = Access::default();
        // FORCE INDEX: the whole table is the last resort.
        let dear = if self.allowed.is_some_and(|allowed| allowed.forced) { 1e9 } else { 1.0 };
        let cost = (self.rows * ROW + WHOLE) * dear;
        let (implied, served) = (Vec::new(), Vec::new());
        let mut best = (Choice { access: full, implied, served, rows: self.rows, cost }, false);
        if let Some(parts) = &self.table.primary
            && self.allowed.is_none_or(|allowed| allowed.primary)
        {
            let ways = self.way(None, parts, true, (conditions, &bounds), order);
            better(&mut best, ways, prefers_order);
        }
        for (at, index) in self.table.indexes.iter().enumerate() {
            if index.invisible || self.allowed.is_some_and(|allowed| !allowed.indexes.contains(&at)) {
                continue;
            }
            let way = self.way(Some(at), &index.parts, index.unique, (conditions, &bounds), order);
            better(&mut best, way, prefers_order);
        }
        best
    }

    fn way(
        &self,
        index: Option<usize>,
        parts: &[Part],
        unique: bool,
        (conditions, bounds): (&[Expr], &[Bounds]),
        order: &[SortKey],
    ) -> (Choice, bool) {
        let mut access = Access { index, ..Access::default() };
        let mut has_list = false;
        let mut has_null = false;
        let (mut taken, mut served) = (Vec::new(), Vec::new());
        for part in parts {
            let Some(equal) = &bounds[part.column].equal else { break };
            if equal.len() > 1 && std::mem::replace(&mut has_list, true) {
                break;
            }
            // A prefix finds more than what is equal; what follows it in the key is of no use then.
            has_null |= equal.iter().any(is_null);
            access.equal.push(equal.clone());
            served.push(bounds[part.column].equal_by);
            if part.prefix.is_none() {
                taken.push(bounds[part.column].equal_by);
            }
            if part.prefix.is_some() {
                break;
            }
        }
        let is_whole = access.equal.len() == parts.len() && parts.iter().all(|part| part.prefix.is_none());
        if unique && is_whole && !has_null {
            access.is_point = true;
        } else if access.equal.len() < parts.len()
            && access.equal.iter().zip(parts).all(|(_, part)| part.prefix.is_none())
        {
            let part = &parts[access.equal.len()];
            let bounds = &bounds[part.column];
            if part.prefix.is_none() && bounds.equal.is_none() {
                access.low = bounds.low.clone();
                access.high = bounds.high.clone();
                taken.extend(access.low.is_some().then_some(bounds.low_by));
                taken.extend(access.high.is_some().then_some(bounds.high_by));
                served.extend(access.low.is_some().then_some(bounds.low_by));
                served.extend(access.high.is_some().then_some(bounds.high_by));
            }
        }
        let rows = self.found(&access, conditions, &served);
        let ordered = !has_list
            && serves_order(parts, access.equal.len(), order, self.offset, &mut access.backward, access.is_point);
        // Through an index each row is looked up on its own.
        let each = if index.is_some() { ROW + LOOKUP } else { ROW };
        let begin = if access.is_full() { WHOLE } else { RANGE };
        let cost = rows * each + begin;
        let mut implied = implied(conditions, &taken);
        implied.retain(|at| self.formulas.is_empty() || self.is_direct(&conditions[*at]));
        (Choice { access, implied, served, rows, cost }, ordered)
    }

    /// About how many rows the access finds: measured in the tree where its bounds are known, else by what is known of its key and columns.
    fn found(&self, access: &Access, conditions: &[Expr], served: &[usize]) -> f64 {
        let lists = access.equal.iter().map(Vec::len).product::<usize>() as f64;
        if access.is_point {
            return lists;
        }
        if access.is_full() {
            return self.rows;
        }
        if let Some(rows) = self.sight.measured(self.table, access) {
            return rows.max(0.01);
        }
        let known = self.table.live.statistics();
        let map = access.index.map_or(self.table.map, |at| self.table.indexes[at].map);
        let equal = access.equal.len();
        let distinct = known.as_ref().and_then(|known| known.distinct(map, equal));
        let rows = match distinct {
            Some(distinct) => self.rows / distinct * lists,
            None if equal > 0 => (self.rows / 10f64.powi(equal as i32)).max(1.0) * lists,
            None => self.rows,
        };
        let mut share = 1.0;
        if access.low.is_some() || access.high.is_some() {
            // Behind those of the equal parts.
            let mut bounds: Vec<usize> = served[equal..].to_vec();
            bounds.dedup();
            share = bounds.iter().map(|at| self.sight.share(&conditions[*at])).product();
            if access.low.is_some() && access.high.is_some() && bounds.len() == 2 && share >= KEPT * KEPT {
                share = KEPT_BETWEEN;
            }
        }
        (rows * share).max(0.01)
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// Of the conditions whose bounds were taken, once for each bound, those that are taken whole and mean for keys what they mean for values.
fn implied(conditions: &[Expr], taken: &[usize]) -> Vec<usize> {
    let is_plain =
        |domain: Domain| matches!(domain, Domain::Integer | Domain::Decimal | Domain::Text(_) | Domain::Bytes);
    let is_whole = |at: &usize| match &conditions[*at] {
        Expr::Compare(compare) => is_plain(compare.domain),
        Expr::Between(between) => {
            let bounds = taken.iter().filter(|taken| *taken == at).count();
            bounds == 2 && is_plain(between.low_domain) && is_plain(between.high_domain)
        }
        Expr::In(list) => list.list.iter().all(|(_, domain)| is_plain(*domain)),
        _ => false,
    };
    let mut implied: Vec<usize> = taken.iter().copied().filter(is_whole).collect();
    implied.sort_unstable();
    implied.dedup();
    implied
}

/// `id = '5'`: compared as doubles, looked up as a number if it is one.
fn is_string_number(ty: &crate::types::Type, domain: Domain) -> bool {
    domain == Domain::Double && ty.kind.is_integer()
}

fn mirrored(op: Comparison) -> Comparison {
    match op {
        Comparison::Less => Comparison::Greater,
        Comparison::LessEqual => Comparison::GreaterEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterEqual => Comparison::LessEqual,
        op => op,
    }
}

fn add(bounds: &mut Bounds, op: Comparison, other: &Expr, by: usize) {
    match op {
        Comparison::Equal if !is_null(other) => {
            bounds.equal = Some(vec![other.clone()]);
            bounds.equal_by = by;
        }
        Comparison::Greater | Comparison::GreaterEqual if bounds.low.is_none() => {
            bounds.low = Some((other.clone(), op == Comparison::GreaterEqual));
            bounds.low_by = by;
        }
        Comparison::Less | Comparison::LessEqual if bounds.high.is_none() => {
            bounds.high = Some((other.clone(), op == Comparison::LessEqual));
            bounds.high_by = by;
        }
        _ => {}
    }
}

fn better(best: &mut (Choice, bool), way: (Choice, bool), prefers_order: bool) {
    let weight = |(choice, ordered): &(Choice, bool)| {
        // A sort costs about as much again, unless a limit makes it cost everything.
        match (*ordered, prefers_order) {
            (false, true) => choice.cost * 3.0,
            (true, true) => choice.cost.min(50.0 + choice.cost / 10.0),
            (false, false) => choice.cost * 1.3,
            (true, false) => choice.cost,
        }
    };
    if weight(&way) < weight(best) || (way.1 && !best.1 && way.0.cost <= best.0.cost) {
        *best = way;
    }
}

/// Do entries of the index, after `equal` parts that do not change, come in this order? If they do backward, says so.
fn serves_order(
    parts: &[Part],
    equal: usize,
    order: &[SortKey],
    offset: usize,
    backward: &mut bool,
    is_point: bool,
) -> bool {
    if order.is_empty() || is_point {
        return true;
    }
    let mut at = equal;
    let mut direction = None;
    for key in order {
        let is_fixed = parts[..equal].iter().any(|part| part.prefix.is_none() && part.column + offset == key.at);
        if is_fixed {
            continue;
        }
        let Some(part) = parts.get(at) else { return false };
        if part.prefix.is_some() || part.column + offset != key.at {
            return false;
        }
        let turned = part.descending != key.descending;
        if *direction.get_or_insert(turned) != turned {
            return false;
        }
        at += 1;
    }
    *backward = direction.unwrap_or(false);
    true
}
