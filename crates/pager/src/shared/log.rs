//! Segments of the WAL as objects, appended to under the writer's epoch.
//!
//! Hard part: the end of the log must stay the end. `fence` raises the epoch of every segment, from the first that is kept on, until a number does not exist, and
//! creates that one. An earlier opening can then append to none that exists and create none: the next number that it would take is taken (PG-29).

use std::io;
use std::sync::Arc;

use os::{Aligned, Device, Guard, ObjectError, ObjectStore};
use stdx::sync::Mutex;

use crate::error::Result;
use crate::shared::object::{failed, io_error, no_such_operation, read_numbers, write_first};
use crate::wal::log_store::{LogStore, SegmentInfo};
use crate::wal::segment::{BLOCK, SegmentHeader};

const FIRST: &str = "log/first";

fn name(number: u64) -> String {
    format!("log/{number:016x}")
}

/// The segments of a shared database.
pub(super) struct LogObjects {
    objects: Arc<dyn ObjectStore>,
    epoch: u64,
    database: u64,
    segment_bytes: u64,
    /// The number of the first segment that is kept.
    first: Mutex<u64>,
}

impl LogObjects {
    pub fn new(objects: Arc<dyn ObjectStore>, epoch: u64, database: u64, segment_bytes: u64) -> LogObjects {
        assert!(segment_bytes.is_multiple_of(BLOCK as u64) && segment_bytes >= 4 * BLOCK as u64);
        LogObjects { objects, epoch, database, segment_bytes, first: Mutex::new(1) }
    }

    /// Ends all appends of earlier openings. The root must have been claimed.
    pub fn fence(&self) -> Result<()> {
        // In this order: from here on no earlier opening moves the first segment.
        write_first(self.objects.as_ref(), FIRST, self.epoch, &[])
            .map_err(|error| failed("claiming the log", error))?;
        let [first] = read_numbers(self.objects.as_ref(), FIRST)?.unwrap_or_default();
        let first = first.max(1);
        *self.first.lock() = first;
        // A removal that was interrupted has left the last of its segments.
        for number in (1..first).rev() {
            match self.objects.remove(&name(number)) {
                Ok(()) => {}
                Err(ObjectError::Missing) => break,
                Err(error) => return Err(failed(&format!("removing log segment {number}"), error)),
            }
        }
        for number in first.. {
            match self.objects.write(&name(number), Guard::AtMostNew, self.epoch, &[]) {
                Ok(()) => continue,
                Err(ObjectError::Missing) => {}
                Err(error) => return Err(failed(&format!("sealing log segment {number}"), error)),
            }
            match self.objects.write(&name(number), Guard::Absent, self.epoch, &[]) {
                Ok(()) => return Ok(()),
                // An earlier opening was quicker. Its segment is sealed in the next try, after which it has to create a further one.
                Err(ObjectError::Exists) => {
                    self.objects
                        .write(&name(number), Guard::AtMostNew, self.epoch, &[])
                        .map_err(|error| failed(&format!("sealing log segment {number}"), error))?;
                }
                Err(error) => return Err(failed(&format!("creating log segment {number}"), error)),
            }
        }
        unreachable!("segments are numbered by 64 bits")
    }

    fn segment(&self, number: u64) -> Arc<dyn Device> {
        let (objects, bytes) = (self.objects.clone(), self.segment_bytes);
        Arc::new(SegmentObject { objects, name: name(number), epoch: self.epoch, bytes })
    }

    /// Returns the header of a segment; `Err(Missing)` if there is no such object.
    fn header(&self, number: u64) -> Result<Option<SegmentHeader>, ObjectError> {
        let mut block = Aligned::with_capacity(BLOCK);
        self.objects.read(&name(number), 0, &mut block.as_mut_slice()[..BLOCK])?;
        let header = SegmentHeader::decode(block.as_slice());
        Ok(header.filter(|header| header.number == number && header.database == self.database))
    }

    /// Compares the epoch of the log with that of this opening.
    fn check_claim(&self) -> Result<(), ObjectError> {
        self.objects.write(FIRST, Guard::Equal(self.epoch), self.epoch, &[])
    }

