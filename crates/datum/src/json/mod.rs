//! JSON documents.
//!
//! A document is a tree that is shared and never changed. Members of an object are kept in the order of MySQL's binary JSON: shorter names first, then by
//! bytes, without duplicates (DA-6). So equal documents are equal trees, and a member is found by binary search.

mod binary;
mod compare;
mod jsonb_order;
mod numbers;
mod parse;
mod write;

use std::cmp::Ordering;
use std::sync::Arc;

pub use jsonb_order::JsonbScalar;
pub use parse::parse;
pub use write::quote;

use crate::decimal::Decimal;
use crate::temporal::{Date, DateTime, Time};

/// The most levels of arrays and objects within each other.
pub const DEPTH_MAX: usize = 100;

/// A document. A clone shares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Json(pub Arc<Node>);

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    String(Box<str>),
    Array(Vec<Node>),
    Object(Members),
    // SQL values that JSON has no literals for. They are written as strings.
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    Bytes(Box<[u8]>),
}

/// The members of an object, in the order of `name_order` and without duplicates (DA-6).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Members(Vec<(Box<str>, Node)>);

impl From<Node> for Json {
    fn from(node: Node) -> Json {
        Json(Arc::new(node))
    }
}

impl Json {
    pub fn node(&self) -> &Node {
        &self.0
    }

    pub fn compare(&self, other: &Json) -> Ordering {
        self.0.compare(&other.0)
    }
}

impl Node {
    /// Returns about how many bytes of memory the tree takes.
    pub fn held_bytes(&self) -> usize {
        let inner = match self {
            Node::String(text) => text.len(),
            Node::Bytes(bytes) => bytes.len(),
            Node::Array(elements) => elements.iter().map(Node::held_bytes).sum(),
            Node::Object(members) => {
                members.iter().map(|(name, node)| size_of_val(name) + name.len() + node.held_bytes()).sum()
            }
            _ => 0,
        };
        size_of::<Node>() + inner
    }

    /// The number of members or elements; 1 for a scalar.
    pub fn length(&self) -> usize {
        match self {
            Node::Array(elements) => elements.len(),
            Node::Object(members) => members.len(),
            _ => 1,
        }
    }

    /// The number of levels; 1 for a scalar and for an empty array or object.
    pub fn depth(&self) -> usize {
        match self {
            Node::Array(elements) => 1 + elements.iter().map(Node::depth).max().unwrap_or(0),
            Node::Object(members) => 1 + members.iter().map(|(_, node)| node.depth()).max().unwrap_or(0),
            _ => 1,
        }
    }

    /// Returns the text of the node, that of a string without quotes and escapes.
    pub fn unquoted(&self) -> String {
        match self {
            Node::String(text) => text.to_string(),
            Node::Date(_) | Node::Time(_) | Node::DateTime(_) | Node::Bytes(_) => {
                self.to_string().trim_matches('"').to_owned()
            }
            other => other.to_string(),
        }
    }
}

/// By length, then by bytes.
fn name_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl Members {
    /// Sorts the members. Of members with the same name the last one stays.
    pub fn new(mut members: Vec<(Box<str>, Node)>) -> Members {
        members.sort_by(|(a, _), (b, _)| name_order(a, b));
        let mut kept: Vec<(Box<str>, Node)> = Vec::with_capacity(members.len());
        for member in members {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        Members(kept)
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| name_order(known, name))
    }

    pub fn get(&self, name: &str) -> Option<&Node> {
        self.find(name).ok().map(|place| &self.0[place].1)
    }

    /// Returns the member at a place in the order of members.
    pub fn at(&self, place: usize) -> Option<(&str, &Node)> {
        self.0.get(place).map(|(name, node)| (&**name, node))
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        let place = self.find(name).ok()?;
        Some(&mut self.0[place].1)
    }

    pub fn set(&mut self, name: &str, node: Node) {
        match self.find(name) {
            Ok(place) => self.0[place].1 = node,
            Err(place) => self.0.insert(place, (name.into(), node)),
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Node> {
        let place = self.find(name).ok()?;
        Some(self.0.remove(place).1)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Node)> {
        self.0.iter().map(|(name, node)| (&**name, node))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.0.iter_mut().map(|(name, node)| (&**name, node))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
