//! Rows of the group server.

use crate::command::Run::{Container, Read, Session, Write};
use crate::command::flag::{ADMIN, FAST, LOADING, NOSCRIPT, READONLY, STALE, WRITE};
use crate::command::keys::at;
use crate::command::{Command, Reach, category, row};
use crate::commands::{acl, config, debug, info, introspect, latency, memory, server, slowlog};

pub const ROWS: &[Command] = &[
    row("acl", -2, 0, 0, Container),
    row("acl|cat", -2, NOSCRIPT | LOADING | STALE, 0, Session(acl::cat)),
    row("acl|deluser", -3, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::deluser)),
    row("acl|dryrun", -4, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::dryrun)),
    row("acl|genpass", -2, NOSCRIPT | LOADING | STALE, 0, Session(acl::genpass)),
    row("acl|getuser", 3, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::getuser)),
    row("acl|help", 2, LOADING | STALE, 0, Session(acl::help)),
    row("acl|list", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::list)),
    row("acl|load", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::load)),
    row("acl|log", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::log)),
    row("acl|save", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::save)),
    row("acl|setuser", -3, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::setuser)),
    row("acl|users", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(acl::users)),
    row("acl|whoami", 2, NOSCRIPT | LOADING | STALE, 0, Session(acl::whoami)),
    row("command", -1, LOADING | STALE, category::CONNECTION, Session(introspect::all))
        .tips(&["nondeterministic_output_order"]),
    row("command|count", 2, LOADING | STALE, category::CONNECTION, Session(introspect::count)),
    row("command|docs", -2, LOADING | STALE, category::CONNECTION, Session(introspect::docs))
        .tips(&["nondeterministic_output_order"]),
    row("command|getkeys", -4, LOADING | STALE, category::CONNECTION, Session(introspect::getkeys)),
    row("command|getkeysandflags", -4, LOADING | STALE, category::CONNECTION, Session(introspect::getkeysandflags)),
    row("command|help", 2, LOADING | STALE, category::CONNECTION, Session(introspect::help)),
    row("command|info", -2, LOADING | STALE, category::CONNECTION, Session(introspect::info))
        .tips(&["nondeterministic_output_order"]),
    row("command|list", -2, LOADING | STALE, category::CONNECTION, Session(introspect::list))
        .tips(&["nondeterministic_output_order"]),
    row("config", -2, 0, 0, Container),
    row("config|get", -3, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(config::get)),
    row("config|help", 2, LOADING | STALE, 0, Session(config::help)),
    row("config|resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(config::resetstat)),
    row("config|rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(config::rewrite)),
    row("config|set", -4, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(config::set))
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row("dbsize", 1, READONLY | FAST, category::KEYSPACE, Read(server::dbsize))
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    row("debug", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(debug::debug)),
    row("flushall", -1, WRITE, category::KEYSPACE | category::DANGEROUS, Write(server::flushall))
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .reach(Reach::Everything),
    row("flushdb", -1, WRITE, category::KEYSPACE | category::DANGEROUS, Write(server::flushdb))
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .reach(Reach::Everything),
    row("info", -1, LOADING | STALE, category::DANGEROUS, Session(info::info)).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("latency", -2, 0, 0, Container),
    row("latency|doctor", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(latency::doctor)).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|graph", 3, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(latency::graph)).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|help", 2, LOADING | STALE, 0, Session(latency::help)),
    row("latency|histogram", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(latency::histogram)).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|history", 3, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(latency::history)).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|latest", 2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(latency::latest)).tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ]),
    row("latency|reset", -2, ADMIN | NOSCRIPT | LOADING | STALE, 0, Session(latency::reset))
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row("lolwut", -1, READONLY | FAST, 0, Session(server::lolwut)),
    row("memory", -2, 0, 0, Container),
    row("memory|doctor", 2, 0, 0, Session(memory::doctor)).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("memory|help", 2, LOADING | STALE, 0, Session(memory::help)),
    row("memory|stats", 2, 0, 0, Session(memory::stats)).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row("memory|usage", -3, READONLY, 0, Read(memory::usage)).keys(&[at(2, "RO")]),
    row("role", 1, NOSCRIPT | LOADING | STALE | FAST, category::ADMIN | category::DANGEROUS, Session(server::role)),
    row("slowlog", -2, 0, 0, Container),
    row("slowlog|get", -2, ADMIN | LOADING | STALE, 0, Session(slowlog::get))
        .tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    row("slowlog|help", 2, LOADING | STALE, 0, Session(slowlog::help)),
    row("slowlog|len", 2, ADMIN | LOADING | STALE, 0, Session(slowlog::len)).tips(&[
        "request_policy:all_nodes",
        "response_policy:agg_sum",
        "nondeterministic_output",
    ]),
    row("slowlog|reset", 2, ADMIN | LOADING | STALE, 0, Session(slowlog::reset))
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row("swapdb", 3, WRITE | FAST, category::KEYSPACE | category::DANGEROUS, Write(server::swapdb))
        .reach(Reach::Everything),
    row("time", 1, LOADING | STALE | FAST, 0, Session(server::time)).tips(&["nondeterministic_output"]),
];
