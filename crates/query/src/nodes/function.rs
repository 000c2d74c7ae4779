//! A function as the executor calls it. Which names and arguments lead to it, and the type of its result, is the binder's business.

use crate::error::Result;
use crate::nodes::expr::Call;
use crate::scalar::context::EvalContext;
use crate::value::Value;

#[derive(Debug)]
pub struct Function {
    /// In lower case; the first is the name, the others are aliases.
    pub names: &'static [&'static str],
    pub run: Run,
    /// Never folded or cached: RAND(), UUID(), SLEEP().
    pub volatile: bool,
    /// It takes quotients with all the digits that were computed, not with those that are shown.
    pub exact: bool,
}

impl Function {
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// Gets the values of the arguments, or the row if it evaluates them itself.
pub type Body = fn(&Call, &[Value], &mut EvalContext) -> Result<Value>;

#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// NULL if an argument is NULL, else of their values.
    Strict(Body),
    /// Of the values, NULL or not.
    Values(Body),
    /// Evaluates its arguments itself, or not at all; it is given the row.
    Lazy(Body),
}

/// A function that the binder puts in where a constant is converted; no name leads to it.
pub const fn conversion(names: &'static [&'static str], run: Body) -> Function {
    Function { names, run: Run::Strict(run), volatile: false, exact: false }
}
