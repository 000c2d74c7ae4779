//! Tree keys: how a user key, or an element of a large value, is stored.
//!
//! ```text
//!   keyspace u32 BE | kind 0 | user key                                   meta record of a key of at most 512 bytes
//!   keyspace u32 BE | kind 1 | first 256 bytes | SHA-256 of the key       meta record of a longer key; its value starts with the whole key
//!   ff ff ff ff     | version id u64 BE | kind >= 16 | sub key            element of a value that has more than one record
//!
//!   sub key of a field or member:   hash u48 BE | 0 | member              of at most 512 bytes
//!                                   hash u48 BE | 1 | SHA-256             of a longer one; its record starts with the whole member
//! ```
//! Elements belong to a version id, which is never reused, and not to a keyspace. So RENAME, MOVE and SWAPDB move a value of any size by its meta record alone,
//! and DEL leaves the elements to the background. docs/formats/keyspace.md has the whole table.

use crate::digest::sha256;
use crate::error::{Error, Result};

/// Number of databases that SELECT accepts.
pub const DATABASES: u8 = 16;

/// Places in the map of databases: those of the databases, and as many staged ones behind them, which no command can select (EN-81).
pub(crate) const SLOTS: u8 = 2 * DATABASES;

pub(crate) const SHORT_KEY_MAX: usize = 512;
pub(crate) const LONG_KEY_PREFIX: usize = 256;
/// Bytes of the keyspace number.
pub(crate) const SPACE_BYTES: usize = 4;
/// The keyspace number of all elements. Never given to a database.
pub(crate) const ELEMENTS: u32 = u32::MAX;

pub(crate) const META_SHORT: u8 = 0;
pub(crate) const META_LONG: u8 = 1;
/// Element kind: 256 KiB of a string.
pub(crate) const SEGMENT: u8 = 16;
/// Element kind: field of a hash.
pub(crate) const FIELD: u8 = 17;
/// Element kind: chunk of a list.
pub(crate) const CHUNK: u8 = 18;
/// Element kind: member of a set.
pub(crate) const MEMBER: u8 = 19;
/// Element kind: member of a sorted set.
pub(crate) const SCORED_MEMBER: u8 = 20;
/// Element kind: the same by score.
pub(crate) const SCORE: u8 = 21;
/// Element kind: bucket of a level.
pub(crate) const LEVEL: u8 = 23;
/// Element kind: chunk of a stream.
pub(crate) const STREAM_CHUNK: u8 = 22;
/// Element kind: field of a hash by its expiry time.
pub(crate) const DUE_FIELD: u8 = 24;
/// Element kind: group of a stream.
pub(crate) const GROUP: u8 = 25;
/// Element kind: pending entries of a group.
pub(crate) const PENDING: u8 = 26;
/// Element kind: ids of the pending entries of a consumer.
pub(crate) const OWNED: u8 = 27;
/// Element kind: number of the consumer with a name.
pub(crate) const CONSUMER_NAME: u8 = 28;
/// Element kind: consumer of a group.
pub(crate) const CONSUMER: u8 = 29;

/// Longest member that is part of its tree key.
pub(crate) const SHORT_MEMBER_MAX: usize = 512;
/// Bytes before the sub key of an element.
pub(crate) const ELEMENT_PREFIX: usize = SPACE_BYTES + 8 + 1;
/// Bytes of a member's hash.
pub(crate) const HASH_BYTES: usize = 6;
/// Number of different hashes.
pub(crate) const HASHES: u64 = 1 << 48;
const _: () = assert!(ELEMENT_PREFIX + 8 + HASH_BYTES + 1 + SHORT_MEMBER_MAX <= btree::Tree::KEY_MAX);
const _: () = assert!(
    ELEMENT_PREFIX + 1 + 8 + SHORT_MEMBER_MAX + 32 < btree::Tree::KEY_MAX,
    "a bucket's bound is a score's sub key"
);

const _: () = assert!(SPACE_BYTES + 1 + SHORT_KEY_MAX <= btree::Tree::KEY_MAX);
const _: () =
    assert!(8 + SPACE_BYTES + 1 + SHORT_KEY_MAX <= btree::Tree::KEY_MAX, "an expiry entry is a time and a tree key");

const SMALL: usize = 72;

/// Longest value, and longest key: Redis's own limit.
pub const VALUE_MAX: u64 = 512 << 20;

/// The keys that a key transaction may touch.
#[derive(Clone, Copy)]
pub enum KeySet<'a> {
    /// These keys, in any order, duplicates allowed.
    Keys(&'a [(u8, &'a [u8])]),
    /// Every key of every database: for FLUSHALL, SWAPDB, and key transactions with SCAN, KEYS or RANDOMKEY among other commands.
    All,
}

