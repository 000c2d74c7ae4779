//! Replies: whole at once, or rows as far as the output has room.
//!
//! What is left of rows, and of a text of several statements, waits in `Running`; the command stays in the input until its reply is whole (Y2).

use std::sync::Arc;

use query::batch::{Batch, Cells};
use query::error::{Result, SqlError};
use query::types::Column;
use query::{Outcome, Ready, ResultSet};
use reactor::Alarm;
use stdx::memory;

use super::{Conversation, Next, Turn};
use crate::columns::put_column;
use crate::commands;
use crate::errors;
use crate::packet;
use crate::parcel::{self, Parcel};
use crate::protocol::{capability, status};
use crate::reply::{Ending, track};
use crate::rows::RowWriter;
use crate::wire::put_length;

/// What a cell takes besides the bytes of its string, about.
const CELL_ABOUT: usize = 8;

/// A reply under way.
enum Reply {
    /// The rows of a statement, and what comes behind it in its text.
    Rows { result: ResultSet, writer: RowWriter, rest: Option<Box<Rest>> },
    /// So many rows of a cursor.
    Fetch { statement: u32, left: u32 },
    /// The next statement of the text.
    Statement,
    /// That of a statement which has left for a page, and goes on when the connection is woken.
    Away(Away),
}

/// A statement that has left.
struct Away {
    begun_ns: u64,
    /// One that was prepared: its number, and the flags of its execution.
    prepared: Option<(u32, u8)>,
    /// Resumes it when its wait takes too long.
    alarm: Option<Alarm>,
}

/// Rows that have been drawn and not been sent, for one of them has a long value.
struct Rest {
    batch: Batch,
    /// The next of them.
    at: usize,
    /// The one that is under way.
    parcel: Option<Parcel>,
}

pub struct Running {
    /// Of the command in the input.
    size: usize,
    reply: Reply,
    /// The statements behind the one that runs, and where they begin in their text.
    script: Option<(String, usize)>,
}

impl Conversation {
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Goes on with a reply.
    pub fn go_on(&mut self, turn: &mut Turn<'_, '_>) -> Next {
        let Some(running) = self.running.take() else { return Next::Done(0) };
        let next = self.advance(turn, running);
        turn.io.hold_until_durable(self.sql.gate());
        next
    }

    fn advance(&mut self, turn: &mut Turn<'_, '_>, mut running: Running) -> Next {
        if let Reply::Away(away) = running.reply {
            return self.come_back(turn, away, running.size, running.script);
        }
        let finished = match &mut running.reply {
            Reply::Rows { result, writer, rest } => {
                let more = running.script.is_some();
                match self.write_rows(turn, result, writer, rest) {
                    Ok(true) => {
                        self.write_rows_end(turn, self.ending(more));
                        Ok(true)
                    }
                    other => other,
                }
            }
            Reply::Fetch { statement, left } => {
                let (statement, mut rest) = (*statement, *left);
                let fetched = self.fetch(turn, statement, &mut rest);
                *left = rest;
                fetched
            }
            Reply::Statement | Reply::Away(_) => Ok(true),
        };
        match finished {
            Ok(false) => {
                self.running = Some(running);
                Next::Running
            }
            Err(error) => {
                turn.error(&error);
                Next::Done(running.size)
            }
            Ok(true) => match running.script {
                Some((text, at)) => self.run_script(turn, text, at, running.size),
                None => Next::Done(running.size),
            },
        }
    }

    /// Runs a text of one or several statements.
    pub fn run_text(&mut self, turn: &mut Turn<'_, '_>, text: &str, size: usize) -> Next {
        // Nothing needs to be looked for behind the first statement where no other can begin.
        let (statement, rest) =
            if self.multi_statements && text.contains(';') { self.sql.split(text) } else { (text, "") };
        let script = (!rest.is_empty()).then(|| (rest.to_owned(), 0));
        self.run_statement(turn, statement, size, script)
    }

    fn run_script(&mut self, turn: &mut Turn<'_, '_>, text: String, at: usize, size: usize) -> Next {
        let (statement, rest) = self.sql.split(&text[at..]);
        let rest_at = text.len() - rest.len();
        if rest.is_empty() {
            return self.run_statement(turn, statement, size, None);
        }
        let statement = statement.to_owned();
        self.run_statement(turn, &statement, size, Some((text, rest_at)))
    }

    /// Runs a statement; of those behind it, the reply tells that they follow.
    fn run_statement(
        &mut self,
        turn: &mut Turn<'_, '_>,
        statement: &str,
        size: usize,
        script: Option<(String, usize)>,
    ) -> Next {
        self.prepare_to_run(turn);
        let begun_ns = turn.shared.clock.monotonic_ns();
        self.may_leave();
        let outcome = self.sql.execute(statement);
        if matches!(outcome, Ok(Outcome::Away)) {
            return self.leave(turn, Away { begun_ns, prepared: None, alarm: None }, size, script);
        }
        turn.shared.stats.times.record(turn.shared.clock.monotonic_ns() - begun_ns);
        self.obey_changes();
        self.answer(turn, outcome, size, script)
    }

