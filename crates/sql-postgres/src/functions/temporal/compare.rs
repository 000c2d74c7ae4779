//! Comparisons across types: of dates with timestamps, and of both with timestamps with time zone, which depend on `TimeZone`.
//!
//! Comparisons within a type are those of `functions::compare`. Across types the values have different forms, so the core cannot compare them as they are: they are called, or the binder applies the function of [`comparable`] to the one side and lets the core compare, so that an
//! index on the other side can be used.

use std::cmp::Ordering;

use datum::Result;
use query::nodes::comparison::Comparison;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Function, Run};

use super::convert::{Dated, dated_timestamp, dated_timestamptz};
use super::values::{date, micros};
use crate::functions::Volatility;
use crate::functions::rows::function;
use crate::functions::state::StateOf;
use crate::types::oid::{self, Oid};
use crate::types::temporal::calendar::Reading;
use crate::types::temporal::io::timestamp_of;
use crate::types::temporal::{
    DATE_EARLY, DATE_FIRST, DATE_LATE, MICROS_PER_DAY, PgZone, TIMESTAMP_EARLY, TIMESTAMP_LATE, is_finite_timestamp,
};
use crate::value::Value;

/// Returns the order of a date, or a reading in a zone, and a timestamp. Finite ones out of the range of timestamps lie between it and the infinities.
fn order_dated(dated: Dated, at: i64) -> Ordering {
    match dated {
        Dated::At(own) => own.cmp(&at),
        Dated::Behind if at == TIMESTAMP_LATE => Ordering::Less,
        Dated::Behind => Ordering::Greater,
        Dated::Before if at == TIMESTAMP_EARLY => Ordering::Greater,
        Dated::Before => Ordering::Less,
    }
}

/// Returns the function that brings values of a type among those of another one, where both are compared; `None` for pairs without one. A value out of the other's range becomes one that lies between it and the infinity, and that no other value has.
pub fn comparable(ty: Oid, other: Oid) -> Option<&'static Function> {
    match (ty, other) {
        (oid::DATE, oid::TIMESTAMP) => Some(&DATE_AMONG_TIMESTAMPS),
        (oid::DATE, oid::TIMESTAMPTZ) => Some(&DATE_AMONG_INSTANTS),
        (oid::TIMESTAMP, oid::TIMESTAMPTZ) => Some(&TIMESTAMP_AMONG_INSTANTS),
        _ => None,
    }
}

static DATE_AMONG_TIMESTAMPS: Function =
    function(&["timestamp"], Run::Strict(date_among_timestamps), Volatility::Immutable, None);
static DATE_AMONG_INSTANTS: Function =
    function(&["timestamptz"], Run::Strict(date_among_instants), Volatility::Stable, None);
static TIMESTAMP_AMONG_INSTANTS: Function =
    function(&["timestamptz"], Run::Strict(timestamp_among_instants), Volatility::Stable, None);

/// Returns the function that turns the other side of `date op other` into the date that stands for it in the same comparison: `d < t` holds exactly if `d` is less than
/// the first day that does not begin before `t`. So a date can be looked up in an index. `None`: no date stands for it.
pub fn day_for(op: Comparison, other: Oid) -> Option<&'static Function> {
    use Comparison::{Greater, GreaterEqual, Less, LessEqual};
    match (op, other) {
        (Less | GreaterEqual, oid::TIMESTAMP) => Some(&FIRST_DAY_FROM_TIMESTAMP),
        (LessEqual | Greater, oid::TIMESTAMP) => Some(&LAST_DAY_UNTIL_TIMESTAMP),
        (Less | GreaterEqual, oid::TIMESTAMPTZ) => Some(&FIRST_DAY_FROM_INSTANT),
        (LessEqual | Greater, oid::TIMESTAMPTZ) => Some(&LAST_DAY_UNTIL_INSTANT),
        _ => None,
    }
}

static FIRST_DAY_FROM_TIMESTAMP: Function =
    function(&["date"], Run::Strict(first_day_from_timestamp), Volatility::Immutable, None);
static LAST_DAY_UNTIL_TIMESTAMP: Function =
    function(&["date"], Run::Strict(last_day_until_timestamp), Volatility::Immutable, None);
static FIRST_DAY_FROM_INSTANT: Function =
    function(&["date"], Run::Strict(first_day_from_instant), Volatility::Stable, None);
static LAST_DAY_UNTIL_INSTANT: Function =
    function(&["date"], Run::Strict(last_day_until_instant), Volatility::Stable, None);

