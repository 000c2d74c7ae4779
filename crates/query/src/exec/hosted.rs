//! Expressions that the scalar part cannot evaluate: columns of rows around a subquery, subqueries, the user's variables.

use std::sync::Arc;

use crate::batch::Cell;
use crate::batch::Row;
use crate::bind::listed::Listed;
use crate::bind::semi::Plain;
use crate::error::{self, Result};
use crate::exec::host::host;
use crate::exec::spill::encode_cells;
use crate::exec::spill::keys::Keys;
use crate::exec::spill::rows::Rows;
use crate::exec::{Exec, drain, fill, key_of};
use crate::plan::Node;
use crate::plan::cost::OPEN;
use crate::plan::estimate::estimate;
use crate::scalar::{EvalContext, Expr, Hosted};
use crate::types::Type;
use crate::value::Value;

/// A column of the row around, so many subqueries out.
#[derive(Debug)]
pub struct Outer {
    pub depth: usize,
    pub at: usize,
}

impl Hosted for Outer {
    fn is_column(&self) -> bool {
        true
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn eval(&self, _row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let row = host(ctx).outer.get(self.depth);
        Ok(row.and_then(|row| row.get(self.at)).cloned().unwrap_or_default())
    }
}

/// `@x`
#[derive(Debug)]
pub struct UserVariable {
    pub name: String,
}

impl Hosted for UserVariable {
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn eval(&self, _row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        Ok(host(ctx).users.get(&self.name).map(|(value, _)| value.clone()).unwrap_or_default())
    }
}

/// `@x := value`
#[derive(Debug)]
pub struct SetUser {
    pub name: String,
    pub value: Expr,
}

impl Hosted for SetUser {
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn eval(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let value = self.value.eval(row, ctx)?;
        let ty = self.value.ty();
        host(ctx).set_user(self.name.clone(), value.clone(), ty)?;
        Ok(value)
    }

    fn columns(&self) -> Vec<usize> {
        crate::plan::walk::columns(&self.value)
    }
}

/// What is asked of a subquery's rows.
#[derive(Debug)]
pub enum Question {
    /// The value of the one row.
    Value,
    Exists,
    /// Does `test`, over needles and a row's values, hold for one of them? `keys`: each part is equality by such keys.
    Some {
        needles: Vec<Expr>,
        test: Expr,
        keys: Option<Vec<Type>>,
    },
    All {
        needles: Vec<Expr>,
        test: Expr,
    },
    /// The same for the one row.
    Row {
        needles: Vec<Expr>,
        test: Expr,
    },
}

impl Question {
    /// What rows are compared with.
    pub fn needles(&self) -> &[Expr] {
        match self {
            Question::Value | Question::Exists => &[],
            Question::Some { needles, .. } | Question::All { needles, .. } | Question::Row { needles, .. } => needles,
        }
    }
}

#[derive(Debug)]
pub struct Subquery {
    pub node: Arc<Node>,
    pub question: Question,
    pub depth: usize,
    pub reads: Vec<usize>,
    pub is_correlated: bool,
    pub id: usize,
    /// The same as a block that can become part of the block around.
    pub plain: Option<Arc<Plain>>,
    /// Where it depends on rows around it and on nothing else: on these values of them, (depth, place).
    pub known_by: Option<Vec<(usize, usize)>>,
    /// About how many different values those have.
    pub kinds: f64,
    /// The same question asked of a list of keys.
    pub list: Option<Listed>,
}

/// What asking row by row has cost, and the list, once that was as much as it takes.
#[derive(Default)]
pub struct Listing {
    asked: f64,
    keys: Option<Arc<Keys>>,
}

/// What a subquery comes to, and is kept if it depends on nothing.
#[derive(Default)]
pub struct Answer {
    is_empty: bool,
    /// Its rows. Where keys answer the question, those that have a NULL among their values; and of several columns all.
    rows: Rows,
    nulls: Rows,
    keys: Keys,
}

/// Runs something with that row around it, so many blocks deep.
pub fn around<T>(
    depth: usize,
    row: &[Value],
    ctx: &mut EvalContext,
    run: impl FnOnce(&mut EvalContext) -> Result<T>,
) -> Result<T> {
    let outer = std::mem::take(&mut host(ctx).outer);
    let mut here = outer[..depth.min(outer.len())].to_vec();
    here.resize(depth, Row::new());
    here.push(row.to_vec());
    host(ctx).outer = here;
    let ran = run(ctx);
    host(ctx).outer = outer;
    ran
}

impl Subquery {
    /// The same of one that depends on nothing, asked of other rows: by these needles instead.
    pub fn with_needles(&self, mut needle: impl FnMut(&Expr) -> Expr) -> Subquery {
        let mut moved = |exprs: &[Expr]| -> Vec<Expr> { exprs.iter().map(&mut needle).collect() };
        let question = match &self.question {
            Question::Value => Question::Value,
            Question::Exists => Question::Exists,
            Question::Some { needles, test, keys } => {
                Question::Some { needles: moved(needles), test: test.clone(), keys: keys.clone() }
            }
            Question::All { needles, test } => Question::All { needles: moved(needles), test: test.clone() },
            Question::Row { needles, test } => Question::Row { needles: moved(needles), test: test.clone() },
        };
        let mut reads = Vec::new();
        question.needles().iter().for_each(|needle| reads.extend(needle.columns()));
        let (node, plain, known_by) = (self.node.clone(), self.plain.clone(), self.known_by.clone());
        Subquery { node, question, reads, plain, known_by, list: None, ..*self }
    }

