//! A result on its way to the client: rows become DataRow messages, straight from the executor's batches.

use std::sync::Arc;

use query::exec::Exec;
use query::types::Type;

use crate::batch::{Batch, Cell};
use crate::bind;
use crate::error::{PgError, Result, state};
use crate::functions::state::PgState;
use crate::session::run::Delivery;
use crate::session::{Field, More, Session};
use crate::types::io::{self, IoContext};
use crate::types::{oid, registry};
use crate::value::Value;

/// A column of a result and the form that its client asks for.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub field: Field,
    pub ty: Type,
}

impl Format {
    /// `format` is 0 for text, 1 for binary.
    pub fn new(field: &bind::ResultColumn, format: i16) -> Format {
        Format { ty: super::run::column_type(field), field: Field { format, ..described(field) } }
    }
}

/// The columns of a result with the forms that its client asks for, shared by the results of one statement.
#[derive(Clone, Debug)]
pub struct ResultColumns(Arc<[Format]>);

impl ResultColumns {
    pub(super) fn new(formats: impl IntoIterator<Item = Format>) -> ResultColumns {
        ResultColumns(formats.into_iter().collect())
    }

    /// Returns the columns, all in one format.
    pub(super) fn in_format(&self, format: i16) -> ResultColumns {
        let column = |of: &Format| Format { field: Field { format, ..of.field.clone() }, ty: of.ty.clone() };
        ResultColumns::new(self.0.iter().map(column))
    }

    pub(super) fn formats(&self) -> &[Format] {
        &self.0
    }

    /// Returns the columns, as RowDescription describes them.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &Field> {
        self.0.iter().map(|column| &column.field)
    }
}

/// Returns the description of a column in RowDescription, in text.
fn described(field: &bind::ResultColumn) -> Field {
    let (type_oid, typmod) = field.base.unwrap_or((field.type_oid, field.type_modifier));
    let row = registry::by_oid(type_oid);
    Field {
        name: field.name.as_str().into(),
        table: field.table.map_or(0, bind::relation_oid),
        column: field.column as i16,
        type_oid,
        type_len: row.map_or(-1, |row| row.len),
        typmod,
        format: 0,
    }
}

/// The state of a result between two calls.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Rows produced ahead, and the first that is not yet written.
    pub ready: Batch,
    pub at: usize,
    /// `None`: all rows are in `ready`.
    pub exec: Option<Box<Exec>>,
    /// The rows are no statement's any more.
    pub is_gathered: bool,
    /// The rows that the statement changed, which its tag counts instead.
    pub affected: Option<u64>,
    /// The error that follows the rows.
    pub failure: Option<Box<PgError>>,
}

/// A result whose rows are still being produced.
#[derive(Debug)]
pub struct ResultSet {
    running: Running,
    delivery: Delivery,
    /// The number of the statement that produces the rows.
    number: u64,
    /// The statement has ended, and its transaction perhaps with it.
    pub(super) is_ended: bool,
    /// The rows of this Execute.
    written: u64,
}

impl ResultSet {
    /// In memory of its own, as it passes through many hands before its rows are written.
    pub(super) fn new(running: Running, delivery: Delivery, number: u64) -> Box<ResultSet> {
        Box::new(ResultSet { running, delivery, number, is_ended: false, written: 0 })
    }

    /// Takes the rest of the rows.
    pub(super) fn into_running(self) -> Running {
        self.running
    }

    pub(super) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Returns the columns.
    pub fn columns(&self) -> &ResultColumns {
        &self.delivery.columns
    }

    /// Returns whether all rows have been produced.
    pub(super) fn is_complete(&self) -> bool {
        self.running.exec.is_none()
    }

    /// Appends complete DataRow messages, about `bytes_max` bytes of them, and at least one row if there is one. An error ends the result.
    pub fn write_rows(&mut self, session: &mut Session, out: &mut Vec<u8>, bytes_max: usize) -> Result<More> {
        match self.write(session, out, bytes_max) {
            Ok(more) => Ok(more),
            Err(error) => {
                self.running.exec = None;
                Err(if self.is_ended { error } else { session.fail_with(error) })
            }
        }
    }

    /// Ends the result early: the client has gone, or does not want the rest.
    pub fn close(self, session: &mut Session) {
        if !self.is_ended && self.number == session.number {
            // A failure has no one to be reported to.
            let _ = session.end_statement();
        }
    }

