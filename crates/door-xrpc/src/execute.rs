//! EXEC_SQL and EXEC_PLAN_READ: from the request to the end of its answer.
//!
//! Rows are sent as far as the client accepts them. Two kinds of backpressure stop them: a peer that has not read the sent bytes, and the client's tokens,
//! which a statement spends with each row. In both cases the rest waits in `PendingAnswer`, without a thread. So does a statement that is suspended on a page
//! miss: nothing of its answer is written, and it is resumed when its pages have arrived (DX-13).

use std::borrow::Cow;
use std::sync::Arc;

use reactor::Reply;
use sql_mysql::WarningLevel;
use sql_mysql::batch::Batch;
use sql_mysql::charset::Results;
use sql_mysql::error::SqlError;
use sql_mysql::value::Value;
use sql_mysql::{Outcome, Prepared, Ready};
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::digests::Meaning;
use crate::encode::chunk::{self, Chunk};
use crate::encode::column_frames::{ColumnForm, ColumnFrames, write_columns};
use crate::encode::row;
use crate::errors;
use crate::message::answer;
use crate::message::plan::Plan;
use crate::message::reply::{Level, Severity, Writer};
use crate::message::request::{ExecPlan, StmtExecute};
use crate::pending_answer::{ExecOptions, Known, PendingAnswer, PendingRows, Suspended};
use crate::plan_translation::{self, PreparedPlan};
use crate::prepared_text::{self, PreparedText};
use crate::session::{Failure, Session, interrupted};
use crate::statement::{self, Bound};

/// Prepared statements that a session keeps.
const PREPARED_MAX: usize = 256;
/// The client's flag for counting the rows that were found, not those that were changed.
const FOUND_ROWS: u64 = 2;

/// Why the sending of rows stopped.
enum SendStep {
    Done,
    /// The output buffer is full.
    Room,
    /// The tokens are used up.
    Leave,
}

impl Session {
    pub(crate) fn execute(&mut self, payload: &[u8], reply: &mut Reply<'_>) {
        let Ok(request) = StmtExecute::read(payload) else { return self.break_off() };
        if let Some(error) = self.inherited_error(request.reset_error) {
            return self.fail(error.into(), reply);
        }
        let begun = self.shared.clock.monotonic_ns();
        let options = ExecOptions::of_statement(&request);
        let outcome = self.begin_statement(&request);
        self.respond(begun, options, outcome, reply);
    }

    pub(crate) fn execute_plan(&mut self, payload: &[u8], reply: &mut Reply<'_>) {
        let Ok(request) = ExecPlan::read(payload) else { return self.break_off() };
        if let Some(error) = self.inherited_error(request.reset_error) {
            return self.fail(error.into(), reply);
        }
        let begun = self.shared.clock.monotonic_ns();
        let options = ExecOptions::of_plan(&request);
        let outcome = self.begin_plan(&request);
        self.respond(begun, options, outcome, reply);
    }

    /// Continues a pending answer.
    pub(crate) fn resume(&mut self, reply: &mut Reply<'_>) {
        match self.pending.take() {
            None => {}
            Some(PendingAnswer::Suspended(suspended)) => self.resume_statement(suspended, reply),
            Some(PendingAnswer::PendingRows(rows)) => {
                let done = self.send_rows(rows, reply);
                self.settle(done, reply);
            }
        }
    }

    /// Writes the answer to a statement, or suspends it.
    fn respond(
        &mut self,
        begun_ns: u64,
        options: ExecOptions,
        outcome: Result<(Outcome, Known), Failure>,
        reply: &mut Reply<'_>,
    ) {
        if let Ok((Outcome::Suspended, known)) = outcome {
            return self.suspend(begun_ns, (options, known), reply);
        }
        let done = outcome.and_then(|(outcome, known)| self.answer(options, outcome, &known, reply));
        self.shared.stats.times.record(self.shared.clock.monotonic_ns() - begun_ns);
        self.settle(done, reply);
    }

