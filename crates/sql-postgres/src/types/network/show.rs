//! Texts of addresses, written as `inet_net_ntop.c` and `inet_cidr_ntop.c` write them.

use std::io::Write as _;
use std::ops::Range;

use super::Inet;

/// Appends formatted text. Writing into memory does not fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {
        let _ = write!($out, $($arguments)*);
    };
}

pub fn bits(bits: u8, out: &mut Vec<u8>) {
    put!(out, "/{bits}");
}

fn words(address: u128) -> [u16; 8] {
    let bytes = address.to_be_bytes();
    std::array::from_fn(|at| u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]))
}

/// Appends the whole address.
pub fn address(inet: Inet, out: &mut Vec<u8>) {
    if !inet.is_v6 {
        let [a, b, c, d] = (inet.address as u32).to_be_bytes();
        put!(out, "{a}.{b}.{c}.{d}");
        return;
    }
    let words = words(inet.address);
    let gap = longest_gap(&words).unwrap_or(8..8);
    // An address of IPv4 within one of IPv6.
    let is_mapped = gap.start == 0
        && match gap.len() {
            6 => true,
            7 => words[7] != 1,
            5 => words[5] == 0xffff,
            _ => false,
        };
    for (at, word) in words.iter().enumerate() {
        if gap.contains(&at) {
            if at == gap.start {
                out.push(b':');
            }
            continue;
        }
        if at > 0 {
            out.push(b':');
        }
        if at == 6 && is_mapped {
            let [a, b, c, d] = (inet.address as u32).to_be_bytes();
            put!(out, "{a}.{b}.{c}.{d}");
            return;
        }
        put!(out, "{word:x}");
    }
    if !gap.is_empty() && gap.end == 8 {
        out.push(b':');
    }
}

/// Returns the first of the longest runs of at least two zero words.
fn longest_gap(words: &[u16; 8]) -> Option<Range<usize>> {
    let mut best: Option<Range<usize>> = None;
    let mut start = 0;
    for (at, word) in words.iter().chain([&1]).enumerate() {
        if *word == 0 {
            continue;
        }
        if at - start > best.as_ref().map_or(1, Range::len) {
            best = Some(start..at);
        }
        start = at + 1;
    }
    best
}

/// Appends the octets of a network of IPv4.
pub fn network_v4(inet: Inet, out: &mut Vec<u8>) {
    let octets = (inet.network().address as u32).to_be_bytes();
    let shown = usize::from(inet.bits.div_ceil(8)).max(1);
    for (at, octet) in octets[..shown].iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        put!(out, "{octet}");
    }
}

/// Appends the words of a network of IPv6.
pub fn network_v6(inet: Inet, out: &mut Vec<u8>) {
    if inet.bits == 0 {
        out.extend_from_slice(b"::");
        return;
    }
    let network = inet.network().address;
    let bytes = network.to_be_bytes();
    let words = words(network);
    let count = usize::from(inet.bits.div_ceil(16)).max(2);
    let gap = network_gap(&words[..count]);
    let is_mapped = gap.len() != count
        && gap.start == 0
        && match gap.len() {
            6 => true,
            5 => words[5] == 0xffff,
            7 => bytes[14] != 0 && bytes[15] != 1,
            _ => false,
        };
    let start = out.len();
    for at in 0..count {
        if gap.contains(&at) {
            if at == gap.start {
                out.push(b':');
            }
            if at == count - 1 {
                out.push(b':');
            }
        } else if is_mapped && at > 5 {
            out.push(if at == 6 { b':' } else { b'.' });
            put!(out, "{}", bytes[2 * at]);
            // The last octet may be left out.
            if at != 7 || inet.bits > 120 {
                put!(out, ".{}", bytes[2 * at + 1]);
            }
        } else {
            if out.len() > start {
                out.push(b':');
            }
            put!(out, "{:x}", words[at]);
        }
    }
}

/// Returns the run of zero words that is left out; empty if there is none. The count of a run that is not longer than the one before it goes on in the next, as in PostgreSQL.
fn network_gap(words: &[u16]) -> Range<usize> {
    let mut best = 0..0;
    let (mut start, mut length) = (0, 0);
    for (at, word) in words.iter().enumerate() {
        if *word == 0 {
            if length == 0 {
                start = at;
            }
            length += 1;
        } else if length > best.len() {
            best = start..start + length;
            length = 0;
        }
    }
    if length > best.len() {
        best = start..start + length;
    }
    best
}
