//! WAL records of the engine that change no page: transaction ends and key counts. Records of single changes are the trees' own (`btree::redo`).

/// Kinds of the engine's WAL records. docs/formats/log.md has the table.
pub(crate) mod kind {
    /// A transaction is committed. Body: number of keyspaces u64, then for each the keyspace u64, keys i64, expiries i64.
    pub const COMMIT: u8 = 0x20;
    /// A transaction has been undone.
    pub const ABORT: u8 = 0x21;
    /// Counting of keys begins: see `keyspace/counts.rs`.
    pub const MARK: u8 = 0x22;
    /// The key counts at a mark. Body: the mark's LSN u64, then as in COMMIT.
    pub const COUNTS: u8 = 0x23;
}

/// The changes of key counts by a transaction: (keyspace, keys, expiries).
pub(crate) type Deltas = Vec<(u32, i64, i64)>;

/// Numbers of keys and of expiry entries of a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub keys: i64,
    pub expiries: i64,
}

pub(crate) fn encode_deltas(deltas: &[(u32, i64, i64)], out: &mut Vec<u8>) {
    out.extend_from_slice(&(deltas.len() as u64).to_le_bytes());
    for (space, keys, expiries) in deltas {
        out.extend_from_slice(&u64::from(*space).to_le_bytes());
        out.extend_from_slice(&keys.to_le_bytes());
        out.extend_from_slice(&expiries.to_le_bytes());
    }
}

pub(crate) fn decode_deltas(bytes: &[u8]) -> Option<Deltas> {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    let (count, words) = words.split_first()?;
    if words.len() as u64 != count.checked_mul(3)? || !bytes.len().is_multiple_of(8) {
        return None;
    }
    words.chunks_exact(3).map(|word| Some((u32::try_from(word[0]).ok()?, word[1] as i64, word[2] as i64))).collect()
}
