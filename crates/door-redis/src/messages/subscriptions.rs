//! The subscriptions of a client.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The kind of name that a subscription has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Channel,
    Pattern,
    Shard,
}

/// The subscriptions of a client.
#[derive(Default)]
pub struct Subscriptions {
    pub channels: BTreeSet<Arc<[u8]>>,
    pub patterns: BTreeSet<Arc<[u8]>>,
    pub shards: BTreeSet<Arc<[u8]>>,
}

impl Subscriptions {
    pub fn of(&self, topic: Topic) -> &BTreeSet<Arc<[u8]>> {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
            Topic::Shard => &self.shards,
        }
    }

    pub fn of_mut(&mut self, topic: Topic) -> &mut BTreeSet<Arc<[u8]>> {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
            Topic::Shard => &mut self.shards,
        }
    }

    pub fn total(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shards.len()
    }

    /// Returns the count that a confirmation shows.
    pub fn shown(&self, topic: Topic) -> usize {
        if topic == Topic::Shard { self.shards.len() } else { self.channels.len() + self.patterns.len() }
    }
}

/// A message that is sent later.
pub struct Publication {
    pub topic: Topic,
    pub channel: Box<[u8]>,
    pub payload: Box<[u8]>,
}
