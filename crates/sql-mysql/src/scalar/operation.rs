//! MySQL's arithmetic operators, and calls of them taken apart. `arithmetic` computes them.

use crate::types::Type;
use query::nodes::expr::{Call, Expr};

use crate::scalar::keyword_argument::Word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntDivide,
    Modulo,
    Negate,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,
}

const ALL: [Operator; 13] = [
    Operator::Add,
    Operator::Subtract,
    Operator::Multiply,
    Operator::Divide,
    Operator::IntDivide,
    Operator::Modulo,
    Operator::Negate,
    Operator::BitAnd,
    Operator::BitOr,
    Operator::BitXor,
    Operator::BitNot,
    Operator::ShiftLeft,
    Operator::ShiftRight,
];

impl Operator {
    /// Returns the operator of which `self as u8` is this number.
    pub fn from_number(number: u8) -> Option<Operator> {
        ALL.get(usize::from(number)).copied()
    }

    /// Returns the operator as SQL writes it.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract | Operator::Negate => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::IntDivide => "DIV",
            Operator::Modulo => "%",
            Operator::BitAnd => "&",
            Operator::BitOr => "|",
            Operator::BitXor => "^",
            Operator::BitNot => "~",
            Operator::ShiftLeft => "<<",
            Operator::ShiftRight => ">>",
        }
    }
}

/// A call of an operator, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic<'c> {
    pub op: Operator,
    pub left: &'c Expr,
    /// `None` for an operator with one side.
    pub right: Option<&'c Expr>,
    pub ty: &'c Type,
    /// `div_precision_increment`
    pub increment: u8,
    /// The expression as it was written, for messages.
    pub text: &'c str,
}

impl<'c> Arithmetic<'c> {
    /// Returns `None` for a call of a function that is no operator.
    #[inline]
    pub fn of(call: &'c Call) -> Option<Arithmetic<'c>> {
        let Word::Operator(op, increment) = Word::of(call) else { return None };
        let (left, right) = (&call.arguments[0], call.arguments.get(1));
        Some(Arithmetic { op, left, right, ty: &call.ty, increment, text: &call.extra.text })
    }
}
