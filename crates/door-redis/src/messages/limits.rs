//! The parameter `client-output-buffer-limit`: how many bytes may wait for a client before it is cut.
//!
//! A client is cut at once above the hard limit, and above the soft limit when it stays there for so many seconds. Limits of 0 do not exist. For a class without limits, and while all connections together have too much unsent (RE-10), messages
//! have limits nevertheless: those that monitors and tracking clients get are not paced by their requests.

use reactor::Backlog;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::clients::Client;
use crate::parameters::output_limits::{ClassLimits, DEFAULT, read};

/// The classes by their places in the parameter.
const NORMAL: usize = 0;
const PUBSUB: usize = 2;

/// Unsent bytes of a client that is cut if a message comes while all connections together have too much unsent.
const CROWDED_BYTES: u64 = 256 << 10;

/// The limits in force.
pub struct OutputLimits([[AtomicU64; 3]; 3]);

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits(read(DEFAULT).map(|limits| limits.map(AtomicU64::new)))
    }
}

impl OutputLimits {
    pub fn set(&self, text: &str) {
        for (cells, limits) in self.0.iter().zip(read(text)) {
            cells.iter().zip(limits).for_each(|(cell, limit)| cell.store(limit, Ordering::Relaxed));
        }
    }

    fn of(&self, class: usize) -> ClassLimits {
        self.0[class].each_ref().map(|cell| cell.load(Ordering::Relaxed))
    }

    /// Returns whether a client that has got a message is to be cut.
    pub fn are_exceeded(&self, client: &Client, backlog: Backlog, now_ms: u64) -> bool {
        let class = class_of(client);
        let own = self.of(class);
        let limits = if own[0] == 0 && own[1] == 0 { self.of(PUBSUB) } else { own };
        backlog.is_crowded && backlog.bytes > CROWDED_BYTES || exceed(limits, client, backlog.bytes, now_ms)
    }

    /// Returns whether a client is to be cut because of its unsent replies.
    pub fn refuse_replies(&self, client: &Client, unsent: u64, now_ms: u64) -> bool {
        exceed(self.of(class_of(client)), client, unsent, now_ms)
    }
}

fn class_of(client: &Client) -> usize {
    if client.is_subscriber() { PUBSUB } else { NORMAL }
}

fn exceed([hard, soft, seconds]: ClassLimits, client: &Client, unsent: u64, now_ms: u64) -> bool {
    if hard > 0 && unsent >= hard {
        return true;
    }
    let since = &client.over_soft_limit_ms;
    if soft == 0 || unsent < soft {
        if since.load(Ordering::Relaxed) != 0 {
            since.store(0, Ordering::Relaxed);
        }
        return false;
    }
    match since.load(Ordering::Relaxed) {
        0 => {
            since.store(now_ms, Ordering::Relaxed);
            false
        }
        since => now_ms.saturating_sub(since) > seconds.saturating_mul(1000),
    }
}
