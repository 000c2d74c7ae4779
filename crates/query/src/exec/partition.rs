//! One partition of a window's input, and the numbers that a window function takes besides rows.

use datum::Result;

use crate::batch::Row;
use crate::exec::spill::rows::{Near, Rows};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::value::Value;

/// The values of a call's constants: of NTILE, NTH_VALUE and LAG, and of the frame's edges.
pub struct Amounts {
    pub number: Option<u64>,
    pub start: Option<u64>,
    pub end: Option<u64>,
}

/// The rows of a partition, each with the key that orders it as one more value.
pub struct Partition {
    pub rows: Rows,
    /// The rows that were read last.
    pub near: Near,
    pub at: usize,
    /// The rows that are equal in order to the one that is looked at: from, up to, and how many such groups there have been.
    pub peers: (usize, usize),
    pub groups: u64,
}

impl Partition {
    /// `rows` are in order, each with the key that orders it behind its values.
    pub fn new(rows: Rows) -> Partition {
        Partition { rows, near: Near::default(), at: 0, peers: (0, 0), groups: 0 }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn row(&mut self, at: usize) -> Result<&Row> {
        self.near.row(&self.rows, at)
    }

    pub fn key(&mut self, at: usize) -> Result<Value> {
        Ok(self.row(at)?.last().cloned().unwrap_or_default())
    }

    pub fn eval(&mut self, place: Option<usize>, value: &Expr, ctx: &mut EvalContext) -> Result<Value> {
        match place {
            Some(place) => Ok(value.eval(self.row(place)?, ctx)?),
            None => Ok(Value::Null),
        }
    }
}
