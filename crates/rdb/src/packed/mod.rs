//! Small collections in one string: listpack, ziplist, intset and zipmap. All of a string is checked while it is read; a reader that skips the end of a sequence
//! has checked what it has read.

mod intset;
mod listpack;
mod ziplist;
mod zipmap;

pub use intset::Intset;
pub(crate) use intset::read_intset;
pub use listpack::Listpack;
pub(crate) use listpack::{Item, ListpackItems};
pub(crate) use ziplist::ZiplistItems;
pub(crate) use zipmap::ZipmapItems;

/// A rule that a packed string breaks.
pub(crate) type Rule = &'static str;

/// Reads the next `N` bytes of a packed string.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

/// Reads an integer of 1 to 8 little-endian bytes.
fn little_endian(bytes: &[u8]) -> i64 {
    let mut wide = [if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}
