//! The executor: each node returns batches of rows on demand, and may pause between two batches for any time.
//!
//! `Exec::open` computes the state that is fixed for one run (bounds of scans; hash tables on first use), and `next`
//! replaces the batch. QU-13: between two calls a node holds positions and rows of its own, but no latch and no
//! borrowed row. QU-14: operators that collect rows count their bytes (`memory`).

mod caches;
pub mod change;
mod collection_rows;
mod collection_scan;
pub mod constraint_modes;
pub mod deferred;
mod distinct;
mod effect_notes;
pub mod effects;
pub mod foreign;
mod frame;
pub mod generated;
pub(crate) mod group;
mod hash;
mod held_rows;
pub mod host;
pub mod index_build;
pub mod instance;
pub mod instrumentation;
pub(crate) mod join;
mod key_table;
pub(crate) mod keys;
pub(crate) mod keyspace_scan;
mod keyspace_wanted;
mod lock_rows;
pub mod memory;
pub mod merge;
pub mod monitor;
mod partition;
mod prefetch;
pub mod progress;
mod project_set;
pub(crate) mod ranges;
pub mod rebuild;
mod recursion;
pub mod row_change;
mod row_ops;
pub(crate) mod scan;
pub mod sequence;
mod set;
pub(crate) mod sort;
pub mod sorter;
pub mod spill;
pub mod subquery;
pub(crate) mod subquery_cache;
mod system_search;
mod tied;
mod ties;
pub(crate) mod window;

use std::sync::Arc;
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use engine::{Kind, ThreadCounts};

use crate::batch::{Batch, Cells, Row};
use crate::exec::caches::caches;
use crate::exec::held_rows::HeldRows;
use crate::exec::host::host;
use crate::exec::memory::Held;
use crate::exec::row_ops::{BATCH, BATCH_BYTES, all_hold, limits, placed, template};
use crate::exec::spill::rows::Rows;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Node, Recursion};
use crate::nodes::system_table::SystemRows;
use crate::nodes::table_function::TableFunction;
use crate::value::Value;

/// A running node.
pub struct Exec {
    node: Arc<Node>,
    state: State,
    /// The left row that wide rows begin with.
    base: Option<Arc<Row>>,
    /// EXPLAIN ANALYZE: the time so far, until the node has returned a row.
    idle: Option<Duration>,
    /// See `open_for`.
    wanted: Option<u64>,
}

enum State {
    /// Rows to return once.
    Rows(std::vec::IntoIter<Row>, Held),
    /// Rows of a LATERAL table, and the next block.
    Lateral(Rows, usize),
    Scan(Box<scan::ScanState>),
    Collection(Box<collection_scan::CollectionScan>),
    /// One input without further state.
    Input(Box<Exec>),
    /// One input, and its rows that would have made the batch too long.
    Project(Box<Exec>, Vec<Row>),
    LockRows(Box<lock_rows::LockRowsState>),
    Loop(Box<join::LoopState>),
    Hash(Box<hash::HashState>),
    Window(Box<window::WindowState>),
    ProjectSet(Box<project_set::ProjectSetState>),
    Group(Box<group::GroupState>),
    Sort(Box<sort::SortState>),
    Distinct(Box<distinct::DistinctState>),
    Set(Box<set::SetState>),
    Limit {
        input: Option<Box<Exec>>,
        skip: u64,
        left: u64,
    },
    /// One input, and its number of rows so far.
    Count {
        input: Box<Exec>,
        skip: u64,
        left: u64,
        rows: u64,
    },
    Ties(Box<ties::TiesState>),
    Union(Option<Box<Exec>>, usize),
    /// The reader of a recursive common table expression whose rounds run as they are needed.
    Recursion(Box<recursion::RecursionReader>),
    /// Rows of a common table expression, and the next block.
    Shared(Arc<Rows>, usize),
}

/// Returns the state of a node. It is made in a frame of its own: a plan may be 1,600 nodes high, and the frames of nested calls are those of `begin`.
#[inline(never)]
fn boxed<T>(make: impl FnOnce() -> Result<T>) -> Result<Box<T>> {
    make().map(Box::new)
}

