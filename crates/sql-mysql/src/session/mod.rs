//! A client's conversation: what a door drives.
//!
//! A session runs one statement at a time. What it answers may still be running: a `ResultSet` is drawn batch by batch with the session in hand, and whatever
//! is executed next ends it. Between calls nothing is held but what the transaction holds.
//!
//! Files: `run` (a statement from text to outcome), `transact` (transactions and table gates), `locks` (LOCK TABLES), `set` and `variables`, `show`, `define` and `alter` (DDL), `database` and
//! `handle` (what sessions share).

mod alter;
mod analyze;
pub mod around;
mod auto;
mod build;
mod bulk;
mod columns;
mod command;
mod create_as;
mod define;
mod explain;
mod foreign;
mod generated;
mod granted;
mod grants;
mod leave;
mod load;
mod locks;
mod maintain;
mod outfile;
mod plans;
mod prepared;
pub mod read;
mod rights;
pub(crate) mod run;
mod set;
mod show;
mod tell;
mod temporary;
pub(crate) mod track;
mod transact;
mod users;
mod view;
mod words;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use engine::Lsn;
use engine::rows::{Isolation, Savepoint};

use crate::batch::{Batch, Row};
use crate::error::{self, Result, SqlError};
use crate::instance::count::Count;
use crate::instance::database::Database;
use crate::instance::handle::{Handle, Kill, Shown};
use crate::instance::prepared::PreparedHandle;
use crate::instance::variables::Values;
use crate::parse::lexical;
use crate::parse::normal::Normal;
use crate::rights::Rights;
use crate::scalar;
use crate::scalar::modes::SqlMode;
use crate::scalar::state::StateOf as _;
use crate::scalar::store::ASSIGNMENT;
use crate::session::around::wall_ms;
use crate::session::leave::Leaving;
use crate::session::load::Incoming;
use crate::session::locks::Locked;
use crate::session::rights::Standing;
use crate::session::temporary::Temporary;
use crate::session::track::Track;
use crate::session::transact::CompletionType;
use crate::system::viewer::Viewer;
use crate::value::{Text, Value};
use query::catalog::Snapshot;
use query::catalog::table::Table;
use query::catalog::timestamps::STEP as TIMESTAMP_STEP;
use query::exec::Exec;
use query::exec::host::Host;
use query::nodes::context::{EvalContext, Level};
use query::types::{CollationName as _, Column, Type};

pub use leave::Ready;
pub use track::Change;

/// Who is there, as the door has found out.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    pub host: String,
    /// Selected at once; an unknown one is error 1049.
    pub database: Option<String>,
    pub connection_id: u64,
}

/// What a statement answers.
#[derive(Debug)]
pub enum Outcome {
    Done {
        affected: u64,
        last_insert_id: u64,
        info: String,
    },
    Rows(ResultSet),
    /// LOAD DATA LOCAL: the client is to send this file, for `load_data` and `load_end`.
    File(String),
    /// It would have to wait (for the disk, a row lock, a SLEEP), and whoever executes it has said that it may be suspended instead: `when_ready`, then `resume`.
    Away,
}

impl Outcome {
    fn done() -> Outcome {
        Outcome::Done { affected: 0, last_insert_id: 0, info: String::new() }
    }
}

/// Rows that are still being made.
#[derive(Debug)]
pub struct ResultSet {
    columns: Arc<[Column]>,
    /// Rows that were made before anybody asked: errors mostly show then, and small results are whole.
    ready: Batch,
    exec: Option<Box<Exec>>,
    /// The statement of the session that makes them.
    number: u64,
}

impl ResultSet {
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Replaces `out` by the next rows, some tens or hundreds; false, and nothing, at the end. An error ends the result.
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
                session.note_gate();
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

    /// Ends it early: the client has gone, or closed its cursor.
    pub fn close(mut self, session: &mut Session) {
        if self.exec.take().is_some() && self.number == session.number {
            // What was read is let go; there is nobody to tell of a failure.
            let _ = session.end_statement();
        }
    }
}

