//! What things cost. One unit is a row of a table that is read where it lies, one after the other, and looked at.
//!
//! The numbers are ratios that were measured on rows in memory (TPC-H, two cores); they need not be good, only such that the planner errs where it matters little.

/// To read one more row of a leaf at hand.
pub const ROW: f64 = 1.0;
/// To go from an index's entry to its row: down the tree of the rows.
pub const LOOKUP: f64 = 3.0;
/// To begin a range: down a tree, and the bounds.
pub const RANGE: f64 = 1.0;
/// A walk over all rows begins with so much, whatever their number: it locks them all, and a table that is small today may not be tomorrow.
pub const WHOLE: f64 = 20.0;
/// What costs no more is not worth looking for a way through several indexes.
pub const UNION: f64 = 8.0;
/// To compute something of a row, to compare it, to pass it on.
pub const STEP: f64 = 0.1;

/// To put a row into a hash table.
pub const HASH: f64 = 1.5;
/// To look up a row in a hash table.
pub const PROBE: f64 = 0.7;
/// To open the right side of a loop for a row.
pub const OPEN: f64 = 2.0;

/// Where nothing is known of a table.
pub const ROWS: f64 = 1000.0;
/// Of rows that a condition is asked of which nothing is known, the share that is kept.
pub const KEPT: f64 = 1.0 / 3.0;
/// The same of an equality, of `BETWEEN` and `LIKE`: MySQL's guesses.
pub const KEPT_EQUAL: f64 = 0.1;
pub const KEPT_BETWEEN: f64 = 1.0 / 9.0;

/// Returns the share of rows that a semi-join keeps if `share` of them have a match; for an antijoin that of the others.
pub fn kept(share: f64, is_anti: bool) -> f64 {
    if is_anti { (1.0 - share).max(0.05) } else { share.max(0.001) }
}
