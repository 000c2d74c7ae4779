//! MySQL's aggregate functions: the state of one group, which the executor updates row by row.
//!
//! An `Aggregate` is part of the plan, a `Group` is the state of one group. NULLs are skipped, except by COUNT(*),
//! JSON_ARRAYAGG and JSON_OBJECTAGG. The executor handles DISTINCT (`Aggregate::distinct_key`).

use std::cmp::Ordering;

use datum::key;

use crate::error;
use crate::scalar::decimal::{Decimal, SCALE_MAX};
use crate::scalar::json::{self, Json, Members, Node};
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::scalar::{arithmetic, bind, cast, compare, convert};
use crate::types::{self, Collation, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;
use query::nodes::exact_number::ExactNumber;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// COUNT(*) has no argument; COUNT(DISTINCT a, b) has several.
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    StdPop,
    StdSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayAgg,
    JsonObjectAgg,
    AnyValue,
}

/// The functions, in the order of `AggregateKind`.
static FUNCTIONS: [(AggregateKind, AggregateFunction); 16] = [
    (AggregateKind::Count, function("count", |_| Group::boxed(AggregateKind::Count, State::Count(0)))),
    (AggregateKind::Sum, exact(function("sum", |_| Group::boxed(AggregateKind::Sum, State::Sum(None, 0))))),
    (AggregateKind::Avg, exact(function("avg", |_| Group::boxed(AggregateKind::Avg, State::Sum(None, 0))))),
    (
        AggregateKind::Min,
        extreme(Ordering::Less, function("min", |_| Group::boxed(AggregateKind::Min, State::One(None)))),
    ),
    (
        AggregateKind::Max,
        extreme(Ordering::Greater, function("max", |_| Group::boxed(AggregateKind::Max, State::One(None)))),
    ),
    (
        AggregateKind::BitAnd,
        function("bit_and", |aggregate| Group::boxed(AggregateKind::BitAnd, bits(aggregate, u64::MAX))),
    ),
    (AggregateKind::BitOr, function("bit_or", |aggregate| Group::boxed(AggregateKind::BitOr, bits(aggregate, 0)))),
    (AggregateKind::BitXor, function("bit_xor", |aggregate| Group::boxed(AggregateKind::BitXor, bits(aggregate, 0)))),
    (AggregateKind::StdPop, function("std", |_| Group::boxed(AggregateKind::StdPop, State::NO_MOMENTS))),
    (AggregateKind::StdSamp, function("stddev_samp", |_| Group::boxed(AggregateKind::StdSamp, State::NO_MOMENTS))),
    (AggregateKind::VarPop, function("variance", |_| Group::boxed(AggregateKind::VarPop, State::NO_MOMENTS))),
    (AggregateKind::VarSamp, function("var_samp", |_| Group::boxed(AggregateKind::VarSamp, State::NO_MOMENTS))),
    (
        AggregateKind::GroupConcat,
        listing(function("group_concat", |_| Group::boxed(AggregateKind::GroupConcat, State::Lines(Lines::default())))),
    ),
    (
        AggregateKind::JsonArrayAgg,
        with_null(listing(function("json_arrayagg", |_| {
            Group::boxed(AggregateKind::JsonArrayAgg, State::Elements(Vec::new()))
        }))),
    ),
    (
        AggregateKind::JsonObjectAgg,
        with_null(listing(function("json_objectagg", |_| {
            Group::boxed(AggregateKind::JsonObjectAgg, State::Members(Vec::new()))
        }))),
    ),
    (
        AggregateKind::AnyValue,
        AggregateFunction {
            memory: Memory::One,
            ..with_null(function("any_value", |_| Group::boxed(AggregateKind::AnyValue, State::One(None))))
        },
    ),
];

/// Aliases of the functions.
const ALIASES: &[(&str, AggregateKind)] =
    &[("stddev", AggregateKind::StdPop), ("stddev_pop", AggregateKind::StdPop), ("var_pop", AggregateKind::VarPop)];

