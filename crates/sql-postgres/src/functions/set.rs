//! Set-returning functions: their rows are computed as they are wanted.
//!
//! `generate_series` of each type follows its C function: integers and numerics end where the next value would be beyond the type, timestamps fail there, one row before.

use datum::{Fault, Result};
use query::batch::Row;
use query::nodes::context::EvalContext;
use query::nodes::table_function::{RowStream, SetFunction, SetStart};
use stdx::memory::Claim;

use crate::functions::args::{claim, integer, invalid, text};
use crate::functions::state::StateOf;
use crate::functions::temporal::arithmetic::timestamp_plus;
use crate::functions::temporal::convert::zone_of_name;
use crate::functions::temporal::values::{micros, span};
use crate::functions::text::regexp::split_pieces;
use crate::session::facts::FactsOf as _;
use crate::types::temporal::{PgZone, Span};
use crate::value::{Decimal, Value};

type Stream = Result<Box<dyn RowStream>>;

const fn strict(name: &'static str, start: SetStart) -> SetFunction {
    SetFunction { name, strict: true, volatile: false, start }
}

pub static SERIES_4: SetFunction = strict("generate_series", |_, values, _| whole(values, i64::from(i32::MAX)));
pub static SERIES_8: SetFunction = strict("generate_series", |_, values, _| whole(values, i64::MAX));
pub static SERIES_NUMERIC: SetFunction = strict("generate_series", |_, values, _| decimals(values));
pub static SERIES_TIMESTAMP: SetFunction = strict("generate_series", |_, values, _| instants(values, None));
pub static SERIES_TIMESTAMPTZ: SetFunction = strict("generate_series", |_, values, ctx| {
    let zone = match values.len() {
        4 => zone_of_name(text(values, 3)?)?,
        _ => ctx.state().io.zone.clone(),
    };
    instants(values, Some(zone))
});
pub static LISTENING_CHANNELS: SetFunction = strict("pg_listening_channels", |_, _, ctx| {
    let channels: Vec<Row> =
        ctx.facts().channels.listening.iter().map(|channel| vec![Value::text(&**channel)]).collect();
    Ok(Box::new(KnownRows(channels.into_iter())))
});
pub static OPTIONS: SetFunction = strict("pg_options_to_table", |_, values, _| {
    let Value::Array(options) = &values[0] else { return Ok(Box::new(KnownRows(Vec::new().into_iter()))) };
    let option = |value: &Value| {
        let Value::Text(text) = value else { return vec![Value::Null, Value::Null] };
        match text.split_once('=') {
            Some((name, value)) => vec![Value::text(name), Value::text(value)],
            None => vec![Value::text(&**text), Value::Null],
        }
    };
    let rows: Vec<Row> = options.values().iter().map(option).collect();
    Ok(Box::new(KnownRows(rows.into_iter())))
});
/// There are no partitions.
pub static PARTITION_ANCESTORS: SetFunction = SetFunction {
    volatile: true,
    ..strict("pg_partition_ancestors", |_, _, _| Ok(Box::new(KnownRows(Vec::new().into_iter()))))
};
pub static STRING_TO_TABLE: SetFunction =
    SetFunction { strict: false, ..strict("string_to_table", |_, values, _| split(values)) };
pub static REGEXP_SPLIT: SetFunction = strict("regexp_split_to_table", |_, values, _| split_by_pattern(values));

fn zero_step() -> Fault {
    invalid("step size cannot equal zero")
}

/// Returns rows that are known from the beginning.
pub fn known_rows(rows: Vec<Row>) -> Box<dyn RowStream> {
    Box::new(KnownRows(rows.into_iter()))
}

/// Rows that are known from the beginning.
struct KnownRows(std::vec::IntoIter<Row>);

impl RowStream for KnownRows {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        Ok(self.0.next())
    }
}

/// A series of integers; `None` after the last.
struct Integers {
    next: Option<i64>,
    stop: i64,
    step: i64,
    /// The greatest value of the type; the least is one further from zero.
    most: i64,
}

fn whole(values: &[Value], most: i64) -> Stream {
    let step = if values.len() > 2 { integer(values, 2)? } else { 1 };
    if step == 0 {
        return Err(zero_step());
    }
    Ok(Box::new(Integers { next: Some(integer(values, 0)?), stop: integer(values, 1)?, step, most }))
}

