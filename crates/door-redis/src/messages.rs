//! Publish/subscribe: the channels and patterns with their subscribers, and the delivery of messages.
//!
//! ```text
//!   PUBLISH ──► partition of the channel (locked) ──► subscribers of the channel, then of each pattern that matches ──► mailboxes (reactor)
//! ```
//! A publisher holds the lock of the channel's partition until its message is in all mailboxes. So the messages of a channel have one order at all subscribers, those of one publisher on one channel among them (DR-9), and no message
//! follows the reply that confirms the end of the subscription. It waits for no subscriber: a mailbox takes any number of bytes, and a client over its limit is cut.
//!
//! Lock order: partition, patterns, mailbox. A client's own list of subscriptions is locked alone.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use stdx::sync::atomic::{AtomicUsize, Ordering};
use stdx::sync::{Mutex, MutexGuard, RwLock};

use crate::clients::Client;
use crate::glob;
use crate::reply::Reply;

pub mod delivery;
pub mod key_events;
pub mod limits;
pub mod monitors;
pub mod subscriptions;
pub mod tracking;
pub mod tracking_state;

use delivery::{Delivery, Message};
use subscriptions::Topic;

/// The clients that subscribe to the same thing, by id.
type Subscribers = BTreeMap<u64, Arc<Client>>;
type Topics = HashMap<Arc<[u8]>, Subscribers>;

/// Channels whose names have the same hash.
#[derive(Default)]
struct Partition {
    channels: Topics,
    shards: Topics,
}

impl Partition {
    fn of(&self, topic: Topic) -> &Topics {
        if topic == Topic::Shard { &self.shards } else { &self.channels }
    }

    fn of_mut(&mut self, topic: Topic) -> &mut Topics {
        if topic == Topic::Shard { &mut self.shards } else { &mut self.channels }
    }
}

const PARTITIONS: usize = 64;

/// All subscriptions.
pub struct Hub {
    hashes: RandomState,
    partitions: [Mutex<Partition>; PARTITIONS],
    patterns: RwLock<BTreeMap<Arc<[u8]>, Subscribers>>,
    pattern_count: AtomicUsize,
}

impl Default for Hub {
    fn default() -> Hub {
        Hub {
            hashes: RandomState::new(),
            partitions: std::array::from_fn(|_| Mutex::default()),
            patterns: RwLock::default(),
            pattern_count: AtomicUsize::new(0),
        }
    }
}

/// Approximate memory of a subscription besides its name: its places in the hub and at the client.
pub const SUBSCRIPTION_BYTES: usize = 320;

