//! A ziplist: what Redis wrote before listpacks.

use super::listpack::Item;
use super::{Rule, little_endian, take};

const HEAD_BYTES: usize = 10;
const END: u8 = 0xff;
const RULE: Rule = "a ziplist is damaged";

/// Reads the items of a ziplist.
pub(crate) struct ZiplistItems<'b> {
    rest: &'b [u8],
    /// Bytes of the item before.
    before: usize,
    /// Items left by the head's count, if it says one.
    left: Option<u16>,
}

impl<'b> ZiplistItems<'b> {
    pub fn new(bytes: &'b [u8]) -> Result<ZiplistItems<'b>, Rule> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(RULE)?;
        let total = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let count = u16::from_le_bytes([head[8], head[9]]);
        if total as usize != bytes.len() {
            return Err("a ziplist has not the length it claims");
        }
        Ok(ZiplistItems { rest, before: 0, left: (count != u16::MAX).then_some(count) })
    }

    /// Returns the next item, or `None` behind the last one.
    pub fn next(&mut self) -> Result<Option<Item<'b>>, Rule> {
        if self.rest == [END] {
            return match self.left {
                None | Some(0) => Ok(None),
                Some(_) => Err("a ziplist has not the items it claims"),
            };
        }
        let start = self.rest.len();
        let item = self.item().ok_or(RULE)?;
        self.before = start - self.rest.len();
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1).ok_or("a ziplist has not the items it claims")?;
        }
        Ok(Some(item))
    }

    fn item(&mut self) -> Option<Item<'b>> {
        let before = match take(&mut self.rest)? {
            [short @ 0..=0xfd] => short.into(),
            [0xfe] => u32::from_le_bytes(take(&mut self.rest)?) as usize,
            [_] => return None,
        };
        if before != self.before {
            return None;
        }
        let [head] = take(&mut self.rest)?;
        let length = match head {
            0..=0x3f => usize::from(head),
            0x40..=0x7f => {
                let [low] = take(&mut self.rest)?;
                usize::from(head & 0x3f) << 8 | usize::from(low)
            }
            0x80 => u32::from_be_bytes(take(&mut self.rest)?) as usize,
            0xc0 => return self.integer(2),
            0xd0 => return self.integer(4),
            0xe0 => return self.integer(8),
            0xf0 => return self.integer(3),
            0xfe => return self.integer(1),
            0xf1..=0xfd => return Some(Item::Integer(i64::from(head & 0x0f) - 1)),
            _ => return None,
        };
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Item::Bytes(bytes))
    }

    fn integer(&mut self, width: usize) -> Option<Item<'b>> {
        let (bytes, rest) = self.rest.split_at_checked(width)?;
        self.rest = rest;
        Some(Item::Integer(little_endian(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Rule> {
        let mut items = ZiplistItems::new(bytes)?;
        let mut found = Vec::new();
        while let Some(item) = items.next()? {
            found.push(item.text().into_owned());
        }
        Ok(found)
    }

    #[test]
    fn the_list_of_redis_sources_is_read() {
        // Two, five: the example in ziplist.c.
        let bytes = [0x0f, 0, 0, 0, 0x0c, 0, 0, 0, 2, 0, 0, 0xf3, 2, 0xf6, 0xff];
        assert_eq!(all(&bytes), Ok(vec![b"2".to_vec(), b"5".to_vec()]));
        // The same, with "Hello World" behind it.
        let hello = [&bytes[..14], &[2, 0x0b], b"Hello World", &[0xff]].concat();
        let mut longer = hello.clone();
        longer[0] = hello.len() as u8;
        longer[8] = 3;
        assert_eq!(all(&longer), Ok(vec![b"2".to_vec(), b"5".to_vec(), b"Hello World".to_vec()]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 11..64), count in 0u16..6) {
            let total = bytes.len() as u32;
            bytes[..4].copy_from_slice(&total.to_le_bytes());
            bytes[8..10].copy_from_slice(&count.to_le_bytes());
            bytes[10] = 0;
            *bytes.last_mut().expect("ten bytes") = END;
            if let Ok(items) = all(&bytes) {
                prop_assert_eq!(items.len(), usize::from(count));
            }
        }
    }
}
