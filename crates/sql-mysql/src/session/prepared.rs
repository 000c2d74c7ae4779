//! Prepared statements: a syntax tree and its most recent plans.
//!
//! Sessions with the same plan-cache context (`session/plans`) share both, so a text that another session prepared is
//! found in the cache. A session keeps a handle and may take it into another context, so each plan records its context.

use std::sync::Arc;

use stdx::sync::Mutex;

use crate::bind::hints::max_execution_ms;
use crate::error::{self, Result};
use crate::instance::count::Count;
use crate::instance::handle::ProcessListRow;
use crate::instance::prepared::{Described, Preparation, Prepared, PreparedHandle, Run, type_of};
use crate::instance::statement::BoundStatement;
use crate::parse::statement::{Statement, StatementKind};
use crate::parse::{self, Parsed};
use crate::scalar::state::StateOf as _;
use crate::session::suspension::Restart;
use crate::session::{Outcome, Session};
use crate::types::{Column, Type};
use crate::value::Value;

/// The memory of a prepared statement, roughly: a base, and a multiple of its text.
const PREPARED_BYTES: usize = 8 << 10;
const PREPARED_SHARE: usize = 8;

impl Session {
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        let begun = self.begin_statement(sql);
        self.handle.counts.add(Count::StmtPrepare);
        self.ctx.warnings.clear();
        let prepared = begun.and_then(|()| self.prepare_text(sql));
        self.handle.show(ProcessListRow::end);
        prepared.map_err(|error| self.fail(error))
    }

    /// Returns the cached prepared statement for this text, if valid here. For clients that run parameterised texts and
    /// keep no handles.
    pub fn prepared(&mut self, sql: &str) -> Option<Prepared> {
        if self.follow_accounts().is_err() || self.serializes() {
            return None;
        }
        let context = self.context_id();
        let known = self.db.plans.statement(context, sql)?;
        self.is_plan_current(&known.by).then(|| known.prepared.clone())
    }

    pub(super) fn prepare_text(&mut self, sql: &str) -> Result<Prepared> {
        if let Some(known) = self.prepared(sql) {
            return Ok(known);
        }
        // The text is kept, and its tree takes several times as much.
        let _claim = stdx::memory::claim(PREPARED_BYTES + PREPARED_SHARE * sql.len())?;
        let parsed = parse::parse_unless(sql, self.ctx.sql_mode(), &*self.core.cancel)?;
        let (prepared, by) = self.prepare_parsed(sql, parsed)?;
        if let Some(by) = by.filter(|compiled| !compiled.is_volatile) {
            let described = Arc::new(Described { prepared: prepared.clone(), by: Arc::new(by) });
            let context = self.context_id();
            self.db.plans.keep_statement(context, sql, described);
        }
        Ok(prepared)
    }

    /// Prepares a parsed statement, which the process list shows as `sql`. Also returns its plan, if it has one.
    pub(super) fn prepare_parsed(&mut self, sql: &str, parsed: Parsed) -> Result<(Prepared, Option<BoundStatement>)> {
        let unknown = vec![Type::null(); parsed.parameters];
        let mut columns = Vec::new().into();
        let mut compiled = None;
        match &parsed.statement {
            statement if statement.has_plan() => {
                let made = self.compile(&parsed.statement, (&unknown, &[]))?;
                columns = made.plan.columns().cloned().unwrap_or_default();
                compiled = Some(made);
            }
            Statement::Prepare { .. }
            | Statement::Execute { .. }
            | Statement::Deallocate(_)
            | Statement::Load(_)
            | Statement::LockTables(_) => {
                return Err(error::UNSUPPORTED_PS.bare());
            }
            Statement::Show(_) | Statement::Describe { .. } | Statement::Explain { .. } => {
                columns = self.columns_of(&parsed.statement)?.into();
            }
            _ => {}
        }
        let preparation = Preparation {
            text: sql.into(),
            time_limit: time_limit(&parsed.statement),
            statement: parsed.statement,
            parameters: parsed.parameters,
            runs: Mutex::default(),
        };
        let parameters = unknown.into_iter().map(|ty| Column::computed("?", ty)).collect();
        Ok((Prepared { parameters, columns, handle: PreparedHandle(Arc::new(preparation)) }, compiled))
    }

    pub fn execute_prepared(&mut self, handle: &PreparedHandle, parameters: Vec<Value>) -> Result<Outcome> {
        self.handle.counts.add(Count::StmtExecute);
        self.look_for_unsafe(&handle.0.text);
        self.may_restart(&handle.0.text);
        let begun = self.begin_statement(&handle.0.text);
        let outcome = begun.and_then(|()| self.execute_preparation(&handle.0, parameters));
        self.ran(outcome, |session| Restart::Prepared(handle.clone(), std::mem::take(&mut session.ctx.parameters)))
    }

    pub(super) fn execute_preparation(
        &mut self,
        prepared: &Arc<Preparation>,
        parameters: Vec<Value>,
    ) -> Result<Outcome> {
        if parameters.len() != prepared.parameters {
            return Err(error::WRONG_ARGUMENTS.with(&[&"mysqld_stmt_execute"]));
        }
        if !prepared.statement.has_plan() {
            return self.run_statement(&prepared.statement, &prepared.text, parameters);
        }
        self.ctx.warnings.clear();
        self.ctx.state_mut().values_apart = true;
        self.check_password_age(&prepared.statement)?;
        self.obey_limit(prepared.time_limit);
        let (context, collation) = (self.context_id(), self.settings.collation);
        let types =
            |parameters: &[Value]| -> Vec<Type> { parameters.iter().map(|value| type_of(value, collation)).collect() };
        let known = prepared.known(context, &parameters, collation);
        let compiled = match known.filter(|compiled| self.is_plan_current(compiled)) {
            Some(compiled) => compiled,
            None => {
                let types = types(&parameters);
                let compiled = Arc::new(self.compile(&prepared.statement, (&types, &parameters))?);
                if !compiled.is_volatile && !compiled.is_heavy {
                    prepared.keep(Run { types, context, compiled: compiled.clone() });
                }
                compiled
            }
        };
        self.run(&compiled, parameters, &mut |session| {
            let types = types(&session.ctx.parameters);
            session.compile(&prepared.statement, (&types, &[])).ok().map(Arc::new)
        })
    }
}

pub(super) fn time_limit(statement: &Statement) -> Option<u64> {
    match statement {
        Statement::Query(query) => max_execution_ms(query),
        _ => None,
    }
}
