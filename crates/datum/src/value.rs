//! One value, as it travels between rows, expressions and doors.
//!
//! The stored form and the shown form differ for four kinds: ENUM, SET and BIT are a `UInt`, TIMESTAMP is UTC. Rows, keys and expressions hold the stored
//! form; `scalar::present` wraps the outermost expression of a result where the form must change, so that nothing else has to know.
//! A short string lives inside the value; a longer one is shared, so that a clone copies 24 bytes.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::float;
use crate::temporal::Zone;

pub use crate::decimal::Decimal;
pub use crate::json::Json;
pub use crate::temporal::{Date, DateTime, Time, Timestamp};

#[derive(Clone, Debug, Default)]
pub enum Value {
    #[default]
    Null,
    Int(i64),
    UInt(u64),
    Decimal(Decimal),
    Float(f32),
    Double(f64),
    Text(Text),
    Bytes(Bytes),
    Date(Date),
    Time(Time),
    /// A wall clock's reading.
    DateTime(DateTime),
    /// A point in time: the value of a TIMESTAMP column.
    Timestamp(Timestamp),
    Json(Json),
}

const _: () = assert!(size_of::<Value>() == 32);

impl Value {
    pub const TRUE: Value = Value::Int(1);
    pub const FALSE: Value = Value::Int(0);

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn text(text: impl AsRef<str>) -> Value {
        Value::Text(Text::new(text))
    }

    pub fn bytes(bytes: impl AsRef<[u8]>) -> Value {
        Value::Bytes(Bytes::new(bytes.as_ref()))
    }

    /// Takes the bytes over without a copy where they are long.
    pub fn from_bytes(bytes: Vec<u8>) -> Value {
        Value::Bytes(bytes.into())
    }

    /// The bytes of a string of characters or bytes.
    pub fn as_string_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// About how much memory it takes beside itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Json(json) => json.node().held_bytes(),
            other => other.as_string_bytes().map_or(0, |bytes| if bytes.len() > 22 { bytes.len() } else { 0 }),
        }
    }
}

/// The value in full, without a type's declared digits: floats by the shortest digits that read back, times with their microseconds, instants in UTC.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Int(number) => write!(f, "{number}"),
            Value::UInt(number) => write!(f, "{number}"),
            Value::Decimal(decimal) => write!(f, "{decimal}"),
            Value::Float(number) => f.write_str(&float::float_text(*number)),
            Value::Double(number) => f.write_str(&float::double_text(*number)),
            Value::Text(text) => f.write_str(text),
            Value::Bytes(bytes) => write!(f, "{bytes:?}"),
            Value::Date(date) => write!(f, "{date}"),
            Value::Time(time) => write!(f, "{time:.6}"),
            Value::DateTime(at) => write!(f, "{at:.6}"),
            Value::Timestamp(at) => write!(f, "{:.6}", Zone::utc().local(*at)),
            Value::Json(json) => write!(f, "{json}"),
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Int(i64::from(truth))
    }
}

/// The same variant and the same bits: for matching expressions and for tests, not SQL's `=`.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::UInt(a), Value::UInt(b)) => a == b,
            (Value::Decimal(a), Value::Decimal(b)) => a.scale() == b.scale() && a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Date(a), Value::Date(b)) => a == b,
            (Value::Time(a), Value::Time(b)) => a == b,
            (Value::DateTime(a), Value::DateTime(b)) => a == b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Json(a), Value::Json(b)) => a == b,
            _ => false,
        }
    }
}

/// Characters, in UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(SmolStr);

impl Text {
    pub fn new(text: impl AsRef<str>) -> Text {
        Text(SmolStr::new(text))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(SmolStr::from(text))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Bytes without characters.
#[derive(Clone)]
pub struct Bytes(Held);

#[derive(Clone)]
enum Held {
    Inline(u8, [u8; INLINE_MAX]),
    Shared(Arc<[u8]>),
    /// So many bytes of others, from there on: what is long stays where it came.
    Part(Arc<Vec<u8>>, u32, u32),
}

/// What is longer is not copied to be shared.
const LONG: usize = 64 << 10;

const INLINE_MAX: usize = 22;

impl Bytes {
    pub fn new(bytes: &[u8]) -> Bytes {
        if bytes.len() <= INLINE_MAX {
            let mut held = [0; INLINE_MAX];
            held[..bytes.len()].copy_from_slice(bytes);
            Bytes(Held::Inline(bytes.len() as u8, held))
        } else {
            Bytes(Held::Shared(bytes.into()))
        }
    }

    /// A part of bytes that several values are made of. They are there until the last of them is gone.
    pub fn part(of: &Arc<Vec<u8>>, from: usize, length: usize) -> Bytes {
        match (u32::try_from(from), u32::try_from(length)) {
            (Ok(start), Ok(count)) if length > LONG => Bytes(Held::Part(of.clone(), start, count)),
            _ => Bytes::new(&of[from..from + length]),
        }
    }
}

impl Bytes {
    /// The same of a stretch that lies in them.
    pub fn within(of: &Arc<Vec<u8>>, stretch: &[u8]) -> Bytes {
        let from = (stretch.as_ptr() as usize).wrapping_sub(of.as_ptr() as usize);
        let is_in = from.checked_add(stretch.len()).is_some_and(|to| to <= of.len());
        if is_in { Bytes::part(of, from, stretch.len()) } else { Bytes::new(stretch) }
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::new(&[])
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Inline(length, held) => &held[..usize::from(*length)],
            Held::Shared(shared) => shared,
            Held::Part(of, from, length) => &of[*from as usize..*from as usize + *length as usize],
        }
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes::new(bytes)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        if bytes.len() <= LONG {
            return Bytes::new(&bytes);
        }
        let length = bytes.len();
        Bytes::part(&Arc::new(bytes), 0, length)
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x")?;
        self.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}
