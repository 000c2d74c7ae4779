//! MD5 and the SHA family, for the functions of these names. They are not used for secrets; doors have their own digests.
//!
//! MD5's table is what it is by definition, sines, and computed here, so that there is nothing to mistype.

use std::sync::LazyLock;

use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Pads the last block: the rest of the message, a one bit, zeros, and the length in bits.
fn end_of(rest: &[u8], length: usize) -> Vec<u8> {
    let mut out = rest.to_vec();
    out.push(0x80);
    out.resize(if out.len() <= 56 { 56 } else { 120 }, 0);
    out.extend_from_slice(&(length as u64 * 8).to_le_bytes());
    out
}

static SINES: LazyLock<[u32; 64]> =
    LazyLock::new(|| std::array::from_fn(|step| (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32));

pub fn md5(bytes: &[u8]) -> Vec<u8> {
    const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
    let blocks = bytes.chunks_exact(64);
    let end = end_of(blocks.remainder(), bytes.len());
    for block in blocks.chain(end.chunks_exact(64)) {
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
    Sha1::digest(bytes).to_vec()
}

pub fn sha224(bytes: &[u8]) -> Vec<u8> {
    Sha224::digest(bytes).to_vec()
}

pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

pub fn sha384(bytes: &[u8]) -> Vec<u8> {
    Sha384::digest(bytes).to_vec()
}

pub fn sha512(bytes: &[u8]) -> Vec<u8> {
    Sha512::digest(bytes).to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::encode::hex_text;
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        let shown = |digest: Vec<u8>| hex_text(&digest, false);
        assert_eq!(shown(md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(shown(md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        for (length, digest) in [
            (55, "ef1772b6dff9a122358552954ad0df65"),
            (56, "3b0c8ac703f828b04c6c197006d17218"),
            (63, "b06521f39153d618550606be297466d5"),
            (64, "014842d480b571495a4a0363793f7367"),
        ] {
            assert_eq!(shown(md5(&vec![b'a'; length])), digest);
        }
        assert_eq!(shown(sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(shown(sha224(b"abc")), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7");
        assert_eq!(shown(sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(shown(sha384(b"abc")).starts_with("cb00753f45a35e8bb5a03d699ac65007272c32ab0eded163"));
        assert!(shown(sha512(b"abc")).starts_with("ddaf35a193617abacc417349ae204131"));
    }
}
