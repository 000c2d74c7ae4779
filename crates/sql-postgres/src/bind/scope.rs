//! Scopes: the tables of a query block, the names that reach their columns, and its grouping and windows.

use std::collections::HashMap;
use std::sync::Arc;

use datum::value::RecordType;
use query::block::semi_join::BlockTables;
use query::nodes::expr::Expr;
use query::nodes::node::{AggregateCall, Node};
use query::nodes::relation::ScopeTable;
use query::nodes::subquery::Plain;
use query::types::Column;
use syntax::postgres::tree;

use crate::bind::project_set::Sets;
use crate::bind::window::Windowed;
use crate::types::oid::Oid;

/// Where a place in an expression is not of the block's rows yet, but of an aggregate's result: `AGGREGATES` and its number.
pub const AGGREGATES: usize = 1 << 40;
/// The same of window functions.
pub const WINDOWS: usize = 1 << 41;
/// The same of set-returning functions.
pub const SETS: usize = 1 << 42;

/// A table, join or subquery that names in expressions reach: PostgreSQL's ParseNamespaceItem.
#[derive(Clone, Debug)]
pub struct NameItem {
    /// Empty: a join without an alias.
    pub alias: String,
    /// The schema of a stored table without an alias, by its PostgreSQL name.
    pub schema: Option<String>,
    /// The name of a stored table, where the alias may differ.
    pub table_name: Option<String>,
    pub columns: Arc<[NameColumn]>,
    /// A qualified name reaches it.
    pub is_relation_visible: bool,
    /// An unqualified name reaches its columns.
    pub are_columns_visible: bool,
    /// Its whole row is the value of its one column: a function of a scalar type.
    pub is_scalar: bool,
    /// Its rows are of a composite type: a function that returns them.
    pub composite: Option<Oid>,
    pub presence: Presence,
}

/// How a whole row is told from none: an outer join fills its columns with NULLs where it is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    #[default]
    Always,
    /// This column is never NULL in a row.
    OfColumn(usize),
    /// All columns are NULL in a missing row.
    OfAny,
}

#[derive(Clone, Debug)]
pub struct NameColumn {
    pub name: String,
    /// Over the block's wide rows.
    pub expr: Expr,
    /// The stored column: the table's id, and the column's number from 1.
    pub origin: Option<(u64, u16)>,
    /// `*` leaves it out, and no name reaches it.
    pub is_hidden: bool,
    /// `*` leaves it out: a column that SEARCH or CYCLE adds, in a query of another level.
    pub is_unexpanded: bool,
}

/// The grouping of a block.
#[derive(Debug, Default)]
pub struct Grouped {
    pub keys: Vec<Expr>,
    pub calls: Vec<AggregateCall>,
    /// The number of each call that is written in the block, by its bound form: equal calls are computed once.
    pub numbers: HashMap<String, usize>,
    /// Of each set-returning function of GROUP BY, a column that it reads.
    pub set_reads: Vec<Option<usize>>,
    /// Places of tables whose whole primary key is grouped by.
    pub dependent: Vec<std::ops::Range<usize>>,
    /// The grouping sets, as numbers of keys. Empty: one set of all keys.
    pub sets: Vec<Vec<usize>>,
    /// The call whose result is the number of the grouping set.
    pub level: Option<usize>,
}

impl Grouped {
    /// Returns whether each set is one group whose row reads none of the input.
    pub fn is_degenerate(&self) -> bool {
        self.keys.is_empty() && self.calls.is_empty()
    }

    /// Returns the expressions over the input rows.
    pub fn expressions(&mut self) -> Vec<&mut Expr> {
        self.keys.iter_mut().chain(self.calls.iter_mut().flat_map(|call| &mut call.arguments)).collect()
    }
}

/// A clause, as errors name it and as it permits aggregates and windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Clause {
    #[default]
    From,
    On,
    Where,
    GroupBy,
    Having,
    SelectList,
    OrderBy,
    DistinctOn,
    Limit,
    /// LIMIT of FETCH ... WITH TIES.
    Ties,
    Offset,
    Values,
    InsertValues,
    UpdateSource,
    Returning,
    WindowPartition,
    WindowOrder,
    WindowFrame,
    Filter,
    FunctionInFrom,
    Check,
    CopyWhere,
    Default,
    Generated,
    IndexExpression,
    IndexPredicate,
    AggregateArgument,
    WindowArgument,
}

