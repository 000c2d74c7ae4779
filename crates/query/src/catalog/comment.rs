//! Comments on objects whose definitions have no room for one: records beside the definitions, which follow the same transactions.
//!
//! A record ends with its object. One that is stored while another transaction drops the object may remain; it is shown for no object, and its number is given to
//! no other one (QU-60).

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::Result;

use crate::catalog::codec::damaged;

/// The first byte of the keys of these records.
pub(super) const COMMENT: u8 = b'k';

/// The kind of a thing that is commented on. Kinds of objects that share a number are distinct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommentKind {
    /// A schema, view, sequence or the index of a primary key, by its object id.
    Object,
    /// A constraint of a table or a domain, by its object id.
    Constraint,
    /// A database, by the object id of its first schema.
    Database,
    /// An account or role, by its number.
    Role,
}

impl CommentKind {
    const ALL: [CommentKind; 4] =
        [CommentKind::Object, CommentKind::Constraint, CommentKind::Database, CommentKind::Role];

    fn byte(self) -> u8 {
        match self {
            CommentKind::Object => b'o',
            CommentKind::Constraint => b'c',
            CommentKind::Database => b'd',
            CommentKind::Role => b'r',
        }
    }
}

/// The thing that a comment is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommentKey {
    pub kind: CommentKind,
    /// An object's id or a role's number.
    pub of: u64,
    /// A column of the object by its number from 1 on; 0: the whole.
    pub column: u32,
}

impl CommentKey {
    /// Returns the key of the whole of a thing.
    pub fn whole(kind: CommentKind, of: u64) -> CommentKey {
        CommentKey { kind, of, column: 0 }
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        let CommentKey { kind, of, column } = self;
        [&[COMMENT, kind.byte()][..], &of.to_be_bytes(), &column.to_be_bytes()].concat()
    }

    /// Returns the key of a record's piece.
    fn of_bytes(bytes: &[u8]) -> Option<CommentKey> {
        let ([_, letter], rest) = bytes.split_first_chunk()?;
        let (of, rest) = rest.split_first_chunk()?;
        let (column, piece) = rest.split_first_chunk()?;
        let kind = CommentKind::ALL.into_iter().find(|kind| kind.byte() == *letter)?;
        let is_piece = piece.len() == 2;
        is_piece.then_some(CommentKey { kind, of: u64::from_be_bytes(*of), column: u32::from_be_bytes(*column) })
    }
}

/// All comments that records hold.
pub type Comments = BTreeMap<CommentKey, Arc<str>>;

/// The comments that a transaction has changed; `None` for a removed one.
pub(super) type CommentChanges = BTreeMap<CommentKey, Option<Arc<str>>>;

/// Adds a piece of a record to those that were read. Returns false for a key of another form.
pub(super) fn gather(pieces: &mut BTreeMap<CommentKey, Vec<u8>>, key: &[u8], value: &[u8]) -> bool {
    let Some(of) = CommentKey::of_bytes(key) else { return false };
    pieces.entry(of).or_default().extend_from_slice(value);
    true
}

pub(super) fn load(pieces: &BTreeMap<CommentKey, Vec<u8>>) -> Result<Comments> {
    let read = |(key, bytes): (&CommentKey, &Vec<u8>)| {
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        Ok((*key, text.into()))
    };
    pieces.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::record::PIECE;

    #[test]
    fn comments_come_back_from_their_bytes() {
        let text = "ein Kommentar mit ü".repeat(200);
        for kind in CommentKind::ALL {
            let key = CommentKey { kind, of: 1 << 40, column: 70_000 };
            let mut pieces = BTreeMap::new();
            for (nth, bytes) in text.as_bytes().chunks(PIECE).enumerate() {
                let of = [&key.bytes()[..], &(nth as u16).to_be_bytes()].concat();
                assert!(gather(&mut pieces, &of, bytes));
                assert!(!gather(&mut pieces, &of[..of.len() - 1], bytes));
            }
            assert_eq!(load(&pieces).unwrap(), BTreeMap::from([(key, text.as_str().into())]));
        }
        let key = CommentKey::whole(CommentKind::Role, 1);
        assert!(load(&BTreeMap::from([(key, vec![0xFF])])).is_err());
        assert!(!gather(&mut BTreeMap::new(), &[&[COMMENT, b'?'][..], &[0; 14]].concat(), b"x"));
    }
}
