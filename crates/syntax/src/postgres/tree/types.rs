//! Names of types.

use super::{AnyName, Expr, Location};

/// A type as it is written. SQL's own names are resolved to those of `pg_catalog` with the defaults of their lengths: `int` is `pg_catalog.int4`, `char` is `pg_catalog.bpchar` with the modifier 1.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    pub name: AnyName,
    pub setof: bool,
    /// `name%TYPE`: the type of a column.
    pub of_column: bool,
    /// The modifiers in parentheses: constants, or names for some types of extensions. The precision alone for `interval`.
    pub modifiers: Vec<Expr>,
    /// The fields of `interval`.
    pub interval: Option<IntervalFields>,
    /// A bound for each dimension of an array; None without a number.
    pub array_bounds: Vec<Option<i32>>,
    pub at: Location,
}

impl TypeName {
    /// Returns the type of that name in `pg_catalog`.
    pub fn system(name: &str, at: Location) -> TypeName {
        TypeName::of(AnyName { parts: vec!["pg_catalog".to_owned(), name.to_owned()], at })
    }

    /// Returns the type of that name.
    pub fn of(name: AnyName) -> TypeName {
        let at = name.at;
        TypeName {
            name,
            setof: false,
            of_column: false,
            modifiers: Vec::new(),
            interval: None,
            array_bounds: Vec::new(),
            at,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalFields {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    YearToMonth,
    DayToHour,
    DayToMinute,
    DayToSecond,
    HourToMinute,
    HourToSecond,
    MinuteToSecond,
}
