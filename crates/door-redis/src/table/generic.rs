//! Rows of the group generic.

use crate::command::Run::{Container, Read, Session, Write};
use crate::command::flag::{DENYOOM, FAST, LOADING, NOSCRIPT, READONLY, STALE, WRITE};
use crate::command::keys::{at, range};
use crate::command::{Command, Reach, category, row};
use crate::commands::{expire, generic, object, scan, server};

pub const ROWS: &[Command] = &[
    row("copy", -3, WRITE | DENYOOM, category::KEYSPACE, Write(generic::copy))
        .keys(&[at(1, "RO access"), at(2, "OW update")])
        .reach(Reach::Copied),
    row("del", -2, WRITE, category::KEYSPACE, Write(generic::del))
        .keys(&[range(1, -1, 1, "RM delete")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("exists", -2, READONLY | FAST, category::KEYSPACE, Read(generic::exists))
        .keys(&[range(1, -1, 1, "RO")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("expire", -3, WRITE | FAST, category::KEYSPACE, Write(expire::expire)).keys(&[at(1, "RW update")]),
    row("expireat", -3, WRITE | FAST, category::KEYSPACE, Write(expire::expireat)).keys(&[at(1, "RW update")]),
    row("expiretime", 2, READONLY | FAST, category::KEYSPACE, Read(expire::expiretime)).keys(&[at(1, "RO access")]),
    row("keys", 2, READONLY, category::KEYSPACE | category::DANGEROUS, Read(scan::keys))
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .reach(Reach::Everything),
    row("move", 3, WRITE | FAST, category::KEYSPACE, Write(generic::move_key))
        .keys(&[at(1, "RW access update")])
        .reach(Reach::Moved),
    row("object", -2, 0, 0, Container),
    row("object|encoding", 3, READONLY, category::KEYSPACE, Read(object::encoding))
        .keys(&[at(2, "RO")])
        .tips(&["nondeterministic_output"]),
    row("object|freq", 3, READONLY, category::KEYSPACE, Read(object::freq))
        .keys(&[at(2, "RO")])
        .tips(&["nondeterministic_output"]),
    row("object|help", 2, LOADING | STALE, category::KEYSPACE, Session(object::help)),
    row("object|idletime", 3, READONLY, category::KEYSPACE, Read(object::idletime))
        .keys(&[at(2, "RO")])
        .tips(&["nondeterministic_output"]),
    row("object|refcount", 3, READONLY, category::KEYSPACE, Read(object::refcount))
        .keys(&[at(2, "RO")])
        .tips(&["nondeterministic_output"]),
    row("persist", 2, WRITE | FAST, category::KEYSPACE, Write(expire::persist)).keys(&[at(1, "RW update")]),
    row("pexpire", -3, WRITE | FAST, category::KEYSPACE, Write(expire::pexpire)).keys(&[at(1, "RW update")]),
    row("pexpireat", -3, WRITE | FAST, category::KEYSPACE, Write(expire::pexpireat)).keys(&[at(1, "RW update")]),
    row("pexpiretime", 2, READONLY | FAST, category::KEYSPACE, Read(expire::pexpiretime)).keys(&[at(1, "RO access")]),
    row("pttl", 2, READONLY | FAST, category::KEYSPACE, Read(expire::pttl))
        .keys(&[at(1, "RO access")])
        .tips(&["nondeterministic_output"]),
    row("randomkey", 1, READONLY, category::KEYSPACE, Read(scan::randomkey))
        .tips(&["request_policy:all_shards", "nondeterministic_output"]),
    row("rename", 3, WRITE, category::KEYSPACE, Write(generic::rename))
        .keys(&[at(1, "RW access delete"), at(2, "OW update")]),
    row("renamenx", 3, WRITE | FAST, category::KEYSPACE, Write(generic::renamenx))
        .keys(&[at(1, "RW access delete"), at(2, "OW insert")]),
    row("scan", -2, READONLY, category::KEYSPACE, Read(scan::scan))
        .tips(&["nondeterministic_output", "request_policy:special"]),
    row("touch", -2, READONLY | FAST, category::KEYSPACE, Read(generic::exists))
        .keys(&[range(1, -1, 1, "RO")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("ttl", 2, READONLY | FAST, category::KEYSPACE, Read(expire::ttl))
        .keys(&[at(1, "RO access")])
        .tips(&["nondeterministic_output"]),
    row("type", 2, READONLY | FAST, category::KEYSPACE, Read(generic::type_of)).keys(&[at(1, "RO")]),
    row("unlink", -2, WRITE | FAST, category::KEYSPACE, Write(generic::del))
        .keys(&[range(1, -1, 1, "RM delete")])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row("wait", 3, NOSCRIPT, category::CONNECTION, Session(server::wait))
        .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
];
