//! Foreign keys at work: a child finds its parent, a parent's rows take their children with them or stay.
//!
//! QU-3: whoever puts a child in first locks its parent's key, shared, to the end of the transaction. QU-4: whoever takes a parent's key away first does so, which takes the key's lock exclusively, and then
//! looks for children as they are now, those of open transactions included. So of the two one waits for the other: the child finds no parent, or the deleter finds the child. No orphan can be committed,
//! and nobody need lock gaps: a new child can only come through the key that the deleter holds. QU-5: the checks of a row come with the row, not at the end of the statement.

use std::ops::Bound;

use datum::{Fault, Result};
use engine::rows::{Locked, MapId, ROW_KEY_MAX, RowBatch, Strength};

use crate::catalog::foreign_graph::{Child, Family, Member};
use crate::catalog::foreign_key::{Action, ForeignKey, KeyAt};
use crate::catalog::table::Table;
use crate::engine_fault::engine_fault;
use crate::exec::generated;
use crate::exec::host::host;
use crate::exec::row_change::{current, replace, take_out};
use crate::exec::spill::rows::Rows;
use crate::key::{after, encode_part, row_key};
use crate::nodes::context::EvalContext;
use crate::value::Value;

/// InnoDB's own limit.
const DEPTH_MAX: usize = 15;

/// A cascade on its way: the tables whose rows it has updated, from the statement's down.
struct Way<'f> {
    family: &'f Family,
    depth: usize,
    updated: Vec<usize>,
}

fn parent_missing(child: &Table, key: &ForeignKey) -> Fault {
    Fault::ParentMissing(Box::new(key.parts(child)))
}

/// True: the session wants no checks. Then it is noted which tables nobody can vouch for any more.
fn unchecked(family: &Family, ctx: &mut EvalContext) -> Result<bool> {
    if host(ctx).foreign_key_checks {
        return Ok(false);
    }
    let instance = host(ctx).instance.clone();
    let root = &family.members[0];
    if !root.parents.is_empty() {
        instance.catalog().note_unchecked(&root.table)?;
    }
    for child in &root.children {
        instance.catalog().note_unchecked(&family.members[child.member].table)?;
    }
    Ok(true)
}

/// The bytes with which keys of these values begin; None: a NULL is among them, or there can be no such key.
fn prefix(table: &Table, key: KeyAt, values: &[&Value]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (part, value) in table.key_parts(key).iter().zip(values) {
        if value.is_null() {
            return None;
        }
        encode_part(part, value, &table.columns[part.column].ty, &mut out);
    }
    (out.len() <= ROW_KEY_MAX).then_some(out)
}

fn map_of(table: &Table, key: KeyAt) -> MapId {
    key.map_or(table.map, |at| table.indexes[at].map)
}

