//! Bytes of an unauthenticated client of the MySQL door: packets must be the same wherever the stream is cut, no longer than allowed, and never read beyond the input. The first byte decides how large the
//! pieces are, the second how long a payload may be.
#![no_main]

use door_mysql::fuzzed::{Cut, cut};
use libfuzzer_sys::fuzz_target;

/// Returns every payload, then the end of the stream.
fn meaning(input: &[u8], piece: usize, payload_max: usize) -> (Vec<Vec<u8>>, &'static str) {
    let (mut payloads, mut gone, mut end): (Vec<Vec<u8>>, _, _) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = (end + piece).min(input.len());
        loop {
            match cut(&input[gone..end], 0, payload_max) {
                Cut::Packet(packet) => {
                    assert!(packet.payload.len() <= payload_max && packet.size <= end - gone);
                    payloads.push(packet.payload.to_vec());
                    gone += packet.size;
                }
                Cut::More(wanted) => {
                    assert!(wanted > end - gone);
                    break;
                }
                // No input here is as long as that.
                Cut::Frame(_) => unreachable!(),
                Cut::TooLong(_) => return (payloads, "too long"),
                Cut::OutOfOrder => return (payloads, "out of order"),
            }
        }
    }
    (payloads, "")
}

fuzz_target!(|data: &[u8]| {
    let [piece, limit, input @ ..] = data else { return };
    let (piece, limit) = (usize::from(*piece) + 1, usize::from(*limit) * 16);
    assert_eq!(meaning(input, piece, limit), meaning(input, input.len().max(1), limit));
});
