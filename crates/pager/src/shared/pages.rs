//! Pages as objects, 4 MiB each: one guarded operation for each object of a batch, and no double write, since the operation is atomic.
//!
//! Hard part: an earlier opening may still write. The first write of an object in an opening raises its epoch in the same operation, all later ones compare it
//! for equality (PG-30). Until then a late write may land; recovery writes every page for which that could matter (PG-31). So objects are never removed (PG-32):
//! a late first write would create one again.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use os::{Device, Guard, ObjectError, ObjectStore};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::page::{self, PAGE_BYTES, PageId};
use crate::page_store::PageStore;
use crate::shared::object::{failed, io_error, no_such_operation, read_numbers, write_first};

const SIZE: &str = "size";

fn name(object: u64) -> String {
    format!("page/{object:016x}")
}

/// Zeros the bytes behind those that an object has; one that does not exist has none.
fn fill_rest(read: Result<usize, ObjectError>, piece: &mut [u8]) -> io::Result<()> {
    let read = match read {
        Err(ObjectError::Missing) => 0,
        other => other.map_err(io_error)?,
    };
    piece[read..].fill(0);
    Ok(())
}

/// The pages of a shared database.
pub(super) struct PageObjects {
    objects: Arc<dyn ObjectStore>,
    epoch: u64,
    bytes: AtomicU64,
    /// Pages of one object. The object `size` keeps it from the creation on.
    object_pages: u64,
    /// The objects that this opening has written (PG-30).
    written: Mutex<HashSet<u64>>,
}

impl PageObjects {
    /// Claims the length, so that no earlier opening changes it any more, and reads it.
    ///
    /// A new database gets objects of `object_pages` pages.
    pub fn open(objects: Arc<dyn ObjectStore>, epoch: u64, object_pages: u64) -> Result<PageObjects> {
        write_first(objects.as_ref(), SIZE, epoch, &[]).map_err(|error| failed("claiming the pages", error))?;
        let [bytes, known] = read_numbers(objects.as_ref(), SIZE)?.unwrap_or_default();
        let object_pages = if known == 0 { object_pages } else { known };
        Ok(PageObjects { objects, epoch, bytes: AtomicU64::new(bytes), object_pages, written: Mutex::default() })
    }

    pub fn object_bytes(&self) -> u64 {
        self.object_pages * PAGE_BYTES as u64
    }

    /// Returns the bytes from an offset to the end of its object.
    fn left_in_object(&self, offset: u64) -> usize {
        (self.object_bytes() - offset % self.object_bytes()) as usize
    }

    /// Makes the pages at least `bytes` long.
    pub fn extend(&self, bytes: u64) -> io::Result<()> {
        if bytes <= self.bytes.load(Ordering::Acquire) {
            return Ok(());
        }
        self.write_length(bytes).map_err(io_error)?;
        self.bytes.fetch_max(bytes, Ordering::AcqRel);
        Ok(())
    }

