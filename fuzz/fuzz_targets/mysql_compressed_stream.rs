//! Compressed frames of an unauthenticated client: a decompressed payload has the length that its frame gives, and survives compression and decompression unchanged. The first byte chooses the method.
#![no_main]

use door_mysql::fuzzed::{Method, Opened, CompressedStream};
use libfuzzer_sys::fuzz_target;

/// Returns the content of the frames, up to the first that is refused.
fn opened(method: Method, input: &[u8]) -> Vec<u8> {
    let (mut stream, mut at) = (CompressedStream::new(method), 0);
    while let Opened::Frame(size) = stream.open(&input[at..]) {
        assert!(size >= 7 && size <= input.len() - at);
        at += size;
    }
    stream.input
}

fuzz_target!(|data: &[u8]| {
    let Some((first, input)) = data.split_first() else { return };
    let method = if first % 2 == 0 { Method::Zlib } else { Method::Zstd(first % 20) };
    let found = opened(method, input);
    if found.len() > 1 << 20 {
        return;
    }
    let (mut again, mut wire) = (CompressedStream::new(method), Vec::new());
    again.out.extend_from_slice(&found);
    again.put(&mut wire);
    assert_eq!(opened(method, &wire), found);
});
