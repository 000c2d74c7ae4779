//! Equivalence classes of columns: `a.x = b.y AND b.y = c.z` implies `a.x = c.z`.
//!
//! Any pair of a class may join its tables, so all pairs are conditions while a join order is searched for. Afterwards
//! redundant equalities are removed, so that each column is compared once. Hard part: equality is transitive only among
//! columns that are compared with the same type of key. `1 = '1'` and `'1' = '1.0'` compare as numbers, which implies
//! nothing about `'1'` and `'1.0'` as strings. MySQL calls this equality propagation.

use crate::nodes::comparison::{Comparator, Comparison, ComparisonType};
use crate::nodes::expr::{Compare, Expr};
use crate::plan::planner::Planner;
use crate::types::Type;

/// An equivalence class: the slots of its columns, and the type as which they are compared.
#[derive(Debug)]
pub struct Class {
    pub members: Vec<(usize, Type)>,
    by: Comparator,
    key: Type,
}

/// The two columns that a condition equates, and the type of their common key.
struct Pair<'e> {
    columns: [(usize, &'e Type); 2],
    by: Comparator,
    key: Type,
}

/// Returns None if the condition is no equality of two columns, or implies no further equality.
fn pair(condition: &Expr) -> Option<Pair<'_>> {
    let Expr::Compare(compare) = condition else { return None };
    let (Expr::Column(a, left), Expr::Column(b, right)) = (&compare.left, &compare.right) else { return None };
    let has_own_collation = match compare.by.ty {
        ComparisonType::Text(collation) => left.collation == collation && right.collation == collation,
        _ => true,
    };
    if compare.op != Comparison::Equal || a == b || !has_own_collation {
        return None;
    }
    let key = compare.by.hash_type(&compare.left.ty(), &compare.right.ty())?;
    Some(Pair { columns: [(*a, left), (*b, right)], by: compare.by, key })
}

/// Returns the classes of more than two columns; smaller ones imply nothing new.
pub fn classes(conditions: &[Expr]) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    for Pair { columns, by, key } in conditions.iter().filter_map(pair) {
        let has = |class: &Class, place: usize| class.members.iter().any(|(member, _)| *member == place);
        let is_same = |class: &Class| class.by == by && is_same_key(&class.key, &key);
        let mut members = Vec::new();
        classes.retain_mut(|class| {
            let joins = is_same(class) && columns.iter().any(|(place, _)| has(class, *place));
            if joins {
                members.append(&mut class.members);
            }
            !joins
        });
        for (place, ty) in columns {
            if members.iter().all(|(member, _)| *member != place) {
                members.push((place, ty.clone()));
            }
        }
        classes.push(Class { members, by, key });
    }
    classes.retain(|class| class.members.len() > 2);
    classes
}

fn is_same_key(a: &Type, b: &Type) -> bool {
    a.id == b.id && a.storage == b.storage && a.scale == b.scale && a.collation == b.collation
}

impl Class {
    /// Returns the class's columns that the condition compares, if it is one of the class's equalities.
    pub fn pair_of(&self, condition: &Expr) -> Option<(usize, usize)> {
        let Pair { columns: [(a, _), (b, _)], by, key } = pair(condition)?;
        let has = |place: usize| self.members.iter().any(|(member, _)| *member == place);
        (by == self.by && is_same_key(&self.key, &key) && has(a) && has(b)).then_some((a, b))
    }

    fn equality(&self, left: &(usize, Type), right: &(usize, Type)) -> Expr {
        let column = |(place, ty): &(usize, Type)| Expr::Column(*place, ty.clone());
        let compare = Compare { op: Comparison::Equal, left: column(left), right: column(right), by: self.by };
        Expr::Compare(Box::new(compare))
    }
}

