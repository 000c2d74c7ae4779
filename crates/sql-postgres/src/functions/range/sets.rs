//! `unnest` of a multirange: its ranges as rows.

use datum::{Fault, Result};
use query::batch::Row;
use query::nodes::context::EvalContext;
use query::nodes::table_function::{RowStream, SetFunction};

use crate::types::range::{self, RangeType};
use crate::types::registry;
use crate::value::Value;

pub static UNNEST: SetFunction = SetFunction {
    name: "unnest",
    strict: true,
    volatile: false,
    start: |call, values, _| {
        let ty = call.types.first().and_then(|ty| range::of_range(registry::oid_of(ty)));
        let ty = ty.ok_or_else(|| Fault::corrupt("a result that is no range"))?;
        Ok(Box::new(RangeRows { ty, of: values[0].clone(), left: [usize::MAX; 2] }))
    },
};

struct RangeRows {
    ty: RangeType,
    of: Value,
    /// The bytes behind the last range.
    left: [usize; 2],
}

impl RowStream for RangeRows {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let bytes = self.of.as_string_bytes().unwrap_or_default();
        let mut spans = self.ty.spans(bytes).behind(self.left);
        let Some(span) = spans.next().transpose()? else { return Ok(None) };
        self.left = spans.left();
        Ok(Some(vec![self.ty.value(Some(&span))]))
    }
}
