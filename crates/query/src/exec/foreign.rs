//! Enforcement of foreign keys: checks of parents, and cascades to children.
//!
//! QU-3: an insert of a child locks its parent's key, shared, to the end of the transaction. QU-4: a change that
//! removes a parent's key locks the key exclusively, and then searches for children as they are now, those of open
//! transactions included. So one of the two waits for the other: the child finds no parent, or the deleter finds the
//! child. No orphan can commit, and gaps need no locks, since a new child needs the key that the deleter holds. QU-5:
//! foreign keys are checked row by row. A row that fails may be in order when the statement has ended: a dialect that
//! looks then leaves its values for a check behind the statement.

use std::ops::Bound;

use datum::fault::ForeignKeyParts;
use datum::{Fault, Result};
use engine::rows::{Locked, MapId, ROW_KEY_MAX, RowBatch, Strength, Transaction};

use crate::catalog::foreign_graph::{Child, ForeignKeyGraph, Member};
use crate::catalog::foreign_key::{Action, ForeignKey, KeyAt};
use crate::catalog::table::{Part, Table};
use crate::engine_fault::engine_fault;
use crate::exec::deferred::{self, Cause, CheckTime, Due, Ends};
use crate::exec::generated;
use crate::exec::host::host;
use crate::exec::row_change::{current, duplicate, replace, take_out};
use crate::exec::spill::rows::Rows;
use crate::key::{encode_part, row_key};
use crate::key_form::KeyForm;
use crate::key_form::after;
use crate::nodes::context::EvalContext;
use crate::value::Value;

/// The depth of cascades, as in InnoDB.
const DEPTH_MAX: usize = 15;

/// A running cascade: the tables that it has updated, from the statement's down.
struct Way<'f> {
    foreign_graph: &'f ForeignKeyGraph,
    depth: usize,
    updated: Vec<usize>,
}

fn parent_missing(child: &Table, key: &ForeignKey, row: &[Value], ctx: &mut EvalContext) -> Fault {
    let values = shown(child, &key.columns, row, ctx);
    Fault::ParentMissing(Box::new(ForeignKeyParts { values, ..key.parts(child) }))
}

/// Returns values of a row as messages of the statement's dialect show them.
fn shown(table: &Table, columns: &[usize], row: &[Value], ctx: &mut EvalContext) -> Box<[Box<str>]> {
    let text = host(ctx).assignment.text;
    columns.iter().map(|column| text(&row[*column], &table.columns[*column].ty, ctx).into()).collect()
}

/// Returns whether the session has switched checks off, and then records the tables that are no longer verified.
fn unchecked(foreign_graph: &ForeignKeyGraph, ctx: &mut EvalContext) -> Result<bool> {
    if host(ctx).foreign_key_checks {
        return Ok(false);
    }
    let instance = host(ctx).instance.clone();
    let root = &foreign_graph.members[0];
    if !root.parents.is_empty() {
        instance.catalog().note_unchecked(&root.table)?;
    }
    for child in &root.children {
        instance.catalog().note_unchecked(&foreign_graph.members[child.member].table)?;
    }
    Ok(true)
}

/// A search in a key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sought {
    /// Keys of the map begin with these bytes.
    start: Vec<u8>,
    /// Others may, too: the columns of the row are to begin with these.
    whole: Option<Vec<u8>>,
}

/// Returns what keys of these values are like; None: a NULL is among them, or there can be no such key.
fn sought(table: &Table, key: KeyAt, values: &[&Value]) -> Option<Sought> {
    let (parts, form) = (table.key_parts(key), table.key_form(key));
    let start = columns(table, parts, values.iter().copied())?;
    Some(narrowed(start, form, parts.len() == values.len())).filter(|sought| sought.start.len() <= ROW_KEY_MAX)
}

fn columns<'v>(table: &Table, parts: &[Part], values: impl Iterator<Item = &'v Value>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (part, value) in parts.iter().zip(values) {
        if value.is_null() {
            return None;
        }
        encode_part(part, value, &table.columns[part.column].ty, &mut out);
    }
    Some(out)
}

/// Encoded columns as the map has them: all of a key, or its first ones (QU-28).
fn narrowed(mut start: Vec<u8>, form: KeyForm, is_all: bool) -> Sought {
    if is_all {
        form.shorten(&mut start);
        return Sought { start, whole: None };
    }
    let whole = (start.len() > form.ordered_bytes()).then(|| start.clone());
    start.truncate(form.ordered_bytes());
    Sought { start, whole }
}

