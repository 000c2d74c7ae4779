use std::cell::Cell;

use stdx::prng::Prng;

use super::*;

fn record(creator: TxnId, ends_row: bool, value: &[u8]) -> Vec<u8> {
    let head = RowHead { creator, is_delete_marked: ends_row, is_long: false, is_new_row: false, keeps_key: false };
    [&head.bytes(), value].concat()
}

fn creator(record: &[u8]) -> TxnId {
    RowHead::parse(record).unwrap().0.creator
}

#[test]
fn the_newest_version_that_may_be_seen_is_found() {
    let versions = VersionStore::default();
    versions.push(7, b"k", 20, &record(10, false, b"first")).unwrap();
    versions.push(7, b"k", 30, &record(20, true, b"")).unwrap();
    let find = |limit: TxnId| versions.descend(7, b"k", 30, |writer| writer <= limit).unwrap().found;
    assert_eq!(find(5), None);
    assert_eq!(RowHead::parse(&find(15).unwrap()).unwrap().1, b"first");
    assert!(RowHead::parse(&find(25).unwrap()).unwrap().0.is_delete_marked);
    assert_eq!(versions.descend(8, b"k", 30, |_| true).unwrap().found, None);
    let taken_back = versions.descend(7, b"k", 40, |_| true).unwrap().found;
    assert_eq!(taken_back, None, "40 has been taken back and leads nowhere");
    versions.remove(7, b"k", 20);
    assert_eq!(find(15), None);
    versions.remove(7, b"k", 30);
    assert_eq!(versions.bytes(), 0);
    assert!(RowHead::parse(b"short").is_err() && versions.push(7, b"k", 50, b"short").is_err());
}

/// A row's history: the creators of its versions, which have no order of their own, and whether each ends a row.
struct History {
    creators: Vec<TxnId>,
    ends: Vec<bool>,
    versions: VersionStore,
}

impl History {
    fn new(prng: &mut Prng, count: u64, is_end: impl Fn(&mut Prng) -> bool) -> History {
        let mut creators: Vec<TxnId> = (1..=count).collect();
        (1..creators.len()).for_each(|at| creators.swap(at, prng.below(at as u64 + 1) as usize));
        let ends: Vec<bool> = creators.iter().map(|_| is_end(prng)).collect();
        let versions = VersionStore::default();
        for (at, pair) in creators.windows(2).enumerate() {
            versions.push(7, b"hot", pair[1], &record(pair[0], ends[at], b"v")).unwrap();
        }
        History { creators, ends, versions }
    }

    /// Goes from the version `from` down to the version `to`, and returns what was asked and what it cost.
    fn check(&self, from: usize, to: usize) -> u64 {
        let (calls, place) = (Cell::new(0), |creator| self.creators.iter().position(|known| *known == creator));
        let stops = |creator| {
            calls.set(calls.get() + 1);
            place(creator).unwrap() <= to
        };
        let way = self.versions.descend(7, b"hot", self.creators[from], stops).unwrap();
        assert_eq!(way.found.map(|record| creator(&record)), Some(self.creators[to]));
        let end = (to + 1..from).find(|at| self.ends[*at]).map(|at| self.creators[at + 1]);
        assert_eq!(way.end, end, "the oldest end between {to} and {from}");
        assert!(way.steps <= calls.get() && calls.get() <= 2 * way.steps);
        way.steps
    }
}

#[test]
fn any_version_of_a_row_is_reached_in_few_steps() {
    let mut prng = Prng::new(1);
    for (count, one_of) in [(2, 2), (3, 1), (50, 3), (700, 100), (2000, 1_000_000)] {
        let history = History::new(&mut prng, count, |prng| prng.below(one_of) == 0);
        let most = 3 * u64::from(count.ilog2()) + 2;
        for _ in 0..300 {
            let from = 1 + prng.below(count - 1) as usize;
            let to = prng.below(from as u64) as usize;
            let steps = history.check(from, to);
            assert!(steps <= most, "{steps} steps from {from} to {to} of {count} (EN-99)");
        }
    }
}

#[test]
fn jumps_hold_while_the_oldest_and_the_newest_versions_leave() {
    let mut prng = Prng::new(2);
    let history = History::new(&mut prng, 300, |prng| prng.below(4) == 0);
    let History { creators, ends, versions } = &history;
    // Purge takes the oldest, and a rollback the newest, which another transaction replaces then.
    for pair in creators[..100].windows(2) {
        versions.remove(7, b"hot", pair[1]);
    }
    for pair in creators[250..].windows(2).rev() {
        versions.remove(7, b"hot", pair[1]);
    }
    let mut creators = creators[..=250].to_vec();
    for new in 1000..1200 {
        let before = *creators.last().unwrap();
        versions.push(7, b"hot", new, &record(before, false, b"v")).unwrap();
        creators.push(new);
    }
    for to in 100..=400 {
        let place = |creator| creators.iter().position(|known| *known == creator).unwrap();
        let way = versions.descend(7, b"hot", 1199, |creator| place(creator) <= to).unwrap();
        assert_eq!(way.found.map(|record| creator(&record)), Some(creators[to]));
        let end = (to + 1..250).find(|at| ends[*at]).map(|at| creators[at + 1]);
        assert_eq!(way.end, end);
        assert!(way.steps <= 30, "{}", way.steps);
    }
    let way = versions.descend(7, b"hot", 1199, |creator| creators[..50].contains(&creator)).unwrap();
    assert_eq!(way.found, None, "what no snapshot needs is gone");
}