pub(crate) fn check_database(db: u8) -> Result<()> {
    if db < DATABASES { Ok(()) } else { Err(Error::Misuse("a database number beyond the last one")) }
}

/// Checks the number of a place in the map of databases.
pub(crate) fn check_slot(slot: u8) -> Result<()> {
    if slot < SLOTS { Ok(()) } else { Err(Error::Misuse("a database number beyond the last one")) }
}

/// The tree key of a user key. A short one is stored inline.
#[derive(Clone)]
pub(crate) struct TreeKey {
    small: [u8; SMALL],
    large: Vec<u8>,
    len: usize,
}

impl TreeKey {
    #[inline]
    pub fn new(space: u32, key: &[u8]) -> TreeKey {
        if key.len() > SHORT_KEY_MAX {
            return Self::long(space, key);
        }
        let mut tree_key = Self::with_len(SPACE_BYTES + 1 + key.len());
        let bytes = tree_key.bytes_mut();
        bytes[..SPACE_BYTES].copy_from_slice(&space.to_be_bytes());
        bytes[SPACE_BYTES] = META_SHORT;
        bytes[SPACE_BYTES + 1..].copy_from_slice(key);
        tree_key
    }

    #[cold]
    fn long(space: u32, key: &[u8]) -> TreeKey {
        let parts: [&[u8]; 4] = [&space.to_be_bytes(), &[META_LONG], &key[..LONG_KEY_PREFIX], &sha256(key)];
        Self::from_bytes(&parts.concat())
    }

    /// Wraps a key that was read from a tree.
    pub fn from_bytes(from: &[u8]) -> TreeKey {
        let mut tree_key = Self::with_len(from.len());
        tree_key.bytes_mut().copy_from_slice(from);
        tree_key
    }

    #[inline]
    fn with_len(len: usize) -> TreeKey {
        let large = if len > SMALL { vec![0; len] } else { Vec::new() };
        TreeKey { small: [0; SMALL], large, len }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.len > SMALL { &mut self.large } else { &mut self.small[..self.len] }
    }

    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        if self.len > SMALL { &self.large } else { &self.small[..self.len] }
    }

    /// Returns all but the keyspace number: the name of the key within its database.
    #[inline]
    pub fn suffix(&self) -> &[u8] {
        &self.as_slice()[SPACE_BYTES..]
    }

    pub fn is_long(&self) -> bool {
        self.as_slice()[SPACE_BYTES] == META_LONG
    }
}

