//! Aggregates as a plan has them. `scalar::aggregate` has their arithmetic.

use crate::types::Type;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// COUNT(*) has no argument; COUNT(DISTINCT a, b) has several.
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    StdPop,
    StdSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayAgg,
    JsonObjectAgg,
    AnyValue,
}

/// An aggregate of a statement: what is added up, and what comes out.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub kind: Kind,
    pub distinct: bool,
    /// Types of the values that `add` is given; those of GROUP_CONCAT's ORDER BY follow the others.
    pub arguments: Vec<Type>,
    /// GROUP_CONCAT: of each ORDER BY expression, whether it descends.
    pub order: Vec<bool>,
    pub separator: Box<str>,
    pub ty: Type,
    pub increment: u8,
}
