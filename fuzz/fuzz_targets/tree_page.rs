//! A page with random content and a correct checksum, as a bug or faulty memory would leave it: searches, scans, the checker and changes must
//! end, with a result or an error, and must not panic.
//!
//! `make fuzz` in the root. The first three bytes of the input choose the page and where the rest of them goes.
#![no_main]

use std::ops::Bound;
use std::sync::{Arc, LazyLock};

use btree::{Batch, Tree};
use libfuzzer_sys::fuzz_target;
use os::{Aligned, Folder, Open, SimClock, SimFolder};
use pager::page::{seal, verify};
use pager::{Background, DATA_FILE, NoObserver, Options, PAGE_BYTES, PageId, Pager, RedoTable};

const TREE: u32 = 3;
const KEYS: u64 = 400;
/// Words of a page that records may use: small, so that a few hundred keys make three levels.
const END: usize = 48;

/// A closed database with one tree in it.
struct Template {
    folder: Arc<SimFolder>,
    root: PageId,
    pages: Vec<PageId>,
}

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
    let folder = SimFolder::new(1);
    let pager = open(folder.clone());
    let tree = Tree::create_sized(&pager, TREE, None, END).expect("created");
    for number in 0..KEYS {
        tree.modify(&key(number), None, |_, change| change.put(&[&number.to_le_bytes()])).expect("put");
    }
    let root = tree.root();
    drop(tree);
    pager.close().expect("closed");
    let device = folder.open(DATA_FILE, Open::Existing).expect("there");
    let is_page = |pid: &PageId| {
        let mut image = Aligned::with_capacity(PAGE_BYTES);
        device.read(pid * PAGE_BYTES as u64, image.as_mut_slice()).expect("read");
        verify(image.as_slice(), *pid).is_ok()
    };
    let pages = (1..device.len() / PAGE_BYTES as u64).filter(is_page).collect();
    Template { folder, root, pages }
});

fn open(folder: Arc<SimFolder>) -> Arc<Pager> {
    let options = Options {
        frame_bytes: 1 << 20,
        ring_bytes: 64 << 10,
        segment_bytes: 64 << 10,
        checkpoint_distance: 1 << 20,
        background: Background::Manual,
        ..Options::default()
    };
    let redo = RedoTable::new().own(btree::redo::KINDS, btree::redo::redo());
    Pager::open(folder, Arc::new(SimClock::new(1)), options, redo, &mut NoObserver, 7, &|_| {}).expect("opens").pager
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{:06}", number * 7919 % 100_003).into_bytes()
}

fuzz_target!(|data: &[u8]| {
    let [page, low, high, rubbish @ ..] = data else { return };
    let folder = TEMPLATE.folder.fork(1);
    let pid = TEMPLATE.pages[usize::from(*page) % TEMPLATE.pages.len()];
    let device = folder.open(DATA_FILE, Open::Existing).expect("there");
    let mut image = Aligned::with_capacity(PAGE_BYTES);
    device.read(pid * PAGE_BYTES as u64, image.as_mut_slice()).expect("read");
    let at = usize::from(u16::from_le_bytes([*low, *high])) % PAGE_BYTES;
    let count = rubbish.len().min(PAGE_BYTES - at);
    image.as_mut_slice()[at..at + count].copy_from_slice(&rubbish[..count]);
    // The number of the page stays: another one is a misdirected write, which the checksum test detects first.
    image.as_mut_slice()[..8].copy_from_slice(&pid.to_le_bytes());
    seal(image.as_mut_slice());
    device.write_durable(pid * PAGE_BYTES as u64, image.as_slice()).expect("written");

    let pager = open(folder);
    let tree = Tree::open(&pager, TREE, TEMPLATE.root);
    let mut out = Vec::new();
    for number in (0..KEYS).step_by(7) {
        out.clear();
        let _ = tree.get(&key(number), &mut out);
    }
    for scan in [tree.scan(Bound::Unbounded, Bound::Unbounded), tree.scan_back(Bound::Unbounded, Bound::Unbounded)] {
        let mut scan = scan;
        let mut batch = Batch::new();
        for _ in 0..2 * KEYS {
            if !matches!(scan.next_batch(&mut batch), Ok(true)) {
                break;
            }
        }
    }
    let _ = tree.check();
    for number in (0..KEYS).step_by(13) {
        let _ = tree.modify(&key(number), None, |old, change| match old {
            Some(_) if number % 2 == 0 => change.delete(),
            _ => change.put(&[b"another value, longer than the first"]),
        });
    }
});
