//! The rows of a relation that a statement asks for, by columns of its keys.

use query::nodes::system_table::Search;

use crate::system::relations::SystemRelation;
use crate::types::oid::Oid;
use crate::value::Value;

pub struct Wanted<'s> {
    pub relation: &'static SystemRelation,
    pub search: &'s Search,
}

impl Wanted<'_> {
    /// Returns the value that a column must have.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let place = self.relation.place(name)?;
        let kept = self.relation.kept.binary_search(&place).ok()?;
        self.search.of(kept)
    }

    /// Returns the OID that a column must have; 0, which no object has, for NULL.
    pub fn oid(&self, name: &str) -> Option<Oid> {
        Some(match self.value(name)? {
            Value::UInt(oid) => *oid as Oid,
            Value::Int(oid) => *oid as Oid,
            _ => 0,
        })
    }

    /// Returns the name that a column must have.
    pub fn name(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => Some(""),
        }
    }

    /// Returns whether a row may be wanted, by the values of all its columns.
    pub fn fits(&self, row: &[Value]) -> bool {
        self.search.equal.iter().all(|(kept, value)| match (&row[self.relation.kept[*kept]], value) {
            (Value::UInt(own), Value::UInt(wanted)) => own == wanted,
            (Value::Text(own), Value::Text(wanted)) => own == wanted,
            (_, Value::Null) => false,
            // Other forms are compared by the condition itself.
            _ => true,
        })
    }
}
