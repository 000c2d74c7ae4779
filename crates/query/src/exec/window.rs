//! Evaluation of window functions: the sorted input, partition by partition.
//!
//! Frames only move forward (QU-19): both bounds continue from those of the row before, so a partition is scanned once
//! for each bound. An aggregate over a frame is updated incrementally. Rows that enter are added, and rows that leave
//! are removed where the arithmetic allows (`Accumulator::remove`); for MIN and MAX a queue keeps the candidates.
//! Otherwise the frame is aggregated again.

use std::cmp::Ordering;
use std::collections::VecDeque;

use datum::key::{KeyOrder, encode};
use datum::{Fault, Result};

use crate::batch::{Cell, Row};
use crate::exec::Exec;
use crate::exec::frame::{Edges, amounts, runs};
use crate::exec::host::host;
use crate::exec::partition::{Amounts, Partition};
use crate::exec::progress::{self, Of};
use crate::exec::row_ops::BATCH;
use crate::exec::sorter::{Sorted, Sorter};
use crate::exec::spill::rows::Rows;
use crate::nodes::aggregate::Accumulator;
use crate::nodes::comparison::Comparator;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::AggregateCall;
use crate::nodes::window::{Exclusion, What, Window, WindowCall};
use crate::plan::estimate::estimate;
use crate::value::Value;

pub struct WindowState {
    input: Option<Box<Exec>>,
    sorted: Option<Sorted>,
    /// The first row of the next partition.
    ahead: Option<(Vec<u8>, Row)>,
    /// The current partition, and the progress of its functions.
    partition: Option<(Partition, Vec<Progress>)>,
    amounts: Vec<Amounts>,
}

/// The progress of one function.
struct Progress {
    edges: Edges,
    sum: Option<Running>,
    /// The number of NTILE, once it is known.
    buckets: Option<i64>,
}

/// The aggregate of a frame.
struct Running {
    frame: (usize, usize),
    sum: Box<dyn Accumulator>,
    /// For MIN and MAX over a moved frame: the rows that may still become the extreme, best first.
    best: Option<VecDeque<(usize, Value)>>,
    last: Option<Value>,
}

impl WindowState {
    pub fn open(window: &Window, input: Exec, ctx: &mut EvalContext) -> Result<WindowState> {
        let amounts = window.calls.iter().map(|call| constants(call, ctx)).collect::<Result<_>>()?;
        Ok(WindowState { input: Some(Box::new(input)), sorted: None, ahead: None, partition: None, amounts })
    }

    pub fn next(&mut self, window: &Window, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        if let Some(input) = self.input.take() {
            let mut sorted = gather(window, *input, ctx)?;
            self.ahead = sorted.next_record()?.map(|record| record.to_owned()).transpose()?;
            self.sorted = Some(sorted);
        }
        while out.len() < BATCH {
            let partition = match &mut self.partition {
                Some(partition) => partition,
                None => match self.read_partition(window, ctx)? {
                    Some(partition) => self.partition.insert(partition),
                    None => return Ok(()),
                },
            };
            let (partition, calls) = partition;
            match partition.next(window, (calls, &self.amounts), ctx)? {
                Some(row) => out.push(row),
                None => self.partition = None,
            }
        }
        Ok(())
    }

    fn read_partition(&mut self, window: &Window, ctx: &mut EvalContext) -> Result<Option<(Partition, Vec<Progress>)>> {
        let (Some(sorted), Some((key, row))) = (&mut self.sorted, self.ahead.take()) else { return Ok(None) };
        let split = split_of(&key);
        let mut rows = Rows::default();
        let name = key[..split].to_vec();
        let mut next = Some((key, row));
        while let Some((key, mut row)) = next.take_if(|(key, _)| split_of(key) == split && key[..split] == name) {
            row.push(Value::bytes(&key[split..key.len() - 4]));
            rows.push(row, ctx)?;
            if rows.len().is_multiple_of(BATCH) {
                host(ctx).look_up()?;
            }
            next = sorted.next_record()?.map(|record| record.to_owned()).transpose()?;
        }
        self.ahead = next;
        let calls = window.calls.iter().map(Progress::new).collect();
        Ok(Some((Partition::new(rows), calls)))
    }
}

