//! Analysed expressions and queries: PostgreSQL's `Expr` and `Query` as far as their text needs them.

use crate::types::oid::{self, Oid};

/// A type with its modifier.
pub type Ty = (Oid, i32);

/// The way a cast or a call was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlForm {
    Call,
    Explicit,
    Implicit,
    /// A notation of SQL's own, such as EXTRACT.
    Sql,
    /// A call whose last argument is the array of its variadic ones.
    Variadic,
}

/// Stands for all columns of a relation: its row.
pub const WHOLE: usize = usize::MAX;

#[derive(Clone, Debug, PartialEq)]
pub enum SqlNode {
    /// A column of a table of a query, counted outwards; `WHOLE` is the row of a relation.
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
        arguments: Vec<SqlNode>,
        ty: Ty,
        form: SqlForm,
    },
    /// A cast without a function, or through text.
    Cast {
        operand: Box<SqlNode>,
        ty: Ty,
        form: SqlForm,
    },
    Operator {
        name: String,
        operands: Vec<SqlNode>,
        ty: Oid,
    },
    Distinct(Box<SqlNode>, Box<SqlNode>),
    NullIf(Box<SqlNode>, Box<SqlNode>),
    And(Vec<SqlNode>),
    Or(Vec<SqlNode>),
    Not(Box<SqlNode>),
    NullTest {
        operand: Box<SqlNode>,
        negated: bool,
    },
    BooleanTest {
        operand: Box<SqlNode>,
        test: &'static str,
    },
    Case {
        operand: Option<Box<SqlNode>>,
        arms: Vec<(SqlNode, SqlNode)>,
        otherwise: Box<SqlNode>,
        ty: Ty,
    },
    Coalesce(Vec<SqlNode>, Ty),
    /// GREATEST or LEAST.
    Extreme {
        word: &'static str,
        items: Vec<SqlNode>,
        ty: Ty,
    },
    Array {
        items: Vec<SqlNode>,
        ty: Oid,
    },
    /// `operand op ANY (array)`, or ALL.
    Quantified {
        name: String,
        operand: Box<SqlNode>,
        array: Box<SqlNode>,
        is_any: bool,
    },
    SqlValue {
        text: String,
        ty: Ty,
    },
    Collate {
        operand: Box<SqlNode>,
        collation: String,
    },
    Row(Vec<SqlNode>),
    /// A field of a row.
    Field {
        operand: Box<SqlNode>,
        name: String,
        ty: Ty,
    },
    /// An element of an array, behind the array and its subscripts.
    Element {
        parts: Vec<SqlNode>,
        ty: Ty,
    },
    /// An argument with FORMAT JSON.
    JsonValue {
        operand: Box<SqlNode>,
        format: &'static str,
    },
    /// JSON_OBJECT, with keys and values by turns, or JSON_ARRAY.
    JsonConstructor {
        is_object: bool,
        items: Vec<SqlNode>,
        clauses: String,
        ty: Ty,
    },
    /// IS JSON with the words behind it.
    JsonTest {
        operand: Box<SqlNode>,
        words: String,
    },
    Aggregate(Box<Aggregate>),
    Window(Box<WindowCall>),
    Sublink(Box<Sublink>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub name: String,
    pub arguments: Vec<SqlNode>,
    pub star: bool,
    pub distinct: bool,
    pub order_by: Vec<SortItem>,
    pub filter: Option<SqlNode>,
    pub ty: Ty,
    /// The clauses of JSON_OBJECTAGG and JSON_ARRAYAGG.
    pub json: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub call: Aggregate,
    pub over: Over,
}

