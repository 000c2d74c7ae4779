//! One value, as it travels between rows, expressions and doors.
//!
//! Rows, keys and expressions hold values in stored form: members of an enumeration are numbers, instants are in UTC. A dialect converts to the shown form
//! at the outermost expression of a result, so nothing else has to know it. A short string is kept inside the value and a longer one is shared, so a
//! clone never copies more than 32 bytes and a value of every type fits in half a cache line.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::float;
use crate::storage::{Shape, Storage};
use crate::temporal::Zone;

pub use crate::decimal::Decimal;
pub use crate::json::Json;
pub use crate::temporal::{Date, DateTime, Span, Time, Timestamp};

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
    /// The reading of a wall clock.
    DateTime(DateTime),
    /// An instant.
    Timestamp(Timestamp),
    /// Months, days and microseconds.
    Interval(Span),
    Json(Json),
    Array(Array),
    Record(Record),
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

    /// Returns the bytes of a string of characters or bytes; `None` for other values.
    pub fn as_string_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns about how many bytes the value takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Json(json) => json.node().held_bytes(),
            Value::Decimal(decimal) => decimal.heap_bytes(),
            Value::Array(array) => array.heap_bytes(),
            Value::Record(record) => record.heap_bytes(),
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
            Value::Interval(span) => write!(f, "{span}"),
            Value::Json(json) => write!(f, "{json}"),
            Value::Array(array) => {
                f.write_str("{")?;
                for (at, value) in array.values().iter().enumerate() {
                    write!(f, "{}{value}", if at > 0 { "," } else { "" })?;
                }
                f.write_str("}")
            }
            Value::Record(record) => {
                f.write_str("(")?;
                for (at, value) in record.values().iter().enumerate() {
                    write!(f, "{}{value}", if at > 0 { "," } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Int(i64::from(truth))
    }
}

/// Identity: the same variant and the same bits. For matching expressions and for tests; the `=` of SQL belongs to the dialects.
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
            (Value::Interval(a), Value::Interval(b)) => a == b,
            (Value::Json(a), Value::Json(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Record(a), Value::Record(b)) => a == b,
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

/// Bytes without a character set. A clone shares them.
#[derive(Clone)]
pub struct Bytes(BytesRepr);

#[derive(Clone)]
enum BytesRepr {
    Inline(u8, [u8; INLINE_MAX]),
    Shared(Arc<[u8]>),
    /// A range of a larger buffer: offset and length. A long value stays in the buffer that it was read into.
    Part(Arc<Vec<u8>>, u32, u32),
}

/// Longer values become parts of a shared buffer; others are copied, so that a short value does not keep a large buffer alive.
const LONG: usize = 64 << 10;

/// As in `SmolStr`: a value with its tag fits in 24 bytes.
const INLINE_MAX: usize = 22;

impl Bytes {
    pub fn new(bytes: &[u8]) -> Bytes {
        if bytes.len() <= INLINE_MAX {
            let mut held = [0; INLINE_MAX];
            held[..bytes.len()].copy_from_slice(bytes);
            Bytes(BytesRepr::Inline(bytes.len() as u8, held))
        } else {
            Bytes(BytesRepr::Shared(bytes.into()))
        }
    }

    /// Returns a range of a buffer that several values share. The buffer is freed with the last of them. Panics where the range lies outside.
    pub fn part(of: &Arc<Vec<u8>>, from: usize, length: usize) -> Bytes {
        match (u32::try_from(from), u32::try_from(length)) {
            (Ok(start), Ok(count)) if length > LONG => Bytes(BytesRepr::Part(of.clone(), start, count)),
            _ => Bytes::new(&of[from..from + length]),
        }
    }

    /// Returns a slice of a shared buffer as a part of it, or a copy where the slice does not lie in the buffer.
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
            BytesRepr::Inline(length, held) => &held[..usize::from(*length)],
            BytesRepr::Shared(shared) => shared,
            BytesRepr::Part(of, from, length) => &of[*from as usize..*from as usize + *length as usize],
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

/// The most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 6;

/// One dimension: the number of its elements and the subscript of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    pub length: u32,
    pub lower: i32,
}

impl Dimension {
    /// Returns a dimension that begins at 1.
    pub fn of(length: usize) -> Dimension {
        Dimension { length: length as u32, lower: 1 }
    }

    /// Returns the subscript of the last element.
    pub fn upper(self) -> i32 {
        self.lower.wrapping_add(self.length as i32).wrapping_sub(1)
    }
}

/// Elements of one shape in up to six dimensions, in row-major order. An array knows the shape of its elements, so rows, spill files and keys need no other description of it. A clone shares the elements.
#[derive(Clone, Debug)]
pub struct Array(Arc<ArrayNode>);

#[derive(Debug)]
struct ArrayNode {
    element: Shape,
    /// None of an empty array.
    dimensions: Box<[Dimension]>,
    values: Box<[Value]>,
    /// Bytes on the heap.
    bytes: usize,
}

impl Array {
    /// Returns an array of these dimensions. Panics where they hold another number of elements.
    pub fn new(element: Shape, dimensions: &[Dimension], values: Vec<Value>) -> Array {
        let count = dimensions.iter().map(|dimension| dimension.length as usize).product::<usize>();
        let dimensions = if values.is_empty() { &[] } else { dimensions };
        assert!(dimensions.len() <= DIMENSIONS_MAX);
        assert!(count == values.len() || values.is_empty());
        assert!(values.is_empty() || !dimensions.is_empty());
        let behind: usize = values.iter().map(Value::heap_bytes).sum();
        let bytes = size_of::<ArrayNode>() + size_of_val(dimensions) + size_of_val(&values[..]) + behind;
        Array(Arc::new(ArrayNode { element, dimensions: dimensions.into(), values: values.into(), bytes }))
    }

    pub fn empty(element: Shape) -> Array {
        Array::new(element, &[], Vec::new())
    }

    /// Returns an array of one dimension that begins at 1.
    pub fn list(element: Shape, values: Vec<Value>) -> Array {
        let length = Dimension::of(values.len());
        Array::new(element, &[length], values)
    }

    /// Returns the storage type and the collation of the elements.
    pub fn element(&self) -> Shape {
        self.0.element
    }

    pub fn dimensions(&self) -> &[Dimension] {
        &self.0.dimensions
    }

    /// Returns the elements, those of the last dimension beside each other.
    pub fn values(&self) -> &[Value] {
        &self.0.values
    }

    pub fn is_empty(&self) -> bool {
        self.0.values.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.values.len()
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.bytes
    }
}

/// Identity: dimensions and elements, as `Value`'s.
impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.element() == other.element()
                && self.dimensions() == other.dimensions()
                && self.values() == other.values())
    }
}

