//! Sums, differences and products of decimals in two machine words, without intermediate values.
//!
//! QU-51: a number that is computed here has the digits and the scale that the functions of the dialect would give. Anything else (NULL, special values, coefficients of more than 64 bits, long
//! scales, deep expressions) is left to them as a whole, so values, errors and their order are the dialect's.

use datum::Storage;
use datum::decimal::{Decimal, SCALE_MAX};

use crate::nodes::context::EvalContext;
use crate::nodes::expr::{Call, Expr};
use crate::value::Value;

/// An operation that is exact in every dialect while the scale of its result is at most `SCALE_MAX`. It takes its operands with all their digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExactOperation {
    Add,
    Subtract,
    Multiply,
    /// A whole number as a decimal.
    Convert,
}

/// `coefficient` / 10^`scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactNumber {
    pub coefficient: i128,
    pub scale: u16,
}

impl From<ExactNumber> for Decimal {
    fn from(number: ExactNumber) -> Decimal {
        Decimal::new(number.coefficient, number.scale)
    }
}

/// The powers of ten that fit an `i64`.
const POWERS: [i64; 19] = {
    let mut powers = [1i64; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Levels of operations that are computed at once. A function of a deeper expression asks for its part, so an expression that is no exact number costs no more than some attempts for each level.
const LEVELS: usize = 8;

impl Call {
    /// Returns the decimal that the call gives before it is finished, or `None` if it is not of this kind.
    #[inline]
    pub fn exact_number(&self, row: &[Value], ctx: &EvalContext) -> Option<ExactNumber> {
        self.function.exact_operation?;
        self.computed(LEVELS, row, ctx)
    }

    fn computed(&self, levels: usize, row: &[Value], ctx: &EvalContext) -> Option<ExactNumber> {
        let operation = self.function.exact_operation.filter(|_| self.ty.storage == Storage::Decimal && levels > 0)?;
        let (first, others) = self.arguments.split_first()?;
        let (a, left) = operand(first, levels - 1, row, ctx)?;
        if operation == ExactOperation::Convert {
            return Some(ExactNumber { coefficient: a.into(), scale: left });
        }
        let (b, right) = operand(others.first()?, levels - 1, row, ctx)?;
        // A product of two words fits four, and so does the sum of two products.
        let (a, b) = (i128::from(a), i128::from(b));
        if operation == ExactOperation::Multiply {
            let scale = left + right;
            return (scale <= SCALE_MAX.into()).then_some(ExactNumber { coefficient: a * b, scale });
        }
        let scale = left.max(right);
        let raised = |number: i128, own: u16| Some(number * i128::from(*POWERS.get(usize::from(scale - own))?));
        let (a, b) = if left == right { (a, b) } else { (raised(a, left)?, raised(b, right)?) };
        Some(ExactNumber { coefficient: if operation == ExactOperation::Add { a + b } else { a - b }, scale })
    }
}

#[inline]
fn operand(expr: &Expr, levels: usize, row: &[Value], ctx: &EvalContext) -> Option<(i64, u16)> {
    match expr {
        Expr::Column(place, _) => short(row.get(*place)?),
        Expr::Literal(value, _) => short(value),
        Expr::Parameter(place, _) => short(ctx.parameters.get(*place)?),
        Expr::Call(call) => {
            let number = call.computed(levels, row, ctx)?;
            Some((i64::try_from(number.coefficient).ok()?, number.scale))
        }
        _ => None,
    }
}

#[inline]
fn short(value: &Value) -> Option<(i64, u16)> {
    match value {
        Value::Decimal(decimal) => decimal.short().filter(|(_, scale)| *scale <= SCALE_MAX.into()),
        Value::Int(number) => Some((*number, 0)),
        _ => None,
    }
}
