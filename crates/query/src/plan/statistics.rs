//! The interface through which the planner obtains statistics from the session.

use std::ops::Bound;
use std::sync::Arc;

use engine::rows::MapId;

use crate::catalog::table::Table;

pub trait Statistics {
    /// Refreshes the table's statistics if they are too old to plan with.
    fn know(&self, table: &Arc<Table>);
    /// Returns about how many records a map has between two keys.
    fn extent(&self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<f64>;
    /// Returns whether the plan may depend on the values of parameters. After that it holds for this run only.
    fn may_depend_on_values(&self) -> bool {
        false
    }
}