    /// The next statement need not wait with a thread: the connection can be parked.
    pub fn may_leave(&mut self) {
        self.sql.allow_leaving();
    }

    /// The same of a prepared statement that has answered `Outcome::Away`.
    pub fn leave_prepared(&mut self, turn: &mut Turn<'_, '_>, prepared: (u32, u8), begun_ns: u64, size: usize) -> Next {
        self.leave(turn, Away { begun_ns, prepared: Some(prepared), alarm: None }, size, None)
    }

    /// Parks the connection until the statement's wait is over.
    fn leave(&mut self, turn: &mut Turn<'_, '_>, mut away: Away, size: usize, script: Option<(String, usize)>) -> Next {
        turn.shared.stats.leaves.add(1);
        let handle = turn.io.connection().handle();
        let wake: query::Wake = Arc::new(move || handle.wake());
        match self.sql.when_ready(wake.clone()) {
            Ready::Soon => turn.io.park(),
            Ready::Within(delay) => {
                turn.io.park_for_peer();
                away.alarm = turn.shared.clients.alarm(delay, Box::new(move || wake()));
            }
        }
        self.running = Some(Running { size, reply: Reply::Away(away), script });
        Next::Running
    }

    fn come_back(&mut self, turn: &mut Turn<'_, '_>, away: Away, size: usize, script: Option<(String, usize)>) -> Next {
        let outcome = self.sql.resume();
        if matches!(outcome, Ok(Outcome::Away)) {
            return self.leave(turn, away, size, script);
        }
        turn.shared.stats.times.record(turn.shared.clock.monotonic_ns() - away.begun_ns);
        match away.prepared {
            None => self.answer(turn, outcome, size, script),
            Some((id, flags)) => {
                let reply = commands::answer_execution(self, turn, outcome, (id, flags), size);
                commands::told(turn, reply, size)
            }
        }
    }

    /// Begins, or is, the reply to a statement.
    pub(super) fn answer(
        &mut self,
        turn: &mut Turn<'_, '_>,
        outcome: Result<Outcome>,
        size: usize,
        script: Option<(String, usize)>,
    ) -> Next {
        match outcome {
            Err(error) => {
                turn.error(&error);
                Next::Done(size)
            }
            Ok(Outcome::Done { affected, last_insert_id, info }) => {
                self.write_done(turn, (affected, last_insert_id, &info), script.is_some());
                match script {
                    Some(script) if !self.sql.is_released() => {
                        self.running = Some(Running { size, reply: Reply::Statement, script: Some(script) });
                        Next::Running
                    }
                    _ => Next::Done(size),
                }
            }
            Ok(Outcome::File(name)) => self.ask_for(turn, &name, script, size),
            Ok(Outcome::Away) => unreachable!("only what `may_leave` was said of, and that is looked at before"),
            Ok(Outcome::Rows(result)) => {
                let writer = RowWriter::new(self.results(), false);
                self.write_columns(turn, result.columns(), script.is_some());
                self.running = Some(Running { size, reply: Reply::Rows { result, writer, rest: None }, script });
                Next::Running
            }
        }
    }

    /// Before a statement: what is still open of others is put aside.
    pub fn prepare_to_run(&mut self, turn: &mut Turn<'_, '_>) {
        turn.shared.stats.statements.add(1);
        if self.statements.has_live_cursor() {
            self.statements.keep_cursor(&mut self.sql);
        }
    }

    /// The reply to a statement without rows.
    pub fn write_done(
        &mut self,
        turn: &mut Turn<'_, '_>,
        (affected, last_insert_id, info): (u64, u64, &str),
        more: bool,
    ) {
        let changes = self.changes(turn.capabilities);
        let ending = Ending { affected, last_insert_id, info, changes: &changes, ..self.ending(more) };
        turn.writer().ok(&ending);
    }

    /// The end of rows, or of a list.
    pub fn write_rows_end(&mut self, turn: &mut Turn<'_, '_>, ending: Ending<'_>) {
        // An EOF packet has no room for them: they wait for the next OK.
        let has_room = turn.capabilities & capability::DEPRECATE_EOF != 0;
        let changes = if has_room { self.changes(turn.capabilities) } else { Vec::new() };
        turn.writer().rows_end(&Ending { changes: &changes, ..ending });
    }

    /// What the client does not know yet of how its session stands.
    pub fn changes(&mut self, capabilities: u32) -> Vec<u8> {
        let mut out = Vec::new();
        if capabilities & capability::SESSION_TRACK != 0 {
            for change in self.sql.take_changes() {
                track::put(&mut out, &change);
            }
        }
        out
    }

    /// The head of a result: how many columns, and what they are.
    pub fn write_columns(&mut self, turn: &mut Turn<'_, '_>, columns: &[Column], more: bool) {
        turn.writer().packet(|out| put_length(out, columns.len() as u64));
        self.write_definitions(turn, columns, &self.ending(more));
    }

