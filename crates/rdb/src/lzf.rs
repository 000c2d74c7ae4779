//! LZF, the compression of strings in RDB. The compressor makes the choices of liblzf 3.6 in its VERY_FAST form, so that a compressed string has the bytes that
//! Redis writes.

use std::sync::{Mutex, PoisonError};

/// Bits of a place in the table of triples.
const HASH_BITS: u32 = 16;
const LITERALS_MAX: usize = 1 << 5;
const OFFSET_MAX: usize = 1 << 13;
const MATCH_MAX: usize = (1 << 8) + (1 << 3);

/// Compresses the input into at most `most` bytes, or returns `None` if it does not become that short.
pub fn compress(input: &[u8], most: usize) -> Option<Vec<u8>> {
    if input.len() < 4 {
        return None;
    }
    let mut places = Places::of_input(input.len());
    let compressed = compress_with(input, most, &mut places);
    places.keep();
    compressed
}

/// Places of triples in the input, by their hash; 0 for none, since the first byte is never matched.
///
/// A table takes more time to allocate than a short text to compress. So one is kept, and its entries count from `base`, which is beyond those of earlier inputs.
struct Places {
    table: Vec<u32>,
    base: u32,
    len: u32,
}

/// The table for the next input.
static SPARE: Mutex<Option<Places>> = Mutex::new(None);

impl Places {
    fn of_input(len: usize) -> Places {
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).take();
        Places::after(spare, len)
    }

    /// Returns the table for an input of `len` bytes, with places behind those of `spare`.
    fn after(spare: Option<Places>, len: usize) -> Places {
        let len = len as u32;
        match spare.filter(|spare| spare.base.checked_add(len).is_some()) {
            Some(spare) => Places { len, ..spare },
            None => Places { table: vec![0; 1 << HASH_BITS], base: 0, len },
        }
    }

    fn keep(mut self) {
        self.base += self.len;
        *SPARE.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }

    fn set(&mut self, slot: usize, at: usize) {
        self.table[slot] = self.base + at as u32;
    }

    fn replace(&mut self, slot: usize, at: usize) -> usize {
        let before = self.table[slot].saturating_sub(self.base);
        self.set(slot, at);
        before as usize
    }
}

fn compress_with(input: &[u8], most: usize, places: &mut Places) -> Option<Vec<u8>> {
    let slot = |at: usize| {
        let triple = u32::from_be_bytes([0, input[at], input[at + 1], input[at + 2]]);
        ((triple >> (24 - HASH_BITS)).wrapping_sub(triple.wrapping_mul(5)) & ((1 << HASH_BITS) - 1)) as usize
    };
    let last = input.len() - 2;
    let mut out = Literals { bytes: vec![0], run: 0 };
    let mut at = 0;
    while at < last {
        let before = places.replace(slot(at), at);
        if before > 0 && at - before <= OFFSET_MAX && input[before..before + 3] == input[at..at + 3] {
            if out.len_without_empty_run() + 4 >= most {
                return None;
            }
            let len = match_len(&input[before..], &input[at..]);
            out.reference(at - before - 1, len - 2);
            at += len;
            if at >= last {
                break;
            }
            places.set(slot(at - 2), at - 2);
            places.set(slot(at - 1), at - 1);
        } else {
            if out.bytes.len() >= most {
                return None;
            }
            out.push(input[at]);
            at += 1;
        }
    }
    if out.bytes.len() + 3 > most {
        return None;
    }
    input[at..].iter().for_each(|byte| out.push(*byte));
    Some(out.end())
}

/// Returns how many bytes two texts share, at least 3 and about `MATCH_MAX` at most. `text` is the one that ends the input. The bound is liblzf's, whose
/// first 16 comparisons do not look at it.
fn match_len(earlier: &[u8], text: &[u8]) -> usize {
    let most = (text.len() - 2).min(MATCH_MAX);
    let mut len = 3;
    let unbounded = if most > 16 { 18 } else { 0 };
    while len <= unbounded {
        if earlier[len] != text[len] {
            return len;
        }
        len += 1;
    }
    while len < most && earlier[len] == text[len] {
        len += 1;
    }
    len
}

