//! DECLARE, FETCH, MOVE and CLOSE.
//!
//! DECLARE opens the plan with the snapshot of its statement and produces no row. FETCH takes rows from it; what it does to the position is `portal`'s.

use std::sync::Arc;

use query::exec::Exec;
use query::exec::host::host;
use query::exec::spill::rows::Rows;
use query::nodes::node::{JoinKind, Node};
use syntax::postgres::tree::{DeclareCursorStmt, FetchDirection, FetchStmt, Ident, RawStatement, Statement};

use crate::bind::{self, Bound, CursorTables, Plan, ResultColumn};
use crate::error::{PgError, Result, state};
use crate::session::portal::{ALL, Portal, PortalOptions, PortalState};
use crate::session::result_set::Running;
use crate::session::run::{Delivery, TagKind, tag_of};
use crate::session::statement::{Prepared, has_plan};
use crate::session::transact::Block;
use crate::session::{Outcome, ResultSet, Session};
use crate::types::oid::Oid;
use crate::value::Value;

/// Returns whether a text's first statement leaves the executor to a cursor: it reads one, closes one, or ends the transaction.
pub(super) fn leaves_cursors(text: &str) -> bool {
    const WORDS: [&str; 7] = ["fetch", "move", "close", "commit", "rollback", "end", "abort"];
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    WORDS.iter().any(|word| text[..end].eq_ignore_ascii_case(word))
}

/// The same of a statement that is not the first.
pub(super) fn leaves_cursor(statement: &Statement) -> bool {
    matches!(statement, Statement::Fetch(_) | Statement::ClosePortal(_))
}

fn check_name(name: &Ident) -> Result<()> {
    match name.value.is_empty() {
        false => Ok(()),
        true => Err(PgError::new(state::INVALID_CURSOR_NAME, "invalid cursor name: must not be empty")),
    }
}

impl Session {
    /// Binds the query of a cursor.
    pub(super) fn bind_cursor(
        &mut self,
        declare: &DeclareCursorStmt,
        text: &str,
        types: &[Oid],
    ) -> Result<(Bound, CursorTables)> {
        let types = types.to_vec();
        let bound =
            self.with_environment(&[], |environment, ctx| bind::bind_cursor(environment, ctx, text, declare, types))?;
        let DeclareCursorStmt { name: _, binary: _, scroll, insensitive, hold, query } = declare;
        if let Some(locking) = query.locking.first() {
            let word = bind::strength_word(locking.strength);
            let refused = |state, form: &str, rest: &str, kind: &str| {
                let text = format!("DECLARE {form} ... {word} is not {rest}");
                Err(PgError::new(state, text).detail(format!("{kind} cursors must be READ ONLY.")))
            };
            let unsupported = state::FEATURE_NOT_SUPPORTED;
            if *hold {
                return refused(unsupported, "CURSOR WITH HOLD", "supported", "Holdable");
            }
            if *scroll == Some(true) {
                return refused(unsupported, "SCROLL CURSOR", "supported", "Scrollable");
            }
            if *insensitive == Some(true) {
                let state = state::INVALID_CURSOR_DEFINITION;
                return refused(state, "INSENSITIVE CURSOR", "valid", "Insensitive");
            }
        }
        Ok(bound)
    }

