//! Replies: written at once, or row by row as far as the output has space.
//!
//! The rest of a result, and of a text with several statements, waits in `PendingReply`; the command stays in the input until its reply is complete (DM-2).

use std::sync::Arc;

use sql_mysql::batch::{Batch, Cells};
use sql_mysql::error::{self, Result, SqlError};
use sql_mysql::types::Column;
use sql_mysql::{Outcome, Ready, ResultSet};
use stdx::memory;

use crate::columns::put_column;
use crate::command_context::{CommandContext, CommandResult, Progress};
use crate::connection_state::{ConnectionState, LocalInfile};
use crate::errors;
use crate::large_row::{self, LargeRowStream};
use crate::packet;
use crate::pending_reply::{PendingReply, PendingRows, ReplySource, Suspended};
use crate::protocol::{capability, status};
use crate::reply::{OkPacket, track};
use crate::rows::RowWriter;
use crate::statements::Cursor;
use crate::wire::put_length;

/// The approximate size of a cell besides the bytes of its string.
const CELL_ABOUT: usize = 8;

/// The name of COM_STMT_EXECUTE in errors.
pub const EXECUTE: &str = "mysqld_stmt_execute";

impl ConnectionState {
    /// Continues the pending reply.
    pub fn resume(&mut self, context: &mut CommandContext<'_, '_>) -> Progress {
        let Some(pending) = self.pending.take() else { return Progress::Done(0) };
        let next = self.advance(context, pending);
        context.io.hold_until_durable(self.sql.durability_lsn());
        next
    }

    fn advance(&mut self, context: &mut CommandContext<'_, '_>, mut pending: PendingReply) -> Progress {
        if let ReplySource::Suspended(away) = pending.source {
            return self.resume_statement(context, away, pending.size, pending.script);
        }
        let finished = match &mut pending.source {
            ReplySource::Rows { result, writer, pending_rows } => {
                let more = pending.script.is_some();
                match self.write_rows(context, result, writer, pending_rows) {
                    Ok(true) => {
                        self.write_rows_end(context, self.ok_packet(more));
                        Ok(true)
                    }
                    other => other,
                }
            }
            ReplySource::Fetch { statement, left } => {
                let (statement, mut rest) = (*statement, *left);
                let fetched = self.fetch(context, statement, &mut rest);
                *left = rest;
                fetched
            }
            ReplySource::Statement | ReplySource::Suspended(_) => Ok(true),
        };
        match finished {
            Ok(false) => {
                self.pending = Some(pending);
                Progress::Running
            }
            Err(error) => {
                context.error(&error);
                Progress::Done(pending.size)
            }
            Ok(true) => match pending.script {
                Some((text, at)) => self.run_script(context, text, at, pending.size),
                None => Progress::Done(pending.size),
            },
        }
    }

    /// Runs a text of one or several statements.
    pub fn run_text(&mut self, context: &mut CommandContext<'_, '_>, text: &str, size: usize) -> Progress {
        // A text without `;` need not be split.
        let (statement, rest) =
            if self.multi_statements && text.contains(';') { self.sql.split(text) } else { (text, "") };
        let script = (!rest.is_empty()).then(|| (rest.to_owned(), 0));
        self.run_statement(context, statement, size, script)
    }

    fn run_script(&mut self, context: &mut CommandContext<'_, '_>, text: String, at: usize, size: usize) -> Progress {
        let (statement, rest) = self.sql.split(&text[at..]);
        let rest_at = text.len() - rest.len();
        if rest.is_empty() {
            return self.run_statement(context, statement, size, None);
        }
        let statement = statement.to_owned();
        self.run_statement(context, &statement, size, Some((text, rest_at)))
    }

    /// Runs a statement. `script` holds the statements behind it, which the reply announces.
    fn run_statement(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        statement: &str,
        size: usize,
        script: Option<(String, usize)>,
    ) -> Progress {
        self.prepare_to_run(context);
        let begun_ns = context.shared.clock.monotonic_ns();
        self.allow_suspension();
        let outcome = self.sql.execute(statement);
        if matches!(outcome, Ok(Outcome::Suspended)) {
            return self.suspend(context, Suspended { begun_ns, prepared: None, alarm: None }, size, script);
        }
        context.shared.stats.times.record(context.shared.clock.monotonic_ns() - begun_ns);
        self.refresh_settings();
        self.answer(context, outcome, size, script)
    }

