//! Arbitrary SQL, to a tree and back: parsing ends with a tree or an error, and a tree's text is read as that tree. The first byte chooses the SQL mode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syntax::{Mode, Problem, parse};

fuzz_target!(|data: &[u8]| {
    let Some((bits, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let bit = |nth: u8| bits & (1 << nth) != 0;
    let mode = Mode {
        ansi_quotes: bit(0),
        pipes_as_concat: bit(1),
        no_backslash_escapes: bit(2),
        high_not_precedence: bit(3),
        ignore_space: bit(4),
        real_as_float: bit(5),
    };
    let parsed = match parse(&text, mode) {
        Ok(parsed) => parsed,
        Err(error) => {
            assert!(error.at <= text.len());
            let _ = error.near(&text);
            return;
        }
    };
    // Text is printed for the default mode.
    let printed = parsed.statement.to_string();
    let again = match parse(&printed, Mode::default()) {
        Ok(again) => again,
        // Printed expressions have more parentheses than the text that they were read from.
        Err(error) if error.problem == Problem::TooDeep => return,
        Err(error) => panic!("{:?} near {:?} of {printed}", error.problem, error.near(&printed).0),
    };
    assert_eq!(again.parameters, parsed.parameters);
    // `||` is printed as concat(), which is a call when it is read.
    if !mode.pipes_as_concat {
        assert!(again.statement == parsed.statement, "{printed}");
    }
    assert_eq!(again.statement.to_string(), printed);
});