    /// DECLARE. The transaction of one statement would end the cursor at once, unless it is WITH HOLD.
    pub(super) fn declare(
        &mut self,
        declare: &DeclareCursorStmt,
        raw: &RawStatement,
        text: &Arc<str>,
        (types, values): (&[Oid], Vec<Value>),
    ) -> Result<()> {
        let (mut bound, tables) = self.bind_cursor(declare, text, types)?;
        if let Some(denied) = bound.denied.take() {
            return Err(denied);
        }
        let parameters = bound.parameter_types.len();
        if parameters > values.len() {
            return Err(super::run::no_parameter(text, raw));
        }
        let name = &declare.name;
        check_name(name)?;
        if !declare.hold && self.transaction.block == Block::Implicit && self.is_alone() {
            self.require_block("DECLARE CURSOR")?;
        }
        if self.portals.contains_key(&name.value) {
            let message = format!("cursor \"{}\" already exists", name.value);
            return Err(PgError::new(state::DUPLICATE_CURSOR, message));
        }
        let mut again =
            |session: &mut Session| session.bind_cursor(declare, text, types).and_then(|(bound, _)| bound.permitted());
        self.suspension.is_allowed = false;
        let statement = self.start(&bound.statement, values, &mut again)?;
        let Plan::Query { node, .. } = &statement.plan else {
            return Err(PgError::unsupported("DECLARE CURSOR for this statement"));
        };
        let exec = Exec::open(node, None, &mut self.ctx).map_err(|fault| self.error_of(fault, &[]))?;
        let scrolls = declare.query.locking.is_empty() && scans_backward(node);
        let options = PortalOptions {
            is_declared: true,
            is_binary: declare.binary,
            is_scrollable: declare.scroll.unwrap_or(scrolls),
            is_holdable: declare.hold,
        };
        let query = RawStatement { statement: Statement::Select(Box::new(declare.query.clone())), ..raw.clone() };
        let prepared = Prepared::of_cursor(text, query, bound.fields);
        let columns = prepared.columns(declare.binary.into());
        let mut portal = Portal::new(Arc::new(prepared), Vec::new(), columns, options);
        portal.tables = tables;
        let running = Running { exec: Some(Box::new(exec)), ..Running::default() };
        portal.state = PortalState::Suspended(running, self.number);
        self.add_portal(&name.value, portal);
        self.is_open = true;
        Ok(())
    }

    /// Returns the columns of FETCH; none if there is no cursor of the name.
    pub(super) fn fields_of_fetch(&self, fetch: &FetchStmt) -> Vec<ResultColumn> {
        match self.portals.get(&fetch.cursor.value) {
            Some(portal) if !fetch.is_move => portal.prepared.fields.to_vec(),
            _ => Vec::new(),
        }
    }

