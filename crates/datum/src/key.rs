//! The key codec: bytes in the order of values, for indexes, sorts and groups.
//!
//! DA-2: for one shape, `encode(a) < encode(b)` as bytes exactly where `a` comes before `b`, and the bytes are equal exactly where the values are equal.
//! DA-3: no encoding is the beginning of another of the same shape, so that parts may follow one another.
//! DA-4: `decode` returns the very value for the storage types that are `is_lossless`. For others equal values can differ: a zero in its sign, a text in
//! its case, an interval in its fields.
//!
//! A key part begins with a byte that puts NULL before all values or behind them. Descending order inverts every bit, of that byte too. The shape decides
//! the form and not the value, because a key may be searched for with a value of another variant than the column's.
//!
//! | order | NULL | a value begins with |
//! |---|---|---|
//! | ascending, NULLs first; of descending, last | 00; ff | 01; fe |
//! | ascending, NULLs last; of descending, first | 02; fd | 01; fe |
//!
//! | storage type | after the first byte |
//! |---|---|
//! | Int, Enum, Set, Bit | 8 bytes, big-endian, the sign bit inverted where signed |
//! | Decimal | class; of a number that is not zero exponent, digits in pairs, end |
//! | Float4, Float8 | 8 bytes of the double, mapped so that they order, NaN behind all |
//! | Text, Bytes | the collation's sort key |
//! | Date | 4 bytes; Time, Timestamp, TimestampTz: 8 bytes |
//! | Interval | 16 bytes: its length in microseconds, the sign bit inverted |
//! | Json | rank of the node, then its content |
//! | Jsonb | 0 for an array without elements, or 1 and the node: rank, of arrays and objects how many parts they have, content |
//! | Record | of each field 01 and its key as a text, or 02 for NULL; 00 |
//! | Keyed | the key within the value, as a text |
//! | Array | of each element 01 and its key as a text, or 02 for NULL; 00; the number of dimensions, of each its length and its lower bound in 4 bytes |

use crate::batch::Cell;
use crate::collation::Collation;
use crate::decimal::{Decimal, Special};
use crate::json::{Json, JsonbScalar, Node};
use crate::keyed;
use crate::storage::{Shape, Storage};
use crate::temporal::{Date, DateTime, Span, Time, Timestamp};
use crate::value::{Array, Record, Value};

const NULL: u8 = 0;
const SOME: u8 = 1;
/// NULL where it is greater than every value.
const NULL_ABOVE: u8 = 2;

/// The order of one part of a key: of an index or of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyOrder {
    pub descending: bool,
    pub nulls_first: bool,
}

impl KeyOrder {
    /// From the least to the greatest, NULL before all.
    pub const ASCENDING: KeyOrder = KeyOrder::with_null_least(false);

    /// Returns the order in which NULL counts as less than every value: it comes first, in descending order last. MySQL's.
    pub const fn with_null_least(descending: bool) -> KeyOrder {
        KeyOrder { descending, nulls_first: !descending }
    }

    /// Returns the order in which NULL counts as greater than every value. PostgreSQL's, where nothing is said of NULLs.
    pub const fn with_null_greatest(descending: bool) -> KeyOrder {
        KeyOrder { descending, nulls_first: descending }
    }

    /// Returns the order of the same keys read backward.
    pub const fn reversed(self) -> KeyOrder {
        KeyOrder { descending: !self.descending, nulls_first: !self.nulls_first }
    }

    /// Returns the byte of NULL, before a descending order inverts it.
    const fn null(self) -> u8 {
        if self.nulls_first == self.descending { NULL_ABOVE } else { NULL }
    }
}

