use super::*;

#[cfg(not(loom))]
#[test]
fn a_stripe_set_is_sorted_and_has_no_stripe_twice() {
    for count in [0, 1, 3, 4, 5, 9, 40] {
        let stripes = (0..count).map(|at| (at * 7919 % 13) as Stripe);
        let set = StripeSet::collect(stripes.clone());
        let mut expected: Vec<Stripe> = stripes.collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(set.as_slice().iter().map(|(stripe, _)| *stripe).collect::<Vec<_>>(), expected);
        assert!(expected.iter().all(|stripe| set.lsn(*stripe) == Some(0)));
        assert_eq!(set.lsn(12_345), None);
    }
}

#[cfg(not(loom))]
#[test]
fn hashes_spread_keys_evenly() {
    let mut used = vec![0u32; STRIPES];
    for at in 0..STRIPES as u32 * 16 {
        used[LockStripes::stripe(0, format!("\0user:{at}").as_bytes()) as usize] += 1;
    }
    let (min, max) = (used.iter().min().unwrap(), used.iter().max().unwrap());
    assert!(*min > 0 && *max < 48, "{min}..{max}");
    assert_ne!(LockStripes::stripe(0, b"\0a"), LockStripes::stripe(1, b"\0a"));
}

#[cfg(not(loom))]
#[test]
fn a_waiter_sleeps_until_the_stripe_is_given_back() {
    let locks = LockStripes::new();
    let seen = locks.lock(5);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| locks.observe(5));
        while locks.waits.get() == 0 {
            std::thread::yield_now();
        }
        assert!(!locks.validate(5, seen) && !locks.is_settled(5, LSN) && locks.try_lock(5).is_none());
        assert_eq!(locks.pass(5, Duration::from_millis(10)), None);
        locks.unlock(5, 77);
        assert_eq!(waiter.join().unwrap(), 77);
    });
    assert!(locks.validate(5, 77) && locks.is_settled(5, 77) && !locks.is_settled(5, 76));
    assert!(locks.pass(5, Duration::ZERO).is_some());
}

/// The models. A page is a value under a mutex, which orders memory as a page latch does.
#[cfg(loom)]
mod models {
    use super::*;
    use stdx::sync::{Arc, Mutex};

    struct World {
        locks: LockStripes,
        /// Two pages, changed one after the other, and the WAL's next position.
        pages: [Mutex<u64>; 2],
        head: AtomicU64,
    }

    impl World {
        fn new() -> Arc<World> {
            Arc::new(World {
                locks: LockStripes::new(),
                pages: [Mutex::new(0), Mutex::new(0)],
                head: AtomicU64::new(10),
            })
        }

        /// Changes both pages under the given stripes.
        fn change(&self, stripes: &[Stripe]) {
            let before: Vec<Lsn> = stripes.iter().map(|stripe| self.locks.lock(*stripe)).collect();
            let mut lsn = 0;
            for page in &self.pages {
                let mut page = page.lock();
                lsn = self.head.fetch_add(1, Ordering::SeqCst) + 1;
                *page += 1;
            }
            for (stripe, before) in stripes.iter().zip(before) {
                self.locks.unlock(*stripe, lsn.max(before));
            }
        }
    }

    /// EN-48, EN-49: a reader that validates has seen all of a transaction or nothing, and its durability LSN covers what it saw.
    #[test]
    fn a_validated_read_saw_whole_units() {
        loom::model(|| {
            let world = World::new();
            let writer = {
                let world = world.clone();
                loom::thread::spawn(move || world.change(&[0]))
            };
            let seen = world.locks.observe(0);
            let (one, two) = (*world.pages[0].lock(), *world.pages[1].lock());
            if world.locks.validate(0, seen) {
                assert_eq!(one, two);
                assert_eq!(one > 0, seen > 0, "the LSN tells whether there is something to wait for");
            }
            writer.join().unwrap();
        });
    }

    /// EN-47: two writers of overlapping stripes exclude each other, and neither waits forever.
    #[test]
    fn writers_take_turns() {
        loom::model(|| {
            let world = World::new();
            let other = {
                let world = world.clone();
                loom::thread::spawn(move || world.change(&[0, 1]))
            };
            world.change(&[1]);
            other.join().unwrap();
            assert_eq!((*world.pages[0].lock(), *world.pages[1].lock()), (2, 2));
            assert_eq!(world.locks.observe(1), world.head.load(Ordering::SeqCst));
        });
    }

    /// EN-50: a thread that takes a stripe after it was passed sees what was stored before; one that took it earlier is done.
    #[test]
    fn passing_a_stripe_separates_before_from_after() {
        loom::model(|| {
            let world = World::new();
            let (counting, plain) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let writer = {
                let (world, counting, plain) = (world.clone(), counting.clone(), plain.clone());
                loom::thread::spawn(move || {
                    let before = world.locks.lock(0);
                    let noted = counting.load(Ordering::Acquire) == 1;
                    if !noted {
                        plain.fetch_add(1, Ordering::Relaxed);
                    }
                    world.locks.unlock(0, before + 1);
                    noted
                })
            };
            counting.store(1, Ordering::SeqCst);
            let passed = world.locks.pass(0, Duration::ZERO).is_some();
            let plain_before = plain.load(Ordering::Relaxed);
            let noted = writer.join().unwrap();
            if passed && !noted {
                assert_eq!(
                    plain_before, 1,
                    "a writer that did not see the flag had finished when the stripe was passed"
                );
            }
        });
    }
}
