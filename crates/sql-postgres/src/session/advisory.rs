//! The functions of advisory locks, `pg_advisory_lock` and its like, over `query::session::advisory_held`.
//!
//! A lock belongs to a database, and is named by one int8 or by two int4. A statement that computes nothing but such
//! functions waits without a thread, as one that sleeps does; any other blocks one.

use std::time::{Duration, Instant};

use datum::{Fault, Result};
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Function, Run};
use query::session::advisory_held::{AdvisoryPatience, LockLevel, WantedLock};
use query::session::advisory_locks::{AdvisoryMode, LockName};

use crate::error::PgError;
use crate::functions::args::integer;
use crate::functions::rows::{V, row, strict};
use crate::functions::{Body, PgFunction};
use crate::session::facts::FactsOf as _;
use crate::settings::place;
use crate::types::oid::{BOOL, INT4, INT8, VOID};
use crate::value::Value;

use AdvisoryMode::{Exclusive, Shared};
use LockLevel::{Session, Transaction};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(2880, "pg_advisory_lock", &[INT8], 0, VOID, V, true, Body::Scalar(&LOCK)),
    row(2886, "pg_advisory_lock", &[INT4, INT4], 0, VOID, V, true, Body::Scalar(&LOCK)),
    row(2881, "pg_advisory_lock_shared", &[INT8], 0, VOID, V, true, Body::Scalar(&LOCK_SHARED)),
    row(2887, "pg_advisory_lock_shared", &[INT4, INT4], 0, VOID, V, true, Body::Scalar(&LOCK_SHARED)),
    row(2884, "pg_advisory_unlock", &[INT8], 0, BOOL, V, true, strict!("pg_advisory_unlock", unlock, V)),
    row(2890, "pg_advisory_unlock", &[INT4, INT4], 0, BOOL, V, true, strict!("pg_advisory_unlock", unlock, V)),
    row(2892, "pg_advisory_unlock_all", &[], 0, VOID, V, true, strict!("pg_advisory_unlock_all", unlock_all, V)),
    row(2885, "pg_advisory_unlock_shared", &[INT8], 0, BOOL, V, true, strict!("pg_advisory_unlock_shared", unlock_shared, V)),
    row(2891, "pg_advisory_unlock_shared", &[INT4, INT4], 0, BOOL, V, true, strict!("pg_advisory_unlock_shared", unlock_shared, V)),
    row(3089, "pg_advisory_xact_lock", &[INT8], 0, VOID, V, true, Body::Scalar(&XACT_LOCK)),
    row(3093, "pg_advisory_xact_lock", &[INT4, INT4], 0, VOID, V, true, Body::Scalar(&XACT_LOCK)),
    row(3090, "pg_advisory_xact_lock_shared", &[INT8], 0, VOID, V, true, Body::Scalar(&XACT_LOCK_SHARED)),
    row(3094, "pg_advisory_xact_lock_shared", &[INT4, INT4], 0, VOID, V, true, Body::Scalar(&XACT_LOCK_SHARED)),
    row(2882, "pg_try_advisory_lock", &[INT8], 0, BOOL, V, true, strict!("pg_try_advisory_lock", try_lock, V)),
    row(2888, "pg_try_advisory_lock", &[INT4, INT4], 0, BOOL, V, true, strict!("pg_try_advisory_lock", try_lock, V)),
    row(2883, "pg_try_advisory_lock_shared", &[INT8], 0, BOOL, V, true, strict!("pg_try_advisory_lock_shared", try_lock_shared, V)),
    row(2889, "pg_try_advisory_lock_shared", &[INT4, INT4], 0, BOOL, V, true, strict!("pg_try_advisory_lock_shared", try_lock_shared, V)),
    row(3091, "pg_try_advisory_xact_lock", &[INT8], 0, BOOL, V, true, strict!("pg_try_advisory_xact_lock", try_xact_lock, V)),
    row(3095, "pg_try_advisory_xact_lock", &[INT4, INT4], 0, BOOL, V, true, strict!("pg_try_advisory_xact_lock", try_xact_lock, V)),
    row(3092, "pg_try_advisory_xact_lock_shared", &[INT8], 0, BOOL, V, true, strict!("pg_try_advisory_xact_lock_shared", try_xact_lock_shared, V)),
    row(3096, "pg_try_advisory_xact_lock_shared", &[INT4, INT4], 0, BOOL, V, true, strict!("pg_try_advisory_xact_lock_shared", try_xact_lock_shared, V)),
];

const fn waiting(
    names: &'static [&'static str],
    run: fn(&Call, &[Value], &mut EvalContext) -> Result<Value>,
) -> Function {
    Function { volatile: true, sleeps: true, ..Function::new(names, Run::Strict(run)) }
}

static LOCK: Function = waiting(&["pg_advisory_lock"], |_, values, ctx| lock(values, Exclusive, Session, ctx));
static LOCK_SHARED: Function =
    waiting(&["pg_advisory_lock_shared"], |_, values, ctx| lock(values, Shared, Session, ctx));