/// Sorts the input by partition and order. The length of the partition part follows each key; equal keys have equal
/// lengths.
fn gather(window: &Window, mut input: Exec, ctx: &mut EvalContext) -> Result<Sorted> {
    let mut sorter = Sorter::default();
    let mut batch = Vec::new();
    let all = Of::About(estimate(&window.input).rows as u64);
    let mut reading = progress::Progress::begin("Sorting for window: reading", all);
    while input.next(ctx, &mut batch)? {
        reading.add(batch.len(), host(ctx));
        for mut row in batch.drain(..) {
            let mut key = Vec::new();
            for expr in &window.partition {
                encode(&expr.eval(&row, ctx)?, expr.ty().shape(), KeyOrder::ASCENDING, &mut key);
            }
            let split = key.len() as u32;
            for (expr, order) in &window.order {
                encode(&expr.eval(&row, ctx)?, expr.ty().shape(), *order, &mut key);
            }
            key.extend_from_slice(&split.to_be_bytes());
            row.resize(window.width.max(row.len()), Value::Null);
            sorter.push(|out| out.extend_from_slice(&key), row.iter().map(Cell::Value), ctx)?;
        }
    }
    let sorted = sorter.finish(&[], ctx)?;
    reading.end(host(ctx));
    Ok(sorted)
}

fn split_of(key: &[u8]) -> usize {
    key.last_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize)
}

fn constants(call: &WindowCall, ctx: &mut EvalContext) -> Result<Amounts> {
    let mut whole = |name: &'static str, expr: &Expr, least: u64| match expr.eval(&[], ctx)? {
        Value::Int(number) if number >= least as i64 => Ok(Some(number as u64)),
        Value::UInt(number) if number >= least => Ok(Some(number)),
        _ => Err(Fault::InvalidArgument { function: name }),
    };
    let number = match &call.what {
        _ if call.varies => None,
        What::Ntile(count) => whole("ntile", count, 1)?,
        What::Nth(_, nth) => whole("nth_value", nth, 1)?,
        What::Shift { by: Some(by), ahead, .. } => whole(if *ahead { "lead" } else { "lag" }, by, 0)?,
        _ => None,
    };
    let (start, end) = amounts(&call.frame, ctx)?;
    Ok(Amounts { number, start, end })
}

impl Partition {
    fn next(
        &mut self,
        window: &Window,
        (calls, amounts): (&mut [Progress], &[Amounts]),
        ctx: &mut EvalContext,
    ) -> Result<Option<Row>> {
        let at = self.at;
        if at == self.rows.len() {
            return Ok(None);
        }
        if at.is_multiple_of(BATCH) {
            host(ctx).look_up()?;
        }
        if at >= self.peers.1 {
            let key = self.key(at)?;
            let mut end = at + 1;
            while end < self.rows.len() && self.key(end)? == key {
                end += 1;
            }
            self.peers = (at, end);
            self.groups += 1;
        }
        let mut results = Vec::with_capacity(window.calls.len());
        for ((call, progress), amounts) in window.calls.iter().zip(calls).zip(amounts) {
            results.push(self.result(call, progress, amounts, ctx)?);
        }
        self.at += 1;
        let mut row = self.row(at)?.clone();
        row.pop();
        for (call, result) in window.calls.iter().zip(results) {
            row[call.at] = result;
        }
        Ok(Some(row))
    }

