//! Owners of objects, and the privileges that were granted on them: records beside the definitions, which follow the
//! same transactions.
//!
//! The core neither checks nor interprets them: a dialect does, with its own privileges as bits. A record is of an object
//! by its kind and number, and ends with the object. Without a record an object has no owner, and the privileges that
//! the dialect gives at first.

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::Result;

use crate::catalog::codec::{In, Out};
use crate::catalog::object_id::ObjectId;

/// The first byte of the keys of access records.
pub(super) const ACCESS: u8 = b'r';
/// The records are kept in so many maps, so that a change copies few of them.
const SHARDS: usize = 64;

/// The number of an account, or of a role that is no account. 0: nobody as an owner, everybody as a grantee.
pub type RoleId = u32;

/// The kind of a thing that access records are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// A schema, table, view or sequence, by its object id.
    Object,
    /// A database, by the object id of its first schema.
    Database,
    /// The memberships of a role: the grantees are the roles that it is a member of.
    Member,
}

impl AccessKind {
    fn byte(self) -> u8 {
        match self {
            AccessKind::Object => b'o',
            AccessKind::Database => b'd',
            AccessKind::Member => b'm',
        }
    }

    fn of_byte(byte: u8) -> Option<AccessKind> {
        let kinds = [AccessKind::Object, AccessKind::Database, AccessKind::Member];
        kinds.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// The thing that a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessKey {
    pub kind: AccessKind,
    /// An object's id or a role's number.
    pub of: u64,
}

impl AccessKey {
    pub fn object(id: ObjectId) -> AccessKey {
        AccessKey { kind: AccessKind::Object, of: id }
    }

    pub fn database(id: ObjectId) -> AccessKey {
        AccessKey { kind: AccessKind::Database, of: id }
    }

    pub fn member(role: RoleId) -> AccessKey {
        AccessKey { kind: AccessKind::Member, of: role.into() }
    }

    fn shard(&self) -> usize {
        self.of as usize % SHARDS
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        [&[ACCESS, self.kind.byte()][..], &self.of.to_be_bytes()].concat()
    }

    fn of_bytes(bytes: &[u8]) -> Option<AccessKey> {
        let ([_, kind], rest) = bytes.split_first_chunk()?;
        let of = rest.get(..8)?.try_into().ok()?;
        Some(AccessKey { kind: AccessKind::of_byte(*kind)?, of: u64::from_be_bytes(of) })
    }
}

/// Privileges of one grantee from one grantor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessGrant {
    pub grantee: RoleId,
    pub grantor: RoleId,
    /// The column by its slot and 1; 0: the whole object.
    pub column: u32,
    pub privileges: u32,
    /// Those among them that the grantee may give on.
    pub grantable: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRecord {
    pub owner: RoleId,
    /// `None`: the privileges that the dialect gives at first.
    pub grants: Option<Vec<AccessGrant>>,
}

impl AccessRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.number(self.owner.into());
        out.byte(u8::from(self.grants.is_some()));
        encode_grants(&mut out, self.grants.as_deref().unwrap_or(&[]));
        out.0
    }

    fn decode(bytes: &[u8]) -> Result<AccessRecord> {
        let mut from = In(bytes);
        let owner = number(&mut from)?;
        let is_set = from.byte()? != 0;
        let grants = decode_grants(&mut from)?;
        Ok(AccessRecord { owner, grants: is_set.then_some(grants) })
    }
}

pub(super) fn encode_grants(out: &mut Out, grants: &[AccessGrant]) {
    out.count(grants.len());
    for grant in grants {
        let numbers = [grant.grantee, grant.grantor, grant.column, grant.privileges, grant.grantable];
        numbers.into_iter().for_each(|number| out.number(number.into()));
    }
}

pub(super) fn decode_grants(from: &mut In<'_>) -> Result<Vec<AccessGrant>> {
    from.list(|from| {
        let (grantee, grantor, column) = (number(from)?, number(from)?, number(from)?);
        Ok(AccessGrant { grantee, grantor, column, privileges: number(from)?, grantable: number(from)? })
    })
}

fn number(from: &mut In<'_>) -> Result<u32> {
    u32::try_from(from.number()?).map_err(|_| crate::catalog::codec::damaged())
}

type RecordShard = Arc<BTreeMap<AccessKey, Arc<AccessRecord>>>;

/// The access records of all objects.
#[derive(Clone, Debug)]
pub struct AccessRecords {
    shards: Arc<[RecordShard; SHARDS]>,
    /// Grows with each change of a record, but not with that of a new object.
    pub version: u64,
}

impl Default for AccessRecords {
    fn default() -> AccessRecords {
        AccessRecords { shards: Arc::new(std::array::from_fn(|_| Arc::default())), version: 0 }
    }
}

impl AccessRecords {
    pub fn get(&self, key: AccessKey) -> Option<&Arc<AccessRecord>> {
        self.shards[key.shard()].get(&key)
    }

    /// Returns all records, in no order.
    pub fn all(&self) -> impl Iterator<Item = (&AccessKey, &Arc<AccessRecord>)> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    pub(super) fn put(&mut self, key: AccessKey, access: Option<Arc<AccessRecord>>) {
        let shard = Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[key.shard()]);
        match access {
            Some(access) => drop(shard.insert(key, access)),
            None => drop(shard.remove(&key)),
        }
    }
}

/// The access records that a transaction has changed.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessChanges {
    pub(super) records: BTreeMap<AccessKey, Option<Arc<AccessRecord>>>,
    /// A record of an object from before the transaction has changed.
    pub(super) is_felt: bool,
}

impl AccessChanges {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn lay_over(&self, records: &mut AccessRecords) {
        for (key, access) in &self.records {
            records.put(*key, access.clone());
        }
        records.version += u64::from(self.is_felt);
    }
}

/// Adds a piece of a record to those that were read. Returns false for a key of another form.
pub(super) fn gather(pieces: &mut BTreeMap<AccessKey, Vec<u8>>, key: &[u8], value: &[u8]) -> bool {
    let Some(of) = AccessKey::of_bytes(key) else { return false };
    pieces.entry(of).or_default().extend_from_slice(value);
    true
}

pub(super) fn load(pieces: &BTreeMap<AccessKey, Vec<u8>>) -> Result<AccessRecords> {
    let mut records = AccessRecords::default();
    for (key, bytes) in pieces {
        records.put(*key, Some(Arc::new(AccessRecord::decode(bytes)?)));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_records_come_back_from_their_bytes() {
        let grant = AccessGrant { grantee: 0, grantor: 7, column: 2, privileges: 5, grantable: 1 };
        for grants in [None, Some(Vec::new()), Some(vec![grant; 300])] {
            let access = AccessRecord { owner: 9, grants };
            let bytes = access.encode();
            assert_eq!(AccessRecord::decode(&bytes), Ok(access));
            assert!((0..bytes.len()).all(|end| AccessRecord::decode(&bytes[..end]).is_err()));
        }
        let key = AccessKey { kind: AccessKind::Database, of: 1 << 40 };
        assert_eq!(AccessKey::of_bytes(&key.bytes()), Some(key));
        assert_eq!(AccessKey::of_bytes(&key.bytes()[..9]), None);
    }
}
