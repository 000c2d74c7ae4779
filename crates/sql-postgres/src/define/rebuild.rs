//! Rows under a new definition: written anew, checked, and entered into new indexes.
//!
//! New indexes are filled by `query::exec::index_build`. The maps belong to the transaction of the change: loading needs no undo, since rolling it back drops them as a whole (`engine::rows::Transaction::load`).

use std::ops::Bound::Unbounded;
use std::sync::Arc;

use datum::row::Layout;
use datum::{Fault, Result as CoreResult};
use engine::rows::{Inserted, RowBatch, Transaction};
use query::catalog::Writing;
use query::catalog::decode::decode;
use query::catalog::table::{Default, Part, Table};
use query::exec::generated;
use query::exec::host::host;
use query::exec::index_build;
use query::exec::row_change::encode_row;
use query::key;
use query::key_form::KeyForm;
use query::nodes::assignment::Place;
use query::nodes::context::EvalContext;
use query::nodes::expr::Expr;

use crate::bind::{self, TableExpression};
use crate::define::alter::{Draft, From};
use crate::define::domain::NewDomainCheck;
use crate::error::fault::render;
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::types::assignment::ASSIGNMENT;
use crate::types::{registry, user};
use crate::value::Value;

impl Session {
    /// Writes all rows anew into new maps.
    pub(super) fn rebuild(&mut self, draft: &mut Draft, writing: &mut Writing<'_>) -> Result<()> {
        let Draft { old, new, from, .. } = draft;
        for (slot, column) in new.columns.iter_mut().enumerate() {
            column.slot = slot;
        }
        new.slots = new.columns.iter().map(|column| column.ty.storage).collect();
        for map in old.maps() {
            writing.txn.drop_map(map)?;
        }
        // Indexes made by this statement are still empty and keep their maps.
        for index in new.indexes.iter_mut().filter(|index| old.indexes.iter().any(|known| known.map == index.map)) {
            (index.map, index.form) = (writing.txn.create_map()?, KeyForm::Hashed);
        }
        (new.map, new.primary_form) = (writing.txn.create_map()?, KeyForm::Hashed);
        new.layout = Layout::new(new.slots.iter().copied());
        new.slot_columns = (0..new.slots.len()).map(Some).collect();
        let settled = Arc::new(Table { version: new.version, ..new.copy().with_derived_fields() });
        let computed = self.computed(&settled, from)?;
        self.bind_formulas(&settled)?;
        let checks = self.bound_checks(&settled)?;
        let all: Vec<usize> = (0..old.columns.len()).collect();
        let mut cursor = writing.txn.scan(old.map, Unbounded, Unbounded, false)?;
        let (mut batch, mut old_row, mut number) = (RowBatch::new(), vec![Value::Null; all.len()], 0u64);
        let (mut row_key, mut bytes) = (Vec::new(), Vec::new());
        let written = [settled.clone()];
        let ctx = self.context();
        ctx.changes_rows = true;
        while cursor.next(&mut writing.txn, &mut batch)? {
            host(ctx).look_up()?;
            for (_, old_bytes) in batch.iter() {
                number += 1;
                decode(old, old_bytes, &all, &mut old_row)?;
                let row = new_row(&settled, from, &computed, &old_row, number, ctx);
                let mut row = row.map_err(|fault| render(fault, &written))?;
                generated::compute(&settled, &mut row, None, number, ctx).map_err(|fault| render(fault, &written))?;
                check_row(&settled, &checks, &row, ctx)?;
                row_key.clear();
                match &settled.primary {
                    Some(_) => key::primary(&settled, &row, &mut row_key)?,
                    None => row_key.extend_from_slice(&number.to_be_bytes()),
                }
                encode_row(&settled, &row, &mut bytes)?;
                if writing.txn.load(settled.map, &row_key, &bytes)? == Inserted::Exists {
                    let mut shown = |part: &Part| -> Box<str> {
                        (ASSIGNMENT.text)(&row[part.column], &settled.columns[part.column].ty, ctx).into()
                    };
                    let values: Vec<_> = settled.primary.iter().flatten().map(&mut shown).collect();
                    return Err(could_not_create(&settled, None, &values));
                }
            }
        }
        *new.live.row_id.lock() = 0;
        let every: Vec<usize> = (0..settled.indexes.len()).collect();
        fill(&mut writing.txn, &settled, &every, ctx)
    }

