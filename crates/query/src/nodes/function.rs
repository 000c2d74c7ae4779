//! A function as the executor calls it. Which names and arguments lead to it, and the type of its result, is the binder's business.
//!
//! Operators and coercions of a dialect are functions too: the tree has no nodes for them.

use crate::nodes::context::EvalContext;
use crate::nodes::exact_number::ExactOperation;
use crate::nodes::expr::{Call, Expr};
use crate::nodes::term_test::TermTest;
use crate::types::Type;
use crate::value::Value;
use datum::Result;

#[derive(Debug)]
pub struct Function {
    /// In lower case; the first is the name, the others are aliases.
    pub names: &'static [&'static str],
    pub run: Run,
    /// Gives another result each time it is evaluated, so it is never folded or cached.
    pub volatile: bool,
    /// Waits for a time and keeps its results in `Sleeps`, so a statement that only computes may be suspended meanwhile.
    pub sleeps: bool,
    /// Its use of state of the session that other expressions of the statement may change.
    pub session: SessionUse,
    /// It takes quotients with all the digits that were computed, not with those that are shown.
    pub exact: bool,
    /// The core may compute it itself: `nodes/exact_number`.
    pub exact_operation: Option<ExactOperation>,
    /// NULL if any argument is NULL, so an outer join's padded rows are known to give NULL.
    pub strict: bool,
    /// Two calls with the same arguments differ if their types or collations do, as in CAST.
    pub typed: bool,
    pub folding: Folding,
    pub finish: Finish,
    /// Of a pattern match: what its matches begin with, if the pattern's value is known.
    pub prefix: Option<PrefixOf>,
    /// The test of its first argument's terms with its second that it is: an index of terms may lead to the rows for which it is true.
    pub term_test: Option<TermTest>,
}

/// A function's use of state that belongs to the session and changes within a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUse {
    Unused,
    Read,
    /// Each evaluation changes it: no two calls are the same, and none is moved or left out.
    Written,
}

/// The effect of a call's type on the result of its function.
#[derive(Clone, Copy, Debug)]
pub enum Finish {
    /// A decimal is rounded to the type's scale.
    Rounded,
    Unchanged,
    /// Brings the result to the digits and the kind of the type.
    By(fn(Value, &Type) -> Value),
}

/// The effect of constant folding on a call whose arguments are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// Not worth a fold.
    None,
    /// Folded. An error or warning is left to the rows.
    Operator,
    /// The same of a coercion that the binder has put around a constant. Planner and EXPLAIN see through it.
    Coercion,
    /// The same of a coercion whose error is the statement's, even if there are no rows.
    CheckedCoercion,
}

/// The text with which every match of a pattern begins.
#[derive(Debug)]
pub struct Prefix {
    pub bytes: Vec<u8>,
    /// The pattern matches this text alone.
    pub is_whole: bool,
}

/// Takes the call and a function that gives the values of expressions as far as they are known.
pub type PrefixOf = fn(&Call, &mut dyn FnMut(&Expr) -> Option<Value>) -> Option<Prefix>;

impl Function {
    /// Returns a function that is deterministic, takes rounded quotients and is not folded.
    pub const fn new(names: &'static [&'static str], run: Run) -> Function {
        Function {
            names,
            run,
            volatile: false,
            sleeps: false,
            session: SessionUse::Unused,
            exact: false,
            exact_operation: None,
            strict: matches!(run, Run::Strict(_) | Run::Pair(_)),
            typed: false,
            folding: Folding::None,
            finish: Finish::Rounded,
            prefix: None,
            term_test: None,
        }
    }

    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Returns whether the binder inserted it to convert a constant.
    pub fn is_coercion(&self) -> bool {
        matches!(self.folding, Folding::Coercion | Folding::CheckedCoercion)
    }
}

/// Gets the values of the arguments, or the row if it evaluates them itself.
pub type Body = fn(&Call, &[Value], &mut EvalContext) -> Result<Value>;

/// Gets the values of both arguments where they lie: for operators whose result is short, and which cost little more than a copy of a value.
pub type PairBody = fn(&Call, &Value, &Value, &mut EvalContext) -> Result<Value>;

#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// NULL if an argument is NULL, else of their values.
    Strict(Body),
    /// The same of two arguments.
    Pair(PairBody),
    /// Of the values, NULL or not.
    Values(Body),
    /// Evaluates its arguments itself, or not at all; it is given the row.
    Lazy(Body),
}
