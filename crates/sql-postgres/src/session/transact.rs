//! A session's transactions: blocks, the aborted state, savepoints, and what is undone when.
//!
//! ```text
//!   no block ──statement──► implicit block ──end of the query, or Sync──► commit
//!      │                         │ BEGIN
//!      └──────────BEGIN──────────┴─► explicit block ──COMMIT──► commit
//!                                         │ error
//!                                         ▼
//!                                      aborted ──ROLLBACK, COMMIT──► no block (all was undone at the error)
//!                                         └──ROLLBACK TO──► explicit block
//! ```
//! PS-1: an error undoes the changes of the transaction at once, or those since its last savepoint, and an aborted block runs nothing but its end. So no lock is held for a client that has yet to say ROLLBACK, unless savepoints ask for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::rows::Isolation;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::exec::constraint_modes::ConstraintModes;
use query::exec::deferred::{CheckTime, restore};
use query::exec::host::{Host, host};
use query::session::metadata_locks::Patience;
use query::session::registry::SessionHandle as _;
use query::session::temporary::AtCommit;
use query::session::transaction::Beginning;
use syntax::postgres::tree::{IsolationLevel, TransactionMode};

use crate::bind::BoundStatement;
use crate::error::{PgError, Result, state};
use crate::functions::state::{PgState, StateOf as _};
use crate::session::Session;
use crate::session::facts::FactsOf as _;
use crate::session::notify::ChannelsMark;
use crate::settings::place;
use crate::settings::values::{Mark, Scope, ValueSource};
use crate::types::user;

/// The wait for a lock without `lock_timeout`: until the statement is cancelled.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Places of settings that every transaction reads.
const ISOLATION: usize = place("transaction_isolation");
const READ_ONLY: usize = place("transaction_read_only");
const DEFERRABLE: usize = place("transaction_deferrable");
/// The characteristics of a transaction, and the defaults from which they begin.
const CHARACTERISTICS: [(usize, usize); 3] = [
    (ISOLATION, place("default_transaction_isolation")),
    (READ_ONLY, place("default_transaction_read_only")),
    (DEFERRABLE, place("default_transaction_deferrable")),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    None,
    /// Of the statements of one query message, or of those up to a Sync.
    Implicit,
    /// Begun by BEGIN.
    Explicit,
}

/// The transaction block of a session.
#[derive(Debug)]
pub(super) struct TransactionBlock {
    pub block: Block,
    pub is_aborted: bool,
    /// The statement under way is the last of its implicit block.
    pub is_last: bool,
    /// A statement of the transaction has used its snapshot.
    pub has_queried: bool,
    /// The transaction has changed rows.
    pub has_changed: bool,
    savepoints: Vec<NamedSavepoint>,
    /// Makes the names of savepoints unique below.
    number: u64,
}

#[derive(Debug)]
struct NamedSavepoint {
    name: String,
    /// Its name in the kernel.
    unique: String,
    settings: Mark,
    /// The portals that were made before it.
    portals: u64,
    channels: ChannelsMark,
    constraints: ConstraintModes,
}