impl RowStream for Integers {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let is_before_end = |value: &i64| if self.step > 0 { *value <= self.stop } else { *value >= self.stop };
        let Some(value) = self.next.filter(is_before_end) else { return Ok(None) };
        let next = value.checked_add(self.step);
        self.next = next.filter(|next| (-self.most - 1..=self.most).contains(next));
        Ok(Some(vec![Value::Int(value)]))
    }
}

struct Decimals {
    next: Decimal,
    stop: Decimal,
    step: Decimal,
}

fn decimals(values: &[Value]) -> Stream {
    let number = |at: usize, name: &str| match &values[at] {
        Value::Decimal(number) if number.is_nan() => Err(invalid(format!("{name} cannot be NaN"))),
        Value::Decimal(number) if number.is_infinite() => Err(invalid(format!("{name} cannot be infinity"))),
        Value::Decimal(number) => Ok(number.clone()),
        _ => Err(Fault::corrupt("an argument in the form of another type")),
    };
    let (next, stop) = (number(0, "start value")?, number(1, "stop value")?);
    let step = if values.len() > 2 { number(2, "step size")? } else { Decimal::new(1, 0) };
    if step.is_zero() {
        return Err(zero_step());
    }
    Ok(Box::new(Decimals { next, stop, step }))
}

impl RowStream for Decimals {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let is_before_end = if self.step.is_negative() { self.next >= self.stop } else { self.next <= self.stop };
        if !is_before_end {
            return Ok(None);
        }
        // Beyond the greatest number, which is no value any more, the series has ended.
        let next = self.next.plus(&self.step);
        Ok(Some(vec![Value::Decimal(std::mem::replace(&mut self.next, next))]))
    }
}

struct Instants {
    next: i64,
    stop: i64,
    step: Span,
    descends: bool,
    zone: Option<PgZone>,
}

fn instants(values: &[Value], zone: Option<PgZone>) -> Stream {
    let step = span(values, 2)?;
    let direction = step.length().cmp(&Span::default().length());
    if direction.is_eq() {
        return Err(zero_step());
    }
    Ok(Box::new(Instants {
        next: micros(values, 0)?,
        stop: micros(values, 1)?,
        step,
        descends: direction.is_lt(),
        zone,
    }))
}

impl RowStream for Instants {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let is_before_end = if self.descends { self.next >= self.stop } else { self.next <= self.stop };
        if !is_before_end {
            return Ok(None);
        }
        let next = timestamp_plus(self.next, self.step, self.zone.as_ref())?;
        Ok(Some(vec![Value::Int(std::mem::replace(&mut self.next, next))]))
    }
}

/// The parts of a text.
struct TextParts {
    text: String,
    /// The byte behind the last part; `None` after the end.
    at: Option<usize>,
    /// `None`: every character is a part.
    separator: Option<String>,
    /// A part of this text is NULL.
    null: Option<String>,
}

fn split(values: &[Value]) -> Stream {
    let owned = |at: usize| match values.get(at) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(values, at).map(|text| Some(text.to_owned())),
    };
    let text = owned(0)?.unwrap_or_default();
    let at = (!text.is_empty()).then_some(0);
    Ok(Box::new(TextParts { text, at, separator: owned(1)?, null: owned(2)? }))
}

impl RowStream for TextParts {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let Some(at) = self.at else { return Ok(None) };
        let rest = &self.text[at..];
        let (length, skipped) = match &self.separator {
            None => (rest.chars().next().map_or(0, char::len_utf8), 0),
            Some(separator) if separator.is_empty() => (rest.len(), 1),
            Some(separator) => (rest.find(&**separator).unwrap_or(rest.len()), separator.len()),
        };
        let part = &rest[..length];
        let is_last = if self.separator.is_none() { at + length == self.text.len() } else { length == rest.len() };
        self.at = (!is_last).then_some(at + length + skipped);
        let is_null = self.null.as_deref() == Some(part);
        Ok(Some(vec![if is_null { Value::Null } else { Value::text(part) }]))
    }
}

/// The pieces of a text between the matches of a pattern, by their bytes.
struct Pieces {
    text: String,
    pieces: std::vec::IntoIter<std::ops::Range<usize>>,
    _claim: Claim,
}

fn split_by_pattern(values: &[Value]) -> Stream {
    let pieces = split_pieces(values, "regexp_split_to_table")?;
    let text = text(values, 0)?.to_owned();
    let claim = claim(pieces.len() * size_of::<std::ops::Range<usize>>())?;
    Ok(Box::new(Pieces { text, pieces: pieces.into_iter(), _claim: claim }))
}

impl RowStream for Pieces {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        Ok(self.pieces.next().map(|piece| vec![Value::text(&self.text[piece])]))
    }
}