const fn function(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction {
        name,
        start,
        shares_state: false,
        counts_null: false,
        exact: false,
        memory: Memory::Nothing,
        extreme: None,
        finish: arithmetic::fit,
    }
}

const fn exact(function: AggregateFunction) -> AggregateFunction {
    AggregateFunction { exact: true, ..function }
}

const fn extreme(wanted: Ordering, function: AggregateFunction) -> AggregateFunction {
    AggregateFunction { extreme: Some(wanted), memory: Memory::One, ..function }
}

const fn listing(function: AggregateFunction) -> AggregateFunction {
    AggregateFunction { memory: Memory::All, ..function }
}

const fn with_null(function: AggregateFunction) -> AggregateFunction {
    AggregateFunction { counts_null: true, ..function }
}

fn bits(aggregate: &Aggregate, neutral: u64) -> State {
    if is_byte_string(&aggregate.arguments[0]) { State::Bytes(None) } else { State::Bits(neutral) }
}

impl AggregateKind {
    /// Returns the aggregate of that name in any case.
    pub fn of_name(name: &str) -> Option<AggregateKind> {
        let known = FUNCTIONS.iter().map(|(kind, function)| (function.name, *kind)).chain(ALIASES.iter().copied());
        known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| kind)
    }

    /// Returns the kind of an aggregate that `new` made.
    pub fn of(aggregate: &Aggregate) -> AggregateKind {
        let known = FUNCTIONS.iter().find(|(_, function)| std::ptr::eq(function, aggregate.function));
        known.map_or_else(|| unreachable!("`new` takes functions from the table"), |(kind, _)| *kind)
    }
}

/// Binds an aggregate. The result's type comes from the arguments'; error 1064 for a wrong number of them.
pub fn new(kind: AggregateKind, distinct: bool, arguments: Vec<Type>, settings: &Settings) -> Result<Aggregate> {
    let wanted = match kind {
        AggregateKind::Count => 0..=usize::MAX,
        AggregateKind::GroupConcat => 1..=usize::MAX,
        AggregateKind::JsonObjectAgg => 2..=2,
        _ => 1..=1,
    };
    if !wanted.contains(&arguments.len()) {
        return Err(error::wrong_syntax("')'"));
    }
    let is_bits = matches!(kind, AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor);
    if is_bits && is_byte_string(&arguments[0]) && arguments[0].length > 511 {
        return Err(error::INVALID_BITWISE_AGGREGATE_OPERANDS_SIZE.raise(&[&511]));
    }
    let ty = result_type(kind, &arguments, settings);
    Ok(Aggregate {
        function: &FUNCTIONS[kind as usize].1,
        distinct,
        order: Vec::new(),
        separator: ",".into(),
        ty,
        by: arguments.first().map(|ty| compare::by(compare::own_domain(ty))),
        filtered: false,
        setting: settings.div_precision_increment,
        arguments,
    })
}

/// Returns whether the type is a byte string. A literal such as 0x41 counts as a number.
fn is_byte_string(ty: &Type) -> bool {
    ty.kind().is_bytes() && !ty.is_unsigned()
}

