//! The number of those who may write keys: of everybody, or of the one writer that follows another server (`follow`).
//!
//! It changes while all stripes are held, and is compared under the stripe of what is to be written (EN-89).

use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::store::Store;

/// The catalog's record, which exists while a server is followed.
pub(crate) const FOLLOW_KEY: &[u8] = b"follow";

/// The number under which everybody writes, while nobody is followed.
pub(crate) const EVERYBODY: u64 = 0;

#[derive(Default)]
pub(crate) struct WriterNumber {
    present: AtomicU64,
    last: AtomicU64,
}

impl WriterNumber {
    /// Checks that this number may write. A stripe of what it writes must be held (D32-1).
    #[inline]
    pub fn check(&self, writer: u64) -> Result<()> {
        if self.present() == writer { Ok(()) } else { Err(Error::Following) }
    }

    #[inline]
    pub fn present(&self) -> u64 {
        self.present.load(Ordering::Relaxed)
    }

    pub fn is_following(&self) -> bool {
        self.present() != EVERYBODY
    }

    /// Reads at the start whether a server was followed.
    pub fn load(&self, store: &Store) -> Result<()> {
        if note(store)?.is_some() {
            self.renew();
        }
        Ok(())
    }

    /// Lets a new number write, which no writer had before. All stripes must be held.
    pub fn renew(&self) -> u64 {
        let writer = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.set(writer);
        writer
    }

    pub fn set(&self, writer: u64) {
        self.present.store(writer, Ordering::Relaxed);
    }
}

/// Reads how far the other server has been followed. None: nobody is followed.
pub(crate) fn note(store: &Store) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    Ok(store.catalog.get(FOLLOW_KEY, &mut bytes)?.present.then_some(bytes))
}
