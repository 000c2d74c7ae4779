//! PolarDB-X's private protocol 2.0 (XRPC): its frames, its messages, its encodings. Start with README.md beside this crate.
#![forbid(unsafe_code)]

pub mod frame;
pub mod proto;

pub mod message;

pub mod encode;

pub mod auth;
