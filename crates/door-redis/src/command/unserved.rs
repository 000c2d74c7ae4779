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

pub const UNSERVED: &[Unserved] = &[
    unserved("asking", category::FAST | category::CONNECTION),
    unserved("bgrewriteaof", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("bgsave", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster", category::SLOW),
    unserved("cluster|addslots", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|addslotsrange", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|bumpepoch", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|count-failure-reports", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|countkeysinslot", category::SLOW),
    unserved("cluster|delslots", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|delslotsrange", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|failover", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|flushslots", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|forget", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|getkeysinslot", category::SLOW),
    unserved("cluster|help", category::SLOW),
    unserved("cluster|info", category::SLOW),
    unserved("cluster|keyslot", category::SLOW),
    unserved("cluster|links", category::SLOW),
    unserved("cluster|meet", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|myid", category::SLOW),
    unserved("cluster|nodes", category::SLOW),
    unserved("cluster|replicas", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|replicate", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|reset", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|saveconfig", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|set-config-epoch", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|setslot", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|shards", category::SLOW),
    unserved("cluster|slaves", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("cluster|slots", category::SLOW),
    unserved("failover", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("lastsave", category::ADMIN | category::FAST | category::DANGEROUS),
    unserved("memory|malloc-stats", category::SLOW),
    unserved("memory|purge", category::SLOW),
    unserved("migrate", category::KEYSPACE | category::WRITE | category::SLOW | category::DANGEROUS),
    unserved("module", category::SLOW),
    unserved("module|help", category::SLOW),
    unserved("module|list", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("module|load", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("module|loadex", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("module|unload", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("psync", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("readonly", category::FAST | category::CONNECTION),
    unserved("readwrite", category::FAST | category::CONNECTION),
    unserved("replconf", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("replicaof", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("restore-asking", category::KEYSPACE | category::WRITE | category::SLOW | category::DANGEROUS),
    unserved("save", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("shutdown", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("slaveof", category::ADMIN | category::SLOW | category::DANGEROUS),
    unserved("sync", category::ADMIN | category::SLOW | category::DANGEROUS),
];
