//! The state of the link to the server that is followed, as INFO and ROLE show it, and its end.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use engine::FollowWriter;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::replica::note::StreamPosition;

/// Starts the thread of a link, which continues behind what was applied. REPLICAOF gets it as a value, since the thread runs commands, and REPLICAOF is one.
pub type StartLink = Box<dyn Fn(Arc<Following>, Option<StreamPosition>) -> std::io::Result<()> + Send + Sync>;

/// Which server is followed.
#[derive(Default)]
pub struct Replica {
    pub start: OnceLock<StartLink>,
    /// Held by REPLICAOF, and while the server starts and stops.
    pub changing: Mutex<()>,
    present: Mutex<Option<Arc<Following>>>,
    /// There is one. A hint that avoids the lock.
    is_following: AtomicBool,
}

impl Replica {
    #[inline]
    pub fn is_following(&self) -> bool {
        self.is_following.load(Ordering::Relaxed)
    }

    pub fn present(&self) -> Option<Arc<Following>> {
        if self.is_following() { self.present.lock().clone() } else { None }
    }

    /// Replaces the server that is followed. Ends the link to the one before.
    pub fn replace(&self, following: Option<Arc<Following>>) {
        self.is_following.store(following.is_some(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *self.present.lock(), following);
        if let Some(before) = before {
            before.end();
        }
    }
}

/// How far the link is, in the words of ROLE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It waits for its next try, or has given up.
    #[default]
    Connect,
    Connecting,
    Handshake,
    Sync,
    Connected,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::Connect => "connect",
            Stage::Connecting => "connecting",
            Stage::Handshake => "handshake",
            Stage::Sync => "sync",
            Stage::Connected => "connected",
        }
    }
}

/// The facts about a link.
#[derive(Clone, Debug, Default)]
pub struct LinkFacts {
    pub stage: Stage,
    /// Why there is no link.
    pub trouble: Option<String>,
    /// It does not try again by itself.
    pub has_given_up: bool,
    /// The history's id and the offset up to which its stream was applied, once there is one.
    pub id: Option<String>,
    pub offset: u64,
    /// The offset up to which the stream was received.
    pub read_offset: u64,
    pub last_input_ms: Option<u64>,
    pub down_since_ms: Option<u64>,
    /// Bytes of the file of a full synchronisation: all, if they are known, and those read.
    pub sync_total: Option<u64>,
    pub sync_read: u64,
}

/// A server that is followed, by one thread.
pub struct Following {
    pub host: String,
    pub port: u16,
    pub writer: FollowWriter,
    pub facts: Mutex<LinkFacts>,
    is_ended: AtomicBool,
    is_over: AtomicBool,
    thread: Mutex<Option<Thread>>,
    socket: Mutex<Option<TcpStream>>,
}

impl Following {
    pub fn new(host: String, port: u16, writer: FollowWriter, facts: LinkFacts) -> Following {
        Following {
            host,
            port,
            writer,
            facts: Mutex::new(facts),
            is_ended: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            thread: Mutex::new(None),
            socket: Mutex::new(None),
        }
    }

    /// Returns the address of the server, for messages.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    /// Lets the thread end as soon as it can. It writes no key once another writer has come.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        if let Some(socket) = &*self.socket.lock() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        if let Some(thread) = &*self.thread.lock() {
            thread.unpark();
        }
    }

    /// Registers the present thread, which is that of the link, until the result is dropped.
    pub fn enter(self: &Arc<Self>) -> Entered {
        *self.thread.lock() = Some(std::thread::current());
        Entered(self.clone())
    }

    /// Registers the socket of the link, so that `end` can end it.
    pub fn hold(&self, socket: Option<TcpStream>) {
        *self.socket.lock() = socket;
        if self.is_ended() {
            self.end();
        }
    }

    /// Waits, in the thread of the link. Returns early if it is to end.
    pub fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_ended() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// Waits until the thread is over, but no longer than this: a name may take its time to be resolved.
    pub fn wait_for_end(&self, most: Duration) {
        let until = Instant::now() + most;
        while !self.is_over.load(Ordering::Acquire) && self.thread.lock().is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The thread of the link is in its loop.
pub struct Entered(Arc<Following>);

impl Drop for Entered {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut facts = self.0.facts.lock();
            facts.stage = Stage::Connect;
            (facts.trouble, facts.has_given_up) = (Some("the thread of the link has failed".to_owned()), true);
        }
        self.0.is_over.store(true, Ordering::Release);
    }
}
