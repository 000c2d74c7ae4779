//! The work that is due each second: PING, followers that are cut, blank lines for those that wait, and the end of a history that nobody follows.

use std::sync::{Arc, Weak};
use std::time::Duration;

use stdx::sync::atomic::Ordering;

use crate::parameters::output_limits::ClassLimits;
use crate::shared::Shared;
use crate::source::followers::{FollowStage, Follower};
use crate::source::history::HistoryState;

const TICK: Duration = Duration::from_secs(1);

/// Begins to tick, as long as there is a history.
pub fn start_ticking(shared: &Arc<Shared>, state: &mut HistoryState) {
    if !state.is_ticking {
        state.is_ticking = true;
        state.pinged_ms = shared.clock.wall_ms();
        schedule(&Arc::downgrade(shared), shared);
    }
}

fn schedule(weak: &Weak<Shared>, shared: &Shared) {
    let weak = weak.clone();
    if let Some(pool) = shared.pool() {
        pool.timer(TICK, Box::new(move || tick(&weak)));
    }
}

fn tick(weak: &Weak<Shared>) {
    let Some(shared) = weak.upgrade() else { return };
    let (now, parameters) = (shared.clock.wall_ms(), &shared.parameters);
    let limits @ [behind_max, ..] = shared.output_limits.of_replicas();
    shared.history.set_bounds(parameters.number("repl-backlog-size"), behind_max);
    let timeout_ms = parameters.number("repl-timeout") * 1000;
    let (ttl_ms, ping_ms) =
        (parameters.number("repl-backlog-ttl") * 1000, parameters.number("repl-ping-replica-period") * 1000);
    let mut state = shared.history.lock();
    let (end, mut cut) = (state.end, Vec::new());
    state.followers.retain(|follower| {
        let fault = fault_of(follower, end, limits, (now, timeout_ms));
        if let Some(fault) = fault {
            follower.cut();
            cut.push((follower.ip, fault));
        }
        fault.is_none()
    });
    if !state.followers.is_empty() {
        state.alone_since_ms = now;
    }
    let is_over = ttl_ms > 0 && now.saturating_sub(state.alone_since_ms) >= ttl_ms;
    if is_over {
        shared.keyspace.effects().end();
        state.renew(String::new());
        (state.is_on, state.is_ticking) = (false, false);
    }
    // A follower that waits for its file gets a blank line.
    state.followers.iter().filter(|follower| follower.stage() != FollowStage::Online).for_each(|one| one.wake());
    let pings = !state.followers.is_empty() && now.saturating_sub(state.pinged_ms) >= ping_ms;
    if pings {
        state.pinged_ms = now;
    }
    drop(state);
    for (ip, fault) in cut {
        shared.stats.output_limit_disconnections.add(u64::from(fault == LATE));
        shared.host.warn(fault, &ip.to_string());
    }
    if pings {
        shared.history.append_command(&[b"PING"], 0);
    }
    if !is_over {
        schedule(weak, &shared);
    }
}

const LATE: &str = "A replica was disconnected because it is further behind than client-output-buffer-limit allows.";
const SILENT: &str = "A replica was disconnected because it was silent for repl-timeout seconds.";

/// Returns why a follower is to be cut: it is too far behind, or silent for too long.
fn fault_of(
    follower: &Follower,
    end: u64,
    [hard, soft, seconds]: ClassLimits,
    (now, timeout_ms): (u64, u64),
) -> Option<&'static str> {
    let (behind, late_since) = (end.saturating_sub(follower.next()), &follower.late_since_ms);
    if soft == 0 || behind < soft {
        late_since.store(0, Ordering::Relaxed);
    } else if late_since.load(Ordering::Relaxed) == 0 {
        late_since.store(now, Ordering::Relaxed);
    }
    let since = late_since.load(Ordering::Relaxed);
    if hard > 0 && behind >= hard || since > 0 && now.saturating_sub(since) > seconds * 1000 {
        return Some(LATE);
    }
    let is_silent = now.saturating_sub(follower.heard_ms()) > timeout_ms;
    (is_silent && !follower.is_mute && follower.stage() == FollowStage::Online).then_some(SILENT)
}
