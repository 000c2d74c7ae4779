//! An intset: integers of one width, in order.

use super::Rule;

const HEAD_BYTES: usize = 8;
const RULE: Rule = "a set of integers is damaged";

/// Writes a set of integers.
pub struct Intset;

impl Intset {
    /// Returns the intset of integers in ascending order.
    pub fn of(sorted: &[i64]) -> Vec<u8> {
        let fits = |least: i64, most: i64| sorted.iter().all(|n| (least..=most).contains(n));
        let width = match () {
            () if fits(i16::MIN.into(), i16::MAX.into()) => 2,
            () if fits(i32::MIN.into(), i32::MAX.into()) => 4,
            () => 8,
        };
        let mut out = Vec::with_capacity(HEAD_BYTES + sorted.len() * width);
        out.extend((width as u32).to_le_bytes());
        out.extend((sorted.len() as u32).to_le_bytes());
        for number in sorted {
            out.extend(&number.to_le_bytes()[..width]);
        }
        out
    }
}

/// Reads an intset; its integers ascend.
pub(crate) fn read_intset(bytes: &[u8]) -> Result<impl Iterator<Item = i64> + '_, Rule> {
    let (head, numbers) = bytes.split_at_checked(HEAD_BYTES).ok_or(RULE)?;
    let width = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let count = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    if !matches!(width, 2 | 4 | 8) || numbers.len() != count.checked_mul(width).ok_or(RULE)? || count == 0 {
        return Err(RULE);
    }
    let integers = move || numbers.chunks_exact(width).map(super::little_endian);
    if !integers().is_sorted_by(|a, b| a < b) {
        return Err("a set of integers is not in order");
    }
    Ok(integers())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_are_read_as_written(numbers in proptest::collection::btree_set(any::<i64>(), 1..40), shift in 0u32..60) {
            let sorted: Vec<i64> = numbers.iter().map(|n| n >> shift).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
            let bytes = Intset::of(&sorted);
            prop_assert_eq!(read_intset(&bytes).expect("valid").collect::<Vec<_>>(), sorted);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(numbers) = read_intset(&bytes) {
                prop_assert!(numbers.count() > 0);
            }
        }
    }
}
