//! An answer, frame by frame: columns, rows or chunks of them, notices, an end.
//!
//! This module neither waits nor reads a socket. A chunk of more than ten columns arrives in several frames, which are assembled here; a row is returned when it is complete.

use std::collections::VecDeque;

use prost::Message;

use crate::error::{Error, ServerError};
use crate::frame::answer;
use crate::message::{self, FetchDone, NoticeFrame, Scalar, SessionStateChanged};
use crate::proto::{Field, cut_field};
use crate::value::{Column, Value};

/// The values of a row, in the order of the columns.
pub type Row = Vec<Value>;

/// The end of an answer.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Summary {
    /// Rows that were changed, or found; 0 of queries.
    pub affected: u64,
    /// The number that AUTO_INCREMENT gave to the first row.
    pub insert_id: Option<u64>,
    /// MySQL's line about a change, as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: Option<String>,
    pub warnings: Vec<Warning>,
    /// Rows that the server examined, if it reports them.
    pub examined: Option<u64>,
}

/// A note, warning or error (1, 2, 3) that came with an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    pub level: i32,
    pub code: u32,
    pub message: String,
}

/// The effect of a frame on its answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    More,
    /// The server waits for tokens.
    TokensUsed,
    Done,
    Failed(ServerError),
}

/// An answer that is being received.
#[derive(Debug, Default)]
pub struct Assembly {
    pub columns: Vec<Column>,
    /// Rows that have come and were not taken yet.
    pub rows: VecDeque<Row>,
    pub summary: Summary,
    /// Columns of a chunk whose other columns come in the next frames.
    partial: Vec<Vec<Value>>,
}

const NOTICE_WARNING: u32 = 1;
const NOTICE_STATE: u32 = 3;
const STATE_INSERT_ID: i32 = 3;
const STATE_AFFECTED: i32 = 4;
const STATE_MESSAGE: i32 = 10;

impl Assembly {
    /// Takes the next frame of the answer.
    pub fn take(&mut self, kind: u8, payload: &[u8]) -> Result<Step, Error> {
        match kind {
            answer::COLUMN => self.columns.push(Column::read(payload)?),
            answer::ROW => {
                let row = self.row(payload)?;
                self.rows.push_back(row);
            }
            answer::CHUNK => self.chunk(payload)?,
            answer::NOTICE => self.notice(payload)?,
            answer::FETCH_DONE => self.summary.examined = FetchDone::decode(payload)?.examined_row_count,
            answer::TOKEN_DONE => return Ok(Step::TokensUsed),
            answer::OK | answer::EXECUTE_OK => return Ok(Step::Done),
            answer::ERROR => return Ok(Step::Failed(message::Error::decode(payload)?.into())),
            other => return Err(Error::Protocol(format!("a frame of type {other} in an answer"))),
        }
        Ok(Step::More)
    }

    fn row(&self, mut payload: &[u8]) -> Result<Row, Error> {
        let mut row = Row::with_capacity(self.columns.len());
        while let Some((number, field)) = cut_field(&mut payload)? {
            if let (1, Field::Bytes(bytes)) = (number, field) {
                let column = self.columns.get(row.len()).ok_or_else(|| odd("a row with more fields than columns"))?;
                row.push(column.field(bytes)?);
            }
        }
        if row.len() == self.columns.len() { Ok(row) } else { Err(odd("a row with fewer fields than columns")) }
    }

    fn chunk(&mut self, mut payload: &[u8]) -> Result<(), Error> {
        let mut count = 0;
        let mut received = Vec::new();
        while let Some((number, field)) = cut_field(&mut payload)? {
            match (number, field) {
                (1, Field::Number(rows)) => count = rows as usize,
                (2, Field::Bytes(column)) => received.push(column),
                _ => {}
            }
        }
        for bytes in received {
            let at = self.partial.len();
            let column = self.columns.get(at).ok_or_else(|| odd("a chunk with more columns than the result"))?;
            let values = values(column, count, bytes)?;
            if self.partial.first().is_some_and(|first| first.len() != values.len()) {
                return Err(odd("parts of a chunk with different counts of rows"));
            }
            self.partial.push(values);
        }
        if self.partial.len() == self.columns.len() {
            let mut columns: Vec<_> = std::mem::take(&mut self.partial).into_iter().map(Vec::into_iter).collect();
            self.rows.extend((0..count).map(|_| columns.iter_mut().filter_map(Iterator::next).collect::<Row>()));
        }
        Ok(())
    }

    fn notice(&mut self, payload: &[u8]) -> Result<(), Error> {
        let frame = NoticeFrame::decode(payload)?;
        let payload = frame.payload.unwrap_or_default();
        match frame.kind {
            NOTICE_WARNING => {
                let warning = message::Warning::decode(&payload[..])?;
                let level = warning.level();
                self.summary.warnings.push(Warning { level, code: warning.code, message: warning.msg });
            }
            NOTICE_STATE => self.state(&SessionStateChanged::decode(&payload[..])?),
            _ => {}
        }
        Ok(())
    }

    fn state(&mut self, state: &SessionStateChanged) {
        let Some(value) = &state.value else { return };
        match state.param {
            STATE_AFFECTED => self.summary.affected = number(value),
            STATE_INSERT_ID => self.summary.insert_id = Some(number(value)),
            STATE_MESSAGE => {
                let text = value.v_string.as_ref().map(|text| String::from_utf8_lossy(&text.value).into_owned());
                self.summary.info = text;
            }
            _ => {}
        }
    }
}

fn number(value: &Scalar) -> u64 {
    value.v_unsigned_int.or(value.v_signed_int.map(|number| number as u64)).unwrap_or_default()
}

fn odd(what: &str) -> Error {
    Error::Protocol(what.into())
}

/// A column of a chunk: a bit for each NULL, most significant first, and the values of the others.
fn values(column: &Column, count: usize, mut bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let (mut nulls, mut area) = (&[][..], &[][..]);
    while let Some((number, field)) = cut_field(&mut bytes)? {
        match (number, field) {
            (1, Field::Bytes(bitmap)) => nulls = bitmap,
            (2 | 3, Field::Bytes(mut inner)) => {
                while let Some((number, field)) = cut_field(&mut inner)? {
                    if let (1, Field::Bytes(value)) = (number, field) {
                        area = value;
                    }
                }
            }
            _ => {}
        }
    }
    // A value takes a byte and a NULL a bit, so a count beyond that is a lie.
    if count > area.len() + nulls.len() * 8 {
        return Err(odd("a chunk that counts more rows than it has"));
    }
    let mut values = Vec::with_capacity(count);
    for row in 0..count {
        let is_null = nulls.get(row / 8).is_some_and(|byte| byte & 0x80 >> (row % 8) != 0);
        values.push(if is_null { Value::Null } else { column.cut(&mut area)? });
    }
    if area.is_empty() { Ok(values) } else { Err(odd("a chunk with more values than rows")) }
}
