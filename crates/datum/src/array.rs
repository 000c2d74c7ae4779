//! Array values: elements of one shape in up to six dimensions, in row-major order.
//!
//! An array knows the shape of its elements, so rows, spill files and keys need no other description of it. A clone shares the elements.
//!
//! ```text
//!   stored: storage type (1), collation (2), dimensions (1), of each its length (4) and lower bound (4),
//!           a bit for each element that is NULL, then the others: fixed ones by width, others behind their length (4)
//! ```

use std::sync::Arc;

use crate::collation::Collation;
use crate::fault::{Fault, Result};
use crate::row;
use crate::storage::{Shape, Storage};
use crate::value::Value;

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

#[derive(Clone, Debug)]
pub struct Array(Arc<Node>);

#[derive(Debug)]
struct Node {
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
        let bytes = size_of::<Node>() + size_of_val(dimensions) + size_of_val(&values[..]) + behind;
        Array(Arc::new(Node { element, dimensions: dimensions.into(), values: values.into(), bytes }))
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

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        out.push(self.element().storage.code());
        out.extend_from_slice(&self.element().collation.code().to_le_bytes());
        out.push(self.dimensions().len() as u8);
        for Dimension { length, lower } in self.dimensions() {
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&lower.to_le_bytes());
        }
        let nulls = out.len();
        out.resize(nulls + self.len().div_ceil(8), 0);
        for (at, value) in self.values().iter().enumerate() {
            if value.is_null() {
                out[nulls + at / 8] |= 1 << (at % 8);
                continue;
            }
            match self.element().storage.fixed_width() {
                Some(width) => {
                    let from = out.len();
                    out.resize(from + width, 0);
                    row::put_fixed(value, &mut out[from..])?;
                }
                None => {
                    let from = out.len();
                    out.extend_from_slice(&[0; 4]);
                    row::append(value, out)?;
                    let length = (out.len() - from - 4) as u32;
                    out[from..from + 4].copy_from_slice(&length.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    /// Returns the array whose stored form the bytes are. `Fault::Corrupt` for others.
    pub fn decode(bytes: &[u8]) -> Result<Array> {
        Array::read(bytes).ok_or_else(|| Fault::corrupt("the bytes of an array"))
    }

    fn read(mut bytes: &[u8]) -> Option<Array> {
        let rest = &mut bytes;
        let [storage, low, high, count] = take(rest)?;
        let storage = Storage::of_code(storage)?;
        let element = Shape { storage, collation: Collation::of_code(u16::from_le_bytes([low, high]))? };
        if usize::from(count) > DIMENSIONS_MAX || storage == Storage::Array {
            return None;
        }
        let mut dimensions = Vec::with_capacity(count.into());
        let mut total = usize::from(count > 0);
        for _ in 0..count {
            let (length, lower) = (u32::from_le_bytes(take(rest)?), i32::from_le_bytes(take(rest)?));
            total = total.checked_mul(length as usize)?;
            dimensions.push(Dimension { length, lower });
        }
        let nulls = stretch(rest, total.div_ceil(8))?;
        let mut values = Vec::with_capacity(total);
        for at in 0..total {
            if nulls[at / 8] & 1 << (at % 8) != 0 {
                values.push(Value::Null);
                continue;
            }
            let width = match storage.fixed_width() {
                Some(width) => width,
                None => u32::from_le_bytes(take(rest)?) as usize,
            };
            values.push(row::element(stretch(rest, width)?, storage).ok()?);
        }
        (rest.is_empty() && values.is_empty() == dimensions.is_empty())
            .then(|| Array::new(element, &dimensions, values))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn stretch<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{decode_value, encode_value};

    const INT: Shape = Shape { storage: Storage::Int { bytes: 4, signed: true }, collation: Collation::Binary };

    fn arrays() -> Vec<Array> {
        let text = Shape::from(Storage::Text);
        let lines = [Dimension { length: 2, lower: -1 }, Dimension::of(3)];
        vec![
            Array::empty(INT),
            Array::list(INT, vec![Value::Int(1), Value::Null, Value::Int(-7)]),
            Array::new(INT, &lines, (0..6).map(Value::Int).collect()),
            Array::list(text, vec![Value::text(""), Value::text("a".repeat(70_000)), Value::Null]),
        ]
    }

    #[test]
    fn an_array_comes_back_from_its_stored_form() {
        for array in arrays() {
            let value = Value::Array(array);
            let mut bytes = Vec::new();
            encode_value(&value, Storage::Array, &mut bytes).expect("it fits");
            assert_eq!(decode_value(&bytes, Storage::Array).expect("it parses"), value);
        }
    }

    /// DA-5.
    #[test]
    fn damaged_bytes_of_an_array_are_refused() {
        for array in arrays() {
            let mut bytes = Vec::new();
            array.encode(&mut bytes).expect("it fits");
            for end in 0..bytes.len().min(64) {
                assert!(Array::decode(&bytes[..end]).is_err());
            }
            for at in 0..bytes.len().min(64) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0xFF;
                let _ = Array::decode(&damaged);
            }
        }
    }
}
