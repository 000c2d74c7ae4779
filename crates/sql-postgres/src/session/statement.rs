//! A statement from text to plan: parsing, binding, and the plans that are kept.
//!
//! A `Prepared` is what Parse makes of a text: its tree, the types of its parameters, its columns and a plan. The plan is bound again when a definition, the statistics or the session's plan-cache context has changed.

use std::cell::Cell;
use std::ops;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use datum::Fault;
use engine::rows::{MapId, SeenMaps};
use query::catalog::table::Table;
use query::catalog::view::View;
use query::exec::host::seen_maps;
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemTable;
use query::plan::statistics::Statistics;
use stdx::sync::Mutex;
use syntax::postgres::Problem;
use syntax::postgres::tree::{RawStatement, Statement};

use crate::bind::name_site::NameSite;
use crate::bind::{self, Bound, BoundStatement, Environment};
use crate::error::{PgError, Result, state};
use crate::instance::database::Database;
use crate::instance::handle::{Handle, Kill};
use crate::instance::plans::PlanContext;
use crate::rights::needs::{self, Need, SystemNeed};
use crate::rights::object::Object;
use crate::rights::privilege;
use crate::rights::role::Facts;
use crate::session::Session;
use crate::session::facts::FactsOf as _;
use crate::session::result_set::{Format, ResultColumns};
use crate::session::roles::Identity;
use crate::types::oid::Oid;
use crate::value::Value;

/// A statement that can be executed any number of times.
#[derive(Debug)]
pub struct Prepared {
    pub text: Arc<str>,
    /// `None`: the text has no statement.
    pub raw: Option<RawStatement>,
    /// The parameters' types, given or inferred.
    pub parameter_types: Vec<Oid>,
    pub fields: Arc<[bind::ResultColumn]>,
    /// The columns in text and in binary, once asked for.
    columns: [OnceLock<ResultColumns>; 2],
    /// The last plan, and the context in which it was bound.
    plan: Mutex<Option<(u64, Arc<BoundStatement>)>>,
}

/// Returns whether the core runs a plan for the statement; others are commands of the session.
pub fn has_plan(statement: &Statement) -> bool {
    match statement {
        Statement::Select(query) => !is_select_into(query),
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => true,
        _ => false,
    }
}

/// Returns the query that EXPLAIN explains, whose parameters are those of EXPLAIN.
fn explained_query(raw: &RawStatement) -> Option<RawStatement> {
    let Statement::Explain(explain) = &raw.statement else { return None };
    let statement = Statement::clone(&explain.statement);
    has_plan(&statement).then(|| RawStatement { statement, ..raw.clone() })
}

pub(super) fn is_select_into(query: &syntax::postgres::tree::SelectStmt) -> bool {
    use syntax::postgres::tree::SelectBody;
    let mut body = &query.body;
    loop {
        match body {
            SelectBody::Select(select) => return select.into.is_some(),
            SelectBody::SetOperations { first, .. } => body = first,
            SelectBody::Nested(query) => body = &query.body,
            SelectBody::Values(_) => return false,
        }
    }
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// The session as the binder sees it.
pub(super) struct Planner {
    pub db: Arc<Database>,
    pub handle: Arc<Handle>,
    /// When the statement has taken as long as `statement_timeout` allows.
    pub deadline: Option<Instant>,
    /// The plan depends on the values of parameters.
    pub takes_values: Cell<bool>,
    pub identity: Arc<Identity>,
    /// The statement is bound for the session itself, whatever its role may do.
    pub is_internal: bool,
    /// Which maps the transaction's snapshot sees, if not all.
    pub seen_maps: Option<SeenMaps>,
}

impl Statistics for Planner {
    fn know(&self, table: &Arc<Table>) {
        super::command::know(self, table);
    }

    fn extent(&self, map: MapId, from: ops::Bound<&[u8]>, to: ops::Bound<&[u8]>) -> Option<f64> {
        self.db.engine().rows().extent(map, from, to).ok().map(|extent| extent.records)
    }

    fn may_depend_on_values(&self) -> bool {
        self.takes_values.set(true);
        true
    }
}

impl bind::BindSession for Planner {
    fn check_interrupts(&self) -> Result<()> {
        if self.handle.killed() != Kill::No {
            return Err(Fault::Interrupted.into());
        }
        if is_past(self.deadline) { Err(Fault::StatementTimeout.into()) } else { Ok(()) }
    }

    fn system_table(&self, schema: &str, name: &str) -> Option<&'static SystemTable> {
        crate::system::find(schema, name)
    }

    fn seen_maps(&self) -> Option<&SeenMaps> {
        self.seen_maps.as_ref()
    }

    fn depends_on_values(&self) -> bool {
        self.takes_values.get()
    }

    fn check_needs(&self, environment: &Environment<'_>, needs: &[Need], system: &[SystemNeed]) -> Result<()> {
        let facts = Facts { db: &self.db, snapshot: &environment.snapshot, database: environment.database };
        needs::check_system(&facts, &self.identity.set, system)?;
        needs::check(&facts, &self.identity.set, needs)
    }

    fn check_schema(&self, environment: &Environment<'_>, stored: &str) -> Result<()> {
        let Some(schema) = environment.snapshot.schemas.get(stored).filter(|_| !self.is_internal) else {
            return Ok(());
        };
        let facts = Facts { db: &self.db, snapshot: &environment.snapshot, database: environment.database };
        facts.check(&self.identity.set, &Object::schema(schema), privilege::USAGE)
    }
}