    /// The same with a list at hand.
    pub fn with_list(&self, list: Listed) -> Subquery {
        Subquery { list: Some(list), reads: self.reads.clone(), ..self.with_needles(Expr::clone) }
    }

    /// What it costs to ask it for one row, as the planner guesses.
    pub fn each_cost(&self) -> f64 {
        let each = estimate(&self.node);
        // The first row is an answer to EXISTS.
        let part = if matches!(self.question, Question::Exists) { each.rows.max(1.0) } else { 1.0 };
        OPEN + each.cost / part
    }

    /// The answer by the list. None: so far it is cheaper to ask for each row.
    fn by_list(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<Value>> {
        let Some(list) = &self.list else { return Ok(None) };
        let listing = host(ctx).listings.entry(self.id).or_default();
        let keys = match &listing.keys {
            Some(keys) => keys.clone(),
            None if listing.asked < list.cost => {
                listing.asked += list.each;
                return Ok(None);
            }
            None => {
                let keys = Arc::new(around(self.depth, row, ctx, |ctx| list_keys(list, ctx))?);
                host(ctx).listings.entry(self.id).or_default().keys.insert(keys).clone()
            }
        };
        let needles: Row = list.needles.iter().map(|needle| needle.eval(row, ctx)).collect::<Result<_>>()?;
        let is_there = !needles.iter().any(Value::is_null) && keys.contains(&key_of(&needles, &list.types))?;
        Ok(Some(Value::from(is_there)))
    }

    /// As EXPLAIN shows it; `words` writes an expression.
    pub fn words(&self, words: impl Fn(&Expr) -> String) -> String {
        let select = format!("select #{}", self.id + 1);
        let sign = |test: &Expr| match test {
            Expr::Compare(compare) => compare.op.sign(),
            _ => "?",
        };
        let needles: Vec<String> = self.question.needles().iter().map(words).collect();
        let needle = if needles.len() == 1 { needles.concat() } else { format!("({})", needles.join(",")) };
        match &self.question {
            Question::Value => format!("({select})"),
            Question::Exists => format!("exists({select})"),
            Question::Some { keys: Some(_), .. } => format!("({needle} in ({select}))"),
            Question::Some { test, .. } if sign(test) == "=" => format!("({needle} in ({select}))"),
            Question::Some { test, .. } => format!("({needle} {} any ({select}))", sign(test)),
            Question::All { test, .. } => format!("({needle} {} all ({select}))", sign(test)),
            Question::Row { test, .. } => format!("({needle} {} ({select}))", sign(test)),
        }
    }

    fn run(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Arc<Answer>> {
        if !self.is_correlated
            && let Some(known) = host(ctx).answers.get(&self.id)
        {
            return Ok(known.clone());
        }
        let answer = Arc::new(around(self.depth, row, ctx, |ctx| self.answer(ctx))?);
        if !self.is_correlated {
            host(ctx).answers.insert(self.id, answer.clone());
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
                    return Err(error::SUBQUERY_NO_1_ROW.bare());
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

/// The keys of a list. NULL equals nothing.
fn list_keys(list: &Listed, ctx: &mut EvalContext) -> Result<Keys> {
    let mut keys = Keys::default();
    fill(&list.node, ctx, &mut |row, ctx| match row.iter().any(Value::is_null) {
        true => Ok(()),
        false => keys.insert(&key_of(&row, &list.types), ctx).map(drop),
    })?;
    Ok(keys)
}

impl Answer {
    /// One more row; `types` are those of its keys, if they answer the question.
    fn add(&mut self, row: Row, types: Option<&[Type]>, ctx: &mut EvalContext) -> Result<()> {
        self.is_empty = false;
        let Some(types) = types else { return self.rows.push(row, ctx) };
        let is_new = self.keys.insert(&key_of(&row, types), ctx)?;
        if is_new && row.iter().any(Value::is_null) {
            self.nulls.push(row.clone(), ctx)?;
        }
        // One needle is found among the keys, or is NULL; of several, one may be NULL and others decide.
        if is_new && types.len() > 1 { self.rows.push(row, ctx) } else { Ok(()) }
    }
}

/// What the test says of the needles and each of the rows, as `Some` or `All` take it together.
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
    /// The values that the answer depends on, and what it is asked for, as one key.
    fn key(&self, reads: &[(usize, usize)], row: &[Value], ctx: &mut EvalContext) -> Result<Vec<u8>> {
        let needles: Row = self.question.needles().iter().map(|needle| needle.eval(row, ctx)).collect::<Result<_>>()?;
        let outer = &host(ctx).outer;
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
        let pair: Row = needles.iter().map(|needle| needle.eval(row, ctx)).collect::<Result<_>>()?;
        if let Question::Some { keys: Some(types), .. } = &self.question {
            let has_null = pair.iter().any(Value::is_null);
            if has_null && pair.len() == 1 {
                return Ok(Value::Null);
            }
            if !has_null {
                if answer.keys.contains(&key_of(&pair, types))? {
                    return Ok(Value::TRUE);
                }
                // Only a row with a NULL can leave it open.
                return over(&answer.nulls, pair, (test, false), ctx);
            }
        }
        over(&answer.rows, pair, (test, all), ctx)
    }
}

impl Hosted for Subquery {
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn eval(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let may_keep = !ctx.changes_rows || host(ctx).gathers;
        let Some(reads) = self.known_by.as_ref().filter(|_| may_keep) else { return self.ask(row, ctx) };
        if let Some(known) = self.by_list(row, ctx)? {
            return Ok(known);
        }
        if !host(ctx).repeats.entry(self.id).or_default().is_on() {
            return self.ask(row, ctx);
        }
        let key = self.key(reads, row, ctx)?;
        if let Some(known) = host(ctx).repeats.entry(self.id).or_default().get(&key) {
            return Ok(known);
        }
        let answer = self.ask(row, ctx)?;
        let memory_max = host(ctx).memory_max;
        host(ctx).repeats.entry(self.id).or_default().keep(key, &answer, memory_max);
        Ok(answer)
    }

    fn columns(&self) -> Vec<usize> {
        self.reads.clone()
    }
}
