//! What binder and planner ask of the session.

use std::ops::Bound;
use std::sync::Arc;

use engine::rows::MapId;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::parse::statement;
use crate::rights::Rights;
use crate::types::Type;
use crate::value::Value;

/// What the session says of variables.
pub trait Variables {
    fn system(&self, scope: Option<statement::Scope>, name: &str) -> Result<(Value, Type)>;
    fn user(&self, name: &str) -> Type;
    /// What an account may do; None: there is no such account.
    fn rights_of(&self, account: &str) -> Result<Option<Arc<Rights>>>;
    /// The table is about to be planned over: what is known of it should not be old.
    fn know(&self, table: &Arc<Table>);
    /// About how many records a map has from one key to before another.
    fn extent(&self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<f64>;
}
