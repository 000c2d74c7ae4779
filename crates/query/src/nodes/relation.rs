//! The FROM of a bound block: its tables and how they are joined, before the planner has chosen an order.

use std::sync::Arc;

use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Lock, Node};
use crate::nodes::system_table::SystemTable;
use crate::types::Column;

/// The kind of a table in FROM.
#[derive(Clone, Debug)]
pub enum Origin {
    Base(Arc<Table>),
    Derived {
        node: Arc<Node>,
    },
    /// A LATERAL derived table, evaluated for each row of the tables before it, at this depth.
    Lateral {
        node: Arc<Node>,
        depth: usize,
    },
    System(&'static SystemTable),
    /// A view merged into the block.
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
    /// On the nullable side of an outer join.
    pub nullable: bool,
    pub allowed: Option<Allowed>,
    /// The columns that the account may read.
    pub readable: Columns,
    /// A table of the body of the view with this alias, which no name reaches.
    pub within: Option<String>,
    /// Tables that must come before this one in the join order: those that a LATERAL one reads, and the left side of
    /// STRAIGHT_JOIN (QU-21).
    pub after: Vec<usize>,
}

/// The columns of a table that may be read or written.
#[derive(Clone, Debug)]
pub enum Columns {
    All,
    /// A flag for each column.
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

/// The join tree of FROM.
#[derive(Clone, Debug)]
pub enum Source {
    Table(usize),
    Inner(Vec<Source>, Vec<Expr>),
    Left(Box<Source>, Box<Source>, Vec<Expr>),
    /// A semi-join, or an antijoin (true): keeps the rows of the enclosing join that have a match, or those that have
    /// none. All conditions of a match are here (QU-23).
    Semi(Box<Source>, Vec<Expr>, bool),
}

/// The parts of a merged view.
#[derive(Clone, Debug)]
pub struct Merged {
    pub view: Arc<View>,
    /// The expression of each column over the wide row.
    pub exprs: Vec<Expr>,
    pub conditions: Vec<Expr>,
    /// The binder's number of the privileges with which the body is read and changed.
    pub rights: usize,
    /// The only table of its body, and the column of it behind each of the view's columns.
    pub over: Option<(usize, Vec<Option<usize>>)>,
}

/// The indexes that hints allow.
#[derive(Clone, Debug)]
pub struct Allowed {
    pub primary: bool,
    pub indexes: Vec<usize>,
    /// FORCE INDEX: a full scan is a last resort.
    pub forced: bool,
}
