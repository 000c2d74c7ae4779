//! SQL from anybody: cutting a text into statements, taking its literals out and parsing it come to an end, with a statement or an error. The first byte chooses the SQL mode.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((mode, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    query::fuzzed::read(&text, *mode);
});
