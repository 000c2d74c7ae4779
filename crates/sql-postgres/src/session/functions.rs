//! Functions that read or change the session: sequences, settings, other sessions.

use std::time::{Duration, Instant};

use datum::{Fault, Result};
use query::catalog::objects::Object;
use query::catalog::sequence::Sequence;
use query::catalog::table_lock::Patience;
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Function, Run};
use stdx::wait;

use crate::error::{PgError, state};
use crate::functions::args::{integer, text, truth};
use crate::functions::rows::{S, V, row, strict, values};
use crate::functions::{Body, PgFunction};
use crate::instance::database::Database;
use crate::instance::handle::Kill;
use crate::rights::object as rights;
use crate::rights::privilege::{SELECT, UPDATE, USAGE};
use crate::rights::role::{Roles, SIGNAL_BACKEND};
use crate::session::facts::FactsOf as _;
use crate::session::set::set_role;
use crate::settings;
use crate::settings::values::Scope;
use crate::system::oids;
use crate::types::oid::{BOOL, FLOAT8, INT4, INT8, REGCLASS, TEXT, VOID};
use crate::value::Value;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(2077, "current_setting", &[TEXT], 0, TEXT, S, true, strict!("current_setting", current_setting, S)),
    row(3294, "current_setting", &[TEXT, BOOL], 0, TEXT, S, true, strict!("current_setting", current_setting, S)),
    row(1575, "currval", &[REGCLASS], 0, INT8, V, true, strict!("currval", currval, V)),
    row(2559, "lastval", &[], 0, INT8, V, true, strict!("lastval", lastval, V)),
    row(1574, "nextval", &[REGCLASS], 0, INT8, V, true, strict!("nextval", nextval, V)),
    row(2171, "pg_cancel_backend", &[INT4], 0, BOOL, V, true, strict!("pg_cancel_backend", cancel_backend, V)),
    row(2626, "pg_sleep", &[FLOAT8], 0, VOID, V, true, Body::Scalar(&PG_SLEEP)),
    row(2096, "pg_terminate_backend", &[INT4, INT8], 0, BOOL, V, true, strict!("pg_terminate_backend", terminate_backend, V)),
    row(2078, "set_config", &[TEXT, TEXT, BOOL], 0, TEXT, V, false, values!("set_config", set_config, V)),
    row(1576, "setval", &[REGCLASS, INT8], 0, INT8, V, true, strict!("setval", setval, V)),
    row(1765, "setval", &[REGCLASS, INT8, BOOL], 0, INT8, V, true, strict!("setval", setval, V)),
];

static PG_SLEEP: Function =
    Function { volatile: true, sleeps: true, ..Function::new(&["pg_sleep"], Run::Strict(pg_sleep)) };

/// The lock wait of a counter that a change of its definition holds.
const COUNTER_WAIT: Duration = Duration::from_secs(3600);

/// Returns the sequence of an OID.
fn sequence(values: &[Value], ctx: &mut EvalContext) -> Result<std::sync::Arc<Sequence>> {
    let oid = integer(values, 0)? as u32;
    let definitions = ctx.facts().definitions.clone();
    let object = oids::object_of(oid).and_then(|id| definitions.object(id));
    match object {
        Some(Object::Sequence(sequence)) => Ok(sequence.clone()),
        Some(Object::Table(table)) => Err(not_a_sequence(&table.name)),
        Some(Object::View(view)) => Err(not_a_sequence(&view.name)),
        _ => {
            let message = format!("could not open relation with OID {oid}");
            Err(PgError::new(state::UNDEFINED_TABLE, message).into())
        }
    }
}

