//! Bytes of a row's record: a head of eight bytes (creator and flags), then the value. That of a delete-marked record is empty, or the key
//! under which the row goes on (EN-57).

use pager::TxnId;

use crate::error::{Error, Result};
use crate::rows::lock_table::Strength;

pub(crate) const HEAD_BYTES: usize = 8;

const GHOST: u64 = 1 << 63;

const LONG: u64 = 1 << 62;

const NEW_ROW: u64 = 1 << 61;

const KEEPS_KEY: u64 = 1 << 60;

const FLAGS: u64 = GHOST | LONG | NEW_ROW | KEEPS_KEY;

/// Bytes of a long value's reference: its length and the version id of its segments, both u64.
pub(crate) const LONG_BYTES: usize = 16;

/// The head of a row's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowHead {
    pub creator: TxnId,
    /// The row has been deleted. Its record is removed when no snapshot can see it any more.
    pub is_delete_marked: bool,
    /// The value is in segments.
    pub is_long: bool,
    /// The row was inserted where a delete-marked record was: older versions under its key are of another row (EN-57).
    pub is_new_row: bool,
    /// The creator has changed a row that others see, without its key: key-shared locks pass while the creator is open (EN-58).
    pub keeps_key: bool,
}

/// The value of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowValue<'r> {
    Inline(&'r [u8]),
    Segments { len: u64, version: u64 },
}

impl<'r> RowValue<'r> {
    pub fn parse(record: &'r [u8]) -> Result<(RowHead, RowValue<'r>)> {
        let (head, value) = RowHead::parse(record)?;
        if !head.is_long {
            return Ok((head, RowValue::Inline(value)));
        }
        let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().expect("eight bytes"));
        if value.len() != LONG_BYTES {
            return Err(Error::corrupt("a row refers to its value in an unknown form"));
        }
        Ok((head, RowValue::Segments { len: word(0), version: word(8) }))
    }
}

impl RowHead {
    /// Returns the strength of the lock that the creator has by its change, while it is open.
    pub fn strength(self) -> Strength {
        if self.keeps_key { Strength::NoKeyExclusive } else { Strength::Exclusive }
    }

    /// Returns true if older versions under the key are of another row than newer ones: the record deletes its row, or begins a new one (EN-57).
    pub fn ends_row(self) -> bool {
        self.is_delete_marked || self.is_new_row
    }

    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        let flags = flag(self.is_delete_marked, GHOST) | flag(self.is_long, LONG);
        let flags = flags | flag(self.is_new_row, NEW_ROW) | flag(self.keeps_key, KEEPS_KEY);
        (self.creator | flags).to_le_bytes()
    }

    pub fn parse(record: &[u8]) -> Result<(RowHead, &[u8])> {
        let (head, value) =
            record.split_first_chunk::<HEAD_BYTES>().ok_or_else(|| Error::corrupt("a row without a head"))?;
        let word = u64::from_le_bytes(*head);
        let head = RowHead {
            creator: word & !FLAGS,
            is_delete_marked: word & GHOST != 0,
            is_long: word & LONG != 0,
            is_new_row: word & NEW_ROW != 0,
            keeps_key: word & KEEPS_KEY != 0,
        };
        Ok((head, value))
    }
}

/// A summary of a record for `Engine::check` and purge.
pub(crate) struct RowSummary {
    pub is_delete_marked: bool,
    pub creator: TxnId,
    /// Version id and length of a value in segments.
    pub segments: Option<(u64, u64)>,
}

pub(crate) fn summarize(record: &[u8]) -> Result<RowSummary> {
    let (head, value) = RowValue::parse(record)?;
    let segments = match value {
        RowValue::Segments { len, version } => Some((version, len)),
        RowValue::Inline(_) => None,
    };
    Ok(RowSummary { is_delete_marked: head.is_delete_marked, creator: head.creator, segments })
}
