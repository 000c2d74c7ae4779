//! The servers that follow: how far each is, and the commands that only concern them.

use std::net::IpAddr;

use reactor::Handle;
use stdx::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// How far the synchronisation of a follower is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum FollowStage {
    /// Its RDB file is not begun, or being written.
    WaitsForFile,
    GetsFile,
    Online,
}

/// A server that follows, as others see it. Its session alone moves it on.
pub struct Follower {
    handle: Option<Handle>,
    pub ip: IpAddr,
    pub port: u16,
    /// Without acknowledgements, as `redis-cli --replica`.
    pub is_mute: bool,
    /// The offset before the first byte that its connection has not got.
    next: AtomicU64,
    /// The offset up to which it says to have applied everything.
    acknowledged: AtomicU64,
    /// When it has been heard of, or has taken bytes.
    heard_ms: AtomicU64,
    stage: AtomicU32,
    is_woken: AtomicBool,
    is_cut: AtomicBool,
    /// It gets nothing behind its file before it has acknowledged it.
    awaits_ack: AtomicBool,
    /// Since when it is behind by more than the soft limit; 0 if it is not.
    pub late_since_ms: AtomicU64,
}

impl Follower {
    pub fn new(handle: Option<Handle>, ip: IpAddr, port: u16, is_mute: bool, now_ms: u64) -> Follower {
        Follower {
            handle,
            ip,
            port,
            is_mute,
            next: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            heard_ms: AtomicU64::new(now_ms),
            stage: AtomicU32::new(FollowStage::WaitsForFile as u32),
            is_woken: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            awaits_ack: AtomicBool::new(false),
            late_since_ms: AtomicU64::new(0),
        }
    }

    /// Lets its session run, which has something to send. Needs neither locks nor keys.
    pub fn wake(&self) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.ask();
        }
    }

    fn ask(&self) {
        if let Some(handle) = &self.handle {
            handle.ask();
        }
    }

    /// Says that its session runs: what is appended from here on wakes it again.
    pub fn begin_run(&self) {
        self.is_woken.store(false, Ordering::Release);
    }

    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.ask();
    }

    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Acquire)
    }

    pub fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub fn advance_to(&self, offset: u64) {
        self.next.store(offset, Ordering::Relaxed);
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub fn heard_ms(&self) -> u64 {
        self.heard_ms.load(Ordering::Relaxed)
    }

    pub fn hear(&self, now_ms: u64) {
        self.heard_ms.store(now_ms, Ordering::Relaxed);
    }

    pub fn acknowledge(&self, offset: u64, now_ms: u64) {
        self.acknowledged.fetch_max(offset, Ordering::Relaxed);
        self.awaits_ack.store(false, Ordering::Relaxed);
        self.hear(now_ms);
    }

    /// Makes it online. A file that ends with a mark must be the last bytes for now: Redis' replicas find the mark at the end of what they have received only.
    pub fn enter_online(&self, is_marked: bool) {
        self.awaits_ack.store(is_marked, Ordering::Relaxed);
        self.enter(FollowStage::Online);
    }

    /// Returns whether it may get the history.
    pub fn takes_history(&self) -> bool {
        self.stage() == FollowStage::Online && !self.awaits_ack.load(Ordering::Relaxed)
    }

    pub fn stage(&self) -> FollowStage {
        match self.stage.load(Ordering::Relaxed) {
            0 => FollowStage::WaitsForFile,
            1 => FollowStage::GetsFile,
            _ => FollowStage::Online,
        }
    }

    pub fn enter(&self, stage: FollowStage) {
        self.stage.store(stage as u32, Ordering::Relaxed);
    }
}
