//! Locks of the rows that a snapshot sees, above the joins and the order of a block (QU-41).
//!
//! The block is planned as one that only reads. Its rows are locked when they are in their order, so a LIMIT above locks no more than it returns. A scan of one table whose rows need no sort locks them itself.

use std::sync::Arc;

use crate::block::QueryBlock;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Candidates, Lock, LockRows, LockedTable, Node, OuterJoin, SortKey};
use crate::nodes::relation::{Origin, Source};
use crate::types::Type;

/// The locks of a block's tables, by their numbers.
pub struct BlockLocks(Vec<(usize, Lock)>);

impl BlockLocks {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl QueryBlock {
    /// Takes the locks of seen rows off the tables, so that the block is planned as one that reads. The tables have slots for their keys.
    pub fn take_locks(&mut self) -> BlockLocks {
        let mut locks = Vec::new();
        for (at, table) in self.tables.iter_mut().enumerate() {
            let Some(lock) = table.lock.filter(|lock| lock.candidates == Candidates::Seen) else { continue };
            let Some(key_at) = table.key_at else { continue };
            // Keys have no versions to recheck: their scan locks them.
            if matches!(table.origin, Origin::System(_)) {
                continue;
            }
            table.lock = None;
            self.used[key_at] = true;
            locks.push((at, lock));
        }
        BlockLocks(locks)
    }

    /// Returns the plan with its rows locked, after a sort if there are `keys`. The sort's expressions follow the wide row in `sorted`.
    pub fn with_locks(
        &self,
        mut node: Arc<Node>,
        locks: BlockLocks,
        (sorted, keys): (Vec<Expr>, Vec<SortKey>),
    ) -> Arc<Node> {
        if let ([(_, lock)], true, Some(Node::Scan(scan))) = (&locks.0[..], keys.is_empty(), Arc::get_mut(&mut node)) {
            debug_assert!(scan.pushed == 0 && !scan.access.covering, "a scan that gives its row's key reads the row");
            scan.lock = Some(*lock);
            return node;
        }
        if !keys.is_empty() {
            let wide = (0..self.width).map(|at| Expr::Column(at, Type::null()));
            let exprs = wide.chain(sorted).collect();
            node = Arc::new(Node::Project { input: node, exprs });
            node = Arc::new(Node::Sort { input: node, keys, limit: None, unique: false });
            node = Arc::new(Node::Strip { input: node, width: self.width });
        }
        let tables = locks.0.into_iter().filter_map(|(at, lock)| self.locked_table(at, lock)).collect();
        let (mut outer, mut conditions) = (Vec::new(), self.conditions.clone());
        self.rechecked(&self.source, &mut conditions, &mut outer);
        Arc::new(Node::LockRows(Box::new(LockRows { input: node, tables, outer, conditions })))
    }

    fn locked_table(&self, at: usize, lock: Lock) -> Option<LockedTable> {
        let table = &self.tables[at];
        let Origin::Base(base) = &table.origin else { return None };
        let used = (0..base.columns.len()).filter(|column| self.used[table.offset + column]);
        let needed = base.with_sources(used.collect());
        Some(LockedTable { table: base.clone(), offset: table.offset, key_at: table.key_at?, lock, needed })
    }

    /// Collects what joins require of a wide row. Conditions on the right side of an outer join belong to that join.
    fn rechecked(&self, source: &Source, conditions: &mut Vec<Expr>, outer: &mut Vec<OuterJoin>) {
        match source {
            Source::Table(_) => {}
            Source::Inner(items, on) => {
                conditions.extend(on.iter().cloned());
                items.iter().for_each(|item| self.rechecked(item, conditions, outer));
            }
            Source::Left(left, right, on) => {
                self.rechecked(left, conditions, outer);
                let mut on = on.clone();
                self.rechecked(right, &mut on, outer);
                let mut tables = Vec::new();
                crate::plan::planner::tables_of(right, &mut tables);
                let fill = |at: &usize| {
                    let table = &self.tables[*at];
                    (table.offset, table.offset + table.columns.len())
                };
                outer.push(OuterJoin { on, fills: tables.iter().map(fill).collect() });
            }
            Source::Semi(..) => debug_assert!(false, "subqueries of a block that locks rows stay conditions"),
        }
    }
}
