//! A client session: the interface that the door drives.
//!
//! A session runs one statement at a time. Its result may still be executing when the call returns: the door writes rows of a `ResultSet` through the session, and the next statement ends it or puts its rest aside. Between two calls a session
//! holds only its transaction's resources.
//!
//! Files: `script` (simple queries), `extended` (statements and portals), `statement` (from text to plan), `run` (from plan to outcome), `result_set`, `transact`, `suspension`, `command` (statements without a plan).

mod access;
pub mod advisory;
mod command;
mod constraints;
mod copy;
mod cursor;
mod explain;
mod extended;
pub mod facts;
pub mod functions;
mod lock_table;
mod named;
pub(crate) mod notify;
mod objects;
mod parameterise;
mod portal;
mod result_set;
pub(crate) mod roles;
mod run;
mod script;
mod set;
pub mod statement;
mod suspension;
mod transact;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use engine::Lsn;
use query::catalog::schema_name::SchemaName;
use query::catalog::{Schema, Snapshot};
use query::exec::host::Host;
use query::nodes::context::{EvalContext, Level};
use query::session::suspension::Suspension;
use query::session::transaction::SessionCore;

use crate::define::names::{PG_TEMP, schema_in, schema_of};
use crate::error::fault::{render, render_in};
use crate::error::{PgError, Result, SqlState, state};
use crate::functions::state::{PgState, SessionFacts};
use crate::instance::database::{Database, POSTGRES};
use crate::instance::handle::{ActivityState, Handle, Kill};
use crate::instance::notifications::Listener;
use crate::rights::object::Object;
use crate::rights::privilege;
use crate::rights::role::Roles;
use crate::session::copy::Copying;
use crate::session::facts::{FactsOf as _, SessionState};
use crate::session::named::Named;
use crate::session::parameterise::ParameterisedText;
use crate::session::portal::Portal;
use crate::session::statement::Prepared;
use crate::session::suspension::{BeforeRun, Restart};
use crate::session::transact::{Block, TransactionBlock};
use crate::settings::values::{Scope, ValueSource};
use crate::types::io::{ByteaOutput, DateFormat, DateOrder, IntervalStyle, IoContext};
use crate::wire;

pub(crate) use crate::session::command::{is_on, refused};
pub use crate::session::copy::CopyOut;
pub(crate) use crate::session::objects::parts as name_parts;
pub use crate::session::result_set::{ResultColumns, ResultSet};
pub(crate) use crate::session::run::no_parameter;
pub use crate::session::script::Script;
pub(crate) use crate::session::set::{flat, quoted};
pub use crate::wire::{Field, Login, More, Notice, Parameter};
pub use query::session::suspension::Ready;

/// The effect of a statement.
pub type Outcome = wire::StatementEffect<Box<ResultSet>, Box<CopyOut>>;

impl Outcome {
    pub(crate) fn done(tag: impl Into<String>) -> Outcome {
        Outcome::Done { tag: tag.into() }
    }
}

/// Settings that every statement needs, in the form in which it needs them.
#[derive(Debug, Default)]
struct Quick {
    /// The version of the settings that they are of.
    version: u64,
    statement_timeout: Duration,
    lock_timeout: Duration,
    idle_timeout: Duration,
    /// The rank of the least severe notices that the client gets.
    notices_from: u8,
}

pub struct Session {
    db: Arc<Database>,
    handle: Arc<Handle>,
    /// The engine's transaction, metadata locks and temporary tables.
    core: SessionCore,
    transaction: TransactionBlock,
    pub(crate) who: Login,
    ctx: EvalContext,
    pub(crate) catalog: Arc<Snapshot>,
    /// The number of the current statement.
    number: u64,
    began: Instant,
    /// Rows of the current statement are still being produced.
    is_open: bool,
    quick: Quick,
    suspension: Suspension<Infallible>,
    /// The rest of the statement that is suspended.
    suspended_for: Option<run::Delivery>,
    /// The statement that waits for the lock of a table.
    restart: Option<Restart>,
    before_run: BeforeRun,
    /// The values of the arguments of an EXECUTE that is suspended for the lock of a table.
    evaluated: Option<Vec<crate::value::Value>>,
    statements: Named<Arc<Prepared>>,
    /// Boxed, as they are taken out while they run.
    portals: Named<Box<Portal>>,
    /// The portals made so far.
    portal_count: u64,
    copying: Option<Box<Copying>>,
    parameterised: ParameterisedText,
    /// The statement is one of several of its query message.
    is_script: bool,
    /// The session as those that notify know it.
    listener: Arc<Listener>,
    /// The version of the accounts by which the session's rights were determined.
    accounts_version: u64,
    /// The number of the plan-cache context, once computed.
    context_id: Option<u64>,
    /// Names are looked up for the session itself, whatever its role may do.
    binds_internally: bool,
    /// The plans of the newest definitions are the session's own.
    has_own_plans: bool,
}

