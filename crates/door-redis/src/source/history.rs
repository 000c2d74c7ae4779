//! The bytes that followers get, from the oldest that may still be asked for to the newest.
//!
//! The history has an id and counts its bytes. Blocks of it are shared by all followers, each of which reads from its own offset; the oldest go when neither the
//! backlog nor a follower needs them. A block has the LSN at which all of it is durable, and its bytes are sent no earlier (DR-22). Hard part: what may not be told
//! ends the history. A new one begins, with another id, and everybody who follows has to begin with a new snapshot.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::{EffectBatch, Lsn};
use reactor::Handle;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::source::encoding::put_command;
use crate::source::followers::Follower;

/// A block takes bytes up to this size, or one transaction.
const BLOCK_BYTES: usize = 64 << 10;

/// Redis' id of no history.
pub const NO_ID: &str = "0000000000000000000000000000000000000000";

struct Block {
    /// The offset before its first byte.
    start: u64,
    bytes: Vec<u8>,
    lsn: Lsn,
}

#[derive(Default)]
pub struct HistoryState {
    pub id: String,
    pub is_on: bool,
    /// The number of bytes so far.
    pub end: u64,
    /// The end behind the last command that is not about the link itself.
    pub told_end: u64,
    blocks: VecDeque<Block>,
    /// The database that is selected at the end.
    db: Option<u8>,
    /// Everything before the end is durable at this LSN.
    lsn: Lsn,
    pub followers: Vec<Arc<Follower>>,
    /// Since when nobody follows.
    pub alone_since_ms: u64,
    /// When the last PING was appended.
    pub pinged_ms: u64,
    /// The tick runs.
    pub is_ticking: bool,
}

/// The history, and who follows.
#[derive(Default)]
pub struct History {
    state: Mutex<HistoryState>,
    /// `HistoryState::end`, for readers without the lock.
    end: AtomicU64,
    backlog_bytes: AtomicU64,
    /// A follower that is so many bytes behind is cut; 0 for no limit.
    behind_max: AtomicU64,
    /// Sessions that wait for acknowledgements.
    waiting: Mutex<Vec<Handle>>,
}

/// How much a history keeps.
#[derive(Clone, Copy)]
struct Bounds {
    backlog_bytes: u64,
    behind_max: u64,
}

impl HistoryState {
    /// Returns the offset before the first byte that is kept.
    pub fn start(&self) -> u64 {
        self.blocks.front().map_or(self.end, |block| block.start)
    }

    /// Begins a new history behind the old one, whose followers are cut.
    pub fn renew(&mut self, id: String) {
        (self.id, self.db) = (id, None);
        self.blocks.clear();
        self.followers.drain(..).for_each(|follower| follower.cut());
    }

    fn append(&mut self, bytes: &[&[u8]], lsn: Lsn, bounds: Bounds) {
        let len: usize = bytes.iter().map(|part| part.len()).sum();
        self.lsn = self.lsn.max(lsn);
        let fits = self.blocks.back().is_some_and(|block| block.bytes.len() + len <= BLOCK_BYTES);
        if !fits {
            self.forget(bounds);
            let bytes = Vec::with_capacity(len.max(if len * 4 > BLOCK_BYTES { 0 } else { BLOCK_BYTES }));
            self.blocks.push_back(Block { start: self.end, bytes, lsn });
        }
        if let Some(block) = self.blocks.back_mut() {
            bytes.iter().for_each(|part| block.bytes.extend_from_slice(part));
            block.lsn = self.lsn;
        }
        self.end += len as u64;
    }

    /// Selects the database again with the next command.
    pub fn select_again(&mut self) {
        self.db = None;
    }

    /// Drops blocks that neither the backlog nor a follower needs. Cuts followers that need too many (DR-24).
    fn forget(&mut self, Bounds { backlog_bytes, behind_max }: Bounds) {
        let end = self.end;
        self.followers.retain(|follower| {
            let keeps = behind_max == 0 || end.saturating_sub(follower.next()) < behind_max;
            if !keeps {
                follower.cut();
            }
            keeps
        });
        let needed = self.followers.iter().map(|follower| follower.next()).min().unwrap_or(self.end);
        let needed = needed.min(self.end.saturating_sub(backlog_bytes));
        while self.blocks.front().is_some_and(|block| block.start + block.bytes.len() as u64 <= needed) {
            self.blocks.pop_front();
        }
    }

