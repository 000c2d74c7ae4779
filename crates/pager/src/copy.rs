//! Copies of a whole database into another place: a folder or shared objects, from an open database or from a backup.
//!
//! ```text
//!   root of the target: incomplete ──► pages ──► WAL, cut anew ──► root: where recovery starts, still incomplete ──► finish, or open and `complete`
//! ```
//! The target gets an id of its own, so nobody takes its WAL for that of the original. Hard part: a copy that is interrupted at any point leaves a database that no
//! opening accepts (PG-36), and the next copy replaces it as a whole (PG-37).
//!
//! The source is read as for a backup: pages in any order, then the WAL from a position that was a checkpoint before the first page was read.

use std::sync::Arc;
use std::time::Duration;

use os::{Aligned, Device, Folder, Open};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::buffer_pool::with_read_buffer;
use crate::control::ControlPages;
use crate::error::{Error, Result};
use crate::files::{DATA_FILE, DOUBLE_WRITE_FILE};
use crate::page::{self, Lsn, PAGE_BYTES, PageId};
use crate::pager::Pager;
use crate::root::{Root, RootRecord};
use crate::shared::{SharedStorage, TargetObjects};
use crate::space_map::FIRST_PAGE;
use crate::wal;
use crate::wal::log_files::{LogFiles, is_log_file};
use crate::wal::log_store::LogStore;
use crate::wal::read::{RecoveryTarget, WalReader};

/// Bytes that a thread reads and writes at once, where the target does not say.
const PIECE_BYTES: u64 = 4 << 20;
/// How often a page is read again that looks torn.
const TORN_READS_MAX: usize = 8;
const TORN_READ_PAUSE: Duration = Duration::from_millis(2);
/// Pages that look damaged of which the ids are kept.
const SUSPECTS_MAX: usize = 1000;

/// Where a database is copied to.
#[derive(Clone)]
pub enum CopyTarget {
    /// A folder that is locked for this process, and empty.
    Folder(Arc<dyn Folder>),
    /// Objects whose lease this process has.
    Shared(SharedStorage),
}

/// How to copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyOptions {
    /// The id of the copy.
    pub random: u64,
    /// Size of its WAL segments.
    pub segment_bytes: u64,
    /// Replaces a copy that was interrupted.
    pub overwrites: bool,
    /// Threads that read and write pages.
    pub threads: usize,
}

/// Called with the bytes of pages copied so far and the total, by any thread.
pub type CopyProgress<'p> = &'p (dyn Fn(u64, u64) + Sync);

/// A database that is read for a copy.
struct CopySource<'s> {
    data: Arc<dyn Device>,
    log: Arc<dyn LogStore>,
    root: RootRecord,
    /// Returns the position up to which the WAL is copied. It is asked when the pages have been read.
    end: &'s (dyn Fn() -> Result<Lsn> + Sync),
}

/// A copy with all pages and the whole WAL, which still counts as interrupted.
pub struct PreparedCopy {
    target: PreparedTarget,
    root: RootRecord,
    pub page_bytes: u64,
    pub wal_bytes: u64,
    /// Pages with their own id and a wrong checksum: damaged, or values of a user that look like that.
    pub suspects: Vec<PageId>,
}

/// The storage of a database that is being copied into.
enum PreparedTarget {
    Folder { folder: Arc<dyn Folder>, data: Arc<dyn Device>, root: ControlPages },
    Shared(TargetObjects),
}

impl Pager {
    /// Copies this database. Others may read and write meanwhile; the copy holds what was durable when its last page had been read, and perhaps some later changes.
    pub fn copy(&self, target: &CopyTarget, options: CopyOptions, progress: CopyProgress<'_>) -> Result<PreparedCopy> {
        let pin = self.pin_wal();
        let end = || {
            let to = self.wal_head();
            self.flush_to(to).map(|()| to)
        };
        let root = RootRecord { checkpoint: pin.lsn(), ..self.control_copy() };
        let (data, log) = (self.pool.data.clone(), self.log.get().expect("open after recovery").clone());
        CopySource { data, log, root, end: &end }.copy(target, options, progress)
    }

