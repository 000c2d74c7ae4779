//! The FROM of a bound block: its tables and how they are joined, before the planner has chosen an order.

use std::sync::Arc;

use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Lock, Node};
use crate::nodes::system_table::SystemTable;
use crate::types::Column;

/// The table that a name in FROM stands for.
#[derive(Clone, Debug)]
pub enum Origin {
    Base(Arc<Table>),
    Derived {
        node: Arc<Node>,
    },
    /// A derived table that looks at the tables before it: made anew for each of their rows, as a subquery so deep.
    Lateral {
        node: Arc<Node>,
        depth: usize,
    },
    System(&'static SystemTable),
    /// A view whose tables are in the same block.
    View(Arc<Merged>),
}

#[derive(Clone, Debug)]
pub struct ScopeTable {
    pub alias: String,
    pub schema: String,
    pub origin: Origin,
    pub offset: usize,
    pub columns: Vec<Column>,
    /// Columns that `*` leaves out.
    pub hidden: Vec<bool>,
    pub key_at: Option<usize>,
    pub lock: Option<Lock>,
    /// On the inner side of an outer join: its columns can be NULL.
    pub nullable: bool,
    pub allowed: Option<Allowed>,
    /// Columns that whoever asks may read.
    pub readable: Columns,
    /// It belongs to the body of the view that has this alias: no name reaches it.
    pub within: Option<String>,
    /// Tables that must be read before this one: those that a LATERAL one looks at, and the left of STRAIGHT_JOIN.
    /// The planner obeys it (QU-21).
    pub after: Vec<usize>,
}

/// Which columns of a table may be read or written.
#[derive(Clone, Debug)]
pub enum Columns {
    All,
    /// For each column of the table.
    Some(Vec<bool>),
}

impl Columns {
    pub fn has(&self, at: usize) -> bool {
        match self {
            Columns::All => true,
            Columns::Some(list) => list.get(at).copied().unwrap_or(false),
        }
    }
}

/// How FROM puts tables together.
#[derive(Clone, Debug)]
pub enum Source {
    Table(usize),
    Inner(Vec<Source>, Vec<Expr>),
    Left(Box<Source>, Box<Source>, Vec<Expr>),
    /// No table that is joined: of what it stands beside, the rows stay that have a match in it, or (true) those that have none. All that says what a match is, is here.
    /// QU-23.
    Semi(Box<Source>, Vec<Expr>, bool),
}

/// The parts of a merged view.
#[derive(Clone, Debug)]
pub struct Merged {
    pub view: Arc<View>,
    /// Each column, over the wide row.
    pub exprs: Vec<Expr>,
    pub conditions: Vec<Expr>,
    /// The binder's number of the privileges under which the body is read and changed.
    pub rights: usize,
    /// The one table of its body, and which of that one's columns each of the view's is.
    pub over: Option<(usize, Vec<Option<usize>>)>,
}

/// Which keys of a table may lead to its rows.
#[derive(Clone, Debug)]
pub struct Allowed {
    pub primary: bool,
    pub indexes: Vec<usize>,
    /// FORCE: rather any of them than the whole table.
    pub forced: bool,
}
