//! The parts of the pool that all its groups and connections use.

use std::sync::{Arc, OnceLock};

use stdx::parker::{Depth, Parker};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicUsize};
use stdx::watermark::Watermark;

use crate::counters::Counters;
use crate::reply_gate::ReplyGate;
use crate::settings::{LiveSettings, Settings};
use crate::timer::Timers;

/// Called with the number of a group and of a port when the group's listening socket of that port has connections.
type OnConnections = Box<dyn Fn(usize, u64) + Send + Sync>;

pub(crate) struct Shared {
    pub settings: Settings,
    pub live: LiveSettings,
    pub counters: Counters,
    /// The position up to which the WAL is durable. Replies are held until it reaches their durability LSN.
    pub durable: Arc<Watermark>,
    /// Output leaves only while it is open (PG-33).
    pub gate: Option<ReplyGate>,
    pub timers: Arc<Timers>,
    pub stop: AtomicBool,
    pub threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    pub connection_count: AtomicUsize,
    /// Where the watchdog sleeps.
    pub watchdog: Parker,
    pub on_connections: OnceLock<OnConnections>,
}

impl Shared {
    pub fn new(settings: Settings, durable: Arc<Watermark>, gate: Option<ReplyGate>) -> std::io::Result<Shared> {
        Ok(Shared {
            live: LiveSettings::of(&settings),
            settings,
            counters: Counters::default(),
            durable,
            gate,
            timers: Arc::new(Timers::new()?),
            stop: AtomicBool::new(false),
            threads: Mutex::default(),
            connection_count: AtomicUsize::new(0),
            watchdog: Parker::new(),
            on_connections: OnceLock::new(),
        })
    }

    /// Wakes the watchdog if it sleeps because the pool was idle. Called by a thread that has received events.
    #[inline]
    pub fn wake_watchdog(&self) {
        if self.watchdog.depth() == Depth::Deep {
            self.watchdog.unpark();
        }
    }

    /// Returns true if replies may leave at this moment.
    #[inline]
    pub fn may_reply(&self) -> bool {
        self.gate.as_ref().is_none_or(ReplyGate::is_open)
    }

    /// Returns milliseconds since the pool was made.
    pub fn now_ms(&self) -> u64 {
        self.counters.latency.elapsed().as_millis() as u64
    }

    /// Returns true if all connections together have more unsent output than the settings allow (RE-10).
    pub fn is_crowded(&self) -> bool {
        self.counters.unsent_bytes() > self.settings.output_total_bytes as u64
    }
}
