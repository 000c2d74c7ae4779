//! A row of the function table (names, arity, result type), and the accessors by which a function reads its arguments.

use crate::error;
use crate::scalar::decimal::Decimal;
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::{DateTime, Strictness, Time};
use crate::scalar::{bind, cast, convert};
use crate::types::{Collation, Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::{Text, Value};
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Folding, Function, Run};

/// A row of the table.
#[derive(Debug)]
pub struct FunctionEntry {
    pub function: Function,
    pub arity: Arity,
    pub returns: Returns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    pub min: usize,
    pub max: usize,
}

/// The rule for the type of the result.
#[derive(Clone, Copy, Debug)]
pub enum Returns {
    Truth,
    Int,
    UInt,
    Double,
    /// Text of at most this many characters in the collation of the string arguments; bytes if one of them is.
    Text(fn(&[Expr]) -> u32),
    /// Text of at most this many characters in the connection's collation.
    Plain(u32),
    Bytes(u32),
    /// DATE, TIME, DATETIME, JSON.
    Kind(Kind),
    /// The common type of the arguments from this one on.
    Union(usize),
    /// The first argument's type.
    First,
    Custom(fn(&[Expr], &Settings) -> Result<Type>),
}

/// The schema and name of the timestamp sequence, which exists in every database.
pub const TIMESTAMP_SEQUENCE: [&str; 2] = ["mysql", "gts_base"];

/// Display widths of integers that differ from the default.
pub const LENGTHS: &[(&str, u32)] = &[
    ("ascii", 4),
    ("benchmark", 1),
    ("bit_length", 11),
    ("char_length", 11),
    ("coercibility", 10),
    ("crc32", 10),
    ("datediff", 9),
    ("day", 3),
    ("dayofweek", 2),
    ("dayofyear", 4),
    ("field", 11),
    ("find_in_set", 11),
    ("get_lock", 1),
    ("hour", 4),
    ("instr", 11),
    ("interval", 2),
    ("is_free_lock", 1),
    ("json_contains", 21),
    ("json_contains_path", 21),
    ("json_valid", 21),
    ("length", 11),
    ("locate", 11),
    ("minute", 3),
    ("month", 3),
    ("quarter", 2),
    ("release_lock", 1),
    ("second", 3),
    ("strcmp", 2),
    ("time_to_sec", 10),
    ("to_days", 8),
    ("uncompressed_length", 11),
    ("week", 3),
    ("weekday", 2),
    ("weekofyear", 3),
    ("yearweek", 7),
];

/// Functions that return NULL for an invalid date, so their result columns are nullable.
pub const OF_DATES: &[&str] = &[
    "datediff",
    "day",
    "dayofweek",
    "dayofyear",
    "extract",
    "hour",
    "microsecond",
    "minute",
    "month",
    "quarter",
    "second",
    "time_to_sec",
    "timestampdiff",
    "to_days",
    "to_seconds",
    "week",
    "weekday",
    "weekofyear",
    "year",
    "yearweek",
];

/// Functions that never return NULL, whatever their arguments.
pub const NEVER_NULL: &[&str] = &[
    "coercibility",
    "connection_id",
    "curdate",
    "curtime",
    "field",
    "found_rows",
    "interval",
    "now",
    "rand",
    "row_count",
    "sleep",
    "sysdate",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "uuid_short",
    "version",
];

/// Functions that never return NULL if they have arguments.
pub const NEVER_NULL_BARE: &[&str] = &["last_insert_id", "unix_timestamp"];

/// How a function is run.
pub const MANY: usize = usize::MAX;

pub const fn row(names: &'static [&'static str], min: usize, max: usize, returns: Returns, run: Run) -> FunctionEntry {
    FunctionEntry { function: Function::new(names, run), arity: Arity { min, max }, returns }
}

pub const fn exact(entry: FunctionEntry) -> FunctionEntry {
    FunctionEntry { function: Function { exact: true, ..entry.function }, ..entry }
}

/// Marks a function that waits for a time.
pub const fn sleeping(entry: FunctionEntry) -> FunctionEntry {
    FunctionEntry { function: Function { sleeps: true, ..entry.function }, ..entry }
}