    fn write(&mut self, session: &mut Session, out: &mut Vec<u8>, bytes_max: usize) -> Result<More> {
        let end = out.len() + bytes_max;
        loop {
            let limit = self.delivery.rows_max;
            let pg = session.ctx.slot_mut::<PgState>();
            while self.running.at < self.running.ready.len() && (limit == 0 || self.written < limit) {
                if out.len() >= end {
                    return Ok(More::Rows);
                }
                write_row(&self.running.ready, self.running.at, self.delivery.columns.formats(), &pg.io, out)?;
                self.running.at += 1;
                self.written += 1;
            }
            // Whether a row follows is not known, and PostgreSQL does not look either.
            if limit > 0 && self.written == limit {
                self.suspend(session);
                return Ok(More::PortalSuspended);
            }
            if !self.produce(session)? {
                return self.end(session);
            }
        }
    }

    /// Produces the next batch. Returns false at the end.
    fn produce(&mut self, session: &mut Session) -> Result<bool> {
        self.running.ready.clear();
        self.running.at = 0;
        let Some(exec) = &mut self.running.exec else {
            return self.running.failure.take().map_or(Ok(false), |failure| Err(*failure));
        };
        if self.number != session.number && !self.running.is_gathered {
            return Err(PgError::new(state::QUERY_CANCELED, "canceling statement due to user request"));
        }
        let filled = exec.fill(&mut session.ctx, &mut self.running.ready);
        match filled.map_err(|fault| session.error_of(fault, &[]))? {
            true => session.core.note_reads(query::exec::host::host(&mut session.ctx)),
            false => self.running.exec = None,
        }
        Ok(self.running.exec.is_some())
    }

    fn end(&mut self, session: &mut Session) -> Result<More> {
        let affected = self.running.affected;
        if !self.is_ended {
            self.is_ended = true;
            session.end_statement()?;
        }
        if let Some(portal) = &self.delivery.portal {
            session.end_portal(portal, self.written);
        }
        Ok(More::End { tag: self.delivery.tag.tag(affected.unwrap_or(self.written)) })
    }

    /// Puts the rest back into its portal.
    fn suspend(&mut self, session: &mut Session) {
        let running = std::mem::take(&mut self.running);
        if let Some(portal) = &self.delivery.portal {
            session.keep_running(portal, running, (self.number, self.written));
        }
    }
}

/// Appends one DataRow message.
fn write_row(batch: &Batch, at: usize, columns: &[Format], io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[b'D', 0, 0, 0, 0]);
    out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    for (cell, column) in batch.row(at).iter().zip(columns) {
        write_value(cell, column, io, out)?;
    }
    let length = message_length(out.len() - start - 1)?;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

pub(super) fn message_length(bytes: usize) -> Result<u32> {
    u32::try_from(bytes)
        .ok()
        .filter(|length| *length <= i32::MAX as u32)
        .ok_or_else(|| PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "row is too long for one message"))
}

/// Appends a value with its length; -1 for NULL.
fn write_value(cell: Cell<'_>, column: &Format, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    if let Cell::Value(Value::Null) = cell {
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match column.field.format {
        0 => write_text(cell, &column.ty, io, out)?,
        _ => write_binary(cell, &column.ty, io, out)?,
    }
    let length = message_length(out.len() - start - 4)?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends the text form of a value that is not NULL.
pub(super) fn write_text(cell: Cell<'_>, ty: &Type, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    match cell {
        Cell::Value(value) => io::output(value, ty, io, out),
        Cell::Text(text) if is_plain_text(registry::oid_of(ty)) => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
        Cell::Text(text) => io::output(&Value::text(text), ty, io, out),
        Cell::Bytes(bytes) => io::output(&Value::bytes(bytes), ty, io, out),
    }
}

/// Appends the binary form of a value that is not NULL.
pub(super) fn write_binary(cell: Cell<'_>, ty: &Type, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    match cell {
        Cell::Value(value) => io::send(value, ty, io, out),
        Cell::Text(text) if is_plain_text(registry::oid_of(ty)) => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
        Cell::Bytes(bytes) if matches!(registry::oid_of(ty), oid::BYTEA | oid::UUID) => {
            out.extend_from_slice(bytes);
            Ok(())
        }
        Cell::Text(text) => io::send(&Value::text(text), ty, io, out),
        Cell::Bytes(bytes) => io::send(&Value::bytes(bytes), ty, io, out),
    }
}

/// Returns whether values of the type are their own text and binary form.
fn is_plain_text(oid: oid::Oid) -> bool {
    matches!(oid, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::JSON | oid::UNKNOWN)
}
