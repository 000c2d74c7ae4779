//! The plan: a tree of operators over bound expressions. Nodes are shared and immutable; the state of a running plan is in `exec`.
//!
//! Rows of one query block are *wide*: each table of its FROM has a fixed range of slots, and a node fills the slots of its tables. Above the joins come grouped rows (keys, then
//! aggregates), above them projected rows.

use std::sync::Arc;

use datum::key::KeyOrder;
use engine::rows::Strength;

use crate::catalog::table::{Part, Table};
use crate::key::Shown;
use crate::key_form::KeyForm;
use crate::nodes::aggregate::Aggregate;
use crate::nodes::comparison::{Coerced, ComparisonRules};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::system_table::SystemTable;
use crate::nodes::table_function::TableFunction;
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
    /// For each left row the right side is opened anew, with the left row at hand.
    Loop {
        left: Arc<Node>,
        right: Arc<Node>,
        kind: JoinKind,
        on: Vec<Expr>,
        fills: Vec<(usize, usize)>,
    },
    /// The right side is read once into a table by its keys.
    Hash(HashJoin),
    Filter {
        input: Arc<Node>,
        conditions: Vec<Expr>,
    },
    Group(Group),
    Window(window::Window),
    Project {
        input: Arc<Node>,
        exprs: Vec<Expr>,
    },
    /// Rows that differ in their first values.
    Distinct {
        input: Arc<Node>,
        types: Vec<Type>,
    },
    Sort {
        input: Arc<Node>,
        keys: Vec<SortKey>,
        limit: Option<(Expr, Option<Expr>)>,
        /// Of rows with the same keys, only the first.
        unique: bool,
    },
    /// Only the first values of each row.
    Strip {
        input: Arc<Node>,
        width: usize,
    },
    Limit {
        input: Arc<Node>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        /// SQL_CALC_FOUND_ROWS: goes on to the end, and tells how many there are.
        counts: bool,
    },
    Union {
        inputs: Vec<Arc<Node>>,
    },
    /// Rows of the left that are, or are not, on the right.
    SetOperation {
        left: Arc<Node>,
        right: Arc<Node>,
        types: Vec<Type>,
        keeps_common: bool,
        /// Each row of the right counts once.
        all: bool,
    },
    /// A derived table: its rows at their place in the wide row.
    Derived {
        input: Arc<Node>,
        alias: String,
        columns: Vec<String>,
        offset: usize,
        width: usize,
    },
    /// A derived table that looks at the row it is joined to: made anew for each.
    Lateral {
        input: Arc<Node>,
        alias: String,
        columns: Vec<String>,
        /// As subqueries count it.
        depth: usize,
        offset: usize,
        width: usize,
    },
    /// Below a `Derived` or `Lateral`, as any table of a query.
    TableFunction(Box<TableFunction>),
    /// Rows of a common table expression, made once per statement.
    Common {
        id: usize,
        source: Arc<Node>,
        recursion: Option<Recursion>,
    },
    /// The rows of the last round, as the recursive part of a common table expression sees them.
    LastRound {
        id: usize,
    },
    System {
        table: &'static SystemTable,
        offset: usize,
        width: usize,
        /// Conditions that are looked at above, and may spare reading here.
        wanted: Vec<Expr>,
        /// Keys only: as of a `Scan`.
        lock: Option<Lock>,
        key_at: Option<usize>,
    },
    /// Rows that are known: VALUES, SHOW.
    Rows {
        rows: Vec<Vec<Expr>>,
    },
}

#[derive(Debug)]
pub struct Recursion {
    pub part: Arc<Node>,
    pub distinct: bool,
    pub types: Vec<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    /// Left rows that have a match, each once.
    Semi,
    /// Left rows that have none.
    Anti,
}

/// Rows of a table.
#[derive(Debug)]
pub struct Scan {
    pub table: Arc<Table>,
    pub alias: String,
    /// Where its columns lie in the wide row, and how wide that is.
    pub offset: usize,
    pub width: usize,
    /// Where each column lies, if only those that are needed have a place (`pack`).
    pub places: Option<Vec<usize>>,
    /// Columns that anybody asks for.
    pub needed: Vec<usize>,
    /// Where the row's key goes, for those who change rows.
    pub key_at: Option<usize>,
    pub access: Access,
    /// Conditions on the row, looked at as soon as it is read.
    pub conditions: Vec<Expr>,
    /// The number of conditions, from the first, that hold for every row that the access finds, if its bounds were exact and the rows are not newer than the index.
    pub implied: usize,
    /// The next ones after them read no more than entries of the index show: they are looked at before the row is read.
    pub pushed: usize,
    /// Something in the conditions is worth computing once for all rows (`exec/fold`).
    pub folds: bool,
    /// The columns of `needed` that are needed without the implied conditions.
    pub needed_after: Vec<usize>,
    /// In which order columns are read and conditions are looked at: with all conditions, and without the implied and the pushed ones.
    pub stages: Stages,
    pub stages_after: Stages,
    pub lock: Option<Lock>,
    /// The columns that entries of the index show.
    pub shown: Vec<Shown>,
    /// Somebody above counts on rows in the order of the key (QU-29).
    pub keeps_order: bool,
    /// Give these places of the wide row, each once, and no wide row: nobody above wants more.
    pub output: Option<Vec<usize>>,
    /// About how many rows the access finds, how many of them the conditions leave, and what reading them costs.
    pub found: f64,
    pub estimate: f64,
    pub cost: f64,
}

