//! The checker's knowledge of streams (EN-77, EN-78).

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::keyspace::key::{self, CONSUMER, CONSUMER_NAME, GROUP, OWNED, PENDING, STREAM_CHUNK};
use crate::keyspace::record::{Body, Meta};
use crate::keyspace::streams::chunk::{ChunkEntries, ChunkHead, Fields, StreamState};
use crate::keyspace::streams::groups::{Consumer, Group};
use crate::keyspace::streams::pending::parse_items;
use crate::keyspace::streams::stream::id_of_key;
use crate::keyspace::streams::stream_id::StreamId;
use crate::store::Store;

/// A stream's record, and its elements as far as they were walked over.
pub(crate) struct StreamCheck {
    state: StreamState,
    len: u64,
    live: u64,
    nodes: u64,
    last: Option<StreamId>,
    last_chunk: Option<ChunkHead>,
    groups: BTreeMap<u32, Group>,
    /// Pending entries by group and consumer, as the group's list says, and as the consumers' lists say.
    pending: BTreeSet<(u32, u32, StreamId)>,
    owned: BTreeSet<(u32, u32, StreamId)>,
    consumers: BTreeMap<(u32, u32), Consumer>,
    names: BTreeSet<(u32, u32)>,
    problems: Vec<String>,
}

/// A check by version id if the stream has elements, or else what is wrong.
pub(crate) type BegunCheck = (Option<(u64, StreamCheck)>, Vec<String>);

impl StreamCheck {
    /// Begins with a key's record. Returns version id and check if the stream has elements, or else the problems.
    pub fn of(meta: &Meta<'_>) -> Result<BegunCheck> {
        let (state, len, version) = match meta.body {
            Body::Elements { count, version, fields } => (StreamState::parse(fields)?, count, Some(version)),
            Body::Inline(payload) => {
                let state = StreamState::parse(&payload[meta.head.key_len as usize..])?;
                let len = state.head.live.into();
                (state, len, None)
            }
            _ => return Err(Error::corrupt("a stream's record of unknown form")),
        };
        let check = StreamCheck {
            state,
            len,
            live: 0,
            nodes: 0,
            last: None,
            last_chunk: None,
            groups: BTreeMap::new(),
            pending: BTreeSet::new(),
            owned: BTreeSet::new(),
            consumers: BTreeMap::new(),
            names: BTreeSet::new(),
            problems: Vec::new(),
        };
        Ok(match version {
            Some(version) => (Some((version, check)), Vec::new()),
            None => (None, check.finish()),
        })
    }

    fn chunk(&mut self, base: StreamId, head: &ChunkHead, entries: &[u8]) -> Result<()> {
        let (mut read, mut count) = (ChunkEntries::new(base, entries), 0);
        while let Some(entry) = read.next()? {
            if self.last.is_some_and(|last| last >= entry.id) {
                self.problems.push(format!("{:?} follows {:?}", entry.id, self.last));
            }
            (count, self.last) = (count + 1, Some(entry.id));
        }
        if count != head.live {
            self.problems.push(format!("the chunk of {base:?} has {count} entries, and says {}", head.live));
        }
        let begins = self.last_chunk.is_none_or(|before| before.node.first != head.node.first);
        if count > 0 && begins != head.begins_node || self.last > Some(head.node.last) {
            self.problems
                .push(format!("the chunk of {base:?} knows another node: {head:?} behind {:?}", self.last_chunk));
        }
        self.live += u64::from(count);
        self.nodes += u64::from(head.begins_node);
        self.last_chunk = Some(*head);
        Ok(())
    }

