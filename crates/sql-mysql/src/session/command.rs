//! Statements other than queries and row changes.

use syntax::tree::{self, Maintenance, Pattern, PrepareSource, Show, Shown, Statement};

use crate::error::{self, Result, SqlError};
use crate::instance::count;
use crate::instance::database::ReadOnly;
use crate::instance::handle::Kill;
use crate::instance::prepared::Prepared;
use crate::parse::statement::StatementKind;
use crate::rights::Privileges;
use crate::scalar::state::StateOf as _;
use crate::session::{Outcome, Session};
use crate::value::Value;

impl Session {
    /// Executes a command. The statement's spans refer to `text`.
    pub(super) fn command(&mut self, statement: &Statement, text: &str) -> Result<Outcome> {
        if let Some(count) = count::of_statement(statement) {
            self.count_once(count);
        }
        let mut defining = None;
        if statement.commits_implicitly() {
            // BEGIN commits by itself and keeps the settings of SET TRANSACTION.
            if !matches!(statement, Statement::Begin { .. }) {
                self.commit()?;
            }
            self.refresh();
            if self.check_writable(statement)? {
                defining = Some(self.define()?);
            }
        }
        self.check_needs(statement)?;
        let is_own = self.is_of_temporary(statement);
        let outcome = match &defining {
            Some(_) => self.change_definitions(statement, text)?,
            None => self.command_itself(statement, text)?,
        };
        if is_own {
            self.track_state();
        }
        Ok(outcome)
    }

    /// Runs a change of definitions, and again where another session has meanwhile changed what it is about: both act as if
    /// one had come after the other.
    fn change_definitions(&mut self, statement: &Statement, text: &str) -> Result<Outcome> {
        const TRIES: usize = 10;
        // A query may meet deadlocks of its own, which are the client's to know.
        let has_query = matches!(statement, Statement::CreateTable(create) if create.query.is_some());
        let warnings = self.ctx.warnings.count();
        for _ in 1..TRIES {
            let version = self.db.catalog().version();
            let outcome = self.command_itself(statement, text);
            let is_overtaken = match &outcome {
                Err(error) if error.code == error::LOCK_DEADLOCK.code => !has_query,
                Err(error) => may_be_overtaken(error) && self.db.catalog().version() != version,
                Ok(_) => false,
            };
            if !is_overtaken {
                return outcome;
            }
            self.ctx.warnings.truncate(warnings);
            self.refresh();
        }
        self.command_itself(statement, text)
    }

