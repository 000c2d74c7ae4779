//! Grouping by hashing. Groups are returned in the order of their first rows.
//!
//! When memory is short, no new group is started: rows of existing groups are still aggregated, and all others are
//! partitioned into files by their keys, each partition being grouped afterwards. So a group is in one place at any
//! time.
//!
//! Groups that collect values (GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG) may grow until the end. There the rows are
//! sorted by their keys first, and one group is in memory at a time.

use std::sync::Arc;

use datum::Result;
use datum::key::{KeyOrder, encode};

use crate::batch::{Cell, Row};
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::key_table::KeyTable;
use crate::exec::memory::{Held, row_bytes};
use crate::exec::progress::{Of, Progress};
use crate::exec::row_ops::{BATCH, BATCH_BYTES};
use crate::exec::sorter::{Sorted, Sorter};
use crate::exec::spill::keys::Keys;
use crate::exec::spill::partition::{LEVELS, Part, Partitions};
use crate::nodes::aggregate::Accumulator;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::function::Finish;
use crate::nodes::node::{AggregateCall, Group};
use crate::nodes::walk::is_volatile;
use crate::plan::estimate::estimate;
use crate::value::Value;

/// Groups, one behind another.
#[derive(Default)]
struct Groups {
    /// Of each group the number of keys that count, or the number of the grouping set.
    levels: Vec<usize>,
    /// Of each group its keys.
    keys: Vec<Value>,
    /// Of each group a state for each of `GroupStates::firsts`.
    sums: Vec<Box<dyn Accumulator>>,
}

/// Finished groups.
#[derive(Default)]
struct Ready {
    levels: std::vec::IntoIter<usize>,
    keys: std::vec::IntoIter<Value>,
    sums: std::vec::IntoIter<Box<dyn Accumulator>>,
}

impl Groups {
    /// Adds a group whose keys have been added.
    fn begin(&mut self, states: &GroupStates, group: &Group, level: usize) {
        debug_assert_eq!(self.keys.len(), group.keys.len() * (self.levels.len() + 1));
        self.levels.push(level);
        self.sums.extend(states.firsts.iter().map(|first| group.calls[*first].aggregate.start()));
    }

    /// Returns the states of a group.
    fn sums_mut(&mut self, states: &GroupStates, number: usize) -> &mut [Box<dyn Accumulator>] {
        let count = states.firsts.len();
        &mut self.sums[count * number..count * (number + 1)]
    }

    fn into_ready(self) -> Ready {
        Ready { levels: self.levels.into_iter(), keys: self.keys.into_iter(), sums: self.sums.into_iter() }
    }
}

/// The states of a group: one for each call, but for calls that add the same values to states of one kind.
#[derive(Clone, Debug, Default)]
struct GroupStates {
    /// The calls with a state of their own.
    firsts: Vec<usize>,
    /// Of each call, the place of its state.
    places: Vec<usize>,
}

fn share_state(a: &AggregateCall, b: &AggregateCall) -> bool {
    a.aggregate.shares_state(&b.aggregate) && a.arguments == b.arguments && !a.arguments.iter().any(is_volatile)
}

impl GroupStates {
    fn of(group: &Group) -> GroupStates {
        let mut states = GroupStates::default();
        for call in &group.calls {
            let known = states.firsts.iter().position(|first| share_state(&group.calls[*first], call));
            states.places.push(known.unwrap_or(states.firsts.len()));
            if known.is_none() {
                states.firsts.push(states.places.len() - 1);
            }
        }
        states
    }

    /// Returns the row of the next group; `None` at the end.
    fn finished(&self, group: &Group, ready: &mut Ready, ctx: &mut EvalContext) -> Result<Option<Row>> {
        let Some(level) = ready.levels.next() else { return Ok(None) };
        let mut row = Row::with_capacity(group.keys.len() + group.calls.len() + usize::from(group.rollup));
        row.extend(ready.keys.by_ref().take(group.keys.len()));
        let sums = ready.sums.as_mut_slice();
        for (at, (call, place)) in group.calls.iter().zip(&self.places).enumerate() {
            row.push(match group.level == Some(at) {
                true => Value::Int(level as i64),
                false => sums[*place].finish(&call.aggregate, ctx)?,
            });
        }
        if group.rollup {
            row.push(Value::Int(level as i64));
        }
        ready.sums.by_ref().take(self.firsts.len()).for_each(drop);
        Ok(Some(row))
    }
}

pub struct GroupState {
    states: Arc<GroupStates>,
    input: Option<Exec>,
    ready: Ready,
    /// Partitions to be processed.
    parts: Vec<Part>,
    /// The sorted result of ROLLUP.
    sorted: Option<Sorted>,
    /// Rows sorted by group, and the current group.
    gathered: Option<Gathered>,
    held: Held,
    grown: Held,
}

