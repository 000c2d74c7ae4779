//! ACL LOG: refused accesses, newest first.

use std::collections::VecDeque;

use stdx::sync::Mutex;

#[derive(Clone, Debug)]
pub struct Access {
    pub count: u64,
    /// `command`, `key` or `auth`.
    pub reason: &'static str,
    /// Inside MULTI.
    pub context: &'static str,
    pub object: Vec<u8>,
    pub user: String,
    pub at_ms: u64,
    /// The client as a line of CLIENT LIST.
    pub client: String,
}

#[derive(Default)]
pub struct AccessLog {
    entries: Mutex<VecDeque<Access>>,
}

/// Equal refusals within this time share an entry.
const SAME_MS: u64 = 60_000;
/// Number of the newest entries that are searched for an equal one.
const LOOKED_AT: usize = 10;

impl AccessLog {
    pub fn add(&self, access: Access, len_max: usize) {
        let is_same = |other: &Access| {
            other.reason == access.reason
                && other.context == access.context
                && other.object == access.object
                && other.user == access.user
                && access.at_ms.saturating_sub(other.at_ms) <= SAME_MS
        };
        let mut entries = self.entries.lock();
        let same = entries.iter().take(LOOKED_AT).position(is_same);
        let before = same.and_then(|at| entries.remove(at)).map_or(0, |entry| entry.count);
        entries.push_front(Access { count: before + 1, ..access });
        entries.truncate(len_max);
    }

    pub fn newest(&self, count: usize) -> Vec<Access> {
        self.entries.lock().iter().take(count).cloned().collect()
    }

    pub fn clear(&self) {
        self.entries.lock().clear();
    }
}
