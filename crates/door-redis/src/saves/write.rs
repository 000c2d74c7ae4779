//! Writing an RDB file from a snapshot of the keys.
//!
//! ```text
//!   snapshot ──► temp-dump.rdb: facts, libraries, keys by database ──► WAL durable up to the instant ──► fsync ──► rename to dump.rdb
//! ```
//! A crash leaves the file of before and perhaps a part of the new one, which the next file overwrites (DR-17). Memory holds a piece of a value, whatever its
//! size.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

use engine::{DATABASES, Entry, Error, KeySnapshot, KeyTransaction};
use rdb::FileWriter;
use stdx::sync::atomic::Ordering;

use super::{Ended, FILE_NAME, FileContents, SaveKind, SaveReply, SaveSlot, Saves, sync_folder};
use crate::commands::dump::payload::{Dumped, Payload};
use crate::commands::dump::write_value;
use crate::commands::server::REDIS_VERSION;
use crate::errors;
use crate::scripts::libraries::LibrarySet;
use crate::shared::Shared;
use crate::spool::Spool;

const PARTIAL_NAME: &str = "temp-dump.rdb";
const BUFFER_BYTES: usize = 256 << 10;
/// Keys that are looked up together.
const KEYS_TOGETHER: usize = 128;

/// Why a file is not begun.
pub(crate) enum NotBegun {
    /// One of this kind is being written.
    Running(SaveKind),
    Failed(String),
}

/// Begins to write a file. The reply for the session comes into `slot`.
pub(crate) fn start(shared: &Arc<Shared>, kind: SaveKind, slot: SaveSlot) -> Result<(), NotBegun> {
    // A thread that has ended its file may still have to end itself.
    let mut thread = shared.saves.thread.lock();
    if shared.saves.is_ending.load(Ordering::Acquire) {
        return Err(NotBegun::Failed(errors::of_engine(&Error::ShuttingDown)));
    }
    shared.saves.begin(kind, shared.clock.wall_ms()).map_err(NotBegun::Running)?;
    let of_thread = shared.clone();
    let builder = std::thread::Builder::new().name("rdb".into());
    match builder.spawn(move || run(&of_thread, kind, &slot)) {
        Ok(started) => {
            if let Some(ended) = thread.replace(started) {
                let _ = ended.join();
            }
            Ok(())
        }
        Err(error) => {
            shared.saves.end(Ended::Failed, shared.clock.wall_ms());
            Err(NotBegun::Failed(format!("ERR no thread for the RDB file: {error}")))
        }
    }
}

impl Saves {
    /// Gives up the file that is being written, because the server stops.
    pub fn stop(&self) {
        self.is_ending.store(true, Ordering::Release);
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, kind: SaveKind, slot: &SaveSlot) {
    let (mut kind, mut slot) = (kind, slot.clone());
    loop {
        let written = match kind {
            SaveKind::Send { is_marked, contents } => send(shared, is_marked, contents, &slot),
            SaveKind::Save | SaveKind::Background => save(shared, kind, &slot),
        };
        let (ended, reply) = match written {
            Ok(done) => done,
            Err(error) => {
                shared.host.report(&format!("the RDB file was not written: {error}"));
                let text = match error {
                    Error::Busy(_) => errors::of_engine(&error),
                    Error::DiskFull => "ERR the RDB file was not written: the disk is full".into(),
                    _ => format!("ERR the RDB file was not written: {error}"),
                };
                (Ended::Failed, SaveReply::Failed(text))
            }
        };
        let has_next = shared.saves.end(ended, shared.clock.wall_ms());
        slot.answer(reply);
        if !has_next || shared.saves.is_ending.load(Ordering::Acquire) {
            return;
        }
        (kind, slot) = (SaveKind::Background, SaveSlot::new(None));
    }
}

fn failed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull,
        _ => Error::Io(error),
    }
}

/// Takes a snapshot and writes it to a file without a name, for a client.
fn send(
    shared: &Shared,
    is_marked: bool,
    contents: FileContents,
    slot: &SaveSlot,
) -> Result<(Ended, SaveReply), Error> {
    let mut libraries = Arc::default();
    let snapshot = shared.keyspace.snapshot(|_| {
        libraries = shared.libraries.get();
        if let Some(at_instant) = &slot.at_instant {
            at_instant();
        }
    })?;
    let spool = Spool::create(shared.engine.pager().folder())?;
    let stop = || stop(shared).or_else(|| slot.is_abandoned().then_some(Error::Cancelled));
    let (mut spool, version) = write_keys(&snapshot, (&libraries, contents), &stop, spool)?;
    if version != rdb::VERSION_WRITTEN {
        spool.patch(&rdb::file_head(version))?;
    }
    let head = if is_marked {
        let mut random = [0; 20];
        os::entropy(&mut random).map_err(Error::Io)?;
        let mark: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        spool.put(mark.as_bytes())?;
        format!("$EOF:{mark}\r\n")
    } else {
        format!("${}\r\n", spool.len())
    };
    spool.end()?;
    // What the client gets, no crash may take back (DR-4).
    snapshot.flush()?;
    Ok((Ended::Sent, SaveReply::Written(head, Box::new(spool))))
}

