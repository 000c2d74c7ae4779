//! The extended protocol: prepared statements, portals, and the implicit transaction that ends at Sync.
//!
//! A portal keeps the rest of its rows between two Executes (`portal`).

use std::sync::Arc;

use crate::error::{PgError, Result, state};
use crate::functions::state::PgState;
use crate::session::cursor::leaves_cursors;
use crate::session::portal::{ALL, Portal, PortalOptions, PortalState, cannot_run};
use crate::session::result_set::{Format, ResultColumns, Running};
use crate::session::run::{Delivery, TagKind, tag_of};
use crate::session::statement::{Prepared, has_plan};
use crate::session::transact::Block;
use crate::session::{Outcome, Parameter, ResultSet, Session};
use crate::types::oid::{self, Oid};
use crate::types::{io, registry};
use crate::value::Value;
use crate::wire::Formats;

/// The most parameters of a statement.
const PARAMETERS_MAX: usize = u16::MAX as usize;

impl Session {
    /// Prepares a statement. `types` are those of its first parameters, 0 where the type is to be inferred.
    pub fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> Result<()> {
        let parsed = self.parse_statement(name, text, types);
        parsed.map_err(|error| self.fail_with(error))
    }

    fn parse_statement(&mut self, name: &str, text: &str, types: &[u32]) -> Result<()> {
        self.begin_extended(text)?;
        if name.is_empty() {
            self.statements.remove("");
        } else if self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(PgError::new(state::DUPLICATE_PREPARED_STATEMENT, message));
        }
        let prepared = self.prepared_for(text, types)?;
        self.statements.insert(name.to_owned(), prepared);
        self.take_warnings();
        Ok(())
    }

    /// Returns a prepared statement of a text, which sessions share where no types are given.
    fn prepared_for(&mut self, text: &str, types: &[Oid]) -> Result<Arc<Prepared>> {
        let context = self.context_id();
        let is_shared = types.iter().all(|ty| *ty == 0);
        let known = if is_shared { self.db.plans.statement(context, text) } else { None };
        if let Some(known) = known.filter(|known| known.is_current(context)) {
            if let Some(raw) = &known.raw {
                self.check_runs_aborted(&raw.statement)?;
            }
            return Ok(known);
        }
        let mut statements = self.parse_text(text)?;
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(PgError::new(state::SYNTAX_ERROR, message));
        }
        let raw = statements.pop();
        if let Some(raw) = &raw {
            self.check_runs_aborted(&raw.statement)?;
            if raw.parameters as usize > PARAMETERS_MAX {
                return Err(PgError::new(state::SYNTAX_ERROR, "too many parameters"));
            }
        }
        let is_planned = raw.as_ref().is_some_and(|raw| has_plan(&raw.statement));
        let prepared = Arc::new(self.prepare(&text.into(), raw, types)?);
        if is_shared && is_planned {
            self.db.plans.keep_statement(context, text, prepared.clone());
        }
        Ok(prepared)
    }

    /// Fails in an aborted block for a statement that does not end it.
    fn check_runs_aborted(&self, statement: &syntax::postgres::tree::Statement) -> Result<()> {
        if super::command::ends_aborted_block(statement) { Ok(()) } else { self.check_not_aborted() }
    }

    /// Begins the transaction of a message that needs one.
    fn begin_extended(&mut self, text: &str) -> Result<()> {
        self.begin_text(text, leaves_cursors(text))?;
        self.transaction.is_last = false;
        if self.transaction.block == Block::None {
            self.is_script = false;
        }
        self.need_block();
        Ok(())
    }

    fn statement_named(&self, name: &str) -> Result<Arc<Prepared>> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            PgError::new(state::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// Returns the types of a statement's parameters and its columns; no columns for a statement without rows.
    pub fn describe_statement(&mut self, name: &str) -> Result<(Vec<u32>, Option<ResultColumns>)> {
        let described = self.statement_named(name).and_then(|prepared| {
            if !prepared.fields.is_empty() {
                self.check_not_aborted()?;
            }
            Ok((prepared.parameter_types.clone(), gives_rows(&prepared).then(|| prepared.columns(0))))
        });
        described.map_err(|error| self.fail_with(error))
    }

    /// Makes a portal of a statement: reads the values of its parameters.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: &[Parameter<'_>],
        result_formats: Formats<'_>,
    ) -> Result<()> {
        let bound = self.make_portal(portal, statement, parameters, result_formats);
        bound.map_err(|error| self.fail_with(error))
    }

    fn make_portal(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: &[Parameter<'_>],
        result_formats: Formats<'_>,
    ) -> Result<()> {
        let prepared = self.statement_named(statement)?;
        let expected = prepared.parameter_types.len();
        if parameters.len() != expected {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {expected}",
                parameters.len()
            );
            return Err(PgError::new(state::PROTOCOL_VIOLATION, message));
        }
        if let Some(raw) = &prepared.raw {
            self.check_runs_aborted(&raw.statement)?;
        }
        if portal.is_empty() {
            self.remove_portal("");
        } else if self.portals.contains_key(portal) {
            let message = format!("cursor \"{portal}\" already exists");
            return Err(PgError::new(state::DUPLICATE_CURSOR, message));
        }
        self.transaction.is_last = false;
        self.need_block();
        let values = self.read_parameters(&prepared, parameters)?;
        let columns = columns(&prepared, result_formats)?;
        self.add_portal(portal, Portal::new(prepared, values, columns, PortalOptions::default()));
        Ok(())
    }

    fn read_parameters(&mut self, prepared: &Prepared, parameters: &[Parameter<'_>]) -> Result<Vec<Value>> {
        let pg = self.ctx.slot_mut::<PgState>();
        let mut values = Vec::with_capacity(parameters.len());
        for (nth, (parameter, ty)) in parameters.iter().zip(&prepared.parameter_types).enumerate() {
            let Some(bytes) = parameter.value else {
                values.push(Value::Null);
                continue;
            };
            let ty = if *ty == oid::UNKNOWN || *ty == 0 { oid::TEXT } else { *ty };
            if registry::by_oid(ty).is_none() {
                return Err(PgError::unsupported(format!("a parameter of type {}", registry::format_type(ty, None))));
            }
            let ty = registry::column_type(ty, -1, true);
            values.push(match parameter.format {
                0 => io::input(&ty, io::utf8(bytes)?, &pg.io)?,
                1 => io::receive(&ty, bytes, &pg.io).map_err(|error| match error.state {
                    // Bytes that a value leaves over; other errors say themselves what is wrong.
                    state::INVALID_BINARY_REPRESENTATION if error.message == io::INCORRECT_BINARY => PgError {
                        message: format!("incorrect binary data format in bind parameter {}", nth + 1),
                        ..error
                    },
                    _ => error,
                })?,
                other => {
                    let message = format!("unsupported format code: {other}");
                    return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
                }
            });
        }
        Ok(values)
    }

    fn portal_named(&self, name: &str) -> Result<&Portal> {
        self.portals
            .get(name)
            .map(|portal| &**portal)
            .ok_or_else(|| PgError::new(state::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist")))
    }

    /// Returns the columns of a portal with their formats; `None` for a statement without rows.
    pub fn describe_portal(&mut self, name: &str) -> Result<Option<ResultColumns>> {
        let described =
            self.portal_named(name).map(|portal| gives_rows(&portal.prepared).then(|| portal.columns.clone()));
        described.map_err(|error| self.fail_with(error))
    }

    /// Runs a portal, or goes on with it. At most `max_rows` rows are written; 0 means all.
    pub fn execute(&mut self, name: &str, max_rows: u64) -> Result<Outcome> {
        let text = self.portals.get(name).map(|portal| portal.prepared.text.clone());
        self.may_restart(text.as_deref().unwrap_or_default());
        let executed = self.execute_portal(name, max_rows);
        self.ran(executed, |session| session.restart_portal(name, max_rows))
    }

    pub(super) fn execute_portal(&mut self, name: &str, max_rows: u64) -> Result<Outcome> {
        let portal = self.portal_named(name)?;
        let (prepared, columns) = (portal.prepared.clone(), portal.columns.clone());
        let Some(raw) = &prepared.raw else { return Ok(Outcome::Empty) };
        if !super::command::ends_aborted_block(&raw.statement) {
            self.check_not_aborted()?;
        }
        if portal.options.is_declared {
            self.begin_text(&prepared.text, true)?;
            return self.execute_cursor(name, max_rows);
        }
        let tag = if has_plan(&raw.statement) { tag_of(&raw.statement) } else { TagKind::Word("") };
        let delivery = Delivery { columns, tag, portal: Some(name.to_owned()), rows_max: max_rows };
        let portal = self.portals.get_mut(name);
        let state =
            portal.map_or(PortalState::Done, |portal| std::mem::replace(&mut portal.state, PortalState::Active));
        match state {
            PortalState::Suspended(running, number) => {
                // Nothing has run in between, or the rest was gathered.
                self.begin_time(&prepared.text);
                self.number = if running.exec.is_some() { number } else { self.number };
                return Ok(Outcome::Rows(ResultSet::new(running, delivery, self.number)));
            }
            PortalState::Failed => return Err(cannot_run(name)),
            PortalState::Done | PortalState::Active => {
                self.end_portal(name, 0);
                // A portal that has run to its end gives nothing more.
                return match gives_rows(&prepared) {
                    true => Ok(Outcome::done(delivery.tag.tag(0))),
                    false => Err(cannot_run(name)),
                };
            }
            PortalState::New => {}
        }
        self.begin_extended(&prepared.text)?;
        let values = self.portals.get_mut(name).map(|portal| std::mem::take(&mut portal.values)).unwrap_or_default();
        if !has_plan(&raw.statement) {
            let outcome = self.command_in_portal(raw, &prepared.text, delivery, (&prepared.parameter_types, values))?;
            if !matches!(outcome, Outcome::Rows(_) | Outcome::CopyIn { .. } | Outcome::CopyOut(_)) {
                self.end_portal(name, 0);
            }
            return Ok(outcome);
        }
        let plan = self.plan_of(&prepared, &values)?;
        let outcome = self.run(&plan, values, delivery, &mut |session| session.plan_of(&prepared, &[]))?;
        if matches!(outcome, Outcome::Done { .. }) {
            self.end_portal(name, 0);
        }
        Ok(outcome)
    }

    /// Forgets a prepared statement; there need be none.
    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    pub fn close_portal(&mut self, name: &str) {
        if let Some(portal) = self.remove_portal(name) {
            self.is_open &= !portal.is_running(self.number);
        }
    }

    /// Ends a pipeline: commits its implicit transaction.
    pub fn sync(&mut self) -> Result<()> {
        self.is_script = false;
        self.copying = None;
        if self.forget_suspended() {
            let error = PgError::new(state::QUERY_CANCELED, "canceling statement due to user request");
            return Err(self.fail_with(error));
        }
        match self.transaction.block {
            Block::Implicit => self.commit_transaction(),
            Block::None | Block::Explicit => Ok(()),
        }
    }

    /// Ends the transaction as failed, after an error that the door has found itself.
    pub fn fail(&mut self, error: &PgError) {
        let _ = self.fail_with(error.clone());
    }

    /// Notes that a portal has given its last rows.
    pub(super) fn end_portal(&mut self, name: &str, rows: u64) {
        if let Some(portal) = self.portals.get_mut(name) {
            portal.state = PortalState::Done;
            portal.place.advance(rows, ALL);
        }
        // Later statements of the pipeline are not alone in their transaction.
        self.is_script = true;
    }

    /// Takes the rest of a portal's rows back, after an Execute that has given some. `number` is that of the statement that produces them.
    pub(super) fn keep_running(&mut self, name: &str, running: Running, (number, rows): (u64, u64)) {
        if let Some(portal) = self.portals.get_mut(name) {
            portal.state = PortalState::Suspended(running, number);
            portal.place.advance(rows, rows);
        }
        self.is_script = true;
    }
}

/// Returns whether a statement gives rows, be they of no column.
fn gives_rows(prepared: &Prepared) -> bool {
    let command_gives_rows = |raw: &syntax::postgres::tree::RawStatement| super::command::gives_rows(&raw.statement);
    prepared.raw.as_ref().is_some_and(|raw| !prepared.fields.is_empty() || command_gives_rows(raw))
}

/// Returns the columns with the formats of Bind: none means text, one is that of all columns.
fn columns(prepared: &Prepared, formats: Formats<'_>) -> Result<ResultColumns> {
    let count = prepared.fields.len();
    // A statement without rows takes any formats, as drivers send those of an earlier statement.
    if gives_rows(prepared) && formats.len() > 1 && formats.len() != count {
        let message = format!("bind message has {} result formats but query has {count} columns", formats.len());
        return Err(PgError::new(state::PROTOCOL_VIOLATION, message));
    }
    if let Some(other) = formats.iter().find(|format| !matches!(format, 0 | 1)) {
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, format!("unsupported format code: {other}")));
    }
    Ok(match formats.len() {
        0 | 1 => prepared.columns(formats.of(0)),
        _ => ResultColumns::new(
            prepared.fields.iter().zip(formats.iter()).map(|(field, format)| Format::new(field, format)),
        ),
    })
}