    /// FETCH and MOVE.
    pub(super) fn fetch(&mut self, fetch: &FetchStmt, delivery: Delivery) -> Result<Outcome> {
        check_name(&fetch.cursor)?;
        let mut rows = Rows::default();
        let (moved, own, is_binary) = self.in_portal(&fetch.cursor.value, |session, portal| {
            session.enter_portal(portal)?;
            let mut out = (!fetch.is_move).then_some(&mut rows);
            let moved = portal.go(fetch, &mut out, session)?;
            Ok((moved, portal.columns.clone(), portal.options.is_binary))
        })?;
        if fetch.is_move {
            self.end_cursor_statement()?;
            return Ok(Outcome::done(format!("MOVE {moved}")));
        }
        let columns = match &delivery.portal {
            Some(_) if delivery.columns.formats().len() != own.formats().len() => {
                let message = "cached plan must not change result type";
                return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            Some(_) => delivery.columns,
            None => own.in_format(is_binary.into()),
        };
        let delivery = Delivery { columns, tag: TagKind::Fetch, ..delivery };
        self.give_rows(rows, delivery)
    }

    /// Executes a portal that DECLARE has made, by a message of the extended protocol.
    pub(super) fn execute_cursor(&mut self, name: &str, max_rows: u64) -> Result<Outcome> {
        let mut rows = Rows::default();
        let wanted = if max_rows == 0 { ALL } else { max_rows };
        let columns = self.in_portal(name, |session, portal| {
            session.enter_portal(portal)?;
            portal.forward(wanted, &mut Some(&mut rows), &mut session.ctx)?;
            Ok(portal.columns.clone())
        })?;
        self.give_rows(rows, Delivery { columns, tag: TagKind::Select, portal: None, rows_max: max_rows })
    }

    fn give_rows(&mut self, rows: Rows, delivery: Delivery) -> Result<Outcome> {
        self.end_cursor_statement()?;
        let mut result = ResultSet::new(Running::of_rows(rows), delivery, self.number);
        result.is_ended = true;
        Ok(Outcome::Rows(result))
    }

    /// Prepares to read a portal. If another statement has the executor, the rest of that one's rows is gathered. A portal that has not begun begins.
    fn enter_portal(&mut self, portal: &mut Portal) -> Result<()> {
        if self.is_open && portal.is_running(self.number) {
            return Ok(());
        }
        self.renew_executor()?;
        if !matches!(portal.state, PortalState::New) {
            return Ok(());
        }
        let prepared = portal.prepared.clone();
        let Some(raw) = prepared.raw.as_ref().filter(|raw| has_plan(&raw.statement) && !prepared.fields.is_empty())
        else {
            return Err(PgError::unsupported("FETCH from a portal of this statement"));
        };
        let values = std::mem::take(&mut portal.values);
        let plan = self.plan_of(&prepared, &values)?;
        self.suspension.is_allowed = false;
        // Of a portal, so that the statement goes on when all its rows are there.
        let (columns, tag) = (portal.columns.clone(), tag_of(&raw.statement));
        let delivery = Delivery { columns, tag, portal: Some(String::new()), rows_max: 1 };
        let begun = self.run(&plan, values, delivery, &mut |session| session.plan_of(&prepared, &[]));
        if begun.as_ref().is_err_and(PgError::is_suspension) {
            // It begins when the statement is run again.
            portal.values = std::mem::take(&mut self.ctx.parameters);
        }
        let Outcome::Rows(result) = begun? else {
            return Err(PgError::unsupported("FETCH from a portal of this statement"));
        };
        portal.state = PortalState::Suspended(result.into_running(), self.number);
        Ok(())
    }

    /// Ends a statement that has read a cursor, which may go on producing rows.
    pub(super) fn end_cursor_statement(&mut self) -> Result<()> {
        if !self.is_open {
            return self.end_statement();
        }
        self.take_warnings();
        self.follow_settings();
        if self.transaction.block == Block::Implicit && self.transaction.is_last {
            return self.commit_transaction();
        }
        self.core.note_reads(host(&mut self.ctx));
        Ok(())
    }

    /// CLOSE. The portal that runs it stays.
    pub(super) fn close_cursor(&mut self, name: Option<&Ident>, own: Option<&str>) -> Result<&'static str> {
        let Some(name) = name else {
            self.retain_portals(|name, _| own == Some(name));
            self.is_open = false;
            return Ok("CLOSE CURSOR ALL");
        };
        check_name(name)?;
        match self.remove_portal(&name.value) {
            Some(portal) => {
                self.is_open &= !portal.is_running(self.number);
                Ok("CLOSE CURSOR")
            }
            None => Err(PgError::new(state::INVALID_CURSOR_NAME, format!("cursor \"{}\" does not exist", name.value))),
        }
    }
}

impl Portal {
    /// Moves as FETCH or MOVE says, and gives the rows to `out`.
    fn go(&mut self, fetch: &FetchStmt, out: &mut Option<&mut Rows>, session: &mut Session) -> Result<u64> {
        let ctx = &mut session.ctx;
        let (count, is_negative) = match fetch.count {
            None => (ALL, false),
            Some(count) => (count.unsigned_abs(), count < 0),
        };
        match fetch.direction {
            FetchDirection::Forward => self.fetch(!is_negative, count, out, ctx),
            FetchDirection::Backward => self.fetch(is_negative, count, out, ctx),
            FetchDirection::Absolute => self.absolute(fetch.count.unwrap_or(0), out, ctx),
            FetchDirection::Relative => self.relative(fetch.count.unwrap_or(0), out, ctx),
        }
    }
}

/// Returns whether PostgreSQL's plan of this form could be read backward, so that a cursor scrolls without SCROLL.
fn scans_backward(node: &Arc<Node>) -> bool {
    match &**node {
        Node::Scan(_) | Node::Sort { .. } | Node::TableFunction(_) | Node::Common { .. } => true,
        Node::Rows { rows } => rows.len() > 1,
        Node::Project { input, .. }
        | Node::Strip { input, .. }
        | Node::Derived { input, .. }
        | Node::Filter { input, .. }
        | Node::Limit { input, .. } => scans_backward(input),
        Node::Union { inputs } => inputs.iter().all(scans_backward),
        Node::Loop { left, right, kind: JoinKind::Inner, .. } => {
            matches!(&**left, Node::One { .. }) && scans_backward(right)
        }
        _ => false,
    }
}
