//! Values of `Storage::Keyed`: bytes that begin with their own key.
//!
//! A type whose equal values can differ in what they show (a range of 1.0 to 2 and one of 1.00 to 2) keeps the bytes that order it first, and behind them whatever else its values have. Rows, batches and spill
//! files treat the whole as bytes; keys, hashes and comparisons take the first part alone. The length of the key is before it, in one byte up to 254 and else in five.

use std::cmp::Ordering;

use crate::value::Value;

/// Before a length of four bytes.
const LONG: u8 = 255;

/// Returns the value of a key and what follows it.
pub fn value(key: &[u8], rest: &[u8]) -> Value {
    let mut bytes = Vec::with_capacity(5 + key.len() + rest.len());
    match u8::try_from(key.len()) {
        Ok(length) if length != LONG => bytes.push(length),
        _ => {
            bytes.push(LONG);
            bytes.extend_from_slice(&(key.len() as u32).to_be_bytes());
        }
    }
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(rest);
    Value::from_bytes(bytes)
}

/// Returns the key and what follows it. Of the beginning of a value the key is what there is of it.
pub fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (length, behind) = match bytes {
        [] => return (bytes, bytes),
        [LONG, rest @ ..] => match rest.split_first_chunk::<4>() {
            Some((length, behind)) => (u32::from_be_bytes(*length) as usize, behind),
            None => return (&[], &[]),
        },
        [length, rest @ ..] => (usize::from(*length), rest),
    };
    behind.split_at_checked(length).unwrap_or((behind, &[]))
}

/// Compares two values by their keys.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    parts(a).0.cmp(parts(b).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{self, KeyOrder};
    use crate::storage::Storage;

    /// DA-7
    #[test]
    fn values_of_one_key_are_equal_whatever_follows_it() {
        for length in [0, 1, 254, 255, 256, 70_000] {
            let key = vec![7; length];
            let (one, other) = (value(&key, b"1.0"), value(&key, b"1.00"));
            let bytes = one.as_string_bytes().unwrap();
            assert_eq!(parts(bytes), (&key[..], &b"1.0"[..]));
            assert!(compare(bytes, other.as_string_bytes().unwrap()).is_eq());
            let encoded = |value: &Value| {
                let mut out = Vec::new();
                key::encode(value, Storage::Keyed.into(), KeyOrder::ASCENDING, &mut out);
                out
            };
            assert_eq!(encoded(&one), encoded(&other));
            assert!(encoded(&one) < encoded(&value(&[key, vec![0]].concat(), b"")));
            let whole = encoded(&one);
            assert_eq!(key::length(&whole, Storage::Keyed.into(), KeyOrder::ASCENDING), Some(whole.len()));
        }
    }

    #[test]
    fn the_beginning_of_a_value_has_the_beginning_of_its_key() {
        let whole = value(&[3; 300], b"rest");
        let bytes = whole.as_string_bytes().unwrap();
        for end in 0..bytes.len() {
            let (key, _) = parts(&bytes[..end]);
            assert!([3; 300].starts_with(key));
        }
    }
}