fn result_type(kind: AggregateKind, arguments: &[Type], settings: &Settings) -> Type {
    let first = arguments.first().map(arithmetic::operand);
    let is_exact = first.as_ref().is_some_and(|ty| ty.kind() != types::Kind::Double);
    let (precision, scale) = first.as_ref().map_or((0, 0), |ty| (arithmetic::digits(ty), ty.scale));
    match kind {
        AggregateKind::Count => Type::integer().with_nullable(false),
        AggregateKind::Sum if is_exact => Type::decimal((precision + 22).min(65), scale),
        AggregateKind::Avg if is_exact => {
            let more = settings.div_precision_increment;
            Type::decimal((precision + u32::from(more)).min(65), (scale + more).min(SCALE_MAX))
        }
        // FLOAT(M,D) keeps its digits; an average has more.
        AggregateKind::Sum | AggregateKind::Avg
            if arguments[0].scale < Type::FLOATING
                && matches!(arguments[0].kind(), types::Kind::Float | types::Kind::Double) =>
        {
            let more = if kind == AggregateKind::Avg { settings.div_precision_increment } else { 0 };
            let scale = (arguments[0].scale + more).min(SCALE_MAX);
            Type { length: 17 + u32::from(scale), scale, ..Type::double() }
        }
        AggregateKind::Sum
        | AggregateKind::Avg
        | AggregateKind::StdPop
        | AggregateKind::StdSamp
        | AggregateKind::VarPop
        | AggregateKind::VarSamp => Type::double(),
        AggregateKind::Min | AggregateKind::Max => arguments[0].clone().with_zerofill(false).with_nullable(true),
        AggregateKind::AnyValue => arguments[0].clone().with_nullable(true),
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor if is_byte_string(&arguments[0]) => {
            Type::bytes(arguments[0].length).with_nullable(false)
        }
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => Type::unsigned().with_nullable(false),
        AggregateKind::GroupConcat => {
            let bytes = arguments.iter().any(|ty| ty.kind().is_bytes());
            let own = arguments.iter().find(|ty| ty.kind().is_text()).map(|ty| ty.collation);
            let collation = if bytes { Collation::Binary } else { own.unwrap_or(settings.collation) };
            bind::string_type(65_536, collation)
        }
        AggregateKind::JsonArrayAgg | AggregateKind::JsonObjectAgg => Type::of_kind(types::Kind::Json),
    }
}

/// A group's state.
#[derive(Clone, Debug)]
struct Group {
    kind: AggregateKind,
    state: State,
    rows: u64,
    /// The approximate memory of the collected values.
    bytes: usize,
}

#[derive(Clone, Debug)]
enum State {
    Count(i64),
    Sum(Option<Sum>, u64),
    One(Option<Value>),
    Bits(u64),
    /// The running result over byte strings of one length.
    Bytes(Option<Vec<u8>>),
    /// Welford's running moments.
    Moments {
        count: u64,
        mean: f64,
        squares: f64,
    },
    Lines(Lines),
    Elements(Vec<Node>),
    Members(Vec<(Box<str>, Node)>),
}

/// Integers are summed in 128 bits, which hold 2^64 of them.
#[derive(Clone, Debug)]
enum Sum {
    Whole(i128),
    Exact(Decimal),
    Double(f64),
}

/// Error 3513 for values of several lengths.
fn combine_bytes(bits: &mut Option<Vec<u8>>, kind: AggregateKind, value: &Value) -> Result<()> {
    let next = value.as_string_bytes().unwrap_or_default();
    let Some(known) = bits else {
        *bits = Some(next.to_vec());
        return Ok(());
    };
    if known.len() != next.len() {
        return Err(error::INVALID_BITWISE_OPERANDS_SIZE.raise(&[]));
    }
    for (byte, next) in known.iter_mut().zip(next) {
        match kind {
            AggregateKind::BitAnd => *byte &= next,
            AggregateKind::BitOr => *byte |= next,
            _ => *byte ^= next,
        }
    }
    Ok(())
}

impl State {
    const NO_MOMENTS: State = State::Moments { count: 0, mean: 0.0, squares: 0.0 };
}

impl Group {
    fn boxed(kind: AggregateKind, state: State) -> Box<dyn Accumulator> {
        Box::new(Group { kind, state, rows: 0, bytes: 0 })
    }
}