    /// Parks the session until the statement's wait is over (DX-13).
    fn suspend(&mut self, begun_ns: u64, (options, known): (ExecOptions, Known), reply: &mut Reply<'_>) {
        let Some(sql) = &mut self.sql else { return };
        self.shared.stats.suspensions.add(1);
        let is_ready = Arc::new(AtomicBool::new(false));
        reply.park();
        let (wake, ready) = (reply.waker(), is_ready.clone());
        let wake: sql_mysql::Wake = Arc::new(move || {
            ready.store(true, Ordering::Release);
            wake();
        });
        let alarm = match sql.when_ready(wake.clone()) {
            Ready::Soon => None,
            Ready::Within(delay) => self.shared.alarm(delay, Box::new(move || wake())),
        };
        self.pending = Some(PendingAnswer::Suspended(Suspended { begun_ns, options, known, is_ready, _alarm: alarm }));
    }

    fn resume_statement(&mut self, suspended: Suspended, reply: &mut Reply<'_>) {
        if !suspended.is_ready.load(Ordering::Acquire) && !self.is_interrupted() {
            self.pending = Some(PendingAnswer::Suspended(suspended));
            return reply.park();
        }
        let Some(sql) = &mut self.sql else { return };
        let outcome = sql.resume().map(|outcome| (outcome, suspended.known)).map_err(Failure::from);
        self.respond(suspended.begun_ns, suspended.options, outcome, reply);
    }

    /// Finishes a request. `Ok(true)` means that its answer is complete.
    fn settle(&mut self, done: Result<bool, Failure>, reply: &mut Reply<'_>) {
        match done {
            Ok(false) => return,
            Ok(true) => self.succeed(),
            Err(failure) => self.fail(failure, reply),
        }
        if self.is_single() {
            self.return_sql();
        }
    }

    fn begin_statement(&mut self, request: &StmtExecute<'_>) -> Result<(Outcome, Known), Failure> {
        self.shared.stats.statements.add(1);
        if self.is_single() {
            check_single(request)?;
            self.borrow_sql()?;
        }
        self.begin(ExecOptions::of_statement(request))?;
        self.enter_schema(request)?;
        if let Some(digest) = request.digest.filter(|_| request.statement.is_none())
            && request.hint.is_none_or(statement::is_trace)
            && let Some(values) = statement::values(&request.args)
        {
            return self.run_named(digest, values);
        }
        let text = self.text_of(request)?;
        let mut hint = statement::decode(request.hint.unwrap_or_default(), self.settings.client)?;
        let mut text = statement::decode(&text, self.settings.client)?;
        if let Some(list) = statement::returned(&hint)? {
            text = sql_mysql::returning(&text, &list).into();
            hint = Cow::default();
        }
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        let bound = statement::bind(sql, text, &hint, &request.args)?;
        sql.allow_suspension();
        let outcome = self.run(bound);
        self.refresh_settings();
        Ok((outcome?, Known::Nothing))
    }

    /// Executes the text that the digest stands for with these values.
    fn run_named(&mut self, digest: &[u8], values: Vec<Value>) -> Result<(Outcome, Known), Failure> {
        let known = self.named_text(digest, values.is_empty())?;
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        sql.allow_suspension();
        let outcome = match &known.prepared {
            None => sql.execute(&known.text),
            Some(prepared) => execute_prepared(sql, prepared, values),
        };
        self.refresh_settings();
        Ok((outcome?, Known::Text(known)))
    }