/// Locks the first row, or entry, whose key begins so. False: there is none.
fn lock_first(table: &Table, key: KeyAt, columns: usize, prefix: &[u8], ctx: &mut EvalContext) -> Result<bool> {
    let map = map_of(table, key);
    let is_unique = key.is_none_or(|at| table.indexes[at].unique);
    let txn = host(ctx).txn()?;
    let mut bytes = Vec::new();
    if is_unique && table.key_parts(key).len() == columns {
        return Ok(
            txn.lock_patiently(map, prefix, Strength::Shared, &mut bytes).map_err(engine_fault)? == Locked::Present
        );
    }
    let end = after(prefix);
    let mut cursor =
        txn.scan_current(map, Bound::Included(prefix), end.as_ref().map(Vec::as_slice), false).map_err(engine_fault)?;
    let mut batch = RowBatch::new();
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        for (key, _) in batch.iter() {
            bytes.clear();
            if txn.lock_patiently(map, key, Strength::Shared, &mut bytes).map_err(engine_fault)? == Locked::Present {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// QU-3 for one foreign key of a row. False: it has no parent.
fn has_parent(member: &Member, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    let key = &member.table.foreign_keys[at];
    let values: Vec<&Value> = key.columns.iter().map(|column| &row[*column]).collect();
    if values.iter().any(|value| value.is_null()) {
        return Ok(true);
    }
    let Some((parent, by)) = &member.parents[at].found else { return Ok(false) };
    let Some(prefix) = prefix(parent, *by, &values) else { return Ok(false) };
    lock_first(parent, *by, values.len(), &prefix, ctx)
}

/// Foreign keys whose parents are to be looked for once more, when the row itself is there.
#[derive(Default)]
pub struct Missing(Vec<usize>);

/// QU-3: locks the parents of a row that is about to be put in, or to be changed from `old`; `but` is left out.
fn lock_parents(
    member: &Member,
    old: Option<&[Value]>,
    new: &[Value],
    but: Option<usize>,
    ctx: &mut EvalContext,
) -> Result<Missing> {
    let mut missing = Missing::default();
    for (at, key) in member.table.foreign_keys.iter().enumerate() {
        let stays = old.is_some_and(|old| key.columns.iter().all(|column| old[*column] == new[*column]));
        if !stays && Some(at) != but && !has_parent(member, at, new, ctx)? {
            missing.0.push(at);
        }
    }
    Ok(missing)
}

/// Those that had no parent: the row may be its own.
fn settle(member: &Member, missing: &Missing, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    for at in &missing.0 {
        let key = &member.table.foreign_keys[*at];
        if !(key.refers_to(&member.table.schema, &member.table.name) && has_parent(member, *at, row, ctx)?) {
            return Err(parent_missing(&member.table, key));
        }
    }
    Ok(())
}

/// Before a row is put in.
pub fn before_insert(family: Option<&Family>, row: &[Value], ctx: &mut EvalContext) -> Result<Missing> {
    match family {
        Some(family) if !family.members[0].parents.is_empty() && !unchecked(family, ctx)? => {
            lock_parents(&family.members[0], None, row, None, ctx)
        }
        _ => Ok(Missing::default()),
    }
}

/// After it.
pub fn after_insert(family: Option<&Family>, missing: &Missing, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    family.map_or(Ok(()), |family| settle(&family.members[0], missing, row, ctx))
}

/// After a row has been taken out.
pub fn after_delete(family: Option<&Family>, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    match family {
        Some(family) if !unchecked(family, ctx)? => Way { family, depth: 0, updated: Vec::new() }.deleted(0, row, ctx),
        _ => Ok(()),
    }
}

/// Puts the new row in the place of the old one, with all that follows from it.
pub fn replace_row(
    family: Option<&Family>,
    table: &Table,
    row_key: &[u8],
    (old, new): (&[Value], &[Value]),
    ctx: &mut EvalContext,
) -> Result<()> {
    match family {
        Some(family) if !unchecked(family, ctx)? => {
            Way { family, depth: 0, updated: Vec::new() }.update(0, row_key, (old, new), None, ctx)
        }
        _ => replace(table, row_key, old, new, ctx),
    }
}

impl Way<'_> {
    /// QU-4, of a row that is gone.
    fn deleted(&mut self, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let family = self.family;
        for child in &family.members[at].children {
            let Some(prefix) = self.key_of(child, row) else { continue };
            let member = &family.members[child.member];
            let key = &member.table.foreign_keys[child.foreign];
            match key.on_delete {
                Action::Nothing | Action::Restrict => self.refuse(child, &prefix, ctx)?,
                Action::Cascade => {
                    let mut found = self.children(child, &prefix, ctx)?;
                    for at in 0..found.block_count() {
                        for row in found.take_block(at)? {
                            if take_out(&member.table, key_behind(&row), &row, ctx)? {
                                self.deeper(ctx, |way, ctx| way.deleted(child.member, &row, ctx))?;
                            }
                        }
                    }
                }
                Action::SetNull => self.rewrite(child, &prefix, None, ctx)?,
            }
        }
        Ok(())
    }

    /// A row becomes another one; `but`: the foreign key that a cascade comes along.
    fn update(
        &mut self,
        at: usize,
        row_key: &[u8],
        (old, new): (&[Value], &[Value]),
        but: Option<usize>,
        ctx: &mut EvalContext,
    ) -> Result<()> {
        let member = &self.family.members[at];
        let missing = if member.parents.is_empty() {
            Missing::default()
        } else {
            lock_parents(member, Some(old), new, but, ctx)?
        };
        replace(&member.table, row_key, old, new, ctx)?;
        self.updated.push(at);
        let followed = self.updated_row(at, old, new, ctx);
        self.updated.pop();
        followed?;
        settle(member, &missing, new, ctx)
    }

    /// QU-4, of a row that has become another one.
    fn updated_row(&mut self, at: usize, old: &[Value], new: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let family = self.family;
        for child in &family.members[at].children {
            if child.columns.iter().all(|column| old[*column] == new[*column]) {
                continue;
            }
            let Some(prefix) = self.key_of(child, old) else { continue };
            let key = &family.members[child.member].table.foreign_keys[child.foreign];
            // As in InnoDB: what comes back to a table that it has updated on its way stops there.
            let acts = key.on_update.acts() && !self.updated.contains(&child.member);
            if acts {
                self.rewrite(child, &prefix, Some(new).filter(|_| key.on_update == Action::Cascade), ctx)?;
            } else if self.key_of(child, new).as_deref() != Some(&prefix[..]) {
                self.refuse(child, &prefix, ctx)?;
            }
        }
        Ok(())
    }

    fn key_of(&self, child: &Child, row: &[Value]) -> Option<Vec<u8>> {
        let values: Vec<&Value> = child.columns.iter().map(|column| &row[*column]).collect();
        prefix(&self.family.members[child.member].table, child.key, &values)
    }

    fn refuse(&self, child: &Child, prefix: &[u8], ctx: &mut EvalContext) -> Result<()> {
        let table = &self.family.members[child.member].table;
        let key = &table.foreign_keys[child.foreign];
        if lock_first(table, child.key, key.columns.len(), prefix, ctx)? {
            return Err(Fault::ParentReferenced(Box::new(key.parts(table))));
        }
        Ok(())
    }

    /// Gives the children of a row NULL, or the parent's new values.
    fn rewrite(&mut self, child: &Child, prefix: &[u8], parent: Option<&[Value]>, ctx: &mut EvalContext) -> Result<()> {
        let table = self.family.members[child.member].table.clone();
        let key = &table.foreign_keys[child.foreign];
        let mut found = self.children(child, prefix, ctx)?;
        for at in 0..found.block_count() {
            for mut row in found.take_block(at)? {
                let row_key = key_behind(&row).to_vec();
                row.pop();
                let mut new = row.clone();
                for (own, theirs) in key.columns.iter().zip(&child.columns) {
                    new[*own] = parent.map_or(Value::Null, |parent| parent[*theirs].clone());
                }
                generated::compute(&table, &mut new, Some(&row), 1, ctx)?;
                self.deeper(ctx, |way, ctx| {
                    way.update(child.member, &row_key, (&row, &new), Some(child.foreign), ctx)
                })?;
            }
        }
        Ok(())
    }

    fn deeper(
        &mut self,
        ctx: &mut EvalContext,
        work: impl FnOnce(&mut Self, &mut EvalContext) -> Result<()>,
    ) -> Result<()> {
        host(ctx).look_up()?;
        self.depth += 1;
        if self.depth >= DEPTH_MAX {
            return Err(Fault::CascadeDepth { max: DEPTH_MAX as u32 });
        }
        let done = work(self, ctx);
        self.depth -= 1;
        done
    }

    /// The rows that refer to a key, as they are now, locked: gathered before the first is changed. Behind each row's values stands its key.
    fn children(&self, child: &Child, prefix: &[u8], ctx: &mut EvalContext) -> Result<Rows> {
        let table = &self.family.members[child.member].table;
        let columns = &table.foreign_keys[child.foreign].columns;
        let (map, end) = (map_of(table, child.key), after(prefix));
        let txn = host(ctx).txn()?;
        let mut cursor = txn
            .scan_current(map, Bound::Included(prefix), end.as_ref().map(Vec::as_slice), false)
            .map_err(engine_fault)?;
        let (mut batch, mut keys, mut found) = (RowBatch::new(), Rows::default(), Rows::default());
        let mut entry = Vec::new();
        while cursor.next(host(ctx).txn()?, &mut batch).map_err(engine_fault)? {
            for (key, value) in batch.iter() {
                if child.key.is_none() {
                    keys.push(vec![Value::bytes(key)], ctx)?;
                    continue;
                }
                entry.clear();
                if value.is_empty() {
                    // Another open transaction has written the entry: which row it names shows when that one is decided.
                    let txn = host(ctx).txn()?;
                    let locked = txn.lock_patiently(map, key, Strength::Exclusive, &mut entry).map_err(engine_fault)?;
                    txn.unlock_last();
                    if locked != Locked::Present {
                        continue;
                    }
                } else {
                    entry.extend_from_slice(value);
                }
                keys.push(vec![Value::bytes(row_key(key, &entry))], ctx)?;
            }
        }
        for at in 0..keys.block_count() {
            for key in keys.take_block(at)? {
                host(ctx).look_up()?;
                let Some(mut row) = current(table, key_behind(&key), ctx)? else { continue };
                // The entry may have been an older one.
                let values: Vec<&Value> = columns.iter().map(|column| &row[*column]).collect();
                if self::prefix(table, child.key, &values).as_deref() == Some(prefix) {
                    row.extend(key);
                    found.push(row, ctx)?;
                }
            }
        }
        Ok(found)
    }
}

/// The row's key, behind its values.
fn key_behind(row: &[Value]) -> &[u8] {
    row.last().and_then(Value::as_string_bytes).unwrap_or_default()
}

/// Has every row of a new constraint its parent? Nobody else uses the tables.
pub fn check_rows(
    txn: &mut engine::rows::Transaction,
    child: &Table,
    key: &ForeignKey,
    parent: &Table,
    by: KeyAt,
    ctx: &mut EvalContext,
) -> Result<()> {
    each_orphan(txn, child, key, parent, by, |_| host(ctx).look_up(), |_| Err(parent_missing(child, key)))
}

/// Walks over a child's rows as the transaction sees them and tells of those without a parent, by their keys.
pub fn each_orphan(
    txn: &mut engine::rows::Transaction,
    child: &Table,
    key: &ForeignKey,
    parent: &Table,
    by: KeyAt,
    mut tick: impl FnMut(usize) -> Result<()>,
    mut orphan: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut cursor = txn.scan(child.map, Bound::Unbounded, Bound::Unbounded, false).map_err(engine_fault)?;
    let (mut batch, mut row) = (RowBatch::new(), vec![Value::Null; child.columns.len()]);
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        tick(batch.len())?;
        for (row_key, bytes) in batch.iter() {
            crate::catalog::decode::decode(child, bytes, &key.columns, &mut row)?;
            let values: Vec<&Value> = key.columns.iter().map(|column| &row[*column]).collect();
            if values.iter().any(|value| value.is_null()) {
                continue;
            }
            let found = match prefix(parent, by, &values) {
                None => false,
                Some(prefix) => is_there(txn, parent, by, &prefix)?,
            };
            if !found {
                orphan(row_key)?;
            }
        }
    }
    Ok(())
}

fn is_there(txn: &mut engine::rows::Transaction, table: &Table, by: KeyAt, prefix: &[u8]) -> Result<bool> {
    let end = after(prefix);
    let map = map_of(table, by);
    let mut cursor =
        txn.scan(map, Bound::Included(prefix), end.as_ref().map(Vec::as_slice), false).map_err(engine_fault)?;
    cursor.next(txn, &mut RowBatch::new()).map_err(engine_fault)
}
