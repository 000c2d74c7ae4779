//! Functions of arrays that return sets of rows: unnest, generate_subscripts, regexp_matches.

use datum::{Array, Result};
use query::batch::Row;
use query::nodes::context::EvalContext;
use query::nodes::table_function::{RowStream, SetFunction, SetStart};

use crate::functions::SetBody;
use crate::functions::args::truth;
use crate::functions::array::array;
use crate::functions::array::measure::dimension;
use crate::functions::text::regexp::all_matches;
use crate::value::Value;

const fn strict(name: &'static str, start: SetStart) -> SetFunction {
    SetFunction { name, strict: true, volatile: false, start }
}

/// The body of a function with one column.
pub const fn rows_of(function: &'static SetFunction) -> SetBody {
    SetBody { function, columns: &[] }
}

pub static UNNEST: SetFunction =
    strict("unnest", |_, values, _| Ok(Box::new(ElementRows { of: array(values, 0)?.clone(), at: 0 })));
pub static GENERATE_SUBSCRIPTS: SetFunction = strict("generate_subscripts", |_, values, _| {
    let (mut next, mut left, mut step) = (0, 0, 1);
    if let Some(dimension) = dimension(values)? {
        (next, left) = (i64::from(dimension.lower), dimension.length);
        if values.len() > 2 && truth(values, 2)? {
            (next, step) = (i64::from(dimension.upper()), -1);
        }
    }
    Ok(Box::new(Subscripts { next, left, step }))
});
pub static REGEXP_MATCHES: SetFunction =
    strict("regexp_matches", |_, values, ctx| Ok(Box::new(ValueRows(all_matches(values, ctx)?.into_iter()))));

struct ElementRows {
    of: Array,
    at: usize,
}

impl RowStream for ElementRows {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let value = self.of.values().get(self.at).cloned();
        self.at += 1;
        Ok(value.map(|value| vec![value]))
    }
}

struct Subscripts {
    next: i64,
    left: u32,
    step: i64,
}

impl RowStream for Subscripts {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let at = self.next;
        (self.left, self.next) = (left, at + self.step);
        Ok(Some(vec![Value::Int(at)]))
    }
}

struct ValueRows(std::vec::IntoIter<Value>);

impl RowStream for ValueRows {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        Ok(self.0.next().map(|value| vec![value]))
    }
}