/// Returns the rows of a node without an input.
#[inline(never)]
fn source(node: &Node, base: Option<&Arc<Row>>, ctx: &mut EvalContext) -> Result<State> {
    Ok(match node {
        Node::One { width } => State::Rows(vec![template(base, *width)].into_iter(), Held::default()),
        Node::Lateral { input, depth, .. } => {
            State::Lateral(subquery::around(*depth, base.map_or(&[], |row| row), ctx, |ctx| gather(input, ctx))?, 0)
        }
        Node::TableFunction(function) => State::Shared(Arc::new(rows_of(function, ctx)?), 0),
        Node::Common { recursion: Some(Recursion { is_lazy: true, .. }), .. } => State::Recursion(Box::default()),
        Node::Common { id, source, recursion, is_kept } => {
            let kept = is_kept.then(|| caches(ctx).commons.get(id).cloned()).flatten();
            let rows = match kept {
                Some(rows) => rows,
                None => Arc::new(common(*id, source, recursion.as_ref(), ctx)?),
            };
            if *is_kept {
                caches(ctx).commons.insert(*id, rows.clone());
            }
            State::Shared(rows, 0)
        }
        Node::LastRound { id } => State::Shared(caches(ctx).commons.get(id).cloned().unwrap_or_default(), 0),
        _ => return Err(Fault::corrupt("a node with an input")),
    })
}

/// Returns the rows of a system table.
#[inline(never)]
fn system_rows(node: &Node, base: Option<&Arc<Row>>, ctx: &mut EvalContext) -> Result<State> {
    let Node::System { table, offset, width, wanted, lock, key_at, .. } = node else {
        return Err(Fault::corrupt("no system table"));
    };
    if let Some(place) = collection_place(node, base, ctx) {
        return Ok(State::Collection(Box::new(collection_scan::CollectionScan::open(&place, ctx)?)));
    }
    if let Some(of_keys) = table.keyspace()
        && let Some(lock) = keys::lock_of_scan(*lock, ctx)
    {
        let (offset, width, key_at) = (*offset, *width, *key_at);
        let locking =
            keys::Locking { system: table, keys: of_keys, conditions: wanted, lock, offset, width, key_at, base };
        let (rows, held) = locking.rows(ctx)?.into_parts();
        return Ok(State::Rows(rows, held));
    }
    let found = match table.rows {
        SystemRows::Keyspace(of_keys) => {
            keyspace_scan::rows((table, of_keys), wanted, *offset, base.map(|row| &**row), ctx)?
        }
        SystemRows::Computed(rows) => {
            let mut found = HeldRows::default();
            rows(ctx)?.into_iter().try_for_each(|row| found.push(row, ctx))?;
            found
        }
        SystemRows::Searched { rows, .. } => {
            let mut found = HeldRows::default();
            let search = system_search::searched(table, wanted, *offset, base, ctx);
            rows(&search, ctx, &mut |row, ctx| {
                host(ctx).look_up()?;
                found.push(row, ctx)
            })?;
            found
        }
    };
    let (found, held) = found.into_parts();
    let rows: Vec<Row> = found.map(|values| placed(values, base, *offset, *width)).collect();
    Ok(State::Rows(rows.into_iter(), held))
}

/// Returns the place of a table of collections, which is read in batches.
fn collection_place<'p>(
    node: &'p Node,
    base: Option<&'p Arc<Row>>,
    ctx: &mut EvalContext,
) -> Option<collection_scan::CollectionPlace<'p>> {
    let Node::System { table, offset, width, wanted, lock, key_at } = node else { return None };
    let keys = table.keyspace().filter(|keys| keys.kind != Kind::String)?;
    Some(collection_scan::CollectionPlace {
        system: table,
        keys,
        conditions: wanted,
        offset: *offset,
        width: *width,
        lock: keys::lock_of_scan(*lock, ctx),
        key_at: *key_at,
        base,
    })
}

/// Returns the rows of a VALUES list.
#[inline(never)]
fn computed_rows(rows: &[Vec<Expr>], ctx: &mut EvalContext) -> Result<State> {
    let row = |row: &Vec<Expr>| row.iter().map(|expr| expr.eval(&[], ctx)).collect::<Result<Row, _>>();
    let rows = rows.iter().map(row).collect::<Result<Vec<Row>, _>>()?;
    Ok(State::Rows(rows.into_iter(), Held::default()))
}

