//! Stores the keys of a file in staged databases, part by part: memory holds one string, or about 64 KiB of a collection, or the pending entries of one group.

use std::ops::Range;
use std::sync::Arc;

use engine::{Build, DATABASES, End, Expire, KeySet, KeyTransaction, Replace, Staging, Stream, StreamId};
use rdb::{Event, FileEvent, FileKey, StreamEvent, StreamState};

use crate::commands::dump::build_element;
use crate::commands::dump::payload::NotRestored;
use crate::commands::dump::stream::{GroupPart, Groups, from_rdb, set_state, store_group};
use crate::import::library_list::LibraryList;
use crate::import::outcome::ImportError;
use crate::scripts::libraries::Policy;
use crate::shared::Shared;

/// Bytes of a list or of a stream that are written at once.
const BATCH_BYTES: usize = 64 << 10;

/// Items of a list, or entries of a stream with their fields and values, that are not written yet.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    items: Vec<Range<usize>>,
    /// Of a stream: each entry's id, and the end of its items.
    entries: Vec<(StreamId, usize)>,
}

impl Batch {
    fn push(&mut self, item: &[u8]) {
        self.items.push(self.bytes.len()..self.bytes.len() + item.len());
        self.bytes.extend_from_slice(item);
    }

    fn is_full(&self) -> bool {
        self.bytes.len() + self.items.len() * size_of::<Range<usize>>() >= BATCH_BYTES
    }

    fn items(&self) -> Vec<&[u8]> {
        self.items.iter().map(|item| &self.bytes[item.clone()]).collect()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.entries.clear();
    }
}

pub(crate) struct Loader<'i, 'k> {
    shared: &'i Arc<Shared>,
    staging: &'i Staging<'k>,
    replace: Replace,
    began_ms: u64,
    db: u8,
    key: Vec<u8>,
    expires_at_ms: Option<u64>,
    /// The present key's time is over.
    is_expired: bool,
    build: Option<Build<'k>>,
    batch: Batch,
    groups: Groups,
    /// Keys by database.
    keys: [u64; DATABASES as usize],
    expired: u64,
    keeps_expired: bool,
}

impl<'i, 'k> Loader<'i, 'k> {
    pub fn new(shared: &'i Arc<Shared>, staging: &'i Staging<'k>, replace: Replace) -> Loader<'i, 'k> {
        Loader {
            shared,
            staging,
            replace,
            began_ms: shared.clock.wall_ms(),
            db: 0,
            key: Vec::new(),
            expires_at_ms: None,
            is_expired: false,
            build: None,
            batch: Batch::default(),
            groups: Groups::default(),
            keys: [0; DATABASES as usize],
            expired: 0,
            keeps_expired: false,
        }
    }

    /// Keeps keys whose time is over: whoever wrote the file removes them by commands that follow.
    pub fn keep_expired(mut self) -> Self {
        self.keeps_expired = true;
        self
    }

