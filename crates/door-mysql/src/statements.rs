//! A session's prepared statements, and the cursors over their rows.
//!
//! A cursor reads rows from the executor as they are fetched. The session can have one active result, so before another statement runs, the rest of an open
//! cursor is read and kept in its encoded form (DM-4).

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::memory;
use stdx::sync::atomic::Ordering;

use sql_mysql::batch::Batch;
use sql_mysql::error::{self, Result, SqlError};
use sql_mysql::{Prepared, ResultSet, Session};

use crate::errors;
use crate::memory_budget::Reservation;
use crate::params::Bound;
use crate::rows::RowWriter;
use crate::shared::Shared;
use crate::wire::Reader;

/// The limit of kept rows of a cursor.
const KEPT_MAX: usize = 256 << 20;
/// Above this size memory is claimed before more rows are kept.
const CLAIMED_MIN: usize = 256 << 10;

pub struct Statement {
    pub prepared: Prepared,
    pub bound: Vec<Bound>,
    /// The data of COM_STMT_SEND_LONG_DATA, by parameter.
    pub long: Vec<Option<Vec<u8>>>,
    pub long_reservation: Option<Reservation>,
    /// An error of COM_STMT_SEND_LONG_DATA, which has no reply; the next execution reports it.
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
    /// Some statement may have a cursor whose result is still active.
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

    /// Returns a statement; `command` is the name used in the error.
    pub fn get(&mut self, id: u32, command: &str) -> Result<&mut Statement> {
        self.by_id.get_mut(&id).ok_or_else(|| error::UNKNOWN_STMT_HANDLER.with(&[&id, &command]))
    }

    /// Returns the statement whose id begins a payload, and the reader behind the id.
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

    /// Closes all statements and releases their share of the limit (DM-10).
    pub fn clear(&mut self) {
        self.shared.stats.prepared.add((self.by_id.len() as u64).wrapping_neg());
        self.by_id.clear();
    }

    /// Reads the rest of open cursors, before another statement runs.
    pub fn keep_cursor(&mut self, session: &mut Session) {
        for cursor in self.by_id.values_mut().filter_map(|statement| statement.cursor.as_mut()) {
            cursor.draw_all(session);
        }
        self.may_draw = false;
    }

    /// Opens a cursor: the statement's rows are read by fetches from now on.
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
    columns: Vec<sql_mysql::types::Column>,
    writer: RowWriter,
    /// Encoded rows, each behind its length in four bytes.
    kept: Vec<u8>,
    kept_at: usize,
    failed: Option<SqlError>,
}

impl Cursor {
    pub fn new(result: ResultSet, writer: RowWriter) -> Cursor {
        let columns = result.columns().to_vec();
        Cursor { live: Some(result), columns, writer, kept: Vec::new(), kept_at: 0, failed: None }
    }

    /// Returns the payload of the next row, or `None` at the end.
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

    /// Reads a batch of rows. Returns false at the end.
    fn draw(&mut self, session: &mut Session) -> Result<bool> {
        let Some(live) = &mut self.live else { return Ok(false) };
        let mut rows = Batch::new();
        let drawn = live.next(session, &mut rows);
        if !matches!(drawn, Ok(true)) {
            self.live = None;
        }
        if rows.is_long() || self.kept.len() > CLAIMED_MIN {
            // The buffer of kept rows moves when it grows.
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