    /// Makes a database complete that was opened with `Options::opens_incomplete`.
    pub fn complete(&self) -> Result<()> {
        let mut control = self.control.lock();
        let next = RootRecord { is_incomplete: false, ..*control };
        self.root.compare_and_set(control.boot, next)?;
        *control = next;
        Ok(())
    }
}

/// Copies the backup in a folder, with all of its WAL. It is not changed.
pub fn copy_backup(
    folder: &Arc<dyn Folder>,
    target: &CopyTarget,
    options: CopyOptions,
    progress: CopyProgress<'_>,
) -> Result<PreparedCopy> {
    let names = folder.list().map_err(|error| Error::io("listing the backup folder", error))?;
    if !names.iter().any(|name| name == DATA_FILE) {
        return Err(Error::Format("the folder holds no backup".into()));
    }
    if names.iter().any(|name| name == DOUBLE_WRITE_FILE) {
        return Err(Error::Format(
            "the folder holds a database that was in use, not a backup: `beluga copy` copies it".into(),
        ));
    }
    let data =
        folder.open(DATA_FILE, Open::Existing).map_err(|error| Error::io("opening the backup's data file", error))?;
    let root = ControlPages::new(data.clone()).get()?;
    let root = root.ok_or_else(|| Error::Format("the folder holds no complete backup".into()))?;
    root.check_complete()?;
    let log = Arc::new(LogFiles::new(folder.clone(), root.database, options.segment_bytes, 0));
    CopySource { data, log, root, end: &|| Ok(Lsn::MAX) }.copy(target, options, progress)
}

impl CopySource<'_> {
    fn copy(&self, target: &CopyTarget, options: CopyOptions, progress: CopyProgress<'_>) -> Result<PreparedCopy> {
        let bytes = self.data.len();
        let begun = RootRecord { database: options.random, is_incomplete: true, ..self.root };
        let (target, boot, log) = PreparedTarget::begin(target, begun, bytes, options)?;
        let suspects = self.copy_pages(&target, options.threads, progress)?;
        target.end_pages(bytes)?;
        let to = (self.end)()?;
        let from = self.root.checkpoint;
        let mut reader = WalReader::open(&self.log, self.root.database, from, RecoveryTarget::default())?;
        let wal = wal::copy::copy(&mut reader, (from, to), log, options.random)?;
        if wal.end < to && to != Lsn::MAX {
            return Err(Error::Corrupt {
                what: format!("the log ends at {}, though it was durable up to {to}", wal.end),
                file: "log".into(),
                page: None,
            });
        }
        // The WAL of a backup that was renewed may be of later openings than its root.
        let root = RootRecord { boot: boot.max(wal.epoch), ..begun };
        let consistent = if to == Lsn::MAX { root.consistent } else { to };
        let root = RootRecord { consistent, ..root };
        target.set_root(boot, root)?;
        Ok(PreparedCopy { target, root, page_bytes: bytes, wal_bytes: wal.bytes, suspects })
    }

    /// Copies all pages, piece by piece, in several threads. Returns the pages that look damaged.
    fn copy_pages(&self, target: &PreparedTarget, threads: usize, progress: CopyProgress<'_>) -> Result<Vec<PageId>> {
        let work = PageWork {
            source: self,
            target,
            layout: target.layout(self.data.len()),
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            suspects: Mutex::default(),
            progress,
        };
        if threads <= 1 {
            work.run()?;
        } else {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| work.run())).collect();
                let results = threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                results.fold(Ok(()), Result::and)
            })?;
        }
        let mut suspects = std::mem::take(&mut *work.suspects.lock());
        suspects.sort_unstable();
        Ok(suspects)
    }

    /// Reads pages from `offset` on, and reads those again that look torn. Returns those that still do.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<Vec<PageId>> {
        let failed = |error| Error::io("reading pages", error);
        self.data.read(offset, bytes).map_err(failed)?;
        let mut suspects = Vec::new();
        for (pid, image) in (offset / PAGE_BYTES as u64..).zip(bytes.chunks_exact_mut(PAGE_BYTES)) {
            if pid >= FIRST_PAGE && !read_untorn(self.data.as_ref(), pid, image)? {
                suspects.push(pid);
            }
        }
        Ok(suspects)
    }
}

