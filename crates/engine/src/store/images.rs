//! Before-images: the records that undo restores.

use std::collections::BTreeMap;

use btree::TreeId;

use crate::store::purge_queue::MAP_GARBAGE;
use crate::store::trees::{MAPS, QUEUE};

/// The oldest before-image of each record that a transaction changed, by tree and key. `None`: the record did not exist.
pub(crate) type Images = BTreeMap<(TreeId, Vec<u8>), Option<Vec<u8>>>;

/// Returns true for records that say which maps exist and which are garbage. They are few, so their oldest images are kept together for the rollback of the whole
/// transaction, also those that a rollback to a savepoint has restored: restoring them again changes nothing.
pub(crate) fn is_directory(tree: TreeId, key: &[u8]) -> bool {
    tree == MAPS || (tree == QUEUE && key.first() == Some(&MAP_GARBAGE))
}