impl Scan {
    /// Where the column lies in the wide row.
    pub fn place(&self, column: usize) -> Option<usize> {
        match &self.places {
            None => Some(self.offset + column),
            Some(places) => self.needed.contains(&column).then(|| places[column]),
        }
    }

    /// The names of its columns, by their places.
    pub fn names(&self) -> impl Iterator<Item = (usize, String)> {
        let name = |at: usize| Some((self.place(at)?, format!("{}.{}", self.alias, self.table.columns[at].name)));
        (0..self.table.columns.len()).filter_map(name)
    }

    /// Do the entries of its index show these columns? Who locks, or changes, reads the row itself.
    pub fn is_shown(&self, columns: &[usize]) -> bool {
        let is_shown = |column: &usize| self.shown.iter().any(|shown| shown.column == *column);
        self.access.index.is_some() && self.lock.is_none() && self.key_at.is_none() && columns.iter().all(is_shown)
    }

    /// The parts of the key that it goes by.
    pub fn parts(&self) -> &[Part] {
        self.access.parts(&self.table)
    }
}

impl Scan {
    /// Nobody above wants more than what these read: the columns that only implied conditions name need not be looked at.
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

/// Which columns of a row are read before each of the conditions, and which when all of them hold: of a row that is not wanted no more is read than it takes to see that.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    pub before: Vec<Vec<usize>>,
    pub rest: Vec<usize>,
}

impl Stages {
    pub fn new(table: &Table, offset: usize, conditions: &[Expr], needed: &[usize]) -> Stages {
        let asks = |condition: &Expr| {
            let mut asks = false;
            condition.walk(&mut |expr| asks |= expr.reads_outside());
            asks
        };
        // Subqueries look at the row as a whole; columns that are computed need others.
        let at_once = table.computes || conditions.iter().any(asks);
        let mut rest = needed.to_vec();
        let mut before = Vec::new();
        for condition in conditions {
            let reads = condition.columns();
            let (now, later) = rest.into_iter().partition(|column| at_once || reads.contains(&(offset + column)));
            before.push(now);
            rest = later;
        }
        Stages { before, rest }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    pub strength: Strength,
    pub wait: LockWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Patient,
    /// Like `Patient`; but up to READ COMMITTED an UPDATE does not wait for a row that, as far as it is committed, it does not want (MySQL's semi-consistent read).
    Choosy,
    NoWait,
    SkipLocked,
}

/// How rows are found. `index`: None is the primary key.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub index: Option<usize>,
    /// The rules by which the bounds were compared with the columns; `None` if all bounds are NULL.
    pub rules: Option<&'static ComparisonRules>,
    /// Of the leading parts of the key: one value each, or several of one of them (IN).
    pub equal: Vec<Vec<Expr>>,
    /// Of the part after them.
    pub low: Option<Limit>,
    pub high: Option<Limit>,
    /// And in one of these, unless there are none. They may overlap.
    pub within: Vec<Span>,
    pub backward: bool,
    /// All parts of a unique key are given: at most one row for each combination.
    pub is_point: bool,
    /// The index's entries are enough: they show all that is read, at least where values fit exactly.
    pub covering: bool,
    /// Instead of all this: the rows that any of these ways leads to, each once and in no order.
    pub union: Vec<Access>,
}

/// An end of a range of values, and whether it is one of them.
pub type Limit = (Expr, bool);

/// Some of a column's values.
#[derive(Clone, Debug)]
pub enum Span {
    /// One; a NULL that stands there finds the NULLs.
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

    /// The parts of the key that it goes by.
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

    /// How many of the parts it says something of.
    pub fn used(&self) -> usize {
        self.equal.len() + usize::from(self.is_bounded())
    }

    /// Does it say anything of the part after the equal ones?
    pub fn is_bounded(&self) -> bool {
        self.low.is_some() || self.high.is_some() || !self.within.is_empty()
    }

    /// Returns the expressions that bound that part.
    pub fn bounds(&self) -> impl Iterator<Item = &Expr> {
        let limits = self.low.iter().chain(&self.high).map(|(expr, _)| expr);
        limits.chain(self.within.iter().flat_map(Span::exprs))
    }

    /// Everything that it computes.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.own().chain(self.union.iter().flat_map(Access::own))
    }

    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let Access { equal, low, high, within, union, .. } = self;
        let limits = low.iter_mut().chain(high).map(|(expr, _)| expr);
        let own = equal.iter_mut().flatten().chain(limits).chain(within.iter_mut().flat_map(Span::exprs_mut));
        own.chain(union.iter_mut().flat_map(Access::own_mut))
    }

    /// Without those of the ways that it unites.
    fn own(&self) -> impl Iterator<Item = &Expr> {
        self.equal.iter().flatten().chain(self.bounds())
    }

    fn own_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let limits = self.low.iter_mut().chain(&mut self.high).map(|(expr, _)| expr);
        let within = self.within.iter_mut().flat_map(Span::exprs_mut);
        self.equal.iter_mut().flatten().chain(limits).chain(within)
    }

    /// The ways that it goes, one after the other.
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
    /// By which both sides are encoded.
    pub types: Vec<Type>,
    pub on: Vec<Expr>,
    /// The places that the right side fills, and those of them that anybody asks for.
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
    /// Without GROUP BY there is one group, also of no rows.
    pub is_whole: bool,
    pub rollup: bool,
    /// Which of the calls is none: in its place stands how many of the keys count, for GROUPING().
    pub level: Option<usize>,
    /// About how many groups there are.
    pub estimate: f64,
}

#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub aggregate: Aggregate,
    pub arguments: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub struct SortKey {
    pub at: usize,
    pub ty: Type,
    pub order: KeyOrder,
}
