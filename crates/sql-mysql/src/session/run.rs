//! Executes a statement from text to outcome.
//!
//! Fast path: the parameterised text is in the plan cache, and the literals become parameters. Slow path: parse, bind,
//! plan, run. A plan is bound to table versions; `hold` validates them, and a stale plan is compiled again.

use std::ops;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::rows::{Isolation, MapId, SeenMaps, Strength};
use syntax::tree::walk::{self, Visitor};
use syntax::tree::{self, ExprKind, Query, QueryBody, TableRef};

use crate::batch::{Batch, Cells};
use crate::bind::variables::Variables;
use crate::bind::{Bind, BindEnvironment, Uses};
use crate::error::{self, Result, SqlError};

use crate::instance::count::{self, Count};
use crate::instance::plans::OfText;
use crate::instance::prepared::type_of;
use crate::instance::statement::{BoundStatement, Plan};
use crate::parse::parameterise::{ParameterisedText, text_of};
use crate::parse::statement::{self, Statement, StatementKind, Target};
use crate::parse::{self, Parsed};
use crate::rights::Rights;
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::Timestamp;
use crate::session::load::Incoming;
use crate::session::load::rows::Loading;
use crate::session::prepared::time_limit;
use crate::session::session_tracking::{READ, READ_UNSAFE, UNSAFE, WRITE};
use crate::session::suspension::Restart;
use crate::session::{Outcome, ResultSet, Session};
use crate::types::{Column, Kind, MysqlType as _, Type};
use crate::value::Value;
use query::catalog::table::Table;
use query::exec::{Exec, change as changes};
use query::nodes::change::{OnConflict, Values};
use query::nodes::expr::Expr;
use query::nodes::node::{Candidates, Lock, LockWait};
use query::plan::estimate::joined_rows;
use query::plan::statistics::Statistics;
use query::session::statement::Bindings;

/// The flags for table access.
const TABLE_ACCESS: u16 = READ | READ_UNSAFE | WRITE;

/// Returns the plan's effects as flags of the tracked transaction state.
fn effects(plan: &Plan, uses: Uses) -> u16 {
    let writes = plan.changes_rows() || uses.locking > 0;
    let is_unsafe = match plan {
        // The rows ignored or replaced depend on the input order.
        Plan::Insert(insert) => match (&insert.values, insert.on_conflict) {
            (Values::Query(_), on_conflict) => on_conflict != OnConflict::Fail || insert.ignore,
            (_, OnConflict::Update) => unique_keys(&insert.rules.table) > 1,
            _ => false,
        },
        Plan::Update(update) => update.ignore,
        _ => false,
    };
    let bits = [(uses.reading > 0, READ), (uses.reading_unsafe > 0, READ_UNSAFE), (writes, WRITE), (is_unsafe, UNSAFE)];
    bits.into_iter().filter(|(is_so, _)| *is_so).fold(0, |effects, (_, bit)| effects | bit)
}

fn unique_keys(table: &Table) -> usize {
    table.indexes.iter().filter(|index| index.unique).count() + usize::from(table.primary.is_some())
}

/// Compiles a statement again.
pub(super) type Again<'a> = &'a mut dyn FnMut(&mut Session) -> Option<Arc<BoundStatement>>;
/// Compiles the next piece of an INSERT for the same tables.
pub(super) type More<'a> = &'a mut dyn FnMut(&mut Session, &BoundStatement) -> Result<Option<Arc<BoundStatement>>>;

impl Statistics for Session {
    fn know(&self, table: &Arc<Table>) {
        Session::know(self, table);
    }

    fn extent(&self, map: MapId, from: ops::Bound<&[u8]>, to: ops::Bound<&[u8]>) -> Option<f64> {
        self.db.engine().rows().extent(map, from, to).ok().map(|extent| extent.records)
    }
}

