//! The plan: a tree of operators over bound expressions. Nodes are shared and immutable; the state of a running plan is in `exec`.
//!
//! Rows of one query block are *wide*: each table of its FROM has a fixed range of slots, and a node fills the slots of its tables. Above the joins come grouped rows (keys, then
//! aggregates), above them projected rows.

use std::sync::Arc;

use datum::key::KeyOrder;
use datum::row::ColumnPlace;
use engine::rows::Strength;

use crate::catalog::table::{Part, Table};
use crate::key::Shown;
use crate::key_form::KeyForm;
use crate::nodes::aggregate::Aggregate;
use crate::nodes::comparison::{Coerced, ComparisonRules};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::system_table::SystemTable;
use crate::nodes::table_function::{ProjectSet, TableFunction};
use crate::nodes::term_test::TermTest;
use crate::nodes::window;
use crate::types::Type;
use crate::value::Value;

#[derive(Debug)]
pub enum Node {
    /// One row without values.
    One {
        width: usize,
    },
    Scan(Box<Scan>),
    /// Nested-loop join: the right side is opened for each left row, which its expressions may read.
    Loop {
        left: Arc<Node>,
        right: Arc<Node>,
        kind: JoinKind,
        on: Vec<Expr>,
        fills: Vec<(usize, usize)>,
    },
    /// Hash join: the right side is read once into a hash table.
    Hash(HashJoin),
    Filter {
        input: Arc<Node>,
        conditions: Vec<Expr>,
    },
    LockRows(Box<LockRows>),
    Group(Group),
    Window(window::Window),
    Project {
        input: Arc<Node>,
        exprs: Vec<Expr>,
    },
    /// Removes rows whose first values have occurred.
    Distinct {
        input: Arc<Node>,
        types: Vec<Type>,
    },
    Sort {
        input: Arc<Node>,
        keys: Vec<SortKey>,
        limit: Option<(Expr, Option<Expr>)>,
        /// Returns only the first of the rows with equal keys.
        unique: bool,
    },
    /// Keeps the first values of each row.
    Strip {
        input: Arc<Node>,
        width: usize,
    },
    Limit {
        input: Arc<Node>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        /// SQL_CALC_FOUND_ROWS: reads to the end and counts the rows.
        counts: bool,
    },
    /// FETCH ... WITH TIES: the rows up to a limit, and those after them with the same keys as the last.
    Ties {
        input: Arc<Node>,
        limit: Expr,
        offset: Option<Expr>,
        keys: Vec<SortKey>,
    },
    Union {
        inputs: Vec<Arc<Node>>,
    },
    /// INTERSECT, or EXCEPT.
    SetOperation {
        left: Arc<Node>,
        right: Arc<Node>,
        types: Vec<Type>,
        keeps_common: bool,
        /// ALL: a right row matches one left row only.
        all: bool,
    },
    /// A derived table: puts its rows into their slots of the wide row.
    Derived {
        input: Arc<Node>,
        alias: String,
        columns: Vec<String>,
        offset: usize,
        width: usize,
    },
    /// A LATERAL derived table, evaluated for each row that it is joined to.
    Lateral {
        input: Arc<Node>,
        alias: String,
        columns: Vec<String>,
        /// The depth of the outer row, counted as for subqueries.
        depth: usize,
        offset: usize,
        width: usize,
    },
    /// A table function, below a `Derived` or `Lateral`.
    TableFunction(Box<TableFunction>),
    /// Set-returning functions, evaluated for each input row.
    ProjectSet(ProjectSet),
    /// The rows of a common table expression.
    Common {
        id: usize,
        source: Arc<Node>,
        recursion: Option<Recursion>,
        /// Computed once per statement. One that reads outer rows is computed each time that it is opened.
        is_kept: bool,
    },
    /// The rows of the previous round, within the recursive part of a common table expression.
    LastRound {
        id: usize,
    },
    System {
        table: &'static SystemTable,
        offset: usize,
        width: usize,
        /// Conditions that are evaluated above and may narrow the read.
        wanted: Vec<Expr>,
        /// For keys of the keyspace: as in `Scan`.
        lock: Option<Lock>,
        key_at: Option<usize>,
    },
    /// Constant rows: VALUES, SHOW.
    Rows {
        rows: Vec<Vec<Expr>>,
    },
}

#[derive(Debug)]
pub struct Recursion {
    pub part: Arc<Node>,
    pub distinct: bool,
    pub types: Vec<Type>,
    /// A round goes on when a reader asks for more rows. Otherwise all run before the first row.
    pub is_lazy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    /// Left rows with a match, each once.
    Semi,
    /// Left rows without a match.
    Anti,
}

