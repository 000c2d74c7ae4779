//! Text and binary forms of values: `typinput`, `typoutput`, `typreceive` and `typsend`, dispatched by the type's OID.
//!
//! A type without forms here is refused with 0A000 and its name.

use std::fmt;
use std::sync::Arc;

use query::catalog::object_id::ObjectId;
use query::catalog::user_type::UserType;
use query::types::Type;

use crate::error::{PgError, Result, state};
use crate::types::bits::{self, Bits};
use crate::types::network::{self, Inet};
use crate::types::numeric::float::{float_in, float_out, float4_receive, float4_send, float8_receive, float8_send};
use crate::types::numeric::integer::{Width, integer_in, integer_out, integer_receive, integer_send};
use crate::types::numeric::{numeric_in, numeric_out, numeric_receive, numeric_send};
use crate::types::oid::{self, Oid};
use crate::types::range;
use crate::types::temporal::PgZone;
use crate::types::temporal::io::{self as temporal, TimeTz};
use crate::types::{
    array, boolean, bytea, json, jsonpath, lsn, macaddr, record, reg, registry, snapshot, text, user, uuid,
};
use crate::value::Value;

/// The most bytes of a value: PostgreSQL's 1 GB less a length word.
pub const VALUE_BYTES_MAX: usize = (1 << 30) - 5;

/// The settings and facts that forms of values depend on.
#[derive(Clone, Debug)]
pub struct IoContext {
    pub date_format: DateFormat,
    pub date_order: DateOrder,
    pub interval_style: IntervalStyle,
    /// `TimeZone`
    pub zone: PgZone,
    pub extra_float_digits: i32,
    pub bytea_output: ByteaOutput,
    /// The start of the transaction in microseconds since 2000-01-01 UTC: what `now` and `today` mean in the input of dates.
    pub now: i64,
    /// Names of objects for regclass and its like. `None`: built-in types and functions alone are known.
    pub objects: Option<ObjectNames>,
}

impl IoContext {
    /// Returns the name of a type as SQL must write it in the session's `search_path`, with its modifier where one is given: `format_type`.
    pub fn format_type(&self, oid: Oid, typmod: Option<i32>) -> String {
        registry::format_type_with(oid, typmod, &|oid| user::name(oid, self))
    }
}

impl Default for IoContext {
    fn default() -> IoContext {
        IoContext {
            date_format: DateFormat::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            zone: PgZone::utc(),
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            now: 0,
            objects: None,
        }
    }
}

/// The first part of `DateStyle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateFormat {
    Iso,
    Postgres,
    Sql,
    German,
    /// XML Schema's, which documents have; no setting.
    Xsd,
}

/// The second part of `DateStyle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    Mdy,
    Dmy,
    Ymd,
}

/// `IntervalStyle`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalStyle {
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

/// `bytea_output`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteaOutput {
    Hex,
    Escape,
}

/// The catalog's answers for types whose values name objects. The session gives the functions.
#[derive(Clone)]
pub struct ObjectNames {
    /// Returns the OID of an object by its name as SQL writes it, perhaps qualified or quoted; `None` if there is no such object. An error for a name that cannot be parsed or is ambiguous.
    pub find: Arc<FindObject>,
    /// Returns the name of an object as SQL must write it in the session's `search_path`; `None` for an unknown OID.
    pub name: Arc<NameObject>,
    /// Returns the definition of a type that users define.
    pub user_type: Arc<FindUserType>,
}

pub type FindObject = dyn Fn(ObjectKind, &str) -> Result<Option<Oid>> + Send + Sync;
pub type FindUserType = dyn Fn(ObjectId) -> Option<Arc<UserType>> + Send + Sync;
pub type NameObject = dyn Fn(ObjectKind, Oid) -> Option<String> + Send + Sync;

/// The kinds of objects with a type whose values are their OIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Relation,
    Type,
    Function,
    /// A function with the types of its arguments.
    FunctionSignature,
    Operator,
    /// An operator with the types of its operands.
    OperatorSignature,
    Schema,
    Role,
    Collation,
}

impl fmt::Debug for ObjectNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectNames")
    }
}