/// The fields of a record: their names and types, and the number of the type that they make up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordType {
    /// The dialect's number of the type.
    pub number: u32,
    pub fields: Box<[RecordField]>,
}

/// One field, with the number and the modifier of its type as its dialect has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordField {
    pub name: Box<str>,
    pub number: u32,
    pub length: u32,
    pub shape: Shape,
    /// The fields of a record that is the field's value, or an element of it, where a statement knows them.
    pub record: Option<Arc<RecordType>>,
}

/// Records within each other; deeper ones are not made.
pub const RECORD_DEPTH_MAX: u16 = 100;

/// A row as one value. It knows its fields, so rows, spill files and keys need no other description of it. A clone shares them.
#[derive(Clone, Debug)]
pub struct Record(Arc<RecordNode>);

#[derive(Debug)]
struct RecordNode {
    ty: Arc<RecordType>,
    values: Box<[Value]>,
    /// The levels of records, this one included.
    depth: u16,
    /// Bytes on the heap.
    bytes: usize,
}

impl Record {
    /// Returns a record of these fields; `None` if records within it nest too deep. Panics where there is not one value for each field.
    pub fn new(ty: Arc<RecordType>, values: Vec<Value>) -> Option<Record> {
        assert_eq!(ty.fields.len(), values.len());
        let depth = 1 + values.iter().map(Value::record_depth).max().unwrap_or(0);
        if depth > RECORD_DEPTH_MAX {
            return None;
        }
        let behind: usize = values.iter().map(Value::heap_bytes).sum();
        let bytes = size_of::<RecordNode>() + size_of_val(&values[..]) + behind;
        Some(Record(Arc::new(RecordNode { ty, values: values.into(), depth, bytes })))
    }

    pub fn ty(&self) -> &Arc<RecordType> {
        &self.0.ty
    }

    pub fn values(&self) -> &[Value] {
        &self.0.values
    }

    /// Returns the fields with their values.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&RecordField, &Value)> {
        self.0.ty.fields.iter().zip(&self.0.values)
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.bytes
    }
}

/// Identity: fields and values, as `Value`'s.
impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.ty() == other.ty() && self.values() == other.values())
    }
}

impl Value {
    /// The levels of records in the value.
    fn record_depth(&self) -> u16 {
        match self {
            Value::Record(record) => record.0.depth,
            // An array's elements are of one shape.
            Value::Array(array) if array.element().storage == Storage::Record => {
                array.values().iter().map(Value::record_depth).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
}