    /// Sets the length, which may be less than before.
    pub fn set_length(&self, bytes: u64) -> Result<()> {
        self.write_length(bytes).map_err(|error| failed("noting the length of the pages", error))?;
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    fn write_length(&self, bytes: u64) -> Result<(), ObjectError> {
        let (guard, known) = (Guard::Equal(self.epoch), self.object_pages.to_le_bytes());
        self.objects.write(SIZE, guard, self.epoch, &[(0, &bytes.to_le_bytes()), (8, &known)])
    }

    /// Gives one object a new content: `bytes`, and zeros behind it. An object that an earlier copy has left is overwritten as a whole and not removed: a late write of
    /// that copy would create it again (PG-32).
    pub fn replace_object(&self, object: u64, bytes: &[u8]) -> Result<()> {
        let (name, failed) = (name(object), |error| failed("writing pages", error));
        let written = page::written(bytes);
        let piece = (written.start as u64, &bytes[written]);
        match self.objects.write(&name, Guard::Absent, self.epoch, &[piece]) {
            Err(ObjectError::Exists) => {}
            other => return other.map_err(failed),
        }
        let zeros = vec![0; self.object_bytes() as usize - bytes.len()];
        let pieces: [(u64, &[u8]); 2] = [(0, bytes), (bytes.len() as u64, &zeros)];
        self.objects.write(&name, Guard::AtMostNew, self.epoch, &pieces).map_err(failed)
    }

    /// Writes pieces of one object.
    fn write_object(&self, object: u64, pieces: &[(u64, &[u8])]) -> Result<(), ObjectError> {
        let name = name(object);
        if self.written.lock().contains(&object) {
            return self.objects.write(&name, Guard::Equal(self.epoch), self.epoch, pieces);
        }
        write_first(self.objects.as_ref(), &name, self.epoch, pieces)?;
        self.written.lock().insert(object);
        Ok(())
    }
}

impl PageStore for Arc<PageObjects> {
    /// A batch that a full pool has stopped was written or not, object by object. Its pages are still dirty, and are copied and written again.
    fn settle(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn write_batch(&mut self, blocks: &mut [u8], pages: &[PageId], _: usize) -> Result<()> {
        let bytes = &blocks[PAGE_BYTES..];
        let mut order: Vec<usize> = (0..pages.len()).collect();
        order.sort_unstable_by_key(|at| pages[*at]);
        for of_object in order.chunk_by(|one, next| pages[*one] / self.object_pages == pages[*next] / self.object_pages)
        {
            let object = pages[of_object[0]] / self.object_pages;
            let piece = |at: &usize| {
                (pages[*at] % self.object_pages * PAGE_BYTES as u64, &bytes[at * PAGE_BYTES..][..PAGE_BYTES])
            };
            let pieces: Vec<(u64, &[u8])> = of_object.iter().map(piece).collect();
            self.write_object(object, &pieces).map_err(|error| failed("writing pages", error))?;
        }
        Ok(())
    }
}

impl Device for PageObjects {
    fn name(&self) -> &str {
        "page"
    }

    fn len(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if offset + buf.len() as u64 > self.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut offset, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at_mut(self.left_in_object(offset).min(rest.len()));
            let read = self.objects.read(&name(offset / self.object_bytes()), offset % self.object_bytes(), piece);
            offset += piece.len() as u64;
            fill_rest(read, piece)?;
            rest = behind;
        }
        Ok(())
    }

    /// Asks for everything before it waits.
    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>> {
        let mut results: Vec<io::Result<()>> = ops
            .iter()
            .map(|(offset, buf)| match offset + buf.len() as u64 <= self.len() {
                true => Ok(()),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            })
            .collect();
        // Each piece lies in one object.
        let mut pieces: Vec<(usize, String, u64, &mut [u8])> = Vec::with_capacity(ops.len());
        for (at, (offset, buf)) in ops.iter_mut().enumerate().filter(|(at, _)| results[*at].is_ok()) {
            let (mut offset, mut rest) = (*offset, &mut **buf);
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at_mut(self.left_in_object(offset).min(rest.len()));
                let len = piece.len() as u64;
                pieces.push((at, name(offset / self.object_bytes()), offset % self.object_bytes(), piece));
                offset += len;
                rest = behind;
            }
        }
        let mut reads: Vec<(&str, u64, &mut [u8])> =
            pieces.iter_mut().map(|(_, name, offset, piece)| (name.as_str(), *offset, &mut **piece)).collect();
        let answers = self.objects.read_many(&mut reads);
        for ((at, _, _, piece), answer) in pieces.into_iter().zip(answers) {
            if let Err(error) = fill_rest(answer, piece) {
                results[at] = Err(error);
            }
        }
        results
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.extend(len)
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn write_durable(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn write_many(&self, _: &[(u64, &[u8])]) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn sync(&self) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn prefill(&self, _: u64) -> io::Result<()> {
        Err(no_such_operation())
    }
}