/// Groups being built.
struct Table<'g> {
    group: &'g Group,
    groups: Groups,
    /// The key of each group.
    places: KeyTable,
    /// The group of the row before, which that of the next one often is.
    last: usize,
    held: Held,
    level: u32,
    others: Option<Partitions>,
    adding: Adding,
    /// A buffer for a key.
    key: Vec<u8>,
}

impl GroupState {
    pub fn new(group: &Group, input: Exec) -> GroupState {
        GroupState {
            states: Arc::new(GroupStates::of(group)),
            input: Some(input),
            ready: Ready::default(),
            parts: Vec::new(),
            sorted: None,
            gathered: None,
            held: Held::default(),
            grown: Held::default(),
        }
    }

    pub fn next(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        if group.rollup {
            return self.next_rolled_up(group, ctx, out);
        }
        if !group.is_whole && group.calls.iter().any(|call| call.aggregate.lists()) {
            return self.next_gathered(group, ctx, out);
        }
        self.next_groups(group, ctx, out)
    }

    /// Returns groups from sorted rows, one after another.
    fn next_gathered(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        if self.gathered.is_none() {
            let Some(mut input) = self.input.take() else { return Ok(()) };
            let (mut sorter, mut count) = (Sorter::default(), 0u64);
            let mut keys = Vec::new();
            let all = Of::About(estimate(&group.input).rows as u64);
            let mut reading = Progress::begin("Sorting for group: reading", all);
            input.each(ctx, &mut |row, ctx| {
                reading.add(1, host(ctx));
                for level in group.levels() {
                    keys.clear();
                    group.key(level, row, ctx, &mut keys)?;
                    // Rows of a group keep their order.
                    keys.extend_from_slice(&count.to_be_bytes());
                    count += 1;
                    sorter.push(|out| out.extend_from_slice(&keys), row.iter().map(Cell::Value), ctx)?;
                }
                Ok(())
            })?;
            let (rows, adding) = (sorter.finish(&[], ctx)?, Adding::new(&self.states));
            reading.end(host(ctx));
            self.gathered = Some(Gathered { rows, gathering: None, key: Vec::new(), adding, count: 0 });
        }
        let Some(gathered) = &mut self.gathered else { return Ok(()) };
        let is_empty = gathered.count == 0;
        let mut bytes = 0;
        while out.len() < BATCH && bytes < BATCH_BYTES && gathered.step(group, ctx, out)? {
            bytes += out.last().map_or(0, |row| row_bytes(row));
        }
        if is_empty && gathered.count == 0 {
            // Sets without keys have a group of no rows, once.
            gathered.count = 1;
            for level in group.levels().filter(|level| group.is_total(*level)) {
                let mut nothing = Groups { keys: vec![Value::Null; group.keys.len()], ..Groups::default() };
                nothing.begin(&self.states, group, level);
                out.extend(self.states.finished(group, &mut nothing.into_ready(), ctx)?);
            }
        }
        Ok(())
    }

