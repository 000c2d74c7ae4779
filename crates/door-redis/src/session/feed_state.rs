//! The state of the session of a server that follows.

use std::sync::Arc;

use crate::saves::{FileContents, SaveSlot};
use crate::source::followers::Follower;

/// The state of a follower's session.
pub(crate) struct Feed {
    pub follower: Arc<Follower>,
    /// It wants to know id and offset of the history.
    pub asks_for_id: bool,
    pub takes_mark: bool,
    pub contents: FileContents,
    /// The wait for the file. None: another file is being written first.
    pub slot: Option<SaveSlot>,
    pub blank_ms: u64,
}
