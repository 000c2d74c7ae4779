//! Rows of `pg_proc`, `pg_operator` and `pg_cast` of dates, times and intervals.
//!
//! Not among them: hashes, `in_range`, functions of ranges and of sets, and those that are no function of its arguments alone.

mod compare;
mod functions;
mod operators;

pub use compare::FUNCTIONS as COMPARISONS;
pub use functions::FUNCTIONS;
pub use operators::{CASTS, OPERATORS};
