//! A client session: the interface that a door drives.
//!
//! A session runs one statement at a time. A result may still be executing when `execute` returns: the door pulls a
//! `ResultSet` batch by batch through the session, and the next statement closes it. Between calls a session holds only
//! its transaction's resources.
//!
//! Files: `run` (a statement from text to outcome), `transact` (transactions and metadata locks), `locks` (LOCK
//! TABLES), `set`, `show`, `define` and `alter` (DDL).

mod alter;
mod analyze;
mod auto_increment;
mod bulk;
mod columns;
mod command;
mod create_as;
mod define;
mod definition_parser;
mod engine_status;
mod explain;
mod foreign;
mod generated;
mod grants;
pub(crate) mod key_limits;
mod load;
mod locks;
mod maintain;
mod outfile;
mod plans;
mod prepared;
pub mod read;
mod rights;
pub(crate) mod run;
pub mod server_hooks;
pub(crate) mod session_tracking;
mod set;
mod show;
mod show_grants;
mod suspension;
mod temporary;
mod transact;
mod users;
mod view;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use engine::Lsn;

use crate::batch::{Batch, Row};
use crate::bind::load::LoadSource;
use crate::error::{self, Result, SqlError};
use crate::instance::count::Count;
use crate::instance::database::Database;
use crate::instance::handle::{Handle, Kill, ProcessListRow};
use crate::instance::prepared::PreparedHandle;
use crate::instance::variables::Values;
use crate::other_values::seen_type;
use crate::parse::lexical;
use crate::parse::parameterise::ParameterisedText;
use crate::rights::Rights;
use crate::scalar;
use crate::scalar::modes::SqlMode;
use crate::scalar::state::StateOf as _;
use crate::scalar::store::ASSIGNMENT;
use crate::session::load::Incoming;
use crate::session::locks::Locked;
use crate::session::rights::AccountState;
use crate::session::server_hooks::wall_ms;
use crate::session::session_tracking::Track;
use crate::session::suspension::Restart;
use crate::session::transact::CompletionType;
use crate::system::viewer::Viewer;
use crate::types::{CollationName as _, Column, MysqlType as _, Type};
use crate::value::{Text, Value};
use query::catalog::Snapshot;
use query::catalog::timestamps::STEP as TIMESTAMP_STEP;
use query::exec::Exec;
use query::exec::host::Host;
use query::nodes::context::{EvalContext, Level};
use query::session::suspension::Suspension;
use query::session::transaction::SessionCore;

pub use query::session::suspension::Ready;
pub use session_tracking::Change;

/// The client as the door has authenticated it.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    pub host: String,
    /// The initial database; an unknown one is error 1049.
    pub database: Option<String>,
    pub connection_id: u64,
}

/// The outcome of a statement.
#[derive(Debug)]
pub enum Outcome {
    Done {
        affected: u64,
        last_insert_id: u64,
        info: String,
    },
    Rows(ResultSet),
    /// LOAD DATA LOCAL: the client must send this file, through `load_data` and `load_end`.
    File(String),
    /// The statement is suspended, since it would wait (for the disk, a row lock, a SLEEP) and the caller allowed it:
    /// call `when_ready`, then `resume`.
    Suspended,
}

impl Outcome {
    fn done() -> Outcome {
        Outcome::Done { affected: 0, last_insert_id: 0, info: String::new() }
    }
}

/// A result whose rows are still being produced.
#[derive(Debug)]
pub struct ResultSet {
    columns: Arc<[Column]>,
    /// Rows produced ahead: most errors occur there, and small results are complete.
    ready: Batch,
    exec: Option<Box<Exec>>,
    /// The number of the statement that produces the rows.
    number: u64,
}

impl ResultSet {
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the same, as the plan shares them: results of one plan have one list.
    pub fn shared_columns(&self) -> &Arc<[Column]> {
        &self.columns
    }

