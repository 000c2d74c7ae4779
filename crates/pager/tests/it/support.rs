//! A toy owner of pages: a page is an array of words, a record says "word w becomes v".

use std::sync::Arc;

use os::{Folder, SimClock, SimFolder};
use pager::{
    Background, Error, Exclusive, Lsn, Mtr, NoObserver, Opened, Options, PageId, Pager, Record, Redo, RedoTable,
};

pub const SET_WORD: u8 = 0x10;
pub const FIRST_WORD: usize = 8;

pub struct ToyRedo;

impl Redo for ToyRedo {
    fn verify(&self, _: &Exclusive<'_>, _: &Record<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn apply(&self, page: &Exclusive<'_>, record: &Record<'_>) -> Result<(), Error> {
        let word = |at: usize| u64::from_le_bytes(record.body[at * 8..][..8].try_into().expect("eight bytes"));
        page.store(word(0) as usize, word(1));
        Ok(())
    }
}

pub fn options() -> Options {
    Options {
        frame_bytes: 64 * 4096,
        ring_bytes: 1 << 20,
        segment_bytes: 256 << 10,
        checkpoint_distance: 128 << 10,
        background: Background::Manual,
        // Several batches.
        recovery_bytes: 64 << 10,
        ..Options::default()
    }
}

pub fn try_open(folder: Arc<SimFolder>, options: Options) -> Result<Opened, Error> {
    let folder: Arc<dyn Folder> = folder;
    let redo = RedoTable::new().own(0x10..0x11, ToyRedo);
    Pager::open(folder, Arc::new(SimClock::new(1_000)), options, redo, &mut NoObserver, 77, &|_| {})
}

pub fn open(folder: &Arc<SimFolder>) -> Arc<Pager> {
    try_open(folder.clone(), options()).expect("the folder opens").pager
}

pub fn set(mtr: &mut Mtr<'_>, page: &Exclusive<'_>, word: usize, value: u64) {
    page.store(word, value);
    mtr.record(page, SET_WORD, None, &[&(word as u64).to_le_bytes(), &value.to_le_bytes()]);
}

/// Creates a page with `value` in its first word.
pub fn make_page(pager: &Pager, value: u64) -> Result<(PageId, Lsn), Error> {
    let mut mtr = pager.mtr();
    let pid = mtr.allocate(1, pager::NO_PAGE)?;
    let page = mtr.fresh(pid)?;
    page.set_kind(2, 0, 0);
    page.store(FIRST_WORD, value);
    mtr.image(&page);
    Ok((pid, mtr.commit()))
}

pub fn change(pager: &Pager, pids: &[PageId], value: u64) -> Result<Lsn, Error> {
    let mut sorted = pids.to_vec();
    sorted.sort_unstable();
    let pages = sorted.iter().map(|pid| pager.exclusive(*pid)).collect::<Result<Vec<_>, _>>()?;
    let mut mtr = pager.mtr();
    for page in &pages {
        set(&mut mtr, page, FIRST_WORD, value);
        set(&mut mtr, page, FIRST_WORD + 1, value);
    }
    Ok(mtr.commit())
}

pub fn value(pager: &Pager, pid: PageId) -> u64 {
    let page = pager.shared(pid).expect("the page reads");
    page.page().load(FIRST_WORD)
}
