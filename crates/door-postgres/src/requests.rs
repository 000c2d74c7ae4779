//! Messages after the login, one function for each kind of them.
//!
//! In the extended protocol an error drops all messages up to the next Sync (DP-3). While a COPY reads the client's data, other messages than those of COPY
//! end it.

use sql_postgres::error::{PgError, Result};

use crate::connection_state::{ConnectionState, Context, CopyIn, Progress};
use crate::errors;
use crate::message::{self, Bind, Message, Request, Target};
use crate::reply::{self, bare};

impl ConnectionState {
    /// Runs one message.
    pub fn run(&mut self, context: &mut Context<'_, '_>, message: &Message<'_>) -> Progress {
        context.shared.stats.messages.add(1);
        self.idle_alarm = None;
        if self.skips_to_sync && !matches!(message.kind, b'S' | b'X') {
            return Progress::Done(message.size);
        }
        if let Some(copy) = self.copy.take() {
            return self.run_in_copy(context, copy, message);
        }
        let size = message.size;
        let request = match message::read(message) {
            Ok(request) => request,
            Err(error) => return self.refuse(context, message.kind, &error, size),
        };
        let result = match request {
            Request::Query(text) => return self.query(context, text, size),
            Request::Execute { portal, max_rows } => return self.execute(context, portal, max_rows, size),
            Request::Parse { name, text, types } => {
                let parsed = self.sql.parse(name, text, &types);
                parsed.map(|()| reply::put_bare(context.io.out(), bare::PARSE_COMPLETE))
            }
            Request::Bind(bind) => self.bind(context, &bind),
            Request::Describe(target) => self.describe(context, target),
            Request::Close(target) => {
                match target {
                    Target::Statement(name) => self.sql.close_statement(name),
                    Target::Portal(name) => self.sql.close_portal(name),
                }
                reply::put_bare(context.io.out(), bare::CLOSE_COMPLETE);
                Ok(())
            }
            Request::Sync => return self.sync(context, size),
            // Replies leave with the end of each call anyway. Data of a COPY that has failed is dropped.
            Request::Flush | Request::CopyData(_) | Request::CopyDone | Request::CopyFail(_) => Ok(()),
            Request::FunctionCall => {
                let error = errors::unsupported("function calls by FunctionCall messages are not supported");
                return self.refuse(context, b'F', &error.hint("Call the function in a SELECT."), size);
            }
            Request::Terminate => return Progress::Close,
        };
        match result {
            Ok(()) => Progress::Done(size),
            Err(error) => self.fail(context, &error, false, size),
        }
    }

    /// Answers a message that the door refuses, so that the session has not seen it.
    pub fn refuse(&mut self, context: &mut Context<'_, '_>, kind: u8, error: &PgError, size: usize) -> Progress {
        self.sql.fail(error);
        let is_extended = matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H');
        self.fail(context, error, !is_extended, size)
    }

    fn query(&mut self, context: &mut Context<'_, '_>, text: &str, size: usize) -> Progress {
        match self.sql.simple(text) {
            Ok(script) => self.run_next(context, script, size),
            Err(error) => self.fail(context, &error, true, size),
        }
    }

    fn execute(&mut self, context: &mut Context<'_, '_>, portal: &str, max_rows: u64, size: usize) -> Progress {
        context.shared.stats.statements.add(1);
        let begun_ns = context.shared.clock.monotonic_ns();
        self.sql.allow_suspension();
        let outcome = self.sql.execute(portal, max_rows);
        self.answer(context, outcome, None, size, begun_ns)
    }

    fn bind(&mut self, context: &mut Context<'_, '_>, bind: &Bind<'_>) -> Result<()> {
        self.sql.bind(bind.portal, bind.statement, &bind.parameters, bind.result_formats)?;
        reply::put_bare(context.io.out(), bare::BIND_COMPLETE);
        Ok(())
    }

    fn describe(&mut self, context: &mut Context<'_, '_>, target: Target<'_>) -> Result<()> {
        let columns = match target {
            Target::Statement(name) => {
                let (types, columns) = self.sql.describe_statement(name)?;
                reply::put_parameter_description(context.io.out(), &types);
                columns
            }
            Target::Portal(name) => self.sql.describe_portal(name)?,
        };
        match columns {
            Some(columns) => reply::put_row_description(context.io.out(), columns.fields()),
            None => reply::put_bare(context.io.out(), bare::NO_DATA),
        }
        Ok(())
    }

    fn sync(&mut self, context: &mut Context<'_, '_>, size: usize) -> Progress {
        self.skips_to_sync = false;
        if let Err(error) = self.sql.sync()
            && !self.put_error(context, &error)
        {
            return Progress::Close;
        }
        self.put_ready(context);
        Progress::Done(size)
    }

    /// Runs a message while a COPY reads the client's data.
    fn run_in_copy(&mut self, context: &mut Context<'_, '_>, copy: CopyIn, message: &Message<'_>) -> Progress {
        let size = message.size;
        let is_simple = copy.script.is_some();
        match message::read(message) {
            Ok(Request::CopyData(data)) => match self.sql.copy_data(data) {
                Ok(()) => {
                    self.copy = Some(copy);
                    Progress::Done(size)
                }
                Err(error) => self.fail(context, &error, is_simple, size),
            },
            Ok(Request::CopyDone) => {
                let begun_ns = context.shared.clock.monotonic_ns();
                let outcome = self.sql.copy_done();
                self.answer(context, outcome, copy.script, size, begun_ns)
            }
            Ok(Request::CopyFail(message)) => {
                let error = self.sql.copy_fail(message);
                self.fail(context, &error, is_simple, size)
            }
            Ok(Request::Flush | Request::Sync) => {
                self.copy = Some(copy);
                Progress::Done(size)
            }
            Ok(Request::Terminate) => {
                self.sql.copy_fail("the client has ended the connection");
                Progress::Close
            }
            Ok(_) => {
                let text = format!("unexpected message type 0x{:02X} during COPY from stdin", message.kind);
                self.end_copy(context, &copy, &errors::protocol(text), size)
            }
            Err(error) => self.end_copy(context, &copy, &error, size),
        }
    }

    /// Ends a COPY for an error that the session has not seen.
    pub fn end_copy(&mut self, context: &mut Context<'_, '_>, copy: &CopyIn, error: &PgError, size: usize) -> Progress {
        // The session's own error says that the client has failed; the client is told the cause.
        self.sql.copy_fail(&error.message);
        self.fail(context, error, copy.script.is_some(), size)
    }
}
