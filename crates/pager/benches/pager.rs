//! Cost of an optimistic read of a page and of a small mini-transaction. Runs tiny under `cargo test`, large under `cargo bench -p pager`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use os::{Folder, RealClock, SimFolder};
use pager::{Background, NoObserver, Options, Pager, RedoTable};

fn main() {
    let large = std::env::args().any(|argument| argument == "--bench");
    let rounds: u64 = if large { 3_000_000 } else { 3_000 };
    let folder: Arc<dyn Folder> = SimFolder::new(1);
    let options = Options { frame_bytes: 64 << 20, background: Background::Threads, ..Options::default() };
    let opened =
        Pager::open(folder, Arc::new(RealClock::new()), options, RedoTable::new(), &mut NoObserver, 1, &|_| {})
            .expect("opens");
    let pager = opened.pager;
    let pids: Vec<u64> = (0..8_000)
        .map(|_| {
            let mut mtr = pager.mtr();
            let pid = mtr.allocate(1, pager::NO_PAGE).expect("room");
            let page = mtr.fresh(pid).expect("a frame");
            page.set_kind(2, 0, 0);
            mtr.image(&page);
            mtr.commit();
            pid
        })
        .collect();
    let mut random = stdx::prng::Prng::new(7);
    let order: Vec<u64> = (0..rounds).map(|_| pids[random.below(8_000) as usize]).collect();

    let mut hash = 0u64;
    let started = Instant::now();
    for pid in &order {
        let view = pager.optimistic(*pid).expect("resident");
        hash = hash.wrapping_mul(31) ^ view.page().load(1);
        assert!(view.validate());
    }
    report("optimistic read", started, rounds);

    let started = Instant::now();
    for pid in &order[..order.len() / 4] {
        let page = pager.exclusive(*pid).expect("resident");
        let mut mtr = pager.mtr();
        page.store(8, hash);
        mtr.record(&page, 0x10, None, &[&[7; 150]]);
        hash ^= mtr.commit();
    }
    report("one-page mini-transaction of 176 bytes", started, rounds / 4);
    println!("hash {:x}", black_box(hash));
    pager.flush_to(pager.wal_head()).expect("the disk works");
}

fn report(what: &str, started: Instant, rounds: u64) {
    println!("{what}: {:.0} ns", started.elapsed().as_nanos() as f64 / rounds as f64);
}
