//! The built `beluga`, as a process: what it says, how it ends.

mod life;
mod mysql;
mod redis;
mod start;
mod support;
