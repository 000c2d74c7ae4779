//! Numbers of trees. The trees that every database has come first; maps of rows follow from `FIRST_MAP` on.

use btree::TreeId;

/// Identifies an ordered map of rows. It is also the number of the map's tree.
pub type MapId = TreeId;

pub(crate) const CATALOG: TreeId = 1;
pub(crate) const RECORDS: TreeId = 2;
pub(crate) const EXPIRY: TreeId = 3;
pub(crate) const QUEUE: TreeId = 4;
/// The directory of maps: which maps of rows exist.
pub(crate) const MAPS: TreeId = 5;
/// The first map of rows, which every database has: definitions of tables and whatever else the layer above keeps.
pub const ROW_CATALOG: MapId = 6;

/// Smaller numbers are reserved for trees that every database has.
pub(crate) const FIRST_MAP: MapId = 16;
