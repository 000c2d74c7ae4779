//! Table functions: the argument is evaluated over the outer row, and the rows become a table of the block.

use std::fmt::Debug;

use crate::batch::Row;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::value::Value;
use datum::Result;

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