    fn next_groups(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        while out.len() < BATCH {
            if let Some(row) = self.states.finished(group, &mut self.ready, ctx)? {
                out.push(row);
                continue;
            }
            self.held.clear();
            self.grown.clear();
            let mut table = match (self.input.take(), self.parts.pop()) {
                (Some(mut input), part) => {
                    self.parts.extend(part);
                    let mut table = Table::new(group, &self.states, 0);
                    input.each(ctx, &mut |row, ctx| table.row(row, ctx))?;
                    table
                }
                (None, Some(part)) => {
                    let mut table = Table::new(group, &self.states, part.level);
                    let (mut rows, mut count) = (part.rows(), 0u64);
                    while let Some((key, row)) = rows.next()? {
                        table.add(&key, &row, ctx)?;
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
            (self.held, self.grown) = (table.held, table.adding.grown);
            self.ready = table.groups.into_ready();
        }
        Ok(())
    }

    /// Returns the rows of ROLLUP, each total after the rows that it sums up.
    fn next_rolled_up(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        if self.sorted.is_none() {
            let (mut sorter, mut rows) = (Sorter::default(), Vec::new());
            loop {
                self.next_groups(group, ctx, &mut rows)?;
                if rows.is_empty() {
                    break;
                }
                for mut row in rows.drain(..) {
                    // The number of keys of the row's group follows the row.
                    let level =
                        row.pop().map_or(0, |level| if let Value::Int(level) = level { level as usize } else { 0 });
                    let mut key = Vec::new();
                    for (at, (value, ty)) in row.iter().zip(&group.types).enumerate() {
                        // The NULL of a total sorts last, a NULL value first.
                        key.push(u8::from(at >= level));
                        encode(value, ty.shape(), KeyOrder::ASCENDING, &mut key);
                    }
                    sorter.push(|out| out.extend_from_slice(&key), row.iter().map(Cell::Value), ctx)?;
                }
            }
            self.sorted = Some(sorter.finish(&[], ctx)?);
        }
        let Some(sorted) = &mut self.sorted else { return Ok(()) };
        while out.len() < BATCH {
            let Some(record) = sorted.next_record()? else { return Ok(()) };
            out.push(record.row()?);
        }
        Ok(())
    }
}

/// Rows sorted by group.
struct Gathered {
    rows: Sorted,
    /// The current group, and its key.
    gathering: Option<Groups>,
    key: Vec<u8>,
    adding: Adding,
    /// The number of rows so far.
    count: u64,
}

impl Gathered {
    /// Reads to the end of a group. Returns false if there are no more.
    fn step(&mut self, group: &Group, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<bool> {
        while let Some(record) = self.rows.next_record()? {
            self.count += 1;
            if self.count.is_multiple_of(1024) {
                host(ctx).look_up()?;
            }
            let key = &record.key[..record.key.len() - size_of::<u64>()];
            let is_next = self.gathering.is_some() && key != self.key;
            let row = record.row()?;
            if is_next || self.gathering.is_none() {
                self.key.clear();
                self.key.extend_from_slice(key);
                let level = Group::level_of(key);
                let mut next = Groups::default();
                group.values(level, &row, ctx, &mut next.keys)?;
                next.begin(&self.adding.states, group, level);
                if let Some(done) = self.gathering.replace(next) {
                    out.extend(self.adding.states.finished(group, &mut done.into_ready(), ctx)?);
                }
                self.adding = Adding::new(&self.adding.states);
            }
            if let Some(gathering) = &mut self.gathering {
                self.adding.add(group, (0, &mut gathering.sums), &row, ctx)?;
            }
            if is_next {
                return Ok(true);
            }
        }
        let Some(done) = self.gathering.take() else { return Ok(false) };
        out.extend(self.adding.states.finished(group, &mut done.into_ready(), ctx)?);
        Ok(false)
    }
}

impl Group {
    /// Returns the numbers of the grouping sets; of ROLLUP the numbers of keys that count, without either the number of keys.
    fn levels(&self) -> std::ops::RangeInclusive<usize> {
        let count = self.keys.len();
        match self.sets.len().checked_sub(1) {
            Some(last) => 0..=last,
            None if self.rollup => 0..=count,
            None => count..=count,
        }
    }

    fn counts(&self, level: usize, key: usize) -> bool {
        match self.sets.get(level) {
            Some(set) => set.contains(&key),
            None => key < level,
        }
    }

    /// Returns whether the grouping set has no keys.
    fn is_total(&self, level: usize) -> bool {
        self.sets.get(level).is_some_and(Vec::is_empty)
    }

    /// Appends the key of the row's group: the level, and the keys that count.
    fn key(&self, level: usize, row: &[Value], ctx: &mut EvalContext, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&(level as u16).to_be_bytes());
        for (at, (expr, ty)) in self.keys.iter().zip(&self.types).enumerate() {
            match expr {
                _ if !self.counts(level, at) => {}
                Expr::Column(place, _) => encode(&row[*place], ty.shape(), KeyOrder::ASCENDING, out),
                expr => encode(&expr.eval(row, ctx)?, ty.shape(), KeyOrder::ASCENDING, out),
            }
        }
        Ok(())
    }

    fn level_of(key: &[u8]) -> usize {
        key.first_chunk::<2>().map_or(0, |bytes| usize::from(u16::from_be_bytes(*bytes)))
    }

    /// Appends the keys of the row's group, with NULL for those that do not count.
    fn values(&self, level: usize, row: &[Value], ctx: &mut EvalContext, out: &mut Vec<Value>) -> Result<()> {
        for (at, key) in self.keys.iter().enumerate() {
            out.push(if self.counts(level, at) { key.eval(row, ctx)? } else { Value::Null });
        }
        Ok(())
    }
}

/// The state that is needed to add a row to a group.
struct Adding {
    states: Arc<GroupStates>,
    /// The memory by which groups have grown since they were started.
    grown: Held,
    /// The keys that DISTINCT has seen: the group, the call, and the key of the values.
    seen: Keys,
    /// Buffers for a key and for arguments.
    key: Vec<u8>,
    values: Vec<Value>,
}

impl<'g> Table<'g> {
    fn new(group: &'g Group, states: &Arc<GroupStates>, level: u32) -> Table<'g> {
        let mut table = Table {
            group,
            groups: Groups::default(),
            places: KeyTable::default(),
            last: 0,
            held: Held::default(),
            level,
            others: None,
            adding: Adding::new(states),
            key: Vec::new(),
        };
        if group.is_whole {
            table.groups.begin(states, group, 0);
        }
        // Sets without keys have a group of no rows too.
        for set in group.levels().filter(|set| level == 0 && group.is_total(*set)) {
            let key = (set as u16).to_be_bytes();
            if let Err(hash) = table.places.search(&key) {
                table.places.add(&key, hash);
            }
            table.groups.keys.extend((0..group.keys.len()).map(|_| Value::Null));
            table.groups.begin(states, group, set);
        }
        table
    }

    /// Adds an input row: to a group of each grouping set, or of each shorter key of ROLLUP.
    fn row(&mut self, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        if self.group.is_whole {
            return self.add_to(0, row, ctx);
        }
        for level in self.group.levels() {
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            self.group.key(level, row, ctx, &mut key)?;
            self.add(&key, row, ctx)?;
            self.key = key;
        }
        Ok(())
    }

    /// Adds the row to its group, or to a partition.
    fn add(&mut self, key: &[u8], row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let is_last = self.last < self.places.len() && self.places.get(self.last) == key;
        let hash = match if is_last { Ok(self.last) } else { self.places.search(key) } {
            Ok(at) => {
                self.last = at;
                return self.add_to(at, row, ctx);
            }
            Err(hash) => hash,
        };
        let bytes = 2 * key.len() + 48 + 32 * self.group.keys.len() + 96 * self.group.calls.len();
        if self.others.is_some() || (self.level < LEVELS && host(ctx).must_spill(&self.held, bytes)) {
            let others = match &mut self.others {
                Some(others) => others,
                None => self.others.insert(Partitions::new(&host(ctx).spill()?, self.level)?),
            };
            return others.put(key, row);
        }
        let level = Group::level_of(key);
        let from = self.groups.keys.len();
        self.group.values(level, row, ctx, &mut self.groups.keys)?;
        let bytes = bytes + row_bytes(&self.groups.keys[from..]);
        if self.level < LEVELS {
            host(ctx).count(&mut self.held, bytes)?
        } else {
            host(ctx).hold(&mut self.held, bytes)?
        }
        self.groups.begin(&self.adding.states, self.group, level);
        self.last = self.places.add(key, hash);
        self.add_to(self.last, row, ctx)
    }

    fn add_to(&mut self, at: usize, row: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let sums = self.groups.sums_mut(&self.adding.states, at);
        self.adding.add(self.group, (at, sums), row, ctx)
    }
}

impl Adding {
    fn new(states: &Arc<GroupStates>) -> Adding {
        Adding {
            states: states.clone(),
            grown: Held::default(),
            seen: Keys::default(),
            key: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds the row to the group with number `at`.
    fn add(
        &mut self,
        group: &Group,
        (at, sums): (usize, &mut [Box<dyn Accumulator>]),
        row: &[Value],
        ctx: &mut EvalContext,
    ) -> Result<()> {
        let mut grown = 0;
        for (nth, sum) in self.states.firsts.iter().zip(sums) {
            let call = &group.calls[*nth];
            let Some(arguments) = call.admitted(row, ctx)? else { continue };
            let values = match arguments {
                [Expr::Column(place, _)] => std::slice::from_ref(&row[*place]),
                arguments => {
                    self.values.clear();
                    let exact = call.aggregate.sums_exactly();
                    if let [Expr::Call(argument)] = arguments
                        && (exact || matches!(argument.function.finish, Finish::Unchanged))
                        && let Some(number) = argument.exact_number(row, ctx)
                    {
                        if !call.aggregate.distinct && !call.aggregate.gathers() && sum.add_exact(number) {
                            continue;
                        }
                        self.values.push(Value::Decimal(number.into()));
                    } else {
                        for argument in arguments {
                            self.values.push(if exact {
                                argument.eval_exact(row, ctx)?
                            } else {
                                argument.eval(row, ctx)?
                            });
                        }
                    }
                    &self.values[..]
                }
            };
            if call.aggregate.distinct {
                self.key.clear();
                self.key.extend_from_slice(&(at as u32).to_be_bytes());
                self.key.extend_from_slice(&(*nth as u16).to_be_bytes());
                if !call.aggregate.distinct_key(values, &mut self.key) || !self.seen.insert(&self.key, ctx)? {
                    continue;
                }
            }
            if !call.aggregate.gathers() {
                sum.add(&call.aggregate, values, ctx)?;
                continue;
            }
            let before = sum.bytes();
            sum.add(&call.aggregate, values, ctx)?;
            self.grown.release(before.saturating_sub(sum.bytes()));
            grown += sum.bytes().saturating_sub(before);
        }
        if grown > 0 { host(ctx).hold_first(&mut self.grown, grown) } else { Ok(()) }
    }
}
