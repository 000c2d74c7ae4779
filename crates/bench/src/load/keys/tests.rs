use super::*;

const RANGE: Range = Range { min: 10, max: 1009 };

fn keys(pattern: Pattern, connection: u64, connections: u64, count: usize) -> Vec<u64> {
    let mut random = Prng::new(7);
    let mut walk = Walk::new(pattern, RANGE, connection, connections);
    (0..count).map(|_| walk.step(&mut random)).collect()
}

#[test]
fn random_keys_stay_in_range_and_reach_both_ends() {
    let seen = keys(Pattern::Random, 0, 4, 20_000);
    assert_eq!(seen.iter().min(), Some(&RANGE.min));
    assert_eq!(seen.iter().max(), Some(&RANGE.max));
    let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), 1000);
    let low_half = seen.iter().filter(|k| **k < 510).count();
    assert!((9_500..10_500).contains(&low_half), "uniform: {low_half} of 20000 in the lower half");
}

#[test]
fn sequential_walks_the_whole_range_on_every_connection_and_wraps() {
    let seen = keys(Pattern::Sequential, 3, 4, 1001);
    assert_eq!(&seen[..3], &[10, 11, 12]);
    assert_eq!(&seen[999..], &[1009, 10]);
}

#[test]
fn parallel_parts_cover_every_key_exactly_once() {
    let mut seen: Vec<u64> = Vec::new();
    for connection in 0..7 {
        let part = RANGE.part(connection, 7).unwrap();
        seen.extend(keys(Pattern::Parallel, connection, 7, part.count() as usize));
    }
    seen.sort_unstable();
    assert_eq!(seen, (10..=1009).collect::<Vec<_>>());
}

#[test]
fn a_part_may_be_empty_when_there_are_more_connections_than_keys() {
    let three = Range { min: 1, max: 3 };
    let parts: Vec<_> = (0..5).filter_map(|i| three.part(i, 5)).collect();
    assert_eq!(parts.iter().map(|p| p.count()).sum::<u64>(), 3);
    assert_eq!(parts.len(), 3);
}

#[test]
fn gaussian_keys_crowd_around_the_middle_and_never_leave_the_range() {
    let seen = keys(Pattern::Gaussian, 0, 1, 20_000);
    assert!(seen.iter().all(|k| (RANGE.min..=RANGE.max).contains(k)));
    // Within one sigma (a sixth of the range on either side of the middle): 68.3 %.
    let near = seen.iter().filter(|k| (343..=676).contains(*k)).count();
    assert!((13_200..14_200).contains(&near), "{near} of 20000 within one sigma");
}

#[test]
fn the_same_seed_gives_the_same_keys() {
    assert_eq!(keys(Pattern::Random, 0, 1, 100), keys(Pattern::Random, 0, 1, 100));
}
