//! A simulated folder in memory: crashes, torn and lost writes, flipped bits and full disks, identical for identical seeds.
//!
//! Each file keeps its durable bytes and, apart from them, the writes since the last sync. A crash keeps a random subset of those writes' sectors (512 bytes), or of whole blocks, or all, or
//! nothing. That covers loss, reordering and torn writes at once. Names work alike: after a crash, a file that was made, renamed or removed since the last folder sync may exist or not.
//! A durable write during which the crash happens is torn; one that has returned is safe (OS-1).

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use stdx::prng::Prng;

use crate::{Device, Folder, Open};

const SECTOR: usize = 512;
const BLOCK: usize = 4096;

/// The part of the unsynced writes that a crash keeps.
#[derive(Clone, Copy)]
enum Kept {
    Sectors,
    Blocks,
    Nothing,
    All,
}

/// A fault of one operation on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The n-th read of the file from now on fails with EIO; 1 is the next one.
    Read(u64),
    /// The n-th write fails with EIO and writes nothing.
    Write(u64),
    /// The n-th sync or durable write fails with EIO; the writes that it should have made durable may be lost.
    Sync(u64),
    /// The n-th write goes to an offset that is too high by the second number.
    Misdirect(u64, u64),
}

/// The bytes of a file in blocks. Copies share a block until one of them writes to it (copy on write); absent blocks are zero.
#[derive(Clone, Default)]
struct Bytes {
    len: usize,
    blocks: Vec<Option<Arc<[u8; BLOCK]>>>,
}

impl Bytes {
    /// Extends the file to at least `len` bytes.
    fn cover(&mut self, len: usize) {
        if self.len < len {
            self.len = len;
            self.blocks.resize(len.div_ceil(BLOCK), None);
        }
    }

    /// Splits `offset..offset + len` at block boundaries. Yields the block, the range within it, and the range within the whole.
    fn pieces(offset: usize, len: usize) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
        let end = offset + len;
        (offset / BLOCK..end.div_ceil(BLOCK)).map(move |block| {
            let (from, to) = (offset.max(block * BLOCK), end.min((block + 1) * BLOCK));
            (block, from - block * BLOCK..to - block * BLOCK, from - offset..to - offset)
        })
    }

    fn put(&mut self, offset: usize, data: &[u8]) {
        self.cover(offset + data.len());
        for (block, within, of_data) in Bytes::pieces(offset, data.len()) {
            let block = self.blocks[block].get_or_insert_with(|| Arc::new([0; BLOCK]));
            Arc::make_mut(block)[within].copy_from_slice(&data[of_data]);
        }
    }

    /// Fills `buf`; None if the file ends before.
    fn get(&self, offset: usize, buf: &mut [u8]) -> Option<()> {
        if offset + buf.len() > self.len {
            return None;
        }
        for (block, within, of_buf) in Bytes::pieces(offset, buf.len()) {
            match &self.blocks[block] {
                Some(block) => buf[of_buf].copy_from_slice(&block[within]),
                None => buf[of_buf].fill(0),
            }
        }
        Some(())
    }

    fn flip(&mut self, offset: usize, bit: u8) {
        let block = self.blocks[offset / BLOCK].get_or_insert_with(|| Arc::new([0; BLOCK]));
        Arc::make_mut(block)[offset % BLOCK] ^= 1 << bit;
    }
}

#[derive(Clone, Default)]
struct File {
    /// The bytes that reads return.
    now: Bytes,
    /// The bytes that survive every crash.
    durable: Bytes,
    /// Writes since the last sync, oldest first.
    pending: Vec<(usize, Vec<u8>)>,
    faults: Vec<Fault>,
}

type Shared = Arc<Mutex<File>>;

struct State {
    /// The names that readers see.
    names: BTreeMap<String, Shared>,
    /// The names as of the last folder sync.
    durable_names: BTreeMap<String, Shared>,
    capacity: Option<u64>,
    ios: u64,
    crash_at: u64,
    /// Syncs of files whose names have this prefix are acknowledged and ignored; with "" those of the folder too.
    ignored_syncs: Option<String>,
    random: Prng,
}

