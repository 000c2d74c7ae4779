//! One opening of the shared database: a pager whose pages hold a number each.

use std::sync::Arc;
use std::sync::Mutex;

use os::{Clock, Lease, ObjectStore, SimClock, SimFolder};
use pager::{
    Background, Error, Exclusive, Lsn, NoObserver, Options, Pager, Record, Redo, RedoTable, SharedStorage, Unfenced,
};

use crate::takeover::oracle::{CELLS, Cells};

const SET_WORD: u8 = 0x10;
const WORD: usize = 8;
const TREE_PAGE: u8 = 2;

/// Sets the number of a page.
struct CellRedo;

impl Redo for CellRedo {
    fn verify(&self, _: &Exclusive<'_>, _: &Record<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn apply(&self, page: &Exclusive<'_>, record: &Record<'_>) -> Result<(), Error> {
        page.store(WORD, u64::from_le_bytes(record.body[..8].try_into().expect("eight bytes")));
        Ok(())
    }
}

/// A running node.
pub struct Opening {
    pub client: usize,
    pub epoch: u64,
    /// The end of the log that recovery found.
    pub recovered_to: Lsn,
    pub pager: Arc<Pager>,
    /// It may reply while this is confirmed.
    pub lease: Arc<Lease>,
    /// The ends of its writes.
    writes: Mutex<Vec<Lsn>>,
}

impl Opening {
    pub fn open(
        objects: Arc<dyn ObjectStore>,
        client: usize,
        clock: &Arc<SimClock>,
        lease: Arc<Lease>,
        unfenced: Option<Unfenced>,
    ) -> Result<Opening, Error> {
        let shared = SharedStorage { objects, scratch: SimFolder::new(1), object_pages: 1, on_end: None, unfenced };
        let options = Options {
            frame_bytes: 64 * 4096,
            ring_bytes: 1 << 16,
            segment_bytes: 32 << 10,
            checkpoint_distance: 64 << 10,
            background: Background::Manual,
            recovery_bytes: 4 << 10,
            ..Options::default()
        };
        let redo = RedoTable::new().own(SET_WORD..SET_WORD + 1, CellRedo);
        let clock: Arc<dyn Clock> = clock.clone();
        let opened = Pager::open_shared(&shared, clock, options, redo, &mut NoObserver, 77, &|_| {})?;
        if let Some((page, what)) = opened.recovered.damaged.first() {
            return Err(Error::Format(format!("page {page} is lost: {what}")));
        }
        Ok(Opening {
            client,
            epoch: opened.pager.boot(),
            recovered_to: opened.recovered.to,
            pager: opened.pager,
            lease,
            writes: Mutex::default(),
        })
    }

    /// Reads a cell. Returns its value and the LSN of its page.
    pub fn read(&self, cell: usize) -> Result<(u64, Lsn), Error> {
        let pid = Pager::well_known(cell as u64);
        if !self.pager.is_formatted(pid)? {
            return Ok((0, 0));
        }
        let page = self.pager.shared(pid)?;
        Ok((page.page().load(WORD), page.page().lsn()))
    }

    pub fn read_all(&self) -> Result<Cells, Error> {
        let mut cells = [0; CELLS];
        for (cell, value) in cells.iter_mut().enumerate() {
            *value = self.read(cell)?.0;
        }
        Ok(cells)
    }

    /// Writes a number to cells, given in ascending order, in one mini-transaction. Returns its end.
    pub fn write(&self, cells: &[usize], value: u64) -> Result<Lsn, Error> {
        let mut pages = Vec::new();
        for cell in cells {
            let pid = Pager::well_known(*cell as u64);
            pages.push((self.pager.is_formatted(pid)?, pid));
        }
        let mut mtr = self.pager.mtr();
        let mut held = Vec::new();
        for (is_formatted, pid) in pages {
            let page = if is_formatted { self.pager.exclusive(pid)? } else { mtr.fresh(pid)? };
            page.store(WORD, value);
            if is_formatted {
                mtr.record(&page, SET_WORD, None, &[&value.to_le_bytes()]);
            } else {
                page.set_kind(TREE_PAGE, 0, 0);
                mtr.image(&page);
            }
            held.push(page);
        }
        let lsn = mtr.commit();
        self.writes.lock().expect("no thread panics").push(lsn);
        Ok(lsn)
    }

    /// Returns the watermark, and the end of the last own write below it.
    pub fn durable(&self) -> (Lsn, Lsn) {
        let durable = self.pager.durable().get();
        let writes = self.writes.lock().expect("no thread panics");
        (durable, writes.iter().copied().filter(|lsn| *lsn <= durable).max().unwrap_or(0))
    }
}