static XACT_LOCK: Function =
    waiting(&["pg_advisory_xact_lock"], |_, values, ctx| lock(values, Exclusive, Transaction, ctx));
static XACT_LOCK_SHARED: Function =
    waiting(&["pg_advisory_xact_lock_shared"], |_, values, ctx| lock(values, Shared, Transaction, ctx));

const LOCK_TIMEOUT: usize = place("lock_timeout");

/// Begins the names of these locks, apart from those of other dialects.
const KIND: &[u8] = b"advisory lock ";

/// An advisory lock as `pg_locks` shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct LockTag<'n> {
    pub database: &'n str,
    pub class: u32,
    pub object: u32,
    /// 1: named by one int8; 2: by two int4.
    pub arguments: u8,
}

impl LockTag<'_> {
    fn name(&self) -> LockName {
        let LockTag { database, class, object, arguments } = self;
        let numbers = [&class.to_be_bytes()[..], &object.to_be_bytes(), &[*arguments]].concat();
        [KIND, &numbers, database.as_bytes()].concat().into()
    }

    /// Reads the name of a lock; `None` if it is another dialect's.
    pub fn of_name(name: &[u8]) -> Option<LockTag<'_>> {
        let rest = name.strip_prefix(KIND)?;
        let (class, rest) = rest.split_first_chunk()?;
        let (object, rest) = rest.split_first_chunk()?;
        let (arguments, database) = rest.split_first()?;
        let (class, object) = (u32::from_be_bytes(*class), u32::from_be_bytes(*object));
        Some(LockTag { database: str::from_utf8(database).ok()?, class, object, arguments: *arguments })
    }
}

fn name_of(values: &[Value], ctx: &mut EvalContext) -> Result<LockName> {
    let first = integer(values, 0)?;
    let (class, object, arguments) = match values.len() {
        1 => ((first >> 32) as u32, first as u32, 1),
        _ => (first as u32, integer(values, 1)? as u32, 2),
    };
    Ok(LockTag { database: &ctx.facts().database, class, object, arguments }.name())
}

fn lock(values: &[Value], mode: AdvisoryMode, level: LockLevel, ctx: &mut EvalContext) -> Result<Value> {
    let done = Ok(Value::text(""));
    if ctx.sleeps.suspends && ctx.sleeps.next_result().is_some() {
        return done;
    }
    let wanted = WantedLock { name: name_of(values, ctx)?, mode, level };
    let (interrupted, killed) = (ctx.interrupted.clone(), ctx.killed.clone());
    let deadline = ctx.deadline;
    let check = || {
        if [&interrupted, &killed].into_iter().flatten().any(|is_ended| is_ended()) {
            return Err(Fault::Interrupted);
        }
        match deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            true => Err(Fault::StatementTimeout),
            false => Ok(()),
        }
    };
    let limit = ctx.facts().settings.at(LOCK_TIMEOUT).parse().map_or(Duration::ZERO, Duration::from_millis);
    let until = if limit.is_zero() { None } else { Instant::now().checked_add(limit) };
    let patience = AdvisoryPatience { until, check: &check };
    if !ctx.sleeps.suspends {
        host(ctx).advisory.acquire(&wanted, &patience)?;
        return done;
    }
    if host(ctx).advisory.attempt(&wanted, &patience)? {
        ctx.sleeps.finish(0);
        return done;
    }
    let at = host(ctx).advisory.attempt_at();
    ctx.sleeps.resume_at(at);
    Err(Fault::Suspended)
}

fn attempt(values: &[Value], mode: AdvisoryMode, level: LockLevel, ctx: &mut EvalContext) -> Result<Value> {
    let wanted = WantedLock { name: name_of(values, ctx)?, mode, level };
    host(ctx).advisory.try_acquire(&wanted).map(Value::from)
}

fn try_lock(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    attempt(values, Exclusive, Session, ctx)
}

fn try_lock_shared(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    attempt(values, Shared, Session, ctx)
}

fn try_xact_lock(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    attempt(values, Exclusive, Transaction, ctx)
}

fn try_xact_lock_shared(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    attempt(values, Shared, Transaction, ctx)
}

/// Returns the mode as PostgreSQL names it.
pub fn mode_name(mode: AdvisoryMode) -> &'static str {
    match mode {
        Shared => "ShareLock",
        Exclusive => "ExclusiveLock",
    }
}

fn release(values: &[Value], mode: AdvisoryMode, ctx: &mut EvalContext) -> Result<Value> {
    let name = name_of(values, ctx)?;
    let was_held = host(ctx).advisory.release(&name, mode);
    if !was_held {
        let message = format!("you don't own a lock of type {}", mode_name(mode));
        ctx.facts().notice("WARNING", PgError::new("01000", message));
    }
    Ok(Value::from(was_held))
}

fn unlock(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    release(values, Exclusive, ctx)
}

fn unlock_shared(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    release(values, Shared, ctx)
}

fn unlock_all(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    host(ctx).advisory.release_session();
    Ok(Value::text(""))
}
