//! Scripts: the texts that EVALSHA knows, the Lua states of the threads, and the runs under way.
//!
//! ```text
//!   EVAL ──► text ──► key transaction over the declared keys ──► Lua state of the thread ──► redis.call ──► function of the command, same transaction
//!                          ▲                                                                       │
//!                          └── rolled back, again with one more key ◄── key held by somebody else ─┘
//! ```
//! A script is one key transaction (DR-10). Texts are in memory only, as in Redis.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use redis_lua::Purpose;
use stdx::memory;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub mod flags;
pub mod libraries;
pub mod load;
pub mod run;
pub mod thread_state;

use flags::ScriptFlags;

/// A script, by the digest of its whole text.
pub struct Script {
    pub digest: String,
    /// The text without its first line, if that is one of flags. The line's end stays, so lines have their numbers.
    pub body: Vec<u8>,
    /// None for a script without a line of flags.
    pub flags: Option<ScriptFlags>,
    /// Bytes of the whole text.
    bytes: u64,
}

/// Scripts that EVAL has added. One more, and the oldest of them is forgotten; what SCRIPT LOAD has added stays.
const EVALUATED_MAX: usize = 10_000;
/// Approximate memory of a script besides its text.
const SCRIPT_BYTES: usize = 256;

#[derive(Default)]
struct Texts {
    by_digest: HashMap<String, Arc<Script>>,
    /// Digests of those that EVAL has added, the oldest first.
    evaluated: VecDeque<String>,
    bytes: u64,
}

/// The texts of scripts.
#[derive(Default)]
pub struct ScriptTexts(Mutex<Texts>);

impl ScriptTexts {
    pub fn get(&self, digest: &str) -> Option<Arc<Script>> {
        self.0.lock().by_digest.get(digest).cloned()
    }

    /// Returns the script with this text, and adds it. The error is a reply.
    pub fn add(&self, text: &[u8], is_loaded: bool) -> Result<Arc<Script>, String> {
        let digest = redis_lua::digest(text);
        let mut texts = self.0.lock();
        if let Some(script) = texts.by_digest.get(&digest).cloned() {
            if is_loaded {
                texts.evaluated.retain(|other| *other != digest);
            }
            return Ok(script);
        }
        let (flags, from) = flags::read(text)?;
        let _claim = memory::claim(text.len() + SCRIPT_BYTES).map_err(crate::errors::out_of_memory)?;
        let bytes = (text.len() + SCRIPT_BYTES) as u64;
        let script = Arc::new(Script { digest: digest.clone(), body: text[from..].to_vec(), flags, bytes });
        texts.bytes += bytes;
        texts.by_digest.insert(digest.clone(), script.clone());
        if !is_loaded {
            texts.evaluated.push_back(digest);
            if texts.evaluated.len() > EVALUATED_MAX
                && let Some(oldest) = texts.evaluated.pop_front()
            {
                texts.remove(&oldest);
            }
        }
        Ok(script)
    }

    /// Removes a script whose text is no Lua.
    pub fn remove(&self, digest: &str) {
        let mut texts = self.0.lock();
        texts.remove(digest);
        texts.evaluated.retain(|other| other != digest);
    }

    pub fn clear(&self) {
        *self.0.lock() = Texts::default();
    }

    /// Returns how many there are, and their bytes.
    pub fn counts(&self) -> (usize, u64) {
        let texts = self.0.lock();
        (texts.by_digest.len(), texts.bytes)
    }
}

impl Texts {
    fn remove(&mut self, digest: &str) {
        if let Some(script) = self.by_digest.remove(digest) {
            self.bytes -= script.bytes;
        }
    }
}

/// A run under way.
pub struct Running {
    pub purpose: Purpose,
    pub name: String,
    /// The request, for FUNCTION STATS.
    pub request: Vec<Vec<u8>>,
    pub started_ns: u64,
    /// It has taken longer than `busy-reply-threshold`.
    pub is_busy: AtomicBool,
    /// It has run a command that writes.
    pub has_written: AtomicBool,
    pub is_killed: AtomicBool,
}

/// The result of SCRIPT KILL and FUNCTION KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    Done,
    NotBusy,
    /// It has written.
    Refused,
    /// A run of the other kind is the one that takes long.
    Other,
}

/// The runs under way, and memory of the states.
#[derive(Default)]
pub struct Runs {
    running: Mutex<BTreeMap<u64, Arc<Running>>>,
    next: AtomicU64,
    busy_count: AtomicU64,
    /// Bytes of all states for scripts, and for functions.
    pub state_bytes: [AtomicU64; 2],
    /// The server is stopping: no run may go on.
    pub is_ending: AtomicBool,
}

impl Runs {
    pub fn add(&self, run: Arc<Running>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.running.lock().insert(id, run);
        id
    }

    pub fn remove(&self, id: u64) {
        if let Some(run) = self.running.lock().remove(&id)
            && run.is_busy.load(Ordering::Relaxed)
        {
            self.busy_count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn set_busy(&self, run: &Running) {
        if !run.is_busy.swap(true, Ordering::Relaxed) {
            self.busy_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the run that takes longest, if any takes longer than the threshold.
    pub fn longest(&self) -> Option<Arc<Running>> {
        if self.busy_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let running = self.running.lock();
        let busy = running.values().filter(|run| run.is_busy.load(Ordering::Relaxed));
        busy.min_by_key(|run| run.started_ns).cloned()
    }

    /// Ends the run that takes longest and has not written.
    pub fn kill(&self, purpose: Purpose) -> Kill {
        let running = self.running.lock();
        let mut busy: Vec<&Arc<Running>> = running.values().filter(|run| run.is_busy.load(Ordering::Relaxed)).collect();
        busy.sort_by_key(|run| run.started_ns);
        let of_kind: Vec<&Arc<Running>> = busy.iter().filter(|run| run.purpose == purpose).copied().collect();
        let may_end =
            |run: &&&Arc<Running>| !run.has_written.load(Ordering::Acquire) && !run.is_killed.load(Ordering::Relaxed);
        match (of_kind.iter().find(may_end), of_kind.is_empty(), busy.is_empty()) {
            (Some(run), ..) => {
                run.is_killed.store(true, Ordering::Release);
                Kill::Done
            }
            (None, false, _) => Kill::Refused,
            (None, true, false) => Kill::Other,
            (None, true, true) => Kill::NotBusy,
        }
    }

    /// Returns the bytes of the states for a purpose.
    pub fn state_bytes(&self, purpose: Purpose) -> u64 {
        self.state_bytes[purpose as usize].load(Ordering::Relaxed)
    }
}
