//! Table functions: the argument is evaluated over the outer row, and the rows become a table of the block.
//!
//! A set-returning function gives its rows one at a time (`RowStream`), so that a LIMIT above it ends it early. `ProjectSet` evaluates such functions for each input row, side by side: it returns as
//! many rows as the longest of them, and NULLs for those that have ended.

use std::fmt::Debug;
use std::sync::Arc;

use crate::batch::Row;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::Node;
use crate::types::Type;
use crate::value::Value;
use datum::Result;
use datum::value::RecordType;

#[derive(Debug)]
pub struct TableFunction {
    pub argument: Expr,
    pub source: Box<dyn RowSource>,
}

/// Receives a row. An error ends the statement.
pub type Give<'g> = dyn FnMut(Row, &mut EvalContext) -> Result<()> + 'g;

/// The rows of a table function, by the rules of the dialect that bound it.
pub trait RowSource: Debug + Send + Sync {
    /// Calls `give` with each row for one value of the argument. The receiver bounds the memory beyond one row.
    fn rows(&self, argument: Value, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()>;
}

/// A function that returns a set of rows.
#[derive(Debug)]
pub struct SetFunction {
    pub name: &'static str,
    /// No rows if an argument is NULL.
    pub strict: bool,
    /// Gives other rows each time it is evaluated.
    pub volatile: bool,
    pub start: SetStart,
}

/// Begins the rows of a call for the values of its arguments.
pub type SetStart = fn(&SetCall, &[Value], &mut EvalContext) -> Result<Box<dyn RowStream>>;

/// The rows of one call, computed as they are wanted.
pub trait RowStream: Send {
    fn next(&mut self, ctx: &mut EvalContext) -> Result<Option<Row>>;
}

/// A call of a set-returning function, or the values of expressions as one row.
#[derive(Clone, Debug)]
pub struct SetCall {
    /// `None`: the arguments are the values of one row.
    pub function: Option<&'static SetFunction>,
    /// Over the input row.
    pub arguments: Vec<Expr>,
    /// The types of the columns.
    pub types: Vec<Type>,
    /// The place of the first column in the output row.
    pub at: usize,
    /// The fields of its rows, where they are not known from the function alone.
    pub record: Option<Arc<RecordType>>,
    pub form: RowForm,
}

/// The form in which the rows of a function arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowForm {
    /// A value for each column.
    #[default]
    Columns,
    /// The columns become one record, of the type `SetCall::record`.
    Packed,
    /// The one value of a row is a record, whose fields become the columns; NULL gives NULLs.
    Unpacked,
}

/// Returns each input row once for each row of its functions, with their values behind it.
#[derive(Debug)]
pub struct ProjectSet {
    pub input: Arc<Node>,
    pub calls: Vec<SetCall>,
    /// The place of the number of the row, from 1 for each input row.
    pub ordinality: Option<usize>,
    /// The width of the output rows.
    pub width: usize,
}
