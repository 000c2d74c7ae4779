//! The bound statements of this dialect, as `query` keeps and runs them.

use crate::bind::load::LoadSource;
use query::session::statement;

pub type Plan = statement::Plan<LoadSource>;
pub type BoundStatement = statement::BoundStatement<LoadSource>;
pub type Load = statement::Load<LoadSource>;