impl Variables for Session {
    fn rights_of(&self, account: &str) -> Result<Option<Arc<Rights>>> {
        self.rights_of_account(account)
    }

    fn seen_maps(&self) -> Option<SeenMaps> {
        query::exec::host::seen_maps(&self.ctx)
    }

    fn check_interrupts(&self) -> Result<()> {
        Ok(self.ctx.check_killed()?)
    }

    fn system(&self, scope: Option<statement::Scope>, name: &str) -> Result<(Value, Type)> {
        self.system_variable(scope, name)
    }

    fn user(&self, name: &str) -> Type {
        let known = self.ctx.state().variables.type_of(name).cloned();
        known.unwrap_or_else(|| Type::of_kind(Kind::LongBlob)).with_nullable(true)
    }
}

impl Session {
    /// Executes one statement.
    pub fn execute(&mut self, sql: &str) -> Result<Outcome> {
        self.look_for_unsafe(sql);
        self.may_restart(sql);
        let outcome = self.begin_statement(sql).and_then(|()| self.execute_text(sql));
        self.ran(outcome, |_| Restart::Text(sql.into()))
    }

    /// Executes a statement whose long literals have been replaced by `?`.
    pub fn execute_with(&mut self, sql: &str, literals: Vec<Value>) -> Result<Outcome> {
        self.look_for_unsafe(sql);
        match self.begin_statement(sql).and_then(|()| self.execute_lifted(sql, literals)) {
            Ok(outcome) => Ok(self.told(outcome)),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn execute_lifted(&mut self, sql: &str, literals: Vec<Value>) -> Result<Outcome> {
        let parsed = self.parsed(sql, literals.len())?;
        self.run_statement(&parsed.statement, sql, literals)
    }

    /// Parses a text with this number of parameters. A syntax error also clears the previous statement's warnings.
    fn parsed(&mut self, sql: &str, parameters: usize) -> Result<Parsed> {
        let parsed = parse::parse_unless(sql, self.ctx.sql_mode(), &*self.core.cancel);
        let parsed = parsed.and_then(|parsed| match parsed.parameters == parameters {
            true => Ok(parsed),
            false => Err(SqlError::parse("'?' at line 1")),
        });
        if parsed.is_err() {
            self.ctx.warnings.clear();
        }
        parsed
    }

    pub(super) fn begin_statement(&mut self, sql: &str) -> Result<()> {
        self.number += 1;
        self.ctx.state_mut().values_apart = false;
        self.handle.counts.add(Count::Questions);
        if self.loading.take().is_some() {
            // The file was not sent to its end.
            let _ = self.fail(error::QUERY_INTERRUPTED.bare());
        }
        if self.forget_suspended() || std::mem::take(&mut self.is_open) {
            // The result was not read to its end.
            let _ = self.end_statement();
        }
        self.core.transaction.durability_lsn = 0;
        self.found_rows = 0;
        self.refresh();
        let followed = self.follow_accounts();
        self.handle.forget_query_kill();
        self.began = Instant::now();
        let began = self.began;
        let end = (0..=sql.len().min(1024)).rev().find(|end| sql.is_char_boundary(*end)).unwrap_or(0);
        self.handle.show(|shown| shown.begin(&sql[..end], began));
        let timestamp = self.quick.timestamp;
        self.ctx.now = if timestamp > 0 { Timestamp(timestamp as i64 * 1_000_000) } else { Timestamp::now() };
        self.ctx.ignore = false;
        self.ctx.changes_rows = false;
        self.has_used_tables = false;
        self.is_bare = false;
        self.ctx.parameters.clear();
        self.handle.begin_plan(false);
        self.ctx.outer.clear();
        query::exec::begin_statement(&mut self.ctx);
        self.run_at_most(self.quick.max_execution_ms);
        followed
    }

    /// Sets the statement's deadline in milliseconds from now; 0 means none.
    fn run_at_most(&mut self, limit: u64) {
        let deadline = (limit > 0).then(|| Instant::now() + Duration::from_millis(limit));
        self.host().deadline = deadline;
        (self.ctx.deadline, self.ctx.has_woken) = (deadline, false);
    }

    /// Records the outcome for the session's functions.
    pub(super) fn told(&mut self, outcome: Outcome) -> Outcome {
        if matches!(outcome, Outcome::Suspended) {
            return outcome;
        }
        self.suspension.is_allowed = false;
        self.track_statement(matches!(outcome, Outcome::Rows(_)));
        if let Outcome::Done { affected, .. } = &outcome {
            self.ctx.state_mut().session.row_count = *affected as i64;
        }
        if let Some(id) = self.ctx.state_mut().session.set_last_insert_id.take() {
            self.ctx.state_mut().session.last_insert_id = id;
        }
        outcome
    }

    pub(super) fn execute_text(&mut self, sql: &str) -> Result<Outcome> {
        if let Some(outcome) = self.execute_bulk(sql) {
            return outcome;
        }
        if let Some((compiled, parameters)) = self.known_plan(sql) {
            self.ctx.warnings.clear();
            return self
                .run(&compiled, parameters, &mut |session| session.known_plan(sql).map(|(compiled, _)| compiled));
        }
        let parsed = self.parsed(sql, 0)?;
        self.run_statement(&parsed.statement, sql, Vec::new())
    }

    /// Returns the cached plan of the parameterised text, and this text's literals.
    fn known_plan(&mut self, sql: &str) -> Option<(Arc<BoundStatement>, Vec<Value>)> {
        let is_odd =
            self.ctx.sql_mode().has(crate::scalar::modes::SqlMode::ANSI_QUOTES) || self.account_state.must_change;
        if is_odd || self.core.locks.has_explicit() || self.serializes() || self.seen_maps().is_some() {
            return None;
        }
        let mut parameterised = std::mem::take(&mut self.parameterised);
        let compiled = if parameterised.take(sql) { self.plan_of(&parameterised) } else { None };
        let found = compiled.map(|compiled| (compiled, std::mem::take(&mut parameterised.literals)));
        self.parameterised = parameterised;
        found
    }

    fn plan_of(&mut self, parameterised: &ParameterisedText) -> Option<Arc<BoundStatement>> {
        let context = self.context_id();
        match self.db.plans.text(context, &parameterised.key) {
            Some(OfText::Plan(compiled)) if self.is_plan_current(&compiled) => return Some(compiled),
            Some(OfText::Unshared) => return None,
            _ => {}
        }
        // A binding error is reported for the original text.
        let shared = self.share(&parameterised.key, &parameterised.literals).ok()?;
        let Some(compiled) = shared.map(Arc::new) else {
            self.db.plans.keep_text(context, &parameterised.key, OfText::Unshared);
            return None;
        };
        // Expensive queries are planned for their literals each time.
        if !compiled.is_heavy {
            self.db.plans.keep_text(context, &parameterised.key, OfText::Plan(compiled.clone()));
        }
        Some(compiled)
    }

    /// Returns whether the plan holds for the present definitions and the session's isolation level (MY-6).
    pub(super) fn is_plan_current(&self, statement: &BoundStatement) -> bool {
        let bindings = &statement.bindings;
        bindings.are_current() && bindings.are_seen_by(self.seen_maps().as_ref()) && !self.serializes()
    }

    /// Plain reads take locks, so their plans are not shared.
    pub(super) fn serializes(&self) -> bool {
        self.core.transaction.effective_isolation() == Isolation::Serializable
    }

    /// Returns the binder's environment, without parameters.
    pub(super) fn bind_environment(&self) -> BindEnvironment<'_> {
        BindEnvironment {
            snapshot: self.catalog.clone(),
            rights: &self.rights,
            settings: &self.settings,
            database: self.database.as_deref(),
            variables: self,
            parameters: &[],
            values: &[],
            reads_lock: None,
        }
    }

    /// Compiles the parameterised text. None: the plan depends on the literals.
    fn share(&mut self, key: &[u8], literals: &[Value]) -> Result<Option<BoundStatement>> {
        let parsed = parse::parse(&text_of(key), self.ctx.sql_mode())?;
        if !is_shareable(&parsed.statement) || parsed.parameters != literals.len() {
            return Ok(None);
        }
        let types: Vec<Type> = literals.iter().map(|value| type_of(value, self.settings.collation)).collect();
        let compiled = self.compile(&parsed.statement, (&types, literals))?;
        Ok((!compiled.is_volatile).then_some(compiled))
    }

    /// Compiles a statement. `values` are the known parameter values, which estimates use.
    pub(super) fn compile(
        &mut self,
        statement: &Statement,
        (parameters, values): (&[Type], &[Value]),
    ) -> Result<BoundStatement> {
        self.refresh();
        let transaction = &self.core.transaction;
        let reads_lock = (self.serializes() && (transaction.is_explicit || !transaction.autocommit)).then_some(Lock {
            strength: Strength::Shared,
            wait: LockWait::Patient,
            candidates: Candidates::Current,
        });
        let environment = BindEnvironment { parameters, values, reads_lock, ..self.bind_environment() };
        let mut bind = Bind::new(&environment);
        let plan = match statement {
            Statement::Query(query) if query.into.is_none() => {
                let bound = bind.statement_query(query)?;
                let node = match self.settings.select_limit {
                    limit if limit < u64::MAX && query.limit.is_none() => {
                        let limit = Expr::Literal(Value::UInt(limit), Type::unsigned());
                        query::block::shape::limited(bound.node, (Some(limit), None))
                    }
                    _ => bound.node,
                };
                if !self.settings.big_selects && joined_rows(&node) > self.settings.max_join_size as f64 {
                    return Err(error::TOO_BIG_SELECT.bare());
                }
                Plan::Query { node, columns: bound.columns.into() }
            }
            Statement::Insert(insert) => Plan::Insert(bind.insert(insert)?),
            Statement::Update(update) => Plan::Update(bind.update(update)?),
            Statement::Delete(delete) => Plan::Delete(bind.delete(delete)?),
            Statement::Load(load) => Plan::Load(bind.load(load)?),
            Statement::Do(list) => {
                bind.open_scope();
                Plan::Evaluate(list.iter().map(|expr| bind.expr(expr)).collect::<Result<_>>()?)
            }
            _ => return Err(error::UNSUPPORTED_PS.bare()),
        };
        let is_volatile = bind.volatile || reads_lock.is_some();
        let tables = std::mem::take(&mut bind.tables);
        let mut locked = tables.clone();
        locked.extend(bind.linked.drain(..).filter(|table| !tables.iter().any(|known| known.id == table.id)));
        let (views, named) = (std::mem::take(&mut bind.views), std::mem::take(&mut bind.named));
        let bindings = Bindings { tables, named, locked, views, planned_with: std::mem::take(&mut bind.known) };
        let effects = effects(&plan, bind.uses);
        Ok(BoundStatement::new(plan, bindings, is_volatile, effects))
    }

    pub(super) fn run_statement(
        &mut self,
        statement: &Statement,
        text: &str,
        parameters: Vec<Value>,
    ) -> Result<Outcome> {
        if !matches!(statement, Statement::Show(statement::Show { what: statement::Shown::Warnings { .. }, .. })) {
            self.ctx.warnings.clear();
        }
        self.check_password_age(statement)?;
        // Other statements do more after the plans that they run.
        self.suspension.is_allowed &= statement.has_plan();
        match statement {
            statement if statement.has_plan() => {
                self.obey_hints(statement);
                let types: Vec<Type> = parameters.iter().map(|value| type_of(value, self.settings.collation)).collect();
                let compiled = Arc::new(self.compile(statement, (&types, &parameters))?);
                self.run(&compiled, parameters, &mut |session| {
                    session.compile(statement, (&types, &[])).ok().map(Arc::new)
                })
            }
            Statement::Query(query) => match query.into.as_deref() {
                Some(Target::Variables(names)) => self.select_into(query, names, parameters),
                Some(Target::File { file, charset, format }) => {
                    self.select_into_file(query, (file, charset.as_deref(), format.as_ref()), parameters)
                }
                None => unreachable!("a query without INTO has a plan"),
            },
            Statement::Load(load) => self.load(load),
            Statement::Explain { statement, analyze, format } => {
                self.explain(statement, *analyze, format.as_deref(), parameters)
            }
            other => {
                self.run_at_most(0);
                self.ctx.parameters = parameters;
                let outcome = self.command(other, text)?;
                if !self.is_open {
                    self.handle.show(super::ProcessListRow::end);
                }
                Ok(outcome)
            }
        }
    }

    /// Applies MAX_EXECUTION_TIME.
    fn obey_hints(&mut self, statement: &Statement) {
        self.obey_limit(time_limit(statement));
    }

    pub(super) fn obey_limit(&mut self, ms: Option<u64>) {
        // A restarted statement goes on with its time.
        if let Some(ms) = ms.filter(|_| !self.is_restarted) {
            self.run_at_most(ms);
        }
    }

    /// SELECT ... INTO @a, @b: assigns the values of its single row.
    fn select_into(&mut self, query: &Query, names: &[String], parameters: Vec<Value>) -> Result<Outcome> {
        let types: Vec<Type> = parameters.iter().map(|value| type_of(value, self.settings.collation)).collect();
        let statement = Statement::Query(Box::new(Query { into: None, ..query.clone() }));
        self.obey_hints(&statement);
        let compiled = Arc::new(self.compile(&statement, (&types, &parameters))?);
        let outcome = self
            .run(&compiled, parameters, &mut |session| session.compile(&statement, (&types, &[])).ok().map(Arc::new))?;
        let Outcome::Rows(mut result) = outcome else { return Ok(outcome) };
        let types: Vec<Type> = result.columns().iter().map(|column| column.ty.clone()).collect();
        if types.len() != names.len() {
            result.close(self);
            return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
        }
        let (mut rows, mut batch) = (Vec::new(), Batch::new());
        while rows.len() < 2 && result.next(self, &mut batch)? {
            rows.extend(batch.rows().map(Cells::to_row));
        }
        result.close(self);
        if rows.len() > 1 {
            return Err(error::TOO_MANY_ROWS.bare());
        }
        let affected = rows.len() as u64;
        match rows.pop() {
            None => self.ctx.warn(error::SP_FETCH_NO_DATA.bare()),
            Some(row) => {
                for ((name, value), ty) in names.iter().zip(row).zip(types) {
                    self.ctx.state_mut().variables.set(name, value, ty)?;
                }
            }
        }
        Ok(Outcome::Done { affected, last_insert_id: 0, info: String::new() })
    }

    /// Runs a plan. `again` compiles it anew if a table has changed.
    pub(super) fn run(
        &mut self,
        compiled: &Arc<BoundStatement>,
        parameters: Vec<Value>,
        again: Again<'_>,
    ) -> Result<Outcome> {
        self.run_pieces(compiled, parameters, again, &mut |_, _| Ok(None))
    }

    /// Runs an INSERT in pieces; `more` compiles the next one.
    pub(super) fn run_pieces(
        &mut self,
        compiled: &Arc<BoundStatement>,
        parameters: Vec<Value>,
        again: Again<'_>,
        more: More<'_>,
    ) -> Result<Outcome> {
        let mut compiled = compiled.clone();
        self.ctx.parameters = parameters;
        self.count_once(count::of_plan(&compiled.plan));
        if !matches!(compiled.plan, Plan::Query { .. }) {
            // The limit applies to queries only.
            self.run_at_most(0);
        }
        let mut tries = 0;
        let writes = compiled.plan.changes_rows();
        self.check_locked(&compiled.bindings.tables, &compiled.written)?;
        self.check_locked_names(&compiled.bindings.tables, &compiled.bindings.named)?;
        while !self.lock_for(&compiled)? {
            tries += 1;
            self.refresh();
            compiled = again(self).filter(|_| tries < 100).ok_or_else(|| error::LOCK_WAIT_TIMEOUT.bare())?;
        }
        self.core.locks.suspend(false);
        if writes && compiled.written.iter().any(|table| !table.temporary) {
            self.check_server_writable()?;
        }
        self.is_bare = compiled.effects & TABLE_ACCESS == 0 && self.host().txn.is_none();
        self.has_used_tables |= compiled.effects & TABLE_ACCESS != 0;
        self.need_transaction();
        if self.core.transaction.is_read_only && writes && compiled.written.iter().any(|table| !table.temporary) {
            return Err(error::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION.bare());
        }
        self.track_deed(compiled.effects);
        let txn = self.host().txn()?;
        txn.begin_statement();
        self.core.transaction.statement_start = Some(self.host().txn()?.savepoint());
        self.ctx.changes_rows = writes;
        self.handle.begin_plan(!writes);
        self.suspension.prepare(&compiled);
        self.perform(&compiled, more)
    }

    /// Runs a plan in the current transaction.
    pub(super) fn run_plan(&mut self, compiled: &Arc<BoundStatement>, more: More<'_>) -> Result<Outcome> {
        let mut changed = match &compiled.plan {
            Plan::Query { node, columns } => {
                let columns = columns.clone();
                let exec = Exec::open(node, None, &mut self.ctx)?;
                return self.first_rows(columns, exec);
            }
            Plan::Insert(insert) => {
                let mut tally = changes::insert(insert, changes::Tally::default(), &mut self.ctx)?;
                while let Some(next) = more(self, compiled)? {
                    let Plan::Insert(insert) = &next.plan else { break };
                    tally = changes::insert(insert, tally, &mut self.ctx)?;
                }
                changes::inserted(insert, tally, &mut self.ctx)?
            }
            Plan::Update(update) => changes::update(update, &mut self.ctx)?,
            Plan::Delete(delete) => changes::delete(delete, &mut self.ctx)?,
            Plan::Merge(_) | Plan::Several(_) => return Err(datum::Fault::corrupt("a plan of another dialect").into()),
            Plan::Evaluate(list) => {
                for expr in list {
                    expr.eval(&[], &mut self.ctx)?;
                }
                changes::Changed::default()
            }
            Plan::Load(load) => {
                self.loading = Some(Incoming::Loading(Box::new(Loading::new(compiled.clone()))));
                return Ok(Outcome::File(load.source.file.clone()));
            }
        };
        let made = changed.last_insert_id;
        if let Some(returning) = compiled.plan.returning() {
            if made > 0 {
                self.ctx.state_mut().session.last_insert_id = made;
            }
            // The statement ends when all rows have been read.
            let rows = Arc::new(std::mem::take(&mut changed.returned));
            return self.first_rows(returning.columns.clone(), Exec::of_rows(rows));
        }
        match compiled.plan.changes_rows() {
            true => self.end_counted()?,
            false => self.end_statement()?,
        }
        // The reply reports explicit AUTO_INCREMENT values too, LAST_INSERT_ID() does not.
        if made > 0 {
            self.ctx.state_mut().session.last_insert_id = made;
        }
        let told =
            if made > 0 { made } else { self.ctx.state().session.set_last_insert_id.unwrap_or(changed.given_id) };
        Ok(Outcome::Done { affected: changed.affected, last_insert_id: told, info: changed.info })
    }

    /// Produces the first rows. If there are no more, the statement ends.
    fn first_rows(&mut self, columns: Arc<[Column]>, mut exec: Exec) -> Result<Outcome> {
        const FEW: usize = 64;
        let mut ready = Batch::new();
        let mut is_over = false;
        while !is_over && ready.len() < FEW && !ready.is_long() {
            is_over = !exec.fill(&mut self.ctx, &mut ready)? || exec.is_of_no_table();
        }
        self.found_rows = ready.len() as u64;
        self.is_open = true;
        if is_over {
            self.end_rows()?;
        } else {
            self.note_durability_lsn();
        }
        let exec = (!is_over).then(|| Box::new(exec));
        Ok(Outcome::Rows(ResultSet { columns, ready, exec, number: self.number }))
    }
}

/// Parts of an expression that prevent plan sharing.
#[derive(Default)]
struct Found {
    subquery: bool,
    parameter: bool,
    window: bool,
}

impl Found {
    fn of(node: &tree::Expr) -> Found {
        let mut found = Found::default();
        walk::expr(node, &mut found);
        found
    }
}

impl Visitor for Found {
    fn expr(&mut self, node: &tree::Expr) -> bool {
        match &node.kind {
            ExprKind::Parameter(_) => self.parameter = true,
            ExprKind::Function(function) => self.window |= function.over.is_some(),
            _ => {}
        }
        true
    }