impl Session {
    /// Begins a session of an authenticated client.
    pub fn new(db: &Arc<Database>, who: Login) -> Result<Session> {
        let handle = Arc::new(Handle::new(&who));
        let mut ctx = EvalContext::new();
        let mut executor = Host::new(db.instance().clone(), handle.clone(), &crate::types::assignment::ASSIGNMENT);
        executor.locks_keys = true;
        executor.deferring.is_served = true;
        executor.recursion_max = u64::MAX;
        ctx.counts_found = true;
        ctx.zero_takes_number = false;
        let watched = handle.clone();
        let cancel: engine::rows::Cancel = Arc::new(move || watched.is_interrupted());
        let watched = handle.clone();
        ctx.killed = Some(Arc::new(move || watched.killed() != Kill::No));
        ctx.interrupted = Some(cancel.clone());
        ctx.put_slot(SessionState {
            db: Some(db.clone()),
            pid: who.pid,
            role: who.role.clone(),
            login: who.role.clone(),
            database: who.database.clone(),
            address: who.address.clone(),
            ..SessionState::default()
        });
        ctx.slot_mut::<PgState>().session = SessionFacts {
            database: who.database.clone(),
            role: who.role.clone(),
            session_role: who.role.clone(),
            backend_pid: who.pid,
            client_address: (!who.address.is_empty()).then(|| who.address.clone()),
            version: version(),
            server_start: db.started(),
            ..SessionFacts::default()
        };
        let listener = Session::new_listener(who.pid);
        let core = SessionCore::new(db.instance().clone(), who.connection_id, handle.open.clone(), cancel);
        executor.advisory.own(core.locks.holder().clone());
        ctx.host = Some(Box::new(executor));
        let mut session = Session {
            db: db.clone(),
            core,
            handle,
            transaction: TransactionBlock::default(),
            who,
            ctx,
            catalog: db.catalog().snapshot(),
            number: 0,
            began: Instant::now(),
            is_open: false,
            quick: Quick::default(),
            suspension: Suspension::default(),
            suspended_for: None,
            restart: None,
            before_run: BeforeRun::default(),
            evaluated: None,
            statements: Named::default(),
            portals: Named::default(),
            portal_count: 0,
            copying: None,
            parameterised: ParameterisedText::default(),
            is_script: false,
            listener,
            accounts_version: 0,
            context_id: None,
            binds_internally: false,
            has_own_plans: false,
        };
        session.introduce()?;
        session.db.enlist(&session.handle);
        Ok(session)
    }

    /// Enters the database and applies the options of the login.
    fn introduce(&mut self) -> Result<()> {
        self.enter_database()?;
        let facts = self.db.facts();
        let (role, options) = (self.who.role.clone(), self.who.options.clone());
        let settings = &mut self.ctx.facts().settings;
        facts.iter().for_each(|(name, value)| settings.describe_server(name, value));
        settings.describe_server("session_authorization", &role);
        self.follow_settings();
        self.check_login()?;
        for (name, value) in options {
            self.set(&name, Some(&value), Scope::Session)?;
            self.ctx.facts().settings.attribute(&name, ValueSource::Client);
        }
        self.apply_session_defaults();
        self.follow_settings();
        self.ctx.facts().settings.begin_session();
        Ok(())
    }