impl AsRef<[u8]> for TreeKey {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// Returns the keyspace number of a meta record's key; `None` for an element.
pub(crate) fn meta_of(tree_key: &[u8]) -> Result<Option<u32>> {
    let space = tree_key.get(..SPACE_BYTES).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let kind = tree_key.get(SPACE_BYTES);
    match (space, kind) {
        (Some(ELEMENTS), Some(_)) => Ok(None),
        (Some(space), Some(&(META_SHORT | META_LONG))) => Ok(Some(space)),
        _ => Err(Error::corrupt(format!("key of unknown form in the keyspace tree: {tree_key:02x?}"))),
    }
}

/// Returns the first key that could belong to the keyspace; `bound(space + 1)` follows its last one.
pub(crate) fn bound(space: u32) -> [u8; SPACE_BYTES] {
    space.to_be_bytes()
}

pub(crate) fn element(version: u64, kind: u8, sub: u32) -> [u8; 17] {
    let mut key = [0; 17];
    key[..4].copy_from_slice(&ELEMENTS.to_be_bytes());
    key[4..12].copy_from_slice(&version.to_be_bytes());
    key[12] = kind;
    key[13..].copy_from_slice(&sub.to_be_bytes());
    key
}

/// Returns the tree key of an element of any kind.
pub(crate) fn element_of(version: u64, kind: u8, sub: &[u8]) -> Vec<u8> {
    [&ELEMENTS.to_be_bytes()[..], &version.to_be_bytes(), &[kind], sub].concat()
}

/// Returns the tree key of a bucket of a level.
pub(crate) fn level(version: u64, level: u8, bound: &[u8]) -> Vec<u8> {
    [&ELEMENTS.to_be_bytes()[..], &version.to_be_bytes(), &[LEVEL, level], bound].concat()
}

/// Bytes of the tree key of a list's chunk.
pub(crate) const CHUNK_KEY: usize = ELEMENT_PREFIX + 8;

/// Returns the tree key of a list's chunk.
pub(crate) fn chunk(version: u64, position: u64) -> [u8; CHUNK_KEY] {
    let mut key = [0; CHUNK_KEY];
    key[..SPACE_BYTES].copy_from_slice(&ELEMENTS.to_be_bytes());
    key[SPACE_BYTES..ELEMENT_PREFIX - 1].copy_from_slice(&version.to_be_bytes());
    key[ELEMENT_PREFIX - 1] = CHUNK;
    key[ELEMENT_PREFIX..].copy_from_slice(&position.to_be_bytes());
    key
}

/// Returns the position of a list's chunk.
pub(crate) fn parse_chunk(tree_key: &[u8]) -> Result<u64> {
    let position = tree_key.get(ELEMENT_PREFIX..).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    position.ok_or_else(|| Error::corrupt(format!("key of a list's chunk of unknown form: {tree_key:02x?}")))
}

/// Returns the tree key of a field or member.
pub(crate) fn member(version: u64, kind: u8, hash: u64, member: &[u8]) -> TreeKey {
    if member.len() > SHORT_MEMBER_MAX {
        return long_member(version, kind, hash, &sha256(member));
    }
    let from = member_bound(version, kind, hash);
    let mut key = TreeKey::with_len(from.len() + 1 + member.len());
    let bytes = key.bytes_mut();
    bytes[..from.len()].copy_from_slice(&from);
    bytes[from.len()] = 0;
    bytes[from.len() + 1..].copy_from_slice(member);
    key
}

/// Returns the tree key of a field by its expiry time, from the tree key of the field.
pub(crate) fn due_field(version: u64, time: u64, field_key: &[u8]) -> Vec<u8> {
    [&due_bound(version, time)[..], sub_key(field_key)].concat()
}

/// Returns the first key that a field that expires at this time, or later, could have.
pub(crate) fn due_bound(version: u64, time: u64) -> [u8; ELEMENT_PREFIX + 8] {
    let mut key = [0; ELEMENT_PREFIX + 8];
    key[..SPACE_BYTES].copy_from_slice(&ELEMENTS.to_be_bytes());
    key[SPACE_BYTES..ELEMENT_PREFIX - 1].copy_from_slice(&version.to_be_bytes());
    key[ELEMENT_PREFIX - 1] = DUE_FIELD;
    key[ELEMENT_PREFIX..].copy_from_slice(&time.to_be_bytes());
    key
}

/// Returns the expiry time and the tree key of the field that an element by expiry time stands for.
pub(crate) fn parse_due_field(tree_key: &[u8]) -> Result<(u64, Vec<u8>)> {
    let parse = || {
        let (time, member) = sub_key(tree_key).split_first_chunk::<8>()?;
        let field = [tree_key.get(..ELEMENT_PREFIX - 1)?, &[FIELD], member].concat();
        parse_member(&field).ok()?;
        Some((u64::from_be_bytes(*time), field))
    };
    parse().ok_or_else(|| Error::corrupt(format!("key of a due field of unknown form: {tree_key:02x?}")))
}

/// Returns the tree key of a field or member of more than 512 bytes, by its digest.
pub(crate) fn long_member(version: u64, kind: u8, hash: u64, digest: &[u8]) -> TreeKey {
    TreeKey::from_bytes(&[&member_bound(version, kind, hash)[..], &[1], digest].concat())
}

/// Returns the first key that a field or member with this hash, or a greater one, could have. With `HASHES`, returns the end of all.
pub(crate) fn member_bound(version: u64, kind: u8, hash: u64) -> [u8; ELEMENT_PREFIX + HASH_BYTES] {
    let mut key = [0; ELEMENT_PREFIX + HASH_BYTES];
    key[..SPACE_BYTES].copy_from_slice(&ELEMENTS.to_be_bytes());
    key[SPACE_BYTES..ELEMENT_PREFIX - 1].copy_from_slice(&version.to_be_bytes());
    key[ELEMENT_PREFIX - 1] = kind + u8::from(hash >= HASHES);
    if hash < HASHES {
        key[ELEMENT_PREFIX..].copy_from_slice(&hash.to_be_bytes()[2..]);
    }
    key
}

/// A parsed key of a field or member.
pub(crate) struct MemberKey<'a> {
    pub hash: u64,
    /// `None` for a long one, which its record starts with.
    pub short: Option<&'a [u8]>,
}

pub(crate) fn parse_member(tree_key: &[u8]) -> Result<MemberKey<'_>> {
    let parse = || {
        let (hash, rest) = tree_key.get(ELEMENT_PREFIX..)?.split_at_checked(HASH_BYTES)?;
        let mut word = [0; 8];
        word[2..].copy_from_slice(hash);
        let hash = u64::from_be_bytes(word);
        match rest.split_first()? {
            (0, short) => Some(MemberKey { hash, short: Some(short) }),
            (1, digest) if digest.len() == 32 => Some(MemberKey { hash, short: None }),
            _ => None,
        }
    };
    parse().ok_or_else(|| Error::corrupt(format!("key of a member of unknown form: {tree_key:02x?}")))
}

