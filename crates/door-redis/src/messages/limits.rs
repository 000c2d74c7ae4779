//! The parameter `client-output-buffer-limit`: how many bytes may wait for a client before it is cut.
//!
//! A client is cut at once above the hard limit, and above the soft limit when it stays there for so many seconds. Limits of 0 do not exist. For a class without limits, and while all connections together have too much unsent (RE-10), messages
//! have limits nevertheless: those that monitors and tracking clients get are not paced by their requests.

use std::time::Duration;

use reactor::Backlog;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::clients::Client;
use crate::parameters::output_limits::{ClassLimits, DEFAULT, read};

/// The classes by their places in the parameter.
const NORMAL: usize = 0;
const REPLICA: usize = 1;
const PUBSUB: usize = 2;

/// Unsent bytes of a client that is cut if a message comes while all connections together have too much unsent.
const CROWDED_BYTES: u64 = 256 << 10;

/// The judgement on a client's unsent bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing, or nothing yet.
    Within,
    /// They exceed the soft limit from now on. After this time it is to be judged again, even if nothing more is written.
    AboveSoft { again: Duration },
    /// The client is cut.
    Exceeded,
}

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

    /// Returns the limits of servers that follow this one.
    pub fn of_replicas(&self) -> ClassLimits {
        self.of(REPLICA)
    }

    /// Judges a client that has got a message.
    pub fn judge_messages(&self, client: &Client, backlog: Backlog, now_ms: u64) -> Verdict {
        if backlog.is_crowded && backlog.bytes > CROWDED_BYTES {
            return Verdict::Exceeded;
        }
        judge(self.of_messages(client), client, backlog.bytes, now_ms)
    }

    /// Judges a client by its unsent replies.
    pub fn judge_replies(&self, client: &Client, unsent: u64, now_ms: u64) -> Verdict {
        judge(self.of(class_of(client)), client, unsent, now_ms)
    }

    /// Judges a client that has had nothing written since it was above the soft limit.
    pub fn judge_again(&self, client: &Client, unsent: u64, now_ms: u64) -> Verdict {
        let limits = if client.gets_messages() { self.of_messages(client) } else { self.of(class_of(client)) };
        judge(limits, client, unsent, now_ms)
    }

    fn of_messages(&self, client: &Client) -> ClassLimits {
        let own = self.of(class_of(client));
        if own[0] == 0 && own[1] == 0 { self.of(PUBSUB) } else { own }
    }
}

fn class_of(client: &Client) -> usize {
    if client.is_subscriber() { PUBSUB } else { NORMAL }
}

fn judge([hard, soft, seconds]: ClassLimits, client: &Client, unsent: u64, now_ms: u64) -> Verdict {
    if hard > 0 && unsent >= hard {
        return Verdict::Exceeded;
    }
    let since = &client.over_soft_limit_ms;
    if soft == 0 || unsent < soft {
        if since.load(Ordering::Relaxed) != 0 {
            since.store(0, Ordering::Relaxed);
        }
        return Verdict::Within;
    }
    let patience_ms = seconds.saturating_mul(1000);
    match since.load(Ordering::Relaxed) {
        0 => {
            since.store(now_ms, Ordering::Relaxed);
            Verdict::AboveSoft { again: Duration::from_millis(patience_ms.saturating_add(1)) }
        }
        since if now_ms.saturating_sub(since) > patience_ms => Verdict::Exceeded,
        _ => Verdict::Within,
    }
}
