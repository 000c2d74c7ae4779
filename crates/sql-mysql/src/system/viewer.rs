//! The session that looks at a system table, and the server that it looks at.

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
    /// What the session has set of system variables.
    pub variables: Values,
    /// What the session may do: system tables show no more.
    pub rights: Arc<Rights>,
}

pub fn viewer(ctx: &EvalContext) -> &Viewer {
    ctx.slot().unwrap_or_else(|| unreachable!("a session leaves its viewer when it begins"))
}
