//! Set-returning functions, evaluated for each input row.
//!
//! The functions of a row run side by side, and those that have ended give NULLs until the longest has. Rows are
//! computed as they are wanted, so a stream without an end costs no more than what is read of it.

use datum::{Fault, Record, Result};

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::memory::row_bytes;
use crate::exec::row_ops::{BATCH, BATCH_BYTES};
use crate::nodes::context::EvalContext;
use crate::nodes::table_function::{ProjectSet, RowForm, RowStream, SetCall};
use crate::value::Value;

pub struct ProjectSetState {
    input: Exec,
    /// Input rows to come.
    rows: std::vec::IntoIter<Row>,
    current: Option<Expanded>,
}

/// An input row under way.
struct Expanded {
    row: Row,
    streams: Vec<Stream>,
    count: i64,
}

enum Stream {
    /// The values of an expression's one row.
    Once(Row),
    Rows(Box<dyn RowStream>),
    Ended,
}

impl ProjectSetState {
    pub fn new(input: Exec) -> ProjectSetState {
        ProjectSetState { input, rows: Vec::new().into_iter(), current: None }
    }

    pub fn next(&mut self, set: &ProjectSet, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        let mut bytes = 0;
        while out.len() < BATCH && bytes < BATCH_BYTES {
            let current = match &mut self.current {
                Some(current) => current,
                None => match self.rows.next() {
                    Some(row) => self.current.insert(Expanded::begin(row, set, ctx)?),
                    None => {
                        let mut rows = Vec::new();
                        if !self.input.next(ctx, &mut rows)? {
                            return Ok(());
                        }
                        self.rows = rows.into_iter();
                        continue;
                    }
                },
            };
            match current.next(set, ctx)? {
                Some(row) => {
                    bytes += row_bytes(&row);
                    out.push(row);
                }
                None => self.current = None,
            }
        }
        Ok(())
    }
}

impl Expanded {
    fn begin(mut row: Row, set: &ProjectSet, ctx: &mut EvalContext) -> Result<Expanded> {
        let streams = set.calls.iter().map(|call| begin(call, &row, ctx)).collect::<Result<_>>()?;
        row.resize(set.width.max(row.len()), Value::Null);
        Ok(Expanded { row, streams, count: 0 })
    }

    /// Returns the next row; `None` after the end of the longest function.
    fn next(&mut self, set: &ProjectSet, ctx: &mut EvalContext) -> Result<Option<Row>> {
        let mut row = self.row.clone();
        let mut is_row = false;
        for (call, stream) in set.calls.iter().zip(&mut self.streams) {
            let values = match stream {
                Stream::Ended => None,
                Stream::Once(values) => Some(std::mem::take(values)),
                Stream::Rows(rows) => rows.next(ctx)?,
            };
            let Some(values) = values else {
                *stream = Stream::Ended;
                continue;
            };
            if matches!(stream, Stream::Once(_)) {
                *stream = Stream::Ended;
            }
            is_row = true;
            let values = formed(call, values)?;
            values.into_iter().take(call.types.len()).enumerate().for_each(|(nth, value)| row[call.at + nth] = value);
        }
        self.count += 1;
        if let Some(at) = set.ordinality {
            row[at] = Value::Int(self.count);
        }
        Ok(is_row.then_some(row))
    }
}

/// Brings a row of the function to the form of the call.
fn formed(call: &SetCall, values: Row) -> Result<Row> {
    match (call.form, &call.record) {
        (RowForm::Columns, _) => Ok(values),
        (RowForm::Packed, Some(ty)) => {
            let record = (ty.fields.len() == values.len()).then(|| Record::new(ty.clone(), values)).flatten();
            record.map(|record| vec![Value::Record(record)]).ok_or_else(|| Fault::corrupt("a row of another form"))
        }
        (RowForm::Packed, None) => Err(Fault::corrupt("a row without a type")),
        (RowForm::Unpacked, _) => Ok(match values.first() {
            Some(Value::Record(record)) => record.values().to_vec(),
            _ => vec![Value::Null; call.types.len()],
        }),
    }
}

fn begin(call: &SetCall, row: &Row, ctx: &mut EvalContext) -> Result<Stream> {
    let values: Row = call.arguments.iter().map(|argument| argument.eval(row, ctx)).collect::<Result<_>>()?;
    let Some(function) = call.function else { return Ok(Stream::Once(values)) };
    if function.strict && values.iter().any(Value::is_null) {
        return Ok(Stream::Ended);
    }
    Ok(Stream::Rows((function.start)(call, &values, ctx)?))
}
