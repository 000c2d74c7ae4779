//! Encodings of bytes as text (hexadecimal, base64), digests, and COMPRESS with its inverse.

use datum::base64;
use stdx::memory;

use super::entry::{Args, FunctionEntry, Returns, row, string_value};
use crate::error;
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::scalar::{bind, convert};
use crate::types::{Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(&["hex"], 1, 1, Returns::Custom(type_of_hex), Run::Strict(hex)),
    row(&["unhex"], 1, 1, Returns::Bytes(16_000_000), Run::Strict(unhex)),
    row(&["to_base64"], 1, 1, Returns::Plain(u32::MAX / 4), Run::Strict(to_base64)),
    row(&["from_base64"], 1, 1, Returns::Bytes(16_000_000), Run::Strict(from_base64)),
    row(&["md5"], 1, 1, Returns::Plain(32), Run::Strict(md5)),
    row(&["sha1", "sha"], 1, 1, Returns::Plain(40), Run::Strict(sha1)),
    row(&["sha2"], 2, 2, Returns::Plain(128), Run::Strict(sha2)),
    row(&["compress"], 1, 1, Returns::Bytes(16_000_000), Run::Strict(compress)),
    row(&["uncompress"], 1, 1, Returns::Bytes(16_000_000), Run::Strict(uncompress)),
    row(&["uncompressed_length"], 1, 1, Returns::Int, Run::Strict(uncompressed_length)),
];

/// HEX: the longest result has two digits for each byte of the argument.
fn type_of_hex(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let ty = arguments[0].ty();
    let bytes = if ty.kind().is_text() { ty.charset().max_bytes() } else { 1 };
    let length = bind::display_length(&ty).saturating_mul(2 * bytes).max(16);
    Ok(bind::string_type(length, settings.collation).with_nullable(ty.nullable))
}

pub fn hex_text(bytes: &[u8], upper: bool) -> String {
    let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(digits[usize::from(digit)])).collect()
}

/// HEX: a number yields its hexadecimal digits, a string the digits of its bytes.
fn hex(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let kind = call.arguments[0].kind();
    let text = match &values[0] {
        Value::Int(number) => format!("{number:X}"),
        Value::UInt(number) if !matches!(kind, Kind::Enum | Kind::Set) => format!("{number:X}"),
        // Decimals convert exactly. A value beyond 64 bits saturates to all ones.
        Value::Decimal(decimal) => match decimal.rounded(0).to_whole() {
            whole if i64::try_from(whole).is_ok() => format!("{:X}", whole as i64),
            whole => format!("{:X}", u64::try_from(whole).unwrap_or(u64::MAX)),
        },
        value @ (Value::Double(_) | Value::Float(_)) => {
            format!("{:X}", hex_of_real(convert::to_f64(value, ctx)?))
        }
        _ => hex_text(&Args::new(call, values).own_bytes(0, ctx), true),
    };
    Ok(Value::text(text))
}

/// Rounds to an integer. A value beyond 64 bits saturates to all ones.
fn hex_of_real(number: f64) -> u64 {
    if number <= i64::MIN as f64 || number >= u64::MAX as f64 {
        return u64::MAX;
    }
    let rounded = number.abs() + 0.5;
    if number > 0.0 { rounded as u64 } else { (-(rounded as i64)) as u64 }
}

fn unhex(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let digits = Args::new(call, values).bytes(0, ctx);
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|nibble| nibble as u8);
    let odd = if digits.len() % 2 == 1 { vec![b'0'] } else { Vec::new() };
    let digits = [odd, digits].concat();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect();
    Ok(bytes.map_or(Value::Null, |bytes| string_value(call, bytes, ctx)))
}

/// TO_BASE64: lines of 76 characters.
fn to_base64(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let whole = base64::encode(&Args::new(call, values).own_bytes(0, ctx));
    let lines: Vec<&str> = (0..whole.len()).step_by(76).map(|at| &whole[at..whole.len().min(at + 76)]).collect();
    Ok(string_value(call, lines.join("\n").into_bytes(), ctx))
}

fn from_base64(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let decoded = base64::decode(&Args::new(call, values).bytes(0, ctx));
    Ok(decoded.map_or(Value::Null, |bytes| string_value(call, bytes, ctx)))
}

/// The length in four bytes, of which the upper two bits say nothing, then a stream of zlib; nothing of nothing. As MySQL has it, no space stands at the end, where a column of CHAR would lose it.
fn compress(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    /// zlib's own default.
    const LEVEL: u8 = 6;
    let bytes = Args::new(call, values).own_bytes(0, ctx);
    if bytes.is_empty() {
        return Ok(string_value(call, bytes, ctx));
    }
    let mut out = (bytes.len() as u32 & LENGTH).to_le_bytes().to_vec();
    out.extend(miniz_oxide::deflate::compress_to_vec_zlib(&bytes, LEVEL));
    if out.ends_with(b" ") {
        out.push(b'.');
    }
    Ok(string_value(call, out, ctx))
}

/// The bits of the leading four bytes that hold the uncompressed length.
const LENGTH: u32 = 0x3FFF_FFFF;

fn uncompress(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let bytes = Args::new(call, values).bytes(0, ctx);
    if bytes.is_empty() {
        return Ok(string_value(call, bytes, ctx));
    }
    let Some((length, stream)) = length_and_stream(&bytes) else {
        ctx.warn(error::ZLIB_Z_DATA_ERROR.raise(&[]));
        return Ok(Value::Null);
    };
    if length > ctx.state().max_allowed_packet {
        let most = ctx.state().max_allowed_packet;
        ctx.warn(error::TOO_BIG_FOR_UNCOMPRESS.raise(&[&most]));
        return Ok(Value::Null);
    }
    let _claim = memory::claim(2 * length)?;
    use miniz_oxide::inflate::TINFLStatus::HasMoreOutput;
    match miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(stream, length) {
        Ok(whole) => Ok(string_value(call, whole, ctx)),
        Err(failure) => {
            let is_longer = failure.status == HasMoreOutput;
            ctx.warn(if is_longer { error::ZLIB_Z_BUF_ERROR } else { error::ZLIB_Z_DATA_ERROR }.bare());
            Ok(Value::Null)
        }
    }
}

fn uncompressed_length(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let bytes = Args::new(call, values).bytes(0, ctx);
    let parts = length_and_stream(&bytes);
    if parts.is_none() && !bytes.is_empty() {
        ctx.warn(error::ZLIB_Z_DATA_ERROR.raise(&[]));
    }
    Ok(Value::Int(parts.map_or(0, |(length, _)| length as i64)))
}

/// Returns the compressed stream behind the length, or `None` if there is none.
fn length_and_stream(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, stream) = bytes.split_first_chunk()?;
    (!stream.is_empty()).then_some(((u32::from_le_bytes(*length) & LENGTH) as usize, stream))
}

fn md5(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(hex_text(&super::digest::md5(&Args::new(call, values).own_bytes(0, ctx)), false)))
}

fn sha1(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(hex_text(&super::digest::sha1(&Args::new(call, values).own_bytes(0, ctx)), false)))
}

fn sha2(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let bytes = args.own_bytes(0, ctx);
    let digest = match args.int(1, ctx)? {
        224 => super::digest::sha224(&bytes),
        0 | 256 => super::digest::sha256(&bytes),
        384 => super::digest::sha384(&bytes),
        512 => super::digest::sha512(&bytes),
        _ => return Ok(Value::Null),
    };
    Ok(Value::text(hex_text(&digest, false)))
}
