//! Replies: written at once, or a batch of rows at a time as far as the output has space.
//!
//! The rest of a result, and of a text with several statements, waits in `Pending`; its message stays in the input until the reply is complete (DP-2).

use std::sync::Arc;

use sql_postgres::error::{PgError, Result};
use sql_postgres::wire::{More, Ready, Wake};

use crate::connection_state::{ConnectionState, Context, CopyIn, Pending, Progress, Work};
use crate::reply::{self, bare};
use crate::sql::{CopyOut, Outcome, ResultSet, Script};

/// The bytes of rows that are fetched before the output is checked again.
const BATCH_BYTES: usize = 32 << 10;

impl ConnectionState {
    /// Continues the pending reply.
    pub fn resume(&mut self, context: &mut Context<'_, '_>) -> Progress {
        let Some(pending) = self.pending.take() else { return Progress::Done(0) };
        let Pending { size, script, work } = pending;
        match (work, script) {
            (Work::Statement, Some(script)) => self.run_next(context, script, size),
            // Only scripts have further statements.
            (Work::Statement, None) => Progress::Done(size),
            (Work::Rows(rows), script) => self.write_rows(context, rows, script, size),
            (Work::Copy(copy), script) => self.write_copy(context, copy, script, size),
            (Work::Suspended { begun_ns, .. }, script) => {
                let outcome = self.sql.resume();
                self.answer(context, outcome, script, size, begun_ns)
            }
        }
    }

    /// Runs the statements of a simple query until one has more to write than the output takes.
    pub fn run_next(&mut self, context: &mut Context<'_, '_>, mut script: Script, size: usize) -> Progress {
        if context.io.is_full() {
            return self.wait(Work::Statement, Some(script), size);
        }
        let begun_ns = context.shared.clock.monotonic_ns();
        self.sql.allow_suspension();
        match self.sql.next_of(&mut script) {
            Ok(None) => {
                self.put_ready(context);
                Progress::Done(size)
            }
            Ok(Some(outcome)) => {
                context.shared.stats.statements.add(1);
                self.answer(context, Ok(outcome), Some(script), size, begun_ns)
            }
            Err(error) => self.answer(context, Err(error), Some(script), size, begun_ns),
        }
    }

    /// Writes the reply to a statement, or its beginning.
    pub fn answer(
        &mut self,
        context: &mut Context<'_, '_>,
        outcome: Result<Outcome>,
        script: Option<Script>,
        size: usize,
        begun_ns: u64,
    ) -> Progress {
        if let Ok(Outcome::Suspended) = outcome {
            return self.suspend(context, begun_ns, script, size);
        }
        context.shared.stats.times.record(context.shared.clock.monotonic_ns() - begun_ns);
        match outcome {
            Err(error) => self.fail(context, &error, script.is_some(), size),
            Ok(Outcome::Empty) => {
                reply::put_bare(context.io.out(), bare::EMPTY_QUERY);
                self.go_on(script, size)
            }
            Ok(Outcome::Done { tag }) => self.complete(context, &tag, script, size),
            Ok(Outcome::Rows(rows)) => {
                if script.is_some() {
                    reply::put_row_description(context.io.out(), rows.columns().fields());
                }
                self.wait(Work::Rows(rows), script, size)
            }
            Ok(Outcome::CopyOut(copy)) => {
                self.put_notices(context);
                reply::put_copy_response(context.io.out(), b'H', copy.is_binary(), copy.formats());
                self.wait(Work::Copy(copy), script, size)
            }
            Ok(Outcome::CopyIn { formats, binary }) => {
                self.put_notices(context);
                reply::put_copy_response(context.io.out(), b'G', binary, &formats);
                self.copy = Some(CopyIn { script });
                Progress::Done(size)
            }
            Ok(Outcome::PortalSuspended) => {
                reply::put_bare(context.io.out(), bare::PORTAL_SUSPENDED);
                self.go_on(script, size)
            }
            Ok(Outcome::Suspended) => unreachable!("handled above"),
        }
    }