impl Hub {
    fn partition(&self, name: &[u8]) -> MutexGuard<'_, Partition> {
        self.partitions[self.hashes.hash_one(name) as usize % PARTITIONS].lock()
    }

    /// Adds a subscription. Does nothing if the client has it.
    pub fn subscribe(&self, topic: Topic, name: &[u8], client: &Arc<Client>) {
        let name: Arc<[u8]> = name.into();
        {
            let mut own = client.subscriptions.lock();
            if !own.of_mut(topic).insert(name.clone()) {
                return;
            }
            client.subscribed.store(own.total(), Ordering::Relaxed);
        }
        if topic == Topic::Pattern {
            let mut patterns = self.patterns.write();
            patterns.entry(name).or_default().insert(client.id, client.clone());
            self.pattern_count.store(patterns.len(), Ordering::Release);
        } else {
            let mut partition = self.partition(&name);
            partition.of_mut(topic).entry(name).or_default().insert(client.id, client.clone());
        }
    }

    /// Removes a subscription. When it returns, all messages that the client gets for it are in its mailbox.
    pub fn unsubscribe(&self, topic: Topic, name: &[u8], client: &Client) {
        {
            let mut own = client.subscriptions.lock();
            if !own.of_mut(topic).remove(name) {
                return;
            }
            client.subscribed.store(own.total(), Ordering::Relaxed);
        }
        self.remove(topic, name, client);
    }

    fn remove(&self, topic: Topic, name: &[u8], client: &Client) {
        if topic == Topic::Pattern {
            let mut patterns = self.patterns.write();
            if let Some(subscribers) = patterns.get_mut(name) {
                subscribers.remove(&client.id);
                if subscribers.is_empty() {
                    patterns.remove(name);
                }
            }
            self.pattern_count.store(patterns.len(), Ordering::Release);
        } else {
            let mut partition = self.partition(name);
            let topics = partition.of_mut(topic);
            if let Some(subscribers) = topics.get_mut(name) {
                subscribers.remove(&client.id);
                if subscribers.is_empty() {
                    topics.remove(name);
                }
            }
        }
    }

    /// Removes all subscriptions of a client.
    pub fn leave(&self, client: &Client) {
        if client.subscribed.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        let own = std::mem::take(&mut *client.subscriptions.lock());
        for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
            own.of(topic).iter().for_each(|name| self.remove(topic, name, client));
        }
    }

    /// Sends a message to the subscribers of a channel and of the patterns that match it. Returns how many there are.
    pub fn publish(&self, topic: Topic, channel: &[u8], payload: &[u8], delivery: &mut Delivery<'_>) -> usize {
        let partition = self.partition(channel);
        let mut count = 0;
        if let Some(subscribers) = partition.of(topic).get(channel) {
            let kind: &[u8] = if topic == Topic::Shard { b"smessage" } else { b"message" };
            let mut message = Message::new(|reply: &mut Reply<'_>| put(reply, &[kind, channel, payload]));
            subscribers.values().for_each(|client| delivery.send(client, &mut message));
            count = subscribers.len();
        }
        if topic == Topic::Channel && self.pattern_count.load(Ordering::Acquire) > 0 {
            for (pattern, subscribers) in self.patterns.read().iter() {
                if glob::matches(pattern, channel, false) {
                    let mut message =
                        Message::new(|reply: &mut Reply<'_>| put(reply, &[b"pmessage", pattern, channel, payload]));
                    subscribers.values().for_each(|client| delivery.send(client, &mut message));
                    count += subscribers.len();
                }
            }
        }
        count
    }

    /// Returns how many subscriptions would get a message.
    pub fn count_receivers(&self, topic: Topic, channel: &[u8]) -> usize {
        let own = self.count_subscribers(topic, channel);
        if topic != Topic::Channel {
            return own;
        }
        let patterns = self.patterns.read();
        let matching = patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel, false));
        own + matching.map(|(_, subscribers)| subscribers.len()).sum::<usize>()
    }

    /// Returns how many clients subscribe to a channel by its name.
    pub fn count_subscribers(&self, topic: Topic, channel: &[u8]) -> usize {
        self.partition(channel).of(topic).get(channel).map_or(0, BTreeMap::len)
    }

    /// Returns the channels that have subscribers and match the pattern.
    pub fn active(&self, topic: Topic, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let is_meant = |name: &&Arc<[u8]>| pattern.is_none_or(|pattern| glob::matches(pattern, name, false));
        let mut names: Vec<Arc<[u8]>> = Vec::new();
        for partition in &self.partitions {
            names.extend(partition.lock().of(topic).keys().filter(is_meant).cloned());
        }
        names
    }

    /// Returns the number of channels with subscribers.
    pub fn count_active(&self, topic: Topic) -> usize {
        self.partitions.iter().map(|partition| partition.lock().of(topic).len()).sum()
    }

    /// Returns the number of different patterns.
    pub fn count_patterns(&self) -> usize {
        self.pattern_count.load(Ordering::Acquire)
    }
}

fn put(reply: &mut Reply<'_>, words: &[&[u8]]) {
    reply.push(words.len());
    words.iter().for_each(|word| reply.bulk(word));
}
