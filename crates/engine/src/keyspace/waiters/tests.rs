use super::*;

fn ticket(keys: &[&[u8]]) -> Arc<WaitTicket> {
    let keys = keys.iter().map(|key| (Box::from(*key), key.to_vec())).collect();
    Arc::new(WaitTicket::with((Kind::List, Box::default()), 0, keys, None, Box::new(())))
}

#[cfg(not(loom))]
mod plain {
    use super::*;

    fn all(waiters: &Waiters, key: &[u8]) -> Vec<u64> {
        let name = (0, key.to_vec());
        let (mut found, mut after) = (Vec::new(), TicketPlace::first());
        while let Some(ticket) = waiters.next(&name, &after) {
            after = ticket.place();
            found.push(after.number);
        }
        found
    }

    #[test]
    fn tickets_of_a_key_are_in_the_order_in_which_they_came() {
        let waiters = Waiters::new();
        let tickets = [ticket(&[b"a", b"b"]), ticket(&[b"b"]), ticket(&[b"b", b"a", b"b"])];
        tickets.iter().for_each(|ticket| waiters.add(ticket));
        assert_eq!((all(&waiters, b"a"), all(&waiters, b"b")), (vec![1, 3], vec![1, 2, 3]));
        assert!(waiters.cancel(&tickets[0]) && !waiters.cancel(&tickets[0]));
        assert_eq!((all(&waiters, b"a"), all(&waiters, b"b")), (vec![3], vec![2, 3]));
        assert!(tickets[2].claim() && !waiters.cancel(&tickets[2]));
        waiters.remove(&tickets[2]);
        assert!(!waiters.has(0, b"a") && waiters.has(0, b"b") && waiters.any());
        assert!(waiters.cancel(&tickets[1]) && !waiters.any());
    }

    #[test]
    fn ten_thousand_tickets_of_a_key_leave_in_any_order_at_once() {
        let waiters = Waiters::new();
        let tickets: Vec<_> = (0..10_000).map(|_| ticket(&[b"k"])).collect();
        tickets.iter().for_each(|ticket| waiters.add(ticket));
        tickets.iter().rev().for_each(|ticket| assert!(waiters.cancel(ticket)));
        assert!(!waiters.any() && waiters.names(0).is_empty());
    }
}

#[cfg(loom)]
mod model {
    use loom::sync::Mutex as Stripe;
    use loom::thread;

    use super::*;

    /// Does a producer's part under the key's stripe: puts an element there, and serves the first ticket.
    fn push(stripe: &Stripe<u32>, waiters: &Waiters, name: &Name) -> bool {
        let mut elements = stripe.lock().unwrap();
        *elements += 1;
        if waiters.any()
            && let Some(ticket) = waiters.next(name, &TicketPlace::first())
            && ticket.claim()
        {
            *elements -= 1;
            waiters.remove(&ticket);
            return true;
        }
        false
    }

    /// EN-74: an element that comes while a client decides to wait is served to it, or found by it.
    #[test]
    fn no_element_and_no_waiter_stay_side_by_side() {
        loom::model(|| {
            let world = Arc::new((Stripe::new(0_u32), Waiters::new()));
            let name = (0, b"k".to_vec());
            let producer = {
                let (world, name) = (world.clone(), name.clone());
                thread::spawn(move || drop(push(&world.0, &world.1, &name)))
            };
            let ticket = ticket(&[b"k"]);
            {
                let mut elements = world.0.lock().unwrap();
                if *elements > 0 {
                    *elements -= 1;
                } else {
                    world.1.add(&ticket);
                }
            }
            producer.join().unwrap();
            assert!(*world.0.lock().unwrap() == 0, "the element is taken");
            assert!(!world.1.any());
        });
    }

    /// EN-75: a ticket that is served and given up at the same time is one of both, and the element goes with it or stays.
    #[test]
    fn a_ticket_ends_in_one_way() {
        loom::model(|| {
            let world = Arc::new((Stripe::new(0_u32), Waiters::new()));
            let name = (0, b"k".to_vec());
            let ticket = ticket(&[b"k"]);
            world.1.add(&ticket);
            let producer = {
                let (world, name) = (world.clone(), name.clone());
                thread::spawn(move || push(&world.0, &world.1, &name))
            };
            let is_cancelled = world.1.cancel(&ticket);
            let is_served = producer.join().unwrap();
            assert!(is_cancelled != is_served);
            assert_eq!(*world.0.lock().unwrap(), u32::from(is_cancelled));
            assert!(!world.1.any());
        });
    }
}