    /// Allows the next statement to be suspended on a page miss, because the connection can be parked.
    pub fn allow_suspension(&mut self) {
        self.sql.allow_suspension();
    }

    /// Suspends after a prepared statement that has returned `Outcome::Suspended`.
    pub fn suspend_prepared(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        prepared: (u32, u8),
        begun_ns: u64,
        size: usize,
    ) -> Progress {
        self.suspend(context, Suspended { begun_ns, prepared: Some(prepared), alarm: None }, size, None)
    }

    /// Parks the connection until the statement's wait is over (DM-13).
    fn suspend(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        mut away: Suspended,
        size: usize,
        script: Option<(String, usize)>,
    ) -> Progress {
        context.shared.stats.suspensions.add(1);
        let handle = context.io.connection().handle();
        let wake: sql_mysql::Wake = Arc::new(move || handle.wake());
        match self.sql.when_ready(wake.clone()) {
            Ready::Soon => context.io.park(),
            Ready::Within(delay) => {
                context.io.park_for_peer();
                away.alarm = context.shared.clients.alarm(delay, Box::new(move || wake()));
            }
        }
        self.pending = Some(PendingReply { size, source: ReplySource::Suspended(away), script });
        Progress::Running
    }

    fn resume_statement(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        away: Suspended,
        size: usize,
        script: Option<(String, usize)>,
    ) -> Progress {
        let outcome = self.sql.resume();
        if matches!(outcome, Ok(Outcome::Suspended)) {
            return self.suspend(context, away, size, script);
        }
        context.shared.stats.times.record(context.shared.clock.monotonic_ns() - away.begun_ns);
        match away.prepared {
            None => self.answer(context, outcome, size, script),
            Some((id, flags)) => {
                let result = self.answer_execution(context, outcome, (id, flags), size);
                context.finish(result, size)
            }
        }
    }

    /// Writes the reply to COM_STMT_EXECUTE; `id` and `flags` are those of the command.
    pub fn answer_execution(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        outcome: Result<Outcome>,
        (id, flags): (u32, u8),
        size: usize,
    ) -> CommandResult {
        const CURSOR: u8 = 1;
        match outcome? {
            Outcome::Done { affected, last_insert_id, info } => {
                self.write_done(context, (affected, last_insert_id, &info), false);
                Ok(Progress::Done(size))
            }
            Outcome::Rows(result) if flags & CURSOR != 0 => {
                context.writer().packet(|out| crate::wire::put_length(out, result.columns().len() as u64));
                let ok_packet = self.ok_packet(false);
                let ok_packet = OkPacket { status: ok_packet.status | status::CURSOR_EXISTS, ..ok_packet };
                self.write_definitions(context, result.columns(), &ok_packet);
                if context.capabilities & capability::DEPRECATE_EOF != 0 {
                    self.write_rows_end(context, ok_packet);
                }
                let writer = RowWriter::new(self.results(), true);
                self.statements.open_cursor(id, Cursor::new(result, writer), EXECUTE)?;
                Ok(Progress::Done(size))
            }
            Outcome::Rows(result) => Ok(self.begin_rows(context, result, size)),
            // LOAD DATA cannot be prepared, and the callers have handled suspension.
            Outcome::File(_) | Outcome::Suspended => Err(error::UNSUPPORTED_PS.bare()),
        }
    }

    /// Writes the reply to a statement, or its beginning.
    pub fn answer(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        outcome: Result<Outcome>,
        size: usize,
        script: Option<(String, usize)>,
    ) -> Progress {
        match outcome {
            Err(error) => {
                context.error(&error);
                Progress::Done(size)
            }
            Ok(Outcome::Done { affected, last_insert_id, info }) => {
                self.write_done(context, (affected, last_insert_id, &info), script.is_some());
                match script {
                    Some(script) if !self.sql.is_released() => {
                        self.pending =
                            Some(PendingReply { size, source: ReplySource::Statement, script: Some(script) });
                        Progress::Running
                    }
                    _ => Progress::Done(size),
                }
            }
            Ok(Outcome::File(name)) => self.request_file(context, &name, script, size),
            Ok(Outcome::Suspended) => unreachable!("statements that may be suspended are handled by the caller"),
            Ok(Outcome::Rows(result)) => {
                let writer = RowWriter::new(self.results(), false);
                self.write_columns(context, result.columns(), script.is_some());
                self.pending = Some(PendingReply {
                    size,
                    source: ReplySource::Rows { result, writer, pending_rows: None },
                    script,
                });
                Progress::Running
            }
        }
    }

