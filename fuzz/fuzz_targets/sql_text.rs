//! Arbitrary SQL: cutting a text into statements, extracting its literals and parsing it must end, with a statement or an error. The first byte chooses the SQL mode.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((mode, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    sql_mysql::fuzzed::read(&text, *mode);
});
