//! One row of a table, inserted, replaced or deleted with its entries in every index (QU-1).

use std::sync::Arc;

use datum::fault::DuplicateKey;
use datum::{Fault, Result};
use engine::rows::{Inserted, Strength, Transaction};

use crate::batch::Row;
use crate::catalog::foreign_key::Deferral;
use crate::catalog::table::{Index, Table};
use crate::engine_fault::engine_fault;
use crate::exec::deferred::leave_key;
use crate::exec::effect_notes::{Change, note};
use crate::exec::host::host;
use crate::exec::monitor::RowAccess;
use crate::exec::{generated, keys, prefetch};
use crate::key;
use crate::nodes::context::EvalContext;
use crate::nodes::term_test::TermForm;
use crate::term::terms;
use crate::value::Value;

/// A conflicting row: its index and its key.
pub(super) struct Conflict {
    pub index: Option<usize>,
    pub row_key: Vec<u8>,
}

pub(super) fn duplicate(table: &Table, index: Option<usize>, row: &[Value], ctx: &mut EvalContext) -> Fault {
    let (name, parts) = match index {
        None => (None, table.primary.as_deref().unwrap_or(&[])),
        Some(at) => (Some(&*table.indexes[at].name), &table.indexes[at].parts[..]),
    };
    let assignment = host(ctx).assignment;
    let values = parts
        .iter()
        .map(|part| {
            let value =
                part.prefix.map_or_else(|| row[part.column].clone(), |prefix| key::cut(&row[part.column], prefix));
            (assignment.text)(&value, &table.columns[part.column].ty, ctx).into()
        })
        .collect();
    Fault::DuplicateKey(Box::new(DuplicateKey {
        table: table.name.as_str().into(),
        index: name.map(Box::from),
        values,
    }))
}

/// Encodes a row.
pub fn encode_row(table: &Table, row: &[Value], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let null = Value::Null;
    let is_held = |column: &usize| !table.computes || !table.columns[*column].is_computed();
    let held = |slot: usize| table.slot_columns[slot].filter(is_held);
    table.layout.encode(|slot| held(slot).map_or(&null, |column| &row[column]), out)
}

/// Inserts the row. Returns the conflicting row, if there is one, and then changes nothing.
pub(super) fn put(table: &Table, row: &[Value], ctx: &mut EvalContext) -> Result<Option<Conflict>> {
    if let Some(of_keys) = table.keys() {
        let taken = keys::put(of_keys, row, ctx)?;
        host(ctx).monitor.count(RowAccess::Insert, 1);
        return Ok(taken.map(|row_key| Conflict { index: None, row_key }));
    }
    let mut row_key = Vec::new();
    match &table.primary {
        Some(_) => key::primary(table, row, &mut row_key)?,
        None => row_key.extend_from_slice(&next_row_id(table, ctx)?.to_be_bytes()),
    }
    if let Some(conflict) = put_at(table, &row_key, row, ctx)? {
        return Ok(Some(conflict));
    }
    table.live.add_rows(1);
    host(ctx).monitor.count(RowAccess::Insert, 1);
    note(table, &row_key, Change::Put(row), ctx)?;
    Ok(None)
}

/// Inserts the row under its key.
pub(super) fn put_at(table: &Table, row_key: &[u8], row: &[Value], ctx: &mut EvalContext) -> Result<Option<Conflict>> {
    let (mut bytes, mut old) = (Vec::new(), Vec::new());
    encode_row(table, row, &mut bytes)?;
    prefetch::for_row(table, (row_key, row), ctx)?;
    let txn = host(ctx).txn()?;
    let savepoint = txn.savepoint();
    if txn.insert(table.map, row_key, &bytes, &mut old).map_err(engine_fault)? == Inserted::Exists {
        return Ok(Some(Conflict { index: None, row_key: row_key.to_vec() }));
    }
    let mut entry_key = Vec::new();
    for (at, index) in table.indexes.iter().enumerate().filter(|(_, index)| index.has_entry(row)) {
        if index.terms.is_some() {
            let txn = host(ctx).txn()?;
            key::each_entry(table, index, (row, row_key), (&mut entry_key, &mut bytes), |key, value| {
                add_term(txn, index, key, value)
            })?;
            continue;
        }
        key::entry(table, index, row, row_key, &mut entry_key, &mut bytes)?;
        old.clear();
        let txn = host(ctx).txn()?;
        if txn.insert(index.map, &entry_key, &bytes, &mut old).map_err(engine_fault)? == Inserted::Exists {
            txn.rollback_to(savepoint).map_err(engine_fault)?;
            let row_key = key::row_key(&entry_key, &old).to_vec();
            return Ok(Some(Conflict { index: Some(at), row_key }));
        }
        if index.deferral != Deferral::Never {
            leave_key(table, at, row, ctx)?;
        }
    }
    Ok(None)
}