    /// Checks the rows against columns that become NOT NULL and against new CHECKs.
    pub(super) fn check_rows(&mut self, draft: &Draft, settled: &Arc<Table>, writing: &mut Writing<'_>) -> Result<()> {
        let new_checks: Vec<_> = settled
            .checks
            .iter()
            .filter(|check| check.is_validated)
            .filter(|check| !draft.old.checks.iter().any(|known| known.name == check.name && known.is_validated))
            .collect();
        if new_checks.is_empty() && draft.not_null.is_empty() && draft.domain_check.is_none() {
            return Ok(());
        }
        let mut checks = self.bound_checks(settled)?;
        checks.retain(|(name, _)| new_checks.iter().any(|check| check.name == *name));
        self.bind_formulas(settled)?;
        let all: Vec<usize> = (0..settled.columns.len()).collect();
        let mut cursor = writing.txn.scan(settled.map, Unbounded, Unbounded, false)?;
        let (mut batch, mut row) = (RowBatch::new(), vec![Value::Null; all.len()]);
        let ctx = self.context();
        while cursor.next(&mut writing.txn, &mut batch)? {
            host(ctx).look_up()?;
            for (_, bytes) in batch.iter() {
                generated::decode(settled, bytes, &all, &mut row, ctx)?;
                if let Some(at) = draft.not_null.iter().find(|at| row[**at].is_null()) {
                    return Err(contains_nulls(settled, *at));
                }
                check_row(settled, &checks, &row, ctx)?;
                if let Some(check) = &draft.domain_check {
                    check_domains(settled, check, &row, ctx)?;
                }
            }
        }
        Ok(())
    }

    /// Binds the default expressions of new columns.
    fn computed(&mut self, table: &Arc<Table>, from: &[From]) -> Result<Vec<(usize, Expr)>> {
        let mut exprs = Vec::new();
        for (at, (column, from)) in table.columns.iter().zip(from).enumerate() {
            match (&column.default, from) {
                (Default::Expression(text), From::Initial) => {
                    exprs.push((at, self.bind_text(table, text, TableExpression::Default, Some(at))?));
                }
                (Default::None, From::Initial) if user::is_domain(registry::oid_of(&column.ty)) => {
                    let domain = registry::oid_of(&column.ty);
                    let default = self.with_environment(&[], |environment, ctx| {
                        bind::bind_default_of_domain(environment, ctx, domain)
                    });
                    exprs.push((at, default?));
                }
                _ => {}
            }
        }
        Ok(exprs)
    }

    /// Returns the checks that all rows must satisfy.
    fn bound_checks(&mut self, table: &Arc<Table>) -> Result<Vec<(String, Expr)>> {
        let mut checks = Vec::new();
        for check in table.checks.iter().filter(|check| check.enforced && check.is_validated) {
            checks.push((check.name.clone(), self.bind_text(table, &check.text, TableExpression::Check, None)?));
        }
        Ok(checks)
    }

    /// Binds an expression that a definition keeps as text.
    pub(super) fn bind_text(
        &mut self,
        table: &Arc<Table>,
        text: &str,
        kind: TableExpression,
        column: Option<usize>,
    ) -> Result<Expr> {
        let expr = syntax::postgres::parse_expression(text).map_err(|_| {
            PgError::new(state::DATA_CORRUPTED, format!("the text \"{text}\" of a definition has no meaning"))
        })?;
        self.with_environment(&[], |environment, ctx| {
            bind::bind_table_expression(environment, ctx, text, (table, &expr), kind, column)
        })
    }

    /// Binds the generated columns of a version of a table that no statement has used yet.
    pub(super) fn bind_formulas(&mut self, table: &Arc<Table>) -> Result<()> {
        use query::nodes::formula::Formula;
        if !table.is_generated() || table.bound_formulas().is_some() {
            return Ok(());
        }
        let mut formulas: Vec<Formula> = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let Some(generated) = &column.generated else { continue };
            let expr = self.bind_text(table, &generated.text, TableExpression::Generated, Some(at))?;
            let reads = expr.columns();
            formulas.push(Formula { column: at, expr, assignment: &ASSIGNMENT, lossless: false, reads });
        }
        table.keep_formulas(formulas);
        Ok(())
    }
}

