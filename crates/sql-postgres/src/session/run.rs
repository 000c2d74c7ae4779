//! A statement from plan to outcome.
//!
//! The plan's metadata locks come first, then the transaction and a savepoint for the statement, then the plan. A plan that is stale once its locks are held is bound again. The first rows are produced before the outcome is returned, since most errors occur there.

use std::convert::Infallible;
use std::sync::Arc;

use query::exec::change::{self as changes, Changed};
use query::exec::spill::rows::Rows;
use query::exec::{Exec, effects, gather};
use query::session::statement::Several;
use syntax::postgres::tree::{RawStatement, Statement};

use crate::batch::Batch;
use crate::bind::{self, BoundStatement, Plan};
use crate::define::materialized::{check_changeable, check_populated};
use crate::error::{PgError, Result, state};
use crate::session::constraints::check_behind_statement;
use crate::session::result_set::{Format, ResultColumns, Running};
use crate::session::{Outcome, ResultSet, Session};
use crate::types::registry;
use crate::value::Value;

/// Binds a statement again.
pub(crate) type Again<'a> = &'a mut dyn FnMut(&mut Session) -> Result<Arc<BoundStatement>>;

/// The word of a statement's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagKind {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
    Fetch,
    /// Of a command that gives rows, such as SHOW: without a number.
    Word(&'static str),
}

impl TagKind {
    pub fn tag(self, rows: u64) -> String {
        let word = match self {
            TagKind::Select => "SELECT ",
            TagKind::Insert => "INSERT 0 ",
            TagKind::Update => "UPDATE ",
            TagKind::Delete => "DELETE ",
            TagKind::Merge => "MERGE ",
            TagKind::Fetch => "FETCH ",
            TagKind::Word(word) => return word.to_owned(),
        };
        let mut tag = String::with_capacity(32);
        tag.push_str(word);
        // Nearly all statements find one row or none.
        match rows {
            0..10 => tag.push(char::from(b'0' + rows as u8)),
            rows => tag.push_str(&rows.to_string()),
        }
        tag
    }
}

pub(super) fn tag_of(statement: &Statement) -> TagKind {
    match statement {
        Statement::Insert(_) => TagKind::Insert,
        Statement::Update(_) => TagKind::Update,
        Statement::Delete(_) => TagKind::Delete,
        Statement::Merge(_) => TagKind::Merge,
        _ => TagKind::Select,
    }
}

/// How a result goes to the client: its columns with their formats, and where it stops.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub columns: ResultColumns,
    pub tag: TagKind,
    /// The portal whose rows they are.
    pub portal: Option<String>,
    /// The most rows of one Execute; 0 without a limit.
    pub rows_max: u64,
}

impl Delivery {
    /// Returns a delivery of all rows as text.
    pub fn text(fields: &[bind::ResultColumn], tag: TagKind) -> Delivery {
        Delivery::new(ResultColumns::new(fields.iter().map(|field| Format::new(field, 0))), tag)
    }

    /// Returns a delivery of all rows in given forms.
    pub fn new(columns: ResultColumns, tag: TagKind) -> Delivery {
        Delivery { columns, tag, portal: None, rows_max: 0 }
    }
}

/// The error for `$1` in a text that comes without values.
pub(crate) fn no_parameter(text: &str, raw: &RawStatement) -> PgError {
    let at = text[raw.start..].find("$1").map_or(raw.start, |at| raw.start + at);
    PgError::new(state::UNDEFINED_PARAMETER, "there is no parameter $1").at(text, at)
}

impl Session {
    /// Runs a plan in the transaction.
    pub(super) fn run(
        &mut self,
        statement: &Arc<BoundStatement>,
        parameters: Vec<Value>,
        delivery: Delivery,
        again: Again<'_>,
    ) -> Result<Outcome> {
        let statement = self.begin_run(statement, parameters, delivery.tag, again)?;
        self.perform(&statement, delivery)
    }