/// The simulated folder.
pub struct SimFolder {
    state: Arc<Mutex<State>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

fn io_error() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

impl State {
    /// Counts an operation. From the crash on, all operations fail; the flag in `Err` is true for the operation during which the crash happens.
    fn step(&mut self) -> Result<(), (io::Error, bool)> {
        self.ios += 1;
        if self.ios < self.crash_at {
            return Ok(());
        }
        Err((io::Error::other("the simulated machine has crashed"), self.ios == self.crash_at))
    }

    fn used(&self) -> u64 {
        self.names.values().map(|file| lock(file).now.len as u64).sum()
    }
}

impl SimFolder {
    pub fn new(seed: u64) -> Arc<SimFolder> {
        Arc::new(SimFolder {
            state: Arc::new(Mutex::new(State {
                names: BTreeMap::new(),
                durable_names: BTreeMap::new(),
                capacity: None,
                ios: 0,
                crash_at: u64::MAX,
                ignored_syncs: None,
                random: Prng::new(seed),
            })),
        })
    }

    /// Returns the folder as it may look after a power cut at this moment. The original is unchanged, so a test can draw several outcomes.
    pub fn crash(&self) -> Arc<SimFolder> {
        let mut state = lock(&self.state);
        let mut random = Prng::new(state.random.next_u64());
        let mut names = state.durable_names.clone();
        // Each name that has changed since the last folder sync keeps its old or its new state.
        let all: Vec<String> = state.names.keys().chain(state.durable_names.keys()).cloned().collect();
        for name in all {
            if random.chance(0.5) {
                match state.names.get(&name) {
                    Some(file) => names.insert(name, file.clone()),
                    None => names.remove(&name),
                };
            }
        }
        let kept = match random.below(8) {
            0 => Kept::Nothing,
            1 => Kept::All,
            2..4 => Kept::Blocks,
            _ => Kept::Sectors,
        };
        let survivor = |file: &Shared, random: &mut Prng| {
            let file = lock(file);
            let mut bytes = file.durable.clone();
            for (offset, data) in &file.pending {
                let mut keeps_block = false;
                for (at, piece) in data.chunks(SECTOR).enumerate() {
                    if at.is_multiple_of(BLOCK / SECTOR) {
                        keeps_block = random.chance(0.5);
                    }
                    let is_kept = match kept {
                        Kept::Sectors => random.chance(0.5),
                        Kept::Blocks => keeps_block,
                        Kept::Nothing => false,
                        Kept::All => true,
                    };
                    if is_kept {
                        let start = offset + at * SECTOR;
                        bytes.cover((start + piece.len()).next_multiple_of(BLOCK));
                        bytes.put(start, piece);
                    }
                }
            }
            Arc::new(Mutex::new(File { now: bytes.clone(), durable: bytes, ..File::default() }))
        };
        let names: BTreeMap<String, Shared> =
            names.iter().map(|(name, file)| (name.clone(), survivor(file, &mut random))).collect();
        let after = State {
            durable_names: names.clone(),
            names,
            capacity: state.capacity,
            ios: 0,
            crash_at: u64::MAX,
            ignored_syncs: state.ignored_syncs.clone(),
            random,
        };
        Arc::new(SimFolder { state: Arc::new(Mutex::new(after)) })
    }

    /// Returns an independent copy of the folder without a crash. Its random choices come from `seed`.
    pub fn fork(&self, seed: u64) -> Arc<SimFolder> {
        let state = lock(&self.state);
        // A file may have two names, the durable one and the present one. The copy has to be one file as well.
        let mut copies: Vec<(Shared, Shared)> = Vec::new();
        let mut copy = |names: &BTreeMap<String, Shared>| -> BTreeMap<String, Shared> {
            let mut copy_of = |file: &Shared| {
                if let Some((_, copy)) = copies.iter().find(|(known, _)| Arc::ptr_eq(known, file)) {
                    return copy.clone();
                }
                let copy = Arc::new(Mutex::new(lock(file).clone()));
                copies.push((file.clone(), copy.clone()));
                copy
            };
            names.iter().map(|(name, file)| (name.clone(), copy_of(file))).collect()
        };
        let (names, durable_names) = (copy(&state.names), copy(&state.durable_names));
        let ignored_syncs = state.ignored_syncs.clone();
        let after = State {
            names,
            durable_names,
            capacity: state.capacity,
            ios: 0,
            crash_at: u64::MAX,
            ignored_syncs,
            random: Prng::new(seed),
        };
        Arc::new(SimFolder { state: Arc::new(Mutex::new(after)) })
    }