impl Planner<'_> {
    /// Returns the implied equalities between columns of these tables that are not among the conditions.
    pub(super) fn conclusions(&self, classes: &[Class], tables: &[usize], conditions: &[Expr]) -> Vec<Expr> {
        let mut found = Vec::new();
        for class in classes {
            let known: Vec<(usize, usize)> =
                conditions.iter().filter_map(|condition| class.pair_of(condition)).collect();
            let members: Vec<_> = class.members.iter().filter(|(place, _)| self.owns(tables, *place)).collect();
            for (at, left) in members.iter().enumerate() {
                for right in &members[at + 1..] {
                    let (a, b) = (left.0, right.0);
                    if !known.contains(&(a, b)) && !known.contains(&(b, a)) {
                        found.push(class.equality(left, right));
                    }
                }
            }
        }
        found
    }

    /// Removes the equalities that are implied by others at the time when they could be evaluated. `steps` are the
    /// tables in join order, `before` those that are bound already.
    pub(super) fn without_repeats(
        &self,
        classes: &[Class],
        before: &[usize],
        steps: &[Vec<usize>],
        conditions: &mut Vec<Expr>,
    ) {
        for class in classes {
            let mut bound = before.to_vec();
            // Columns of one group are known to be equal.
            let mut groups: Vec<Vec<usize>> = class.members.iter().map(|(place, _)| vec![*place]).collect();
            let mut repeats = vec![false; conditions.len()];
            let mut seen = vec![false; conditions.len()];
            for step in steps {
                bound.extend(step);
                for (at, condition) in conditions.iter().enumerate() {
                    let Some((a, b)) = class.pair_of(condition).filter(|_| !seen[at]) else { continue };
                    if !self.owns(&bound, a) || !self.owns(&bound, b) {
                        continue;
                    }
                    seen[at] = true;
                    let of = |place: usize| groups.iter().position(|group| group.contains(&place));
                    match (of(a), of(b)) {
                        (Some(x), Some(y)) if x != y => {
                            let group = groups.swap_remove(x.max(y));
                            groups[x.min(y)].extend(group);
                        }
                        _ => repeats[at] = true,
                    }
                }
            }
            let mut repeats = repeats.into_iter();
            conditions.retain(|_| !repeats.next().unwrap_or(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::comparison::{Coerced, ComparisonRules};
    use crate::types::Collation;
    use datum::Storage;

    fn text(length: u32, collation: Collation) -> Type {
        Type { collation, ..Type::undeclared(Storage::Text, (length, 0), true) }
    }

    /// Rules of a dialect that hashes integers and texts. Nothing is compared here.
    static RULES: ComparisonRules = ComparisonRules {
        order: |_, a, b, _| unreachable!("{a:?} and {b:?}"),
        hash_type: |ty, a, b| match ty {
            ComparisonType::Integer => (a.storage == b.storage).then(|| a.clone()),
            ComparisonType::Text(collation) => Some(text(255, collation)),
            _ => None,
        },
        may_use_index: |_, _| false,
        coerce: |_, _, _| Coerced::Unusable,
    };

    fn equal(a: (usize, Type), b: (usize, Type), ty: ComparisonType) -> Expr {
        let (left, right) = (Expr::Column(a.0, a.1), Expr::Column(b.0, b.1));
        Expr::Compare(Box::new(Compare { op: Comparison::Equal, left, right, by: Comparator { ty, rules: &RULES } }))
    }

    #[test]
    fn columns_are_of_one_class_only_where_equality_is_carried_over() {
        let int = |place| (place, Type::truth());
        let text = |place, collation| (place, text(10, collation));
        let (ci, bin) = (Collation::Utf8Uca900AiCi, Collation::Binary);
        let of = |conditions: &[Expr]| -> Vec<usize> { classes(conditions).iter().map(|c| c.members.len()).collect() };
        let ab = equal(int(0), int(1), ComparisonType::Integer);
        assert_eq!(of(&[ab.clone(), equal(int(2), int(1), ComparisonType::Integer)]), [3]);
        assert_eq!(
            of(&[
                ab.clone(),
                equal(int(3), int(2), ComparisonType::Integer),
                equal(int(2), int(1), ComparisonType::Integer)
            ]),
            [4]
        );
        // Two columns imply nothing, nor do equalities of other columns.
        assert!(of(&[ab.clone(), equal(int(2), int(3), ComparisonType::Integer)]).is_empty());
        assert!(of(&[ab, equal(text(2, ci), int(1), ComparisonType::Double)]).is_empty());
        let texts = |collation| equal(text(0, collation), text(1, collation), ComparisonType::Text(ci));
        assert_eq!(of(&[texts(ci), equal(text(1, ci), text(2, ci), ComparisonType::Text(ci))]), [3]);
        assert!(of(&[texts(bin), equal(text(1, bin), text(2, ci), ComparisonType::Text(ci))]).is_empty());
    }
}
