//! RDB files that the server writes: what runs now, how the last one ended, and the sessions that wait for one.
//!
//! One is written at a time, by a thread of its own (`write`), since the engine has one snapshot at a time. A client that waits is parked; the thread leaves
//! its reply and wakes it.

use std::fs::File;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use engine::Lsn;
use reactor::Handle;
use stdx::sync::Mutex;
use stdx::sync::atomic::AtomicBool;

use crate::spool::Spool;

pub(crate) mod write;

/// The name of the file in the data folder.
pub(crate) const FILE_NAME: &str = "dump.rdb";

/// The command for which a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaveKind {
    /// SAVE: the client waits for the file.
    Save,
    /// BGSAVE: the client waits for the instant that the file will show.
    Background,
    /// SYNC: the client gets the file, which has no name. With a mark it need not know the length in advance.
    Send { is_marked: bool, contents: FileContents },
}

/// The parts that a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileContents {
    pub keys: bool,
    pub functions: bool,
    /// Hashes have the expiry times of their fields, which only Redis 7.4 and later read.
    pub field_times: bool,
}

impl FileContents {
    pub const ALL: FileContents = FileContents { keys: true, functions: true, field_times: true };
}

/// The options that REPLCONF has set.
pub(crate) struct SyncOptions {
    /// It gets a file and does not follow.
    pub is_only_file: bool,
    pub takes_mark: bool,
    pub takes_field_times: bool,
    pub contents: FileContents,
    pub port: u16,
    pub ip: Option<IpAddr>,
}

impl Default for SyncOptions {
    fn default() -> Self {
        SyncOptions {
            is_only_file: false,
            takes_mark: false,
            takes_field_times: false,
            contents: FileContents::ALL,
            port: 0,
            ip: None,
        }
    }
}

/// The end of a session's wait.
pub(crate) enum SaveReply {
    Saved,
    Started,
    /// MIGRATE: the reply, and the LSN at which it holds.
    Done(&'static str, Lsn),
    /// The file to be sent, behind this.
    Written(String, Box<Spool>),
    Failed(String),
}

/// Where the thread leaves the reply of a session, and how it wakes it.
#[derive(Clone)]
pub(crate) struct SaveSlot {
    reply: Arc<Mutex<Option<SaveReply>>>,
    handle: Option<Handle>,
    /// Called at the instant that the file shows, while all stripes are held.
    at_instant: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl SaveSlot {
    pub fn new(handle: Option<Handle>) -> SaveSlot {
        SaveSlot { reply: Arc::default(), handle, at_instant: None }
    }

    pub fn at_instant(self, at_instant: Arc<dyn Fn() + Send + Sync>) -> SaveSlot {
        SaveSlot { at_instant: Some(at_instant), ..self }
    }

    /// Leaves the reply, unless there is one.
    pub fn answer(&self, reply: SaveReply) {
        self.reply.lock().get_or_insert(reply);
        if let Some(handle) = &self.handle {
            handle.wake();
        }
    }

    /// Returns whether nobody waits for the reply any more.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.reply) == 1
    }

    pub fn take(&self) -> Option<SaveReply> {
        self.reply.lock().take()
    }
}

/// A session that waits for a file.
pub(crate) struct Saving {
    pub slot: SaveSlot,
    /// CLIENT REPLY suppresses the reply.
    pub is_muted: bool,
    /// The index of the command.
    pub command: usize,
    /// Of a file that is to be sent: what precedes it, and the length of the request, which stays at the front of the input until it is sent (DR-8).
    pub head: Option<String>,
    pub size: usize,
}

/// How a file has ended.
#[derive(Clone, Copy)]
enum Ended {
    /// In the data folder. It shows this time.
    Saved(u64),
    Sent,
    Failed,
}

#[derive(Default)]
pub(crate) struct SaveState {
    /// The file that is being written, and when it was begun.
    running: Option<(SaveKind, u64)>,
    /// Another one is to follow.
    is_scheduled: bool,
    /// The instant of the last file, in milliseconds since 1970.
    saved_ms: Option<u64>,
    has_failed: bool,
    took_ms: Option<u64>,
    count: u64,
}

#[derive(Default)]
pub(crate) struct Saves {
    state: Mutex<SaveState>,
    /// The server stops: what is being written is given up.
    is_ending: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Saves {
    /// Returns the time of the last file; that of the start if there is none.
    pub fn saved_ms(&self, started_ms: u64) -> u64 {
        self.state.lock().saved_ms.unwrap_or(started_ms)
    }

    /// Returns the lines of INFO.
    pub fn facts(&self, started_ms: u64, now_ms: u64) -> [(&'static str, String); 6] {
        let state = self.state.lock();
        let seconds = |ms: Option<u64>| ms.map_or(-1, |ms| (ms / 1000) as i64).to_string();
        [
            ("rdb_bgsave_in_progress", u8::from(state.running.is_some()).to_string()),
            ("rdb_last_save_time", (state.saved_ms.unwrap_or(started_ms) / 1000).to_string()),
            ("rdb_last_bgsave_status", if state.has_failed { "err" } else { "ok" }.to_string()),
            ("rdb_last_bgsave_time_sec", seconds(state.took_ms)),
            ("rdb_current_bgsave_time_sec", seconds(state.running.map(|(_, since)| now_ms.saturating_sub(since)))),
            ("rdb_saves", state.count.to_string()),
        ]
    }

    /// Lets a BGSAVE follow the file that is being written. Returns false if there is none.
    pub fn schedule(&self) -> bool {
        let mut state = self.state.lock();
        state.is_scheduled = state.running.is_some();
        state.is_scheduled
    }

    /// Begins a file, or returns the kind of the one that is being written.
    fn begin(&self, kind: SaveKind, now_ms: u64) -> Result<(), SaveKind> {
        let mut state = self.state.lock();
        match state.running {
            Some((running, _)) => Err(running),
            None => {
                state.running = Some((kind, now_ms));
                Ok(())
            }
        }
    }

    /// Notes the end of a file. Returns true if another one is to follow, which has begun then.
    fn end(&self, ended: Ended, now_ms: u64) -> bool {
        let mut state = self.state.lock();
        let took_ms = state.running.map(|(_, since)| now_ms.saturating_sub(since));
        match (state.running, ended) {
            (Some((SaveKind::Send { .. }, _)), _) | (_, Ended::Sent) => {}
            (_, Ended::Saved(time_ms)) => {
                (state.saved_ms, state.took_ms, state.has_failed) = (Some(time_ms), took_ms, false);
                state.count += 1;
            }
            (_, Ended::Failed) => (state.took_ms, state.has_failed) = (took_ms, true),
        }
        let has_next = std::mem::take(&mut state.is_scheduled);
        state.running = has_next.then_some((SaveKind::Background, now_ms));
        has_next
    }
}

/// Makes the names of a folder durable.
fn sync_folder(folder: &std::path::Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}
