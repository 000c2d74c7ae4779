//! Comparisons across types: of dates with timestamps, and of both with timestamps with time zone, which depend on `TimeZone`.
//!
//! Comparisons within a type are those of `functions::compare`. Across types the values have different forms, so the core cannot compare them as they are: they are called, or the binder applies the function of [`comparable`] to the one side and lets the core compare, so that an
//! index on the other side can be used.

use std::cmp::Ordering;

use datum::Result;
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
use crate::types::temporal::{PgZone, TIMESTAMP_EARLY, TIMESTAMP_LATE, is_finite_timestamp};
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
