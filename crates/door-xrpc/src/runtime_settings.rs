//! The door's settings that may change while it is open. Those of a connection or a session apply to new ones.

use std::time::Duration;

use stdx::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::frame::Mode;
use crate::options::Options;

/// The mode without a version.
const LEGACY: u32 = u32::MAX;
/// The size of a page in `output_pages`.
const PAGE: usize = 4096;

#[derive(Default)]
pub struct RuntimeSettings {
    mode: AtomicU32,
    length_max: AtomicUsize,
    queue_max: AtomicUsize,
    spare_lifetime_ms: AtomicU64,
    spare_refresh_ms: AtomicU64,
    output_pages: AtomicUsize,
    measures: AtomicBool,
}

impl RuntimeSettings {
    pub fn of(options: &Options) -> RuntimeSettings {
        let settings = RuntimeSettings::default();
        settings.take(options);
        settings
    }

    pub fn take(&self, options: &Options) {
        let mode = match options.mode {
            Mode::Legacy => LEGACY,
            Mode::Galaxy(version) => version.into(),
        };
        self.mode.store(mode, Ordering::Relaxed);
        self.length_max.store(options.length_max, Ordering::Relaxed);
        self.queue_max.store(options.queue_max, Ordering::Relaxed);
        self.spare_lifetime_ms.store(options.idle_session_lifetime.as_millis() as u64, Ordering::Relaxed);
        self.spare_refresh_ms.store(options.idle_session_check.as_millis() as u64, Ordering::Relaxed);
        self.output_pages.store(options.output_pages, Ordering::Relaxed);
        self.measures.store(options.measures, Ordering::Relaxed);
    }

    pub fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            LEGACY => Mode::Legacy,
            version => Mode::Galaxy(version as u8),
        }
    }

    pub fn length_max(&self) -> usize {
        self.length_max.load(Ordering::Relaxed)
    }

    pub fn queue_max(&self) -> usize {
        self.queue_max.load(Ordering::Relaxed)
    }

    pub fn idle_session_lifetime(&self) -> Duration {
        Duration::from_millis(self.spare_lifetime_ms.load(Ordering::Relaxed))
    }

    /// Returns the interval between two checks of idle sessions.
    pub fn idle_session_check(&self) -> Duration {
        Duration::from_millis(self.spare_refresh_ms.load(Ordering::Relaxed)).min(self.idle_session_lifetime())
    }

    /// Returns the bytes that a statement hands over at a time: half of its pages.
    pub fn piece_bytes(&self) -> usize {
        (self.output_pages.load(Ordering::Relaxed) * PAGE / 2).max(PAGE)
    }

    pub fn measures(&self) -> bool {
        self.measures.load(Ordering::Relaxed)
    }
}
