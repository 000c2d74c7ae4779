//! Entries of the purge queue (tree 4): what no record refers to any more and the background thread removes (`keyspace/purge`).
//!
//! ```text
//!   1 | transaction id u64 BE | part u32 BE   ->   transaction id u64 | runs: first page u64, pages u32      pages, free once the transaction is committed
//!   2 | version id u64 BE                     ->   transaction id u64, or 0 while the elements are written   elements to be removed
//!   3 | map u32 BE                            ->   transaction id u64 | root page u64                        a tree to be removed
//!   4 | first tree key                        ->   transaction id u64 | tree key behind the last             elements of a version id that stays
//! ```
//! An entry is written by the transaction that makes its content garbage, so it exists if and only if the garbage does (EN-8).

use btree::TreeId;
use pager::{PageId, Run, TxnId};

use crate::error::{Error, Result};
use crate::store::trees::MapId;

const PAGES: u8 = 1;
const VERSION: u8 = 2;
/// First byte of an entry for a dropped map of rows.
pub(crate) const MAP_GARBAGE: u8 = 3;
const RANGE: u8 = 4;
const RUN_BYTES: usize = 12;

/// Maximum number of runs in one entry.
pub(crate) const QUEUED_RUNS_MAX: usize = 96;
const _: () = assert!(8 + QUEUED_RUNS_MAX * RUN_BYTES <= btree::Tree::VALUE_MAX);

pub(crate) fn queue_key_of_pages(txn: TxnId, part: u32) -> [u8; 13] {
    let mut key = [PAGES; 13];
    key[1..9].copy_from_slice(&txn.to_be_bytes());
    key[9..].copy_from_slice(&part.to_be_bytes());
    key
}

pub(crate) fn encode_queued_pages(txn: TxnId, runs: &[Run]) -> Vec<u8> {
    let mut value = txn.to_le_bytes().to_vec();
    for run in runs {
        value.extend_from_slice(&run.first.to_le_bytes());
        value.extend_from_slice(&run.pages.to_le_bytes());
    }
    value
}

pub(crate) fn version_key(version: u64) -> [u8; 9] {
    let mut key = [VERSION; 9];
    key[1..].copy_from_slice(&version.to_be_bytes());
    key
}

pub(crate) fn is_version_key(key: &[u8]) -> bool {
    key.first() == Some(&VERSION)
}

pub(crate) fn encode_version(txn: TxnId) -> [u8; 8] {
    txn.to_le_bytes()
}

/// Returns key and value of the entry for a dropped map.
pub(crate) fn queued_map(map: MapId, root: PageId, txn: TxnId) -> ([u8; 5], [u8; 16]) {
    let (mut key, mut value) = ([MAP_GARBAGE; 5], [0; 16]);
    key[1..].copy_from_slice(&map.to_be_bytes());
    value[..8].copy_from_slice(&txn.to_le_bytes());
    value[8..].copy_from_slice(&root.to_le_bytes());
    (key, value)
}

pub(crate) fn range_key(from: &[u8]) -> Vec<u8> {
    [&[RANGE], from].concat()
}

pub(crate) fn range_value(txn: TxnId, to: &[u8]) -> Vec<u8> {
    [&txn.to_le_bytes(), to].concat()
}

/// A parsed entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    Pages { txn: TxnId, runs: Vec<Run> },
    Version { txn: TxnId, version: u64 },
    Map { txn: TxnId, map: TreeId, root: PageId },
    Range { txn: TxnId, from: Vec<u8>, to: Vec<u8> },
}

impl Queued {
    pub fn parse(key: &[u8], value: &[u8]) -> Result<Queued> {
        Self::try_parse(key, value)
            .ok_or_else(|| Error::corrupt(format!("entry of unknown form in the purge queue: {key:02x?}")))
    }

    fn try_parse(key: &[u8], value: &[u8]) -> Option<Queued> {
        let (txn, rest) = value.split_first_chunk::<8>()?;
        let txn = u64::from_le_bytes(*txn);
        match *key.first()? {
            PAGES if rest.len().is_multiple_of(RUN_BYTES) => {
                let run = |bytes: &[u8]| Run {
                    first: u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
                    pages: u32::from_le_bytes(bytes[8..].try_into().expect("four bytes")),
                };
                Some(Queued::Pages { txn, runs: rest.chunks_exact(RUN_BYTES).map(run).collect() })
            }
            VERSION if rest.is_empty() => {
                Some(Queued::Version { txn, version: u64::from_be_bytes(key[1..].try_into().ok()?) })
            }
            MAP_GARBAGE => Some(Queued::Map {
                txn,
                map: TreeId::from_be_bytes(key[1..].try_into().ok()?),
                root: PageId::from_le_bytes(rest.try_into().ok()?),
            }),
            RANGE => Some(Queued::Range { txn, from: key[1..].to_vec(), to: rest.to_vec() }),
            _ => None,
        }
    }

    pub fn txn(&self) -> TxnId {
        match self {
            Queued::Pages { txn, .. }
            | Queued::Version { txn, .. }
            | Queued::Map { txn, .. }
            | Queued::Range { txn, .. } => *txn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_parse_as_they_were_encoded() {
        let runs = vec![Run { first: 7, pages: 64 }, Run { first: 1 << 40, pages: 1 }];
        let value = encode_queued_pages(5, &runs);
        assert_eq!(Queued::parse(&queue_key_of_pages(5, 0), &value).unwrap(), Queued::Pages { txn: 5, runs });
        let parsed = Queued::parse(&version_key(9), &encode_version(3)).unwrap();
        assert_eq!(parsed, Queued::Version { txn: 3, version: 9 });
        let range = Queued::Range { txn: 3, from: vec![1, 2], to: vec![1, 3] };
        assert_eq!(Queued::parse(&range_key(&[1, 2]), &range_value(3, &[1, 3])).unwrap(), range);
        assert!(Queued::parse(&[3], &[0; 8]).is_err() && Queued::parse(&version_key(9), &[0; 9]).is_err());
    }
}
