//! A set of keys of any size: the rows that a scan has returned, DISTINCT, the keys of a subquery.
//!
//! Keys stay in memory until it is short. Then they are sorted and written to a file as an immutable run, of which a
//! Bloom filter and the first key of each block stay in memory. So a spilled key takes two bytes of memory instead of a
//! hundred, and most lookups of new keys read no file.

use std::hash::{DefaultHasher, Hash, Hasher};

use datum::Result;
use stdx::hash::Set;

use super::{Run, Writer};
use sha2::{Digest, Sha256};

use crate::exec::host::host;
use crate::exec::memory::Held;
use crate::nodes::context::EvalContext;

/// The size of a block of a run.
const BLOCK: u64 = 4 << 10;
/// Bits of the filter for each key, and the number of bits set: one in a hundred absent keys passes.
const FILTER_BITS: usize = 10;
const FILTER_PROBES: u64 = 6;
/// The memory that a key takes besides its bytes.
const KEY_BYTES: usize = 64;

/// Longer keys are replaced by digests.
const SHORT: usize = 128;
/// A digest is longer than any key kept as it is, so the two cannot be confused.
const DIGEST_BYTES: usize = SHORT + 1;

/// Returns the key, or the digest of a long one, for sets in which order does not matter. SHA-256 prevents chosen
/// collisions.
pub fn short_key(key: Vec<u8>) -> Vec<u8> {
    if key.len() > SHORT { digest(&key).to_vec() } else { key }
}

fn digest(key: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut out = [0; DIGEST_BYTES];
    let hash = Sha256::digest(key);
    out[..hash.len()].copy_from_slice(&hash);
    out
}

#[derive(Default)]
pub struct Keys {
    /// Keys that are in no run.
    fresh: Set<Box<[u8]>>,
    held: Held,
    runs: Vec<Sorted>,
    /// The memory of the runs' filters and first keys.
    kept: Held,
    writer: Option<Writer>,
}

struct Sorted {
    filter: Vec<u64>,
    /// The first key of each block, and its part of the file.
    blocks: Vec<(Box<[u8]>, Run)>,
}

impl Keys {
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        if key.len() > SHORT { self.knows(&digest(key)) } else { self.knows(key) }
    }

    /// Looks up a key in its stored form.
    fn knows(&self, key: &[u8]) -> Result<bool> {
        if self.fresh.contains(key) {
            return Ok(true);
        }
        if self.runs.is_empty() {
            return Ok(false);
        }
        let hash = hash(key);
        for run in &self.runs {
            if run.may_have(hash) && run.has(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a key. Returns false if it was present.
    pub fn insert(&mut self, key: &[u8], ctx: &mut EvalContext) -> Result<bool> {
        let digest = (key.len() > SHORT).then(|| digest(key));
        let key = digest.as_ref().map_or(key, |digest| digest);
        if self.knows(key)? {
            return Ok(false);
        }
        self.add(key, ctx)
    }

    fn add(&mut self, key: &[u8], ctx: &mut EvalContext) -> Result<bool> {
        let bytes = key.len() + KEY_BYTES;
        if host(ctx).must_spill(&self.held, bytes) {
            self.write_out(ctx)?;
        }
        host(ctx).count(&mut self.held, bytes)?;
        self.fresh.insert(key.into());
        Ok(true)
    }

    fn write_out(&mut self, ctx: &mut EvalContext) -> Result<()> {
        let mut keys: Vec<Box<[u8]>> = std::mem::take(&mut self.fresh).into_iter().collect();
        keys.sort_unstable();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::new(&host(ctx).spill()?)?),
        };
        let mut run = Sorted { filter: vec![0; (keys.len() * FILTER_BITS).div_ceil(64)], blocks: Vec::new() };
        let mut kept = 8 * run.filter.len();
        let (mut from, mut first): (u64, Option<Box<[u8]>>) = (writer.position(), None);
        for (nth, key) in keys.into_iter().enumerate() {
            run.note(hash(&key));
            writer.put(&key)?;
            let first_key = first.get_or_insert(key);
            if writer.position() - from >= BLOCK {
                kept += first_key.len() + KEY_BYTES;
                run.blocks.extend(first.take().map(|first| (first, writer.since(from))));
                from = writer.position();
            }
            if nth.is_multiple_of(4096) {
                host(ctx).look_up()?;
            }
        }
        run.blocks.extend(first.take().map(|first| (first, writer.since(from))));
        writer.run(from)?;
        self.runs.push(run);
        self.held.clear();
        host(ctx).hold_first(&mut self.kept, kept)
    }
}

impl Sorted {
    fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let bits = self.filter.len() as u64 * 64;
        let (low, high) = (hash & 0xFFFF_FFFF, hash >> 32 | 1);
        (0..FILTER_PROBES).map(move |nth| {
            let bit = low.wrapping_add(nth.wrapping_mul(high)).wrapping_mul(0x9E37_79B9_7F4A_7C15) % bits;
            (bit as usize / 64, 1 << (bit % 64))
        })
    }

    fn note(&mut self, hash: u64) {
        for (at, bit) in self.places(hash) {
            self.filter[at] |= bit;
        }
    }

    fn may_have(&self, hash: u64) -> bool {
        self.places(hash).all(|(at, bit)| self.filter[at] & bit != 0)
    }

    fn has(&self, key: &[u8]) -> Result<bool> {
        let behind = self.blocks.partition_point(|(first, _)| &**first <= key);
        let Some((_, run)) = behind.checked_sub(1).and_then(|at| self.blocks.get(at)) else { return Ok(false) };
        let mut reader = run.read();
        while let Some(known) = reader.next()? {
            if known >= key {
                return Ok(known == key);
            }
        }
        Ok(false)
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