/// Appends the key of a value. A value of another variant than the shape's is converted without loss of order where it can be.
pub fn encode(value: &Value, shape: Shape, order: KeyOrder, out: &mut Vec<u8>) {
    let from = out.len();
    match value {
        Value::Null => out.push(order.null()),
        value => {
            out.push(SOME);
            encode_some(value, shape, out);
        }
    }
    if order.descending {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// As `encode`, for a cell of a batch.
pub fn encode_cell(cell: Cell<'_>, shape: Shape, order: KeyOrder, out: &mut Vec<u8>) {
    let string = match cell {
        Cell::Text(text) if takes_text(shape.storage) => text.as_bytes(),
        Cell::Bytes(bytes) if takes_text(shape.storage) => bytes,
        Cell::Value(value) => return encode(value, shape, order, out),
        other => return encode(&other.to_value(), shape, order, out),
    };
    let from = out.len();
    out.push(SOME);
    shape.collation.sort_key(string, out);
    if order.descending {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Returns the first eight bytes of a text's key as a number that compares as they do, where that takes no more than a look at the first characters. The
/// whole key is longer. A sort compares these numbers first and makes keys only for ties.
pub fn start_of_cell(cell: Cell<'_>, shape: Shape, order: KeyOrder) -> Option<u64> {
    let string = match cell {
        Cell::Text(text) if takes_text(shape.storage) => text.as_bytes(),
        Cell::Bytes(bytes) if takes_text(shape.storage) => bytes,
        _ => return None,
    };
    let start = u64::from_be_bytes(shape.collation.sort_key_start(string)?);
    let start = (start >> 8) | (u64::from(SOME) << 56);
    Some(if order.descending { !start } else { start })
}

/// Members of an enumeration can come as their names.
fn takes_text(storage: Storage) -> bool {
    matches!(storage, Storage::Text | Storage::Bytes | Storage::Enum | Storage::Set)
}

fn encode_some(value: &Value, shape: Shape, out: &mut Vec<u8>) {
    match shape.storage {
        Storage::Int { signed, .. } => integer(value, signed, out),
        Storage::Enum | Storage::Set | Storage::Bit => integer(value, false, out),
        Storage::Float4 | Storage::Float8 => out.extend_from_slice(&double(number(value)).to_be_bytes()),
        Storage::Decimal => match value {
            Value::Decimal(decimal) => decimal_key(decimal, out),
            Value::Int(number) => decimal_key(&Decimal::from(*number), out),
            Value::UInt(number) => decimal_key(&Decimal::from(*number), out),
            other => decimal_key(&decimal_of(number(other)), out),
        },
        Storage::Date | Storage::Time | Storage::Timestamp | Storage::TimestampTz => {
            temporal(value, shape.storage, out)
        }
        Storage::Interval => {
            let length = if let Value::Interval(span) = value { span.length() } else { 0 };
            out.extend_from_slice(&(length as u128 ^ 1 << 127).to_be_bytes());
        }
        Storage::Json => json(Json::from_value(value).node(), out),
        Storage::Jsonb => jsonb(Json::from_value(value).node(), out),
        Storage::Array => {
            if let Value::Array(value) = value {
                array(value, out);
            }
        }
        Storage::Record => {
            if let Value::Record(value) = value {
                record(value, out);
            }
        }
        Storage::Keyed => {
            let bytes = value.as_string_bytes().unwrap_or_default();
            Collation::Binary.sort_key(keyed::parts(bytes).0, out);
        }
        Storage::Text | Storage::Bytes => match value.as_string_bytes() {
            Some(text) => shape.collation.sort_key(text, out),
            None => shape.collation.sort_key(value.to_string().as_bytes(), out),
        },
    }
}

/// Appends elements as they compare: a NULL among them is greater than every value, and of two arrays that begin alike the shorter is less.
fn array(array: &Array, out: &mut Vec<u8>) {
    let mut key = Vec::new();
    for value in array.values() {
        if value.is_null() {
            out.push(NULL_ABOVE);
            continue;
        }
        key.clear();
        encode_some(value, array.element(), &mut key);
        out.push(SOME);
        Collation::Binary.sort_key(&key, out);
    }
    out.extend_from_slice(&[NULL, array.dimensions().len() as u8]);
    for dimension in array.dimensions() {
        out.extend_from_slice(&dimension.length.to_be_bytes());
    }
    for dimension in array.dimensions() {
        out.extend_from_slice(&(dimension.lower as u32 ^ 1 << 31).to_be_bytes());
    }
}

/// Appends fields as they compare, a NULL as greater than every value.
fn record(record: &Record, out: &mut Vec<u8>) {
    let mut key = Vec::new();
    for (field, value) in record.fields() {
        if value.is_null() {
            out.push(NULL_ABOVE);
            continue;
        }
        key.clear();
        encode_some(value, field.shape, &mut key);
        out.push(SOME);
        Collation::Binary.sort_key(&key, out);
    }
    out.push(NULL);
}

/// Returns how many bytes a list of keys takes, each marked or NULL, with the byte that ends it.
fn list_length(byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        at += match byte(at)? {
            NULL_ABOVE => 1,
            SOME => 1 + Collation::Binary.sort_key_length(|nth| byte(at + 1 + nth))?,
            _ => return Some(at + 1),
        };
    }
}

/// Returns how many bytes an array's key takes, where `byte` gives those behind the first.
fn array_length(byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
    let at = list_length(&byte)?;
    let dimensions = byte(at)?;
    Some(at + 1 + 8 * usize::from(dimensions))
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        Value::Decimal(decimal) => decimal.to_f64(),
        _ => 0.0,
    }
}

/// Returns the decimal in whose place a double is looked for. One beyond every decimal of 65 digits is as good as infinite.
fn decimal_of(number: f64) -> Decimal {
    match Decimal::from_f64(number) {
        Some(decimal) => decimal,
        None if number.is_nan() => Decimal::NAN,
        None if number < 0.0 => Decimal::NEGATIVE_INFINITY,
        None => Decimal::INFINITY,
    }
}

fn integer(value: &Value, signed: bool, out: &mut Vec<u8>) {
    let wide = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        other => number(other) as i128,
    };
    let bits = match signed {
        false => wide.clamp(0, u64::MAX.into()) as u64,
        true => (wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64 as u64) ^ (1 << 63),
    };
    out.extend_from_slice(&bits.to_be_bytes());
}

/// Maps a double to bits that order as it does: a negative one has all bits inverted, others the sign. Both zeros are one, and so are all NaN.
fn double(number: f64) -> u64 {
    let bits = if number == 0.0 {
        0
    } else if number.is_nan() {
        f64::NAN.to_bits() & !(1 << 63)
    } else {
        number.to_bits()
    };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The first byte of a number's key.
mod class {
    pub const NEGATIVE: u8 = 0;
    pub const ZERO: u8 = 1;
    pub const POSITIVE: u8 = 2;
    pub const NAN: u8 = 3;
}

fn decimal_key(decimal: &Decimal, out: &mut Vec<u8>) {
    match decimal.special() {
        None => {}
        Some(Special::NotANumber) => return out.push(class::NAN),
        Some(Special::Infinity) => return ordinate(false, INFINITE, b"", out),
        Some(Special::NegativeInfinity) => return ordinate(true, INFINITE, b"", out),
    }
    let digits = match decimal.small() {
        Some(small) => small.unsigned_abs().to_string(),
        None => decimal.coefficient().magnitude().to_string(),
    };
    number_key(decimal.is_negative(), &digits, digits.len() as i32 - i32::from(decimal.scale()), out);
}

/// Appends the key of 0.d1d2d3... times 10^`exponent`.
fn number_key(negative: bool, digits: &str, exponent: i32, out: &mut Vec<u8>) {
    let leading = digits.bytes().take_while(|digit| *digit == b'0').count();
    let digits = digits[leading..].trim_end_matches('0').as_bytes();
    if digits.is_empty() {
        out.push(class::ZERO);
        return;
    }
    ordinate(negative, exponent - leading as i32, digits, out);
}

/// The exponent of an infinity, which has no digits.
const INFINITE: i32 = i32::MAX;
/// Put before a larger exponent, and before a smaller one. They are no exponents themselves.
const ABOVE: u16 = u16::MAX;
const BELOW: u16 = 0;

/// Appends class, exponent, pairs of digits as 1 to 100, then 0. The exponent takes two bytes, offset by 0x4000; one for which these have no number follows
/// `ABOVE` or `BELOW` in four bytes. Of a negative number everything behind the class is inverted.
fn ordinate(negative: bool, exponent: i32, digits: &[u8], out: &mut Vec<u8>) {
    out.push(if negative { class::NEGATIVE } else { class::POSITIVE });
    let from = out.len();
    let offset = i64::from(exponent) + 0x4000;
    match u16::try_from(offset) {
        Ok(short) if short != ABOVE && short != BELOW => out.extend_from_slice(&short.to_be_bytes()),
        _ => {
            out.extend_from_slice(&if offset > 0 { ABOVE } else { BELOW }.to_be_bytes());
            out.extend_from_slice(&(exponent as u32 ^ 1 << 31).to_be_bytes());
        }
    }
    for pair in digits.chunks(2) {
        let second = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push((pair[0] - b'0') * 10 + second + 1);
    }
    out.push(0);
    if negative {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn signed(number: i64) -> [u8; 8] {
    (number as u64 ^ 1 << 63).to_be_bytes()
}

fn temporal(value: &Value, storage: Storage, out: &mut Vec<u8>) {
    match (value, storage) {
        (Value::Date(date), Storage::Date) => out.extend_from_slice(&date.to_bits().to_be_bytes()),
        (Value::DateTime(at), Storage::Date) => out.extend_from_slice(&at.date.to_bits().to_be_bytes()),
        (Value::Date(date), _) => out.extend_from_slice(&DateTime::from(*date).to_bits().to_be_bytes()),
        (Value::DateTime(at), _) => out.extend_from_slice(&at.to_bits().to_be_bytes()),
        (Value::Time(time), _) => out.extend_from_slice(&signed(time.micros())),
        (Value::Timestamp(at), _) => out.extend_from_slice(&signed(at.0)),
        _ => out.extend_from_slice(&[0; 8]),
    }
}

fn json(node: &Node, out: &mut Vec<u8>) {
    out.push(node.rank());
    match node {
        Node::Null => {}
        Node::Bool(truth) => out.push(u8::from(*truth)),
        Node::Int(number) => decimal_key(&Decimal::from(*number), out),
        Node::UInt(number) => decimal_key(&Decimal::from(*number), out),
        Node::Decimal(decimal) => decimal_key(decimal, out),
        Node::Double(number) => {
            let shown = format!("{:e}", number.abs());
            let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
            let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
            number_key(*number < 0.0, &digits, exponent.parse::<i32>().unwrap_or(0) + 1, out);
        }
        Node::String(text) => Collation::Binary.sort_key(text.as_bytes(), out),
        Node::Array(elements) => {
            for element in elements {
                out.push(SOME);
                json(element, out);
            }
            out.push(NULL);
        }
        Node::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (name, node) in members.iter() {
                Collation::Binary.sort_key(name.as_bytes(), out);
                json(node, out);
            }
        }
        Node::Date(date) => out.extend_from_slice(&date.to_bits().to_be_bytes()),
        Node::Time(time) => out.extend_from_slice(&signed(time.micros())),
        Node::DateTime(at) => out.extend_from_slice(&at.to_bits().to_be_bytes()),
        Node::Bytes(bytes) => Collation::Binary.sort_key(bytes, out),
    }
}

/// The order of `Node::compare_jsonb`.
fn jsonb(node: &Node, out: &mut Vec<u8>) {
    match node {
        Node::Array(elements) if elements.is_empty() => out.push(0),
        node => {
            out.push(1);
            jsonb_part(node, out);
        }
    }
}

fn jsonb_part(node: &Node, out: &mut Vec<u8>) {
    out.push(node.jsonb_rank());
    match node {
        Node::Array(elements) => {
            out.extend_from_slice(&(elements.len() as u32).to_be_bytes());
            elements.iter().for_each(|element| jsonb_part(element, out));
        }
        Node::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (name, node) in members.iter() {
                Collation::Binary.sort_key(name.as_bytes(), out);
                jsonb_part(node, out);
            }
        }
        Node::Null => {}
        Node::Bool(truth) => out.push(u8::from(*truth)),
        Node::String(text) => Collation::Binary.sort_key(text.as_bytes(), out),
        node => match node.jsonb_scalar() {
            JsonbScalar::Number(number) => decimal_key(&number, out),
            JsonbScalar::String(text) => Collation::Binary.sort_key(text.as_bytes(), out),
        },
    }
}

/// True: a key of this storage type gives its value back bit by bit (DA-4), so an index entry can stand for the row.
pub fn is_lossless(storage: Storage) -> bool {
    use Storage::{Bit, Date, Enum, Int, Set, Time, Timestamp, TimestampTz};
    matches!(storage, Int { .. } | Enum | Set | Bit | Date | Time | Timestamp | TimestampTz)
}

/// Returns the value at the beginning of a key, and how many bytes it takes. `None` for damaged bytes, and for decimals, strings, intervals and JSON,
/// whose keys only order.
pub fn decode(key: &[u8], storage: Storage, order: KeyOrder) -> Option<(Value, usize)> {
    let byte = |place: usize| key.get(place).map(|byte| if order.descending { !byte } else { *byte });
    if byte(0)? == order.null() {
        return Some((Value::Null, 1));
    }
    if byte(0)? != SOME {
        return None;
    }
    let bits = |width: usize| (1..=width).try_fold(0, |bits: u64, at| Some(bits << 8 | u64::from(byte(at)?)));
    let word = || bits(8);
    Some(match storage {
        Storage::Int { signed: true, .. } => (Value::Int((word()? ^ 1 << 63) as i64), 9),
        Storage::Int { signed: false, .. } | Storage::Enum | Storage::Set | Storage::Bit => (Value::UInt(word()?), 9),
        Storage::Float4 | Storage::Float8 => {
            let bits = word()?;
            let number = f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits });
            (if storage == Storage::Float4 { Value::Float(number as f32) } else { Value::Double(number) }, 9)
        }
        Storage::Date => {
            let bits = bits(4)?;
            (Value::Date(Date::from_bits(bits as u32)), 5)
        }
        Storage::Timestamp => (Value::DateTime(DateTime::from_bits(word()?)?), 9),
        Storage::Time => (Value::Time(Time::checked((word()? ^ 1 << 63) as i64)?), 9),
        Storage::TimestampTz => (Value::Timestamp(Timestamp((word()? ^ 1 << 63) as i64)), 9),
        _ => return None,
    })
}

