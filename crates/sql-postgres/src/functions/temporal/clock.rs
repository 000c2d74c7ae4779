//! The clock: `now()` and its like, and SQL's value functions.
//!
//! The binder makes calls of the statics here of CURRENT_DATE and the others, which are no functions of `pg_proc`. Those of times take the digits of their fraction as an argument, an integer, where the statement has them.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Function, Run};

use super::convert::{timestamptz_date, timestamptz_time, timestamptz_timetz};
use super::values::int;
use crate::functions::state::StateOf;
use crate::types::io::IoContext;
use crate::types::temporal::calendar::{DAYS, MONTHS, Reading};
use crate::types::temporal::typmod::{PRECISION_MAX, adjust_time, adjust_timestamp};
use crate::types::temporal::{EPOCH_SECONDS, MICROS_PER_SECOND};
use crate::value::{Timestamp, Value};

pub static CURRENT_DATE: Function = Function::new(&["current_date"], Run::Strict(current_date));
pub static CURRENT_TIME: Function = Function::new(&["current_time"], Run::Strict(current_time));
pub static CURRENT_TIMESTAMP: Function = Function::new(&["current_timestamp"], Run::Strict(current_timestamp));
pub static LOCALTIME: Function = Function::new(&["localtime"], Run::Strict(localtime));
pub static LOCALTIMESTAMP: Function = Function::new(&["localtimestamp"], Run::Strict(localtimestamp));

/// Returns the machine's time in microseconds since 2000-01-01 UTC.
pub fn clock_micros() -> i64 {
    Timestamp::now().0.saturating_sub(EPOCH_SECONDS * MICROS_PER_SECOND)
}

/// Returns the date of the transaction's start in the session's time zone.
pub fn today(io: &IoContext) -> i32 {
    timestamptz_date(io.now, &io.zone).unwrap_or_default()
}

fn precision(values: &[Value]) -> Result<i32> {
    if values.is_empty() { Ok(-1) } else { Ok(int(values, 0)?.min(PRECISION_MAX)) }
}

pub fn now(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(ctx.state().io.now))
}

pub fn statement_timestamp(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(ctx.state().session.statement_start))
}

pub fn clock_timestamp(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(clock_micros()))
}

/// The machine's time as a text, `Thu Nov 26 01:45:13.123456 2026 UTC`.
pub fn timeofday(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = clock_micros();
    let offset = ctx.state().io.zone.local_offset_at(at);
    let reading = Reading::of_micros(at + i64::from(offset.seconds) * MICROS_PER_SECOND);
    let Reading { year, month, day, hour, minute, second, micros } = reading;
    let weekday = &DAYS[reading.weekday() as usize][..3];
    let month = &MONTHS[(month - 1) as usize][..3];
    let zone = &offset.abbreviation;
    Ok(Value::text(format!(
        "{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02}.{micros:06} {year:04} {zone}"
    )))
}

fn current_date(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(today(&ctx.state().io).into()))
}

fn current_time(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let io = &ctx.state().io;
    let mut time = timestamptz_timetz(io.now, &io.zone);
    time.micros = adjust_time(time.micros, precision(values)?);
    Ok(time.to_value())
}

fn current_timestamp(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(adjust_timestamp(ctx.state().io.now, precision(values)?)))
}

fn localtime(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let io = &ctx.state().io;
    Ok(Value::Int(adjust_time(timestamptz_time(io.now, &io.zone), precision(values)?)))
}

fn localtimestamp(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let io = &ctx.state().io;
    let local = super::convert::timestamptz_timestamp(io.now, &io.zone)?;
    Ok(Value::Int(adjust_timestamp(local, precision(values)?)))
}
