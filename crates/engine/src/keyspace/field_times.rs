//! Expiry times of a hash's fields: where they are, and what is due.
//!
//! ```text
//!   packed      behind each value, if any field of the hash expires (`packed`)
//!   elements    in the head of the field's element, as that of a key in its meta record; and a second element for each such field, by time:
//!                 version id | 24 | time u64 BE | sub key of the field   ->   nothing
//!               the meta record has the number of these fields u64 and the least of their times u64, or nothing if there is none
//! ```
//! A field is due when the clock shows more than its time. A due field is absent for every command, and so is a hash of which all fields are due; the
//! background removes them (`expire`). It finds the hash by the entry of the expiry tree for its least time (EN-83), and the fields by the elements by time
//! (EN-84): it never walks over fields that stay.

use crate::error::{Error, Result};
use crate::keyspace::key;
use crate::keyspace::packed;
use crate::keyspace::packed::packed_part;
use crate::keyspace::record::{Body, HASH_TIMES, Head, Kind, Meta};
use crate::store::Store;

/// Greatest expiry time of a field, in milliseconds since 1970.
pub const FIELD_TIME_MAX: u64 = (1 << 48) - 1;

/// The fields of the kind in the meta record of a hash that has elements, of which some expire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FieldTimes {
    /// Number of fields that have an expiry time, due ones included. Not 0.
    pub timed: u64,
    /// The least of these times.
    pub least: u64,
}

impl FieldTimes {
    /// Returns `None` for a hash of which no field expires.
    pub fn parse(fields: &[u8]) -> Option<FieldTimes> {
        let (timed, least) = fields.split_first_chunk::<8>()?;
        let least = u64::from_le_bytes(*least.first_chunk::<8>()?);
        Some(FieldTimes { timed: u64::from_le_bytes(*timed), least })
    }

    /// Returns the bytes that `parse` reads; none if no field expires.
    pub fn bytes(times: Option<FieldTimes>) -> Vec<u8> {
        let Some(times) = times else { return Vec::new() };
        let bytes = [times.timed.to_le_bytes(), times.least.to_le_bytes()].concat();
        assert!(bytes.len() == HASH_TIMES && times.timed > 0);
        bytes
    }
}

/// Returns the least expiry time of a hash's fields; `None` if none expires, or if it is no hash.
pub(crate) fn least(meta: &Meta<'_>) -> Result<Option<u64>> {
    match (meta.head.kind, meta.body) {
        (Kind::Hash, Body::Elements { fields, .. }) => Ok(FieldTimes::parse(fields).map(|times| times.least)),
        (Kind::Hash, Body::Inline(payload)) => packed::least_time(packed_part(meta, payload)),
        _ => Ok(None),
    }
}

/// Does the same for a record that is to be written.
pub(crate) fn least_of(kind: Kind, body: &Body<'_>, key_len: u32) -> Result<Option<u64>> {
    least(&Meta { head: Head { kind, form: 0, expire: None, key_len }, body: *body })
}

/// Returns the number of due fields of a hash. It takes a time in proportion to that.
pub(crate) fn due_count(store: &Store, meta: &Meta<'_>, now: u64) -> Result<u64> {
    match (meta.head.kind, meta.body) {
        (Kind::Hash, Body::Inline(payload)) => packed::due_count(packed_part(meta, payload), now),
        (Kind::Hash, Body::Elements { version, fields, .. }) => match FieldTimes::parse(fields) {
            Some(times) if now > times.least => {
                let (from, to) = (key::due_bound(version, 0), key::due_bound(version, now));
                store.records.count(&from, Some(&to), times.timed).map_err(Error::from)
            }
            _ => Ok(0),
        },
        _ => Ok(0),
    }
}

/// Returns true if all fields of a hash are due, so that it is absent.
pub(crate) fn are_all_due(store: &Store, meta: &Meta<'_>, now: u64) -> Result<bool> {
    match (meta.head.kind, meta.body) {
        (Kind::Hash, Body::Inline(payload)) => {
            let packed = packed_part(meta, payload);
            Ok(packed::least_time(packed)?.is_some_and(|least| now > least)
                && packed::due_count(packed, now)? == packed::split(packed)?.count)
        }
        (Kind::Hash, Body::Elements { count, version, fields }) => match FieldTimes::parse(fields) {
            Some(times) if times.timed == count && now > times.least => {
                Ok(last_time(store, version)?.is_some_and(|last| now > last))
            }
            _ => Ok(false),
        },
        _ => Ok(false),
    }
}

/// Returns the least expiry time of the elements of a hash.
pub(crate) fn first_time(store: &Store, version: u64) -> Result<Option<u64>> {
    let first = store.records.first_after(&key::due_bound(version, 0))?;
    first.map_or(Ok(None), |found| time_if_of(version, &found.key))
}

/// Returns the greatest expiry time of the elements of a hash.
fn last_time(store: &Store, version: u64) -> Result<Option<u64>> {
    let last = store.records.last_before(&key::due_bound(version, u64::MAX))?;
    last.map_or(Ok(None), |found| time_if_of(version, &found.key))
}

fn time_if_of(version: u64, tree_key: &[u8]) -> Result<Option<u64>> {
    if key::version_and_kind(tree_key) != Some((version, key::DUE_FIELD)) || key::meta_of(tree_key)?.is_some() {
        return Ok(None);
    }
    key::parse_due_field(tree_key).map(|(time, _)| Some(time))
}
