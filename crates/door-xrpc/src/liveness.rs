//! Counts open connections, and closed ones whose sessions are still running.

use std::sync::Arc;

use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::shared::Shared;

/// A counted connection: held by the connection and by each of its sessions.
pub struct Liveness {
    shared: Arc<Shared>,
    is_closing: AtomicBool,
}

impl Liveness {
    pub(crate) fn new(shared: &Arc<Shared>) -> Arc<Liveness> {
        shared.stats.connections.add(1);
        Arc::new(Liveness { shared: shared.clone(), is_closing: AtomicBool::new(false) })
    }

    /// Marks the connection as closed. Must be called once.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.shared.stats.connections.add(1u64.wrapping_neg());
        self.shared.stats.closing.add(1);
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        let counter =
            if *self.is_closing.get_mut() { &self.shared.stats.closing } else { &self.shared.stats.connections };
        counter.add(1u64.wrapping_neg());
    }
}