impl Session {
    /// Parses a text. An error in any of its statements refuses it whole.
    pub(crate) fn parse_text(&self, text: &str) -> Result<Vec<RawStatement>> {
        let (cancel, deadline) = (self.core.cancel.clone(), self.deadline());
        let parsed = syntax::postgres::parse_script(text, &move || cancel() || is_past(deadline));
        parsed.map_err(|error| match error.problem {
            Problem::Cancelled if is_past(deadline) => Fault::StatementTimeout.into(),
            _ => syntax_error(text, &error),
        })
    }

    /// Returns when the statement has taken as long as `statement_timeout` allows.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let limit = self.quick.statement_timeout;
        if limit.is_zero() { None } else { self.began.checked_add(limit) }
    }

    pub(super) fn planner(&mut self) -> Planner {
        let (deadline, identity) = (self.deadline(), self.current_identity());
        let (db, handle) = (self.db.clone(), self.handle.clone());
        let (takes_values, is_internal) = (Cell::new(false), self.binds_internally);
        let seen_maps = seen_maps(&self.ctx);
        Planner { db, handle, deadline, takes_values, identity, is_internal, seen_maps }
    }

    /// Calls `bind` with the facts that binding reads.
    pub(crate) fn with_environment<T>(
        &mut self,
        values: &[Value],
        bind: impl FnOnce(&Environment<'_>, &mut EvalContext) -> Result<T>,
    ) -> Result<T> {
        self.refresh();
        let search_path = self.ctx.facts().search_path.clone();
        let planner = self.planner();
        let environment = Environment {
            snapshot: self.catalog.clone(),
            database: &self.who.database,
            role: &planner.identity.name,
            search_path: &search_path,
            session: &planner,
            values,
            reads_lock: None,
        };
        bind(&environment, &mut self.ctx)
    }

    /// Binds the query of a view for what it reads, in the view's `search_path`.
    pub(crate) fn bind_view(&mut self, view: &View, raw: &RawStatement) -> Result<Bound> {
        self.within_path_of(view, |environment, ctx| bind::bind_view_query(environment, ctx, view, &raw.statement))
    }

    /// Returns the names in the query of a view.
    pub(crate) fn names_in_view(&mut self, view: &View, raw: &RawStatement) -> Result<Vec<NameSite>> {
        self.within_path_of(view, |environment, ctx| bind::names_in_view(environment, ctx, view, &raw.statement))
    }

    /// Calls `bind` with the view's `search_path`, for no statement of the client.
    fn within_path_of<T>(
        &mut self,
        view: &View,
        bind: impl FnOnce(&Environment<'_>, &mut EvalContext) -> Result<T>,
    ) -> Result<T> {
        self.refresh();
        let search_path: Vec<String> =
            view.modes.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let planner = Planner { is_internal: true, ..self.planner() };
        let environment = Environment {
            snapshot: self.catalog.clone(),
            database: &self.who.database,
            role: &planner.identity.name,
            search_path: &search_path,
            session: &planner,
            values: &[],
            reads_lock: None,
        };
        bind(&environment, &mut self.ctx)
    }

    /// Binds a statement that the session may run. Fails if it has not the privileges.
    pub(crate) fn bind_raw(
        &mut self,
        raw: &RawStatement,
        text: &str,
        types: &[Oid],
        values: &[Value],
    ) -> Result<Bound> {
        let mut bound = self.bind_unchecked(raw, text, types, values)?;
        match bound.denied.take() {
            Some(denied) => Err(denied),
            None => Ok(bound),
        }
    }

    /// Binds a statement for what it reads, whatever the session's role may do.
    pub(crate) fn bind_internally<T>(&mut self, bind: impl FnOnce(&mut Session) -> T) -> T {
        let before = std::mem::replace(&mut self.binds_internally, true);
        let bound = bind(self);
        self.binds_internally = before;
        bound
    }

    /// Binds a statement of `text`. `types` are those of parameters that are known, 0 for others.
    pub(crate) fn bind_unchecked(
        &mut self,
        raw: &RawStatement,
        text: &str,
        types: &[Oid],
        values: &[Value],
    ) -> Result<Bound> {
        let types = types.to_vec();
        self.with_environment(values, |environment, ctx| bind::bind(environment, ctx, text, &raw.statement, types))
    }

    /// Prepares a statement of `text`, which may be none. `types` are the given types of parameters.
    pub(super) fn prepare(&mut self, text: &Arc<str>, raw: Option<RawStatement>, types: &[Oid]) -> Result<Prepared> {
        let mut prepared = Prepared {
            text: text.clone(),
            raw: None,
            parameter_types: types.to_vec(),
            fields: Arc::default(),
            columns: Default::default(),
            plan: Mutex::default(),
        };
        let Some(raw) = raw else { return Ok(prepared) };
        if has_plan(&raw.statement) {
            // Privileges are those of the role that executes it.
            let bound = self.bind_unchecked(&raw, text, types, &[])?;
            prepared.parameter_types = bound.parameter_types;
            prepared.fields = bound.fields.into();
            if bound.denied.is_none() {
                prepared.keep(self.context_id(), &bound.statement);
            }
        } else if let Statement::DeclareCursor(declare) = &raw.statement {
            prepared.parameter_types = self.bind_cursor(declare, text, types)?.0.parameter_types;
        } else if let Some(explained) = explained_query(&raw) {
            prepared.parameter_types = self.bind_unchecked(&explained, text, types, &[])?.parameter_types;
            prepared.fields = self.fields_of_command(&raw.statement)?.into();
        } else {
            prepared.fields = self.fields_of_command(&raw.statement)?.into();
        }
        prepared.raw = Some(raw);
        Ok(prepared)
    }

    /// Returns a plan of the prepared statement that is valid now.
    pub(super) fn plan_of(&mut self, prepared: &Prepared, values: &[Value]) -> Result<Arc<BoundStatement>> {
        if let Some(statement) = self.kept_plan(prepared) {
            return Ok(statement);
        }
        let bound = self.bind_anew(prepared, values)?;
        if !prepared.gives(&bound.fields) {
            let error = PgError::new(state::FEATURE_NOT_SUPPORTED, "cached plan must not change result type");
            // pgjdbc, asyncpg and Rails prepare the statement again when they see this name.
            return Err(PgError { routine: Some("RevalidateCachedQuery"), ..error });
        }
        Ok(bound.statement)
    }

    /// Returns the plan that the prepared statement has kept, if it is valid now.
    pub(super) fn kept_plan(&mut self, prepared: &Prepared) -> Option<Arc<BoundStatement>> {
        let context = self.context_id();
        let (bound_in, statement) = prepared.plan.lock().clone()?;
        let is_valid = bound_in == context
            && statement.bindings.are_current()
            && statement.bindings.are_seen_by(seen_maps(&self.ctx).as_ref());
        is_valid.then_some(statement)
    }

    /// Binds the prepared statement to the definitions of now. It keeps the plan if that gives the columns which the statement had.
    pub(super) fn bind_anew(&mut self, prepared: &Prepared, values: &[Value]) -> Result<Bound> {
        let context = self.context_id();
        let Some(raw) = &prepared.raw else {
            return Err(PgError::new(state::INTERNAL_ERROR, "a statement without a tree"));
        };
        let bound = self.bind_raw(raw, &prepared.text, &prepared.parameter_types, values)?;
        if prepared.gives(&bound.fields) {
            prepared.keep(context, &bound.statement);
        }
        Ok(bound)
    }

    /// Returns the number of the plan-cache context. A plan bound in another context is not valid here.
    pub(super) fn context_id(&mut self) -> u64 {
        self.refresh();
        if let Some(number) = self.context_id {
            return number;
        }
        let is_shared = self.core.temporary.is_empty() && !self.core.has_changed_definitions();
        let number = match is_shared {
            true => {
                let facts = self.plan_context();
                self.db.plans.context(facts)
            }
            false => self.db.plans.private_context(),
        };
        self.context_id = Some(number);
        number
    }

    fn plan_context(&mut self) -> PlanContext {
        const READ_BY_BINDING: [&str; 5] =
            ["DateStyle", "IntervalStyle", "TimeZone", "extra_float_digits", "bytea_output"];
        let types_version = self.catalog.types_version;
        let identity = self.current_identity();
        let facts = self.ctx.facts();
        PlanContext {
            database: self.who.database.clone(),
            role: identity.current,
            role_name: identity.name.clone(),
            rights: identity.versions,
            search_path: facts.search_path.clone(),
            types_version,
            settings: READ_BY_BINDING.iter().map(|name| facts.settings.get(name).into()).collect(),
        }
    }
}

impl Prepared {
    /// Returns the columns, all in one format: 0 for text, 1 for binary.
    pub(super) fn columns(&self, format: i16) -> ResultColumns {
        let new = || ResultColumns::new(self.fields.iter().map(|field| Format::new(field, format)));
        self.columns[usize::from(format == 1)].get_or_init(new).clone()
    }

    /// Returns the description of a cursor's query, whose plan the cursor has.
    pub(super) fn of_cursor(text: &Arc<str>, query: RawStatement, fields: Vec<bind::ResultColumn>) -> Prepared {
        Prepared {
            text: text.clone(),
            raw: Some(query),
            parameter_types: Vec::new(),
            fields: fields.into(),
            columns: Default::default(),
            plan: Mutex::default(),
        }
    }

    /// Returns whether the statement is a query.
    pub(super) fn is_select(&self) -> bool {
        self.raw.as_ref().is_some_and(|raw| matches!(raw.statement, Statement::Select(_)))
    }

    /// Returns whether the plan that is kept is valid in a context.
    pub(super) fn is_current(&self, context: u64) -> bool {
        let plan = self.plan.lock();
        plan.as_ref().is_some_and(|(bound_in, statement)| *bound_in == context && statement.bindings.are_current())
    }

    /// Returns whether a plan is kept: it holds for other values.
    pub(super) fn keeps_plan(&self) -> bool {
        self.plan.lock().is_some()
    }

    /// Returns whether these columns are like those that it was prepared with.
    fn gives(&self, fields: &[bind::ResultColumn]) -> bool {
        fields.len() == self.fields.len() && fields.iter().zip(&*self.fields).all(|(new, old)| new.is_like(old))
    }

    fn keep(&self, context: u64, statement: &Arc<BoundStatement>) {
        let kept = !statement.is_volatile && !statement.is_heavy;
        *self.plan.lock() = kept.then(|| (context, statement.clone()));
    }
}

/// Returns the error of a text that does not follow the grammar.
pub fn syntax_error(text: &str, error: &syntax::postgres::Error) -> PgError {
    let mut reported = PgError::new(error.state(), error.message(text));
    if let Problem::Invalid { detail, hint, .. } = &error.problem {
        reported.detail = detail.as_deref().map(Into::into);
        reported.hint = hint.as_deref().map(Into::into);
    }
    match error.position() {
        Some(at) => reported.at(text, at),
        None => reported,
    }
}