    /// Asks the client for a file; what it sends from here on goes to `receive`.
    fn request_file(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        name: &str,
        script: Option<(String, usize)>,
        size: usize,
    ) -> Progress {
        const FILE: u8 = 0xfb;
        context.writer().packet(|out| {
            out.push(FILE);
            out.extend_from_slice(name.as_bytes());
        });
        self.allow_file_time();
        self.infile = Some(LocalInfile { script, left: 0, continues: false });
        Progress::AwaitsInput(size)
    }

    /// Prepares the session for a statement: the rest of an open cursor is fetched and kept (DM-4).
    pub fn prepare_to_run(&mut self, context: &mut CommandContext<'_, '_>) {
        context.shared.stats.statements.add(1);
        if self.statements.has_live_cursor() {
            self.statements.keep_cursor(&mut self.sql);
        }
    }

    /// Writes the reply to a statement without rows.
    pub fn write_done(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        (affected, last_insert_id, info): (u64, u64, &str),
        more: bool,
    ) {
        let changes = self.changes(context.capabilities);
        let ending = OkPacket { affected, last_insert_id, info, changes: &changes, ..self.ok_packet(more) };
        context.writer().ok(&ending);
    }

    /// Writes the end of rows or of a list.
    pub fn write_rows_end(&mut self, context: &mut CommandContext<'_, '_>, ending: OkPacket<'_>) {
        // An EOF packet has no space for session changes: they wait for the next OK packet.
        let has_room = context.capabilities & capability::DEPRECATE_EOF != 0;
        let changes = if has_room { self.changes(context.capabilities) } else { Vec::new() };
        context.writer().rows_end(&OkPacket { changes: &changes, ..ending });
    }

    /// Returns the changes of session state that the client has not been sent yet.
    pub fn changes(&mut self, capabilities: u32) -> Vec<u8> {
        let mut out = Vec::new();
        if capabilities & capability::SESSION_TRACK != 0 {
            for change in self.sql.take_changes() {
                track::put(&mut out, &change);
            }
        }
        out
    }

    /// Writes the head of a result: the number of columns and their definitions.
    pub fn write_columns(&mut self, context: &mut CommandContext<'_, '_>, columns: &[Column], more: bool) {
        context.writer().packet(|out| put_length(out, columns.len() as u64));
        self.write_definitions(context, columns, &self.ok_packet(more));
    }

    /// Writes definitions of columns or parameters, and their end packet where the client expects one.
    pub fn write_definitions(&self, context: &mut CommandContext<'_, '_>, columns: &[Column], ending: &OkPacket<'_>) {
        let results = self.results();
        for column in columns {
            context.writer().packet(|out| put_column(out, column, results));
        }
        context.writer().columns_end(ending);
    }