impl JoinKind {
    /// Returns whether the join gives left rows alone, each once at most.
    pub fn decides(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
}

/// A scan of a table.
#[derive(Debug)]
pub struct Scan {
    pub table: Arc<Table>,
    pub alias: String,
    /// The offset of its columns in the wide row, and the width of that row.
    pub offset: usize,
    pub width: usize,
    /// The slot of each column after column pruning (`plan/column_pruning`).
    pub places: Option<Vec<usize>>,
    /// The columns that are used.
    pub needed: Vec<usize>,
    /// The slot that receives the row's key, for changes of rows.
    pub key_at: Option<usize>,
    pub access: Access,
    /// Conditions on the row, evaluated as soon as it is read.
    pub conditions: Vec<Expr>,
    /// The number of leading conditions that hold for every row that the access path finds, if its bounds are exact and
    /// the rows are not newer than the index.
    pub implied: usize,
    /// The number of conditions after these that read only columns of index entries. They are evaluated before the row
    /// is read (index condition pushdown).
    pub pushed: usize,
    /// The conditions have constant parts to fold before the scan (`plan/constant_folding`).
    pub folds: bool,
    /// The columns of `needed` that are used besides the implied conditions.
    pub needed_after: Vec<usize>,
    /// The columns to read before each condition: for all conditions, and without the implied and pushed ones.
    pub stages: Stages,
    pub stages_after: Stages,
    pub lock: Option<Lock>,
    /// The columns that index entries contain.
    pub shown: Vec<Shown>,
    /// A node above relies on rows in the order of the key (QU-29).
    pub keeps_order: bool,
    /// Returns only these slots, each once, instead of wide rows.
    pub output: Option<Vec<usize>>,
    /// Estimates of the rows that the access path finds, of those that satisfy the conditions, and of the cost.
    pub found: f64,
    pub estimate: f64,
    pub cost: f64,
}

impl Scan {
    /// Returns the slot of the column in the wide row.
    pub fn place(&self, column: usize) -> Option<usize> {
        match &self.places {
            None => Some(self.offset + column),
            Some(places) => self.needed.contains(&column).then(|| places[column]),
        }
    }

    /// Iterates over the names of its columns and their slots.
    pub fn names(&self) -> impl Iterator<Item = (usize, String)> {
        let name = |at: usize| Some((self.place(at)?, format!("{}.{}", self.alias, self.table.columns[at].name)));
        (0..self.table.columns.len()).filter_map(name)
    }

    /// Returns whether index entries contain these columns. Locking reads and changes read the row itself.
    pub fn is_shown(&self, columns: &[usize]) -> bool {
        let is_shown = |column: &usize| self.shown.iter().any(|shown| shown.column == *column);
        self.access.index.is_some() && self.lock.is_none() && self.key_at.is_none() && columns.iter().all(is_shown)
    }

    /// Returns the parts of the key that the path follows.
    pub fn parts(&self) -> &[Part] {
        self.access.parts(&self.table)
    }
}

impl Scan {
    /// Narrows the used columns to those that the expressions above read; columns of implied conditions need not be
    /// read.
    pub fn narrow<'e>(&mut self, above: impl Iterator<Item = &'e Expr>) {
        let mut wanted = Vec::new();
        let mut has_query = false;
        let mut read = |expr: &Expr| {
            expr.walk(&mut |part| has_query |= part.reads_outside());
            wanted.extend(expr.columns());
        };
        above.for_each(&mut read);
        self.conditions[self.implied..].iter().for_each(&mut read);
        if !has_query {
            let mut kept = self.needed_after.clone();
            kept.retain(|column| wanted.contains(&(self.offset + column)));
            self.needed_after = self.table.with_sources(kept);
            let conditions = &self.conditions[self.implied + self.pushed..];
            self.stages_after = Stages::new(&self.table, self.offset, conditions, &self.needed_after);
            self.access.covering = self.is_shown(&self.needed_after);
        }
    }
}

/// The columns that are read before each condition, and after all of them hold. So a rejected row costs only the
/// columns that reject it.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    pub before: Vec<Vec<StoredColumn>>,
    pub rest: Vec<StoredColumn>,
}

/// A column that a scan reads: where rows keep it, and the slot of the wide row that takes it.
#[derive(Clone, Copy, Debug)]
pub struct StoredColumn {
    pub column: usize,
    pub from: ColumnPlace,
    pub to: usize,
}

