//! ANALYZE and VACUUM, and the statistics that planning needs.
//!
//! Planning over a table without statistics, or with stale ones, samples some leaf pages first. Versions of rows that no snapshot sees are purged in the background all the time, so VACUUM has nothing left to do but what its ANALYZE does.

use std::sync::Arc;

use datum::Fault;
use query::catalog::sampling::{self, Effort, QUICK, THOROUGH};
use query::catalog::statistics::Statistics;
use query::catalog::table::Table;
use query::catalog::table_lock::{NO_WAIT, TableClaim, TableMode};
use syntax::postgres::tree::{DefArg, DefElem, VacuumStmt};

use crate::error::{PgError, Result, state};
use crate::instance::handle::Kill;
use crate::rights::object::Object;
use crate::session::Session;
use crate::session::statement::Planner;

/// Statistics of smaller tables are not persisted; they are sampled again after a restart.
const KEPT_ROWS: u64 = 2000;

/// Releases the sampling right and the metadata lock on drop.
struct Gatherer<'t> {
    table: &'t Table,
    is_inside: bool,
}

impl Drop for Gatherer<'_> {
    fn drop(&mut self) {
        if self.is_inside {
            self.table.live.table_lock.release(TableMode::AccessShare);
        }
        self.table.live.give_up();
    }
}

/// Refreshes the table's statistics before planning if they are missing or stale.
pub fn know(session: &Planner, table: &Arc<Table>) {
    let live = &table.live;
    match live.statistics() {
        Some(known) if live.is_unsure() => {
            let Ok(rows) = sampling::count(session.db.engine(), table) else { return };
            if !known.is_off(rows) {
                live.be_sure(rows as u64);
                return;
            }
        }
        Some(_) if !live.is_old() => return,
        _ => {}
    }
    if !live.begin_gathering() {
        return;
    }
    let mut gatherer = Gatherer { table, is_inside: false };
    // Does not wait: a concurrent change of the definition invalidates the plan anyway.
    gatherer.is_inside = live.table_lock.acquire(TableMode::AccessShare, TableClaim::default(), NO_WAIT).is_ok();
    if !gatherer.is_inside || !live.is_current(table.version) {
        return;
    }
    if let Ok(statistics) = gather(session, table, QUICK) {
        if statistics.rows >= KEPT_ROWS {
            // A full disk must not fail a read.
            let _ = session.db.catalog().keep_statistics(table, &statistics);
        }
        live.learn(Arc::new(statistics));
    }
}

fn gather(session: &Planner, table: &Table, effort: Effort) -> datum::Result<Statistics> {
    let mut look_up = || if session.handle.killed() == Kill::No { Ok(()) } else { Err(Fault::Interrupted) };
    sampling::gather(session.db.engine(), table, effort, &mut look_up)
}

impl Session {
    /// VACUUM and ANALYZE.
    pub(in crate::session) fn vacuum(&mut self, vacuum: &VacuumStmt) -> Result<&'static str> {
        let VacuumStmt { is_vacuum, options, relations } = vacuum;
        let (mut analyzes, mut rewrites) = (!is_vacuum, false);
        for option in options {
            match (&*option.name, is_vacuum) {
                ("analyze", true) => analyzes = is_on(option),
                ("verbose" | "skip_locked" | "buffer_usage_limit", _) => {}
                ("freeze" | "disable_page_skipping" | "index_cleanup" | "process_main" | "process_toast", true)
                | ("truncate" | "parallel" | "skip_database_stats" | "only_database_stats", true) => {}
                ("full", true) => rewrites = is_on(option),
                (name, _) => {
                    let word = if *is_vacuum { "VACUUM" } else { "ANALYZE" };
                    return Err(PgError::new(state::SYNTAX_ERROR, format!("unrecognized {word} option \"{name}\"")));
                }
            }
        }
        if *is_vacuum {
            self.forbid_block("VACUUM")?;
        }
        let mut tables = Vec::new();
        for named in relations {
            tables.push(self.stored_named(&named.relation)?);
        }
        if relations.is_empty() {
            tables.extend(self.tables_of_database());
        }
        let word = if *is_vacuum { "vacuum" } else { "analyze" };
        let mut own = Vec::new();
        for table in tables {
            if self.may_maintain(&table) {
                own.push(table);
            } else if !relations.is_empty() {
                let message = format!("permission denied to {word} \"{}\", skipping it", table.name);
                self.warn(state::INSUFFICIENT_PRIVILEGE, message);
            }
        }
        if rewrites {
            self.vacuum_full(own.clone())?;
            self.refresh();
            let anew = |table: Arc<Table>| self.catalog_of_session().table(&table.schema, &table.name).ok().cloned();
            own = own.into_iter().filter_map(anew).collect();
        }
        if analyzes {
            // All locks come before the first change, so a statement that is suspended for one may be run again. Two at once would sample the same rows.
            let mut locked = Vec::with_capacity(own.len());
            for table in own {
                if self.lock_in_modes([(&table, TableMode::ShareUpdateExclusive)].into_iter())? {
                    locked.push(table);
                }
            }
            self.core.locks.suspend(false);
            locked.iter().try_for_each(|table| self.analyze_table(table))?;
        }
        Ok(if *is_vacuum { "VACUUM" } else { "ANALYZE" })
    }

    /// Returns whether the current role owns the table, or the database.
    fn may_maintain(&mut self, table: &Table) -> bool {
        let identity = self.current_identity();
        let facts = self.rights();
        facts.is_owner(&identity.set, &Object::table(table)) || identity.set.has(facts.database_owner())
    }

    /// Samples a table, whose lock the transaction holds, thoroughly and keeps its statistics.
    fn analyze_table(&mut self, table: &Arc<Table>) -> Result<()> {
        sampling::claim(table, &mut || self.ctx.check_killed())?;
        // Gives up the right to sample; the transaction holds the lock.
        let _gatherer = Gatherer { table, is_inside: false };
        let statistics = gather(&self.planner(), table, THOROUGH)?;
        let lsn = self.db.catalog().keep_statistics(table, &statistics)?;
        self.core.transaction.raise_durability_lsn(lsn);
        table.live.learn(Arc::new(statistics));
        Ok(())
    }
}

/// Returns the value of an option without one, or with a Boolean.
pub(crate) fn is_on(option: &DefElem) -> bool {
    match &option.value {
        None => true,
        Some(DefArg::Bool(is_on)) => *is_on,
        Some(DefArg::Integer(number)) => *number != 0,
        Some(DefArg::String(word) | DefArg::Keyword(word)) => crate::settings::read_bool(word).unwrap_or(false),
        Some(DefArg::Type(ty)) => crate::settings::read_bool(ty.name.last()).unwrap_or(false),
        Some(DefArg::Name(name)) => crate::settings::read_bool(name.last()).unwrap_or(false),
        Some(_) => false,
    }
}
