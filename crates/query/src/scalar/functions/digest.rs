//! MD5 and the SHA family, for the functions of these names. Not for secrets: doors have their own.
//!
//! The tables are what they are by definition: roots of the first primes (SHA-2) and sines (MD5). They are computed here in whole numbers, so that there is nothing to mistype.

use std::sync::LazyLock;

/// The message, a bit, zeros, and its length in bits, in blocks of `block` bytes.
fn padded(bytes: &[u8], block: usize, big_endian: bool) -> Vec<u8> {
    let length_size = block / 8;
    let mut out = bytes.to_vec();
    out.push(0x80);
    while out.len() % block != block - length_size {
        out.push(0);
    }
    let bits = bytes.len() as u128 * 8;
    match (big_endian, length_size) {
        (true, size) => out.extend_from_slice(&bits.to_be_bytes()[16 - size..]),
        (false, _) => out.extend_from_slice(&(bits as u64).to_le_bytes()),
    }
    out
}

static SINES: LazyLock<[u32; 64]> =
    LazyLock::new(|| std::array::from_fn(|step| (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32));

pub fn md5(bytes: &[u8]) -> Vec<u8> {
    const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
    for block in padded(bytes, 64, false).chunks(64) {
        let word = |place: usize| {
            u32::from_le_bytes([block[4 * place], block[4 * place + 1], block[4 * place + 2], block[4 * place + 3]])
        };
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, place) = match step / 16 {
                0 => (b & c | !b & d, step),
                1 => (d & b | !d & c, (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), 7 * step % 16),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(SINES[step]).wrapping_add(word(place));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4]));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub fn sha1(bytes: &[u8]) -> Vec<u8> {
    let mut state: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    for block in padded(bytes, 64, true).chunks(64) {
        let mut words = [0u32; 80];
        for (word, four) in words.iter_mut().zip(block.chunks(4)) {
            *word = four.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for step in 16..80 {
            words[step] = (words[step - 3] ^ words[step - 8] ^ words[step - 14] ^ words[step - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (step, word) in words.iter().enumerate() {
            let (mixed, constant) = match step / 20 {
                0 => (b & c | !b & d, 0x5A82_7999),
                1 => (b ^ c ^ d, 0x6ED9_EBA1),
                2 => (b & c | b & d | c & d, 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6u32),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn primes() -> impl Iterator<Item = u64> {
    (2u64..).filter(|number| (2..*number).take_while(|part| part * part <= *number).all(|part| number % part != 0))
}

/// The first 64 bits behind the point of the square root: by halving, over whole numbers.
fn square_root_bits(number: u64) -> u64 {
    root_bits(number, |root, number| compare_power(root, 2, number))
}

fn cube_root_bits(number: u64) -> u64 {
    root_bits(number, |root, number| compare_power(root, 3, number))
}

/// The largest `root` / 2^64 whose power is not above the number; its fraction.
fn root_bits(number: u64, not_above: impl Fn(u128, u64) -> bool) -> u64 {
    let (mut low, mut high) = (0u128, u128::from(number) << 64);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if not_above(middle, number) { low = middle } else { high = middle }
    }
    low as u64
}

fn compare_power(root: u128, power: u32, number: u64) -> bool {
    use num_bigint::BigUint;
    BigUint::from(root).pow(power) <= BigUint::from(number) << (64 * power)
}

static CUBE_ROOTS: LazyLock<Vec<u64>> = LazyLock::new(|| primes().take(80).map(cube_root_bits).collect());

fn sha2_32(bytes: &[u8], mut state: [u32; 8]) -> Vec<u8> {
    for block in padded(bytes, 64, true).chunks(64) {
        let mut words = [0u32; 64];
        for (word, four) in words.iter_mut().zip(block.chunks(4)) {
            *word = four.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for step in 16..64 {
            let (early, late) = (words[step - 15], words[step - 2]);
            let first = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
            let second = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
            words[step] = words[step - 16].wrapping_add(first).wrapping_add(words[step - 7]).wrapping_add(second);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (step, word) in words.iter().enumerate() {
            let constant = (CUBE_ROOTS[step] >> 32) as u32;
            let first = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let chosen = e & f ^ !e & g;
            let one = h.wrapping_add(first).wrapping_add(chosen).wrapping_add(constant).wrapping_add(*word);
            let second = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let most = a & b ^ a & c ^ b & c;
            let two = second.wrapping_add(most);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn sha2_64(bytes: &[u8], mut state: [u64; 8]) -> Vec<u8> {
    for block in padded(bytes, 128, true).chunks(128) {
        let mut words = [0u64; 80];
        for (word, eight) in words.iter_mut().zip(block.chunks(8)) {
            *word = eight.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        for step in 16..80 {
            let (early, late) = (words[step - 15], words[step - 2]);
            let first = early.rotate_right(1) ^ early.rotate_right(8) ^ early >> 7;
            let second = late.rotate_right(19) ^ late.rotate_right(61) ^ late >> 6;
            words[step] = words[step - 16].wrapping_add(first).wrapping_add(words[step - 7]).wrapping_add(second);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (step, word) in words.iter().enumerate() {
            let first = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
            let chosen = e & f ^ !e & g;
            let one = h.wrapping_add(first).wrapping_add(chosen).wrapping_add(CUBE_ROOTS[step]).wrapping_add(*word);
            let second = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
            let most = a & b ^ a & c ^ b & c;
            let two = second.wrapping_add(most);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (total, part) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Square roots of the first eight primes, and of the next eight.
static SQUARE_ROOTS: LazyLock<Vec<u64>> = LazyLock::new(|| primes().take(16).map(square_root_bits).collect());

pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    sha2_32(bytes, std::array::from_fn(|place| (SQUARE_ROOTS[place] >> 32) as u32))
}

pub fn sha224(bytes: &[u8]) -> Vec<u8> {
    let mut digest = sha2_32(bytes, std::array::from_fn(|place| SQUARE_ROOTS[place + 8] as u32));
    digest.truncate(28);
    digest
}

pub fn sha512(bytes: &[u8]) -> Vec<u8> {
    sha2_64(bytes, std::array::from_fn(|place| SQUARE_ROOTS[place]))
}

pub fn sha384(bytes: &[u8]) -> Vec<u8> {
    let mut digest = sha2_64(bytes, std::array::from_fn(|place| SQUARE_ROOTS[place + 8]));
    digest.truncate(48);
    digest
}

#[cfg(test)]
mod tests {
    use super::super::encode::hex_text;
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        let shown = |digest: Vec<u8>| hex_text(&digest, false);
        assert_eq!(shown(md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(shown(sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(shown(sha224(b"abc")), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7");
        assert_eq!(shown(sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(shown(sha384(b"abc")).starts_with("cb00753f45a35e8bb5a03d699ac65007272c32ab0eded163"));
        assert!(shown(sha512(b"abc")).starts_with("ddaf35a193617abacc417349ae204131"));
    }
}
