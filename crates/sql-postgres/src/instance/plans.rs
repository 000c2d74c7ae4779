//! Plans that sessions share, found by the text of a statement without its literals.

use std::sync::Arc;

use query::session::plan_cache::PlanCache;

use crate::session::statement::Prepared;
use crate::types::oid::Oid;

pub type Plans = PlanCache<PlanContext, OfText, Arc<Prepared>>;

/// The facts that binding reads of a session. Equal facts give equal plans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanContext {
    pub database: String,
    pub role: Oid,
    /// Its name, which binding folds into constants.
    pub role_name: String,
    /// The versions of accounts and of access records, on which privileges depend.
    pub rights: (u64, u64),
    pub search_path: Vec<String>,
    /// PS-51: `Snapshot::types_version`.
    pub types_version: u64,
    /// Settings by which literals are read and values shown: they are part of constants that the binder folds.
    pub settings: Vec<Box<str>>,
}

/// The entry of a parameterised text.
#[derive(Clone, Debug)]
pub enum OfText {
    Prepared(Arc<Prepared>),
    /// The plan depends on the literals.
    Unshared,
}