impl Sought {
    /// Returns whether the row has the columns that are searched for.
    fn is_in(&self, table: &Table, key: KeyAt, count: usize, bytes: &[u8]) -> Result<bool> {
        let Some(whole) = &self.whole else { return Ok(true) };
        let parts = &table.key_parts(key)[..count];
        let read: Vec<usize> = parts.iter().map(|part| part.column).collect();
        let mut row = vec![Value::Null; table.columns.len()];
        crate::catalog::decode::decode(table, bytes, &read, &mut row)?;
        Ok(columns(table, parts, read.iter().map(|column| &row[*column])).as_ref() == Some(whole))
    }
}

fn map_of(table: &Table, key: KeyAt) -> MapId {
    key.map_or(table.map, |at| table.indexes[at].map)
}

/// Locks the first row or entry with this prefix. Returns false if there is none.
fn lock_first(table: &Table, key: KeyAt, columns: usize, sought: &Sought, ctx: &mut EvalContext) -> Result<bool> {
    let prefix = &sought.start[..];
    let map = map_of(table, key);
    let is_unique = key.is_none_or(|at| table.indexes[at].unique);
    let strength = host(ctx).key_strength();
    let txn = host(ctx).txn()?;
    let mut bytes = Vec::new();
    if is_unique && table.key_parts(key).len() == columns {
        let is_there = txn.lock_patiently(map, prefix, strength, &mut bytes).map_err(engine_fault)? == Locked::Present;
        if !is_there {
            // Under a snapshot the parent may only seem to be gone.
            txn.check_seen(map, prefix).map_err(engine_fault)?;
        }
        return Ok(is_there);
    }
    let end = after(prefix);
    let mut cursor =
        txn.scan_current(map, Bound::Included(prefix), end.as_ref().map(Vec::as_slice), false).map_err(engine_fault)?;
    let mut batch = RowBatch::new();
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        for (entry, _) in batch.iter() {
            bytes.clear();
            if txn.lock_patiently(map, entry, strength, &mut bytes).map_err(engine_fault)? != Locked::Present {
                continue;
            }
            if sought.whole.is_none() || is_of_row(txn, table, key, (entry, &bytes), (columns, sought), strength)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Locks the row of a key that begins as others do, too. False: it is one of those.
fn is_of_row(
    txn: &mut Transaction,
    table: &Table,
    key: KeyAt,
    (entry, value): (&[u8], &[u8]),
    (columns, sought): (usize, &Sought),
    strength: Strength,
) -> Result<bool> {
    if key.is_none() {
        return sought.is_in(table, key, columns, value);
    }
    let mut bytes = Vec::new();
    let locked = txn.lock_patiently(table.map, row_key(entry, value), strength, &mut bytes);
    if locked.map_err(engine_fault)? == Locked::Present && sought.is_in(table, key, columns, &bytes)? {
        return Ok(true);
    }
    txn.unlock_last();
    Ok(false)
}

/// Locks the parent of one foreign key of a row (QU-3). Returns false if there is none.
fn has_parent(member: &Member, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    let key = &member.table.foreign_keys[at];
    let values: Vec<&Value> = key.columns.iter().map(|column| &row[*column]).collect();
    if values.iter().any(|value| value.is_null()) {
        return Ok(true);
    }
    let Some((parent, by)) = &member.parents[at].found else { return Ok(false) };
    let Some(sought) = sought(parent, *by, &values) else { return Ok(false) };
    lock_first(parent, *by, values.len(), &sought, ctx)
}

/// Leaves the values of a row that is written for a later check.
fn leave_child(member: &Member, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    let table = &member.table;
    let key = &table.foreign_keys[at];
    let values = key.columns.iter().map(|column| row[*column].clone()).collect();
    // Every child has an index over its columns (QU-6).
    let by = table.key_over(&key.columns).unwrap_or_default();
    let parent = member.parents[at].found.clone();
    deferred::leave(Ends { child: table.clone(), foreign: at, by, parent }, values, Cause::Child, ctx)
}

/// Checks values that a change has left: a row of the parent has them, or no row of the child does (QU-49). RESTRICT asks of the child alone.
fn check_values(ends: &Ends, values: &[Value], cause: Cause, ctx: &mut EvalContext) -> Result<()> {
    let (child, key) = (&ends.child, ends.key());
    let refs: Vec<&Value> = values.iter().collect();
    if cause != Cause::Restricted
        && let Some((parent, by)) = &ends.parent
        && let Some(sought) = sought(parent, *by, &refs)
        && lock_first(parent, *by, refs.len(), &sought, ctx)?
    {
        return Ok(());
    }
    let Some(sought) = sought(child, ends.by, &refs) else { return Ok(()) };
    if !lock_first(child, ends.by, refs.len(), &sought, ctx)? {
        return Ok(());
    }
    let text = host(ctx).assignment.text;
    let shown = key.columns.iter().zip(values);
    let values = shown.map(|(column, value)| text(value, &child.columns[*column].ty, ctx).into()).collect();
    let parts = Box::new(ForeignKeyParts { values, ..key.parts(child) });
    Err(match cause {
        Cause::Child => Fault::ParentMissing(parts),
        Cause::Parent | Cause::Restricted => Fault::ParentReferenced(parts),
    })
}

/// Checks what is due of the constraints whose checks wait.
pub fn check_waiting(time: CheckTime, ctx: &mut EvalContext) -> Result<()> {
    deferred::each_due(time, ctx, |due, values, cause, ctx| match due {
        Due::Foreign(ends) => check_values(ends, values, cause, ctx),
        Due::Unique(table, at) => check_key(table, *at, values, ctx),
    })
}

/// Checks values that a row got in a deferrable unique key: no two rows have them. Waits for other transactions that have changed such a row (QU-62).
fn check_key(table: &Table, at: usize, values: &[Value], ctx: &mut EvalContext) -> Result<()> {
    let index = &table.indexes[at];
    let mut prefix = Vec::new();
    for (part, value) in index.parts.iter().zip(values) {
        encode_part(part, value, &table.columns[part.column].ty, &mut prefix);
    }
    index.form.shorten(&mut prefix);
    let end = after(&prefix);
    let strength = host(ctx).key_strength();
    let txn = host(ctx).txn()?;
    let mut cursor = txn
        .scan_current(index.map, Bound::Included(&prefix), end.as_ref().map(Vec::as_slice), false)
        .map_err(engine_fault)?;
    let (mut batch, mut bytes, mut is_taken) = (RowBatch::new(), Vec::new(), false);
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        for (entry, _) in batch.iter() {
            bytes.clear();
            let locked = txn.lock_patiently(index.map, entry, strength, &mut bytes).map_err(engine_fault)?;
            if locked == Locked::Present && std::mem::replace(&mut is_taken, true) {
                let mut row = vec![Value::Null; table.columns.len()];
                index.parts.iter().zip(values).for_each(|(part, value)| row[part.column] = value.clone());
                return Err(duplicate(table, Some(at), &row, ctx));
            }
        }
    }
    Ok(())
}

/// Foreign keys whose parent is missing, to be checked again after the row itself is inserted.
#[derive(Default)]
pub struct Missing(Vec<usize>);

/// Locks the parents of a row that is inserted, or updated from `old` (QU-3). Skips the foreign key `but`.
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
        if stays || Some(at) == but {
            continue;
        }
        if host(ctx).deferring.defers(key) {
            leave_child(member, at, new, ctx)?;
        } else if !has_parent(member, at, new, ctx)? {
            missing.0.push(at);
        }
    }
    Ok(missing)
}

