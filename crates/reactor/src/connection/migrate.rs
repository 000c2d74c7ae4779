//! How a connection migrates to the group that runs where its packets come in.
//!
//! Receiving, serving, sending, and waking a peer on the same machine are then the work of one processor.

use std::sync::Arc;

use stdx::sync::atomic::Ordering;

use crate::scratch::Scratch;
use crate::state::{Connection, Group, StreamState};
use crate::sys;

/// Receives between two checks of the processor of incoming packets.
const CHECK_INTERVAL: u32 = 64;

impl Connection {
    /// Migrates the connection if two checks in a row suggest the same group and the groups stay balanced (RE-7). Returns false if the connection could not be watched again.
    pub(super) fn migrate_if_due(self: &Arc<Self>, state: &mut StreamState, scratch: &Scratch) -> bool {
        state.receives < CHECK_INTERVAL || self.migrate(state, scratch)
    }

    #[cold]
    fn migrate(self: &Arc<Self>, state: &mut StreamState, scratch: &Scratch) -> bool {
        state.receives = 0;
        let home = self.home.load(Ordering::Relaxed);
        let target = match sys::incoming_cpu(&self.stream) {
            Some(cpu) if cpu != scratch.cpu => self.groups.iter().position(|group| group.cpu() == cpu),
            _ => None,
        };
        let Some(target) = target.filter(|target| *target != home) else {
            state.suggested_home = None;
            return true;
        };
        let is_confirmed = state.suggested_home.replace(target) == Some(target);
        if !is_confirmed || !has_room(&self.groups[target], &self.groups[home]) {
            return true;
        }
        state.suggested_home = None;
        self.groups[home].unwatch(self);
        self.home.store(target, Ordering::Relaxed);
        self.shared().counters.migrated.add(1);
        self.groups[target].watch(self).is_ok()
    }
}

/// A group accepts connections of another one until it has an eighth more, or four.
fn has_room(target: &Group, home: &Group) -> bool {
    let other = home.population();
    target.population() < other + (other / 8).max(4)
}