/// Reads a page again while it looks torn: with its own id and a wrong checksum. Returns false if it still does. Raw units and pages never written are taken as they are.
pub(crate) fn read_untorn(data: &dyn Device, pid: PageId, image: &mut [u8]) -> Result<bool> {
    let looks_torn = |image: &[u8]| image[8..16] == pid.to_le_bytes() && page::verify(image, pid).is_err();
    for _ in 0..TORN_READS_MAX {
        if !looks_torn(image) {
            return Ok(true);
        }
        std::thread::sleep(TORN_READ_PAUSE);
        with_read_buffer(1, |buffer| {
            data.read(pid * PAGE_BYTES as u64, buffer).map(|()| image.copy_from_slice(buffer))
        })
        .map_err(|error| Error::io(format!("reading page {pid}"), error))?;
    }
    Ok(!looks_torn(image))
}

/// The pages that are to be copied, as the threads share them.
struct PageWork<'w> {
    source: &'w CopySource<'w>,
    target: &'w PreparedTarget,
    /// Bytes of a piece, and the number of pieces.
    layout: (u64, u64),
    next: AtomicU64,
    done: AtomicU64,
    suspects: Mutex<Vec<PageId>>,
    progress: CopyProgress<'w>,
}

impl PageWork<'_> {
    /// Copies one piece after another until none is left. After an error the other threads end, too.
    fn run(&self) -> Result<()> {
        let (piece_bytes, pieces) = self.layout;
        let mut buffer = Aligned::with_capacity(piece_bytes as usize);
        loop {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return Ok(());
            }
            let result = self.copy(piece, buffer.as_mut_slice());
            if result.is_err() {
                self.next.store(pieces, Ordering::Relaxed);
                return result;
            }
        }
    }

    fn copy(&self, piece: u64, buffer: &mut [u8]) -> Result<()> {
        let whole = self.source.data.len();
        let offset = piece * self.layout.0;
        // A piece behind the end is one that an interrupted copy has left.
        let len = self.layout.0.min(whole.saturating_sub(offset));
        let bytes = &mut buffer[..len as usize];
        let found = if bytes.is_empty() { Vec::new() } else { self.source.read(offset, bytes)? };
        if piece == 0 {
            // The root of the source.
            bytes[..FIRST_PAGE as usize * PAGE_BYTES].fill(0);
        }
        self.target.write(piece, offset, bytes)?;
        let mut suspects = self.suspects.lock();
        let room = SUSPECTS_MAX - suspects.len();
        suspects.extend(found.into_iter().take(room));
        drop(suspects);
        let done = self.done.fetch_add(len, Ordering::Relaxed) + len;
        (self.progress)(done, whole);
        Ok(())
    }
}

impl PreparedTarget {
    /// Notes in the target that a copy has begun, and makes room for the pages. Returns the boot number of the copy and the storage of its WAL.
    fn begin(
        target: &CopyTarget,
        root: RootRecord,
        bytes: u64,
        options: CopyOptions,
    ) -> Result<(PreparedTarget, u64, Arc<dyn LogStore>)> {
        match target {
            CopyTarget::Folder(folder) => {
                let prepared = Self::begin_folder(folder, root, bytes, options.overwrites)?;
                let log = LogFiles::new(folder.clone(), root.database, options.segment_bytes, 0);
                Ok((prepared, root.boot, Arc::new(log)))
            }
            CopyTarget::Shared(shared) => {
                let (objects, boot) = shared.begin_copy(root, bytes, options.segment_bytes, options.overwrites)?;
                let log = objects.log.clone();
                Ok((PreparedTarget::Shared(objects), boot, log))
            }
        }
    }

