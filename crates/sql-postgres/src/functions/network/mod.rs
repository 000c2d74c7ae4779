//! Functions of network addresses: inet, cidr, macaddr and macaddr8.

pub mod rows;

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{bytes, integer, invalid};
use crate::functions::state::StateOf as _;
use crate::types::macaddr;
use crate::types::network::{self, Inet};
use crate::value::{Text, Value};

fn inet(values: &[Value], at: usize) -> Result<Inet> {
    let inet = Inet::of_bytes(bytes(values, at)?);
    inet.ok_or_else(|| Fault::corrupt("bytes that are no network address"))
}

fn two(values: &[Value]) -> Result<(Inet, Inet)> {
    Ok((inet(values, 0)?, inet(values, 1)?))
}

/// Returns the text that a function appends. It is of ASCII letters.
fn text(inet: Inet, form: fn(Inet, &mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    form(inet, &mut out);
    Value::Text(Text::from(String::from_utf8_lossy(&out).into_owned()))
}

pub fn abbrev(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(text(inet(values, 0)?, |inet, out| network::output(inet, false, out)))
}

pub fn cidr_abbrev(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(text(inet(values, 0)?, network::abbreviated))
}

pub fn host(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(text(inet(values, 0)?, network::host))
}

pub fn show(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(text(inet(values, 0)?, |inet, out| network::output(inet, true, out)))
}

pub fn broadcast(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let inet = inet(values, 0)?;
    Ok(Inet { address: inet.address | inet.host_mask(), ..inet }.to_value())
}

pub fn network(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(inet(values, 0)?.network().to_value())
}

pub fn family(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(if inet(values, 0)?.is_v6 { 6 } else { 4 }))
}

pub fn masklen(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(inet(values, 0)?.bits.into()))
}

pub fn netmask(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let inet = inet(values, 0)?;
    Ok(inet.with_address(inet.mask()).to_value())
}

pub fn hostmask(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let inet = inet(values, 0)?;
    Ok(inet.with_address(inet.host_mask()).to_value())
}

/// Returns an address with another length of its network; -1 is that of the address itself.
fn with_masklen(values: &[Value]) -> Result<Inet> {
    let (inet, bits) = (inet(values, 0)?, integer(values, 1)?);
    match bits {
        -1 => Ok(inet.with_bits(inet.width())),
        _ if (0..=i64::from(inet.width())).contains(&bits) => Ok(inet.with_bits(bits as u8)),
        _ => Err(invalid(format!("invalid mask length: {bits}"))),
    }
}

pub fn set_masklen(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(with_masklen(values)?.to_value())
}

pub fn cidr_set_masklen(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(with_masklen(values)?.network().to_value())
}

pub fn merge(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    if a.is_v6 != b.is_v6 {
        return Err(invalid("cannot merge addresses from different families"));
    }
    Ok(a.with_bits(a.common_bits(b).min(a.bits).min(b.bits)).network().to_value())
}

pub fn same_family(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    Ok((a.is_v6 == b.is_v6).into())
}

/// Returns whether the first network is within the second.
fn is_within(inner: Inet, outer: Inet) -> bool {
    inner.bits >= outer.bits && inner.shares(outer, outer.bits)
}

pub fn is_subnet(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    Ok((a.bits > b.bits && is_within(a, b)).into())
}

pub fn is_subnet_or_equal(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    Ok(is_within(a, b).into())
}

pub fn is_supernet(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    Ok((b.bits > a.bits && is_within(b, a)).into())
}

pub fn is_supernet_or_equal(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    Ok(is_within(b, a).into())
}

pub fn overlaps(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    Ok(a.shares(b, a.bits.min(b.bits)).into())
}

pub fn not(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let inet = inet(values, 0)?;
    let all = inet.with_bits(inet.width()).mask();
    Ok(Inet { address: !inet.address & all, ..inet }.to_value())
}

/// Combines two addresses of one family. The network is the longer one.
fn combined(values: &[Value], verb: &str, join: fn(u128, u128) -> u128) -> Result<Value> {
    let (a, b) = two(values)?;
    if a.is_v6 != b.is_v6 {
        return Err(invalid(format!("cannot {verb} inet values of different sizes")));
    }
    Ok(Inet { address: join(a.address, b.address), bits: a.bits.max(b.bits), ..a }.to_value())
}

pub fn and(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    combined(values, "AND", |a, b| a & b)
}

pub fn or(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    combined(values, "OR", |a, b| a | b)
}

#[cold]
fn out_of_range() -> Fault {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range").into()
}

fn sum(inet: Inet, addend: i64) -> Result<Value> {
    let all = inet.with_bits(inet.width()).mask();
    let sum = inet.address.checked_add_signed(addend.into()).filter(|sum| *sum <= all);
    Ok(Inet { address: sum.ok_or_else(out_of_range)?, ..inet }.to_value())
}

pub fn add(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    sum(inet(values, 0)?, integer(values, 1)?)
}

pub fn add_to_number(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    sum(inet(values, 1)?, integer(values, 0)?)
}

/// The least number has no negative, so PostgreSQL adds it as it is.
pub fn subtract_number(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    sum(inet(values, 0)?, integer(values, 1)?.wrapping_neg())
}

pub fn subtract(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = two(values)?;
    if a.is_v6 != b.is_v6 {
        return Err(invalid("cannot subtract inet values of different sizes"));
    }
    let difference = a.address.wrapping_sub(b.address) as i128;
    Ok(Value::Int(i64::try_from(difference).map_err(|_| out_of_range())?))
}

pub fn client_address(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(address_value(ctx.state().session.client_address.as_deref()))
}

/// Returns the value of an address that is known as a text; NULL for none.
pub fn address_value(text: Option<&str>) -> Value {
    text.and_then(|text| network::input(text, false).ok()).unwrap_or(Value::Null)
}

/// Combines two addresses byte by byte.
fn bytewise(values: &[Value], join: fn(u8, u8) -> u8) -> Result<Value> {
    let (a, b) = (bytes(values, 0)?, bytes(values, 1)?);
    Ok(Value::from_bytes(a.iter().zip(b).map(|(a, b)| join(*a, *b)).collect()))
}

pub fn mac_and(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    bytewise(values, |a, b| a & b)
}

pub fn mac_or(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    bytewise(values, |a, b| a | b)
}

pub fn mac_not(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::from_bytes(bytes(values, 0)?.iter().map(|byte| !byte).collect()))
}

/// Keeps the three bytes of the manufacturer.
pub fn mac_trunc(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let kept = |(at, byte): (usize, &u8)| if at < 3 { *byte } else { 0 };
    Ok(Value::from_bytes(bytes(values, 0)?.iter().enumerate().map(kept).collect()))
}

/// Sets the bit of modified EUI-64.
pub fn mac_set7bit(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut bytes = bytes(values, 0)?.to_vec();
    if let Some(first) = bytes.first_mut() {
        *first |= 2;
    }
    Ok(Value::from_bytes(bytes))
}

pub fn mac8_of_mac(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let wide = macaddr::widened(bytes(values, 0)?);
    wide.map(Value::bytes).ok_or_else(|| Fault::corrupt("a macaddr of another length"))
}

pub fn mac_of_mac8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    match bytes(values, 0)? {
        [a, b, c, 0xff, 0xfe, f, g, h] => Ok(Value::bytes([*a, *b, *c, *f, *g, *h])),
        _ => {
            let text = "macaddr8 data out of range to convert to macaddr";
            let hint = "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
                        xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.";
            Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, text).hint(hint).into())
        }
    }
}