impl Accumulator for Group {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], ctx: &mut EvalContext) -> Result<()> {
        // The fast path: an integer in a sum of integers far from overflow, or any counted value.
        match (&mut self.state, values) {
            (State::Sum(Some(Sum::Whole(whole)), count), [Value::Int(number)]) if whole.unsigned_abs() < 1 << 120 => {
                *whole += i128::from(*number);
                *count += 1;
                self.rows += 1;
                return Ok(());
            }
            (State::Count(count), []) => {
                *count += 1;
                self.rows += 1;
                return Ok(());
            }
            _ => {}
        }
        let arguments = &values[..values.len() - aggregate.order.len()];
        if !aggregate.function.counts_null && arguments.iter().any(Value::is_null) {
            return Ok(());
        }
        self.rows += 1;
        match &mut self.state {
            State::Count(count) => *count += 1,
            State::Sum(sum, count) => {
                *count += 1;
                match (&mut *sum, &arguments[0]) {
                    (Some(Sum::Exact(exact)), Value::Decimal(next)) => {
                        if !exact.add_small(next) {
                            *exact = exact.plus(next);
                        }
                    }
                    (sum, value) => *sum = Some(added(sum.take(), value, ctx)?),
                }
            }
            State::One(kept) => {
                if keep(kept, aggregate, &arguments[0], ctx)? {
                    self.bytes = arguments[0].heap_bytes();
                }
            }
            State::Bits(bits) => {
                let number = match cast::hex_number(&arguments[0], &aggregate.arguments[0]) {
                    Some(number) => number,
                    None => convert::to_bits(&arguments[0], ctx)?,
                };
                *bits = match self.kind {
                    AggregateKind::BitAnd => *bits & number,
                    AggregateKind::BitOr => *bits | number,
                    _ => *bits ^ number,
                };
            }
            State::Bytes(bits) => combine_bytes(bits, self.kind, &arguments[0])?,
            State::Moments { count, mean, squares } => {
                let number = convert::to_f64(&arguments[0], ctx)?;
                *count += 1;
                let distance = number - *mean;
                *mean += distance / *count as f64;
                *squares += distance * (number - *mean);
            }
            State::Lines(lines) => {
                lines.add(aggregate, values, ctx);
                self.bytes = lines.bytes;
            }
            State::Elements(elements) => {
                self.bytes += size_of::<Node>() + arguments[0].heap_bytes();
                elements.push(element(&arguments[0], &aggregate.arguments[0], ctx));
            }
            State::Members(members) => {
                if arguments[0].is_null() {
                    return Err(error::JSON_DOCUMENT_NULL_KEY.raise(&[]));
                }
                let name = json::member_name(&arguments[0], &aggregate.arguments[0]);
                self.bytes += size_of::<Node>() + 32 + name.len() + arguments[1].heap_bytes();
                members.push((name, element(&arguments[1], &aggregate.arguments[1], ctx)));
            }
        }
        Ok(())
    }

    /// Doubles lose digits.
    fn add_exact(&mut self, number: ExactNumber) -> bool {
        let State::Sum(Some(Sum::Exact(sum)), count) = &mut self.state else { return false };
        let is_added = sum.add_small(&number.into());
        *count += u64::from(is_added);
        self.rows += u64::from(is_added);
        is_added
    }

    fn can_remove(&self, aggregate: &Aggregate) -> bool {
        match &self.state {
            State::Count(_) => !aggregate.distinct,
            State::Sum(sum, _) => !aggregate.distinct && !matches!(sum, Some(Sum::Double(_))),
            State::Bits(_) => self.kind == AggregateKind::BitXor,
            _ => false,
        }
    }

    fn remove(&mut self, values: &[Value], ctx: &mut EvalContext) -> Result<()> {
        if values.iter().any(Value::is_null) {
            return Ok(());
        }
        self.rows -= 1;
        match &mut self.state {
            State::Count(count) => *count -= 1,
            State::Sum(sum, count) => {
                *count -= 1;
                let less = match added(None, &values[0], ctx)? {
                    Sum::Whole(number) => Sum::Whole(-number),
                    Sum::Exact(decimal) => Sum::Exact(decimal.negated()),
                    Sum::Double(number) => Sum::Double(-number),
                };
                *sum = if *count == 0 { None } else { Some(together(sum.take(), less)) };
            }
            State::Bits(bits) if self.kind == AggregateKind::BitXor => *bits ^= convert::to_bits(&values[0], ctx)?,
            _ => return Err(datum::Fault::corrupt("a row that cannot be taken off a sum")),
        }
        Ok(())
    }

    fn finish(&mut self, aggregate: &Aggregate, ctx: &mut EvalContext) -> Result<Value> {
        Ok(match &mut self.state {
            State::Count(count) => Value::Int(*count),
            State::Sum(None, _) => Value::Null,
            State::Sum(Some(sum), count) => finish_sum(sum, *count, (self.kind, aggregate.setting))?,
            State::One(kept) => kept.take().unwrap_or_default(),
            State::Bits(bits) => Value::UInt(*bits),
            State::Bytes(Some(bytes)) => Value::bytes(&bytes[..]),
            // Without rows: the neutral element.
            State::Bytes(None) => {
                let neutral = if self.kind == AggregateKind::BitAnd { 0xff } else { 0 };
                Value::bytes(vec![neutral; aggregate.ty.length as usize])
            }
            State::Moments { mean, squares, .. } if !mean.is_finite() || !squares.is_finite() => {
                return Err(error::DATA_OUT_OF_RANGE.raise(&[&"DOUBLE", &format!("{}()", aggregate.function.name)]));
            }
            State::Moments { count, squares, .. } => {
                let sample = matches!(self.kind, AggregateKind::StdSamp | AggregateKind::VarSamp);
                let divisor = if sample { count.saturating_sub(1) } else { *count };
                if divisor == 0 {
                    return Ok(Value::Null);
                }
                let variance = *squares / divisor as f64;
                let root = matches!(self.kind, AggregateKind::StdPop | AggregateKind::StdSamp);
                Value::Double(if root { variance.sqrt() } else { variance })
            }
            State::Lines(lines) if lines.list.is_empty() => Value::Null,
            State::Lines(lines) => joined(aggregate, std::mem::take(lines).list, ctx),
            State::Elements(elements) if elements.is_empty() => Value::Null,
            State::Elements(elements) => Value::Json(Json::from(Node::Array(std::mem::take(elements)))),
            State::Members(members) if members.is_empty() => Value::Null,
            State::Members(members) => Value::Json(Json::from(Node::Object(Members::new(std::mem::take(members))))),
        })
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The texts of GROUP_CONCAT, up to `group_concat_max_len`: texts beyond it can never become visible and are dropped.
#[derive(Clone, Debug, Default)]
struct Lines {
    /// The sort keys and the text of each row.
    list: Vec<(Vec<u8>, Vec<u8>)>,
    /// The memory that the texts take now, and took when they were last cut.
    bytes: usize,
    cut: usize,
    /// The length of the texts with their separators.
    length: usize,
}

impl Lines {
    /// The growth after which texts beyond the maximum length are dropped.
    const ROOM: usize = 4 << 10;

    fn add(&mut self, aggregate: &Aggregate, values: &[Value], ctx: &EvalContext) {
        let limit = ctx.state().group_concat_max_len;
        if aggregate.order.is_empty() && self.length > limit {
            return;
        }
        self.push(aggregate, line(aggregate, values, ctx));
        if !aggregate.order.is_empty() && self.bytes > 2 * self.cut + Lines::ROOM && self.length > limit {
            let mut lines = std::mem::take(self);
            lines.list.sort_by(|(a, _), (b, _)| a.cmp(b));
            for line in lines.list {
                self.push(aggregate, line);
                if self.length > limit {
                    break;
                }
            }
            self.cut = self.bytes;
        }
    }

    fn push(&mut self, aggregate: &Aggregate, line: (Vec<u8>, Vec<u8>)) {
        let between = if self.list.is_empty() { 0 } else { aggregate.separator.len() };
        self.length += between + line.1.len();
        self.bytes += line.0.len() + line.1.len() + 80;
        self.list.push(line);
    }
}

fn added(sum: Option<Sum>, value: &Value, ctx: &mut EvalContext) -> Result<Sum> {
    let next = match value {
        Value::Int(number) => Sum::Whole((*number).into()),
        Value::UInt(number) => Sum::Whole((*number).into()),
        Value::Decimal(decimal) => Sum::Exact(decimal.clone()),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => {
            Sum::Exact(convert::temporal_number(value, ctx))
        }
        other => Sum::Double(convert::to_f64(other, ctx)?),
    };
    Ok(together(sum, next))
}

fn together(sum: Option<Sum>, next: Sum) -> Sum {
    let double = |sum: &Sum| match sum {
        Sum::Whole(number) => *number as f64,
        Sum::Exact(decimal) => decimal.to_f64(),
        Sum::Double(number) => *number,
    };
    let exact = |sum: Sum| match sum {
        Sum::Whole(number) => Decimal::new(number, 0),
        Sum::Exact(decimal) => decimal,
        Sum::Double(number) => Decimal::from_f64(number).unwrap_or(Decimal::ZERO),
    };
    match (sum, next) {
        (None, next) => next,
        (Some(Sum::Whole(a)), Sum::Whole(b)) => match a.checked_add(b) {
            Some(sum) => Sum::Whole(sum),
            None => Sum::Exact(Decimal::new(a, 0).plus(&Decimal::new(b, 0))),
        },
        (Some(a), b) if matches!(a, Sum::Double(_)) || matches!(b, Sum::Double(_)) => {
            Sum::Double(double(&a) + double(&b))
        }
        (Some(a), b) => Sum::Exact(exact(a).plus(&exact(b))),
    }
}

/// Returns the type of an average; `increment` is `div_precision_increment`.
fn finish_sum(sum: &Sum, count: u64, (kind, increment): (AggregateKind, u8)) -> Result<Value> {
    let exact = match sum {
        Sum::Double(number) => {
            let number = if kind == AggregateKind::Avg { number / count as f64 } else { *number };
            if !number.is_finite() {
                return Err(error::DATA_OUT_OF_RANGE.raise(&[&"DOUBLE", &"sum()"]));
            }
            return Ok(Value::Double(number));
        }
        Sum::Whole(number) => Decimal::new(*number, 0),
        Sum::Exact(decimal) => decimal.clone(),
    };
    if kind == AggregateKind::Sum {
        return Ok(Value::Decimal(exact));
    }
    Ok(Value::Decimal(exact.divided(&Decimal::from(count), increment).unwrap_or(Decimal::ZERO)))
}

/// Keeps the extreme. Returns whether the value replaced it.
fn keep(kept: &mut Option<Value>, aggregate: &Aggregate, value: &Value, ctx: &mut EvalContext) -> Result<bool> {
    let better = match (kept.as_ref(), aggregate.function.extreme, aggregate.by) {
        (None, ..) => true,
        (Some(known), Some(wanted), Some(by)) => by.order(value, known, ctx)? == wanted,
        _ => false,
    };
    if better {
        *kept = Some(value.clone());
    }
    Ok(better)
}

fn line(aggregate: &Aggregate, values: &[Value], ctx: &EvalContext) -> (Vec<u8>, Vec<u8>) {
    let count = values.len() - aggregate.order.len();
    let mut order = Vec::new();
    for ((value, ty), order_of) in values.iter().zip(&aggregate.arguments).skip(count).zip(&aggregate.order) {
        key::encode(value, ty.shape(), *order_of, &mut order);
    }
    let mut text = Vec::new();
    for (value, ty) in values.iter().zip(&aggregate.arguments).take(count) {
        match cast::present(value.clone(), ty, ctx) {
            Value::Bytes(bytes) => text.extend_from_slice(&bytes),
            shown => text.extend_from_slice(convert::to_text(&shown, ty).as_bytes()),
        }
    }
    (order, text)
}

/// Cut at `group_concat_max_len`, with a warning.
fn joined(aggregate: &Aggregate, mut lines: Vec<(Vec<u8>, Vec<u8>)>, ctx: &mut EvalContext) -> Value {
    if !aggregate.order.is_empty() {
        lines.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    let limit = ctx.state().group_concat_max_len;
    let mut out = Vec::new();
    let mut cut_at = None;
    for (place, (_, text)) in lines.iter().enumerate() {
        if place > 0 {
            out.extend_from_slice(aggregate.separator.as_bytes());
        }
        out.extend_from_slice(text);
        if out.len() > limit {
            cut_at = Some(place + 1);
            break;
        }
    }
    if let Some(row) = cut_at {
        ctx.warn(error::CUT_VALUE_GROUP_CONCAT.raise(&[&row]));
        out.truncate(limit);
    }
    if aggregate.ty.kind().is_bytes() {
        return Value::from_bytes(out);
    }
    match String::from_utf8(out) {
        Ok(text) => Value::text(text),
        Err(error) => {
            Value::text(std::str::from_utf8(&error.as_bytes()[..error.utf8_error().valid_up_to()]).unwrap_or(""))
        }
    }
}

fn element(value: &Value, ty: &Type, ctx: &EvalContext) -> Node {
    match cast::present(value.clone(), ty, ctx) {
        Value::Int(number) if ty.is_truth() => Node::Bool(number != 0),
        shown => Node::scalar(&shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::CollationName as _;

    fn run(kind: AggregateKind, distinct: bool, ty: Type, values: &[Value]) -> String {
        let aggregate = new(kind, distinct, vec![ty], &Settings::default()).expect("an aggregate");
        let (mut group, mut ctx, mut seen) = (aggregate.start(), EvalContext::new(), Vec::new());
        for value in values {
            let mut key = Vec::new();
            let counts = aggregate.distinct_key(std::slice::from_ref(value), &mut key) && !seen.contains(&key);
            seen.push(key);
            if distinct && !counts {
                continue;
            }
            group.add(&aggregate, std::slice::from_ref(value), &mut ctx).expect("adds");
        }
        let value = arithmetic::fit(group.finish(&aggregate, &mut ctx).expect("finishes"), &aggregate.ty);
        if value.is_null() { "NULL".to_owned() } else { convert::to_text(&value, &aggregate.ty).to_string() }
    }

    #[test]
    fn sums_are_exact_and_averages_have_four_digits_more() {
        let numbers = [Value::Int(1), Value::Null, Value::Int(2), Value::Int(2)];
        assert_eq!(run(AggregateKind::Sum, false, Type::integer(), &numbers), "5");
        assert_eq!(run(AggregateKind::Sum, true, Type::integer(), &numbers), "3");
        assert_eq!(run(AggregateKind::Avg, false, Type::integer(), &numbers), "1.6667");
        assert_eq!(run(AggregateKind::Count, false, Type::integer(), &numbers), "3");
        assert_eq!(run(AggregateKind::Sum, false, Type::integer(), &[Value::Null]), "NULL");
        let largest = [Value::Int(i64::MAX), Value::Int(i64::MAX)];
        assert_eq!(run(AggregateKind::Sum, false, Type::integer(), &largest), "18446744073709551614");
        assert_eq!(run(AggregateKind::Sum, false, Type::double(), &[Value::Double(0.5), Value::Double(0.25)]), "0.75");
    }

    #[test]
    fn others_do_as_their_names_say() {
        let numbers = [Value::Int(1), Value::Int(2), Value::Int(6)];
        assert_eq!(run(AggregateKind::Min, false, Type::integer(), &numbers), "1");
        assert_eq!(run(AggregateKind::Max, false, Type::integer(), &numbers), "6");
        assert_eq!(run(AggregateKind::BitOr, false, Type::integer(), &numbers), "7");
        assert_eq!(run(AggregateKind::BitAnd, false, Type::integer(), &[]), "18446744073709551615");
        assert_eq!(run(AggregateKind::VarPop, false, Type::integer(), &numbers), "4.666666666666667");
        assert_eq!(run(AggregateKind::VarSamp, false, Type::integer(), &numbers[..1]), "NULL");
        assert_eq!(run(AggregateKind::GroupConcat, false, Type::integer(), &numbers), "1,2,6");
        assert_eq!(
            run(AggregateKind::JsonArrayAgg, false, Type::integer(), &[Value::Int(1), Value::Null]),
            "[1, null]"
        );
        let words = [Value::text("a"), Value::text("A"), Value::text("b")];
        assert_eq!(run(AggregateKind::Count, true, Type::text(1, Collation::DEFAULT), &words), "2");
    }
}
