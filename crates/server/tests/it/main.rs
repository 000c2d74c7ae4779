//! The built `beluga`, as a process: what it says, how it ends.

mod start;
mod support;