/// Deletes the row.
pub(super) fn take_out(table: &Table, row_key: &[u8], row: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    if let Some(of_keys) = table.keys() {
        host(ctx).monitor.count(RowAccess::Delete, 1);
        return keys::take_out(of_keys, row_key, ctx);
    }
    if !take_out_at(table, row_key, row, ctx)? {
        return Ok(false);
    }
    table.live.add_rows(-1);
    host(ctx).monitor.count(RowAccess::Delete, 1);
    note(table, row_key, Change::TakeOut(row), ctx)?;
    Ok(true)
}

/// Deletes the row and its entries.
pub(super) fn take_out_at(table: &Table, row_key: &[u8], row: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    prefetch::for_row(table, (row_key, row), ctx)?;
    let txn = host(ctx).txn()?;
    if !txn.delete(table.map, row_key).map_err(engine_fault)? {
        return Ok(false);
    }
    let (mut entry_key, mut value) = (Vec::new(), Vec::new());
    for index in table.indexes.iter().filter(|index| index.has_entry(row)) {
        key::each_entry(table, index, (row, row_key), (&mut entry_key, &mut value), |key, _| {
            txn.delete(index.map, key).map_err(engine_fault)?;
            Ok(())
        })?;
    }
    Ok(true)
}

/// Replaces the old row by the new one.
pub(super) fn replace(
    table: &Table,
    row_key: &[u8],
    old: &[Value],
    new: &[Value],
    ctx: &mut EvalContext,
) -> Result<()> {
    if let Some(of_keys) = table.keys() {
        host(ctx).monitor.count(RowAccess::Update, 1);
        let done = keys::replace(of_keys, row_key, old, new, ctx)?;
        return if done { Ok(()) } else { Err(duplicate(table, None, new, ctx)) };
    }
    host(ctx).monitor.count(RowAccess::Update, 1);
    replace_at(table, row_key, old, new, ctx)?;
    note(table, row_key, Change::Replace(old, new), ctx)
}

/// Replaces the old row and its entries.
pub(super) fn replace_at(
    table: &Table,
    row_key: &[u8],
    old: &[Value],
    new: &[Value],
    ctx: &mut EvalContext,
) -> Result<()> {
    let (mut new_key, mut bytes) = (Vec::new(), Vec::new());
    match &table.primary {
        Some(_) => key::primary(table, new, &mut new_key)?,
        None => new_key.extend_from_slice(row_key),
    }
    encode_row(table, new, &mut bytes)?;
    prefetch::for_change(table, (row_key, old), (&new_key, new), ctx)?;
    let strength = if keeps_keys(table, old, new) { host(ctx).change_strength() } else { Strength::Exclusive };
    let txn = host(ctx).txn()?;
    if new_key == row_key {
        table.live.note_change();
        txn.update_with(table.map, row_key, &bytes, strength).map_err(engine_fault)?;
    } else {
        txn.move_away(table.map, row_key, &new_key).map_err(engine_fault)?;
        if txn.insert(table.map, &new_key, &bytes, &mut Vec::new()).map_err(engine_fault)? == Inserted::Exists {
            return Err(duplicate(table, None, new, ctx));
        }
    }
    for at in 0..table.indexes.len() {
        move_entry(table, at, (row_key, old), (&new_key, new), ctx)?;
    }
    Ok(())
}

/// Returns whether all unique keys, to which foreign keys may refer, have the values that they had.
fn keeps_keys(table: &Table, old: &[Value], new: &[Value]) -> bool {
    let unique = table.indexes.iter().filter(|index| index.is_key()).flat_map(|index| &index.parts);
    let mut parts = table.primary.iter().flatten().chain(unique);
    parts.all(|part| old[part.column] == new[part.column])
}

