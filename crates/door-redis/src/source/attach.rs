//! How a server begins to follow, at the instant of its file or where it stopped, and how it leaves.

use std::sync::Arc;

use crate::shared::Shared;
use crate::source::followers::{FollowStage, Follower};
use crate::source::history::HistoryState;
use crate::source::tick::start_ticking;

impl HistoryState {
    /// Returns how many followers have acknowledged everything up to an offset.
    pub fn count_acknowledged(&self, offset: u64) -> usize {
        let has =
            |follower: &&Arc<Follower>| follower.stage() == FollowStage::Online && follower.acknowledged() >= offset;
        self.followers.iter().filter(has).count()
    }

    pub fn leave(&mut self, follower: &Arc<Follower>, now_ms: u64) {
        self.followers.retain(|other| !Arc::ptr_eq(other, follower));
        if self.followers.is_empty() {
            self.alone_since_ms = now_ms;
        }
    }
}

impl Shared {
    /// Registers a follower at the end of the history, which begins if there is none. All stripes must be held: the file that it gets shows this moment (DR-21).
    pub fn attach_follower(self: &Arc<Shared>, follower: &Arc<Follower>) {
        let [behind_max, ..] = self.output_limits.of_replicas();
        self.history.set_bounds(self.parameters.number("repl-backlog-size"), behind_max);
        let mut state = self.history.lock();
        if !state.is_on {
            // Changes since the last history were not told.
            state.renew(self.new_history_id());
            state.is_on = true;
            self.keyspace.effects().begin(behind_max);
        }
        follower.advance_to(state.end);
        // Its database is the first one.
        state.select_again();
        state.followers.push(follower.clone());
        start_ticking(self, &mut state);
    }

    /// Registers a follower that continues at an offset. Returns false if the history of this id does not have it, or not any more.
    pub fn continue_follower(self: &Arc<Shared>, follower: &Arc<Follower>, id: &[u8], offset: u64) -> bool {
        let mut state = self.history.lock();
        if !state.is_on || state.id.as_bytes() != id || offset < state.start() || offset > state.end {
            return false;
        }
        follower.advance_to(offset);
        follower.enter(FollowStage::Online);
        state.followers.push(follower.clone());
        start_ticking(self, &mut state);
        true
    }

    pub fn new_history_id(&self) -> String {
        let mut random = [0; 20];
        // Without random bytes, the id of this run and the time are as unique.
        if os::entropy(&mut random).is_err() {
            let seed = format!("{}{}", self.run_id, self.clock.wall_us());
            random = engine::sha1(seed.as_bytes());
        }
        random.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