fn not_a_sequence(name: &str) -> Fault {
    PgError::new(state::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence")).into()
}

fn check_writable(what: &str, ctx: &mut EvalContext) -> Result<()> {
    match ctx.facts().settings.is_on("transaction_read_only") {
        false => Ok(()),
        true => {
            let message = format!("cannot execute {what}() in a read-only transaction");
            Err(PgError::new(state::READ_ONLY_SQL_TRANSACTION, message).into())
        }
    }
}

fn nextval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    check_writable("nextval", ctx)?;
    let sequence = sequence(values, ctx)?;
    ctx.facts().check_any(&rights::Object::sequence(&sequence), USAGE | UPDATE)?;
    let interrupted = ctx.interrupted.clone();
    let is_interrupted = || interrupted.as_ref().is_some_and(|interrupted| interrupted());
    let instance = host(ctx).instance.clone();
    let patience = Patience { wait: COUNTER_WAIT, is_interrupted: &is_interrupted };
    let (value, lsn) = sequence.next(instance.engine(), patience)?;
    host(ctx).seen = host(ctx).seen.max(lsn);
    let facts = ctx.facts();
    facts.sequences.insert(sequence.id, value);
    facts.last_sequence = Some(sequence.id);
    Ok(Value::Int(value))
}

fn currval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let sequence = sequence(values, ctx)?;
    ctx.facts().check_any(&rights::Object::sequence(&sequence), SELECT | USAGE)?;
    match ctx.facts().sequences.get(&sequence.id) {
        Some(value) => Ok(Value::Int(*value)),
        None => {
            let message = format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name);
            Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into())
        }
    }
}

fn lastval(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let facts = ctx.facts();
    let last = facts.last_sequence.and_then(|id| Some((id, *facts.sequences.get(&id)?)));
    let known = last.and_then(|(id, value)| match facts.definitions.object(id) {
        Some(Object::Sequence(sequence)) => Some((sequence.clone(), value)),
        _ => None,
    });
    match known {
        Some((sequence, value)) => {
            facts.check_any(&rights::Object::sequence(&sequence), SELECT | USAGE)?;
            Ok(Value::Int(value))
        }
        None => {
            let message = "lastval is not yet defined in this session";
            Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into())
        }
    }
}

fn setval(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    check_writable("setval", ctx)?;
    let sequence = sequence(values, ctx)?;
    ctx.facts().check_any(&rights::Object::sequence(&sequence), UPDATE)?;
    let value = integer(values, 1)?;
    let is_called = if values.len() > 2 { truth(values, 2)? } else { true };
    let interrupted = ctx.interrupted.clone();
    let is_interrupted = || interrupted.as_ref().is_some_and(|interrupted| interrupted());
    let instance = host(ctx).instance.clone();
    let patience = Patience { wait: COUNTER_WAIT, is_interrupted: &is_interrupted };
    let lsn = sequence.set(instance.engine(), value, is_called, patience)?;
    host(ctx).seen = host(ctx).seen.max(lsn);
    if is_called {
        ctx.facts().sequences.insert(sequence.id, value);
    }
    Ok(Value::Int(value))
}

fn current_setting(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let name = text(values, 0)?;
    let missing_ok = values.len() > 1 && truth(values, 1)?;
    match ctx.facts().settings.show(name) {
        Some(value) => Ok(Value::text(value)),
        None if missing_ok => Ok(Value::Null),
        None => Err(settings::unknown(name).into()),
    }
}

fn set_config(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Err(PgError::new("22004", "SET requires parameter name").into());
    }
    let name = text(values, 0)?.to_owned();
    let is_local = !values[2].is_null() && truth(values, 2)?;
    let scope = if is_local { Scope::Local } else { Scope::Session };
    let lower = name.to_ascii_lowercase();
    if matches!(&*lower, "role" | "session_authorization") {
        let value = if values[1].is_null() { None } else { Some(text(values, 1)?) };
        let facts = ctx.facts();
        set_role(&lower, value, scope, facts)?;
        return Ok(facts.settings.show(&lower).map_or(Value::Null, Value::text));
    }
    if lower.starts_with("transaction_") {
        return Err(PgError::unsupported(format!("set_config of {name}")).into());
    }
    let facts = ctx.facts();
    settings::check_right(&name, facts.identity.set.is_super)?;
    let is_begun = facts.in_transaction;
    match values[1].is_null() {
        true => facts.settings.reset(&name, scope, is_begun)?,
        false => facts.settings.set(&name, text(values, 1)?, scope, is_begun)?,
    }
    Ok(facts.settings.show(&name).map_or(Value::Null, Value::text))
}