    /// Writes an error, and ends the message: with ReadyForQuery in the simple protocol, or by dropping what follows up to a Sync.
    pub fn fail(&mut self, context: &mut Context<'_, '_>, error: &PgError, is_simple: bool, size: usize) -> Progress {
        if !self.put_error(context, error) {
            return Progress::Close;
        }
        match is_simple {
            true => self.put_ready(context),
            false => self.skips_to_sync = true,
        }
        Progress::Done(size)
    }

    fn complete(&mut self, context: &mut Context<'_, '_>, tag: &str, script: Option<Script>, size: usize) -> Progress {
        self.put_notices(context);
        reply::put_complete(context.io.out(), tag);
        self.go_on(script, size)
    }

    /// Ends an Execute, or goes on to the next statement of a simple query.
    fn go_on(&mut self, script: Option<Script>, size: usize) -> Progress {
        match script {
            None => Progress::Done(size),
            script => self.wait(Work::Statement, script, size),
        }
    }

    fn wait(&mut self, work: Work, script: Option<Script>, size: usize) -> Progress {
        self.pending = Some(Pending { size, script, work });
        Progress::Running
    }

    fn write_rows(
        &mut self,
        context: &mut Context<'_, '_>,
        mut rows: Box<ResultSet>,
        script: Option<Script>,
        size: usize,
    ) -> Progress {
        loop {
            if context.io.is_full() {
                return self.wait(Work::Rows(rows), script, size);
            }
            let start = context.io.out().len();
            match rows.write_rows(&mut self.sql, context.io.out(), BATCH_BYTES) {
                Ok(More::Rows) => {}
                Ok(More::End { tag }) => {
                    rows.close(&mut self.sql);
                    return self.complete(context, &tag, script, size);
                }
                Ok(More::PortalSuspended) => {
                    rows.close(&mut self.sql);
                    self.put_notices(context);
                    reply::put_bare(context.io.out(), bare::PORTAL_SUSPENDED);
                    return self.go_on(script, size);
                }
                Err(error) => {
                    rows.close(&mut self.sql);
                    reply::drop_partial(context.io.out(), start);
                    return self.fail(context, &error, script.is_some(), size);
                }
            }
        }
    }

    fn write_copy(
        &mut self,
        context: &mut Context<'_, '_>,
        mut copy: Box<CopyOut>,
        script: Option<Script>,
        size: usize,
    ) -> Progress {
        loop {
            if context.io.is_full() {
                return self.wait(Work::Copy(copy), script, size);
            }
            let start = context.io.out().len();
            match copy.write(&mut self.sql, context.io.out(), BATCH_BYTES) {
                Ok(More::Rows | More::PortalSuspended) => {}
                Ok(More::End { tag }) => {
                    copy.close(&mut self.sql);
                    reply::put_bare(context.io.out(), bare::COPY_DONE);
                    return self.complete(context, &tag, script, size);
                }
                Err(error) => {
                    copy.close(&mut self.sql);
                    reply::drop_partial(context.io.out(), start);
                    return self.fail(context, &error, script.is_some(), size);
                }
            }
        }
    }

    /// Parks the connection until the statement's wait is over (DP-9).
    fn suspend(
        &mut self,
        context: &mut Context<'_, '_>,
        begun_ns: u64,
        script: Option<Script>,
        size: usize,
    ) -> Progress {
        context.shared.stats.suspensions.add(1);
        let handle = context.io.connection().handle();
        let wake: Wake = Arc::new(move || handle.wake());
        let alarm = match self.sql.when_ready(wake.clone()) {
            Ready::Soon => {
                context.io.park();
                None
            }
            Ready::Within(delay) => {
                context.io.park_for_peer();
                context.shared.clients.alarm(delay, Box::new(move || wake()))
            }
        };
        self.wait(Work::Suspended { begun_ns, _alarm: alarm }, script, size)
    }
}
