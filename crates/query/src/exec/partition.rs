//! One partition of a window's input, and the constant arguments of window functions.

use datum::Result;

use crate::batch::Row;
use crate::exec::spill::rows::{Near, Rows};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::value::Value;

/// The values of a call's constants: of NTILE, NTH_VALUE and LAG, and of the frame's bounds.
pub struct Amounts {
    pub number: Option<u64>,
    pub start: Option<u64>,
    pub end: Option<u64>,
}

/// The rows of a partition, each followed by its ordering key.
pub struct Partition {
    pub rows: Rows,
    /// The rows that were read last.
    pub near: Near,
    pub at: usize,
    /// The peers of the current row: the first, the end, and the number of peer groups so far.
    pub peers: (usize, usize),
    pub groups: u64,
}

impl Partition {
    /// Takes sorted rows, each followed by its ordering key.
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