    /// Returns the text that the digest stands for. It is prepared unless it has no values.
    fn named_text(&mut self, digest: &[u8], is_plain: bool) -> Result<Arc<PreparedText>, Failure> {
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        let (texts, client, context_id) = (&self.shared.texts, self.settings.client, sql.context_id());
        let known = self.shared.prepared_texts.get(context_id, digest).filter(|known| {
            known.client == client && known.prepared.is_none() == is_plain && texts.confirms(digest, &known.meaning)
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let meaning = texts.find(digest).ok_or_else(cache_miss)?;
        let text: Box<str> = statement::decode(meaning.bytes(), client)?.into();
        let prepared = match is_plain {
            true => None,
            false => Some(sql.prepared(&text).map_or_else(|| sql.prepare(&text), Ok)?),
        };
        let is_kept = text.len() <= prepared_text::BYTES_MAX;
        let known = Arc::new(PreparedText { meaning, client, text, prepared, columns: ColumnFrames::default() });
        if is_kept {
            self.shared.prepared_texts.insert(context_id, digest, known.clone());
        }
        Ok(known)
    }

    /// Checks and applies the options of a request before it is executed.
    fn begin(&mut self, options: ExecOptions) -> Result<(), Failure> {
        if options.has_moment {
            return Err(errors::not_served("snapshots and commits with numbers of the client").into());
        }
        self.control.begin(token_of(options.token, self.is_single())?);
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        sql.count_found(options.capabilities.unwrap_or(FOUND_ROWS) & FOUND_ROWS != 0);
        Ok(())
    }

    fn begin_plan(&mut self, request: &ExecPlan<'_>) -> Result<(Outcome, Known), Failure> {
        self.shared.stats.statements.add(1);
        self.begin(ExecOptions::of_plan(request))?;
        let known = self.plan_of(request)?;
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        sql.allow_suspension();
        let outcome = sql.execute_prepared(&known.handle, known.values(&request.parameters))?;
        Ok((outcome, Known::Plan(known)))
    }

    /// Returns the plan of the request: as some session has prepared it, or prepared now.
    fn plan_of(&mut self, request: &ExecPlan<'_>) -> Result<Arc<PreparedPlan>, Failure> {
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        let (plans, prepared_plans, context_id) = (&self.shared.plans, &self.shared.prepared_plans, sql.context_id());
        let known = request.digest.and_then(|digest| prepared_plans.get(context_id, digest));
        let known = known.filter(|known| known.is_for(sql, &request.parameters));
        let meaning = match (request.plan_bytes, request.digest) {
            (Some(bytes), None) => Meaning::unnamed(bytes),
            (Some(bytes), Some(digest)) => {
                let meaning = plans.keep(digest, bytes);
                if let Some(known) = known.filter(|known| **known.meaning.bytes() == *bytes) {
                    return Ok(known);
                }
                meaning
            }
            (None, Some(digest)) => {
                if let Some(known) = known.filter(|known| plans.confirms(digest, &known.meaning)) {
                    return Ok(known);
                }
                plans.find(digest).ok_or_else(cache_miss)?
            }
            (None, None) => return Err(errors::XRPC.with(&[&"The request has neither a plan nor a digest."]).into()),
        };
        let bytes = meaning.bytes().clone();
        // The plan was validated by the request that sent it.
        let plan = Plan::read(&bytes).map_err(|_| errors::XRPC.with(&[&"The plan is none."]))?;
        let known = plan_translation::prepare(sql, &plan, meaning, &request.parameters, &shown(request))?;
        let known = Arc::new(known);
        if let Some(digest) = request.digest {
            prepared_plans.insert(context_id, digest, known.clone());
        }
        Ok(known)
    }

    /// Selects the database that the request names.
    fn enter_schema(&mut self, request: &StmtExecute<'_>) -> Result<(), Failure> {
        let Some(name) = request.schema_name.filter(|name| !name.is_empty()) else { return Ok(()) };
        let name = statement::decode(name, self.settings.client).map_err(Failure::fatal)?;
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        if sql.database() == Some(&name) {
            return Ok(());
        }
        sql.use_database(&name).map_err(Failure::fatal)
    }

    /// Returns the statement: the text of the request, or the cached text of its digest.
    fn text_of<'r>(&self, request: &StmtExecute<'r>) -> Result<Text<'r>, Failure> {
        match (request.statement, request.digest) {
            (Some(text), None) => Ok(Text::Sent(text)),
            (Some(text), Some(digest)) => {
                self.shared.texts.keep(digest, text);
                Ok(Text::Sent(text))
            }
            (None, Some(digest)) => self.shared.texts.get(digest).map(Text::Known).ok_or_else(cache_miss),
            (None, None) => Err(errors::XRPC.with(&[&"The request has neither a statement nor a digest."]).into()),
        }
    }

