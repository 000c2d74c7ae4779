//! Analysed expressions and queries: PostgreSQL's `Expr` and `Query` as far as their text needs them.

use crate::types::oid::{self, Oid};

/// A type with its modifier.
pub type Ty = (Oid, i32);

/// The way a cast or a call was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Call,
    Explicit,
    Implicit,
    /// A notation of SQL's own, such as EXTRACT.
    Sql,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A column of a table of a query, counted outwards.
    Column {
        level: usize,
        table: usize,
        column: usize,
        ty: Ty,
    },
    /// A constant by its text form; `None` is NULL.
    Const {
        text: Option<String>,
        ty: Ty,
    },
    Call {
        name: String,
        arguments: Vec<Node>,
        ty: Ty,
        form: Form,
    },
    /// A cast without a function, or through text.
    Cast {
        operand: Box<Node>,
        ty: Ty,
        form: Form,
    },
    Operator {
        name: String,
        operands: Vec<Node>,
        ty: Oid,
    },
    Distinct(Box<Node>, Box<Node>),
    NullIf(Box<Node>, Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    NullTest {
        operand: Box<Node>,
        negated: bool,
    },
    BooleanTest {
        operand: Box<Node>,
        test: &'static str,
    },
    Case {
        operand: Option<Box<Node>>,
        arms: Vec<(Node, Node)>,
        otherwise: Box<Node>,
        ty: Ty,
    },
    Coalesce(Vec<Node>, Ty),
    /// GREATEST or LEAST.
    Extreme {
        word: &'static str,
        items: Vec<Node>,
        ty: Ty,
    },
    Array {
        items: Vec<Node>,
        ty: Oid,
    },
    /// `operand op ANY (array)`, or ALL.
    Quantified {
        name: String,
        operand: Box<Node>,
        array: Box<Node>,
        is_any: bool,
    },
    SqlValue {
        text: String,
        ty: Ty,
    },
    Collate {
        operand: Box<Node>,
        collation: String,
    },
    Row(Vec<Node>),
    Aggregate(Box<Aggregate>),
    Window(Box<WindowCall>),
    Sublink(Box<Sublink>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub name: String,
    pub arguments: Vec<Node>,
    pub star: bool,
    pub distinct: bool,
    pub order_by: Vec<Sort>,
    pub filter: Option<Node>,
    pub ty: Ty,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub call: Aggregate,
    pub over: Over,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    Named(String),
    Window(Window),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    pub base: Option<String>,
    pub partition_by: Vec<Node>,
    pub order_by: Vec<Sort>,
    /// The frame as SQL writes it, its offsets apart.
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: &'static str,
    pub start: Bound,
    pub end: Option<Bound>,
    pub exclusion: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    Word(&'static str),
    Offset(Node, &'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    pub key: Node,
    /// The number of the target that it is, from 1.
    pub target: Option<usize>,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SublinkKind {
    Exists,
    Any,
    All,
    Scalar,
    Array,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sublink {
    pub kind: SublinkKind,
    /// The left operands and the operator.
    pub test: Option<(Vec<Node>, String)>,
    pub query: Query,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    pub with: Vec<With>,
    pub is_recursive: bool,
    pub tables: Vec<Table>,
    pub body: Body,
    /// The output columns' names and types.
    pub columns: Vec<(String, Ty)>,
    pub order_by: Vec<Sort>,
    pub limit: Option<Node>,
    pub with_ties: bool,
    pub offset: Option<Node>,
    /// FOR UPDATE and the like: the words.
    pub locking: Vec<(&'static str, Vec<usize>, &'static str)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub name: String,
    pub columns: Vec<String>,
    pub materialized: Option<bool>,
    pub query: Query,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    #[default]
    Empty,
    Select(Box<Select>),
    Values(Vec<Vec<Node>>),
    Set {
        op: &'static str,
        all: bool,
        left: Box<Body>,
        right: Box<Body>,
    },
    /// An operand of a set operation.
    Leaf(Box<Query>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    pub distinct: Option<Vec<Node>>,
    pub targets: Vec<Node>,
    pub from: Vec<Item>,
    pub selection: Option<Node>,
    pub group_by: Vec<Group>,
    pub group_distinct: bool,
    pub having: Option<Node>,
    pub windows: Vec<(String, Window)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    Key(Node),
    Empty,
    List(&'static str, Vec<Group>),
}

/// An item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Table(usize),
    Join {
        kind: &'static str,
        left: Box<Item>,
        right: Box<Item>,
        on: Option<Node>,
        using: Vec<String>,
        alias: Option<String>,
    },
}

/// An entry of a range table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub source: Source,
    /// The alias that was written, or the relation's own name.
    pub alias: String,
    pub has_alias: bool,
    pub columns: Vec<(String, Ty)>,
    /// Columns have names that the query gave them.
    pub has_column_aliases: bool,
    pub is_lateral: bool,
    /// Counts as an entry of the range table: joins do, and are never printed by themselves.
    pub is_join: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A relation by its schema and name.
    Relation {
        schema: String,
        name: String,
        only: bool,
    },
    Subquery(Query),
    Values(Vec<Vec<Node>>),
    Common(String),
    Join,
}

impl Node {
    pub fn ty(&self) -> Ty {
        match self {
            Node::Column { ty, .. }
            | Node::Const { ty, .. }
            | Node::Call { ty, .. }
            | Node::Cast { ty, .. }
            | Node::Case { ty, .. }
            | Node::Coalesce(_, ty)
            | Node::Extreme { ty, .. }
            | Node::SqlValue { ty, .. } => *ty,
            Node::Operator { ty, .. } => (*ty, -1),
            Node::Array { ty, .. } => (*ty, -1),
            Node::NullIf(left, _) => left.ty(),
            Node::Collate { operand, .. } => operand.ty(),
            Node::Row(_) => (oid::RECORD, -1),
            Node::Aggregate(call) => call.ty,
            Node::Window(window) => window.call.ty,
            Node::Sublink(link) => match link.kind {
                SublinkKind::Scalar => link.query.columns.first().map_or((oid::UNKNOWN, -1), |(_, ty)| *ty),
                SublinkKind::Array => (link.query.columns.first().map_or(0, |(_, ty)| array_of(ty.0)), -1),
                _ => (oid::BOOL, -1),
            },
            Node::Distinct(..)
            | Node::And(_)
            | Node::Or(_)
            | Node::Not(_)
            | Node::NullTest { .. }
            | Node::BooleanTest { .. }
            | Node::Quantified { .. } => (oid::BOOL, -1),
        }
    }

    pub fn is_unknown_const(&self) -> bool {
        matches!(self, Node::Const { ty: (oid::UNKNOWN, _), .. })
    }

    /// Returns whether the expression reads a column.
    pub fn reads_column(&self) -> bool {
        let any = |nodes: &[Node]| nodes.iter().any(Node::reads_column);
        match self {
            Node::Column { .. } | Node::Sublink(_) | Node::Aggregate(_) | Node::Window(_) => true,
            Node::Const { .. } | Node::SqlValue { .. } => false,
            Node::Call { arguments: nodes, .. }
            | Node::Operator { operands: nodes, .. }
            | Node::And(nodes)
            | Node::Or(nodes)
            | Node::Coalesce(nodes, _)
            | Node::Extreme { items: nodes, .. }
            | Node::Array { items: nodes, .. }
            | Node::Row(nodes) => any(nodes),
            Node::Cast { operand, .. }
            | Node::Not(operand)
            | Node::NullTest { operand, .. }
            | Node::BooleanTest { operand, .. }
            | Node::Collate { operand, .. } => operand.reads_column(),
            Node::Distinct(left, right) | Node::NullIf(left, right) => left.reads_column() || right.reads_column(),
            Node::Quantified { operand, array, .. } => operand.reads_column() || array.reads_column(),
            Node::Case { operand, arms, otherwise, .. } => {
                operand.as_ref().is_some_and(|operand| operand.reads_column())
                    || arms.iter().any(|(when, then)| when.reads_column() || then.reads_column())
                    || otherwise.reads_column()
            }
        }
    }
}

/// Returns the array type of an element type; 0 if there is none.
pub fn array_of(element: Oid) -> Oid {
    crate::types::registry::by_oid(element).map_or(0, |row| row.array)
}
