//! Semi-joins that are inner joins: where a row of the block around finds one match at most, it is not given twice however its match is found.
//!
//! That is so if the row decides a whole unique key of each of the subquery's tables, by equality, and through one table the next (`WHERE b.k = a.x AND c.k = b.y`). The hard thing is what equality means: only where
//! the comparison calls the same values equal as the key does, two rows of the key cannot equal one value. MySQL calls this table pullout.
//!
//! Keeps MY-9.

use query::catalog::table::Part;
use query::nodes::comparison::{Comparison, ComparisonType};
use query::nodes::expr::{Compare, Expr};
use query::nodes::relation::{Origin, ScopeTable, Source};
use query::nodes::walk::{columns, is_volatile};

/// The items and conditions that may join the block's own, if no row finds two matches. `tables` are those of the block with the subquery's behind them; places from `places` on are the subquery's.
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

/// None: an outer join, whose condition belongs to it.
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

/// Do the conditions give one value to each part of one of its unique keys?
fn is_decided(table: &ScopeTable, conditions: &[Expr], is_known: &dyn Fn(&usize) -> bool) -> bool {
    let Origin::Base(base) = &table.origin else { return false };
    let is_given = |part: &Part| {
        let place = table.offset + part.column;
        part.prefix.is_none() && conditions.iter().any(|condition| gives(condition, place, is_known))
    };
    let indexes = base.indexes.iter().filter(|index| index.unique).map(|index| &index.parts[..]);
    base.primary.as_deref().into_iter().chain(indexes).any(|parts| !parts.is_empty() && parts.iter().all(is_given))
}

/// Is it an equality of that column and something known, as keys have it?
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
            && columns(other).iter().all(is_known)
            && !is_volatile(other)
    })
}
