//! A compiled statement: its plan, and the definitions that it was bound to.

use std::sync::Arc;

use crate::bind::load::Load;
use crate::types::Column;
use query::catalog::table::Table;
use query::catalog::view::View;
use query::nodes::change::{Delete, Insert, Update};
use query::nodes::expr::Expr;
use query::nodes::node::Node;

#[derive(Debug)]
pub enum Plan {
    Query { node: Arc<Node>, columns: Arc<[Column]> },
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Do(Vec<Expr>),
    Load(Load),
}

#[derive(Debug)]
pub struct Compiled {
    pub plan: Plan,
    pub tables: Vec<Arc<Table>>,
    /// The tables whose rows it changes.
    pub written: Vec<Arc<Table>>,
    /// The names under which the statement refers to tables, for LOCK TABLES.
    pub named: Vec<(u64, String)>,
    /// The tables whose metadata locks are held: these, and those that foreign keys reach.
    pub mdl_tables: Vec<Arc<Table>>,
    pub views: Vec<Arc<View>>,
    /// The tables that are read, with the ages of their statistics at planning.
    pub known: Vec<(Arc<Table>, u64)>,
    pub volatile: bool,
    /// The plan is expensive enough to be planned again for each run.
    pub is_heavy: bool,
    /// The plan is restartable while it has changed nothing.
    pub is_restartable: bool,
    /// The plan only computes a row with SLEEP, so it needs no thread meanwhile.
    pub only_sleeps: bool,
    /// Its effects, as flags of the transaction state (`session::session_tracking`).
    pub effects: u16,
}
