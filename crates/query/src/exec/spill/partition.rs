//! Partitioning of rows by the hash of a key, so that each partition can be processed in less memory.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::{Reader, Run, Spill, Writer, decode_row, encode_row};
use datum::{Fault, Result};

use crate::batch::Row;
use crate::value::Value;

/// The number of partitions.
const PARTS: usize = 16;
/// The depth at which the rest has a single key, or one that hashing does not divide.
pub const LEVELS: u32 = 6;

/// Partitions that are being written.
pub struct Partitions {
    writers: Vec<Writer>,
    level: u32,
}

/// The rows of one partition, with their keys.
pub struct Part {
    pub run: Run,
    /// The depth of partitioning.
    pub level: u32,
}

pub struct Rows(Reader);

impl Partitions {
    pub fn new(spill: &Arc<Spill>, level: u32) -> Result<Partitions> {
        let writers = (0..PARTS).map(|_| Writer::new(spill)).collect::<Result<_>>()?;
        Ok(Partitions { writers, level })
    }

    pub fn put(&mut self, key: &[u8], row: &[Value]) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        (self.level, key).hash(&mut hasher);
        self.writers[hasher.finish() as usize % PARTS].put_with(|out| {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
            encode_row(row, out);
        })
    }

    /// Returns the partitions in the order of the hash, including empty ones.
    pub fn finish(self) -> Result<Vec<Part>> {
        let level = self.level + 1;
        self.writers.into_iter().map(|mut writer| Ok(Part { run: writer.run(0)?, level })).collect()
    }
}

impl Part {
    pub fn rows(&self) -> Rows {
        Rows(self.run.read())
    }

    /// Partitions the rows again.
    pub fn parted(&self, spill: &Arc<Spill>) -> Result<Vec<Part>> {
        let mut parts = Partitions::new(spill, self.level)?;
        let mut rows = self.rows();
        while let Some((key, row)) = rows.next()? {
            parts.put(&key, &row)?;
        }
        parts.finish()
    }
}

impl Rows {
    pub(crate) fn next(&mut self) -> Result<Option<(Vec<u8>, Row)>> {
        let Some(record) = self.0.next()? else { return Ok(None) };
        let (key, mut row) = key_and_rest(record)?;
        Ok(Some((key.to_vec(), decode_row(&mut row)?)))
    }
}

/// Splits a record into its key and the rest.
pub fn key_and_rest(record: &[u8]) -> Result<(&[u8], &[u8])> {
    let damaged = || Fault::corrupt("a key in a temporary file");
    let (length, rest) = record.split_first_chunk::<4>().ok_or_else(damaged)?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)
}
