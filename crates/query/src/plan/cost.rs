//! Cost constants. The unit is one row of a table that is read sequentially and evaluated.
//!
//! They are ratios, measured with rows in memory (TPC-H, two cores). They need not be exact, only such that errors of
//! the planner are cheap.

/// Reading the next row of a leaf.
pub const ROW: f64 = 1.0;
/// Fetching the row of an index entry: a descent in the tree of rows.
pub const LOOKUP: f64 = 3.0;
/// Starting a range: a descent and the bounds.
pub const RANGE: f64 = 1.0;
/// The fixed cost of a full scan, for any number of rows: it locks all of them, and a table that is small today may
/// grow.
pub const WHOLE: f64 = 20.0;
/// A cheaper plan is not compared with an index union.
pub const UNION: f64 = 8.0;
/// Evaluating an expression, comparing, or passing on a row.
pub const STEP: f64 = 0.1;

/// Inserting a row into a hash table.
pub const HASH: f64 = 1.5;
/// Probing a hash table.
pub const PROBE: f64 = 0.7;
/// Opening the right side of a nested loop for a row.
pub const OPEN: f64 = 2.0;

/// The assumed rows of a table without statistics.
pub const ROWS: f64 = 1000.0;
/// The assumed rows of a search in a system table.
pub const FOUND: f64 = 4.0;
/// The assumed selectivity of a condition without statistics.
pub const KEPT: f64 = 1.0 / 3.0;
/// The assumed selectivity of an equality, and of `BETWEEN` and `LIKE`, as in MySQL.
pub const KEPT_EQUAL: f64 = 0.1;
pub const KEPT_BETWEEN: f64 = 1.0 / 9.0;
/// The assumed selectivity of a test of terms (`nodes/term_test`), as PostgreSQL assumes it of arrays.
pub const KEPT_TERM: f64 = 0.005;

/// Returns the fraction of rows that a semi-join keeps if `selectivity` of them have a match, or that an antijoin keeps.
pub fn kept(selectivity: f64, is_anti: bool) -> f64 {
    if is_anti { (1.0 - selectivity).max(0.05) } else { selectivity.max(0.001) }
}
