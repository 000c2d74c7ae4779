//! The session that reads a system table, and its server.

use std::sync::Arc;

use crate::instance::database::Database;
use crate::instance::handle::Handle;
use crate::instance::variables::Values;
use crate::rights::Rights;
use query::nodes::context::EvalContext;

/// A session leaves it in its evaluation context.
pub struct Viewer {
    pub db: Arc<Database>,
    pub handle: Arc<Handle>,
    /// The session's system variables.
    pub variables: Values,
    /// The session's privileges, by which system tables filter their rows.
    pub rights: Arc<Rights>,
}

pub fn viewer(ctx: &EvalContext) -> &Viewer {
    ctx.slot().unwrap_or_else(|| unreachable!("a session leaves its viewer when it begins"))
}