impl Exec {
    pub fn open(node: &Arc<Node>, base: Option<&Arc<Row>>, ctx: &mut EvalContext) -> Result<Exec> {
        Exec::open_for(node, base, None, ctx)
    }

    /// Opens a node below a LIMIT over rows that are locked as they are read. `wanted` is the number of rows needed,
    /// and no row is read ahead.
    fn open_for(node: &Arc<Node>, base: Option<&Arc<Row>>, wanted: Option<u64>, ctx: &mut EvalContext) -> Result<Exec> {
        if host(ctx).measures.is_none() {
            return Exec::begin(node, base, wanted, ctx);
        }
        let (start, before) = (Instant::now(), ThreadCounts::now());
        let mut exec = Exec::begin(node, base, wanted, ctx)?;
        let (took, counts) = (start.elapsed(), ThreadCounts::now().since(before));
        exec.idle = Some(took);
        if let Some(measures) = &mut host(ctx).measures {
            let measure = measures.of_mut(node);
            measure.loops += 1;
            measure.time += took;
            measure.counts.add(counts);
        }
        Ok(exec)
    }

    /// Begins a scan again over another left row. Returns false if the node must be opened instead.
    fn restart(&mut self, base: &Arc<Row>, ctx: &mut EvalContext) -> Result<bool> {
        match (&*self.node, &mut self.state) {
            (Node::Scan(scan), State::Scan(state))
                if scan::ScanState::may_restart(scan) && self.wanted.is_none() && host(ctx).measures.is_none() =>
            {
                state.restart_over(scan, base, ctx)?;
                self.base = Some(base.clone());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Returns a node over materialised rows.
    pub fn of_rows(rows: Arc<Rows>) -> Exec {
        let node = Arc::new(Node::Rows { rows: Vec::new() });
        Exec { node, state: State::Shared(rows, 0), base: None, idle: None, wanted: None }
    }

    fn begin(node: &Arc<Node>, base: Option<&Arc<Row>>, wanted: Option<u64>, ctx: &mut EvalContext) -> Result<Exec> {
        // A join makes several rows of one, or none, so its sides are read one row at a time.
        let (single, most) = (wanted.map(|_| 1), if wanted.is_some() { 1 } else { BATCH });
        let state = match &**node {
            Node::Scan(scan) => State::Scan(scan::ScanState::open(scan, base, wanted, ctx)?),
            Node::Loop { left, .. } => {
                let left = Exec::open_for(left, base, single, ctx)?;
                State::Loop(boxed(|| Ok(join::LoopState::new(left, most)))?)
            }
            Node::Hash(join) => {
                let left = Exec::open_for(&join.left, base, single, ctx)?;
                State::Hash(boxed(|| Ok(hash::HashState::new(left, most)))?)
            }
            Node::Project { input, .. } => {
                State::Project(Box::new(Exec::open_for(input, base, wanted, ctx)?), Vec::new())
            }
            Node::Filter { input, .. } | Node::Strip { input, .. } => {
                State::Input(Box::new(Exec::open_for(input, base, wanted, ctx)?))
            }
            Node::LockRows(lock) => {
                let input = Exec::open(&lock.input, base, ctx)?;
                State::LockRows(Box::new(lock_rows::LockRowsState::new(input, wanted)))
            }
            Node::Derived { input, .. } => State::Input(Box::new(Exec::open_for(input, None, wanted, ctx)?)),
            Node::Group(group) => {
                let input = Exec::open(&group.input, base, ctx)?;
                State::Group(boxed(|| Ok(group::GroupState::new(group, input)))?)
            }
            Node::Window(window) => {
                let input = Exec::open(&window.input, base, ctx)?;
                State::Window(boxed(|| window::WindowState::open(window, input, ctx))?)
            }
            Node::Sort { input, .. } => {
                let input = Exec::open(input, base, ctx)?;
                State::Sort(boxed(|| Ok(sort::SortState::new(input)))?)
            }
            Node::ProjectSet(set) => {
                let input = Exec::open(&set.input, base, ctx)?;
                State::ProjectSet(boxed(|| Ok(project_set::ProjectSetState::new(input)))?)
            }
            Node::Distinct { input, .. } => {
                let input = Exec::open_for(input, base, wanted, ctx)?;
                State::Distinct(boxed(|| Ok(distinct::DistinctState::new(input)))?)
            }
            Node::Limit { input, limit, offset, counts: true } => {
                let (left, skip) = limits(limit.as_ref(), offset.as_ref(), ctx)?;
                State::Count { input: Box::new(Exec::open(input, base, ctx)?), skip, left, rows: 0 }
            }
            Node::Limit { input, limit, offset, .. } => {
                let (left, skip) = limits(limit.as_ref(), offset.as_ref(), ctx)?;
                let wanted = locks(input).then(|| skip.saturating_add(left.min(wanted.unwrap_or(u64::MAX))));
                let input = if left == 0 { None } else { Some(Box::new(Exec::open_for(input, base, wanted, ctx)?)) };
                State::Limit { input, skip, left }
            }
            Node::Ties { input, limit, offset, .. } => {
                let (left, skip) = limits(Some(limit), offset.as_ref(), ctx)?;
                let input = Exec::open(input, base, ctx)?;
                State::Ties(boxed(|| Ok(ties::TiesState::new(input, left, skip)))?)
            }
            Node::Union { .. } => State::Union(None, 0),
            Node::SetOperation { left, right, .. } => {
                let (left, right) = (Exec::open(left, None, ctx)?, Exec::open(right, None, ctx)?);
                State::Set(boxed(|| Ok(set::SetState::new(left, right)))?)
            }
            Node::One { .. }
            | Node::Lateral { .. }
            | Node::TableFunction(_)
            | Node::Common { .. }
            | Node::LastRound { .. } => source(node, base, ctx)?,
            Node::System { .. } => system_rows(node, base, ctx)?,
            Node::Rows { rows } => computed_rows(rows, ctx)?,
        };
        Ok(Exec { node: node.clone(), state, base: base.cloned(), idle: None, wanted })
    }

    /// Replaces `out` by the next rows. Returns false, and no rows, at the end.
    pub fn next(&mut self, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<bool> {
        out.clear();
        host(ctx).look_up()?;
        if ctx.has_woken {
            return Err(Fault::StatementTimeout);
        }
        if host(ctx).measures.is_none() {
            return self.step(ctx, out);
        }
        let (start, before) = (Instant::now(), ThreadCounts::now());
        let more = self.step(ctx, out)?;
        let (took, counts) = (start.elapsed(), ThreadCounts::now().since(before));
        if let Some(measures) = &mut host(ctx).measures {
            let measure = measures.of_mut(&self.node);
            measure.time += took;
            measure.counts.add(counts);
            measure.rows += out.len() as u64;
            match &mut self.idle {
                Some(idle) if !more => *idle += took,
                idle => measure.first += idle.take().map_or(Duration::ZERO, |idle| idle + took),
            }
        }
        Ok(more)
    }

    fn step(&mut self, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<bool> {
        match (&*self.node, &mut self.state) {
            (_, State::Rows(rows, held)) => {
                out.extend(rows.take(BATCH));
                if rows.len() == 0 {
                    held.clear();
                }
            }
            (Node::Lateral { offset, width, .. }, State::Lateral(rows, at)) => {
                let block = rows.take_block(*at)?.into_iter();
                out.extend(block.map(|values| placed(values, self.base.as_ref(), *offset, *width)));
                *at += 1;
            }
            (_, State::Shared(rows, at)) => {
                out.extend(rows.block(*at)?.iter().cloned());
                *at += 1;
            }
            (Node::Common { id, source, recursion: Some(recursion), is_kept }, State::Recursion(reader)) => {
                reader.next((*id, *is_kept), (source, recursion), ctx, out)?;
            }
            (Node::Scan(scan), State::Scan(state)) => state.next(scan, ctx, out)?,
            (node, State::Collection(state)) => {
                if let Some(place) = collection_place(node, self.base.as_ref(), ctx) {
                    state.next(&place, ctx, out)?;
                }
            }
            (Node::LockRows(lock), State::LockRows(state)) => state.next(lock, ctx, out)?,
            (Node::Loop { right, kind, on, fills, .. }, State::Loop(state)) => {
                state.next(right, *kind, on, fills, ctx, out)?
            }
            (Node::Hash(join), State::Hash(state)) => state.next(join, self.base.as_ref(), ctx, out)?,
            (Node::Filter { conditions, .. }, State::Input(input)) => {
                while out.is_empty() && input.next(ctx, out)? {
                    keep(conditions, ctx, out)?;
                }
            }
            (Node::Project { exprs, .. }, State::Project(input, waiting)) => {
                if !waiting.is_empty() {
                    std::mem::swap(waiting, out);
                } else if !input.next(ctx, out)? {
                    return Ok(false);
                }
                let done = project(exprs, ctx, out)?;
                *waiting = out.split_off(done);
            }
            (Node::Strip { width, .. }, State::Input(input)) => {
                input.next(ctx, out)?;
                out.iter_mut().for_each(|row| row.truncate(*width));
            }
            (Node::Derived { offset, width, .. }, State::Input(input)) => {
                input.next(ctx, out)?;
                for row in out.iter_mut() {
                    *row = placed(std::mem::take(row), self.base.as_ref(), *offset, *width);
                }
            }
            (Node::Group(group), State::Group(state)) => state.next(group, ctx, out)?,
            (Node::Window(window), State::Window(state)) => state.next(window, ctx, out)?,
            (Node::ProjectSet(set), State::ProjectSet(state)) => state.next(set, ctx, out)?,
            (Node::Sort { keys, limit, unique, .. }, State::Sort(state)) => {
                let mut batch = Batch::new();
                state.next(keys, limit.as_ref(), *unique, ctx, &mut batch)?;
                out.extend(batch.rows().map(Cells::to_row));
            }
            (Node::Ties { keys, .. }, State::Ties(state)) => state.next(keys, ctx, out)?,
            (Node::Distinct { types, .. }, State::Distinct(state)) => state.next(types, ctx, out)?,
            (Node::SetOperation { types, keeps_common, all, .. }, State::Set(state)) => {
                let how = set::How { types, keeps_common: *keeps_common, all: *all };
                state.next(how, ctx, out)?
            }
            (_, State::Limit { input, skip, left }) => {
                limit(input, skip, left, ctx, out)?;
            }
            (_, State::Count { input, skip, left, rows }) => {
                while out.is_empty() && input.next(ctx, out)? {
                    *rows += out.len() as u64;
                    let skipped = (*skip).min(out.len() as u64);
                    *skip -= skipped;
                    out.drain(..skipped as usize);
                    out.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= out.len() as u64;
                }
                if out.is_empty() {
                    host(ctx).found_rows = Some(*rows);
                }
            }
            (Node::Union { inputs }, State::Union(current, at)) => {
                while out.is_empty() && *at < inputs.len() {
                    let exec = match current {
                        Some(exec) => exec,
                        None => {
                            let exec = Exec::open_for(&inputs[*at], self.base.as_ref(), self.wanted, ctx)?;
                            current.insert(Box::new(exec))
                        }
                    };
                    if !exec.next(ctx, out)? {
                        *current = None;
                        *at += 1;
                    }
                }
            }
            _ => unreachable!("open makes the state that belongs to the node"),
        }
        Ok(!out.is_empty())
    }

    /// Returns whether the plan reads no table. Its one row comes with the first batch, so a later kill need not be
    /// reported.
    pub fn is_of_no_table(&self) -> bool {
        matches!(&*self.node, Node::Project { input, .. } if matches!(&**input, Node::One { .. }))
    }

    /// Appends the next rows to a result batch. Returns false, and no rows, at the end. It is `next` for rows on their
    /// way to the client, and avoids building them where that matters.
    pub fn fill(&mut self, ctx: &mut EvalContext, out: &mut Batch) -> Result<bool> {
        let before = out.len();
        if host(ctx).measures.is_none() {
            host(ctx).look_up()?;
            match (&*self.node, &mut self.state) {
                (Node::Scan(scan), State::Scan(state)) if scan.output.is_some() => {
                    state.fill(scan, ctx, out)?;
                    return Ok(out.len() > before);
                }
                (Node::Sort { keys, limit, unique, .. }, State::Sort(state)) => {
                    state.next(keys, limit.as_ref(), *unique, ctx, out)?;
                    return Ok(out.len() > before);
                }
                (_, State::Limit { input, skip, left }) => {
                    fill_limited(input, skip, left, ctx, out)?;
                    return Ok(out.len() > before);
                }
                _ => {}
            }
        }
        let mut rows = out.lend_list();
        self.next(ctx, &mut rows)?;
        out.put_back(rows);
        Ok(out.len() > before)
    }

    /// Calls `take` with each row, before any has been asked for (QU-52). A scan and a join build no rows for it.
    pub fn each(&mut self, ctx: &mut EvalContext, take: &mut scan::Take<'_>) -> Result<()> {
        if host(ctx).measures.is_none() {
            match (&*self.node, &mut self.state) {
                (Node::Scan(scan), State::Scan(state)) if scan.output.is_none() => {
                    return state.each(scan, ctx, take);
                }
                (Node::Hash(join), State::Hash(state)) => return state.each(join, self.base.as_ref(), ctx, take),
                (Node::Loop { right, kind, on, fills, .. }, State::Loop(state)) if !kind.decides() => {
                    return state.each(right, (*kind, fills), on, ctx, take);
                }
                _ => {}
            }
        }
        let mut batch = Vec::new();
        while self.next(ctx, &mut batch)? {
            batch.iter().try_for_each(|row| take(row, ctx))?;
        }
        Ok(())
    }
}

impl Exec {
    fn is_scan(&self) -> bool {
        matches!(&*self.node, Node::Scan(_))
    }

    /// Returns whether a row satisfies these conditions. The first one decides.
    pub fn any(&mut self, on: &[Expr], ctx: &mut EvalContext) -> Result<bool> {
        if let (Node::Scan(scan), State::Scan(state)) = (&*self.node, &mut self.state)
            && scan.output.is_none()
            && host(ctx).measures.is_none()
        {
            host(ctx).look_up()?;
            return state.any(scan, on, ctx);
        }
        let mut batch = Vec::new();
        while self.next(ctx, &mut batch)? {
            for row in &batch {
                if all_hold(on, row, ctx)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a plan under way")
    }
}

/// Returns whether the plan locks rows one at a time as it returns them.
fn locks(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => scan.lock.is_some(),
        Node::LockRows(_) => true,
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Strip { input, .. }
        | Node::Distinct { input, .. }
        | Node::Derived { input, .. } => locks(input),
        Node::Loop { left, right, .. } => locks(left) || locks(right),
        Node::Hash(join) => locks(&join.left),
        Node::Union { inputs } => inputs.iter().any(|input| locks(input)),
        _ => false,
    }
}

/// Projects rows. Values of plain columns are moved, not copied. Returns the number of projected rows; where values are
/// long, the rest stays.
fn project(exprs: &[Expr], ctx: &mut EvalContext, rows: &mut [Row]) -> Result<usize> {
    let count = rows.len();
    let place = |expr: &Expr| if let Expr::Column(at, _) = expr { Some(*at) } else { None };
    let is_new = |(nth, expr): (usize, &Expr)| exprs[..nth].iter().all(|other| place(other) != place(expr));
    if exprs.iter().all(|expr| place(expr).is_some()) && exprs.iter().enumerate().all(is_new) {
        for row in rows {
            *row = exprs.iter().filter_map(place).map(|at| std::mem::take(&mut row[at])).collect();
        }
        return Ok(count);
    }
    let mut bytes = 0;
    for (nth, row) in rows.iter_mut().enumerate() {
        *row = exprs.iter().map(|expr| expr.eval(row, ctx)).collect::<Result<Row, _>>()?;
        bytes += row.iter().map(Value::heap_bytes).sum::<usize>();
        if bytes > BATCH_BYTES {
            return Ok(nth + 1);
        }
    }
    Ok(count)
}

fn keep(conditions: &[Expr], ctx: &mut EvalContext, rows: &mut Vec<Row>) -> Result<()> {
    let mut kept = 0;
    for at in 0..rows.len() {
        if all_hold(conditions, &rows[at], ctx)? {
            rows.swap(kept, at);
            kept += 1;
        }
    }
    rows.truncate(kept);
    Ok(())
}

fn limit(
    input: &mut Option<Box<Exec>>,
    skip: &mut u64,
    left: &mut u64,
    ctx: &mut EvalContext,
    out: &mut Vec<Row>,
) -> Result<()> {
    while out.is_empty() {
        let Some(exec) = input else { return Ok(()) };
        if !exec.next(ctx, out)? {
            *input = None;
            return Ok(());
        }
        let skipped = (*skip).min(out.len() as u64);
        *skip -= skipped;
        out.drain(..skipped as usize);
        out.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
        *left -= out.len() as u64;
        if *left == 0 {
            *input = None;
        }
    }
    Ok(())
}

/// Projects into a result batch.
fn fill_limited(
    input: &mut Option<Box<Exec>>,
    skip: &mut u64,
    left: &mut u64,
    ctx: &mut EvalContext,
    out: &mut Batch,
) -> Result<()> {
    let before = out.len();
    while out.len() == before
        && let Some(exec) = input
    {
        let more = exec.fill(ctx, out)?;
        let came = (out.len() - before) as u64;
        let skipped = (*skip).min(came);
        let taken = (came - skipped).min(*left);
        out.remove(before + (skipped + taken) as usize..out.len());
        out.remove(before..before + skipped as usize);
        *skip -= skipped;
        *left -= taken;
        if !more || *left == 0 {
            *input = None;
        }
    }
    Ok(())
}

/// Materialises all rows of the plan, in a file where memory is short.
pub fn gather(node: &Arc<Node>, ctx: &mut EvalContext) -> Result<Rows> {
    let mut rows = Rows::default();
    fill(node, ctx, &mut |row, ctx| rows.push(row, ctx))?;
    Ok(rows)
}

/// Returns at most `most` rows.
pub fn drain(exec: &mut Exec, ctx: &mut EvalContext, most: usize) -> Result<Vec<Row>> {
    let (mut rows, mut batch) = (HeldRows::default(), Vec::new());
    while rows.rows.len() < most && exec.next(ctx, &mut batch)? {
        batch.drain(..).try_for_each(|row| rows.push(row, ctx))?;
    }
    Ok(rows.rows)
}

/// Resets the state of the previous statement. Called before a statement runs.
pub fn begin_statement(ctx: &mut EvalContext) {
    host(ctx).begin_statement();
    effects::end(ctx);
    caches(ctx).clear();
}

/// Materialises the rows of a table function, in a file where memory is short.
fn rows_of(function: &TableFunction, ctx: &mut EvalContext) -> Result<Rows> {
    let argument = function.argument.eval(&[], ctx)?;
    let mut rows = Rows::default();
    function.source.rows(argument, ctx, &mut |row, ctx| {
        host(ctx).look_up()?;
        rows.push(row, ctx)
    })?;
    Ok(rows)
}

/// Returns the rows of a common table expression, computed at first use.
fn common(id: usize, source: &Arc<Node>, recursion: Option<&Recursion>, ctx: &mut EvalContext) -> Result<Rows> {
    let mut rows = Rows::default();
    match recursion {
        None => fill(source, ctx, &mut |row, ctx| rows.push(row, ctx))?,
        Some(recursion) => rows = recursion::all(id, source, recursion, ctx)?,
    }
    Ok(rows)
}

/// Collects all rows of the plan.
fn fill(
    node: &Arc<Node>,
    ctx: &mut EvalContext,
    take: &mut dyn FnMut(Row, &mut EvalContext) -> Result<()>,
) -> Result<()> {
    let mut exec = Exec::open(node, None, ctx)?;
    let mut batch = Vec::new();
    while exec.next(ctx, &mut batch)? {
        batch.drain(..).try_for_each(|row| take(row, ctx))?;
    }
    Ok(())
}
