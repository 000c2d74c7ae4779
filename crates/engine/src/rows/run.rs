//! Undo runs: steps written to a file without a name, sorted by row, in blocks.
//!
//! ```text
//!   block, 32 KiB    bytes used u32 | entries          entry    map u32 | step u32 | creator u64 | flags u8 | key length u16 | image length u16 | key | image
//! ```
//! A run holds a stretch of one transaction's steps, or what many committed transactions have replaced (`spill`). Rollback reads it whole. A lookup of an old
//! version finds the block by its first row, and mostly does not read it: a Bloom filter knows which rows have no version of that transaction here. The file
//! goes with the last reference to it, and with the process: after a crash the WAL has all of it (EN-27).

use std::cell::RefCell;
use std::sync::Arc;

use os::{Aligned, Device};
use pager::TxnId;
use std::sync::atomic::{AtomicU64, Ordering};
use stdx::hash::Seed;
use stdx::sync::RwLock;

use crate::error::{Error, Result};
use crate::store::trees::MapId;

const BLOCK: usize = 32 << 10;
const BLOCK_HEAD: usize = 4;
const ENTRY_HEAD: usize = 21;
const _: () = assert!(BLOCK_HEAD + ENTRY_HEAD + btree::Tree::KEY_MAX + btree::Tree::VALUE_MAX <= BLOCK);

const HAS_IMAGE: u8 = 1;
const IS_VERSION: u8 = 2;
const DELETES: u8 = 4;

/// Bits of the filter for each version, and how many of them a version sets: one lookup in eighty reads a block in vain.
const FILTER_BITS: usize = 10;
const FILTER_PROBES: u64 = 4;

/// A change that can be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndoStep {
    pub map: MapId,
    pub key: Box<[u8]>,
    /// The record before the change, with its head.
    pub before: Option<Box<[u8]>>,
    /// The record before the change is a version that others may see: the transaction had not changed the row before.
    pub is_version: bool,
    /// The change deletes the row.
    pub deletes: bool,
}

/// A step that is elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRef<'s> {
    pub map: MapId,
    pub key: &'s [u8],
    pub before: Option<&'s [u8]>,
    pub is_version: bool,
    pub deletes: bool,
}

impl StepRef<'_> {
    pub fn to_step(self) -> UndoStep {
        let StepRef { map, key, before, is_version, deletes } = self;
        UndoStep { map, key: key.into(), before: before.map(Into::into), is_version, deletes }
    }
}

impl UndoStep {
    pub fn by_ref(&self) -> StepRef<'_> {
        let UndoStep { map, ref key, ref before, is_version, deletes } = *self;
        StepRef { map, key, before: before.as_deref(), is_version, deletes }
    }

    pub fn bytes(&self) -> usize {
        // The step, the index of the row's first step, and the version in the version store.
        256 + 3 * self.key.len() + 2 * self.before.as_ref().map_or(0, |before| before.len())
    }
}

/// A step as stored in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEntry<'b> {
    pub map: MapId,
    pub step: u32,
    /// The transaction that made the change.
    pub by: TxnId,
    pub key: &'b [u8],
    pub before: Option<&'b [u8]>,
    flags: u8,
}

impl RunEntry<'_> {
    pub fn is_version(&self) -> bool {
        self.flags & IS_VERSION != 0
    }

    pub fn deletes(&self) -> bool {
        self.flags & DELETES != 0
    }

    fn parse<'b>(bytes: &mut &'b [u8]) -> Option<RunEntry<'b>> {
        let (head, rest) = bytes.split_first_chunk::<ENTRY_HEAD>()?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let half = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let by = u64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
        let flags = head[16];
        let (key, rest) = rest.split_at_checked(half(17))?;
        let (before, rest) = rest.split_at_checked(half(19))?;
        *bytes = rest;
        let before = (flags & HAS_IMAGE != 0).then_some(before);
        Some(RunEntry { map: word(0), step: word(4), by, key, before, flags })
    }
}

