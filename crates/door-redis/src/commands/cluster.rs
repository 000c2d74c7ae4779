//! CLUSTER, READONLY, READWRITE, ASKING: the server as the one node of a cluster, and MODULE, of which there are none.

use engine::KeySet;

use crate::call::{Call, Result};
use crate::cluster::{DISABLED, SLOTS, slot_of};
use crate::commands::help as lines;
use crate::number;
use crate::session::Session;

/// The number of keys that are read between two looks at whether the client is still there.
const STEP: usize = 4096;
/// How much more than the port for clients that between nodes is, as Redis has it.
const BUS_DISTANCE: u64 = 10_000;

/// Writes the error of an instance without cluster support. Returns whether it has.
fn is_disabled(session: &Session, call: &mut Call<'_>) -> bool {
    if !session.shared.is_cluster {
        call.reply.error(DISABLED);
    }
    !session.shared.is_cluster
}

/// How clients reach this node.
struct Endpoint {
    ip: String,
    hostname: String,
    port: u64,
    bus_port: u64,
    /// One of `ip`, `hostname`, `unknown-endpoint`.
    preferred: String,
}

impl Endpoint {
    /// Returns the announced address. Without one it is that at which this client has found the server.
    fn of(session: &Session) -> Endpoint {
        let parameters = &session.shared.parameters;
        let (local, local_port) = session.client.local.rsplit_once(':').unwrap_or((&session.client.local, ""));
        let announced = parameters.text("cluster-announce-ip");
        let ip = if announced.is_empty() { local.trim_matches(['[', ']']).to_owned() } else { announced };
        let port = match parameters.number("cluster-announce-port") {
            0 => local_port.parse().unwrap_or(u64::from(session.shared.port)),
            port => port,
        };
        let bus_port = match parameters.number("cluster-announce-bus-port") {
            0 => port + BUS_DISTANCE,
            port => port,
        };
        let hostname = parameters.text("cluster-announce-hostname");
        Endpoint { ip, hostname, port, bus_port, preferred: parameters.text("cluster-preferred-endpoint-type") }
    }

    /// Returns the preferred name; `None` if there is to be none.
    fn shown(&self) -> Option<&str> {
        match &*self.preferred {
            "hostname" if self.hostname.is_empty() => Some("?"),
            "hostname" => Some(&self.hostname),
            "unknown-endpoint" => None,
            _ => Some(&self.ip),
        }
    }
}

fn optional(call: &mut Call<'_>, text: Option<&str>) {
    match text {
        Some(text) => call.reply.bulk(text.as_bytes()),
        None => call.reply.null(),
    }
}

pub fn info(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        let text = format!(
            "cluster_state:ok\r\ncluster_slots_assigned:{SLOTS}\r\ncluster_slots_ok:{SLOTS}\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\ncluster_current_epoch:0\r\ncluster_my_epoch:0\r\ncluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n"
        );
        call.reply.verbatim(text.as_bytes());
    }
    Ok(())
}

pub fn myid(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        call.reply.bulk(session.shared.node_id.as_bytes());
    }
    Ok(())
}

fn node_line(session: &Session) -> String {
    let at = Endpoint::of(session);
    let hostname = if at.hostname.is_empty() { String::new() } else { format!(",{}", at.hostname) };
    format!(
        "{} {}:{}@{}{hostname} myself,master - 0 0 0 connected 0-{}\n",
        session.shared.node_id,
        at.ip,
        at.port,
        at.bus_port,
        SLOTS - 1
    )
}

pub fn nodes(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        let line = node_line(session);
        call.reply.verbatim(line.as_bytes());
    }
    Ok(())
}

pub fn slots(session: &mut Session, call: &mut Call<'_>) -> Result {
    if is_disabled(session, call) {
        return Ok(());
    }
    let at = Endpoint::of(session);
    call.reply.array(1);
    call.reply.array(3);
    call.reply.integer(0);
    call.reply.integer(i64::from(SLOTS) - 1);
    call.reply.array(4);
    optional(call, at.shown());
    call.reply.integer(at.port as i64);
    call.reply.bulk(session.shared.node_id.as_bytes());
    let others = [
        ("ip", &at.ip, at.preferred != "ip"),
        ("hostname", &at.hostname, at.preferred != "hostname" && !at.hostname.is_empty()),
    ];
    let others: Vec<_> = others.into_iter().filter(|(_, _, is_shown)| *is_shown).collect();
    call.reply.map(others.len());
    for (name, text, _) in others {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(text.as_bytes());
    }
    Ok(())
}

