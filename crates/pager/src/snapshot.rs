//! A page snapshot: the pages of one tree, and all units of values, as of one instant, while others go on writing.
//!
//! ```text
//!   prepare   keep the image of every page before it changes; hold freed pages back; wait for the writers that began before
//!   fix       the instant is the end of the WAL
//!   open      a pager without a WAL, whose device returns each page as of the instant:  page LSN <= instant ? the present page : its image in the side file
//! ```
//! A page belongs to the snapshot in the state of the last mini-transaction that ends at or below the instant, so a mini-transaction is in it as a whole or not
//! at all. Hard part: a writer that took X before images were kept, and commits behind the instant. `prepare` waits for its latch (PG-25).
//!
//! Units of values need no images: they are written once, and a freed run is not allocated again before the snapshot ends (PG-27). The readers above know
//! nothing of this. They open their tree on the snapshot's pager.

use std::io;
use std::sync::Arc;

use os::Device;
use stdx::sync::atomic::Ordering;

use crate::buffer_pool::BufferPool;
use crate::capture::Loss;
use crate::control::ControlPages;
use crate::data_file::DataFile;
use crate::double_write::DoubleWrite;
use crate::error::{Error, Result};
use crate::frame::RAW;
use crate::guard::Shared;
use crate::page::{self, Lsn, PAGE_BYTES, PageId};
use crate::pager::{Background, Options, Pager};

/// How often bytes are read again that look like a torn page.
const TORN_READS_MAX: usize = 8;

/// A snapshot of the pages of one tree. It ends when this is dropped; a pager that was opened on it fails from then on.
pub struct PageSnapshot {
    live: Arc<Pager>,
    loss: Loss,
}

impl PageSnapshot {
    /// Prepares a snapshot of the tree `owner`. The caller holds no latch. Fails if there is a snapshot.
    pub fn prepare(live: &Arc<Pager>, owner: u32) -> Result<PageSnapshot> {
        let side = live.folder().scratch().map_err(|error| Error::io("creating the snapshot's file", error))?;
        let loss = Loss::default();
        let hold = || live.space.bits.lock().held = Some(Vec::new());
        if !live.pool.capture.begin(owner, side, &loss, hold) {
            return Err(Error::NoSnapshot("there is another one".into()));
        }
        let snapshot = PageSnapshot { live: live.clone(), loss };
        // A thread that takes X from here on keeps the image, so a change that it logs behind the instant is not lost.
        for frame in &live.pool.frames {
            frame.pass_exclusive(&live.pool.lot);
        }
        Ok(snapshot)
    }

    /// Makes the present the instant, and returns its LSN. It is called once.
    pub fn fix(&self) -> Result<Lsn> {
        let head = || self.live.wal_head();
        self.live.pool.capture.fix(&self.loss, head).ok_or_else(|| self.lost())
    }

    /// Opens a pager on the pages as of `instant`, with a buffer pool of its own. It reads only.
    pub fn open(&self, instant: Lsn, frame_bytes: u64) -> Result<Arc<Pager>> {
        let live = &self.live;
        let device = Arc::new(SnapshotDevice { live: live.clone(), loss: self.loss.clone() });
        let frames = (frame_bytes / PAGE_BYTES as u64).max(64) as usize;
        let mut pool = BufferPool::new(frames, device.clone())?;
        pool.lsn_max = instant;
        // Nothing becomes dirty, so nothing is written to it.
        let unused = live.folder().scratch().map_err(|error| Error::io("creating the snapshot's file", error))?;
        let control = live.control_copy();
        let options = Options { frame_bytes, background: Background::Manual, interleave: None, ..live.options.clone() };
        let pages = Box::new(DataFile::new(device.clone(), DoubleWrite::new(unused, control.database)));
        let root = Box::new(ControlPages::new(device));
        let pager = Pager::assemble(pool, pages, root, control, live.folder().clone(), options);
        pager.checkpoint_lsn.store(instant, Ordering::Relaxed);
        Ok(Arc::new(pager))
    }