impl Stages {
    pub fn new(table: &Table, offset: usize, conditions: &[Expr], needed: &[usize]) -> Stages {
        let asks = |condition: &Expr| {
            let mut asks = false;
            condition.walk(&mut |expr| asks |= expr.reads_outside());
            asks
        };
        // Subqueries read the row as a whole; computed columns need others.
        let at_once = table.computes || conditions.iter().any(asks);
        let stored = |at: &usize| {
            let column = &table.columns[*at];
            let from = table.layout.place(column.slot, column.ty.storage);
            StoredColumn { column: *at, from, to: offset + at }
        };
        let mut rest: Vec<StoredColumn> = needed.iter().map(stored).collect();
        let mut before = Vec::new();
        for condition in conditions {
            let reads = condition.columns();
            let (now, later) = rest.into_iter().partition(|stored| at_once || reads.contains(&stored.to));
            before.push(now);
            rest = later;
        }
        Stages { before, rest }
    }

    /// Renumbers the slots of the wide row.
    pub fn renumber(&mut self, place: impl Fn(usize) -> usize) {
        let stored = self.before.iter_mut().flatten().chain(&mut self.rest);
        stored.for_each(|stored| stored.to = place(stored.to));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    pub strength: Strength,
    pub wait: LockWait,
    pub candidates: Candidates,
}

/// The rows that a locking read considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// The rows that are there now, each as its newest version.
    Current,
    /// The rows that the snapshot sees. A newer version of one replaces it, and the conditions of the block are rechecked.
    Seen,
}

/// Locks the rows from which wide rows were joined, and rechecks the wide rows of which one has a newer version (QU-41).
#[derive(Debug)]
pub struct LockRows {
    pub input: Arc<Node>,
    pub tables: Vec<LockedTable>,
    /// The outer joins of the block, those within others first.
    pub outer: Vec<OuterJoin>,
    /// The other conditions of the block.
    pub conditions: Vec<Expr>,
}

#[derive(Debug)]
pub struct LockedTable {
    pub table: Arc<Table>,
    /// The offset of its columns in the wide row.
    pub offset: usize,
    /// The slot of the row's key.
    pub key_at: usize,
    pub lock: Lock,
    /// The columns that are used.
    pub needed: Vec<usize>,
}

/// An outer join in a recheck: where its conditions do not hold, the slots of its right side become NULL.
#[derive(Debug)]
pub struct OuterJoin {
    pub on: Vec<Expr>,
    pub fills: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Patient,
    /// Like `Patient`, but up to READ COMMITTED an UPDATE does not wait for a row whose committed version it rejects
    /// (MySQL's semi-consistent read).
    Choosy,
    NoWait,
    SkipLocked,
}

/// An access path. `index`: None is the primary key.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub index: Option<usize>,
    /// The rules by which the bounds were compared with the columns; `None` if all bounds are NULL.
    pub rules: Option<&'static ComparisonRules>,
    /// Values of the leading key parts: one each, or several of one part (IN).
    pub equal: Vec<Vec<Expr>>,
    /// Through an index of terms: the rows whose column passes this test with the one value of `equal` have the entries that the path follows (QU-67).
    pub test: Option<TermTest>,
    /// The bounds of the next part.
    pub low: Option<Limit>,
    pub high: Option<Limit>,
    /// Further ranges of that part, if there are any. They may overlap.
    pub within: Vec<Span>,
    pub backward: bool,
    /// All parts of a unique key have values, so each combination finds at most one row.
    pub is_point: bool,
    /// Index-only scan: entries contain all columns that are read, at least where values are exact.
    pub covering: bool,
    /// An index union: the rows that any of these paths finds, each once and unordered.
    pub union: Vec<Access>,
}

/// A bound, and whether it is inclusive.
pub type Limit = (Expr, bool);

/// A range of a column.
#[derive(Clone, Debug)]
pub enum Span {
    /// One value; NULL finds the NULLs.
    Equal(Expr),
    Between {
        low: Option<Limit>,
        high: Option<Limit>,
    },
}

impl Span {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let (equal, low, high) = match self {
            Span::Equal(expr) => (Some(expr), None, None),
            Span::Between { low, high } => (None, low.as_ref(), high.as_ref()),
        };
        equal.into_iter().chain(low.into_iter().chain(high).map(|(expr, _)| expr))
    }

    fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (equal, low, high) = match self {
            Span::Equal(expr) => (Some(expr), None, None),
            Span::Between { low, high } => (None, low.as_mut(), high.as_mut()),
        };
        equal.into_iter().chain(low.into_iter().chain(high).map(|(expr, _)| expr))
    }
}

impl Access {
    /// Returns the value of a bound in the form of the key's column.
    pub fn coerce(&self, value: &Value, column: &Type, ctx: &EvalContext) -> Coerced {
        match self.rules {
            Some(rules) => (rules.coerce)(value, column, ctx),
            None if value.is_null() => Coerced::Null,
            None => Coerced::Unusable,
        }
    }

