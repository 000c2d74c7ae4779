//! A function in FROM: its argument is evaluated over the row around, and its rows are a table of the block.

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

/// Takes a row. An error ends the statement.
pub type Give<'g> = dyn FnMut(Row, &mut EvalContext) -> Result<()> + 'g;

/// The rows of a table function, by the rules of the dialect that bound it.
pub trait RowSource: Debug + Send + Sync {
    /// Gives the rows for one value of the argument. Memory beyond one row is the taker's, which writes to files what is too much.
    fn rows(&self, argument: Value, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()>;
}