/// What a reply's status word tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub in_transaction: bool,
    pub read_only_transaction: bool,
    pub autocommit: bool,
    pub no_backslash_escapes: bool,
    pub ansi_quotes: bool,
    pub warnings: u16,
}

/// Variables that every statement looks at.
#[derive(Debug, Default)]
struct Quick {
    /// SET timestamp; 0: the clock.
    timestamp: u64,
    max_execution_ms: u64,
    lock_wait_s: u64,
    gate_wait_s: u64,
    read_only: bool,
    completion: CompletionType,
    /// Statements that take longer are counted as slow.
    long_query: std::time::Duration,
}

pub struct Session {
    db: Arc<Database>,
    handle: Arc<Handle>,
    /// Must a wait for a lock end?
    cancel: engine::rows::Cancel,
    who: Login,
    standing: Standing,
    rights: Arc<Rights>,
    ctx: EvalContext,
    values: Values,
    settings: crate::scalar::settings::Settings,
    database: Option<String>,
    catalog: Arc<Snapshot>,
    /// Statements so far.
    number: u64,
    /// When the last of them began.
    began: Instant,
    /// A statement's rows are still being made.
    is_open: bool,
    found_rows: u64,
    gate: Lsn,

    autocommit: bool,
    /// BEGIN, and no COMMIT yet.
    explicit: bool,
    read_only: bool,
    isolation: Isolation,
    /// SET TRANSACTION, and START TRANSACTION READ ...: of the next one or of the one that there is, and of those that are chained to it.
    next_isolation: Option<Isolation>,
    next_read_only: Option<bool>,
    /// The statement that runs has been at a table.
    has_used_tables: bool,
    /// It has begun a transaction, and been at no table: nothing is left to be ended by COMMIT.
    is_bare: bool,
    /// COMMIT or ROLLBACK RELEASE has been said.
    is_released: bool,
    savepoints: Vec<(String, Savepoint)>,
    /// What some variables say, at hand for every statement.
    quick: Quick,
    /// Where the statement began, to take it back.
    statement_start: Option<Savepoint>,
    /// Tables whose gates the transaction has passed.
    held: Vec<Arc<Table>>,
    /// Those of them that it writes.
    written: Vec<Arc<Table>>,
    locked: Locked,
    /// The client can send files.
    local_files: bool,
    leaving: Leaving,
    loading: Option<Incoming>,
    temporary: Temporary,
    track: Track,

    normal: Normal,
    /// What plans are bound to here, once it was asked for.
    ground: Option<u64>,
    named: HashMap<String, PreparedHandle>,
}

impl Session {
    pub fn new(db: &Arc<Database>, who: Login) -> Result<Session> {
        let handle = Arc::new(Handle::new(who.connection_id, who.user.clone(), who.host.clone()));
        let mut ctx = EvalContext::new();
        let values = Values::default();
        ctx.host = Some(Box::new(Host::new(db.instance().clone(), handle.clone(), &ASSIGNMENT)));
        ctx.put_dialect(Viewer {
            db: db.clone(),
            handle: handle.clone(),
            variables: values.clone(),
            rights: Arc::default(),
        });
        ctx.state_mut().locks = db.locks.clone();
        ctx.state_mut().random = crate::scalar::state::Random::from_seed(who.connection_id as u32 ^ ctx.now.0 as u32);
        let watched = handle.clone();
        let cancel: engine::rows::Cancel = Arc::new(move || watched.is_interrupted());
        let watched = handle.clone();
        ctx.killed = Some(Arc::new(move || watched.killed() != Kill::No));
        ctx.interrupted = Some(cancel.clone());
        let of_timestamps = db.clone();
        ctx.state_mut().take_timestamp = Some(Arc::new(move || {
            let (base, gate) = of_timestamps.take_timestamps(1, wall_ms())?;
            Ok((base + TIMESTAMP_STEP, gate))
        }));
        let mut session = Session {
            db: db.clone(),
            cancel,
            handle,
            who: who.clone(),
            standing: Standing::default(),
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
            gate: 0,
            autocommit: true,
            explicit: false,
            read_only: false,
            isolation: Isolation::RepeatableRead,
            next_isolation: None,
            next_read_only: None,
            has_used_tables: false,
            is_bare: false,
            is_released: false,
            savepoints: Vec::new(),
            quick: Quick::default(),
            statement_start: None,
            held: Vec::new(),
            written: Vec::new(),
            locked: Locked::default(),
            local_files: false,
            leaving: Leaving::default(),
            loading: None,
            temporary: Temporary::default(),
            track: Track::default(),
            normal: Normal::default(),
            ground: None,
            named: HashMap::new(),
        };
        session.introduce()?;
        session.db.enlist(&session.handle);
        Ok(session)
    }

