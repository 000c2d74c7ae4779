//! Execution of INSERT, UPDATE, DELETE and REPLACE, with all indexes of the changed tables.
//!
//! QU-1: a row and its entries in all indexes change in one transaction, and a conflict undoes the part that was done.
//! QU-2: UPDATE and DELETE find and lock all rows before they change the first, so a statement never meets its own
//! changes (the Halloween problem). The found rows spill to a file where memory is short.

use std::sync::Arc;

use datum::fault::ColumnName;
use datum::{Fault, Result};
use engine::rows::Strength;

use crate::batch::Row;
use crate::catalog::foreign_graph::ForeignKeyGraph;
use crate::catalog::table::Table;
use crate::engine_fault::engine_fault;
use crate::exec::collection_rows;
use crate::exec::host::host;
use crate::exec::row_change::{current, duplicate, put, take_out};
use crate::exec::spill::keys::Keys;
use crate::exec::spill::rows::Rows;
use crate::exec::{effects, foreign, gather, generated, keys};
use crate::key;
use crate::nodes::assignment::Place;
use crate::nodes::change::{Delete, Insert, OnConflict, Returning, Rules, Target, Update, Values};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::Node;
use crate::value::Value;

/// The result of a statement that changes rows.
#[derive(Debug, Default)]
pub struct Changed {
    /// The rows of RETURNING.
    pub returned: Rows,
    pub affected: u64,
    /// The first AUTO_INCREMENT number generated for an inserted row.
    pub last_insert_id: u64,
    /// The last explicit number of an inserted row, or the number of an existing row that was updated instead.
    pub given_id: u64,
    pub info: String,
}

/// The AUTO_INCREMENT number of a row to insert.
#[derive(Clone, Copy)]
enum Number {
    None,
    Made(u64),
    Given(u64),
}

impl Changed {
    /// Notes that a row with this number was inserted.
    fn note(&mut self, number: Number) {
        match number {
            Number::Made(made) if self.last_insert_id == 0 => self.last_insert_id = made,
            Number::Given(given) => self.given_id = given,
            _ => {}
        }
    }
}

/// The numbers that are reserved ahead of use, and that a crash may skip.
const AHEAD: u64 = 64;

/// Returns the next AUTO_INCREMENT number, or raises the counter above a given one.
fn auto_number(table: &Table, given: Option<u64>, ctx: &mut EvalContext) -> Result<u64> {
    let instance = host(ctx).instance.clone();
    let mut auto = table.live.auto.lock();
    if auto.next == 0 {
        auto.reserved = instance.catalog().auto_reserved(table.id)?;
        auto.next = auto.reserved.max(1);
    }
    let number = match given {
        Some(given) => given,
        None => in_series(auto.next, ctx.auto_step).unwrap_or(u64::MAX),
    };
    if number >= auto.next {
        auto.next = number.checked_add(1).ok_or(Fault::SequenceExhausted)?;
    }
    if auto.next > auto.reserved {
        auto.reserved = auto.next.saturating_add(AHEAD);
        instance.catalog().reserve_auto(table.id, auto.reserved)?;
    }
    Ok(number)
}

/// Returns the first number from `next` on that is `offset` plus a multiple of `increment`. An offset above the
/// increment is ignored.
fn in_series(next: u64, (increment, offset): (u64, u64)) -> Option<u64> {
    if increment <= 1 {
        return Some(next);
    }
    let offset = if offset > increment { 1 } else { offset };
    match next.checked_sub(offset) {
        None => Some(offset),
        Some(beyond) => beyond.div_ceil(increment).checked_mul(increment)?.checked_add(offset),
    }
}

/// Returns the next AUTO_INCREMENT number, or the one that the statement took before it was suspended.
fn next_number(table: &Table, ctx: &mut EvalContext) -> Result<u64> {
    if let Some(number) = host(ctx).numbers.again() {
        return Ok(number);
    }
    let number = auto_number(table, None, ctx)?;
    host(ctx).numbers.note(number);
    Ok(number)
}

/// Checks the constraints of a complete row.
fn check(rules: &Rules, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    let is_late = host(ctx).assignment.checks_rows;
    let checked = check_nulls(&rules.table, row, ctx).and_then(|()| check_conditions(rules, row, ctx));
    let checked = if is_late { checked } else { checked.and_then(|()| check_options(rules, row, ctx)) };
    with_row(checked, rules, row, ctx)
}