pub fn shards(session: &mut Session, call: &mut Call<'_>) -> Result {
    if is_disabled(session, call) {
        return Ok(());
    }
    let at = Endpoint::of(session);
    call.reply.array(1);
    call.reply.map(2);
    call.reply.bulk(b"slots");
    call.reply.array(2);
    call.reply.integer(0);
    call.reply.integer(i64::from(SLOTS) - 1);
    call.reply.bulk(b"nodes");
    call.reply.array(1);
    let has_hostname = !at.hostname.is_empty();
    call.reply.map(7 + usize::from(has_hostname));
    call.reply.bulk(b"id");
    call.reply.bulk(session.shared.node_id.as_bytes());
    call.reply.bulk(b"port");
    call.reply.integer(at.port as i64);
    call.reply.bulk(b"ip");
    call.reply.bulk(at.ip.as_bytes());
    call.reply.bulk(b"endpoint");
    optional(call, at.shown());
    if has_hostname {
        call.reply.bulk(b"hostname");
        call.reply.bulk(at.hostname.as_bytes());
    }
    call.reply.bulk(b"role");
    call.reply.bulk(b"master");
    call.reply.bulk(b"replication-offset");
    call.reply.integer(0);
    call.reply.bulk(b"health");
    call.reply.bulk(b"online");
    Ok(())
}

/// There are no links to other nodes.
pub fn links(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        call.reply.array(0);
    }
    Ok(())
}

pub fn keyslot(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        call.reply.integer(i64::from(slot_of(call.args[2])));
    }
    Ok(())
}

/// Calls `each` with the keys of a slot, until it returns false. All keys are walked, some at a time, as long as the client is there.
fn walk(session: &Session, slot: u16, each: &mut dyn FnMut(&[u8]) -> bool) -> Result {
    session.client.watch_departure();
    let (mut cursor, mut goes_on) = (0, true);
    loop {
        if session.client.has_departed() || !stdx::wait::check_for_interrupts() {
            return Err(engine::Error::Cancelled);
        }
        let mut found: Vec<Vec<u8>> = Vec::new();
        let (next, _) = session.shared.keyspace.read::<_, engine::Error>(KeySet::Keys(&[]), |txn| {
            found.clear();
            txn.scan(0, cursor, STEP, |key, _| {
                if slot_of(key) == slot {
                    found.push(key.to_vec());
                }
            })
        })?;
        for key in &found {
            goes_on = goes_on && each(key);
        }
        if next == 0 || !goes_on {
            return Ok(());
        }
        cursor = next;
    }
}

fn slot_at(call: &Call<'_>, at: usize) -> Option<u16> {
    let number = number::parse(call.args[at])?;
    u16::try_from(number).ok().filter(|slot| *slot < SLOTS)
}

pub fn countkeysinslot(session: &mut Session, call: &mut Call<'_>) -> Result {
    if is_disabled(session, call) {
        return Ok(());
    }
    if call.integer(2).is_none() {
        return Ok(());
    }
    let Some(slot) = slot_at(call, 2) else {
        call.reply.error("ERR Invalid slot");
        return Ok(());
    };
    let mut count = 0;
    walk(session, slot, &mut |_| {
        count += 1;
        true
    })?;
    call.reply.integer(count);
    Ok(())
}