/// Returns how many bytes at the beginning of a key are one value. `None` for damaged bytes, and for JSON, which never begins a key of several parts.
pub fn length(key: &[u8], shape: Shape, order: KeyOrder) -> Option<usize> {
    let byte = |place: usize| key.get(place).map(|byte| if order.descending { !byte } else { *byte });
    if byte(0)? == order.null() {
        return Some(1);
    }
    if byte(0)? != SOME {
        return None;
    }
    match shape.storage {
        Storage::Date => Some(5),
        Storage::Interval => Some(1 + Span::BYTES),
        Storage::Decimal => {
            let class = byte(1)?;
            if class == class::ZERO || class == class::NAN {
                return Some(2);
            }
            let end = if class == class::NEGATIVE { 0xFF } else { 0 };
            let exponent = [byte(2)?, byte(3)?];
            // Inverted, `ABOVE` and `BELOW` are each other.
            let is_long = exponent == ABOVE.to_be_bytes() || exponent == BELOW.to_be_bytes();
            let digits = if is_long { 8 } else { 4 };
            (digits..key.len()).find(|at| byte(*at) == Some(end)).map(|at| at + 1)
        }
        Storage::Json | Storage::Jsonb => None,
        Storage::Array => {
            array_length(|at| byte(at + 1)).map(|length| length + 1).filter(|length| *length <= key.len())
        }
        Storage::Record => {
            list_length(|at| byte(at + 1)).map(|length| length + 1).filter(|length| *length <= key.len())
        }
        Storage::Keyed => Collation::Binary.sort_key_length(|at| byte(at + 1)).map(|length| length + 1),
        Storage::Text | Storage::Bytes => shape.collation.sort_key_length(|at| byte(at + 1)).map(|length| length + 1),
        _ => Some(9),
    }
}

#[cfg(test)]
mod tests;