    /// Replaces `out` by the next batch of rows. Returns false, with `out` empty, at the end. An error ends the result.
    pub fn next(&mut self, session: &mut Session, out: &mut Batch) -> Result<bool> {
        out.clear();
        if !self.ready.is_empty() {
            std::mem::swap(&mut self.ready, out);
            return Ok(true);
        }
        if self.number != session.number {
            return Err(error::QUERY_INTERRUPTED.bare());
        }
        let Some(exec) = &mut self.exec else { return Ok(false) };
        match exec.fill(&mut session.ctx, out) {
            Ok(true) => {
                session.found_rows += out.len() as u64;
                session.note_durability_lsn();
                Ok(true)
            }
            Ok(false) => {
                self.exec = None;
                session.end_rows()?;
                Ok(false)
            }
            Err(error) => {
                self.exec = None;
                Err(session.fail(error.into()))
            }
        }
    }

    /// Ends the result early: the client disconnected or closed its cursor.
    pub fn close(mut self, session: &mut Session) {
        if self.exec.take().is_some() && self.number == session.number {
            // A read ends here; a failure has no one to be reported to.
            let _ = session.end_statement();
        }
    }
}

/// The flags of a reply's status word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub in_transaction: bool,
    pub read_only_transaction: bool,
    pub autocommit: bool,
    pub no_backslash_escapes: bool,
    pub ansi_quotes: bool,
    pub warnings: u16,
}

/// Cached values of variables that every statement needs.
#[derive(Debug, Default)]
struct Quick {
    /// SET timestamp; 0 means the clock.
    timestamp: u64,
    max_execution_ms: u64,
    lock_wait_s: u64,
    mdl_wait_s: u64,
    read_only: bool,
    completion: CompletionType,
    /// Statements slower than this count as slow.
    long_query: std::time::Duration,
}

pub struct Session {
    db: Arc<Database>,
    handle: Arc<Handle>,
    /// The transaction, metadata locks and temporary tables.
    core: SessionCore,
    who: Login,
    account_state: AccountState,
    rights: Arc<Rights>,
    ctx: EvalContext,
    values: Values,
    settings: crate::scalar::settings::Settings,
    database: Option<String>,
    catalog: Arc<Snapshot>,
    /// Number of the current statement.
    number: u64,
    /// Start of the current statement.
    began: Instant,
    /// The current statement's rows are still being produced.
    is_open: bool,
    found_rows: u64,
    /// The current statement has used a table.
    has_used_tables: bool,
    /// The statement began a transaction but used no table, so COMMIT has nothing to end.
    is_bare: bool,
    /// COMMIT or ROLLBACK RELEASE was executed.
    is_released: bool,
    /// Cached variables.
    quick: Quick,
    locked: Locked,
    /// The client supports LOCAL files.
    local_files: bool,
    suspension: Suspension<LoadSource>,
    /// The statement that waits for the lock of a table.
    restart: Option<Restart>,
    /// The statement runs again after such a wait.
    is_restarted: bool,
    loading: Option<Incoming>,
    track: Track,

    parameterised: ParameterisedText,
    /// The number of the session's plan-cache context, once computed.
    context_id: Option<u64>,
    named: HashMap<String, PreparedHandle>,
}

