//! Bytes of a row's record: a head of eight bytes (creator, delete mark, long), then the value.

use pager::TxnId;

use crate::error::{Error, Result};

pub(crate) const HEAD_BYTES: usize = 8;

const GHOST: u64 = 1 << 63;

const LONG: u64 = 1 << 62;

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
    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        (self.creator | flag(self.is_delete_marked, GHOST) | flag(self.is_long, LONG)).to_le_bytes()
    }

    pub fn parse(record: &[u8]) -> Result<(RowHead, &[u8])> {
        let (head, value) =
            record.split_first_chunk::<HEAD_BYTES>().ok_or_else(|| Error::corrupt("a row without a head"))?;
        let word = u64::from_le_bytes(*head);
        let head =
            RowHead { creator: word & !(GHOST | LONG), is_delete_marked: word & GHOST != 0, is_long: word & LONG != 0 };
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
