//! Evaluation of subqueries within expressions, once or for each row, with caching of their results.

use std::sync::Arc;

use datum::{Fault, Result};

use crate::batch::{Cell, Row};
use crate::exec::caches::{Answer, caches};
use crate::exec::host::host;
use crate::exec::row_ops::key_of;
use crate::exec::spill::encode_cells;
use crate::exec::spill::keys::Keys;
use crate::exec::spill::rows::Rows;
use crate::exec::{Exec, drain, fill};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::subquery::{Listed, Question, Subquery};
use crate::types::Type;
use crate::value::Value;

/// Returns the value of the subquery for this row. `Subquery::evaluate` holds this function.
pub fn evaluate(query: &Subquery, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    query.answer_for(row, ctx)
}

/// Calls `run` with the row as the outer row of this depth.
pub fn around<T>(
    depth: usize,
    row: &[Value],
    ctx: &mut EvalContext,
    run: impl FnOnce(&mut EvalContext) -> Result<T>,
) -> Result<T> {
    let outer = std::mem::take(&mut ctx.outer);
    let mut here = outer[..depth.min(outer.len())].to_vec();
    here.resize(depth, Row::new());
    here.push(row.to_vec());
    ctx.outer = here;
    let ran = run(ctx);
    ctx.outer = outer;
    ran
}