    /// Takes the next element, in the order of the tree.
    pub fn element(&mut self, store: &Store, kind: u8, tree_key: &[u8], meta: &Meta<'_>) -> Result<()> {
        let mut payload = Vec::new();
        store.read_payload(&meta.body, 0..meta.body.payload_len(), &mut payload)?;
        let (name, payload) = payload.split_at(meta.head.key_len as usize);
        let sub = key::sub_key(tree_key);
        let mut numbers = Fields(sub);
        let mut number = || numbers.array().map(u32::from_be_bytes).ok_or_else(|| Error::corrupt("a key is too short"));
        match kind {
            STREAM_CHUNK => {
                let base = id_of_key(tree_key)?;
                let (head, entries) = ChunkHead::split(payload)?;
                if number()? != self.state.epoch || base < self.state.start || head.live == 0 {
                    self.problems.push(format!("the chunk of {base:?} should be gone"));
                }
                self.chunk(base, &head, entries)?;
            }
            GROUP => {
                let group = Group::parse(if name.is_empty() { sub } else { name }, payload)?;
                self.groups.insert(group.id, group);
            }
            PENDING => {
                let group = number()?;
                for item in parse_items(id_of_key(tree_key)?, payload, true)? {
                    self.pending.insert((group, item.consumer, item.id));
                }
            }
            OWNED => {
                let (group, consumer) = (number()?, number()?);
                for item in parse_items(id_of_key(tree_key)?, payload, false)? {
                    self.owned.insert((group, consumer, item.id));
                }
            }
            CONSUMER_NAME => {
                let id = Fields(payload).u32().ok_or_else(|| Error::corrupt("the number of a consumer is missing"))?;
                self.names.insert((number()?, id));
            }
            CONSUMER => {
                let (group, id) = (number()?, number()?);
                self.consumers.insert((group, id), Consumer::parse(id, payload)?);
            }
            _ => return Err(Error::corrupt("no element of a stream")),
        }
        Ok(())
    }

    /// Returns the problems.
    pub fn finish(mut self) -> Vec<String> {
        let state = std::mem::take(&mut self.state);
        if self.state.head.live == 0
            && self.last_chunk.is_some_and(|last| last.node != state.head.node)
            && state.head.live == 0
        {
            self.problems.push("the last chunk does not know its node".to_string());
        }
        if state.head.live > 0
            && let Err(error) = self.chunk(state.base, &state.head, &state.entries)
        {
            self.problems.push(error.to_string());
        }
        if self.live != self.len || self.last > Some(state.last_id) {
            self.problems.push(format!(
                "{} entries up to {:?}, its record says {} up to {:?}",
                self.live, self.last, self.len, state.last_id
            ));
        }
        if self.nodes != state.nodes {
            self.problems.push(format!("{} nodes, its record says {}", self.nodes, state.nodes));
        }
        if self.groups.len() as u64 != u64::from(state.groups) || self.groups.keys().any(|id| *id >= state.next_group) {
            self.problems.push(format!("{} groups, its record says {}", self.groups.len(), state.groups));
        }
        self.compare_groups();
        self.problems
    }

    fn compare_groups(&mut self) {
        if self.pending != self.owned {
            let (group, consumer, id) = self.pending.symmetric_difference(&self.owned).next().expect("they differ");
            self.problems.push(format!("EN-78: {id:?} is in one list only, of consumer {consumer} of group {group}"));
        }
        if !self.names.iter().eq(self.consumers.keys()) {
            self.problems.push("EN-78: consumers and their names differ".to_string());
        }
        for group in self.groups.values() {
            let of_group = |id: u32| id == group.id;
            let pending = self.pending.iter().filter(|item| of_group(item.0)).count() as u64;
            let consumers = self.consumers.keys().filter(|key| of_group(key.0)).count() as u32;
            if (pending, consumers) != (group.pending, group.consumers) {
                self.problems.push(format!("EN-78: {group:?} has {pending} pending entries and {consumers} consumers"));
            }
        }
        for ((group, id), consumer) in &self.consumers {
            let pending = self.owned.range((*group, *id, StreamId::MIN)..=(*group, *id, StreamId::MAX)).count() as u64;
            if pending != consumer.pending || !self.groups.contains_key(group) {
                self.problems.push(format!("EN-78: {consumer:?} of group {group} has {pending} pending entries"));
            }
        }
        if let Some(item) = self.owned.iter().find(|item| !self.consumers.contains_key(&(item.0, item.1))) {
            self.problems.push(format!("EN-78: {item:?} is pending for nobody"));
        }
    }
}