    pub fn is_full(&self) -> bool {
        self.equal.is_empty() && !self.is_bounded() && self.union.is_empty()
    }

    /// Returns whether entries of the path may lead to a row several times.
    pub fn may_repeat(&self) -> bool {
        self.test.is_some() || !self.union.is_empty()
    }

    /// Returns the parts of the key that the scan follows.
    pub fn parts<'t>(&self, table: &'t Table) -> &'t [Part] {
        match self.index {
            Some(at) => &table.indexes[at].parts,
            None => table.primary.as_deref().unwrap_or(&[]),
        }
    }

    /// The form of that key in its map.
    pub fn form(&self, table: &Table) -> KeyForm {
        table.key_form(self.index)
    }

    /// Returns the name of that key.
    pub fn name<'t>(&self, table: &'t Table) -> &'t str {
        self.index.map_or("PRIMARY", |at| &table.indexes[at].name)
    }

    /// Returns the number of key parts that are bounded.
    pub fn used(&self) -> usize {
        self.equal.len() + usize::from(self.is_bounded())
    }

    /// Returns whether the part after the equal ones is bounded.
    pub fn is_bounded(&self) -> bool {
        self.low.is_some() || self.high.is_some() || !self.within.is_empty()
    }

    /// Returns the expressions that bound that part.
    pub fn bounds(&self) -> impl Iterator<Item = &Expr> {
        let limits = self.low.iter().chain(&self.high).map(|(expr, _)| expr);
        limits.chain(self.within.iter().flat_map(Span::exprs))
    }

    /// Iterates over all expressions of the path.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.own().chain(self.union.iter().flat_map(Access::own))
    }

    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let Access { equal, low, high, within, union, .. } = self;
        let limits = low.iter_mut().chain(high).map(|(expr, _)| expr);
        let own = equal.iter_mut().flatten().chain(limits).chain(within.iter_mut().flat_map(Span::exprs_mut));
        own.chain(union.iter_mut().flat_map(Access::own_mut))
    }

    /// Iterates over the expressions of the path without those of a union.
    fn own(&self) -> impl Iterator<Item = &Expr> {
        self.equal.iter().flatten().chain(self.bounds())
    }

    fn own_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let limits = self.low.iter_mut().chain(&mut self.high).map(|(expr, _)| expr);
        let within = self.within.iter_mut().flat_map(Span::exprs_mut);
        self.equal.iter_mut().flatten().chain(limits).chain(within)
    }

    /// Returns the paths of a union, or the path itself.
    pub fn ways(&self) -> &[Access] {
        if self.union.is_empty() { std::slice::from_ref(self) } else { &self.union }
    }
}

#[derive(Debug)]
pub struct HashJoin {
    pub left: Arc<Node>,
    pub right: Arc<Node>,
    pub kind: JoinKind,
    pub left_keys: Vec<Expr>,
    pub right_keys: Vec<Expr>,
    /// The types as which both sides are encoded.
    pub types: Vec<Type>,
    pub on: Vec<Expr>,
    /// The slots that the right side fills, and those of them that are used.
    pub fills: Vec<(usize, usize)>,
    pub kept: Vec<usize>,
    pub estimate: f64,
}

#[derive(Debug)]
pub struct Group {
    pub input: Arc<Node>,
    pub keys: Vec<Expr>,
    pub types: Vec<Type>,
    pub calls: Vec<AggregateCall>,
    /// Without GROUP BY there is one group, even of no rows.
    pub is_whole: bool,
    pub rollup: bool,
    /// GROUPING SETS: the numbers of the keys of each set. Empty: one set of all keys.
    pub sets: Vec<Vec<usize>>,
    /// The call whose place holds the number of keys that count, or the number of the grouping set, for GROUPING().
    pub level: Option<usize>,
    /// The estimated number of groups.
    pub estimate: f64,
}

#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub aggregate: Aggregate,
    pub arguments: Vec<Expr>,
}

impl AggregateCall {
    /// Returns the arguments that are added for a row; `None` if FILTER rejects the row.
    pub fn admitted(&self, row: &[Value], ctx: &mut EvalContext) -> datum::Result<Option<&[Expr]>> {
        match self.arguments.split_last() {
            Some((condition, arguments)) if self.aggregate.filtered => {
                Ok(if condition.holds(row, ctx)? { Some(arguments) } else { None })
            }
            _ => Ok(Some(&self.arguments)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct SortKey {
    pub at: usize,
    pub ty: Type,
    pub order: KeyOrder,
}
