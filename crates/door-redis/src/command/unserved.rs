//! Commands of Redis 7.0.15 that are not served, with their ACL categories.
//!
//! ACL rules may name them. Hardened rule lists (`+@all -eval -shutdown`) are written for all of Redis, and a rule about a command that does not exist is
//! obeyed trivially. A subcommand is listed behind its container, even if that is served.

use super::category;

/// A name and its categories as bits.
pub struct Unserved {
    pub name: &'static str,
    pub categories: u32,
}

const fn unserved(name: &'static str, categories: u32) -> Unserved {
    Unserved { name, categories }
}

pub const UNSERVED: &[Unserved] = &[unserved("failover", category::ADMIN | category::SLOW | category::DANGEROUS)];
