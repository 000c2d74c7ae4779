//! PREPARE, EXECUTE and DEALLOCATE: prepared statements of SQL. They share their names with those of the extended protocol.

use std::sync::Arc;

use syntax::postgres::tree::{
    ExecuteStmt, Expr, ExprKind, Location, PrepareStmt, RawStatement, ResTarget, Select, SelectBody, SelectStmt, Statement, TypeName,
};

use crate::bind::Plan;
use crate::error::{PgError, Result, state};
use crate::session::run::{Delivery, tag_of};
use crate::session::statement::has_plan;
use crate::session::{Outcome, Session};
use crate::types::registry;
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
        let types = types.iter().map(|ty| Ok(crate::bind::type_name(ty, text)?.0)).collect::<Result<Vec<_>>>()?;
        let _ = span;
        let own = RawStatement {
            statement: Statement::clone(statement),
            start: raw.start,
            end: raw.end,
            parameters: raw.parameters,
            height: raw.height,
        };
        let prepared = self.prepare(text, Some(own), &types)?;
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
        let ExecuteStmt { name, arguments } = execute;
        self.need_block();
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
        let values = self.arguments(arguments, &prepared.parameter_types, text)?;
        let Some(raw) = &prepared.raw else { return Ok(Outcome::Empty) };
        if !has_plan(&raw.statement) {
            return self.command_in_portal(raw, &prepared.text, delivery);
        }
        let tag = tag_of(&raw.statement);
        let delivery = match &delivery.portal {
            Some(_) => Delivery { tag, ..delivery },
            None => Delivery::text(&prepared.fields, tag),
        };
        let plan = self.plan_of(&prepared, &values)?;
        self.run(&plan, values, delivery, &mut |session| session.plan_of(&prepared, &[]))
    }

    /// Evaluates the arguments of EXECUTE as values of the parameters' types.
    fn arguments(&mut self, arguments: &[Expr], types: &[u32], text: &Arc<str>) -> Result<Vec<Value>> {
        if arguments.is_empty() {
            return Ok(Vec::new());
        }
        let targets = arguments.iter().zip(types);
        let targets = targets.map(|(expr, ty)| ResTarget { expr: cast(expr, *ty), alias: None });
        let select = Select {
            distinct: None,
            targets: targets.collect(),
            into: None,
            from: Vec::new(),
            selection: None,
            group_by: Vec::new(),
            group_distinct: false,
            having: None,
            windows: Vec::new(),
        };
        let span = arguments.first().map(|expr| expr.span).unwrap_or_default();
        let query = SelectStmt {
            with: None,
            body: SelectBody::Select(Box::new(select)),
            order_by: Vec::new(),
            limit: None,
            locking: Vec::new(),
            span,
        };
        let raw = RawStatement { statement: Statement::Select(Box::new(query)), start: 0, end: 0, parameters: 0, height: 0 };
        let bound = self.bind_raw(&raw, text, &[], &[])?;
        let Plan::Query { node, .. } = &bound.statement.plan else {
            return Err(PgError::new(state::INTERNAL_ERROR, "arguments without a query"));
        };
        self.need_transaction()?;
        let mut exec = query::exec::Exec::open(node, None, &mut self.ctx)?;
        let mut rows = Vec::new();
        exec.next(&mut self.ctx, &mut rows)?;
        rows.pop().ok_or_else(|| PgError::new(state::INTERNAL_ERROR, "arguments without a row"))
    }
}

/// Returns the expression as a value of a parameter's type.
fn cast(expr: &Expr, ty: u32) -> Expr {
    let Some(row) = registry::by_oid(ty).filter(|row| row.oid != crate::types::oid::UNKNOWN) else { return expr.clone() };
    let at = Location(expr.span.start as u32);
    let to = Box::new(TypeName::system(row.name, at));
    Expr { kind: ExprKind::Cast { operand: Box::new(expr.clone()), to, at }, span: expr.span }
}