    /// Does all of `run` that is before the plan. Returns the plan, bound again if it was stale.
    pub(super) fn begin_run(
        &mut self,
        statement: &Arc<BoundStatement>,
        parameters: Vec<Value>,
        tag: TagKind,
        again: Again<'_>,
    ) -> Result<Arc<BoundStatement>> {
        check_changeable(&statement.written)?;
        if statement.plan.changes_rows() && statement.written.iter().any(|table| !table.temporary) {
            self.check_writable(command_word(tag))?;
        }
        let statement = self.start(statement, parameters, again)?;
        self.suspension.prepare(&statement);
        Ok(statement)
    }

    /// Takes what a plan needs: metadata locks, the transaction, a savepoint for the statement. Returns the plan, bound again if it was stale.
    pub(crate) fn start(
        &mut self,
        statement: &Arc<BoundStatement>,
        parameters: Vec<Value>,
        again: Again<'_>,
    ) -> Result<Arc<BoundStatement>> {
        let mut statement = statement.clone();
        // A suspended Execute finds its values here.
        self.ctx.parameters = parameters;
        let mut tries = 0;
        while !self.lock_for(&statement)? {
            tries += 1;
            if tries == 100 {
                return Err(PgError::new(state::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"));
            }
            self.refresh();
            statement = again(self)?;
        }
        check_populated(&statement.bindings.tables)?;
        let writes = statement.plan.changes_rows();
        self.core.locks.suspend(false);
        self.need_transaction()?;
        self.transaction.has_queried = true;
        self.transaction.has_changed |= writes;
        self.host().txn()?.begin_statement();
        self.core.transaction.statement_start = Some(self.host().txn()?.savepoint());
        self.ctx.changes_rows = writes;
        self.handle.begin_plan(!writes);
        Ok(statement)
    }

    /// Runs the plan, and suspends the statement if the plan has to wait and may.
    pub(super) fn perform(&mut self, statement: &Arc<BoundStatement>, delivery: Delivery) -> Result<Outcome> {
        if !self.suspension.is_possible() {
            let ran = self.run_plan(statement, delivery);
            return self.settle(statement, ran);
        }
        self.suspension.begin_run(&mut self.ctx)?;
        let ran = self.run_plan(statement, delivery.clone());
        self.suspension.end_run(&mut self.ctx);
        if let Err(datum::Fault::Suspended) = ran {
            self.suspension.suspend(statement, &mut self.ctx);
            self.suspended_for = Some(delivery);
            return Ok(Outcome::Suspended);
        }
        self.suspension.end(&self.handle, &self.core.locks, &mut self.ctx);
        self.settle(statement, ran)
    }

    /// Ends the statement, unless its rows are still being produced.
    fn settle(&mut self, statement: &Arc<BoundStatement>, ran: datum::Result<Ran>) -> Result<Outcome> {
        match ran.map_err(|fault| self.error_of(fault, &statement.written))? {
            Ran::Done(tag) => {
                self.end_counted()?;
                Ok(Outcome::Done { tag })
            }
            Ran::Rows(mut result) => {
                self.suspension.is_allowed = false;
                if result.is_complete() && result.delivery().portal.is_none() {
                    self.end_statement()?;
                    result.is_ended = true;
                } else {
                    self.is_open = true;
                    self.core.note_reads(query::exec::host::host(&mut self.ctx));
                }
                Ok(Outcome::Rows(result))
            }
        }
    }

    fn run_plan(&mut self, statement: &Arc<BoundStatement>, delivery: Delivery) -> datum::Result<Ran> {
        match self.open_plan(statement)? {
            (Some(exec), affected) => self.first_rows(exec, delivery, affected),
            (None, affected) => Ok(Ran::Done(delivery.tag.tag(affected.unwrap_or(0)))),
        }
    }

    /// Runs a plan up to its rows, if it gives any. Also returns the number of rows that it has changed, unless it is a query.
    pub(super) fn open_plan(&mut self, statement: &BoundStatement) -> datum::Result<(Option<Exec>, Option<u64>)> {
        let plan = &statement.plan;
        let mut changed = match plan {
            Plan::Query { node, .. } => return Ok((Some(Exec::open(node, None, &mut self.ctx)?), None)),
            Plan::Several(several) => {
                self.host().written.clone_from(&statement.written);
                effects::begin(&mut self.ctx)?;
                let ran = self.several(several);
                effects::end(&mut self.ctx);
                match ran? {
                    (rows, None) => {
                        check_behind_statement(&statement.written, &mut self.ctx)?;
                        return Ok((Some(Exec::of_rows(Arc::new(rows))), None));
                    }
                    (returned, Some(affected)) => Changed { returned, affected, ..Changed::default() },
                }
            }
            plan => self.change(plan)?,
        };
        check_behind_statement(&statement.written, &mut self.ctx)?;
        let exec = plan.returning().map(|_| Exec::of_rows(Arc::new(std::mem::take(&mut changed.returned))));
        Ok((exec, Some(changed.affected)))
    }

    fn change(&mut self, plan: &Plan) -> datum::Result<Changed> {
        match plan {
            Plan::Insert(insert) => {
                let tally = changes::insert(insert, changes::Tally::default(), &mut self.ctx)?;
                changes::inserted(insert, tally, &mut self.ctx)
            }
            Plan::Update(update) => changes::update(update, &mut self.ctx),
            Plan::Delete(delete) => changes::delete(delete, &mut self.ctx),
            Plan::Merge(merge) => query::exec::merge::merge(merge, &mut self.ctx),
            Plan::Evaluate(list) => {
                for expr in list {
                    expr.eval(&[], &mut self.ctx)?;
                }
                Ok(Changed::default())
            }
            Plan::Load(load) => match load.source {},
            Plan::Query { .. } | Plan::Several(_) => Err(datum::Fault::corrupt("a change within a change")),
        }
    }

    /// Runs the parts of WITH that change rows, and the statement itself. Returns its rows; and their number, if it changes some.
    fn several(&mut self, several: &Several<Infallible>) -> datum::Result<(Rows, Option<u64>)> {
        let mut result = (Rows::default(), None);
        for place in &several.order {
            let Some(part) = place.map(|at| &several.parts[at]) else {
                effects::begin_part(several.reads_changes, &mut self.ctx);
                result = match &several.main {
                    Plan::Query { node, .. } => (effects::before(&mut self.ctx, |ctx| gather(node, ctx))?, None),
                    plan => self.change(plan).map(|changed| (changed.returned, Some(changed.affected)))?,
                };
                continue;
            };
            effects::begin_part(part.reads_changes, &mut self.ctx);
            let changed = self.change(&part.plan)?;
            effects::give(part.id, changed.returned, &mut self.ctx);
        }
        Ok(result)
    }

    /// Produces the first rows.
    fn first_rows(&mut self, mut exec: Exec, delivery: Delivery, affected: Option<u64>) -> datum::Result<Ran> {
        const FEW: usize = 64;
        let mut ready = Batch::new();
        let mut is_over = false;
        while !is_over && ready.len() < FEW && !ready.is_long() {
            is_over = !exec.fill(&mut self.ctx, &mut ready)? || exec.is_of_no_table();
        }
        let exec = (!is_over).then(|| Box::new(exec));
        let running = Running { ready, exec, affected, ..Running::default() };
        Ok(Ran::Rows(ResultSet::new(running, delivery, self.number)))
    }
}

enum Ran {
    Done(String),
    Rows(Box<ResultSet>),
}

pub(super) fn command_word(tag: TagKind) -> &'static str {
    match tag {
        TagKind::Insert => "INSERT",
        TagKind::Update => "UPDATE",
        TagKind::Delete => "DELETE",
        TagKind::Merge => "MERGE",
        TagKind::Select | TagKind::Fetch | TagKind::Word(_) => "SELECT",
    }
}

/// Returns the type that a column's values have in the wire's forms.
pub(super) fn column_type(field: &bind::ResultColumn) -> query::types::Type {
    let (oid, typmod) = field.base.unwrap_or((field.type_oid, field.type_modifier));
    registry::column_type(oid, typmod, true)
}