pub const fn volatile(entry: FunctionEntry) -> FunctionEntry {
    FunctionEntry { function: Function { volatile: true, ..entry.function }, ..entry }
}

/// Constant folding computes the function where its arguments are constants.
pub const fn folded(entry: FunctionEntry) -> FunctionEntry {
    FunctionEntry { function: Function { folding: Folding::Operator, ..entry.function }, ..entry }
}

impl FunctionEntry {
    pub fn name(&self) -> &'static str {
        self.function.name()
    }

    /// Error 1582 for a wrong number of arguments.
    pub fn check(&self, count: usize) -> Result<()> {
        match (self.arity.min..=self.arity.max).contains(&count) {
            true => Ok(()),
            false => Err(error::WRONG_PARAMCOUNT_TO_NATIVE_FCT.raise(&[&self.name().to_uppercase()])),
        }
    }

    pub fn result_type(&self, arguments: &[Expr], settings: &Settings) -> Result<Type> {
        let nullable = match self.function.run {
            Run::Strict(_) if OF_DATES.contains(&self.name()) => true,
            Run::Strict(_) => arguments.iter().any(|argument| argument.ty().nullable),
            _ => true,
        };
        let ty = match self.returns {
            Returns::Truth => Type::truth().with_nullable(nullable),
            Returns::Int => Type::integer().with_nullable(nullable),
            Returns::UInt => Type::unsigned().with_nullable(nullable),
            Returns::Double => Type::double(),
            Returns::Text(length) => text_type(arguments, length(arguments), self.name(), settings)?,
            Returns::Plain(length) => bind::string_type(length, settings.collation),
            Returns::Bytes(length) => bind::string_type(length, Collation::Binary),
            Returns::Kind(kind) => Type::of_kind(kind),
            Returns::Union(from) => {
                bind::common_type(&arguments[from..].iter().collect::<Vec<_>>(), self.name(), settings)?
            }
            Returns::First => arguments[0].ty(),
            Returns::Custom(of) => of(arguments, settings)?,
        };
        let length = LENGTHS.iter().find(|(name, _)| *name == self.name()).map(|(_, length)| *length);
        let length = length.filter(|_| ty.kind() == Kind::BigInt).unwrap_or(ty.length);
        let always =
            NEVER_NULL.contains(&self.name()) || arguments.is_empty() && NEVER_NULL_BARE.contains(&self.name());
        let nullable = ty.nullable && !always;
        Ok(Type { length, nullable, ..ty })
    }
}

/// Returns a text type in the collation of the string arguments.
pub fn text_type(arguments: &[Expr], length: u32, name: &str, settings: &Settings) -> Result<Type> {
    let bytes = |expr: &Expr| expr.kind().is_bytes() || expr.kind() == Kind::Bit;
    if arguments.iter().any(bytes) {
        return Ok(bind::string_type(length.saturating_mul(4), Collation::Binary));
    }
    let strings: Vec<&Expr> = arguments.iter().filter(|argument| argument.ty().kind().is_text()).collect();
    let collation = match strings.is_empty() {
        true => settings.collation,
        false => bind::merge_collations(&strings, name, settings)?,
    };
    Ok(bind::string_type(length, collation))
}

/// Returns the sum of the arguments' display widths.
pub fn sum_of_lengths(arguments: &[Expr]) -> u32 {
    arguments.iter().fold(0, |sum, argument| sum.saturating_add(bind::display_length(&argument.ty())))
}

pub fn first_length(arguments: &[Expr]) -> u32 {
    arguments.first().map_or(0, |argument| bind::display_length(&argument.ty()))
}

pub fn longest(_: &[Expr]) -> u32 {
    u32::MAX / 4
}

/// The arguments' values, converted on demand.
pub struct Args<'a> {
    pub call: &'a Call,
    values: &'a [Value],
}

