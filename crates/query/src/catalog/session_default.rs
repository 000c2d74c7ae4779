//! Settings that apply when a session begins, for a role, a database, one of both, or neither: records beside the
//! definitions, which follow the same transactions.
//!
//! The core keeps texts and does not interpret them: a dialect applies them, each in its own form. A record ends with its
//! database, by the object id of the database's first schema; a dialect that drops a role removes those of the role.

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::Result;

use crate::catalog::access::RoleId;
use crate::catalog::codec::{In, Out};
use crate::catalog::object_id::ObjectId;

/// The first byte of the keys of these records.
pub(super) const SESSION_DEFAULTS: u8 = b'd';

/// The sessions that settings apply to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefaultsKey {
    /// 0: in every database.
    pub database: ObjectId,
    /// 0: of every role.
    pub role: RoleId,
}

impl DefaultsKey {
    pub(super) fn bytes(self) -> Vec<u8> {
        [&[SESSION_DEFAULTS][..], &self.database.to_be_bytes(), &self.role.to_be_bytes()].concat()
    }

    /// Returns the key of a record's piece.
    fn of_bytes(bytes: &[u8]) -> Option<DefaultsKey> {
        let (database, rest) = bytes.get(1..)?.split_first_chunk()?;
        let (role, piece) = rest.split_first_chunk()?;
        let is_piece = piece.len() == 2;
        is_piece.then_some(DefaultsKey { database: u64::from_be_bytes(*database), role: u32::from_be_bytes(*role) })
    }
}

/// The records of all sessions.
pub type SessionDefaults = BTreeMap<DefaultsKey, Arc<[String]>>;

/// The records that a transaction has changed; `None` for a removed one.
pub(super) type SessionDefaultsChanges = BTreeMap<DefaultsKey, Option<Arc<[String]>>>;

pub(super) fn encode(texts: &[String]) -> Vec<u8> {
    let mut out = Out::default();
    out.count(texts.len());
    texts.iter().for_each(|text| out.text(text));
    out.0
}

/// Adds a piece of a record to those that were read. Returns false for a key of another form.
pub(super) fn gather(pieces: &mut BTreeMap<DefaultsKey, Vec<u8>>, key: &[u8], value: &[u8]) -> bool {
    let Some(of) = DefaultsKey::of_bytes(key) else { return false };
    pieces.entry(of).or_default().extend_from_slice(value);
    true
}

pub(super) fn load(pieces: &BTreeMap<DefaultsKey, Vec<u8>>) -> Result<SessionDefaults> {
    let read = |(key, bytes): (&DefaultsKey, &Vec<u8>)| Ok((*key, In(bytes).list(In::text)?.into()));
    pieces.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::record::PIECE;

    #[test]
    fn session_defaults_come_back_from_their_bytes() {
        let key = DefaultsKey { database: 1 << 40, role: 70_000 };
        let texts = vec!["work_mem=1MB".to_owned(), "a.b=ü".repeat(900)];
        let mut pieces = BTreeMap::new();
        for (nth, bytes) in encode(&texts).chunks(PIECE).enumerate() {
            let of = [&key.bytes()[..], &(nth as u16).to_be_bytes()].concat();
            assert!(gather(&mut pieces, &of, bytes));
            assert!(!gather(&mut pieces, &of[..of.len() - 1], bytes));
        }
        assert_eq!(load(&pieces).unwrap(), BTreeMap::from([(key, texts.into())]));
        let whole = pieces.remove(&key).unwrap();
        assert!((0..whole.len()).all(|end| load(&BTreeMap::from([(key, whole[..end].to_vec())])).is_err()));
    }
}
