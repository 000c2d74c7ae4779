//! PolarDB-X's private protocol 2.0 (XRPC) on the engine. Start with README.md beside this crate.
#![forbid(unsafe_code)]

pub mod frame;
pub mod proto;

pub mod message;

pub mod encode;

pub mod auth;

mod digests;
mod door;
mod errors;
mod link;
mod member;
mod run;
mod session;
mod spare;
mod statement;
mod stats;
mod strangers;
mod xplan;

pub use digests::{Digests, Limits};
pub use door::{Options, XrpcDoor};
pub use stats::Stats;
