//! The difference of two values as a few splices, so that a small change of a long record writes little to the WAL.
//!
//! ```text
//!   before   | count 7 | a b c d e f ........ |          splices   {at 1: 1 byte by "8"} {at the end: 0 bytes by "g"}
//!   after    | count 8 | a b c d e f ........ g |
//! ```
//! The old value is that of the page under its latch, so redo finds the same (BT-11).
//!
//! Hard part: the search must cost less than the bytes that it saves. It compares from both ends and, in between, byte by byte at the same offset; it gives up as
//! soon as the splices are no shorter than the value.

/// Most splices of a patch.
const SPLICES_MAX: usize = 8;
/// Fewer equal bytes between two differences belong to one splice.
const GAP: usize = 8;
/// A patch must save at least so many bytes, and half of the value.
const SAVED_MIN: usize = 32;

/// Replaces `removed` bytes at `at` of the old value by the next `inserted` of the patch's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Splice {
    at: u16,
    removed: u16,
    inserted: u16,
}

const SPLICE_BYTES: usize = 6;

impl Splice {
    fn encode(self) -> [u8; SPLICE_BYTES] {
        let [at, removed, inserted] = [self.at, self.removed, self.inserted].map(u16::to_le_bytes);
        [at[0], at[1], removed[0], removed[1], inserted[0], inserted[1]]
    }

    fn decode(bytes: &[u8; SPLICE_BYTES]) -> Splice {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Splice { at: word(0), removed: word(2), inserted: word(4) }
    }
}

/// A patch in a WAL record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patch<'r> {
    splices: &'r [u8],
    inserted: &'r [u8],
}

impl<'r> Patch<'r> {
    /// Takes a patch of `count` splices from the front of `bytes`.
    pub(crate) fn take(bytes: &'r [u8], count: usize) -> Option<(Patch<'r>, &'r [u8])> {
        let (splices, rest) = bytes.split_at_checked(count * SPLICE_BYTES)?;
        let len = Patch { splices, inserted: &[] }.splices().map(|splice| usize::from(splice.inserted)).sum();
        let (inserted, rest) = rest.split_at_checked(len)?;
        Some((Patch { splices, inserted }, rest))
    }

    fn splices(self) -> impl Iterator<Item = Splice> + 'r {
        self.splices.as_chunks().0.iter().map(Splice::decode)
    }

    /// Appends the new value, or returns `None` if the old one is too short.
    pub fn apply(self, old: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (mut done, mut inserted) = (0, self.inserted);
        for splice in self.splices() {
            let at = usize::from(splice.at);
            out.extend_from_slice(old.get(done..at)?);
            let (bytes, rest) = inserted.split_at_checked(splice.inserted.into())?;
            out.extend_from_slice(bytes);
            (done, inserted) = (at + usize::from(splice.removed), rest);
        }
        out.extend_from_slice(old.get(done..)?);
        Some(())
    }
}

/// Writes the splices from `old` to `new`, and behind them the inserted bytes. Returns the number of splices; `None` if the whole value is about as short.
pub(crate) fn encode(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    if new.len() < SAVED_MIN || old.is_empty() {
        return None;
    }
    let prefix = common_prefix(old, new);
    let suffix = common_suffix(&old[prefix..], &new[prefix..]);
    let (old_end, new_end) = (old.len() - suffix, new.len() - suffix);
    let aligned = old_end.min(new_end);
    let mut found = [Splice { at: 0, removed: 0, inserted: 0 }; SPLICES_MAX];
    let (mut count, mut cost, mut at) = (0, 0, prefix);
    let most = (new.len() - SAVED_MIN).min(new.len() / 2);
    while at < aligned {
        let end = difference_end(&old[..aligned], &new[..aligned], at, at + most.saturating_sub(cost))?;
        // The last difference takes what follows the shorter of the two.
        let ends = if end == aligned { (old_end, new_end) } else { (end, end) };
        *found.get_mut(count)? = splice(at, ends);
        count += 1;
        cost += SPLICE_BYTES + ends.1 - at;
        if end == aligned {
            break;
        }
        at = end + common_prefix(&old[end..aligned], &new[end..aligned]);
    }
    let covered = count > 0 && usize::from(found[count - 1].at + found[count - 1].removed) == old_end;
    if !covered && old_end != new_end {
        *found.get_mut(count)? = splice(aligned, (old_end, new_end));
        count += 1;
        cost += SPLICE_BYTES + new_end - aligned;
    }
    if cost > most {
        return None;
    }
    let splices = &found[..count];
    out.clear();
    splices.iter().for_each(|splice| out.extend_from_slice(&splice.encode()));
    let mut moved = 0_isize;
    for splice in splices {
        let from = usize::from(splice.at).checked_add_signed(moved).expect("splices are in order");
        out.extend_from_slice(&new[from..from + usize::from(splice.inserted)]);
        moved += splice.inserted as isize - splice.removed as isize;
    }
    Some(count)
}

