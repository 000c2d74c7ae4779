#[cfg(loom)]
mod model {
    use super::super::*;
    use stdx::sync::thread;

    /// EN-23: every ticket comes to the head of its queue, whatever those before it do at the same time.
    #[test]
    fn loom_every_ticket_comes_to_the_head_of_its_queue() {
        loom::model(|| {
            let (lock_queues, statuses) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
            let others: Vec<_> = (2..4)
                .map(|txn| {
                    let (lock_queues, statuses) = (lock_queues.clone(), statuses.clone());
                    thread::spawn(move || come(&lock_queues, &statuses, txn))
                })
                .collect();
            come(&lock_queues, &statuses, 1);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert!(lock_queues.shards.iter().all(|shard| shard.lock().is_empty()));
        });
    }

    fn come(lock_queues: &Arc<LockQueues>, statuses: &Arc<StatusTable>, txn: TxnId) {
        let until = Instant::now() + Duration::from_secs(1000);
        let patience = WaitLimits { until, is_cancelled: &|| false, releases: 0 };
        match lock_queues.join(statuses, (7, b"row"), txn, &patience) {
            JoinResult::First(place) | JoinResult::Moved(place) => {
                let shard = place.lock_queues.shard(&place.row).lock();
                assert!(shard[&place.row].front().is_some_and(|first| first.txn == txn));
            }
            _ => panic!("there is no cycle, and no ticket gives up"),
        }
    }
}

#[cfg(not(loom))]
mod threads {
    use super::super::*;
    use std::sync::mpsc;

    const ROW: (MapId, &[u8]) = (7, b"row");

    fn patience(millis: u64, is_cancelled: &dyn Fn() -> bool) -> WaitLimits<'_> {
        WaitLimits { until: Instant::now() + Duration::from_millis(millis), is_cancelled, releases: 0 }
    }

    fn first(lock_queues: &Arc<LockQueues>, statuses: &Arc<StatusTable>, txn: TxnId) -> QueuePlace {
        match lock_queues.join(statuses, ROW, txn, &patience(0, &|| false)) {
            JoinResult::First(place) => place,
            _ => panic!("the queue is not empty"),
        }
    }

    fn wait_until_long(lock_queues: &LockQueues, len: usize) {
        while lock_queues.shards.iter().all(|shard| shard.lock().values().all(|line| line.len() < len)) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_ticket_that_leaves_wakes_only_the_next() {
        let (lock_queues, statuses) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let (told, came) = mpsc::channel();
        let mut place = first(&lock_queues, &statuses, 1);
        std::thread::scope(|scope| {
            for txn in 2..6 {
                let (lock_queues, statuses, told) = (&lock_queues, &statuses, told.clone());
                scope.spawn(move || match lock_queues.join(statuses, ROW, txn, &patience(20_000, &|| false)) {
                    JoinResult::Moved(place) => told.send((txn, place)).unwrap(),
                    _ => panic!("{txn} is not the first, and closes no cycle"),
                });
                wait_until_long(lock_queues, txn as usize);
            }
            for txn in 2..6 {
                assert!(came.try_recv().is_err(), "only one at a time");
                drop(place);
                let (next, its) = came.recv().unwrap();
                assert_eq!(next, txn, "in the order in which they came");
                place = its;
            }
            drop(place);
        });
        assert!(lock_queues.shards.iter().all(|shard| shard.lock().is_empty()));
        assert!((2..6).all(|txn| statuses.note_wait(1, txn)), "no transaction waits any more");
    }

    #[test]
    fn a_ticket_that_gives_up_in_the_middle_links_its_neighbours() {
        let (lock_queues, statuses) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let place = first(&lock_queues, &statuses, 1);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lock_queues.join(&statuses, ROW, 2, &patience(100, &|| false)));
            wait_until_long(&lock_queues, 2);
            let third = scope.spawn(|| lock_queues.join(&statuses, ROW, 3, &patience(20_000, &|| false)));
            wait_until_long(&lock_queues, 3);
            assert!(matches!(second.join().unwrap(), JoinResult::GaveUp(WaitOutcome::TimedOut)));
            assert!(!statuses.note_wait(1, 3), "the third waits for the first, also without the second");
            assert!(statuses.note_wait(1, 2), "the second no longer waits");
            statuses.forget_wait(1);
            drop(place);
            assert!(matches!(third.join().unwrap(), JoinResult::Moved(_)));
        });
    }

    #[test]
    fn a_cycle_that_the_queue_would_close_is_reported_and_not_recorded() {
        let (lock_queues, statuses) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let _place = first(&lock_queues, &statuses, 1);
        assert!(statuses.note_wait(1, 2), "the first waits for the second, which holds a share of the row");
        assert!(matches!(lock_queues.join(&statuses, ROW, 2, &patience(20_000, &|| false)), JoinResult::Cycle));
        assert!(statuses.note_wait(2, 3) && !statuses.note_wait(3, 1), "real cycles are still found");
    }

    #[test]
    fn a_cancelled_ticket_leaves_the_queue() {
        let (lock_queues, statuses) = (Arc::new(LockQueues::default()), Arc::new(StatusTable::new(1)));
        let place = first(&lock_queues, &statuses, 1);
        let is_told = std::sync::atomic::AtomicBool::new(false);
        let is_cancelled = || is_told.load(std::sync::atomic::Ordering::SeqCst);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lock_queues.join(&statuses, ROW, 2, &patience(20_000, &is_cancelled)));
            wait_until_long(&lock_queues, 2);
            is_told.store(true, std::sync::atomic::Ordering::SeqCst);
            lock_queues.recheck_waiters();
            assert!(matches!(second.join().unwrap(), JoinResult::GaveUp(WaitOutcome::Cancelled)));
        });
        drop(place);
        assert!(lock_queues.shards.iter().all(|shard| shard.lock().is_empty()));
    }
}
