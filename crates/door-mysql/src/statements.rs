//! A session's prepared statements, and the cursors over their rows.
//!
//! A cursor's rows are drawn as they are fetched. The session can have one result under way, so before anything else runs the rest of an open cursor is
//! drawn and kept, in the bytes in which it will be sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::memory;
use stdx::sync::atomic::Ordering;

use query::batch::Batch;
use query::error::{self, Result, SqlError};
use query::{Prepared, ResultSet, Session};

use crate::errors;
use crate::memory_budget::Reservation;
use crate::params::Bound;
use crate::rows::RowWriter;
use crate::shared::Shared;
use crate::wire::Reader;

/// A cursor whose rest has to be kept may take up so much.
const KEPT_MAX: usize = 256 << 20;
/// From so many bytes on it is asked whether there is memory for more.
const CLAIMED_MIN: usize = 256 << 10;

pub struct Statement {
    pub prepared: Prepared,
    pub bound: Vec<Bound>,
    /// What COM_STMT_SEND_LONG_DATA brought, by parameter.
    pub long: Vec<Option<Vec<u8>>>,
    pub long_reservation: Option<Reservation>,
    /// Told by the next execution, for SEND_LONG_DATA has no reply.
    pub long_error: Option<SqlError>,
    pub cursor: Option<Cursor>,
}

impl Statement {
    pub fn forget_long(&mut self) {
        self.long.fill(None);
        self.long_reservation = None;
    }
}

pub struct Statements {
    shared: Arc<Shared>,
    by_id: BTreeMap<u32, Statement>,
    last_id: u32,
    /// Some statement may have a cursor that is still being drawn.
    may_draw: bool,
}

impl Statements {
    pub fn new(shared: &Arc<Shared>) -> Statements {
        Statements { shared: shared.clone(), by_id: BTreeMap::new(), last_id: 0, may_draw: false }
    }

    pub fn add(&mut self, prepared: Prepared) -> Result<u32> {
        let count = self.shared.stats.prepared.get();
        let most = self.shared.statements_max.load(Ordering::Relaxed);
        if count >= most {
            return Err(errors::TOO_MANY_STATEMENTS.with(&[&most]));
        }
        self.last_id = self.last_id.wrapping_add(1).max(1);
        let long = vec![None; prepared.parameters.len()];
        let statement =
            Statement { prepared, bound: Vec::new(), long, long_reservation: None, long_error: None, cursor: None };
        if self.by_id.insert(self.last_id, statement).is_none() {
            self.shared.stats.prepared.add(1);
        }
        Ok(self.last_id)
    }

    /// The statement; `command` is the name that the error gives.
    pub fn get(&mut self, id: u32, command: &str) -> Result<&mut Statement> {
        self.by_id.get_mut(&id).ok_or_else(|| error::UNKNOWN_STMT_HANDLER.with(&[&id, &command]))
    }

    /// The statement whose number begins a command, with what stands behind it.
    pub fn named<'p>(&mut self, payload: &'p [u8], command: &str) -> Result<(u32, &mut Statement, Reader<'p>)> {
        let mut reader = Reader(payload);
        let id = reader.u32().ok_or_else(|| errors::MALFORMED.bare())?;
        self.get(id, command).map(|statement| (id, statement, reader))
    }

    pub fn close(&mut self, id: u32, session: &mut Session) {
        if let Some(statement) = self.by_id.remove(&id) {
            self.shared.stats.prepared.add(1u64.wrapping_neg());
            if let Some(cursor) = statement.cursor {
                cursor.close(session);
            }
        }
    }

    /// Closes them all.
    pub fn clear(&mut self) {
        self.shared.stats.prepared.add((self.by_id.len() as u64).wrapping_neg());
        self.by_id.clear();
    }

    /// Before something else runs: the open cursor is drawn to its end.
    pub fn keep_cursor(&mut self, session: &mut Session) {
        for cursor in self.by_id.values_mut().filter_map(|statement| statement.cursor.as_mut()) {
            cursor.draw_all(session);
        }
        self.may_draw = false;
    }

    /// The statement's rows are drawn by fetches from now on.
    pub fn open_cursor(&mut self, id: u32, cursor: Cursor, command: &str) -> Result<()> {
        self.may_draw = true;
        self.get(id, command)?.cursor = Some(cursor);
        Ok(())
    }

    pub fn has_live_cursor(&self) -> bool {
        self.may_draw
            && self
                .by_id
                .values()
                .any(|statement| statement.cursor.as_ref().is_some_and(|cursor| cursor.live.is_some()))
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        self.clear();
    }
}

pub struct Cursor {
    live: Option<ResultSet>,
    columns: Vec<query::types::Column>,
    writer: RowWriter,
    /// Payloads of rows, each behind its length in four bytes.
    kept: Vec<u8>,
    kept_at: usize,
    failed: Option<SqlError>,
}

impl Cursor {
    pub fn new(result: ResultSet, writer: RowWriter) -> Cursor {
        let columns = result.columns().to_vec();
        Cursor { live: Some(result), columns, writer, kept: Vec::new(), kept_at: 0, failed: None }
    }

    /// The payload of the next row; `None` at the end.
    pub fn next(&mut self, session: &mut Session) -> Result<Option<&[u8]>> {
        while self.kept_at == self.kept.len() {
            self.kept.clear();
            self.kept_at = 0;
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if !self.draw(session)? {
                return Ok(None);
            }
        }
        let mut reader = Reader(&self.kept[self.kept_at..]);
        let length = reader.u32().expect("written by us") as usize;
        self.kept_at += 4 + length;
        Ok(Some(reader.bytes(length).expect("written by us")))
    }

    /// Draws some more rows. False: there are none.
    fn draw(&mut self, session: &mut Session) -> Result<bool> {
        let Some(live) = &mut self.live else { return Ok(false) };
        let mut rows = Batch::new();
        let drawn = live.next(session, &mut rows);
        if !matches!(drawn, Ok(true)) {
            self.live = None;
        }
        if rows.is_long() || self.kept.len() > CLAIMED_MIN {
            // What is kept moves when it grows.
            drop(memory::claim(self.kept.len() + rows.held_bytes())?);
        }
        for row in rows.rows() {
            let at = self.kept.len();
            self.kept.extend_from_slice(&[0; 4]);
            if let Err(error) = self.writer.put_row(&mut self.kept, &self.columns, row) {
                self.kept.truncate(at);
                return Err(error);
            }
            let length = (self.kept.len() - at - 4) as u32;
            self.kept[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        drawn
    }

    fn draw_all(&mut self, session: &mut Session) {
        while self.live.is_some() {
            if self.kept.len() > KEPT_MAX {
                self.failed = Some(SqlError::unsupported("another statement while a cursor has more than 256 MB left"));
                self.live = None;
            } else if let Err(error) = self.draw(session) {
                self.failed = Some(error);
                self.live = None;
            }
        }
    }

    pub fn close(self, session: &mut Session) {
        if let Some(live) = self.live {
            live.close(session);
        }
    }
}
