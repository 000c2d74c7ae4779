//! Redis' format of values, as RESTORE gets it (without its checksum, which no random bytes have) and as a file: events or an error. A compressed string
//! expands to 264 times its bytes at most (RD-1), so the events of a value that is read whole hold no more than that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdb::{Error, Event, Source, read_file, read_value};

/// The greatest expansion of RD-1.
const EXPANSION: usize = 264;

fuzz_target!(|data: &[u8]| {
    let [number, value @ ..] = data else { return };
    // A file begins with its own magic bytes.
    let _ = read_file::<_, Error>(data, &mut |_, at| {
        assert!(at <= data.len() as u64, "{at} bytes of {} were read", data.len());
        Ok(())
    });
    let mut longest = 0;
    let _ = read_value::<_, Error>(&mut Source::of_bytes(value), *number, &mut |event| {
        if let Event::String(bytes) = event {
            longest = longest.max(bytes.len());
        }
        Ok(())
    });
    assert!(longest <= value.len() * EXPANSION, "{longest} bytes from {}", value.len());
});