/// The days that may begin closest to a timestamp, in order: no zone is more than a day from UTC.
fn days_near(at: i64) -> impl DoubleEndedIterator<Item = i32> {
    let day = i32::try_from(at.div_euclid(MICROS_PER_DAY)).unwrap_or_default();
    (day - 2..=day + 3).filter(|day| *day >= DATE_FIRST)
}

/// Returns the first date that does not begin before a timestamp.
fn first_day_from(at: i64, dated: impl Fn(i32) -> Dated) -> i32 {
    match at {
        TIMESTAMP_EARLY => DATE_EARLY,
        TIMESTAMP_LATE => DATE_LATE,
        at => days_near(at).find(|day| order_dated(dated(*day), at).is_ge()).unwrap_or(DATE_LATE),
    }
}

/// Returns the last date that does not begin after a timestamp.
fn last_day_until(at: i64, dated: impl Fn(i32) -> Dated) -> i32 {
    match at {
        TIMESTAMP_EARLY => DATE_EARLY,
        TIMESTAMP_LATE => DATE_LATE,
        at => days_near(at).rfind(|day| order_dated(dated(*day), at).is_le()).unwrap_or(DATE_EARLY),
    }
}

fn first_day_from_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(first_day_from(micros(values, 0)?, dated_timestamp).into()))
}

fn last_day_until_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(last_day_until(micros(values, 0)?, dated_timestamp).into()))
}

fn first_day_from_instant(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let zone = &ctx.state().io.zone;
    Ok(Value::Int(first_day_from(micros(values, 0)?, |day| dated_timestamptz(day, zone)).into()))
}

fn last_day_until_instant(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let zone = &ctx.state().io.zone;
    Ok(Value::Int(last_day_until(micros(values, 0)?, |day| dated_timestamptz(day, zone)).into()))
}

fn placed(dated: Dated) -> Value {
    Value::Int(match dated {
        Dated::At(at) => at,
        Dated::Before => TIMESTAMP_EARLY + 1,
        Dated::Behind => TIMESTAMP_LATE - 1,
    })
}

fn date_among_timestamps(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(placed(dated_timestamp(date(values, 0)?)))
}

fn date_among_instants(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(placed(dated_timestamptz(date(values, 0)?, &ctx.state().io.zone)))
}

fn timestamp_among_instants(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(placed(dated_of_timestamp(micros(values, 0)?, &ctx.state().io.zone)))
}

/// Returns the instant of a timestamp in a zone.
fn dated_of_timestamp(at: i64, zone: &PgZone) -> Dated {
    if !is_finite_timestamp(at) {
        return Dated::At(at);
    }
    let reading = Reading::of_micros(at);
    let outside = if at < 0 { Dated::Before } else { Dated::Behind };
    timestamp_of(&reading, -zone.offset_of(&reading)).map_or(outside, Dated::At)
}

/// Defines the order of two types and of the exchanged types, and the comparisons by it.
macro_rules! comparisons {
    ($module:ident, $exchanged:ident, $order:expr) => {
        pub mod $module {
            use super::*;

            fn order(values: &[Value], ctx: &EvalContext) -> Result<Ordering> {
                let order: fn(&[Value], &EvalContext) -> Result<Ordering> = $order;
                order(values, ctx)
            }

            comparisons!(bodies);
        }

        pub mod $exchanged {
            use super::*;

            fn order(values: &[Value], ctx: &EvalContext) -> Result<Ordering> {
                let order: fn(&[Value], &EvalContext) -> Result<Ordering> = $order;
                order(&[values[1].clone(), values[0].clone()], ctx).map(Ordering::reverse)
            }

            comparisons!(bodies);
        }
    };
    (bodies) => {
        comparisons!(body equal is_eq);
        comparisons!(body not_equal is_ne);
        comparisons!(body less is_lt);
        comparisons!(body less_equal is_le);
        comparisons!(body greater is_gt);
        comparisons!(body greater_equal is_ge);

        pub fn compare(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
            Ok(Value::Int(order(values, ctx)? as i64))
        }
    };
    (body $name:ident $accepts:ident) => {
        pub fn $name(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
            Ok(order(values, ctx)?.$accepts().into())
        }
    };
}

comparisons!(date_timestamp, timestamp_date, |values, _| {
    Ok(order_dated(dated_timestamp(date(values, 0)?), micros(values, 1)?))
});
comparisons!(date_timestamptz, timestamptz_date, |values, ctx| {
    Ok(order_dated(dated_timestamptz(date(values, 0)?, &ctx.state().io.zone), micros(values, 1)?))
});
comparisons!(timestamp_timestamptz, timestamptz_timestamp, |values, ctx| {
    Ok(order_dated(dated_of_timestamp(micros(values, 0)?, &ctx.state().io.zone), micros(values, 1)?))
});
