use super::*;
use std::sync::Arc;

use os::{Folder, SimClock, SimFolder};
use pager::{Background, NoObserver, Options, RedoTable};

fn pager() -> Arc<Pager> {
    let folder: Arc<dyn Folder> = SimFolder::new(3);
    let options = Options {
        frame_bytes: 256 * 4096,
        ring_bytes: 1 << 20,
        segment_bytes: 4 << 20,
        background: Background::Manual,
        ..Options::default()
    };
    Pager::open(folder, Arc::new(SimClock::new(1)), options, RedoTable::new(), &mut NoObserver, 1, &|_| {})
        .unwrap()
        .pager
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

fn whole(pager: &Pager, body: &Body<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    read_plain(pager, body, 0..body.payload_len() as usize, &mut out).unwrap();
    out
}

#[test]
fn what_is_not_named_goes_back() {
    let pager = pager();
    let before = pager.allocated_pages();
    let fresh = NewBody::write(&pager, &bytes(50_000)).unwrap();
    assert_eq!(pager.allocated_pages(), before + 13);
    assert_eq!(whole(&pager, &fresh.body()), bytes(50_000));
    drop(fresh);
    assert_eq!(pager.allocated_pages(), before);
}

#[test]
fn a_patch_shares_the_pages_it_does_not_touch() {
    let pager = pager();
    let old = NewBody::write(&pager, &bytes(40_960)).unwrap();
    let new = patch(&pager, &old.body(), 9_000, b"!!").unwrap();
    assert_eq!(new.reserved.runs().iter().map(|run| run.pages).sum::<u32>(), 1);
    let mut expected = bytes(40_960);
    expected[9_000..9_002].copy_from_slice(b"!!");
    assert_eq!(whole(&pager, &new.body()), expected);
    assert_eq!(whole(&pager, &old.body()), bytes(40_960), "the old value is unchanged until its record is deleted");
    let grown = patch(&pager, &new.body(), 40_960, b"tail").unwrap();
    assert!(grown.reserved.runs().is_empty(), "a short tail stays in the record");
    assert_eq!(whole(&pager, &grown.body())[40_960..], *b"tail");
}

#[test]
fn a_value_in_too_many_pieces_is_written_anew_in_one() {
    let pager = pager();
    let mut value = NewBody::write(&pager, &bytes(EXTENT_MAX)).unwrap();
    let mut kept = Vec::new();
    let mut most = 0;
    for unit in (0..64).step_by(2) {
        let next = patch(&pager, &value.body(), unit * PAGE_BYTES, b"x").unwrap();
        kept.push(std::mem::replace(&mut value, next));
        most = most.max(value.body().runs().count());
        assert!(value.body().runs().count() <= RUNS_MAX);
    }
    assert!(most > RUNS_MAX / 2, "{most}");
    let mut expected = bytes(EXTENT_MAX);
    for unit in (0..64).step_by(2) {
        expected[unit * PAGE_BYTES] = b'x';
    }
    assert_eq!(whole(&pager, &value.body()), expected);
}

#[test]
fn a_damaged_tail_is_an_error_not_a_panic() {
    let pager = pager();
    let fresh = NewBody::write(&pager, &bytes(4_200)).unwrap();
    let Body::Extent(extent) = fresh.body() else { panic!("4200 bytes are an extent") };
    let mut cut = extent;
    cut.tail = &extent.tail[..3];
    assert!(read_extent(&pager, &cut, 0..4_200, &mut Vec::new()).is_err());
    assert!(read_plain(&pager, &Body::Inline(b"abc"), 0..4, &mut Vec::new()).is_err());
}