fn splice(at: usize, (old_end, new_end): (usize, usize)) -> Splice {
    let number = |number: usize| u16::try_from(number).expect("values are short");
    Splice { at: number(at), removed: number(old_end - at), inserted: number(new_end - at) }
}

/// Returns where the difference that begins at `at` ends: `GAP` equal bytes follow. `None` if it is longer than `until` allows.
fn difference_end(old: &[u8], new: &[u8], at: usize, until: usize) -> Option<usize> {
    let mut end = at + 1;
    while end < old.len() {
        let window = (end + GAP).min(old.len());
        if old[end..window] == new[end..window] {
            break;
        }
        end += 1 + common_prefix(&old[end..window], &new[end..window]);
        if end > until {
            return None;
        }
    }
    Some(end.min(old.len()))
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let words = words_a.iter().zip(words_b).take_while(|(a, b)| a == b).count();
    let rest = a[words * 8..].iter().zip(&b[words * 8..]).take_while(|(a, b)| a == b).count();
    words * 8 + rest
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_rchunks::<8>().1, b.as_rchunks::<8>().1);
    let words = words_a.iter().rev().zip(words_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - words * 8], &b[..b.len() - words * 8]);
    words * 8 + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stdx::prng::Prng;

    /// Returns the bytes of the patch, if there is one, after checking that it makes the new value.
    fn patched(old: &[u8], new: &[u8]) -> Option<usize> {
        let mut bytes = Vec::new();
        let count = encode(old, new, &mut bytes)?;
        let (patch, rest) = Patch::take(&bytes, count).unwrap();
        assert!(rest.is_empty());
        let mut made = Vec::new();
        patch.apply(old, &mut made).unwrap();
        assert_eq!(made, new);
        assert!(bytes.len() + SAVED_MIN <= new.len());
        Some(bytes.len())
    }

    #[test]
    fn an_insertion_with_a_changed_head_is_two_splices() {
        let old: Vec<u8> = (0..1000_u32).map(|at| (at * 7 / 3) as u8).collect();
        for at in [20, 500, 1000] {
            let mut new = old.clone();
            new.splice(at..at, *b"inserted");
            new[3] += 1;
            assert_eq!(patched(&old, &new), Some(2 * SPLICE_BYTES + 1 + 8), "at {at}");
            assert_eq!(patched(&new, &old), Some(2 * SPLICE_BYTES + 1), "taken away at {at}");
        }
        assert_eq!(patched(&old, &old), Some(0));
    }

    #[test]
    fn values_that_differ_everywhere_have_no_patch() {
        assert_eq!(patched(&[1; 500], &[2; 500]), None);
        assert_eq!(patched(&[], &[2; 500]), None);
        assert_eq!(patched(&[1; 500], &[1; 10]), None);
        let striped: Vec<u8> = (0..1000).map(|at| u8::from(at % 20 == 0)).collect();
        assert_eq!(patched(&[0; 1000], &striped), None, "more than {SPLICES_MAX} places");
    }

    #[test]
    fn random_changes_are_made_again_by_their_patch() {
        let mut prng = Prng::new(5);
        let (mut patches, mut bytes) = (0, 0);
        for _ in 0..20_000 {
            let mut old = vec![0; prng.below(300) as usize];
            let symbols = 1 + prng.below(255);
            old.iter_mut().for_each(|byte| *byte = prng.below(symbols) as u8);
            let mut new = old.clone();
            for _ in 0..prng.below(6) {
                let from = prng.below(new.len() as u64 + 1) as usize;
                let to = (from + prng.below(12) as usize).min(new.len());
                let mut piece = vec![0; prng.below(12) as usize];
                piece.iter_mut().for_each(|byte| *byte = prng.below(symbols) as u8);
                new.splice(from..to, piece);
            }
            if let Some(len) = patched(&old, &new) {
                (patches, bytes) = (patches + 1, bytes + len);
            }
        }
        assert!(patches > 8_000 && bytes / patches < 60, "{patches} of {bytes} bytes");
    }

    #[test]
    fn a_patch_of_another_value_is_refused_when_that_is_too_short() {
        let (old, mut new) = (vec![7; 100], vec![7; 100]);
        new[90] = 8;
        let mut bytes = Vec::new();
        let count = encode(&old, &new, &mut bytes).unwrap();
        let (patch, _) = Patch::take(&bytes, count).unwrap();
        assert!(patch.apply(&old[..50], &mut Vec::new()).is_none());
        assert!(Patch::take(&bytes[..3], count).is_none());
    }
}