/// Returns the value that a text is the form of. The modifier of the type is applied as `typinput` applies it: a text that is too long is an error.
pub fn input(ty: &Type, text: &str, io: &IoContext) -> Result<Value> {
    let typmod = registry::typmod_of(ty);
    match registry::oid_of(ty) {
        oid::BOOL => boolean::input(text),
        oid::BYTEA => bytea::input(text),
        oid::CHAR => Ok(text::char_input(text)),
        oid::NAME => text::name_input(text),
        oid::TEXT | oid::UNKNOWN | oid::CSTRING => text::input(text),
        oid::VARCHAR => text::varchar_input(text, typmod),
        oid::BPCHAR => text::bpchar_input(text, typmod),
        oid::JSON => json::input(text),
        oid::JSONB => json::jsonb_input(text),
        oid::JSONPATH => jsonpath::input(text),
        oid::UUID => uuid::input(text),
        oid::BIT | oid::VARBIT => bits::input(text, registry::oid_of(ty), typmod),
        oid::INET => network::input(text, false),
        oid::CIDR => network::input(text, true),
        oid::MACADDR => macaddr::input(text),
        oid::MACADDR8 => macaddr::input8(text),
        oid::VOID => Ok(Value::text("")),
        oid::OID => reg::oid_input(text),
        oid::XID => reg::xid_input(text),
        oid::XID8 => reg::xid8_input(text),
        oid::PG_LSN => lsn::input(text),
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => snapshot::input(text),
        oid::INT2 => integer_in(text, Width::Int2).map(Value::Int),
        oid::INT4 => integer_in(text, Width::Int4).map(Value::Int),
        oid::INT8 => integer_in(text, Width::Int8).map(Value::Int),
        oid::FLOAT4 => float_in(text).map(Value::Float),
        oid::FLOAT8 => float_in(text).map(Value::Double),
        oid::NUMERIC => numeric_in(text, typmod).map(Value::Decimal),
        oid::DATE => temporal::date_in(text, io).map(|days| Value::Int(days.into())),
        oid::TIME => temporal::time_in(text, typmod, io).map(Value::Int),
        oid::TIMETZ => temporal::timetz_in(text, typmod, io).map(TimeTz::to_value),
        oid::TIMESTAMP => temporal::timestamp_in(text, typmod, io).map(Value::Int),
        oid::TIMESTAMPTZ => temporal::timestamptz_in(text, typmod, io).map(Value::Int),
        oid::INTERVAL => temporal::interval_in(text, typmod, io).map(Value::Interval),
        oid::RECORD => Err(record::anonymous_input()),
        other if user::is_enum(other) => user::enum_input(other, text, io),
        other if user::is_composite(other) => record::input(&user::row_type(other, io)?, text, io),
        // The binder puts the checks around it.
        other if user::is_domain(other) => input(&user::base_type(other, io)?, text, io),
        other if registry::is_array(other) => array::input(other, typmod, text, io),
        other if range::of_range(other).is_some() => range::input(other, text, io),
        other if range::of_multirange(other).is_some() => range::multirange_input(other, text, io),
        other => match reg::kind(other) {
            Some(kind) => reg::input(kind, text, io),
            None => Err(refused(other, "input")),
        },
    }
}

