//! Backup of a running database.
//!
//! The WAL is pinned at the last checkpoint, the data file is copied in any order, then the WAL up to the current position. Opening the copy redoes the WAL
//! over it.
//! Hard part: a page may be written while it is copied. All changes of a page that is written after the pin are in the pinned WAL, so any whole version of
//! it will do; a torn one is read again until its checksum matches. A unit of a value has no checksum of its own, but the WAL holds it whole (PG-7).
//!
//! A renewal (`backup_log`) needs segments that no pin protects. Their numbers must be consecutive, and each file must still be the same segment after it
//! was copied.

use std::io::ErrorKind;
use std::sync::Arc;

use os::{Aligned, Device, Folder, Open};

use crate::control::ControlPages;
use crate::copy::read_untorn;
use crate::error::{Error, Result};
use crate::files::DATA_FILE;
use crate::page::{Lsn, PAGE_BYTES};
use crate::pager::Pager;
use crate::root::{Root, RootRecord};
use crate::space_map::FIRST_PAGE;
use crate::wal::log_files::{self, file_name};
use crate::wal::log_store::SegmentInfo;

const COPY_BYTES: usize = 1 << 20;
/// Name of a segment in the backup folder while it is being copied.
const PARTIAL: &str = "half-a-segment";

/// Result of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Redo of the copy starts here.
    pub from: Lsn,
    /// The copy is consistent at this position and at any later one that its WAL reaches.
    pub to: Lsn,
    pub bytes: u64,
}

impl Pager {
    /// Copies the database into `target`, which must be empty. Reads and writes continue meanwhile. `progress` gets the bytes copied so far and the total.
    pub fn backup(&self, target: &dyn Folder, progress: &dyn Fn(u64, u64)) -> Result<Backup> {
        if !target.list().map_err(|error| Error::io("listing the backup folder", error))?.is_empty() {
            return Err(Error::Format("the backup folder is not empty: choose a new one".into()));
        }
        let pin = self.pin_wal();
        let root = self.begin_backup(target)?;
        let copied = self.copy_pages(target, progress)?;
        let to = self.wal_head();
        self.flush_to(to)?;
        let mut bytes = copied;
        for number in self.segments_from(pin.lsn())? {
            let name = file_name(number);
            bytes += copy_file(self.log().open(number)?.as_ref(), &name, target, &name)?;
        }
        target.sync().map_err(|error| Error::io("syncing the backup folder", error))?;
        let record = RootRecord { checkpoint: pin.lsn(), consistent: to, ..self.control_copy() };
        root.compare_and_set(record.boot, record)?;
        Ok(Backup { from: pin.lsn(), to, bytes })
    }

    /// Notes in the folder that a backup has begun (PG-36).
    fn begin_backup(&self, target: &dyn Folder) -> Result<ControlPages> {
        let data = open(target, DATA_FILE)?;
        data.grow(FIRST_PAGE * PAGE_BYTES as u64).map_err(|error| Error::io("beginning the backup", error))?;
        let root = ControlPages::new(data);
        root.get()?;
        root.compare_and_set(0, RootRecord { is_incomplete: true, ..self.control_copy() })?;
        target.sync().map_err(|error| Error::io("syncing the backup folder", error))?;
        Ok(root)
    }

    /// Appends the WAL since an earlier backup to it, so that the copy can be opened at any moment in between. Fails if a segment it needs has been recycled.
    pub fn backup_log(&self, target: &dyn Folder) -> Result<Backup> {
        let data = target
            .open(DATA_FILE, Open::Existing)
            .map_err(|error| Error::io("opening the data file of the backup", error))?;
        let control = ControlPages::new(data)
            .get()?
            .filter(|control| control.database == self.database())
            .ok_or_else(|| Error::Format("the folder holds no backup of this database".into()))?;
        control.check_complete()?;
        let _pin = self.pin_wal();
        let copied = log_files::segments(target, control.database)?;
        let last = copied.last().map_or(0, |segment| segment.number);
        let to = self.wal_head();
        self.flush_to(to)?;
        let ours = self.log().segments()?;
        if !ours.iter().any(|segment| segment.number == last) {
            return Err(segment_recycled(last));
        }
        let mut bytes = 0;
        for (number, segment) in (last..).zip(ours.iter().filter(|segment| segment.number >= last)) {
            if segment.number != number {
                return Err(segment_recycled(number));
            }
            bytes += self.copy_segment(*segment, target)?;
        }
        target.sync().map_err(|error| Error::io("syncing the backup folder", error))?;
        Ok(Backup { from: control.checkpoint, to, bytes })
    }

