//! Groups by hashing their keys. They come out in the order in which they were met.
//!
//! When memory is short no new group is begun: rows of groups that are there go on being added up, all others are parted by their keys into files, and each part is
//! grouped on its own afterwards. So a group is in one place only, at any time.

use std::collections::HashMap;

use crate::batch::Cell;
use crate::error::Result;
use crate::exec::host::{host, row_bytes};
use crate::exec::sorter::{Sorted, Sorter};
use crate::exec::spill::partition::{LEVELS, Part, Partitions};
use crate::exec::{BATCH, Exec};
use crate::plan::Group;
use crate::scalar::aggregate::Accumulator;
use crate::scalar::key::encode;
use crate::scalar::{EvalContext, Expr};
use crate::session::Row;
use crate::value::Value;

struct Gathering {
    keys: Row,
    /// How many of the keys count: ROLLUP.
    level: usize,
    sums: Vec<Accumulator>,
}

pub struct GroupState {
    input: Option<Exec>,
    /// Groups that are done.
    ready: std::vec::IntoIter<Gathering>,
    /// Parts that wait for their turn.
    parts: Vec<Part>,
    /// ROLLUP: everything in its order.
    sorted: Option<Sorted>,
    held: usize,
}

/// Groups in the making.
struct Table<'g> {
    group: &'g Group,
    groups: Vec<Gathering>,
    places: HashMap<Vec<u8>, usize>,
    held: usize,
    level: u32,
    others: Option<Partitions>,
    /// Room for a key, and for arguments.
    key: Vec<u8>,
    values: Vec<Value>,
}

impl GroupState {
    pub fn new(input: Exec) -> GroupState {
        GroupState { input: Some(input), ready: Vec::new().into_iter(), parts: Vec::new(), sorted: None, held: 0 }
    }

    pub fn next(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        if group.rollup {
            return self.next_rolled_up(group, ctx, out);
        }
        self.next_groups(group, ctx, out)
    }

    fn next_groups(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        while out.len() < BATCH {
            if let Some(gathering) = self.ready.next() {
                out.push(finished(group, gathering, ctx)?);
                continue;
            }
            host(ctx).release(std::mem::take(&mut self.held));
            let mut table = match (self.input.take(), self.parts.pop()) {
                (Some(mut input), part) => {
                    self.parts.extend(part);
                    let mut table = Table::new(group, 0);
                    input.each(ctx, &mut |row, ctx| table.row(row, ctx))?;
                    table
                }
                (None, Some(part)) => {
                    let mut table = Table::new(group, part.level);
                    let (mut rows, mut count) = (part.rows(), 0u64);
                    while let Some((key, row)) = rows.next()? {
                        table.add(key, &row, ctx)?;
                        count += 1;
                        if count.is_multiple_of(1024) {
                            host(ctx).look_up()?;
                        }
                    }
                    table
                }
                (None, None) => return Ok(()),
            };
            if let Some(others) = table.others.take() {
                self.parts.extend(others.finish()?.into_iter().filter(|part| !part.run.is_empty()));
            }
            self.held = table.held;
            self.ready = table.groups.into_iter();
        }
        Ok(())
    }

    /// Sums stand behind what they sum up.
    fn next_rolled_up(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        if self.sorted.is_none() {
            let (mut sorter, mut rows) = (Sorter::default(), Vec::new());
            loop {
                self.next_groups(group, ctx, &mut rows)?;
                if rows.is_empty() {
                    break;
                }
                for row in rows.drain(..) {
                    let mut key = Vec::new();
                    for (value, ty) in row.iter().zip(&group.types) {
                        // A NULL that stands for all comes last.
                        key.push(u8::from(value.is_null()));
                        encode(value, ty, false, &mut key);
                    }
                    sorter.push(|out| out.extend_from_slice(&key), row.iter().map(Cell::Value), ctx)?;
                }
            }
            self.sorted = Some(sorter.finish(ctx)?);
        }
        let Some(sorted) = &mut self.sorted else { return Ok(()) };
        while out.len() < BATCH {
            let Some(record) = sorted.next(ctx)? else { return Ok(()) };
            out.push(record.row()?);
        }
        Ok(())
    }
}

