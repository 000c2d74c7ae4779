//! SET CONSTRAINTS, and the checks of deferred constraints.

use std::sync::Arc;

use datum::Fault;
use engine::rows::ReadMode;
use query::catalog::object_id::ObjectId;
use query::catalog::table::Table;
use query::exec::deferred::{CheckTime, concerns, tables};
use query::exec::foreign::check_waiting;
use query::exec::host::host;
use query::nodes::context::EvalContext;
use syntax::postgres::tree::{ConstraintsSetStmt, RangeVar};

use crate::define::names::missing_schema;
use crate::define::object_name::has_constraint;
use crate::error::fault::render_in;
use crate::error::{PgError, Result, state};
use crate::session::Session;

/// Checks what constraints have left and is due.
pub(super) fn check_due(time: CheckTime, ctx: &mut EvalContext) -> Result<()> {
    if !host(ctx).deferring.has_checks() {
        return Ok(());
    }
    let tables = tables(ctx);
    check_waiting(time, ctx).map_err(|fault| render_in(fault, &tables, ctx))
}

/// Checks what is due behind a statement that changes rows of `written`. Faults that its error names in full with these tables stay faults, since an error within one
/// loses the names of what it is about.
pub(super) fn check_behind_statement(written: &[Arc<Table>], ctx: &mut EvalContext) -> datum::Result<()> {
    if !host(ctx).deferring.has_checks() {
        return Ok(());
    }
    // The statement has been run: a check that waits must not suspend it, which would run it again.
    let txn = host(ctx).txn()?;
    txn.set_read_mode(ReadMode::MayRead);
    txn.suspend_for_rows(false);
    let tables = tables(ctx);
    check_waiting(CheckTime::Statement, ctx).map_err(|fault| match &fault {
        Fault::ParentMissing(_) | Fault::ParentReferenced(_) => fault,
        Fault::DuplicateKey(key) if written.iter().any(|table| *table.name == *key.table) => fault,
        _ => render_in(fault, &tables, ctx).into(),
    })
}

impl Session {
    pub(super) fn set_constraints(&mut self, set: &ConstraintsSetStmt) -> Result<()> {
        if !self.is_in_block() {
            let message = "SET CONSTRAINTS can only be used in transaction blocks";
            self.warn(state::NO_ACTIVE_SQL_TRANSACTION, message);
            return Ok(());
        }
        let ConstraintsSetStmt { constraints, deferred } = set;
        let mut keys = Vec::new();
        for name in constraints {
            keys.extend(self.deferrable(name)?);
        }
        let modes = &mut self.host().deferring.modes;
        if constraints.is_empty() {
            modes.set_all(*deferred);
        }
        keys.into_iter().for_each(|key| modes.set(key, *deferred));
        if *deferred { Ok(()) } else { self.check_constraints(CheckTime::Set) }
    }

    /// Returns the deferrable constraints of a name, in the first schema that has any.
    fn deferrable(&mut self, name: &RangeVar) -> Result<Vec<ObjectId>> {
        self.refresh();
        let path = match &name.schema {
            Some(schema) => vec![schema.clone()],
            None => self.search_path(),
        };
        for schema in &path {
            let stored = self.stored_schema(schema)?;
            let Some(found) = self.catalog.schemas.get(&stored) else {
                if name.schema.is_some() {
                    return Err(missing_schema(schema));
                }
                continue;
            };
            let of_table = |table: &Table| {
                let keys = table.foreign_keys.iter().filter(|key| key.name == name.name);
                let unique = table.indexes.iter().filter(|index| index.is_constraint && index.name == name.name);
                let unique = unique.map(|index| (index.id, index.deferral));
                keys.map(|key| (key.id, key.deferral)).chain(unique).collect::<Vec<_>>()
            };
            let keys: Vec<_> = found.tables.values().flat_map(|table| of_table(table)).collect();
            let is_other = found.tables.values().any(|table| has_constraint(table, &name.name));
            if keys.is_empty() && !is_other {
                continue;
            }
            let is_deferrable = |deferral| deferral != query::catalog::foreign_key::Deferral::Never;
            if keys.is_empty() || keys.iter().any(|(_, deferral)| !is_deferrable(*deferral)) {
                let message = format!("constraint \"{}\" is not deferrable", name.name);
                return Err(PgError::new(state::WRONG_OBJECT_TYPE, message));
            }
            return Ok(keys.into_iter().map(|(id, _)| id).collect());
        }
        let shown = name.dotted();
        Err(PgError::new(state::UNDEFINED_OBJECT, format!("constraint \"{shown}\" does not exist")))
    }

    /// Checks what deferred constraints have left and is due.
    pub(super) fn check_constraints(&mut self, time: CheckTime) -> Result<()> {
        if self.transaction.is_aborted || self.host().txn.is_none() {
            return Ok(());
        }
        check_due(time, &mut self.ctx)
    }

    /// Fails for a table whose rows deferred constraints have yet to check. `what` begins the message.
    pub(crate) fn refuse_waiting(&mut self, table: &Table, what: &str) -> Result<()> {
        match concerns(table.id, &mut self.ctx) {
            false => Ok(()),
            true => {
                let message = format!("cannot {what} \"{}\" because it has pending trigger events", table.name);
                Err(PgError::new(state::OBJECT_IN_USE, message))
            }
        }
    }
}
