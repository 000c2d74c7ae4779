//! Checks of constraints that wait for the end of the statement or of the transaction.
//!
//! A deferred foreign key is checked by values: as long as rows of the child have them, a row of the parent must. Both a new
//! child and a change of the parent's key leave their values here, each once, and the check looks at what is there then
//! (QU-49). Another foreign key leaves those that fail at their row, until the end of the statement (QU-5). A deferrable unique key is checked likewise: a row that gets values leaves them, and the check looks whether two
//! rows have them (QU-62). So nothing has to be taken back with a savepoint: a check of values whose change was undone finds
//! them in order, or waiting since before. Values beyond the memory of a statement go to a file.

use std::sync::Arc;

use datum::Result;

use crate::catalog::foreign_key::{ForeignKey, KeyAt};
use crate::catalog::object_id::ObjectId;
use crate::catalog::table::{Index, Table, TableId};
use crate::exec::host::host;
use crate::exec::row_ops::key_of;
use crate::exec::spill::keys::Keys;
use crate::exec::spill::rows::Rows;
use crate::nodes::context::EvalContext;
use crate::types::Type;
use crate::value::Value;

/// The change that has left values to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Child,
    Parent,
    /// Of the parent of a foreign key with RESTRICT.
    Restricted,
}

impl Cause {
    const ALL: [Cause; 3] = [Cause::Child, Cause::Parent, Cause::Restricted];
}

/// The two ends of a foreign key.
#[derive(Clone, Debug)]
pub struct Ends {
    pub child: Arc<Table>,
    /// The number among the child's foreign keys.
    pub foreign: usize,
    /// The key that finds the child's rows.
    pub by: KeyAt,
    /// The parent, and its key.
    pub parent: Option<(Arc<Table>, KeyAt)>,
}

impl Ends {
    pub fn key(&self) -> &ForeignKey {
        &self.child.foreign_keys[self.foreign]
    }
}

/// A constraint whose checks wait.
#[derive(Clone, Debug)]
pub enum Due {
    Foreign(Ends),
    /// A deferrable unique key: an index by its number.
    Unique(Arc<Table>, usize),
}

impl Due {
    fn id(&self) -> ObjectId {
        match self {
            Due::Foreign(ends) => ends.key().id,
            Due::Unique(table, index) => table.indexes[*index].id,
        }
    }

    /// Returns the types of its values.
    fn types(&self) -> Vec<Type> {
        let of = |table: &Table, at: usize| table.columns[at].ty.clone();
        match self {
            Due::Foreign(ends) => ends.key().columns.iter().map(|at| of(&ends.child, *at)).collect(),
            Due::Unique(table, index) => {
                table.indexes[*index].parts.iter().map(|part| of(table, part.column)).collect()
            }
        }
    }

    fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let (first, second) = match self {
            Due::Foreign(ends) => (&ends.child, ends.parent.as_ref().map(|(parent, _)| parent)),
            Due::Unique(table, _) => (table, None),
        };
        std::iter::once(first).chain(second)
    }

    /// Returns whether the check waits for the end of the transaction.
    fn is_deferred(&self, ctx: &mut EvalContext) -> bool {
        let deferring = &host(ctx).deferring;
        match self {
            Due::Foreign(ends) => deferring.defers(ends.key()),
            Due::Unique(table, index) => deferring.defers_index(&table.indexes[*index]),
        }
    }
}

/// The values of one constraint that are to be checked. The cause follows them in each row.
struct Waiting {
    due: Due,
    known: Keys,
    rows: Rows,
}

/// The checks of a transaction.
#[derive(Default)]
struct Checks {
    waiting: Vec<Waiting>,
    /// Those that SET CONSTRAINTS has made since a savepoint. They wait again when it is rolled back to.
    made: Vec<Waiting>,
}

/// Returns the checks of the transaction, whose type `Deferring` does not know.
fn checks(ctx: &mut EvalContext) -> Checks {
    let kept = host(ctx).deferring.checks.take().and_then(|checks| checks.downcast().ok());
    kept.map_or_else(Checks::default, |checks| *checks)
}

fn keep(checks: Checks, ctx: &mut EvalContext) {
    let is_empty = checks.waiting.is_empty() && checks.made.is_empty();
    host(ctx).deferring.checks = if is_empty { None } else { Some(Box::new(checks)) };
}

/// Returns whether checks of the table's rows are waiting.
pub fn concerns(table: TableId, ctx: &mut EvalContext) -> bool {
    let all = checks(ctx);
    let found = all.waiting.iter().any(|waiting| waiting.due.tables().any(|known| known.id == table));
    keep(all, ctx);
    found
}

