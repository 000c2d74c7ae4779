//! Scripts of Redis: Lua 5.1 in a sandbox with Redis' libraries. README.md is the introduction.

#![forbid(unsafe_code)]

mod arguments;
mod bits;
mod frame;
mod json;
mod libraries;
mod library;
mod library_runs;
mod msgpack;
mod number_text;
mod packing;
mod patterns;
mod raise;
mod random;
mod redis_api;
mod replies;
mod sandbox;
mod state;

pub use frame::{Answer, Host, Question};
pub use libraries::{BAD_NAME, FLAGS, Registered, is_valid_name};
pub use redis_api::digest;
pub use state::{Ended, Protocols, Purpose, State};