/// Checks the missing parents again: a row may be its own parent, or get one by the rest of the statement (QU-5).
fn check_missing(member: &Member, missing: &Missing, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    for at in &missing.0 {
        let key = &member.table.foreign_keys[*at];
        if key.refers_to(&member.table.schema, &member.table.name) && has_parent(member, *at, row, ctx)? {
            continue;
        }
        if !host(ctx).deferring.is_served {
            return Err(parent_missing(&member.table, key, row, ctx));
        }
        leave_child(member, *at, row, ctx)?;
    }
    Ok(())
}

/// Called before a row is inserted.
pub fn before_insert(foreign_graph: Option<&ForeignKeyGraph>, row: &[Value], ctx: &mut EvalContext) -> Result<Missing> {
    match foreign_graph {
        Some(foreign_graph) if !foreign_graph.members[0].parents.is_empty() && !unchecked(foreign_graph, ctx)? => {
            lock_parents(&foreign_graph.members[0], None, row, None, ctx)
        }
        _ => Ok(Missing::default()),
    }
}

/// Called after a row was inserted.
pub fn after_insert(
    foreign_graph: Option<&ForeignKeyGraph>,
    missing: &Missing,
    row: &[Value],
    ctx: &mut EvalContext,
) -> Result<()> {
    foreign_graph.map_or(Ok(()), |foreign_graph| check_missing(&foreign_graph.members[0], missing, row, ctx))
}