    /// Fails if the role may not connect to the database, or has as many sessions as it may have.
    fn check_login(&mut self) -> Result<()> {
        let name = self.who.role.clone();
        let Some(role) = Roles::committed(&self.db).named(&name).filter(|role| role.can_login) else {
            let message = format!("role \"{name}\" is not permitted to log in");
            return Err(PgError::new(state::INVALID_AUTHORIZATION_SPECIFICATION, message));
        };
        if role.is_super {
            return Ok(());
        }
        let limit = role.attributes.connections_max;
        if limit >= 0 {
            let sessions = self.db.sessions();
            let own = sessions.iter().filter(|handle| handle.role() == role.oid).count();
            if own >= limit as usize {
                let message = format!("too many connections for role \"{name}\"");
                return Err(PgError::new(state::TOO_MANY_CONNECTIONS, message));
            }
        }
        self.handle.set_role(role.oid);
        let Some(schema) = self.catalog.schemas.get(&self.who.database).cloned() else { return Ok(()) };
        let checked = self.check_privileges(&Object::database(&schema), privilege::CONNECT);
        checked.map_err(|error| error.detail("User does not have CONNECT privilege."))
    }

    /// Looks the database up. That of the name `postgres` is made when it is first entered.
    fn enter_database(&mut self) -> Result<()> {
        let name = self.who.database.clone();
        let is_known = |catalog: &Snapshot| catalog.schemas.contains_key(&name);
        if SchemaName::new(&name, "public").is_some() && is_known(&self.catalog) {
            return Ok(());
        }
        if name != POSTGRES {
            return Err(PgError::new(state::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")));
        }
        let db = self.db.clone();
        let mut writing = self.core.begin_own_change(db.instance(), self.lock_wait());
        if !is_known(&writing.snapshot) {
            match writing.put_schema(POSTGRES, crate::define::DATABASE_COLLATION, crate::MAKER) {
                // Another session enters it first, too.
                Err(datum::Fault::NameTaken(_)) => drop(writing),
                made => {
                    made?;
                    let lsn = writing.commit()?;
                    self.core.transaction.raise_durability_lsn(lsn);
                }
            }
        }
        self.catalog = db.catalog().snapshot();
        Ok(())
    }

    /// Returns the reported settings that have changed since the last call; at first all of them.
    pub fn take_parameter_changes(&mut self) -> Vec<(&'static str, String)> {
        self.ctx.facts().settings.take_reports()
    }

    /// Returns the notices since the last call that `client_min_messages` lets through.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.ctx.facts().notices);
        let from = self.quick.notices_from;
        notices.retain(|notice| notice.severity == "INFO" || rank(notice.severity) >= from);
        notices
    }

    /// Returns the durability LSN: replies so far may be sent when the WAL is durable up to it.
    pub fn durability_lsn(&self) -> Lsn {
        self.core.transaction.durability_lsn
    }

    /// Returns the handle by which other sessions see and end this one.
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// Returns how long the client may stay idle in a transaction; `None` without a limit, or outside one.
    pub fn idle_limit(&self) -> Option<Duration> {
        (self.is_in_block() && !self.quick.idle_timeout.is_zero()).then_some(self.quick.idle_timeout)
    }

    /// Shows the session as waiting for its client. The door calls it when it sends ReadyForQuery.
    pub fn idle(&mut self) {
        self.handle.end_statement(match self.transaction_status() {
            b'T' => ActivityState::IdleInTransaction,
            b'E' => ActivityState::IdleInAbortedTransaction,
            _ => ActivityState::Idle,
        });
    }

    fn notice(&mut self, severity: &'static str, state: SqlState, message: impl Into<String>) {
        self.tell(severity, PgError::new(state, message));
    }

    fn warn(&mut self, state: SqlState, message: impl Into<String>) {
        self.notice("WARNING", state, message);
    }

    /// Turns the warnings of functions into notices.
    fn take_warnings(&mut self) {
        if self.ctx.warnings.count() == 0 {
            return;
        }
        let raised: Vec<_> = self.ctx.warnings.iter().cloned().collect();
        self.ctx.warnings.clear();
        for (level, fault) in raised {
            let severity = if level == Level::Note { "NOTICE" } else { "WARNING" };
            self.tell(severity, render(fault, &[]));
        }
    }

    /// Takes the newest definitions.
    pub(crate) fn refresh(&mut self) {
        if self.db.catalog().version() != self.catalog.version {
            self.look_anew();
        }
        if self.db.engine().accounts().generation() != self.accounts_version {
            self.follow_roles();
        }
    }

    pub(crate) fn look_anew(&mut self) {
        let types_version = self.catalog.types_version;
        self.catalog = self.core.temporary.overlay(&self.core.definitions());
        // Plans bound to definitions that only this session sees are its own, and other definitions make other plans.
        let are_own = self.core.has_changed_definitions() || !self.core.temporary.is_empty();
        if are_own || self.has_own_plans || self.catalog.types_version != types_version {
            self.context_id = None;
        }
        self.has_own_plans = are_own;
        self.follow_roles();
        self.follow_search_path();
    }

    /// Brings what depends on settings up to date after they have changed.
    pub(crate) fn follow_settings(&mut self) {
        let settings = &self.ctx.facts().settings;
        if settings.version() == self.quick.version {
            return;
        }
        let millis = |name: &str| Duration::from_millis(settings.number(name).max(0) as u64);
        let quick = Quick {
            version: settings.version(),
            statement_timeout: millis("statement_timeout"),
            lock_timeout: millis("lock_timeout"),
            idle_timeout: millis("idle_in_transaction_session_timeout"),
            notices_from: rank(&settings.get("client_min_messages").to_ascii_uppercase()),
        };
        let io = io_context(self.ctx.facts());
        let work_mem = self.ctx.facts().settings.number("work_mem").max(64) as usize * 1024;
        let application = self.ctx.facts().settings.get("application_name").to_owned();
        self.handle.change_status(|status| status.application = application);
        self.quick = quick;
        self.host().limit_memory(work_mem);
        let now = self.ctx.facts().transaction_start;
        self.ctx.slot_mut::<PgState>().io = IoContext { now, ..io };
        self.context_id = None;
        self.follow_roles();
        self.follow_search_path();
    }

    /// Computes the schemas of `search_path` that exist.
    fn follow_search_path(&mut self) {
        let identity = self.current_identity();
        let names = crate::settings::check::split_list(self.ctx.facts().settings.get("search_path"));
        let mut path: Vec<String> = Vec::new();
        for name in names.unwrap_or_default() {
            let name = match &*name {
                "$user" => identity.name.clone(),
                PG_TEMP => self.temporary_schema_name(),
                _ => name,
            };
            let schema = schema_in(&self.catalog, &self.who.database, &name);
            let may_use = |schema: &Schema| {
                self.rights().privileges(&identity.set, &Object::schema(schema)) & privilege::USAGE != 0
            };
            // As the first one the schema of temporary objects is that of new objects, before there is any.
            let is_first = path.is_empty() && name.starts_with(PG_TEMP) && name == self.temporary_schema_name();
            let exists = schema.is_some_and(|schema| may_use(schema)) || crate::system::is_system(&name) || is_first;
            if exists && !path.contains(&name) {
                path.push(name);
            }
        }
        let names = objects::object_names(&self.db, &self.catalog, &self.who.database, &path);
        let temporary = self.catalog.temporary_schema.as_deref().map(|stored| schema_of(stored).to_owned());
        self.ctx.slot_mut::<PgState>().session.temporary_schema = temporary;
        self.ctx.facts().definitions = self.catalog.clone();
        self.ctx.slot_mut::<PgState>().io.objects = Some(names);
        if self.ctx.facts().search_path != path {
            self.ctx.slot_mut::<PgState>().session.search_path.clone_from(&path);
            self.ctx.facts().search_path = path;
            self.context_id = None;
        }
    }

    /// Returns the name of the session's schema of temporary objects, which it has with the first of them.
    pub(crate) fn temporary_schema_name(&self) -> String {
        format!("{PG_TEMP}_{}", self.handle.pid)
    }

    /// Returns the schemas of `search_path` that exist.
    pub(crate) fn search_path(&mut self) -> Vec<String> {
        self.ctx.facts().search_path.clone()
    }

    /// Begins a text whose first statement may leave the executor to a cursor.
    fn begin_text(&mut self, text: &str, leaves_cursor: bool) -> Result<()> {
        if !(self.is_open && leaves_cursor) {
            return self.begin_statement(text);
        }
        self.begin_time(text);
        Ok(())
    }

    /// Begins a statement: ends the one before it, and renews what belongs to one statement.
    fn begin_statement(&mut self, text: &str) -> Result<()> {
        let renewed = self.renew_executor();
        self.begin_time(text);
        renewed
    }

    /// Ends the statement that has the executor: the rest of its rows is gathered.
    fn renew_executor(&mut self) -> Result<()> {
        self.number += 1;
        let gathered = match self.copying.take().is_some() || self.forget_suspended() || self.is_open {
            true => self.put_aside(),
            false => Ok(()),
        };
        self.refresh();
        self.ctx.ignore = false;
        self.ctx.changes_rows = false;
        self.ctx.outer.clear();
        self.handle.begin_plan(false);
        query::exec::begin_statement(&mut self.ctx);
        gathered
    }

    /// Begins the time of a statement: its clock and its limit.
    fn begin_time(&mut self, text: &str) {
        self.handle.forget_query_kill();
        self.began = Instant::now();
        let now = SystemTime::now();
        self.handle.begin_statement(text, (self.began, now), self.transaction.block == Block::None);
        let start = facts::micros_since_2000(now);
        self.ctx.facts().statement_start = start;
        self.ctx.slot_mut::<PgState>().session.statement_start = start;
        let deadline = self.deadline();
        self.host().deadline = deadline;
        (self.ctx.deadline, self.ctx.has_woken) = (deadline, false);
    }

    /// Turns a fault of the running statement into its error.
    pub(crate) fn error_of(&mut self, fault: datum::Fault, written: &[Arc<query::catalog::table::Table>]) -> PgError {
        let is_late = self.ctx.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        match fault {
            datum::Fault::LockTimeout if is_late => render(datum::Fault::StatementTimeout, written),
            // A wait that no setting ends was refused: as many threads wait as may.
            datum::Fault::LockTimeout if self.quick.lock_timeout.is_zero() => {
                render(datum::Fault::TooManyWaits, written)
            }
            datum::Fault::Interrupted if self.handle.killed() == Kill::Connection => {
                PgError::new(state::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
            }
            fault => render_in(fault, written, &mut self.ctx),
        }
    }

    /// Ends all that the session holds.
    fn abandon(&mut self) {
        self.number += 1;
        self.is_open = false;
        self.copying = None;
        self.forget_suspended();
        self.portals.clear();
        self.unlisten_now();
        self.roll_back_transaction();
        self.host().advisory.release_session();
        let gone: Vec<_> = self.core.temporary.tables().cloned().collect();
        self.core.temporary.drop_tables(&gone);
        let _ = self.core.temporary.free_dropped(self.db.catalog());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abandon();
        self.db.delist(&self.handle);
    }
}

/// The text of `version()`.
fn version() -> String {
    format!(
        "PostgreSQL {} (Beluga {}) on {}-{}",
        SERVER_VERSION,
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS
    )
}

/// The version of PostgreSQL whose language is served.
const SERVER_VERSION: &str = "16.14";

/// The severities of messages, from the least.
fn rank(severity: &str) -> u8 {
    match severity {
        "LOG" => 5,
        "NOTICE" => 7,
        "WARNING" => 8,
        "ERROR" => 9,
        "INFO" => 6,
        _ => 0,
    }
}

/// Returns the forms of values that the settings ask for.
fn io_context(facts: &SessionState) -> IoContext {
    let settings = &facts.settings;
    let (format, order) = settings.get("DateStyle").split_once(", ").unwrap_or(("ISO", "MDY"));
    IoContext {
        date_format: match format {
            "Postgres" => DateFormat::Postgres,
            "SQL" => DateFormat::Sql,
            "German" => DateFormat::German,
            _ => DateFormat::Iso,
        },
        date_order: match order {
            "DMY" => DateOrder::Dmy,
            "YMD" => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        },
        interval_style: match settings.get("IntervalStyle") {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        },
        zone: crate::settings::check::time_zone(settings.get("TimeZone")).unwrap_or_default(),
        extra_float_digits: settings.number("extra_float_digits") as i32,
        bytea_output: match settings.get("bytea_output") {
            "escape" => ByteaOutput::Escape,
            _ => ByteaOutput::Hex,
        },
        now: facts.transaction_start,
        objects: None,
    }
}