/// Output that ends in a run of literals, whose length is written before them when it ends.
struct Literals {
    bytes: Vec<u8>,
    run: usize,
}

impl Literals {
    fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.run += 1;
        if self.run == LITERALS_MAX {
            self.end_run();
            self.bytes.push(0);
        }
    }

    /// Returns the length of the output if the run ends here.
    fn len_without_empty_run(&self) -> usize {
        self.bytes.len() - usize::from(self.run == 0)
    }

    fn end_run(&mut self) {
        let head = self.bytes.len() - self.run - 1;
        match self.run {
            0 => self.bytes.truncate(head),
            run => self.bytes[head] = (run - 1) as u8,
        }
        self.run = 0;
    }

    /// Writes a reference `offset + 1` bytes back; its length less 2.
    fn reference(&mut self, offset: usize, len: usize) {
        self.end_run();
        let high = (offset >> 8) as u8;
        if len < 7 {
            self.bytes.push(high | (len as u8) << 5);
        } else {
            self.bytes.extend([high | 7 << 5, (len - 7) as u8]);
        }
        self.bytes.extend([offset as u8, 0]);
    }

    fn end(mut self) -> Vec<u8> {
        self.end_run();
        self.bytes
    }
}

/// Expands compressed bytes to exactly `len` bytes, or returns `None` if they are damaged. The result is at most `MATCH_MAX` times as long as the input.
pub fn expand(input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > input.len().saturating_mul(MATCH_MAX) {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    let mut rest = input;
    while let Some((control, behind)) = rest.split_first() {
        let high = usize::from(*control);
        rest = behind;
        if high < LITERALS_MAX {
            let (literals, behind) = rest.split_at_checked(high + 1)?;
            out.extend_from_slice(literals);
            rest = behind;
        } else {
            let mut count = (high >> 5) + 2;
            if count == 9 {
                let (more, behind) = rest.split_first()?;
                count += usize::from(*more);
                rest = behind;
            }
            let (low, behind) = rest.split_first()?;
            rest = behind;
            let offset = (high & 0x1f) << 8 | usize::from(*low);
            let from = out.len().checked_sub(offset + 1)?;
            for at in from..from + count {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_compressed_expands_to_itself(bytes in proptest::collection::vec(0u8..4, 0..2000), wide in proptest::collection::vec(any::<u8>(), 0..300)) {
            let input = [bytes, wide].concat();
            if let Some(short) = compress(&input, input.len()) {
                prop_assert!(short.len() <= input.len());
                prop_assert_eq!(expand(&short, input.len()), Some(input));
            }
        }

        #[test]
        fn damaged_bytes_expand_to_nothing_or_to_the_length_they_claim(bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0usize..2000) {
            if let Some(out) = expand(&bytes, len) {
                prop_assert_eq!(out.len(), len);
            }
        }
    }

    /// Whatever was compressed before, also when the places of the kept table come to an end.
    #[test]
    fn the_kept_table_changes_nothing() {
        let fresh = |input: &[u8]| {
            let mut places = Places { table: vec![0; 1 << HASH_BITS], base: 0, len: input.len() as u32 };
            compress_with(input, input.len(), &mut places)
        };
        let texts: Vec<Vec<u8>> =
            (0..50_usize).map(|n| (0..n * 37).map(|at| (at * at / (n + 3)) as u8 % 23).collect()).collect();
        let mut places = Places { table: vec![0; 1 << HASH_BITS], base: u32::MAX - 20_000, len: 0 };
        let mut renewed = false;
        for text in texts.iter().filter(|text| text.len() > 4) {
            let base = places.base;
            places = Places::after(Some(places), text.len());
            renewed |= places.base < base;
            assert_eq!(compress_with(text, text.len(), &mut places), fresh(text));
            places.base += places.len;
            assert_eq!(compress(text, text.len()), fresh(text));
        }
        assert!(renewed, "the places have come to an end");
    }

    #[test]
    fn long_runs_become_short() {
        let input = vec![b'x'; 100_000];
        let short = compress(&input, input.len()).expect("compressible");
        assert!(short.len() < 1500, "{}", short.len());
        assert_eq!(expand(&short, input.len()), Some(input));
    }
}