/// Called after a row was deleted.
pub fn after_delete(foreign_graph: Option<&ForeignKeyGraph>, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    match foreign_graph {
        Some(foreign_graph) if !unchecked(foreign_graph, ctx)? => {
            Way { foreign_graph, depth: 0, updated: Vec::new() }.deleted(0, row, ctx)
        }
        _ => Ok(()),
    }
}

/// Replaces the old row by the new one, with all cascades.
pub fn replace_row(
    foreign_graph: Option<&ForeignKeyGraph>,
    table: &Table,
    row_key: &[u8],
    (old, new): (&[Value], &[Value]),
    ctx: &mut EvalContext,
) -> Result<()> {
    match foreign_graph {
        Some(foreign_graph) if !unchecked(foreign_graph, ctx)? => {
            Way { foreign_graph, depth: 0, updated: Vec::new() }.update(0, row_key, (old, new), None, ctx)
        }
        _ => replace(table, row_key, old, new, ctx),
    }
}

impl Way<'_> {
    /// Processes the children of a deleted row (QU-4).
    fn deleted(&mut self, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let foreign_graph = self.foreign_graph;
        for child in &foreign_graph.members[at].children {
            let Some(sought) = self.key_of(child, row) else { continue };
            let member = &foreign_graph.members[child.member];
            let key = &member.table.foreign_keys[child.foreign];
            match key.on_delete {
                Action::Nothing | Action::Restrict => {
                    self.refuse(at, child, &sought, (row, key.on_delete), ctx)?;
                }
                Action::Cascade => {
                    let mut found = self.children(child, &sought, Strength::Exclusive, ctx)?;
                    for at in 0..found.block_count() {
                        for row in found.take_block(at)? {
                            if take_out(&member.table, key_behind(&row), &row, ctx)? {
                                self.deeper(ctx, |way, ctx| way.deleted(child.member, &row, ctx))?;
                            }
                        }
                    }
                }
                Action::SetNull => self.rewrite(child, &sought, None, ctx)?,
            }
        }
        Ok(())
    }

    /// Updates a row. `but` is the foreign key through which a cascade arrived.
    fn update(
        &mut self,
        at: usize,
        row_key: &[u8],
        (old, new): (&[Value], &[Value]),
        but: Option<usize>,
        ctx: &mut EvalContext,
    ) -> Result<()> {
        let member = &self.foreign_graph.members[at];
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
        check_missing(member, &missing, new, ctx)
    }

    /// Processes the children of an updated row (QU-4).
    fn updated_row(&mut self, at: usize, old: &[Value], new: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let foreign_graph = self.foreign_graph;
        for child in &foreign_graph.members[at].children {
            if child.columns.iter().all(|column| old[*column] == new[*column]) {
                continue;
            }
            let Some(sought) = self.key_of(child, old) else { continue };
            let key = &foreign_graph.members[child.member].table.foreign_keys[child.foreign];
            // As in InnoDB, a cascade stops at a table that it has already updated.
            let acts = key.on_update.acts() && !self.updated.contains(&child.member);
            if acts {
                self.rewrite(child, &sought, Some(new).filter(|_| key.on_update == Action::Cascade), ctx)?;
            } else if self.key_of(child, new).as_ref() != Some(&sought) {
                self.refuse(at, child, &sought, (old, key.on_update), ctx)?;
            }
        }
        Ok(())
    }

    fn key_of(&self, child: &Child, row: &[Value]) -> Option<Sought> {
        let values: Vec<&Value> = child.columns.iter().map(|column| &row[*column]).collect();
        sought(&self.foreign_graph.members[child.member].table, child.key, &values)
    }

    /// Returns an error if a row of the member has children, or leaves the row's key for a later check: of a deferred foreign key, or because the rest of the
    /// statement may change the children (QU-5).
    fn refuse(
        &self,
        at: usize,
        child: &Child,
        sought: &Sought,
        (row, action): (&[Value], Action),
        ctx: &mut EvalContext,
    ) -> Result<()> {
        let table = &self.foreign_graph.members[child.member].table;
        let key = &table.foreign_keys[child.foreign];
        let deferring = &host(ctx).deferring;
        let (is_served, is_deferred) = (deferring.is_served, deferring.defers(key));
        let parent = &self.foreign_graph.members[at].table;
        let cause = if action == Action::Restrict { Cause::Restricted } else { Cause::Parent };
        if !(is_deferred && cause == Cause::Parent) {
            if !lock_first(table, child.key, key.columns.len(), sought, ctx)? {
                return Ok(());
            }
            // RESTRICT never waits for the commit.
            if !is_served || is_deferred {
                let values = shown(parent, &child.columns, row, ctx);
                return Err(Fault::ParentReferenced(Box::new(ForeignKeyParts { values, ..key.parts(table) })));
            }
        }
        let parent = key.fit(table, parent).ok().map(|by| (parent.clone(), by));
        let values = child.columns.iter().map(|column| row[*column].clone()).collect();
        let ends = Ends { child: table.clone(), foreign: child.foreign, by: child.key, parent };
        deferred::leave(ends, values, cause, ctx)
    }

    /// Sets the children of a row to NULL or to the parent's new values.
    fn rewrite(
        &mut self,
        child: &Child,
        sought: &Sought,
        parent: Option<&[Value]>,
        ctx: &mut EvalContext,
    ) -> Result<()> {
        let table = self.foreign_graph.members[child.member].table.clone();
        let key = &table.foreign_keys[child.foreign];
        let mut found = self.children(child, sought, host(ctx).change_strength(), ctx)?;
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

    /// Finds and locks the current rows that refer to a key, before the first is changed. Each row's key follows its
    /// values.
    fn children(&self, child: &Child, sought: &Sought, strength: Strength, ctx: &mut EvalContext) -> Result<Rows> {
        let prefix = &sought.start[..];
        let table = &self.foreign_graph.members[child.member].table;
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
                    // Another open transaction has written the entry; its row is known when that transaction is
                    // decided.
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
                let Some(mut row) = current(table, key_behind(&key), strength, ctx)? else { continue };
                // The entry may be of an older version.
                let values: Vec<&Value> = columns.iter().map(|column| &row[*column]).collect();
                if self::sought(table, child.key, &values).as_ref() == Some(sought) {
                    row.extend(key);
                    found.push(row, ctx)?;
                }
            }
        }
        Ok(found)
    }
}