fn signal(values: &[Value], how: Kill, ctx: &mut EvalContext) -> Result<Value> {
    let pid = integer(values, 0)? as u32;
    let Some(db) = ctx.facts().db.clone() else { return Ok(Value::FALSE) };
    check_signal(&db, pid, how, ctx)?;
    let is_known = db.kill(pid, how);
    if !is_known {
        let message = format!("PID {pid} is not a PostgreSQL backend process");
        ctx.facts().notice("WARNING", PgError::new("01000", message));
    }
    Ok(Value::from(is_known))
}

/// Fails unless the current role may end a session or its statement: it needs the rights of that session's role.
fn check_signal(db: &Database, pid: u32, how: Kill, ctx: &mut EvalContext) -> Result<()> {
    let set = &ctx.facts().identity.clone().set;
    if set.is_super {
        return Ok(());
    }
    let own = db.sessions().into_iter().find(|handle| handle.pid == pid);
    let target = own.and_then(|handle| Roles::committed(db).by_oid(handle.role()));
    let is_known =
        target.is_some() || db.other_sessions().iter().any(|session| session.connection_id == u64::from(pid));
    let (verb, object) = match how {
        Kill::Connection => ("terminate", "process"),
        _ => ("cancel", "query"),
    };
    let refused = |detail: String| {
        let error = PgError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied to {verb} {object}"));
        Err(error.detail(detail).into())
    };
    match target {
        None if !is_known => Ok(()),
        // Sessions of other doors are the administrators' to end.
        Some(target) if !target.is_super && (set.has(target.oid) || set.has(SIGNAL_BACKEND)) => Ok(()),
        Some(target) if !target.is_super => refused(format!(
            "Only roles with privileges of the role whose {object} is being {verb}ed or with privileges of the \"pg_signal_backend\" role may {verb} this {object}."
        )),
        _ => refused(format!(
            "Only roles with the SUPERUSER attribute may {verb} {} of roles with the SUPERUSER attribute.",
            if object == "query" { "queries" } else { "processes" }
        )),
    }
}

fn cancel_backend(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    signal(values, Kill::Query, ctx)
}

fn terminate_backend(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let timeout = integer(values, 1)?;
    if timeout < 0 {
        let message = "\"timeout\" must not be negative";
        return Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message).into());
    }
    if timeout > 0 {
        return Err(PgError::unsupported("pg_terminate_backend with a timeout").into());
    }
    signal(values, Kill::Connection, ctx)
}

static SLEEP: wait::Reason = wait::Reason::bounded("sleep");

fn pg_sleep(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    const SLICE: Duration = Duration::from_millis(20);
    let Value::Double(seconds) = values[0] else { return Ok(Value::text("")) };
    let length = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    let end = Instant::now().checked_add(length);
    if ctx.sleeps.suspends {
        if ctx.sleeps.next_result().is_some() {
            return Ok(Value::text(""));
        }
        let end = ctx.sleeps.end(end);
        ctx.check_wait()?;
        return match is_over(end, ctx)? {
            true => {
                ctx.sleeps.finish(0);
                Ok(Value::text(""))
            }
            false => Err(Fault::Suspended),
        };
    }
    let Some(_waiting) = wait::try_announce(&SLEEP) else { return Err(Fault::TooManyWaits) };
    loop {
        ctx.check_wait()?;
        if is_over(end, ctx)? {
            return Ok(Value::text(""));
        }
        let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
        std::thread::sleep(left.min(SLICE));
    }
}

/// Returns whether a sleep is over. The statement's deadline ends the statement.
fn is_over(end: Option<Instant>, ctx: &EvalContext) -> Result<bool> {
    let now = Instant::now();
    if ctx.deadline.is_some_and(|deadline| now >= deadline) {
        return Err(Fault::StatementTimeout);
    }
    Ok(end.is_some_and(|end| now >= end))
}
