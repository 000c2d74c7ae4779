//! Privileges that objects get when a role makes them: records beside the definitions, which follow the same transactions.
//!
//! As with `access`, the core keeps the grants and does not interpret them: a dialect adds them to the record of a new
//! object. A record ends with its database and its schema; a dialect that drops a role removes those of the role.

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::Result;

use crate::catalog::access::{AccessGrant, RoleId, decode_grants, encode_grants};
use crate::catalog::codec::{In, Out};
use crate::catalog::object_id::ObjectId;

/// The first byte of the keys of these records.
pub(super) const DEFAULT_ACCESS: u8 = b'f';

/// The new objects that a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefaultAccessKey {
    /// The object id of the database's first schema.
    pub database: ObjectId,
    /// The role that makes them.
    pub role: RoleId,
    /// 0: in every schema.
    pub schema: ObjectId,
    /// The kind of objects, by a number of the dialect.
    pub kind: u8,
}

impl DefaultAccessKey {
    pub(super) fn bytes(self) -> Vec<u8> {
        let DefaultAccessKey { database, role, schema, kind } = self;
        [&[DEFAULT_ACCESS][..], &database.to_be_bytes(), &role.to_be_bytes(), &schema.to_be_bytes(), &[kind]].concat()
    }

    /// Returns the key of a record's piece.
    fn of_bytes(bytes: &[u8]) -> Option<DefaultAccessKey> {
        let (database, rest) = bytes.get(1..)?.split_first_chunk()?;
        let (role, rest) = rest.split_first_chunk()?;
        let (schema, rest) = rest.split_first_chunk()?;
        let [kind, _, _] = rest else { return None };
        Some(DefaultAccessKey {
            database: u64::from_be_bytes(*database),
            role: u32::from_be_bytes(*role),
            schema: u64::from_be_bytes(*schema),
            kind: *kind,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultAccess {
    /// The number of the record, which no object has.
    pub id: ObjectId,
    pub grants: Vec<AccessGrant>,
}

impl DefaultAccess {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.number(self.id);
        encode_grants(&mut out, &self.grants);
        out.0
    }

    fn decode(bytes: &[u8]) -> Result<DefaultAccess> {
        let mut from = In(bytes);
        Ok(DefaultAccess { id: from.number()?, grants: decode_grants(&mut from)? })
    }
}

/// The records of all roles.
pub type DefaultAccesses = BTreeMap<DefaultAccessKey, Arc<DefaultAccess>>;

/// The records that a transaction has changed; `None` for a removed one.
pub(super) type DefaultAccessChanges = BTreeMap<DefaultAccessKey, Option<Arc<DefaultAccess>>>;

/// Adds a piece of a record to those that were read. Returns false for a key of another form.
pub(super) fn gather(pieces: &mut BTreeMap<DefaultAccessKey, Vec<u8>>, key: &[u8], value: &[u8]) -> bool {
    let Some(of) = DefaultAccessKey::of_bytes(key) else { return false };
    pieces.entry(of).or_default().extend_from_slice(value);
    true
}

pub(super) fn load(pieces: &BTreeMap<DefaultAccessKey, Vec<u8>>) -> Result<DefaultAccesses> {
    pieces.iter().map(|(key, bytes)| Ok((*key, Arc::new(DefaultAccess::decode(bytes)?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::record::PIECE;

    #[test]
    fn default_access_comes_back_from_its_bytes() {
        let key = DefaultAccessKey { database: 1 << 40, role: 70_000, schema: 3, kind: b'S' };
        let grant = AccessGrant { grantee: 0, grantor: 7, column: 0, privileges: 5, grantable: 1 };
        let access = DefaultAccess { id: 1 << 33, grants: vec![grant; 300] };
        let mut pieces = BTreeMap::new();
        for (nth, bytes) in access.encode().chunks(PIECE).enumerate() {
            let of = [&key.bytes()[..], &(nth as u16).to_be_bytes()].concat();
            assert!(gather(&mut pieces, &of, bytes));
            assert!(!gather(&mut pieces, &of[..of.len() - 1], bytes));
        }
        assert_eq!(load(&pieces).unwrap(), BTreeMap::from([(key, Arc::new(access))]));
        let whole = pieces.remove(&key).unwrap();
        assert!((0..whole.len()).all(|end| load(&BTreeMap::from([(key, whole[..end].to_vec())])).is_err()));
    }
}
