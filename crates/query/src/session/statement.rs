//! A bound statement: its plan, and the definitions to which it was bound.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::rows::SeenMaps;

use crate::catalog::table::Table;
use crate::catalog::table_lock::TableMode;
use crate::catalog::view::View;
use crate::exec::change::is_of_one_table;
use crate::nodes::change::{Delete, Insert, Merge, Returning, Target, Update};
use crate::nodes::expr::Expr;
use crate::nodes::node::Node;
use crate::nodes::walk::{inputs, is_steady, subqueries};
use crate::plan::estimate::estimate;
use crate::plan::restartable::{is_restartable, only_sleep, only_sleeps};
use crate::types::Column;

/// Plans of a higher estimated cost are not cached: planning is a small part of their run.
const HEAVY: f64 = 5000.0;

/// The plan of a statement. `L` is the dialect's description of a file whose rows are inserted.
#[derive(Debug)]
pub enum Plan<L> {
    Query {
        node: Arc<Node>,
        columns: Arc<[Column]>,
    },
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Merge(Box<Merge>),
    /// WITH that changes rows.
    Several(Box<Several<L>>),
    /// Expressions that are evaluated for their effects.
    Evaluate(Vec<Expr>),
    Load(Load<L>),
}

/// A statement whose WITH has statements that change rows. All read the tables as they were before it (`exec::effects`).
#[derive(Debug)]
pub struct Several<L> {
    pub parts: Vec<StatementPart<L>>,
    pub main: Plan<L>,
    /// The order in which they run: the places of parts, and `None` for the main statement.
    pub order: Vec<Option<usize>>,
    /// The main statement reads tables that the parts change.
    pub reads_changes: bool,
}

#[derive(Debug)]
pub struct StatementPart<L> {
    /// The number of the common table expression whose rows are those that the part returns.
    pub id: usize,
    pub name: String,
    pub plan: Plan<L>,
    /// The part reads tables that other parts, or the main statement, change.
    pub reads_changes: bool,
}

/// An INSERT whose rows arrive as the bytes of a file.
#[derive(Debug)]
pub struct Load<L> {
    pub insert: Insert,
    pub source: L,
}

impl<L> Plan<L> {
    /// Returns the estimated cost of finding the rows.
    fn cost(&self) -> f64 {
        match self {
            Plan::Query { node, .. } => estimate(node).cost,
            Plan::Update(update) => estimate(&update.node).cost,
            Plan::Delete(delete) => estimate(&delete.node).cost,
            Plan::Merge(merge) => estimate(&merge.node).cost,
            Plan::Several(several) => {
                several.main.cost() + several.parts.iter().map(|part| part.plan.cost()).sum::<f64>()
            }
            Plan::Insert(_) | Plan::Load(_) | Plan::Evaluate(_) => 0.0,
        }
    }

    /// Returns whether the plan is restartable as long as it has changed nothing.
    fn is_restartable(&self) -> bool {
        if self.returning().is_some() {
            return false;
        }
        match self {
            Plan::Query { node, .. } => is_restartable(node),
            Plan::Update(update) => {
                let mut sets = update.targets.iter().flat_map(|target| &target.sets);
                is_restartable(&update.node) && sets.all(|(_, expr)| is_steady(expr))
            }
            Plan::Delete(delete) => is_restartable(&delete.node),
            Plan::Insert(insert) => insert.is_restartable(),
            Plan::Merge(_) | Plan::Several(_) | Plan::Evaluate(_) | Plan::Load(_) => false,
        }
    }

