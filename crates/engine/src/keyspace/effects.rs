//! Effects of key transactions: every change of a key as something that another server can repeat, in the order of the commits.
//!
//! ```text
//!   primitive of a key transaction ─► KeyEffect ─► the door's encoding, appended to the transaction's log
//!                                                                     commit ─► the log goes to the sink, while the stripes are held
//!                                                                     rollback ─► the log is dropped
//! ```
//! Whatever changes a key does so by the primitives (`put_string`, `put_members`, `rename`, ...), so effects are recorded there: the door through which a change
//! came, a script, expiry and the service of a waiter make no difference (EN-96). An effect is a fact, never a question: a member that SPOP chose is removed by its
//! name, a time is absolute. The hard part is a change that cannot be told: it makes a gap, and whoever follows has to begin with a new snapshot (EN-98).

use std::ops::Range;
use std::sync::OnceLock;

use pager::Lsn;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::keyspace::list::End;
use crate::keyspace::record::Kind;
use crate::keyspace::record_change::Expire;
use crate::keyspace::streams::stream_id::StreamId;

/// A change of one key, or of a whole database.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyEffect<'e> {
    Set {
        key: &'e [u8],
        value: &'e [u8],
        expire: Expire,
    },
    /// Bytes of a string from an offset on. A gap is filled with zeros.
    Patch {
        key: &'e [u8],
        offset: u64,
        bytes: &'e [u8],
    },
    Delete {
        key: &'e [u8],
    },
    ExpireAt {
        key: &'e [u8],
        at_ms: Option<u64>,
    },
    /// Whatever had the new name is replaced, here and in `Copy`.
    Rename {
        key: &'e [u8],
        to: (u8, &'e [u8]),
    },
    Copy {
        key: &'e [u8],
        to: (u8, &'e [u8]),
    },
    /// A value as DUMP writes it, whatever the key held.
    Restore {
        key: &'e [u8],
        at_ms: Option<u64>,
        payload: &'e [u8],
    },
    /// Fields with their values, or members of a set with empty ones. A field loses its expiry time.
    PutMembers {
        key: &'e [u8],
        kind: Kind,
        items: &'e [(&'e [u8], &'e [u8])],
    },
    RemoveMembers {
        key: &'e [u8],
        kind: Kind,
        members: &'e [&'e [u8]],
    },
    FieldsExpireAt {
        key: &'e [u8],
        fields: &'e [&'e [u8]],
        at_ms: Option<u64>,
    },
    PutScores {
        key: &'e [u8],
        items: &'e [(f64, &'e [u8])],
    },
    RemoveRanks {
        key: &'e [u8],
        ranks: Range<u64>,
    },
    Push {
        key: &'e [u8],
        end: End,
        items: &'e [&'e [u8]],
    },
    Pop {
        key: &'e [u8],
        end: End,
        count: u64,
    },
    KeepItems {
        key: &'e [u8],
        kept: Range<u64>,
    },
    SetItem {
        key: &'e [u8],
        index: u64,
        item: &'e [u8],
    },
    InsertItem {
        key: &'e [u8],
        pivot: &'e [u8],
        is_before: bool,
        item: &'e [u8],
    },
    RemoveItems {
        key: &'e [u8],
        from: End,
        count: u64,
        item: &'e [u8],
    },
    AppendEntry {
        key: &'e [u8],
        id: StreamId,
        fields: &'e [(&'e [u8], &'e [u8])],
    },
    DeleteEntries {
        key: &'e [u8],
        ids: &'e [StreamId],
    },
    /// The stream keeps so many entries, the newest ones.
    TrimStream {
        key: &'e [u8],
        len: u64,
    },
    /// A stream without entries and groups is there.
    EmptyStream {
        key: &'e [u8],
    },
    SetStreamIds {
        key: &'e [u8],
        last: StreamId,
        added: u64,
        max_deleted: StreamId,
    },
    /// A group of a stream, which is made if it is absent.
    CreateGroup {
        key: &'e [u8],
        group: &'e [u8],
        last: StreamId,
        entries_read: i64,
    },
    SetGroup {
        key: &'e [u8],
        group: &'e [u8],
        last: StreamId,
        entries_read: i64,
    },
    DestroyGroup {
        key: &'e [u8],
        group: &'e [u8],
    },
    CreateConsumer {
        key: &'e [u8],
        group: &'e [u8],
        consumer: &'e [u8],
    },
    DeleteConsumer {
        key: &'e [u8],
        group: &'e [u8],
        consumer: &'e [u8],
    },
    /// These entries are pending for a consumer, delivered at one time and so often.
    SetPending {
        key: &'e [u8],
        group: &'e [u8],
        consumer: &'e [u8],
        ids: &'e [StreamId],
        delivered_ms: u64,
        deliveries: u64,
    },
    Acknowledge {
        key: &'e [u8],
        group: &'e [u8],
        ids: &'e [StreamId],
    },
    FlushDatabase,
    FlushAll,
    SwapDatabases(u8, u8),
}

