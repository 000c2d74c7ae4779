//! A statement ready to run: its plan, and the definitions that it was bound to.

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
    /// Those whose rows it changes.
    pub written: Vec<Arc<Table>>,
    /// The names under which the statement reads them: LOCK TABLES locks names.
    pub named: Vec<(u64, String)>,
    /// All whose gates are passed: these, and those that foreign keys bring in.
    pub gates: Vec<Arc<Table>>,
    pub views: Vec<Arc<View>>,
    /// Tables that are read, with the ages of what was known of them.
    pub known: Vec<(Arc<Table>, u64)>,
    pub volatile: bool,
    /// It is expected to read much: worth a plan of its own for each run.
    pub is_heavy: bool,
    /// It may be dropped half-way and begun anew, while it has changed nothing.
    pub may_begin_again: bool,
    /// It only computes a row with SLEEP: it needs no thread meanwhile.
    pub only_sleeps: bool,
    /// What it does, in the letters of a transaction's state.
    pub deeds: u16,
}
