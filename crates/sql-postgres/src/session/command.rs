//! Statements without a plan: transactions, settings, prepared statements, definitions, upkeep.

mod analyze;
mod execute;

use std::sync::Arc;

use syntax::postgres::tree::{Discard, ObjectName, RawStatement, Statement, TransactionStmt};

use crate::batch::{Batch, Row};
use crate::bind::ResultColumn;
use crate::error::{PgError, Result, state};
use crate::rights::guarded::is_guarded;
use crate::session::facts::FactsOf as _;
use crate::session::result_set::Running;
use crate::session::run::{Delivery, TagKind};
use crate::session::{Outcome, ResultSet, Session};
use crate::types::oid::{self, Oid};
use crate::value::Value;

pub(crate) use analyze::is_on;
pub(super) use analyze::know;

/// Returns whether the statement runs in an aborted block.
pub(super) fn ends_aborted_block(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Transaction(
            TransactionStmt::Commit { .. }
                | TransactionStmt::Rollback { .. }
                | TransactionStmt::RollbackTo(_)
                | TransactionStmt::Prepare(_)
        )
    )
}

/// Returns whether a command gives rows.
pub(super) fn gives_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Select(query) => !super::statement::is_select_into(query),
        Statement::Show(_) | Statement::Explain(_) => true,
        Statement::Fetch(fetch) => !fetch.is_move,
        _ => false,
    }
}

/// Returns a text column of a command's result.
pub(super) fn text_field(name: &str) -> ResultColumn {
    ResultColumn { name: name.to_owned(), type_oid: oid::TEXT, type_modifier: -1, table: None, column: 0, base: None }
}

impl Session {
    /// Returns the columns of a command's result; none if it gives no rows.
    pub(super) fn fields_of_command(&mut self, statement: &Statement) -> Result<Vec<ResultColumn>> {
        Ok(match statement {
            Statement::Show(show) => self.fields_of_show(show)?,
            Statement::Explain(explain) => {
                vec![ResultColumn { type_oid: Self::explain_type(explain), ..text_field("QUERY PLAN") }]
            }
            Statement::Fetch(fetch) => self.fields_of_fetch(fetch),
            Statement::Execute(execute) => match self.statements.get(&execute.name.value) {
                Some(prepared) => prepared.fields.to_vec(),
                None => Vec::new(),
            },
            _ => Vec::new(),
        })
    }

    /// Runs a command of the simple protocol.
    pub(super) fn command(&mut self, raw: &RawStatement, text: &Arc<str>) -> Result<Outcome> {
        let delivery = Delivery::text(&[], TagKind::Word(""));
        self.command_in_portal(raw, text, delivery, (&[], Vec::new()))
    }

    /// Runs a command whose rows go to a portal. `parameters` are the types and values of its parameters.
    pub(super) fn command_in_portal(
        &mut self,
        raw: &RawStatement,
        text: &Arc<str>,
        delivery: Delivery,
        parameters: (&[Oid], Vec<Value>),
    ) -> Result<Outcome> {
        if !ends_aborted_block(&raw.statement) {
            self.check_not_aborted()?;
        }
        match &raw.statement {
            Statement::Transaction(statement) => return self.transaction_command(statement),
            // They give rows, or run a plan.
            Statement::Show(show) => {
                self.need_block();
                let (fields, rows) = self.show(show)?;
                return self.rows(fields, rows, TagKind::Word("SHOW"), delivery);
            }
            Statement::Execute(execute) => return self.execute_prepared(execute, text, delivery),
            Statement::Fetch(fetch) => {
                self.need_block();
                return self.fetch(fetch, delivery);
            }
            Statement::DeclareCursor(declare) => {
                self.need_block();
                self.declare(declare, raw, text, parameters)?;
                self.end_cursor_statement()?;
                return Ok(Outcome::done("DECLARE CURSOR"));
            }
            Statement::ClosePortal(name) => {
                self.need_block();
                let tag = self.close_cursor(name.as_ref(), delivery.portal.as_deref())?;
                self.end_cursor_statement()?;
                return Ok(Outcome::done(tag));
            }
            Statement::Explain(explain) => {
                self.need_block();
                let lines = self.explain(explain, raw, text, parameters)?;
                let rows = lines.into_iter().map(|line| vec![crate::value::Value::text(line)]).collect();
                let field = ResultColumn { type_oid: Self::explain_type(explain), ..text_field("QUERY PLAN") };
                return self.rows(vec![field], rows, TagKind::Word("EXPLAIN"), delivery);
            }
            Statement::Copy(copy) => {
                self.need_block();
                return self.copy(copy, raw, text);
            }
            _ => {}
        }
        self.need_block();
        let tag = self.plain_command(raw, text)?;
        self.end_statement()?;
        Ok(Outcome::Done { tag })
    }