/// The transactions whose steps a run holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writers<'w> {
    One(TxnId),
    /// One transaction for each step.
    Each(&'w [TxnId]),
}

impl Writers<'_> {
    fn of(self, step: usize) -> TxnId {
        match self {
            Writers::One(writer) => writer,
            Writers::Each(writers) => writers[step],
        }
    }
}

/// The runs of a transaction, oldest first. Readers search them too.
pub(crate) type Runs = Arc<RwLock<Vec<Arc<UndoRun>>>>;

/// Returns the hash of a version: of its row's hash, and of the transaction that replaced it. Versions of one row have different ones.
pub(crate) fn version_hash(row: u64, by: TxnId) -> u64 {
    (row ^ by.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(17).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn append(step: &StepRef<'_>, number: u32, by: TxnId, out: &mut Vec<u8>) {
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let before = step.before.unwrap_or_default();
    out.extend_from_slice(&step.map.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&by.to_le_bytes());
    out.push(flag(step.before.is_some(), HAS_IMAGE) | flag(step.is_version, IS_VERSION) | flag(step.deletes, DELETES));
    out.extend_from_slice(&(step.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&(before.len() as u16).to_le_bytes());
    out.extend_from_slice(step.key);
    out.extend_from_slice(before);
}

/// A Bloom filter of the versions in a run.
#[derive(Debug)]
struct BloomFilter(Box<[u64]>);

impl BloomFilter {
    fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> {
        let bits = self.0.len() as u64 * 64;
        let step = hash.rotate_left(32) | 1;
        (0..FILTER_PROBES).map(move |probe| {
            let bit = hash.wrapping_add(step.wrapping_mul(probe)) % bits;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    fn of(hashes: &[u64]) -> BloomFilter {
        let mut filter = BloomFilter(vec![0; (hashes.len() * FILTER_BITS).div_ceil(64).max(1)].into());
        for hash in hashes {
            for (word, bit) in filter.places(*hash).collect::<Vec<_>>() {
                filter.0[word] |= bit;
            }
        }
        filter
    }

    fn may_have(&self, hash: u64) -> bool {
        self.places(hash).all(|(word, bit)| self.0[word] & bit != 0)
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fence(MapId, Box<[u8]>);

impl Fence {
    fn at_most(&self, map: MapId, key: &[u8]) -> bool {
        (self.0, &*self.1) <= (map, key)
    }
}

pub(crate) struct UndoRun {
    /// Identifies the run.
    id: u64,
    device: Arc<dyn Device>,
    pub from: u64,
    /// First row of each block.
    fences: Vec<Fence>,
    filter: BloomFilter,
    /// Number of steps, and of those that delete a row.
    pub steps: u32,
    pub deletes: u32,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The block that this thread read last. A scan asks for rows of one block in succession.
    static LAST: RefCell<Option<((u64, usize), Aligned)>> = const { RefCell::new(None) };
}

pub(crate) fn failed(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::DiskFull,
        _ => Error::Io(std::io::Error::new(error.kind(), format!("a file for undo: {error}"))),
    }
}

/// Creates a file for runs.
pub(crate) fn scratch(folder: &dyn os::Folder) -> Result<Arc<dyn Device>> {
    folder.scratch().map_err(failed)
}

impl UndoRun {
    /// Writes steps, in the order in which they were made, from `from` on.
    pub fn write<'s>(
        device: &Arc<dyn Device>,
        from: u64,
        steps: impl ExactSizeIterator<Item = StepRef<'s>>,
        writers: Writers<'_>,
        seed: Seed,
    ) -> Result<UndoRun> {
        let steps: Vec<StepRef<'_>> = steps.collect();
        let mut order: Vec<u32> = (0..steps.len() as u32).collect();
        order.sort_unstable_by_key(|number| {
            let step = &steps[*number as usize];
            (step.map, step.key, *number)
        });
        let versions = steps.iter().enumerate().filter(|(_, step)| step.is_version);
        let hash =
            |(at, step): (usize, &StepRef<'_>)| version_hash(seed.within(step.map.into(), step.key), writers.of(at));
        let hashes: Vec<u64> = versions.map(hash).collect();
        let mut run = UndoRun {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            device: device.clone(),
            from,
            fences: Vec::new(),
            filter: BloomFilter::of(&hashes),
            steps: steps.len() as u32,
            deletes: steps.iter().filter(|step| step.deletes).count() as u32,
        };
        let (mut block, mut entry) = (Vec::with_capacity(BLOCK), Vec::new());
        let mut out = Aligned::with_capacity(BLOCK);
        for number in order {
            let step = &steps[number as usize];
            entry.clear();
            append(step, number, writers.of(number as usize), &mut entry);
            if BLOCK_HEAD + block.len() + entry.len() > BLOCK {
                run.write_block(&block, &mut out)?;
                block.clear();
            }
            if block.is_empty() {
                run.fences.push(Fence(step.map, step.key.into()));
            }
            block.extend_from_slice(&entry);
        }
        run.write_block(&block, &mut out)?;
        Ok(run)
    }

    /// Writes the block whose fence was pushed last.
    fn write_block(&self, block: &[u8], out: &mut Aligned) -> Result<()> {
        let Some(number) = self.fences.len().checked_sub(1) else { return Ok(()) };
        let bytes = out.as_mut_slice();
        bytes[..BLOCK_HEAD].copy_from_slice(&(block.len() as u32).to_le_bytes());
        bytes[BLOCK_HEAD..BLOCK_HEAD + block.len()].copy_from_slice(block);
        self.device.write(self.from + (number * BLOCK) as u64, bytes).map_err(failed)
    }

    /// Returns the position where the next run begins.
    pub fn end(&self) -> u64 {
        self.from + (self.fences.len() * BLOCK) as u64
    }

    /// Returns the bytes of the file that it takes.
    pub fn bytes(&self) -> u64 {
        (self.fences.len() * BLOCK) as u64
    }

    fn read(&self, number: usize, out: &mut Aligned) -> Result<()> {
        self.device.read(self.from + (number * BLOCK) as u64, out.as_mut_slice()).map_err(failed)
    }

    /// Returns the entries of a block.
    fn entries(block: &[u8]) -> Result<impl Iterator<Item = Result<RunEntry<'_>>>> {
        let damaged = || Error::corrupt("a block of an undo file cannot be parsed");
        let (used, rest) = block.split_first_chunk::<BLOCK_HEAD>().ok_or_else(damaged)?;
        let mut rest = rest.get(..u32::from_le_bytes(*used) as usize).ok_or_else(damaged)?;
        Ok(std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let entry = RunEntry::parse(&mut rest).ok_or_else(damaged);
            if entry.is_err() {
                rest = &[];
            }
            Some(entry)
        }))
    }

    /// Calls `f` with all entries, by row, and those of a row in the order in which they were made.
    pub fn each(&self, mut f: impl FnMut(&RunEntry<'_>) -> Result<()>) -> Result<()> {
        let mut block = Aligned::with_capacity(BLOCK);
        for number in 0..self.fences.len() {
            self.read(number, &mut block)?;
            for entry in Self::entries(block.as_slice())? {
                f(&entry?)?;
            }
        }
        Ok(())
    }

    pub fn block_count(&self) -> usize {
        self.fences.len()
    }

    /// Calls `f` with the entries of one block.
    pub fn each_of_block(&self, number: usize, mut f: impl FnMut(&RunEntry<'_>) -> Result<()>) -> Result<()> {
        let mut block = Aligned::with_capacity(BLOCK);
        self.read(number, &mut block)?;
        Self::entries(block.as_slice())?.try_for_each(|entry| f(&entry?))
    }

    /// Reads the steps as they were written.
    pub fn load(&self) -> Result<Vec<UndoStep>> {
        let mut steps = Vec::with_capacity(self.steps as usize);
        self.each(|entry| {
            steps.push((
                entry.step,
                UndoStep {
                    map: entry.map,
                    key: entry.key.into(),
                    before: entry.before.map(Into::into),
                    is_version: entry.is_version(),
                    deletes: entry.deletes(),
                },
            ));
            Ok(())
        })?;
        steps.sort_unstable_by_key(|(number, _)| *number);
        Ok(steps.into_iter().map(|(_, step)| step).collect())
    }

    /// Returns the version of a row that `by` has replaced, if it is in this run. `hash` is the row's.
    pub fn version(&self, map: MapId, key: &[u8], hash: u64, by: TxnId) -> Result<Option<Vec<u8>>> {
        if !self.filter.may_have(version_hash(hash, by)) {
            return Ok(None);
        }
        let after = self.fences.partition_point(|fence| fence.at_most(map, key));
        // A row's entries may begin in the block before the one that begins with it.
        let equal = self.fences.partition_point(|fence| (fence.0, &*fence.1) < (map, key));
        LAST.with_borrow_mut(|last| {
            for number in equal.saturating_sub(1)..after {
                let block = match last {
                    Some((block, bytes)) if *block == (self.id, number) => bytes,
                    _ => {
                        let mut bytes = last.take().map_or_else(|| Aligned::with_capacity(BLOCK), |(_, bytes)| bytes);
                        self.read(number, &mut bytes)?;
                        &mut last.insert(((self.id, number), bytes)).1
                    }
                };
                for entry in Self::entries(block.as_slice())? {
                    let entry = entry?;
                    if entry.is_version() && entry.by == by && (entry.map, entry.key) == (map, key) {
                        return Ok(entry.before.map(<[u8]>::to_vec));
                    }
                }
            }
            Ok(None)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use os::SimFolder;

    #[test]
    fn steps_are_found_and_read_back_in_order() {
        let folder = SimFolder::new(1);
        let (device, seed) = (scratch(folder.as_ref()).unwrap(), Seed::default());
        let step = |number: u32| UndoStep {
            map: 16 + number % 3,
            key: (number * 7919 % 1000).to_be_bytes().as_slice().into(),
            before: (!number.is_multiple_of(4)).then(|| vec![number as u8; number as usize % 1300].into()),
            is_version: number % 4 == 1,
            deletes: number.is_multiple_of(5),
        };
        let steps: Vec<UndoStep> = (0..3000).map(step).collect();
        let empty = UndoRun::write(&device, 0, std::iter::empty(), Writers::One(5), seed).unwrap();
        assert_eq!((empty.end(), empty.version(16, b"k", seed.within(16, b"k"), 5).unwrap()), (0, None));
        let first =
            UndoRun::write(&device, 0, steps[..1000].iter().map(UndoStep::by_ref), Writers::One(5), seed).unwrap();
        let second =
            UndoRun::write(&device, first.end(), steps[1000..].iter().map(UndoStep::by_ref), Writers::One(5), seed)
                .unwrap();
        assert_eq!((first.load().unwrap(), second.load().unwrap()), (steps[..1000].to_vec(), steps[1000..].to_vec()));
        for (run, steps) in [(&first, &steps[..1000]), (&second, &steps[1000..])] {
            for step in steps {
                let of_row = |other: &&UndoStep| other.is_version && (other.map, &other.key) == (step.map, &step.key);
                let expected = steps.iter().find(of_row).map(|step| step.before.as_deref().unwrap().to_vec());
                let hash = seed.within(step.map.into(), &step.key);
                assert_eq!(run.version(step.map, &step.key, hash, 5).unwrap(), expected);
                assert_eq!(run.version(step.map, &step.key, hash, 6).unwrap(), None, "6 has replaced nothing");
            }
        }
        assert_eq!(first.version(99, b"nobody", seed.within(99, b"nobody"), 5).unwrap(), None);
    }
}