impl<'a> Args<'a> {
    pub fn new(call: &'a Call, values: &'a [Value]) -> Args<'a> {
        Args { call, values }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub fn get(&self, place: usize) -> &'a Value {
        &self.values[place]
    }

    pub fn is_null(&self, place: usize) -> bool {
        self.values[place].is_null()
    }

    /// Returns the characters of the shown form. Bytes are decoded where they are valid text.
    pub fn text(&self, place: usize, ctx: &EvalContext) -> Text {
        match &self.values[place] {
            Value::Text(text) => text.clone(),
            Value::Bytes(bytes) => Text::new(String::from_utf8_lossy(bytes)),
            value => {
                let ty = self.call.arguments[place].ty();
                convert::to_text(&cast::present(value.clone(), &ty, ctx), &ty)
            }
        }
    }

    /// Returns the bytes of the shown form.
    pub fn bytes(&self, place: usize, ctx: &EvalContext) -> Vec<u8> {
        match &self.values[place] {
            Value::Bytes(bytes) => bytes.to_vec(),
            value => match (value, self.call.arguments[place].kind()) {
                (Value::UInt(_), Kind::Bit) => {
                    let shown = cast::present(value.clone(), &self.call.arguments[place].ty(), ctx);
                    shown.as_string_bytes().unwrap_or_default().to_vec()
                }
                _ => self.text(place, ctx).as_bytes().to_vec(),
            },
        }
    }

    /// Returns the bytes of the shown form in the argument's own character set.
    pub fn own_bytes(&self, place: usize, ctx: &EvalContext) -> Vec<u8> {
        let argument = &self.call.arguments[place];
        match &self.values[place] {
            Value::Text(text) => argument.ty().charset().encode(text).into_owned(),
            _ if matches!(argument.kind(), Kind::Enum | Kind::Set) => {
                argument.ty().charset().encode(&self.text(place, ctx)).into_owned()
            }
            _ => self.bytes(place, ctx),
        }
    }

    /// Appends the bytes of the shown form.
    pub fn append(&self, place: usize, out: &mut Vec<u8>, ctx: &EvalContext) {
        match &self.values[place] {
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => out.extend_from_slice(bytes),
            _ => out.extend_from_slice(&self.bytes(place, ctx)),
        }
    }

    pub fn int(&self, place: usize, ctx: &mut EvalContext) -> Result<i64> {
        match &self.values[place] {
            Value::Int(number) => Ok(*number),
            value => convert::to_i64(value, ctx),
        }
    }

    /// Returns an optional argument.
    pub fn int_or(&self, place: usize, default: i64, ctx: &mut EvalContext) -> Result<i64> {
        if place < self.len() { self.int(place, ctx) } else { Ok(default) }
    }

    pub fn f64(&self, place: usize, ctx: &mut EvalContext) -> Result<f64> {
        convert::to_f64(&self.values[place], ctx)
    }

    pub fn decimal(&self, place: usize, ctx: &mut EvalContext) -> Result<Decimal> {
        convert::to_decimal(&self.values[place], ctx)
    }

    pub fn datetime(&self, place: usize, rules: Strictness, ctx: &mut EvalContext) -> Result<Option<DateTime>> {
        convert::to_datetime(&self.values[place], rules, ctx)
    }

    pub fn time(&self, place: usize, ctx: &mut EvalContext) -> Result<Option<Time>> {
        convert::to_time(&self.values[place], ctx)
    }
}

/// Converts bytes to a value of the call's type. A value longer than a packet is NULL with a warning.
pub fn string_value(call: &Call, bytes: Vec<u8>, ctx: &mut EvalContext) -> Value {
    if bytes.len() > ctx.state().max_allowed_packet {
        return too_long(call, ctx);
    }
    if call.ty.kind().is_bytes() {
        return Value::from_bytes(bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Value::Text(Text::from(text)),
        Err(error) => Value::text(String::from_utf8_lossy(error.as_bytes())),
    }
}

pub fn too_long(call: &Call, ctx: &mut EvalContext) -> Value {
    let limit = ctx.state().max_allowed_packet;
    ctx.warn(error::WARN_ALLOWED_PACKET_OVERFLOWED.raise(&[&call.function.name(), &limit]));
    Value::Null
}