    fn begin_folder(
        folder: &Arc<dyn Folder>,
        root: RootRecord,
        bytes: u64,
        overwrites: bool,
    ) -> Result<PreparedTarget> {
        let failed = |error| Error::io("preparing the folder", error);
        let names = folder.list().map_err(failed)?;
        let is_ours = |name: &String| name == DATA_FILE || is_log_file(name);
        if let Some(other) = names.iter().find(|name| !is_ours(name)) {
            return Err(Error::Format(format!("the folder is not empty, it has '{other}': choose a new one")));
        }
        if names.iter().any(|name| name == DATA_FILE) {
            let data = folder.open(DATA_FILE, Open::Existing).map_err(failed)?;
            match ControlPages::new(data.clone()).get()? {
                Some(found) if !found.is_incomplete => {
                    return Err(Error::Format("the folder is not empty, it holds a database: choose a new one".into()));
                }
                Some(_) if overwrites => {}
                Some(found) => found.check_complete()?,
                // An attempt that ended before it had written anything.
                None if names.len() == 1 && data.len() <= FIRST_PAGE * PAGE_BYTES as u64 => {}
                None => return Err(Error::Format("the folder is not empty: choose a new one".into())),
            }
        } else if let Some(name) = names.first() {
            return Err(Error::Format(format!("the folder is not empty, it has '{name}': choose a new one")));
        }
        // The data file goes last: as long as it is there, the folder holds an interrupted copy.
        for name in names.iter().filter(|name| *name != DATA_FILE) {
            folder.remove(name).map_err(failed)?;
        }
        folder.sync().map_err(failed)?;
        if names.iter().any(|name| name == DATA_FILE) {
            folder.remove(DATA_FILE).map_err(failed)?;
        }
        let data = folder.open(DATA_FILE, Open::Create).map_err(failed)?;
        data.grow(FIRST_PAGE * PAGE_BYTES as u64).map_err(failed)?;
        let of_root = ControlPages::new(data.clone());
        of_root.get()?;
        of_root.compare_and_set(0, root)?;
        folder.sync().map_err(failed)?;
        data.grow(bytes).map_err(failed)?;
        Ok(PreparedTarget::Folder { folder: folder.clone(), data, root: of_root })
    }

    /// Returns the bytes of a piece and the number of pieces for pages of `bytes` bytes.
    fn layout(&self, bytes: u64) -> (u64, u64) {
        match self {
            PreparedTarget::Folder { .. } => (PIECE_BYTES, bytes.div_ceil(PIECE_BYTES)),
            PreparedTarget::Shared(objects) => objects.layout(),
        }
    }

    /// Writes a piece of the pages. The root's pages, with which the first one begins, are zero.
    fn write(&self, piece: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        match self {
            PreparedTarget::Folder { data, .. } => {
                // The rest of the file is zero already, apart from the pages of the root.
                let written = page::written(bytes);
                let start =
                    if piece == 0 { written.start.max(FIRST_PAGE as usize * PAGE_BYTES) } else { written.start };
                if start >= written.end {
                    return Ok(());
                }
                data.write(offset + start as u64, &bytes[start..written.end])
                    .map_err(|error| Error::io("writing pages", error))
            }
            PreparedTarget::Shared(objects) => objects.write(piece, bytes),
        }
    }

    /// Makes the pages durable.
    fn end_pages(&self, bytes: u64) -> Result<()> {
        match self {
            PreparedTarget::Folder { data, .. } => {
                data.sync().map_err(|error| Error::io("syncing the data file", error))
            }
            PreparedTarget::Shared(objects) => objects.set_length(bytes),
        }
    }

    fn set_root(&self, boot: u64, root: RootRecord) -> Result<()> {
        match self {
            PreparedTarget::Folder { folder, root: of_root, .. } => {
                folder.sync().map_err(|error| Error::io("syncing the folder", error))?;
                of_root.compare_and_set(boot, root)
            }
            PreparedTarget::Shared(objects) => objects.set_root(root),
        }
    }
}

impl PreparedCopy {
    /// Makes the copy a database.
    pub fn finish(self) -> Result<()> {
        self.target.set_root(self.root.boot, RootRecord { is_incomplete: false, ..self.root })
    }
}