impl Default for TransactionBlock {
    fn default() -> TransactionBlock {
        TransactionBlock {
            block: Block::None,
            is_aborted: false,
            is_last: false,
            has_queried: false,
            has_changed: false,
            savepoints: Vec::new(),
            number: 0,
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one == other
}

impl Session {
    /// Returns the status of ReadyForQuery: idle, in a transaction block, or in an aborted one.
    pub fn transaction_status(&self) -> u8 {
        match (self.transaction.block, self.transaction.is_aborted) {
            (Block::Explicit, true) => b'E',
            (Block::Explicit, false) => b'T',
            _ => b'I',
        }
    }

    pub(super) fn is_in_block(&self) -> bool {
        self.transaction.block == Block::Explicit
    }

    /// Begins the implicit block of a statement, if there is no block.
    pub(super) fn need_block(&mut self) {
        if self.transaction.block != Block::None {
            return;
        }
        self.transaction.block = Block::Implicit;
        self.begin_transaction_state();
    }

    /// Resets what belongs to one transaction: its clock and its characteristics.
    fn begin_transaction_state(&mut self) {
        self.core.open.count();
        self.transaction.has_queried = false;
        self.transaction.has_changed = false;
        self.ctx.now = datum::temporal::Timestamp::now();
        let start = super::facts::micros_of(self.ctx.now);
        self.ctx.slot_mut::<PgState>().io.now = start;
        let facts = self.ctx.facts();
        facts.transaction_start = start;
        facts.in_transaction = true;
        for (own, default) in CHARACTERISTICS {
            let is_default = facts.settings.at(own) == facts.settings.at(default);
            if !is_default || facts.settings.source(own) != ValueSource::Override {
                let value = facts.settings.at(default).into();
                facts.settings.put(own, (value, ValueSource::Override), Scope::Session, false);
            }
        }
    }

    fn set_characteristic(&mut self, at: usize, value: Box<str>) {
        let settings = &mut self.ctx.facts().settings;
        if settings.at(at) != &*value {
            settings.put(at, (value, ValueSource::Session), Scope::Session, false);
        }
    }

    /// Returns the isolation level of the open or the next transaction.
    fn isolation(&mut self) -> Isolation {
        match self.ctx.facts().settings.at(ISOLATION) {
            "repeatable read" => Isolation::RepeatableRead,
            "serializable" => Isolation::Serializable,
            _ => Isolation::ReadCommitted,
        }
    }

    /// Begins the engine's transaction, if none is open, for a statement that uses tables.
    pub(super) fn need_transaction(&mut self) -> Result<()> {
        self.need_block();
        let lock_wait = self.lock_wait();
        if let Some(txn) = &mut self.host().txn {
            txn.set_lock_wait(lock_wait);
            return Ok(());
        }
        let isolation = self.isolation();
        let is_read_only = self.ctx.facts().settings.at(READ_ONLY) == "on";
        self.core.transaction.next_isolation = Some(isolation);
        self.core.transaction.next_read_only = Some(is_read_only);
        let beginning = Beginning { at: self.began, lock_wait, is_read_only, changes: self.handle.changes() };
        self.core.need_transaction(host(&mut self.ctx), beginning);
        if self.is_in_block() {
            self.core.open.lasts();
        }
        let txn = self.host().txn()?;
        txn.survive_deadlocks();
        if isolation >= Isolation::RepeatableRead {
            txn.fail_on_unseen();
        }
        if isolation == Isolation::Serializable {
            txn.validate_reads();
        }
        Ok(())
    }

    /// Fails for a statement that writes in a read-only transaction.
    pub(crate) fn check_writable(&mut self, command: &str) -> Result<()> {
        self.need_block();
        match self.ctx.facts().settings.at(READ_ONLY) {
            "off" => Ok(()),
            _ => {
                let message = format!("cannot execute {command} in a read-only transaction");
                Err(PgError::new(state::READ_ONLY_SQL_TRANSACTION, message))
            }
        }
    }

    /// Returns how long a lock is waited for: to `lock_timeout`, and no longer than the statement may run.
    pub(crate) fn lock_wait(&self) -> Duration {
        let limit = if self.quick.lock_timeout.is_zero() { FOREVER } else { self.quick.lock_timeout };
        match self.ctx.deadline {
            Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }

    /// Fails in an aborted block.
    pub(super) fn check_not_aborted(&self) -> Result<()> {
        match self.transaction.is_aborted {
            false => Ok(()),
            true => Err(PgError::new(
                state::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
        }
    }

    /// Fails outside an explicit block.
    pub(super) fn require_block(&self, what: &str) -> Result<()> {
        match self.is_in_block() {
            true => Ok(()),
            false => {
                let message = format!("{what} can only be used in transaction blocks");
                Err(PgError::new(state::NO_ACTIVE_SQL_TRANSACTION, message))
            }
        }
    }

    /// Fails inside a block, for statements that must be transactions of their own.
    pub(crate) fn forbid_block(&mut self, what: &str) -> Result<()> {
        let is_within = self.transaction.block == Block::Implicit && (!self.is_alone() || self.transaction.has_changed);
        if self.is_in_block() || is_within {
            let message = format!("{what} cannot run inside a transaction block");
            return Err(PgError::new(state::ACTIVE_SQL_TRANSACTION, message));
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, start: bool, modes: &[TransactionMode]) -> Result<String> {
        let tag = if start { "START TRANSACTION" } else { "BEGIN" };
        match self.transaction.block {
            Block::Explicit => {
                self.warn(state::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress");
            }
            Block::Implicit => {
                if self.host().txn.is_some() {
                    self.core.open.lasts();
                }
            }
            Block::None => self.begin_transaction_state(),
        }
        self.transaction.block = Block::Explicit;
        self.set_modes(modes)?;
        Ok(tag.to_owned())
    }

    /// Sets characteristics of the current transaction.
    pub(super) fn set_modes(&mut self, modes: &[TransactionMode]) -> Result<()> {
        for mode in modes {
            match mode {
                TransactionMode::Isolation(level) => self.set_isolation(isolation_name(*level))?,
                TransactionMode::ReadOnly(is_on) => self.set_read_only(*is_on)?,
                TransactionMode::Deferrable(is_on) => self.set_deferrable(*is_on)?,
            }
        }
        Ok(())
    }

    pub(super) fn set_isolation(&mut self, name: &str) -> Result<()> {
        if self.ctx.facts().settings.at(ISOLATION) == name {
            return Ok(());
        }
        if self.transaction.has_queried {
            let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
            return Err(PgError::new(state::ACTIVE_SQL_TRANSACTION, message));
        }
        if !self.transaction.savepoints.is_empty() {
            let message = "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction";
            return Err(PgError::new(state::ACTIVE_SQL_TRANSACTION, message));
        }
        self.set_characteristic(ISOLATION, name.into());
        Ok(())
    }

    pub(super) fn set_read_only(&mut self, is_read_only: bool) -> Result<()> {
        let was = self.ctx.facts().settings.at(READ_ONLY) == "on";
        if was && !is_read_only && self.transaction.has_queried {
            let message = "transaction read-write mode must be set before any query";
            return Err(PgError::new(state::ACTIVE_SQL_TRANSACTION, message));
        }
        self.set_characteristic(READ_ONLY, if is_read_only { "on" } else { "off" }.into());
        Ok(())
    }

    /// A deferrable transaction waits for nothing: a read-only serializable one never fails (EN-66).
    pub(super) fn set_deferrable(&mut self, is_deferrable: bool) -> Result<()> {
        if self.transaction.has_queried {
            let message = "SET TRANSACTION [NOT] DEFERRABLE must be called before any query";
            return Err(PgError::new(state::ACTIVE_SQL_TRANSACTION, message));
        }
        if !self.transaction.savepoints.is_empty() {
            let message = "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction";
            return Err(PgError::new(state::ACTIVE_SQL_TRANSACTION, message));
        }
        self.set_characteristic(DEFERRABLE, if is_deferrable { "on" } else { "off" }.into());
        Ok(())
    }

    /// COMMIT. That of an aborted block answers ROLLBACK.
    pub(super) fn commit_command(&mut self, chain: bool) -> Result<String> {
        if !self.is_in_block() {
            return self.end_without_block(chain, "COMMIT");
        }
        if self.transaction.is_aborted {
            self.roll_back_command(chain)?;
            return Ok("ROLLBACK".to_owned());
        }
        let modes = self.characteristics(chain);
        self.commit_transaction()?;
        self.chain(modes);
        Ok("COMMIT".to_owned())
    }

    pub(super) fn roll_back_command(&mut self, chain: bool) -> Result<String> {
        if !self.is_in_block() {
            return self.end_without_block(chain, "ROLLBACK");
        }
        let modes = self.characteristics(chain);
        self.roll_back_transaction();
        self.chain(modes);
        Ok("ROLLBACK".to_owned())
    }

    fn end_without_block(&mut self, chain: bool, tag: &'static str) -> Result<String> {
        if chain {
            self.require_block(if tag == "COMMIT" { "COMMIT AND CHAIN" } else { "ROLLBACK AND CHAIN" })?;
        }
        self.warn(state::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
        match tag {
            "COMMIT" => self.commit_transaction()?,
            _ => self.roll_back_transaction(),
        }
        Ok(tag.to_owned())
    }

    /// Returns the values of `CHARACTERISTICS` for a transaction that is to be chained.
    fn characteristics(&mut self, chain: bool) -> Option<[Box<str>; 3]> {
        let settings = &self.ctx.facts().settings;
        chain.then(|| CHARACTERISTICS.map(|(own, _)| settings.at(own).into()))
    }

    fn chain(&mut self, modes: Option<[Box<str>; 3]>) {
        let Some(modes) = modes else { return };
        self.begin_transaction_state();
        self.transaction.block = Block::Explicit;
        for ((own, _), value) in CHARACTERISTICS.into_iter().zip(modes) {
            self.set_characteristic(own, value);
        }
    }

    /// Commits the transaction and ends its block. An error means that nothing was committed.
    pub(super) fn commit_transaction(&mut self) -> Result<()> {
        let ready = self.check_constraints(CheckTime::Commit).and_then(|()| self.hold_cursors());
        if let Err(error) = ready.and_then(|()| self.settle_temporary()) {
            self.roll_back_transaction();
            return Err(error);
        }
        let is_private = self.has_private_definitions();
        let committed = self.commit_in_order(|session| session.core.commit(host(&mut session.ctx)));
        self.follow_definitions(is_private);
        let settings = &mut self.ctx.facts().settings;
        match committed {
            Ok(()) => settings.commit(),
            Err(_) => settings.roll_back(),
        }
        self.end_block();
        Ok(committed?)
    }

    /// Does what a commit does to temporary tables: empties or drops those that were declared so.
    fn settle_temporary(&mut self) -> Result<()> {
        for what in [AtCommit::Drop, AtCommit::Empty] {
            let due = self.core.temporary.due_at_commit(what);
            if due.is_empty() || (what == AtCommit::Empty && self.host().txn.is_none()) {
                continue;
            }
            self.begin_change_of_definitions()?;
            let done = match what {
                AtCommit::Drop => self.drop_at_commit(due),
                AtCommit::Empty => self.empty_at_commit(&due),
            };
            self.take_back();
            done?;
        }
        Ok(())
    }

    /// Returns whether the session sees definitions that only its transaction has.
    fn has_private_definitions(&self) -> bool {
        self.core.has_changed_definitions() || self.core.temporary.is_transactional()
    }

    /// Follows the definitions after the end of the transaction, or the undo of a part of it.
    fn follow_definitions(&mut self, was_private: bool) {
        if was_private {
            self.context_id = None;
            self.look_anew();
        }
    }

    /// Undoes the transaction and ends its block.
    pub(super) fn roll_back_transaction(&mut self) {
        let is_private = self.has_private_definitions();
        self.core.roll_back(host(&mut self.ctx), &mut |_, _| {});
        self.follow_definitions(is_private);
        self.ctx.facts().settings.roll_back();
        self.end_block();
    }

    fn end_block(&mut self) {
        let transaction = &mut self.transaction;
        transaction.block = Block::None;
        transaction.is_aborted = false;
        transaction.savepoints.clear();
        self.ctx.facts().in_transaction = false;
        self.ctx.facts().channels.forget();
        self.core.open.end();
        self.is_open = false;
        self.ctx.parameters.clear();
        self.drop_portals(0);
        self.follow_settings();
    }

    /// Ends a statement that has succeeded: commits the implicit block that ends with it.
    pub(crate) fn end_statement(&mut self) -> Result<()> {
        if !self.finish_statement()? {
            self.core.note_reads(host(&mut self.ctx));
        }
        Ok(())
    }

    /// Ends a change that has succeeded and returns a count alone. In a transaction that goes on, its reply does not wait for what it has read (QU-64).
    pub(super) fn end_counted(&mut self) -> Result<()> {
        self.finish_statement().map(drop)
    }

    /// Ends a statement that has succeeded. Returns true if that ended its transaction too.
    fn finish_statement(&mut self) -> Result<bool> {
        self.is_open = false;
        self.core.transaction.statement_start = None;
        self.ctx.parameters.clear();
        self.take_warnings();
        self.follow_settings();
        if self.transaction.block == Block::Implicit && self.transaction.is_last {
            self.commit_transaction()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Ends a statement that has failed (PS-1).
    pub(super) fn fail_with(&mut self, error: PgError) -> PgError {
        // The names are those that the failed statement knew.
        let error = self.with_type_names(error);
        if std::mem::take(&mut self.is_open) && !self.transaction.savepoints.is_empty() {
            // A cursor from before the savepoint outlives the error. Its own failure is met by its reader.
            let _ = self.put_aside();
        }
        self.suspension.is_allowed = false;
        self.forget_suspended();
        self.ctx.parameters.clear();
        self.copying = None;
        self.take_warnings();
        if !self.is_in_block() {
            self.roll_back_transaction();
        } else if !self.transaction.is_aborted {
            self.abort_block();
        }
        self.follow_settings();
        error
    }

    /// Puts the names of types that users define into the texts of an error.
    pub(super) fn with_type_names(&mut self, mut error: PgError) -> PgError {
        let io = &self.ctx.state().io;
        if let Some(message) = user::named(&error.message, io) {
            error.message = message;
        }
        for text in [&mut error.detail, &mut error.hint, &mut error.context].into_iter().flatten() {
            if let Some(named) = user::named(text, io) {
                *text = named.into();
            }
        }
        if let Some(object) = error.object.as_deref_mut()
            && let Some(ty) = object.datatype.as_deref().and_then(|marked| user::marked(marked, io))
        {
            object.schema = Some(crate::define::names::schema_of(&ty.schema).into());
            object.datatype = Some(ty.name.as_str().into());
        }
        error
    }

    fn abort_block(&mut self) {
        let portals = self.transaction.savepoints.last().map_or(0, |last| last.portals);
        self.drop_portals(portals);
        match self.transaction.savepoints.last().map(|last| last.channels) {
            Some(mark) => self.ctx.facts().channels.undo_to(mark),
            None => self.ctx.facts().channels.forget(),
        }
        let is_private = self.has_private_definitions();
        let host = host(&mut self.ctx);
        let is_gone = host.txn.is_none();
        let last = self.transaction.savepoints.last();
        let point = last.and_then(|last| self.core.find_savepoint(&last.unique, is_same));
        let undone = match point {
            Some(point) if !is_gone => self.core.roll_back_to_and_unlock(host, point, &mut |_, _| {}).is_ok(),
            _ => false,
        };
        if undone {
            let mark = last.map(|last| last.settings);
            mark.into_iter().for_each(|mark| self.ctx.facts().settings.undo_to(mark));
            self.core.note_reads(query::exec::host::host(&mut self.ctx));
        } else {
            self.core.roll_back(host, &mut |_, _| {});
            if self.transaction.savepoints.is_empty() {
                self.ctx.facts().settings.roll_back();
            }
        }
        self.follow_definitions(is_private);
        self.transaction.is_aborted = true;
        self.transaction.block = Block::Explicit;
    }

    pub(super) fn savepoint(&mut self, name: &str) -> Result<()> {
        self.require_block("SAVEPOINT")?;
        self.need_transaction()?;
        self.transaction.number += 1;
        let unique = format!("{}", self.transaction.number);
        self.core.set_savepoint(host(&mut self.ctx), &unique, is_same)?;
        let settings = self.ctx.facts().settings.mark();
        let (portals, channels) = (self.portal_count, self.ctx.facts().channels.mark());
        let constraints = self.host().deferring.modes.clone();
        let savepoint = NamedSavepoint { name: name.to_owned(), unique, settings, portals, channels, constraints };
        self.transaction.savepoints.push(savepoint);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.transaction.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            PgError::new(state::INVALID_SAVEPOINT_SPECIFICATION, format!("savepoint \"{name}\" does not exist"))
        })
    }

    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        self.require_block("RELEASE SAVEPOINT")?;
        let at = self.find_savepoint(name)?;
        if let Some(point) = self.core.find_savepoint(&self.transaction.savepoints[at].unique, is_same) {
            self.core.release_savepoint(point);
        }
        self.transaction.savepoints.truncate(at);
        Ok(())
    }

    pub(super) fn roll_back_to(&mut self, name: &str) -> Result<()> {
        self.require_block("ROLLBACK TO SAVEPOINT")?;
        let at = self.find_savepoint(name)?;
        let missing =
            || PgError::new(state::INVALID_SAVEPOINT_SPECIFICATION, format!("savepoint \"{name}\" does not exist"));
        let point = self.core.find_savepoint(&self.transaction.savepoints[at].unique, is_same).ok_or_else(missing)?;
        let portals = self.transaction.savepoints[at].portals;
        self.drop_portals(portals);
        if self.is_open {
            self.put_aside()?;
        }
        let is_private = self.has_private_definitions();
        self.core.roll_back_to_and_unlock(host(&mut self.ctx), point, &mut |_, _| {})?;
        self.follow_definitions(is_private);
        let mark = self.transaction.savepoints[at].settings;
        self.transaction.savepoints.truncate(at + 1);
        self.ctx.facts().settings.undo_to(mark);
        let mark = self.transaction.savepoints[at].channels;
        self.ctx.facts().channels.undo_to(mark);
        let constraints = self.transaction.savepoints[at].constraints.clone();
        self.host().deferring.modes = constraints;
        restore(&mut self.ctx);
        self.transaction.is_aborted = false;
        Ok(())
    }

    /// Takes the locks of these tables in mode AccessShare. Returns false if a definition is stale; then no additional lock is held.
    pub(crate) fn share_tables(&mut self, tables: &[Arc<Table>]) -> Result<bool> {
        self.lock_in_modes(tables.iter().map(|table| (table, TableMode::AccessShare)))
    }

    /// Takes the locks of tables that a plan needs, in the modes that it needs. Returns as `share_tables` does.
    pub(super) fn lock_for(&mut self, statement: &BoundStatement) -> Result<bool> {
        self.lock_in_modes(statement.tables_with_modes())
    }

    /// Takes the locks of these tables in a mode, whatever their versions.
    pub(crate) fn lock_in_mode(&mut self, tables: &[Arc<Table>], mode: TableMode) -> Result<()> {
        let (wait, handle) = (self.lock_wait(), &self.handle);
        Ok(self.core.locks.exclude(tables, mode, Patience { wait, is_interrupted: &|| handle.is_interrupted() })?)
    }

    pub(super) fn lock_in_modes<'t>(
        &mut self,
        tables: impl Iterator<Item = (&'t Arc<Table>, TableMode)>,
    ) -> Result<bool> {
        let (wait, handle) = (self.lock_wait(), &self.handle);
        Ok(self.core.locks.share(tables, Patience { wait, is_interrupted: &|| handle.is_interrupted() })?)
    }

    pub(super) fn host(&mut self) -> &mut Host {
        host(&mut self.ctx)
    }
}

pub(super) fn isolation_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "read uncommitted",
        IsolationLevel::ReadCommitted => "read committed",
        IsolationLevel::RepeatableRead => "repeatable read",
        IsolationLevel::Serializable => "serializable",
    }
}
