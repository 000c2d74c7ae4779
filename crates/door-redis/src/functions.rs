//! The function of each command, by the name of its row in the table.
//!
//! Rows (`table/`) describe commands to sessions, accounts and statistics, while functions take a session. With the functions in a list of their own, a session
//! can know the table without knowing the functions. A test compares the names of both lists.

use std::sync::LazyLock;

use engine::KeyTransaction;

use crate::call::{Call, Result};
use crate::command::Command;
use crate::commands::{
    acl, bitmap, client, config, connection, debug, expire, generic, hash, info, introspect, latency, memory, object,
    pubsub, scan, server, set, slowlog, sorted_algebra, sorted_range, sorted_set, string, transaction,
};
use crate::session::Session as State;
use crate::table::COMMANDS;

/// How a command runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// Reads keys. May run several times; the caller removes what an earlier run wrote to the reply (DR-1).
    Read(fn(&mut KeyTransaction<'_>, &mut Call<'_>) -> Result),
    /// Changes keys, all of them or none.
    Write(fn(&mut KeyTransaction<'_>, &mut Call<'_>) -> Result),
    /// Works on the session or the server.
    Session(fn(&mut State, &mut Call<'_>) -> Result),
    /// Has subcommands, which run instead. The arity of its row makes a subcommand mandatory.
    Container,
}

use Run::{Container, Read, Session, Write};

/// Returns the function of a command.
pub fn of(command: &'static Command) -> Run {
    static BY_ROW: LazyLock<Vec<Run>> = LazyLock::new(|| {
        let run = |name: &str| FUNCTIONS.iter().find(|(known, _)| *known == name).expect("a test compares the names").1;
        COMMANDS.iter().map(|row| run(row.name)).collect()
    });
    BY_ROW[command.index()]
}

const FUNCTIONS: &[(&str, Run)] = &[
    ("append", Write(string::append)),
    ("decr", Write(string::decr)),
    ("decrby", Write(string::decrby)),
    ("get", Read(string::get)),
    ("getdel", Write(string::getdel)),
    ("getex", Write(string::getex)),
    ("getrange", Read(string::getrange)),
    ("getset", Write(string::getset)),
    ("incr", Write(string::incr)),
    ("incrby", Write(string::incrby)),
    ("incrbyfloat", Write(string::incrbyfloat)),
    ("lcs", Read(string::lcs)),
    ("mget", Read(string::mget)),
    ("mset", Write(string::mset)),
    ("msetnx", Write(string::msetnx)),
    ("psetex", Write(string::psetex)),
    ("set", Write(string::set)),
    ("setex", Write(string::setex)),
    ("setnx", Write(string::setnx)),
    ("setrange", Write(string::setrange)),
    ("strlen", Read(string::strlen)),
    ("substr", Read(string::getrange)),
    ("bitcount", Read(bitmap::bitcount)),
    ("bitfield", Write(bitmap::bitfield)),
    ("bitfield_ro", Read(bitmap::bitfield_ro)),
    ("bitop", Write(bitmap::bitop)),
    ("bitpos", Read(bitmap::bitpos)),
    ("getbit", Read(bitmap::getbit)),
    ("setbit", Write(bitmap::setbit)),
    ("hdel", Write(hash::hdel)),
    ("hexists", Read(hash::hexists)),
    ("hget", Read(hash::hget)),
    ("hgetall", Read(hash::hgetall)),
    ("hincrby", Write(hash::hincrby)),
    ("hincrbyfloat", Write(hash::hincrbyfloat)),
    ("hkeys", Read(hash::hkeys)),
    ("hlen", Read(hash::hlen)),
    ("hmget", Read(hash::hmget)),
    ("hmset", Write(hash::hmset)),
    ("hrandfield", Read(hash::hrandfield)),
    ("hscan", Read(hash::hscan)),
    ("hset", Write(hash::hset)),
    ("hsetnx", Write(hash::hsetnx)),
    ("hstrlen", Read(hash::hstrlen)),
    ("hvals", Read(hash::hvals)),
    ("sadd", Write(set::sadd)),
    ("scard", Read(set::scard)),
    ("sdiff", Read(set::sdiff)),
    ("sdiffstore", Write(set::sdiffstore)),
    ("sinter", Read(set::sinter)),
    ("sintercard", Read(set::sintercard)),
    ("sinterstore", Write(set::sinterstore)),
    ("sismember", Read(set::sismember)),
    ("smembers", Read(set::smembers)),
    ("smismember", Read(set::smismember)),
    ("smove", Write(set::smove)),
    ("spop", Write(set::spop)),
    ("srandmember", Read(set::srandmember)),
    ("srem", Write(set::srem)),
    ("sscan", Read(set::sscan)),
    ("sunion", Read(set::sunion)),
    ("sunionstore", Write(set::sunionstore)),
    ("zadd", Write(sorted_set::zadd)),
    ("zcard", Read(sorted_set::zcard)),
    ("zcount", Read(sorted_range::zcount)),
    ("zdiff", Read(sorted_algebra::zdiff)),
    ("zdiffstore", Write(sorted_algebra::zdiffstore)),
    ("zincrby", Write(sorted_set::zincrby)),
    ("zinter", Read(sorted_algebra::zinter)),
    ("zintercard", Read(sorted_algebra::zintercard)),
    ("zinterstore", Write(sorted_algebra::zinterstore)),
    ("zlexcount", Read(sorted_range::zlexcount)),
    ("zmpop", Write(sorted_set::zmpop)),
    ("zmscore", Read(sorted_set::zmscore)),
    ("zpopmax", Write(sorted_set::zpopmax)),
    ("zpopmin", Write(sorted_set::zpopmin)),
    ("zrandmember", Read(sorted_set::zrandmember)),
    ("zrange", Read(sorted_range::zrange)),
    ("zrangebylex", Read(sorted_range::zrangebylex)),
    ("zrangebyscore", Read(sorted_range::zrangebyscore)),
    ("zrangestore", Write(sorted_range::zrangestore)),
    ("zrank", Read(sorted_set::zrank)),
    ("zrem", Write(sorted_set::zrem)),
    ("zremrangebylex", Write(sorted_range::zremrangebylex)),
    ("zremrangebyrank", Write(sorted_range::zremrangebyrank)),
    ("zremrangebyscore", Write(sorted_range::zremrangebyscore)),
    ("zrevrange", Read(sorted_range::zrevrange)),
    ("zrevrangebylex", Read(sorted_range::zrevrangebylex)),
    ("zrevrangebyscore", Read(sorted_range::zrevrangebyscore)),
    ("zrevrank", Read(sorted_set::zrevrank)),
    ("zscan", Read(sorted_set::zscan)),
    ("zscore", Read(sorted_set::zscore)),
    ("zunion", Read(sorted_algebra::zunion)),
    ("zunionstore", Write(sorted_algebra::zunionstore)),
    ("copy", Write(generic::copy)),
    ("del", Write(generic::del)),
    ("exists", Read(generic::exists)),
    ("expire", Write(expire::expire)),
    ("expireat", Write(expire::expireat)),
    ("expiretime", Read(expire::expiretime)),
    ("keys", Read(scan::keys)),
    ("move", Write(generic::move_key)),
    ("object", Container),
    ("object|encoding", Read(object::encoding)),
    ("object|freq", Read(object::freq)),
    ("object|help", Session(object::help)),
    ("object|idletime", Read(object::idletime)),
    ("object|refcount", Read(object::refcount)),
    ("persist", Write(expire::persist)),
    ("pexpire", Write(expire::pexpire)),
    ("pexpireat", Write(expire::pexpireat)),
    ("pexpiretime", Read(expire::pexpiretime)),
    ("pttl", Read(expire::pttl)),
    ("randomkey", Read(scan::randomkey)),
    ("rename", Write(generic::rename)),
    ("renamenx", Write(generic::renamenx)),
    ("scan", Read(scan::scan)),
    ("touch", Read(generic::exists)),
    ("ttl", Read(expire::ttl)),
    ("type", Read(generic::type_of)),
    ("unlink", Write(generic::del)),
    ("wait", Session(server::wait)),
    ("auth", Session(connection::auth)),
    ("client", Container),
    ("client|getname", Session(client::getname)),
    ("client|getredir", Session(client::getredir)),
    ("client|help", Session(client::help)),
    ("client|id", Session(client::id)),
    ("client|info", Session(client::info)),
    ("client|kill", Session(client::kill)),
    ("client|list", Session(client::list)),
    ("client|no-evict", Session(client::no_evict)),
    ("client|pause", Session(client::pause)),
    ("client|reply", Session(client::reply)),
    ("client|setname", Session(client::setname)),
    ("client|trackinginfo", Session(client::trackinginfo)),
    ("client|unblock", Session(client::unblock)),
    ("client|unpause", Session(client::unpause)),
    ("echo", Session(connection::echo)),
    ("hello", Session(connection::hello)),
    ("ping", Session(connection::ping)),
    ("quit", Session(connection::quit)),
    ("reset", Session(connection::reset)),
    ("select", Session(connection::select)),
    ("discard", Session(transaction::discard)),
    ("exec", Session(transaction::exec)),
    ("multi", Session(transaction::multi)),
    ("unwatch", Session(transaction::unwatch)),
    ("watch", Session(transaction::watch)),
    ("psubscribe", Session(pubsub::psubscribe)),
    ("publish", Session(pubsub::publish)),
    ("pubsub", Container),
    ("pubsub|channels", Session(pubsub::channels)),
    ("pubsub|help", Session(pubsub::help)),
    ("pubsub|numpat", Session(pubsub::numpat)),
    ("pubsub|numsub", Session(pubsub::numsub)),
    ("pubsub|shardchannels", Session(pubsub::shardchannels)),
    ("pubsub|shardnumsub", Session(pubsub::shardnumsub)),
    ("punsubscribe", Session(pubsub::punsubscribe)),
    ("spublish", Session(pubsub::spublish)),
    ("ssubscribe", Session(pubsub::ssubscribe)),
    ("subscribe", Session(pubsub::subscribe)),
    ("sunsubscribe", Session(pubsub::sunsubscribe)),
    ("unsubscribe", Session(pubsub::unsubscribe)),
    ("acl", Container),
    ("acl|cat", Session(acl::cat)),
    ("acl|deluser", Session(acl::deluser)),
    ("acl|dryrun", Session(acl::dryrun)),
    ("acl|genpass", Session(acl::genpass)),
    ("acl|getuser", Session(acl::getuser)),
    ("acl|help", Session(acl::help)),
    ("acl|list", Session(acl::list)),
    ("acl|load", Session(acl::load)),
    ("acl|log", Session(acl::log)),
    ("acl|save", Session(acl::save)),
    ("acl|setuser", Session(acl::setuser)),
    ("acl|users", Session(acl::users)),
    ("acl|whoami", Session(acl::whoami)),
    ("command", Session(introspect::all)),
    ("command|count", Session(introspect::count)),
    ("command|docs", Session(introspect::docs)),
    ("command|getkeys", Session(introspect::getkeys)),
    ("command|getkeysandflags", Session(introspect::getkeysandflags)),
    ("command|help", Session(introspect::help)),
    ("command|info", Session(introspect::info)),
    ("command|list", Session(introspect::list)),
    ("config", Container),
    ("config|get", Session(config::get)),
    ("config|help", Session(config::help)),
    ("config|resetstat", Session(config::resetstat)),
    ("config|rewrite", Session(config::rewrite)),
    ("config|set", Session(config::set)),
    ("dbsize", Read(server::dbsize)),
    ("debug", Session(debug::debug)),
    ("flushall", Write(server::flushall)),
    ("flushdb", Write(server::flushdb)),
    ("info", Session(info::info)),
    ("latency", Container),
    ("latency|doctor", Session(latency::doctor)),
    ("latency|graph", Session(latency::graph)),
    ("latency|help", Session(latency::help)),
    ("latency|histogram", Session(latency::histogram)),
    ("latency|history", Session(latency::history)),
    ("latency|latest", Session(latency::latest)),
    ("latency|reset", Session(latency::reset)),
    ("lolwut", Session(server::lolwut)),
    ("memory", Container),
    ("memory|doctor", Session(memory::doctor)),
    ("memory|help", Session(memory::help)),
    ("memory|stats", Session(memory::stats)),
    ("memory|usage", Read(memory::usage)),
    ("monitor", Session(server::monitor)),
    ("role", Session(server::role)),
    ("slowlog", Container),
    ("slowlog|get", Session(slowlog::get)),
    ("slowlog|help", Session(slowlog::help)),
    ("slowlog|len", Session(slowlog::len)),
    ("slowlog|reset", Session(slowlog::reset)),
    ("swapdb", Write(server::swapdb)),
    ("time", Session(server::time)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table_has_one_function() {
        let mut functions: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        let mut rows: Vec<&str> = COMMANDS.iter().map(|row| row.name).collect();
        functions.sort_unstable();
        rows.sort_unstable();
        assert_eq!(functions, rows);
    }

    #[test]
    fn a_container_cannot_be_called_without_a_subcommand() {
        for row in COMMANDS.iter().filter(|row| matches!(of(row), Container)) {
            assert!(!row.subcommands().is_empty(), "{}", row.name);
            assert!(row.arity == -2, "{}", row.name);
        }
    }
}
