//! Bound changes: INSERT, UPDATE, DELETE and LOAD DATA with the rows that they find or bring, and the rules of the tables that they write.

use std::sync::Arc;

use datum::Fault;

use crate::catalog::foreign_graph::ForeignKeyGraph;
use crate::catalog::table::Table;
use crate::nodes::expr::Expr;
use crate::nodes::node::Node;
use crate::nodes::walk::is_steady;
use crate::types::Column;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    Fail,
    Ignore,
    Replace,
    Update,
}

#[derive(Debug)]
pub enum Values {
    /// For each target an expression over the row so far; None: DEFAULT.
    Rows(Vec<Vec<Option<Expr>>>),
    Query(Arc<Node>),
}

/// The rules that every change of a table's rows obeys.
#[derive(Debug)]
pub struct Rules {
    pub table: Arc<Table>,
    /// For each column what it holds where nothing is given; None: it must be given.
    pub defaults: Vec<Option<Expr>>,
    /// Columns that follow the clock at every change.
    pub clocks: Vec<(usize, Expr)>,
    pub checks: Vec<(String, Expr)>,
    /// The tables that its foreign keys reach.
    pub foreign_graph: Option<Arc<ForeignKeyGraph>>,
    /// WITH CHECK OPTION of the views through which rows are changed.
    pub options: Vec<(String, Expr)>,
}

impl Rules {
    /// The tables whose rows change: this one, and those that cascades reach.
    pub fn written(&self) -> Vec<Arc<Table>> {
        let others = self.foreign_graph.iter().flat_map(|foreign_graph| foreign_graph.changed());
        std::iter::once(&self.table).chain(others).cloned().collect()
    }
}

#[derive(Debug)]
pub struct Insert {
    pub rules: Rules,
    pub targets: Vec<usize>,
    pub values: Values,
    pub on_conflict: OnConflict,
    /// ON DUPLICATE KEY UPDATE: over the row that is there, followed by the new one, and by what a query's rows have
    /// behind the values of the targets.
    pub updates: Vec<(usize, Expr)>,
    /// Generated columns that were given values all the same.
    pub disregarded: Vec<usize>,
    /// INSERT IGNORE: rows that cannot be put in, or changed, are left out.
    pub ignore: bool,
    /// ON CONFLICT: what `on_conflict` says holds for conflicts of these keys alone.
    pub arbiter: Option<Arbiter>,
    pub returning: Option<Returning>,
}

/// The conflicts that an INSERT handles, by standard rules: assignments read the rows as they were, an updated row counts once, and a row that is left out leaves no
/// warning.
#[derive(Debug)]
pub struct Arbiter {
    /// Unique keys by their indexes, and `None` for the primary key. A conflict of another key fails.
    pub keys: Vec<Option<usize>>,
    /// Over the row that is there, followed by the new one: whether it is updated.
    pub condition: Option<Expr>,
    /// Returns the error of a row that the statement would update after it has inserted or updated it.
    pub affects_twice: fn() -> Fault,
}

impl Insert {
    /// As a plan that reads (`plan/restartable`): what is put in was sent with the statement, or is the same each time it is asked for.
    pub fn is_restartable(&self) -> bool {
        let Values::Rows(rows) = &self.values else { return false };
        let defaults = self.rules.defaults.iter().flatten();
        let updates = self.updates.iter().map(|(_, expr)| expr);
        let mut exprs = rows.iter().flatten().flatten().chain(defaults).chain(updates);
        !self.rules.table.is_keyspace() && exprs.all(is_steady)
    }
}

/// A table whose rows are changed, and where they lie in the wide row.
#[derive(Debug)]
pub struct Target {
    pub rules: Rules,
    pub offset: usize,
    pub key_at: usize,
    pub sets: Vec<(usize, Expr)>,
}

#[derive(Debug)]
pub struct Update {
    pub node: Arc<Node>,
    pub targets: Vec<Target>,
    pub ignore: bool,
    /// Assignments read the row as it was found, also in an UPDATE of one table. Otherwise they see those before them.
    pub at_once: bool,
    /// Of one target.
    pub returning: Option<Returning>,
}

#[derive(Debug)]
pub struct Delete {
    pub node: Arc<Node>,
    pub targets: Vec<Target>,
    pub ignore: bool,
    /// Of one target.
    pub returning: Option<Returning>,
}

/// MERGE.
#[derive(Debug)]
pub struct Merge {
    /// The rows of the source, each with the rows of the target that match it, or with none.
    pub node: Arc<Node>,
    pub table: Arc<Table>,
    /// Where the target lies in the wide row, and the key of its row.
    pub offset: usize,
    pub key_at: usize,
    /// Over the wide row: whether the row of the target is a match.
    pub condition: Expr,
    pub whens: Vec<MergeWhen>,
    /// Returns the error of a row of the target that would be changed twice.
    pub affects_twice: fn() -> Fault,
}

/// WHEN [NOT] MATCHED AND condition THEN action.
#[derive(Debug)]
pub struct MergeWhen {
    pub is_matched: bool,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

#[derive(Debug)]
pub enum MergeAction {
    Nothing,
    Update(Target),
    Delete(Target),
    /// The values of the targets, over the wide row.
    Insert(Box<Insert>, Vec<Expr>),
}

impl MergeAction {
    fn rules(&self) -> Option<&Rules> {
        match self {
            MergeAction::Nothing => None,
            MergeAction::Update(target) | MergeAction::Delete(target) => Some(&target.rules),
            MergeAction::Insert(insert, _) => Some(&insert.rules),
        }
    }
}

impl Merge {
    /// The tables whose rows change.
    pub fn written(&self) -> Vec<Arc<Table>> {
        self.whens.iter().filter_map(|when| when.action.rules()).flat_map(Rules::written).collect()
    }
}

/// Expressions over a changed row, and what they are called.
#[derive(Debug)]
pub struct Returning {
    pub exprs: Vec<Expr>,
    /// The expressions are over the wide row that was found, with the changed row in its place, and not over the row of the table alone.
    pub is_wide: bool,
    pub columns: Arc<[Column]>,
}