/// Returns the tables whose rows are to be checked.
pub fn tables(ctx: &mut EvalContext) -> Vec<Arc<Table>> {
    let all = checks(ctx);
    let tables = all.waiting.iter().flat_map(|waiting| waiting.due.tables().cloned()).collect();
    keep(all, ctx);
    tables
}

/// Leaves values of a foreign key, in the order of its columns, for a later check.
pub fn leave(ends: Ends, values: Vec<Value>, cause: Cause, ctx: &mut EvalContext) -> Result<()> {
    if values.iter().any(Value::is_null) {
        return Ok(());
    }
    let id = ends.key().id;
    leave_values(id, || Due::Foreign(ends), values, cause, ctx)
}

/// Leaves the values of a row in a deferrable unique key for a later check.
pub(super) fn leave_key(table: &Table, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
    let Index { id, parts, nulls_equal, .. } = &table.indexes[at];
    let values: Vec<Value> = parts.iter().map(|part| row[part.column].clone()).collect();
    if !nulls_equal && values.iter().any(Value::is_null) {
        return Ok(());
    }
    let due = || Due::Unique(Arc::new(Table { version: table.version, ..table.copy().with_derived_fields() }), at);
    leave_values(*id, due, values, Cause::Child, ctx)
}

fn leave_values(
    id: ObjectId,
    due: impl FnOnce() -> Due,
    mut values: Vec<Value>,
    cause: Cause,
    ctx: &mut EvalContext,
) -> Result<()> {
    let mut all = checks(ctx);
    let at = match all.waiting.iter().position(|waiting| waiting.due.id() == id) {
        Some(at) => at,
        None => {
            all.waiting.push(Waiting { due: due(), known: Keys::default(), rows: Rows::default() });
            all.waiting.len() - 1
        }
    };
    let waiting = &mut all.waiting[at];
    let mut key = key_of(&values, &waiting.due.types());
    // The same values may have a parent again, which is not asked then.
    if cause == Cause::Restricted {
        key.push(cause as u8);
    }
    let left = waiting.known.insert(&key, ctx).and_then(|is_new| match is_new {
        true => {
            values.push(Value::Int(cause as i64));
            waiting.rows.push(values, ctx)
        }
        false => Ok(()),
    });
    keep(all, ctx);
    left
}

/// The time of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckTime {
    /// Behind a statement, of the constraints that are not deferred.
    Statement,
    /// At SET CONSTRAINTS, of the constraints that are deferred no more.
    Set,
    /// At the end of the transaction, of all.
    Commit,
}

/// Lets the checks that SET CONSTRAINTS has made wait again: the savepoint to which the transaction goes back is from before them, or their values are in order anyway.
pub fn restore(ctx: &mut EvalContext) {
    if !host(ctx).deferring.has_checks() {
        return;
    }
    let mut all = checks(ctx);
    all.waiting.append(&mut all.made);
    keep(all, ctx);
}

/// Calls `check` with what is due. After an error all of it waits on, since the transaction may go back to a savepoint.
pub(super) fn each_due(
    time: CheckTime,
    ctx: &mut EvalContext,
    check: impl Fn(&Due, &[Value], Cause, &mut EvalContext) -> Result<()>,
) -> Result<()> {
    let Checks { waiting, mut made } = checks(ctx);
    let (mut kept, mut done) = (Vec::new(), Ok(()));
    for waiting in waiting {
        if done.is_err() || (time != CheckTime::Commit && waiting.due.is_deferred(ctx)) {
            kept.push(waiting);
            continue;
        }
        done = waiting.check(ctx, &check);
        match (&done, time) {
            (Err(_), _) => kept.push(waiting),
            (Ok(()), CheckTime::Set) => made.push(waiting),
            (Ok(()), CheckTime::Statement | CheckTime::Commit) => {}
        }
    }
    keep(Checks { waiting: kept, made }, ctx);
    done
}

impl Waiting {
    fn check(
        &self,
        ctx: &mut EvalContext,
        check: &impl Fn(&Due, &[Value], Cause, &mut EvalContext) -> Result<()>,
    ) -> Result<()> {
        for at in 0..self.rows.block_count() {
            for row in self.rows.block(at)?.iter() {
                host(ctx).look_up()?;
                let Some((cause, values)) = row.split_last() else { continue };
                let cause = Cause::ALL.into_iter().find(|known| *cause == Value::Int(*known as i64));
                let Some(cause) = cause else { continue };
                check(&self.due, values, cause, ctx)?;
            }
        }
        Ok(())
    }
}
