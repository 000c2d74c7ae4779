//! The operators that the core compares by itself, looked up in indexes and hashed.

use query::nodes::comparison::Comparator;

use crate::types::comparison;
use crate::types::oid::{self, Oid};
use crate::types::registry::{by_oid, column_type};

/// Returns the comparator of a btree operator over these types; `None` if the operator must be called, because their values differ in form.
pub fn comparator(left: Oid, right: Oid) -> Option<Comparator> {
    let has_values = |ty: Oid| by_oid(ty).is_some() && ty != oid::UNKNOWN;
    // Each kind of date and time counts from its own zero in its own unit.
    let is_same_kind = left == right || !(is_temporal(left) || is_temporal(right));
    if !is_same_kind || !has_values(left) || !has_values(right) {
        return None;
    }
    comparison::comparator(&column_type(left, -1, true), &column_type(right, -1, true))
}

fn is_temporal(ty: Oid) -> bool {
    matches!(ty, oid::DATE | oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL)
}
