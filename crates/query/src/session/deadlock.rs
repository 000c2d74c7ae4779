//! The search for deadlocks among sessions that wait for metadata locks, advisory locks, and through them for rows.
//!
//! A session that takes part (`MetadataLocks::join_search`) shows the metadata locks that it holds and the one that it
//! waits for. A waiter looks for itself behind the one that it waits for, at rechecks of its wait. Waits for advisory locks
//! are edges that their table knows. Waits for rows are edges of the engine's wait graph, from transaction to transaction;
//! those are joined to the sessions by their ids. A cycle of rows alone is the engine's to find, so each cycle searched for
//! here has a waiter for a metadata or an advisory lock.
//!
//! Hard part: the edges are read one after another, so a cycle may never have existed as a whole. It counts when two
//! searches in a row find it, since a deadlock lasts. The search ends its own wait before it lets the next one begin, so a
//! cycle has one victim (QU-44).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use engine::rows::{Activity, Rows};
use stdx::sync::Mutex;

use crate::catalog::table::Table;
use crate::catalog::table_lock::TableMode;
use crate::session::advisory_locks::AdvisoryLocks;

/// A session as the search sees it.
#[derive(Debug)]
pub struct LockHolder {
    /// Not 0.
    pub id: u64,
    /// The owner of the session's advisory locks.
    connection: u64,
    held: Mutex<HeldTables>,
    awaits: Mutex<Option<Awaited>>,
    activity: Arc<Activity>,
}

/// The locks of tables that a session holds.
#[derive(Clone, Debug, Default)]
pub struct HeldTables {
    /// Shared metadata locks.
    pub shared: Vec<Arc<Table>>,
    /// Table locks, of tables that are in `shared`.
    pub modes: Vec<(Arc<Table>, TableMode)>,
    /// Exclusive metadata locks.
    pub exclusive: Vec<Arc<Table>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRequest {
    /// The shared metadata lock.
    Shared,
    Mode(TableMode),
    /// The exclusive metadata lock.
    Exclusive,
}

/// A lock of a table that a session waits for.
#[derive(Clone, Debug)]
pub struct Awaited {
    pub table: Arc<Table>,
    pub request: TableRequest,
    pub since: SystemTime,
}

impl Awaited {
    pub fn new(table: &Arc<Table>, request: TableRequest) -> Awaited {
        Awaited { table: table.clone(), request, since: SystemTime::now() }
    }
}

impl LockHolder {
    pub fn share(&self, table: &Arc<Table>) {
        self.held.lock().shared.push(table.clone());
    }

    /// Forgets the shared locks that were taken behind the first `keep`.
    pub fn release_from(&self, keep: usize) {
        self.held.lock().shared.truncate(keep);
    }

    pub fn lock(&self, table: &Arc<Table>, mode: TableMode) {
        self.held.lock().modes.push((table.clone(), mode));
    }

    /// Forgets the table locks that were taken behind the first `keep`.
    pub fn unlock_from(&self, keep: usize) {
        self.held.lock().modes.truncate(keep);
    }

    pub fn exclude(&self, table: &Arc<Table>) {
        self.held.lock().exclusive.push(table.clone());
    }

    /// Forgets the exclusive locks that were taken behind the first `keep`.
    pub fn release_exclusive_from(&self, keep: usize) {
        self.held.lock().exclusive.truncate(keep);
    }

    /// Returns the locks of tables that the session holds, and the one that it waits for.
    pub fn tables(&self) -> (HeldTables, Option<Awaited>) {
        (self.held.lock().clone(), self.awaits.lock().clone())
    }

    /// Returns the id of its connection.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    pub fn set_awaited(&self, awaited: Option<Awaited>) {
        *self.awaits.lock() = awaited;
    }
}

/// The sessions that take part in the search.
#[derive(Debug, Default)]
pub struct LockHolders {
    all: Mutex<Vec<Weak<LockHolder>>>,
    last: AtomicU64,
}