/// Returns the error of a file that is given up because the server stops.
fn stop(shared: &Shared) -> Option<Error> {
    shared.saves.is_ending.load(Ordering::Relaxed).then_some(Error::ShuttingDown)
}

/// Takes a snapshot and writes it to the data folder.
fn save(shared: &Shared, kind: SaveKind, slot: &SaveSlot) -> Result<(Ended, SaveReply), Error> {
    let mut libraries = Arc::default();
    let snapshot = shared.keyspace.snapshot(|_| libraries = shared.libraries.get())?;
    if kind == SaveKind::Background {
        slot.answer(SaveReply::Started);
    }
    let folder = shared.host.data_folder();
    let partial = folder.join(PARTIAL_NAME);
    let written = write_partial(shared, &snapshot, &libraries, &partial).and_then(|()| {
        std::fs::rename(&partial, folder.join(FILE_NAME)).and_then(|()| sync_folder(&folder)).map_err(failed)
    });
    if written.is_err() {
        // It may not be there.
        let _ = std::fs::remove_file(&partial);
    }
    written.map(|()| (Ended::Saved(snapshot.time_ms()), SaveReply::Saved))
}

fn write_partial(
    shared: &Shared,
    snapshot: &KeySnapshot,
    libraries: &LibrarySet,
    path: &std::path::Path,
) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed)?;
    let out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let (out, version) = write_keys(snapshot, (libraries, FileContents::ALL), &|| stop(shared), out)?;
    let file: File = out.into_inner().map_err(|error| failed(error.into_error()))?;
    if version != rdb::VERSION_WRITTEN {
        file.write_all_at(&rdb::file_head(version), 0).map_err(failed)?;
    }
    // What the file shows, no crash may take back (DR-4).
    snapshot.flush()?;
    file.sync_all().map_err(failed)
}

/// Asks whether the file is given up, and why.
type Stop<'s> = &'s dyn Fn() -> Option<Error>;

/// Writes a whole file. Returns the version whose beginning it must get.
fn write_keys<W: Write>(
    snapshot: &KeySnapshot,
    (libraries, contents): (&LibrarySet, FileContents),
    stop: Stop<'_>,
    out: W,
) -> Result<(W, u16), Error> {
    let mut file = FileWriter::begin(out).map_err(failed)?;
    let created = (snapshot.time_ms() / 1000).to_string();
    for (name, value) in [("redis-ver", REDIS_VERSION), ("redis-bits", "64"), ("ctime", &created)] {
        file.fact(name, value).map_err(failed)?;
    }
    for library in libraries.by_name.values().filter(|_| contents.functions) {
        file.function(&library.code).map_err(failed)?;
    }
    let mut version = rdb::VERSION_WRITTEN;
    let mut txn = snapshot.read();
    for db in 0..DATABASES {
        let (keys, expires) = snapshot.key_counts(db);
        if keys == 0 || !contents.keys {
            continue;
        }
        file.database(db, keys, expires).map_err(failed)?;
        let mut cursor = 0;
        loop {
            // What is not in memory is read together, first the leaves, then the values.
            let mut keys = Vec::with_capacity(KEYS_TOGETHER);
            txn.scan_ahead(db, cursor)?;
            cursor = txn.scan(db, cursor, KEYS_TOGETHER, |key, _| keys.push(key.to_vec()))?;
            let mut entries = Vec::with_capacity(keys.len());
            for key in keys {
                entries.extend(txn.peek(db, &key)?.map(|entry| (key, entry)));
            }
            txn.prefetch_values(entries.iter().map(|(_, entry)| entry))?;
            for (key, entry) in &entries {
                version = version.max(write_key(&mut txn, (db, key, entry), (stop, contents), &mut file)?);
            }
            if cursor == 0 {
                break;
            }
        }
    }
    Ok((file.end(version).map_err(failed)?, version))
}

/// Writes one key. Returns the version that its value needs.
fn write_key<W: Write>(
    txn: &mut KeyTransaction<'_>,
    (db, key, entry): (u8, &[u8], &Entry),
    (stop, contents): (Stop<'_>, FileContents),
    file: &mut FileWriter<W>,
) -> Result<u16, Error> {
    if let Some(time_ms) = entry.expire_at_ms {
        file.expires_at(time_ms).map_err(failed)?;
    }
    let mut sink = |bytes: &[u8]| match stop() {
        Some(error) => Err(error),
        None => file.put(bytes).map_err(failed),
    };
    let mut out = Payload::streamed(key, &mut sink);
    out.has_field_times = contents.field_times;
    match write_value(txn, (db, key), entry, &mut out)? {
        Dumped::Whole => out.end_streamed(),
        Dumped::TooLong => Err(Error::Misuse("a streamed value has no limit")),
    }
}