    /// Writes rows while there is space. Returns true after the last row.
    fn write_rows(
        &mut self,
        context: &mut CommandContext<'_, '_>,
        result: &mut ResultSet,
        writer: &mut RowWriter,
        rest: &mut Option<Box<PendingRows>>,
    ) -> Result<bool> {
        let mut batch = Batch::new();
        // Compressed connections get each packet whole: some clients cannot read a packet that begins in one frame and ends in another.
        let is_plain = context.capabilities & (capability::COMPRESS | capability::ZSTD) == 0;
        loop {
            if let Some(rows) = rest
                && !write_rest(context, result.columns(), writer, rows)?
            {
                return Ok(false);
            }
            *rest = None;
            if context.io.is_full() {
                return Ok(false);
            }
            let any = result.next(&mut self.sql, &mut batch)?;
            context.shared.stats.rows.add(batch.len() as u64);
            context
                .io
                .out()
                .reserve(batch.string_bytes() + batch.len() * (packet::HEADER + CELL_ABOUT * result.columns().len()));
            for nth in 0..batch.len() {
                let row = batch.row(nth);
                if is_plain && batch.is_long() && large_row::is_long(row) {
                    *rest = Some(Box::new(PendingRows { batch: std::mem::take(&mut batch), at: nth, large_row: None }));
                    break;
                }
                // Rows of compressed connections are held twice: whole, and compressed.
                let _claim = match batch.is_long() {
                    true => Some(memory::claim(context.io.out().len() + 2 * large_row::long_bytes(row))?),
                    false => None,
                };
                write_row(context, result.columns(), writer, row)?;
            }
            if !any {
                return Ok(true);
            }
        }
    }

    /// Starts the result of a prepared statement.
    pub fn begin_rows(&mut self, context: &mut CommandContext<'_, '_>, result: ResultSet, size: usize) -> Progress {
        self.write_columns(context, result.columns(), false);
        let writer = RowWriter::new(self.results(), true);
        self.pending =
            Some(PendingReply { size, source: ReplySource::Rows { result, writer, pending_rows: None }, script: None });
        Progress::Running
    }

    pub fn begin_fetch(&mut self, statement: u32, left: u32, size: usize) -> Progress {
        self.pending = Some(PendingReply { size, source: ReplySource::Fetch { statement, left }, script: None });
        Progress::Running
    }

    /// Writes rows of a cursor while there is space. Returns true when the requested number is complete.
    fn fetch(&mut self, context: &mut CommandContext<'_, '_>, statement: u32, left: &mut u32) -> Result<bool> {
        let ConnectionState { statements, sql, .. } = self;
        let statement = statements.get(statement, "mysqld_stmt_fetch")?;
        let cursor = statement.cursor.as_mut().ok_or_else(|| SqlError::unsupported("a closed cursor"))?;
        let mut word = status::CURSOR_EXISTS;
        while *left > 0 {
            if context.io.is_full() {
                return Ok(false);
            }
            match cursor.next(sql)? {
                Some(payload) => {
                    context.writer().packet(|out| out.extend_from_slice(payload));
                    context.shared.stats.rows.add(1);
                    *left -= 1;
                }
                None => {
                    statement.cursor = None;
                    word = status::LAST_ROW_SENT;
                    break;
                }
            }
        }
        let ending = self.ok_packet(false);
        let ending = OkPacket { status: ending.status | word, ..ending };
        self.write_rows_end(context, ending);
        Ok(true)
    }
}

fn write_row(
    context: &mut CommandContext<'_, '_>,
    columns: &[Column],
    writer: &mut RowWriter,
    row: Cells<'_>,
) -> Result<()> {
    let at = packet::begin(context.io.out());
    if let Err(error) = writer.put_row(context.io.out(), columns, row) {
        context.io.out().truncate(at);
        return Err(error);
    }
    packet::finish(context.io.out(), at, context.sequence);
    Ok(())
}

/// Writes rows with long values, as far as there is space. Returns true after the last row.
fn write_rest(
    context: &mut CommandContext<'_, '_>,
    columns: &[Column],
    writer: &mut RowWriter,
    rest: &mut PendingRows,
) -> Result<bool> {
    while rest.at < rest.batch.len() {
        let row = rest.batch.row(rest.at);
        if rest.large_row.is_none() && !large_row::is_long(row) {
            write_row(context, columns, writer, row)?;
            rest.at += 1;
            continue;
        }
        let large_row = match &mut rest.large_row {
            Some(large_row) => large_row,
            None => {
                let reservation = context.shared.memory_budget.take(large_row::long_bytes(row) as u64);
                let reservation = reservation.ok_or_else(|| errors::OUT_OF_RESOURCES.bare())?;
                rest.large_row.insert(LargeRowStream::new(writer, columns, row, Some(reservation))?)
            }
        };
        if !large_row.send(context.io, context.sequence) {
            return Ok(false);
        }
        rest.large_row = None;
        rest.at += 1;
    }
    Ok(true)
}
