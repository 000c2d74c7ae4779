//! Functions, operators, casts and aggregates of dates, times and intervals.
//!
//! Each file has the computations of one kind over PostgreSQL's integers, as functions without a context, and at its end the bodies that the rows of `rows` name. `values` takes arguments out of values and brings results into them.

pub mod aggregate;
pub mod arithmetic;
pub mod clock;
pub mod compare;
pub mod convert;
pub mod extract;
pub mod format;
pub mod make;
pub mod rows;
pub mod truncate;
pub mod values;

#[cfg(test)]
mod tests;
