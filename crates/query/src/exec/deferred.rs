//! Checks of foreign keys that wait for the end of the transaction.
//!
//! A deferred foreign key is checked by values: as long as rows of the child have them, a row of the parent must. Both a new
//! child and a change of the parent's key leave their values here, each once, and the check looks at what is there then
//! (QU-49). So nothing has to be taken back with a savepoint: a check of values whose change was undone finds them in order,
//! or waiting since before. Values beyond the memory of a statement go to a file.

use std::sync::Arc;

use datum::Result;

use crate::catalog::foreign_key::{ForeignKey, KeyAt};
use crate::catalog::table::{Table, TableId};
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

/// The values of one foreign key that are to be checked. The cause follows them in each row.
struct Waiting {
    ends: Ends,
    known: Keys,
    rows: Rows,
}

/// Returns the checks of the transaction, whose type `Deferring` does not know.
fn waiting(ctx: &mut EvalContext) -> Vec<Waiting> {
    let kept = host(ctx).deferring.waiting.take().and_then(|waiting| waiting.downcast().ok());
    kept.map_or_else(Vec::new, |waiting| *waiting)
}

fn keep(waiting: Vec<Waiting>, ctx: &mut EvalContext) {
    host(ctx).deferring.waiting = Some(Box::new(waiting));
}

/// Returns whether checks of the table's rows are waiting.
pub fn concerns(table: TableId, ctx: &mut EvalContext) -> bool {
    let all = waiting(ctx);
    let found = all.iter().any(|waiting| {
        let parent = waiting.ends.parent.as_ref();
        waiting.ends.child.id == table || parent.is_some_and(|(parent, _)| parent.id == table)
    });
    keep(all, ctx);
    found
}

/// Leaves values of a foreign key, in the order of its columns, for a later check.
pub fn leave(ends: Ends, mut values: Vec<Value>, cause: Cause, ctx: &mut EvalContext) -> Result<()> {
    if values.iter().any(Value::is_null) {
        return Ok(());
    }
    let types: Vec<Type> = ends.key().columns.iter().map(|at| ends.child.columns[*at].ty.clone()).collect();
    let key = key_of(&values, &types);
    let id = ends.key().id;
    let mut all = waiting(ctx);
    let at = match all.iter().position(|waiting| waiting.ends.key().id == id) {
        Some(at) => at,
        None => {
            all.push(Waiting { ends, known: Keys::default(), rows: Rows::default() });
            all.len() - 1
        }
    };
    let waiting = &mut all[at];
    let left = waiting.known.insert(&key, ctx).and_then(|is_new| match is_new {
        true => {
            values.push(Value::from(cause == Cause::Parent));
            waiting.rows.push(values, ctx)
        }
        false => Ok(()),
    });
    keep(all, ctx);
    left
}

/// Calls `check` with what is waiting of the foreign keys that are deferred no more; with `is_end` of all.
pub(super) fn each_due(
    is_end: bool,
    ctx: &mut EvalContext,
    check: impl Fn(&Ends, &[Value], Cause, &mut EvalContext) -> Result<()>,
) -> Result<()> {
    let mut kept = Vec::new();
    for mut waiting in waiting(ctx) {
        if !is_end && host(ctx).deferring.defers(waiting.ends.key()) {
            kept.push(waiting);
            continue;
        }
        for at in 0..waiting.rows.block_count() {
            for mut row in waiting.rows.take_block(at)? {
                host(ctx).look_up()?;
                let cause = if row.pop() == Some(Value::TRUE) { Cause::Parent } else { Cause::Child };
                check(&waiting.ends, &row, cause, ctx)?;
            }
        }
    }
    keep(kept, ctx);
    Ok(())
}