/// Checks the conditions of views after the row has been put, where the dialect checks rows so.
fn check_late(rules: &Rules, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    if rules.options.is_empty() || !host(ctx).assignment.checks_rows {
        return Ok(());
    }
    let checked = check_options(rules, row, ctx);
    with_row(checked, rules, row, ctx)
}

/// Leaves the row that has failed to the dialect.
fn with_row(checked: Result<()>, rules: &Rules, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    if checked.is_err() && host(ctx).assignment.checks_rows {
        host(ctx).failing_row = Some((rules.table.clone(), row.to_vec()));
    }
    checked
}

fn check_nulls(table: &Table, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    if !host(ctx).assignment.checks_rows {
        return Ok(());
    }
    let auto = table.auto_column();
    for (at, column) in table.columns.iter().enumerate() {
        // The number of an AUTO_INCREMENT column comes later.
        if !column.ty.nullable && row[at].is_null() && Some(at) != auto {
            return Err(Fault::NotNull { column: column.name.as_str().into() });
        }
    }
    Ok(())
}

fn check_conditions(rules: &Rules, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    for (name, expr) in &rules.checks {
        let verdict = expr.eval(row, ctx)?;
        if !verdict.is_null() && !expr.holds(row, ctx)? {
            return Err(Fault::CheckViolated { constraint: name.as_str().into() });
        }
    }
    Ok(())
}

fn check_options(rules: &Rules, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    for (name, expr) in &rules.options {
        // Unlike a CHECK constraint, the option rejects NULL.
        if !expr.holds(row, ctx)? {
            return Err(Fault::ViewCheckFailed { view: name.as_str().into() });
        }
    }
    Ok(())
}

/// Returns whether IGNORE turns the error into a warning and skips the row.
fn is_of_one_row(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::DuplicateKey(_)
            | Fault::ParentMissing(_)
            | Fault::ParentReferenced(_)
            | Fault::CheckViolated { .. }
            | Fault::ViewCheckFailed { .. }
    )
}