    fn run(&mut self, bound: Bound<'_>) -> Result<Outcome, SqlError> {
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        if bound.values.is_empty() {
            return sql.execute(&bound.text);
        }
        let known = sql.prepared(&bound.text).or_else(|| self.prepared.get(&*bound.text).cloned());
        let prepared = match known {
            Some(known) => known,
            None => {
                let prepared = sql.prepare(&bound.text)?;
                if sql.prepared(&bound.text).is_none() {
                    if self.prepared.len() >= PREPARED_MAX {
                        self.prepared.clear();
                    }
                    self.prepared.insert((&*bound.text).into(), prepared.clone());
                }
                prepared
            }
        };
        execute_prepared(sql, &prepared, bound.values)
    }

    /// Begins the answer. Returns true if it is complete.
    fn answer(
        &mut self,
        options: ExecOptions,
        outcome: Outcome,
        known: &Known,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Failure> {
        match outcome {
            Outcome::Done { affected, last_insert_id, info } => {
                self.write_ending(reply, affected, last_insert_id, &info);
                Ok(true)
            }
            Outcome::Rows(result) => {
                let results = self.settings.results;
                let before = reply.out().len();
                let form = ColumnForm { is_compact: options.is_compact, results };
                match known.columns() {
                    Some(frames) => frames.write(&mut self.writer(reply), result.shared_columns(), form),
                    None => write_columns(&mut self.writer(reply), result.columns(), form),
                }
                self.control.spend(reply.out().len() - before);
                let is_chunked = options.is_chunked && chunk::is_possible(result.columns(), results);
                let chunk = is_chunked.then(|| Chunk::new(result.columns()));
                let rows = PendingRows { result, batch: Batch::new(), at: 0, chunk, has_asked: false };
                self.send_rows(Box::new(rows), reply)
            }
            Outcome::File(_) => Err(errors::not_served("files of the client").into()),
            Outcome::Suspended => unreachable!("`respond` handles it first"),
        }
    }

    /// Sends rows as far as possible. Returns true after the last row, when the answer is complete.
    fn send_rows(&mut self, mut rows: Box<PendingRows>, reply: &mut Reply<'_>) -> Result<bool, Failure> {
        if self.is_interrupted() {
            if let Some(sql) = &mut self.sql {
                rows.result.close(sql);
            }
            return Err(interrupted().into());
        }
        match self.advance(&mut rows, reply)? {
            SendStep::Done => {
                drop(rows);
                self.write_rows_end(reply);
                return Ok(true);
            }
            SendStep::Room => reply.pause(),
            SendStep::Leave => {
                if !std::mem::replace(&mut rows.has_asked, true) {
                    self.shared.stats.token_waits.add(1);
                    self.writer(reply).token_done();
                }
                reply.park();
            }
        }
        self.pending = Some(PendingAnswer::PendingRows(rows));
        Ok(false)
    }

    fn advance(&mut self, rows: &mut PendingRows, reply: &mut Reply<'_>) -> Result<SendStep, SqlError> {
        let sql = self.sql.as_mut().ok_or_else(|| errors::NO_SESSION.bare())?;
        let (control, results) = (&self.control, self.settings.results);
        let (mode, sid) = (self.identity.mode, self.sid);
        let piece_bytes = self.shared.settings.piece_bytes();
        loop {
            while rows.at < rows.batch.len() {
                if control.is_spent() {
                    return Ok(SendStep::Leave);
                }
                rows.has_asked = false;
                let before = reply.out().len();
                rows.put_row(&mut Writer { out: reply.out(), mode, sid }, results)?;
                control.spend(reply.out().len() - before);
                if reply.out().len() >= piece_bytes && !reply.send() {
                    return Ok(SendStep::Room);
                }
            }
            rows.at = 0;
            let any = rows.result.next(sql, &mut rows.batch)?;
            self.shared.stats.rows.add(rows.batch.len() as u64);
            reply.hold_until_durable(sql.durability_lsn());
            if !any {
                if let Some(chunk) = rows.chunk.as_mut().filter(|chunk| !chunk.is_empty()) {
                    chunk.send(&mut Writer { out: reply.out(), mode, sid });
                }
                return Ok(SendStep::Done);
            }
        }
    }

    fn write_rows_end(&mut self, reply: &mut Reply<'_>) {
        self.writer(reply).fetch_done();
        self.write_ending(reply, 0, 0, "");
    }

    /// Writes the end of a successful answer.
    fn write_ending(&mut self, reply: &mut Reply<'_>, affected: u64, insert_id: u64, info: &str) {
        let Some(sql) = &self.sql else { return };
        reply.hold_until_durable(sql.durability_lsn());
        let mut writer = Writer { out: reply.out(), mode: self.identity.mode, sid: self.sid };
        for (level, warning) in sql.warnings() {
            let level = match level {
                WarningLevel::Note => Level::Note,
                WarningLevel::Warning => Level::Warning,
                WarningLevel::Error => Level::Error,
            };
            writer.warning(level, warning.code, &warning.message);
        }
        writer.rows_affected(affected);
        if insert_id != 0 {
            writer.insert_id(insert_id);
        }
        if !info.is_empty() {
            writer.message(info);
        }
        writer.execute_ok();
    }
}

impl PendingRows {
    /// Writes the next row, or adds it to the chunk.
    fn put_row(&mut self, writer: &mut Writer<'_>, results: Results) -> Result<(), SqlError> {
        let (columns, cells) = (self.result.columns(), self.batch.row(self.at));
        self.at += 1;
        match &mut self.chunk {
            Some(chunk) => {
                chunk.push(columns, cells, results)?;
                if chunk.is_full() {
                    chunk.send(writer);
                }
                Ok(())
            }
            None => {
                let before = writer.out.len();
                let written = writer.frame(answer::ROW, |out| row::put_row(out, columns, cells, results));
                if written.is_err() {
                    writer.out.truncate(before);
                }
                written
            }
        }
    }
}

/// Executes a prepared text with a value for each of its parameters.
fn execute_prepared(
    sql: &mut sql_mysql::Session,
    prepared: &Prepared,
    values: Vec<Value>,
) -> Result<Outcome, SqlError> {
    let count = prepared.parameters.len();
    if values.len() > count {
        return Err(statement::too_many(values.len(), count));
    }
    if values.len() < count {
        return Err(SqlError::parse("'?' at line 1"));
    }
    sql.execute_prepared(&prepared.handle, values)
}

/// The text of a statement.
enum Text<'r> {
    Sent(&'r [u8]),
    Known(Arc<[u8]>),
}

impl std::ops::Deref for Text<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Sent(text) => text,
            Text::Known(text) => text,
        }
    }
}

