//! A text that clients name by its digest, with what is the same in all its executions: decoded, prepared, its column metadata encoded.
//!
//! Sessions of one plan-cache context share it, as they share prepared plans (`plan_translation`). A request that sends nothing but the digest and values needs no other lookup, and its text is not
//! looked at.

use sql_mysql::Prepared;
use sql_mysql::types::Charset;

use crate::digests::Meaning;
use crate::encode::column_frames::ColumnFrames;

/// A longer text is looked up and bound each time: its tree takes some fifty times its length.
pub const BYTES_MAX: usize = 4 << 10;

pub struct PreparedText {
    pub meaning: Meaning,
    /// The character set in which the text was decoded.
    pub client: Charset,
    pub text: Box<str>,
    /// None: it was executed without values, and is executed as a text.
    pub prepared: Option<Prepared>,
    pub columns: ColumnFrames,
}