fn move_entry(
    table: &Table,
    at: usize,
    old: (&[u8], &[Value]),
    new: (&[u8], &[Value]),
    ctx: &mut EvalContext,
) -> Result<()> {
    let index: &Index = &table.indexes[at];
    let (was_in, is_in) = (index.has_entry(old.1), index.has_entry(new.1));
    let is_same = index.columns().all(|column| old.1[column] == new.1[column]);
    if (is_same && old.0 == new.0) || !(was_in || is_in) {
        return Ok(());
    }
    if let Some(form) = index.terms {
        return move_terms(index, form, (old, was_in), (new, is_in), ctx);
    }
    let (mut old_key, mut old_value, mut new_key, mut new_value) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    if was_in {
        key::entry(table, index, old.1, old.0, &mut old_key, &mut old_value)?;
    }
    if is_in {
        key::entry(table, index, new.1, new.0, &mut new_key, &mut new_value)?;
    }
    let txn = host(ctx).txn()?;
    if was_in && is_in && old_key == new_key {
        if old_value != new_value {
            txn.update(index.map, &new_key, &new_value).map_err(engine_fault)?;
        }
        return Ok(());
    }
    if was_in {
        txn.delete(index.map, &old_key).map_err(engine_fault)?;
    }
    if is_in && txn.insert(index.map, &new_key, &new_value, &mut Vec::new()).map_err(engine_fault)? == Inserted::Exists
    {
        return Err(duplicate(table, Some(at), new.1, ctx));
    }
    match is_in && index.deferral != Deferral::Never {
        true => leave_key(table, at, new.1, ctx),
        false => Ok(()),
    }
}

/// Adds the entry of a term. A row has each term once, so there is none yet.
fn add_term(txn: &mut Transaction, index: &Index, key: &[u8], value: &[u8]) -> Result<()> {
    match txn.insert(index.map, key, value, &mut Vec::new()).map_err(engine_fault)? {
        Inserted::Exists => Err(Fault::corrupt("an entry of an index of terms")),
        _ => Ok(()),
    }
}

/// Changes the entries of the terms that a row has lost or got; those that it keeps stay as they are.
fn move_terms(
    index: &Index,
    form: TermForm,
    (old, was_in): ((&[u8], &[Value]), bool),
    (new, is_in): ((&[u8], &[Value]), bool),
    ctx: &mut EvalContext,
) -> Result<()> {
    let column = index.parts[0].column;
    let of = |row: &[Value], is_in: bool| if is_in { terms(form, &row[column]) } else { Vec::new() };
    let (lost, got) = (of(old.1, was_in), of(new.1, is_in));
    let keeps = |others: &[Vec<u8>], term: &Vec<u8>| old.0 == new.0 && others.binary_search(term).is_ok();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let txn = host(ctx).txn()?;
    for term in lost.iter().filter(|term| !keeps(&got, term)) {
        key::term_entry(term, old.0, &mut key, &mut value);
        txn.delete(index.map, &key).map_err(engine_fault)?;
    }
    for term in got.iter().filter(|term| !keeps(&lost, term)) {
        key::term_entry(term, new.0, &mut key, &mut value);
        add_term(txn, index, &key, &value)?;
    }
    Ok(())
}

fn next_row_id(table: &Table, ctx: &mut EvalContext) -> Result<u64> {
    let mut next = table.live.row_id.lock();
    if *next == 0 {
        // The first row id since the start follows the last one in the table.
        let txn = host(ctx).txn()?;
        let mut cursor = txn
            .scan_current(table.map, std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, true)
            .map_err(engine_fault)?;
        let mut batch = engine::rows::RowBatch::new();
        *next = 1;
        if cursor.next(txn, &mut batch).map_err(engine_fault)? {
            let (key, _) = batch.get(0);
            *next = key.try_into().map_or(1, u64::from_be_bytes) + 1;
        }
    }
    *next += 1;
    Ok(*next - 1)
}

/// Locks a row and returns its newest version.
pub(super) fn current(table: &Table, row_key: &[u8], strength: Strength, ctx: &mut EvalContext) -> Result<Option<Row>> {
    if let Some(of_keys) = table.keys() {
        return keys::current(of_keys, row_key, ctx);
    }
    let mut bytes = Vec::new();
    let locked = host(ctx).txn()?.lock_patiently(table.map, row_key, strength, &mut bytes).map_err(engine_fault)?;
    if locked != engine::rows::Locked::Present {
        return Ok(None);
    }
    let bytes = Arc::new(bytes);
    let mut row = vec![Value::Null; table.columns.len()];
    let all: Vec<usize> = (0..row.len()).collect();
    generated::decode(table, &bytes, &all, &mut row, ctx)?;
    Ok(Some(row))
}