    /// Returns whether the plan can wait only in a sleep.
    fn only_sleeps(&self) -> bool {
        match self {
            Plan::Query { node, .. } => only_sleeps(node),
            Plan::Evaluate(exprs) => only_sleep(exprs),
            Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_) | Plan::Load(_) => false,
            Plan::Merge(_) | Plan::Several(_) => false,
        }
    }

    pub fn returning(&self) -> Option<&Returning> {
        match self {
            Plan::Insert(insert) => insert.returning.as_ref(),
            Plan::Update(update) => update.returning.as_ref(),
            Plan::Delete(delete) => delete.returning.as_ref(),
            Plan::Several(several) => several.main.returning(),
            Plan::Query { .. } | Plan::Merge(_) | Plan::Evaluate(_) | Plan::Load(_) => None,
        }
    }

    /// Returns the result columns; `None` if there is no result set.
    pub fn columns(&self) -> Option<&Arc<[Column]>> {
        match self {
            Plan::Query { columns, .. } => Some(columns),
            Plan::Several(several) => several.main.columns(),
            other => other.returning().map(|returning| &returning.columns),
        }
    }

    /// Returns whether the plan changes rows.
    pub fn changes_rows(&self) -> bool {
        !matches!(self, Plan::Query { .. } | Plan::Evaluate(_))
    }

    /// Returns the tables that the plan writes, including those written by foreign keys.
    pub fn written(&self) -> Vec<Arc<Table>> {
        let of = |targets: &'_ [Target]| targets.iter().map(|target| target.rules.written()).collect::<Vec<_>>();
        let written = match self {
            Plan::Query { .. } | Plan::Evaluate(_) => Vec::new(),
            Plan::Insert(insert) => vec![insert.rules.written()],
            Plan::Update(update) => of(&update.targets),
            Plan::Delete(delete) => of(&delete.targets),
            Plan::Load(load) => vec![load.insert.rules.written()],
            Plan::Merge(merge) => vec![merge.written()],
            Plan::Several(several) => {
                several.parts.iter().map(|part| &part.plan).chain([&several.main]).map(Plan::written).collect()
            }
        };
        written.into_iter().flatten().collect()
    }
}

/// The definitions to which a statement was bound.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    pub tables: Vec<Arc<Table>>,
    /// The names under which the statement reads its tables: explicit locks are of names.
    pub named: Vec<(u64, String)>,
    /// The tables whose metadata locks the statement takes: `tables`, and those that foreign keys reach.
    pub locked: Vec<Arc<Table>>,
    pub views: Vec<Arc<View>>,
    /// The tables that are read, with the age of the statistics by which they were planned.
    pub planned_with: Vec<(Arc<Table>, u64)>,
}

impl Bindings {
    /// Returns whether tables, views and statistics are those of the binding.
    pub fn are_current(&self) -> bool {
        self.locked.iter().all(|table| table.live.is_current(table.version))
            && self
                .planned_with
                .iter()
                .all(|(table, age)| table.live.age.load(Ordering::Acquire) == *age && !table.live.is_old())
            && self.views.iter().all(|view| !view.gone.load(Ordering::Acquire))
    }

    /// Returns whether a snapshot sees the rows and the indexes by which the statement was planned (QU-63). Called after `are_current`: maps of current definitions are committed.
    pub fn are_seen_by(&self, seen: Option<&SeenMaps>) -> bool {
        seen.is_none_or(|seen| self.tables.iter().all(|table| table.is_seen_by(seen)))
    }
}

/// A statement ready to run, immutable and shared by sessions.
#[derive(Debug)]
pub struct BoundStatement<L> {
    pub plan: Plan<L>,
    pub bindings: Bindings,
    /// The tables whose rows it changes.
    pub written: Vec<Arc<Table>>,
    /// The other tables whose rows it locks: by locking reads, and by foreign keys.
    pub row_locked: Vec<Arc<Table>>,
    /// The plan holds for one run only.
    pub is_volatile: bool,
    /// The statement is expected to read much: worth a plan of its own for each run.
    pub is_heavy: bool,
    /// The plan may be dropped half-way and started anew, while it has changed nothing.
    pub is_restartable: bool,
    /// The statement computes a row with sleeps and needs no thread meanwhile.
    pub only_sleeps: bool,
    /// The statement's effects in the dialect's own flags.
    pub effects: u16,
}