/// Returns the tree key of an element with this sub key.
pub(crate) fn sub_element(version: u64, kind: u8, sub: &[u8]) -> TreeKey {
    TreeKey::from_bytes(&element_of(version, kind, sub))
}

/// Returns the sub key of an element that has a name of any length, in the order of names: at most 512 bytes of it, and the digest of a longer one.
pub(crate) fn named(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if name.len() > SHORT_MEMBER_MAX {
        [prefix, &name[..SHORT_MEMBER_MAX], &sha256(name)].concat()
    } else {
        [prefix, name].concat()
    }
}
const _: () = assert!(ELEMENT_PREFIX + 4 + SHORT_MEMBER_MAX + 32 <= btree::Tree::KEY_MAX);

/// Returns the sub key of an element's tree key.
pub(crate) fn sub_key(tree_key: &[u8]) -> &[u8] {
    tree_key.get(ELEMENT_PREFIX..).unwrap_or_default()
}

/// Returns version id and kind of an element's key.
pub(crate) fn version_and_kind(tree_key: &[u8]) -> Option<(u64, u8)> {
    let (version, rest) = tree_key.get(SPACE_BYTES..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*version), *rest.first()?))
}

/// Returns bounds `(from, to)` of all elements of a version.
pub(crate) fn elements(version: u64) -> ([u8; 12], [u8; 12]) {
    let mut from = [0xff; 12];
    from[4..].copy_from_slice(&version.to_be_bytes());
    let mut to = [0xff; 12];
    to[4..].copy_from_slice(&(version + 1).to_be_bytes());
    (from, to)
}

/// Returns the smallest byte string greater than every string that starts with `prefix`; `None` if there is none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bound = prefix.to_vec();
    while let Some(last) = bound.pop() {
        if last < u8::MAX {
            bound.push(last + 1);
            return Some(bound);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_keyspace_then_kind_then_bytes() {
        let keys = [
            TreeKey::new(1, b""),
            TreeKey::new(1, b"a"),
            TreeKey::new(1, &[b'a'; 512]),
            TreeKey::new(1, &[b'a'; 513]),
            TreeKey::new(2, b""),
            TreeKey::new(256, b"zzz"),
        ];
        assert!(keys.windows(2).all(|pair| pair[0].as_slice() < pair[1].as_slice()));
        for key in &keys {
            assert!(key.as_slice() >= bound(meta_of(key.as_slice()).unwrap().unwrap()).as_slice());
        }
        assert!(keys[3].is_long() && !keys[2].is_long());
        assert_eq!(meta_of(&element(7, SEGMENT, 3)).unwrap(), None);
        assert!(meta_of(&[0, 0, 0, 1, 9]).is_err() && meta_of(&[0]).is_err());
    }

    #[test]
    fn long_keys_that_share_their_beginning_differ() {
        let (mut one, two) = (vec![b'k'; 2000], vec![b'k'; 2000]);
        one[1999] = b'x';
        assert_ne!(TreeKey::new(3, &one).as_slice(), TreeKey::new(3, &two).as_slice());
    }

    #[test]
    fn elements_of_a_version_lie_between_its_bounds() {
        let (from, to) = elements(41);
        for sub in [0, 1, u32::MAX] {
            let key = element(41, SEGMENT, sub);
            assert!(key.as_slice() > from.as_slice() && key.as_slice() < to.as_slice());
        }
        assert!(element(42, SEGMENT, 0).as_slice() > to.as_slice());
        assert!(element(40, SEGMENT, u32::MAX).as_slice() < from.as_slice());
    }

    #[test]
    fn members_sort_by_hash_within_their_version_and_parse() {
        let keys = [
            member(7, FIELD, 0, b""),
            member(7, FIELD, 0, b"a"),
            member(7, FIELD, 0, &[b'a'; 513]),
            member(7, FIELD, 1, b"a"),
            member(7, FIELD, HASHES - 1, &[0xff; 512]),
            member(7, MEMBER, 0, b""),
        ];
        assert!(keys.windows(2).all(|pair| pair[0].as_slice() < pair[1].as_slice()));
        assert!(keys[4].as_slice() < &member_bound(7, FIELD, HASHES)[..]);
        assert!(keys[5].as_slice() > &member_bound(7, FIELD, HASHES)[..]);
        let parsed = parse_member(keys[4].as_slice()).unwrap();
        assert_eq!((parsed.hash, parsed.short), (HASHES - 1, Some([0xff; 512].as_slice())));
        assert_eq!(parse_member(keys[2].as_slice()).unwrap().short, None);
        assert_eq!(version_and_kind(keys[5].as_slice()), Some((7, MEMBER)));
        assert!(parse_member(&element(7, SEGMENT, 3)).is_err());
    }

    #[test]
    fn the_bound_after_a_prefix_is_tight() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xff]), None);
        assert_eq!(after_prefix(b""), None);
    }
}