#[derive(Debug, Default)]
pub struct BlockScope {
    pub tables: Vec<ScopeTable>,
    pub width: usize,
    /// Places that are read.
    pub used: Vec<bool>,
    pub names: Vec<NameItem>,
    pub clause: Clause,
    /// The block groups. Its own expressions are bound over wide rows and brought to groups at the end; those of subqueries refer to groups at once.
    pub grouped: Option<Grouped>,
    pub windowed: Windowed,
    /// References to columns outside of aggregates: the place, and the byte of the text.
    pub references: Vec<(usize, u32)>,
    /// References of subqueries to this block, by the subquery's number.
    pub subquery_reads: Vec<(usize, Vec<usize>)>,
    /// Keys of the grouping with subqueries, as they are written, and their numbers: a subquery is the same only by its text.
    pub key_texts: Vec<(tree::Expr, usize)>,
    /// An aggregate is open around the expression.
    pub in_aggregate: bool,
    /// A table of the block is the recursive query of whose recursive term the block is part.
    pub reads_itself: bool,
    pub sets: Sets,
    /// The columns that a function in FROM is given, until it takes them.
    pub defined_columns: Option<Arc<RecordType>>,
}

impl BlockScope {
    /// Lets the tables of subqueries join those of the block.
    pub fn block_tables(&mut self) -> BlockTables<'_> {
        BlockTables { tables: &mut self.tables, width: &mut self.width, used: &mut self.used }
    }

    /// Adds a table at the end of the wide row and returns its number.
    pub fn add(&mut self, mut table: ScopeTable) -> usize {
        table.offset = self.width;
        self.width += table.columns.len() + usize::from(table.key_at.is_some());
        if table.key_at.is_some() {
            table.key_at = Some(self.width - 1);
        }
        self.used.resize(self.width, false);
        self.tables.push(table);
        self.tables.len() - 1
    }

    /// Returns the number of the table that has the place.
    pub fn table_of(&self, place: usize) -> Option<usize> {
        self.tables.iter().position(|table| (table.offset..table.offset + table.columns.len()).contains(&place))
    }

    /// Notes that the columns of an expression are read.
    pub fn note_use(&mut self, expr: &Expr) {
        for place in expr.columns() {
            if let Some(used) = self.used.get_mut(place) {
                *used = true;
            }
        }
    }
}

/// A common table expression in scope.
#[derive(Clone, Debug)]
pub struct Common {
    pub name: String,
    pub columns: Vec<OutputColumn>,
    /// How many of the columns, the last ones, SEARCH and CYCLE add: `*` leaves them out in queries of another level.
    pub added: usize,
    pub level: usize,
    pub node: Arc<Node>,
    /// The height of its plan and its number of nodes (`Binder::rise`).
    pub size: (usize, usize),
    /// How often it was referred to.
    pub references: usize,
    pub state: CommonState,
    /// The columns that it reads of the queries around it: (depth, place).
    pub outer: Vec<(usize, usize)>,
    /// The depth of its block: those from it on that refer to it read the same.
    pub depth: usize,
}

/// Whether a common table expression can be referred to.
#[derive(Clone, Debug, Default)]
pub enum CommonState {
    #[default]
    Ready,
    /// A statement that changes rows and returns none.
    ReturnsNothing,
    /// Within its recursive term, bound at this depth of subqueries: once.
    Recursive(usize),
}

/// A column of a query's result.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    pub column: Column,
    pub origin: Option<(u64, u16)>,
    /// The byte of the text where its expression is.
    pub at: u32,
}

impl OutputColumn {
    pub fn oid(&self) -> Oid {
        crate::types::registry::oid_of(&self.column.ty)
    }
}

/// A bound query.
#[derive(Debug)]
pub struct BoundQuery {
    pub node: Arc<Node>,
    pub columns: Vec<OutputColumn>,
    /// The block itself, if it can be merged into the enclosing block.
    pub plain: Option<Arc<Plain>>,
}
