//! GET_LOCK and its related functions over the locks of `scalar/user_locks`.

use std::sync::Arc;
use std::time::Duration;

use super::entry::{Args, FunctionEntry, Returns, row, volatile};
use crate::scalar::convert;
use crate::scalar::state::StateOf as _;
use crate::scalar::user_locks::{UserLocks, name_of};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    volatile(row(&["get_lock"], 2, 2, Returns::Int, Run::Values(get_lock))),
    volatile(row(&["release_lock"], 1, 1, Returns::Int, Run::Values(release_lock))),
    volatile(row(&["release_all_locks"], 0, 0, Returns::UInt, Run::Values(release_all_locks))),
    volatile(row(&["is_free_lock"], 1, 1, Returns::Int, Run::Values(is_free_lock))),
    volatile(row(&["is_used_lock"], 1, 1, Returns::UInt, Run::Values(is_used_lock))),
];

/// The locks, who asks, and the name.
fn asked(call: &Call, values: &[Value], ctx: &EvalContext) -> Result<(Arc<UserLocks>, u64, String)> {
    let args = Args::new(call, values);
    let text = (!args.is_null(0)).then(|| args.text(0, ctx));
    Ok((ctx.state().locks.clone(), ctx.state().session.connection_id, name_of(text.as_deref())?))
}

fn get_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (locks, session, name) = asked(call, values, ctx)?;
    let seconds = if values[1].is_null() { 0 } else { convert::to_i64(&values[1], ctx)? };
    // A negative timeout waits without limit.
    let patience = u64::try_from(seconds).ok().map(Duration::from_secs);
    drop(stdx::memory::claim(name.len() + 256)?);
    let got = locks.get(session, &name, patience, &|| ctx.check_wait())?;
    Ok(Value::from(got))
}

fn release_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (locks, session, name) = asked(call, values, ctx)?;
    Ok(locks.release(session, &name).map_or(Value::Null, Value::from))
}

fn release_all_locks(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(ctx.state().locks.release_all(ctx.state().session.connection_id)))
}

fn is_free_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (locks, _, name) = asked(call, values, ctx)?;
    Ok(Value::from(locks.owner(&name).is_none()))
}

fn is_used_lock(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (locks, _, name) = asked(call, values, ctx)?;
    Ok(locks.owner(&name).map_or(Value::Null, Value::UInt))
}
