//! Names of the files in the data folder, apart from the WAL segments (`wal/segment.rs`).

/// Name of the file of the pages.
pub const DATA_FILE: &str = "data";
/// Name of the double-write file.
pub const DOUBLE_WRITE_FILE: &str = "doublewrite";