fn finished(group: &Group, mut gathering: Gathering, ctx: &mut EvalContext) -> Result<Row> {
    let mut row = gathering.keys;
    for (at, (call, sum)) in group.calls.iter().zip(&mut gathering.sums).enumerate() {
        row.push(match group.level == Some(at) {
            true => Value::Int(gathering.level as i64),
            false => sum.finish(&call.aggregate, ctx)?,
        });
    }
    Ok(row)
}

impl<'g> Table<'g> {
    fn new(group: &'g Group, level: u32) -> Table<'g> {
        let mut table = Table {
            group,
            groups: Vec::new(),
            places: HashMap::new(),
            held: 0,
            level,
            others: None,
            key: Vec::new(),
            values: Vec::new(),
        };
        if group.is_whole {
            table.begin(Row::new(), 0);
        }
        table
    }

    fn begin(&mut self, keys: Row, level: usize) {
        let sums = self.group.calls.iter().map(|call| call.aggregate.init()).collect();
        self.groups.push(Gathering { keys, level, sums });
    }

    /// A row of the input. ROLLUP counts it in the groups of every shorter key too.
    fn row(&mut self, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        if self.group.is_whole {
            return self.add_to(0, row, ctx);
        }
        let count = self.group.keys.len();
        for level in if self.group.rollup { 0..=count } else { count..=count } {
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            key.push(level as u8);
            for (expr, ty) in self.group.keys[..level].iter().zip(&self.group.types) {
                match expr {
                    Expr::Column(place, _) => encode(&row[*place], ty, false, &mut key),
                    expr => encode(&expr.eval(row, ctx)?, ty, false, &mut key),
                }
            }
            match self.places.get(&key) {
                Some(at) => self.add_to(*at, row, ctx)?,
                None => self.add(key.clone(), row, ctx)?,
            }
            self.key = key;
        }
        Ok(())
    }

    /// The row to the group of that key, or among the rows that wait. The key's first byte is how many of the grouping's keys it has.
    fn add(&mut self, key: Vec<u8>, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        if let Some(at) = self.places.get(&key) {
            return self.add_to(*at, row, ctx);
        }
        let bytes = 2 * key.len() + 48 + 32 * self.group.keys.len() + 96 * self.group.calls.len();
        if self.others.is_some() || (self.level < LEVELS && host(ctx).must_spill(self.held, bytes)) {
            let others = match &mut self.others {
                Some(others) => others,
                None => self.others.insert(Partitions::new(&host(ctx).spill()?, self.level)?),
            };
            return others.put(&key, row);
        }
        let level = usize::from(key.first().copied().unwrap_or(0));
        let mut keys: Row = self.group.keys.iter().map(|key| key.eval(row, ctx)).collect::<Result<_>>()?;
        keys[level..].fill(Value::Null);
        let bytes = bytes + row_bytes(&keys);
        if self.level < LEVELS {
            host(ctx).count(bytes)?
        } else {
            host(ctx).hold(bytes)?
        }
        self.held += bytes;
        self.places.insert(key, self.groups.len());
        self.begin(keys, level);
        self.add_to(self.groups.len() - 1, row, ctx)
    }

    fn add_to(&mut self, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        for (call, sum) in self.group.calls.iter().zip(&mut self.groups[at].sums) {
            if let [Expr::Column(place, _)] = &call.arguments[..] {
                sum.add(&call.aggregate, std::slice::from_ref(&row[*place]), ctx)?;
                continue;
            }
            self.values.clear();
            let exact = call.aggregate.sums_exactly();
            for argument in &call.arguments {
                self.values.push(if exact { argument.eval_exact(row, ctx)? } else { argument.eval(row, ctx)? });
            }
            sum.add(&call.aggregate, &self.values, ctx)?;
        }
        Ok(())
    }
}
