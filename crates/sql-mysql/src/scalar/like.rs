//! LIKE: `%` for any characters, `_` for one. Characters are the same as far as the collation says; blanks at the end count in every collation.

use crate::error;
use crate::types::Collation;
use crate::value::Value;
use datum::Result;

/// The escape character; `None` for the empty string.
pub fn escape_char(escape: &Value) -> Result<Option<char>> {
    let wrong = || error::WRONG_ARGUMENTS.raise(&[&"ESCAPE"]);
    match escape {
        Value::Null => Ok(Some('\\')),
        value => {
            let bytes = value.as_string_bytes().ok_or_else(wrong)?;
            let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (first, None) => Ok(first),
                _ => Err(wrong()),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Any,
    One,
    Exactly(char),
}

/// An invalid byte counts as a character.
fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let first = *bytes.first()?;
    if first < 128 {
        return Some((char::from(first), 1));
    }
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or(""),
    };
    match valid.chars().next() {
        Some(c) => Some((c, c.len_utf8())),
        None => Some((char::from(first), 1)),
    }
}

fn step(pattern: &[u8], escape: Option<char>, bytes: bool) -> Option<(Step, usize)> {
    let decode = |at: &[u8]| if bytes { at.first().map(|byte| (char::from(*byte), 1)) } else { decode(at) };
    let (c, length) = decode(pattern)?;
    if Some(c) == escape {
        return Some(match decode(&pattern[length..]) {
            Some((next, more)) => (Step::Exactly(next), length + more),
            None => (Step::Exactly(c), length),
        });
    }
    let step = match c {
        '%' => Step::Any,
        '_' => Step::One,
        other => Step::Exactly(other),
    };
    Some((step, length))
}

/// Backtracks to the last `%` only, which suffices because everything before it has matched at its earliest position.
pub fn matches(collation: Collation, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
    let bytes = collation == Collation::Binary;
    let next = |at: usize| {
        let rest = &text[at..];
        if bytes { rest.first().map(|byte| (char::from(*byte), 1)) } else { decode(rest) }
    };
    // The number of bytes behind a `%` at which the rest of the pattern cannot begin.
    let idle = |pattern: &[u8], text: &[u8]| match step(pattern, escape, bytes) {
        Some((Step::Exactly(wanted), _)) => collation.unlike(wanted, text),
        _ => 0,
    };
    let (mut at, mut place) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = step(&pattern[place..], escape, bytes);
        let here = next(at);
        let advanced = match (step, here) {
            (None, None) => return true,
            (Some((Step::Any, length)), _) => {
                place += length;
                if place == pattern.len() {
                    return true;
                }
                at += idle(&pattern[place..], &text[at..]);
                retry = Some((place, at));
                continue;
            }
            (Some((Step::One, length)), Some((_, width))) => Some((length, width)),
            (Some((Step::Exactly(wanted), length)), Some((c, width))) if collation.same_char(wanted, c) => {
                Some((length, width))
            }
            _ => None,
        };
        match (advanced, retry) {
            (Some((length, width)), _) => {
                place += length;
                at += width;
            }
            (None, Some((after, from))) => {
                let Some((_, width)) = next(from) else {
                    return false;
                };
                place = after;
                at = from + width;
                at += idle(&pattern[after..], &text[at..]);
                retry = Some((after, at));
            }
            (None, None) => return false,
        }
    }
}

/// Returns the text with which every match of the pattern begins, and whether the pattern is that text and nothing else. `None` if it begins with a
/// wildcard. `bytes`: the pattern is read by bytes, not by characters.
pub fn prefix(pattern: &[u8], escape: Option<char>, bytes: bool) -> Option<(Vec<u8>, bool)> {
    let (mut out, mut rest) = (Vec::new(), pattern);
    while let Some((found, length)) = step(rest, escape, bytes) {
        match found {
            Step::Exactly(c) if bytes => out.push(c as u8),
            Step::Exactly(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            _ if out.is_empty() => return None,
            _ => return Some((out, false)),
        }
        rest = &rest[length..];
    }
    Some((out, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::CollationName as _;

    fn like(text: &str, pattern: &str) -> bool {
        matches(Collation::DEFAULT, text.as_bytes(), pattern.as_bytes(), Some('\\'))
    }

    #[test]
    fn wildcards_match_any_characters() {
        for (text, pattern) in [
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "a_c"),
            ("", "%"),
            ("abcabd", "%ab_"),
            ("ÄB", "äb"),
            ("a%b", "a\\%b"),
            ("日本語", "日_語"),
            ("aXbXc", "a%b%c"),
            ("xxxABc", "%abc"),
            ("日日aé", "%AE"),
            ("éé-e", "%É-_"),
            ("abab", "%AB"),
        ] {
            assert!(like(text, pattern), "{text} like {pattern}");
        }
        for (text, pattern) in [("abc", "b%"), ("abc", "a_"), ("", "_"), ("axb", "a\\%b"), ("a", "a "), ("abc", "%d%")]
        {
            assert!(!like(text, pattern), "{text} like {pattern}");
        }
    }

    #[test]
    fn a_prefix_ends_at_the_first_wildcard() {
        assert_eq!(prefix(b"ab%c", Some('\\'), false), Some((b"ab".to_vec(), false)));
        assert_eq!(prefix(b"a\\%b", Some('\\'), false), Some((b"a%b".to_vec(), true)));
        assert_eq!(prefix(b"%b", Some('\\'), false), None);
    }
}
