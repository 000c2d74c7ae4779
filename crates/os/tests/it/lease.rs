//! The lease on the simulated store, with a clock that only the test moves.

use std::sync::Arc;
use std::time::Duration;

use os::{BootClock, Clock, Fate, Lease, LeaseAttempt, LeaseFlaw, Moment, ObjectError, SimClock, SimObjects};

const TTL: Duration = Duration::from_millis(800);

struct Bench {
    store: SimObjects,
    clock: Arc<SimClock>,
}

impl Bench {
    fn new() -> Bench {
        Bench { store: SimObjects::new(), clock: Arc::new(SimClock::new(1_000_000)) }
    }

    fn lease(&self, number: usize) -> Lease {
        Lease::new(self.store.client(number), self.clock.clone(), &format!("node {number}"), number as u64, TTL)
    }
}

fn acquired(lease: &Lease) -> bool {
    lease.try_acquire().expect("the store answers") == LeaseAttempt::Acquired
}

#[test]
fn a_lease_is_given_to_another_only_after_its_holder_has_stopped_to_answer() {
    let bench = Bench::new();
    let (one, two) = (bench.lease(1), bench.lease(2));
    assert!(!one.is_confirmed());
    assert!(acquired(&one) && one.is_confirmed());
    let LeaseAttempt::Held(holder) = two.try_acquire().unwrap() else { panic!("two holders") };
    assert_eq!((holder.owner.as_str(), holder.version, holder.left), ("node 1", 1, Duration::from_millis(900)));
    for _ in 0..5 {
        bench.clock.advance_ms(700);
        assert!(one.is_confirmed());
        one.renew().unwrap();
        assert!(!acquired(&two), "it has been renewed");
    }
    bench.clock.advance_ms(799);
    assert!(one.is_confirmed() && !acquired(&two));
    bench.clock.advance_ms(1);
    assert!(!one.is_confirmed() && !acquired(&two), "OS-9: nobody answers");
    bench.clock.advance_ms(99);
    assert!(!acquired(&two));
    bench.clock.advance_ms(1);
    assert!(acquired(&two) && two.is_confirmed());
    assert!(matches!(one.renew(), Err(ObjectError::Fenced)));
    assert!(matches!(one.release(), Err(ObjectError::Fenced)));
    assert!(two.is_confirmed() && !one.is_confirmed());
    two.renew().unwrap();
}

#[test]
fn a_holder_that_renews_late_answers_again_if_nobody_was_quicker() {
    let bench = Bench::new();
    let (one, two) = (bench.lease(1), bench.lease(2));
    assert!(acquired(&one));
    assert!(!acquired(&two));
    bench.clock.advance_ms(60_000);
    assert!(!one.is_confirmed());
    one.renew().unwrap();
    assert!(one.is_confirmed());
    // Two had seen an older version unchanged for long, and sees another one now.
    assert!(!acquired(&two));
}

#[test]
fn a_lease_that_was_given_back_is_taken_at_once() {
    let bench = Bench::new();
    let (one, two) = (bench.lease(1), bench.lease(2));
    assert!(acquired(&one));
    assert!(!acquired(&two));
    one.release().unwrap();
    assert!(!one.is_confirmed());
    assert!(acquired(&two));
    assert!(matches!(one.renew(), Err(ObjectError::Fenced)));
    assert!(!acquired(&one), "it may become a candidate again");
}

#[test]
fn of_several_candidates_one_gets_the_lease() {
    let bench = Bench::new();
    for round in 0..20 {
        let candidates: Vec<Lease> = (1..5).map(|number| bench.lease(10 * round + number)).collect();
        let taken = || candidates.iter().filter(|candidate| acquired(candidate)).count();
        if round > 0 {
            assert_eq!(taken(), 0);
            bench.clock.advance_ms(900);
        }
        let threads = std::thread::scope(|scope| {
            let tries: Vec<_> = candidates.iter().map(|candidate| scope.spawn(|| acquired(candidate))).collect();
            tries.into_iter().map(|attempt| usize::from(attempt.join().unwrap())).sum::<usize>()
        });
        assert_eq!(threads, 1);
    }
}

#[test]
fn a_renewal_whose_answer_was_lost_or_that_arrives_late_does_no_harm() {
    for late in [false, true] {
        let bench = Bench::new();
        let (one, two) = (bench.lease(1), bench.lease(2));
        assert!(acquired(&one));
        bench.clock.advance_ms(400);
        // The write is lost on its way, or done and its answer lost.
        let moment = if late { Moment::Before } else { Moment::After };
        let fate = move |_, at| if at == moment { Fate::FailUnderWay } else { Fate::Proceed };
        bench.store.set_fate(Some(Arc::new(fate)));
        assert!(matches!(one.renew(), Err(ObjectError::Io(_))));
        bench.store.set_fate(None);
        bench.clock.advance_ms(400);
        assert!(!one.is_confirmed(), "only an answer confirms");
        if late {
            bench.store.deliver_late(0);
        }
        one.renew().unwrap();
        assert!(one.is_confirmed() && !acquired(&two));
    }
}

#[test]
fn the_time_of_a_renewal_counts_from_before_it_is_sent() {
    for flaw in [None, Some(LeaseFlaw::FromAnswer)] {
        let bench = Bench::new();
        let one = bench.lease(1).with_flaw(flaw);
        assert!(acquired(&one));
        let clock = bench.clock.clone();
        let fate = move |_, at| {
            if at == Moment::After {
                clock.advance_ms(5000);
            }
            Fate::Proceed
        };
        bench.store.set_fate(Some(Arc::new(fate)));
        one.renew().unwrap();
        assert_eq!(one.is_confirmed(), flaw.is_some(), "the answer came after its time");
    }
}

#[test]
fn the_clock_of_a_lease_does_not_go_back() {
    let (first, second) = (BootClock.monotonic_ns(), BootClock.monotonic_ns());
    assert!(first > 0 && second >= first);
}

#[test]
fn a_lease_on_rados_goes_from_node_to_node() {
    let Some([one, two]) = super::objects::on_rados("lease") else { return };
    let clock = Arc::new(BootClock);
    let one = Lease::new(one, clock.clone(), "node 1", 1, TTL);
    let two = Lease::new(two, clock, "node 2", 2, TTL);
    assert!(acquired(&one) && one.is_confirmed() && !acquired(&two));
    one.renew().unwrap();
    // It is not renewed any more.
    let begin = BootClock.monotonic_ns();
    while !acquired(&two) {
        assert!(BootClock.monotonic_ns() - begin < 60_000_000_000, "nobody gets it");
    }
    assert!(!one.is_confirmed() && two.is_confirmed());
    assert!(matches!(one.renew(), Err(ObjectError::Fenced)));
    two.release().unwrap();
    assert!(acquired(&one) && !two.is_confirmed());
}
