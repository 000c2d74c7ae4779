//! The meta record that a key transaction has read last, which it keeps while it holds the key's stripe, and the state of a pipeline (`pipeline`).
//!
//! Nobody else changes a record whose stripe is held, so later commands of the transaction need not look it up again. In a pipeline a kept record may be ahead of
//! the tree: commands change it in memory, and it is written once (EN-95).

use std::rc::Rc;

use btree::LeafHint;

use crate::keyspace::ahead::Ahead;
use crate::keyspace::effects::EffectMark;
use crate::keyspace::key::TreeKey;

/// A meta record as of the commands that have run so far.
pub(crate) struct KeptRecord {
    pub db: u8,
    pub space: u32,
    pub key: TreeKey,
    /// `None`: there is no such key.
    pub record: Option<Rc<Vec<u8>>>,
    /// The version word of the record in the tree, and its leaf.
    pub word: u64,
    pub leaf: LeafHint,
    /// The number of the last command that has changed it, while the tree has the record of before.
    pub changed_by: Option<usize>,
    /// `RecordPut::is_similar` of the last change.
    pub is_similar: bool,
}

impl KeptRecord {
    pub fn is_of(&self, space: u32, key: &TreeKey) -> bool {
        self.space == space && self.key.as_slice() == key.as_slice()
    }
}

/// The events and lookups of a pipeline when a command began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PipelineMark {
    /// The number of that command.
    pub command: usize,
    pub events: usize,
    pub effects: EffectMark,
    pub hits: u64,
    pub misses: u64,
}

/// A pipeline under way.
#[derive(Default)]
pub(crate) struct PipelineRun {
    /// The beginning of the running command.
    pub running: PipelineMark,
    /// The first command whose changes are not in the tree, or in it within an undecided record transaction. Those before it are decided.
    pub unsettled: Option<PipelineMark>,
    /// The door's hint for the running command's first key.
    pub ahead: Ahead,
}

impl PipelineRun {
    /// Notes that changes of the running command are not decided.
    pub fn unsettle(&mut self) {
        self.unsettled.get_or_insert(self.running);
    }
}
