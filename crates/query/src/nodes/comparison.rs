//! Comparisons of two values: the operator, and the comparator that the binder chose for the types of both sides.
//!
//! Which types meet as what, and the coercions this takes, are a dialect's. A dialect describes them once in a static `ComparisonRules`; executor and planner
//! call it and look at the `ComparisonType` alone.

use std::cmp::Ordering;

use crate::nodes::context::EvalContext;
use crate::types::{Collation, Type};
use crate::value::Value;
use datum::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    /// `IS NOT DISTINCT FROM`: NULL equals NULL.
    NullSafeEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// Returns whether two values in this order satisfy the comparison.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal | Comparison::NullSafeEqual => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterEqual => order.is_ge(),
        }
    }

    /// Returns the operator that holds for the exchanged sides.
    #[must_use]
    pub fn flipped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessEqual => Comparison::GreaterEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterEqual => Comparison::LessEqual,
            same => same,
        }
    }
}

/// The type as which both sides of a comparison are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonType {
    Integer,
    Decimal,
    Double,
    Text(Collation),
    Bytes,
    DateTime,
    Time,
    Json,
    /// Decided by the values, because the type of a side is unknown when the statement is bound.
    Dynamic,
}

/// The comparison type together with the rules of the dialect that chose it.
#[derive(Clone, Copy, Debug)]
pub struct Comparator {
    pub ty: ComparisonType,
    pub rules: &'static ComparisonRules,
}

impl PartialEq for Comparator {
    fn eq(&self, other: &Comparator) -> bool {
        self.ty == other.ty && std::ptr::eq(self.rules, other.rules)
    }
}

impl Comparator {
    /// Returns the order of two values, neither of which is NULL. An error if the dialect cannot coerce one of them.
    #[inline]
    pub fn order(&self, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Ordering> {
        (self.rules.order)(self.ty, a, b, ctx)
    }

    /// Returns the order of two values, or `None` if one of them is NULL.
    pub fn order_unless_null(&self, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Option<Ordering>> {
        if a.is_null() || b.is_null() {
            return Ok(None);
        }
        self.order(a, b, ctx).map(Some)
    }

    /// Returns the type whose keys are equal exactly if values of the types `a` and `b` compare as equal. `None`: there is no such type, so the comparison
    /// cannot be hashed.
    pub fn hash_type(&self, a: &Type, b: &Type) -> Option<Type> {
        (self.rules.hash_type)(self.ty, a, b)
    }

    /// Returns whether values of the other side may be looked up in an index on a column of the type, going by types alone.
    pub fn may_use_index(&self, column: &Type) -> bool {
        (self.rules.may_use_index)(self.ty, column)
    }

    /// See `ComparisonRules::coerce`.
    pub fn coerce(&self, value: &Value, column: &Type, ctx: &EvalContext) -> Coerced {
        (self.rules.coerce)(value, column, ctx)
    }
}

/// How a dialect compares values.
#[derive(Debug)]
pub struct ComparisonRules {
    /// The order of two values that are not NULL.
    pub order: fn(ComparisonType, &Value, &Value, &mut EvalContext) -> Result<Ordering>,
    /// See `Comparator::hash_type`.
    pub hash_type: fn(ComparisonType, &Type, &Type) -> Option<Type>,
    /// See `Comparator::may_use_index`.
    pub may_use_index: fn(ComparisonType, &Type) -> bool,
    /// Index coercion: the value in the form of a column of the type. The form must not change what the comparison means; the executor widens the scan and
    /// rechecks the condition where there is none.
    pub coerce: fn(&Value, &Type, &EvalContext) -> Coerced,
}

/// A value in the form of an index column.
#[derive(Debug, PartialEq)]
pub enum Coerced {
    Exact(Value),
    /// The value is less than every value of the column.
    Below,
    /// The value is greater than every value of the column.
    Above,
    /// The value is NULL: the comparison holds for no row.
    Null,
    /// No value of the column stands for it.
    Unusable,
}