pub fn getkeysinslot(session: &mut Session, call: &mut Call<'_>) -> Result {
    if is_disabled(session, call) {
        return Ok(());
    }
    let (Some(_), Some(most)) = (call.integer(2), call.integer(3)) else { return Ok(()) };
    let (Some(slot), Ok(most)) = (slot_at(call, 2), usize::try_from(most)) else {
        call.reply.error("ERR Invalid slot or number of keys");
        return Ok(());
    };
    let mut keys: Vec<Vec<u8>> = Vec::new();
    if most > 0 {
        walk(session, slot, &mut |key| {
            keys.push(key.to_vec());
            keys.len() < most
        })?;
    }
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// Checks that an argument is the id of this node, the only one.
fn is_known(session: &Session, call: &mut Call<'_>) -> bool {
    let is_known = call.args[2].eq_ignore_ascii_case(session.shared.node_id.as_bytes());
    if !is_known {
        let text = [b"ERR Unknown node ", call.args[2]].concat();
        call.reply.error(&String::from_utf8_lossy(&text));
    }
    is_known
}

pub fn replicas(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) && is_known(session, call) {
        call.reply.array(0);
    }
    Ok(())
}

pub fn count_failure_reports(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) && is_known(session, call) {
        call.reply.integer(0);
    }
    Ok(())
}

pub fn failover(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        call.reply.error("ERR You should send CLUSTER FAILOVER to a replica");
    }
    Ok(())
}

/// Nodes and slots cannot be changed.
pub fn refused(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        call.reply.error("ERR This cluster is one node with all slots, and cannot be changed");
    }
    Ok(())
}

/// The configuration is on disk already.
pub fn saveconfig(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        call.reply.ok();
    }
    Ok(())
}

/// READONLY, READWRITE, ASKING: this node has all keys, and no other has any.
pub fn accepted(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        call.reply.ok();
    }
    Ok(())
}

pub fn help(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !is_disabled(session, call) {
        lines(call, HELP);
    }
    Ok(())
}

pub fn module_list(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.array(0);
    Ok(())
}

pub fn module_refused(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.error("ERR MODULE command not allowed. This server loads no modules");
    Ok(())
}

pub fn module_help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(call, MODULE_HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "ADDSLOTS <slot> [<slot> ...]",
    "    Assign slots to current node.",
    "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Assign slots which are between <start-slot> and <end-slot> to current node.",
    "BUMPEPOCH",
    "    Advance the cluster config epoch.",
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Return number of failure reports for <node-id>.",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>.",
    "DELSLOTS <slot> [<slot> ...]",
    "    Delete slots information from current node.",
    "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Delete slots information which are between <start-slot> and <end-slot> from current node.",
    "FAILOVER [FORCE|TAKEOVER]",
    "    Promote current replica node to being a master.",
    "FORGET <node-id>",
    "    Remove a node from the cluster.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot.",
    "FLUSHSLOTS",
    "    Delete current node own slots information.",
    "INFO",
    "    Return information about the cluster.",
    "KEYSLOT <key>",
    "    Return the hash slot for <key>.",
    "MEET <ip> <port> [<bus-port>]",
    "    Connect nodes into a working cluster.",
    "MYID",
    "    Return the node id.",
    "NODES",
    "    Return cluster configuration seen by node. Output format:",
    "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
    "REPLICATE <node-id>",
    "    Configure current node as replica to <node-id>.",
    "RESET [HARD|SOFT]",
    "    Reset current node (default: soft).",
    "SET-CONFIG-EPOCH <epoch>",
    "    Set config epoch of current node.",
    "SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
    "    Set slot state.",
    "REPLICAS <node-id>",
    "    Return <node-id> replicas.",
    "SAVECONFIG",
    "    Force saving cluster configuration on disk.",
    "SLOTS",
    "    Return information about slots range mappings. Each range is made of:",
    "    start, end, master and replicas IP addresses, ports and ids",
    "SHARDS",
    "    Return information about slot range mappings and the nodes associated with them.",
    "LINKS",
    "    Return information about all network links between this node and its peers.",
    "    Output format is an array where each array element is a map containing attributes of a link",
];

const MODULE_HELP: &[&str] = &[
    "LIST",
    "    Return a list of loaded modules.",
    "LOAD <path> [<arg> ...]",
    "    Load a module library from <path>, passing to it any optional arguments.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Load a module library from <path>, while passing it module configurations and optional arguments.",
    "UNLOAD <name>",
    "    Unload a module.",
];