    fn wake(&self) {
        self.followers.iter().for_each(|follower| follower.wake());
    }
}

impl History {
    pub fn lock(&self) -> stdx::sync::MutexGuard<'_, HistoryState> {
        self.state.lock()
    }

    pub fn set_bounds(&self, backlog_bytes: u64, behind_max: u64) {
        self.backlog_bytes.store(backlog_bytes, Ordering::Relaxed);
        self.behind_max.store(behind_max, Ordering::Relaxed);
    }

    /// Lets a session run when followers have acknowledged more.
    pub fn wait(&self, handle: Handle) {
        self.waiting.lock().push(handle);
    }

    pub fn acknowledged(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.iter().for_each(Handle::wake);
    }

    /// Returns the number of bytes so far.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    fn bounds(&self) -> Bounds {
        Bounds { backlog_bytes: self.backlog_bytes(), behind_max: self.behind_max.load(Ordering::Relaxed) }
    }

    pub fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes.load(Ordering::Relaxed)
    }

    /// Appends the effects of a transaction, several commands as a transaction of Redis. `id` is that of a new history if they are not all.
    ///
    /// Expiry times of fields stand between such transactions: a follower that does not know them would discard the transaction, with the changes that it knows.
    pub fn append(&self, batch: &EffectBatch, lsn: Lsn, id: impl FnOnce() -> String) {
        let mut state = self.state.lock();
        if !state.is_on {
            return;
        }
        if batch.is_lost {
            state.renew(id());
            return;
        }
        let (mut selects, mut start) = (Vec::with_capacity(batch.parts.len()), 0);
        for part in &batch.parts {
            let mut select = Vec::new();
            if state.db.replace(part.db) != Some(part.db) {
                put_command(&mut select, &[b"SELECT", part.db.to_string().as_bytes()]);
            }
            selects.push((part, select, start..part.end));
            start = part.end;
        }
        let mut bytes: Vec<&[u8]> = Vec::with_capacity(2 * selects.len() + 2);
        for some in selects.chunk_by(|(one, ..), (other, ..)| one.has_field_times == other.has_field_times) {
            let commands: u32 = some.iter().map(|(part, ..)| part.commands).sum();
            let is_several = commands > 1 && !some[0].0.has_field_times;
            for (at, (_, select, part)) in some.iter().enumerate() {
                if !select.is_empty() {
                    bytes.push(select);
                }
                bytes.extend((at == 0 && is_several).then_some(&b"*1\r\n$5\r\nMULTI\r\n"[..]));
                bytes.push(&batch.bytes[part.clone()]);
            }
            bytes.extend(is_several.then_some(&b"*1\r\n$4\r\nEXEC\r\n"[..]));
        }
        state.append(&bytes, lsn, self.bounds());
        state.told_end = state.end;
        self.end.store(state.end, Ordering::Release);
        state.wake();
    }

    /// Appends a command that belongs to no database.
    pub fn append_command(&self, words: &[&[u8]], lsn: Lsn) {
        let mut state = self.state.lock();
        if !state.is_on {
            return;
        }
        let mut bytes = Vec::new();
        put_command(&mut bytes, words);
        state.append(&[&bytes], lsn, self.bounds());
        if !matches!(words[0], b"REPLCONF" | b"PING") {
            state.told_end = state.end;
        }
        self.end.store(state.end, Ordering::Release);
        state.wake();
    }

    /// Appends up to `most` bytes from an offset on to `out`. Returns how many there were, and the LSN at which they are durable; `None` if they are gone.
    pub fn read(&self, from: u64, most: usize, out: &mut Vec<u8>) -> Option<(usize, Lsn)> {
        let state = self.state.lock();
        if from < state.start() || from > state.end {
            return None;
        }
        let first = state.blocks.partition_point(|block| block.start + block.bytes.len() as u64 <= from);
        let (mut at, mut left, mut lsn) = (from, most, 0);
        for block in state.blocks.iter().skip(first) {
            if left == 0 {
                break;
            }
            let part = &block.bytes[(at - block.start) as usize..];
            let count = part.len().min(left);
            out.extend_from_slice(&part[..count]);
            (at, left, lsn) = (at + count as u64, left - count, lsn.max(block.lsn));
        }
        Some(((at - from) as usize, lsn))
    }
}