fn new_row(
    table: &Table,
    from: &[From],
    computed: &[(usize, Expr)],
    old_row: &[Value],
    number: u64,
    ctx: &mut EvalContext,
) -> CoreResult<Vec<Value>> {
    let mut row = Vec::with_capacity(table.columns.len());
    for (column, from) in table.columns.iter().zip(from) {
        let place = Place { column: &column.name, row: number };
        row.push(match from {
            _ if column.generated.is_some() => Value::Null,
            From::Initial => column.initial.clone(),
            From::Old(at) => old_row[*at].clone(),
            From::Reshaped(at, reshape) => reshape.of(&old_row[*at])?,
            From::Converted(expr) => {
                let value = expr.eval(old_row, ctx)?;
                (ASSIGNMENT.store)(value, &column.ty, place, ctx)?
            }
        });
    }
    for (at, expr) in computed {
        let (column, value) = (&table.columns[*at], expr.eval(&row, ctx)?);
        row[*at] = (ASSIGNMENT.store)(value, &column.ty, Place { column: &column.name, row: number }, ctx)?;
    }
    let missing = table
        .columns
        .iter()
        .zip(&row)
        .find(|(column, value)| value.is_null() && !column.ty.nullable && column.generated.is_none());
    match missing {
        Some((column, _)) => Err(contains_nulls_fault(table, &column.name)),
        None => Ok(row),
    }
}

fn contains_nulls(table: &Table, at: usize) -> PgError {
    let message = format!("column \"{}\" of relation \"{}\" contains null values", table.columns[at].name, table.name);
    PgError::new(state::NOT_NULL_VIOLATION, message)
}

fn contains_nulls_fault(table: &Table, column: &str) -> Fault {
    let message = format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    PgError::new(state::NOT_NULL_VIOLATION, message).into()
}

fn check_row(table: &Table, checks: &[(String, Expr)], row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    for (name, check) in checks {
        if !check.eval(row, ctx)?.is_null() && !check.holds(row, ctx)? {
            let message = format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", table.name);
            return Err(PgError::new(state::CHECK_VIOLATION, message));
        }
    }
    Ok(())
}

/// Checks the values of a domain against a new constraint.
fn check_domains(table: &Table, check: &NewDomainCheck, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    for at in &check.columns {
        let of = || format!("column \"{}\" of table \"{}\"", table.columns[*at].name, table.name);
        match &check.condition {
            None if row[*at].is_null() => {
                return Err(PgError::new(state::NOT_NULL_VIOLATION, format!("{} contains null values", of())));
            }
            Some(condition) if condition.decide(&row[*at..=*at], ctx)? == Some(false) => {
                let message = format!("{} contains values that violate the new constraint", of());
                return Err(PgError::new(state::CHECK_VIOLATION, message));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the error of a unique index, or of the primary key, that some rows do not allow.
fn could_not_create(table: &Table, index: Option<&str>, values: &[Box<str>]) -> PgError {
    let found = index.and_then(|name| table.indexes.iter().find(|index| &*index.name == name));
    let (name, parts) = match found {
        Some(index) => (index.name.clone(), &index.parts[..]),
        None => (super::names::primary_name(table), table.primary.as_deref().unwrap_or(&[])),
    };
    let columns = crate::error::fault::column_names(table, parts);
    let detail = format!("Key ({columns})=({}) is duplicated.", values.join(", "));
    PgError::new(state::UNIQUE_VIOLATION, format!("could not create unique index \"{name}\"")).detail(detail)
}

/// Loads the entries of every row into new indexes.
pub(super) fn fill(txn: &mut Transaction, table: &Table, fresh: &[usize], ctx: &mut EvalContext) -> Result<()> {
    if fresh.is_empty() {
        return Ok(());
    }
    index_build::fill(txn, table, fresh, ctx).map_err(|fault| match fault {
        Fault::DuplicateKey(key) => could_not_create(table, key.index.as_deref(), &key.values),
        other => other.into(),
    })
}