    /// Copies a segment that no pin protects. The copy counts only if the segment is there afterwards: a recycled file is renamed before it is written again.
    fn copy_segment(&self, segment: SegmentInfo, target: &dyn Folder) -> Result<u64> {
        let name = file_name(segment.number);
        let failed = |error| Error::io(format!("copying '{name}' into the backup"), error);
        if target.list().map_err(failed)?.iter().any(|known| known == PARTIAL) {
            target.remove(PARTIAL).map_err(failed)?;
        }
        let is_gone = |error: &Error| matches!(error, Error::Io { error, .. } if error.kind() == ErrorKind::NotFound);
        let open = || self.log().open(segment.number);
        let found = || log_files::segment_in(open()?.as_ref(), segment.number, self.database());
        let bytes = copy_file(open()?.as_ref(), &name, target, PARTIAL)?;
        match found() {
            Ok(Some(now)) if now == segment => {}
            // It has been deleted, or its name belongs to another segment.
            Ok(_) => return Err(segment_recycled(segment.number)),
            Err(error) if is_gone(&error) => return Err(segment_recycled(segment.number)),
            Err(error) => return Err(error),
        }
        target.rename(PARTIAL, &name).map_err(failed)?;
        Ok(bytes)
    }

    fn segments_from(&self, from: Lsn) -> Result<Vec<u64>> {
        let all = self.log().segments()?;
        let first = all.iter().rev().find(|segment| segment.start <= from).map_or(0, |segment| segment.number);
        Ok(all.iter().map(|segment| segment.number).filter(|number| *number >= first).collect())
    }

    fn copy_pages(&self, target: &dyn Folder, progress: &dyn Fn(u64, u64)) -> Result<u64> {
        let from = &self.pool.data;
        let total = from.len();
        let to = open(target, DATA_FILE)?;
        to.grow(total).map_err(|error| Error::io("growing the backup's data file", error))?;
        let mut buffer = Aligned::with_capacity(COPY_BYTES);
        // The control blocks say that the backup is incomplete, until it is not.
        let mut offset = FIRST_PAGE * PAGE_BYTES as u64;
        while offset < total {
            let len = (COPY_BYTES as u64).min(total - offset) as usize;
            let piece = &mut buffer.as_mut_slice()[..len];
            from.read(offset, piece).map_err(|error| Error::io("reading pages for the backup", error))?;
            for (at, image) in piece.chunks_exact_mut(PAGE_BYTES).enumerate() {
                // One that is damaged is damaged in the backup, too.
                read_untorn(from.as_ref(), offset / PAGE_BYTES as u64 + at as u64, image)?;
            }
            to.write(offset, piece).map_err(|error| Error::io("writing the backup", error))?;
            offset += len as u64;
            progress(offset, total);
        }
        to.sync().map_err(|error| Error::io("syncing the backup", error))?;
        Ok(total)
    }
}

fn open(folder: &dyn Folder, name: &str) -> Result<Arc<dyn Device>> {
    folder.open(name, Open::Create).map_err(|error| Error::io(format!("creating '{name}' of the backup"), error))
}

/// The error for a segment that was recycled before the backup was renewed.
fn segment_recycled(number: u64) -> Error {
    Error::Format(format!(
        "log segment {number}, the next one that the backup needs, has been recycled: make a new backup, and renew its log more often"
    ))
}

fn copy_file(source: &dyn Device, name: &str, to: &dyn Folder, copy: &str) -> Result<u64> {
    let copy = open(to, copy)?;
    copy.grow(source.len()).map_err(|error| Error::io(format!("growing '{name}' of the backup"), error))?;
    let mut buffer = Aligned::with_capacity(COPY_BYTES);
    let mut offset = 0;
    while offset < source.len() {
        let len = (COPY_BYTES as u64).min(source.len() - offset) as usize;
        let piece = &mut buffer.as_mut_slice()[..len];
        source.read(offset, piece).map_err(|error| Error::io(format!("reading '{name}'"), error))?;
        copy.write(offset, piece).map_err(|error| Error::io(format!("writing '{name}' of the backup"), error))?;
        offset += len as u64;
    }
    copy.sync().map_err(|error| Error::io(format!("syncing '{name}' of the backup"), error))?;
    Ok(offset)
}
