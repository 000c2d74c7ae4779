//! COPY: options, and the formats text, csv and binary, both ways.
//!
//! Input comes in pieces of any size. Each complete record becomes a row at once, so only one incomplete record is held.

pub mod input;
pub mod options;
pub mod output;

pub use options::{CopyFormat, CopyOptions};