#[expect(clippy::large_enum_variant, reason = "a definition has few of them")]
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    Named(String),
    Window(Window),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    pub base: Option<String>,
    pub partition_by: Vec<SqlNode>,
    pub order_by: Vec<SortItem>,
    /// The frame as SQL writes it, its offsets apart.
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: &'static str,
    pub start: WindowBound,
    pub end: Option<WindowBound>,
    pub exclusion: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WindowBound {
    Word(&'static str),
    Offset(SqlNode, &'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SortItem {
    pub key: SqlNode,
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
    pub test: Option<(Vec<SqlNode>, String)>,
    pub query: Query,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    pub with: Vec<With>,
    pub is_recursive: bool,
    pub tables: Vec<Table>,
    pub body: QueryBody,
    /// The output columns' names and types.
    pub columns: Vec<(String, Ty)>,
    pub order_by: Vec<SortItem>,
    pub limit: Option<SqlNode>,
    pub with_ties: bool,
    pub offset: Option<SqlNode>,
    /// FOR UPDATE and the like: the words.
    pub locking: Vec<(&'static str, Vec<usize>, &'static str)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct With {
    pub name: String,
    pub columns: Vec<String>,
    pub materialized: Option<bool>,
    pub query: Query,
    /// The text of SEARCH.
    pub search: String,
    pub cycle: Option<CycleText>,
    /// The columns that these add.
    pub added: Vec<(String, Ty)>,
}

/// CYCLE of a query of WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleText {
    /// Up to the name of the mark.
    pub head: String,
    /// The values of the mark, unless they are true and false.
    pub marks: Option<(SqlNode, SqlNode)>,
    /// USING and the name of the path.
    pub tail: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum QueryBody {
    #[default]
    Empty,
    Select(Box<Select>),
    Values(Vec<Vec<SqlNode>>),
    Set {
        op: &'static str,
        all: bool,
        left: Box<QueryBody>,
        right: Box<QueryBody>,
    },
    /// An operand of a set operation.
    Leaf(Box<Query>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    pub distinct: Option<Vec<SqlNode>>,
    pub targets: Vec<SqlNode>,
    pub from: Vec<SqlItem>,
    pub selection: Option<SqlNode>,
    pub group_by: Vec<Group>,
    pub group_distinct: bool,
    pub having: Option<SqlNode>,
    pub windows: Vec<(String, Window)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    Key(SqlNode),
    Empty,
    List(&'static str, Vec<Group>),
}

/// An item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlItem {
    Table(usize),
    Join {
        kind: &'static str,
        left: Box<SqlItem>,
        right: Box<SqlItem>,
        on: Option<SqlNode>,
        using: Vec<String>,
        alias: Option<String>,
    },
}

/// An entry of a range table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub source: FromSource,
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

#[expect(clippy::large_enum_variant, reason = "a definition has few of them")]
#[derive(Clone, Debug, PartialEq)]
pub enum FromSource {
    /// A relation by its schema and name.
    Relation {
        schema: String,
        name: String,
        only: bool,
    },
    Subquery(Query),
    Values(Vec<Vec<SqlNode>>),
    Common(String),
    Join,
}

impl SqlNode {
    pub fn ty(&self) -> Ty {
        match self {
            SqlNode::Column { ty, .. }
            | SqlNode::Const { ty, .. }
            | SqlNode::Call { ty, .. }
            | SqlNode::Cast { ty, .. }
            | SqlNode::Case { ty, .. }
            | SqlNode::Coalesce(_, ty)
            | SqlNode::Extreme { ty, .. }
            | SqlNode::Field { ty, .. }
            | SqlNode::Element { ty, .. }
            | SqlNode::JsonConstructor { ty, .. }
            | SqlNode::SqlValue { ty, .. } => *ty,
            SqlNode::JsonValue { .. } => (oid::JSON, -1),
            SqlNode::Operator { ty, .. } => (*ty, -1),
            SqlNode::Array { ty, .. } => (*ty, -1),
            SqlNode::NullIf(left, _) => left.ty(),
            SqlNode::Collate { operand, .. } => operand.ty(),
            SqlNode::Row(_) => (oid::RECORD, -1),
            SqlNode::Aggregate(call) => call.ty,
            SqlNode::Window(window) => window.call.ty,
            SqlNode::Sublink(link) => match link.kind {
                SublinkKind::Scalar => link.query.columns.first().map_or((oid::UNKNOWN, -1), |(_, ty)| *ty),
                SublinkKind::Array => (link.query.columns.first().map_or(0, |(_, ty)| array_of(ty.0)), -1),
                _ => (oid::BOOL, -1),
            },
            SqlNode::Distinct(..)
            | SqlNode::And(_)
            | SqlNode::Or(_)
            | SqlNode::Not(_)
            | SqlNode::NullTest { .. }
            | SqlNode::BooleanTest { .. }
            | SqlNode::JsonTest { .. }
            | SqlNode::Quantified { .. } => (oid::BOOL, -1),
        }
    }

    pub fn is_unknown_const(&self) -> bool {
        matches!(self, SqlNode::Const { ty: (oid::UNKNOWN, _), .. })
    }

    /// Returns whether the expression reads a column.
    pub fn reads_column(&self) -> bool {
        let any = |nodes: &[SqlNode]| nodes.iter().any(SqlNode::reads_column);
        match self {
            SqlNode::Column { .. } | SqlNode::Sublink(_) | SqlNode::Aggregate(_) | SqlNode::Window(_) => true,
            SqlNode::Const { .. } | SqlNode::SqlValue { .. } => false,
            SqlNode::Call { arguments: nodes, .. }
            | SqlNode::Operator { operands: nodes, .. }
            | SqlNode::And(nodes)
            | SqlNode::Or(nodes)
            | SqlNode::Coalesce(nodes, _)
            | SqlNode::Extreme { items: nodes, .. }
            | SqlNode::Array { items: nodes, .. }
            | SqlNode::JsonConstructor { items: nodes, .. }
            | SqlNode::Element { parts: nodes, .. }
            | SqlNode::Row(nodes) => any(nodes),
            SqlNode::Cast { operand, .. }
            | SqlNode::Field { operand, .. }
            | SqlNode::JsonValue { operand, .. }
            | SqlNode::JsonTest { operand, .. }
            | SqlNode::Not(operand)
            | SqlNode::NullTest { operand, .. }
            | SqlNode::BooleanTest { operand, .. }
            | SqlNode::Collate { operand, .. } => operand.reads_column(),
            SqlNode::Distinct(left, right) | SqlNode::NullIf(left, right) => {
                left.reads_column() || right.reads_column()
            }
            SqlNode::Quantified { operand, array, .. } => operand.reads_column() || array.reads_column(),
            SqlNode::Case { operand, arms, otherwise, .. } => {
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
