//! Semi-join to inner join: a row with at most one match is not duplicated by an inner join. Known as table
//! pull-out.
//!
//! The rule holds if equalities with the outer row determine a whole unique key of each of the subquery's tables, also
//! through one another (`WHERE b.k = a.x AND c.k = b.y`). Hard part: the comparison must use the key's own equality,
//! otherwise two keys could equal one value.
//!
//! Keeps QU-34.

use crate::catalog::table::Part;
use crate::nodes::comparison::{Comparison, ComparisonType};
use crate::nodes::expr::{Compare, Expr};
use crate::nodes::relation::{Origin, ScopeTable, Source};
use crate::nodes::walk::is_volatile;

/// Returns the items and conditions for an inner join, if no row has two matches. The subquery's tables follow the
/// block's own in `tables`, its places start at `places`.
pub fn single(tables: &[ScopeTable], places: usize, source: &Source, on: &[Expr]) -> Option<(Vec<Source>, Vec<Expr>)> {
    let (mut items, mut conditions) = (Vec::new(), on.to_vec());
    flatten(source, &mut items, &mut conditions)?;
    let own = items.iter().filter_map(|item| if let Source::Table(at) = item { Some(*at) } else { None });
    let mut open: Vec<&ScopeTable> = own.map(|at| &tables[at]).filter(|table| !is_view(table)).collect();
    let mut known: Vec<&ScopeTable> = Vec::new();
    while !open.is_empty() {
        let is_known = |place: &usize| *place < places || known.iter().any(|table| owns(table, *place));
        let at = open.iter().position(|table| is_decided(table, &conditions, &is_known))?;
        known.push(open.remove(at));
    }
    Some((items, conditions))
}

/// Flattens inner joins. None: an outer join, whose condition cannot be moved.
fn flatten(source: &Source, items: &mut Vec<Source>, conditions: &mut Vec<Expr>) -> Option<()> {
    match source {
        Source::Inner(parts, on) => {
            conditions.extend(on.iter().cloned());
            parts.iter().try_for_each(|part| flatten(part, items, conditions))
        }
        Source::Left(..) => None,
        source => {
            items.push(source.clone());
            Some(())
        }
    }
}

fn is_view(table: &ScopeTable) -> bool {
    matches!(table.origin, Origin::View(_))
}

fn owns(table: &ScopeTable, place: usize) -> bool {
    (table.offset..table.offset + table.columns.len()).contains(&place)
}

/// Returns whether the conditions fix every part of one of the table's unique keys.
fn is_decided(table: &ScopeTable, conditions: &[Expr], is_known: &dyn Fn(&usize) -> bool) -> bool {
    let Origin::Base(base) = &table.origin else { return false };
    let is_given = |part: &Part| {
        let place = table.offset + part.column;
        part.prefix.is_none() && conditions.iter().any(|condition| gives(condition, place, is_known))
    };
    let indexes = base.indexes.iter().filter(|index| index.is_key() && !index.is_unseen).map(|index| &index.parts[..]);
    base.primary.as_deref().into_iter().chain(indexes).any(|parts| !parts.is_empty() && parts.iter().all(is_given))
}

/// Returns whether the condition equates the column with a known value, in the key's equality.
fn gives(condition: &Expr, place: usize, is_known: &dyn Fn(&usize) -> bool) -> bool {
    let Expr::Compare(compare) = condition else { return false };
    let Compare { op: Comparison::Equal, left, right, by } = &**compare else { return false };
    [(left, right), (right, left)].into_iter().any(|(mine, other)| {
        let is_same = match by.ty {
            ComparisonType::Text(collation) => mine.ty().collation == collation,
            _ => true,
        };
        matches!(mine, Expr::Column(at, _) if *at == place)
            && is_same
            && by.hash_type(&other.ty(), &mine.ty()).is_some()
            && other.columns().iter().all(is_known)
            && !is_volatile(other)
    })
}
