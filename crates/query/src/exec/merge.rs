//! Execution of MERGE: each row of the source, joined to the target, takes the first clause that applies to it.
//!
//! The rows are found without locks. The target's row is locked when its turn comes, and looked at as it is then: if it has changed, the join's condition decides again whether it is a match.

use datum::Result;

use crate::batch::Row;
use crate::exec::change::{Changed, Inserting, Tally, delete_row, found, update_row};
use crate::exec::host::host;
use crate::exec::row_change::current;
use crate::exec::spill::keys::Keys;
use crate::nodes::change::{Merge, MergeAction, MergeWhen};
use crate::nodes::context::EvalContext;
use crate::value::Value;

pub fn merge(plan: &Merge, ctx: &mut EvalContext) -> Result<Changed> {
    ctx.ignore = false;
    let mut rows = found(&plan.node, ctx)?;
    let mut merging = Merging { plan, done: Keys::default(), affected: 0 };
    for at in 0..rows.block_count() {
        for row in rows.take_block(at)? {
            host(ctx).look_up()?;
            merging.row(row, ctx)?;
        }
    }
    Ok(Changed { affected: merging.affected, ..Changed::default() })
}

struct Merging<'m> {
    plan: &'m Merge,
    /// The rows of the target that the statement has changed or inserted.
    done: Keys,
    affected: u64,
}

impl Merging<'_> {
    fn row(&mut self, mut row: Row, ctx: &mut EvalContext) -> Result<()> {
        let plan = self.plan;
        let places = plan.offset..plan.offset + plan.table.columns.len();
        if let Some(key) = row[plan.key_at].as_string_bytes().map(<[u8]>::to_vec) {
            let is_done = self.done.contains(&key)?;
            let when = match is_done {
                true => applies(&plan.whens, true, &row, ctx)?,
                false => {
                    if self.look_again(&key, &mut row, ctx)? {
                        applies(&plan.whens, true, &row, ctx)?
                    } else {
                        row[places].fill(Value::Null);
                        row[plan.key_at] = Value::Null;
                        return self.unmatched(&row, ctx);
                    }
                }
            };
            return match when {
                Some(when) => self.matched(when, (key, is_done), row, ctx),
                None => Ok(()),
            };
        }
        self.unmatched(&row, ctx)
    }

    /// Locks the target's row and puts its newest version into the wide row. Returns whether it is still a match.
    fn look_again(&self, key: &[u8], row: &mut Row, ctx: &mut EvalContext) -> Result<bool> {
        let plan = self.plan;
        let places = plan.offset..plan.offset + plan.table.columns.len();
        let strength = host(ctx).change_strength();
        let Some(newest) = current(&plan.table, key, strength, ctx)? else { return Ok(false) };
        if newest == row[places.clone()] {
            return Ok(true);
        }
        row[places].clone_from_slice(&newest);
        plan.condition.holds(row, ctx)
    }

    fn matched(
        &mut self,
        when: &MergeWhen,
        (key, is_done): (Vec<u8>, bool),
        mut row: Row,
        ctx: &mut EvalContext,
    ) -> Result<()> {
        if matches!(when.action, MergeAction::Nothing | MergeAction::Insert(..)) {
            return Ok(());
        }
        if is_done {
            return Err((self.plan.affects_twice)());
        }
        self.done.insert(&key, ctx)?;
        match &when.action {
            MergeAction::Update(target) => {
                update_row(target, &key, &mut row, true, self.affected + 1, ctx)?;
                self.affected += 1;
            }
            MergeAction::Delete(target) => self.affected += u64::from(delete_row(target, &row, ctx)?),
            MergeAction::Nothing | MergeAction::Insert(..) => {}
        }
        Ok(())
    }

    fn unmatched(&mut self, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let Some(when) = applies(&self.plan.whens, false, row, ctx)? else { return Ok(()) };
        let MergeAction::Insert(insert, exprs) = &when.action else { return Ok(()) };
        let values = exprs.iter().map(|expr| expr.eval(row, ctx)).collect::<Result<Row>>()?;
        let mut inserting = Inserting::new(insert, Tally::default());
        inserting.row(std::iter::empty(), Some(values), ctx)?;
        self.affected += inserting.tally.changed.affected;
        Ok(())
    }
}

/// Returns the first clause of the kind whose condition holds.
fn applies<'w>(
    whens: &'w [MergeWhen],
    is_matched: bool,
    row: &[Value],
    ctx: &mut EvalContext,
) -> Result<Option<&'w MergeWhen>> {
    for when in whens.iter().filter(|when| when.is_matched == is_matched) {
        let holds = match &when.condition {
            Some(condition) => condition.holds(row, ctx)?,
            None => true,
        };
        if holds {
            return Ok(Some(when));
        }
    }
    Ok(None)
}