    /// Checks that the snapshot still shows its instant (PG-28).
    pub fn check(&self) -> Result<()> {
        if self.loss.get().is_some() { Err(self.lost()) } else { Ok(()) }
    }

    fn lost(&self) -> Error {
        Error::NoSnapshot(self.loss.get().map_or_else(|| "it has ended".into(), String::clone))
    }
}

impl Drop for PageSnapshot {
    fn drop(&mut self) {
        self.live.end_snapshot(Some(&self.loss), "it has ended");
    }
}

/// The data file as of the instant.
struct SnapshotDevice {
    live: Arc<Pager>,
    loss: Loss,
}

impl SnapshotDevice {
    fn is_cached(&self, offset: u64) -> bool {
        self.live.pool.find(offset / PAGE_BYTES as u64).is_some()
    }

    fn read_page(&self, pid: PageId, image: &mut [u8]) -> io::Result<()> {
        for _ in 0..TORN_READS_MAX {
            if self.read_cached(pid, image) {
                break;
            }
            // In no frame, so the file has the newest version, unless another thread reads the page and changes it meanwhile. Then it may look torn, or
            // newer than the instant.
            self.live.pool.data.read(pid * PAGE_BYTES as u64, image)?;
            if !is_torn(pid, image) {
                break;
            }
        }
        self.as_of_instant(pid, image)
    }

    /// Copies the page from its frame, if it is in one.
    fn read_cached(&self, pid: PageId, image: &mut [u8]) -> bool {
        let pool = &self.live.pool;
        while let Some(frame) = pool.find(pid) {
            pool.frames[frame].lock_shared(&pool.lot);
            let guard = Shared { pool, frame };
            if guard.pid() != pid {
                continue;
            }
            guard.page().copy_out(image);
            if pool.frames[frame].flags.load(Ordering::Relaxed) & RAW == 0 {
                page::seal(image);
            }
            return true;
        }
        false
    }

    fn as_of_instant(&self, pid: PageId, image: &mut [u8]) -> io::Result<()> {
        self.live.pool.capture.restore(pid, image, &self.loss).map_err(io::Error::other)
    }
}

/// Returns whether the bytes look like a page that was read while it was written. Bytes of a user may look like one, too.
fn is_torn(pid: PageId, image: &[u8]) -> bool {
    image[8..16] == pid.to_le_bytes() && page::verify(image, pid).is_err()
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a snapshot is read only")
}

impl Device for SnapshotDevice {
    fn name(&self) -> &str {
        "snapshot"
    }

    fn len(&self) -> u64 {
        self.live.pool.data.len()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let first = offset / PAGE_BYTES as u64;
        (first..).zip(buf.chunks_exact_mut(PAGE_BYTES)).try_for_each(|(pid, image)| self.read_page(pid, image))
    }

    /// Reads everything from the file together, then again page by page what was in a frame before.
    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>> {
        let pages = |offset: u64, len: usize| (offset..offset + len as u64).step_by(PAGE_BYTES);
        let cached: Vec<Vec<bool>> =
            ops.iter().map(|(offset, buf)| pages(*offset, buf.len()).map(|at| self.is_cached(at)).collect()).collect();
        let results = self.live.pool.data.read_many(ops);
        let fixed = results.into_iter().zip(ops).zip(cached).map(|((result, (offset, buf)), cached)| {
            result?;
            for ((at, image), cached) in pages(*offset, buf.len()).zip(buf.chunks_exact_mut(PAGE_BYTES)).zip(cached) {
                let pid = at / PAGE_BYTES as u64;
                if cached || is_torn(pid, image) {
                    self.read_page(pid, image)?;
                } else {
                    self.as_of_instant(pid, image)?;
                }
            }
            Ok(())
        });
        fixed.collect()
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn write_durable(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync(&self) -> io::Result<()> {
        Err(read_only())
    }

    fn grow(&self, _: u64) -> io::Result<()> {
        Err(read_only())
    }

    fn prefill(&self, _: u64) -> io::Result<()> {
        Err(read_only())
    }

    fn write_many(&self, _: &[(u64, &[u8])]) -> io::Result<()> {
        Err(read_only())
    }
}