    /// Takes a part of the file, which ends or begins at `at`.
    pub fn take(
        &mut self,
        event: FileEvent<'_>,
        at: u64,
        libraries: &mut LibraryList,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ImportError> {
        let taken = match event {
            FileEvent::Fact(name, value) => {
                // Commands follow, in this file or in the next.
                self.keeps_expired |= matches!(name, b"aof-base" | b"aof-preamble") && value == b"1";
                Ok(())
            }
            FileEvent::Function(code) => libraries.add(code, Policy::Append).map_err(NotRestored::Format),
            FileEvent::Key(head) => {
                self.begin(&head, at)?;
                Ok(())
            }
            FileEvent::Value(_) if self.is_expired => Ok(()),
            FileEvent::Value(part) => self.part(&part),
            FileEvent::KeyEnd(_) if self.is_expired => {
                self.expired += 1;
                Ok(())
            }
            FileEvent::KeyEnd(kind) => {
                progress(at);
                self.end_key(kind)
            }
        };
        taken.map_err(|error| self.placed(error, at))
    }

    fn placed(&self, error: NotRestored, at: u64) -> ImportError {
        let what = match error {
            NotRestored::Format(rule) => rule,
            NotRestored::Engine(error @ (engine::Error::TooLarge { .. } | engine::Error::Invalid(_))) => {
                error.to_string()
            }
            NotRestored::Engine(error) => return ImportError::Engine(error),
        };
        let key = String::from_utf8_lossy(&self.key[..self.key.len().min(80)]);
        ImportError::File(format!("at byte {at}: {what} (database {}, key '{}')", self.db, key.escape_debug()))
    }

    fn begin(&mut self, head: &FileKey<'_>, at: u64) -> Result<(), ImportError> {
        self.key.clear();
        self.key.extend_from_slice(head.key);
        let Some(db) = u8::try_from(head.database).ok().filter(|db| *db < DATABASES) else {
            return Err(ImportError::File(format!(
                "at byte {at}: the file has keys in database {}, and there are the databases 0 to {}",
                head.database,
                DATABASES - 1
            )));
        };
        self.db = db;
        self.expires_at_ms = head.expires_at_ms;
        self.is_expired = !self.keeps_expired && head.expires_at_ms.is_some_and(|at_ms| at_ms <= self.began_ms);
        if self.replace == Replace::Empty && self.keys[usize::from(db)] == 0 {
            // The end of the import checks it again. This one spares the reading.
            let count = self.shared.keyspace.read(KeySet::Keys(&[]), |txn| txn.count(db))?.0;
            if count > 0 {
                return Err(ImportError::Conflict(format!("database {db} has keys")));
            }
        }
        Ok(())
    }

    fn expire(&self) -> Expire {
        self.expires_at_ms.map_or(Expire::None, Expire::At)
    }

    /// Changes the present key.
    fn write<R>(
        &self,
        several: bool,
        f: impl FnOnce(&mut KeyTransaction<'k>) -> Result<R, NotRestored>,
    ) -> Result<R, NotRestored> {
        self.staging.write(KeySet::Keys(&[(self.db, &self.key)]), several, f)
    }

    fn part(&mut self, part: &Event<'_>) -> Result<(), NotRestored> {
        match part {
            Event::String(bytes) => {
                self.write(false, |txn| Ok(txn.put_string(self.db, &self.key, bytes, self.expire())?))
            }
            Event::Item(item) => {
                self.batch.push(item);
                if self.batch.is_full() { self.push_items(None) } else { Ok(()) }
            }
            Event::Stream(StreamEvent::Entry(id, items)) => {
                items.iter().for_each(|item| self.batch.push(item));
                self.batch.entries.push((from_rdb(*id), self.batch.items.len()));
                if self.batch.is_full() { self.append_entries(None) } else { Ok(()) }
            }
            Event::Stream(StreamEvent::State(state)) => self.append_entries(Some(state)),
            Event::Stream(event) => match self.groups.take(event)? {
                Some(group) => self.add_group(group),
                None => Ok(()),
            },
            Event::Member(_) | Event::Scored(..) | Event::Field(..) => {
                let (staging, key) = (self.staging, &self.key);
                let limits = &self.shared.pack_limits;
                build_element(&mut self.build, part, limits, |kind, limits| Ok(staging.build(key, kind, limits)))
            }
        }
    }

    fn end_key(&mut self, kind: rdb::Kind) -> Result<(), NotRestored> {
        match kind {
            rdb::Kind::String => {}
            rdb::Kind::List => self.push_items(self.expires_at_ms)?,
            rdb::Kind::Stream => {
                if let Some(group) = self.groups.end()? {
                    self.add_group(group)?;
                }
                self.groups = Groups::default();
                if let Some(at_ms) = self.expires_at_ms {
                    self.write(false, |txn| Ok(txn.set_expire(self.db, &self.key, Some(at_ms))?))?;
                }
            }
            rdb::Kind::Hash | rdb::Kind::Set | rdb::Kind::SortedSet => {
                if let Some(build) = self.build.take() {
                    self.write(false, |txn| Ok(txn.put_built_until(self.db, &self.key, build, self.expire())?))?;
                }
            }
        }
        self.keys[usize::from(self.db)] += 1;
        Ok(())
    }

    /// Appends the batch to a list, and sets the key's time behind the last batch.
    fn push_items(&mut self, expires_at_ms: Option<u64>) -> Result<(), NotRestored> {
        self.write(true, |txn| {
            let items = self.batch.items();
            if !items.is_empty() {
                txn.push_items(self.db, &self.key, End::Tail, &items)?;
            }
            if expires_at_ms.is_some() {
                txn.set_expire(self.db, &self.key, expires_at_ms)?;
            }
            Ok(())
        })?;
        self.batch.clear();
        Ok(())
    }

    /// Opens the present key's stream, which may not exist yet.
    fn open_stream(&self, txn: &mut KeyTransaction<'k>) -> Result<Stream<'k>, NotRestored> {
        Ok(match txn.peek(self.db, &self.key)? {
            Some(entry) => txn.stream(self.db, &self.key, &entry)?,
            None => txn.new_stream(self.db, &self.key)?,
        })
    }

    /// Appends the batch to a stream, and sets its state behind the last entry.
    fn append_entries(&mut self, state: Option<&StreamState>) -> Result<(), NotRestored> {
        let limits = self.shared.pack_limits.stream_node();
        self.write(true, |txn| {
            let mut stream = self.open_stream(txn)?;
            let (items, mut from) = (self.batch.items(), 0);
            for (id, end) in &self.batch.entries {
                let fields: Vec<_> = items[from..*end].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                txn.append_entry(&mut stream, *id, &fields, limits)?;
                from = *end;
            }
            if let Some(state) = state {
                set_state(&mut stream, state);
            }
            Ok(txn.store_stream(stream)?)
        })?;
        self.batch.clear();
        Ok(())
    }

    fn add_group(&self, group: GroupPart) -> Result<(), NotRestored> {
        group.check_names()?;
        self.write(true, |txn| {
            let mut stream = self.open_stream(txn)?;
            store_group(txn, &mut stream, group)?;
            Ok(txn.store_stream(stream)?)
        })
    }

    /// Checks that no key stands in the file twice. Returns how many were left out because they had expired.
    pub fn end(self) -> Result<u64, ImportError> {
        for db in 0..DATABASES {
            if self.staging.key_count(db)? != self.keys[usize::from(db)] {
                return Err(ImportError::File(format!("a key of database {db} stands in the file twice")));
            }
        }
        Ok(self.expired)
    }
}
