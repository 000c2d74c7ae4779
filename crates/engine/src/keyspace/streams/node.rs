//! Where a stream's nodes end, as in Redis: `XTRIM ~` removes whole nodes, so their sizes decide what remains.
//!
//! Redis keeps the entries of a node in a listpack and begins a new node when the old one has `stream-node-max-entries` entries or would exceed
//! `stream-node-max-bytes`. `Node` counts the bytes that the listpack would have. The records of a stream (`chunk`) are smaller than nodes and hold other bytes.

use crate::keyspace::packed::integer;
use crate::keyspace::streams::stream_id::StreamId;

/// A field of an entry and its value.
pub type StreamField<'a> = (&'a [u8], &'a [u8]);

/// When a node is full. Zero is no limit.
#[derive(Clone, Copy, Debug)]
pub struct NodeLimits {
    pub entries: u64,
    pub bytes: u64,
}

/// Redis' limit of a listpack, and so of one entry.
pub const NODE_BYTES_MAX: u64 = 1 << 30;

/// Header and end mark of a listpack.
const LISTPACK_BYTES: u64 = 7;

/// A node so far. All its entries count, the deleted ones too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Node {
    /// Number of entries; 0: there is no node.
    pub total: u32,
    /// Bytes of the listpack, if both of its counters take one byte.
    pub bytes: u32,
    /// Digest of the first entry's field names, which the listpack does not repeat.
    pub names: u64,
    /// Ids of its first and of its last entry.
    pub first: StreamId,
    pub last: StreamId,
}

impl Node {
    pub fn begin(id: StreamId, fields: &[StreamField<'_>]) -> Node {
        // Two counters, the number of fields, their names, and an end mark.
        let names: u64 = fields.iter().map(|(name, _)| text_len(name)).sum();
        let bytes = LISTPACK_BYTES + 2 * number_len(0) + number_len(fields.len() as i64) + names + number_len(0);
        let mut node = Node { total: 0, bytes: clamp(bytes), names: digest(fields), first: id, last: id };
        node.append(id, fields);
        node
    }

    /// Returns true if an entry with these fields goes into the node.
    pub fn accepts(&self, fields: &[StreamField<'_>], limits: NodeLimits) -> bool {
        let added: u64 = fields.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
        let bytes_max = if limits.bytes == 0 { NODE_BYTES_MAX } else { limits.bytes.min(NODE_BYTES_MAX) };
        // The counter of deleted entries takes another byte only in a node of more than 127 entries, which is not followed here.
        let bytes = u64::from(self.bytes) + number_len(i64::from(self.total)) - number_len(0);
        self.total > 0
            && bytes.saturating_add(added) < bytes_max
            && (limits.entries == 0 || u64::from(self.total) < limits.entries)
            && self.total < u32::MAX
    }

    pub fn append(&mut self, id: StreamId, fields: &[StreamField<'_>]) {
        let count = fields.len() as i64;
        let has_same_names = digest(fields) == self.names;
        let delta = |to: u64, from: u64| number_len(to.wrapping_sub(from) as i64);
        let mut bytes = number_len(0) + delta(id.ms, self.first.ms) + delta(id.seq, self.first.seq);
        bytes += fields.iter().map(|(_, value)| text_len(value)).sum::<u64>();
        let mut parts = count + 3;
        if !has_same_names {
            bytes += number_len(count) + fields.iter().map(|(name, _)| text_len(name)).sum::<u64>();
            parts += count + 1;
        }
        self.bytes = clamp(u64::from(self.bytes) + bytes + number_len(parts));
        self.total += 1;
        self.last = id;
    }
}

fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// FNV-1a over the names and their lengths. It is stored; two sets of names that collide would only make the count of bytes wrong.
fn digest(fields: &[StreamField<'_>]) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    fields.iter().fold(0xcbf2_9ce4_8422_2325, |hash, (name, _)| {
        let hash = (name.len() as u32).to_le_bytes().into_iter().fold(hash, fold);
        name.iter().copied().fold(hash, fold)
    })
}

/// Returns the bytes of a number in a listpack, with the length behind it.
fn number_len(number: i64) -> u64 {
    1 + match number {
        0..=127 => 1,
        -4096..=4095 => 2,
        -0x8000..=0x7fff => 3,
        -0x80_0000..=0x7f_ffff => 4,
        -0x8000_0000..=0x7fff_ffff => 5,
        _ => 9,
    }
}

/// Returns the bytes of a text in a listpack, with the length behind it. A text that is a number is stored as one.
fn text_len(text: &[u8]) -> u64 {
    if let Some(number) = integer(text) {
        return number_len(number);
    }
    let len = text.len() as u64;
    let len = len
        + match len {
            0..64 => 1,
            64..4096 => 2,
            _ => 5,
        };
    len + match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}