    fn query(&mut self, _: &Query) -> bool {
        self.subquery = true;
        false
    }
}

/// Returns whether statements that differ in literals may share the plan. Literals must not be column names or
/// positions.
fn is_shareable(statement: &Statement) -> bool {
    let plain = |node: &tree::Expr| !Found::of(node).subquery;
    let is_parameter = |node: &tree::Expr| matches!(node.kind, ExprKind::Parameter(_));
    match statement {
        Statement::Query(query) => {
            let QueryBody::Select(select) = &query.body else { return false };
            // A literal in a window's ORDER BY is an error, a parameter is not.
            let named = select.windows.is_empty()
                && select.items.iter().all(|item| match item {
                    tree::SelectItem::Expr(item) => {
                        let found = Found::of(&item.expr);
                        !found.subquery && !found.window && (item.alias.is_some() || !found.parameter)
                    }
                    tree::SelectItem::All(_) | tree::SelectItem::AllOf(..) => true,
                });
            let is_table = |table: &TableRef| matches!(table, TableRef::Table(_));
            let tables = select
                .from
                .iter()
                .all(|item| is_table(&item.first) && item.joins.iter().all(|join| is_table(&join.table)));
            let windows_elsewhere = query.order_by.iter().any(|item| Found::of(&item.expr).window);
            let order = query.order_by.iter().all(|item| !is_parameter(&item.expr));
            let group = select.group_by.iter().all(|node| !Found::of(node).parameter);
            query.with.is_none()
                && query.into.is_none()
                && named
                && tables
                && order
                && group
                && !windows_elsewhere
                && select.selection.iter().chain(&select.having).all(plain)
        }
        // Literals in RETURNING would name columns.
        Statement::Insert(insert) if insert.returning.is_some() => false,
        Statement::Update(update) if update.returning.is_some() => false,
        Statement::Delete(delete) if delete.returning.is_some() => false,
        Statement::Insert(insert) => match &insert.source {
            tree::InsertSource::Values(rows) => rows.iter().flatten().all(plain),
            tree::InsertSource::Set(list) => list.iter().all(|assignment| plain(&assignment.value)),
            tree::InsertSource::Query(_) => false,
        },
        Statement::Update(update) => {
            update.with.is_none()
                && update.assignments.iter().all(|assignment| plain(&assignment.value))
                && update.selection.iter().all(plain)
        }
        Statement::Delete(delete) => delete.with.is_none() && delete.selection.iter().all(plain),
        _ => false,
    }
}
