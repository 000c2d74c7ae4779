//! The parts that a document must have for a path to find something in it, or for a condition to be true of it. An index of terms leads to the documents
//! that have them (`query::term`), and the path itself decides.
//!
//! Nothing is concluded from NOT, IS UNKNOWN, orders, and values that are computed. A comparison asks for an item on each side, since conditions are true of
//! some pair of items, and one of equality asks for the scalar. Arrays change neither names nor scalars, so the modes lax and strict do not differ here.

use datum::json::Node;
use query::nodes::term_test::Parts;

use super::kept;
use crate::types::jsonpath::{Accessor, Compare, Expr};
use crate::value::Value;

/// The comparisons and alternatives that are read; nothing is concluded from more. It bounds the work for any path.
const READ_MAX: u32 = 64;
/// The names, and their bytes, of a path that is followed.
const NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 1024;

/// Returns the parts that documents have in which the path finds an item.
pub fn of_found(path: &Value) -> Parts {
    of(path, |root, reading| match root.is_predicate() {
        // Its result is an item, also where it is false.
        true => Parts::Any,
        false => Parts::All(reading.items(root, &ItemPlace::Computed).1),
    })
}

/// Returns the parts that documents have of which the path is true.
pub fn of_true(path: &Value) -> Parts {
    of(path, |root, reading| match root.is_predicate() {
        true => reading.condition(root, &ItemPlace::Computed),
        false => reading.equal(root, Node::Bool(true), &ItemPlace::Computed),
    })
}

fn of(path: &Value, read: impl FnOnce(&Expr, &mut PartsReading) -> Parts) -> Parts {
    let Value::Text(path) = path else { return Parts::Any };
    kept(path).map_or(Parts::Any, |path| read(&path.root, &mut PartsReading { room: READ_MAX }))
}

/// Where items are.
#[derive(Clone)]
enum ItemPlace {
    /// Below these names.
    Below(Vec<Box<str>>),
    /// In the document.
    Somewhere,
    /// Perhaps in no document.
    Computed,
}

impl ItemPlace {
    fn enter(&mut self, name: &str) {
        let ItemPlace::Below(names) = self else { return };
        let bytes: usize = names.iter().map(|name| name.len()).sum();
        match names.len() < NAMES_MAX && bytes + name.len() <= NAME_BYTES_MAX {
            true => names.push(name.into()),
            false => *self = ItemPlace::Somewhere,
        }
    }

    fn lose(&mut self) {
        if let ItemPlace::Below(_) = self {
            *self = ItemPlace::Somewhere;
        }
    }
}

struct PartsReading {
    room: u32,
}

impl PartsReading {
    /// Returns where the items of an expression are, and the parts of documents in which it has any.
    fn items(&mut self, expr: &Expr, current: &ItemPlace) -> (ItemPlace, Vec<Parts>) {
        let (base, accessors) = match expr {
            Expr::Root => return (ItemPlace::Below(Vec::new()), Vec::new()),
            Expr::Current => return (current.clone(), Vec::new()),
            Expr::Access(base, accessors) => (base, accessors),
            _ => return (ItemPlace::Computed, Vec::new()),
        };
        let (mut place, mut parts) = self.items(base, current);
        for accessor in accessors {
            match accessor {
                Accessor::Key(_) if matches!(place, ItemPlace::Computed) => {}
                Accessor::Key(name) => {
                    parts.push(Parts::Name(name.clone()));
                    place.enter(name);
                }
                Accessor::AnyKey | Accessor::AnyLevel(..) => place.lose(),
                Accessor::AnyElement | Accessor::Elements(_) => {}
                Accessor::Filter(condition) => parts.push(self.condition(condition, &place)),
                Accessor::Method(_) => place = ItemPlace::Computed,
            }
        }
        (place, parts)
    }

    /// Returns the parts of documents for which a condition is true.
    fn condition(&mut self, condition: &Expr, current: &ItemPlace) -> Parts {
        let Some(room) = self.room.checked_sub(1) else { return Parts::Any };
        self.room = room;
        match condition {
            Expr::And(left, right) => Parts::All(vec![self.condition(left, current), self.condition(right, current)]),
            Expr::Or(left, right) => Parts::OneOf(vec![self.condition(left, current), self.condition(right, current)]),
            Expr::Exists(expr) | Expr::StartsWith(expr, _) | Expr::LikeRegex { operand: expr, .. } => {
                Parts::All(self.items(expr, current).1)
            }
            Expr::Compare(compare, left, right) => match (compare, literal(left), literal(right)) {
                (Compare::Equal, None, Some(scalar)) => self.equal(left, scalar, current),
                (Compare::Equal, Some(scalar), None) => self.equal(right, scalar, current),
                _ => Parts::All([left, right].into_iter().flat_map(|side| self.items(side, current).1).collect()),
            },
            _ => Parts::Any,
        }
    }

    /// Returns the parts of documents in which an item of the expression is that scalar.
    fn equal(&mut self, expr: &Expr, scalar: Node, current: &ItemPlace) -> Parts {
        let (place, mut parts) = self.items(expr, current);
        match place {
            ItemPlace::Below(names) => parts.push(Parts::Scalar { path: Some(names), scalar }),
            ItemPlace::Somewhere => parts.push(Parts::Scalar { path: None, scalar }),
            ItemPlace::Computed => {}
        }
        Parts::All(parts)
    }
}

fn literal(expr: &Expr) -> Option<Node> {
    Some(match expr {
        Expr::Null => Node::Null,
        Expr::Bool(truth) => Node::Bool(*truth),
        Expr::Number(number) => Node::Decimal(number.clone()),
        Expr::String(text) => Node::String(text.clone()),
        _ => return None,
    })
}