    fn command_itself(&mut self, statement: &Statement, text: &str) -> Result<Outcome> {
        if leaves_something(statement) {
            drop(stdx::memory::claim(LEFT_BYTES)?);
        }
        match statement {
            Statement::CreateTable(create) => self.create_table(create),
            Statement::AlterTable { table, operations } => self.alter_table(table, operations),
            Statement::CreateIndex(create) => self.create_index(create),
            Statement::DropIndex { table, index } => self.drop_index(table, &index.value),
            Statement::DropTable { tables, if_exists, temporary } => self.drop_tables(tables, *if_exists, *temporary),
            Statement::Truncate(table) => self.truncate(table),
            Statement::RenameTable(pairs) => self.rename_tables(pairs),
            Statement::CreateDatabase { name, if_not_exists, charset, collation } => {
                self.create_database(name, *if_not_exists, charset.as_deref(), collation.as_deref())
            }
            Statement::AlterDatabase { name, charset, collation } => {
                self.alter_database(name.as_deref(), charset.as_deref(), collation.as_deref())
            }
            Statement::DropDatabase { name, if_exists } => self.drop_database(name, *if_exists),
            Statement::Use(name) => self.use_database(name).map(|()| Outcome::done()),
            Statement::Set(settings) => self.set(settings),
            Statement::Show(show) => self.show(show),
            Statement::Describe { table, like } => {
                let what = Shown::Columns { table: table.clone(), full: false };
                let pattern = like.clone().map(Pattern::Like);
                self.show(&Show { what, pattern })
            }
            Statement::Begin { read_only, snapshot } => self.begin(*read_only, *snapshot).map(|()| Outcome::done()),
            Statement::Commit(completion) => {
                if self.chains(*completion) {
                    self.begin(None, false)?;
                } else {
                    self.commit()?;
                }
                self.release_if_asked(*completion);
                Ok(Outcome::done())
            }
            Statement::Rollback(completion) => {
                if self.chains(*completion) {
                    self.roll_back_chaining();
                    self.begin(None, false)?;
                } else {
                    self.roll_back();
                }
                self.release_if_asked(*completion);
                Ok(Outcome::done())
            }
            Statement::Savepoint(name) => self.savepoint(name).map(|()| Outcome::done()),
            Statement::RollbackTo(name) => self.rollback_to(name).map(|()| Outcome::done()),
            Statement::Release(name) => self.release_savepoint(name).map(|()| Outcome::done()),
            Statement::LockTables(tables) => self.lock_named(tables),
            Statement::LockAll => self.lock_all(),
            Statement::UnlockTables => {
                if !self.locked.is_all && self.core.locks.has_explicit() {
                    self.commit()?;
                }
                self.unlock_tables();
                Ok(Outcome::done())
            }
            Statement::ResetPersist { name, if_exists } => self.reset_persist(name.as_deref(), *if_exists),
            Statement::Kill { query, id } => self.kill(*query, id),
            Statement::Prepare { name, source } => self.prepare_named(name, source),
            Statement::Execute { name, using } => self.execute_named(name, using),
            Statement::Deallocate(name) => match self.named.remove(&name.to_ascii_lowercase()) {
                Some(_) => {
                    self.track_state();
                    Ok(Outcome::done())
                }
                None => Err(error::UNKNOWN_STMT_HANDLER.with(&[name, &"DEALLOCATE PREPARE"])),
            },
            Statement::Maintain { what: Maintenance::Analyze, tables, histograms } => {
                self.analyze_tables(tables, histograms.as_ref())
            }
            Statement::Maintain { what, tables, .. } => self.maintain(*what, tables),
            Statement::Flush(all) => {
                for what in all {
                    match what.as_str() {
                        // These are neither cached nor counted, or need no reset.
                        "tables" | "table" | "privileges" | "logs" | "hosts" | "user_resources" | "optimizer_costs" => {
                        }
                        "status" => self.db.count_anew(&self.handle),
                        other => return Err(SqlError::unsupported(format!("FLUSH {}", other.to_uppercase()))),
                    }
                }
                Ok(Outcome::done())
            }
            Statement::Call { name, arguments } => self.call(name, arguments),
            Statement::CreateSequence { name, if_not_exists, is_timestamp } => {
                self.create_sequence(name, *if_not_exists, *is_timestamp)
            }
            Statement::CreateView(create) => self.create_view(create, text),
            Statement::DropView { names, if_exists } => self.drop_views(names, *if_exists),
            Statement::Accounting(what) => self.accounting(what),
            Statement::Nothing => Ok(Outcome::done()),
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_)
            | Statement::Load(_)
            | Statement::Explain { .. } => unreachable!("run_statement takes these"),
        }
    }

    /// Returns whether the statement changes definitions; an error in a read-only session.
    fn check_writable(&self, statement: &Statement) -> Result<bool> {
        let defines = !matches!(
            statement,
            Statement::Begin { .. }
                | Statement::LockTables(_)
                | Statement::LockAll
                | Statement::Maintain { .. }
                | Statement::Flush(_)
        );
        if defines || matches!(statement, Statement::Maintain { .. }) {
            self.check_server_writable()?;
        }
        if defines && self.values.is_on("transaction_read_only") {
            return Err(error::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION.bare());
        }
        Ok(defines)
    }

    /// Checks `read_only` and `super_read_only` for changes of shared state: error 1290.
    pub(super) fn check_server_writable(&self) -> Result<()> {
        let option = match self.db.read_only() {
            ReadOnly::Off => return Ok(()),
            ReadOnly::On if self.rights.global.has_any(Privileges::SUPER | Privileges::CONNECTION_ADMIN) => {
                return Ok(());
            }
            ReadOnly::On => "--read-only",
            ReadOnly::Super => "--super-read-only",
        };
        Err(error::OPTION_PREVENTS_STATEMENT.with(&[&option]))
    }

    fn kill(&mut self, query: bool, id: &tree::Expr) -> Result<Outcome> {
        let id = match self.constant(id)? {
            Value::Int(id) => id as u64,
            Value::UInt(id) => id,
            _ => return Err(error::WRONG_ARGUMENTS.with(&[&"KILL"])),
        };
        self.end(id, if query { Kill::Query } else { Kill::Connection })?;
        Ok(Outcome::done())
    }

    /// Executes KILL. A session may end threads of its own account; others require a privilege.
    pub fn end(&mut self, id: u64, how: Kill) -> Result<()> {
        let owner = self.db.instance().sessions().find(id);
        let owner = owner.ok_or_else(|| error::NO_SUCH_THREAD.with(&[&id]))?.shown();
        let rights = self.rights.global;
        let is_own = owner.account == self.account_state.account;
        let may_end_others = rights.has_any(Privileges::SUPER | Privileges::CONNECTION_ADMIN)
            && (!owner.is_system || rights.has(Privileges::SYSTEM_USER));
        if !is_own && !may_end_others {
            return Err(error::KILL_DENIED.with(&[&id]));
        }
        if self.db.kill(id, how) { Ok(()) } else { Err(error::NO_SUCH_THREAD.with(&[&id])) }
    }

    fn prepare_named(&mut self, name: &str, source: &PrepareSource) -> Result<Outcome> {
        let text = match source {
            PrepareSource::Text(text) => text.clone(),
            PrepareSource::Variable(name) => match self.ctx.state().variables.get(&name.to_ascii_lowercase()) {
                Value::Text(text) => text.to_string(),
                _ => return Err(error::PARSE_ERROR.with(&[&"'NULL' at line 1"])),
            },
        };
        let Prepared { handle, .. } = self.prepare_text(&text)?;
        self.named.insert(name.to_ascii_lowercase(), handle);
        self.track_state();
        Ok(Outcome::Done { affected: 0, last_insert_id: 0, info: "Statement prepared".to_owned() })
    }

    fn execute_named(&mut self, name: &str, using: &[String]) -> Result<Outcome> {
        let handle = self.named.get(&name.to_ascii_lowercase()).cloned();
        let handle = handle.ok_or_else(|| error::UNKNOWN_STMT_HANDLER.with(&[&name, &"EXECUTE"]))?;
        let values: Vec<Value> =
            using.iter().map(|name| self.ctx.state().variables.get(&name.to_ascii_lowercase())).collect();
        if values.len() != handle.0.parameters {
            return Err(error::WRONG_ARGUMENTS.with(&[&"EXECUTE"]));
        }
        self.look_for_unsafe(handle.text());
        self.execute_preparation(&handle.0, values)
    }
}

/// The least memory, roughly, that a statement leaves allocated.
const LEFT_BYTES: usize = 16 << 10;

/// Returns whether the error may be that of a statement which another one has overtaken.
fn may_be_overtaken(error: &SqlError) -> bool {
    let codes = [&error::TABLE_EXISTS, &error::DB_CREATE_EXISTS, &error::TABLE_DEF_CHANGED];
    codes.iter().any(|code| code.code == error.code)
}

/// Returns whether the statement leaves memory allocated in the session or in the catalog.
fn leaves_something(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::AlterTable { .. }
            | Statement::CreateIndex(_)
            | Statement::CreateDatabase { .. }
            | Statement::CreateView(_)
            | Statement::Savepoint(_)
    )
}
