//! The order of documents in PostgreSQL's jsonb (`compareJsonbContainers`): by kind, then by the number of parts, then part by part. A document that is an array without elements is the least of all.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::Node;
use crate::decimal::Decimal;

/// A scalar in one of jsonb's own kinds. Dates, bytes and numbers of other kinds have no kind of their own there.
#[derive(Debug)]
pub enum JsonbScalar {
    Number(Decimal),
    String(String),
}

impl Node {
    /// The place of the kind in the order. Keys hold it (`key`).
    pub fn jsonb_rank(&self) -> u8 {
        match self {
            Node::Null => 0,
            Node::String(_) | Node::Date(_) | Node::Time(_) | Node::DateTime(_) | Node::Bytes(_) => 1,
            Node::Int(_) | Node::UInt(_) | Node::Double(_) | Node::Decimal(_) => 2,
            Node::Bool(_) => 3,
            Node::Array(_) => 4,
            Node::Object(_) => 5,
        }
    }

    /// Returns a scalar that is neither NULL nor a truth value as jsonb has it.
    pub fn jsonb_scalar(&self) -> JsonbScalar {
        let number = match self {
            Node::Int(number) => Some(Decimal::from(*number)),
            Node::UInt(number) => Some(Decimal::from(*number)),
            Node::Decimal(number) => Some(number.clone()),
            Node::Double(number) => Some(shortest(*number)),
            _ => None,
        };
        match number {
            Some(number) => JsonbScalar::Number(number),
            None => JsonbScalar::String(self.unquoted()),
        }
    }

    /// Returns the order of two documents. The elements and members of documents compare by `jsonb_part_order`.
    pub fn compare_jsonb(&self, other: &Node) -> Ordering {
        let is_empty = |node: &Node| matches!(node, Node::Array(elements) if elements.is_empty());
        match (is_empty(self), is_empty(other)) {
            (false, false) => part_order(self, other),
            (mine, theirs) => theirs.cmp(&mine),
        }
    }
}

/// Returns the decimal with the fewest digits that reads back as a finite double.
fn shortest(number: f64) -> Decimal {
    // Rust writes no exponent here.
    let text = format!("{number}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = BigInt::parse_bytes(format!("{whole}{fraction}").as_bytes(), 10).unwrap_or_default();
    Decimal::from_big(digits, fraction.len() as u16)
}

fn part_order(a: &Node, b: &Node) -> Ordering {
    match (a, b) {
        (Node::Array(a), Node::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            let mut orders = a.iter().zip(b).map(|(a, b)| part_order(a, b));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Node::Object(a), Node::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
            let pairs = a.iter().zip(b.iter());
            let mut orders =
                pairs.map(|((m, a), (n, b))| m.as_bytes().cmp(n.as_bytes()).then_with(|| part_order(a, b)));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Node::Bool(a), Node::Bool(b)) => a.cmp(b),
        (Node::Null, Node::Null) => Ordering::Equal,
        (Node::String(a), Node::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Node::Decimal(a), Node::Decimal(b)) => a.cmp(b),
        (a, b) => a.jsonb_rank().cmp(&b.jsonb_rank()).then_with(|| match (a.jsonb_scalar(), b.jsonb_scalar()) {
            (JsonbScalar::Number(a), JsonbScalar::Number(b)) => a.cmp(&b),
            (JsonbScalar::String(a), JsonbScalar::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            // Equal ranks are of one kind.
            _ => Ordering::Equal,
        }),
    }
}
