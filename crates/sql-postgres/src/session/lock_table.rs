//! LOCK TABLE: locks that a transaction takes before it needs them.
//!
//! They are the eight modes of the core's table lock. Statements take ACCESS SHARE of the tables that they read, ROW SHARE of those whose rows they lock, and ROW EXCLUSIVE of those that
//! they write.

use std::sync::Arc;
use std::time::Duration;

use datum::Fault;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::session::metadata_locks::Patience;
use syntax::postgres::tree::{LockMode, LockStmt, RangeVar};

use crate::define::names::Relation;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::privilege::{DELETE, INSERT, SELECT, TRUNCATE, UPDATE};
use crate::session::Session;
use crate::session::facts::FactsOf as _;

fn cannot_lock(name: &str, kinds: &str) -> PgError {
    let error = PgError::new(state::WRONG_OBJECT_TYPE, format!("cannot lock relation \"{name}\""));
    error.detail(format!("This operation is not supported for {kinds}."))
}

impl Session {
    pub(super) fn lock_tables(&mut self, lock: &LockStmt) -> Result<()> {
        let LockStmt { relations, mode, nowait } = lock;
        self.require_block("LOCK TABLE")?;
        relations.iter().try_for_each(|name| self.lock_relation(name, *mode, *nowait))
    }

    /// Locks the table that the name means once its lock is held.
    fn lock_relation(&mut self, name: &RangeVar, mode: LockMode, nowait: bool) -> Result<()> {
        loop {
            let table = self.table_to_lock(name)?;
            self.check_lock(&table, mode)?;
            if table.temporary {
                return Ok(());
            }
            let wait = if nowait { Duration::ZERO } else { self.lock_wait() };
            match self.lock_table(&table, mode, wait) {
                Err(Fault::LockTimeout) if nowait => {
                    let message = format!("could not obtain lock on relation \"{}\"", table.name);
                    return Err(PgError::new(state::LOCK_NOT_AVAILABLE, message));
                }
                Err(fault) => return Err(self.error_of(fault, &[])),
                // The lock is held; its table may be another one than that which the name means now.
                Ok(true) if self.table_to_lock(name)?.id == table.id => return Ok(()),
                Ok(_) => {}
            }
        }
    }

    fn table_to_lock(&mut self, name: &RangeVar) -> Result<Arc<Table>> {
        match self.relation(name)? {
            Some(Relation::Table(table)) if table.query.is_some() => Err(cannot_lock(&name.name, "materialized views")),
            Some(Relation::Table(table)) => Ok(table),
            Some(Relation::View(_)) => Err(PgError::unsupported("LOCK TABLE of a view")),
            Some(Relation::Sequence(_)) => Err(cannot_lock(&name.name, "sequences")),
            Some(Relation::Index(..)) => Err(cannot_lock(&name.name, "indexes")),
            None if self.is_system_relation(name) => {
                Err(PgError::unsupported(format!("LOCK TABLE of \"{}\"", name.name)))
            }
            None => Err(self.missing_relation(name, None)),
        }
    }

    fn is_system_relation(&mut self, name: &RangeVar) -> bool {
        let in_schema = |schema: &str| crate::system::relations::by_name(schema, &name.name).is_some();
        match &name.schema {
            Some(schema) => in_schema(schema),
            None => in_schema("pg_catalog"),
        }
    }

    /// Fails unless the current role may lock a table in a mode.
    fn check_lock(&mut self, table: &Table, mode: LockMode) -> Result<()> {
        let enough = UPDATE | DELETE | TRUNCATE;
        let wanted = match mode {
            LockMode::AccessShare => enough | SELECT | INSERT,
            LockMode::RowShare | LockMode::RowExclusive => enough | INSERT,
            _ => enough,
        };
        self.ctx.facts().check_any(&Object::table(table), wanted)
    }

    /// Takes the lock. Returns false if the definition is stale.
    fn lock_table(&mut self, table: &Arc<Table>, mode: LockMode, wait: Duration) -> datum::Result<bool> {
        let handle = &self.handle;
        let patience = Patience { wait, is_interrupted: &|| handle.is_interrupted() };
        match table_mode(mode) {
            TableMode::AccessExclusive => {
                let tables = std::slice::from_ref(table);
                self.core.locks.exclude(tables, TableMode::AccessExclusive, patience).map(|()| true)
            }
            mode => self.core.locks.share(std::iter::once((table, mode)), patience),
        }
    }
}

fn table_mode(mode: LockMode) -> TableMode {
    match mode {
        LockMode::AccessShare => TableMode::AccessShare,
        LockMode::RowShare => TableMode::RowShare,
        LockMode::RowExclusive => TableMode::RowExclusive,
        LockMode::ShareUpdateExclusive => TableMode::ShareUpdateExclusive,
        LockMode::Share => TableMode::Share,
        LockMode::ShareRowExclusive => TableMode::ShareRowExclusive,
        LockMode::Exclusive => TableMode::Exclusive,
        LockMode::AccessExclusive => TableMode::AccessExclusive,
    }
}