#[cfg(test)]
mod tests {
    use engine::EffectPart;

    use super::*;

    fn history() -> History {
        let history = History::default();
        history.set_bounds(100, 0);
        history.lock().is_on = true;
        history
    }

    fn batch(parts: &[(u8, u32, &str)]) -> EffectBatch {
        let mut batch = EffectBatch::default();
        for (db, commands, text) in parts {
            batch.bytes.extend_from_slice(text.as_bytes());
            let has_field_times = text.starts_with("TIMES");
            batch.parts.push(EffectPart { db: *db, commands: *commands, has_field_times, end: batch.bytes.len() });
        }
        batch
    }

    fn all(history: &History, from: u64) -> (String, Lsn) {
        let mut out = Vec::new();
        let (_, lsn) = history.read(from, usize::MAX, &mut out).expect("kept");
        (String::from_utf8(out).expect("text").replace("\r\n", " "), lsn)
    }

    #[test]
    fn several_effects_are_one_transaction_in_their_databases() {
        let history = history();
        history.append(&batch(&[(0, 1, "a ")]), 5, String::new);
        history.append(&batch(&[(0, 1, "b "), (3, 1, "c ")]), 4, String::new);
        history.append(&batch(&[(3, 1, "d ")]), 9, String::new);
        let (text, lsn) = all(&history, 0);
        assert_eq!(text, "*2 $6 SELECT $1 0 a *1 $5 MULTI b *2 $6 SELECT $1 3 c *1 $4 EXEC d ");
        assert_eq!(lsn, 9);
    }

    #[test]
    fn expiry_times_of_fields_are_outside_transactions() {
        let history = history();
        history.append(
            &batch(&[(0, 2, "a b "), (0, 2, "TIMES c "), (1, 1, "d "), (1, 1, "TIMES "), (1, 2, "e f ")]),
            5,
            String::new,
        );
        assert_eq!(
            all(&history, 0).0,
            "*2 $6 SELECT $1 0 *1 $5 MULTI a b *1 $4 EXEC TIMES c *2 $6 SELECT $1 1 d TIMES *1 $5 MULTI e f *1 $4 EXEC "
        );
    }

    #[test]
    fn bytes_are_durable_when_those_before_them_are() {
        let history = history();
        history.append(&batch(&[(0, 1, "a")]), 90, String::new);
        history.append(&batch(&[(0, 1, &"x".repeat(BLOCK_BYTES))]), 10, String::new);
        assert_eq!(history.read(24, 10, &mut Vec::new()), Some((10, 90)), "the second block");
    }

    #[test]
    fn a_gap_ends_the_history() {
        let history = history();
        history.lock().id = "one".into();
        history.append(&batch(&[(0, 1, "a")]), 1, String::new);
        history.append(&EffectBatch { is_lost: true, ..EffectBatch::default() }, 2, || "two".into());
        assert_eq!(history.lock().id, "two");
        assert_eq!(history.read(0, 10, &mut Vec::new()), None);
        history.append(&batch(&[(0, 1, "b ")]), 3, String::new);
        let start = history.lock().start();
        assert_eq!(all(&history, start).0, "*2 $6 SELECT $1 0 b ", "the database is selected again");
    }

    #[test]
    fn the_backlog_keeps_so_many_bytes_at_least() {
        let history = history();
        for _ in 0..50 {
            history.append(&batch(&[(0, 1, &"x".repeat(BLOCK_BYTES / 2))]), 1, String::new);
        }
        let state = history.lock();
        assert!(state.start() > 0, "old blocks have gone");
        assert!(state.end - state.start() >= 100);
    }
}