    /// Writes zeros over the header of a segment that this opening owns.
    fn void(&self, number: u64) -> Result<(), ObjectError> {
        let zeros = [0; BLOCK];
        self.objects.write(&name(number), Guard::Equal(self.epoch), self.epoch, &[(0, &zeros)])
    }
}

impl LogStore for LogObjects {
    /// Counts up from the first segment that is kept.
    fn segments(&self) -> Result<Vec<SegmentInfo>> {
        let mut found = Vec::new();
        for number in *self.first.lock().. {
            match self.header(number) {
                Ok(header) => found.extend(header.map(|header| SegmentInfo { number, start: header.start })),
                Err(ObjectError::Missing) => break,
                Err(error) => return Err(failed(&format!("reading the header of log segment {number}"), error)),
            }
        }
        Ok(found)
    }

    fn open(&self, number: u64) -> Result<Arc<dyn Device>> {
        Ok(self.segment(number))
    }

    fn seal(&self, used: &[SegmentInfo]) -> Result<()> {
        let next = used.last().map_or(*self.first.lock(), |last| last.number + 1);
        for number in next.. {
            match self.void(number) {
                Ok(()) => {}
                Err(ObjectError::Missing) => break,
                Err(error) => return Err(failed(&format!("voiding log segment {number}"), error)),
            }
        }
        Ok(())
    }

    /// A number that a newer opening has dropped does not exist either. So the epoch of the log is compared after the creation (PG-35): an opening that has claimed it
    /// before is noticed, and one that claims it afterwards finds the segment and seals it.
    fn create(&self, number: u64) -> Result<Arc<dyn Device>> {
        let failed = |error| failed(&format!("creating log segment {number}"), error);
        match self.objects.write(&name(number), Guard::Absent, self.epoch, &[]) {
            Ok(()) => self.check_claim().map_err(failed)?,
            // It was prepared by an earlier opening, or is the one that ended the log, and has been sealed.
            Err(ObjectError::Exists) => {}
            Err(error) => return Err(failed(error)),
        }
        self.void(number).map_err(failed)?;
        Ok(self.segment(number))
    }

    /// The storage has its own reserve against a full pool.
    fn reserve(&self) -> Result<()> {
        Ok(())
    }

    fn create_reserved(&self, _: u64) -> Result<Option<Arc<dyn Device>>> {
        Ok(None)
    }

    fn drop_segments(&self, numbers: &[u64], _: usize) -> Result<()> {
        let Some(last) = numbers.last() else { return Ok(()) };
        let mut first = self.first.lock();
        // Noted first: whoever counts up begins at a segment that is there.
        let next = (last + 1).to_le_bytes();
        self.objects
            .write(FIRST, Guard::Equal(self.epoch), self.epoch, &[(0, &next)])
            .map_err(|error| failed("noting the first log segment", error))?;
        *first = last + 1;
        for number in numbers {
            match self.objects.remove(&name(*number)) {
                Ok(()) | Err(ObjectError::Missing) => {}
                Err(error) => return Err(failed(&format!("removing log segment {number}"), error)),
            }
        }
        Ok(())
    }

    fn trim(&self) -> Result<bool> {
        Ok(false)
    }
}

/// A segment of the WAL.
struct SegmentObject {
    objects: Arc<dyn ObjectStore>,
    name: String,
    epoch: u64,
    /// Its capacity. The object grows as it is appended to.
    bytes: u64,
}

impl Device for SegmentObject {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let read = self.objects.read(&self.name, offset, buf).map_err(io_error)?;
        buf[read..].fill(0);
        Ok(())
    }

    fn write_durable(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        assert!(offset + buf.len() as u64 <= self.bytes, "an append beyond the end of a segment");
        self.objects.write(&self.name, Guard::Equal(self.epoch), self.epoch, &[(offset, buf)]).map_err(io_error)
    }

    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>> {
        ops.iter_mut().map(|(offset, buf)| self.read(*offset, buf)).collect()
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn write_many(&self, _: &[(u64, &[u8])]) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn sync(&self) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn grow(&self, _: u64) -> io::Result<()> {
        Err(no_such_operation())
    }

    fn prefill(&self, _: u64) -> io::Result<()> {
        Err(no_such_operation())
    }
}