/// Appends the encoded effect to the bytes. Returns the number of commands that it takes.
pub type EncodeEffect = fn(&KeyEffect<'_>, &mut Vec<u8>) -> u32;

/// Takes the effects of a decided transaction, with the LSN at which they are durable. It is called with stripes held, so it must neither wait nor use keys.
pub type TakeEffects = Box<dyn Fn(EffectBatch, Lsn) + Send + Sync>;

/// Effects in one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectPart {
    pub db: u8,
    pub commands: u32,
    /// They are expiry times of fields, and nothing else: not every follower knows these.
    pub has_field_times: bool,
    /// Where they end in the bytes.
    pub end: usize,
}

/// The effects of one transaction.
#[derive(Default, Debug)]
pub struct EffectBatch {
    pub bytes: Vec<u8>,
    pub parts: Vec<EffectPart>,
    /// A change could not be told: these effects are not all.
    pub is_lost: bool,
}

/// A position in the effects of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EffectMark {
    bytes: usize,
    parts: usize,
    /// Commands and end of the last part.
    last: (u32, usize),
}

/// The effects of a transaction so far.
#[derive(Default)]
pub(crate) struct EffectLog {
    pub batch: EffectBatch,
    /// They are described by their caller.
    pub muted: u32,
}

struct EffectSink {
    encode: EncodeEffect,
    take: TakeEffects,
}

/// Where effects go, and whether they are recorded.
#[derive(Default)]
pub struct KeyEffects {
    is_on: AtomicBool,
    /// The effects of a transaction that take more bytes are a gap; 0 for no limit.
    bytes_max: AtomicU64,
    sink: OnceLock<EffectSink>,
}

impl KeyEffects {
    /// Registers the sink. Later registrations are ignored.
    pub fn listen(&self, encode: EncodeEffect, take: TakeEffects) {
        let _ = self.sink.set(EffectSink { encode, take });
    }

    /// Begins to record. All stripes must be held, so that no transaction is recorded in part (EN-97).
    pub fn begin(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Ends recording. Effects of transactions under way are to be ignored.
    pub fn end(&self) {
        self.is_on.store(false, Ordering::Relaxed);
    }

    /// Returns whether effects are recorded. Exact for a thread that holds a stripe.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Passes effects on. The stripes of their keys are held.
    #[cold]
    pub(crate) fn append(&self, log: &mut EffectLog, lsn: Lsn) {
        if let Some(sink) = self.sink.get() {
            (sink.take)(std::mem::take(&mut log.batch), lsn);
        }
    }

    #[cold]
    pub(crate) fn record(&self, log: &mut EffectLog, db: u8, effect: &KeyEffect<'_>) {
        let Some(sink) = self.sink.get() else { return };
        let batch = &mut log.batch;
        if log.muted > 0 || batch.is_lost {
            return;
        }
        let commands = (sink.encode)(effect, &mut batch.bytes);
        let end = batch.bytes.len();
        let has_field_times = matches!(effect, KeyEffect::FieldsExpireAt { .. });
        match batch.parts.last_mut().filter(|part| part.db == db && part.has_field_times == has_field_times) {
            Some(part) => (part.commands, part.end) = (part.commands + commands, end),
            None => batch.parts.push(EffectPart { db, commands, has_field_times, end }),
        }
        let most = self.bytes_max.load(Ordering::Relaxed);
        if most > 0 && end as u64 > most {
            log.lose();
        }
    }
}

impl EffectLog {
    pub fn is_empty(&self) -> bool {
        self.batch.parts.is_empty() && !self.batch.is_lost
    }

    /// Makes a gap of all effects of the transaction.
    pub fn lose(&mut self) {
        self.batch = EffectBatch { is_lost: true, ..EffectBatch::default() };
    }

    pub fn mark(&self) -> EffectMark {
        let last = self.batch.parts.last().map_or((0, 0), |part| (part.commands, part.end));
        EffectMark { bytes: self.batch.bytes.len(), parts: self.batch.parts.len(), last }
    }

    /// Drops the effects behind a mark.
    pub fn truncate(&mut self, mark: EffectMark) {
        self.batch.bytes.truncate(mark.bytes);
        self.batch.parts.truncate(mark.parts);
        if let Some(part) = self.batch.parts.last_mut().filter(|_| mark.parts > 0) {
            (part.commands, part.end) = mark.last;
        }
    }
}