    fn result(
        &mut self,
        call: &WindowCall,
        progress: &mut Progress,
        amounts: &Amounts,
        ctx: &mut EvalContext,
    ) -> Result<Value> {
        let (at, count) = (self.at, self.rows.len());
        let exclusion = call.frame.exclusion;
        let by = match self.number(call, progress, ctx)? {
            Some(Varying::Null) => return Ok(Value::Null),
            Some(Varying::Number(number)) => Some(number),
            None => amounts.number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)),
        };
        Ok(match &call.what {
            What::RowNumber => Value::UInt(at as u64 + 1),
            What::Rank => Value::UInt(self.peers.0 as u64 + 1),
            What::DenseRank => Value::UInt(self.groups),
            What::PercentRank if count == 1 => Value::Double(0.0),
            What::PercentRank => Value::Double(self.peers.0 as f64 / (count - 1) as f64),
            What::CumeDist => Value::Double(self.peers.1 as f64 / count as f64),
            What::Ntile(_) => Value::UInt(bucket(at as u64, count as u64, by.unwrap_or(1) as u64)),
            What::Shift { value, otherwise, ahead, .. } => {
                let by = by.unwrap_or(1);
                let place = if *ahead { (at as i64).checked_add(by) } else { (at as i64).checked_sub(by) };
                match place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < count) {
                    Some(place) => self.eval(Some(place), value, ctx)?,
                    None => self.eval(Some(at), otherwise, ctx)?,
                }
            }
            What::First(value) => {
                let frame = progress.edges.frame(self, at, &call.frame, amounts, ctx)?;
                let runs = runs(&call.frame, frame, at, self.peers);
                let first = runs.iter().find(|(from, to)| from < to).map(|(from, _)| *from);
                self.eval(first, value, ctx)?
            }
            What::Last(value) => {
                let frame = progress.edges.frame(self, at, &call.frame, amounts, ctx)?;
                let runs = runs(&call.frame, frame, at, self.peers);
                let last = runs.iter().rev().find(|(from, to)| from < to).map(|(_, to)| to - 1);
                self.eval(last, value, ctx)?
            }
            What::Nth(value, _) => {
                let frame = progress.edges.frame(self, at, &call.frame, amounts, ctx)?;
                let mut nth = usize::try_from(by.unwrap_or(1)).unwrap_or(usize::MAX) - 1;
                let mut place = None;
                for (from, to) in runs(&call.frame, frame, at, self.peers) {
                    if nth < to - from {
                        place = Some(from + nth);
                        break;
                    }
                    nth -= to - from;
                }
                self.eval(place, value, ctx)?
            }
            What::Aggregate(aggregate) if exclusion != Exclusion::NoOthers => {
                let frame = progress.edges.frame(self, at, &call.frame, amounts, ctx)?;
                let runs = runs(&call.frame, frame, at, self.peers);
                whole(&runs, aggregate, self, ctx)?
            }
            What::Aggregate(aggregate) => {
                let frame = progress.edges.frame(self, at, &call.frame, amounts, ctx)?;
                match &mut progress.sum {
                    Some(running) => running.of(frame, aggregate, self, ctx)?,
                    None => Value::Null,
                }
            }
        })
    }
}

/// A number that is evaluated for each row.
enum Varying {
    Null,
    Number(i64),
}

impl Partition {
    /// Returns the number of a call that varies, at the current row.
    fn number(&mut self, call: &WindowCall, progress: &mut Progress, ctx: &mut EvalContext) -> Result<Option<Varying>> {
        let (expr, least) = match &call.what {
            _ if !call.varies => return Ok(None),
            What::Ntile(count) => (count, 1),
            What::Nth(_, nth) => (nth, 1),
            What::Shift { by: Some(by), .. } => (by, i64::MIN),
            _ => return Ok(None),
        };
        if let Some(buckets) = progress.buckets {
            return Ok(Some(Varying::Number(buckets)));
        }
        let number = match self.eval(Some(self.at), expr, ctx)? {
            Value::Int(number) => number,
            Value::UInt(number) => i64::try_from(number).unwrap_or(i64::MAX),
            _ => return Ok(Some(Varying::Null)),
        };
        let is_buckets = matches!(call.what, What::Ntile(_));
        if number < least {
            return Err(Fault::InvalidArgument { function: if is_buckets { "ntile" } else { "nth_value" } });
        }
        progress.buckets = is_buckets.then_some(number);
        Ok(Some(Varying::Number(number)))
    }
}

/// NTILE: the first buckets have one row more.
fn bucket(at: u64, count: u64, buckets: u64) -> u64 {
    let (size, larger) = (count / buckets, count % buckets);
    let in_larger = larger * (size + 1);
    if at < in_larger { at / (size + 1) + 1 } else { larger + (at - in_larger) / size.max(1) + 1 }
}

impl Progress {
    fn new(call: &WindowCall) -> Progress {
        let sum = match &call.what {
            What::Aggregate(call) => Some(Running::new(call)),
            _ => None,
        };
        Progress { edges: Edges::default(), sum, buckets: None }
    }
}

impl Running {
    fn new(call: &AggregateCall) -> Running {
        Running { frame: (0, 0), sum: call.aggregate.start(), best: None, last: None }
    }