    /// Returns the number of operations so far.
    pub fn io_count(&self) -> u64 {
        lock(&self.state).ios
    }

    /// Makes the `n`-th operation, counted from the creation of the folder, and all later ones fail. If that operation is a write, a part of it may be done.
    pub fn crash_at_io(&self, n: u64) {
        lock(&self.state).crash_at = n.max(1);
    }

    /// Sets the capacity of the whole folder in bytes; None means unlimited.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        lock(&self.state).capacity = bytes;
    }

    pub fn used_bytes(&self) -> u64 {
        lock(&self.state).used()
    }

    /// Adds a fault to a file that exists.
    pub fn fail(&self, name: &str, fault: Fault) {
        lock(&self.file(name)).faults.push(fault);
    }

    /// Removes the faults that have not happened yet.
    pub fn clear_faults(&self) {
        for file in lock(&self.state).names.values() {
            lock(file).faults.clear();
        }
    }

    /// From now on files whose names begin with `prefix` acknowledge syncs and durable writes without making anything durable; with "" the folder ignores
    /// its own syncs too. No program can survive that, so a crash test that does not notice it tests nothing.
    pub fn ignore_syncs(&self, prefix: &str) {
        lock(&self.state).ignored_syncs = Some(prefix.to_owned());
    }

    /// Returns true once the crash of `crash_at_io` has happened.
    pub fn has_crashed(&self) -> bool {
        let state = lock(&self.state);
        state.ios >= state.crash_at
    }

    /// Returns a checksum of everything that readers see. Two runs with one seed must agree on it.
    pub fn digest(&self) -> u64 {
        let state = lock(&self.state);
        let mut hash = std::hash::DefaultHasher::new();
        for (name, file) in &state.names {
            let bytes = &lock(file).now;
            std::hash::Hash::hash(&(name, bytes.len), &mut hash);
            for (at, block) in bytes.blocks.iter().enumerate() {
                if let Some(block) = block.as_ref().filter(|block| block.iter().any(|byte| *byte != 0)) {
                    std::hash::Hash::hash(&(at, block.as_slice()), &mut hash);
                }
            }
        }
        std::hash::Hasher::finish(&hash)
    }

    /// Flips a stored bit, on disk and for readers.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u8) {
        let file = self.file(name);
        let mut file = lock(&file);
        file.now.flip(offset as usize, bit);
        if (offset as usize) < file.durable.len {
            file.durable.flip(offset as usize, bit);
        }
    }

    fn file(&self, name: &str) -> Shared {
        lock(&self.state).names.get(name).unwrap_or_else(|| panic!("no file '{name}'")).clone()
    }
}