impl Subquery {
    /// Answers from the key set, or returns None while evaluation row by row is cheaper.
    fn by_list(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<Value>> {
        let Some(list) = &self.list else { return Ok(None) };
        let listing = caches(ctx).listings.entry(self.id).or_default();
        let keys = match &listing.keys {
            Some(keys) => keys.clone(),
            None if listing.asked < list.cost => {
                listing.asked += list.each;
                return Ok(None);
            }
            None => {
                let keys = Arc::new(around(self.depth, row, ctx, |ctx| list_keys(list, ctx))?);
                caches(ctx).listings.entry(self.id).or_default().keys.insert(keys).clone()
            }
        };
        let needles: Row = list.needles.iter().map(|needle| needle.eval(row, ctx)).collect::<Result<_, _>>()?;
        let is_there = !needles.iter().any(Value::is_null) && keys.contains(&key_of(&needles, &list.types))?;
        Ok(Some(Value::from(is_there)))
    }

    fn run(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Arc<Answer>> {
        if !self.is_correlated
            && let Some(known) = caches(ctx).answers.get(&self.id)
        {
            return Ok(known.clone());
        }
        let answer = Arc::new(around(self.depth, row, ctx, |ctx| self.answer(ctx))?);
        if !self.is_correlated {
            caches(ctx).answers.insert(self.id, answer.clone());
        }
        Ok(answer)
    }

    fn answer(&self, ctx: &mut EvalContext) -> Result<Answer> {
        let mut answer = Answer { is_empty: true, ..Answer::default() };
        match &self.question {
            Question::Exists => {
                let (mut exec, mut rows) = (Exec::open(&self.node, None, ctx)?, Vec::new());
                answer.is_empty = !exec.next(ctx, &mut rows)?;
            }
            Question::Value | Question::Row { .. } => {
                let rows = drain(&mut Exec::open(&self.node, None, ctx)?, ctx, 2)?;
                if rows.len() > 1 {
                    return Err(Fault::CardinalityViolation);
                }
                rows.into_iter().try_for_each(|row| answer.add(row, None, ctx))?;
            }
            Question::Some { keys, .. } => {
                fill(&self.node, ctx, &mut |row, ctx| answer.add(row, keys.as_deref(), ctx))?;
            }
            Question::All { .. } => fill(&self.node, ctx, &mut |row, ctx| answer.add(row, None, ctx))?,
        }
        Ok(answer)
    }
}

/// Collects the keys of a hashed subquery. NULLs are omitted, as they equal nothing.
fn list_keys(list: &Listed, ctx: &mut EvalContext) -> Result<Keys> {
    let mut keys = Keys::default();
    fill(&list.node, ctx, &mut |row, ctx| match row.iter().any(Value::is_null) {
        true => Ok(()),
        false => keys.insert(&key_of(&row, &list.types), ctx).map(drop),
    })?;
    Ok(keys)
}

impl Answer {
    /// Adds a row. `types` are those of its keys, if they suffice to answer.
    fn add(&mut self, row: Row, types: Option<&[Type]>, ctx: &mut EvalContext) -> Result<()> {
        self.is_empty = false;
        let Some(types) = types else { return self.rows.push(row, ctx) };
        let is_new = self.keys.insert(&key_of(&row, types), ctx)?;
        if is_new && row.iter().any(Value::is_null) {
            self.nulls.push(row.clone(), ctx)?;
        }
        // A single needle is among the keys or NULL; of several, one may be NULL and others decide.
        if is_new && types.len() > 1 { self.rows.push(row, ctx) } else { Ok(()) }
    }
}

/// Combines the test of the needles with each row, as ANY or ALL does.
fn over(rows: &Rows, mut pair: Row, (test, all): (&Expr, bool), ctx: &mut EvalContext) -> Result<Value> {
    let (count, mut unknown) = (pair.len(), false);
    for at in 0..rows.block_count() {
        for candidate in rows.block(at)?.iter() {
            pair.truncate(count);
            pair.extend_from_slice(&candidate[..count]);
            match test.eval(&pair, ctx)? {
                Value::Null => unknown = true,
                Value::Int(truth) if (truth != 0) != all => return Ok(Value::from(!all)),
                _ => {}
            }
        }
    }
    Ok(if unknown { Value::Null } else { Value::from(all) })
}

impl Subquery {
    /// Returns the outer values and needles as a cache key.
    fn key(&self, reads: &[(usize, usize)], row: &[Value], ctx: &mut EvalContext) -> Result<Vec<u8>> {
        let needles: Row =
            self.question.needles().iter().map(|needle| needle.eval(row, ctx)).collect::<Result<_, _>>()?;
        let outer = &ctx.outer;
        let value = |(depth, at): &(usize, usize)| {
            let row = if *depth == self.depth { Some(row) } else { outer.get(*depth).map(|row| &row[..]) };
            row.and_then(|row| row.get(*at)).unwrap_or(&Value::Null)
        };
        let values: Vec<&Value> = reads.iter().map(value).chain(&needles).collect();
        let mut key = Vec::with_capacity(16 * values.len());
        encode_cells(values.into_iter().map(Cell::Value), &mut key);
        Ok(key)
    }

    fn ask(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let answer = self.run(row, ctx)?;
        let (needles, test, all) = match &self.question {
            Question::Value => return Ok(answer.rows.block(0)?.first().map(|row| row[0].clone()).unwrap_or_default()),
            Question::Exists => return Ok(Value::from(!answer.is_empty)),
            Question::Row { .. } if answer.is_empty => return Ok(Value::Null),
            Question::Some { needles, test, .. } | Question::Row { needles, test } => (needles, test, false),
            Question::All { needles, test } => (needles, test, true),
        };
        if answer.is_empty {
            return Ok(Value::from(all));
        }
        let pair: Row = needles.iter().map(|needle| needle.eval(row, ctx)).collect::<Result<_, _>>()?;
        if let Question::Some { keys: Some(types), .. } = &self.question {
            let has_null = pair.iter().any(Value::is_null);
            if has_null && pair.len() == 1 {
                return Ok(Value::Null);
            }
            if !has_null {
                if answer.keys.contains(&key_of(&pair, types))? {
                    return Ok(Value::TRUE);
                }
                // Only a row with a NULL can make the result UNKNOWN.
                return over(&answer.nulls, pair, (test, false), ctx);
            }
        }
        over(&answer.rows, pair, (test, all), ctx)
    }

    fn answer_for(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let may_keep = !ctx.changes_rows || host(ctx).gathers;
        let Some(reads) = self.known_by.as_ref().filter(|_| may_keep) else { return self.ask(row, ctx) };
        if let Some(known) = self.by_list(row, ctx)? {
            return Ok(known);
        }
        if !caches(ctx).repeats.entry(self.id).or_default().is_on() {
            return self.ask(row, ctx);
        }
        let key = self.key(reads, row, ctx)?;
        if let Some(known) = caches(ctx).repeats.entry(self.id).or_default().get(&key) {
            return Ok(known);
        }
        let answer = self.ask(row, ctx)?;
        let memory_max = host(ctx).memory_max;
        caches(ctx).repeats.entry(self.id).or_default().keep(key, &answer, memory_max);
        Ok(answer)
    }
}