/// Changes one row. Returns None if IGNORE skipped it.
fn or_ignored<T>(ctx: &mut EvalContext, change: impl FnOnce(&mut EvalContext) -> Result<T>) -> Result<Option<T>> {
    let before = host(ctx).txn()?.savepoint();
    match change(ctx) {
        Err(error) if ctx.ignore && is_of_one_row(&error) => {
            host(ctx).txn()?.rollback_to(before).map_err(engine_fault)?;
            ctx.warn(error);
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Returns a given value in the column's stored form.
fn stored(rules: &Rules, column: usize, value: Value, row: u64, ctx: &mut EvalContext) -> Result<Value> {
    let (definition, assignment) = (&rules.table.columns[column], host(ctx).assignment);
    if value.is_null() && !definition.ty.nullable && ctx.ignore {
        ctx.warn(Fault::NotNull { column: definition.name.as_str().into() });
        return Ok((assignment.implicit_default)(&definition.ty));
    }
    if value.is_null() && assignment.checks_rows {
        return Ok(value);
    }
    let value = (assignment.store)(value, &definition.ty, Place { column: &definition.name, row }, ctx)?;
    if let Some(of_keys) = rules.table.keys() {
        keys::check(of_keys, column, &value, row)?;
    }
    Ok(value)
}

/// Returns whether a given number stands for the next one.
fn asks_for_number(value: &Value, ctx: &EvalContext) -> bool {
    match value {
        Value::Null => true,
        Value::Int(0) | Value::UInt(0) => ctx.zero_takes_number,
        _ => false,
    }
}

/// Counts of the rows processed so far.
#[derive(Debug, Default)]
pub struct Tally {
    pub changed: Changed,
    pub records: u64,
    pub duplicates: u64,
    /// The number generated for a row that was not inserted; the next row takes it.
    spare: Option<u64>,
    /// Records how many numbers were made, and how many rows were to have one: MySQL takes a number for each row of VALUES, used or not.
    made: usize,
    wanting: usize,
}

pub struct Inserting<'i> {
    plan: &'i Insert,
    auto: Option<usize>,
    /// The columns that the current row of the query has behind the values of the targets, for ON DUPLICATE KEY UPDATE.
    beside: Row,
    /// Values of the arbiter's keys in rows that the statement has inserted or updated.
    touched: Keys,
    pub tally: Tally,
}

/// Inserts the rows of a plan, after those already counted in the tally.
pub fn insert(plan: &Insert, tally: Tally, ctx: &mut EvalContext) -> Result<Tally> {
    let mut inserting = Inserting::new(plan, tally);
    ctx.ignore = plan.ignore;
    match &plan.values {
        Values::Rows(rows) => {
            for exprs in rows {
                host(ctx).look_up()?;
                inserting.row(exprs.iter().map(Option::as_ref), None, ctx)?;
            }
        }
        Values::Query(node) => {
            // The rows are materialised first, since the query may read the table itself.
            let mut rows = found(node, ctx)?;
            for at in 0..rows.block_count() {
                for row in rows.take_block(at)? {
                    host(ctx).look_up()?;
                    inserting.row(std::iter::empty(), Some(row), ctx)?;
                }
            }
        }
    }
    Ok(inserting.tally)
}

/// Returns the result for the client.
pub fn inserted(plan: &Insert, tally: Tally, ctx: &mut EvalContext) -> Result<Changed> {
    let Tally { mut changed, records, duplicates, spare: _, made, wanting } = tally;
    if made > 0 && matches!(plan.values, Values::Rows(_)) {
        (made..wanting).try_for_each(|_| next_number(&plan.rules.table, ctx).map(drop))?;
    }
    if records > 1 || matches!(plan.values, Values::Query(_)) {
        changed.info = format!("Records: {records}  Duplicates: {duplicates}  Warnings: {}", ctx.warnings.count());
    }
    Ok(changed)
}

impl<'i> Inserting<'i> {
    pub fn new(plan: &'i Insert, tally: Tally) -> Inserting<'i> {
        Inserting { plan, auto: plan.rules.table.auto_column(), beside: Row::new(), touched: Keys::default(), tally }
    }

    /// Returns one row from the expressions or values of the targets.
    pub(super) fn row<'e>(
        &mut self,
        exprs: impl Iterator<Item = Option<&'e Expr>>,
        values: Option<Row>,
        ctx: &mut EvalContext,
    ) -> Result<()> {
        self.tally.records += 1;
        let rules = &self.plan.rules;
        let table = &rules.table;
        let count = table.columns.len();
        let mut row: Row = vec![Value::Null; count];
        let mut given = vec![false; count];
        match values {
            Some(mut values) => {
                self.beside = values.split_off(self.plan.targets.len().min(values.len()));
                for (value, column) in values.into_iter().zip(&self.plan.targets) {
                    given[*column] = true;
                    row[*column] = self.take(*column, value, ctx)?;
                }
            }
            None => {
                for (expr, column) in exprs.zip(&self.plan.targets) {
                    let Some(expr) = expr else { continue };
                    given[*column] = true;
                    let value = expr.eval(&row, ctx)?;
                    row[*column] = self.take(*column, value, ctx)?;
                }
            }
        }
        for column in (0..count).filter(|column| !given[*column]) {
            row[column] = self.default(column, &row, ctx)?;
        }
        self.finish(row, ctx)
    }

    /// Returns the default of a column without a given value.
    pub fn default(&self, column: usize, row: &Row, ctx: &mut EvalContext) -> Result<Value> {
        let rules = &self.plan.rules;
        match &rules.defaults[column] {
            // Filled in later.
            _ if Some(column) == self.auto || rules.table.columns[column].generated.is_some() => Ok(Value::Null),
            Some(Expr::Literal(value, _)) => Ok(value.clone()),
            Some(expr) => {
                let value = expr.eval(row, ctx)?;
                stored(rules, column, value, self.tally.records, ctx)
            }
            None if host(ctx).assignment.checks_rows => Ok(Value::Null),
            None => {
                let column = &rules.table.columns[column];
                ctx.complain(Fault::NoDefault { column: column.name.as_str().into() })?;
                Ok((host(ctx).assignment.implicit_default)(&column.ty))
            }
        }
    }

    /// Assigns the AUTO_INCREMENT number, checks the constraints and inserts the row.
    pub fn finish(&mut self, mut row: Row, ctx: &mut EvalContext) -> Result<()> {
        let rules = &self.plan.rules;
        let table = &rules.table;
        for column in &self.plan.disregarded {
            let column = table.columns[*column].name.as_str().into();
            ctx.warn(Fault::GeneratedColumnGiven(Box::new(ColumnName { table: table.name.as_str().into(), column })));
        }
        generated::compute(table, &mut row, None, self.tally.records, ctx)?;
        if or_ignored(ctx, |ctx| check(rules, &row, ctx))?.is_none() {
            self.tally.duplicates += 1;
            self.tally.wanting += usize::from(self.auto.is_some_and(|column| asks_for_number(&row[column], ctx)));
            return Ok(());
        }
        // Constraints cannot read the number, so a row that IGNORE skips takes none.
        let number = match self.auto {
            Some(column) => self.number(column, &mut row, ctx)?,
            None => Number::None,
        };
        self.put(row, number, ctx)
    }

    pub fn take(&self, column: usize, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        if Some(column) == self.auto && value.is_null() {
            return Ok(value);
        }
        stored(&self.plan.rules, column, value, self.tally.records, ctx)
    }

    fn number(&mut self, column: usize, row: &mut Row, ctx: &mut EvalContext) -> Result<Number> {
        let table = &self.plan.rules.table;
        if asks_for_number(&row[column], ctx) {
            let number = match self.tally.spare.take() {
                Some(number) => number,
                None => {
                    self.tally.made += 1;
                    next_number(table, ctx)?
                }
            };
            self.tally.wanting += 1;
            let value = stored(&self.plan.rules, column, Value::UInt(number), self.tally.records, ctx)?;
            row[column] = value;
            return Ok(Number::Made(number));
        }
        let given = match &row[column] {
            Value::Int(number @ 1..) => *number as u64,
            Value::UInt(number @ 1..) => *number,
            _ => return Ok(Number::None),
        };
        auto_number(table, Some(given), ctx)?;
        Ok(Number::Given(given))
    }

    /// Keeps an unused number for the next row.
    fn give_back(&mut self, number: Number) {
        if let Number::Made(number) = number {
            self.tally.spare = Some(number);
        }
    }

    fn put(&mut self, mut row: Row, number: Number, ctx: &mut EvalContext) -> Result<()> {
        let rules = &self.plan.rules;
        if let Some(of_keys) = rules.table.keys() {
            collection_rows::complete(of_keys, &mut row, ctx)?;
        }
        let (table, foreign_graph) = (&rules.table, rules.foreign_graph.as_deref());
        let missing = foreign::before_insert(foreign_graph, &row, ctx)?;
        loop {
            let before = host(ctx).txn()?.savepoint();
            let Some(conflict) = put(table, &row, ctx)? else {
                if let Some(of_keys) = table.keys() {
                    collection_rows::show_position(of_keys, &mut row);
                }
                match foreign::after_insert(foreign_graph, &missing, &row, ctx) {
                    Err(error) if ctx.ignore && is_of_one_row(&error) => {
                        host(ctx).txn()?.rollback_to(before).map_err(engine_fault)?;
                        table.live.add_rows(-1);
                        self.tally.duplicates += 1;
                        self.give_back(number);
                        ctx.warn(error);
                    }
                    done => {
                        done?;
                        check_late(rules, &row, ctx)?;
                        self.tally.changed.affected += 1;
                        self.tally.changed.note(number);
                        self.touch(&row, ctx)?;
                        self.answer(&row, ctx)?;
                    }
                }
                return Ok(());
            };
            let arbiter = self.plan.arbiter.as_ref();
            if arbiter.is_some_and(|arbiter| !arbiter.keys.contains(&conflict.index)) {
                return Err(duplicate(table, conflict.index, &row, ctx));
            }
            match self.plan.on_conflict {
                OnConflict::Fail => return Err(duplicate(table, conflict.index, &row, ctx)),
                OnConflict::Ignore if arbiter.is_some() => {
                    check_seen(table, &conflict.row_key, ctx)?;
                    self.give_back(number);
                    return Ok(());
                }
                OnConflict::Ignore => {
                    self.tally.duplicates += 1;
                    self.give_back(number);
                    let warning = duplicate(table, conflict.index, &row, ctx);
                    ctx.warn(warning);
                    return Ok(());
                }
                OnConflict::Replace => {
                    if let Some(old) = current(table, &conflict.row_key, Strength::Exclusive, ctx)? {
                        let in_place =
                            conflict.index == last_unique(table) && !is_parent(foreign_graph) && !table.is_keyspace();
                        if in_place && old == row {
                            self.tally.changed.affected += 1;
                            self.tally.changed.note(number);
                            return self.answer(&row, ctx);
                        }
                        self.tally.duplicates += 1;
                        if take_out(table, &conflict.row_key, &old, ctx)? {
                            foreign::after_delete(foreign_graph, &old, ctx)?;
                        }
                        self.tally.changed.affected += 1;
                    }
                }
                OnConflict::Update => {
                    self.check_untouched(conflict.index, &row)?;
                    let strength = host(ctx).change_strength();
                    if let Some(old) = current(table, &conflict.row_key, strength, ctx)? {
                        if arbiter.is_some() {
                            check_seen(table, &conflict.row_key, ctx)?;
                        }
                        self.tally.duplicates += 1;
                        self.give_back(number);
                        return or_ignored(ctx, |ctx| self.update(&conflict.row_key, old, row, ctx)).map(drop);
                    }
                }
            }
        }
    }

    fn update(&mut self, row_key: &[u8], old: Row, new: Row, ctx: &mut EvalContext) -> Result<()> {
        let rules = &self.plan.rules;
        let (count, arbiter) = (old.len(), self.plan.arbiter.as_ref());
        let mut wide: Row = old.iter().cloned().chain(new).chain(self.beside.iter().cloned()).collect();
        if let Some(condition) = arbiter.and_then(|arbiter| arbiter.condition.as_ref())
            && !condition.holds(&wide, ctx)?
        {
            return Ok(());
        }
        let before = arbiter.map(|_| wide.clone());
        for (column, expr) in &self.plan.updates {
            let value = expr.eval(before.as_ref().unwrap_or(&wide), ctx)?;
            wide[*column] = stored(rules, *column, value, self.tally.records, ctx)?;
        }
        wide.truncate(count);
        if arbiter.is_none() && wide == old {
            self.tally.changed.affected += u64::from(ctx.counts_found);
            return self.answer(&wide, ctx);
        }
        let sets: Vec<usize> = self.plan.updates.iter().map(|(column, _)| *column).collect();
        clocks(rules, &sets, &mut wide, ctx)?;
        generated::compute(&rules.table, &mut wide, Some(&old), self.tally.records, ctx)?;
        check(rules, &wide, ctx)?;
        foreign::replace_row(rules.foreign_graph.as_deref(), &rules.table, row_key, (&old, &wide), ctx)?;
        check_late(rules, &wide, ctx)?;
        if let Some(column) = self.auto {
            // The client receives the number of an existing row; LAST_INSERT_ID() does not return it.
            match &wide[column] {
                Value::Int(number) => self.tally.changed.given_id = *number as u64,
                Value::UInt(number) => self.tally.changed.given_id = *number,
                _ => {}
            }
        }
        self.tally.changed.affected += if arbiter.is_some() { 1 } else { 2 };
        self.touch(&wide, ctx)?;
        self.answer(&wide, ctx)
    }

    /// Notes the values of the arbiter's keys in a row that was inserted or updated.
    fn touch(&mut self, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let Some(arbiter) = self.plan.arbiter.as_ref() else { return Ok(()) };
        if self.plan.on_conflict != OnConflict::Update {
            return Ok(());
        }
        let indexes = &self.plan.rules.table.indexes;
        for index in arbiter.keys.iter().filter(|key| key.is_none_or(|at| indexes[at].has_entry(row))) {
            let key = arbiter_key(&self.plan.rules.table, *index, row);
            self.touched.insert(&key, ctx)?;
        }
        Ok(())
    }

    /// Fails if the statement has inserted or updated the row that this one conflicts with.
    fn check_untouched(&self, index: Option<usize>, row: &[Value]) -> Result<()> {
        let Some(arbiter) = self.plan.arbiter.as_ref() else { return Ok(()) };
        match self.touched.contains(&arbiter_key(&self.plan.rules.table, index, row))? {
            true => Err((arbiter.affects_twice)()),
            false => Ok(()),
        }
    }

    fn answer(&mut self, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        answer(self.plan.returning.as_ref(), row, &mut self.tally.changed.returned, ctx)
    }
}

/// Fails if the transaction may act on rows of its snapshot alone, and this one is newer.
fn check_seen(table: &Table, row_key: &[u8], ctx: &mut EvalContext) -> Result<()> {
    match table.is_keyspace() {
        true => Ok(()),
        false => host(ctx).txn()?.check_seen(table.map, row_key).map_err(engine_fault),
    }
}

/// Returns the number of a unique key and its values in a row.
fn arbiter_key(table: &Table, index: Option<usize>, row: &[Value]) -> Vec<u8> {
    let parts = match index {
        None => table.primary.as_deref().unwrap_or(&[]),
        Some(at) => &table.indexes[at].parts[..],
    };
    let mut key = index.map_or(u32::MAX, |at| at as u32).to_be_bytes().to_vec();
    key::encode_parts(table, parts, row, &mut key);
    key
}

/// Evaluates RETURNING over a changed row.
fn answer(returning: Option<&Returning>, row: &[Value], answers: &mut Rows, ctx: &mut EvalContext) -> Result<()> {
    let Some(returning) = returning else { return Ok(()) };
    let answer = returning.exprs.iter().map(|expr| expr.eval(row, ctx)).collect::<Result<Row, _>>()?;
    answers.push(answer, ctx)
}

/// Returns the unique key that is checked last. A row that REPLACE finds by it is updated in place, and counts once if
/// nothing changes.
fn last_unique(table: &Table) -> Option<usize> {
    table.indexes.iter().rposition(|index| index.unique)
}

fn is_parent(foreign_graph: Option<&ForeignKeyGraph>) -> bool {
    foreign_graph.is_some_and(|foreign_graph| !foreign_graph.members[0].children.is_empty())
}

/// Sets ON UPDATE CURRENT_TIMESTAMP columns that the statement did not set.
fn clocks(rules: &Rules, sets: &[usize], row: &mut [Value], ctx: &mut EvalContext) -> Result<()> {
    for (column, expr) in &rules.clocks {
        if !sets.contains(column) {
            let value = expr.eval(&[], ctx)?;
            row[*column] = stored(rules, *column, value, 1, ctx)?;
        }
    }
    Ok(())
}

/// Finds the rows to change, before any is changed.
pub(super) fn found(node: &Arc<Node>, ctx: &mut EvalContext) -> Result<Rows> {
    host(ctx).gathers = true;
    let rows = effects::before(ctx, |ctx| gather(node, ctx));
    host(ctx).gathers = false;
    rows
}

pub fn update(plan: &Update, ctx: &mut EvalContext) -> Result<Changed> {
    ctx.ignore = plan.ignore;
    let mut rows = found(&plan.node, ctx)?;
    let (mut matched, mut affected, mut returned) = (0, 0, Rows::default());
    // A row that a join returns several times is changed once.
    let at_once = plan.at_once || plan.targets.len() > 1;
    let mut done: Vec<Option<Keys>> =
        plan.targets.iter().map(|_| (!is_of_one_table(&plan.node)).then(Keys::default)).collect();
    for at in 0..rows.block_count() {
        for mut row in rows.take_block(at)? {
            host(ctx).look_up()?;
            for (target, done) in plan.targets.iter().zip(&mut done) {
                let Some(row_key) = row[target.key_at].as_string_bytes().map(<[u8]>::to_vec) else { continue };
                if let Some(done) = done
                    && !done.insert(&row_key, ctx)?
                {
                    continue;
                }
                matched += 1;
                let changed = or_ignored(ctx, |ctx| update_row(target, &row_key, &mut row, at_once, matched, ctx))?;
                let Some((is_changed, new)) = changed else { continue };
                affected += u64::from(is_changed);
                if plan.returning.as_ref().is_some_and(|returning| returning.is_wide) {
                    row[target.offset..target.offset + new.len()].clone_from_slice(&new);
                    answer(plan.returning.as_ref(), &row, &mut returned, ctx)?;
                } else {
                    answer(plan.returning.as_ref(), &new, &mut returned, ctx)?;
                }
            }
        }
    }
    let info = format!("Rows matched: {matched}  Changed: {affected}  Warnings: {}", ctx.warnings.count());
    let affected = if ctx.counts_found { matched } else { affected };
    Ok(Changed { returned, affected, info, ..Changed::default() })
}

/// Returns whether all rows come from a single table.
pub fn is_of_one_table(node: &Node) -> bool {
    match node {
        Node::Scan(_) | Node::System { .. } => true,
        Node::LockRows(lock) => is_of_one_table(&lock.input),
        Node::Filter { input, .. } | Node::Sort { input, .. } | Node::Limit { input, .. } => is_of_one_table(input),
        _ => false,
    }
}

/// Updates a row. Returns false if it has not changed.
pub(super) fn update_row(
    target: &Target,
    row_key: &[u8],
    wide: &mut Row,
    at_once: bool,
    number: u64,
    ctx: &mut EvalContext,
) -> Result<(bool, Row)> {
    let range = target.offset..target.offset + target.rules.table.columns.len();
    let old: Row = wide[range.clone()].to_vec();
    let before = (at_once && target.sets.len() > 1).then(|| wide.clone());
    for (column, expr) in &target.sets {
        let value = expr.eval(before.as_ref().unwrap_or(wide), ctx)?;
        wide[target.offset + column] = stored(&target.rules, *column, value, number, ctx)?;
    }
    let mut new: Row = wide[range].to_vec();
    if new == old {
        return Ok((false, new));
    }
    let sets: Vec<usize> = target.sets.iter().map(|(column, _)| *column).collect();
    clocks(&target.rules, &sets, &mut new, ctx)?;
    generated::compute(&target.rules.table, &mut new, Some(&old), number, ctx)?;
    check(&target.rules, &new, ctx)?;
    let table: &Arc<Table> = &target.rules.table;
    foreign::replace_row(target.rules.foreign_graph.as_deref(), table, row_key, (&old, &new), ctx)?;
    check_late(&target.rules, &new, ctx)?;
    if let Some(auto) = table.auto_column()
        && let Value::Int(given @ 1..) = new[auto]
        && new[auto] != old[auto]
    {
        auto_number(table, Some(given as u64), ctx)?;
    }
    Ok((true, new))
}

pub fn delete(plan: &Delete, ctx: &mut EvalContext) -> Result<Changed> {
    ctx.ignore = plan.ignore;
    let mut rows = found(&plan.node, ctx)?;
    let (mut affected, mut returned) = (0, Rows::default());
    // Children first, so that related rows do not block each other.
    for (nth, target) in plan.targets.iter().enumerate() {
        let is_last = nth + 1 == plan.targets.len();
        for at in 0..rows.block_count() {
            let block = if is_last { Arc::new(rows.take_block(at)?) } else { rows.block(at)? };
            for row in block.iter() {
                host(ctx).look_up()?;
                if !delete_row(target, row, ctx)? {
                    continue;
                }
                affected += 1;
                let is_wide = plan.returning.as_ref().is_some_and(|returning| returning.is_wide);
                let old = &row[target.offset..target.offset + target.rules.table.columns.len()];
                answer(plan.returning.as_ref(), if is_wide { row } else { old }, &mut returned, ctx)?;
            }
        }
    }
    Ok(Changed { returned, affected, ..Changed::default() })
}

/// Deletes a row. Returns false if the target has no row here, or it is deleted already.
pub(super) fn delete_row(target: &Target, wide: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    let Some(row_key) = wide[target.key_at].as_string_bytes() else { return Ok(false) };
    let table = &target.rules.table;
    let old = &wide[target.offset..target.offset + table.columns.len()];
    let taken = or_ignored(ctx, |ctx| {
        let found = take_out(table, row_key, old, ctx)?;
        if found {
            foreign::after_delete(target.rules.foreign_graph.as_deref(), old, ctx)?;
        }
        Ok(found)
    })?;
    Ok(taken == Some(true))
}