impl<L> BoundStatement<L> {
    /// Derives from the plan what sessions must know of it. `effects` are flags of the dialect.
    pub fn new(plan: Plan<L>, bindings: Bindings, is_volatile: bool, effects: u16) -> BoundStatement<L> {
        let (written, is_heavy) = (plan.written(), plan.cost() > HEAVY);
        let is_restartable = !is_heavy && plan.is_restartable();
        let only_sleeps = plan.only_sleeps();
        let row_locked = row_locked(&plan, &bindings, &written);
        BoundStatement {
            plan,
            bindings,
            written,
            row_locked,
            is_volatile,
            is_heavy,
            is_restartable,
            only_sleeps,
            effects,
        }
    }

    /// Returns the tables whose locks the plan needs, each with its mode.
    pub fn tables_with_modes(&self) -> impl Iterator<Item = (&Arc<Table>, TableMode)> {
        self.bindings.locked.iter().map(|table| {
            let is_in = |tables: &[Arc<Table>]| tables.iter().any(|known| known.id == table.id);
            let mode = if is_in(&self.written) {
                TableMode::RowExclusive
            } else if is_in(&self.row_locked) {
                TableMode::RowShare
            } else {
                TableMode::AccessShare
            };
            (table, mode)
        })
    }

    /// Returns the row-finding part of a change as a query: `None` for a change without one, or of a single table. It locks like the change, but changes nothing.
    pub fn finding(&self) -> Option<BoundStatement<L>> {
        let node = match &self.plan {
            Plan::Insert(Insert { values: crate::nodes::change::Values::Query(node), .. }) => node,
            Plan::Update(Update { node, .. }) | Plan::Delete(Delete { node, .. }) if !is_of_one_table(node) => node,
            _ => return None,
        };
        let plan = Plan::Query { node: node.clone(), columns: Arc::default() };
        Some(self.derived(plan, self.bindings.clone(), Vec::new(), self.effects))
    }

    /// Returns another plan over the same tables and one more, which it writes. `effects` are those of writing.
    pub fn with_plan(&self, plan: Plan<L>, written: &Arc<Table>, effects: u16) -> BoundStatement<L> {
        let mut bindings = self.bindings.clone();
        bindings.tables.push(written.clone());
        bindings.locked.push(written.clone());
        self.derived(plan, bindings, vec![written.clone()], self.effects | effects)
    }

    /// Returns a statement for one run that is not suspended.
    fn derived(&self, plan: Plan<L>, bindings: Bindings, written: Vec<Arc<Table>>, effects: u16) -> BoundStatement<L> {
        let is_heavy = self.is_heavy;
        let (is_volatile, is_restartable, only_sleeps) = (true, false, false);
        let row_locked = self.row_locked.clone();
        BoundStatement {
            plan,
            bindings,
            written,
            row_locked,
            is_volatile,
            is_heavy,
            is_restartable,
            only_sleeps,
            effects,
        }
    }
}

/// Returns the tables whose rows a plan locks without writing them.
fn row_locked<L>(plan: &Plan<L>, bindings: &Bindings, written: &[Arc<Table>]) -> Vec<Arc<Table>> {
    let mut locked: Vec<Arc<Table>> = Vec::new();
    match plan {
        Plan::Query { node, .. } => tables_locked_by(node, &mut locked),
        // The tables that only foreign keys reach.
        plan if plan.changes_rows() => {
            let is_named = |table: &Arc<Table>| bindings.tables.iter().any(|named| named.id == table.id);
            locked.extend(bindings.locked.iter().filter(|table| !is_named(table)).cloned());
        }
        _ => {}
    }
    locked.sort_by_key(|table| table.id);
    locked.dedup_by_key(|table| table.id);
    locked.retain(|table| !table.temporary && !written.iter().any(|written| written.id == table.id));
    locked
}

fn tables_locked_by(node: &Node, out: &mut Vec<Arc<Table>>) {
    match node {
        Node::LockRows(lock) => out.extend(lock.tables.iter().map(|locked| locked.table.clone())),
        Node::Scan(scan) if scan.lock.is_some() => out.push(scan.table.clone()),
        _ => {}
    }
    inputs(node).into_iter().for_each(|input| tables_locked_by(input, out));
    subqueries(node, &mut |query| tables_locked_by(&query.node, out));
}
