//! Bytes of an unauthenticated client: the request parser must not panic, must not read beyond the input, and must find the same requests wherever the bytes are cut.
//!
//! `make fuzz` in the root. The first byte of the input decides how large the pieces are.
#![no_main]

use door_redis::parser::{Limits, Parsed, Parser, Span};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { bulk_max: 1 << 20, request_max: 1 << 24, restricted: false };

/// Returns every request as its arguments, then the error that ended the stream, if any.
fn meaning(input: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, Option<String>) {
    let mut parser = Parser::new();
    let mut requests = Vec::new();
    let (mut gone, mut end) = (0, 0);
    while end < input.len() {
        end = (end + piece).min(input.len());
        loop {
            match parser.next(&input[gone..end], &LIMITS) {
                Parsed::Request(request) => {
                    let bytes = if request.inline { parser.line() } else { &input[gone + request.start..gone + request.end] };
                    let argument = |s: &Span| bytes[s.start as usize..(s.start + s.len) as usize].to_vec();
                    requests.push(parser.spans(&request).iter().map(argument).collect());
                }
                Parsed::Partial { .. } => break,
                Parsed::Invalid(error) => return (requests, Some(format!("{error:?}"))),
            }
        }
        let whole = parser.start();
        parser.consumed(whole);
        gone += whole;
    }
    (requests, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((first, input)) = data.split_first() else { return };
    // An unfinished line is refused by its length so far, which depends on the pieces; shorter inputs never come to that.
    if input.len() <= 64 * 1024 {
        assert_eq!(meaning(input, usize::from(*first) + 1), meaning(input, input.len().max(1)));
    }
});