/// Returns the row's key, which follows its values.
fn key_behind(row: &[Value]) -> &[u8] {
    row.last().and_then(Value::as_string_bytes).unwrap_or_default()
}

/// Checks that each row of a new constraint has its parent. The caller holds the tables exclusively.
pub fn check_rows(
    txn: &mut Transaction,
    child: &Table,
    key: &ForeignKey,
    parent: &Table,
    by: KeyAt,
    ctx: &mut EvalContext,
) -> Result<()> {
    let mut found = None;
    let checked = each_orphan(
        txn,
        child,
        key,
        parent,
        by,
        |_| host(ctx).look_up(),
        |_, row| {
            found = Some(row.to_vec());
            Err(Fault::ParentMissing(Box::new(key.parts(child))))
        },
    );
    match found {
        Some(row) => Err(parent_missing(child, key, &row, ctx)),
        None => checked,
    }
}

/// Calls `orphan` with the key of every row without a parent, as the transaction sees them, and with the row, of which the columns of the foreign key are read.
pub fn each_orphan(
    txn: &mut Transaction,
    child: &Table,
    key: &ForeignKey,
    parent: &Table,
    by: KeyAt,
    mut tick: impl FnMut(usize) -> Result<()>,
    mut orphan: impl FnMut(&[u8], &[Value]) -> Result<()>,
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
            let found = match sought(parent, by, &values) {
                None => false,
                Some(sought) => is_there(txn, parent, by, values.len(), &sought)?,
            };
            if !found {
                orphan(row_key, &row)?;
            }
        }
    }
    Ok(())
}

fn is_there(txn: &mut Transaction, table: &Table, by: KeyAt, columns: usize, sought: &Sought) -> Result<bool> {
    let (map, from, end) = (map_of(table, by), &sought.start[..], after(&sought.start));
    let mut cursor =
        txn.scan(map, Bound::Included(from), end.as_ref().map(Vec::as_slice), false).map_err(engine_fault)?;
    let (mut batch, mut bytes) = (RowBatch::new(), Vec::new());
    while cursor.next(txn, &mut batch).map_err(engine_fault)? {
        for (key, value) in batch.iter() {
            let is_found = match (&sought.whole, by) {
                (None, _) => true,
                (Some(_), None) => sought.is_in(table, by, columns, value)?,
                (Some(_), Some(_)) => {
                    bytes.clear();
                    txn.get(table.map, row_key(key, value), &mut bytes).map_err(engine_fault)?
                        && sought.is_in(table, by, columns, &bytes)?
                }
            };
            if is_found {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