    /// Definitions of columns or parameters, and their end where the client expects one.
    pub fn write_definitions(&self, turn: &mut Turn<'_, '_>, columns: &[Column], ending: &Ending<'_>) {
        let results = self.results();
        for column in columns {
            turn.writer().packet(|out| put_column(out, column, results));
        }
        turn.writer().columns_end(ending);
    }

    /// Writes rows while there is room. True: that was the last.
    fn write_rows(
        &mut self,
        turn: &mut Turn<'_, '_>,
        result: &mut ResultSet,
        writer: &mut RowWriter,
        rest: &mut Option<Box<Rest>>,
    ) -> Result<bool> {
        let mut batch = Batch::new();
        // A client that wants shorter frames gets each packet whole: not all of them put packets together that begin in one frame and end in another.
        let is_plain = turn.capabilities & (capability::COMPRESS | capability::ZSTD) == 0;
        loop {
            if let Some(rows) = rest
                && !write_rest(turn, result.columns(), writer, rows)?
            {
                return Ok(false);
            }
            *rest = None;
            if turn.io.is_full() {
                return Ok(false);
            }
            let any = result.next(&mut self.sql, &mut batch)?;
            turn.shared.stats.rows.add(batch.len() as u64);
            turn.io
                .out()
                .reserve(batch.string_bytes() + batch.len() * (packet::HEADER + CELL_ABOUT * result.columns().len()));
            for nth in 0..batch.len() {
                let row = batch.row(nth);
                if is_plain && batch.is_long() && parcel::is_long(row) {
                    *rest = Some(Box::new(Rest { batch: std::mem::take(&mut batch), at: nth, parcel: None }));
                    break;
                }
                // Compressed rows lie there whole, and once more shorter.
                let _claim = match batch.is_long() {
                    true => Some(memory::claim(turn.io.out().len() + 2 * parcel::long_bytes(row))?),
                    false => None,
                };
                write_row(turn, result.columns(), writer, row)?;
            }
            if !any {
                return Ok(true);
            }
        }
    }

    /// The rows of a prepared statement that follow.
    pub fn begin_rows(&mut self, turn: &mut Turn<'_, '_>, result: ResultSet, size: usize) -> Next {
        self.write_columns(turn, result.columns(), false);
        let writer = RowWriter::new(self.results(), true);
        self.running = Some(Running { size, reply: Reply::Rows { result, writer, rest: None }, script: None });
        Next::Running
    }

    pub fn begin_fetch(&mut self, statement: u32, left: u32, size: usize) -> Next {
        self.running = Some(Running { size, reply: Reply::Fetch { statement, left }, script: None });
        Next::Running
    }

    /// Writes rows of a cursor while there is room. True: those were all that were asked for.
    fn fetch(&mut self, turn: &mut Turn<'_, '_>, statement: u32, left: &mut u32) -> Result<bool> {
        let Conversation { statements, sql, .. } = self;
        let statement = statements.get(statement, "mysqld_stmt_fetch")?;
        let cursor = statement.cursor.as_mut().ok_or_else(|| SqlError::unsupported("a closed cursor"))?;
        let mut word = status::CURSOR_EXISTS;
        while *left > 0 {
            if turn.io.is_full() {
                return Ok(false);
            }
            match cursor.next(sql)? {
                Some(payload) => {
                    turn.writer().packet(|out| out.extend_from_slice(payload));
                    turn.shared.stats.rows.add(1);
                    *left -= 1;
                }
                None => {
                    statement.cursor = None;
                    word = status::LAST_ROW_SENT;
                    break;
                }
            }
        }
        let ending = self.ending(false);
        let ending = Ending { status: ending.status | word, ..ending };
        self.write_rows_end(turn, ending);
        Ok(true)
    }
}

fn write_row(turn: &mut Turn<'_, '_>, columns: &[Column], writer: &mut RowWriter, row: Cells<'_>) -> Result<()> {
    let at = packet::begin(turn.io.out());
    if let Err(error) = writer.put_row(turn.io.out(), columns, row) {
        turn.io.out().truncate(at);
        return Err(error);
    }
    packet::finish(turn.io.out(), at, turn.sequence);
    Ok(())
}

/// Rows with long values, as far as there is room. True: those were all.
fn write_rest(turn: &mut Turn<'_, '_>, columns: &[Column], writer: &mut RowWriter, rest: &mut Rest) -> Result<bool> {
    while rest.at < rest.batch.len() {
        let row = rest.batch.row(rest.at);
        if rest.parcel.is_none() && !parcel::is_long(row) {
            write_row(turn, columns, writer, row)?;
            rest.at += 1;
            continue;
        }
        let parcel = match &mut rest.parcel {
            Some(parcel) => parcel,
            None => {
                let share = turn.shared.room.take(parcel::long_bytes(row) as u64);
                let share = share.ok_or_else(|| errors::OUT_OF_RESOURCES.bare())?;
                rest.parcel.insert(Parcel::new(writer, columns, row, Some(share))?)
            }
        };
        if !parcel.send(turn.io, turn.sequence) {
            return Ok(false);
        }
        rest.parcel = None;
        rest.at += 1;
    }
    Ok(true)
}
