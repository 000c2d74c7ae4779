//! The facts of a session that binding reads, and what the shared plan cache holds for this dialect (`query::session::plan_cache`).
//!
//! MY-4: a change of any of these facts leaves the session's plan-cache context. MY-5: a session with temporary tables has a context of its own, and a statement that holds for one run only (`is_volatile`:
//! variables, system tables) is not cached. MY-6: a cached plan is validated by `Session::is_plan_current` before it runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::instance::prepared::Described;
use crate::instance::statement::BoundStatement;
use crate::rights::Privileges;
use crate::scalar::settings::Settings;
use query::session::plan_cache::PlanCache;

/// The facts of a session that binding reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanContext {
    pub settings: Settings,
    pub database: Option<String>,
    /// The generation of the account list: it decides what this account, its roles and the definers of views may do.
    pub generation: u64,
    pub account: String,
    pub roles: BTreeSet<String>,
    /// The global privileges as of the login (MY-14).
    pub entered_with: Privileges,
}

/// An entry of the plan cache for a parameterised text.
#[derive(Clone, Debug)]
pub enum OfText {
    Plan(Arc<BoundStatement>),
    /// The plan depends on the literals, so texts of this form are parsed as they are.
    Unshared,
}

pub type Plans = PlanCache<PlanContext, OfText, Arc<Described>>;
