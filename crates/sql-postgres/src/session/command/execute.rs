//! PREPARE, EXECUTE and DEALLOCATE: prepared statements of SQL. They share their names with those of the extended protocol.

use std::sync::Arc;

use syntax::postgres::tree::{ExecuteStmt, Expr, PrepareStmt, RawStatement, Statement};

use crate::error::{PgError, Result, state};
use crate::session::run::{Delivery, tag_of};
use crate::session::statement::{Prepared, has_plan};
use crate::session::{Outcome, Session};
use crate::value::Value;

impl Session {
    pub(in crate::session) fn prepare_command(
        &mut self,
        prepare: &PrepareStmt,
        raw: &RawStatement,
        text: &Arc<str>,
    ) -> Result<()> {
        let PrepareStmt { name, types, statement, span } = prepare;
        if self.statements.contains_key(&name.value) {
            let message = format!("prepared statement \"{}\" already exists", name.value);
            return Err(PgError::new(state::DUPLICATE_PREPARED_STATEMENT, message));
        }
        let mut oids = Vec::with_capacity(types.len());
        for ty in types {
            let (oid, _) =
                self.with_environment(&[], |environment, ctx| crate::bind::bind_type_name(environment, ctx, text, ty))?;
            oids.push(oid);
        }
        let _ = span;
        let own = RawStatement {
            statement: Statement::clone(statement),
            start: raw.start,
            end: raw.end,
            parameters: raw.parameters,
            height: raw.height,
        };
        let prepared = self.prepare(text, Some(own), &oids)?;
        self.statements.insert(name.value.clone(), Arc::new(prepared));
        Ok(())
    }

    pub(in crate::session) fn deallocate(&mut self, name: Option<&str>) -> Result<&'static str> {
        match name {
            None => {
                self.statements.clear();
                Ok("DEALLOCATE ALL")
            }
            Some(name) => match self.statements.remove(name) {
                Some(_) => Ok("DEALLOCATE"),
                None => {
                    let message = format!("prepared statement \"{name}\" does not exist");
                    Err(PgError::new(state::INVALID_SQL_STATEMENT_NAME, message))
                }
            },
        }
    }

    pub(in crate::session) fn execute_prepared(
        &mut self,
        execute: &ExecuteStmt,
        text: &Arc<str>,
        delivery: Delivery,
    ) -> Result<Outcome> {
        self.need_block();
        // A restart does not evaluate the arguments again.
        let evaluated = self.evaluated.take();
        let (prepared, values) = match evaluated {
            Some(values) => (self.prepared_for_execute(execute)?, values),
            None => self.prepared_with_values(execute, text)?,
        };
        let Some(raw) = &prepared.raw else { return Ok(Outcome::Empty) };
        if !has_plan(&raw.statement) {
            self.core.locks.suspend(false);
            let types = prepared.parameter_types.clone();
            return self.command_in_portal(raw, &prepared.text, delivery, (&types, values));
        }
        let tag = tag_of(&raw.statement);
        let delivery = match &delivery.portal {
            Some(_) => Delivery { tag, ..delivery },
            None => Delivery::new(prepared.columns(0), tag),
        };
        let plan = self.plan_of(&prepared, &values)?;
        let ran = self.run(&plan, values, delivery, &mut |session| session.plan_of(&prepared, &[]));
        if ran.as_ref().is_err_and(PgError::is_suspension) {
            self.evaluated = Some(std::mem::take(&mut self.ctx.parameters));
        }
        ran
    }

    /// Returns the statement that EXECUTE names, and the values of its parameters.
    pub(in crate::session) fn prepared_with_values(
        &mut self,
        execute: &ExecuteStmt,
        text: &Arc<str>,
    ) -> Result<(Arc<Prepared>, Vec<Value>)> {
        let prepared = self.prepared_for_execute(execute)?;
        let values = self.arguments(&execute.arguments, &prepared.parameter_types, text)?;
        Ok((prepared, values))
    }

    fn prepared_for_execute(&self, execute: &ExecuteStmt) -> Result<Arc<Prepared>> {
        let ExecuteStmt { name, arguments } = execute;
        let prepared = self.statements.get(&name.value).cloned().ok_or_else(|| {
            let message = format!("prepared statement \"{}\" does not exist", name.value);
            PgError::new(state::INVALID_SQL_STATEMENT_NAME, message)
        })?;
        let (expected, given) = (prepared.parameter_types.len(), arguments.len());
        if expected != given {
            let message = format!("wrong number of parameters for prepared statement \"{}\"", name.value);
            let detail = format!("Expected {expected} parameters but got {given}.");
            return Err(PgError::new(state::SYNTAX_ERROR, message).detail(detail));
        }
        Ok(prepared)
    }

    /// Evaluates the arguments of EXECUTE as values of the parameters' types.
    fn arguments(&mut self, arguments: &[Expr], types: &[u32], text: &Arc<str>) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(types) {
            let bound = self.with_environment(&[], |environment, ctx| {
                crate::bind::bind_constant(environment, ctx, text, argument, *ty)
            })?;
            values.push(bound.eval(&[], &mut self.ctx)?);
        }
        Ok(values)
    }
}
