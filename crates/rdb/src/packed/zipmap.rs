//! A zipmap: how Redis before 2.6 wrote small hashes.

use super::{Rule, take};

const END: u8 = 0xff;
const RULE: Rule = "a zipmap is damaged";

/// Reads the fields and values of a zipmap.
pub(crate) struct ZipmapItems<'b> {
    rest: &'b [u8],
}

impl<'b> ZipmapItems<'b> {
    pub fn new(bytes: &'b [u8]) -> Result<ZipmapItems<'b>, Rule> {
        // The first byte is the count, or 254 for any; what counts is the end.
        bytes.split_first().map(|(_, rest)| ZipmapItems { rest }).ok_or(RULE)
    }

    /// Returns the next field and its value, or `None` behind the last ones.
    #[allow(clippy::type_complexity)]
    pub fn next(&mut self) -> Result<Option<(&'b [u8], &'b [u8])>, Rule> {
        if self.rest == [END] {
            return Ok(None);
        }
        self.pair().ok_or(RULE).map(Some)
    }

    fn pair(&mut self) -> Option<(&'b [u8], &'b [u8])> {
        let field = self.string(0)?;
        let value = self.string(1)?;
        Some((field, value))
    }

    /// Reads a string; behind its length `extra` bytes say how many bytes behind it are unused.
    fn string(&mut self, extra: usize) -> Option<&'b [u8]> {
        let length = match take(&mut self.rest)? {
            [short @ 0..=0xfd] => short.into(),
            [0xfe] => u32::from_le_bytes(take(&mut self.rest)?) as usize,
            [_] => return None,
        };
        let (unused, rest) = self.rest.split_at_checked(extra)?;
        let (bytes, rest) = rest.split_at_checked(length)?;
        let (_, rest) = rest.split_at_checked(unused.first().map_or(0, |unused| usize::from(*unused)))?;
        self.rest = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_redis_sources_is_read() {
        let bytes = b"\x02\x03foo\x03\x00bar\x05hello\x05\x01world!\xff";
        let mut items = ZipmapItems::new(bytes).expect("a map");
        assert_eq!(items.next(), Ok(Some((&b"foo"[..], &b"bar"[..]))));
        assert_eq!(items.next(), Ok(Some((&b"hello"[..], &b"world"[..]))));
        assert_eq!(items.next(), Ok(None));
        for cut in 0..bytes.len() {
            let mut items = match ZipmapItems::new(&bytes[..cut]) {
                Ok(items) => items,
                Err(_) => continue,
            };
            assert!((0..4).any(|_| items.next().is_err()), "{cut}");
        }
    }
}
