//! GET_LOCK and its related functions: exclusive advisory locks of the session (`query::session::advisory_held`). A session may
//! hold several, each several times. They are independent of transactions and are released when the session ends.

use std::time::{Duration, Instant};

use super::entry::{Args, FunctionEntry, Returns, row, sleeping, volatile};
use crate::error;
use crate::scalar::convert;
use crate::value::Value;
use datum::{Fault, Result};
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::Run;
use query::session::advisory_held::{AdvisoryPatience, LockLevel, WantedLock};
use query::session::advisory_locks::{AdvisoryMode, LockName};

pub const FUNCTIONS: &[FunctionEntry] = &[
    sleeping(volatile(row(&["get_lock"], 2, 2, Returns::Int, Run::Values(get_lock)))),
    volatile(row(&["release_lock"], 1, 1, Returns::Int, Run::Values(release_lock))),
    volatile(row(&["release_all_locks"], 0, 0, Returns::UInt, Run::Values(release_all_locks))),
    volatile(row(&["is_free_lock"], 1, 1, Returns::Int, Run::Values(is_free_lock))),
    volatile(row(&["is_used_lock"], 1, 1, Returns::UInt, Run::Values(is_used_lock))),
];

/// The most characters of a name.
const NAME_MAX: usize = 64;

/// Begins the names of these locks, apart from those of other dialects.
const KIND: &str = "user-level lock ";

/// Returns the name of the lock that the first argument names, without regard to case.
fn name_of(text: Option<&str>) -> Result<LockName> {
    match text {
        Some(text) if !text.is_empty() && text.chars().count() <= NAME_MAX => {
            Ok(format!("{KIND}{}", text.to_lowercase()).into_bytes().into())
        }
        other => Err(error::USER_LOCK_WRONG_NAME.raise(&[&other.unwrap_or("NULL")])),
    }
}

fn named(call: &Call, values: &[Value], ctx: &EvalContext) -> Result<LockName> {
    let args = Args::new(call, values);
    let text = (!args.is_null(0)).then(|| args.text(0, ctx));
    name_of(text.as_deref())
}

fn get_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if !ctx.sleeps.suspends {
        return take(call, values, ctx).map(Value::from);
    }
    // The statement restarts when the lock is granted; locks that it has taken keep their results.
    if let Some(result) = ctx.sleeps.next_result() {
        return Ok(Value::Int(result));
    }
    let result = i64::from(take(call, values, ctx)?);
    ctx.sleeps.finish(result);
    Ok(Value::Int(result))
}

/// Takes the lock. Returns false if others keep it beyond the timeout.
fn take(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    let name = named(call, values, ctx)?;
    let seconds = if values[1].is_null() { 0 } else { convert::to_i64(&values[1], ctx)? };
    drop(stdx::memory::claim(name.len() + 256)?);
    let wanted = WantedLock { name, mode: AdvisoryMode::Exclusive, level: LockLevel::Session };
    // A negative timeout waits without limit.
    let wait = u64::try_from(seconds).ok().map(Duration::from_secs);
    if wait.is_some_and(|wait| wait.is_zero()) {
        return host(ctx).advisory.try_acquire(&wanted);
    }
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
    let until = wait.and_then(|wait| Instant::now().checked_add(wait));
    let patience = AdvisoryPatience { until, check: &check };
    let taken = match ctx.sleeps.suspends {
        true => host(ctx).advisory.attempt(&wanted, &patience),
        false => host(ctx).advisory.acquire(&wanted, &patience).map(|()| true),
    };
    match taken {
        Ok(true) => Ok(true),
        Ok(false) => {
            let at = host(ctx).advisory.attempt_at();
            ctx.sleeps.resume_at(at);
            Err(Fault::Suspended)
        }
        Err(Fault::LockTimeout) => Ok(false),
        Err(Fault::Deadlock) => Err(error::USER_LOCK_DEADLOCK.raise(&[])),
        Err(fault) => Err(fault),
    }
}

fn release_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let name = named(call, values, ctx)?;
    let host = host(ctx);
    Ok(match host.advisory.release(&name, AdvisoryMode::Exclusive) {
        true => Value::from(true),
        false => host.instance.advisory_locks().holder(&name).map_or(Value::Null, |_| Value::from(false)),
    })
}

fn release_all_locks(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(host(ctx).advisory.release_session()))
}

fn is_free_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let name = named(call, values, ctx)?;
    Ok(Value::from(host(ctx).instance.advisory_locks().holder(&name).is_none()))
}

fn is_used_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let name = named(call, values, ctx)?;
    Ok(host(ctx).instance.advisory_locks().holder(&name).map_or(Value::Null, Value::UInt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_to_64_letters_and_no_case() {
        assert_eq!(name_of(Some("Ä b")).unwrap(), name_of(Some("ä B")).unwrap());
        assert!(name_of(Some(&"ä".repeat(64))).is_ok());
        for wrong in [None, Some(""), Some(&*"a".repeat(65))] {
            assert_eq!(error::rendered(&name_of(wrong).unwrap_err()).code, 3057);
        }
    }
}
