//! MD5 (RFC 1321), for the function of that name; it is not used for secrets. Its table is what it is by definition, sines, and computed here.

use std::sync::LazyLock;

static SINES: LazyLock<[u32; 64]> =
    LazyLock::new(|| std::array::from_fn(|step| (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32));

/// Returns the end of a message: its rest, a bit, zeros, and its length in bits.
fn end_of(rest: &[u8], length: usize) -> Vec<u8> {
    let mut out = rest.to_vec();
    out.push(0x80);
    out.resize(if out.len() <= 56 { 56 } else { 120 }, 0);
    out.extend_from_slice(&(length as u64 * 8).to_le_bytes());
    out
}

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
