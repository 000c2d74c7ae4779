//! LOAD DATA: conversion of records to rows.
//!
//! The reader of the file (the session, or a client through its door) passes bytes as they arrive, and every complete
//! record is inserted at once. Between two pieces only the statement's transaction and an incomplete record are held,
//! which `max_allowed_packet` bounds.

use std::sync::Arc;

use crate::batch::Row;
use crate::bind::load::LoadField;
use crate::charset;
use crate::error::SqlError;
use crate::error::{self, Result};
use crate::instance::statement::{BoundStatement, Load, Plan};
use crate::scalar::state::StateOf as _;
use crate::scalar::store::implicit_default;
use crate::scalar::temporal::Timestamp;
use crate::session::load::cut::{Cut, Cutter};
use crate::types::{Charset, Kind, MysqlType as _, Type};
use crate::value::Value;
use query::exec::change::{Changed, Inserting, Tally};
use query::exec::host::host;
use query::nodes::change::OnConflict;
use query::nodes::context::EvalContext;
use query::nodes::expr::Expr;

/// A LOAD DATA under way.
#[derive(Debug)]
pub struct Loading {
    compiled: Arc<BoundStatement>,
    cutter: Cutter,
    tally: Tally,
}

impl Loading {
    /// `compiled` is the plan of a LOAD DATA.
    pub fn new(compiled: Arc<BoundStatement>) -> Loading {
        let cutter = match &compiled.plan {
            Plan::Load(load) => Cutter::new(
                load.source.format.clone(),
                load.source.fields.len(),
                load.source.widths.clone(),
                load.source.skip,
            )
            .reading(load.source.charset),
            _ => unreachable!("the caller has looked"),
        };
        Loading { compiled, cutter, tally: Tally::default() }
    }

    /// Puts in what these bytes make whole.
    pub fn feed(&mut self, bytes: &[u8], ctx: &mut EvalContext) -> Result<()> {
        self.cutter.add(bytes);
        self.rows(ctx)?;
        if self.cutter.held() > ctx.state().max_allowed_packet {
            return Err(error::NET_PACKET_TOO_LARGE.bare());
        }
        Ok(())
    }

    /// There are no more bytes.
    pub fn end(mut self, ctx: &mut EvalContext) -> Result<Changed> {
        self.cutter.end();
        self.rows(ctx)?;
        let Tally { mut changed, records, duplicates, .. } = self.tally;
        let Plan::Load(load) = &self.compiled.plan else { unreachable!("see new") };
        let (deleted, skipped) = match load.insert.on_conflict {
            OnConflict::Replace => (duplicates, 0),
            _ => (0, duplicates),
        };
        changed.info =
            format!("Records: {records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {}", ctx.warnings.count());
        Ok(changed)
    }

    fn rows(&mut self, ctx: &mut EvalContext) -> Result<()> {
        let compiled = self.compiled.clone();
        let Plan::Load(load) = &compiled.plan else { unreachable!("see new") };
        ctx.ignore = load.insert.ignore;
        ctx.changes_rows = true;
        let mut inserting = Inserting::new(&load.insert, std::mem::take(&mut self.tally));
        let done = loop {
            match self.cutter.next() {
                Cut::More | Cut::End => break Ok(()),
                Cut::Record(is_cut) => {
                    let looked_up = host(ctx).look_up().map_err(SqlError::from);
                    let put = looked_up.and_then(|()| one(load, &self.cutter, &mut inserting, is_cut, ctx));
                    if put.is_err() {
                        break put;
                    }
                }
            }
        };
        self.tally = inserting.tally;
        done
    }
}