    /// Runs a command that gives a tag alone.
    fn plain_command(&mut self, raw: &RawStatement, text: &Arc<str>) -> Result<String> {
        if !self.is_super() && !is_guarded(&raw.statement) {
            let PgError { message, .. } = refused(&raw.statement);
            let what = message.strip_suffix(" is not supported").unwrap_or("this statement").to_owned();
            return Err(PgError::unsupported(format!("{what} by a role that is no superuser")));
        }
        let done = match &raw.statement {
            Statement::Set(set) => return self.set_command(set),
            Statement::Prepare(prepare) => self.prepare_command(prepare, raw, text).map(|()| "PREPARE"),
            Statement::Deallocate(name) => self.deallocate(name.as_ref().map(|name| &*name.value)),
            Statement::Discard(what) => self.discard(*what),
            Statement::Vacuum(vacuum) => self.vacuum(vacuum),
            Statement::Checkpoint => self.checkpoint().map(|()| "CHECKPOINT"),
            Statement::Listen(channel) => Ok(self.listen(&channel.value)),
            Statement::Unlisten(channel) => Ok(self.unlisten(channel.as_ref().map(|channel| &*channel.value))),
            Statement::Notify(notify) => self.notify(notify),
            Statement::Lock(lock) => self.lock_tables(lock).map(|()| "LOCK TABLE"),
            Statement::SetConstraints(set) => self.set_constraints(set).map(|()| "SET CONSTRAINTS"),
            statement => return self.define(statement, raw, text),
        };
        done.map(str::to_owned)
    }

    /// Returns rows that are at hand as a result, and ends the statement.
    pub(super) fn rows(
        &mut self,
        fields: Vec<ResultColumn>,
        rows: Vec<Row>,
        tag: TagKind,
        delivery: Delivery,
    ) -> Result<Outcome> {
        let mut ready = Batch::new();
        rows.into_iter().for_each(|row| ready.push_row(row));
        // A portal has its columns from Bind.
        let columns = if delivery.portal.is_some() { delivery.columns } else { Delivery::text(&fields, tag).columns };
        let delivery = Delivery { columns, tag, ..delivery };
        self.end_statement()?;
        let running = Running { ready, is_gathered: true, ..Running::default() };
        let mut result = ResultSet::new(running, delivery, self.number);
        result.is_ended = true;
        Ok(Outcome::Rows(result))
    }

    fn transaction_command(&mut self, statement: &TransactionStmt) -> Result<Outcome> {
        let tag = match statement {
            TransactionStmt::Begin { start, modes } => self.begin(*start, modes)?,
            TransactionStmt::Commit { chain } => self.commit_command(*chain)?,
            TransactionStmt::Rollback { chain } => self.roll_back_command(*chain)?,
            TransactionStmt::Savepoint(name) => {
                self.savepoint(&name.value)?;
                "SAVEPOINT".to_owned()
            }
            TransactionStmt::Release(name) => {
                self.release_savepoint(&name.value)?;
                "RELEASE".to_owned()
            }
            TransactionStmt::RollbackTo(name) => {
                self.roll_back_to(&name.value)?;
                "ROLLBACK".to_owned()
            }
            TransactionStmt::Prepare(_) => {
                let error = PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "prepared transactions are disabled");
                return Err(error.hint("Set max_prepared_transactions to a nonzero value."));
            }
            TransactionStmt::CommitPrepared(id) | TransactionStmt::RollbackPrepared(id) => {
                let message = format!("prepared transaction with identifier \"{id}\" does not exist");
                return Err(PgError::new(state::UNDEFINED_OBJECT, message));
            }
        };
        self.follow_settings();
        Ok(Outcome::Done { tag })
    }

    fn discard(&mut self, what: Discard) -> Result<&'static str> {
        match what {
            Discard::All => {
                self.forbid_block("DISCARD ALL")?;
                self.statements.clear();
                self.retain_portals(|_, _| false);
                self.unlisten_now();
                self.host().advisory.release_session();
                self.ctx.facts().settings.reset_all(false);
                self.forget_sequences();
                self.drop_all_temporary()?;
                Ok("DISCARD ALL")
            }
            Discard::Plans => Ok("DISCARD PLANS"),
            Discard::Sequences => {
                self.forget_sequences();
                Ok("DISCARD SEQUENCES")
            }
            Discard::Temporary => {
                self.drop_all_temporary()?;
                Ok("DISCARD TEMP")
            }
        }
    }

    fn forget_sequences(&mut self) {
        let facts = self.ctx.facts();
        facts.sequences.clear();
        facts.last_sequence = None;
    }
}

/// Returns the word with which a statement begins, for refusals.
pub(crate) fn refused(statement: &Statement) -> PgError {
    let what = match statement {
        Statement::Call(_) => "CALL",
        Statement::Do(_) => "DO",
        Statement::CreateRole(_) => "CREATE ROLE",
        Statement::CreateExtension(_) => "CREATE EXTENSION",
        Statement::AlterDatabase(_) => "ALTER DATABASE",
        Statement::AlterRole(_) => "ALTER ROLE",
        Statement::AlterObjectSchema(_) => "ALTER ... SET SCHEMA",
        Statement::AlterOwner(_) => "ALTER ... OWNER TO",
        Statement::AlterTable(_) => "this form of ALTER",
        Statement::AlterSequence(_) => "ALTER SEQUENCE",
        Statement::DropRole(_) => "DROP ROLE",
        Statement::DropOwned(_) => "DROP OWNED",
        Statement::ReassignOwned(_) => "REASSIGN OWNED",
        Statement::Comment(_) => "COMMENT",
        Statement::Grant(grant) if grant.is_grant => "GRANT",
        Statement::Grant(_) => "REVOKE",
        Statement::GrantRole(_) => "GRANT of roles",
        Statement::Cluster(_) => "CLUSTER",
        Statement::Load(_) => "LOAD",
        Statement::Rename(_) => "this form of ALTER ... RENAME",
        Statement::Drop(drop) => match drop.objects.first() {
            Some(ObjectName::Function(..)) => "DROP FUNCTION",
            Some(ObjectName::Type(..)) => "DROP TYPE",
            _ => "this form of DROP",
        },
        _ => "this statement",
    };
    PgError::unsupported(what)
}