/// Appends the text form of a value that is not NULL.
pub fn output(value: &Value, ty: &Type, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let oid = registry::oid_of(ty);
    match (oid, value) {
        (oid::BOOL, _) => out.push(if boolean::of(value) { b't' } else { b'f' }),
        (oid::BYTEA, Value::Bytes(bytes)) => bytea::output(bytes, io.bytea_output, out),
        (oid::CHAR, Value::UInt(byte)) => text::char_output(*byte as u8, out),
        (oid::UUID, Value::Bytes(bytes)) => uuid::output(bytes, out),
        (oid::INET | oid::CIDR, Value::Bytes(bytes)) => network::output(address(bytes)?, oid == oid::CIDR, out),
        (oid::BIT | oid::VARBIT, Value::Bytes(bytes)) => bits::output(&bits_of(bytes)?, out),
        (oid::MACADDR | oid::MACADDR8, Value::Bytes(bytes)) => macaddr::output(bytes, out),
        (oid::PG_LSN, Value::UInt(position)) => lsn::output(*position, out),
        (oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT, Value::Bytes(bytes)) => snapshot::output(&snapshot_of(bytes)?, out),
        (oid::OID | oid::XID | oid::XID8, Value::UInt(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        (oid::INT2 | oid::INT4 | oid::INT8, Value::Int(number)) => integer_out(*number, out),
        (oid::FLOAT4, Value::Float(number)) => float_out(*number, io.extra_float_digits, out),
        (oid::FLOAT8, Value::Double(number)) => float_out(*number, io.extra_float_digits, out),
        (oid::NUMERIC, Value::Decimal(number)) => numeric_out(number, out),
        (oid::DATE, Value::Int(days)) => temporal::date_out(*days as i32, io, out),
        (oid::TIME, Value::Int(micros)) => temporal::time_out(*micros, out),
        (oid::TIMETZ, Value::Bytes(bytes)) => temporal::timetz_out(TimeTz::of_bytes(bytes), out),
        (oid::TIMESTAMP, Value::Int(micros)) => temporal::timestamp_out(*micros, io, out),
        (oid::TIMESTAMPTZ, Value::Int(micros)) => temporal::timestamptz_out(*micros, io, out),
        (oid::INTERVAL, Value::Interval(span)) => temporal::interval_out(*span, io, out),
        (oid::JSONB, Value::Json(document)) => json::jsonb_output(document, out),
        (_, Value::Record(value)) => record::output(value, io, out)?,
        _ if user::is_domain(oid) => output(value, &user::base_type(oid, io)?, io, out)?,
        (_, Value::Array(value)) if registry::is_array(oid) => array::output(value, oid, io, out)?,
        (_, Value::UInt(number)) if reg::kind(oid).is_some() => reg::output(oid, *number as Oid, io, out),
        (_, Value::Text(text)) if is_text(oid) || oid == oid::ACLITEM => out.extend_from_slice(text.as_bytes()),
        (_, Value::Bytes(key)) if user::is_enum(oid) => user::enum_output(oid, key, io, out)?,
        (_, Value::Bytes(bytes)) if range::of_range(oid).is_some() => range::output(oid, bytes, io, out)?,
        (_, Value::Bytes(bytes)) if range::of_multirange(oid).is_some() => {
            range::multirange_output(oid, bytes, io, out)?;
        }
        _ => return Err(refused(oid, "output")),
    }
    Ok(())
}

/// Returns the value that bytes are the binary form of.
pub fn receive(ty: &Type, bytes: &[u8], io: &IoContext) -> Result<Value> {
    let oid = registry::oid_of(ty);
    let typmod = registry::typmod_of(ty);
    match oid {
        oid::BOOL => Ok(Value::from(fixed::<1>(bytes)?[0] != 0)),
        oid::BYTEA => Ok(Value::bytes(bytes)),
        oid::CHAR => Ok(Value::UInt(fixed::<1>(bytes)?[0].into())),
        oid::UUID => Ok(Value::bytes(fixed::<16>(bytes)?)),
        oid::INET | oid::CIDR => network::receive(bytes, oid == oid::CIDR),
        oid::BIT | oid::VARBIT => bits::receive(bytes, oid, typmod),
        oid::MACADDR => Ok(Value::bytes(fixed::<6>(bytes)?)),
        oid::MACADDR8 => macaddr::receive8(bytes),
        oid::OID | oid::XID => Ok(Value::UInt(u32::from_be_bytes(fixed(bytes)?).into())),
        oid::XID8 | oid::PG_LSN => Ok(Value::UInt(u64::from_be_bytes(fixed(bytes)?))),
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => snapshot::receive(bytes),
        oid::VARCHAR => text::varchar_input(utf8(bytes)?, typmod),
        oid::BPCHAR => text::bpchar_input(utf8(bytes)?, typmod),
        oid::JSON => json::input(utf8(bytes)?),
        oid::JSONB => json::jsonb_receive(bytes),
        oid::JSONPATH => jsonpath::receive(bytes),
        oid::NAME => text::name_receive(utf8(bytes)?),
        oid::VOID => Ok(Value::text("")),
        oid::INT2 => integer_receive(bytes, Width::Int2).map(Value::Int),
        oid::INT4 => integer_receive(bytes, Width::Int4).map(Value::Int),
        oid::INT8 => integer_receive(bytes, Width::Int8).map(Value::Int),
        oid::FLOAT4 => float4_receive(bytes).map(Value::Float),
        oid::FLOAT8 => float8_receive(bytes).map(Value::Double),
        oid::NUMERIC => numeric_receive(bytes, typmod).map(Value::Decimal),
        oid::DATE => temporal::date_recv(bytes).map(|days| Value::Int(days.into())),
        oid::TIME => temporal::time_recv(bytes, typmod).map(Value::Int),
        oid::TIMETZ => temporal::timetz_recv(bytes, typmod).map(TimeTz::to_value),
        oid::TIMESTAMP | oid::TIMESTAMPTZ => temporal::timestamp_recv(bytes, typmod).map(Value::Int),
        oid::INTERVAL => temporal::interval_recv(bytes, typmod).map(Value::Interval),
        oid::RECORD => Err(record::anonymous_input()),
        _ if is_text(oid) => text::input(utf8(bytes)?),
        _ if user::is_enum(oid) => user::enum_input(oid, utf8(bytes)?, io),
        _ if user::is_composite(oid) => record::receive(&user::row_type(oid, io)?, bytes, io),
        _ if user::is_domain(oid) => receive(&user::base_type(oid, io)?, bytes, io),
        _ if registry::is_array(oid) => array::receive(oid, typmod, bytes, io),
        _ if range::of_range(oid).is_some() => range::receive(oid, bytes, io),
        _ if range::of_multirange(oid).is_some() => range::multirange_receive(oid, bytes, io),
        _ if reg::kind(oid).is_some() => Ok(Value::UInt(u32::from_be_bytes(fixed(bytes)?).into())),
        _ => Err(refused(oid, "receive")),
    }
}

/// Appends the binary form of a value that is not NULL.
pub fn send(value: &Value, ty: &Type, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let oid = registry::oid_of(ty);
    match (oid, value) {
        (oid::BOOL, _) => out.push(boolean::of(value).into()),
        (oid::BYTEA | oid::UUID | oid::MACADDR | oid::MACADDR8, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        (oid::BIT | oid::VARBIT, Value::Bytes(bytes)) => bits::send(&bits_of(bytes)?, out),
        (oid::INET | oid::CIDR, Value::Bytes(bytes)) => network::send(address(bytes)?, oid == oid::CIDR, out),
        (oid::CHAR, Value::UInt(byte)) => out.push(*byte as u8),
        (oid::XID8 | oid::PG_LSN, Value::UInt(number)) => out.extend_from_slice(&number.to_be_bytes()),
        (oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT, Value::Bytes(bytes)) => snapshot::send(&snapshot_of(bytes)?, out),
        (oid::INT2, Value::Int(number)) => integer_send(*number, Width::Int2, out),
        (oid::INT4, Value::Int(number)) => integer_send(*number, Width::Int4, out),
        (oid::INT8, Value::Int(number)) => integer_send(*number, Width::Int8, out),
        (oid::FLOAT4, Value::Float(number)) => float4_send(*number, out),
        (oid::FLOAT8, Value::Double(number)) => float8_send(*number, out),
        (oid::NUMERIC, Value::Decimal(number)) => numeric_send(number, out),
        (oid::DATE, Value::Int(days)) => temporal::date_send(*days as i32, out),
        (oid::TIME, Value::Int(micros)) => temporal::time_send(*micros, out),
        (oid::TIMETZ, Value::Bytes(bytes)) => temporal::timetz_send(TimeTz::of_bytes(bytes), out),
        (oid::TIMESTAMP | oid::TIMESTAMPTZ, Value::Int(micros)) => temporal::timestamp_send(*micros, out),
        (oid::INTERVAL, Value::Interval(span)) => temporal::interval_send(*span, out),
        (oid::JSONB, Value::Json(document)) => json::jsonb_send(document, out),
        (oid::JSONPATH, Value::Text(path)) => jsonpath::send(path, out),
        _ if user::is_domain(oid) => send(value, &user::base_type(oid, io)?, io, out)?,
        (_, Value::UInt(number)) if matches!(oid, oid::OID | oid::XID) || reg::kind(oid).is_some() => {
            out.extend_from_slice(&(*number as u32).to_be_bytes());
        }
        (_, Value::Record(value)) => record::send(value, io, out)?,
        (_, Value::Array(value)) if registry::is_array(oid) => array::send(value, oid, io, out)?,
        (_, Value::Text(text)) if is_text(oid) => out.extend_from_slice(text.as_bytes()),
        (_, Value::Bytes(key)) if user::is_enum(oid) => user::enum_output(oid, key, io, out)?,
        (_, Value::Bytes(bytes)) if range::of_range(oid).is_some() => range::send(oid, bytes, io, out)?,
        (_, Value::Bytes(bytes)) if range::of_multirange(oid).is_some() => range::multirange_send(oid, bytes, io, out)?,
        _ => return Err(refused(oid, "send")),
    }
    Ok(())
}

fn snapshot_of(bytes: &[u8]) -> Result<snapshot::TransactionSnapshot> {
    snapshot::TransactionSnapshot::of_bytes(bytes).ok_or_else(snapshot::corrupt)
}

fn bits_of(bytes: &[u8]) -> Result<Bits> {
    Bits::of_bytes(bytes).ok_or_else(bits::corrupt)
}

fn address(bytes: &[u8]) -> Result<Inet> {
    Inet::of_bytes(bytes).ok_or_else(|| PgError::new(state::DATA_CORRUPTED, "bytes that are no network address"))
}

/// Returns whether values of the type are their own text form.
fn is_text(oid: Oid) -> bool {
    use oid::{BPCHAR, CSTRING, JSON, JSONPATH, NAME, TEXT, UNKNOWN, VARCHAR, VOID};
    matches!(oid, TEXT | VARCHAR | BPCHAR | NAME | JSON | JSONPATH | UNKNOWN | CSTRING | VOID)
}

/// The text of the error of bytes that a value leaves over.
pub(crate) const INCORRECT_BINARY: &str = "incorrect binary data format";

/// Returns the bytes of a binary form whose length is known.
pub(crate) fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| {
        if bytes.len() < N {
            PgError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message")
        } else {
            PgError::new(state::INVALID_BINARY_REPRESENTATION, INCORRECT_BINARY)
        }
    })
}

/// Returns the text that bytes from a client are. An error for bytes that are not UTF-8, and for a zero byte.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    let (text, invalid) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => ("", Some(error.valid_up_to())),
    };
    let zero = bytes[..invalid.unwrap_or(bytes.len())].iter().position(|byte| *byte == 0);
    match zero.or(invalid) {
        None => Ok(text),
        Some(at) => Err(invalid_encoding(&bytes[at..])),
    }
}

/// Returns an error for a text with a zero byte.
pub(crate) fn check_no_zero(text: &str) -> Result<()> {
    match text.as_bytes().iter().position(|byte| *byte == 0) {
        None => Ok(()),
        Some(at) => Err(invalid_encoding(&text.as_bytes()[at..])),
    }
}

/// The message shows as many bytes as the first one announces.
#[cold]
fn invalid_encoding(rest: &[u8]) -> PgError {
    let announced = match rest[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let shown: Vec<String> = rest.iter().take(announced).map(|byte| format!("0x{byte:02x}")).collect();
    let text = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
    PgError::new(state::CHARACTER_NOT_IN_REPERTOIRE, text)
}

/// Returns the error of a text that is no value of the type, whose name is as SQL writes it.
#[cold]
pub fn invalid_input(ty: &str, text: &str) -> PgError {
    PgError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type {ty}: \"{text}\""))
}

#[cold]
fn refused(oid: Oid, form: &str) -> PgError {
    let text = format!("no {form} function available for type {}", registry::format_type(oid, None));
    PgError::new(state::FEATURE_NOT_SUPPORTED, text)
}

#[cfg(test)]
mod tests;