    /// What follows from who is there.
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

    /// Cuts the first statement off a text of several: (statement, rest). Statements of nothing but space and comments are skipped; the rest is empty if nothing follows.
    pub fn split<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        let (mut first, mut rest) = lexical::split(text, self.ctx.sql_mode());
        while lexical::is_blank(first) && !rest.is_empty() {
            (first, rest) = lexical::split(rest, self.ctx.sql_mode());
        }
        (first, if lexical::is_blank(rest) { "" } else { rest })
    }

    /// Where the statement's `?` stand, outside of quotes and comments.
    pub fn parameters(&self, text: &str) -> Vec<usize> {
        lexical::parameters(text, self.ctx.sql_mode())
    }

    /// What the last statement warned of, as SHOW WARNINGS shows it.
    pub fn warnings(&self) -> impl Iterator<Item = (Level, SqlError)> {
        self.ctx.warnings.iter().map(|(level, fault)| (*level, fault.clone().into()))
    }

    /// The columns of a table, for those who ask before they SELECT (COM_FIELD_LIST).
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
                let table = self.catalog.table(&database, table)?.clone();
                let columns = crate::bind::columns_of(&table, &table.name);
                let pairs = columns.into_iter().zip(&table.columns).filter(|(_, column)| !column.is_hidden());
                pairs.map(|(told, column)| (told, crate::system::empty_text(column, &mut self.ctx))).collect::<Vec<_>>()
            }
        };
        if !like.is_empty() && like != "%" {
            columns.retain(|(column, _)| column.name.eq_ignore_ascii_case(like));
        }
        Ok(columns)
    }

    /// As USE does.
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
        self.leave_ground();
    }

    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub fn status(&self) -> Status {
        Status {
            in_transaction: self.in_transaction(),
            read_only_transaction: self.read_only && self.in_transaction(),
            autocommit: self.autocommit,
            no_backslash_escapes: self.ctx.sql_mode().has(SqlMode::NO_BACKSLASH_ESCAPES),
            ansi_quotes: self.ctx.sql_mode().has(SqlMode::ANSI_QUOTES),
            warnings: self.ctx.warnings.count().min(u64::from(u16::MAX)) as u16,
        }
    }

    /// Replies to what has been executed so far may leave when the log is durable up to here.
    pub fn gate(&self) -> Lsn {
        self.gate.max(self.ctx.state().session.gate)
    }

    /// COMMIT or ROLLBACK has ended the session too (RELEASE): whoever drives it answers, and then lets it go.
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    /// A system variable as text, as `SELECT @@name` shows it.
    pub fn variable(&self, name: &str) -> Result<String> {
        let (value, _) = self.system_variable(None, name)?;
        Ok(crate::instance::variables::text_of(&value))
    }

    /// A number that moves with each change of the session's variables, by whatever statement: a door whose copies are of another one reads them again.
    pub fn variables_version(&self) -> u64 {
        self.values.version()
    }

    /// SET NAMES: what the handshake's collation says.
    pub fn set_names(&mut self, charset: &str, collation: Option<&str>) -> Result<()> {
        self.names(Some(charset), collation)
    }

    /// Sets a system variable of the session.
    pub fn set_variable(&mut self, name: &str, value: Value) -> Result<()> {
        self.set_system(crate::parse::statement::Scope::Session, &name.to_ascii_lowercase(), value)
    }

    /// As if newly connected, with the same user and database: rolls back, forgets variables and prepared statements.
    pub fn reset(&mut self) {
        self.abandon();
        let database = self.database.take();
        self.who.database = None;
        // Variables have defaults that are known to be good; who has no account any more keeps the rights it had.
        let _ = self.introduce();
        self.set_database(database);
    }

    /// As if newly connected by somebody else.
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

    /// Ends everything that a new conversation does not begin with.
    fn abandon(&mut self) {
        self.number += 1;
        self.is_open = false;
        self.is_released = false;
        self.forget_suspended();
        self.loading = None;
        self.roll_back();
        self.unlock_tables();
        self.db.locks.release_all(self.who.connection_id);
        self.drop_all_temporary();
        self.values.set_all(std::iter::empty());
        self.named.clear();
        self.leave_ground();
        self.ctx.warnings.clear();
        self.ctx.state_mut().session = crate::scalar::state::SessionFacts::default();
        self.ctx.state_mut().variables.clear();
    }

    /// Whether UPDATE and ON DUPLICATE KEY UPDATE count the rows that they find, not those that they change.
    pub fn count_found(&mut self, found: bool) {
        self.ctx.counts_found = found;
    }

    /// The client has had its door do that.
    pub fn count(&self, what: Count) {
        self.handle.counts.add(what);
    }

    /// So many bytes came from the client, and went to it.
    pub fn count_bytes(&self, received: u64, sent: u64) {
        self.handle.counts.add_many(Count::BytesReceived, received);
        self.handle.counts.add_many(Count::BytesSent, sent);
    }

    /// What the client says of itself: performance_schema.session_connect_attrs.
    pub fn describe_client(&self, attributes: Vec<(String, String)>) {
        self.handle.show(|shown| shown.attributes = attributes.into());
    }

    /// What the client has named beside the statements that follow: mysql_query_attribute_string().
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

    /// How the client's stream is made shorter, for SHOW STATUS: the method and its level.
    pub fn tell_compression(&self, method: Option<(&'static str, u8)>) {
        self.handle.show(|shown| shown.compression = method);
    }

    /// What the client's stream is sealed with, for SHOW STATUS: the version of TLS and the cipher.
    pub fn tell_sealing(&self, sealing: Option<(&'static str, &'static str)>) {
        self.handle.show(|shown| shown.sealing = sealing);
    }

    /// Through which others see and end this session.
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    fn host(&mut self) -> &mut Host {
        query::exec::host::host(&mut self.ctx)
    }

    /// The newest definitions.
    fn refresh(&mut self) {
        if self.db.catalog().version() != self.catalog.version {
            self.look_anew();
        }
    }

    /// The last row has been made.
    fn end_rows(&mut self) -> Result<()> {
        self.end_statement()?;
        self.ctx.state_mut().session.found_rows = self.host().found_rows.unwrap_or(self.found_rows);
        self.ctx.state_mut().session.row_count = -1;
        Ok(())
    }

    /// Rows that are known already, as a result.
    fn rows(&mut self, columns: Vec<Column>, rows: Vec<Row>) -> Outcome {
        self.found_rows = rows.len() as u64;
        self.handle.show(Shown::end);
        Outcome::Rows(ResultSet { columns: columns.into(), ready: rows.into(), exec: None, number: self.number })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abandon();
        self.db.delist(&self.handle);
    }
}

/// Has the engine already rolled the transaction back?
fn has_ended_transaction(error: &SqlError) -> bool {
    error::LOCK_DEADLOCK.is(error)
}

/// A text column of a result that is made here.
fn text_column(name: &str) -> Column {
    Column::computed(name, Type::text(1024, query::types::Collation::DEFAULT))
}

fn number_column(name: &str) -> Column {
    Column::computed(name, Type::unsigned())
}
