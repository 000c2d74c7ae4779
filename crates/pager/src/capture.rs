//! Images of pages as of the instant of a page snapshot, kept before the pages change.
//!
//! ```text
//!   off ──begin──► arming: whoever takes X keeps the image ──fix──► on: whoever takes X keeps it if the page LSN is at most the instant ──end──► off
//! ```
//! Images lie in a side file without a name, each at its page's offset, so finding one takes no memory. A page may be kept more than once; the last image is
//! the one of the instant, because none is kept of a page whose LSN lies behind it (PG-25). The file is sparse and goes with the process.

use std::sync::{Arc, OnceLock};

use os::{Aligned, Device};
use stdx::sync::RwLock;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::page::{self, Lsn, PAGE_BYTES, PageId, PageRef, WORD_LSN, WORD_OWNER, kind};

/// Why a snapshot does not show its instant any more.
pub(crate) type Loss = Arc<OnceLock<String>>;

/// The snapshot that images are kept for.
struct Keeping {
    /// The tree whose pages are kept.
    owner: u32,
    instant: Lsn,
    side: Arc<dyn Device>,
    loss: Loss,
}

#[derive(Default)]
pub(crate) struct Capture {
    /// Pages with an LSN up to this one are kept: 0 without a snapshot, `Lsn::MAX` while one begins, then its instant.
    limit: AtomicU64,
    keeping: RwLock<Option<Keeping>>,
}

impl Capture {
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.limit.load(Ordering::Relaxed) != 0
    }

    /// Begins to keep images of the pages of one tree, and calls `hold`. Returns false if that is done for another snapshot.
    pub fn begin(&self, owner: u32, side: Arc<dyn Device>, loss: &Loss, hold: impl FnOnce()) -> bool {
        let mut keeping = self.keeping.write();
        if keeping.is_some() {
            return false;
        }
        *keeping = Some(Keeping { owner, instant: Lsn::MAX, side, loss: loss.clone() });
        hold();
        self.limit.store(Lsn::MAX, Ordering::SeqCst);
        true
    }

    /// Makes the present the instant. `head` is called while no image is being kept: what was kept before it is not newer (PG-25).
    pub fn fix(&self, loss: &Loss, head: impl FnOnce() -> Lsn) -> Option<Lsn> {
        let mut keeping = self.keeping.write();
        let keeping = keeping.as_mut().filter(|keeping| Arc::ptr_eq(&keeping.loss, loss) && loss.get().is_none())?;
        keeping.instant = head();
        self.limit.store(keeping.instant, Ordering::SeqCst);
        Some(keeping.instant)
    }

    /// Ends the present snapshot, drops its file, and calls `release`. Returns false if there is none, or not the one of `only`.
    pub fn end(&self, only: Option<&Loss>, why: &str, release: impl FnOnce()) -> bool {
        let mut keeping = self.keeping.write();
        let is_meant = |keeping: &mut Keeping| only.is_none_or(|loss| Arc::ptr_eq(&keeping.loss, loss));
        let Some(ended) = keeping.take_if(is_meant) else { return false };
        // The end is known before anything that the snapshot held back can be used again.
        let _ = ended.loss.set(why.into());
        self.limit.store(0, Ordering::SeqCst);
        release();
        true
    }

    /// Keeps the image of a page that the caller holds X on and has not changed, if the snapshot needs it.
    pub fn keep(&self, page: PageRef<'_>, pid: PageId) {
        // Checked again below; most pages have changed before, and their writers need no lock.
        if page.kind() != kind::TREE || page.lsn() > self.limit.load(Ordering::Relaxed) {
            return;
        }
        let keeping = self.keeping.read();
        let Some(keeping) = keeping.as_ref().filter(|keeping| keeping.loss.get().is_none()) else { return };
        if page.load(WORD_OWNER) as u32 != keeping.owner || page.lsn() > keeping.instant {
            return;
        }
        let mut image = Aligned::with_capacity(PAGE_BYTES);
        let image = &mut image.as_mut_slice()[..PAGE_BYTES];
        page.copy_out(image);
        page::seal(image);
        if let Err(error) = keeping.side.write(pid * PAGE_BYTES as u64, image) {
            let _ = keeping.loss.set(format!("writing its file: {error}"));
            self.limit.store(0, Ordering::SeqCst);
        }
    }

    /// Replaces the present image of a page by that of the instant, if it has changed since. Bytes that are no page of the snapshot's tree stay as they are.
    pub fn restore(&self, pid: PageId, image: &mut [u8], loss: &Loss) -> Result<(), String> {
        let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes"));
        let keeping = self.keeping.read();
        if let Some(keeping) = keeping.as_ref().filter(|keeping| Arc::ptr_eq(&keeping.loss, loss))
            && image[0] == kind::TREE
            && word(image, WORD_OWNER) as u32 == keeping.owner
            && word(image, WORD_LSN) > keeping.instant
        {
            let mut kept = Aligned::with_capacity(PAGE_BYTES);
            let kept = &mut kept.as_mut_slice()[..PAGE_BYTES];
            // A user's bytes may look like such a page. Of them there is no image, and they are what is wanted.
            if keeping.side.read(pid * PAGE_BYTES as u64, kept).is_ok() && page::verify(kept, pid).is_ok() {
                assert!(
                    word(kept, WORD_LSN) <= keeping.instant,
                    "PG-25: the image of page {pid} is newer than the instant"
                );
                image.copy_from_slice(kept);
            }
        }
        match loss.get() {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }
}