    /// Returns the aggregate of the frame.
    fn of(
        &mut self,
        frame: (usize, usize),
        call: &AggregateCall,
        rows: &mut Partition,
        ctx: &mut EvalContext,
    ) -> Result<Value> {
        let (from, to) = (frame.0.min(frame.1), frame.1);
        if self.frame == (from, to)
            && let Some(last) = &self.last
        {
            return Ok(last.clone());
        }
        let value = match (call.aggregate.function.extreme, call.aggregate.by) {
            (Some(wanted), Some(by)) if self.frame.0 < from || self.best.is_some() => {
                self.extreme((from, to), call, (wanted, by), rows, ctx)?
            }
            _ => self.total((from, to), call, rows, ctx)?,
        };
        self.frame = (from, to);
        self.last = Some(value.clone());
        Ok(value)
    }

    fn total(
        &mut self,
        (from, to): (usize, usize),
        call: &AggregateCall,
        rows: &mut Partition,
        ctx: &mut EvalContext,
    ) -> Result<Value> {
        let (mut begin, mut end) = self.frame;
        let is_disjoint = from >= end || to < end || from < begin;
        if is_disjoint || (from > begin && !self.sum.can_remove(&call.aggregate)) {
            self.sum = call.aggregate.start();
            (begin, end) = (from, from);
        }
        while begin < from {
            if let Some(values) = arguments(call, rows.row(begin)?, ctx)? {
                self.sum.remove(&values, ctx)?;
            }
            begin += 1;
        }
        while end < to {
            if let Some(values) = arguments(call, rows.row(end)?, ctx)? {
                self.sum.add(&call.aggregate, &values, ctx)?;
            }
            end += 1;
            if end.is_multiple_of(4096) {
                host(ctx).look_up()?;
            }
        }
        let value = self.sum.copy().finish(&call.aggregate, ctx)?;
        Ok((call.aggregate.function.finish)(value, &call.aggregate.ty))
    }

    /// Returns the extreme of the frame from the queue. A worse value waits behind a better one until that leaves the
    /// frame.
    fn extreme(
        &mut self,
        (from, to): (usize, usize),
        call: &AggregateCall,
        (wanted, by): (Ordering, Comparator),
        rows: &mut Partition,
        ctx: &mut EvalContext,
    ) -> Result<Value> {
        let seen = if self.best.is_some() { self.frame.1 } else { from };
        let best = self.best.get_or_insert_default();
        for at in seen.max(from)..to {
            let row = rows.row(at)?;
            let Some([argument, ..]) = call.admitted(row, ctx)? else { continue };
            let value = argument.eval(row, ctx)?;
            if value.is_null() {
                continue;
            }
            while let Some((_, last)) = best.back() {
                let is_better = by.order(&value, last, ctx)? == wanted;
                if !is_better {
                    break;
                }
                best.pop_back();
            }
            best.push_back((at, value));
        }
        while best.front().is_some_and(|(at, _)| *at < from) {
            best.pop_front();
        }
        Ok(best.front().map(|(_, value)| value.clone()).unwrap_or_default())
    }
}

/// Aggregates runs of rows from the beginning.
fn whole(runs: &[(usize, usize)], call: &AggregateCall, rows: &mut Partition, ctx: &mut EvalContext) -> Result<Value> {
    let mut sum = call.aggregate.start();
    for (from, to) in runs {
        for at in *from..*to {
            if let Some(values) = arguments(call, rows.row(at)?, ctx)? {
                sum.add(&call.aggregate, &values, ctx)?;
            }
            if at.is_multiple_of(4096) {
                host(ctx).look_up()?;
            }
        }
    }
    let value = sum.finish(&call.aggregate, ctx)?;
    Ok((call.aggregate.function.finish)(value, &call.aggregate.ty))
}

/// Returns the values that are added for a row; `None` if FILTER rejects the row.
fn arguments(call: &AggregateCall, row: &Row, ctx: &mut EvalContext) -> Result<Option<Vec<Value>>> {
    let Some(arguments) = call.admitted(row, ctx)? else { return Ok(None) };
    arguments.iter().map(|argument| argument.eval(row, ctx)).collect::<Result<_>>().map(Some)
}
