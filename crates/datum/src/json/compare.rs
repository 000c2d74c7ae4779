//! The order of documents: first by the kind of node, then within the kind.

use std::cmp::Ordering;

use super::Node;
use crate::decimal::Decimal;
use crate::float;

impl Node {
    /// The place of the kind in the order. Keys hold it (`key`).
    pub fn rank(&self) -> u8 {
        match self {
            Node::Null => 0,
            Node::Int(_) | Node::UInt(_) | Node::Double(_) | Node::Decimal(_) => 1,
            Node::String(_) => 2,
            Node::Object(_) => 3,
            Node::Array(_) => 4,
            Node::Bool(_) => 5,
            Node::Date(_) => 6,
            Node::Time(_) => 7,
            Node::DateTime(_) => 8,
            Node::Bytes(_) => 9,
        }
    }

    fn decimal(&self) -> Option<Decimal> {
        match self {
            Node::Int(number) => Some(Decimal::from(*number)),
            Node::UInt(number) => Some(Decimal::from(*number)),
            Node::Decimal(decimal) => Some(decimal.clone()),
            Node::Double(number) => Decimal::from_f64(*number),
            _ => None,
        }
    }

    pub fn compare(&self, other: &Node) -> Ordering {
        match (self, other) {
            (Node::Bool(a), Node::Bool(b)) => a.cmp(b),
            (Node::Int(a), Node::Int(b)) => a.cmp(b),
            (Node::Double(a), Node::Double(b)) => float::order(*a, *b),
            (Node::String(a), Node::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Node::Array(a), Node::Array(b)) => {
                let first = a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
                first.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Node::Object(a), Node::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                let pairs = a.iter().zip(b.iter());
                let mut orders =
                    pairs.map(|((m, a), (n, b))| m.as_bytes().cmp(n.as_bytes()).then_with(|| a.compare(b)));
                orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            }),
            (Node::Date(a), Node::Date(b)) => a.cmp(b),
            (Node::Time(a), Node::Time(b)) => a.cmp(b),
            (Node::DateTime(a), Node::DateTime(b)) => a.cmp(b),
            (Node::Bytes(a), Node::Bytes(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()).then_with(|| match (a.decimal(), b.decimal()) {
                (Some(a), Some(b)) => a.cmp(&b),
                // One is a double that is too large for a decimal.
                (None, Some(_)) => {
                    if matches!(a, Node::Double(n) if *n < 0.0) {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                }
                (Some(_), None) => {
                    if matches!(b, Node::Double(n) if *n < 0.0) {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
                }
                (None, None) => Ordering::Equal,
            }),
        }
    }
}