/// Refuses options that a session for a single statement does not serve.
fn check_single(request: &StmtExecute<'_>) -> Result<(), SqlError> {
    match request {
        StmtExecute { statement: None, .. } => {
            Err(errors::not_served("digests without text on a sid with the top bit"))
        }
        StmtExecute { chunk_result: true, .. } => Err(errors::not_served("chunks on a sid with the top bit")),
        StmtExecute { feed_back: true, .. } => Err(errors::not_served("feed_back on a sid with the top bit")),
        _ => Ok(()),
    }
}

/// The error for an unknown digest. It is not inherited by later requests: the client sends the text on the same session.
fn cache_miss() -> Failure {
    Failure { severity: Severity::Error, error: errors::CACHE_MISS.bare(), is_remembered: false }
}

/// Returns the text for the process list: the client's trace id, and the plan in the client's words or by its digest.
fn shown(request: &ExecPlan<'_>) -> String {
    let words = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let digest: String = request.digest.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}/* xplan {digest} {} */", words(request.trace_id), words(request.audit_str))
}

/// Returns the token budget of a request; `None` is unlimited.
fn token_of(token: Option<i32>, is_single: bool) -> Result<Option<i32>, SqlError> {
    match token {
        Some(token) if token < -1 => Err(errors::XRPC.with(&[&format!("A token of {token} is none.")])),
        Some(token) if token >= 0 && !is_single => Ok(Some(token)),
        _ => Ok(None),
    }
}
