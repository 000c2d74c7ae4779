//! The form of a key's columns in a map: as they are, or shortened (QU-27, QU-28). `key` has the whole story.

use std::ops::Bound;

use sha2::{Digest, Sha256};

/// How long columns stand in a key. Each key of a table has its form, in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// As they are, of whatever length: keys that were made before format 5 of definitions. An entry that the engine cannot hold is an error.
    Whole,
    /// Shortened beyond `WHOLE_MAX` bytes.
    Hashed,
}

/// The columns of a key are whole up to here. Of longer ones so many bytes are kept, and stand in their order.
pub const WHOLE_MAX: usize = 352;
const HASH_BYTES: usize = 32;
/// The length of shortened columns.
pub const SHORTENED: usize = WHOLE_MAX + HASH_BYTES;

const _: () = assert!(SHORTENED > WHOLE_MAX, "QU-28: the length tells shortened columns from whole ones");
const _: () =
    assert!(2 * SHORTENED <= engine::rows::ROW_KEY_MAX, "columns and a row's key, both shortened, are an entry");

impl KeyForm {
    /// The number in the catalog.
    pub fn code(self) -> u8 {
        match self {
            KeyForm::Whole => 0,
            KeyForm::Hashed => 1,
        }
    }

    pub fn of_code(code: u8) -> Option<KeyForm> {
        [KeyForm::Whole, KeyForm::Hashed].into_iter().find(|form| form.code() == code)
    }

    /// Turns the encoded columns of a key, all of them, into what stands in the map.
    pub fn shorten(self, columns: &mut Vec<u8>) {
        if self == KeyForm::Hashed && columns.len() > WHOLE_MAX {
            let hash = Sha256::digest(&columns[..]);
            columns.truncate(WHOLE_MAX);
            columns.extend_from_slice(&hash);
            assert!(columns.len() == SHORTENED);
        }
    }

    /// Returns whether columns that stand in a map in so many bytes are shortened.
    pub fn is_shortened(self, length: usize) -> bool {
        self == KeyForm::Hashed && length == SHORTENED
    }

    /// Returns how many of the first bytes of encoded columns compare in the map as they do among whole columns (QU-27).
    pub fn ordered_bytes(self) -> usize {
        match self {
            KeyForm::Whole => usize::MAX,
            KeyForm::Hashed => WHOLE_MAX,
        }
    }
}

/// The keys that begin with these bytes end before this.
pub fn after(prefix: &[u8]) -> Bound<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}