/// One record becomes a row.
fn one(load: &Load, cutter: &Cutter, inserting: &mut Inserting<'_>, is_cut: bool, ctx: &mut EvalContext) -> Result<()> {
    inserting.tally.records += 1;
    let number = inserting.tally.records;
    let table = load.insert.rules.table.clone();
    let mut row: Row = vec![Value::Null; table.columns.len()];
    let mut given = vec![false; row.len()];
    for (nth, field) in load.source.fields.iter().enumerate() {
        match (field, cutter.field(nth)) {
            (LoadField::Column(at), Some(bytes)) => {
                given[*at] = true;
                row[*at] = taken(load, *at, bytes, inserting, ctx)?;
            }
            (LoadField::Variable(name), bytes) => {
                let value = bytes.flatten().map_or(Value::Null, |bytes| value_of(bytes, load.source.charset));
                ctx.state_mut().variables.set(name, value, variable_type())?;
            }
            (LoadField::Column(at), None) => {
                ctx.complain(error::WARN_TOO_FEW_RECORDS.with(&[&number]))?;
                given[*at] = !keeps_default(load, *at);
                row[*at] = if given[*at] { missing(load, *at, ctx) } else { Value::Null };
            }
        }
    }
    for (at, _) in load.source.sets.iter().filter(|(_, expr)| expr.is_some()) {
        given[*at] = true;
    }
    for at in (0..row.len()).filter(|at| !given[*at]) {
        row[at] = inserting.default(at, &row, ctx)?;
    }
    for (at, expr) in &load.source.sets {
        row[*at] = match expr {
            Some(expr) => {
                let value = expr.eval(&row, ctx)?;
                inserting.take(*at, value, ctx)?
            }
            None => inserting.default(*at, &row, ctx)?,
        };
    }
    inserting.finish(row, ctx)?;
    if is_cut {
        ctx.complain(error::WARN_TOO_MANY_RECORDS.with(&[&number]))?;
    }
    Ok(())
}

/// Where fields have widths, a column whose field is missing keeps its default, if it has one: so says MySQL of this format alone. But a TIMESTAMP that cannot be NULL is now.
fn keeps_default(load: &Load, at: usize) -> bool {
    let ty = &load.insert.rules.table.columns[at].ty;
    let has_one = !matches!(&load.insert.rules.defaults[at], None | Some(Expr::Literal(Value::Null, _)));
    load.source.widths.is_some() && has_one && (ty.nullable || ty.kind() != Kind::Timestamp)
}

/// Returns the value of a column whose field is missing.
fn missing(load: &Load, at: usize, ctx: &EvalContext) -> Value {
    let table = &load.insert.rules.table;
    match &load.insert.rules.defaults[at] {
        _ if table.auto_column() == Some(at) => Value::Null,
        Some(Expr::Literal(Value::Null, _)) if load.source.widths.is_none() => Value::Null,
        _ => nothing(&table.columns[at].ty, ctx),
    }
}

fn nothing(ty: &Type, ctx: &EvalContext) -> Value {
    match ty.kind() {
        Kind::Timestamp if !ty.nullable => {
            Value::Timestamp(Timestamp(ctx.now.0 - ctx.now.0.rem_euclid(10i64.pow(6 - u32::from(ty.scale.min(6))))))
        }
        Kind::Enum => Value::UInt(0),
        _ => implicit_default(ty),
    }
}

/// The type of user variables in LOAD DATA.
pub fn variable_type() -> Type {
    Type::of_kind(Kind::LongText).with_nullable(true)
}

fn taken(
    load: &Load,
    at: usize,
    bytes: Option<&[u8]>,
    inserting: &Inserting<'_>,
    ctx: &mut EvalContext,
) -> Result<Value> {
    let table = &load.insert.rules.table;
    let column = &table.columns[at];
    match bytes {
        None if column.ty.nullable || table.auto_column() == Some(at) => Ok(Value::Null),
        None => {
            ctx.complain(error::WARN_NULL_TO_NOTNULL.with(&[&column.name, &inserting.tally.records]))?;
            Ok(nothing(&column.ty, ctx))
        }
        Some(bytes) => {
            let is_raw = column.ty.kind().is_bytes() || column.ty.kind() == Kind::Bit;
            let value = if is_raw { Value::bytes(bytes) } else { value_of(bytes, load.source.charset) };
            Ok(inserting.take(at, value, ctx)?)
        }
    }
}

/// The field as text, where it is text in the file's character set.
fn value_of(bytes: &[u8], charset: Charset) -> Value {
    charset::decode(bytes, charset).map_or_else(|| Value::bytes(bytes), Value::text)
}