impl Folder for SimFolder {
    fn open(&self, name: &str, mode: Open) -> io::Result<Arc<dyn Device>> {
        let mut state = lock(&self.state);
        state.step().map_err(|(error, _)| error)?;
        let file = match (state.names.get(name), mode) {
            (Some(file), _) => file.clone(),
            (None, Open::Existing) => return Err(io::ErrorKind::NotFound.into()),
            (None, Open::Create) => {
                let file = Shared::default();
                state.names.insert(name.to_owned(), file.clone());
                file
            }
        };
        Ok(Arc::new(SimDevice { name: name.to_owned(), file, state: self.state.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.state).names.keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.step().map_err(|(error, _)| error)?;
        state.names.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn scratch(&self) -> io::Result<Arc<dyn Device>> {
        lock(&self.state).step().map_err(|(error, _)| error)?;
        Ok(Arc::new(SimDevice { name: "scratch".into(), file: Shared::default(), state: self.state.clone() }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.step().map_err(|(error, _)| error)?;
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.step().map_err(|(error, _)| error)?;
        if state.ignored_syncs.as_deref() != Some("") {
            state.durable_names = state.names.clone();
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = lock(&self.state);
        Ok(state.capacity.map_or(1 << 50, |capacity| capacity.saturating_sub(state.used())))
    }
}

struct SimDevice {
    name: String,
    file: Shared,
    state: Arc<Mutex<State>>,
}

impl File {
    /// Counts down the faults of one kind. Returns the one that happens now.
    fn next_fault(&mut self, kind: impl Fn(&mut Fault) -> Option<&mut u64>) -> Option<Fault> {
        let mut due = None;
        self.faults.retain_mut(|fault| {
            let copy = *fault;
            let Some(left) = kind(fault) else { return true };
            // Two faults may be due at once. The second one happens at the next operation then.
            *left = left.saturating_sub(1);
            if *left == 0 && due.is_none() {
                due = Some(copy);
                return false;
            }
            true
        });
        due
    }

    fn put(&mut self, offset: usize, data: &[u8]) {
        self.now.put(offset, data);
        self.pending.push((offset, data.to_vec()));
    }

    fn make_durable(&mut self) {
        for (offset, data) in std::mem::take(&mut self.pending) {
            self.durable.put(offset, &data);
        }
    }
}

impl SimDevice {
    fn check(offset: u64, len: usize) {
        assert!(
            offset.is_multiple_of(SECTOR as u64) && len.is_multiple_of(SECTOR),
            "unaligned direct I/O of {len} bytes at {offset}"
        );
    }

    /// Writes `buf`. If the crash happens during the write, the crash decides which of its sectors are kept.
    fn put(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        SimDevice::check(offset, buf.len());
        let step = lock(&self.state).step();
        let mut file = lock(&self.file);
        if let Err((error, is_torn)) = step {
            if is_torn {
                file.put(offset as usize, buf);
            }
            return Err(error);
        }
        if file.next_fault(|fault| if let Fault::Write(n) = fault { Some(n) } else { None }).is_some() {
            return Err(io_error());
        }
        let misdirected = file.next_fault(|fault| if let Fault::Misdirect(n, _) = fault { Some(n) } else { None });
        let shift = if let Some(Fault::Misdirect(_, shift)) = misdirected { shift } else { 0 };
        file.put((offset + shift) as usize, buf);
        Ok(())
    }

    fn make_durable(&self) -> io::Result<()> {
        let is_ignored = lock(&self.state).ignored_syncs.as_deref().is_some_and(|prefix| self.name.starts_with(prefix));
        let mut file = lock(&self.file);
        if file.next_fault(|fault| if let Fault::Sync(n) = fault { Some(n) } else { None }).is_some() {
            return Err(io_error());
        }
        if !is_ignored {
            file.make_durable();
        }
        Ok(())
    }
}

impl Device for SimDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        lock(&self.file).now.len as u64
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        SimDevice::check(offset, buf.len());
        lock(&self.state).step().map_err(|(error, _)| error)?;
        let mut file = lock(&self.file);
        if file.next_fault(|fault| if let Fault::Read(n) = fault { Some(n) } else { None }).is_some() {
            return Err(io_error());
        }
        file.now.get(offset as usize, buf).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn write(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.put(offset, buf)
    }

    fn write_durable(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.put(offset, buf)?;
        self.make_durable()
    }

    fn sync(&self) -> io::Result<()> {
        lock(&self.state).step().map_err(|(error, _)| error)?;
        self.make_durable()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        {
            let mut state = lock(&self.state);
            state.step().map_err(|(error, _)| error)?;
            let more = len.saturating_sub(self.len());
            if state.capacity.is_some_and(|capacity| state.used() + more > capacity) {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
        }
        let mut file = lock(&self.file);
        file.now.cover(len as usize);
        file.durable.cover(len as usize);
        Ok(())
    }

    fn prefill(&self, len: u64) -> io::Result<()> {
        self.grow(len)
    }

    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>> {
        ops.iter_mut().map(|(offset, buf)| self.read(*offset, buf)).collect()
    }

    fn write_many(&self, ops: &[(u64, &[u8])]) -> io::Result<()> {
        ops.iter().try_for_each(|(offset, buf)| self.write(*offset, buf))
    }
}

#[cfg(test)]
mod tests;
