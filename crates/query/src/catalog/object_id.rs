//! The number of an object, and of the dialect that made it.

/// The number of an object of the catalog: a schema, table, index, constraint, view or sequence. Unique over all kinds,
/// and the same for the life of the object (QU-40).
pub type ObjectId = u64;

/// The number of an index or constraint that `Writing::put_table` has yet to number.
pub const UNNUMBERED: ObjectId = 0;

/// The dialect that made an object, by a number that the dialects agree on. Texts in a definition are the maker's.
/// Records of earlier versions have maker 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Maker(pub u8);