impl Session {
    pub fn new(db: &Arc<Database>, who: Login) -> Result<Session> {
        let handle = Arc::new(Handle::new(who.connection_id, who.user.clone(), who.host.clone()));
        let mut ctx = EvalContext::new();
        let values = Values::default();
        let mut host = Host::new(db.instance().clone(), handle.clone(), &ASSIGNMENT);
        host.refuses_unseen = true;
        let watched = handle.clone();
        let cancel: engine::rows::Cancel = Arc::new(move || watched.is_interrupted());
        let core = SessionCore::new(db.instance().clone(), who.connection_id, handle.open.clone(), cancel.clone());
        host.advisory.own(core.locks.holder().clone());
        ctx.host = Some(Box::new(host));
        ctx.put_slot(Viewer {
            db: db.clone(),
            handle: handle.clone(),
            variables: values.clone(),
            rights: Arc::default(),
        });
        ctx.state_mut().random = crate::scalar::state::Random::from_seed(who.connection_id as u32 ^ ctx.now.0 as u32);
        let watched = handle.clone();
        ctx.killed = Some(Arc::new(move || watched.killed() != Kill::No));
        ctx.interrupted = Some(cancel.clone());
        let of_timestamps = db.clone();
        ctx.state_mut().take_timestamp = Some(Arc::new(move || {
            let (base, durability_lsn) = of_timestamps.take_timestamps(1, wall_ms())?;
            Ok((base + TIMESTAMP_STEP, durability_lsn))
        }));
        let mut session = Session {
            db: db.clone(),
            core,
            handle,
            who: who.clone(),
            account_state: AccountState::default(),
            rights: Arc::default(),
            ctx,
            values,
            settings: crate::scalar::settings::Settings::default(),
            database: None,
            catalog: db.catalog().snapshot(),
            number: 0,
            began: Instant::now(),
            is_open: false,
            found_rows: 0,
            has_used_tables: false,
            is_bare: false,
            is_released: false,
            quick: Quick::default(),
            locked: Locked::default(),
            local_files: false,
            suspension: Suspension::default(),
            restart: None,
            is_restarted: false,
            loading: None,
            track: Track::default(),
            parameterised: ParameterisedText::default(),
            context_id: None,
            named: HashMap::new(),
        };
        session.introduce()?;
        session.db.enlist(&session.handle);
        Ok(session)
    }

    /// Sets the session's facts, privileges and variables from its login.
    fn introduce(&mut self) -> Result<()> {
        let facts = &mut self.ctx.state_mut().session;
        facts.connection_id = self.who.connection_id;
        facts.user = Text::from(format!("{}@{}", self.who.user, self.who.host));
        facts.version = Text::from(crate::instance::variables::VERSION);
        self.enter()?;
        self.load_variables()?;
        self.track_anew()?;
        match self.who.database.clone() {
            Some(database) if !database.is_empty() => self.use_database(&database),
            _ => Ok(()),
        }
    }

