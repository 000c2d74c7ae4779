//! How many of a stream's entries a group has read, and how many it has not: the rules of Redis 7.0.15, which answer nothing where entries were deleted between.

use engine::{Group, KeyTransaction, Stream, StreamId};

use crate::call::Done;

/// `entries_read` of a group that does not know it.
pub(super) const UNKNOWN: i64 = -1;

/// Facts about a stream that a group's progress depends on.
pub(super) struct Progress {
    len: u64,
    added: u64,
    last: StreamId,
    max_deleted: StreamId,
    first: StreamId,
}

impl Progress {
    pub fn of(txn: &KeyTransaction<'_>, stream: &Stream<'_>) -> Done<Progress> {
        Ok(Progress {
            len: stream.len(),
            added: stream.entries_added(),
            last: stream.last_id(),
            max_deleted: stream.max_deleted_id(),
            first: txn.edge_id(stream, false)?.unwrap_or_default(),
        })
    }

    /// Returns whether an entry may have been deleted from this id on.
    fn has_gap_from(&self, id: StreamId) -> bool {
        // What was deleted before the first entry is no gap.
        self.len > 0 && self.max_deleted != StreamId::MIN && self.first <= self.max_deleted && id <= self.max_deleted
    }

    /// Returns how many entries were ever added up to an id, if that is known.
    fn entries_up_to(&self, id: StreamId) -> i64 {
        if self.added == 0 {
            return 0;
        }
        if self.len == 0 && id <= self.last || id == self.last {
            return self.added as i64;
        }
        if id > self.last || self.max_deleted != StreamId::MIN && self.max_deleted >= self.first {
            return UNKNOWN;
        }
        match id.cmp(&self.first) {
            std::cmp::Ordering::Less => self.added.wrapping_sub(self.len) as i64,
            std::cmp::Ordering::Equal => self.added.wrapping_sub(self.len).wrapping_add(1) as i64,
            std::cmp::Ordering::Greater => UNKNOWN,
        }
    }

    /// Notes that a group reads an entry.
    pub fn advance(&self, group: &mut Group, id: StreamId) {
        if id <= group.last_id {
            return;
        }
        if group.entries_read != UNKNOWN && !self.has_gap_from(id) {
            group.entries_read = group.entries_read.wrapping_add(1);
        } else if self.added > 0 {
            group.entries_read = self.entries_up_to(id);
        }
        group.last_id = id;
    }

    /// Returns how many entries a group has not read, if that is known.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let is_exact = group.entries_read != UNKNOWN && !self.has_gap_from(group.last_id);
        let read = match self.added {
            0 => return Some(0),
            _ if is_exact => Some(group.entries_read),
            _ => Some(self.entries_up_to(group.last_id)).filter(|read| *read != UNKNOWN),
        };
        read.map(|read| (self.added as i64).wrapping_sub(read))
    }
}