impl LockHolders {
    pub fn join(&self, connection: u64, activity: Arc<Activity>) -> Arc<LockHolder> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (held, awaits) = (Mutex::default(), Mutex::default());
        let holder = Arc::new(LockHolder { id, connection, held, awaits, activity });
        let mut all = self.all.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&holder));
        holder
    }

    /// Returns the sessions.
    pub fn all(&self) -> Vec<Arc<LockHolder>> {
        self.all.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the connections whose sessions block that of a connection.
    pub fn blockers(&self, connection: u64, waits: OtherWaits<'_>) -> Vec<u64> {
        let all = self.all();
        let Some(at) = all.iter().position(|holder| holder.connection == connection) else { return Vec::new() };
        Graph::new(&all, waits).awaited_by(at).into_iter().map(|at| all[at].connection).collect()
    }

    /// Returns whether `me` waits for itself. If so, and if this `is_second` search finds it again, the session is the victim,
    /// and `end_wait` takes its wait out of the graph.
    pub fn search(&self, me: &LockHolder, is_second: bool, waits: OtherWaits<'_>, end_wait: impl FnOnce()) -> bool {
        let guard = self.all.lock();
        let all: Vec<Arc<LockHolder>> = guard.iter().filter_map(Weak::upgrade).collect();
        let found = Graph::new(&all, waits).leads_back_to(me);
        if found && is_second {
            end_wait();
        }
        found
    }
}

/// The waits that others know: those for rows and for advisory locks.
type OtherWaits<'w> = (&'w Rows, &'w AdvisoryLocks);

/// The edges of one search.
struct Graph<'h> {
    all: &'h [Arc<LockHolder>],
    advisory: &'h AdvisoryLocks,
    row_waits: HashMap<u64, u64>,
    of_transaction: HashMap<u64, usize>,
    of_connection: HashMap<u64, usize>,
}

impl Graph<'_> {
    fn new<'h>(all: &'h [Arc<LockHolder>], (rows, advisory): OtherWaits<'h>) -> Graph<'h> {
        let row_waits = rows.lock_waits().into_iter().collect();
        let ids = all.iter().enumerate().filter_map(|(at, holder)| Some((holder.activity.id()?, at)));
        let connections = all.iter().enumerate().map(|(at, holder)| (holder.connection, at));
        Graph { all, advisory, row_waits, of_transaction: ids.collect(), of_connection: connections.collect() }
    }

    fn leads_back_to(&self, me: &LockHolder) -> bool {
        let Some(start) = self.all.iter().position(|holder| holder.id == me.id) else { return false };
        let (mut met, mut rest) = (vec![false; self.all.len()], vec![start]);
        while let Some(at) = rest.pop() {
            for next in self.awaited_by(at) {
                if next == start {
                    return true;
                }
                if !std::mem::replace(&mut met[next], true) {
                    rest.push(next);
                }
            }
        }
        false
    }

    /// Returns the sessions whose end this one waits for.
    fn awaited_by(&self, at: usize) -> Vec<usize> {
        let holder = &self.all[at];
        let row = holder.activity.id().and_then(|id| self.row_waits.get(&id));
        let mut found: Vec<usize> =
            row.and_then(|holder| self.of_transaction.get(holder)).copied().into_iter().collect();
        let advisory = self.advisory.blockers(holder.connection);
        found.extend(advisory.iter().filter_map(|connection| self.of_connection.get(connection)));
        let Some(Awaited { table, request, .. }) = holder.awaits.lock().clone() else { return found };
        let table = table.live.clone();
        if let TableRequest::Mode(mode) = request {
            let conflicts =
                |(held, other): &(Arc<Table>, TableMode)| Arc::ptr_eq(&held.live, &table) && other.conflicts_with(mode);
            let earlier = table.table_lock.waits_behind(holder.id);
            let blocks = |other: &LockHolder| {
                other.id != holder.id && (earlier.contains(&other.id) || other.held.lock().modes.iter().any(conflicts))
            };
            let others = self.all.iter().enumerate().filter(|(_, other)| blocks(other));
            found.extend(others.map(|(at, _)| at));
            return found;
        }
        let claimant = table.metadata_lock.claimant();
        if claimant != holder.id {
            found.extend(self.all.iter().position(|other| other.id == claimant));
        } else if request == TableRequest::Exclusive {
            // The lock is claimed, and its shared holders are waited for.
            let shares =
                |other: &Arc<LockHolder>| other.held.lock().shared.iter().any(|held| Arc::ptr_eq(&held.live, &table));
            let others = self.all.iter().enumerate().filter(|(_, other)| other.id != holder.id && shares(other));
            found.extend(others.map(|(at, _)| at));
        }
        found
    }
}