    /// Splits the first statement off a text: (statement, rest). Blank statements are skipped; the rest is empty if
    /// nothing follows.
    pub fn split<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        let (mut first, mut rest) = lexical::split(text, self.ctx.sql_mode());
        while lexical::is_blank(first) && !rest.is_empty() {
            (first, rest) = lexical::split(rest, self.ctx.sql_mode());
        }
        (first, if lexical::is_blank(rest) { "" } else { rest })
    }

    /// Returns the positions of the statement's `?` outside quotes and comments.
    pub fn parameters(&self, text: &str) -> Vec<usize> {
        lexical::parameters(text, self.ctx.sql_mode())
    }

    /// Returns the last statement's diagnostics, as SHOW WARNINGS does.
    pub fn warnings(&self) -> impl Iterator<Item = (Level, SqlError)> {
        self.ctx.warnings.iter().map(|(level, fault)| (*level, fault.clone().into()))
    }

    /// Returns a table's columns and defaults, for COM_FIELD_LIST.
    pub fn fields(&mut self, table: &str, like: &str) -> Result<Vec<(Column, Option<String>)>> {
        self.refresh();
        self.follow_accounts()?;
        let database = self.database.clone().ok_or_else(|| error::NO_DB.bare())?;
        if !self.rights.sees_table(&database, table) {
            return Err(self.rights.no_table("SELECT", table));
        }
        let view = self.catalog.view(&database, table).cloned();
        let mut columns = match view {
            Some(view) => self.columns_of_view(&view)?.into_iter().map(|column| (column, None)).collect(),
            None => {
                let table = crate::other_tables::table_view(self.catalog.table(&database, table)?);
                let columns = crate::bind::columns_of(&table, &table.name);
                let pairs = columns.into_iter().zip(&table.columns).filter(|(_, column)| !column.is_hidden());
                let seen = |told: Column| Column { ty: seen_type(&told.ty).unwrap_or(told.ty), ..told };
                pairs
                    .map(|(told, column)| (seen(told), crate::system::empty_text(column, &mut self.ctx)))
                    .collect::<Vec<_>>()
            }
        };
        if !like.is_empty() && like != "%" {
            columns.retain(|(column, _)| column.name.eq_ignore_ascii_case(like));
        }
        Ok(columns)
    }

    /// Selects the database, as USE does.
    pub fn use_database(&mut self, name: &str) -> Result<()> {
        self.refresh();
        self.follow_accounts()?;
        if !self.rights.sees_database(name) {
            return Err(self.rights.no_database(name));
        }
        if !crate::system::schemas::is_system(name) {
            self.catalog.schema(name)?;
        }
        self.set_database(Some(name.to_owned()));
        self.track_schema();
        Ok(())
    }

    fn set_database(&mut self, name: Option<String>) {
        self.ctx.state_mut().session.database = name.as_deref().map(Text::from);
        self.handle.show(|shown| shown.database.clone_from(&name));
        self.database = name;
        self.follow_database();
        self.leave_context();
    }

    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub fn status(&self) -> Status {
        Status {
            in_transaction: self.in_transaction(),
            read_only_transaction: self.core.transaction.is_read_only && self.in_transaction(),
            autocommit: self.core.transaction.autocommit,
            no_backslash_escapes: self.ctx.sql_mode().has(SqlMode::NO_BACKSLASH_ESCAPES),
            ansi_quotes: self.ctx.sql_mode().has(SqlMode::ANSI_QUOTES),
            warnings: self.ctx.warnings.count().min(u64::from(u16::MAX)) as u16,
        }
    }

    /// Returns the durability LSN: replies so far may be sent when the WAL is durable up to it.
    pub fn durability_lsn(&self) -> Lsn {
        self.core.transaction.durability_lsn.max(self.ctx.state().session.durability_lsn)
    }

    /// Returns whether COMMIT or ROLLBACK RELEASE has ended the session: the door answers, then closes it.
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    /// Returns a system variable as text, as `SELECT @@name` does.
    pub fn variable(&self, name: &str) -> Result<String> {
        let (value, _) = self.system_variable(None, name)?;
        Ok(crate::instance::variables::text_of(&value))
    }

    /// Returns a version that changes with the session's variables. A door refreshes its cached copies when it differs.
    pub fn variables_version(&self) -> u64 {
        self.values.version()
    }

    /// Sets the character set of the handshake, as SET NAMES does.
    pub fn set_names(&mut self, charset: &str, collation: Option<&str>) -> Result<()> {
        self.names(Some(charset), collation)
    }

    /// Sets a session system variable.
    pub fn set_variable(&mut self, name: &str, value: Value) -> Result<()> {
        self.set_system(crate::parse::statement::Scope::Session, &name.to_ascii_lowercase(), value)
    }

    /// Resets the session as if newly connected by the same user to the same database: rolls back and drops variables
    /// and prepared statements.
    pub fn reset(&mut self) {
        self.abandon();
        let database = self.database.take();
        self.who.database = None;
        // Default values are valid; a session whose account was dropped keeps its privileges.
        let _ = self.introduce();
        self.set_database(database);
    }

    /// Changes the user, as if newly connected.
    pub fn change_user(&mut self, who: Login) -> Result<()> {
        self.abandon();
        self.set_database(None);
        self.handle.show(|shown| {
            shown.user.clone_from(&who.user);
            shown.host.clone_from(&who.host);
        });
        self.who = Login { connection_id: self.who.connection_id, ..who };
        self.introduce()
    }

    /// Discards all session state that a new connection does not have.
    fn abandon(&mut self) {
        self.number += 1;
        self.is_open = false;
        self.is_released = false;
        self.forget_suspended();
        self.loading = None;
        self.roll_back();
        self.unlock_tables();
        self.host().advisory.release_session();
        self.drop_all_temporary();
        self.values.set_all(std::iter::empty());
        self.named.clear();
        self.leave_context();
        self.ctx.warnings.clear();
        self.ctx.state_mut().session = crate::scalar::state::SessionFacts::default();
        self.ctx.state_mut().variables.clear();
    }

    /// Sets whether UPDATE and ON DUPLICATE KEY UPDATE count matched rows instead of changed ones.
    pub fn count_found(&mut self, found: bool) {
        self.ctx.counts_found = found;
    }

    /// Counts a protocol command of the client.
    pub fn count(&self, what: Count) {
        self.handle.counts.add(what);
    }

    /// Counts bytes received from and sent to the client.
    pub fn count_bytes(&self, received: u64, sent: u64) {
        self.handle.counts.add_many(Count::BytesReceived, received);
        self.handle.counts.add_many(Count::BytesSent, sent);
    }

    /// Sets the connection attributes for performance_schema.session_connect_attrs.
    pub fn describe_client(&self, attributes: Vec<(String, String)>) {
        self.handle.show(|shown| shown.attributes = attributes.into());
    }

    /// Sets the query attributes that the client sent with the statement: mysql_query_attribute_string().
    pub fn give_attributes(&mut self, attributes: Vec<(String, Value)>) {
        if attributes.is_empty() && self.ctx.state().session.attributes.is_empty() {
            return;
        }
        let text = |value: Value| match value {
            Value::Null => None,
            value => Some(scalar::convert::to_text(&value, &Type::of(&value))),
        };
        self.ctx.state_mut().session.attributes =
            attributes.into_iter().map(|(name, value)| (name, text(value))).collect();
    }

    /// Sets the compression algorithm and level for SHOW STATUS.
    pub fn tell_compression(&self, method: Option<(&'static str, u8)>) {
        self.handle.show(|shown| shown.compression = method);
    }

    /// Sets the TLS version and cipher for SHOW STATUS.
    pub fn tell_sealing(&self, sealing: Option<(&'static str, &'static str)>) {
        self.handle.show(|shown| shown.sealing = sealing);
    }

    /// Returns the handle by which other sessions see and kill this one.
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    fn host(&mut self) -> &mut Host {
        query::exec::host::host(&mut self.ctx)
    }

    /// Takes the newest catalog snapshot.
    fn refresh(&mut self) {
        if self.db.catalog().version() != self.catalog.version {
            self.look_anew();
        }
    }

    /// Ends a statement after its last row.
    fn end_rows(&mut self) -> Result<()> {
        self.end_statement()?;
        self.ctx.state_mut().session.found_rows = self.host().found_rows.unwrap_or(self.found_rows);
        self.ctx.state_mut().session.row_count = -1;
        Ok(())
    }

    /// Returns materialized rows as a result.
    fn rows(&mut self, columns: Vec<Column>, rows: Vec<Row>) -> Outcome {
        self.found_rows = rows.len() as u64;
        self.handle.show(ProcessListRow::end);
        Outcome::Rows(ResultSet { columns: columns.into(), ready: rows.into(), exec: None, number: self.number })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abandon();
        self.db.delist(&self.handle);
    }
}

/// Returns whether the engine has already rolled the transaction back.
fn has_ended_transaction(error: &SqlError) -> bool {
    error::LOCK_DEADLOCK.is(error)
}

/// Returns a text column for a computed result.
fn text_column(name: &str) -> Column {
    Column::computed(name, Type::text(1024, crate::types::Collation::DEFAULT))
}

fn number_column(name: &str) -> Column {
    Column::computed(name, Type::unsigned())
}
